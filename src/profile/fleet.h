/*
 * fleet: what decisions about one node use of all the others, kept up to date change by change, so
 * that no decision walks over all nodes.
 *
 * Every check instance that looks at other nodes has a bit (its index modulo 64); fleet_changed
 * tells which of their answers may be different now. Invariants: the counts are those that a walk
 * over the store would find (fleet_check).
 */
#pragma once

#include "format/semver.h"
#include "kube/store.h"
#include "profile/config.h"
#include "profile/node_data.h"
#include "profile/profile_counts.h"

struct fleet;

/* The store's items are struct node (kube/node.h) with all labels, and the data annotation. The
 * configuration is borrowed until the next fleet_configure; nodes are counted anew then. */
struct fleet *fleet_new(const struct store *store);
void fleet_free(struct fleet *f); /* accepts NULL */
void fleet_configure(struct fleet *f, const struct config *config);

/* Where the answers about pods are. With them, fleet_changed sums up what affinity checks read of
 * all nodes, once for all checks, and reports their bits only when the sum changes. `facts` is
 * borrowed for as long as the fleet lives. */
void fleet_set_facts(struct fleet *f, const struct facts *facts);

/* From store.on_change (before NULL = new) and store.on_gone. */
void fleet_on_change(struct fleet *f, const struct store_item *item, const void *before);
void fleet_on_gone(struct fleet *f, const struct store_item *item);

/* A granted node counts as in maintenance until fleet_ungrant. Grants of unknown nodes count as
 * well: the nodes may come. */
void fleet_grant(struct fleet *f, struct str node, struct str profile);
void fleet_ungrant(struct fleet *f, struct str node);
bool fleet_is_granted(const struct fleet *f, struct str node);

/* The bits of check instances whose answer may have changed since the last call. Those of
 * maxMaintenance are not among them: whenever one node enters or leaves maintenance all waiting
 * nodes would be decided again, and nothing would change for all but the first of each queue. */
uint64_t fleet_changed(struct fleet *f);
/* Whether what maxMaintenance counts has changed since the last call. */
bool fleet_usage_changed(struct fleet *f);

uint32_t fleet_count(const struct fleet *f);
uint32_t
fleet_in_maintenance(const struct fleet *f); /* by the state label, granted, or with our cordon */
/* By the data annotation: nodes whose entry of that profile is in that state. */
uint32_t fleet_profile_count(const struct fleet *f, uint32_t profile, enum profile_state state);

/* For the checks; `index` is that of a check instance of the right kind. */

/* anyLabel: how many nodes have it. */
uint32_t fleet_any_label(const struct fleet *f, uint32_t index);

/* clusterSemver: the newest version there is, never below 0.1.0, and its text. */
struct str fleet_semver(const struct fleet *f, uint32_t index, struct str profile,
                        struct semver *ret);

/* affinity: how many nodes are operational in that profile; and what is known of the pods of those
 * that wait. */
uint32_t fleet_operational(const struct fleet *f, struct str profile);
uint32_t fleet_waiting_pods(const struct fleet *f, struct str profile, const struct facts *facts,
                            struct profile_counts_pods *ret);

/* How many waiting nodes have a kept answer about their pods, and no watch. */
uint32_t fleet_unwatched_pods(const struct fleet *f, struct str profile, const struct facts *facts);
/* Whether the node waits in some profile: then other waiting nodes read its pods. */
bool fleet_is_waiting(struct fleet *f, const struct store_item *item);

struct fleet_group_query {
    uint32_t index;
    const struct str *values; /* of the group's keys; an empty one does not matter */
    struct str self;          /* the node that asks: not counted while it is granted */
    bool granted;             /* `self` is granted, whatever the fleet knows */
    struct timestamp now;
};

struct fleet_group_usage {
    uint32_t count;
    usec_t next;           /* when the first of them is not counted any more */
    struct str unreadable; /* a node whose time in maintenance is needed and cannot be read */
};

/* maxMaintenance: the nodes in maintenance that count for that group. */
struct fleet_group_usage fleet_group_usage(const struct fleet *f,
                                           const struct fleet_group_query *ask);

/* Counts all nodes again and compares, unless nothing has changed since the last time. */
void fleet_check(struct fleet *f);
