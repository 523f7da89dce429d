#include "kinds/run_history.h"
#include "tests/unit/operation/operations_fixture.h"

static struct str history_of(struct operations_fixture *x, const char *node)
{
    struct str name = run_history_name(str_from(node), &x->memory);
    return jval_str(
        jval_at(apiserver_find(x->server, STR(""), STR("configmaps"), OPERATIONS_NAMESPACE, name),
                "data." RUN_HISTORY_KEY));
}

static uint32_t history_lines(struct operations_fixture *x, const char *node)
{
    struct str rest = history_of(x, node);
    struct str line;
    struct run_history_entry e;
    uint32_t n = 0;
    while (rest.n > 0 && str_split_next(&rest, '\n', &line)) {
        n += run_history_read(line, &x->memory, &e) ? 1 : 0;
    }
    return n;
}

#define HOURLY                                                                                     \
    "  operations:\n"                                                                              \
    "  - {name: clean, type: cron, schedule: '0 * * * *', disruptive: Never, script: clean}\n"

TEST(run_histories_keep_every_run_of_a_node)
{
    struct operations_fixture x;
    struct run_history_entry e;
    operations_begin(&x, 2);
    operations_maintain(&x, "hourly", HOURLY);
    operations_run(&x, HOURS(3) + MINUTES(30));
    CHECK_EQ(history_lines(&x, "node-001"), 3);
    CHECK_EQ(history_lines(&x, "node-002"), 3);
    struct str rest = history_of(&x, "node-001");
    struct str line = STR_NONE;
    CHECK(str_split_next(&rest, '\n', &line) && run_history_read(line, &x.memory, &e));
    CHECK_STR(e.node, "node-001");
    CHECK_STR(e.maintenance, "hourly");
    CHECK_STR(e.operation, "clean");
    CHECK_STR(e.result, "Succeeded");
    CHECK(e.time >= OPERATIONS_WALL + HOURS(1) && e.time < OPERATIONS_WALL + HOURS(2));
    operations_crash(&x); /* who leads next goes on behind what is there */
    operations_start(&x);
    operations_run(&x, HOURS(1));
    CHECK_EQ(history_lines(&x, "node-001"), 4);
    operations_end(&x);
}

TEST(run_histories_say_why_a_run_failed)
{
    struct operations_fixture x;
    struct run_history_entry e;
    operations_begin(&x, 1);
    operations_maintain(&x, "broken",
                        "  failurePolicy: {retries: 0}\n"
                        "  operations:\n"
                        "  - name: fail\n"
                        "    type: one-shot\n"
                        "    job:\n"
                        "      script: 'false'\n"
                        "      podAnnotations: {sandbox.drydock.dev/exit: '3', "
                        "sandbox.drydock.dev/output: disk is full}\n");
    operations_run(&x, MINUTES(10));
    struct str rest = history_of(&x, "node-001");
    struct str line = STR_NONE;
    CHECK(str_split_next(&rest, '\n', &line) && run_history_read(line, &x.memory, &e));
    CHECK_STR(e.result, "Failed");
    CHECK_STR(e.reason, "ExitCode");
    CHECK(str_contains(e.message, STR("disk is full")));
    operations_end(&x);
}

TEST(run_histories_hold_nothing_up_when_they_cannot_be_written)
{
    struct operations_fixture x;
    operations_begin(&x, 3);
    x.door.path = "/api/v1/namespaces/drydock-system/configmaps/history-";
    operations_maintain(&x, "hello",
                        "  rollout: {maxConcurrent: 3, minReady: 1s}\n"
                        "  operations: [{name: say, type: one-shot, script: hello}]\n");
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_EQ(history_lines(&x, "node-001"), 0);
    x.door.path = NULL; /* the right is given */
    operations_maintain(&x, "hourly", HOURLY);
    operations_run(&x, HOURS(2));
    CHECK(history_lines(&x, "node-001") >= 1);
    operations_end(&x);
}
