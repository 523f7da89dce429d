/*
 * external_internal: what the files of inquiry share and nobody else sees.
 *
 * An ask is one thing that can be asked for, again and again:
 *
 *     IDLE → QUEUED → FLYING → IDLE          answered
 *                     FLYING → RESTING → QUEUED   failed, and still wanted
 *
 * It flies from its first request to its last answer, holding one of its kind's places in flight.
 *
 * The pods of a node are watched, so their ask goes on:
 *
 *     FLYING → WATCHING → PARKED → FLYING    its place went to another; one is free again
 *              WATCHING → RESTING            the watch failed: what it told is not known any more
 *                         PARKED → QUEUED    the answer that is kept will not do
 *
 * FLYING and WATCHING it holds one of FACTS_WATCHES_MAX places. Whoever is queued gets one: a watch
 * that has told all it has to tell gives way, the youngest first, those that must be live last, so
 * that the nodes which have waited longest stay watched. Nobody is parked while a place is free.
 */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "format/json_writer.h"
#include "profile/external_facts.h"

#define INQUIRY_KINDS 3u

enum ask_state { ASK_IDLE, ASK_QUEUED, ASK_FLYING, ASK_RESTING, ASK_WATCHING, ASK_PARKED };

struct pods; /* a watch, see inquiry_pods.c */

struct ask_lease {
    struct buf version;        /* resourceVersion as last read; empty = unknown */
    bool has_transitions;      /* leaseTransitions is there */
    int64_t transitions;       /* … as last read */
    struct inquiry_take *take; /* under way for this lease; NULL = none */
    bool touched; /* somebody began to take it since its stagger was asked for: what is being read
                   * may be older than what is known */
};

struct ask {
    struct inquiry *q;
    enum facts_kind kind;
    enum ask_state state;
    bool again;       /* something has changed since its requests went out: ask once more */
    bool changed;     /* so far this time */
    uint32_t index;   /* of the check instance; not of FACTS_AFFINITY */
    struct list link; /* QUEUED, PARKED */
    struct loop_timer rest;
    struct backoff backoff;
    usec_t asked;     /* wall time of this asking */
    usec_t asked_at;  /* the same, monotonic */
    bool ever;        /* it has been asked for before */
    usec_t wanted_at; /* monotonic, the last time */
    struct api_call *call;
    struct outbound_call *outbound_call;
    struct arena memory; /* of what follows */
    struct str identity; /* what makes it the same one under another configuration */

    /* FACTS_PROMETHEUS */
    struct str url;
    struct str query;
    bool by_get; /* this time: the server takes no POST */

    /* FACTS_STAGGER */
    struct str namespace;
    struct str lease; /* the beginning of the names */
    int64_t parallel;
    int64_t duration_s;
    struct buf holder; /* who asked last: of leases that are made */
    struct ask_lease *leases;
    uint32_t lease_n;
    uint32_t at;    /* the lease being read */
    uint32_t tries; /* of making it */
    bool making;    /* the request makes it */

    /* FACTS_AFFINITY */
    struct str node;
    struct pods *pods;   /* FLYING, WATCHING */
    struct list place;   /* likewise: in `places` */
    uint64_t serial;     /* in the order in which they were first wanted */
    bool live;           /* it must be WATCHING: it gives way last */
    uint32_t short_ends; /* of its watches, see reflector.h */
};

struct inquiry {
    struct loop *loop;
    struct inquiry_config config;
    struct facts *facts;
    struct ask **instances; /* by index of the check instance; NULL = nothing to ask for */
    uint32_t instance_n;
    struct arena table;        /* of `instances` */
    struct map nodes;          /* name → struct ask of FACTS_AFFINITY */
    uint64_t affinity_readers; /* bits of all affinity instances */
    usec_t refresh;            /* how long answers are good */
    struct loop_timer pump;
    struct list queues[INQUIRY_KINDS];
    uint32_t flying[INQUIRY_KINDS];
    struct list places; /* of FACTS_AFFINITY, the latest last */
    uint32_t placed;
    struct list parked; /* by serial */
    uint64_t serials;
    bool no_streams; /* the server knows no streaming lists */
    struct list takes;
    uint64_t changed; /* to be told */
};

/* inquiry.c */
void ask_finish(struct ask *a);
/* `quiet`: the other side is out of reach or overloaded, so this may pass soon: told only when it
 * does not. */
void ask_fail(struct ask *a, bool quiet, usec_t retry_after, const struct err *err);
/* Asks soon, unless that is under way. */
void ask_want(struct ask *a);
/* Who reads its answer is told. */
void ask_note(struct ask *a);
void inquiry_wake(struct inquiry *q);
/* The answers of this instance changed; told from the loop. */
void inquiry_note(struct inquiry *q, uint64_t readers);
/* Reads it again, now or, while it is being read, right after. */
void ask_anew(struct ask *a);

/* inquiry_prometheus.c, inquiry_lease.c, inquiry_pods.c: the first request goes out; and an error
 * is the answer. */
void prometheus_ask(struct ask *a);
void prometheus_tell(struct ask *a, const struct err *err);
void stagger_ask(struct ask *a);
void stagger_tell(struct ask *a, const struct err *err);
void affinity_ask(struct ask *a); /* takes a place */
void affinity_tell(struct ask *a, const struct err *err);
void affinity_leave(struct ask *a); /* gives its place back, if it has one */
void affinity_want(struct ask *a, bool live);
void affinity_lose(struct inquiry *q); /* watches that failed rest */
/* Who gets the next place, which is free then; NULL: nobody waits for one. */
struct ask *affinity_first(struct inquiry *q);
void affinity_check(const struct inquiry *q);

/* inquiry_lease.c */
/* What a Lease says; `ret` borrows from `root`. */
void lease_read(const struct jval *root, usec_t asked, struct facts_lease *ret);
void lease_path(struct buf *out, struct str namespace, struct str name, int64_t i);
/* The server's Lease becomes what is known of the i-th. */
NODISCARD
int stagger_learn(struct ask *a, uint32_t i, struct str json, struct err *err);
void stagger_write_spec(struct json_writer *w, struct str holder, usec_t renewed,
                        int64_t duration_s);

/* inquiry_take.c */
void take_free_all(struct inquiry *q);
void take_lose(struct inquiry_take *take); /* its stagger is no more */

static inline uint64_t inquiry_bit(uint32_t index)
{
    return (uint64_t)1 << (index % 64);
}
