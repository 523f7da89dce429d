#include "tests/unit/operation/operations_fixture.h"

#define ONE_SHOT                                                                                   \
    "  operations:\n"                                                                              \
    "  - {name: say, type: one-shot, script: echo hello}\n"
#define GATE(fields) "  rollout: {gates: {beforeNode: [" fields "]}}\n" ONE_SHOT
#define SHOP "selector: {matchLabels: {app: shop}}"
#define PODS "/api/v1/namespaces/default/pods"

/* A pod of the shop; one that no node suits is never ready. */
static void make_pod(struct operations_fixture *x, const char *name, const char *node)
{
    struct str where = node != NULL ? arena_printf(&x->memory, "\"nodeName\":\"%s\"", node)
                                    : STR("\"nodeSelector\":{\"no\":\"where\"}");
    (void)operations_http(x, 201, "POST", PODS,
                          arena_printf(&x->memory,
                                       "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":"
                                       "\"shop\"}},\"spec\":{" STR_FMT ",\"containers\":"
                                       "[{\"name\":\"c\",\"image\":\"i\"}]}}",
                                       name, STR_ARG(where)));
}

static void delete_pod(struct operations_fixture *x, const char *name)
{
    (void)operations_http(x, 200, "DELETE",
                          arena_printf(&x->memory, PODS "/%s?gracePeriodSeconds=0", name).p,
                          STR(""));
}

static void resume(struct operations_fixture *x, const char *name)
{
    struct str revision = operations_text(x, name, "status.revision");
    operations_patch(x, name,
                     arena_printf(&x->memory,
                                  "{\"metadata\":{\"annotations\":{\"drydock.dev/resume\":"
                                  "\"" STR_FMT "\"}}}",
                                  STR_ARG(revision))
                         .p);
}

static struct str gate_message(struct operations_fixture *x, const char *name)
{
    return operations_text(x, name, "status.gate.message");
}

static void check_has(struct str text, const char *part)
{
    if (!str_contains(text, str_from(part))) {
        check_fail(__FILE__, __LINE__, "'" STR_FMT "' has no '%s'", STR_ARG(text), part);
    }
}

TEST(gates_wait_until_enough_pods_are_ready)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    make_pod(&x, "well", "node-001");
    make_pod(&x, "lost", NULL);
    operations_maintain(&x, "hello", GATE("{pods: {" SHOP "}, interval: 20s}"));
    operations_run(&x, MINUTES(1));
    CHECK_EQ(x.requests_made, 0);
    CHECK_STR(operations_text(&x, "hello", "status.reason"), "WaitingGate");
    CHECK_STR(operations_text(&x, "hello", "status.gate.place"),
              "rollout.gates.beforeNode[0].pods");
    check_has(gate_message(&x, "hello"), "1 of 2 pods are ready and 100% are wanted");
    check_has(gate_message(&x, "hello"), "default/lost");
    check_has(gate_message(&x, "hello"), "asked again at 2026-01-05T00:0");
    CHECK(operations_text(&x, "hello", "status.gate.next").n > 0);
    delete_pod(&x, "lost");
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK(jval_at(operations_find(&x, "hello"), "status.gate") == NULL);
    operations_end(&x);
}

TEST(gates_of_pods_count_a_share_and_never_pass_without_any)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "hello", GATE("{pods: {" SHOP ", minReadyPercent: 50}}"));
    operations_run(&x, MINUTES(1));
    check_has(gate_message(&x, "hello"), "no pod matches 'app=shop'");
    CHECK_EQ(x.jobs_made, 0);
    make_pod(&x, "lost", NULL);
    make_pod(&x, "well", "node-001");
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(gates_look_only_into_the_namespaces_they_name)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    make_pod(&x, "lost", NULL);
    operations_maintain(
        &x, "hello",
        GATE("{pods: {" SHOP ", namespaces: [drydock-jobs, default], minReadyPercent: 1}}"));
    operations_maintain(&x, "other",
                        GATE("{blockingPods: {" SHOP ", namespaces: [drydock-jobs]}}"));
    operations_run(&x, MINUTES(5));
    check_has(gate_message(&x, "hello"), "0 of 1 pods are ready");
    CHECK_STR(operations_text(&x, "other", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(gates_pass_over_a_machine_with_pods_that_block_it)
{
    struct operations_fixture x;
    operations_begin(&x, 4);
    make_pod(&x, "game", "node-002");
    operations_maintain(&x, "hello", GATE("{blockingPods: {" SHOP "}, timeout: 24h}"));
    operations_run(&x, MINUTES(20));
    CHECK_STR(operations_text(&x, "hello", "status.progress"), "3/4");
    CHECK_STR(operations_text(&x, "hello", "status.reason"), "WaitingGate");
    check_has(gate_message(&x, "hello"), "default/game");
    CHECK(operations_state(&x, "node-002") == NULL); /* nothing was begun there */
    delete_pod(&x, "game");
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(gates_pause_the_object_when_their_time_is_over_until_it_is_resumed)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "hello", GATE("{pods: {" SHOP "}, timeout: 5m}"));
    operations_run(&x, MINUTES(4));
    CHECK_STR(operations_text(&x, "hello", "status.reason"), "WaitingGate");
    operations_crash(&x); /* the time goes on */
    operations_start(&x);
    operations_run(&x, MINUTES(2));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Paused");
    CHECK_STR(operations_condition(&x, "hello", "Paused"), "True/GateTimeout");
    CHECK_STR(operations_condition(&x, "hello", "Stalled"), "True/GateTimeout");
    make_pod(&x, "well", "node-001");
    operations_run(&x, MINUTES(5));
    CHECK_EQ(x.jobs_made, 0); /* a person has to look */
    resume(&x, "hello");
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(gates_may_be_skipped_when_their_time_is_over)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "hello", GATE("{pods: {" SHOP "}, timeout: 2m, onTimeout: Skip}"));
    operations_run(&x, SECONDS(100));
    CHECK_EQ(x.jobs_made, 0);
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(gates_may_fail_the_visit_when_their_time_is_over)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(
        &x, "hello",
        "  failurePolicy: {retries: 0}\n" GATE("{pods: {" SHOP "}, timeout: 2m, onTimeout: Fail}"));
    operations_run(&x, MINUTES(5));
    CHECK_EQ(x.requests_made, 0);
    CHECK_EQ(x.jobs_made, 0);
    CHECK_STR(operations_condition(&x, "hello", "Paused"), "True/FailureLimit");
    const struct jval *failed = jval_first(jval_at(operations_find(&x, "hello"), "status.failed"));
    CHECK_STR(jval_str(jval_get(failed, STR("reason"))), "GateTimeout");
    check_has(jval_str(jval_get(failed, STR("message"))), "no pod matches");
    operations_end(&x);
}

/* A limit lets nobody through until the gate has shut again. */
TEST(gates_are_asked_once_more_when_the_request_is_approved)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    make_pod(&x, "well", "node-001");
    (void)operations_http(&x, 201, "POST", MAINTENANCE_LIMITS_PATH,
                          STR("{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":"
                              "\"MaintenanceLimit\",\"metadata\":{\"name\":\"node\"},"
                              "\"spec\":{\"limit\":100,\"paused\":true}}"));
    operations_maintain(&x, "hello", "  disruption: {cordon: Always}\n" GATE("{pods: {" SHOP "}}"));
    operations_run(&x, MINUTES(1));
    CHECK_EQ(x.requests_made, 1);
    make_pod(&x, "lost", NULL);
    (void)operations_http(&x, 200, "PATCH", MAINTENANCE_LIMITS_PATH "/node",
                          STR("{\"spec\":{\"paused\":false}}"));
    operations_run(&x, MINUTES(1));
    CHECK_EQ(x.cordoned_most, 0);
    CHECK_EQ(x.jobs_made, 0);
    check_has(gate_message(&x, "hello"), "refused node node-001 when its request was approved");
    delete_pod(&x, "lost");
    operations_run(&x, MINUTES(2));
    CHECK_EQ(x.jobs_made, 0); /* it goes to the end for five minutes */
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_end(&x);
}

/* ── behind a visit ────────────────────────────────────────────────────────────────────────── */

#define AFTER(fields)                                                                              \
    "  disruption: {cordon: Always}\n"                                                             \
    "  rollout: {minReady: 10s, gates: {afterNode: [" fields "]}}\n" ONE_SHOT

static struct str visit_phase(struct operations_fixture *x, const char *node)
{
    return jval_str(jval_at(operations_state(x, node), "status.visit.phase"));
}

TEST(gates_behind_a_visit_hold_its_request_and_not_its_cordon)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    make_pod(&x, "lost", NULL);
    operations_maintain(&x, "hello", AFTER("{pods: {" SHOP "}, timeout: 30m}"));
    operations_run(&x, MINUTES(3));
    CHECK_EQ(x.jobs_made, 1);
    CHECK_EQ(x.cordoned_most, 1);
    CHECK_EQ(x.cordoned, 0); /* its pods may come back */
    const char *first = visit_phase(&x, "node-001").n > 0 ? "node-001" : "node-002";
    CHECK_STR(visit_phase(&x, first), "Verifying");
    operations_crash(&x);
    operations_start(&x);
    operations_run(&x, MINUTES(3));
    CHECK_STR(visit_phase(&x, first), "Verifying");
    CHECK_EQ(x.jobs_made, 1);
    delete_pod(&x, "lost");
    make_pod(&x, "well", "node-001");
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(gates_behind_a_visit_may_fail_it_and_cordon_the_machine_again)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "hello",
                        "  failurePolicy: {retries: 0}\n" AFTER(
                            "{pods: {" SHOP "}, timeout: 2m, onTimeout: Fail}"));
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_condition(&x, "hello", "Paused"), "True/FailureLimit");
    CHECK(operations_is_cordoned(&x, "node-001"));
    const struct jval *notes = jval_at(operations_node(&x, "node-001"), "metadata.annotations");
    CHECK_STR(jval_str(jval_get(notes, KEY_KEPT_CORDON)),
              operations_text(&x, "hello", "metadata.uid"));
    CHECK_STR(visit_phase(&x, "node-001"), "");
    const struct jval *failed = jval_first(jval_at(operations_find(&x, "hello"), "status.failed"));
    CHECK_STR(jval_str(jval_get(failed, STR("reason"))), "GateTimeout");
    operations_end(&x);
}

TEST(gates_behind_a_visit_may_pause_the_object_before_the_next_machine)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(&x, "hello", AFTER("{pods: {" SHOP "}, timeout: 2m}"));
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_condition(&x, "hello", "Paused"), "True/GateTimeout");
    CHECK_STR(operations_text(&x, "hello", "status.gate.place"), "rollout.gates.afterNode[0].pods");
    CHECK_STR(operations_text(&x, "hello", "status.progress"), "1/2");
    CHECK_EQ(x.jobs_made, 1);
    CHECK_EQ(x.cordoned, 0);
    operations_end(&x);
}

/* ── waves ─────────────────────────────────────────────────────────────────────────────────── */

#define CANARY                                                                                     \
    "  rollout: {minReady: 10s, waves: [{name: canary, size: 1, soak: 10m, gates: [{pods: {" SHOP  \
    "}}]}]}\n" ONE_SHOT

TEST(gates_of_a_wave_begin_its_soak_again_once)
{
    struct operations_fixture x;
    operations_begin(&x, 3);
    make_pod(&x, "well", "node-001");
    operations_maintain(&x, "hello", CANARY);
    operations_run(&x, MINUTES(8));
    CHECK_STR(operations_text(&x, "hello", "status.reason"), "Soaking");
    make_pod(&x, "lost", NULL);
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "hello", "status.reason"), "Soaking");
    CHECK_STR(operations_text(&x, "hello", "status.gate.place"), "rollout.waves[0].gates[0].pods");
    CHECK_EQ(operations_number(&x, "hello", "status.wave.restarts"), 1);
    operations_crash(&x); /* the trouble is the same as before */
    operations_start(&x);
    operations_run(&x, MINUTES(2));
    CHECK_EQ(operations_number(&x, "hello", "status.wave.restarts"), 1);
    delete_pod(&x, "lost");
    operations_run(&x, MINUTES(9));
    CHECK_EQ(x.jobs_made, 1); /* ten whole minutes since it is well */
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(gates_of_a_wave_pause_the_object_the_second_time_until_it_is_resumed)
{
    struct operations_fixture x;
    operations_begin(&x, 3);
    make_pod(&x, "well", "node-001");
    operations_maintain(&x, "hello", CANARY);
    operations_run(&x, MINUTES(5));
    for (int i = 0; i < 2; i++) {
        make_pod(&x, "lost", NULL);
        operations_run(&x, MINUTES(1));
        delete_pod(&x, "lost");
        operations_run(&x, MINUTES(1));
    }
    operations_run(&x, HOURS(1));
    CHECK_EQ(x.jobs_made, 1);
    CHECK_STR(operations_condition(&x, "hello", "Paused"), "True/SoakFailed");
    resume(&x, "hello");
    operations_run(&x, MINUTES(8));
    CHECK_EQ(x.jobs_made, 1); /* it soaks once more */
    operations_run(&x, MINUTES(20));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_end(&x);
}

/* ── resource ──────────────────────────────────────────────────────────────────────────────── */

static void make_map(struct operations_fixture *x, const char *name, const char *data)
{
    (void)operations_http(x, 201, "POST", "/api/v1/namespaces/default/configmaps",
                          arena_printf(&x->memory,
                                       "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":"
                                       "\"shop\"}},\"data\":{\"n\":\"%s\"}}",
                                       name, data));
}

TEST(gates_compare_a_value_of_any_object)
{
    static const struct {
        const char *gate;
        const char *refusal; /* NULL: it passes */
    } cases[] = {
        { "name: m, path: .data.n, op: Equals, values: ['7']", NULL },
        { "name: m, path: '{.data.n}', op: Equals, values: ['7.0']", NULL },
        { "name: m, path: .data.n, op: Equals, values: ['8']",
          "ConfigMap default/m has 7 at .data.n" },
        { "name: m, path: .data.n, op: NotEquals, values: ['7']", "1 of 1 objects" },
        { "name: m, path: .data.n, op: In, values: ['6', '7']", NULL },
        { "name: m, path: .data.n, op: Gt, values: ['7']", "has 7" },
        { "name: m, path: .data.n, op: Ge, values: ['7']", NULL },
        { "name: m, path: .data.n, op: Lt, values: ['7.5']", NULL },
        { "name: m, path: .data.n, op: Le, values: [many]", "has 7" },
        { "name: m, path: .data.n, op: Exists", NULL },
        { "name: m, path: .data.other, op: Exists", "nothing that can be compared" },
        { "name: m, path: .data.other, op: NotEquals, values: ['7']", "nothing" },
        { "name: none, path: .data.n, op: Exists", "no ConfigMap is chosen" },
        { "name: m, namespace: drydock-jobs, path: .data.n, op: Exists", "no ConfigMap is chosen" },
        { "selector: {matchLabels: {app: shop}}, path: .data.n, op: Ge, values: ['7']", NULL },
        { "selector: {matchLabels: {app: shop}}, path: .data.n, op: Gt, values: ['7']",
          "1 of 2 objects" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct operations_fixture x;
        check_case((int64_t)i);
        operations_begin(&x, 1);
        make_map(&x, "m", "7");
        make_map(&x, "n", "9");
        operations_maintain(&x, "hello",
                            arena_printf(&x.memory,
                                         "  rollout: {gates: {beforeNode: [{resource: {apiVersion: "
                                         "v1, kind: ConfigMap, %s}}]}}\n" ONE_SHOT,
                                         cases[i].gate)
                                .p);
        operations_run(&x, MINUTES(2));
        CHECK_EQ(x.jobs_made, cases[i].refusal == NULL ? 1 : 0);
        if (cases[i].refusal != NULL) {
            check_has(gate_message(&x, "hello"), cases[i].refusal);
        }
        operations_end(&x);
    }
    check_case(-1);
}

TEST(gates_that_cannot_be_read_have_not_passed)
{
    static const struct {
        const char *gate;
        const char *refusal;
    } cases[] = {
        { "apiVersion: shop.example/v1, kind: Till", "it cannot be read: the server answered 404" },
        { "apiVersion: apps/v1, kind: Till", "the API server has no Till of apps/v1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct operations_fixture x;
        check_case((int64_t)i);
        operations_begin(&x, 1);
        operations_maintain(
            &x, "hello",
            arena_printf(&x.memory,
                         "  rollout: {gates: {beforeNode: [{resource: {%s, name: a, "
                         "path: .a, op: Exists}}]}}\n" ONE_SHOT,
                         cases[i].gate)
                .p);
        operations_run(&x, MINUTES(1));
        CHECK_EQ(x.jobs_made, 0);
        check_has(gate_message(&x, "hello"), cases[i].refusal);
        operations_end(&x);
    }
    check_case(-1);
}

TEST(gates_name_the_field_that_is_wrong)
{
    static const struct {
        const char *gate;
        const char *message;
    } cases[] = {
        { "{resource: {apiVersion: v1, kind: Secret, name: a, path: .data.n, op: Exists}}",
          "Secrets are not read" },
        { "{resource: {apiVersion: v1, kind: Pod, name: a, path: 'status', op: Exists}}",
          "spec.rollout.gates.beforeNode[0].resource.path" },
        { "{resource: {apiVersion: v1, kind: Pod, name: a, path: '.x[*]', op: Exists}}",
          "the path of one value" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct operations_fixture x;
        check_case((int64_t)i);
        operations_begin(&x, 1);
        operations_maintain(&x, "hello",
                            arena_printf(&x.memory,
                                         "  rollout: {gates: {beforeNode: [%s]}}\n" ONE_SHOT,
                                         cases[i].gate)
                                .p);
        operations_run(&x, MINUTES(1));
        CHECK_STR(operations_text(&x, "hello", "status.phase"), "Invalid");
        struct str message = STR_NONE;
        JVAL_EACH (jval_at(operations_find(&x, "hello"), "status.conditions"), c) {
            message = str_eq(jval_str(jval_get(c, STR("type"))), STR("Accepted"))
                          ? jval_str(jval_get(c, STR("message")))
                          : message;
        }
        check_has(message, cases[i].message);
        operations_end(&x);
    }
    check_case(-1);
}

/* ── job ───────────────────────────────────────────────────────────────────────────────────── */

#define GATE_JOB(exit, more)                                                                       \
    "{job: {script: look, podAnnotations: {sandbox.drydock.dev/exit: '" exit "'}}" more "}"

TEST(gates_run_a_job_on_the_machine_before_anything_is_asked_for)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(&x, "hello", GATE(GATE_JOB("0", "")));
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_EQ(x.jobs_made, 4); /* a gate and a run for each */
    operations_end(&x);
}

TEST(gates_ask_a_job_again_that_says_not_yet)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "hello", GATE(GATE_JOB("75", ", timeout: 5m")));
    operations_run(&x, MINUTES(4));
    CHECK_EQ(x.requests_made, 0);
    CHECK_STR(operations_text(&x, "hello", "status.reason"), "WaitingGate");
    check_has(gate_message(&x, "hello"), "not yet (exit code 75)");
    CHECK(x.jobs_made >= 3 && x.jobs_made <= 4); /* one a minute */
    operations_run(&x, MINUTES(3));
    CHECK_STR(operations_condition(&x, "hello", "Paused"), "True/GateTimeout");
    uint32_t made = x.jobs_made;
    operations_run(&x, HOURS(1));
    CHECK_EQ(x.jobs_made, made);
    operations_end(&x);
}

TEST(gates_wait_no_longer_for_a_job_that_fails)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "hello", GATE(GATE_JOB("3", ", timeout: 5h")));
    operations_run(&x, MINUTES(2));
    CHECK_EQ(x.jobs_made, 1);
    CHECK_EQ(x.requests_made, 0);
    CHECK_STR(operations_condition(&x, "hello", "Paused"), "True/GateTimeout");
    check_has(gate_message(&x, "hello"), "its Job failed with exit code 3");
    operations_end(&x);
}

TEST(gates_of_a_wave_run_their_job_without_access_to_a_host)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(
        &x, "hello",
        "  rollout: {minReady: 10s, waves: [{name: canary, size: 1, gates: [{job: "
        "{image: look, podAnnotations: {sandbox.drydock.dev/run: 5s}}}]}]}\n" ONE_SHOT);
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_EQ(x.jobs_made, 3);
    operations_end(&x);
}
