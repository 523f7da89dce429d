#include "operation/due.h"

#include "tests/check.h"

static struct due_rule one_shot(void)
{
    return (struct due_rule){ .revision = STR("r2"),
                              .retries = 2,
                              .backoff = { SECONDS(30), 2, MINUTES(15) } };
}

static struct due_history ended(enum due_result result, const char *revision, uint32_t attempts)
{
    return (struct due_history){ .result = result,
                                 .revision = str_from(revision),
                                 .attempts = attempts,
                                 .ended = HOURS(1),
                                 .success = result == DUE_RESULT_SUCCEEDED ? str_from(revision)
                                                                           : STR_NONE };
}

TEST(due_runs_a_one_shot_until_it_succeeds_at_the_revision)
{
    struct due_rule rule = one_shot();
    struct due_history never = { 0 };
    CHECK_EQ(due_decide(&rule, &never, HOURS(2)).state, DUE_NOW);
    CHECK_EQ(due_decide(&rule, &never, HOURS(2)).attempt, 1);
    struct due_history old = ended(DUE_RESULT_SUCCEEDED, "r1", 0);
    CHECK_EQ(due_decide(&rule, &old, HOURS(2)).state, DUE_NOW);
    struct due_history done = ended(DUE_RESULT_SUCCEEDED, "r2", 0);
    CHECK_EQ(due_decide(&rule, &done, HOURS(2)).state, DUE_SUCCEEDED);
    struct due_history skipped = ended(DUE_RESULT_SKIPPED, "r2", 0);
    CHECK_EQ(due_decide(&rule, &skipped, HOURS(2)).state, DUE_SKIPPED);
    rule.rerun_at = HOURS(1) + 1;
    CHECK_EQ(due_decide(&rule, &done, HOURS(2)).state, DUE_NOW);
    rule.rerun_at = HOURS(1);
    CHECK_EQ(due_decide(&rule, &done, HOURS(2)).state, DUE_SUCCEEDED);
}

TEST(due_counts_the_last_success_not_all_of_them)
{
    struct due_rule rule = one_shot();
    struct due_history back = ended(DUE_RESULT_FAILED, "r3", 1);
    back.success = STR("r2"); /* r2 succeeded, then r3 failed: r2 is asked for again */
    CHECK_EQ(due_decide(&rule, &back, HOURS(2)).state, DUE_NOW);
}

TEST(due_repeats_failures_with_growing_waits_and_gives_up)
{
    static const struct {
        uint32_t attempts;
        usec_t wait;
    } rows[] = { { 1, SECONDS(30) }, { 2, SECONDS(60) } };
    struct due_rule rule = one_shot();
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct due_history h = ended(DUE_RESULT_FAILED, "r2", rows[i].attempts);
        check_case(i);
        struct due_answer a = due_decide(&rule, &h, HOURS(1));
        CHECK_EQ(a.state, DUE_BACKOFF);
        CHECK_EQ(a.next, HOURS(1) + rows[i].wait);
        a = due_decide(&rule, &h, HOURS(1) + rows[i].wait);
        CHECK_EQ(a.state, DUE_NOW);
        CHECK_EQ(a.attempt, rows[i].attempts + 1);
    }
    struct due_history h = ended(DUE_RESULT_FAILED, "r2", 3);
    CHECK_EQ(due_decide(&rule, &h, DAYS(1)).state, DUE_EXHAUSTED);
    rule.retries = 60;
    h.attempts = 50;
    CHECK_EQ(due_decide(&rule, &h, HOURS(1)).next, HOURS(1) + MINUTES(15));
}

TEST(due_serves_a_tick_once_and_misses_it_after_its_deadline)
{
    struct due_rule rule = one_shot();
    struct due_history h = { 0 };
    rule.cron = true;
    CHECK_EQ(due_decide(&rule, &h, HOURS(2)).state, DUE_NOT);
    rule.tick = HOURS(2);
    rule.tick_deadline = HOURS(4);
    struct due_answer a = due_decide(&rule, &h, HOURS(3));
    CHECK_EQ(a.state, DUE_NOW);
    CHECK_EQ(a.next, HOURS(4));
    a = due_decide(&rule, &h, HOURS(4));
    CHECK_EQ(a.state, DUE_NOT);
    CHECK(a.missed);
    h = ended(DUE_RESULT_SUCCEEDED, "r2", 0);
    CHECK_EQ(due_decide(&rule, &h, HOURS(3)).state, DUE_NOW); /* it served an earlier tick */
    h.tick = HOURS(2);
    h.ended = HOURS(3);
    CHECK_EQ(due_decide(&rule, &h, HOURS(3)).state, DUE_SUCCEEDED);
    h.result = DUE_RESULT_FAILED;
    h.attempts = 3;
    CHECK_EQ(due_decide(&rule, &h, HOURS(3)).state, DUE_EXHAUSTED);
    rule.tick = HOURS(26); /* the next tick is a new chance */
    rule.tick_deadline = USEC_NEVER;
    CHECK_EQ(due_decide(&rule, &h, HOURS(26)).state, DUE_NOW);
}

TEST(due_finds_the_latest_tick)
{
    static const struct {
        const char *pattern;
        usec_t since;
        usec_t now;
        usec_t tick;
    } rows[] = {
        { "0 * * * *", 0, HOURS(100) + 1, HOURS(100) },
        { "* * * * *", 0, DAYS(10), DAYS(10) },
        { "0 3 * * *", 0, DAYS(10), DAYS(9) + HOURS(3) },
        { "0 3 * * *", DAYS(9) + HOURS(3), DAYS(10), 0 },
        { "0 0 1 1 *", 0, DAYS(364), 0 },
        { "0 0 1 1 *", 0, DAYS(366), DAYS(365) },
    };
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cron cron;
        struct err err = { 0 };
        check_case(i);
        CHECK_EQ(cron_parse(str_from(rows[i].pattern), &cron, &err), 0);
        CHECK_EQ(due_latest_tick(&cron, NULL, rows[i].since, rows[i].now), rows[i].tick);
    }
}
