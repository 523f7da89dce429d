#include "calendar/elapsed.h"
#include "tests/check.h"

PROPERTY(elapsed_keeps_nanoseconds)
{
    int64_t ns = (int64_t)rng_next(rng);
    struct elapsed a = elapsed_from_ns(ns);
    CHECK(a.nsec >= 0 && a.nsec < 1000000000);
    CHECK_EQ(elapsed_to_ns(a), ns);
    struct timestamp from = { .sec = rng_below(rng, 4000000000),
                              .nsec = (int32_t)rng_below(rng, 9) };
    struct timestamp to = elapsed_after(from, a);
    CHECK_EQ(elapsed_cmp(elapsed_between(from, to), a), 0);
    CHECK_EQ(elapsed_order(from, to), ns > 0 ? -1 : ns < 0);
    CHECK_EQ(elapsed_cmp(elapsed_sub(a, a), (struct elapsed){ 0 }), 0);
}

TEST(elapsed_keeps_the_ends_of_the_range)
{
    CHECK_EQ(elapsed_to_ns(elapsed_from_ns(INT64_MIN)), INT64_MIN);
    CHECK_EQ(elapsed_to_ns(elapsed_from_ns(INT64_MAX)), INT64_MAX);
    CHECK_EQ(elapsed_to_ns(elapsed_between(timestamp_zero, (struct timestamp){ 0 })), INT64_MAX);
    CHECK_EQ(elapsed_to_ns(elapsed_between((struct timestamp){ 0 }, timestamp_zero)), INT64_MIN);
}

TEST(elapsed_wakes_in_the_first_microsecond_that_is_late_enough)
{
    CHECK_EQ(elapsed_wake((struct timestamp){ .sec = 5 }), 5000000);
    CHECK_EQ(elapsed_wake((struct timestamp){ .sec = 5, .nsec = 1 }), 5000001);
    CHECK_EQ(elapsed_wake((struct timestamp){ .sec = 5, .nsec = 999999999 }), 6000000);
    CHECK_EQ(elapsed_wake((struct timestamp){ .sec = -5, .nsec = 1000 }), -4999999);
    CHECK_EQ(elapsed_wake((struct timestamp){ .sec = INT64_MAX / 1000 }), USEC_NEVER);
    CHECK_EQ(elapsed_wake((struct timestamp){ .sec = INT64_MIN / 1000 }), INT64_MIN);
}
