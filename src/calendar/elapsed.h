/*
 * elapsed: how long it is between two stamps, exactly.
 *
 * Go keeps such a difference in 64 bits of nanoseconds, which end after 292 years; its zero time is
 * two thousand years ago. Seconds and nanoseconds have room for both.
 */
#pragma once

#include "base/timestamp.h"

struct elapsed {
    int64_t sec;  /* rounded down, so that nsec is never negative */
    int32_t nsec; /* 0 … 999,999,999 */
};

struct elapsed elapsed_from_ns(int64_t ns);
int64_t elapsed_to_ns(struct elapsed a); /* the nearest that fits */
struct elapsed elapsed_between(struct timestamp from, struct timestamp to);
struct elapsed elapsed_sub(struct elapsed a, struct elapsed b);
int elapsed_cmp(struct elapsed a, struct elapsed b);

/* The instant, in UTC. */
struct timestamp elapsed_after(struct timestamp from, struct elapsed a);
int elapsed_order(struct timestamp a,
                  struct timestamp b); /* which comes first; offsets do not matter */
/* The first microsecond that is not before `s`; USEC_NEVER when clocks do not count so far. */
usec_t elapsed_wake(struct timestamp s);
