/*
 * limit: the arithmetic of MaintenanceLimits: how much one allows, and which of several apply.
 *
 * Pure. G are the targets with a reservation, U those that are unavailable by a policy of the
 * limit; both count against what the limit allows of its population.
 */
#pragma once

#include "kinds/maintenance_limit.h"

/* The first policy that such an object meets, or NULL. */
const struct limit_policy *limit_match_policy(const struct limit *l, uint32_t traits);

/* How many may be disturbed of a population, whatever is unavailable. */
uint32_t limit_nominal(const struct limit *l, uint32_t population);

struct limit_counts {
    uint32_t population;
    uint32_t granted;     /* |G| */
    uint32_t unavailable; /* |U|; G not counted, unless counting twice is wanted */
};

/* status.limit */
uint32_t limit_effective(const struct limit *l, const struct limit_counts *t);

struct limit_target {
    bool granted;     /* in G */
    bool unavailable; /* in U */
};

/* One more grant stays within the limit; pause and gap are other questions. */
bool limit_allows_one_more(const struct limit *l, const struct limit_counts *t,
                           struct limit_target target);
/* More is granted than may be, or would be if it were asked for now. */
bool limit_is_overcommitted(const struct limit *l, const struct limit_counts *t);
/* Wall: when the gap after the last operation is over. Stamps are whole seconds, rounded down, so
 * one more is waited for. 0 = there is none. */
usec_t limit_gap_end(const struct limit *l);

/* What limits that apply together ask for, in order of their names: the smallest time limit
 * that there is wins, the first that configures a preparation gives it. The texts are the limits'.
 */
void limit_merge_options(const struct limit *const *limits, uint32_t n, struct limit_options *ret);
