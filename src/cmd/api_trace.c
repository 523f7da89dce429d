#include "cmd/api_trace.h"

#include "base/alloc.h"
#include "base/arena.h"

#include <stdio.h>

/* One request under way. */
struct api_trace_call {
    struct api_trace *trace;
    struct api_call *call;
    usec_t began;
    enum api_verb verb;
    struct arena memory;
    struct str path;
    api_on_reply on_reply;
    void *ctx;
};

static const char *const verb_names[] = {
    [API_GET] = "GET",     [API_POST] = "POST",     [API_PUT] = "PUT",
    [API_PATCH] = "PATCH", [API_DELETE] = "DELETE",
};

static void trace_call_free(struct api_trace_call *c)
{
    arena_done(&c->memory);
    alloc_free(c);
}

static void trace_on_reply(void *ctx, const struct api_reply *reply)
{
    struct api_trace_call *c = ctx;
    long long ms = (long long)((loop_now(c->trace->loop) - c->began) / 1000);
    if (reply->status != 0) {
        (void)fprintf(stderr, "%s " STR_FMT " %d in %lld ms\n", verb_names[c->verb],
                      STR_ARG(c->path), reply->status, ms);
    } else {
        (void)fprintf(stderr, "%s " STR_FMT " no answer in %lld ms: %s\n", verb_names[c->verb],
                      STR_ARG(c->path), ms, reply->err->msg);
    }
    c->on_reply(c->ctx, reply);
    trace_call_free(c);
}

static struct api_call *trace_send(struct api *api, const struct api_request *request,
                                   api_on_reply on_reply, void *ctx)
{
    struct api_trace *t = CONTAINER_OF(api, struct api_trace, api);
    struct api_trace_call *c = ALLOC_NEW(struct api_trace_call);
    c->trace = t;
    c->began = loop_now(t->loop);
    c->verb = request->verb;
    c->path = arena_str(&c->memory, request->path);
    c->on_reply = on_reply;
    c->ctx = ctx;
    c->call = api_send(t->inner, request, trace_on_reply, c);
    return (struct api_call *)(void *)c; /* opaque to whoever cancels it */
}

static void trace_cancel(struct api *api, struct api_call *call)
{
    struct api_trace *t = CONTAINER_OF(api, struct api_trace, api);
    struct api_trace_call *c = (struct api_trace_call *)(void *)call;
    api_cancel(t->inner, c->call);
    trace_call_free(c);
}

static struct api_watch *trace_watch(struct api *api, const struct api_watch_spec *spec,
                                     api_on_event on_event, void *ctx)
{
    struct api_trace *t = CONTAINER_OF(api, struct api_trace, api);
    (void)fprintf(stderr, "WATCH " STR_FMT "\n", STR_ARG(spec->path));
    return api_watch(t->inner, spec, on_event, ctx);
}

static void trace_watch_stop(struct api *api, struct api_watch *watch)
{
    struct api_trace *t = CONTAINER_OF(api, struct api_trace, api);
    api_watch_stop(t->inner, watch);
}

struct api *api_trace_on(struct api_trace *t, struct api *inner, struct loop *loop,
                         uint32_t verbosity)
{
    static const struct api_ops ops = {
        .send = trace_send,
        .cancel = trace_cancel,
        .watch = trace_watch,
        .watch_stop = trace_watch_stop,
    };
    *t = (struct api_trace){ .api = { .ops = &ops }, .inner = inner, .loop = loop };
    return verbosity > 0 ? &t->api : inner;
}
