/*
 * The controller of profiles as a part of the core: creation, end, and the callbacks of the core,
 * of external facts and of timers.
 */
#include "base/alloc.h"
#include "kinds/keys.h"
#include "profile/controller_internal.h"

bool controller_may_act(const struct controller *c)
{
    return c->active != NULL && core_may_decide(c->core);
}

void controller_schedule_turn(struct controller *c)
{
    if (controller_may_act(c)) {
        loop_timer_pull(&c->turn, loop_now(c->loop));
    }
}

/* ── callbacks of the core ─────────────────────────────────────────────────────────────────── */

static struct controller *controller_of(const struct core_part *p)
{
    return CONTAINER_OF((struct core_part *)(uintptr_t)p, struct controller, part);
}

static void controller_on_leading(struct core_part *p, bool leading)
{
    struct controller *c = controller_of(p);
    if (leading) {
        /* Drains and notifications ended when the last leadership did. No event need come for a
         * node that had one, so all nodes are decided. */
        turn_mark_all(c);
        alerts_inherit(c->alerts);
    } else {
        grant_drop_all(c);
        external_facts_drop_all_pods(c->external); /* only the leader watches pods */
        shuffle_drop_all(c->shuffle);
        alerts_drop_all(c->alerts);
    }
    controller_schedule_turn(c);
}

static void controller_on_node(struct core_part *p, struct store_item *item, const void *before,
                               bool gone)
{
    struct controller *c = controller_of(p);
    struct managed_node *m = item->extra;
    if (!gone) {
        fleet_on_change(c->fleet, item, before);
        if (m != NULL) {
            node_drain_set_rules(m);
        }
        return;
    }
    if (m != NULL) {
        managed_node_free(m);
    }
    external_facts_drop_pods(c->external, item->name);
    fleet_on_gone(c->fleet, item);
    controller_schedule_turn(c); /* another node may take its place */
}

static void controller_on_nodes(struct core_part *p)
{
    struct controller *c = controller_of(p);
    if (c->core->nodes.store.dirty_count > 0) {
        controller_schedule_turn(c);
    }
}

static void controller_on_synced(struct core_part *p)
{
    struct controller *c = controller_of(p);
    loop_timer_pull(&c->turn, loop_now(c->loop));
}

static bool controller_is_ready(const struct core_part *p, struct str *ret_why)
{
    const struct controller *c = controller_of(p);
    if (c->active == NULL) {
        *ret_why = c->config_error.n > 0 ? buf_str(&c->config_error)
                                         : STR("there is no configuration yet");
    } else if (!hypervisors_known(c)) {
        *ret_why = STR("the hypervisors are not known yet");
    }
    return c->active != NULL && hypervisors_known(c);
}

static bool controller_counts_nodes(const struct core_part *p)
{
    const struct controller *c = controller_of(p);
    return c->active != NULL && c->active->has_max_maintenance;
}

static bool controller_is_busy(const struct core_part *p)
{
    return controller_of(p)->stats.in_flight > 0 || controller_of(p)->altering > 0;
}

static void controller_on_arbiter(struct core_part *p)
{
    struct controller *c = controller_of(p);
    c->capacity_changed = true;
    c->all_reserved = false;
    turn_mark_all(c);
    controller_schedule_turn(c);
}

static void controller_on_capacity(struct core_part *p)
{
    struct controller *c = controller_of(p);
    c->capacity_changed = true;
    MAP_EACH (&c->core->nodes.store.items, entry) {
        struct store_item *item = map_item_value(entry);
        const struct managed_node *m = item->extra;
        if (m != NULL && (m->drain != NULL || m->grant != NULL)) {
            /* Its limit may be paused, or everything, or not any more. */
            store_mark(&c->core->nodes.store, item);
        }
    }
    controller_schedule_turn(c);
}

static void controller_on_lease_noted(struct core_part *p, uint64_t serial)
{
    grant_on_noted(controller_of(p), serial);
}

static void controller_on_drain_blocked(struct core_part *p)
{
    alerts_on_drain(controller_of(p)->alerts);
}

static void controller_on_request(struct core_part *p, const struct core_request_news *news)
{
    alerts_on_request(controller_of(p)->alerts, news);
}

static bool controller_disturbs(const struct core_part *p UNUSED, const struct store_item *item)
{
    return str_eq(node_label(item->object, KEY_STATE),
                  profile_state_name(PROFILE_STATE_MAINTENANCE));
}

static const struct core_part_ops controller_part_ops = {
    .on_node = controller_on_node,
    .on_nodes = controller_on_nodes,
    .on_synced = controller_on_synced,
    .on_leading = controller_on_leading,
    .on_arbiter = controller_on_arbiter,
    .on_capacity = controller_on_capacity,
    .on_lease_noted = controller_on_lease_noted,
    .on_drain_blocked = controller_on_drain_blocked,
    .on_request = controller_on_request,
    .disturbs = controller_disturbs,
    .is_ready = controller_is_ready,
    .counts_nodes = controller_counts_nodes,
    .is_busy = controller_is_busy,
};

/* ── callbacks of external facts and timers ────────────────────────────────────────────────── */

static void controller_on_facts(void *ctx, uint64_t instances)
{
    struct controller *c = ctx;
    c->changed |= instances;
    controller_schedule_turn(c);
}

/* Only this node is marked: the other nodes that wait see the change in the fleet's sum. */
static void controller_on_pods(void *ctx, struct str node)
{
    struct controller *c = ctx;
    struct store_item *item = store_find(&c->core->nodes.store, node);
    if (item != NULL) {
        store_mark(&c->core->nodes.store, item);
    }
    controller_schedule_turn(c);
}

/* The wait of some nodes has ended, or a maxMaintenance group may have a free place (skipAfter). */
static void controller_on_wake(void *ctx)
{
    struct controller *c = ctx;
    managed_node_wake_due(c);
    if (c->capacity_next != USEC_NEVER && c->capacity_next <= loop_wall(c->loop)) {
        c->capacity_changed = true;
    }
    usec_t next = MIN(managed_node_next_wake(c),
                      c->capacity_changed ? USEC_NEVER : controller_monotonic(c, c->capacity_next));
    if (next != USEC_NEVER) {
        loop_timer_pull(&c->wake, next);
    }
    controller_schedule_turn(c);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct controller *controller_new(struct core *core, const struct controller_config *config)
{
    struct controller *c = ALLOC_NEW(struct controller);
    struct loop *loop = core->loop;
    c->core = core;
    c->loop = loop;
    c->log = core->log;
    c->config = *config;
    c->capacity_next = USEC_NEVER;
    prioqueue_init(&c->waking, prio_by_wake);
    prioqueue_init(&c->wants_grant, prio_by_since);
    map_init(&c->wait_queues, loop_random(loop), loop_random(loop));
    lease_grants_init(&c->ledger, loop_random(loop));
    loop_timer_init(&c->turn, loop, controller_turn, c);
    loop_timer_init(&c->wake, loop, controller_on_wake, c);
    controller_metrics_init(&c->metrics, core->config.metrics);
    if (core->config.metrics != NULL) {
        metrics_on_collect(core->config.metrics, controller_view_collect, c);
    }
    c->fleet = fleet_new(&core->nodes.store);
    c->external = external_facts_new(loop, &(struct external_facts_config){
                                               .client = &core->client,
                                               .outbound = config->outbound,
                                               .files = config->files,
                                               .on_change = controller_on_facts,
                                               .on_pods = controller_on_pods,
                                               .ctx = c,
                                           });
    fleet_set_facts(c->fleet, external_facts_facts(c->external));
    c->shuffle = shuffle_new(&core->client, &c->metrics, c->log);
    notifier_init(&c->notify, loop, &core->client, config->outbound);
    c->alerts = alerts_new(c);
    core_join(core, &c->part, &controller_part_ops);
    if (!config->wait_for_config) {
        reload_activate(c, reload_default());
    }
    return c;
}

struct core *controller_core(const struct controller *c)
{
    return c->core;
}

void controller_free(struct controller *c)
{
    if (c == NULL) {
        return;
    }
    core_leave(&c->part);
    c->log = NULL; /* what ends from here on is not logged */
    if (c->metrics.registry != NULL) {
        metrics_off_collect(c->metrics.registry, controller_view_collect, c);
    }
    MAP_EACH (&c->core->nodes.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        if (item->extra != NULL) {
            managed_node_free(item->extra);
        }
    }
    ASSERT(c->stats.in_flight == 0 && c->granting == 0 && c->waking.n == 0 &&
           c->wants_grant.n == 0);
    ASSERT(map_count(&c->wait_queues) == 0);
    hypervisors_stop(c);
    alerts_free(c->alerts);
    shuffle_free(c->shuffle);
    external_facts_free(c->external);
    fleet_free(c->fleet);
    lease_grants_done(&c->ledger);
    prioqueue_done(&c->waking);
    prioqueue_done(&c->wants_grant);
    map_done(&c->wait_queues);
    reload_free(c->active);
    buf_done(&c->config_file);
    buf_done(&c->config_error);
    buf_done(&c->config_warnings);
    loop_timer_done(&c->wake);
    loop_timer_done(&c->turn);
    buf_done(&c->path);
    buf_done(&c->body);
    arena_done(&c->tmp);
    alloc_free(c);
}
