/*
 * external_internal: what the files of external facts share; nobody else includes it.
 *
 *   external_facts.c       the queue of queries, retries, configuration
 *   external_prometheus.c  queries to Prometheus
 *   external_pools.c       queries to Kubernikus
 *   external_stagger.c     reading the Leases of staggers
 *   stagger_take.c         taking a Lease of a stagger for a node
 *   external_pods.c        watching the pods of nodes
 *
 * A query is one thing that can be asked for again and again:
 *
 *     IDLE → QUEUED → IN_FLIGHT → IDLE          answered
 *                     IN_FLIGHT → BACKOFF → QUEUED   failed, and still wanted
 *
 * A query is in flight from its first request to its last reply, and counts against in_flight_max
 * of its kind.
 *
 * The pods of a node are watched, so their query does not end with its answer:
 *
 *     IN_FLIGHT → WATCHING → PAUSED → IN_FLIGHT    another got its place; a place is free again
 *              WATCHING → BACKOFF            the watch failed: the pods are unknown again
 *                         PAUSED → QUEUED    the answer must be live
 *
 * In the states IN_FLIGHT and WATCHING such a query holds one of FACTS_WATCHES_MAX places. A queued
 * query does not wait for a free one: a WATCHING query is paused for it, the youngest first and
 * those that must be live last, so that the nodes which have waited longest stay watched. No query
 * is paused while a place is free.
 */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "format/json_writer.h"
#include "profile/external_facts.h"

#define EXTERNAL_FACTS_KINDS 4u

enum fact_query_state {
    FACT_QUERY_IDLE,
    FACT_QUERY_QUEUED,
    FACT_QUERY_IN_FLIGHT,
    FACT_QUERY_BACKOFF,
    FACT_QUERY_WATCHING,
    FACT_QUERY_PAUSED
};

struct openstack; /* openstack/openstack.h */
struct pod_watch; /* a watch, see external_pods.c */

struct stagger_lease {
    struct buf version;        /* resourceVersion as last read; empty = unknown */
    bool has_transitions;      /* leaseTransitions is there */
    int64_t transitions;       /* … as last read */
    struct stagger_take *take; /* under way for this lease; NULL = none */
    bool touched; /* a node began to take it after the stagger's query was sent: the reply may be
                   * older than what is known */
};

struct fact_query {
    struct external_facts *e;
    enum facts_kind kind;
    enum fact_query_state state;
    bool query_again; /* something has changed since its requests were sent: send it again */
    bool changed;     /* the answer, since the query was sent */
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
    struct str config_key; /* a new configuration's query with the same key is the same one */

    /* FACTS_PROMETHEUS */
    struct str url;
    struct str query;
    bool use_get; /* for this query: the server takes no POST */

    /* FACTS_POOLS; `url` is where Kubernikus is, empty = where the region's is; `query` is the
     * cluster */
    struct openstack *openstack; /* its session */
    uint64_t session;            /* with which the request was sent */

    /* FACTS_STAGGER */
    struct str namespace;
    struct str lease; /* the names' common prefix */
    int64_t parallel;
    int64_t duration_s;
    struct buf holder; /* the node that asked last: it holds Leases that are made */
    struct stagger_lease *leases;
    uint32_t lease_n;
    uint32_t at;    /* the lease being read */
    uint32_t tries; /* to make it; FACTS_POOLS: tokens that were refused */
    bool creating;  /* the request makes the Lease */

    /* FACTS_AFFINITY */
    struct str node;
    struct pod_watch *watch; /* IN_FLIGHT, WATCHING */
    struct list watch_link;  /* likewise: in `watches` */
    uint64_t serial;         /* in the order in which they were first wanted */
    bool live;               /* it must be WATCHING: it is paused last */
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
    usec_t refresh;            /* how long an answer counts as fresh */
    struct loop_timer run_timer;
    struct list queues[EXTERNAL_FACTS_KINDS];
    uint32_t in_flight[EXTERNAL_FACTS_KINDS];
    struct list watches; /* of FACTS_AFFINITY, the latest last */
    uint32_t watch_n;
    struct list paused; /* by serial */
    uint64_t serials;
    bool no_streams; /* the server has no streaming lists */
    struct list takes;
    uint64_t changed; /* bits for the next on_change */
};

/* external_facts.c */
void fact_query_finish(struct fact_query *q);
/* `transient`: the other side is out of reach or overloaded. Such an error becomes the answer only
 * after several failures. */
void fact_query_fail(struct fact_query *q, bool transient, usec_t retry_after,
                     const struct err *err);
/* Sends the query soon, unless it is queued, in flight or waiting for its next try. */
void fact_query_want(struct fact_query *q);
/* Marks those who read its answer. */
void fact_query_notify(struct fact_query *q);
void external_facts_schedule(struct external_facts *e);
/* The answers that these check instances read have changed; on_change follows from the loop. */
void external_facts_changed(struct external_facts *e, uint64_t readers);
/* Sends the query again, or right after the one that is in flight. */
void fact_query_refresh(struct fact_query *q);

/* external_prometheus.c, external_stagger.c, external_pods.c: `start` sends the first request,
 * `put_error` makes an error the answer. */
void prometheus_start(struct fact_query *q);
void prometheus_put_error(struct fact_query *q, const struct err *err);
void pools_init(struct fact_query *q, struct str secret_namespace, struct str secret_name);
void pools_done(struct fact_query *q); /* accepts one of another kind */
void pools_start(struct fact_query *q);
void pools_put_error(struct fact_query *q, const struct err *err);
void stagger_start(struct fact_query *q);
void stagger_put_error(struct fact_query *q, const struct err *err);
void pods_start(struct fact_query *q); /* takes a place */
void pods_put_error(struct fact_query *q, const struct err *err);
void pods_stop_watch(struct fact_query *q); /* frees its place, if it has one */
void pods_want(struct fact_query *q, bool live);
void pods_end_failed(struct external_facts *e); /* failed watches end, and are retried later */
/* The query that gets the next place, for which another may be paused; NULL: none can start. */
struct fact_query *pods_next(struct external_facts *e);
void pods_check(const struct external_facts *e);

/* external_stagger.c */
/* What a Lease says; `ret` borrows from `root`. */
void stagger_lease_read(const struct jval *root, usec_t asked, struct facts_lease *ret);
void stagger_lease_path(struct buf *out, struct str namespace, struct str name, int64_t i);
/* Keeps the server's Lease as the i-th Lease of the stagger. */
NODISCARD
int stagger_put_lease(struct fact_query *q, uint32_t i, struct str json, struct err *err);
void stagger_write_spec(struct json_writer *w, struct str holder, usec_t renewed,
                        int64_t duration_s);

/* stagger_take.c */
void stagger_take_free_all(struct external_facts *e);
void stagger_take_detach(struct stagger_take *take); /* its query is freed */

static inline uint64_t check_bit(uint32_t index)
{
    return (uint64_t)1 << (index % 64);
}
