/*
 * api: the door to a cluster. One `struct api` is one API server.
 *
 * A reply is an observation: on_reply and on_event come from the loop, never from inside api_send
 * or api_watch, and what they are given lives until they return. Each call is answered exactly
 * once, unless it is cancelled before. The door retries nothing: what to do about a 409, a 429 or a
 * cut connection is decided in kube/, where it can be seen.
 */
#pragma once

#include "base/err.h"

enum api_verb { API_GET, API_POST, API_PUT, API_PATCH, API_DELETE };

#define API_MERGE_PATCH STR("application/merge-patch+json")
#define API_JSON_PATCH STR("application/json-patch+json")
#define API_STRATEGIC_PATCH STR("application/strategic-merge-patch+json")
#define API_JSON STR("application/json")
/* An object, or the objects of a watch, without anything but metadata; and a list of such. */
#define API_METADATA STR("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
#define API_METADATA_LIST STR("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")

struct api_request {
    enum api_verb verb;
    struct str path;         /* with its query, percent-encoded: "/api/v1/nodes?limit=500" */
    struct str content_type; /* of the body; empty = application/json */
    struct str accept;       /* the form of the answer; empty = application/json */
    struct str body;
    usec_t timeout; /* 0 = API_TIMEOUT; the whole exchange, queueing included */
    /* Waits behind no other request: there is a connection for such requests alone, and `timeout`
     * counts from the moment of sending. For what must not be late, however much else is to be
     * done: the renewal of the leader Lease. */
    bool own_connection;
};

#define API_TIMEOUT SECONDS(30)

struct api_reply {
    int status; /* HTTP status; 0 = no answer, then `err` says why */
    struct str body;
    usec_t retry_after;    /* from the header; 0 = none */
    usec_t date;           /* the server's own wall time, in whole seconds; 0 = it did not say */
    usec_t took;           /* from api_send to now: `date` may be that old */
    const struct err *err; /* NULL when there is a status */
};

typedef void (*api_on_reply)(void *ctx, const struct api_reply *reply);

enum api_watch_kind {
    API_WATCH_OPEN, /* the server answered 200: the stream has begun */
    API_WATCH_LINE, /* one line of it */
    API_WATCH_END,  /* over, and the handle with it; a status other than 200 or an err says why */
};

struct api_watch_event {
    enum api_watch_kind kind;
    int status;
    struct str line; /* API_WATCH_LINE: without \n; API_WATCH_END with a status: the error's body */
    usec_t retry_after;    /* API_WATCH_END */
    const struct err *err; /* API_WATCH_END: NULL when the server ended the stream in order */
};

typedef void (*api_on_event)(void *ctx, const struct api_watch_event *event);

struct api_watch_spec {
    struct str path;    /* with watch=1 and all the rest */
    struct str accept;  /* the form of the objects; empty = application/json */
    usec_t silence_max; /* no byte for that long ends it with ERR_TIMEOUT; 0 = never */
};

struct api;
struct api_call;  /* a request in flight */
struct api_watch; /* an open watch */

struct api_ops {
    struct api_call *(*send)(struct api *api, const struct api_request *request,
                             api_on_reply on_reply, void *ctx);
    void (*cancel)(struct api *api, struct api_call *call);
    struct api_watch *(*watch)(struct api *api, const struct api_watch_spec *spec,
                               api_on_event on_event, void *ctx);
    void (*watch_stop)(struct api *api, struct api_watch *watch);
};

struct api {
    const struct api_ops *ops;
};

/* The request's texts are copied. The handle is good until on_reply is called or the call is
 * cancelled. */
static inline struct api_call *api_send(struct api *api, const struct api_request *request,
                                        api_on_reply on_reply, void *ctx)
{
    return api->ops->send(api, request, on_reply, ctx);
}

/* No reply will come; whether the server has acted is unknown. */
static inline void api_cancel(struct api *api, struct api_call *call)
{
    api->ops->cancel(api, call);
}

static inline struct api_watch *api_watch(struct api *api, const struct api_watch_spec *spec,
                                          api_on_event on_event, void *ctx)
{
    return api->ops->watch(api, spec, on_event, ctx);
}

static inline void api_watch_stop(struct api *api, struct api_watch *watch)
{
    api->ops->watch_stop(api, watch);
}
