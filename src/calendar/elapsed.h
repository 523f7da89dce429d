/*
 * elapsed: how long it is between two stamps, exactly.
 *
 * Go keeps such a difference in 64 bits of nanoseconds, which end after 292 years; its zero time is
 * two thousand years ago. Seconds and nanoseconds have room for both.
 */
#pragma once

#include "base/timestamp.h"

struct lapse {
    int64_t sec;  /* rounded down, so that nsec is never negative */
    int32_t nsec; /* 0 … 999,999,999 */
};

struct lapse lapse_from_ns(int64_t ns);
int64_t lapse_to_ns(struct lapse a); /* the nearest that fits */
struct lapse lapse_between(struct timestamp from, struct timestamp to);
struct lapse lapse_sub(struct lapse a, struct lapse b);
int lapse_cmp(struct lapse a, struct lapse b);

/* The instant, in UTC. */
struct timestamp lapse_after(struct timestamp from, struct lapse a);
int lapse_order(struct timestamp a,
                struct timestamp b); /* which comes first; offsets do not matter */
/* The first microsecond that is not before `s`; USEC_NEVER when clocks do not count so far. */
usec_t lapse_wake(struct timestamp s);
