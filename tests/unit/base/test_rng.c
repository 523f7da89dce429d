#include "base/rng.h"
#include "tests/check.h"

TEST(rng_is_a_function_of_its_seed)
{
    struct rng a;
    struct rng b;
    struct rng other;
    rng_init(&a, 42);
    rng_init(&b, 42);
    rng_init(&other, 43);
    bool differs = false;
    for (int i = 0; i < 100; i++) {
        uint64_t n = rng_next(&a);
        CHECK_EQ(n, rng_next(&b));
        differs = differs || n != rng_next(&other);
    }
    CHECK(differs);
}

TEST(rng_chance_is_about_what_it_says)
{
    struct rng rng;
    rng_init(&rng, 1);
    int hits = 0;
    for (int i = 0; i < 10000; i++) {
        hits += rng_chance(&rng, 250) ? 1 : 0;
        CHECK(!rng_chance(&rng, 0));
        CHECK(rng_chance(&rng, 1000));
    }
    CHECK(hits > 2200 && hits < 2800);
}

PROPERTY(rng_stays_within_its_bounds_and_reaches_them)
{
    uint32_t limit = 1 + rng_below(rng, 6);
    bool seen[6] = { 0 };
    for (int i = 0; i < 300; i++) {
        uint32_t n = rng_below(rng, limit);
        CHECK(n < limit);
        seen[n] = true;
        usec_t us = rng_usec(rng, -5, 5);
        CHECK(us >= -5 && us <= 5);
    }
    for (uint32_t i = 0; i < limit; i++) {
        CHECK(seen[i]);
    }
    CHECK_EQ(rng_usec(rng, 7, 7), 7);
}
