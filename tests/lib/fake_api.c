#include "tests/lib/fake_api.h"

#include "base/alloc.h"

static struct fake_api *fake_api_of(struct api *api)
{
    return CONTAINER_OF(api, struct fake_api, api);
}

static void fake_call_free(struct fake_api *f, struct fake_call *call)
{
    list_del(&call->link);
    f->call_count--;
    arena_done(&call->memory);
    alloc_free(call);
}

static void fake_watch_free(struct fake_api *f, struct fake_watch *w)
{
    list_del(&w->link);
    f->watch_count--;
    arena_done(&w->memory);
    alloc_free(w);
}

static struct api_call *fake_api_send(struct api *api, const struct api_request *request,
                                      api_on_reply on_reply, void *ctx)
{
    struct fake_api *f = fake_api_of(api);
    struct fake_call *call = ALLOC_NEW(struct fake_call);
    call->verb = request->verb;
    call->path = arena_str(&call->memory, request->path);
    call->content_type = arena_str(&call->memory, request->content_type);
    call->accept = arena_str(&call->memory, request->accept);
    call->body = arena_str(&call->memory, request->body);
    call->timeout = request->timeout;
    call->on_reply = on_reply;
    call->ctx = ctx;
    list_add(&f->calls, &call->link);
    f->call_count++;
    f->sent++;
    return (struct api_call *)call;
}

static void fake_api_cancel(struct api *api, struct api_call *call)
{
    fake_call_free(fake_api_of(api), (struct fake_call *)call);
}

static struct api_watch *fake_api_watch(struct api *api, const struct api_watch_spec *spec,
                                        api_on_event on_event, void *ctx)
{
    struct fake_api *f = fake_api_of(api);
    struct fake_watch *w = ALLOC_NEW(struct fake_watch);
    w->path = arena_str(&w->memory, spec->path);
    w->accept = arena_str(&w->memory, spec->accept);
    w->silence_max = spec->silence_max;
    w->on_event = on_event;
    w->ctx = ctx;
    list_add(&f->watches, &w->link);
    f->watch_count++;
    f->watched++;
    return (struct api_watch *)w;
}

static void fake_api_watch_stop(struct api *api, struct api_watch *watch)
{
    fake_watch_free(fake_api_of(api), (struct fake_watch *)watch);
}

static const struct api_ops fake_api_ops = {
    .send = fake_api_send,
    .cancel = fake_api_cancel,
    .watch = fake_api_watch,
    .watch_stop = fake_api_watch_stop,
};

void fake_api_init(struct fake_api *f)
{
    *f = (struct fake_api){ .api = { .ops = &fake_api_ops } };
    list_init(&f->calls);
    list_init(&f->watches);
}

void fake_api_done(struct fake_api *f)
{
    if (f->api.ops == NULL) {
        return;
    }
    while (f->call_count > 0) {
        fake_call_free(f, fake_call_first(f));
    }
    while (f->watch_count > 0) {
        fake_watch_free(f, fake_watch_first(f));
    }
    f->api.ops = NULL;
}

struct fake_call *fake_call_first(struct fake_api *f)
{
    return list_empty(&f->calls) ? NULL : CONTAINER_OF(f->calls.next, struct fake_call, link);
}

struct fake_watch *fake_watch_first(struct fake_api *f)
{
    return list_empty(&f->watches) ? NULL : CONTAINER_OF(f->watches.next, struct fake_watch, link);
}

/* The handle is gone when on_reply is called, as the door promises. */
static void fake_call_finish(struct fake_api *f, struct fake_call *call,
                             const struct api_reply *reply)
{
    api_on_reply on_reply = call->on_reply;
    void *ctx = call->ctx;
    fake_call_free(f, call);
    on_reply(ctx, reply);
}

void fake_call_reply(struct fake_api *f, struct fake_call *call, int status, struct str body)
{
    fake_call_finish(f, call, &(struct api_reply){ .status = status, .body = body });
}

void fake_call_reply_with(struct fake_api *f, struct fake_call *call, const struct api_reply *reply)
{
    fake_call_finish(f, call, reply);
}

void fake_call_reply_after(struct fake_api *f, struct fake_call *call, int status,
                           usec_t retry_after)
{
    fake_call_finish(f, call, &(struct api_reply){ .status = status, .retry_after = retry_after });
}

void fake_call_fail(struct fake_api *f, struct fake_call *call, enum err_code code)
{
    struct err err = { 0 };
    (void)err_set(&err, code, "no answer");
    fake_call_finish(f, call, &(struct api_reply){ .err = &err });
}

void fake_watch_open(struct fake_watch *w)
{
    if (!w->open) {
        w->open = true;
        w->on_event(w->ctx, &(struct api_watch_event){ .kind = API_WATCH_OPEN, .status = 200 });
    }
}

void fake_watch_line(struct fake_watch *w, struct str line)
{
    fake_watch_open(w);
    w->on_event(w->ctx,
                &(struct api_watch_event){ .kind = API_WATCH_LINE, .status = 200, .line = line });
}

static void fake_watch_finish(struct fake_api *f, struct fake_watch *w,
                              const struct api_watch_event *event)
{
    api_on_event on_event = w->on_event;
    void *ctx = w->ctx;
    fake_watch_free(f, w);
    on_event(ctx, event);
}

void fake_watch_end(struct fake_api *f, struct fake_watch *w, int status, struct str body)
{
    fake_watch_finish(
        f, w, &(struct api_watch_event){ .kind = API_WATCH_END, .status = status, .line = body });
}

void fake_watch_fail(struct fake_api *f, struct fake_watch *w, enum err_code code)
{
    struct err err = { 0 };
    (void)err_set(&err, code, "connection lost");
    fake_watch_finish(f, w, &(struct api_watch_event){ .kind = API_WATCH_END, .err = &err });
}
