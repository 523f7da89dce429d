/*
 * ratelimit: a token bucket: so many events a second, after a burst of so many at once.
 *
 * Pure: time is passed in. The only state is the time at which the bucket would be full again.
 */
#pragma once

#include "base/defs.h"

struct ratelimit {
    uint32_t rate;  /* a second */
    uint32_t burst; /* at once */
    usec_t full_at; /* monotonic */
};

/* When the next event may happen; `now` or earlier means at once. */
usec_t ratelimit_ready_at(const struct ratelimit *b, usec_t now);
/* Counts one event. An event that comes before its time makes all later ones wait longer. */
void ratelimit_take(struct ratelimit *b, usec_t now);
/* Counts so many; more than the burst at once are let through, and paid for afterwards. */
void ratelimit_take_many(struct ratelimit *b, uint32_t n, usec_t now);
