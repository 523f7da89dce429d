#include "profile/external_facts.h"

#include "base/alloc.h"
#include "profile/external_internal.h"

#define REST_BASE SECONDS(1)
#define REST_MAX MINUTES(5)
#define REFRESH_DEFAULT MINUTES(5) /* a configuration may switch the interval off */
#define REFRESH_MIN SECONDS(1)
#define INTERVAL_MIN MSECONDS(100) /* whoever wants more often gets the answer that is there */
#define QUIET_FAILURES 3u          /* an outage shorter than that is nobody's error */

/* A dead Prometheus holds its place until its time is up, and the wire has few places, which
 * messages need as well; the API server has others to serve. */
static const uint32_t flying_max[INQUIRY_KINDS] = {
    [FACTS_PROMETHEUS] = 4,
    [FACTS_STAGGER] = 8,
    [FACTS_AFFINITY] = 8,
};

/* ── one ask ───────────────────────────────────────────────────────────────────────────────── */

void inquiry_wake(struct inquiry *q)
{
    loop_timer_pull(&q->pump, loop_now(q->loop));
}

static void ask_enqueue(struct ask *a)
{
    ASSERT(a->state == ASK_IDLE || a->state == ASK_RESTING);
    loop_timer_stop(&a->rest);
    a->state = ASK_QUEUED;
    list_add(&a->q->queues[a->kind], &a->link);
    inquiry_wake(a->q);
}

static void ask_on_rest(void *ctx)
{
    ask_enqueue(ctx);
}

static struct ask *ask_new(struct inquiry *q, enum facts_kind kind)
{
    struct ask *a = ALLOC_NEW(struct ask);
    a->q = q;
    a->kind = kind;
    a->memory.first = 512;
    a->backoff.base = REST_BASE;
    a->backoff.max = REST_MAX;
    loop_timer_init(&a->rest, q->loop, ask_on_rest, a);
    return a;
}

static void ask_free(struct ask *a)
{
    if (a == NULL) {
        return;
    }
    for (uint32_t i = 0; i < a->lease_n; i++) {
        if (a->leases[i].take != NULL) {
            take_lose(a->leases[i].take);
        }
        buf_done(&a->leases[i].version);
    }
    if (a->call != NULL) {
        api_cancel(a->q->config.client->api, STEAL(a->call));
    }
    if (a->outbound_call != NULL) {
        outbound_cancel(a->q->config.outbound, STEAL(a->outbound_call));
    }
    a->q->flying[a->kind] -= a->state == ASK_FLYING ? 1 : 0;
    affinity_leave(a);
    list_del(&a->link);
    loop_timer_done(&a->rest);
    buf_done(&a->holder);
    arena_done(&a->memory);
    alloc_free(a);
}

static uint64_t ask_readers(const struct ask *a)
{
    return a->kind == FACTS_AFFINITY ? a->q->affinity_readers : inquiry_bit(a->index);
}

void ask_note(struct ask *a)
{
    if (a->kind == FACTS_AFFINITY && a->q->config.on_pods != NULL) {
        a->q->config.on_pods(a->q->config.ctx, a->node);
    } else {
        inquiry_note(a->q, ask_readers(a));
    }
}

static void ask_land(struct ask *a)
{
    ASSERT(a->state == ASK_FLYING || a->state == ASK_WATCHING);
    ASSERT(a->call == NULL && a->outbound_call == NULL);
    a->q->flying[a->kind] -= a->state == ASK_FLYING ? 1 : 0;
    a->state = ASK_IDLE;
    affinity_leave(a);
    if (a->changed) {
        ask_note(a);
    }
    inquiry_wake(a->q); /* its place is free */
}

void ask_finish(struct ask *a)
{
    backoff_reset(&a->backoff);
    ask_land(a);
    if (a->again) {
        ask_enqueue(a);
    }
}

static void ask_tell(struct ask *a, const struct err *err)
{
    switch (a->kind) {
    case FACTS_PROMETHEUS:
        prometheus_tell(a, err);
        return;
    case FACTS_STAGGER:
        stagger_tell(a, err);
        return;
    case FACTS_AFFINITY:
        affinity_tell(a, err);
        return;
    }
}

void ask_fail(struct ask *a, bool quiet, usec_t retry_after, const struct err *err)
{
    struct inquiry *q = a->q;
    usec_t now = loop_now(q->loop);
    a->backoff.max = MAX(REST_BASE, MIN(q->refresh, REST_MAX));
    usec_t wait = backoff_next(&a->backoff, loop_random(q->loop));
    wait = MAX(wait, MIN(retry_after, REST_MAX));
    /* Whoever still wants it says so again when the answer has grown old; pods are wanted until
     * they are forgotten. */
    bool over = a->kind != FACTS_AFFINITY && now + wait > a->wanted_at + 2 * q->refresh + REST_BASE;
    if (!quiet || over || a->backoff.failures >= QUIET_FAILURES) {
        ask_tell(a, err);
    }
    ask_land(a);
    if (!over || a->again) {
        a->state = ASK_RESTING;
        loop_timer_set(&a->rest, now + wait);
    }
}

void ask_anew(struct ask *a)
{
    a->wanted_at = loop_now(a->q->loop);
    if (a->state == ASK_FLYING) {
        a->again = true;
    } else if (a->state == ASK_IDLE) {
        ask_enqueue(a);
    }
}

void ask_want(struct ask *a)
{
    usec_t now = loop_now(a->q->loop);
    a->wanted_at = now;
    if (a->state != ASK_IDLE) {
        return;
    }
    if (a->ever && now < a->asked_at + INTERVAL_MIN) {
        a->state = ASK_RESTING;
        loop_timer_set(&a->rest, a->asked_at + INTERVAL_MIN);
        return;
    }
    ask_enqueue(a);
}

static void ask_start(struct ask *a)
{
    struct inquiry *q = a->q;
    list_del(&a->link);
    a->state = ASK_FLYING;
    q->flying[a->kind]++;
    a->again = false;
    a->changed = false;
    a->ever = true;
    a->asked = loop_wall(q->loop);
    a->asked_at = loop_now(q->loop);
    switch (a->kind) {
    case FACTS_PROMETHEUS:
        prometheus_ask(a);
        return;
    case FACTS_STAGGER:
        stagger_ask(a);
        return;
    case FACTS_AFFINITY:
        affinity_ask(a);
        return;
    }
}

/* ── all of them ───────────────────────────────────────────────────────────────────────────── */

void inquiry_note(struct inquiry *q, uint64_t readers)
{
    q->changed |= readers;
    inquiry_wake(q);
}

static bool inquiry_may_start(const struct inquiry *q, enum facts_kind kind)
{
    return q->flying[kind] < flying_max[kind] &&
           (kind == FACTS_PROMETHEUS || client_open(q->config.client));
}

/* Whose turn it is; NULL: nobody waits, or there is no place. */
static struct ask *inquiry_first(struct inquiry *q, enum facts_kind kind)
{
    struct list *queue = &q->queues[kind];
    if (kind == FACTS_AFFINITY) {
        return affinity_first(q);
    }
    return list_empty(queue) ? NULL : CONTAINER_OF(queue->next, struct ask, link);
}

static void inquiry_pump(void *ctx)
{
    struct inquiry *q = ctx;
    affinity_lose(q);
    for (uint32_t kind = 0; kind < INQUIRY_KINDS; kind++) {
        struct ask *a;
        while (inquiry_may_start(q, kind) && (a = inquiry_first(q, kind)) != NULL) {
            ask_start(a);
        }
        if (kind != FACTS_PROMETHEUS && !client_open(q->config.client) &&
            !(list_empty(&q->queues[kind]) && list_empty(&q->parked))) {
            loop_timer_pull(&q->pump, client_open_at(q->config.client));
        }
    }
    uint64_t changed = q->changed;
    q->changed = 0;
    if (changed != 0) {
        q->config.on_change(q->config.ctx, changed); /* last: it may do as it likes */
    }
}

struct inquiry *inquiry_new(struct loop *loop, const struct inquiry_config *config)
{
    ASSERT(config->client != NULL && config->on_change != NULL);
    struct inquiry *q = ALLOC_NEW(struct inquiry);
    q->loop = loop;
    q->config = *config;
    q->facts = facts_new();
    q->refresh = REFRESH_DEFAULT;
    map_init(&q->nodes, loop_random(loop), loop_random(loop));
    list_init(&q->takes);
    list_init(&q->places);
    list_init(&q->parked);
    for (uint32_t kind = 0; kind < INQUIRY_KINDS; kind++) {
        list_init(&q->queues[kind]);
    }
    loop_timer_init(&q->pump, loop, inquiry_pump, q);
    return q;
}

void inquiry_forget_all(struct inquiry *q)
{
    MAP_EACH (&q->nodes, item) {
        struct ask *a = map_item_value(item);
        facts_forget_node(q->facts, a->node);
        (void)map_del(&q->nodes, a->node); /* the very item */
        ask_free(a);
    }
}

void inquiry_free(struct inquiry *q)
{
    if (q == NULL) {
        return;
    }
    take_free_all(q);
    inquiry_forget_all(q);
    map_done(&q->nodes);
    for (uint32_t i = 0; i < q->instance_n; i++) {
        ask_free(q->instances[i]);
    }
    arena_done(&q->table);
    facts_free(q->facts);
    loop_timer_done(&q->pump);
    alloc_free(q);
}

const struct facts *inquiry_facts(const struct inquiry *q)
{
    return q->facts;
}

/* ── configuration ─────────────────────────────────────────────────────────────────────────── */

static struct str inquiry_text(const struct config_instance *instance, const char *key)
{
    return plugin_get(instance->plugin, instance->values, key)->text;
}

static int64_t inquiry_number(const struct config_instance *instance, const char *key)
{
    return plugin_get(instance->plugin, instance->values, key)->number;
}

static struct ask *inquiry_new_prometheus(struct inquiry *q, const struct config_instance *instance)
{
    struct ask *a = ask_new(q, FACTS_PROMETHEUS);
    a->url = arena_str(&a->memory, inquiry_text(instance, "url"));
    a->query = arena_str(&a->memory, inquiry_text(instance, "query"));
    a->identity =
        arena_printf(&a->memory, "prometheus %zu %zu " STR_FMT STR_FMT STR_FMT, instance->name.n,
                     a->url.n, STR_ARG(instance->name), STR_ARG(a->url), STR_ARG(a->query));
    return a;
}

static struct ask *inquiry_new_stagger(struct inquiry *q, const struct config_instance *instance)
{
    struct ask *a = ask_new(q, FACTS_STAGGER);
    a->namespace = arena_str(&a->memory, inquiry_text(instance, "leaseNamespace"));
    a->lease = arena_str(&a->memory, inquiry_text(instance, "leaseName"));
    a->parallel = inquiry_number(instance, "parallel");
    int64_t seconds = inquiry_number(instance, "duration") / 1000000000;
    a->duration_s = MAX((int64_t)1, MIN(seconds, (int64_t)INT32_MAX)); /* the server's bounds */
    a->lease_n = (uint32_t)MAX((int64_t)0, MIN(a->parallel, (int64_t)FACTS_LEASES_MAX));
    if (a->lease_n > 0) {
        a->leases = ARENA_ARRAY(&a->memory, struct ask_lease, a->lease_n);
    }
    a->identity = arena_printf(&a->memory, "stagger %zu %zu " STR_FMT STR_FMT STR_FMT " %lld %lld",
                               instance->name.n, a->namespace.n, STR_ARG(instance->name),
                               STR_ARG(a->namespace), STR_ARG(a->lease), (long long)a->parallel,
                               (long long)a->duration_s);
    return a;
}

static struct ask *inquiry_make(struct inquiry *q, const struct config_instance *instance)
{
    struct str plugin = str_from(instance->plugin->name);
    if (str_eq(plugin, STR("prometheusInstant"))) {
        return inquiry_new_prometheus(q, instance);
    }
    return str_eq(plugin, STR("stagger")) ? inquiry_new_stagger(q, instance) : NULL;
}

/* The old ask of the same identity takes the new one's place. */
static struct ask *inquiry_keep(struct inquiry *q, struct ask *fresh, uint32_t *ret_from)
{
    *ret_from = UINT32_MAX;
    if (fresh == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < q->instance_n; i++) {
        if (q->instances[i] != NULL && str_eq(q->instances[i]->identity, fresh->identity)) {
            ask_free(fresh);
            *ret_from = i;
            return STEAL(q->instances[i]);
        }
    }
    return fresh;
}

void inquiry_configure(struct inquiry *q, const struct config *config)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct arena table = { 0 };
    const struct config_instances *checks = &config->instances[PLUGIN_CHECK];
    usec_t requeue = config->requeue_ns / 1000;
    q->refresh = requeue > 0 ? MAX(requeue, REFRESH_MIN) : REFRESH_DEFAULT;
    q->affinity_readers = 0;

    struct ask **instances = NULL;
    uint32_t *from = NULL;
    if (checks->n > 0) {
        instances = ARENA_ARRAY(&table, struct ask *, checks->n);
        from = ARENA_ARRAY(&tmp, uint32_t, checks->n);
    }
    for (uint32_t i = 0; i < checks->n; i++) {
        const struct config_instance *instance = &checks->items[i];
        instances[i] = inquiry_keep(q, inquiry_make(q, instance), &from[i]);
        if (instances[i] != NULL) {
            instances[i]->index = i;
        }
        if (str_eq(str_from(instance->plugin->name), STR("affinity"))) {
            q->affinity_readers |= inquiry_bit(i);
        }
    }
    for (uint32_t i = 0; i < q->instance_n; i++) {
        ask_free(q->instances[i]);
    }
    arena_done(&q->table);
    q->table = table;
    q->instances = instances;
    q->instance_n = checks->n;
    facts_reindex(q->facts, from, checks->n);
    q->changed = 0; /* bits of the old configuration; everything is decided anew under the new */
    if (q->affinity_readers == 0) {
        inquiry_forget_all(q);
    }
}

/* ── wanting ───────────────────────────────────────────────────────────────────────────────── */

static struct ask *inquiry_node(struct inquiry *q, struct str node)
{
    struct ask *a = map_find(&q->nodes, node);
    if (a == NULL) {
        a = ask_new(q, FACTS_AFFINITY);
        a->node = arena_str(&a->memory, node);
        a->serial = ++q->serials;
        (void)map_put(&q->nodes, node, a); /* it was not there */
    }
    return a;
}

void inquiry_want(struct inquiry *q, const struct facts_want *want)
{
    if (want->kind == FACTS_AFFINITY) {
        ASSERT(want->node.n > 0);
        affinity_want(inquiry_node(q, want->node), want->live);
        return;
    }
    ASSERT(want->index < q->instance_n);
    struct ask *a = q->instances[want->index];
    ASSERT(a != NULL && a->kind == want->kind);
    if (a->kind == FACTS_STAGGER) {
        buf_reset(&a->holder);
        buf_add(&a->holder, want->node);
    }
    ask_want(a);
}

bool inquiry_asks(const struct inquiry *q, struct str node)
{
    return map_find(&q->nodes, node) != NULL;
}

void inquiry_forget(struct inquiry *q, struct str node)
{
    struct ask *a = map_del(&q->nodes, node);
    if (a != NULL) {
        facts_forget_node(q->facts, node);
        ask_free(a);
        inquiry_wake(q); /* its place is free */
    }
}

/* ── promises ──────────────────────────────────────────────────────────────────────────────── */

static void ask_check(const struct ask *a, uint32_t flying[INQUIRY_KINDS])
{
    ASSERT(list_linked(&a->link) == (a->state == ASK_QUEUED || a->state == ASK_PARKED));
    ASSERT(a->rest.armed == (a->state == ASK_RESTING));
    ASSERT(a->state == ASK_FLYING || (a->call == NULL && a->outbound_call == NULL));
    flying[a->kind] += a->state == ASK_FLYING ? 1 : 0;
}

void inquiry_check(const struct inquiry *q)
{
    uint32_t flying[INQUIRY_KINDS] = { 0 };
    for (uint32_t i = 0; i < q->instance_n; i++) {
        if (q->instances[i] != NULL) {
            ASSERT(q->instances[i]->index == i);
            ask_check(q->instances[i], flying);
        }
    }
    MAP_EACH (&q->nodes, item) {
        ask_check(map_item_value(item), flying);
    }
    for (uint32_t kind = 0; kind < INQUIRY_KINDS; kind++) {
        ASSERT(flying[kind] == q->flying[kind]);
        ASSERT(flying[kind] <= flying_max[kind]);
    }
    affinity_check(q);
}
