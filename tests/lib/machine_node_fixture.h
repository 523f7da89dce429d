/*
 * machine_node_fixture: a Machine and its Node in a test of the bridge's rules, and a model of what
 * their edits do.
 *
 * Every edit that is applied must be of a key that the bridge may write (B7) and must change
 * something (no write without a change).
 */
#pragma once

#include "base/arena.h"
#include "bridge/rules.h"

struct machine_node_fixture {
    struct rules_options options;
    struct machine machine;
    struct cluster cluster;
    struct workload_node node;
    struct rules_facts facts; /* its pointers are set by machine_node_decide */
    bool gone;                /* there is no Cluster */
    usec_t leftover; /* given as both quiet times whenever the rules say that it is quiet */
    struct arena memory;
    struct rules_verdict verdict;
};

/* An enabled Machine "t/m1" of cluster "c1" with its hook; Node "n1" is seen, and in service. */
void machine_node_init(struct machine_node_fixture *p);
void machine_node_done(struct machine_node_fixture *p);

void machine_node_decide(struct machine_node_fixture *p);
/* What the last verdict wants becomes true. */
void machine_node_apply(struct machine_node_fixture *p);
/* Decides and applies until nothing is left to do, at most `most` times; says how many it took. */
uint32_t machine_node_settle(struct machine_node_fixture *p, uint32_t most);

/* Of the last verdict; NULL = it does not tell that. */
const struct rules_event_record *machine_node_event(const struct machine_node_fixture *p,
                                                    enum rules_event event);
bool machine_node_unchanged(const struct machine_node_fixture *p); /* it edits nothing */
