/*
 * pod_policy: which pods of a node a drain takes, leaves, waits for, or is barred by.
 *
 * One pure function answers everybody who has to know it. They differ in what they put in:
 *
 *   the drain                 the flags of its drain_spec and all it knows of rules and namespaces
 *   "is this Node drained?"   DRAIN_USE_POD_LABEL; a pod that would be waited for is still there
 *   "would a budget block?"   DRAIN_USE_POD_LABEL, and no labels of namespaces: a rule that asks
 * for them spares no pod; pods that would be waited for are checked as well
 */
#pragma once

#include "drain/drain.h"
#include "drain/drain_rules.h"
#include "drain/pod.h"

enum pod_fate {
    POD_FATE_GOES,
    POD_FATE_STAYS,     /* neither sent away nor waited for */
    POD_FATE_WAITED,    /* waited for, never evicted */
    POD_FATE_FORBIDDEN, /* must not be evicted, and nothing is while the pod is there */
};

struct pod_policy {
    uint32_t flags;              /* DRAIN_EVICT_FINISHED, DRAIN_USE_POD_LABEL, DRAIN_FORBID_… */
    bool forcing;                /* as after drain_force */
    const struct selector *pods; /* other pods are left alone; NULL: all pods are meant */
    const struct drain_rules *rules; /* of the node; NULL: it has none. Cluster API's ways apply to
                                        a node with rules, even to one with an empty list */
    bool rules_unreadable;           /* the node has rules, and they cannot be parsed */
    bool namespaces_awaited;         /* the first list of namespaces may still come */
};

struct pod_verdict {
    enum pod_fate fate;
    enum drain_wait wait;          /* why, for POD_FATE_WAITED and POD_FATE_FORBIDDEN */
    const struct drain_rule *rule; /* the rule that decides, from policy->rules; NULL: none does */
    /* The pod is to stay on its node, be it one of those that are meant or not: so do its volumes.
     * A finished pod that nobody takes away has nothing mounted, and is not among these. */
    bool keeps_volumes;
};

/* `namespace_labels` are those of the pod's namespace as format/label_pack.h packs them; NULL: they
 * are not known. */
struct pod_verdict pod_policy_decide(const struct pod_policy *policy, const struct drain_pod *pod,
                                     const struct str *namespace_labels);
