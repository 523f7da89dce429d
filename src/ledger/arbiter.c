#include "base/alloc.h"
#include "ledger/arbiter_internal.h"

/* ── turns ─────────────────────────────────────────────────────────────────────────────────── */

void arbiter_run_soon(struct arbiter *a)
{
    if (!a->freed) {
        loop_timer_pull(&a->turn, 0);
    }
}

void arbiter_run_at(struct arbiter *a, usec_t monotonic)
{
    loop_timer_pull(&a->turn, monotonic);
}

usec_t arbiter_monotonic(const struct arbiter *a, usec_t wall)
{
    return a->now + (wall - a->wall);
}

void arbiter_limits_changed(struct arbiter *a, enum target_type type)
{
    a->limits_version++;
    a->recount[type] = true;
    selectors_mark(a, type);
    arbiter_run_soon(a);
}

static void notify_owners(struct arbiter *a)
{
    while (!list_empty(&a->notify_list)) {
        struct ask *k = CONTAINER_OF(a->notify_list.next, struct ask, notify_link);
        list_del(&k->notify_link);
        k->on_change(k->ctx); /* may free it, and others */
    }
}

static uint64_t hash_mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x100000001b3); /* FNV-1a's prime */
}

/* Changes when an ask that was refused might not be refused now. */
static uint64_t arbiter_capacity_hash(const struct arbiter *a)
{
    uint64_t hash = hash_mix(hash_mix(hash_mix(1, a->may_act), a->limits_version), a->lock_changes);
    hash = hash_mix(hash, arbiter_paused(a).n > 0);
    LIST_EACH (&a->limit_states, link) {
        const struct limit_state *b = CONTAINER_OF(link, struct limit_state, link);
        const struct limit *l = limit_of(b);
        hash = hash_mix(hash_mix(hash, b->counts.granted), b->counts.unavailable);
        hash = hash_mix(hash_mix(hash, b->population), map_count(&b->policy_hits));
        hash = hash_mix(hash_mix(hash, b->usable), b->writer.retry_at > a->now);
        hash = hash_mix(hash, b->to_add + b->kept_for_queue > 0 || b->releasing ||
                                  limit_gap_end(l) > a->wall);
    }
    return hash;
}

/* The server's answers carry whole seconds, so our estimate of its clock goes back a little now and
 * then. A gap that was over would begin again, and asks that are being taken would be given back:
 * the time stands still until such a correction is made up for. */
static usec_t arbiter_wall(const struct arbiter *a)
{
    usec_t wall = a->config.wall(a->config.ctx);
    return wall < a->wall && wall > a->wall - SERVER_CLOCK_JUMP ? a->wall : wall;
}

static void arbiter_turn(void *ctx)
{
    struct arbiter *a = ctx;
    arena_reset(&a->views);
    a->turns++;
    a->now = loop_now(a->loop);
    a->wall = arbiter_wall(a);
    a->may_act = arbiter_synced(a) && a->target_locks_synced && a->config.may_act(a->config.ctx);
    population_update_watches(a);
    population_recount(a);
    orphan_sweep(a);
    queue_decide(a);
    LIST_EACH (&a->limit_states, link) {
        limit_state_step(CONTAINER_OF(link, struct limit_state, link));
    }
    queue_settle(a);
    selectors_step(a);
    recheck_step(a);
    notify_owners(a);
    uint64_t hash = arbiter_capacity_hash(a);
    if (hash != a->capacity_hash && a->config.on_capacity != NULL) {
        a->capacity_hash = hash;
        a->config.on_capacity(a->config.ctx);
    }
    if (a->config.on_turn != NULL) {
        a->config.on_turn(a->config.ctx);
    }
}

void arbiter_wake(struct arbiter *a)
{
    arbiter_run_soon(a);
}

void arbiter_owner_synced(struct arbiter *a, enum ask_owner owner, bool owner_synced)
{
    ASSERT((uint32_t)owner < ASK_OWNERS);
    a->owner_synced[owner] = owner_synced;
    a->sweep_needed = true;
    arbiter_run_soon(a);
}

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

/* A limit's options (time limits, preparation) concern asks that are held, too. */
static void limits_notify_asks(struct arbiter *a, const struct limit_state *b)
{
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        if (ask_applied_limit(k, b) != NULL) {
            ask_notify_owner(k);
        }
    }
}

static void limits_on_change(void *ctx, struct store_item *item, const void *before)
{
    struct arbiter *a = ctx;
    const struct limit *l = item->object;
    const struct limit *old = before;
    struct limit_state *b = item->extra;
    bool new = old == NULL || old->generation != l->generation || !str_eq(old->uid, l->uid);
    if (b == NULL) {
        b = limit_state_new(a, item);
        item->extra = b;
    }
    if (new) {
        limit_state_check_usable(b);
        limits_notify_asks(a, b);
        if (old != NULL && old->type_known) {
            arbiter_limits_changed(a, old->type);
        }
        if (l->type_known) {
            arbiter_limits_changed(a, l->type);
        }
    }
    a->sweep_needed = true;
    arbiter_run_soon(a);
}

static void limits_on_gone(void *ctx, struct store_item *item)
{
    struct arbiter *a = ctx;
    const struct limit *l = item->object;
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        if (ask_applied_limit(k, item->extra) != NULL) {
            k->applied_n = 0;
            k->limits_version = 0;
            ask_notify_owner(k); /* also if no other limit takes its place */
        }
        k->blocking_limit = k->blocking_limit == item->extra ? NULL : k->blocking_limit;
    }
    limit_state_free(item->extra);
    item->extra = NULL;
    if (l->type_known) {
        arbiter_limits_changed(a, l->type);
    }
    a->sweep_needed = true;
    arbiter_run_soon(a);
}

static void limits_on_synced(void *ctx)
{
    arbiter_run_soon(ctx);
}

static void limits_on_error(void *ctx, const struct err *err)
{
    struct arbiter *a = ctx;
    if (a->config.log != NULL) {
        log_debug(a->config.log, "watch of limits failed", KV_TEXT("error", err->msg));
    }
    arbiter_run_soon(a);
}

static void limits_start(struct arbiter *a)
{
    list_init(&a->limit_states);
    informer_init(&a->limits, &(struct informer_config){
                                  .client = a->client,
                                  .kind = &limit_kind,
                                  .optional = true,
                                  .on_change = limits_on_change,
                                  .on_gone = limits_on_gone,
                                  .on_synced = limits_on_synced,
                                  .on_error = limits_on_error,
                                  .ctx = a,
                              });
    informer_start(&a->limits, STR(MAINTENANCE_LIMITS_PATH));
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void fallback_start(struct arbiter *a)
{
    for (uint32_t i = 0; i < TARGET_TYPES && a->config.missing == MISSING_LIMIT_PERCENT; i++) {
        struct limit_state *b = limit_state_new(a, NULL);
        b->own = (struct limit){
            .name = STR("--missing-limit"),
            .type_known = true,
            .type = (enum target_type)i,
            .percent = a->config.missing_limit_percent,
            .minimum = 1,
            .max_count = UINT32_MAX,
            .repair_unavailable = true,
            .ledger_init_time = USEC_NEVER,
            .last_grant = USEC_NEVER,
            .last_release = USEC_NEVER,
            .options = { .ledger_init_time = USEC_NEVER },
        };
        b->usable = true;
        a->fallback[i] = b;
    }
}

struct arbiter *arbiter_new(const struct arbiter_config *config)
{
    struct arbiter *a = ALLOC_NEW(struct arbiter);
    a->config = *config;
    a->client = config->client;
    a->loop = config->client->loop;
    a->config.namespace = arena_str(&a->memory, config->namespace);
    a->limits_version = 1;
    a->now = loop_now(a->loop);
    for (uint32_t i = 0; i < TARGET_TYPES; i++) {
        a->missing_event_at[i] = -ARBITER_MISSING_INTERVAL;
    }
    list_init(&a->queue);
    list_init(&a->notify_list);
    map_init(&a->asks, loop_random(a->loop), loop_random(a->loop));
    map_init(&a->orphans, loop_random(a->loop), loop_random(a->loop));
    loop_timer_init(&a->turn, a->loop, arbiter_turn, a);
    fallback_start(a);
    population_start(a);
    selectors_start(a);
    limits_start(a);
    target_locks_start(a);
    limit_metrics_start(a);
    return a;
}

void arbiter_free(struct arbiter *a)
{
    if (a == NULL) {
        return;
    }
    ASSERT(list_empty(&a->queue));
    a->freed = true;
    limit_metrics_stop(a);
    loop_timer_done(&a->turn);
    recheck_stop(a);
    orphan_sweep_stop(a);
    target_locks_stop(a);
    informer_done(&a->limits);
    selectors_stop(a);
    population_stop(a);
    for (uint32_t i = 0; i < TARGET_TYPES; i++) {
        limit_state_free(a->fallback[i]);
    }
    map_done(&a->asks);
    buf_done(&a->path);
    buf_done(&a->body);
    arena_done(&a->views);
    arena_done(&a->memory);
    alloc_free(a);
}

bool arbiter_synced(const struct arbiter *a)
{
    return a->limits.synced && a->selectors.synced;
}

/* ── asks ──────────────────────────────────────────────────────────────────────────────────── */

struct ask *ask_new(struct arbiter *a, const struct ask_spec *spec, void (*on_change)(void *ctx),
                    void *ctx)
{
    ASSERT(spec->uid.n > 0 && spec->target.n > 0);
    ASSERT(spec->owner == ASK_OF_REQUEST || spec->confirm != NULL || !spec->already_true);
    if (map_find(&a->asks, spec->uid) != NULL) {
        return NULL;
    }
    struct ask *k = ALLOC_NEW(struct ask);
    k->waiting_since = USEC_NEVER;
    k->arbiter = a;
    k->memory.first = 512;
    k->spec = *spec;
    k->spec.uid = arena_str(&k->memory, spec->uid);
    k->spec.name = arena_str(&k->memory, spec->name);
    k->spec.namespace = arena_str(&k->memory, spec->namespace);
    k->spec.target = arena_str(&k->memory, spec->target);
    k->spec.state = STR_NONE;
    k->closed_below = spec->grant;
    buf_add(&k->state, spec->state);
    k->target_name = spec->type == TARGET_NODE
                         ? k->spec.target
                         : arena_printf(&k->memory, STR_FMT "/" STR_FMT, STR_ARG(k->spec.namespace),
                                        STR_ARG(k->spec.target));
    k->on_change = on_change;
    k->ctx = ctx;
    k->why = ASK_WHY_NOT_COMPUTED;
    (void)map_put(&a->asks, k->spec.uid, k); /* it was not there */
    a->ask_count[k->spec.type]++;
    if (!spec->queue_only) {
        orphan_forget(a, k->spec.uid);
    }
    target_lock_join(k);
    queue_insert(k);
    a->sweep_needed = true;
    arbiter_run_soon(a);
    return k;
}

/* The ask is about another grant: nothing that was found out about the one before counts. */
static void ask_set_grant(struct ask *k, uint32_t grant)
{
    recheck_cancel(k);
    k->spec.grant = grant;
    k->closed_below = MAX(k->closed_below, grant);
    k->granting = false;
    k->held = false;
    k->adopted = false;
    k->was_unavailable = false;
    k->waiting_since = USEC_NEVER;
    k->stage = ASK_WAITING;
    k->why = ASK_WHY_NOT_COMPUTED;
    for (uint32_t i = 0; i < k->applied_n; i++) {
        k->applied[i] = (struct applied_limit){ .limit = k->applied[i].limit };
    }
    arbiter_run_soon(k->arbiter);
}

void ask_close_grants_below(struct ask *k, uint32_t below)
{
    if (below > k->closed_below) {
        k->closed_below = below;
        arbiter_run_soon(k->arbiter);
    }
}

void ask_update(struct ask *k, const struct ask_spec *spec)
{
    ASSERT(str_eq(k->spec.uid, spec->uid) && str_eq(k->spec.target, spec->target));
    bool moved = k->spec.priority != spec->priority || k->spec.since != spec->since ||
                 k->spec.last != spec->last;
    bool shown = !str_eq(buf_str(&k->state), spec->state);
    k->spec.priority = spec->priority;
    k->spec.since = spec->since;
    k->spec.last = spec->last;
    k->spec.already_true = k->spec.already_true || spec->already_true;
    if (k->spec.grant != spec->grant) {
        ask_set_grant(k, spec->grant);
    }
    if (moved) {
        queue_insert(k);
    }
    if (shown) {
        buf_reset(&k->state);
        buf_add(&k->state, spec->state);
    }
    if (moved || shown || spec->already_true) {
        arbiter_run_soon(k->arbiter);
    }
}

void ask_end(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    if (k->ending) {
        return;
    }
    recheck_cancel(k);
    k->ending = true;
    k->granting = false;
    k->keep = false;
    k->held = false;
    k->stage = ASK_ENDING;
    arbiter_run_soon(a);
}

void ask_free(struct ask *k)
{
    if (k == NULL) {
        return;
    }
    struct arbiter *a = k->arbiter;
    recheck_cancel(k);
    list_del(&k->notify_link);
    list_del(&k->link);
    (void)map_del(&a->asks, k->spec.uid); /* it is this one */
    a->ask_count[k->spec.type]--;
    target_lock_leave(k);
    alloc_free(k->applied);
    buf_done(&k->state);
    arena_done(&k->memory);
    alloc_free(k);
    a->sweep_needed = true;
    arbiter_run_soon(a);
}

enum ask_stage ask_stage(const struct ask *k)
{
    return k->stage;
}

/* ── checks ────────────────────────────────────────────────────────────────────────────────── */

void arbiter_check(const struct arbiter *a)
{
    const struct ask *last = NULL;
    const struct limit_state *before = NULL;
    uint32_t ask_count[TARGET_TYPES] = { 0 };
    LIST_EACH (&a->queue, link) {
        const struct ask *k = CONTAINER_OF(link, struct ask, link);
        ASSERT(map_find(&a->asks, k->spec.uid) == k);
        ASSERT(k->lock != NULL);
        ASSERT(k->stage != ASK_HELD || k->held);
        ASSERT(!k->spec.queue_only || (k->stage == ASK_WAITING && !k->granting && !k->ending));
        ASSERT(last == NULL || a->queue_unsorted || last->spec.last <= k->spec.last);
        ASSERT(last == NULL || a->queue_unsorted || last->spec.last != k->spec.last ||
               last->spec.priority >= k->spec.priority);
        ask_count[k->spec.type]++;
        last = k;
    }
    for (uint32_t i = 0; i < TARGET_TYPES; i++) {
        ASSERT(ask_count[i] == a->ask_count[i]);
    }
    LIST_EACH (&a->limit_states, link) {
        const struct limit_state *b = CONTAINER_OF(link, struct limit_state, link);
        ASSERT(before == NULL || str_cmp(before->item->name, b->item->name) < 0);
        ASSERT(b->item->extra == b);
        before = b;
    }
    store_check(&a->limits.store);
    population_check(a);
}
