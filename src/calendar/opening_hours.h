/*
 * opening_hours: when something is open: the intervals of recurrences, less those of others.
 *
 * Several openings together are open when one of them is; what one leaves out does not cut another.
 * Freezes cut all of them. Intervals that touch or overlap are one.
 *
 * A search does a bounded amount of work a call and goes on where it stopped: a rule of somebody
 * else must not cost the process its time.
 */
#pragma once

#include "calendar/recurrence.h"

#define OPENING_STEPS_MAX 10000u         /* recurrences asked in one call */
#define OPENING_STEPS_TOTAL_MAX 1000000u /* and in one search, after which it is given up */

struct opening_hours {
    const struct recurrence *open; /* borrowed, as all below: from whoever read them */
    uint32_t open_n;
    const struct recurrence *closed;
    uint32_t closed_n;
};

struct opening_plan {
    const struct opening_hours *const *hours;
    uint32_t hours_n;
    const struct opening_hours *const *freezes; /* shut while one of these is open */
    uint32_t freeze_n;
};

struct opening_state {
    bool open;
    usec_t until; /* the state is the same until then, and perhaps for longer */
};

enum opening_result {
    OPENING_FOUND,
    OPENING_NEVER,       /* not in RRULE_YEARS_MAX years */
    OPENING_AGAIN,       /* call again: this much work is enough for one turn */
    OPENING_TOO_COMPLEX, /* OPENING_STEPS_TOTAL_MAX are used up */
};

struct opening_search {
    usec_t at;
    usec_t limit;
    usec_t start; /* of the interval that was found; -1: not yet */
    uint32_t steps;
};

struct opening_state opening_at(const struct opening_plan *p, usec_t at);

struct opening_search opening_search_from(usec_t after);
/* The first open interval that ends after the search's beginning; one that is open then starts
 * there. An end of USEC_NEVER: it does not close in RRULE_YEARS_MAX years. To go on, search from
 * its end. */
NODISCARD
enum opening_result opening_next(const struct opening_plan *p, struct opening_search *search,
                                 struct interval *ret);
