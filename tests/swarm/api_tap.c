#include "tests/swarm/api_tap.h"

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

/* Where the process' end is kept. */
static struct tap *tap_head(struct tap *t)
{
    return t->head != NULL ? t->head : t;
}

/* What the crash waits for. */
static bool tap_is_late(const struct tap *t, const struct api_request *request)
{
    if (t->crash == TAP_CRASH_PATCH) {
        return request->verb == API_PATCH &&
               str_contains(request->body, STR("maintenance-state\":\"in-maintenance\""));
    }
    return request->verb == API_PUT && str_contains(request->body, STR("drydock.dev/grants"));
}

static bool tap_is_step(const struct tap *t, const struct api_request *request)
{
    switch (t->step) {
    case TAP_STEP_LEDGER:
        return str_contains(request->path, STR("/maintenancelimits/"));
    case TAP_STEP_LOCK:
        return str_contains(request->path, STR("/leases/target-")) ||
               str_contains(request->body, STR("\"name\":\"target-"));
    case TAP_STEP_REQUEST:
        return str_contains(request->path, STR("/maintenancerequests/"));
    case TAP_STEP_MACHINE:
        return str_contains(request->path, STR("/machines/"));
    case TAP_STEP_HOST:
        return str_contains(request->path, STR("/baremetalhosts/"));
    default:
        return str_starts(request->path, STR("/api/v1/nodes/"));
    }
}

/* The process ends here; what it has sent last may arrive later. */
static void tap_keep(struct tap *t, const struct api_request *request, uint32_t port)
{
    t->crashed = true;
    t->late_port = port;
    t->late_verb = request->verb;
    buf_reset(&t->late_path);
    buf_reset(&t->late_body);
    buf_add(&t->late_path, request->path);
    buf_add(&t->late_body, request->body);
}

static struct api_call *tap_send(struct api *api, const struct api_request *request,
                                 api_on_reply on_reply, void *ctx)
{
    struct tap *t = tap_of(api);
    struct tap *head = tap_head(t);
    if (head->crashed) {
        return tap_nowhere(t);
    }
    t->on_send(t->ctx, request);
    if (head->crash == TAP_CRASH_PATCH || head->crash == TAP_CRASH_NOTE) {
        if (tap_is_late(head, request)) {
            tap_keep(head, request, t->port);
            return tap_nowhere(t);
        }
    } else if (head->crash >= TAP_CRASH_STEP_BEFORE) {
        if (request->verb != API_GET && tap_is_step(head, request)) {
            tap_keep(head, request, t->port);
            if (head->crash != TAP_CRASH_STEP_AFTER) {
                return tap_nowhere(t);
            }
        }
    } else if (request->verb != API_GET && head->crash != TAP_CRASH_NONE) {
        head->crashed = true;
        if (head->crash == TAP_CRASH_BEFORE) {
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
    struct tap old = *t;
    *t = (struct tap){ .api.ops = &ops, .door = door, .on_send = on_send, .ctx = ctx };
    t->late_path = old.late_path; /* what is on its way is the network's */
    t->late_body = old.late_body;
    t->late_verb = old.late_verb;
    t->late_port = old.late_port;
}

void tap_done(struct tap *t)
{
    buf_done(&t->late_path);
    buf_done(&t->late_body);
}

/* One message on its way; it stays in the arena behind its end. */
struct outbound_note {
    struct outbound_tap *tap;
    struct str text;
    outbound_on_reply on_reply;
    void *ctx;
};

static void outbound_tap_reply(void *ctx, const struct outbound_reply *reply)
{
    struct outbound_note *note = ctx;
    note->tap->on_reply(note->tap->ctx, note->text, reply);
    note->on_reply(note->ctx, reply);
}

static struct outbound_note *outbound_tap_note(struct outbound_tap *t, struct str text,
                                               outbound_on_reply on_reply, void *ctx)
{
    struct outbound_note *note = ARENA_NEW(t->arena, struct outbound_note);
    *note = (struct outbound_note){ t, arena_str(t->arena, text), on_reply, ctx };
    t->on_send(t->ctx, note->text);
    return note;
}

static struct outbound_call *outbound_tap_http(struct outbound *outbound,
                                               const struct outbound_request *request,
                                               outbound_on_reply on_reply, void *ctx)
{
    struct outbound_tap *t = CONTAINER_OF(outbound, struct outbound_tap, outbound);
    return outbound_http(t->door, request, outbound_tap_reply,
                         outbound_tap_note(t, request->body, on_reply, ctx));
}

static struct outbound_call *outbound_tap_mail(struct outbound *outbound,
                                               const struct outbound_mail *mail,
                                               outbound_on_reply on_reply, void *ctx)
{
    struct outbound_tap *t = CONTAINER_OF(outbound, struct outbound_tap, outbound);
    return outbound_mail(t->door, mail, outbound_tap_reply,
                         outbound_tap_note(t, mail->payload, on_reply, ctx));
}

static void outbound_tap_cancel(struct outbound *outbound, struct outbound_call *call)
{
    outbound_cancel(CONTAINER_OF(outbound, struct outbound_tap, outbound)->door, call);
}

void outbound_tap_init(struct outbound_tap *t)
{
    static const struct outbound_ops ops = {
        .http = outbound_tap_http,
        .mail = outbound_tap_mail,
        .cancel = outbound_tap_cancel,
    };
    t->outbound.ops = &ops;
}
