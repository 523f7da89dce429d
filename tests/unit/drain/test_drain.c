#include "drain/drain.h"

#include "tests/unit/drain/drain_fixture.h"

TEST(drain_of_an_empty_node_is_done_once_the_pods_are_known)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, NULL, "{}");
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    CHECK(!drain_is_done(d));
    CHECK(!drain_fixture_status(d).synced);
    CHECK(drain_fixture_finish(&s, d, SECONDS(5)));
    drain_fixture_run(&s, 0);
    struct drain_status status = drain_fixture_status(d);
    CHECK(status.synced && !status.blocked);
    CHECK_EQ(status.left, 0);
    CHECK_EQ(s.drain[0].changes, 1);
    CHECK_EQ(drain_fixture_sent(&s, "pods/eviction", SIM_POST), 0);
    struct drains_stats stats;
    drains_stats(s.drains, &stats);
    CHECK_EQ(stats.active, 1);
    CHECK_EQ(stats.finished, 1);
    drain_fixture_end(&s);
}

TEST(drain_leaves_daemons_mirrors_and_finished_pods_alone)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL,
                        "workloads:\n"
                        "- {name: agent, kind: DaemonSet}\n"
                        "- {name: once, kind: Job, replicas: 1}\n"
                        "objects:\n"
                        "- apiVersion: v1\n"
                        "  kind: Pod\n"
                        "  metadata:\n"
                        "    name: static\n"
                        "    namespace: default\n"
                        "    annotations: {kubernetes.io/config.mirror: abc}\n"
                        "  spec: {nodeName: node-001, containers: [{name: a, image: b}]}\n");
    CHECK_EQ(drain_fixture_pods(&s, "node-001"), 3);
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    CHECK(drain_fixture_finish(&s, d, SECONDS(5)));
    CHECK_EQ(drain_fixture_status(d).left, 0);
    drain_fixture_run(&s, MINUTES(1));
    CHECK_EQ(drain_fixture_sent(&s, "pods/eviction", SIM_POST), 0);
    CHECK_EQ(drain_fixture_pods(&s, "node-001"), 3);
    drain_fixture_end(&s);
}

TEST(drain_sends_pods_without_a_budget_away_at_once)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, NULL, "workloads: [{name: web, replicas: 40}]");
    CHECK_EQ(drain_fixture_pods(&s, "node-001"), 40);
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    drain_fixture_run(&s, SECONDS(1));
    CHECK_EQ(s.evicting, 40);
    CHECK_EQ(drain_fixture_status(d).left, 40);
    CHECK_EQ(drain_fixture_status(d).terminating, 40);
    CHECK(drain_fixture_finish(&s, d, SECONDS(10)));
    drain_fixture_run(&s, MINUTES(1));
    CHECK_EQ(drain_fixture_sent(&s, "pods/eviction", SIM_POST), 40);
    CHECK_EQ(drain_fixture_status(d).evicted, 40);
    struct str note;
    CHECK_EQ(drain_fixture_events(&s, "Evicting", "Pod", &note), 40);
    CHECK_STR(note, "Evicting pod during node drain");
    CHECK_EQ(drain_fixture_pods(&s, "node-002"), 40);
    drain_fixture_end(&s);
}

TEST(drain_behind_a_budget_of_one_asks_once_a_pod)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, "web",
                        "workloads: [{name: web, replicas: 30}]\n"
                        "budgets: [{name: web, maxUnavailable: 1}]\n");
    CHECK_EQ(s.ready, 30);
    CHECK_EQ(drain_fixture_pods(&s, "node-001"), 30);
    uint64_t before = sim_api_sent(s.door);
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    CHECK(drain_fixture_finish(&s, d, HOURS(1)));
    CHECK_EQ(s.least, 29); /* I5 */
    CHECK_EQ(s.evicting, 30);
    CHECK_EQ(drain_fixture_status(d).evicted, 30);
    CHECK_EQ(drain_fixture_status(d).refused, 0);
    CHECK_EQ(drain_fixture_sent(&s, "pods/eviction", SIM_POST), 30);
    CHECK_EQ(drain_fixture_sent(&s, "pods", SIM_DELETE), 0);
    /* Two watches and an eviction a pod; the Events about it are extra. */
    uint64_t events = drain_fixture_sent(&s, "events", SIM_POST);
    uint64_t requests = sim_api_sent(s.door) - before - events;
    CHECK(requests * 10 <= 30 * 12);
    CHECK_EQ(s.drain[0].changes, 2); /* synced, done: no budget that moves blocks anybody */
    drain_fixture_end(&s);
}

TEST(drain_waits_without_timers_until_a_replica_is_back)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 3, "web",
                        "workloads: [{name: web, replicas: 2}]\n"
                        "budgets: [{name: web, minAvailable: 2}]\n");
    struct str name = drain_fixture_pod(&s, "node-001");
    struct drain_spec spec = drain_fixture_spec;
    spec.eviction_timeout = USEC_NEVER;
    struct drain *d = drain_fixture_drain(&s, 0, &spec);
    drain_fixture_run(&s, SECONDS(5));
    struct drain_status status = drain_fixture_status(d);
    CHECK(!status.blocked && !status.timed_out);
    CHECK_STR(status.pod, name);
    CHECK_STR(status.namespace, "default");
    CHECK_STR(status.pdb, "web");
    CHECK_STR(status.reason,
              "budget web allows no disruption: 2 of 2 wanted pods are healthy; it can never allow "
              "one, because it wants all 2: more replicas would help, or a budget that spares one");
    CHECK_EQ(drain_fixture_events(&s, "DrainBlocked", "Pod", NULL), 0);
    drain_fixture_run(&s, SECONDS(10));
    status = drain_fixture_status(d);
    CHECK(status.blocked);
    CHECK_EQ(s.drain[0].changes, 2);
    CHECK(status.since > 0 && status.since < loop_wall(virtual_loop_root(s.v)) - SECONDS(10));
    struct str note;
    CHECK_EQ(drain_fixture_events(&s, "DrainBlocked", "Pod", &note), 1);
    CHECK_STR(note,
              arena_printf(&s.memory,
                           "pod default/" STR_FMT " cannot be evicted: budget web allows no "
                           "disruption: 2 of 2 wanted pods are healthy; it can never allow one, "
                           "because it wants all 2: more replicas would help, or a budget that "
                           "spares one",
                           STR_ARG(name)));
    CHECK_EQ(drain_fixture_events(&s, "DrainBlocked", "Node", NULL), 1);
    uint64_t sent = sim_api_sent(s.door);
    drain_fixture_run(&s, HOURS(1));
    /* Nothing polls: only the watches are opened anew as they end. */
    CHECK_EQ(drain_fixture_sent(&s, "pods/eviction", SIM_POST), 0);
    CHECK(sim_api_sent(s.door) - sent <= 2 * 13);
    CHECK_EQ(drain_fixture_events(&s, "DrainBlocked", "Pod", NULL), 1);
    struct drains_stats stats;
    drains_stats(s.drains, &stats);
    CHECK_EQ(stats.blocked, 1);
    drain_fixture_api(&s, 200, "PATCH", "/apis/apps/v1/namespaces/default/deployments/web",
                      "{\"spec\":{\"replicas\":3}}");
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    CHECK_EQ(s.least, 2);
    CHECK_EQ(drain_fixture_status(d).refused, 0);
    CHECK_EQ(drain_fixture_sent(&s, "pods/eviction", SIM_POST), 2);
    drains_stats(s.drains, &stats);
    CHECK_EQ(stats.blocked, 0);
    drain_fixture_end(&s);
}

TEST(drains_of_two_nodes_share_a_budget_and_both_end)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 4, "web",
                        "workloads: [{name: web, replicas: 6}, {name: db, replicas: 6}]\n"
                        "budgets: [{name: web, maxUnavailable: 1}, {name: db, maxUnavailable: "
                        "1}]\n");
    /* Half of each moves to node-002. */
    drain_fixture_cordon(&s, "node-003", true);
    drain_fixture_cordon(&s, "node-004", true);
    struct drain_spec spec = drain_fixture_spec;
    struct drain *first = drain_fixture_drain(&s, 0, &spec);
    while (drain_fixture_pods(&s, "node-002") < 6) {
        drain_fixture_run(&s, MSECONDS(100));
    }
    drain_stop(first);
    drain_fixture_cordon(&s, "node-002", true);
    drain_fixture_cordon(&s, "node-003", false);
    drain_fixture_cordon(&s, "node-004", false);
    drain_fixture_run(&s, MINUTES(1));
    CHECK(drain_fixture_pods(&s, "node-001") >= 4 && drain_fixture_pods(&s, "node-002") >= 4);
    s.least = s.ready;
    spec.node = STR("node-002");
    struct drain *second = drain_fixture_drain(&s, 1, &spec);
    spec.node = STR("node-001");
    first = drain_fixture_drain(&s, 0, &spec);
    drain_fixture_run(&s, SECONDS(4));
    /* The older one goes first, and the younger one says what it waits for. */
    CHECK(drain_fixture_status(second).evicted > 0);
    CHECK_EQ(drain_fixture_status(first).evicted, 0);
    CHECK_STR(drain_fixture_status(first).pdb, "db");
    CHECK(drain_fixture_finish(&s, first, HOURS(1)));
    CHECK(drain_fixture_finish(&s, second, HOURS(1)));
    CHECK_EQ(s.least, 5);
    CHECK_EQ(drain_fixture_status(first).refused + drain_fixture_status(second).refused, 0);
    CHECK_EQ(drain_fixture_pods(&s, "node-001") + drain_fixture_pods(&s, "node-002"), 0);
    drain_fixture_end(&s);
}

TEST(drain_names_all_that_are_blocked_up_to_ten)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, "web",
                        "workloads: [{name: web, replicas: 13}]\n"
                        "budgets: [{name: web, minAvailable: 13}]\n");
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    drain_fixture_run(&s, MINUTES(1));
    CHECK(drain_fixture_status(d).blocked);
    struct str note;
    CHECK_EQ(drain_fixture_events(&s, "DrainBlocked", "Node", &note), 1);
    struct str first;
    struct str others;
    struct str name;
    CHECK(str_starts(note, STR("pod default/web-")));
    CHECK(str_cut(note, STR("; also waiting: "), &first, &others));
    for (int i = 0; i < 8; i++) {
        CHECK(str_cut(others, STR(", "), &name, &others));
        CHECK(str_starts(name, STR("default/web-")));
    }
    CHECK(str_cut(others, STR(" and "), &name, &others));
    CHECK_STR(others, "3 more");
    CHECK_EQ(drain_fixture_events(&s, "DrainBlocked", "Pod", &note), 1);
    CHECK(!str_contains(note, STR("also waiting")));
    CHECK(str_ends(drain_text(d, &s.memory), STR("; and 3 more")));
    drain_fixture_end(&s);
}

TEST(drain_deletes_by_force_what_a_budget_holds_for_too_long)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, "web",
                        "workloads: [{name: web, replicas: 2}]\n"
                        "budgets: [{name: web, minAvailable: 2}]\n");
    struct drain_spec spec = drain_fixture_spec;
    spec.force = true;
    spec.eviction_timeout = MINUTES(5);
    struct drain *d = drain_fixture_drain(&s, 0, &spec);
    drain_fixture_run(&s, MINUTES(5) - SECONDS(1));
    CHECK_EQ(s.evicting, 0);
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    CHECK_EQ(s.least, 0);
    CHECK_EQ(drain_fixture_status(d).forced, 2);
    CHECK_EQ(drain_fixture_status(d).evicted, 0);
    drain_fixture_run(&s, SECONDS(10));
    struct str note;
    CHECK_EQ(drain_fixture_events(&s, "ForceDeleting", "Pod", &note), 2);
    CHECK_STR(note,
              "Force deleting pod that could not be evicted during node drain: budget web "
              "allows no disruption: 2 of 2 wanted pods are healthy; it can never allow one, "
              "because it wants all 2: more replicas would help, or a budget that spares one");
    drain_fixture_end(&s);
}

TEST(drain_without_force_times_out_and_goes_on)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, "web",
                        "workloads: [{name: web, replicas: 2}]\n"
                        "budgets: [{name: web, minAvailable: 2}]\n");
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    drain_fixture_run(&s, MINUTES(10) - SECONDS(1));
    CHECK(!drain_fixture_status(d).timed_out);
    drain_fixture_run(&s, MINUTES(1));
    CHECK(drain_fixture_status(d).timed_out);
    CHECK_EQ(s.drain[0].changes, 3);
    drain_fixture_run(&s, HOURS(1));
    CHECK_EQ(s.evicting, 0);
    drain_fixture_api(&s, 200, "PATCH",
                      "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web",
                      "{\"spec\":{\"minAvailable\":1}}");
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    CHECK(!drain_fixture_status(d).timed_out);
    CHECK_EQ(s.least, 1);
    drain_fixture_end(&s);
}

/* The kubelet is dead: pods that are deleted stay. */
static struct drain *drain_fixture_drain_dead_node(struct drain_fixture *s, bool force)
{
    struct err err = { 0 };
    drain_fixture_begin(s, 2, NULL, "workloads: [{name: web, replicas: 2}]");
    CHECK_EQ(world_fail_node(s->world, STR("node-001"), &err), 0);
    struct drain_spec spec = drain_fixture_spec;
    spec.force = force;
    spec.deletion_timeout = MINUTES(2);
    return drain_fixture_drain(s, 0, &spec);
}

TEST(drain_names_a_pod_that_does_not_go)
{
    struct drain_fixture s;
    struct drain *d = drain_fixture_drain_dead_node(&s, /* force= */ false);
    drain_fixture_run(&s, MINUTES(2) - SECONDS(1));
    CHECK_EQ(drain_fixture_status(d).terminating, 2);
    CHECK(!drain_fixture_status(d).blocked);
    drain_fixture_run(&s, SECONDS(10));
    struct drain_status status = drain_fixture_status(d);
    CHECK(status.blocked && status.timed_out);
    CHECK_STR(status.reason, "still there 2m0s after its deletion began");
    CHECK_STR(status.pdb, "");
    struct str note;
    CHECK_EQ(drain_fixture_events(&s, "DrainBlocked", "Pod", &note), 1);
    CHECK(str_ends(note, STR(" does not go: still there 2m0s after its deletion began")));
    drain_fixture_run(&s, HOURS(1));
    CHECK_EQ(drain_fixture_sent(&s, "pods", SIM_DELETE), 0);
    CHECK_EQ(drain_fixture_status(d).left, 2);
    drain_fixture_end(&s);
}

TEST(drain_removes_by_force_a_pod_that_does_not_go)
{
    struct drain_fixture s;
    struct drain *d = drain_fixture_drain_dead_node(&s, /* force= */ true);
    drain_fixture_run(&s, MINUTES(2) - SECONDS(1));
    CHECK_EQ(drain_fixture_status(d).left, 2);
    CHECK(drain_fixture_finish(&s, d, SECONDS(10)));
    drain_fixture_run(&s, SECONDS(10));
    CHECK_EQ(drain_fixture_sent(&s, "pods", SIM_DELETE), 2);
    CHECK_EQ(drain_fixture_status(d).forced, 2);
    struct str note;
    CHECK_EQ(drain_fixture_events(&s, "ForceDeleting", "Pod", &note), 2);
    CHECK_STR(note, "Force deleting pod that exceeded grace period during node drain");
    CHECK_EQ(drain_fixture_events(&s, "DrainBlocked", "Pod", NULL), 0);
    drain_fixture_end(&s);
}

TEST(drain_counts_a_deletion_that_began_before_it)
{
    struct drain_fixture s;
    struct err err = { 0 };
    drain_fixture_begin(&s, 2, NULL, "workloads: [{name: web, replicas: 1}]");
    CHECK_EQ(world_fail_node(s.world, STR("node-001"), &err), 0);
    struct str name = drain_fixture_pod(&s, "node-001");
    drain_fixture_api(
        &s, 200, "DELETE",
        arena_printf(&s.memory, "/api/v1/namespaces/default/pods/" STR_FMT, STR_ARG(name)).p, "");
    drain_fixture_run(&s, MINUTES(9));
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    drain_fixture_run(&s, SECONDS(50));
    CHECK(!drain_fixture_status(d).blocked);
    CHECK_EQ(drain_fixture_status(d).terminating, 1);
    drain_fixture_run(&s, SECONDS(20));
    CHECK(drain_fixture_status(d).timed_out);
    drain_fixture_end(&s);
}

TEST(drain_says_which_finalizer_holds_a_pod)
{
    struct drain_fixture s;
    drain_fixture_begin(
        &s, 1, NULL,
        "objects:\n"
        "- apiVersion: v1\n"
        "  kind: Pod\n"
        "  metadata: {name: held, namespace: default, finalizers: [example.com/wait]}\n"
        "  spec: {nodeName: node-001, containers: [{name: a, image: b}]}\n");
    struct drain_spec spec = drain_fixture_spec;
    spec.force = true;
    struct drain *d = drain_fixture_drain(&s, 0, &spec);
    drain_fixture_run(&s, MINUTES(11));
    CHECK_EQ(drain_fixture_sent(&s, "pods", SIM_DELETE), 1);
    struct drain_status status = drain_fixture_status(d);
    CHECK(status.timed_out && status.blocked);
    CHECK_STR(status.reason,
              "still there 10m10s after its deletion began, held by finalizer example.com/wait");
    drain_fixture_run(&s, HOURS(1));
    CHECK_EQ(drain_fixture_sent(&s, "pods", SIM_DELETE), 1); /* it did not help */
    drain_fixture_api(&s, 200, "PATCH", "/api/v1/namespaces/default/pods/held",
                      "{\"metadata\":{\"finalizers\":null}}");
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    drain_fixture_end(&s);
}

TEST(drain_gives_the_grace_it_was_given)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, NULL,
                        "objects:\n"
                        "- apiVersion: v1\n"
                        "  kind: Pod\n"
                        "  metadata:\n"
                        "    name: slow\n"
                        "    namespace: default\n"
                        "    annotations: {sandbox.drydock.dev/stop: 1h}\n"
                        "  spec: {nodeName: node-001, containers: [{name: a, image: b}]}\n");
    struct drain_spec spec = drain_fixture_spec;
    spec.grace = SECONDS(7);
    struct drain *d = drain_fixture_drain(&s, 0, &spec);
    drain_fixture_run(&s, SECONDS(6));
    const struct jval *pod =
        apiserver_find(s.server, STR(""), STR("pods"), STR("default"), STR("slow"));
    int64_t grace = 0;
    CHECK(jval_i64(jval_at(pod, "metadata.deletionGracePeriodSeconds"), &grace));
    CHECK_EQ(grace, 7);
    CHECK(drain_fixture_finish(&s, d, SECONDS(3)));
    drain_fixture_end(&s);
}

TEST(drain_evicts_an_unready_pod_that_no_budget_counts)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, NULL,
                        "workloads: [{name: web, replicas: 2}]\n"
                        "budgets: [{name: web, minAvailable: 2}]\n");
    /* A third one, under the same budget, that never becomes ready. */
    drain_fixture_create(&s, "objects:\n"
                             "- apiVersion: v1\n"
                             "  kind: Pod\n"
                             "  metadata: {name: sick, namespace: default, labels: {app: web}}\n"
                             "  spec: {nodeName: node-001, containers: [{name: a, image: b}]}\n");
    drain_fixture_run(&s, SECONDS(10));
    drain_fixture_api(&s, 200, "PATCH", "/api/v1/namespaces/default/pods/sick/status",
                      "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}}");
    drain_fixture_run(&s, SECONDS(1));
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    drain_fixture_run(&s, SECONDS(1));
    CHECK_EQ(drain_fixture_status(d).evicted, 1);
    CHECK_EQ(drain_fixture_status(d).refused, 0);
    drain_fixture_run(&s, SECONDS(10));
    CHECK_EQ(drain_fixture_status(d).left, 2);
    CHECK(apiserver_find(s.server, STR(""), STR("pods"), STR("default"), STR("sick")) == NULL);
    drain_fixture_end(&s);
}

TEST(drain_survives_cuts_and_a_server_that_forgets)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, "web",
                        "workloads: [{name: web, replicas: 12}]\n"
                        "budgets: [{name: web, maxUnavailable: 2}]\n");
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    for (int i = 0; i < 8; i++) {
        drain_fixture_run(&s, MSECONDS(1700));
        switch (i % 4) {
        case 0:
            sim_api_disconnect(s.door);
            break;
        case 1:
            apiserver_restart(s.server);
            break;
        case 2:
            apiserver_compact(s.server);
            sim_api_disconnect(s.door);
            break;
        default:
            s.faults.down = true;
            drain_fixture_run(&s, SECONDS(20));
            s.faults.down = false;
            break;
        }
    }
    CHECK(drain_fixture_finish(&s, d, MINUTES(10)));
    CHECK(s.least >= 10);
    CHECK_EQ(drain_fixture_pods(&s, "node-001"), 0);
    drain_fixture_end(&s);
}

TEST(drain_that_is_stopped_sends_nothing_more)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, "web",
                        "workloads: [{name: web, replicas: 10}]\n"
                        "budgets: [{name: web, maxUnavailable: 1}]\n");
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    drain_fixture_run(&s, SECONDS(12));
    uint64_t sent = drain_fixture_sent(&s, "pods/eviction", SIM_POST);
    CHECK(sent > 0 && sent < 10);
    drain_stop(d);
    drains_check(s.drains);
    drain_fixture_run(&s, HOURS(1));
    CHECK_EQ(drain_fixture_sent(&s, "pods/eviction", SIM_POST), sent);
    CHECK_EQ(sim_api_in_flight(s.door), 0);
    /* The budgets are not watched for nobody. */
    uint64_t all = sim_api_sent(s.door);
    drain_fixture_run(&s, HOURS(1));
    CHECK_EQ(sim_api_sent(s.door), all);
    drain_fixture_end(&s);
}

TEST(drains_send_nothing_while_they_may_not)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, "web",
                        "workloads: [{name: web, replicas: 10}]\n"
                        "budgets: [{name: web, maxUnavailable: 1}]\n");
    const struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    drain_fixture_run(&s, SECONDS(12));
    uint64_t sent = drain_fixture_sent(&s, "pods/eviction", SIM_POST);
    CHECK(sent > 0 && sent < 10);
    s.idle = true; /* as for a leader that has lost its lease and does not know it yet */
    drain_fixture_run(&s, MINUTES(5));
    CHECK_EQ(drain_fixture_sent(&s, "pods/eviction", SIM_POST), sent);
    CHECK(!drain_is_done(d));
    s.idle = false;
    CHECK(drain_fixture_finish(&s, d, MINUTES(10)));
    CHECK_EQ(drain_fixture_sent(&s, "pods/eviction", SIM_POST), 10);
    drain_fixture_end(&s);
}

TEST(drain_that_rests_leaves_alone_who_comes_to_the_node)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL, "{}");
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    drain_pause(d, true);
    drain_fixture_cordon(&s, "node-001", false);
    drain_fixture_create(&s, "workloads: [{name: web, replicas: 2}]");
    drain_fixture_run(&s, MINUTES(5));
    CHECK_EQ(drain_fixture_pods(&s, "node-001"), 2);
    CHECK_EQ(s.evicting, 0);
    CHECK(!drain_is_done(d));
    drain_pause(d, false);
    drain_fixture_cordon(&s, "node-001", true);
    CHECK(drain_fixture_finish(&s, d, MINUTES(5)));
    CHECK_EQ(drain_fixture_pods(&s, "node-001"), 0);
    drain_fixture_end(&s);
}

static void rest(struct drain_fixture *s, struct drain *d, bool all, bool on)
{
    if (all) {
        drains_pause(s->drains, on);
    } else {
        drain_pause(d, on);
    }
}

TEST(drain_that_rests_does_not_use_up_its_time)
{
    for (int all = 0; all < 2; all++) {
        check_case(all);
        struct drain_fixture s;
        drain_fixture_begin(&s, 2, "web",
                            "workloads: [{name: web, replicas: 2}]\n"
                            "budgets: [{name: web, minAvailable: 2}]\n");
        struct drain_spec spec = drain_fixture_spec;
        spec.force = true;
        spec.eviction_timeout = MINUTES(5);
        struct drain *d = drain_fixture_drain(&s, 0, &spec);
        drain_fixture_run(&s, MINUTES(2));
        rest(&s, d, all == 1, true);
        drain_fixture_run(&s, HOURS(1));
        rest(&s, d, all == 1, false);
        drain_fixture_run(&s, MINUTES(3) - SECONDS(5)); /* what was left of the five */
        CHECK_EQ(s.evicting, 0);
        CHECK_EQ(drain_fixture_status(d).forced, 0);
        drain_fixture_run(&s, SECONDS(10));
        CHECK_EQ(drain_fixture_status(d).forced, 2);
        drain_fixture_end(&s);
    }
    check_case(-1);
}

TEST(drain_that_rests_is_not_late)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 2, "web",
                        "workloads: [{name: web, replicas: 2}]\n"
                        "budgets: [{name: web, minAvailable: 2}]\n");
    drains_pause(s.drains, true); /* so it begins at rest */
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    drain_fixture_run(&s, HOURS(1));
    CHECK(!drain_fixture_status(d).timed_out);
    drains_pause(s.drains, false);
    drain_fixture_run(&s, MINUTES(10) - SECONDS(1));
    CHECK(!drain_fixture_status(d).timed_out);
    drain_fixture_run(&s, SECONDS(10));
    CHECK(drain_fixture_status(d).timed_out);
    drain_pause(d, true); /* what was late before stays late */
    drain_fixture_run(&s, SECONDS(10));
    CHECK(drain_fixture_status(d).timed_out);
    drain_fixture_end(&s);
}

TEST(drains_may_be_stopped_by_their_own_news)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 4, NULL, "workloads: [{name: web, replicas: 6}]");
    for (uint32_t i = 0; i < 4; i++) {
        struct drain_spec spec = drain_fixture_spec;
        spec.node = arena_printf(&s.memory, "node-%03u", i + 1);
        drain_fixture_drain(&s, i, &spec);
        s.drain[i].stop_when_done = true;
        drain_fixture_cordon(&s, spec.node.p, true);
    }
    drain_fixture_run(&s, MINUTES(1));
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(s.drain[i].drain == NULL);
    }
    struct drains_stats stats;
    drains_stats(s.drains, &stats);
    CHECK_EQ(stats.active, 0);
    CHECK_EQ(stats.finished, 4);
    CHECK_EQ(stats.evicted, 6);
    drain_fixture_end(&s);
}

TEST(drain_wants_a_pod_gone_that_came_later)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL, "{}");
    struct drain *d = drain_fixture_drain(&s, 0, &drain_fixture_spec);
    CHECK(drain_fixture_finish(&s, d, SECONDS(5)));
    drain_fixture_create(&s, "objects:\n"
                             "- apiVersion: v1\n"
                             "  kind: Pod\n"
                             "  metadata: {name: late, namespace: default}\n"
                             "  spec: {nodeName: node-001, containers: [{name: a, image: b}]}\n");
    drain_fixture_run(&s, MSECONDS(500));
    CHECK(!drain_is_done(d));
    CHECK(drain_fixture_finish(&s, d, SECONDS(10)));
    CHECK_EQ(drain_fixture_status(d).evicted, 1);
    drain_fixture_end(&s);
}

/* Whatever a network and a server do, no budget is broken, and every drain ends in the calm. */
static void drain_storm(struct rng *rng)
{
    struct drain_fixture s;
    drain_fixture_begin(
        &s, 5, "web",
        "workloads: [{name: web, replicas: 8}, {name: db, kind: StatefulSet, replicas: 3}]\n"
        "budgets: [{name: web, maxUnavailable: 2}, {name: db, maxUnavailable: 1}]\n");
    faults_init(&s.faults, rng_next(rng));
    faults_randomize(&s.faults);
    struct drain_spec spec = drain_fixture_spec;
    spec.eviction_timeout = USEC_NEVER;
    struct drain *first = drain_fixture_drain(&s, 0, &spec);
    drain_fixture_run(&s, SECONDS(rng_below(rng, 20)));
    spec.node = STR("node-002");
    drain_fixture_cordon(&s, "node-002", true);
    struct drain *second = drain_fixture_drain(&s, 1, &spec);
    for (uint32_t i = rng_below(rng, 4); i > 0; i--) {
        drain_fixture_run(&s, SECONDS(rng_below(rng, 30)));
        s.faults.down = rng_chance(rng, 500);
        s.faults.partitioned = rng_chance(rng, 300);
        if (rng_chance(rng, 300)) {
            apiserver_compact(s.server);
        }
        if (rng_chance(rng, 200)) {
            /* A crash, and a successor. */
            drain_fixture_close(&s);
            drain_fixture_open(&s);
            first = drain_fixture_drain(&s, 0, &drain_fixture_spec);
            second = drain_fixture_drain(&s, 1, &spec);
        }
    }
    s.faults.down = false;
    s.faults.partitioned = false;
    s.faults.calm = true;
    CHECK(drain_fixture_finish(&s, first, HOURS(1)));
    CHECK(drain_fixture_finish(&s, second, HOURS(1)));
    CHECK(s.least >= 6); /* I5 */
    CHECK_EQ(drain_fixture_sent(&s, "pods", SIM_DELETE), 0);
    drain_fixture_end(&s);
}

TEST(drain_keeps_budgets_in_every_storm)
{
    struct rng rng;
    for (int64_t seed = 0; seed < 40; seed++) {
        check_case(seed);
        rng_init(&rng, (uint64_t)seed);
        drain_storm(&rng);
    }
    check_case(-1);
}
