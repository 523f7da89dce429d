/*
 * window_rest: whether enough of a window is left for a visit to begin.
 *
 * A visit begins only if the window stays open for as long as visits of the object have taken, nine
 * times of ten, and for `minRemaining` in any case. But an estimate that no interval can hold would
 * keep everything from ever starting again, so it counts for at most half of the interval.
 */
#pragma once

#include "calendar/recurrence.h"

#define WINDOW_REST_KEPT 20u /* visits that the estimate rests on */

/* How long the last visits took; the newest replaces the oldest. A zeroed one knows none. */
struct window_rest_durations {
    usec_t items[WINDOW_REST_KEPT];
    uint32_t n;
    uint32_t next;
};

void window_rest_add(struct window_rest_durations *d, usec_t duration);
/* Nine of ten took no longer; 0: none is known. */
usec_t window_rest_estimate(const struct window_rest_durations *d);

enum window_rest_verdict {
    WINDOW_REST_ENOUGH,
    WINDOW_REST_TOO_LITTLE, /* another time, in a later interval */
    WINDOW_REST_NEVER,      /* the interval is shorter than minRemaining: no visit fits */
};

struct window_rest_answer {
    enum window_rest_verdict verdict;
    usec_t wanted; /* how much must be left */
    usec_t until;  /* wall: a visit may begin before this, in this interval */
};

/* `open` is the interval that is open at `now`. */
struct window_rest_answer window_rest_decide(struct interval open, usec_t now, usec_t min_remaining,
                                             usec_t estimate);
