/*
 * mutations: the known bugs of base/mutation.h that concern what the rules are given. Only tests
 * switch them on.
 */
#include "bridge/bridge_internal.h"
#include "kinds/keys.h"

static bool flawed(const struct berth *at, enum mutation m)
{
    return mutated(at->bridge->config.mutations, m);
}

/* A Node of any cluster that says that it belongs to this Machine; another cluster's first. */
static const struct peer *flaw_claimant(const struct berth *at)
{
    const struct machine *m = berth_machine(at);
    const struct peer *found = NULL;
    MAP_EACH (&at->bridge->yards, y_entry) {
        const struct yard *y = map_item_value(y_entry);
        if (y->link == NULL || !link_fresh(y->link)) {
            continue;
        }
        MAP_EACH (&link_nodes(y->link)->items, entry) {
            const struct store_item *item = map_item_value(entry);
            const struct peer *node = item->object;
            bool claims = str_eq(node->machine, m->name) && str_eq(node->space, m->space);
            found = claims && (found == NULL || y != at->yard) ? node : found;
        }
    }
    return found;
}

static void flaw_node(const struct berth *at, struct rules_facts *facts)
{
    /* Where the Node's own cluster is out of reach, patches to it cannot be sent at all. */
    bool believes = flawed(at, MUTATION_PAIR_BY_NODE) && facts->sight != RULES_UNKNOWN;
    const struct peer *claimant = believes ? flaw_claimant(at) : NULL;
    if (claimant != NULL) {
        facts->sight = RULES_SEEN;
        facts->node = claimant;
    }
    if (flawed(at, MUTATION_HOOK_UNAPPROVED) && facts->node != NULL &&
        facts->node->machine_deleted) {
        struct peer *node = ARENA_NEW(&at->bridge->tmp, struct peer);
        *node = *facts->node;
        node->approve_deletion = true;
        node->deletion_approved_for = STR_NONE;
        facts->node = node;
    }
    if (flawed(at, MUTATION_LINK_DEAF) && facts->sight == RULES_UNKNOWN && at->yard->link != NULL) {
        facts->sight = RULES_ABSENT;
    }
}

static void flaw_machine(const struct berth *at, struct rules_facts *facts)
{
    struct machine *machine = ARENA_NEW(&at->bridge->tmp, struct machine);
    *machine = *facts->machine;
    facts->machine = machine;
    if (flawed(at, MUTATION_HOOK_AGAIN)) {
        machine->released = STR_NONE;
    }
    if (flawed(at, MUTATION_WRITE_PAUSED)) {
        machine->paused = false;
    }
    if (flawed(at, MUTATION_HOLD_EARLY) && machine->hold_max != USEC_NEVER) {
        machine->hold_max /= 2;
    }
    if (flawed(at, MUTATION_WRITE_PAUSED) && facts->cluster != NULL) {
        struct cluster *cluster = ARENA_NEW(&at->bridge->tmp, struct cluster);
        *cluster = *facts->cluster;
        cluster->paused = false;
        facts->cluster = cluster;
    }
}

void berth_flaw(struct berth *at, struct rules_facts *facts, struct rules_options *options)
{
    if (at->bridge->config.mutations == 0) {
        return;
    }
    flaw_machine(at, facts);
    flaw_node(at, facts);
    if (flawed(at, MUTATION_HOOK_AWAY) && facts->sight == RULES_UNKNOWN) {
        options->away_max = 1;
        facts->away = MAX(facts->away, (usec_t)1);
    }
    if (flawed(at, MUTATION_APPROVED_BEFORE)) {
        options->strict_approval = true;
    }
    if (flawed(at, MUTATION_HOLD_EARLY)) {
        options->hold_max /= 2;
    }
    if (flawed(at, MUTATION_MEMBERS_AT_ONCE)) {
        facts->taken = 0;
        facts->available = facts->members;
    }
}

/* What becomes of the drain rules in a patch of the Node. */
static void flaw_rules(const struct berth *at, struct edit *node)
{
    const struct edit_key *book = edit_find(node, /* label= */ false, DRAIN_RULES_ANNOTATION);
    if (book == NULL) {
        return;
    }
    bool dropped = book->remove ? flawed(at, MUTATION_RULES_STAY)
                                : flawed(at, MUTATION_RULES_LEFT_OUT) ||
                                      (flawed(at, MUTATION_RULES_ONCE) && node->n == 1);
    if (dropped) {
        ASSERT(book == &node->keys[node->n - 1]); /* they come last */
        node->n--;
    }
}

void berth_flaw_verdict(struct berth *at, struct rules_verdict *verdict)
{
    if (flawed(at, MUTATION_MARKS_STAY) && !berth_machine(at)->enabled) {
        verdict->node.n = 0;
        verdict->keeps_link = false;
    }
    flaw_rules(at, &verdict->node);
}

/* ── hosts ─────────────────────────────────────────────────────────────────────────────────── */

static void flaw_host_machine(const struct berth *at, struct machine *machine)
{
    struct link *link = at->yard->link;
    if (flawed(at, MUTATION_HOST_UNAPPROVED) && machine->request == MACHINE_REQUEST_REQUESTED) {
        machine->request = MACHINE_REQUEST_APPROVED;
    }
    if (flawed(at, MUTATION_HOST_ON_AWAY) && (link == NULL || !link_fresh(link))) {
        machine->request = MACHINE_REQUEST_NONE;
        machine->approved_aside = false;
    }
}

static void flaw_host(const struct berth *at, struct bmhost *host)
{
    const struct machine *m = berth_machine(at);
    if (flawed(at, MUTATION_HOST_OF_OTHERS)) {
        host->consumer_kind = m->infra_kind;
        host->consumer_name = m->infra_name;
        host->consumer_space = m->space;
    }
    if (flawed(at, MUTATION_HOST_UNPROVISIONED)) {
        host->provisioned = true;
    }
    if (flawed(at, MUTATION_HOST_PAUSED)) {
        host->paused = false;
    }
}

void hosts_flaw(struct berth *at, struct power_facts *facts, struct power_options *options)
{
    if (at == NULL || at->bridge->config.mutations == 0) {
        return;
    }
    struct arena *tmp = &at->bridge->tmp;
    struct machine *machine = ARENA_NEW(tmp, struct machine);
    *machine = *facts->machine;
    flaw_host_machine(at, machine);
    facts->machine = machine;
    if (facts->host != NULL) {
        struct bmhost *host = ARENA_NEW(tmp, struct bmhost);
        *host = *facts->host;
        flaw_host(at, host);
        facts->host = host;
    }
    if (flawed(at, MUTATION_HOST_UNDRAINED)) {
        options->require_drained = false;
    }
}

/* Takes one key out of a patch, if it is there to be set. */
static bool flaw_drop(struct edit *e, struct str key)
{
    for (uint32_t i = 0; i < e->n; i++) {
        if (str_eq(e->keys[i].key, key) && !e->keys[i].remove) {
            e->keys[i] = e->keys[--e->n];
            return true;
        }
    }
    return false;
}

void hosts_flaw_verdict(struct bridge *b, const struct power_facts *facts,
                        struct power_verdict *verdict)
{
    mutations_t set = b->config.mutations;
    if (set == 0) {
        return;
    }
    bool told = facts->machine != NULL && facts->machine->power.p != NULL;
    if (mutated(set, MUTATION_HOST_LEFT_OFF) && facts->machine == NULL) {
        verdict->host.n = 0;
    }
    if (mutated(set, MUTATION_HOST_NOT_AGAIN) && told && flaw_drop(&verdict->host, KEY_REBOOT)) {
        verdict->host.n = 0;
    }
    if (mutated(set, MUTATION_HOST_UNOWNED)) {
        (void)flaw_drop(&verdict->host, KEY_REBOOT_OWNER);
    }
    if (mutated(set, MUTATION_HOST_STRIPPED) && verdict->host.n > 0) {
        edit_remove(&verdict->host, /* label= */ false, STR("reboot.metal3.io/somebody"));
    }
    if (mutated(set, MUTATION_HOST_POWER_STALE) && told) {
        verdict->machine.n = 0;
    }
}
