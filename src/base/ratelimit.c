#include "base/ratelimit.h"

static usec_t bucket_step(const struct bucket *b)
{
    ASSERT(b->rate > 0);
    ASSERT(b->burst > 0);
    return SECONDS(1) / b->rate;
}

/* After one more is taken the bucket may be empty, but not more than that. */
usec_t bucket_ready_at(const struct bucket *b, usec_t now)
{
    usec_t step = bucket_step(b);
    return MAX(b->full_at, now) + step - (usec_t)b->burst * step;
}

void bucket_take(struct bucket *b, usec_t now)
{
    b->full_at = MAX(b->full_at, now) + bucket_step(b);
}
