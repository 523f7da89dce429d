#include "base/humantime.h"

#include "tests/check.h"

#define NOW SECONDS(1794792706) /* 2026-11-16T01:31:46Z, a Monday */

TEST(humantime_prints_spans_and_times)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CHECK_STR(humantime_span(-5, &a), "0s");
    CHECK_STR(humantime_span(SECONDS(59), &a), "59s");
    CHECK_STR(humantime_span(MINUTES(4), &a), "4m");
    CHECK_STR(humantime_span(HOURS(26) + SECONDS(3), &a), "1d2h");
    CHECK_STR(humantime_at(NOW, USEC_NEVER, &a), "");
    CHECK_STR(humantime_at(NOW, 0, &a), "");
    CHECK_STR(humantime_at(NOW, NOW, &a), "now");
    CHECK_STR(humantime_at(NOW, NOW + SECONDS(1) - 1, &a), "now");
    CHECK_STR(humantime_at(NOW, NOW + SECONDS(1), &a), "in 1s (Mon 01:31:47 UTC)");
    CHECK_STR(humantime_at(NOW, NOW + SECONDS(9), &a), "in 9s (Mon 01:31:55 UTC)");
    CHECK_STR(humantime_at(NOW, NOW + DAYS(40), &a), "in 40d (Sat Dec 26 2026, 01:31 UTC)");
    CHECK_STR(humantime_since(NOW, NOW - SECONDS(4) + 1, &a), "4s");
    CHECK_STR(humantime_since(NOW, NOW - SECONDS(4) - 1, &a), "5s");
    CHECK_STR(humantime_since(NOW, NOW + SECONDS(4), &a), "0s");
}
