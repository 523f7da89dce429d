#include "operation/window_rest.h"

#include "tests/check.h"

TEST(window_rest_estimates_by_nine_of_ten)
{
    struct window_rest_durations d = { 0 };
    CHECK_EQ(window_rest_estimate(&d), 0);
    window_rest_add(&d, MINUTES(7));
    CHECK_EQ(window_rest_estimate(&d), MINUTES(7));
    for (uint32_t i = 1; i <= 20; i++) {
        window_rest_add(&d, MINUTES(i)); /* the first one is forgotten */
    }
    CHECK_EQ(window_rest_estimate(&d), MINUTES(18));
    for (uint32_t i = 0; i < 18; i++) {
        window_rest_add(&d, MINUTES(1));
    }
    CHECK_EQ(window_rest_estimate(&d), MINUTES(1)); /* two that took long are no nine of ten */
}

TEST(window_rest_lets_a_visit_begin_while_enough_is_left)
{
    static const struct {
        usec_t length;
        usec_t min_remaining;
        usec_t estimate;
        usec_t wanted;
        enum window_rest_verdict at_start;
    } rows[] = {
        { HOURS(4), MINUTES(15), 0, MINUTES(15), WINDOW_REST_ENOUGH },
        { HOURS(4), MINUTES(15), MINUTES(40), MINUTES(40), WINDOW_REST_ENOUGH },
        { HOURS(4), MINUTES(15), HOURS(9), HOURS(2), WINDOW_REST_ENOUGH }, /* never for ever */
        { HOURS(1), MINUTES(45), 0, MINUTES(45), WINDOW_REST_ENOUGH },
        { HOURS(1), HOURS(1), 0, HOURS(1), WINDOW_REST_ENOUGH }, /* only at its very start */
        { HOURS(1), HOURS(2), 0, HOURS(1), WINDOW_REST_NEVER },
    };
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct interval open = { DAYS(1), DAYS(1) + rows[i].length };
        check_case(i);
        struct window_rest_answer a =
            window_rest_decide(open, open.start, rows[i].min_remaining, rows[i].estimate);
        CHECK_EQ(a.verdict, rows[i].at_start);
        CHECK_EQ(a.wanted, rows[i].wanted);
        if (a.verdict != WINDOW_REST_NEVER) {
            a = window_rest_decide(open, open.end - a.wanted, rows[i].min_remaining,
                                   rows[i].estimate);
            CHECK_EQ(a.verdict, WINDOW_REST_ENOUGH);
            a = window_rest_decide(open, open.end - a.wanted + 1, rows[i].min_remaining,
                                   rows[i].estimate);
            CHECK_EQ(a.verdict, WINDOW_REST_TOO_LITTLE);
        }
    }
}

TEST(window_rest_of_a_window_without_end_is_enough)
{
    struct interval open = { 0, USEC_NEVER };
    CHECK_EQ(window_rest_decide(open, DAYS(9), HOURS(1), HOURS(9)).verdict, WINDOW_REST_ENOUGH);
}
