#include "tests/swarm/tap.h"

static struct tap *tap_of(struct api *api)
{
    return CONTAINER_OF(api, struct tap, api);
}

/* A handle for requests that never left; nobody will answer or cancel them, since the process is
 * gone. */
static struct api_call *tap_nowhere(struct tap *t)
{
    return (struct api_call *)(void *)t;
}

static struct api_call *tap_send(struct api *api, const struct api_request *request,
                                 api_on_reply on_reply, void *ctx)
{
    struct tap *t = tap_of(api);
    if (t->crashed) {
        return tap_nowhere(t);
    }
    t->on_send(t->ctx, request);
    if (request->verb != API_GET && t->crash != TAP_CRASH_NONE) {
        t->crashed = true;
        if (t->crash == TAP_CRASH_BEFORE) {
            return tap_nowhere(t);
        }
    }
    return api_send(t->door, request, on_reply, ctx);
}

static void tap_cancel(struct api *api, struct api_call *call)
{
    struct tap *t = tap_of(api);
    if (call != tap_nowhere(t)) {
        api_cancel(t->door, call);
    }
}

static struct api_watch *tap_watch(struct api *api, const struct api_watch_spec *spec,
                                   api_on_event on_event, void *ctx)
{
    return api_watch(tap_of(api)->door, spec, on_event, ctx);
}

static void tap_watch_stop(struct api *api, struct api_watch *watch)
{
    api_watch_stop(tap_of(api)->door, watch);
}

void tap_init(struct tap *t, struct api *door,
              void (*on_send)(void *ctx, const struct api_request *request), void *ctx)
{
    static const struct api_ops ops = {
        .send = tap_send,
        .cancel = tap_cancel,
        .watch = tap_watch,
        .watch_stop = tap_watch_stop,
    };
    *t = (struct tap){ .api.ops = &ops, .door = door, .on_send = on_send, .ctx = ctx };
}
