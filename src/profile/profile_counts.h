/*
 * profile_counts: how many nodes of one profile are in which state, and who waits for maintenance.
 *
 * A node that waits looks at the pods of all others that wait (the check affinity). With thousands
 * of them that is a sum which is kept, not a walk for each: profile_counts_refresh makes it, once a
 * turn, and profile_counts_pods uses it as long as nothing has changed since.
 */
#pragma once

#include "kube/store.h"
#include "profile/facts.h"
#include "profile/node_labels.h"

#define PROFILE_COUNTS_UNKNOWN_MAX                                                                 \
    32u /* asked for at a time; each node asks for its own besides                                 \
         */

/* What is known of the pods of those that wait. Where one goes first, nothing else matters. */
struct profile_counts_pods {
    const struct store_item *without; /* has none that prefer operational nodes; NULL: all have */
    bool without_live;                /* they are watched */
    const struct store_item *broken;  /* cannot be told; NULL: none */
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

/* How many of those that wait are known, and not watched; for people, as it walks over all. */
uint32_t profile_counts_unwatched(const struct profile_counts *s, const struct facts *facts);
void profile_counts_pods(const struct profile_counts *s, const struct facts *facts,
                         struct profile_counts_pods *ret);
/* Answers whether the sum says something else to those who wait. */
bool profile_counts_refresh(struct profile_counts *s, const struct facts *facts);
