#include "request/prepare.h"

#include "tests/unit/request/prepare_fixture.h"

static bool contains(const struct prepare_view *v, const char *part)
{
    for (uint32_t i = 0; i < v->blocked_n; i++) {
        if (str_contains(v->blocked_by[i], str_from(part))) {
            return true;
        }
    }
    return false;
}

TEST(prepare_cordons_with_a_mark_drains_and_lifts_its_own_cordon)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, NULL, "workloads: [{name: web, replicas: 3}]");
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 3);
    prepare_fixture_prepare(&st);
    CHECK_EQ(prepare_fixture_view(&st).step, PREPARE_CORDON);
    CHECK_STR(prepare_fixture_view(&st).reason, "Cordoning");
    CHECK(prepare_fixture_run_until(&st, PREPARE_DRAIN, SECONDS(10)));
    CHECK(prepare_fixture_is_cordoned(&st));
    CHECK_STR(prepare_fixture_mark(&st), PREPARE_FIXTURE_UID);
    drain_fixture_run(&st.s, MSECONDS(500));
    CHECK_EQ(prepare_fixture_view(&st).pods_left, 3);
    CHECK_STR(prepare_fixture_view(&st).reason, "Draining");
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(2)));
    struct prepare_view v = prepare_fixture_view(&st);
    CHECK(v.cordoned && !v.rejected);
    CHECK_STR(v.reason, "Prepared");
    CHECK_EQ(v.deadline, USEC_NEVER);
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 0);
    drain_fixture_run(&st.s, SECONDS(5));
    CHECK_EQ(drain_fixture_events(&st.s, "CordonedNode", "Node", NULL), 1);
    CHECK_EQ(drain_fixture_events(&st.s, "Drained", "MaintenanceRequest", NULL), 1);
    /* One read, one patch. */
    CHECK_EQ(drain_fixture_sent(&st.s, "nodes", SIM_GET), 1);
    CHECK_EQ(drain_fixture_sent(&st.s, "nodes", SIM_PATCH), 1);
    CHECK_EQ(drain_fixture_sent(&st.s, "volumeattachments", SIM_WATCH), 0);
    prepare_fixture_undo(&st, /* uncordon= */ true);
    CHECK(!st.undone);
    CHECK(prepare_fixture_finish_undo(&st, SECONDS(10)));
    CHECK(!prepare_fixture_is_cordoned(&st));
    CHECK_EQ(prepare_fixture_mark(&st).n, 0);
    drain_fixture_run(&st.s, SECONDS(5));
    CHECK_EQ(drain_fixture_events(&st.s, "UncordonedNode", "Node", NULL), 1);
    prepare_fixture_end(&st);
}

TEST(prepare_neither_marks_nor_lifts_what_others_cordoned)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, NULL, "workloads: [{name: web, replicas: 1}]");
    drain_fixture_cordon(&st.s, "node-001", true);
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(2)));
    CHECK(!prepare_fixture_view(&st).cordoned);
    CHECK_EQ(prepare_fixture_mark(&st).n, 0);
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 0);
    prepare_fixture_undo(&st, /* uncordon= */ true);
    CHECK(prepare_fixture_finish_undo(&st, SECONDS(10)));
    CHECK(prepare_fixture_is_cordoned(&st));
    CHECK_EQ(drain_fixture_sent(&st.s, "nodes", SIM_PATCH), 0);
    prepare_fixture_end(&st);
}

TEST(prepare_leaves_the_mark_of_another_request_alone)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, NULL, "{}");
    drain_fixture_api(
        &st.s, 200, "PATCH", "/api/v1/nodes/node-001",
        "{\"metadata\":{\"annotations\":{\"repairman.k8s.io/cordoned-by\":\"other\"}},"
        "\"spec\":{\"unschedulable\":true}}");
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(2)));
    CHECK(!prepare_fixture_view(&st).cordoned);
    prepare_fixture_undo(&st, /* uncordon= */ true);
    CHECK(prepare_fixture_finish_undo(&st, SECONDS(10)));
    CHECK(prepare_fixture_is_cordoned(&st));
    CHECK_STR(prepare_fixture_mark(&st), "other");
    prepare_fixture_end(&st);
}

TEST(prepare_without_drain_touches_nothing)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, NULL, "workloads: [{name: web, replicas: 1}]");
    st.options.drain.enabled = false;
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, SECONDS(1)));
    CHECK_EQ(st.changes, 1);
    CHECK(!prepare_fixture_is_cordoned(&st));
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 1);
    CHECK_EQ(drain_fixture_sent(&st.s, "pods", SIM_WATCH), 0);
    prepare_fixture_end(&st);
}

TEST(prepare_makes_the_cordon_again_that_somebody_lifts)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, "web",
                          "workloads: [{name: web, replicas: 2}]\n"
                          "budgets: [{name: web, minAvailable: 2}]\n");
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DRAIN, SECONDS(10)));
    drain_fixture_run(&st.s, SECONDS(1));
    drain_fixture_cordon(&st.s, "node-001", false);
    drain_fixture_run(&st.s, SECONDS(5));
    CHECK(prepare_fixture_is_cordoned(&st));
    CHECK_STR(prepare_fixture_mark(&st), PREPARE_FIXTURE_UID);
    CHECK_EQ(prepare_fixture_view(&st).step, PREPARE_DRAIN);
    /* Whoever takes the mark away takes the cordon over. */
    drain_fixture_api(&st.s, 200, "PATCH", "/api/v1/nodes/node-001",
                      "{\"metadata\":{\"annotations\":{\"repairman.k8s.io/cordoned-by\":null}}}");
    drain_fixture_run(&st.s, SECONDS(5));
    CHECK(!prepare_fixture_view(&st).cordoned);
    prepare_fixture_undo(&st, /* uncordon= */ true);
    CHECK(prepare_fixture_finish_undo(&st, SECONDS(10)));
    CHECK(prepare_fixture_is_cordoned(&st));
    prepare_fixture_end(&st);
}

/* The patch is on its way when nobody wants it any more. */
TEST(prepare_undone_at_any_moment_leaves_no_cordon)
{
    for (usec_t after = 0; after < MSECONDS(200); after += MSECONDS(2)) {
        check_case(after);
        struct prepare_fixture st;
        prepare_fixture_begin(&st, 2, NULL, "{}");
        /* A request overtakes another, and one that is given up arrives nevertheless. */
        st.s.faults.cancel_executes = 1000;
        st.s.faults.latency_min = MSECONDS(1);
        st.s.faults.latency_max = MSECONDS(80);
        prepare_fixture_prepare(&st);
        drain_fixture_run(&st.s, after);
        prepare_fixture_undo(&st, /* uncordon= */ true);
        CHECK(prepare_fixture_finish_undo(&st, MINUTES(1)));
        drain_fixture_run(&st.s, MINUTES(2));
        CHECK(!prepare_fixture_is_cordoned(&st));
        CHECK_EQ(prepare_fixture_mark(&st).n, 0);
        prepare_fixture_end(&st);
    }
    check_case(-1);
}

TEST(prepare_undo_may_leave_the_cordon_and_take_the_mark)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, NULL, "{}");
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, SECONDS(10)));
    prepare_fixture_undo(&st, /* uncordon= */ false);
    CHECK(prepare_fixture_finish_undo(&st, SECONDS(10)));
    CHECK(prepare_fixture_is_cordoned(&st));
    CHECK_EQ(prepare_fixture_mark(&st).n, 0);
    prepare_fixture_end(&st);
}

TEST(prepare_undo_of_a_node_that_is_gone_is_done)
{
    struct prepare_fixture st;
    struct err err = { 0 };
    prepare_fixture_begin(&st, 2, NULL, "{}");
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, SECONDS(10)));
    CHECK_EQ(world_remove_node(st.s.world, STR("node-001"), &err), 0);
    drain_fixture_run(&st.s, SECONDS(1));
    prepare_fixture_undo(&st, /* uncordon= */ true);
    CHECK(prepare_fixture_finish_undo(&st, SECONDS(10)));
    prepare_fixture_end(&st);
}

/* R20. */
TEST(prepare_says_which_budget_holds_it_and_is_rejected_in_time)
{
    struct prepare_fixture st;
    struct str note;
    prepare_fixture_begin(&st, 2, "web",
                          "workloads: [{name: web, replicas: 2}]\n"
                          "budgets: [{name: web, minAvailable: 2}]\n");
    st.options.drain.timeout_s = 300;
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DRAIN, SECONDS(10)));
    usec_t began = prepare_fixture_view(&st).step_time;
    CHECK_EQ(prepare_fixture_view(&st).deadline, began + SECONDS(300));
    drain_fixture_run(&st.s, SECONDS(30));
    struct prepare_view v = prepare_fixture_view(&st);
    CHECK_STR(v.reason, "PDBWouldBlock");
    CHECK_EQ(v.pods_left, 2);
    CHECK_EQ(v.blocked_n, 2);
    CHECK(contains(&v, "budget web allows no disruption: 2 of 2 wanted pods are healthy"));
    CHECK(str_contains(v.message, STR("2 pods are left")));
    CHECK_EQ(drain_fixture_events(&st.s, "DrainBlocked", "MaintenanceRequest", &note), 1);
    CHECK(str_contains(note, STR("cannot be evicted: budget web allows no disruption")));
    CHECK(str_contains(note, STR("; also waiting: default/web-")));
    drain_fixture_run(&st.s, began + SECONDS(299) - prepare_fixture_wall(&st));
    CHECK(!prepare_fixture_view(&st).rejected);
    drain_fixture_run(&st.s, SECONDS(2));
    v = prepare_fixture_view(&st);
    CHECK(v.rejected);
    CHECK_EQ(v.step, PREPARE_DRAIN);
    CHECK_STR(v.reason, "DrainTimeout");
    CHECK_EQ(v.pods_left, 2);
    CHECK(contains(&v, "budget web"));
    CHECK(str_contains(v.message, STR("budget web")));
    CHECK_EQ(st.s.evicting, 0);
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 2);
    struct drains_stats stats;
    drains_stats(st.s.drains, &stats);
    CHECK_EQ(stats.active, 0);
    uint32_t changes = st.changes;
    drain_fixture_run(&st.s, HOURS(1));
    CHECK_EQ(st.changes, changes);
    prepare_fixture_undo(&st, /* uncordon= */ true);
    CHECK(prepare_fixture_finish_undo(&st, SECONDS(10)));
    CHECK(!prepare_fixture_is_cordoned(&st));
    prepare_fixture_end(&st);
}

TEST(prepare_gives_the_clocks_their_tolerance)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, "web",
                          "workloads: [{name: web, replicas: 1}]\n"
                          "budgets: [{name: web, minAvailable: 1}]\n");
    prepare_fixture_stop_controller(&st);
    st.tolerance = SECONDS(5);
    prepare_fixture_start_controller(&st);
    st.options.drain.timeout_s = 60;
    /* Another leader's clock was an hour ahead: nothing has passed since. */
    st.step = PREPARE_DRAIN;
    st.step_time = prepare_fixture_wall(&st) + HOURS(1);
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, SECONDS(64));
    CHECK(!prepare_fixture_view(&st).rejected);
    CHECK_EQ(prepare_fixture_view(&st).step_time, st.step_time);
    drain_fixture_run(&st.s, SECONDS(2));
    CHECK(prepare_fixture_view(&st).rejected);
    prepare_fixture_end(&st);
}

TEST(prepare_proceeds_with_pods_left_where_it_may)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, "web",
                          "workloads: [{name: web, replicas: 2}, {name: db, replicas: 2}]\n"
                          "budgets: [{name: web, minAvailable: 2}]\n");
    st.options.drain.timeout_s = 60;
    st.options.drain.on_timeout = ON_TIMEOUT_PROCEED;
    st.options.drain.post_grace_s = 30;
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DRAIN_GRACE, MINUTES(2)));
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 2);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(2)));
    CHECK_EQ(st.s.least, 2);
    CHECK_EQ(drain_fixture_events(&st.s, "Drained", "MaintenanceRequest", NULL), 0);
    prepare_fixture_end(&st);
}

TEST(prepare_by_force_asks_no_budget_when_the_time_is_over)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, "web",
                          "workloads: [{name: web, replicas: 2}]\n"
                          "budgets: [{name: web, minAvailable: 2}]\n"
                          "objects:\n"
                          "- apiVersion: v1\n"
                          "  kind: Pod\n"
                          "  metadata: {name: lonely, namespace: default}\n"
                          "  spec: {nodeName: node-001, containers: [{name: a, image: b}]}\n");
    st.options.drain.timeout_s = 60;
    st.options.drain.on_timeout = ON_TIMEOUT_FORCE;
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DRAIN, SECONDS(10)));
    drain_fixture_run(&st.s, SECONDS(55));
    CHECK_EQ(st.s.evicting, 0);
    CHECK_STR(prepare_fixture_view(&st).reason, "UnmanagedPods");
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(3)));
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 0);
    CHECK_EQ(st.s.least, 0);
    prepare_fixture_end(&st);
}

TEST(prepare_waits_out_its_graces_and_a_new_leader_goes_on_counting)
{
    for (uint32_t crash = 0; crash < 2; crash++) {
        check_case(crash);
        struct prepare_fixture st;
        prepare_fixture_begin(&st, 2, NULL, "workloads: [{name: web, replicas: 1}]");
        st.options.drain.post_grace_s = 120;
        st.options.detach.enabled = true;
        st.options.detach.post_grace_s = 60;
        prepare_fixture_prepare(&st);
        CHECK(prepare_fixture_run_until(&st, PREPARE_DRAIN_GRACE, MINUTES(1)));
        usec_t began = virtual_loop_now(st.s.v);
        CHECK_STR(prepare_fixture_view(&st).reason, "Grace");
        CHECK_EQ(prepare_fixture_view(&st).deadline,
                 prepare_fixture_view(&st).step_time + SECONDS(120));
        drain_fixture_run(&st.s, SECONDS(60));
        if (crash > 0) {
            prepare_fixture_crash(&st);
        }
        CHECK(prepare_fixture_run_until(&st, PREPARE_DETACH, MINUTES(5)));
        usec_t took = virtual_loop_now(st.s.v) - began;
        CHECK(took >= SECONDS(120) && took <= SECONDS(122));
        CHECK(prepare_fixture_run_until(&st, PREPARE_DETACH_GRACE, SECONDS(10)));
        began = virtual_loop_now(st.s.v);
        CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(5)));
        took = virtual_loop_now(st.s.v) - began;
        CHECK(took >= SECONDS(60) && took <= SECONDS(62));
        CHECK_EQ(st.steps_seen & ~1u, 0x3eu);
        prepare_fixture_end(&st);
    }
    check_case(-1);
}

#define POD(name, meta, spec)                                                                      \
    "- apiVersion: v1\n"                                                                           \
    "  kind: Pod\n"                                                                                \
    "  metadata: {name: " name ", namespace: default" meta "}\n"                                   \
    "  spec: {nodeName: node-001, containers: [{name: a, image: b}]" spec "}\n"

static bool pod_is_there(struct prepare_fixture *st, const char *name)
{
    return apiserver_find(st->s.server, STR(""), STR("pods"), STR("default"), str_from(name)) !=
           NULL;
}

/* R21. */
TEST(prepare_leaves_daemons_mirrors_and_those_that_wish_it)
{
    struct prepare_fixture st;
    prepare_fixture_begin(
        &st, 2, NULL,
        "workloads: [{name: web, replicas: 2}, {name: agent, kind: DaemonSet}]\n"
        "objects:\n" POD("static", ", annotations: {kubernetes.io/config.mirror: abc}", "")
            POD("skipped", ", labels: {cluster.x-k8s.io/drain: Skip}", ""));
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 5);
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(2)));
    drain_fixture_run(&st.s, MINUTES(2));
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 3);
    CHECK(pod_is_there(&st, "static") && pod_is_there(&st, "skipped"));
    prepare_fixture_end(&st);
}

TEST(prepare_waits_for_pods_that_wish_to_complete)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, NULL,
                          "objects:\n" POD("patient",
                                           ", labels: {cluster.x-k8s.io/drain: wait-completed}, "
                                           "annotations: {sandbox.drydock.dev/run: 10m}",
                                           ", restartPolicy: Never"));
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DRAIN, SECONDS(10)));
    drain_fixture_run(&st.s, MINUTES(5));
    struct prepare_view v = prepare_fixture_view(&st);
    CHECK_EQ(v.step, PREPARE_DRAIN);
    CHECK_STR(v.reason, "Draining");
    CHECK(contains(&v, "pod default/patient: it wishes to complete"));
    CHECK_EQ(drain_fixture_events(&st.s, "DrainBlocked", "Pod", NULL), 0);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(10)));
    CHECK_EQ(drain_fixture_sent(&st.s, "pods/eviction", SIM_POST), 0);
    CHECK(pod_is_there(&st, "patient"));
    prepare_fixture_end(&st);
}

TEST(prepare_sends_only_selected_pods_away)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, NULL,
                          "workloads: [{name: web, replicas: 2}, {name: db, replicas: 3}]");
    st.options.drain.pod_selector = STR("app in (web)");
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(2)));
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 3);
    prepare_fixture_end(&st);
}

TEST(prepare_with_a_selector_that_cannot_be_read_is_rejected)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, NULL, "workloads: [{name: web, replicas: 1}]");
    st.options.drain.pod_selector = STR("a in (");
    st.options.drain.timeout_s = 60;
    st.options.drain.on_timeout = ON_TIMEOUT_FORCE;
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, SECONDS(30));
    CHECK(str_contains(prepare_fixture_view(&st).message, STR("podSelector")));
    drain_fixture_run(&st.s, SECONDS(60));
    CHECK(prepare_fixture_view(&st).rejected);
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 1);
    prepare_fixture_end(&st);
}

/* Nothing at all is sent away while a pod is there that must not be. */
TEST(prepare_does_not_begin_beside_a_pod_that_it_must_not_evict)
{
    const struct {
        const char *reason;
        const char *words;
        const char *pod;
        int bar; /* which option says no */
    } cases[] = {
        { "UnmanagedPods", "no controller would make it again", POD("x", "", ""), 0 },
        { "Draining", "it has an emptyDir", POD("x", "", ", volumes: [{name: v, emptyDir: {}}]"),
          1 },
    };
    for (uint32_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case(i);
        struct prepare_fixture st;
        struct arena tmp = { 0 };
        prepare_fixture_begin(
            &st, 2, NULL,
            arena_printf(&tmp, "workloads: [{name: web, replicas: 2}]\nobjects:\n%s", cases[i].pod)
                .p);
        st.options.drain.evict_unmanaged = cases[i].bar != 0;
        st.options.drain.delete_empty_dir = cases[i].bar != 1;
        prepare_fixture_prepare(&st);
        CHECK(prepare_fixture_run_until(&st, PREPARE_DRAIN, SECONDS(10)));
        drain_fixture_run(&st.s, MINUTES(5));
        struct prepare_view v = prepare_fixture_view(&st);
        CHECK_STR(v.reason, cases[i].reason);
        CHECK(contains(&v, cases[i].words));
        CHECK_EQ(v.pods_left, 3);
        CHECK_EQ(st.s.evicting, 0);
        CHECK_EQ(drain_fixture_events(&st.s, "DrainBlocked", "MaintenanceRequest", NULL), 1);
        drain_fixture_api(&st.s, 200, "DELETE", "/api/v1/namespaces/default/pods/x", "");
        CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(2)));
        prepare_fixture_end(&st);
        arena_done(&tmp);
    }
    check_case(-1);
}

TEST(prepare_that_must_not_ignore_daemons_waits_for_them)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 1, NULL, "workloads: [{name: agent, kind: DaemonSet}]");
    st.options.drain.ignore_daemon_sets = false;
    st.options.drain.timeout_s = 60;
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DRAIN, SECONDS(10)));
    drain_fixture_run(&st.s, SECONDS(10));
    struct prepare_view v = prepare_fixture_view(&st);
    CHECK(contains(&v, "it is of a DaemonSet"));
    drain_fixture_run(&st.s, SECONDS(60));
    CHECK(prepare_fixture_view(&st).rejected);
    CHECK_EQ(drain_fixture_sent(&st.s, "pods/eviction", SIM_POST), 0);
    prepare_fixture_end(&st);
}

/* Its kubelet is silent: nobody ends the pods there, and nobody says that they have ended. */
TEST(prepare_of_an_unreachable_node_does_not_wait_for_its_kubelet)
{
    struct prepare_fixture st;
    struct err err = { 0 };
    prepare_fixture_begin(&st, 2, NULL, "workloads: [{name: web, replicas: 2}]");
    st.options.drain.grace_s = 600;
    CHECK_EQ(world_fail_node(st.s.world, STR("node-001"), &err), 0);
    drain_fixture_run(&st.s, MINUTES(2));
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, SECONDS(30)));
    CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 2); /* being deleted, for ever */
    prepare_fixture_end(&st);
}

/* ── crashes ───────────────────────────────────────────────────────────────────────────────── */

/* Everything there is, in one preparation. */
static void begin_everything(struct prepare_fixture *st)
{
    prepare_fixture_begin(st, 2, "web",
                          "workloads: [{name: web, replicas: 3}]\n"
                          "budgets: [{name: web, maxUnavailable: 1}]\n");
    st->options.drain.post_grace_s = 10;
    st->options.detach.enabled = true;
    st->options.detach.post_grace_s = 10;
    prepare_fixture_attach(st, "va-1", "node-001", "csi.example.com", "pv-1");
    drain_fixture_run(&st->s, SECONDS(1));
}

/* Runs until that many requests have been sent; false when all was done before. */
static bool run_until_sent(struct prepare_fixture *st, uint64_t requests)
{
    usec_t until = virtual_loop_now(st->s.v) + MINUTES(5);
    bool freed = false;
    while (sim_api_sent(st->s.door) < requests) {
        if (prepare_fixture_view(st).step == PREPARE_DONE || !virtual_loop_step(st->s.v, until)) {
            return false;
        }
        drains_check(st->s.drains);
        if (!freed && prepare_fixture_view(st).step == PREPARE_DETACH) {
            prepare_fixture_detach(st, "va-1");
            freed = true;
        }
    }
    return true;
}

TEST(prepare_goes_on_after_a_crash_at_any_request)
{
    for (uint64_t n = 0;; n++) {
        check_case((int64_t)n);
        struct prepare_fixture st;
        begin_everything(&st);
        st.s.faults.cancel_executes = 500;
        uint64_t before = sim_api_sent(st.s.door);
        prepare_fixture_prepare(&st);
        bool crashed = run_until_sent(&st, before + n);
        if (crashed) {
            prepare_fixture_crash(&st);
            if (apiserver_find(st.s.server, STR("storage.k8s.io"), STR("volumeattachments"),
                               STR(""), STR("va-1")) != NULL) {
                CHECK(prepare_fixture_run_until(&st, PREPARE_DETACH, MINUTES(10)));
                prepare_fixture_detach(&st, "va-1");
            }
        }
        CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(10)));
        CHECK(prepare_fixture_is_cordoned(&st));
        CHECK_STR(prepare_fixture_mark(&st), PREPARE_FIXTURE_UID);
        CHECK(prepare_fixture_view(&st).cordoned);
        CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 0);
        CHECK(st.s.least >= 2); /* I5 */
        prepare_fixture_undo(&st, /* uncordon= */ true);
        drain_fixture_run(&st.s, MSECONDS(n));
        if (!st.undone) {
            prepare_fixture_crash(&st); /* in the middle of the way back */
            prepare_fixture_undo(&st, /* uncordon= */ true);
        }
        CHECK(prepare_fixture_finish_undo(&st, MINUTES(1)));
        CHECK(!prepare_fixture_is_cordoned(&st));
        CHECK_EQ(prepare_fixture_mark(&st).n, 0);
        prepare_fixture_end(&st);
        if (!crashed) {
            CHECK(n > 10);
            break;
        }
    }
    check_case(-1);
}

TEST(prepare_ends_whatever_the_network_does)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        check_case((int64_t)seed);
        struct prepare_fixture st;
        begin_everything(&st);
        faults_done(&st.s.faults);
        faults_init(&st.s.faults, seed);
        faults_randomize(&st.s.faults);
        prepare_fixture_prepare(&st);
        CHECK(prepare_fixture_run_until(&st, PREPARE_DETACH, MINUTES(50)));
        prepare_fixture_detach(&st, "va-1");
        CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(25)));
        CHECK_EQ(drain_fixture_pods(&st.s, "node-001"), 0);
        CHECK(st.s.least >= 2);
        CHECK_STR(prepare_fixture_mark(&st), PREPARE_FIXTURE_UID);
        prepare_fixture_undo(&st, /* uncordon= */ true);
        CHECK(prepare_fixture_finish_undo(&st, MINUTES(30)));
        CHECK(!prepare_fixture_is_cordoned(&st));
        prepare_fixture_end(&st);
    }
    check_case(-1);
}

TEST(prepare_says_why_the_node_cannot_be_cordoned)
{
    struct prepare_fixture st;
    prepare_fixture_begin(&st, 2, NULL, "{}");
    st.options.drain.timeout_s = 120;
    st.s.faults.error_503 = 1000;
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, SECONDS(60));
    struct prepare_view v = prepare_fixture_view(&st);
    CHECK_EQ(v.step, PREPARE_CORDON);
    CHECK(str_contains(v.message, STR("the node cannot be cordoned: the server answered 503")));
    drain_fixture_run(&st.s, SECONDS(70));
    CHECK(prepare_fixture_view(&st).rejected);
    CHECK_STR(prepare_fixture_view(&st).reason, "DrainTimeout");
    prepare_fixture_end(&st);
}
