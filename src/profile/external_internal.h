/*
 * external_internal: what the files of inquiry share and nobody else sees.
 *
 * A query is one thing that can be asked for, again and again:
 *
 *     IDLE → QUEUED → IN_FLIGHT → IDLE          answered
 *                     IN_FLIGHT → BACKOFF → QUEUED   failed, and still wanted
 *
 * It flies from its first request to its last answer, holding one of its kind's places in flight.
 *
 * The pods of a node are watched, so their query goes on:
 *
 *     IN_FLIGHT → WATCHING → PAUSED → IN_FLIGHT    its place went to another; one is free again
 *              WATCHING → BACKOFF            the watch failed: what it told is not known any more
 *                         PAUSED → QUEUED    the answer that is kept will not do
 *
 * IN_FLIGHT and WATCHING it holds one of FACTS_WATCHES_MAX places. Whoever is queued gets one: a
 * watch that has told all it has to tell gives way, the youngest first, those that must be live
 * last, so that the nodes which have waited longest stay watched. Nobody is paused while a place is
 * free.
 */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "format/json_writer.h"
#include "profile/external_facts.h"

#define EXTERNAL_FACTS_KINDS 3u

enum fact_query_state {
    FACT_QUERY_IDLE,
    FACT_QUERY_QUEUED,
    FACT_QUERY_IN_FLIGHT,
    FACT_QUERY_BACKOFF,
    FACT_QUERY_WATCHING,
    FACT_QUERY_PAUSED
};

struct pod_watch; /* a watch, see external_pods.c */

struct stagger_lease {
    struct buf version;        /* resourceVersion as last read; empty = unknown */
    bool has_transitions;      /* leaseTransitions is there */
    int64_t transitions;       /* … as last read */
    struct stagger_take *take; /* under way for this lease; NULL = none */
    bool touched; /* somebody began to take it since its stagger was asked for: what is being read
                   * may be older than what is known */
};

struct fact_query {
    struct external_facts *e;
    enum facts_kind kind;
    enum fact_query_state state;
    bool query_again; /* something has changed since its requests went out: ask once more */
    bool changed;     /* so far this time */
    uint32_t index;   /* of the check instance; not of FACTS_AFFINITY */
    struct list link; /* QUEUED, PAUSED */
    struct loop_timer backoff_timer;
    struct backoff backoff;
    usec_t asked;     /* wall time of the last query; 0 = none yet */
    usec_t asked_at;  /* the same, monotonic */
    usec_t wanted_at; /* monotonic, the last time */
    struct api_call *call;
    struct outbound_call *outbound_call;
    struct arena memory;   /* of what follows */
    struct str config_key; /* what makes it the same one under another configuration */

    /* FACTS_PROMETHEUS */
    struct str url;
    struct str query;
    bool use_get; /* this time: the server takes no POST */

    /* FACTS_STAGGER */
    struct str namespace;
    struct str lease; /* the beginning of the names */
    int64_t parallel;
    int64_t duration_s;
    struct buf holder; /* who asked last: of leases that are made */
    struct stagger_lease *leases;
    uint32_t lease_n;
    uint32_t at;    /* the lease being read */
    uint32_t tries; /* of making it */
    bool creating;  /* the request makes it */

    /* FACTS_AFFINITY */
    struct str node;
    struct pod_watch *watch; /* IN_FLIGHT, WATCHING */
    struct list watch_link;  /* likewise: in `watches` */
    uint64_t serial;         /* in the order in which they were first wanted */
    bool live;               /* it must be WATCHING: it gives way last */
    uint32_t short_ends;     /* of its watches, see reflector.h */
};

struct external_facts {
    struct loop *loop;
    struct external_facts_config config;
    struct facts *facts;
    struct fact_query **instances; /* by index of the check instance; NULL = nothing to ask for */
    uint32_t instance_n;
    struct arena table;        /* of `instances` */
    struct map nodes;          /* name → struct fact_query of FACTS_AFFINITY */
    uint64_t affinity_readers; /* bits of all affinity instances */
    usec_t refresh;            /* how long answers are good */
    struct loop_timer run_timer;
    struct list queues[EXTERNAL_FACTS_KINDS];
    uint32_t in_flight[EXTERNAL_FACTS_KINDS];
    struct list watches; /* of FACTS_AFFINITY, the latest last */
    uint32_t watch_n;
    struct list paused; /* by serial */
    uint64_t serials;
    bool no_streams; /* the server knows no streaming lists */
    struct list takes;
    uint64_t changed; /* to be told */
};

/* inquiry.c */
void fact_query_finish(struct fact_query *q);
/* `transient`: the other side is out of reach or overloaded, so this may pass soon: told only when
 * it does not. */
void fact_query_fail(struct fact_query *q, bool transient, usec_t retry_after,
                     const struct err *err);
/* Asks soon, unless that is under way. */
void fact_query_want(struct fact_query *q);
/* Who reads its answer is told. */
void fact_query_notify(struct fact_query *q);
void external_facts_schedule(struct external_facts *e);
/* The answers of this instance changed; told from the loop. */
void external_facts_changed(struct external_facts *e, uint64_t readers);
/* Reads it again, now or, while it is being read, right after. */
void fact_query_refresh(struct fact_query *q);

/* external_prometheus.c, external_stagger.c, external_pods.c: the first request goes out; and an
 * error is the answer. */
void prometheus_start(struct fact_query *q);
void prometheus_put_error(struct fact_query *q, const struct err *err);
void stagger_start(struct fact_query *q);
void stagger_put_error(struct fact_query *q, const struct err *err);
void pods_start(struct fact_query *q); /* takes a place */
void pods_put_error(struct fact_query *q, const struct err *err);
void pods_stop_watch(struct fact_query *q); /* gives its place back, if it has one */
void pods_want(struct fact_query *q, bool live);
void pods_end_failed(struct external_facts *e); /* watches that failed rest */
/* Who gets the next place, which is free then; NULL: nobody waits for one. */
struct fact_query *pods_next(struct external_facts *e);
void pods_check(const struct external_facts *e);

/* external_stagger.c */
/* What a Lease says; `ret` borrows from `root`. */
void stagger_lease_read(const struct jval *root, usec_t asked, struct facts_lease *ret);
void stagger_lease_path(struct buf *out, struct str namespace, struct str name, int64_t i);
/* The server's Lease becomes what is known of the i-th. */
NODISCARD
int stagger_put_lease(struct fact_query *q, uint32_t i, struct str json, struct err *err);
void stagger_write_spec(struct json_writer *w, struct str holder, usec_t renewed,
                        int64_t duration_s);

/* stagger_take.c */
void stagger_take_free_all(struct external_facts *e);
void stagger_take_detach(struct stagger_take *take); /* its stagger is no more */

static inline uint64_t check_bit(uint32_t index)
{
    return (uint64_t)1 << (index % 64);
}
