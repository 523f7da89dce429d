/*
 * drain_rule: what decisions use of a MachineDrainRule, v1beta1 and v1beta2 alike, and which rules
 * of a namespace apply to one Machine (as drain/drain_rules.h has them).
 *
 * A rule that cannot be read is kept together with its error: Cluster API then fails every drain of
 * the namespace, whichever Machines the rule may mean.
 */
#pragma once

#include "drain/drain_rules.h"
#include "kube/store.h"

/* Both have to match; one without terms matches everything. */
struct drainrule_machines {
    struct selector machines;
    struct selector clusters;
};

struct drainrule {
    struct str name;
    struct drainrule_machines *machines;
    uint32_t n; /* 0: all Machines are meant */
    struct drain_rule rule;
    struct str error; /* why it cannot be used; empty = it can */
    struct str text;  /* all of the rule, to compare two */
};

/* Its ctx is not used. Items are named "namespace/name". */
extern const struct store_kind drainrule_kind;

/* The labels of a Machine and of its Cluster, packed (label_pack.h). */
struct drainrule_case {
    struct str machine;
    struct str cluster;
};
bool drainrule_matches(const struct drainrule *rule, const struct drainrule_case *whose);
/* `rules` are all of one namespace, in the order of their names. The result borrows from them, and
 * from `out`. */
void drainrule_collect(const struct drainrule *const *rules, uint32_t n,
                       const struct drainrule_case *whose, struct arena *out,
                       struct drain_rules *ret);
