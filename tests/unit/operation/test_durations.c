/* How long visits took decides how much of a window the next one needs. */
#include "tests/unit/operation/operations_fixture.h"

#define TWENTY_MINUTES                                                                             \
    "  window: {days: [Mon, Tue], from: '00:10', to: '01:10', minRemaining: 1m}\n"                 \
    "  operations:\n"                                                                              \
    "  - name: slow\n"                                                                             \
    "    type: one-shot\n"                                                                         \
    "    job: {script: slow, podAnnotations: {sandbox.drydock.dev/run: 20m}}\n"

static uint32_t noted(struct operations_fixture *x)
{
    const struct jval *list = jval_at(operations_find(x, "slow"), "status.visitSeconds");
    uint32_t n = 0;
    int64_t seconds = 0;
    JVAL_EACH (list, item) {
        CHECK(jval_i64(item, &seconds));
        CHECK(seconds >= 1200 && seconds < 1320);
        n++;
    }
    return n;
}

TEST(durations_keep_a_visit_out_of_a_window_that_it_does_not_fit)
{
    for (uint32_t crash = 0; crash < 3; crash++) {
        struct operations_fixture x;
        check_case(crash);
        operations_begin(&x, 4);
        operations_maintain(&x, "slow", TWENTY_MINUTES);
        operations_run(&x, MINUTES(45));
        CHECK_EQ(x.jobs_made, 2);
        CHECK_EQ(noted(&x), 1);
        if (crash == 1) { /* in the middle of a visit: when that began is in its record */
            operations_crash(&x);
            operations_start(&x);
        }
        operations_run(&x, MINUTES(15)); /* 01:00, and 18 minutes were left when the second ended */
        CHECK_EQ(x.jobs_made, 2);
        CHECK_EQ(noted(&x), 2);
        CHECK_STR(operations_text(&x, "slow", "status.reason"), "WaitingWindow");
        CHECK(str_contains(operations_message(&x, "slow", "Progressing"), STR("visits need")));
        if (crash == 2) {
            operations_crash(&x);
            operations_run(&x, HOURS(2));
            operations_start(&x);
        }
        operations_run(&x, HOURS(12));
        CHECK_EQ(noted(&x), 2);
        operations_run(&x, HOURS(14)); /* Tuesday is over */
        CHECK_EQ(x.jobs_made, 4);
        CHECK_STR(operations_text(&x, "slow", "status.phase"), "Complete");
        CHECK_EQ(noted(&x), 4);
        operations_end(&x);
    }
    check_case(-1);
}

TEST(durations_are_kept_of_the_last_twenty_visits)
{
    struct operations_fixture x;
    operations_begin(&x, 30);
    operations_maintain(&x, "quick",
                        "  rollout: {maxConcurrent: 10}\n"
                        "  operations:\n"
                        "  - {name: say, type: one-shot, script: echo hello}\n");
    operations_run(&x, MINUTES(30));
    CHECK_STR(operations_text(&x, "quick", "status.phase"), "Complete");
    CHECK_EQ(jval_at(operations_find(&x, "quick"), "status.visitSeconds")->n, 20);
    operations_end(&x);
}
