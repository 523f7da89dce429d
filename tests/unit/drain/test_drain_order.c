/* Drains of nodes with a rulebook. */
#include "drain/drain_internal.h"
#include "tests/unit/drain/drain_fixture.h"

#define POD(name, labels)                                                                          \
    "- apiVersion: v1\n"                                                                           \
    "  kind: Pod\n"                                                                                \
    "  metadata: {name: " name ", namespace: default, labels: {" labels "}}\n"                     \
    "  spec: {nodeName: node-001, containers: [{name: a, image: b}]}\n"

#define DB_LATER                                                                                   \
    "{\"name\":\"10-db\",\"behavior\":\"Drain\",\"order\":5,\"pods\":[{\"selector\":\"app=db\"}]}"
#define CACHE_FIRST                                                                                \
    "{\"name\":\"20-cache\",\"behavior\":\"Drain\",\"order\":-3,\"pods\":[{\"selector\":\"app="    \
    "cache\"}]}"
#define JOB_WAITS                                                                                  \
    "{\"name\":\"30-job\",\"behavior\":\"WaitCompleted\",\"pods\":[{\"selector\":\"app=job\"}]}"
#define AGENT_STAYS                                                                                \
    "{\"name\":\"40-agent\",\"behavior\":\"Skip\",\"pods\":[{\"selector\":\"app=agent\"}]}"

static struct drain *drain_rules_drain(struct drain_fixture *s, const char *drain_rules)
{
    struct drain_spec spec = drain_fixture_spec;
    spec.flags = DRAIN_NOTIFY_ALL;
    spec.drain_rules = drain_rules != NULL ? str_from(drain_rules) : STR_NONE;
    return drain_fixture_drain(s, 0, &spec);
}

static const struct jval *drain_rules_pod(struct drain_fixture *s, const char *name)
{
    return apiserver_find(s->server, STR(""), STR("pods"), STR("default"), str_from(name));
}

static bool drain_rules_goes(struct drain_fixture *s, const char *name)
{
    const struct jval *pod = drain_rules_pod(s, name);
    return pod == NULL || jval_at(pod, "metadata.deletionTimestamp") != NULL;
}

static void drain_rules_finish_pod(struct drain_fixture *s, const char *name)
{
    drain_fixture_api(s, 200, "PATCH",
                      arena_printf(&s->memory, "/api/v1/namespaces/default/pods/%s/status", name).p,
                      "{\"status\":{\"phase\":\"Succeeded\"}}");
}

static void drain_rules_delete_pod(struct drain_fixture *s, const char *name)
{
    drain_fixture_api(s, 200, "DELETE",
                      arena_printf(&s->memory, "/api/v1/namespaces/default/pods/%s", name).p,
                      "{\"gracePeriodSeconds\":0}");
}

TEST(drain_rules_sends_the_lowest_order_away_and_the_next_when_that_is_gone)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL,
                        "objects:\n" POD("cache", "app: cache") POD("db", "app: db")
                            POD("web", "app: web"));
    drain_fixture_api(&s, 200, "PATCH", "/api/v1/namespaces/default/pods/cache",
                      "{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}");
    struct drain *d = drain_rules_drain(&s, "[" DB_LATER "," CACHE_FIRST "]");
    drain_fixture_run(&s, MINUTES(2));
    /* Its deletion has begun, and as long as it is there the others wait, which is no trouble. */
    CHECK(drain_rules_goes(&s, "cache") && drain_rules_pod(&s, "cache") != NULL);
    CHECK(!drain_rules_goes(&s, "web") && !drain_rules_goes(&s, "db"));
    struct drain_status status = drain_fixture_status(d);
    CHECK_EQ(status.left, 3);
    CHECK_EQ(status.terminating, 1);
    CHECK(!status.blocked);
    CHECK_EQ(status.wait, DRAIN_WAIT_ORDER);
    CHECK_STR(status.pod, "db");
    CHECK_STR(status.reason, "its turn comes after the pods of order -3 (MachineDrainRule '10-db' "
                             "gives it order 5)");
    struct drain_waiting_pod waiters[4];
    CHECK_EQ(drain_waiting_pods(d, &s.memory, waiters, 4), 2);
    CHECK_STR(waiters[1].pod, "web");
    CHECK_STR(waiters[1].reason, "its turn comes after the pods of order -3 (without a "
                                 "MachineDrainRule its order is 0)");
    CHECK_EQ(drain_fixture_events(&s, "DrainBlocked", "Pod", NULL), 0);
    drain_fixture_api(&s, 200, "PATCH", "/api/v1/namespaces/default/pods/cache",
                      "{\"metadata\":{\"finalizers\":null}}");
    while (drain_rules_pod(&s, "web") != NULL) {
        CHECK(!drain_rules_goes(&s, "db"));
        drain_fixture_run(&s, MSECONDS(100));
    }
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    CHECK_EQ(drain_fixture_status(d).evicted, 3);
    CHECK_EQ(drain_fixture_sent(&s, "namespaces", SIM_WATCH), 0); /* no rule asks for them */
    drain_fixture_end(&s);
}

/* An eviction that is on its way counts as much as one that is seen. */
TEST(drain_rules_waits_for_evictions_that_were_begun)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL, "objects:\n" POD("a-db", "app: db") POD("web", "app: web"));
    s.faults.latency_min = SECONDS(2);
    s.faults.latency_max = SECONDS(2);
    struct drain *d = drain_rules_drain(&s, "[" DB_LATER "]");
    while (drain_rules_pod(&s, "web") != NULL) {
        CHECK(!drain_rules_goes(&s, "a-db"));
        drain_fixture_run(&s, MSECONDS(100));
    }
    CHECK(drain_fixture_finish(&s, d, MINUTES(2)));
    CHECK_EQ(drain_fixture_sent(&s, "pods/eviction", SIM_POST), 2);
    drain_fixture_end(&s);
}

TEST(drain_rules_without_rules_still_means_cluster_apis_way)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL,
                        "workloads: [{name: agent, kind: DaemonSet}]\n"
                        "objects:\n" POD("web", "app: web") POD("done", "app: x")
                            POD("stays", "cluster.x-k8s.io/drain: Skip"));
    drain_rules_finish_pod(&s, "done");
    drain_fixture_run(&s, SECONDS(5));
    struct drain *d = drain_rules_drain(&s, "[]");
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    CHECK(drain_rules_pod(&s, "web") == NULL && drain_rules_pod(&s, "done") == NULL);
    CHECK(!drain_rules_goes(&s, "stays"));
    CHECK_EQ(drain_fixture_pods(&s, "node-001"), 2); /* with the daemon's */
    drain_fixture_end(&s);
}

TEST(drain_rules_waits_for_a_pod_until_its_object_is_gone)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL,
                        "objects:\n" POD("cache", "app: cache") POD("job", "app: job")
                            POD("web", "app: web")
                                POD("wish", "cluster.x-k8s.io/drain: WaitCompleted"));
    struct drain *d = drain_rules_drain(&s, "[" DB_LATER "," CACHE_FIRST "," JOB_WAITS "]");
    while (drain_rules_pod(&s, "cache") != NULL) {
        CHECK(!drain_rules_goes(&s, "web")); /* of order 0, as those that are waited for */
        drain_fixture_run(&s, MSECONDS(100));
    }
    drain_fixture_run(&s, HOURS(1));
    CHECK(drain_rules_pod(&s, "web") == NULL);
    struct drain_status status = drain_fixture_status(d);
    CHECK_EQ(status.left, 2);
    CHECK(!status.blocked && !status.timed_out);
    CHECK_STR(status.reason, "it is waited for until it is gone (MachineDrainRule '30-job')");
    /* A finished one blocks as well. */
    drain_rules_finish_pod(&s, "job");
    drain_rules_finish_pod(&s, "wish");
    drain_fixture_create(&s, "objects:\n" POD("db", "app: db"));
    drain_fixture_run(&s, HOURS(1));
    CHECK_EQ(drain_fixture_status(d).left, 3);
    CHECK(!drain_rules_goes(&s, "db") && !drain_rules_goes(&s, "job") &&
          !drain_rules_goes(&s, "wish"));
    drain_rules_delete_pod(&s, "job");
    drain_fixture_run(&s, MINUTES(1));
    CHECK(!drain_rules_goes(&s, "db"));
    CHECK_STR(drain_fixture_status(d).reason,
              "it wishes to complete, and is waited for until it is gone");
    drain_rules_delete_pod(&s, "wish");
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    CHECK(drain_rules_pod(&s, "db") == NULL);
    CHECK_EQ(drain_fixture_status(d).evicted, 3);
    drain_fixture_end(&s);
}

static void drain_rules_note_claim(void *ctx, struct str namespace, struct str claim)
{
    struct buf *event_key = ctx;
    buf_printf(event_key, STR_FMT "/" STR_FMT " ", STR_ARG(namespace), STR_ARG(claim));
}

static void drain_rules_check_claims(const struct drain *d, const char *want)
{
    CLEANUP(buf_done)
    struct buf event_key = { 0 };
    drain_each_volume_claim(d, drain_rules_note_claim, &event_key);
    CHECK_STR(buf_str(&event_key), want);
}

TEST(drain_rules_leaves_pods_that_it_skips_and_tells_their_claims)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL, "{}");
    static const char *const pods[][2] = { { "agent", "app: agent" },
                                           { "both", "app: agent, cluster.x-k8s.io/drain: skip" },
                                           { "web", "app: web" } };
    for (uint32_t i = 0; i < ARRAY_LEN(pods); i++) {
        drain_fixture_create(
            &s, arena_printf(&s.memory,
                             "objects:\n"
                             "- apiVersion: v1\n"
                             "  kind: Pod\n"
                             "  metadata: {name: %s, namespace: default, labels: {%s}}\n"
                             "  spec:\n"
                             "    nodeName: node-001\n"
                             "    containers: [{name: a, image: b}]\n"
                             "    volumes:\n"
                             "    - {name: v, persistentVolumeClaim: {claimName: c-%s}}\n",
                             pods[i][0], pods[i][1], pods[i][0])
                    .p);
    }
    drain_fixture_run(&s, SECONDS(10));
    struct drain_spec spec = drain_fixture_spec;
    spec.flags = DRAIN_NOTIFY_ALL | DRAIN_OBSERVE_ONLY;
    struct drain *d = drain_fixture_drain(&s, 0, &spec);
    drain_fixture_run(&s, SECONDS(5));
    drain_rules_check_claims(d, ""); /* nobody asked for wishes to count */
    CHECK_EQ(drain_fixture_status(d).left, 3);
    uint32_t changes = s.drain[0].changes;
    drain_set_rules(d, STR("[" AGENT_STAYS "]"));
    drain_fixture_run(&s, SECONDS(1));
    drain_rules_check_claims(d, "default/c-agent default/c-both ");
    CHECK_EQ(drain_fixture_status(d).left, 1);
    CHECK_EQ(s.drain[0].changes, changes + 1);
    drain_set_rules(d, STR("[]"));
    drain_fixture_run(&s, SECONDS(1));
    drain_rules_check_claims(d, "default/c-both ");
    drain_set_rules(d, STR_NONE);
    drain_fixture_run(&s, SECONDS(1));
    drain_rules_check_claims(d, "");
    CHECK_EQ(s.drain[0].changes, changes + 3);
    drain_set_rules(d, STR_NONE); /* it has not changed */
    drain_fixture_run(&s, SECONDS(1));
    CHECK_EQ(s.drain[0].changes, changes + 3);
    drain_stop(d);
    d = drain_rules_drain(&s, "[" AGENT_STAYS "]");
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    CHECK(!drain_rules_goes(&s, "agent") && !drain_rules_goes(&s, "both"));
    CHECK_EQ(drain_fixture_status(d).evicted, 1);
    drain_fixture_end(&s);
}

TEST(drain_rules_may_change_under_way)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL,
                        "objects:\n" POD("agent", "app: agent") POD("db", "app: db")
                            POD("job", "app: job"));
    struct drain *d = drain_rules_drain(&s, "[" DB_LATER "," JOB_WAITS "," AGENT_STAYS "]");
    drain_fixture_run(&s, MINUTES(1));
    CHECK_EQ(s.evicting, 0);
    CHECK_EQ(drain_fixture_status(d).left, 2);
    /* The database may go at once, */
    drain_set_rules(d, STR("[" JOB_WAITS "," AGENT_STAYS "]"));
    drain_fixture_run(&s, MINUTES(1));
    CHECK(drain_rules_pod(&s, "db") == NULL);
    CHECK_EQ(s.evicting, 1);
    /* the job is not waited for any more, */
    drain_set_rules(d, STR("[" AGENT_STAYS "]"));
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    CHECK(drain_rules_pod(&s, "job") == NULL);
    /* and what stayed does not, in the end. */
    drain_set_rules(d, STR_NONE);
    drain_fixture_run(&s, SECONDS(1));
    CHECK(drain_rules_goes(&s, "agent"));
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    drain_fixture_end(&s);
}

/* What was done by other rules is not done by these, until somebody has looked. */
TEST(drain_rules_that_changes_after_the_end_asks_for_another_look)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL, "objects:\n" POD("agent", "app: agent"));
    struct drain *d = drain_rules_drain(&s, "[" AGENT_STAYS "]");
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    drain_fixture_run(&s, 0);
    uint32_t changes = s.drain[0].changes;
    drain_set_rules(d, STR("[" AGENT_STAYS "," JOB_WAITS "]"));
    CHECK(!drain_is_done(d));
    drain_fixture_run(&s, SECONDS(1));
    CHECK(drain_is_done(d));
    CHECK_EQ(s.drain[0].changes, changes + 1);
    drain_set_rules(d, STR("[" JOB_WAITS "]"));
    CHECK(!drain_is_done(d));
    drain_fixture_run(&s, MSECONDS(500));
    CHECK(!drain_is_done(d) && drain_rules_goes(&s, "agent"));
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    drain_fixture_end(&s);
}

TEST(drain_rules_that_cannot_be_used_blocks_until_it_can)
{
    static const char *const bad[][2] = {
        { "{\"error\":\"rule '10-x': spec.drain: behavior: '' is unknown\"}",
          "the MachineDrainRules of its node cannot be used: rule '10-x': spec.drain: behavior: '' "
          "is unknown" },
        { "[{}]",
          "the MachineDrainRules of its node cannot be read: annotation 'drydock.dev/drain-rules': "
          "rule 1: behavior: '' is none of Drain, Skip and WaitCompleted" },
        { "", "the MachineDrainRules of its node cannot be read: annotation "
              "'drydock.dev/drain-rules': line 1, column 1: found the end, want a value" },
    };
    for (uint32_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct drain_fixture s;
        check_case(i);
        drain_fixture_begin(&s, 1, NULL,
                            "workloads: [{name: agent, kind: DaemonSet}]\n"
                            "objects:\n" POD("db", "app: db") POD("web", "app: web"));
        struct drain *d = drain_rules_drain(&s, bad[i][0]);
        drain_fixture_run(&s, MINUTES(20));
        struct drain_status status = drain_fixture_status(d);
        CHECK_EQ(s.evicting, 0);
        CHECK_EQ(status.left, 2);
        CHECK(status.blocked && !status.timed_out);
        CHECK_EQ(status.wait, DRAIN_WAIT_RULES);
        CHECK_STR(status.reason, bad[i][1]);
        CHECK_EQ(drain_fixture_events(&s, "DrainBlocked", "Node", NULL), 1);
        drain_set_rules(d, STR("[" DB_LATER "]"));
        CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
        CHECK(!drain_fixture_status(d).blocked);
        drain_fixture_end(&s);
    }
    check_case(-1);
}

TEST(drain_rules_does_not_stop_force_but_for_what_it_skips)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL,
                        "objects:\n" POD("agent", "app: agent") POD("db", "app: db")
                            POD("job", "app: job") POD("stays", "cluster.x-k8s.io/drain: skip")
                                POD("web", "app: web"));
    struct drain *d = drain_rules_drain(&s, "[" DB_LATER "," JOB_WAITS "," AGENT_STAYS "]");
    drain_fixture_run(&s, MINUTES(1));
    CHECK_EQ(s.evicting, 1);
    drain_force(d);
    drain_fixture_run(&s, SECONDS(1));
    CHECK_EQ(s.evicting, 3);
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    CHECK(!drain_rules_goes(&s, "agent") && !drain_rules_goes(&s, "stays"));
    /* Where the rules are not known, the labels are. */
    drain_set_rules(d, STR("{\"error\":\"no\"}"));
    CHECK(!drain_is_done(d) || drain_fixture_pods(&s, "node-001") == 2);
    drain_fixture_run(&s, MINUTES(1));
    CHECK(drain_rules_pod(&s, "agent") == NULL);
    CHECK(!drain_rules_goes(&s, "stays"));
    CHECK(drain_is_done(d));
    drain_fixture_end(&s);
}

/* forceEviction ends what does not go, and that keeps to the rules, too. */
TEST(drain_rules_keeps_stuck_pods_of_later_orders_from_being_killed)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL, "objects:\n" POD("db", "app: db") POD("job", "app: job"));
    drain_fixture_api(&s, 200, "PATCH", "/api/v1/namespaces/default/pods/db",
                      "{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}");
    drain_fixture_api(&s, 200, "DELETE", "/api/v1/namespaces/default/pods/db", "");
    struct drain_spec spec = drain_fixture_spec;
    spec.force = true;
    spec.deletion_timeout = MINUTES(2);
    spec.drain_rules = STR("[" DB_LATER "," JOB_WAITS "]");
    struct drain *d = drain_fixture_drain(&s, 0, &spec);
    drain_fixture_run(&s, MINUTES(10));
    CHECK_EQ(drain_fixture_status(d).wait, DRAIN_WAIT_STUCK);
    CHECK_EQ(drain_fixture_status(d).forced, 0);
    drain_rules_delete_pod(&s, "job");
    drain_fixture_run(&s, MINUTES(1));
    CHECK_EQ(drain_fixture_status(d).forced, 1);
    drain_fixture_end(&s);
}

/* The node's kubelet is dead: those whose grace is over count as gone, and the next may go. */
TEST(drain_rules_of_an_unreachable_node_does_not_wait_for_its_dead)
{
    struct drain_fixture s;
    struct err err = { 0 };
    drain_fixture_begin(&s, 1, NULL, "objects:\n" POD("db", "app: db") POD("web", "app: web"));
    CHECK_EQ(world_fail_node(s.world, STR("node-001"), &err), 0);
    struct drain *d = drain_rules_drain(&s, "[" DB_LATER "]");
    drain_fixture_run(&s, MINUTES(2));
    CHECK(drain_rules_goes(&s, "web") && !drain_rules_goes(&s, "db"));
    drain_set_unreachable(d, true);
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    CHECK(drain_rules_goes(&s, "db"));
    drain_fixture_end(&s);
}

/* ── namespaces ────────────────────────────────────────────────────────────────────────────── */

#define TEAM_A_LATER                                                                               \
    "[{\"name\":\"a\",\"behavior\":\"Drain\",\"order\":1,\"pods\":[{\"namespaceSelector\":\"team=" \
    "a\"}]}]"

static void drain_rules_label_namespace(struct drain_fixture *s, const char *team)
{
    drain_fixture_api(
        s, 200, "PATCH", "/api/v1/namespaces/default",
        arena_printf(&s->memory, "{\"metadata\":{\"labels\":{\"team\":\"%s\"}}}", team).p);
}

static const struct drain_spec second_spec = {
    .node = STR_INIT("node-002"),
    .eviction_timeout = MINUTES(10),
    .deletion_timeout = MINUTES(10),
    .grace = -1,
    .drain_rules = STR_INIT(TEAM_A_LATER),
};

TEST(drain_rules_has_namespaces_watched_only_while_it_asks_for_them)
{
    struct drain_fixture s;
    drain_fixture_begin(
        &s, 2, NULL,
        "namespaces: [other]\n"
        "objects:\n" POD(
            "db", "app: db") "- apiVersion: v1\n"
                             "  kind: Pod\n"
                             "  metadata: {name: held, namespace: other, labels: {app: job}}\n"
                             "  spec: {nodeName: node-001, containers: [{name: a, image: b}]}\n");
    drain_rules_label_namespace(&s, "a");
    struct drain *d = drain_rules_drain(&s, NULL);
    drain_observe_only(d);
    drain_fixture_run(&s, MINUTES(1));
    CHECK_EQ(drain_fixture_sent(&s, "namespaces", SIM_WATCH), 0);
    drain_stop(d);
    d = drain_rules_drain(&s, "[" JOB_WAITS "," AGENT_STAYS "]");
    drain_fixture_run(&s, SECONDS(10));
    CHECK_EQ(drain_fixture_sent(&s, "namespaces", SIM_WATCH), 0);
    drain_stop(d);
    drain_fixture_create(&s, "objects:\n" POD("db2", "app: db"));
    drain_fixture_run(&s, SECONDS(10));
    /* Two drains share one watch, */
    s.evicting = 0;
    d = drain_rules_drain(
        &s, "[{\"name\":\"0\",\"behavior\":\"WaitCompleted\",\"pods\":[{\"selector\":"
            "\"app=job\"}]},{\"name\":\"a\",\"behavior\":\"Drain\",\"order\":1,\"pods\":"
            "[{\"namespaceSelector\":\"team=a\"}]}]");
    struct drain *second = drain_fixture_drain(&s, 1, &second_spec);
    drain_fixture_run(&s, MINUTES(1));
    CHECK_EQ(drain_fixture_sent(&s, "namespaces", SIM_WATCH), 1);
    CHECK_EQ(drain_fixture_sent(&s, "namespaces", SIM_LIST), 0);
    CHECK_EQ(s.evicting, 0);
    CHECK_EQ(drain_is_done(second), true);
    drain_stop(second);
    drain_fixture_run(&s, SECONDS(10));
    /* and a label that changes changes whose turn it is. */
    drain_rules_label_namespace(&s, "b");
    drain_fixture_run(&s, SECONDS(10));
    CHECK(drain_rules_pod(&s, "db2") == NULL);
    CHECK_EQ(drain_fixture_sent(&s, "namespaces", SIM_WATCH), 1);
    drain_set_rules(d, STR("[]"));
    CHECK(drain_fixture_finish(&s, d, MINUTES(1)));
    uint64_t sent = drain_fixture_sent(&s, "namespaces", SIM_WATCH);
    drain_fixture_run(&s, HOURS(1));
    CHECK_EQ(drain_fixture_sent(&s, "namespaces", SIM_WATCH), sent);
    drain_fixture_end(&s);
}

static void drain_rules_storm(struct rng *rng)
{
    struct drain_fixture s;
    drain_fixture_begin(&s, 1, NULL,
                        "objects:\n" POD("a-db", "app: db") POD("b-web", "app: web")
                            POD("c-cache", "app: cache") POD("d-web", "app: web"));
    faults_init(&s.faults, rng_next(rng));
    faults_randomize(&s.faults);
    struct drain *d = drain_rules_drain(&s, "[" DB_LATER "," CACHE_FIRST "]");
    usec_t until = virtual_loop_now(s.v) + MINUTES(10);
    while (!drain_is_done(d) && virtual_loop_step(s.v, until)) {
        drains_check(s.drains);
        bool cache = drain_rules_pod(&s, "c-cache") != NULL;
        bool web = drain_rules_pod(&s, "b-web") != NULL || drain_rules_pod(&s, "d-web") != NULL;
        CHECK(!cache || (!drain_rules_goes(&s, "b-web") && !drain_rules_goes(&s, "d-web")));
        CHECK(!(cache || web) || !drain_rules_goes(&s, "a-db"));
    }
    s.faults.calm = true;
    CHECK(drain_fixture_finish(&s, d, HOURS(1)));
    drain_fixture_end(&s);
}

TEST(drain_rules_keeps_the_order_in_every_storm)
{
    struct rng rng;
    for (int64_t seed = 0; seed < 40; seed++) {
        check_case(seed);
        rng_init(&rng, (uint64_t)seed);
        drain_rules_storm(&rng);
    }
    check_case(-1);
}
