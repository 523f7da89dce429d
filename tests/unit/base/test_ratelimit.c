#include "base/ratelimit.h"

#include "tests/check.h"

TEST(ratelimit_gives_its_burst_at_once_and_then_its_rate)
{
    struct ratelimit b = { .rate = 20, .burst = 3 };
    usec_t now = SECONDS(100);
    for (int i = 0; i < 3; i++) {
        CHECK(ratelimit_ready_at(&b, now) <= now);
        ratelimit_take(&b, now);
    }
    CHECK_EQ(ratelimit_ready_at(&b, now), now + MSECONDS(50));
    now += MSECONDS(49);
    CHECK_EQ(ratelimit_ready_at(&b, now), now + MSECONDS(1)); /* asking takes nothing */
    now += MSECONDS(1);
    CHECK(ratelimit_ready_at(&b, now) <= now);
    ratelimit_take(&b, now);
    CHECK_EQ(ratelimit_ready_at(&b, now), now + MSECONDS(50));
}

TEST(ratelimit_counts_many_as_so_many_single_ones)
{
    struct ratelimit one = { .rate = 10, .burst = 5 };
    struct ratelimit many = one;
    for (int i = 0; i < 7; i++) {
        ratelimit_take(&one, SECONDS(1));
    }
    ratelimit_take_many(&many, 7, SECONDS(1));
    CHECK_EQ(many.full_at, one.full_at);
    CHECK_EQ(ratelimit_ready_at(&many, SECONDS(1)), SECONDS(1) + MSECONDS(300));
}

TEST(ratelimit_fills_up_again_but_never_over)
{
    struct ratelimit b = { .rate = 10, .burst = 2 };
    usec_t now = SECONDS(1);
    ratelimit_take(&b, now);
    ratelimit_take(&b, now);
    now += HOURS(1);
    ratelimit_take(&b, now);
    CHECK(ratelimit_ready_at(&b, now) <= now);
    ratelimit_take(&b, now);
    CHECK_EQ(ratelimit_ready_at(&b, now), now + MSECONDS(100));
}

TEST(ratelimit_makes_all_wait_for_what_was_taken_ahead)
{
    struct ratelimit b = { .rate = 10, .burst = 1 };
    usec_t now = SECONDS(1);
    for (int i = 0; i < 4; i++) {
        ratelimit_take(&b, now);
    }
    CHECK_EQ(ratelimit_ready_at(&b, now), now + MSECONDS(400));
}

/* Whatever the callers do, no stretch of time sees more than the burst and the rate. */
PROPERTY(ratelimit_holds_its_rate_over_any_stretch)
{
    enum { TAKEN_MAX = 64 };
    struct ratelimit b = { .rate = 1 + rng_below(rng, 100), .burst = 1 + rng_below(rng, 10) };
    usec_t step = SECONDS(1) / b.rate;
    usec_t taken[TAKEN_MAX];
    usec_t now = rng_usec(rng, 0, SECONDS(5));
    for (uint32_t n = 0; n < TAKEN_MAX; n++) {
        now = MAX(now, ratelimit_ready_at(&b, now));
        ratelimit_take(&b, now);
        taken[n] = now;
        if (n >= b.burst) {
            CHECK(now - taken[n - b.burst] >= step);
        }
        now += rng_chance(rng, 700) ? 0 : rng_usec(rng, 0, SECONDS(1));
    }
    CHECK(taken[TAKEN_MAX - 1] - taken[0] >= (TAKEN_MAX - (usec_t)b.burst) * step);
}
