/*
 * mutations: the known bugs of base/mutation.h that change what the bridge's rules are given and
 * what they answer. Only builds with the option `mutations` compile this file.
 */
#include "bridge/bridge_internal.h"
#include "kinds/keys.h"

static bool mutates(const struct machine_state *ms, enum mutation m)
{
    return mutated(ms->bridge->config.mutations, m);
}

/* A Node of any cluster that says that it belongs to this Machine; another cluster's first. */
static const struct workload_node *mutate_claimant(const struct machine_state *ms)
{
    const struct machine *m = machine_object(ms);
    const struct workload_node *found = NULL;
    MAP_EACH (&ms->bridge->by_cluster, cs_entry) {
        const struct cluster_state *cs = map_item_value(cs_entry);
        if (cs->link == NULL || !link_fresh(cs->link)) {
            continue;
        }
        MAP_EACH (&link_nodes(cs->link)->items, entry) {
            const struct store_item *item = map_item_value(entry);
            const struct workload_node *node = item->object;
            bool claims = str_eq(node->machine, m->name) && str_eq(node->namespace, m->namespace);
            found = claims && (found == NULL || cs != ms->cluster) ? node : found;
        }
    }
    return found;
}

static void mutate_node(const struct machine_state *ms, struct rules_facts *facts)
{
    /* Where the Node's own cluster is out of reach, patches to it cannot be sent at all. */
    bool believes = mutates(ms, MUTATION_PAIR_BY_NODE) && facts->sight != RULES_NODE_UNKNOWN;
    const struct workload_node *claimant = believes ? mutate_claimant(ms) : NULL;
    if (claimant != NULL) {
        facts->sight = RULES_NODE_SEEN;
        facts->node = claimant;
    }
    if (mutates(ms, MUTATION_HOOK_UNAPPROVED) && facts->node != NULL &&
        facts->node->machine_deleted) {
        struct workload_node *node = ARENA_NEW(&ms->bridge->tmp, struct workload_node);
        *node = *facts->node;
        node->approve_deletion = true;
        node->deletion_approved_for = STR_NONE;
        facts->node = node;
    }
    if (mutates(ms, MUTATION_LINK_DEAF) && facts->sight == RULES_NODE_UNKNOWN &&
        ms->cluster->link != NULL) {
        facts->sight = RULES_NODE_ABSENT;
    }
}

static void mutate_machine(const struct machine_state *ms, struct rules_facts *facts)
{
    struct machine *machine = ARENA_NEW(&ms->bridge->tmp, struct machine);
    *machine = *facts->machine;
    facts->machine = machine;
    if (mutates(ms, MUTATION_HOOK_AGAIN)) {
        machine->released = STR_NONE;
    }
    if (mutates(ms, MUTATION_WRITE_PAUSED)) {
        machine->paused = false;
    }
    if (mutates(ms, MUTATION_HOLD_EARLY) && machine->hold_max != USEC_NEVER) {
        machine->hold_max /= 2;
    }
    if (mutates(ms, MUTATION_WRITE_PAUSED) && facts->cluster != NULL) {
        struct cluster *cluster = ARENA_NEW(&ms->bridge->tmp, struct cluster);
        *cluster = *facts->cluster;
        cluster->paused = false;
        facts->cluster = cluster;
    }
}

void mutate_facts(struct machine_state *ms, struct rules_facts *facts,
                  struct rules_options *options)
{
    if (ms->bridge->config.mutations == 0) {
        return;
    }
    mutate_machine(ms, facts);
    mutate_node(ms, facts);
    if (mutates(ms, MUTATION_HOOK_AWAY) && facts->sight == RULES_NODE_UNKNOWN) {
        options->unreachable_max = 1;
        facts->unreachable_for = MAX(facts->unreachable_for, (usec_t)1);
    }
    if (mutates(ms, MUTATION_APPROVED_BEFORE)) {
        options->strict_approval = true;
    }
    if (mutates(ms, MUTATION_HOLD_EARLY)) {
        options->hold_max /= 2;
    }
    if (mutates(ms, MUTATION_MEMBERS_AT_ONCE)) {
        facts->taken = 0;
        facts->available = facts->members;
    }
}

/* What becomes of the drain rules in a patch of the Node. */
static void mutate_rules(const struct machine_state *ms, struct meta_patch *node)
{
    const struct meta_patch_key *drain_rules =
        meta_patch_find(node, /* label= */ false, KEY_DRAIN_RULES);
    if (drain_rules == NULL) {
        return;
    }
    bool dropped = drain_rules->remove ? mutates(ms, MUTATION_RULES_STAY)
                                       : mutates(ms, MUTATION_RULES_LEFT_OUT) ||
                                             (mutates(ms, MUTATION_RULES_ONCE) && node->n == 1);
    if (dropped) {
        ASSERT(drain_rules == &node->keys[node->n - 1]); /* they come last */
        node->n--;
    }
}

void mutate_verdict(struct machine_state *ms, struct rules_verdict *verdict)
{
    if (mutates(ms, MUTATION_MARKS_STAY) && !machine_object(ms)->enabled) {
        verdict->node.n = 0;
        verdict->keeps_link = false;
    }
    mutate_rules(ms, &verdict->node);
}

/* ── hosts ─────────────────────────────────────────────────────────────────────────────────── */

static void mutate_host_machine(const struct machine_state *ms, struct machine *machine)
{
    struct link *link = ms->cluster->link;
    if (mutates(ms, MUTATION_HOST_UNAPPROVED) && machine->request == MACHINE_REQUEST_REQUESTED) {
        machine->request = MACHINE_REQUEST_APPROVED;
    }
    if (mutates(ms, MUTATION_HOST_ON_AWAY) && (link == NULL || !link_fresh(link))) {
        machine->request = MACHINE_REQUEST_NONE;
        machine->approved_by_annotation = false;
    }
}

static void mutate_host(const struct machine_state *ms, struct metal3_host *host)
{
    const struct machine *m = machine_object(ms);
    if (mutates(ms, MUTATION_HOST_OF_OTHERS)) {
        host->consumer_kind = m->infra_kind;
        host->consumer_name = m->infra_name;
        host->consumer_namespace = m->namespace;
    }
    if (mutates(ms, MUTATION_HOST_UNPROVISIONED)) {
        host->provisioned = true;
    }
    if (mutates(ms, MUTATION_HOST_PAUSED)) {
        host->paused = false;
    }
}

void mutate_power_facts(struct machine_state *ms, struct power_facts *facts,
                        struct power_options *options)
{
    if (ms == NULL || ms->bridge->config.mutations == 0) {
        return;
    }
    struct arena *tmp = &ms->bridge->tmp;
    struct machine *machine = ARENA_NEW(tmp, struct machine);
    *machine = *facts->machine;
    mutate_host_machine(ms, machine);
    facts->machine = machine;
    if (facts->host != NULL) {
        struct metal3_host *host = ARENA_NEW(tmp, struct metal3_host);
        *host = *facts->host;
        mutate_host(ms, host);
        facts->host = host;
    }
    if (mutates(ms, MUTATION_HOST_UNDRAINED)) {
        options->require_drained = false;
    }
}

/* Takes one key out of a patch, if it is there to be set. */
static bool mutate_drop(struct meta_patch *e, struct str key)
{
    for (uint32_t i = 0; i < e->n; i++) {
        if (str_eq(e->keys[i].key, key) && !e->keys[i].remove) {
            e->keys[i] = e->keys[--e->n];
            return true;
        }
    }
    return false;
}

void mutate_power_verdict(struct bridge *b, const struct power_facts *facts,
                          struct power_verdict *verdict)
{
    mutations_t set = b->config.mutations;
    if (set == 0) {
        return;
    }
    bool has_power = facts->machine != NULL && facts->machine->power.p != NULL;
    if (mutated(set, MUTATION_HOST_LEFT_OFF) && facts->machine == NULL) {
        verdict->host.n = 0;
    }
    if (mutated(set, MUTATION_HOST_NOT_AGAIN) && has_power &&
        mutate_drop(&verdict->host, KEY_REBOOT)) {
        verdict->host.n = 0;
    }
    if (mutated(set, MUTATION_HOST_UNOWNED)) {
        (void)mutate_drop(&verdict->host, KEY_REBOOT_OWNER);
    }
    if (mutated(set, MUTATION_HOST_STRIPPED) && verdict->host.n > 0) {
        meta_patch_remove(&verdict->host, /* label= */ false, STR("reboot.metal3.io/somebody"));
    }
    if (mutated(set, MUTATION_HOST_POWER_STALE) && has_power) {
        verdict->machine.n = 0;
    }
}
