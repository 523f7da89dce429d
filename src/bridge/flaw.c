/*
 * flaw: the known bugs of kube/mutation.h that concern what the rules are given. Only tests switch
 * them on.
 */
#include "bridge/bridge_room.h"

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
    const struct edit_key *book = edit_find(node, /* label= */ false, RULEBOOK_KEY);
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
