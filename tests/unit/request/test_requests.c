#include "tests/unit/request/requests_fixture.h"

static void fixture_done(struct requests_fixture *q)
{
    fixture_end(q);
}

#define ONE "{\"limit\":10}" /* of ten nodes, or fewer: one */

TEST(requests_walk_the_four_steps_and_leave_nothing_behind)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", ONE);
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "Approved");
    CHECK_EQ(fixture_reservations(&q), 1);
    CHECK_EQ(fixture_locks(&q), 1);
    CHECK_STR(fixture_condition(&q, "mr-1", "Accepted", "status"), "True");
    CHECK_STR(fixture_condition(&q, "mr-1", "LimitAvailable", "status"), "True");
    CHECK_STR(fixture_condition(&q, "mr-1", "SafeToProceed", "status"), "True");
    fixture_set_state(&q, "mr-1", "InProgress");
    fixture_run_until_phase(&q, "mr-1", "InProgress");
    CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "InProgress");
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-1", "Completed");
    CHECK_STR(fixture_text(&q, "mr-1", "status.result"), "Succeeded");
    fixture_run_until_clean(&q);
    struct str note;
    CHECK_EQ(fixture_events(&q, "MaintenanceApproved", &note), 1);
    CHECK_STR(note, "approved maintenance request, under limits 1");
    CHECK_EQ(fixture_events(&q, "MaintenanceCompleted", NULL), 1);
}

TEST(requests_without_any_limit_are_approved_with_the_number_of_old)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 2, 1);
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_run(&q, SECONDS(5));
    struct str note;
    CHECK_EQ(fixture_events(&q, "MaintenanceApproved", &note), 1);
    CHECK_STR(note, "approved maintenance request, no limit applies");
}

TEST(requests_wait_their_turn_and_say_why)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", ONE);
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_create_request(&q, "mr-2", "node-002", "");
    fixture_run_until_phase(&q, "mr-2", "Pending");
    CHECK_STR(fixture_text(&q, "mr-2", "status.reason"), "LimitReached");
    CHECK_STR(fixture_condition(&q, "mr-2", "LimitAvailable", "status"), "False");
    CHECK_STR(fixture_text(&q, "mr-2", "spec.state"), "Pending");
    fixture_run(&q, MINUTES(5));
    CHECK_STR(fixture_text(&q, "mr-2", "spec.state"), "Pending");
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-2", "Approved");
    CHECK_EQ(q.most, 1);
}

TEST(requests_for_one_node_are_granted_one_after_the_other)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", "{\"limit\":100}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_create_request(&q, "mr-2", "node-001", "");
    fixture_run_until_phase(&q, "mr-2", "Pending");
    CHECK_STR(fixture_text(&q, "mr-2", "status.reason"), "TargetBusy");
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-2", "Approved");
}

TEST(requests_rest_when_nothing_happens)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", ONE);
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_create_request(&q, "mr-2", "node-002", "");
    fixture_run(&q, MINUTES(20));
    uint64_t writes = fixture_requests_sent(&q, "maintenancerequests", SIM_PATCH) +
                      fixture_requests_sent(&q, "maintenancerequests/status", SIM_PATCH);
    uint64_t version = apiserver_resource_version(q.server);
    fixture_run(&q, MINUTES(10));
    CHECK_EQ(fixture_requests_sent(&q, "maintenancerequests", SIM_PATCH) +
                 fixture_requests_sent(&q, "maintenancerequests/status", SIM_PATCH),
             writes);
    CHECK_EQ(apiserver_resource_version(q.server), version);
}

TEST(requests_that_ask_for_nothing_sensible_are_told_so)
{
    static const struct {
        const char *name;
        const char *spec;
        const char *reason;
    } cases[] = {
        { "none", "", "InvalidSpec" },
        { "empty", ",\"spec\":{}", "InvalidSpec" },
        { "space", ",\"spec\":{\"type\":\"deployment\",\"name\":\"d\"}", "InvalidSpec" },
        { "missing", ",\"spec\":{\"type\":\"node\",\"name\":\"nowhere\"}", "TargetNotFound" },
    };
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 1, 1);
    fixture_create_limit(&q, "node", ONE);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        (void)fixture_http(&q, 201, "POST", "/apis/repairman.k8s.io/v1/maintenancerequests",
                           arena_printf(&q.memory,
                                        "{\"apiVersion\":\"repairman.k8s.io/v1\","
                                        "\"kind\":\"MaintenanceRequest\",\"metadata\":{\"name\":"
                                        "\"%s\"}%s}",
                                        cases[i].name, cases[i].spec)
                               .p);
    }
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        fixture_run_until_phase(&q, cases[i].name, "Pending");
        CHECK_STR(fixture_condition(&q, cases[i].name, "Accepted", "status"), "False");
        CHECK_STR(fixture_condition(&q, cases[i].name, "Accepted", "reason"), cases[i].reason);
    }
    check_case(-1);
    /* The node comes. */
    struct err err = { 0 };
    CHECK_EQ(world_add_node(q.world, STR("nowhere"), &err), 0);
    fixture_run_until_phase(&q, "missing", "Approved");
}

/* ── preparation ───────────────────────────────────────────────────────────────────────────── */

#define DRAINS "{\"limit\":10,\"drain\":{}}"

static bool node_cordoned(struct requests_fixture *q, const char *name)
{
    const struct jval *node =
        apiserver_find(q->server, STR(""), STR("nodes"), STR(""), str_from(name));
    return jval_bool(jval_at(node, "spec.unschedulable"), false);
}

TEST(requests_hand_out_a_node_that_is_cordoned_and_empty)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", DRAINS);
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    CHECK(node_cordoned(&q, "node-001"));
    fixture_set_state(&q, "mr-1", "InProgress");
    fixture_run_until_phase(&q, "mr-1", "InProgress");
    CHECK(node_cordoned(&q, "node-001"));
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-1", "Completed");
    CHECK(!node_cordoned(&q, "node-001")); /* uncordoned first (R3) */
    fixture_run_until_clean(&q);
}

/* What is known of the node may be older than the request. */
TEST(requests_for_a_machine_are_not_drained_before_the_node_carries_them)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", DRAINS);
    (void)fixture_http(&q, 201, "POST", "/apis/repairman.k8s.io/v1/maintenancerequests",
                       "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceRequest\","
                       "\"metadata\":{\"name\":\"mr-1\",\"annotations\":{"
                       "\"drydock.dev/bridge-request\":\"u-1\"}},"
                       "\"spec\":{\"name\":\"node-001\",\"type\":\"node\"}}");
    fixture_run_until_phase(&q, "mr-1", "Preparing");
    fixture_run(&q, MINUTES(1));
    CHECK_STR(fixture_text(&q, "mr-1", "status.phase"), "Preparing");
    CHECK_STR(fixture_condition(&q, "mr-1", "Prepared", "message"),
              "draining: it waits until the node carries request 'u-1' of its Machine, and with it "
              "the rules to drain by");
    (void)fixture_http(&q, 200, "PATCH", "/api/v1/nodes/node-001",
                       "{\"metadata\":{\"annotations\":{\"drydock.dev/deletion-request\":\"u-1\","
                       "\"drydock.dev/drain-rules\":\"[]\"}}}");
    fixture_run_until_phase(&q, "mr-1", "Approved");
}

TEST(requests_whose_actor_drains_itself_are_left_alone)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 2, 1);
    fixture_create_limit(&q, "node", DRAINS);
    fixture_create_request(&q, "mr-1", "node-001", ",\"preparation\":\"None\"");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    CHECK(!node_cordoned(&q, "node-001"));
}

TEST(requests_that_are_deleted_give_back_all_they_had)
{
    static const char *const phases[] = { "Preparing", "Approved", "InProgress" };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        check_case((int64_t)i);
        CLEANUP(fixture_done)
        struct requests_fixture q = { 0 };
        fixture_begin(&q, 2, 1);
        fixture_create_limit(&q, "node", "{\"limit\":10,\"drain\":{\"postGraceSeconds\":5}}");
        q.actors_begin = i == 2;
        fixture_create_request(&q, "mr-1", "node-001", "");
        fixture_run_until_phase(&q, "mr-1", phases[i]);
        fixture_delete(&q, "mr-1");
        fixture_run_until_clean(&q);
        fixture_create_request(&q, "mr-2", "node-002", "");
        fixture_run_until_phase(&q, "mr-2", phases[i]);
    }
    check_case(-1);
}

/* What it was prepared for is gone, and so is the reason to wait; its cordon is lifted in the end.
 */
TEST(requests_whose_limit_is_deleted_go_on_without_it)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 2, 1);
    fixture_create_limit(&q, "node", "{\"limit\":100,\"drain\":{\"postGraceSeconds\":3600}}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until(&q, "mr-1", "status.step", "DrainGrace", MINUTES(1));
    CHECK(node_cordoned(&q, "node-001"));
    (void)fixture_http(&q, 200, "DELETE", "/apis/repairman.k8s.io/v1/maintenancelimits/node", "");
    fixture_run_until(&q, "mr-1", "status.phase", "Approved", MINUTES(1));
    CHECK_EQ(fixture_locks(&q), 1);
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-1", "Completed");
    fixture_run_until_clean(&q);
}

TEST(requests_that_were_deleted_while_nobody_looked_leave_nothing_either)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 2, 1);
    fixture_create_limit(&q, "node", DRAINS);
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_crash(&q);
    fixture_delete(&q, "mr-1");
    CHECK(node_cordoned(&q, "node-001"));
    fixture_start_controller(&q);
    fixture_run_until_clean(&q);
}

TEST(requests_never_lift_a_cordon_of_somebody_else)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 2, 1);
    fixture_create_limit(&q, "node", DRAINS);
    (void)fixture_http(&q, 200, "PATCH", "/api/v1/nodes/node-001",
                       "{\"spec\":{\"unschedulable\":true}}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    q.actors_begin = true;
    q.actors_complete = true;
    fixture_run_until_phase(&q, "mr-1", "Completed");
    fixture_run(&q, MINUTES(2));
    CHECK(node_cordoned(&q, "node-001"));
    CHECK_EQ(fixture_locks(&q) + fixture_reservations(&q), 0);
}

TEST(requests_wait_while_a_budget_would_hold_a_pod_of_the_node)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 1, 1);
    struct world_config config = { 0 };
    struct str *objects;
    uint32_t n;
    struct err err = { 0 };
    CHECK_EQ(world_file_read(STR("workloads: [{name: web, replicas: 1}]\n"
                                 "budgets: [{name: web, minAvailable: 1}]\n"),
                             &q.memory, &config, &objects, &n, &err),
             0);
    CHECK_EQ(world_create_objects(q.world, objects, n, &err), 0);
    fixture_run(&q, MINUTES(1));
    fixture_create_limit(&q, "node", "{\"limit\":100,\"safetyChecks\":[\"PodDisruptionBudgets\"]}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Pending");
    CHECK(str_contains(fixture_text(&q, "mr-1", "status.message"),
                       STR("PDBWouldBlock: default/web")));
    fixture_run(&q, MINUTES(5));
    CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "Pending");
    (void)fixture_http(&q, 200, "DELETE",
                       "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
}

static void make_control_plane(struct requests_fixture *q, const char *node)
{
    (void)fixture_http(
        q, 200, "PATCH", arena_printf(&q->memory, "/api/v1/nodes/%s", node).p,
        "{\"metadata\":{\"labels\":{\"node-role.kubernetes.io/control-plane\":\"\"}}}");
}

TEST(requests_for_the_last_control_plane_node_are_not_granted)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 4, 1);
    make_control_plane(&q, "node-001");
    fixture_create_limit(&q, "node", "{\"limit\":100,\"safetyChecks\":[\"ControlPlaneQuorum\"]}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_create_request(&q, "mr-2", "node-002", "");
    fixture_run_until_phase(&q, "mr-2", "Approved");
    fixture_run(&q, MINUTES(5));
    CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "Pending");
    CHECK_STR(fixture_condition(&q, "mr-1", "SafeToProceed", "status"), "False");
    /* Two more, and it goes at once, although minutes lie between two tries by now. */
    make_control_plane(&q, "node-003");
    make_control_plane(&q, "node-004");
    fixture_run(&q, SECONDS(5));
    CHECK_STR(fixture_text(&q, "mr-1", "status.phase"), "Approved");
}

/* ── time limits ───────────────────────────────────────────────────────────────────────────── */

TEST(requests_lose_an_approval_that_nobody_uses)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", "{\"limit\":10,\"timeouts\":{\"approvedSeconds\":60}}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    usec_t approved = virtual_loop_now(q.v);
    fixture_create_request(&q, "mr-2", "node-002", "");
    /* Nothing before the time and the tolerance have passed. */
    fixture_run(&q, approved + SECONDS(64) - virtual_loop_now(q.v));
    CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "Approved");
    fixture_run_until_phase(&q, "mr-2", "Approved");
    CHECK(virtual_loop_now(q.v) >= approved + SECONDS(65));
    CHECK_STR(fixture_text(&q, "mr-1", "status.phase"), "Pending");
    CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "Pending");
    CHECK_STR(fixture_text(&q, "mr-1", "status.lastRejection.reason"), "ApprovedTimeout");
    CHECK_EQ(fixture_events(&q, "MaintenanceRejected", NULL), 1);
    CHECK_EQ(q.rejected, 1);
    CHECK_EQ(q.expired, 0);
    CHECK_EQ(q.most, 1);
}

/* The next leader's clock is an hour off; time limits are the server's all the same. */
TEST(requests_lose_nothing_early_when_the_clock_jumps_with_the_leader)
{
    static const usec_t skews[] = { HOURS(1), -HOURS(1) };
    for (uint32_t i = 0; i < ARRAY_LEN(skews); i++) {
        CLEANUP(fixture_done)
        struct requests_fixture q = { 0 };
        fixture_begin(&q, 3, 1);
        fixture_create_limit(&q, "node",
                             "{\"limit\":100,\"timeouts\":{\"approvedSeconds\":600,"
                             "\"inProgressSeconds\":600}}");
        fixture_create_request(&q, "mr-1", "node-001", "");
        fixture_create_request(&q, "mr-2", "node-002", "");
        fixture_run_until_phase(&q, "mr-1", "Approved");
        fixture_run_until_phase(&q, "mr-2", "Approved");
        fixture_set_state(&q, "mr-2", "InProgress");
        fixture_run_until_phase(&q, "mr-2", "InProgress");
        usec_t from = virtual_loop_now(q.v);
        fixture_crash(&q);
        q.skew = skews[i];
        fixture_start_controller(&q);
        fixture_run(&q, SECONDS(590));
        CHECK_STR(fixture_text(&q, "mr-1", "status.phase"), "Approved");
        CHECK_STR(fixture_text(&q, "mr-2", "status.phase"), "InProgress");
        fixture_run_until(&q, "mr-1", "status.lastRejection.reason", "ApprovedTimeout", MINUTES(1));
        fixture_run_until_phase(&q, "mr-2", "Expired");
        CHECK_EQ(q.expired, 1);
        CHECK(virtual_loop_now(q.v) >= from + SECONDS(600) &&
              virtual_loop_now(q.v) < from + SECONDS(640));
    }
}

/* Who holds an approval hears of a limit that changes, at once. */
TEST(requests_follow_time_limits_that_are_changed_under_them)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 1, 1);
    fixture_create_limit(&q, "node", "{\"limit\":100,\"timeouts\":{\"approvedSeconds\":86400}}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_run(&q, MINUTES(10));
    (void)fixture_http(&q, 200, "PATCH", "/apis/repairman.k8s.io/v1/maintenancelimits/node",
                       "{\"spec\":{\"timeouts\":{\"approvedSeconds\":60}}}");
    fixture_run(&q, SECONDS(5));
    CHECK_STR(fixture_text(&q, "mr-1", "status.lastRejection.reason"), "ApprovedTimeout");
}

TEST(requests_that_wait_for_a_gap_do_not_turn_in_circles)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node",
                         "{\"limit\":10,\"timeouts\":{\"betweenOperationsSeconds\":5}}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_create_request(&q, "mr-2", "node-002", "");
    fixture_run(&q, SECONDS(20)); /* the gap is over, the limit is full */
    /* While the reservation goes, which takes its time, the gap holds although its end has come. */
    q.faults.latency_min = MSECONDS(300);
    q.faults.latency_max = MSECONDS(300);
    fixture_set_state(&q, "mr-1", "Completed");
    uint32_t steps = 0;
    usec_t until = virtual_loop_now(q.v) + SECONDS(20);
    while (steps < 10000 && virtual_loop_step(q.v, until)) {
        steps++;
    }
    CHECK(steps < 10000);
    fixture_run_until_phase(&q, "mr-2", "Approved");
}

TEST(requests_of_a_client_that_was_refused_stand_last_also_as_new_ones)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node",
                         "{\"limit\":10,\"timeouts\":{\"approvedSeconds\":60,"
                         "\"rejectionBackoffSeconds\":3600,\"onApprovedTimeout\":\"Close\"}}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Rejected");
    CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "Completed");
    CHECK_STR(fixture_text(&q, "mr-1", "status.result"), "Rejected");
    fixture_create_request(&q, "mr-2", "node-002", "");
    fixture_run_until_phase(&q, "mr-2", "Approved");
    /* The same client for the same node, then one for another: the later comes first. */
    fixture_create_request(&q, "mr-3", "node-001", "");
    fixture_run(&q, SECONDS(2));
    fixture_create_request(&q, "mr-4", "node-003", "");
    fixture_run(&q, SECONDS(2));
    fixture_set_state(&q, "mr-2", "Completed");
    fixture_run_until_phase(&q, "mr-4", "Approved");
    CHECK_STR(fixture_text(&q, "mr-3", "spec.state"), "Pending");
}

TEST(requests_that_take_too_long_expire_and_may_end_late)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node",
                         "{\"limit\":10,\"drain\":{},\"timeouts\":{\"inProgressSeconds\":60}}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_set_state(&q, "mr-1", "InProgress");
    fixture_run_until_phase(&q, "mr-1", "Expired");
    CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "InProgress"); /* R5 */
    CHECK(node_cordoned(&q, "node-001"));
    fixture_create_request(&q, "mr-2", "node-002", "");
    fixture_run_until_phase(&q, "mr-2", "Approved");
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-1", "Completed");
    CHECK_STR(fixture_text(&q, "mr-1", "status.result"), "Succeeded");
    CHECK(!node_cordoned(&q, "node-001"));
    fixture_set_state(&q, "mr-2", "Completed");
    fixture_run_until_clean(&q);
}

TEST(requests_that_have_ended_are_deleted_in_time)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    q.config.finished_ttl = HOURS(1);
    fixture_begin(&q, 2, 1);
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_create_request(&q, "mr-2", "node-002", ",\"ttlSecondsAfterFinished\":10");
    q.actors_begin = true;
    q.actors_complete = true;
    fixture_run_until_phase(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-2", "Completed");
    fixture_run(&q, MINUTES(1));
    CHECK(fixture_find(&q, "mr-2") == NULL);
    CHECK(fixture_find(&q, "mr-1") != NULL);
    fixture_run(&q, HOURS(1));
    CHECK(fixture_find(&q, "mr-1") == NULL);
}

/* ── trust ─────────────────────────────────────────────────────────────────────────────────── */

TEST(requests_that_approve_themselves_are_pending_again)
{
    static const char *const forged[] = { ",\"state\":\"Approved\"", ",\"state\":\"InProgress\"" };
    for (size_t i = 0; i < ARRAY_LEN(forged); i++) {
        CLEANUP(fixture_done)
        struct requests_fixture q = { 0 };
        fixture_begin(&q, 3, 1);
        fixture_create_limit(&q, "node", ONE);
        fixture_run(&q, SECONDS(5));
        fixture_create_request(&q, "mr-1", "node-001", "");
        fixture_run_until_phase(&q, "mr-1", "Approved");
        fixture_create_request(&q, "mr-2", "node-002", forged[i]);
        fixture_run_until(&q, "mr-2", "spec.state", "Pending", MINUTES(1));
        fixture_run(&q, SECONDS(5));
        CHECK_EQ(fixture_events(&q, "ForgedApproval", NULL), 1);
        CHECK_EQ(fixture_events(&q, "RequestAdopted", NULL), 0);
        CHECK_STR(fixture_text(&q, "mr-2", "status.phase"), "Pending");
        CHECK_EQ(fixture_reservations(&q), 1);
    }
}

TEST(requests_approved_before_the_take_over_are_adopted)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_crash(&q);
    fixture_create_limit(&q, "node", ONE);
    fixture_create_request(&q, "mr-1", "node-001", ",\"state\":\"Approved\"");
    fixture_create_request(&q, "mr-2", "node-002", ",\"state\":\"InProgress\"");
    fixture_run(&q, SECONDS(5));
    fixture_start_controller(&q);
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_run_until_phase(&q, "mr-2", "InProgress");
    fixture_run(&q, SECONDS(10));
    CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "Approved");
    CHECK_EQ(fixture_reservations(&q), 2); /* above the limit: it is a fact */
    CHECK_EQ(fixture_events(&q, "RequestAdopted", NULL), 2);
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_set_state(&q, "mr-2", "Completed");
    fixture_run_until_clean(&q);
}

/* ── the world around ──────────────────────────────────────────────────────────────────────── */

TEST(requests_can_be_completed_when_their_node_is_gone)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", DRAINS);
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_set_state(&q, "mr-1", "InProgress");
    fixture_run_until_phase(&q, "mr-1", "InProgress");
    struct err err = { 0 };
    CHECK_EQ(world_remove_node(q.world, STR("node-001"), &err), 0);
    fixture_run(&q, SECONDS(10));
    CHECK_STR(fixture_text(&q, "mr-1", "status.phase"), "InProgress");
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-1", "Completed");
    fixture_run_until_clean(&q);
}

TEST(requests_that_a_pause_stops_stay_pending)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", "{\"limit\":10,\"paused\":true}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Pending");
    CHECK_STR(fixture_text(&q, "mr-1", "status.reason"), "Paused");
    (void)fixture_http(&q, 200, "PATCH", "/apis/repairman.k8s.io/v1/maintenancelimits/node",
                       "{\"spec\":{\"paused\":false}}");
    fixture_run_until_phase(&q, "mr-1", "Approved");
}

/* A pause of the limit, or of everything, gives back what was not approved yet: the node takes pods
 * again, and the request waits. What was approved is the actor's. */
static void pause_in_preparation(struct requests_fixture *q, bool everything, bool pause)
{
    if (everything) {
        q->paused = pause ? "everything is paused: x" : NULL;
        arbiter_wake(q->arbiter);
    } else {
        (void)fixture_http(q, 200, "PATCH", "/apis/repairman.k8s.io/v1/maintenancelimits/node",
                           pause ? "{\"spec\":{\"paused\":true}}"
                                 : "{\"spec\":{\"paused\":false}}");
    }
}

TEST(requests_that_are_prepared_wait_again_while_there_is_a_pause)
{
    for (int everything = 0; everything <= 1; everything++) {
        CLEANUP(fixture_done)
        struct requests_fixture q = { 0 };
        check_case(everything);
        fixture_begin(&q, 3, 1);
        fixture_create_limit(&q, "node", "{\"limit\":100,\"drain\":{\"postGraceSeconds\":600}}");
        fixture_create_request(&q, "mr-1", "node-001", "");
        fixture_run_until_phase(&q, "mr-1", "Preparing");
        fixture_run(&q, SECONDS(30));
        pause_in_preparation(&q, everything != 0, true);
        fixture_run(&q, SECONDS(30));
        CHECK_STR(fixture_text(&q, "mr-1", "status.phase"), "Pending");
        CHECK_STR(fixture_text(&q, "mr-1", "status.reason"), everything ? "AllPaused" : "Paused");
        CHECK_STR(fixture_text(&q, "mr-1", "status.message"),
                  everything ? "everything is paused: x" : "limit node is paused");
        CHECK_EQ(fixture_reservations(&q), 0);
        CHECK_EQ(q.rejected, 0); /* nobody's fault */
        fixture_run(&q, MINUTES(30));
        CHECK_STR(fixture_text(&q, "mr-1", "status.phase"), "Pending");
        pause_in_preparation(&q, everything != 0, false);
        fixture_run(&q, MINUTES(15));
        CHECK_STR(fixture_text(&q, "mr-1", "status.phase"), "Approved");
        pause_in_preparation(&q, everything != 0, true);
        fixture_run(&q, MINUTES(1));
        CHECK_STR(fixture_text(&q, "mr-1", "status.phase"), "Approved");
        fixture_set_state(&q, "mr-1", "Completed");
        fixture_run_until_phase(&q, "mr-1", "Completed");
        fixture_run_until_clean(&q);
    }
    check_case(-1);
}

TEST(requests_wait_for_their_definition_to_be_installed)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 2, 1);
    fixture_crash(&q);
    (void)fixture_http(&q, 200, "DELETE",
                       "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
                       "maintenancerequests.repairman.k8s.io",
                       "");
    fixture_start_controller(&q);
    fixture_run(&q, MINUTES(5));
    CHECK(requests_synced(q.requests));
    CHECK_EQ(requests_count(q.requests), 0);
    fixture_install(&q, "crds/maintenancerequests.repairman.k8s.io.yaml");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
}

TEST(requests_are_left_to_whoever_leads)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 2, 1);
    fixture_create_limit(&q, "node", DRAINS);
    q.leading = false;
    requests_wake(q.requests);
    arbiter_wake(q.arbiter);
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run(&q, MINUTES(5));
    CHECK_STR(fixture_text(&q, "mr-1", "status.phase"), "");
    q.leading = true;
    requests_wake(q.requests);
    arbiter_wake(q.arbiter);
    fixture_run_until_phase(&q, "mr-1", "Approved");
}

struct view_order {
    uint32_t n;
    char order[256];
};

static bool view_order_add(void *ctx, const struct requests_view *view)
{
    struct view_order *s = ctx;
    s->order[s->n++] = view->name.p[view->name.n - 1];
    return s->n < sizeof(s->order) - 1;
}

TEST(requests_are_shown_in_the_order_of_the_queue)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 4, 1);
    fixture_create_limit(&q, "node", "{\"limit\":10,\"paused\":true}");
    fixture_create_request(&q, "mr-a", "node-001", "");
    fixture_run(&q, SECONDS(3));
    fixture_create_request(&q, "mr-b", "node-002", "");
    fixture_run(&q, SECONDS(3));
    fixture_create_request(&q, "mr-c", "node-003", ",\"priority\":7");
    fixture_run(&q, SECONDS(3));
    struct view_order s = { 0 };
    requests_each(q.requests, &q.memory, view_order_add, &s);
    CHECK_STR(s.order, "cab");
    metrics_collect(&q.metrics);
    struct str pending = STR("Pending");
    struct metric *phases = metrics_find(&q.metrics, STR("drydock_requests"));
    CHECK_EQ((int64_t)metric_series(phases, &pending)->value, 3);
}

/* ── crashes ───────────────────────────────────────────────────────────────────────────────── */

/* Ends the controller after its n-th request and starts another one. Whatever was on its way then
 * may or may not arrive. Returns false when it had come to rest before that. */
static bool run_with_crash(uint32_t n, const char *limit)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 100 + n);
    q.faults.cancel_executes = 500;
    fixture_create_limit(&q, "node", limit);
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_create_request(&q, "mr-2", "node-002", "");
    q.actors_begin = true;
    q.actors_complete = true;
    usec_t until = virtual_loop_now(q.v) + MINUTES(3);
    bool crashed = false;
    while (virtual_loop_now(q.v) < until && !crashed) {
        usec_t next = MIN(until, virtual_loop_now(q.v) + MSECONDS(200));
        while (!crashed && virtual_loop_step(q.v, next)) {
            crashed = sim_api_sent(q.door) >= n;
        }
        fixture_run_actors(&q);
    }
    if (crashed) {
        fixture_crash(&q);
        fixture_start_controller(&q);
    }
    fixture_run_until_phase(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-2", "Completed");
    fixture_run_until_clean(&q);
    CHECK_EQ(q.most, 1);
    return crashed;
}

TEST(requests_survive_a_crash_after_each_request)
{
    uint32_t n = 1;
    while (run_with_crash(n, ONE)) {
        check_case(n);
        n++;
    }
    check_case(-1);
    CHECK(n > 20);
}

TEST(requests_survive_a_crash_after_each_request_of_a_preparation)
{
    uint32_t n = 1;
    while (run_with_crash(n, "{\"limit\":10,\"drain\":{\"postGraceSeconds\":2}}")) {
        check_case(n);
        n++;
    }
    check_case(-1);
    CHECK(n > 30);
}
