/* What ends a run before it is done: windows that close, objects that are deleted, pods that are
 * taken away. */
#include "tests/unit/operation/operations_fixture.h"

#define LONG_RUN                                                                                   \
    "  operations:\n"                                                                              \
    "  - name: slow\n"                                                                             \
    "    type: one-shot\n"                                                                         \
    "    timeout: 3h\n"                                                                            \
    "    job: {script: slow, podAnnotations: {sandbox.drydock.dev/run: 90m}}\n"

static uint32_t pods_of_jobs(struct operations_fixture *x)
{
    return operations_count(x, "", "pods");
}

TEST(stops_at_close_end_what_runs_and_leave_it_due)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(&x, "slow",
                        "  window: {days: [Mon, Tue], from: '01:00', to: '02:00', atClose: Stop}\n"
                        "  disruption: {cordon: Always}\n" LONG_RUN);
    operations_run(&x, MINUTES(100)); /* 01:40 */
    CHECK_EQ(x.jobs_made, 1);
    CHECK_EQ(x.cordoned, 1);
    CHECK_EQ(pods_of_jobs(&x), 1);
    operations_run(&x, MINUTES(25)); /* 02:05 */
    CHECK_EQ(pods_of_jobs(&x), 0);
    CHECK_EQ(operations_count(&x, "batch", "jobs"), 0);
    CHECK_EQ(x.cordoned, 0);
    CHECK(!operations_is_cordoned(&x, "node-001"));
    CHECK(!operations_is_cordoned(&x, "node-002"));
    CHECK_STR(operations_text(&x, "slow", "status.reason"), "WaitingWindow");
    CHECK_EQ(operations_number(&x, "slow", "status.counts.failed"), 0);
    operations_run(&x, HOURS(23)); /* Tuesday, 01:05: it is tried again */
    CHECK_EQ(x.jobs_made, 2);
    operations_end(&x);
}

TEST(stops_at_close_only_where_the_window_says_so)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "slow",
                        "  window: {days: [Mon], from: '01:00', to: '02:00'}\n" LONG_RUN);
    operations_run(&x, MINUTES(100));
    CHECK_EQ(x.jobs_made, 1);
    operations_run(&x, HOURS(2));
    CHECK_STR(operations_text(&x, "slow", "status.phase"), "Complete");
    CHECK_EQ(x.jobs_made, 1);
    operations_end(&x);
}

TEST(stops_survive_a_crash_and_make_nothing_again)
{
    for (uint32_t at = 0; at < 12; at++) {
        struct operations_fixture x;
        check_case(at);
        operations_begin(&x, 1);
        operations_maintain(&x, "slow",
                            "  window: {days: [Mon], from: '00:10', to: '00:40', atClose: Stop}\n"
                            "  disruption: {cordon: Always}\n" LONG_RUN);
        operations_run(&x, MINUTES(40) - SECONDS(5) + MSECONDS(at * 350));
        operations_crash(&x);
        operations_start(&x);
        operations_run(&x, MINUTES(5));
        CHECK_EQ(x.jobs_made, 1);
        CHECK_EQ(operations_count(&x, "batch", "jobs"), 0);
        CHECK_EQ(pods_of_jobs(&x), 0);
        CHECK_EQ(x.cordoned, 0);
        operations_end(&x);
    }
    check_case(-1);
}

TEST(stops_follow_the_deletion_policy)
{
    static const struct {
        const char *policy;
        bool ends_at_once;
    } cases[] = { { "  deletionPolicy: Abort\n", true }, { "  deletionPolicy: Finish\n", false } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct operations_fixture x;
        check_case((int64_t)i);
        operations_begin(&x, 1);
        operations_maintain(
            &x, "slow",
            arena_printf(&x.memory, "%s  disruption: {cordon: Always}\n" LONG_RUN, cases[i].policy)
                .p);
        operations_run(&x, MINUTES(1));
        CHECK_EQ(x.cordoned, 1);
        (void)operations_http(&x, 200, "DELETE", NODE_MAINTENANCES_PATH "/slow", STR(""));
        operations_run(&x, MINUTES(5));
        CHECK_EQ(operations_find(&x, "slow") == NULL, cases[i].ends_at_once);
        CHECK_EQ(x.cordoned, cases[i].ends_at_once ? 0 : 1);
        operations_run(&x, HOURS(2));
        CHECK(operations_find(&x, "slow") == NULL);
        CHECK_EQ(x.cordoned, 0);
        CHECK_EQ(x.jobs_made, 1);
        operations_end(&x);
    }
    check_case(-1);
}

/* The pod of the Job that runs now; what an eviction by taint does to it. */
static void take_pod_away(struct operations_fixture *x)
{
    struct str list =
        operations_http(x, 200, "GET", "/api/v1/namespaces/drydock-jobs/pods", STR(""));
    const struct jval *pods = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(list, JSON_GO, &x->memory, &pods, &err), 0);
    JVAL_EACH (jval_get(pods, STR("items")), pod) {
        struct str name = jval_str(jval_at(pod, "metadata.name"));
        if (!str_eq(jval_str(jval_at(pod, "status.phase")), STR("Running"))) {
            continue;
        }
        const char *path =
            arena_printf(&x->memory, "/api/v1/namespaces/drydock-jobs/pods/" STR_FMT "/status",
                         STR_ARG(name))
                .p;
        (void)operations_http(
            x, 200, "PATCH", path,
            STR("{\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"conditions\":[{"
                "\"type\":\"DisruptionTarget\",\"status\":\"True\"}]}}"));
    }
}

TEST(stops_by_eviction_count_as_failures_the_fourth_time)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "slow", "  failurePolicy: {retries: 0}\n" LONG_RUN);
    for (uint32_t i = 1; i <= 4; i++) {
        check_case(i);
        operations_run(&x, MINUTES(2));
        CHECK_EQ(x.jobs_made, i);
        CHECK_EQ(operations_number(&x, "slow", "status.counts.failed"), 0);
        take_pod_away(&x);
    }
    check_case(-1);
    operations_run(&x, MINUTES(2));
    CHECK_EQ(x.jobs_made, 4);
    CHECK_EQ(operations_number(&x, "slow", "status.counts.failed"), 1);
    const struct jval *failed = jval_first(jval_at(operations_find(&x, "slow"), "status.failed"));
    CHECK_STR(jval_str(jval_get(failed, STR("reason"))), "Evicted");
    CHECK_STR(jval_str(jval_get(failed, STR("message"))),
              "its pod was taken away, 4 time(s) by now");
    operations_end(&x);
}

#define ASKS_FOR_EVER                                                                              \
    "  operations:\n"                                                                              \
    "  - name: reboot\n"                                                                           \
    "    type: realtime\n"                                                                         \
    "    reboot: {policy: IfRequired, minInterval: 5m}\n"                                          \
    "    preflight: {script: 'exit 0'}\n"

TEST(stops_rebooting_a_machine_that_asks_again_right_after)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(&x, "reboots", ASKS_FOR_EVER);
    operations_run(&x, HOURS(6));
    CHECK_EQ(x.reboots, 2); /* one each, and not one an hour */
    CHECK_EQ(x.requests_made, 2);
    CHECK_EQ(x.cordoned, 0);
    const struct jval *after = operations_state(&x, "node-001");
    CHECK(jval_bool(jval_at(after, "status.rebootDidNotHelp"), false));
    CHECK_STR(jval_str(jval_get(jval_first(jval_at(after, "status.operations")), STR("reason"))),
              "RebootDidNotHelp");
    /* It does not ask any more: the next time it does is for another reason. */
    operations_patch(&x, "reboots",
                     "{\"spec\":{\"operations\":[{\"name\":\"reboot\",\"type\":\"realtime\","
                     "\"reboot\":{\"policy\":\"IfRequired\",\"minInterval\":\"5m\"},"
                     "\"preflight\":{\"script\":\"exit 77\"}}]}}");
    operations_run(&x, HOURS(2));
    CHECK_EQ(x.reboots, 2);
    CHECK(!jval_bool(jval_at(operations_state(&x, "node-001"), "status.rebootDidNotHelp"), true));
    operations_patch(&x, "reboots",
                     "{\"spec\":{\"operations\":[{\"name\":\"reboot\",\"type\":\"realtime\","
                     "\"reboot\":{\"policy\":\"IfRequired\",\"minInterval\":\"5m\"},"
                     "\"preflight\":{\"script\":\"exit 0\"}}]}}");
    operations_run(&x, HOURS(2));
    CHECK_EQ(x.reboots, 4);
    operations_end(&x);
}
