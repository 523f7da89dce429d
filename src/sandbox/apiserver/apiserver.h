/*
 * apiserver: a Kubernetes API server in memory: a function from request to reply.
 *
 * No sockets, no threads: simulated clients call it in process, http_front serves it. Time
 * comes from the loop it is given (virtual, scaled or real), so the same server serves all three.
 * Its answers are held against recorded ones of a real kube-apiserver (tests/data/apiserver).
 */
#pragma once

#include "base/arena.h"
#include "format/json.h"
#include "port/loop.h"

struct apiserver;
struct apiserver_watch;

struct apiserver_request {
    struct str method; /* "GET", … */
    struct str path;   /* with its query, percent-encoded */
    struct str accept; /* empty = application/json */
    struct str content_type;
    struct str authorization;    /* the header; "" = the administrator's client certificate */
    bool anonymous;              /* no certificate at all */
    struct str impersonate_user; /* header Impersonate-User; "" = none */
    struct str user_agent;       /* field manager of writes that name none */
    struct str body;
};

struct apiserver_reply {
    int status;
    struct str content_type;
    struct str body;
    usec_t retry_after; /* header Retry-After; 0 = none */
    struct str warning; /* header Warning, Allow, Www-Authenticate; empty = none */
    struct str allow;
    struct str www_authenticate;
    usec_t delay;                  /* the real server would answer that much later */
    struct apiserver_watch *watch; /* not NULL: status 200, and the body is a stream of lines */
};

/* `seed` gives uids and generated names, so a simulated run repeats exactly. */
struct apiserver *apiserver_new(struct loop *loop, uint64_t seed);
/* Watches still open are ended and freed; their handles are gone. Accepts NULL. */
void apiserver_free(struct apiserver *s);

/* "Bearer `token`" is the administrator too; without a token every Authorization is refused. */
void apiserver_set_token(struct apiserver *s, struct str token);

/* The answer's texts live in `out`. Whatever the request holds, there is an answer. */
void apiserver_handle(struct apiserver *s, const struct apiserver_request *request,
                      struct arena *out, struct apiserver_reply *ret);

/* Calls `on_ready` from the loop when lines are there or the stream has ended; set it right after
 * the reply. */
void apiserver_watch_notify(struct apiserver_watch *w, void (*on_ready)(void *ctx), void *ctx);
/* True and one line without its \n, or false: nothing now. `*ret_ended` true with false: nothing
 * ever again. */
bool apiserver_watch_next(struct apiserver_watch *w, struct arena *out, struct str *ret_line,
                          bool *ret_ended);
/* The peer has gone, or the stream has ended. The handle is gone. */
void apiserver_watch_close(struct apiserver_watch *w);

/* Ends every watch and forgets history, as a restarted server does; objects stay. */
void apiserver_restart(struct apiserver *s);
/* Makes resourceVersions before now expire: lists continue with 410, watches get the ERROR event.
 */
void apiserver_compact(struct apiserver *s);

/* Reading in process, without a request. Values live until the next write. */
typedef void (*apiserver_visit)(void *ctx, const struct jval *object);
/* Visits the objects of a resource in order of namespace and name; namespace "" = all. `visit`
 * must not write. */
void apiserver_each(struct apiserver *s, struct str group, struct str plural, struct str namespace,
                    apiserver_visit visit, void *ctx);
/* NULL when there is none; namespace "" for what has none. */
const struct jval *apiserver_find(struct apiserver *s, struct str group, struct str plural,
                                  struct str namespace, struct str name);
uint32_t apiserver_count(struct apiserver *s, struct str group, struct str plural);
uint64_t apiserver_resource_version(const struct apiserver *s); /* the latest resourceVersion */

struct apiserver_commit {
    struct str group;
    struct str plural;
    struct str namespace;
    struct str name;
    struct str user_agent; /* of the request; empty: a write of the server itself */
    uint64_t version;
    const struct jval *old; /* NULL: created */
    const struct jval *now; /* NULL: deleted */
};

/* Called inside every committed write, after it took effect: for checks, which may read and must
 * not write. One listener; NULL ends it. */
typedef void (*apiserver_on_commit_fn)(void *ctx, const struct apiserver_commit *commit);
void apiserver_on_commit(struct apiserver *s, apiserver_on_commit_fn fn, void *ctx);
/* A second listener beside the world's, called after it: for invariants. NULL ends it. */
void apiserver_on_commit_check(struct apiserver *s, apiserver_on_commit_fn fn, void *ctx);

/* Asserts what must always hold; O(objects). */
void apiserver_check(const struct apiserver *s);
