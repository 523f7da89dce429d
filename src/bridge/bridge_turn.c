/*
 * bridge_turn: one turn of the bridge. Nodes that have changed mark their Machines; each marked
 * Machine is decided from its facts by the rules, and the difference is sent; then hosts, then
 * links.
 */
#include "bridge/bridge_internal.h"
#include "kinds/keys.h"
#include "bridge/approval_route.h"

/* ── facts ─────────────────────────────────────────────────────────────────────────────────── */

/* Of two Machines that name one Node by mistake, only the owner in the index has it. */
static const struct store_item *machine_node(const struct machine_state *ms)
{
    struct link *link = ms->cluster->link;
    if (link == NULL || !link_fresh(link) || !machine_owns_node(ms)) {
        return NULL;
    }
    return store_find(link_nodes(link), machine_object(ms)->node);
}

static void machine_node_facts(struct machine_state *ms, struct rules_facts *ret)
{
    struct link *link = ms->cluster->link;
    const struct store_item *node = machine_node(ms);
    if (link == NULL || !link_fresh(link)) {
        ret->sight = RULES_NODE_UNKNOWN;
    } else if (node != NULL) {
        ret->sight = RULES_NODE_SEEN;
        ret->node = node->object;
        ms->missed_at = 0;
        ms->absent = false;
    } else {
        ret->sight = ms->absent ? RULES_NODE_ABSENT : RULES_NODE_MISSED;
    }
    routing_facts(ms, ret);
}

/* How long a used approval has been left over, at least 1 µs; 0 = it is not. */
static usec_t machine_leftover_for(usec_t *since, bool leftover, usec_t now)
{
    if (!leftover) {
        *since = 0;
        return 0;
    }
    if (*since == 0) {
        *since = now;
    }
    return MAX(now - *since, (usec_t)1);
}

/* The Machine is approved, an approval is in flight, or the reply to an approval was lost. */
static bool machine_may_be_approved(const struct machine_state *ms)
{
    bool unsure = ms->approval_version > 0 && ms->item->version <= ms->approval_version &&
                  loop_now(ms->bridge->loop) < ms->approval_unsure_until;
    return rules_approved(machine_object(ms)) || unsure ||
           (ms->in_flight[IN_FLIGHT_MACHINE] != NULL && ms->in_flight[IN_FLIGHT_MACHINE]->approves);
}

static void machine_control_plane_facts(struct machine_state *ms, struct rules_facts *ret)
{
    usec_t now = loop_now(ms->bridge->loop);
    LIST_EACH (&ms->cluster->machines, link) {
        const struct machine_state *other = CONTAINER_OF(link, struct machine_state, link);
        const struct machine *m = machine_object(other);
        if (other == ms || !m->control_plane) {
            continue;
        }
        bool taken = machine_may_be_approved(other);
        if (taken && other->approval_unsure_until > now) {
            machine_wake_at(ms, other->approval_unsure_until);
        }
        ret->members++;
        ret->taken += taken ? 1 : 0;
        ret->available += !taken && !m->deleting && m->node.n > 0 && !m->unhealthy ? 1 : 0;
    }
}

void machine_facts(struct machine_state *ms, struct arena *out, struct rules_facts *ret)
{
    struct bridge *b = ms->bridge;
    struct machine_drain_rules rules;
    usec_t now = loop_now(b->loop);
    const struct machine *m = machine_object(ms);
    *ret = (struct rules_facts){
        .machine = m,
        .cluster = cluster_object(ms->cluster),
        .wall = server_clock_wall(&b->client.clock),
    };
    machine_node_facts(ms, ret);
    machine_drain_rules(ms, out, &rules);
    ret->drain_rules = rules.text;
    ret->rules_trouble = rules.trouble;
    usec_t away = ms->cluster->link == NULL ? 0 : link_unreachable_since(ms->cluster->link);
    ret->unreachable_for = away == 0 ? 0 : MAX(now - away, (usec_t)1);
    bool seen = ret->sight == RULES_NODE_SEEN;
    ret->deletion_leftover = machine_leftover_for(
        &ms->deletion_leftover_at, seen && rules_deletion_leftover(m, ret->node), now);
    ret->maintenance_leftover = machine_leftover_for(
        &ms->maintenance_leftover_at, seen && rules_maintenance_leftover(m, ret->node), now);
    if (m->control_plane) {
        machine_control_plane_facts(ms, ret);
    }
}

/* ── one Machine ───────────────────────────────────────────────────────────────────────────── */

/* An Event that is true now is sent when it becomes true, not in every turn. */
static void machine_send_events(struct machine_state *ms, const struct rules_verdict *verdict)
{
    uint32_t now = 0;
    for (uint32_t i = 0; i < verdict->event_n; i++) {
        const struct rules_event_record *record = &verdict->events[i];
        if (record->when != RULES_NOW) {
            continue;
        }
        uint32_t bit = 1u << record->event;
        if ((ms->events_sent & bit) == 0) {
            bridge_event_for_machine(ms, record->event, record->note);
        }
        now |= bit;
    }
    ms->events_sent = now;
}

/* False: too many patches are in flight; the Machine stays marked. */
static bool machine_send_patch(struct machine_state *ms, const struct rules_verdict *verdict,
                               const struct meta_patch *patch)
{
    struct bridge *b = ms->bridge;
    if (patch->n == 0 || !in_flight_may_write(ms, IN_FLIGHT_MACHINE, ms->item->version)) {
        return true;
    }
    if (!client_open(&b->client)) {
        machine_wake_at(ms, client_open_at(&b->client));
        return true;
    }
    if (b->patches_in_flight >= BRIDGE_IN_FLIGHT_MAX) {
        return false;
    }
    in_flight_patch_machine(ms, verdict, patch);
    return true;
}

/* KEY_STATUS is written to the Machine before a request is written to the Node: if somebody
 * disables the Machine meanwhile, or while no bridge runs, the status says that a Node is to be
 * cleaned. */
static bool machine_status_written(const struct machine_state *ms,
                                   const struct rules_verdict *verdict)
{
    static const struct str asks[] = {
        STR_INIT(KEYS_LEGACY "machine-deleted"),
        STR_INIT(KEYS_LEGACY "machine-maintenance"),
    };
    const struct meta_patch_key *status = meta_patch_find(&verdict->machine, false, KEY_STATUS);
    if (machine_object(ms)->status.p != NULL || status == NULL || status->remove) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
        const struct meta_patch_key *ask = meta_patch_find(&verdict->node, true, asks[i]);
        if (ask != NULL && !ask->remove) {
            return false;
        }
    }
    return true;
}

/* KEY_STATUS is removed only when nothing is left to do at the Node. */
static void machine_keep_status(const struct machine_state *ms, const struct rules_verdict *verdict,
                                struct meta_patch *machine)
{
    if (ms->in_flight[IN_FLIGHT_NODE] == NULL && verdict->node.n == 0) {
        return;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < machine->n; i++) {
        const struct meta_patch_key *key = &machine->keys[i];
        if (!(key->remove && str_eq(key->key, KEY_STATUS))) {
            machine->keys[n++] = *key;
        }
    }
    machine->n = n;
}

static bool machine_decide(struct machine_state *ms)
{
    struct bridge *b = ms->bridge;
    struct rules_facts facts;
    struct rules_verdict verdict;
    if (!cluster_is_ours(ms->cluster)) {
        ms->keeps_link = false;
        ms->decided = false;
        return true;
    }
    struct rules_options options = b->config.rules;
    machine_facts(ms, &b->tmp, &facts);
    mutate_facts(ms, &facts, &options);
    rules_decide(&options, &facts, &b->tmp, &verdict);
    mutate_verdict(ms, &verdict);
    /* A patch in flight may write a request to the Node that is to be removed afterwards. */
    bool keeps_link = verdict.keeps_link || ms->in_flight[IN_FLIGHT_NODE] != NULL;
    if (ms->keeps_link != keeps_link) {
        ms->keeps_link = keeps_link;
        cluster_mark(ms->cluster);
    }
    ms->decided = true;
    ms->phase = verdict.phase;
    machine_send_events(ms, &verdict);
    if (verdict.next != USEC_NEVER) {
        machine_wake_at(ms, loop_now(b->loop) + MAX(verdict.next - facts.wall, MSECONDS(1)));
    }
    if (verdict.confirm_absent && facts.sight == RULES_NODE_MISSED) {
        absence_check_start(ms);
    }
    routing_step(ms, &facts, &verdict);
    const struct store_item *node = facts.sight == RULES_NODE_SEEN ? machine_node(ms) : NULL;
    if (verdict.node.n > 0 && node != NULL && machine_status_written(ms, &verdict) &&
        in_flight_may_write(ms, IN_FLIGHT_NODE, node->version)) {
        in_flight_patch_node(ms, node, &verdict);
    }
    struct meta_patch machine = verdict.machine;
    machine_keep_status(ms, &verdict, &machine);
    if (b->config.metal3) {
        metal3_step_machine(ms, &machine);
    }
    return machine_send_patch(ms, &verdict, &machine);
}

/* ── Nodes ─────────────────────────────────────────────────────────────────────────────────── */

/* Warns of a Node that no Machine of its own cluster names, and that names one of another. */
static void cluster_check_mismatch(struct cluster_state *cs, const struct store_item *item)
{
    struct bridge *b = cs->bridge;
    const struct workload_node *node = item->object;
    if (node->machine.n == 0 || node->namespace.n == 0) {
        return;
    }
    buf_reset(&b->key);
    buf_printf(&b->key, STR_FMT "/" STR_FMT, STR_ARG(node->namespace), STR_ARG(node->machine));
    const struct store_item *machine = store_find(&b->machines.store, buf_str(&b->key));
    const struct machine_state *ms = machine == NULL ? NULL : machine->extra;
    if (ms == NULL || ms->cluster == cs) {
        return; /* of its own cluster: its nodeRef may still come */
    }
    bridge_event_for_cluster(cs, RULES_EVENT_MISMATCH,
                             arena_printf(&b->tmp,
                                          "Node " STR_FMT " names Machine " STR_FMT
                                          ", which belongs to another cluster; it is ignored",
                                          STR_ARG(item->name), STR_ARG(buf_str(&b->key))));
}

/* Several Clusters may share one API server, and each link sees the Nodes of all. So a Node is
 * cleaned only if it carries a request whose Machine is gone or has another Node. With a filter the
 * Machine may exist and not be seen, so nothing is cleaned. */
static bool orphan_node_is_ours(const struct cluster_state *cs, const struct store_item *item)
{
    const struct bridge *b = cs->bridge;
    const struct workload_node *node = item->object;
    const struct str requests[] = { node->deletion_request, node->maintenance_request };
    bool ours = false;
    if (b->config.watch_filter.n > 0 ||
        (b->config.namespace.n > 0 && !str_eq(node->namespace, b->config.namespace))) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        if (requests[i].n == 0) {
            continue;
        }
        const struct machine_state *owner = machine_of_request(b, requests[i]);
        if (owner != NULL && owner->cluster != cs) {
            return false;
        }
        ours = true;
    }
    return ours;
}

static void cluster_check_nodes(struct cluster_state *cs)
{
    if (cs->link == NULL || !link_fresh(cs->link)) {
        return;
    }
    struct store *nodes = link_nodes(cs->link);
    struct store_item *item;
    while ((item = store_take(nodes)) != NULL) {
        struct machine_state *ms = machine_of_node(cs, item->name);
        const struct cluster *cluster = cluster_object(cs);
        if (ms != NULL) {
            machine_mark(ms);
            continue;
        }
        cluster_check_mismatch(cs, item);
        routing_mark_node(cs, item->name);
        struct meta_patch patch = { 0 };
        rules_orphan_node(item->object, &patch);
        if (cs->routing != NULL && cs->routing->state == ROUTING_SERVED) {
            approval_orphan_node(item->object, &patch);
        }
        if (patch.n > 0 && cluster != NULL && !cluster->paused && orphan_node_is_ours(cs, item)) {
            in_flight_patch_orphan(cs, item, &patch);
        }
    }
    routing_check(cs);
}

/* ── the turn ──────────────────────────────────────────────────────────────────────────────── */

static void bridge_mark_due(struct bridge *b)
{
    usec_t now = loop_now(b->loop);
    struct prioqueue_item *first;
    while ((first = prioqueue_first(&b->wake)) != NULL) {
        struct machine_state *ms = CONTAINER_OF(first, struct machine_state, wake);
        if (ms->at > now) {
            return;
        }
        prioqueue_take(&b->wake, first);
        store_mark(&b->machines.store, ms->item);
    }
}

static void bridge_step_clusters(struct bridge *b, void (*step)(struct cluster_state *cs),
                                 bool keep)
{
    struct list batch;
    list_move(&batch, &b->dirty_clusters);
    while (!list_empty(&batch)) {
        struct cluster_state *cs = CONTAINER_OF(batch.next, struct cluster_state, dirty);
        list_del(&cs->dirty);
        if (keep) {
            list_add(&b->dirty_clusters, &cs->dirty);
        }
        step(cs);
    }
}

static void cluster_finish_turn(struct cluster_state *cs)
{
    cluster_update_link(cs);
    cluster_free_if_idle(cs);
}

static void bridge_decide_machines(struct bridge *b)
{
    struct store_item *item;
    while ((item = store_take(&b->machines.store)) != NULL) {
        arena_reset(&b->tmp);
        if (!machine_decide(item->extra)) {
            store_mark(&b->machines.store, item); /* the next reply wakes the turn */
            return;
        }
    }
}

/* This replica leads from now on: everything is decided anew. */
static void bridge_start_acting(struct bridge *b)
{
    MAP_EACH (&b->machines.store.items, entry) {
        store_mark(&b->machines.store, map_item_value(entry));
    }
    MAP_EACH (&b->by_cluster, entry) {
        cluster_mark(map_item_value(entry));
    }
    MAP_EACH (&b->hosts.store.items, entry) {
        store_mark(&b->hosts.store, map_item_value(entry));
    }
}

/* Another replica leads, with links of its own. */
static void bridge_stop_acting(struct bridge *b)
{
    MAP_EACH (&b->by_cluster, entry) {
        cluster_disconnect(map_item_value(entry));
    }
}

void bridge_turn(void *ctx)
{
    struct bridge *b = ctx;
    bool acts = bridge_may_act(b);
    if (acts && !b->acting) {
        bridge_start_acting(b);
    } else if (!acts && b->acting) {
        bridge_stop_acting(b);
    }
    b->acting = acts;
    if (!acts) {
        return;
    }
    bridge_mark_due(b);
    bridge_step_clusters(b, cluster_check_nodes, /* keep= */ true);
    bridge_decide_machines(b);
    if (b->config.metal3) {
        metal3_step_hosts(b);
    }
    bridge_step_clusters(b, cluster_finish_turn, /* keep= */ false);
    arena_reset(&b->tmp);
    struct prioqueue_item *first = prioqueue_first(&b->wake);
    if (first != NULL) {
        loop_timer_pull(&b->turn, CONTAINER_OF(first, struct machine_state, wake)->at);
    }
}
