/* What limits want looked at before a node is handed out: the limits of the workloads on it. */
#include "tests/unit/request/requests_fixture.h"

static void fixture_done(struct requests_fixture *q)
{
    fixture_end(q);
}

static void make(struct requests_fixture *q, const char *world)
{
    struct world_config config = { 0 };
    struct str *objects;
    uint32_t n;
    struct err err = { 0 };
    CHECK_EQ(world_file_read(str_from(world), &q->memory, &config, &objects, &n, &err), 0);
    CHECK_EQ(world_create_objects(q->world, objects, n, &err), 0);
    fixture_run(q, MINUTES(2));
}

static void change_limit(struct requests_fixture *q, const char *name, const char *spec)
{
    (void)fixture_http(
        q, 200, "PATCH",
        arena_printf(&q->memory, "/apis/repairman.k8s.io/v1/maintenancelimits/%s", name).p, spec);
}

static const struct {
    const char *kind;
    const char *limit; /* also the type that it governs */
} kinds[] = {
    { "Deployment", "deployment" },
    { "StatefulSet", "statefulset" },
    { "DaemonSet", "daemonset" },
};

TEST(safety_lets_no_more_workloads_become_unavailable_than_their_limit_allows)
{
    for (uint32_t i = 0; i < ARRAY_LEN(kinds); i++) {
        CLEANUP(fixture_done)
        struct requests_fixture q = { 0 };
        fixture_begin(&q, 1, 1);
        bool daemons = i == 2;
        const char *replicas = daemons ? "" : ", replicas: 2";
        make(&q,
             arena_printf(&q.memory, "workloads: [{name: a, kind: %s%s}, {name: b, kind: %s%s}]",
                          kinds[i].kind, replicas, kinds[i].kind, replicas)
                 .p);
        fixture_create_limit(&q, kinds[i].limit, "{\"limit\":50}");
        fixture_create_limit(&q, "node", "{\"limit\":100,\"safetyChecks\":[\"WorkloadLimits\"]}");
        fixture_create_request(&q, "mr-1", "node-001", "");
        fixture_run_until_phase(&q, "mr-1", "Pending");
        struct str message = fixture_text(&q, "mr-1", "status.message");
        if (!str_contains(message, arena_printf(&q.memory,
                                                "WorkloadLimits: limit %s: default/a and others "
                                                "would be unavailable, with 0 that are; 1 may be",
                                                kinds[i].limit))) {
            check_fail(__FILE__, __LINE__, "%s: " STR_FMT, kinds[i].kind, STR_ARG(message));
        }
        fixture_run(&q, MINUTES(5));
        CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "Pending");
        CHECK_STR(fixture_condition(&q, "mr-1", "SafeToProceed", "status"), "False");
        /* By now minutes lie between two tries. It hears that the next one is worth it. */
        change_limit(&q, kinds[i].limit, "{\"spec\":{\"limit\":100}}");
        fixture_run(&q, SECONDS(5));
        CHECK_STR(fixture_text(&q, "mr-1", "status.phase"), "Approved");
    }
}

/* It stays on the node, so its budget has nothing to say. */
TEST(safety_does_not_ask_budgets_of_pods_that_the_nodes_rules_skip)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 1, 1);
    make(&q, "workloads: [{name: a, replicas: 2}]\nbudgets: [{name: a, minAvailable: 2}]");
    fixture_create_limit(&q, "node", "{\"limit\":100,\"safetyChecks\":[\"PodDisruptionBudgets\"]}");
    (void)fixture_http(&q, 200, "PATCH", "/api/v1/nodes/node-001",
                       "{\"metadata\":{\"annotations\":{\"drydock.dev/drain-rules\":"
                       "\"[{\\\"name\\\":\\\"1\\\",\\\"behavior\\\":\\\"Drain\\\"}]\"}}}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run(&q, MINUTES(5));
    CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "Pending");
    (void)fixture_http(&q, 200, "PATCH", "/api/v1/nodes/node-001",
                       "{\"metadata\":{\"annotations\":{\"drydock.dev/drain-rules\":"
                       "\"[{\\\"name\\\":\\\"1\\\",\\\"behavior\\\":\\\"Skip\\\"}]\"}}}");
    fixture_run_until_phase(&q, "mr-1", "Approved");
}

/* One that lacks pods already cannot become unavailable; it counts as away for the others. */
TEST(safety_counts_workloads_that_are_unavailable_anyway)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 1, 1);
    make(&q, "workloads: [{name: a, replicas: 2}, {name: b, replicas: 2}]");
    fixture_create_limit(&q, "deployment", "{\"limit\":50}");
    fixture_create_limit(&q, "node", "{\"limit\":100,\"safetyChecks\":[\"WorkloadLimits\"]}");
    /* Nobody can run it: a pod that fits nowhere is waited for. */
    (void)fixture_http(&q, 200, "PATCH", "/apis/apps/v1/namespaces/default/deployments/b",
                       "{\"spec\":{\"replicas\":3,\"template\":{\"spec\":{\"nodeSelector\":{\"no\":"
                       "\"where\"}}}}}");
    fixture_run(&q, MINUTES(2));
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Pending");
    CHECK(str_contains(fixture_text(&q, "mr-1", "status.message"),
                       STR("default/a would be unavailable, with 1 that are; 1 may be")));
    (void)fixture_http(&q, 200, "DELETE", "/apis/apps/v1/namespaces/default/deployments/a", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
}

/* Only workloads that a limit governs count. */
TEST(safety_leaves_workloads_without_a_limit_alone)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 1, 1);
    make(&q, "workloads: [{name: a, replicas: 2}, {name: b, kind: StatefulSet, replicas: 2}]");
    fixture_create_limit(
        &q, "special",
        "{\"type\":\"deployment\",\"limit\":0,\"minimum\":0,\"selector\":{\"matchLabels\":{"
        "\"special\":\"yes\"}}}");
    fixture_create_limit(&q, "node", "{\"limit\":100,\"safetyChecks\":[\"WorkloadLimits\"]}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-1", "Completed");
    (void)fixture_http(&q, 200, "PATCH", "/apis/apps/v1/namespaces/default/deployments/a",
                       "{\"metadata\":{\"labels\":{\"special\":\"yes\"}}}");
    fixture_run(&q, SECONDS(10));
    fixture_create_request(&q, "mr-2", "node-001", "");
    fixture_run_until_phase(&q, "mr-2", "Pending");
    CHECK(str_contains(fixture_text(&q, "mr-2", "status.message"), STR("WorkloadLimits")));
}

/* What cannot be read is not safe, and is read again later. */
TEST(safety_is_never_guessed_whatever_the_network_does)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        CLEANUP(fixture_done)
        struct requests_fixture q = { 0 };
        fixture_begin(&q, 1, seed);
        make(&q, "workloads: [{name: a, replicas: 2}, {name: b, kind: DaemonSet}]");
        fixture_create_limit(&q, "deployment", "{\"limit\":0,\"minimum\":0}");
        fixture_create_limit(&q, "node", "{\"limit\":100,\"safetyChecks\":[\"WorkloadLimits\"]}");
        faults_randomize(&q.faults);
        q.faults.error_500 = 200;
        fixture_create_request(&q, "mr-1", "node-001", "");
        fixture_run(&q, MINUTES(20));
        CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "Pending");
        change_limit(&q, "deployment", "{\"spec\":{\"limit\":100}}");
        q.faults.calm = true;
        fixture_run_until(&q, "mr-1", "status.phase", "Approved", HOURS(1));
    }
}
