#include "tests/unit/operation/operations_fixture.h"

#define ONE_SHOT                                                                                   \
    "  rollout: {minReady: 10s}\n"                                                                 \
    "  operations:\n"                                                                              \
    "  - {name: say, type: one-shot, script: echo hello}\n"
#define FAILING                                                                                    \
    "  rollout: {minReady: 10s}\n"                                                                 \
    "  failurePolicy: {retries: 0}\n"                                                              \
    "  operations:\n"                                                                              \
    "  - {name: say, type: one-shot, job: {script: x, podAnnotations: "                            \
    "{sandbox.drydock.dev/exit: '3'}}}\n"
#define EXCLUDED "node.kubernetes.io/exclude-from-external-load-balancers"

static struct str label(struct operations_fixture *x, const char *key)
{
    const struct jval *v =
        jval_get(jval_at(operations_node(x, "node-001"), "metadata.labels"), str_from(key));
    return v == NULL ? STR("(none)") : jval_str(v);
}

static void set_label(struct operations_fixture *x, const char *key, const char *value)
{
    (void)operations_http(
        x, 200, "PATCH", "/api/v1/nodes/node-001",
        arena_printf(&x->memory, "{\"metadata\":{\"labels\":{\"%s\":\"%s\"}}}", key, value));
}

static bool has_mark(struct operations_fixture *x)
{
    return jval_get(jval_at(operations_node(x, "node-001"), "metadata.annotations"),
                    KEY_VISIT_LABELS) != NULL;
}

static struct str phase(struct operations_fixture *x)
{
    return jval_str(jval_at(operations_state(x, "node-001"), "status.visit.phase"));
}

TEST(work_labels_are_set_before_the_cordon_and_restored_behind_it)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    set_label(&x, "db", "up");
    operations_maintain(&x, "hello",
                        "  disruption: {cordon: Always, nodeLabels: {before: {db: down, work: ''}, "
                        "after: {seen: yes-it-was}}}\n" ONE_SHOT);
    operations_run(&x, SECONDS(10));
    CHECK(operations_is_cordoned(&x, "node-001"));
    CHECK_STR(label(&x, "db"), "down");
    CHECK_STR(label(&x, "work"), "");
    CHECK_STR(label(&x, "seen"), "(none)");
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_STR(label(&x, "db"), "up");
    CHECK_STR(label(&x, "work"), "(none)");
    CHECK_STR(label(&x, "seen"), "yes-it-was");
    CHECK(!has_mark(&x));
    operations_end(&x);
}

TEST(work_labels_take_a_node_out_of_load_balancers_for_a_while_first)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "hello",
                        "  disruption: {cordon: Always, leaveLoadBalancers: {enabled: true, wait: "
                        "2m}}\n" ONE_SHOT);
    operations_run(&x, SECONDS(90));
    CHECK_STR(label(&x, EXCLUDED), "true");
    CHECK_STR(phase(&x), "Labelling");
    CHECK(!operations_is_cordoned(&x, "node-001"));
    operations_run(&x, SECONDS(45));
    CHECK_STR(label(&x, EXCLUDED), "true");
    CHECK_EQ(x.cordoned_most, 1);
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_STR(label(&x, EXCLUDED), "(none)");
    operations_end(&x);
}

TEST(work_labels_of_others_stay)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    set_label(&x, EXCLUDED, "by-hand");
    operations_maintain(&x, "hello",
                        "  disruption: {leaveLoadBalancers: {enabled: true, wait: 0s}, nodeLabels: "
                        "{before: {db: down}}}\n" ONE_SHOT);
    operations_run(&x, SECONDS(10));
    CHECK_STR(label(&x, EXCLUDED), "true");
    set_label(&x, "db", "broken"); /* somebody has found out something */
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_STR(label(&x, EXCLUDED), "by-hand");
    CHECK_STR(label(&x, "db"), "broken");
    operations_end(&x);
}

TEST(work_labels_are_restored_after_a_failure_without_those_for_behind_it)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "hello",
                        "  disruption: {cordon: Always, nodeLabels: {before: {db: down}, after: "
                        "{seen: 'true'}}}\n" FAILING);
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Paused");
    CHECK(operations_is_cordoned(&x, "node-001")); /* kept */
    CHECK_STR(label(&x, "db"), "(none)");
    CHECK_STR(label(&x, "seen"), "(none)");
    CHECK(!has_mark(&x));
    operations_end(&x);
}

/* Whenever the leader dies, the next one puts everything back. */
TEST(work_labels_are_restored_after_a_crash_at_any_time)
{
    for (int step = 0; step < 12; step++) {
        struct operations_fixture x;
        check_case(step);
        operations_begin(&x, 1);
        set_label(&x, "db", "up");
        operations_maintain(&x, "hello",
                            "  disruption: {cordon: Always, leaveLoadBalancers: {enabled: true, "
                            "wait: 5s}, nodeLabels: {before: {db: down}, after: {seen: 'true'}}}"
                            "\n" ONE_SHOT);
        operations_run(&x, MSECONDS(500) + step * MSECONDS(2500));
        operations_crash(&x);
        operations_start(&x);
        operations_run(&x, MINUTES(10));
        CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
        CHECK_STR(label(&x, "db"), "up");
        CHECK_STR(label(&x, EXCLUDED), "(none)");
        CHECK_STR(label(&x, "seen"), "true");
        CHECK(!has_mark(&x));
        CHECK_EQ(x.cordoned, 0);
        operations_end(&x);
    }
    check_case(-1);
}

TEST(work_labels_of_objects_that_share_a_visit_are_joined)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "one",
                        "  suspend: true\n  priority: 5\n  disruption: {nodeLabels: {before: {db: "
                        "down}}}\n" ONE_SHOT);
    operations_maintain(&x, "two",
                        "  suspend: true\n  disruption: {nodeLabels: {before: {db: other, web: "
                        "down}}}\n" ONE_SHOT);
    operations_run(&x, SECONDS(5));
    operations_patch(&x, "one", "{\"spec\":{\"suspend\":false}}");
    operations_patch(&x, "two", "{\"spec\":{\"suspend\":false}}");
    operations_run(&x, SECONDS(10));
    CHECK_STR(label(&x, "db"), "down"); /* of the higher priority */
    CHECK_STR(label(&x, "web"), "down");
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "two", "status.phase"), "Complete");
    CHECK_STR(label(&x, "db"), "(none)");
    CHECK_STR(label(&x, "web"), "(none)");
    operations_end(&x);
}
