/*
 * link_internal: what the files of a link share.
 *
 *   link.c         the states, the watch of the Nodes, and the callbacks to the link's user
 *   link_secret.c  reading the kubeconfig Secret in the management cluster
 *   link_token.c   a ServiceAccount token of the bridge's own, and its renewal
 *   link_calls.c   API requests to the workload cluster: queue, rate limit, cancellation
 *
 * Callbacks of the API and of the reflector only note what happened and pull the link's timer.
 * When the timer fires, link_on_timer changes the state and then calls the link's user.
 */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "bridge/link.h"
#include "bridge/workload_token.h"
#include "kube/reflector.h"

#define LINK_DOUBLINGS_MAX 16u /* doublings that surely reach LINK_BACKOFF_MAX */

/* Why the connection cannot go on. */
enum link_break {
    LINK_BREAK_NONE,      /* it can */
    LINK_BREAK_FAILED,    /* something that may pass soon */
    LINK_BREAK_DENIED,    /* 401: another Secret may mend it */
    LINK_BREAK_FORBIDDEN, /* 403: a person must mend it */
    LINK_BREAK_LIMIT,     /* the cluster sent more than is taken of one; as the last */
};

/* A token of our own, with `manage`: getting one, and renewing it. */
struct link_token {
    struct api *api;     /* the administrator's connection; NULL = no token is being got */
    struct arena secret; /* of `text`, the kubeconfig; both only while `api` is there */
    struct str text;
    struct client client;
    struct workload_token *issuer;
    usec_t until;                 /* then it is given up */
    struct api *next;             /* the connection with the new token; not used yet */
    usec_t renew_at;              /* WATCHING: when another token is due; 0 = never */
    struct backoff renew_backoff; /* renewals */
    struct buf overdue; /* why another token is late, which was logged; empty = it is not */
};

struct link {
    struct link_config config; /* its texts live in `memory` */
    struct arena memory;
    struct loop *loop; /* of `home` */
    struct loop_timer timer;
    enum link_state state;
    usec_t since;             /* in this state */
    usec_t listed;            /* how long its last list took, from connecting to the last Node */
    bool wanted;              /* opened, and not closed since */
    bool urgent;              /* until it is fresh */
    usec_t unreachable_since; /* see link_unreachable_since */
    struct err trouble;       /* code 0 = none since it was fresh */
    bool warned;              /* of the present trouble */
    uint64_t connects;
    uint64_t failures;
    uint64_t over_limit;
    uint64_t renewals_failed;
    struct ratelimit traffic; /* of all its connections: a new one begins no new budget */
    struct backoff backoff;
    usec_t retry_at; /* BACKOFF */
    bool *freed;     /* set when it is freed while it tells; NULL = it does not */

    /* The Secret. */
    struct api_call *call; /* RESOLVING: reads it; WATCHING: looks whether it has changed, or reads
                            * it for another token */
    usec_t connect_at;     /* RESOLVING: not before */
    struct backoff connect_backoff; /* of tries to get a token */
    usec_t tried_at;                /* when the last attempt began; 0 = never */
    bool answered;       /* RESOLVING: what was found is in `text`, or what is wrong in `trouble` */
    struct arena secret; /* of `text`; wiped at once */
    struct str text;
    uint64_t version;     /* of the Secret that was read last; 0 = none */
    bool secret_watched;  /* link_on_secret tells of it */
    uint64_t secret_seen; /* by link_on_secret last */
    bool secret_changed;  /* another one than was read was seen since */
    usec_t reread_at;     /* WATCHING, unless followed */

    struct link_token token;

    /* The connection; `api` is NULL when there is none. */
    struct api *api;
    struct client client;
    struct reflector reflector;
    struct store store;
    enum link_break broken;
    bool synced;
    bool listing;         /* a list is under way */
    bool denied_before;   /* a 401 has led to another attempt already */
    usec_t trouble_since; /* the watch fails since then; 0 = it does not */
    uint32_t short_ends;  /* of the reflector, noted */

    /* What there is to tell. */
    bool notified_fresh;
    bool notified_idle;
    bool nodes_dirty; /* Nodes have become dirty */
    struct arena gone_memory;
    struct str *gone;
    uint32_t gone_n;
    uint32_t gone_cap;

    /* Requests. */
    struct ratelimit bucket;
    struct list queued;
    struct list in_flight;
    struct list ended; /* to be told that they were not answered */
    uint32_t queued_n;
    uint32_t in_flight_n;
    uint32_t ended_n;
};

/* Something was noted: the timer fires as soon as the loop runs. */
void link_wake(struct link *l);
/* Notes that the connection cannot go on; the first reason counts. */
void link_fail(struct link *l, enum link_break why, const struct err *err);

/* Sends for the Secret when its turn has come; `connect_at` is when to ask again. */
void link_secret_request(struct link *l);
/* Sends for it, whatever the time. */
void link_secret_send(struct link *l, struct str accept, api_on_reply on_reply);
/* Takes the answer: `text` is what was found. Below 0: `err` says why there is none. */
int link_secret_take(struct link *l, const struct api_reply *reply, struct err *err);
/* Makes an api of a text that was found; a token: of another user. NULL: `err` says why. */
struct api *link_secret_dial(struct link *l, struct str text, struct str token, struct err *err);
void link_secret_wipe(struct link *l);
/* Looks whether the Secret has changed, when it is time. */
void link_secret_recheck(struct link *l);
/* Drops what is under way and what was found. */
void link_secret_drop(struct link *l);

/* Dials as the administrator with the text that was found, which it takes, and asks for a token.
 * False: `err` says why. */
bool link_token_start(struct link *l, struct err *err);
/* WATCHING: gets another token when it is time. True: `token.next` is there and can be used. */
bool link_token_renew(struct link *l);
/* When that is to be called again; USEC_NEVER: not before something happens. */
usec_t link_token_due_at(const struct link *l);
/* Closes both connections. */
void link_token_drop(struct link *l);
void link_token_check(const struct link *l);

/* Sends what may be sent now. */
void link_calls_send(struct link *l);
/* When that is to be tried again; USEC_NEVER: not before something happens. */
usec_t link_calls_at(struct link *l);
/* The connection ends: what is in flight or waits will be told so. */
void link_calls_end(struct link *l);
/* Tells those that have ended; false: the link was freed meanwhile. */
bool link_calls_notify(struct link *l, const bool *freed);
/* Forgets all, without a word. */
void link_calls_done(struct link *l);
