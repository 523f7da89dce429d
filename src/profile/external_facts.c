/* The queue of queries to other systems: what is sent when, retries, a new configuration. */
#include "profile/external_facts.h"

#include "base/alloc.h"
#include "profile/external_internal.h"

#define QUERY_BACKOFF_BASE SECONDS(1)
#define QUERY_BACKOFF_MAX MINUTES(5)
#define REFRESH_DEFAULT MINUTES(5)       /* a configuration may switch the interval off */
#define QUERY_INTERVAL_MIN MSECONDS(100) /* within it a want gets the answer that is there */
#define TRANSIENT_FAILURES_MAX 3u        /* failures in a row before a check shows the error */

/* A dead Prometheus holds its place until it times out, and notifications need outbound requests as
 * well; the API server has other clients to serve. */
static const uint32_t in_flight_max[EXTERNAL_FACTS_KINDS] = {
    [FACTS_PROMETHEUS] = 4,
    [FACTS_POOLS] = 2,
    [FACTS_STAGGER] = 8,
    [FACTS_AFFINITY] = 8,
};

/* ── one query ─────────────────────────────────────────────────────────────────────────────── */

void external_facts_schedule(struct external_facts *e)
{
    loop_timer_pull(&e->run_timer, loop_now(e->loop));
}

static void fact_query_enqueue(struct fact_query *q)
{
    ASSERT(q->state == FACT_QUERY_IDLE || q->state == FACT_QUERY_BACKOFF);
    loop_timer_stop(&q->backoff_timer);
    q->state = FACT_QUERY_QUEUED;
    list_add(&q->e->queues[q->kind], &q->link);
    external_facts_schedule(q->e);
}

static void fact_query_on_backoff(void *ctx)
{
    fact_query_enqueue(ctx);
}

static struct fact_query *fact_query_new(struct external_facts *e, enum facts_kind kind)
{
    struct fact_query *q = ALLOC_NEW(struct fact_query);
    q->e = e;
    q->kind = kind;
    q->memory.first = 512;
    q->backoff.base = QUERY_BACKOFF_BASE;
    q->backoff.max = QUERY_BACKOFF_MAX;
    loop_timer_init(&q->backoff_timer, e->loop, fact_query_on_backoff, q);
    return q;
}

static void fact_query_free(struct fact_query *q)
{
    if (q == NULL) {
        return;
    }
    for (uint32_t i = 0; i < q->lease_n; i++) {
        if (q->leases[i].take != NULL) {
            stagger_take_detach(q->leases[i].take);
        }
        buf_done(&q->leases[i].version);
    }
    if (q->call != NULL) {
        api_cancel(q->e->config.client->api, STEAL(q->call));
    }
    if (q->outbound_call != NULL) {
        outbound_cancel(q->e->config.outbound, STEAL(q->outbound_call));
    }
    q->e->in_flight[q->kind] -= q->state == FACT_QUERY_IN_FLIGHT ? 1 : 0;
    pods_stop_watch(q);
    pools_done(q);
    list_del(&q->link);
    loop_timer_done(&q->backoff_timer);
    buf_done(&q->holder);
    arena_done(&q->memory);
    alloc_free(q);
}

static uint64_t fact_query_readers(const struct fact_query *q)
{
    return q->kind == FACTS_AFFINITY ? q->e->affinity_readers : check_bit(q->index);
}

void fact_query_notify(struct fact_query *q)
{
    if (q->kind == FACTS_AFFINITY && q->e->config.on_pods != NULL) {
        q->e->config.on_pods(q->e->config.ctx, q->node);
    } else {
        external_facts_changed(q->e, fact_query_readers(q));
    }
}

static void fact_query_end(struct fact_query *q)
{
    ASSERT(q->state == FACT_QUERY_IN_FLIGHT || q->state == FACT_QUERY_WATCHING);
    ASSERT(q->call == NULL && q->outbound_call == NULL);
    q->e->in_flight[q->kind] -= q->state == FACT_QUERY_IN_FLIGHT ? 1 : 0;
    q->state = FACT_QUERY_IDLE;
    pods_stop_watch(q);
    if (q->changed) {
        fact_query_notify(q);
    }
    external_facts_schedule(q->e); /* its place is free */
}

void fact_query_finish(struct fact_query *q)
{
    backoff_reset(&q->backoff);
    fact_query_end(q);
    if (q->query_again) {
        fact_query_enqueue(q);
    }
}

static void fact_query_put_error(struct fact_query *q, const struct err *err)
{
    switch (q->kind) {
    case FACTS_PROMETHEUS:
        prometheus_put_error(q, err);
        return;
    case FACTS_POOLS:
        pools_put_error(q, err);
        return;
    case FACTS_STAGGER:
        stagger_put_error(q, err);
        return;
    case FACTS_AFFINITY:
        pods_put_error(q, err);
        return;
    }
}

void fact_query_fail(struct fact_query *q, bool transient, usec_t retry_after,
                     const struct err *err)
{
    struct external_facts *e = q->e;
    usec_t now = loop_now(e->loop);
    q->backoff.max = MAX(QUERY_BACKOFF_BASE, MIN(e->refresh, QUERY_BACKOFF_MAX));
    usec_t wait = backoff_next(&q->backoff, loop_random(e->loop));
    wait = MAX(wait, MIN(retry_after, QUERY_BACKOFF_MAX));
    /* A check that still wants the answer says so again when the answer is old. Pods are wanted
     * until external_facts_drop_pods. */
    bool over = q->kind != FACTS_AFFINITY &&
                now + wait > q->wanted_at + 2 * e->refresh + QUERY_BACKOFF_BASE;
    if (!transient || over || q->backoff.failures >= TRANSIENT_FAILURES_MAX) {
        fact_query_put_error(q, err);
    }
    fact_query_end(q);
    if (!over || q->query_again) {
        q->state = FACT_QUERY_BACKOFF;
        loop_timer_set(&q->backoff_timer, now + wait);
    }
}

void fact_query_refresh(struct fact_query *q)
{
    q->wanted_at = loop_now(q->e->loop);
    if (q->state == FACT_QUERY_IN_FLIGHT) {
        q->query_again = true;
    } else if (q->state == FACT_QUERY_IDLE) {
        fact_query_enqueue(q);
    }
}

void fact_query_want(struct fact_query *q)
{
    usec_t now = loop_now(q->e->loop);
    q->wanted_at = now;
    if (q->state != FACT_QUERY_IDLE) {
        return;
    }
    if (q->asked > 0 && now < q->asked_at + QUERY_INTERVAL_MIN) {
        q->state = FACT_QUERY_BACKOFF;
        loop_timer_set(&q->backoff_timer, q->asked_at + QUERY_INTERVAL_MIN);
        return;
    }
    fact_query_enqueue(q);
}

static void fact_query_start(struct fact_query *q)
{
    struct external_facts *e = q->e;
    list_del(&q->link);
    q->state = FACT_QUERY_IN_FLIGHT;
    e->in_flight[q->kind]++;
    q->query_again = false;
    q->changed = false;
    q->asked = loop_wall(e->loop);
    q->asked_at = loop_now(e->loop);
    switch (q->kind) {
    case FACTS_PROMETHEUS:
        prometheus_start(q);
        return;
    case FACTS_POOLS:
        pools_start(q);
        return;
    case FACTS_STAGGER:
        stagger_start(q);
        return;
    case FACTS_AFFINITY:
        pods_start(q);
        return;
    }
}

/* ── all queries ───────────────────────────────────────────────────────────────────────────── */

void external_facts_changed(struct external_facts *e, uint64_t readers)
{
    e->changed |= readers;
    external_facts_schedule(e);
}

/* The API server is asked. */
static bool asks_api(enum facts_kind kind)
{
    return kind == FACTS_STAGGER || kind == FACTS_AFFINITY;
}

static bool external_facts_may_send(const struct external_facts *e, enum facts_kind kind)
{
    return e->in_flight[kind] < in_flight_max[kind] &&
           (!asks_api(kind) || client_open(e->config.client));
}

/* The next query to send; NULL: none is queued, or there is no place. */
static struct fact_query *external_facts_next(struct external_facts *e, enum facts_kind kind)
{
    struct list *queue = &e->queues[kind];
    if (kind == FACTS_AFFINITY) {
        return pods_next(e);
    }
    return list_empty(queue) ? NULL : CONTAINER_OF(queue->next, struct fact_query, link);
}

static void external_facts_run(void *ctx)
{
    struct external_facts *e = ctx;
    pods_end_failed(e);
    for (uint32_t kind = 0; kind < EXTERNAL_FACTS_KINDS; kind++) {
        struct fact_query *q;
        while (external_facts_may_send(e, kind) && (q = external_facts_next(e, kind)) != NULL) {
            fact_query_start(q);
        }
        if (asks_api(kind) && !client_open(e->config.client) &&
            !(list_empty(&e->queues[kind]) && list_empty(&e->paused))) {
            loop_timer_pull(&e->run_timer, client_open_at(e->config.client));
        }
    }
    uint64_t changed = e->changed;
    e->changed = 0;
    if (changed != 0) {
        e->config.on_change(e->config.ctx, changed); /* last: it may call back */
    }
}

struct external_facts *external_facts_new(struct loop *loop,
                                          const struct external_facts_config *config)
{
    ASSERT(config->client != NULL && config->on_change != NULL);
    struct external_facts *e = ALLOC_NEW(struct external_facts);
    e->loop = loop;
    e->config = *config;
    e->facts = facts_new();
    e->refresh = REFRESH_DEFAULT;
    map_init(&e->nodes, loop_random(loop), loop_random(loop));
    list_init(&e->takes);
    list_init(&e->watches);
    list_init(&e->paused);
    for (uint32_t kind = 0; kind < EXTERNAL_FACTS_KINDS; kind++) {
        list_init(&e->queues[kind]);
    }
    loop_timer_init(&e->run_timer, loop, external_facts_run, e);
    return e;
}

void external_facts_drop_all_pods(struct external_facts *e)
{
    MAP_EACH (&e->nodes, item) {
        struct fact_query *q = map_item_value(item);
        facts_forget_node(e->facts, q->node);
        (void)map_del(&e->nodes, q->node); /* it is `item` */
        fact_query_free(q);
    }
}

void external_facts_free(struct external_facts *e)
{
    if (e == NULL) {
        return;
    }
    stagger_take_free_all(e);
    external_facts_drop_all_pods(e);
    map_done(&e->nodes);
    for (uint32_t i = 0; i < e->instance_n; i++) {
        fact_query_free(e->instances[i]);
    }
    arena_done(&e->table);
    facts_free(e->facts);
    loop_timer_done(&e->run_timer);
    alloc_free(e);
}

void external_facts_set_hypervisors(struct external_facts *e, const struct informer *hypervisors)
{
    facts_set_hypervisors(e->facts, hypervisors);
}

const struct facts *external_facts_facts(const struct external_facts *e)
{
    return e->facts;
}

/* ── configuration ─────────────────────────────────────────────────────────────────────────── */

static struct str instance_text(const struct config_instance *instance, const char *key)
{
    return plugin_get(instance->plugin, instance->values, key)->text;
}

static int64_t instance_number(const struct config_instance *instance, const char *key)
{
    return plugin_get(instance->plugin, instance->values, key)->number;
}

static struct fact_query *external_facts_new_prometheus(struct external_facts *e,
                                                        const struct config_instance *instance)
{
    struct fact_query *q = fact_query_new(e, FACTS_PROMETHEUS);
    q->url = arena_str(&q->memory, instance_text(instance, "url"));
    q->query = arena_str(&q->memory, instance_text(instance, "query"));
    q->config_key =
        arena_printf(&q->memory, "prometheus %zu %zu " STR_FMT STR_FMT STR_FMT, instance->name.n,
                     q->url.n, STR_ARG(instance->name), STR_ARG(q->url), STR_ARG(q->query));
    return q;
}

static struct fact_query *external_facts_new_pools(struct external_facts *e,
                                                   const struct config_instance *instance)
{
    struct fact_query *q = fact_query_new(e, FACTS_POOLS);
    struct str namespace = instance_text(instance, "cloudProviderSecret.namespace");
    struct str name = instance_text(instance, "cloudProviderSecret.name");
    q->url = arena_str(&q->memory, instance_text(instance, "url"));
    q->query = arena_str(&q->memory, instance_text(instance, "cluster"));
    q->config_key = arena_printf(
        &q->memory, "pools %zu %zu %zu " STR_FMT STR_FMT STR_FMT " " STR_FMT "/" STR_FMT,
        instance->name.n, q->url.n, q->query.n, STR_ARG(instance->name), STR_ARG(q->url),
        STR_ARG(q->query), STR_ARG(namespace), STR_ARG(name));
    pools_init(q, namespace, name);
    return q;
}

static struct fact_query *external_facts_new_stagger(struct external_facts *e,
                                                     const struct config_instance *instance)
{
    struct fact_query *q = fact_query_new(e, FACTS_STAGGER);
    q->namespace = arena_str(&q->memory, instance_text(instance, "leaseNamespace"));
    q->lease = arena_str(&q->memory, instance_text(instance, "leaseName"));
    q->parallel = instance_number(instance, "parallel");
    int64_t seconds = instance_number(instance, "duration") / 1000000000;
    q->duration_s = MAX((int64_t)1, MIN(seconds, (int64_t)INT32_MAX)); /* the server's bounds */
    q->lease_n = (uint32_t)MAX((int64_t)0, MIN(q->parallel, (int64_t)FACTS_LEASES_MAX));
    if (q->lease_n > 0) {
        q->leases = ARENA_ARRAY(&q->memory, struct stagger_lease, q->lease_n);
    }
    q->config_key = arena_printf(
        &q->memory, "stagger %zu %zu " STR_FMT STR_FMT STR_FMT " %lld %lld", instance->name.n,
        q->namespace.n, STR_ARG(instance->name), STR_ARG(q->namespace), STR_ARG(q->lease),
        (long long)q->parallel, (long long)q->duration_s);
    return q;
}

static struct fact_query *external_facts_new_query(struct external_facts *e,
                                                   const struct config_instance *instance)
{
    struct str plugin = str_from(instance->plugin->name);
    if (str_eq(plugin, STR("prometheusInstant"))) {
        return external_facts_new_prometheus(e, instance);
    }
    if (str_eq(plugin, STR("kubernikusCount"))) {
        return external_facts_new_pools(e, instance);
    }
    return str_eq(plugin, STR("stagger")) ? external_facts_new_stagger(e, instance) : NULL;
}

/* The old query with the same key is kept instead of the new one, with its answer. */
static struct fact_query *external_facts_reuse_query(struct external_facts *e,
                                                     struct fact_query *fresh, uint32_t *ret_from)
{
    *ret_from = UINT32_MAX;
    if (fresh == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < e->instance_n; i++) {
        if (e->instances[i] != NULL && str_eq(e->instances[i]->config_key, fresh->config_key)) {
            fact_query_free(fresh);
            *ret_from = i;
            return STEAL(e->instances[i]);
        }
    }
    return fresh;
}

void external_facts_configure(struct external_facts *e, const struct config *config)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct arena table = { 0 };
    const struct config_instances *checks = &config->instances[PLUGIN_CHECK];
    e->refresh = config->requeue_ns < 0 ? REFRESH_DEFAULT : config_refresh(config);
    e->affinity_readers = 0;

    struct fact_query **instances = NULL;
    uint32_t *from = NULL;
    if (checks->n > 0) {
        instances = ARENA_ARRAY(&table, struct fact_query *, checks->n);
        from = ARENA_ARRAY(&tmp, uint32_t, checks->n);
    }
    for (uint32_t i = 0; i < checks->n; i++) {
        const struct config_instance *instance = &checks->items[i];
        instances[i] =
            external_facts_reuse_query(e, external_facts_new_query(e, instance), &from[i]);
        if (instances[i] != NULL) {
            instances[i]->index = i;
        }
        if (str_eq(str_from(instance->plugin->name), STR("affinity"))) {
            e->affinity_readers |= check_bit(i);
        }
    }
    for (uint32_t i = 0; i < e->instance_n; i++) {
        fact_query_free(e->instances[i]);
    }
    arena_done(&e->table);
    e->table = table;
    e->instances = instances;
    e->instance_n = checks->n;
    facts_reindex(e->facts, from, checks->n);
    e->changed = 0; /* bits of the old configuration; everything is decided anew under the new */
    if (e->affinity_readers == 0) {
        external_facts_drop_all_pods(e);
    }
}

/* ── wants ─────────────────────────────────────────────────────────────────────────────────── */

static struct fact_query *external_facts_node_query(struct external_facts *e, struct str node)
{
    struct fact_query *q = map_find(&e->nodes, node);
    if (q == NULL) {
        q = fact_query_new(e, FACTS_AFFINITY);
        q->node = arena_str(&q->memory, node);
        q->serial = ++e->serials;
        (void)map_put(&e->nodes, node, q); /* it was not there */
    }
    return q;
}

void external_facts_want(struct external_facts *e, const struct facts_want *want)
{
    if (want->kind == FACTS_AFFINITY) {
        ASSERT(want->node.n > 0);
        pods_want(external_facts_node_query(e, want->node), want->live);
        return;
    }
    ASSERT(want->index < e->instance_n);
    struct fact_query *q = e->instances[want->index];
    ASSERT(q != NULL && q->kind == want->kind);
    if (q->kind == FACTS_STAGGER) {
        buf_reset(&q->holder);
        buf_add(&q->holder, want->node);
    }
    fact_query_want(q);
}

void external_facts_ask_anew(struct external_facts *e, uint32_t index)
{
    ASSERT(index < e->instance_n && e->instances[index] != NULL);
    struct fact_query *q = e->instances[index];
    if (q->state == FACT_QUERY_IN_FLIGHT) {
        q->query_again = true;
    }
    fact_query_want(q);
}

bool external_facts_wants_pods(const struct external_facts *e, struct str node)
{
    return map_find(&e->nodes, node) != NULL;
}

void external_facts_drop_pods(struct external_facts *e, struct str node)
{
    struct fact_query *q = map_del(&e->nodes, node);
    if (q != NULL) {
        facts_forget_node(e->facts, node);
        fact_query_free(q);
        external_facts_schedule(e); /* its place is free */
    }
}

/* ── self-check ────────────────────────────────────────────────────────────────────────────── */

static void fact_query_check(const struct fact_query *q, uint32_t in_flight[EXTERNAL_FACTS_KINDS])
{
    ASSERT(list_linked(&q->link) ==
           (q->state == FACT_QUERY_QUEUED || q->state == FACT_QUERY_PAUSED));
    ASSERT(q->backoff_timer.armed == (q->state == FACT_QUERY_BACKOFF));
    ASSERT(q->state == FACT_QUERY_IN_FLIGHT || (q->call == NULL && q->outbound_call == NULL));
    in_flight[q->kind] += q->state == FACT_QUERY_IN_FLIGHT ? 1 : 0;
}

void external_facts_check(const struct external_facts *e)
{
    uint32_t in_flight[EXTERNAL_FACTS_KINDS] = { 0 };
    for (uint32_t i = 0; i < e->instance_n; i++) {
        if (e->instances[i] != NULL) {
            ASSERT(e->instances[i]->index == i);
            fact_query_check(e->instances[i], in_flight);
        }
    }
    MAP_EACH (&e->nodes, item) {
        fact_query_check(map_item_value(item), in_flight);
    }
    for (uint32_t kind = 0; kind < EXTERNAL_FACTS_KINDS; kind++) {
        ASSERT(in_flight[kind] == e->in_flight[kind]);
        ASSERT(in_flight[kind] <= in_flight_max[kind]);
    }
    pods_check(e);
}
