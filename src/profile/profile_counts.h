/*
 * profile_counts: how many nodes of one profile are in which state, and which wait for maintenance.
 *
 * The check affinity reads, for a node that waits, the pods of all others that wait. With thousands
 * of nodes that is a kept sum and not a walk for each: profile_counts_refresh makes it, once a
 * turn, and profile_counts_pods uses it as long as nothing has changed since.
 */
#pragma once

#include "kube/store.h"
#include "profile/facts.h"
#include "profile/node_labels.h"

#define PROFILE_COUNTS_UNKNOWN_MAX                                                                 \
    32u /* asked for at a time; each node asks for its own besides                                 \
         */

/* What is known of the pods, of nodes that wait, that prefer operational nodes. If `without` is
 * set, the rest does not matter. */
struct profile_counts_pods {
    const struct store_item *without; /* a node that has no such pods; NULL: none */
    bool without_live;                /* they are watched */
    const struct store_item *broken;  /* a node whose pods could not be read; NULL: none */
    const struct store_item *unknown[PROFILE_COUNTS_UNKNOWN_MAX];
    uint32_t unknown_n; /* not all, if there are more */
};

struct profile_counts {
    uint32_t counts[PROFILE_STATE_COUNT];
    const struct store_item **waiting; /* counts[PROFILE_STATE_REQUIRED] of them, in no order */
    uint32_t waiting_cap;
    uint64_t changes;               /* of `waiting` */
    struct profile_counts_pods sum; /* as of: */
    uint64_t sum_changes;
    uint64_t sum_facts;
    const struct facts *sum_of; /* NULL: there is none */
};

/* `memory` is for `waiting`, which is not kept without it. */
void profile_counts_add(struct profile_counts *s, enum profile_state state,
                        const struct store_item *item, struct arena *memory);
void profile_counts_remove(struct profile_counts *s, enum profile_state state,
                           const struct store_item *item);

/* How many waiting nodes have a kept answer and no watch; walks over all, so only for people. */
uint32_t profile_counts_unwatched(const struct profile_counts *s, const struct facts *facts);
void profile_counts_pods(const struct profile_counts *s, const struct facts *facts,
                         struct profile_counts_pods *ret);
/* Returns whether the sum has changed for the nodes that wait. */
bool profile_counts_refresh(struct profile_counts *s, const struct facts *facts);
