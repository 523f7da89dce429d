/*
 * The steps between a node that asks for maintenance and its patch: pods that were not watched are
 * read again, the Leases of staggers are taken, the reservations under MaintenanceLimits are made,
 * the grant is recorded in the leader's Lease, foreign systems are asked again, and only then may
 * the patch go out, on the version of the node that was recorded.
 *
 * In memory a grant counts from its beginning. Without election there is no other leader that could
 * read the record, and nothing is recorded.
 */
#include "base/alloc.h"
#include "profile/controller_internal.h"

#define GRANT_RETRY SECONDS(1) /* after another took the Lease first, or the ledger was full */
#define GRANT_CONFIRM_MAX                                                                          \
    SECONDS(40) /* a Prometheus that hangs fails after 30 s; others may use the place meanwhile */

struct str grant_owner(const struct managed_node *m)
{
    bool holds =
        m->grant != NULL && (m->grant->stage == GRANT_HELD || m->grant->stage == GRANT_CONFIRM);
    return holds ? buf_str(&m->grant->owner) : STR_NONE;
}

bool grant_is_confirming(const struct managed_node *m)
{
    return m->grant != NULL && m->grant->stage == GRANT_CONFIRM;
}

bool grant_is_pending(const struct grant *g)
{
    return g != NULL &&
           (g->stage == GRANT_PODS || g->stage == GRANT_LEASES || g->stage == GRANT_LIMITS ||
            g->stage == GRANT_RECORD || g->stage == GRANT_CONFIRM);
}

static void grant_set_stage(struct managed_node *m, enum grant_stage stage)
{
    struct controller *c = m->c;
    c->granting -= grant_is_pending(m->grant) ? 1 : 0;
    m->grant->stage = stage;
    c->granting += grant_is_pending(m->grant) ? 1 : 0;
}

void grant_end(struct managed_node *m)
{
    struct controller *c = m->c;
    struct grant *g = m->grant;
    if (g == NULL) {
        return;
    }
    grant_set_stage(m, GRANT_NONE);
    if (g->take != NULL) {
        stagger_take_cancel(STEAL(g->take));
    }
    fleet_ungrant(c->fleet, m->item->name);
    /* Removed from the server with the next write of the ledger. Until then the entry does no harm:
     * the node itself is newer. */
    lease_grants_remove(&c->ledger, m->item->name);
    m->outcome_unknown = false;
    m->grant = NULL;
    buf_done(&g->owner);
    arena_done(&g->memory);
    alloc_free(g);
}

static void grant_hold(struct managed_node *m)
{
    grant_set_stage(m, GRANT_HELD);
    store_mark(&m->c->core->nodes.store, m->item);
    controller_schedule_turn(m->c);
}

/* What the checks of the transition read from foreign systems. */
static void grant_note_facts(struct grant *g, const struct engine_profile *e, uint32_t transition)
{
    const struct engine_transition *t = &e->transitions[transition];
    const struct config_transition *config = &e->profile->states[e->state].transitions[transition];
    g->fact_n = 0;
    arena_reset(&g->memory);
    g->facts = ARENA_ARRAY(&g->memory, uint32_t, MAX(t->check_n, 1u));
    for (uint32_t i = 0; i < t->check_n; i++) {
        if (t->checks[i].plugin->asks_outside) {
            g->facts[g->fact_n++] = config->check.vars[i].index;
        }
    }
}

/* Every answer was asked for at that wall time or later. */
static bool grant_knows_facts(const struct managed_node *m, usec_t since)
{
    const struct facts *facts = external_facts_facts(m->c->external);
    usec_t wall = loop_wall(m->c->loop); /* it may have been set back */
    bool all = true;
    for (uint32_t i = 0; i < m->grant->fact_n; i++) {
        usec_t asked = facts_asked(facts, m->grant->facts[i]);
        all = all && asked >= since && asked <= wall;
    }
    return all;
}

/* The grant is recorded. What foreign systems said may not be true any more: they are asked again,
 * while the node's place is kept, before anything is done that cannot be undone. */
static void grant_confirm(struct managed_node *m)
{
    struct controller *c = m->c;
    struct grant *g = m->grant;
    if (g->fact_n == 0 || mutated(c->core->config.mutations, MUTATION_STALE_ANSWERS)) {
        grant_hold(m);
        return;
    }
    grant_set_stage(m, GRANT_CONFIRM);
    g->confirm_since = loop_wall(c->loop);
    g->confirm_until = loop_now(c->loop) + GRANT_CONFIRM_MAX;
    for (uint32_t i = 0; i < g->fact_n; i++) {
        external_facts_ask_anew(c->external, g->facts[i]);
    }
    managed_node_wake_at(m, g->confirm_until);
}

static void grant_recheck_confirm(struct managed_node *m, struct str wants_grant)
{
    usec_t now = loop_now(m->c->loop);
    if (!str_eq(wants_grant, buf_str(&m->grant->owner))) {
        grant_end(m);
    } else if (grant_knows_facts(m, m->grant->confirm_since)) {
        grant_hold(m);
    } else if (now >= m->grant->confirm_until) {
        grant_end(m);
        managed_node_wake_at(m, now + GRANT_RETRY);
    } else {
        managed_node_wake_at(m, m->grant->confirm_until);
    }
}

/* Records the grant on the node's version as it is now. */
static void grant_record(struct managed_node *m)
{
    struct controller *c = m->c;
    struct grant *g = m->grant;
    g->version = m->item->version;
    if (!c->core->config.elect || !c->active->has_max_maintenance) {
        grant_confirm(m);
        return;
    }
    if (!lease_grants_put(&c->ledger, m->item->name, buf_str(&g->owner), g->version)) {
        grant_end(m);
        managed_node_wake_at(m, loop_now(c->loop) + GRANT_RETRY);
        return;
    }
    grant_set_stage(m, GRANT_RECORD);
    g->serial = 0; /* known when the turn commits */
    controller_schedule_turn(c);
}

static void grant_on_take(void *ctx, const struct err *err);

static void grant_take_next(struct managed_node *m)
{
    struct controller *c = m->c;
    struct grant *g = m->grant;
    if (g->take_n == 0) {
        grant_set_stage(m, GRANT_LIMITS);
        if (node_limit_reserve(m, buf_str(&g->owner))) {
            grant_record(m);
        } else if (m->reserved == NULL) { /* somebody else asks under the node's uid */
            grant_end(m);
            managed_node_wake_at(m, loop_now(c->loop) + GRANT_RETRY);
        }
        return;
    }
    grant_set_stage(m, GRANT_LEASES);
    g->take = stagger_take(c->external, g->takes[--g->take_n], m->item->name, grant_on_take, m);
}

static void grant_on_take(void *ctx, const struct err *err)
{
    struct managed_node *m = ctx;
    struct controller *c = m->c;
    m->grant->take = NULL;
    if (err == NULL) {
        grant_take_next(m);
        return;
    }
    log_info(c->log, "a lease of a stagger could not be taken", KV_STR("node", m->item->name),
             KV_ERR(err));
    grant_end(m);
    managed_node_wake_at(m, loop_now(c->loop) + GRANT_RETRY);
}

void grant_on_reserved(struct managed_node *m)
{
    ASSERT(m->grant != NULL && m->grant->stage == GRANT_LIMITS);
    grant_record(m);
}

/* The node's pods are watched, or were read since the grant began. */
static bool grant_knows_pods(const struct managed_node *m)
{
    struct facts_affinity pods =
        facts_affinity(external_facts_facts(m->c->external), m->item->name);
    return pods.known && (pods.live || pods.asked >= m->grant->began);
}

static void grant_recheck_pods(struct managed_node *m, struct str wants_grant)
{
    if (!str_eq(wants_grant, buf_str(&m->grant->owner))) {
        grant_end(m);
    } else if (grant_knows_pods(m)) {
        grant_take_next(m);
    } else {
        external_facts_want(
            m->c->external,
            &(struct facts_want){ .kind = FACTS_AFFINITY, .node = m->item->name, .live = true });
    }
}

void grant_recheck(struct managed_node *m, struct str wants_grant)
{
    if (m->grant != NULL && m->grant->stage == GRANT_PODS) {
        grant_recheck_pods(m, wants_grant);
    } else if (grant_is_confirming(m)) {
        grant_recheck_confirm(m, wants_grant);
    }
}

void grant_begin(struct managed_node *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    const struct engine_profile *e = &effect->profiles[effect->grant_profile];
    const struct engine_transition *t = &e->transitions[effect->grant_transition];
    const struct config_transition *config =
        &e->profile->states[e->state].transitions[effect->grant_transition];
    ASSERT(m->grant == NULL);
    struct grant *g = ALLOC_NEW(struct grant);
    m->grant = g;
    buf_add(&g->owner, e->name);
    g->began = loop_wall(c->loop);
    grant_note_facts(g, e, effect->grant_transition);
    bool pods = false;
    for (uint32_t i = 0; i < t->check_n; i++) {
        pods = pods || t->checks[i].verdict.reads_pods;
    }
    for (uint32_t i = 0; i < t->check_n && g->take_n < CONTROLLER_TAKES_MAX; i++) {
        if (t->checks[i].verdict.answer == CHECK_PASS && t->checks[i].plugin->takes_lease) {
            g->takes[g->take_n++] = config->check.vars[i].index;
        }
    }
    if (t->target == PROFILE_STATE_MAINTENANCE) {
        fleet_grant(c->fleet, m->item->name, e->name);
    }
    if (pods) {
        grant_set_stage(m, GRANT_PODS);
        grant_recheck_pods(m, e->name);
    } else {
        grant_take_next(m);
    }
}

bool grant_allows_patch(struct managed_node *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    struct grant *g = m->grant;
    ASSERT(g != NULL && g->stage == GRANT_HELD);
    /* A patch that failed is sent again after a while, and a drain takes its time. The
     * configuration may be another by now, too. */
    grant_note_facts(g, &effect->profiles[effect->enters_profile], effect->enters_transition);
    if (!grant_knows_facts(m, loop_wall(c->loop) -
                                  MAX(config_refresh(&c->active->config), GRANT_CONFIRM_MAX)) &&
        !mutated(c->core->config.mutations, MUTATION_STALE_ANSWERS)) {
        grant_confirm(m);
        return false;
    }
    if (!c->core->config.elect || !c->active->has_max_maintenance ||
        g->version == m->item->version ||
        mutated(c->core->config.mutations, MUTATION_GRANT_UNRECORDED)) {
        return true;
    }
    grant_record(m);
    return false;
}

/* The node of a ledger entry whose grant waits for the ledger to be written; NULL otherwise. */
static struct managed_node *grant_recording_node(const struct controller *c,
                                                 const struct map_item *entry)
{
    const struct store_item *item = store_find(&c->core->nodes.store, map_item_name(entry));
    struct managed_node *m = item == NULL ? NULL : item->extra;
    return m != NULL && m->grant != NULL && m->grant->stage == GRANT_RECORD ? m : NULL;
}

void grant_commit(struct controller *c)
{
    if (!c->core->config.elect || !lease_is_held(&c->core->lease)) {
        return;
    }
    bool waits = false;
    MAP_EACH (&c->ledger.entries, entry) {
        const struct managed_node *m = grant_recording_node(c, entry);
        waits = waits || (m != NULL && m->grant->serial == 0);
    }
    if (!waits && !c->ledger.dirty) {
        return;
    }
    buf_reset(&c->body);
    lease_grants_print(&c->ledger, &c->body);
    c->ledger.dirty = false;
    /* Removals alone can wait. */
    uint64_t serial = lease_note(&c->core->lease, CORE_NOTE_GRANTS, buf_str(&c->body), waits);
    MAP_EACH (&c->ledger.entries, entry) {
        struct managed_node *m = grant_recording_node(c, entry);
        if (m != NULL && m->grant->serial == 0) {
            m->grant->serial = serial;
        }
    }
}

void grant_on_noted(struct controller *c, uint64_t serial)
{
    MAP_EACH (&c->ledger.entries, entry) {
        struct managed_node *m = grant_recording_node(c, entry);
        if (m != NULL && m->grant->serial != 0 && m->grant->serial <= serial) {
            grant_confirm(m);
        }
    }
}

void grant_drop_if_stale(struct managed_node *m)
{
    if (m->grant != NULL && m->grant->stage == GRANT_INHERITED &&
        m->item->version > m->grant->version) {
        grant_end(m);
    }
}

bool grant_resume(struct managed_node *m, const struct engine_effect *effect)
{
    const struct engine_profile *e = &effect->profiles[effect->grant_profile];
    struct str owner = e->name;
    if (m->grant->stage != GRANT_INHERITED || !str_eq(buf_str(&m->grant->owner), owner)) {
        return false;
    }
    if (node_limit_holds(m)) {
        grant_note_facts(m->grant, e, effect->grant_transition);
        grant_confirm(m);
        return false;
    }
    return !node_limit_has_refused(m);
}

/* Reads the grants that the last leader recorded. An entry whose node is newer than the recorded
 * version is dropped: its patch was applied, or would conflict. */
void grant_inherit_all(struct controller *c)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    c->grants_read = true;
    if (!c->core->config.elect) {
        return;
    }
    if (lease_grants_parse(&c->ledger, lease_read_note(&c->core->lease, CORE_NOTE_GRANTS, &tmp),
                           &err) < 0) {
        log_error(c->log, "the Lease's record of grants cannot be read; it is made anew",
                  KV_ERR(&err));
        lease_grants_clear(&c->ledger);
    }
    MAP_EACH (&c->ledger.entries, entry) {
        struct str name = map_item_name(entry);
        const struct lease_grant *e = lease_grants_find(&c->ledger, name);
        struct store_item *item = store_find(&c->core->nodes.store, name);
        if (item == NULL || item->version > e->version ||
            mutated(c->core->config.mutations, MUTATION_FORGET_GRANTS)) {
            lease_grants_remove(&c->ledger, name);
            continue;
        }
        struct managed_node *m = managed_node_get(c, item);
        ASSERT(m->grant == NULL);
        m->grant = ALLOC_NEW(struct grant);
        buf_add(&m->grant->owner, e->owner);
        m->grant->version = e->version;
        m->grant->stage = GRANT_INHERITED;
        m->outcome_unknown = true;
        fleet_grant(c->fleet, name, e->owner);
        node_limit_inherit(m, e->owner);
        store_mark(&c->core->nodes.store, item);
    }
}

/* Another leads: the recorded grants are the new leader's to handle. */
void grant_drop_all(struct controller *c)
{
    MAP_EACH (&c->core->nodes.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        struct managed_node *m = item->extra;
        if (m != NULL) {
            grant_end(m);
            node_limit_drop(m);
            turn_leave_queue(m);
            node_drain_stop(m);
            node_notify_free(m);
        }
    }
    lease_grants_clear(&c->ledger);
    c->grants_read = false;
    c->all_queued = false;
    c->all_reserved = false;
    if (c->core->arbiter != NULL) {
        arbiter_owner_synced(c->core->arbiter, ASK_OF_TARGET, false);
    }
}
