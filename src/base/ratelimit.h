/*
 * ratelimit: so many a second, after so many at once.
 *
 * Pure: time is passed in. One number is kept, the time at which the bucket would be full again.
 */
#pragma once

#include "base/defs.h"

struct ratelimit {
    uint32_t rate;  /* a second */
    uint32_t burst; /* at once */
    usec_t full_at; /* monotonic */
};

/* When one may be taken; `now` or before: now. */
usec_t ratelimit_ready_at(const struct ratelimit *b, usec_t now);
/* Takes one. It may be taken ahead of its time: then all others wait longer. */
void ratelimit_take(struct ratelimit *b, usec_t now);
