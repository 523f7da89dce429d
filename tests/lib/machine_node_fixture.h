/*
 * machine_node_fixture: a Machine and its Node in a test of the bridge's rules, and a model of what their edits do.
 *
 * Every edit that is applied must be of a key that the bridge may write (INV-7) and must change
 * something (no write without a change).
 */
#pragma once

#include "base/arena.h"
#include "bridge/rules.h"

struct pair {
    struct rules_options options;
    struct machine machine;
    struct cluster cluster;
    struct peer node;
    struct rules_facts facts; /* its pointers are set by pair_decide */
    bool gone;                /* there is no Cluster */
    usec_t quiet; /* given as both quiet times whenever the rules say that it is quiet */
    struct arena memory;
    struct rules_verdict verdict;
};

/* An enabled Machine "t/m1" of cluster "c1" with its hook; Node "n1" is seen, and in service. */
void pair_init(struct pair *p);
void pair_done(struct pair *p);

void pair_decide(struct pair *p);
/* What the last verdict wants becomes true. */
void pair_apply(struct pair *p);
/* Decides and applies until nothing is left to do, at most `most` times; says how many it took. */
uint32_t pair_settle(struct pair *p, uint32_t most);

/* Of the last verdict; NULL = it does not tell that. */
const struct rules_news *pair_news(const struct pair *p, enum rules_event event);
bool pair_still(const struct pair *p); /* it edits nothing */
