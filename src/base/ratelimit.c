#include "base/ratelimit.h"

static usec_t ratelimit_step(const struct ratelimit *b)
{
    ASSERT(b->rate > 0);
    ASSERT(b->burst > 0);
    return SECONDS(1) / b->rate;
}

/* After one more event the bucket may be empty, but not below empty. */
usec_t ratelimit_ready_at(const struct ratelimit *b, usec_t now)
{
    usec_t step = ratelimit_step(b);
    return MAX(b->full_at, now) + step - (usec_t)b->burst * step;
}

void ratelimit_take(struct ratelimit *b, usec_t now)
{
    ratelimit_take_many(b, 1, now);
}

void ratelimit_take_many(struct ratelimit *b, uint32_t n, usec_t now)
{
    b->full_at = MAX(b->full_at, now) + (usec_t)n * ratelimit_step(b);
}
