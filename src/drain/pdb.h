/*
 * pdb: what a drain uses of a PodDisruptionBudget.
 */
#pragma once

#include "drain/pod.h"
#include "format/selector.h"

struct drain_budget {
    struct str space;
    struct selector selector;
    struct str selector_text; /* canonical, to compare */
    int64_t allowed;          /* status.disruptionsAllowed */
    int64_t healthy;
    int64_t desired;
    bool counted;            /* the status is that of the present spec */
    bool unhealthy_may_go;   /* unhealthyPodEvictionPolicy: AlwaysAllow */
    const struct str *spent; /* names in status.disruptedPods: what the server let go lately */
    uint32_t spent_count;
};

extern const struct store_kind drain_budget_kind;

bool drain_budget_covers(const struct drain_budget *b, struct str space,
                         const struct drain_pod *pod);
/* The server lets the pod go whatever the budget allows, and counts no disruption. */
bool drain_budget_exempts(const struct drain_budget *b, const struct drain_pod *pod);
bool drain_budget_has_spent(const struct drain_budget *b, struct str pod);
/* Both cover the same pods. */
bool drain_budget_same_cover(const struct drain_budget *a, const struct drain_budget *b);
