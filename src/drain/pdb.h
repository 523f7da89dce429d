/*
 * pdb: the projection of a PodDisruptionBudget that drains and safety checks decide by.
 */
#pragma once

#include "drain/pod.h"
#include "format/selector.h"

struct pdb {
    struct str namespace;
    struct selector selector;
    struct str selector_text; /* canonical, to compare */
    int64_t allowed;          /* status.disruptionsAllowed */
    int64_t healthy;
    int64_t desired;
    int64_t expected;            /* status.expectedPods: how many pods it is about */
    bool status_current;         /* the status is that of the present spec */
    bool unhealthy_may_go;       /* unhealthyPodEvictionPolicy: AlwaysAllow */
    const struct str *disrupted; /* names in status.disruptedPods: what the server let go lately */
    uint32_t disrupted_count;
};

extern const struct store_kind pdb_kind;

bool pdb_covers(const struct pdb *b, struct str namespace, const struct drain_pod *pod);
/* The server evicts the pod whatever the budget allows, and counts no disruption. */
bool pdb_exempts(const struct pdb *b, const struct drain_pod *pod);
bool pdb_has_disrupted(const struct pdb *b, struct str pod);
/* Both cover the same pods. */
bool pdb_same_selector(const struct pdb *a, const struct pdb *b);
