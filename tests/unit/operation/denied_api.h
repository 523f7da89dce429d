/*
 * denied_api: a door that forbids what one path names, as a server does whose rights are too few.
 *
 * What is forbidden goes to a path that no server has: so its answer comes when answers come, and
 * only its status and its words are others.
 */
#pragma once

#include "base/arena.h"
#include "port/api.h"

#define DENIED_BODY                                                                                \
    "{\"kind\":\"Status\",\"message\":\"jobs.batch is forbidden: User \\\"drydock\\\" cannot do "  \
    "that\",\"reason\":\"Forbidden\",\"code\":403}"
#define DENIED_PATH "/apis/forbidden.example/v1/nothing"

struct denied_api {
    struct api api; /* first */
    struct api *upstream;
    const char *path; /* what begins with it is forbidden; NULL: nothing is */
    struct arena memory;
};

struct denied_call {
    api_on_reply on_reply;
    api_on_event on_event;
    void *ctx;
};

static inline void denied_on_reply(void *ctx, const struct api_reply *reply)
{
    const struct denied_call *call = ctx;
    struct api_reply other = *reply;
    other.status = other.status == 0 ? 0 : 403;
    other.body = STR(DENIED_BODY);
    call->on_reply(call->ctx, &other);
}

static inline void denied_on_event(void *ctx, const struct api_watch_event *event)
{
    const struct denied_call *call = ctx;
    struct api_watch_event other = *event;
    other.status = other.status == 0 ? 0 : 403;
    other.line = STR(DENIED_BODY);
    call->on_event(call->ctx, &other);
}

static inline struct api_call *denied_send(struct api *api, const struct api_request *request,
                                           api_on_reply on_reply, void *ctx)
{
    struct denied_api *d = (struct denied_api *)api;
    if (d->path == NULL || !str_starts(request->path, str_from(d->path))) {
        return api_send(d->upstream, request, on_reply, ctx);
    }
    struct denied_call *call = ARENA_NEW(&d->memory, struct denied_call);
    *call = (struct denied_call){ .on_reply = on_reply, .ctx = ctx };
    return api_send(d->upstream, &(struct api_request){ .verb = API_GET, .path = STR(DENIED_PATH) },
                    denied_on_reply, call);
}

static inline void denied_cancel(struct api *api, struct api_call *call)
{
    api_cancel(((struct denied_api *)api)->upstream, call);
}

static inline struct api_watch *denied_watch(struct api *api, const struct api_watch_spec *spec,
                                             api_on_event on_event, void *ctx)
{
    struct denied_api *d = (struct denied_api *)api;
    if (d->path == NULL || !str_starts(spec->path, str_from(d->path))) {
        return api_watch(d->upstream, spec, on_event, ctx);
    }
    struct denied_call *call = ARENA_NEW(&d->memory, struct denied_call);
    *call = (struct denied_call){ .on_event = on_event, .ctx = ctx };
    struct api_watch_spec other = *spec;
    other.path = STR(DENIED_PATH "?watch=1");
    return api_watch(d->upstream, &other, denied_on_event, call);
}

static inline void denied_watch_stop(struct api *api, struct api_watch *watch)
{
    api_watch_stop(((struct denied_api *)api)->upstream, watch);
}

static inline void denied_api_init(struct denied_api *d, struct api *upstream)
{
    static const struct api_ops ops = { denied_send, denied_cancel, denied_watch,
                                        denied_watch_stop };
    d->api.ops = &ops;
    d->upstream = upstream;
}
