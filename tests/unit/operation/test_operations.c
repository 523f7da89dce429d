#include "tests/unit/operation/operations_fixture.h"

#define ONE_SHOT                                                                                   \
    "  operations:\n"                                                                              \
    "  - {name: say, type: one-shot, script: echo hello}\n"

TEST(operations_run_a_script_on_every_node_one_at_a_time)
{
    struct operations_fixture x;
    operations_begin(&x, 4);
    operations_maintain(&x, "hello", "  disruption: {cordon: Always}\n" ONE_SHOT);
    operations_run(&x, MINUTES(15));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_STR(operations_text(&x, "hello", "status.progress"), "4/4");
    CHECK_STR(operations_condition(&x, "hello", "Complete"), "True/Done");
    CHECK_STR(operations_condition(&x, "hello", "Finished"), "True/Succeeded");
    CHECK_EQ(x.jobs_made, 4);
    CHECK_EQ(x.requests_made, 4);
    CHECK_EQ(x.cordoned_most, 1);
    CHECK_EQ(x.cordoned, 0);
    CHECK(x.state_writes <= 4 * 6);
    operations_end(&x);
}

TEST(operations_run_again_only_what_has_changed)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(&x, "hello", ONE_SHOT);
    operations_run(&x, MINUTES(10));
    CHECK_EQ(x.jobs_made, 2);
    operations_patch(&x, "hello", "{\"spec\":{\"priority\":5}}"); /* no part of what is done */
    operations_run(&x, MINUTES(10));
    CHECK_EQ(x.jobs_made, 2);
    operations_patch(&x, "hello",
                     "{\"spec\":{\"operations\":[{\"name\":\"say\",\"type\":"
                     "\"one-shot\",\"script\":\"echo again\"}]}}");
    operations_run(&x, MINUTES(10));
    CHECK_EQ(x.jobs_made, 4);
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_end(&x);
}

static void count_open_request(void *ctx, const struct jval *request)
{
    uint32_t *open = ctx;
    *open += str_eq(jval_str(jval_at(request, "spec.state")), STR("Completed")) ? 0 : 1;
}

/* Its NodeState, and the record of the visit with it, goes with the Node: what the visit holds of
 * limits must not stay for ever. */
TEST(operations_complete_the_request_of_a_node_that_is_gone)
{
    struct operations_fixture x;
    struct err err = { 0 };
    uint32_t open = 0;
    operations_begin(&x, 1);
    operations_maintain(&x, "hello", "  disruption: {cordon: Always}\n" ONE_SHOT);
    while (!operations_is_cordoned(&x, "node-001")) {
        operations_run(&x, SECONDS(1));
    }
    CHECK_EQ(world_remove_node(x.world, STR("node-001"), &err), 0);
    operations_run(&x, MINUTES(5));
    CHECK(operations_state(&x, "node-001") == NULL);
    CHECK_EQ(x.requests_made, 1);
    apiserver_each(x.server, STR("repairman.k8s.io"), STR("maintenancerequests"), STR(""),
                   count_open_request, &open);
    CHECK_EQ(open, 0);
    operations_end(&x);
}

/* The cordon carries the mark of the object that failed, which is not the visit's first one: it
 * joins while the other's preflight runs. */
TEST(operations_take_over_a_cordon_that_another_object_of_the_visit_left)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "fails",
                        "  disruption: {cordon: Always}\n"
                        "  failurePolicy: {retries: 1, backoff: {initial: 30s, max: 30s}, "
                        "onNodeFailure: KeepCordoned}\n"
                        "  operations:\n"
                        "  - {name: say, type: one-shot, script: exit 1}\n");
    while (jval_get(jval_at(operations_node(&x, "node-001"), "metadata.annotations"),
                    KEY_KEPT_CORDON) == NULL) {
        operations_run(&x, SECONDS(1));
    }
    operations_run(&x, SECONDS(18));
    operations_maintain(&x, "hello",
                        "  disruption: {cordon: Always}\n"
                        "  operations:\n"
                        "  - {name: say, type: one-shot, script: echo hello, "
                        "preflight: {script: exit 0}}\n");
    operations_run(&x, MINUTES(10));
    CHECK_EQ(x.requests_made, 2); /* one visit for both */
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_STR(operations_text(&x, "fails", "status.phase"), "Paused");
    operations_end(&x);
}

/* The mark of the failure goes with the cordon that somebody lifts: the next cordon is theirs. */
TEST(operations_leave_a_cordon_made_after_a_kept_one_was_lifted)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "fails",
                        "  disruption: {cordon: Always}\n"
                        "  failurePolicy: {retries: 0, onNodeFailure: KeepCordoned}\n"
                        "  operations:\n"
                        "  - {name: say, type: one-shot, script: exit 1}\n");
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "fails", "status.phase"), "Paused");
    CHECK(operations_is_cordoned(&x, "node-001"));
    (void)operations_http(&x, 200, "PATCH", "/api/v1/nodes/node-001",
                          STR("{\"spec\":{\"unschedulable\":null}}"));
    operations_run(&x, SECONDS(10));
    (void)operations_http(&x, 200, "PATCH", "/api/v1/nodes/node-001",
                          STR("{\"spec\":{\"unschedulable\":true}}"));
    operations_run(&x, SECONDS(10));
    operations_patch(&x, "fails",
                     "{\"spec\":{\"operations\":[{\"name\":\"say\",\"type\":"
                     "\"one-shot\",\"script\":\"echo again\"}]}}");
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "fails", "status.phase"), "Complete");
    CHECK(operations_is_cordoned(&x, "node-001"));
    operations_end(&x);
}

TEST(operations_rerun_by_annotation_once)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(&x, "hello", ONE_SHOT);
    operations_run(&x, MINUTES(10));
    operations_patch(&x, "hello",
                     "{\"metadata\":{\"annotations\":{\"drydock.dev/rerun\":"
                     "\"say/node-002@2026-01-05T00:09:00Z\"}}}");
    operations_run(&x, MINUTES(10));
    CHECK_EQ(x.jobs_made, 3);
    operations_patch(&x, "hello", "{\"spec\":{\"description\":\"a sync puts it back\"}}");
    operations_run(&x, MINUTES(10));
    CHECK_EQ(x.jobs_made, 3);
    operations_end(&x);
}

TEST(operations_reboot_a_drained_node_when_it_is_required)
{
    struct operations_fixture x;
    operations_begin(&x, 3);
    operations_maintain(
        &x, "patches",
        "  operations:\n"
        "  - name: upgrade\n"
        "    type: one-shot\n"
        "    job: {script: apt, podAnnotations: {sandbox.drydock.dev/reboot-required: 'true'}}\n"
        "    reboot: {policy: IfRequired}\n");
    operations_run(&x, MINUTES(30));
    CHECK_STR(operations_text(&x, "patches", "status.phase"), "Complete");
    CHECK_EQ(x.reboots, 3);
    CHECK_EQ(x.cordoned_most, 1);
    CHECK_EQ(x.cordoned, 0);
    CHECK(!operations_is_cordoned(&x, "node-001"));
    operations_end(&x);
}

TEST(operations_do_as_kured_does_in_ten_lines)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(&x, "reboots",
                        "  window: {days: [Mon, Tue, Wed, Thu], from: '22:00', to: '04:00'}\n"
                        "  operations:\n"
                        "  - {name: reboot, type: realtime, reboot: {policy: IfRequired}}\n");
    operations_run(
        &x, HOURS(20)); /* it is Monday, and open until 04:00: no, since Sunday is not named */
    CHECK_EQ(x.jobs_made, 0);
    CHECK_STR(operations_text(&x, "reboots", "status.reason"), "Idle");
    operations_run(&x, HOURS(3)); /* 23:00: probes find nothing */
    CHECK(x.jobs_made >= 2);
    CHECK_EQ(x.requests_made, 0); /* nothing to do costs no request */
    CHECK_EQ(x.reboots, 0);
    operations_end(&x);
}

TEST(operations_wait_for_their_window_and_start_nothing_behind_it)
{
    struct operations_fixture x;
    operations_begin(&x, 20);
    operations_create(&x, "MaintenanceWindow", "maintenancewindows", "night",
                      "  recurrences: [{weekly: {days: [Mon], from: '02:00', to: '02:05'}}]\n"
                      "  minRemaining: 1m\n");
    operations_maintain(&x, "hello", "  window: {refs: [night]}\n" ONE_SHOT);
    operations_run(&x, HOURS(1));
    CHECK_STR(operations_text(&x, "hello", "status.reason"), "WaitingWindow");
    CHECK_STR(operations_text(&x, "hello", "status.next"), "01-05 02:00Z");
    CHECK_EQ(x.requests_made, 0);
    operations_run(&x, HOURS(2));
    uint32_t made = x.jobs_made;
    CHECK(made > 5 && made < 20);
    CHECK_EQ(x.requests_made, made); /* each took some 20 s, and none began after 02:04 */
    operations_run(&x, HOURS(24));
    CHECK_EQ(x.jobs_made, made);
    operations_run(&x, DAYS(7)); /* next Monday */
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(operations_pause_after_failures_and_resume)
{
    struct operations_fixture x;
    operations_begin(&x, 3);
    operations_maintain(
        &x, "broken",
        "  disruption: {cordon: Always}\n"
        "  failurePolicy: {retries: 1, backoff: {initial: 10s}}\n"
        "  operations:\n"
        "  - name: fail\n"
        "    type: one-shot\n"
        "    job: {script: 'false', podAnnotations: {sandbox.drydock.dev/exit: '3'}}\n");
    operations_run(&x, MINUTES(30));
    CHECK_STR(operations_text(&x, "broken", "status.phase"), "Paused");
    CHECK_STR(operations_condition(&x, "broken", "Stalled"), "True/FailureLimit");
    CHECK_STR(operations_condition(&x, "broken", "Finished"), "True/Failed");
    CHECK_EQ(operations_number(&x, "broken", "status.counts.failed"), 1);
    CHECK_EQ(x.jobs_made, 2); /* one machine, two attempts */
    struct str machine = jval_str(jval_get(
        jval_first(jval_at(operations_find(&x, "broken"), "status.failed")), STR("machine")));
    CHECK(
        operations_is_cordoned(&x, arena_str(&x.memory, machine).p)); /* it is not to be trusted */
    struct str revision = operations_text(&x, "broken", "status.revision");
    operations_patch(
        &x, "broken",
        arena_printf(&x.memory,
                     "{\"metadata\":{\"annotations\":{\"drydock.dev/resume\":\"" STR_FMT "\"}}}",
                     STR_ARG(revision))
            .p);
    operations_run(&x, MINUTES(30));
    CHECK(x.jobs_made > 2);
    CHECK_STR(operations_text(&x, "broken", "status.phase"), "Paused");
    operations_end(&x);
}

TEST(operations_go_on_after_a_crash_at_any_time)
{
    for (uint32_t at = 1; at < 60; at += 3) {
        struct operations_fixture x;
        check_case(at);
        operations_begin(&x, 2);
        operations_maintain(&x, "patches",
                            "  rollout: {maxConcurrent: 2, minReady: 1s}\n"
                            "  operations:\n"
                            "  - name: upgrade\n"
                            "    type: one-shot\n"
                            "    job: {script: apt, podAnnotations: "
                            "{sandbox.drydock.dev/reboot-required: 'true'}}\n"
                            "    reboot: {policy: IfRequired}\n");
        operations_run(&x, MSECONDS(at * 700));
        operations_crash(&x);
        operations_start(&x);
        operations_run(&x, MINUTES(30));
        CHECK_STR(operations_text(&x, "patches", "status.phase"), "Complete");
        CHECK_EQ(x.reboots, 2);
        CHECK_EQ(x.jobs_made, 6); /* a payload, a reboot and a look behind it each */
        CHECK_EQ(x.cordoned, 0);
        operations_end(&x);
    }
    check_case(-1);
}

TEST(operations_of_several_objects_share_one_visit)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "a",
                        "  suspend: true\n"
                        "  operations:\n"
                        "  - {name: one, type: one-shot, script: one, reboot: {policy: Always}}\n");
    operations_maintain(&x, "b",
                        "  suspend: true\n"
                        "  operations:\n"
                        "  - {name: two, type: one-shot, script: two, reboot: {policy: Always}}\n");
    operations_run(&x, MINUTES(1));
    operations_patch(&x, "a", "{\"spec\":{\"suspend\":false}}");
    operations_patch(&x, "b", "{\"spec\":{\"suspend\":false}}");
    operations_run(&x, MINUTES(20));
    CHECK_STR(operations_text(&x, "a", "status.phase"), "Complete");
    CHECK_STR(operations_text(&x, "b", "status.phase"), "Complete");
    CHECK_EQ(x.requests_made, 1);
    CHECK_EQ(x.reboots, 1);
    CHECK_EQ(x.jobs_made, 3); /* two payloads and a reboot */
    operations_end(&x);
}

TEST(operations_count_under_limits_like_everybody)
{
    struct operations_fixture x;
    operations_begin(&x, 4);
    (void)operations_http(&x, 201, "POST", MAINTENANCE_LIMITS_PATH,
                          STR("{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":"
                              "\"MaintenanceLimit\",\"metadata\":{\"name\":\"one\"},\"spec\":"
                              "{\"type\":\"node\",\"maxCount\":1}}"));
    operations_maintain(&x, "hello",
                        "  rollout: {maxConcurrent: 4}\n"
                        "  disruption: {cordon: Always}\n" ONE_SHOT);
    operations_run(&x, MINUTES(20));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_EQ(x.cordoned_most, 1);
    operations_end(&x);
}

TEST(operations_go_through_waves_with_soak_and_approval)
{
    struct operations_fixture x;
    operations_begin(&x, 5);
    operations_maintain(&x, "waves",
                        "  rollout:\n"
                        "    maxConcurrent: 5\n"
                        "    waves:\n"
                        "    - {name: canary, size: 1, soak: 10m}\n"
                        "    - {name: rest, size: 100%, approval: Manual}\n" ONE_SHOT);
    operations_run(&x, MINUTES(5));
    CHECK_EQ(x.jobs_made, 1);
    CHECK_STR(operations_text(&x, "waves", "status.reason"), "Soaking");
    operations_run(&x, MINUTES(10));
    CHECK_EQ(x.jobs_made, 1);
    CHECK_STR(operations_text(&x, "waves", "status.reason"), "WaitingApproval");
    struct str revision = str_sub(operations_text(&x, "waves", "status.revision"), 0, 16);
    operations_patch(
        &x, "waves",
        arena_printf(&x.memory,
                     "{\"metadata\":{\"annotations\":{\"drydock.dev/approve\":\"" STR_FMT
                     "/rest by alice\"}}}",
                     STR_ARG(revision))
            .p);
    operations_run(&x, MINUTES(10));
    CHECK_EQ(x.jobs_made, 5);
    CHECK_STR(operations_text(&x, "waves", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(operations_wait_while_too_many_nodes_are_down)
{
    struct operations_fixture x;
    struct err err = { 0 };
    operations_begin(&x, 4);
    CHECK_EQ(world_fail_node(x.world, STR("node-003"), &err), 0);
    operations_run(&x, MINUTES(2));
    operations_maintain(&x, "gated",
                        "  rollout: {gates: {beforeNode: [{nodes: {maxNotReady: 0}}]}}\n" ONE_SHOT);
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "gated", "status.reason"), "WaitingGate");
    CHECK_EQ(x.jobs_made, 0);
    CHECK_EQ(x.requests_made, 0);
    CHECK_EQ(world_recover_node(x.world, STR("node-003"), &err), 0);
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "gated", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(operations_serve_ticks_once_and_catch_up_once)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(&x, "hourly",
                        "  operations:\n"
                        "  - {name: clean, type: cron, schedule: '0 * * * *', disruptive: Never, "
                        "script: clean}\n");
    operations_run(&x, MINUTES(30));
    CHECK_EQ(x.jobs_made, 0);
    operations_run(&x, HOURS(2));
    CHECK_EQ(x.jobs_made, 4); /* 01:00 and 02:00 */
    CHECK_EQ(x.requests_made, 0);
    operations_crash(&x);
    operations_run(&x, HOURS(5));
    operations_start(&x);
    operations_run(&x, MINUTES(10));
    CHECK_EQ(x.jobs_made, 6); /* the last of five that were missed */
    operations_end(&x);
}

TEST(operations_skip_what_a_preflight_finds_done)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(&x, "checked",
                        "  disruption: {cordon: Always}\n"
                        "  operations:\n"
                        "  - name: upgrade\n"
                        "    type: one-shot\n"
                        "    script: upgrade\n"
                        "    preflight: {script: 'exit 0'}\n");
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "checked", "status.phase"), "Complete");
    CHECK_EQ(x.jobs_made, 4); /* a preflight and a payload each */
    operations_patch(&x, "checked",
                     "{\"spec\":{\"operations\":[{\"name\":\"upgrade\",\"type\":\"one-shot\","
                     "\"script\":\"upgrade\",\"preflight\":{\"script\":\"exit 77\"}}]}}");
    uint32_t requests = x.requests_made;
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "checked", "status.phase"), "Complete");
    CHECK_EQ(x.jobs_made, 6); /* nothing is to be done, and nothing is asked for */
    CHECK_EQ(x.requests_made, requests);
    operations_end(&x);
}

TEST(operations_end_when_their_object_is_deleted)
{
    struct operations_fixture x;
    operations_begin(&x, 3);
    operations_maintain(&x, "hello", "  disruption: {cordon: Always}\n" ONE_SHOT);
    operations_run(&x, SECONDS(10));
    CHECK(x.cordoned == 1);
    (void)operations_http(&x, 200, "DELETE", NODE_MAINTENANCES_PATH "/hello", STR(""));
    operations_run(&x, MINUTES(5));
    CHECK(operations_find(&x, "hello") == NULL);
    CHECK_EQ(x.cordoned, 0);
    CHECK_EQ(x.jobs_made, 1); /* the one that ran has ended, no other began */
    operations_end(&x);
}

TEST(operations_forget_a_node_that_is_removed_in_the_middle)
{
    struct operations_fixture x;
    struct err err = { 0 };
    operations_begin(&x, 3);
    operations_maintain(&x, "hello", "  disruption: {cordon: Always}\n" ONE_SHOT);
    operations_run(&x, SECONDS(10));
    struct str machine = jval_str(jval_get(
        jval_first(jval_at(operations_find(&x, "hello"), "status.visits")), STR("machine")));
    CHECK(machine.n > 0);
    CHECK_EQ(world_remove_node(x.world, arena_str(&x.memory, machine), &err), 0);
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    CHECK_STR(operations_text(&x, "hello", "status.progress"), "2/2");
    operations_end(&x);
}

TEST(operations_name_the_field_of_what_they_refuse)
{
    static const struct {
        const char *spec;
        const char *reason;
        const char *part;
    } cases[] = {
        { "  window: {refs: [nowhere]}\n" ONE_SHOT, "RefNotFound", "spec.window.refs[0]" },
        { "  nodeSeries: {ref: nowhere}\n" ONE_SHOT, "RefNotFound", "spec.nodeSeries.ref" },
        { "  operations:\n  - {name: a, type: one-shot, template: {name: none}}\n", "RefNotFound",
          "template.name" },
        { "  window: {timeZone: Europe/Berlin, days: [Mon], from: '01:00', to: '02:00'}\n" ONE_SHOT,
          "UnknownZone", "spec.window.timeZone" },
        { "  operations:\n  - {name: a, type: realtime, resources: [{name: f, type: file, path: "
          "/x}]}\n",
          "Unsupported", "agent" },
        { "  notify: [{urlFrom: {secret: slack, key: url}}]\n" ONE_SHOT, "Unsupported",
          "spec.notify" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct operations_fixture x;
        check_case((int64_t)i);
        operations_begin(&x, 1);
        operations_maintain(&x, "wrong", cases[i].spec);
        operations_run(&x, MINUTES(1));
        CHECK_STR(operations_text(&x, "wrong", "status.phase"), "Invalid");
        CHECK_STR(operations_text(&x, "wrong", "status.reason"), cases[i].reason);
        struct str message = STR_NONE;
        JVAL_EACH (jval_at(operations_find(&x, "wrong"), "status.conditions"), c) {
            if (str_eq(jval_str(jval_get(c, STR("type"))), STR("Accepted"))) {
                message = jval_str(jval_get(c, STR("message")));
            }
        }
        if (!str_contains(message, str_from(cases[i].part))) {
            check_fail(__FILE__, __LINE__, "'" STR_FMT "' does not name %s", STR_ARG(message),
                       cases[i].part);
        }
        CHECK_EQ(x.requests_made, 0);
        operations_end(&x);
    }
    check_case(-1);
}
