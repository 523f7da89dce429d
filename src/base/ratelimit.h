/*
 * ratelimit: so many a second, after so many at once.
 *
 * Pure: time is passed in. One number is kept, the time at which the bucket would be full again.
 */
#pragma once

#include "base/defs.h"

struct bucket {
    uint32_t rate;  /* a second */
    uint32_t burst; /* at once */
    usec_t full_at; /* monotonic */
};

/* When one may be taken; `now` or before: now. */
usec_t bucket_ready_at(const struct bucket *b, usec_t now);
/* Takes one. It may be taken ahead of its time: then all others wait longer. */
void bucket_take(struct bucket *b, usec_t now);
