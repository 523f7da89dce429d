/*
 * Watches the pods of some nodes at a time, for whether any of them prefers operational nodes.
 */
#include "base/alloc.h"
#include "kinds/keys.h"
#include "kube/reflector.h"
#include "profile/external_internal.h"

/* A matchExpression with exactly "maintenance-state In [operational]". */
static bool affinity_term_prefers_operational(const struct jval *expression)
{
    const struct jval *values = jval_get(expression, STR("values"));
    return str_eq(jval_str(jval_get(expression, STR("key"))), KEY_STATE) &&
           str_eq(jval_str(jval_get(expression, STR("operator"))), STR("In")) &&
           jval_kind(values) == JARR && values->n == 1 &&
           str_eq(jval_str(jval_first(values)), STR("operational"));
}

static bool pod_prefers_operational(const struct jval *pod)
{
    const struct jval *terms =
        jval_at(pod, "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution");
    JVAL_EACH (terms, term) {
        const struct jval *expressions = jval_at(term, "preference.matchExpressions");
        JVAL_EACH (expressions, expression) {
            if (affinity_term_prefers_operational(expression)) {
                return true;
            }
        }
    }
    return false;
}

/* ── a watch ───────────────────────────────────────────────────────────────────────────────── */

struct pod_watch {
    struct fact_query *query;
    struct reflector reflector;
    struct arena memory; /* of the reflector's texts */
    struct map matching; /* "namespace/name" of pods that prefer operational nodes */
    struct buf key;
    bool synced;
    bool failed;    /* the pods are unknown again, and the watch is about to be ended */
    bool transient; /* the failure may pass soon */
    struct err err; /* the failure */
    usec_t asked;
};

static void pod_watch_put(struct fact_query *q, const struct facts_affinity *answer)
{
    if (facts_put_affinity(q->e->facts, q->node, answer)) {
        fact_query_notify(q);
    }
}

static void pod_watch_put_answer(const struct pod_watch *p, bool live)
{
    struct fact_query *q = p->query;
    pod_watch_put(q, &(struct facts_affinity){
                         .known = true,
                         .has = map_count(&p->matching) > 0,
                         .live = live,
                         .asked = live ? p->asked : loop_wall(q->e->loop),
                     });
}

static void pod_watch_on_list(void *ctx)
{
    struct pod_watch *p = ctx;
    MAP_EACH (&p->matching, item) {
        (void)map_del(&p->matching, map_item_name(item)); /* it is `item` */
    }
}

static int pod_watch_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct pod_watch *p = ctx;
    struct str namespace = jval_str(jval_at(object, "metadata.namespace"));
    struct str name = jval_str(jval_at(object, "metadata.name"));
    if (namespace.n == 0 || name.n == 0) {
        return err_set(err, ERR_PROTO, "a pod without a name");
    }
    buf_reset(&p->key);
    buf_printf(&p->key, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name));
    if (!deleted && pod_prefers_operational(object)) {
        (void)map_put(&p->matching, buf_str(&p->key), p); /* the value is not used */
    } else {
        (void)map_del(&p->matching, buf_str(&p->key)); /* mostly it was not there */
    }
    if (p->synced && !p->failed) {
        pod_watch_put_answer(p, /* live= */ true);
    }
    return 0;
}

static bool pod_watch_on_synced(void *ctx, uint64_t version UNUSED)
{
    struct pod_watch *p = ctx;
    struct fact_query *q = p->query;
    if (p->failed) {
        return true;
    }
    ASSERT(q->state == FACT_QUERY_IN_FLIGHT && !p->synced);
    p->synced = true;
    q->state = FACT_QUERY_WATCHING;
    q->short_ends = 0;
    q->e->in_flight[q->kind]--;
    q->e->no_streams = p->reflector.refused;
    backoff_reset(&q->backoff);
    pod_watch_put_answer(p, /* live= */ true);
    external_facts_schedule(q->e); /* the next query may start */
    return true;
}

/* The pods are unknown until they are listed again. The watch is ended from the loop, because this
 * is called while the watch handles its own input. */
static void pod_watch_on_error(void *ctx, const struct err *err, bool bad)
{
    struct pod_watch *p = ctx;
    struct fact_query *q = p->query;
    if (p->failed) {
        return;
    }
    p->failed = true;
    p->transient = !bad && err->code != ERR_DENIED && err->code != ERR_INVALID;
    p->err = *err;
    (void)err_wrap(&p->err, "look at the pods of node '" STR_FMT "'", STR_ARG(q->node));
    if (facts_affinity(q->e->facts, q->node).error.n == 0) {
        pod_watch_put(q, &(struct facts_affinity){ 0 });
    }
    external_facts_schedule(q->e);
}

/* ── places ────────────────────────────────────────────────────────────────────────────────── */

void pods_start(struct fact_query *q)
{
    struct external_facts *e = q->e;
    struct pod_watch *p = ALLOC_NEW(struct pod_watch);
    ASSERT(q->watch == NULL && e->watch_n < FACTS_WATCHES_MAX);
    q->watch = p;
    list_add(&e->watches, &q->watch_link);
    e->watch_n++;
    p->query = q;
    p->asked = q->asked;
    p->memory.first = 256;
    map_init(&p->matching, loop_random(e->loop), loop_random(e->loop));
    buf_add(&p->key, STR("&fieldSelector=spec.nodeName%3D"));
    client_add_segment(&p->key, q->node);
    const struct reflector_config config = {
        .path = STR("/api/v1/pods"),
        .query = arena_str(&p->memory, buf_str(&p->key)),
        .on_list = pod_watch_on_list,
        .on_object = pod_watch_on_object,
        .on_synced = pod_watch_on_synced,
        .on_error = pod_watch_on_error,
        .ctx = p,
    };
    reflector_init(&p->reflector, e->config.client, &config);
    p->reflector.refused = e->no_streams;
    p->reflector.short_ends = q->short_ends;
    reflector_start(&p->reflector);
}

void pods_stop_watch(struct fact_query *q)
{
    struct pod_watch *p = STEAL(q->watch);
    if (p == NULL) {
        return;
    }
    q->short_ends = p->reflector.short_ends;
    list_del(&q->watch_link);
    q->e->watch_n--;
    reflector_done(&p->reflector);
    map_done(&p->matching);
    buf_done(&p->key);
    arena_done(&p->memory);
    alloc_free(p);
}

void pods_put_error(struct fact_query *q, const struct err *err)
{
    struct facts_affinity answer = {
        .known = true,
        .error = str_from(err->msg),
        .asked = q->asked,
    };
    q->changed |= facts_put_affinity(q->e->facts, q->node, &answer);
}

void pods_end_failed(struct external_facts *e)
{
    LIST_EACH (&e->watches, link) {
        struct fact_query *q = CONTAINER_OF(link, struct fact_query, watch_link);
        if (q->watch->failed) {
            struct err err = q->watch->err;
            fact_query_fail(q, q->watch->transient, 0, &err);
        }
    }
}

/* The query keeps the answer that it has now. */
static void pods_pause(struct fact_query *q)
{
    struct external_facts *e = q->e;
    pod_watch_put_answer(q->watch, /* live= */ false);
    pods_stop_watch(q);
    q->state = FACT_QUERY_PAUSED;
    q->live = false;
    struct list *before = e->paused.prev;
    while (before != &e->paused &&
           CONTAINER_OF(before, struct fact_query, link)->serial > q->serial) {
        before = before->prev;
    }
    list_add(before->next, &q->link); /* behind `before` */
}

/* The watch to pause for another: the youngest that need not be live. Those that must be live are
 * few and short; if there are no others, the oldest of them goes, which has had the most time. */
static struct fact_query *pods_find_spare_watch(struct external_facts *e)
{
    for (struct list *link = e->watches.prev; link != &e->watches; link = link->prev) {
        struct fact_query *q = CONTAINER_OF(link, struct fact_query, watch_link);
        if (q->state == FACT_QUERY_WATCHING && !q->watch->failed && !q->live) {
            return q;
        }
    }
    LIST_EACH (&e->watches, link) {
        struct fact_query *q = CONTAINER_OF(link, struct fact_query, watch_link);
        if (q->state == FACT_QUERY_WATCHING && !q->watch->failed) {
            return q;
        }
    }
    return NULL;
}

struct fact_query *pods_next(struct external_facts *e)
{
    struct list *queue = &e->queues[FACTS_AFFINITY];
    bool full = e->watch_n >= FACTS_WATCHES_MAX;
    if (list_empty(queue)) {
        return full || list_empty(&e->paused)
                   ? NULL
                   : CONTAINER_OF(e->paused.next, struct fact_query, link);
    }
    struct fact_query *spare = full ? pods_find_spare_watch(e) : NULL;
    if (full && spare == NULL) {
        return NULL; /* all are still listing, and will sync or fail */
    }
    if (full) {
        pods_pause(spare);
    }
    return CONTAINER_OF(queue->next, struct fact_query, link);
}

/* A node that is about to go must not wait for the pods of thousands of others. */
static void pods_move_ahead(struct fact_query *q)
{
    struct list *queue = &q->e->queues[FACTS_AFFINITY];
    list_del(&q->link);
    struct list *before = queue->next;
    while (before != queue && CONTAINER_OF(before, struct fact_query, link)->live) {
        before = before->next;
    }
    list_add(before, &q->link); /* before the first that need not be live */
}

void pods_want(struct fact_query *q, bool live)
{
    if (q->state == FACT_QUERY_PAUSED && live) {
        list_del(&q->link);
        q->state = FACT_QUERY_IDLE;
    }
    fact_query_want(q); /* does nothing unless IDLE: otherwise it is under way or answered */
    if (live && q->state == FACT_QUERY_QUEUED && !q->live) {
        pods_move_ahead(q);
    }
    q->live = q->live || live;
}

void pods_check(const struct external_facts *e)
{
    uint32_t watch_n = 0;
    LIST_EACH (&e->watches, link) {
        const struct fact_query *q = CONTAINER_OF(link, struct fact_query, watch_link);
        ASSERT(q->state == FACT_QUERY_IN_FLIGHT || q->state == FACT_QUERY_WATCHING);
        ASSERT(q->watch->synced == (q->state == FACT_QUERY_WATCHING));
        watch_n++;
    }
    ASSERT(watch_n == e->watch_n);
    ASSERT(watch_n <= FACTS_WATCHES_MAX);
    uint64_t serial = 0;
    LIST_EACH (&e->paused, link) {
        const struct fact_query *q = CONTAINER_OF(link, struct fact_query, link);
        ASSERT(q->state == FACT_QUERY_PAUSED && q->watch == NULL);
        ASSERT(q->serial > serial);
        ASSERT(!facts_affinity(e->facts, q->node).live);
        serial = q->serial;
    }
}
