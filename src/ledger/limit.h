/*
 * limit: the arithmetic of MaintenanceLimits: how much one allows, and which of several apply.
 *
 * Pure. G are the targets with a reservation, U those that are unavailable by a policy of the
 * limit; both count against what the limit allows of its population.
 */
#pragma once

#include "kinds/maintenance_limit.h"

/* The first policy that an object with these traits meets, or NULL. */
const struct limit_policy *limit_match_policy(const struct limit *l, uint32_t traits);

/* How many of a population may be disturbed, whatever is unavailable. */
uint32_t limit_nominal(const struct limit *l, uint32_t population);

struct limit_counts {
    uint32_t population;
    uint32_t granted;     /* |G| */
    uint32_t unavailable; /* |U|; without G, unless --legacy-double-count */
};

/* status.limit */
uint32_t limit_effective(const struct limit *l, const struct limit_counts *t);

struct limit_target {
    bool granted;     /* in G */
    bool unavailable; /* in U */
};

/* One more grant stays within the limit; pause and gap are not looked at. */
bool limit_allows_one_more(const struct limit *l, const struct limit_counts *t,
                           struct limit_target target);
/* Something is granted, and together with what is unavailable it exceeds the nominal limit. */
bool limit_is_overcommitted(const struct limit *l, const struct limit_counts *t);
/* Wall: when the gap after the last grant or release is over. Their times are whole seconds,
 * rounded down, so one second is added. 0 = there is no gap. */
usec_t limit_gap_end(const struct limit *l);

/* The options of limits that apply together, given in order of their names: the smallest time limit
 * wins, and the preparation is that of the first limit that configures one. Texts are borrowed from
 * the limits. */
void limit_merge_options(const struct limit *const *limits, uint32_t n, struct limit_options *ret);
