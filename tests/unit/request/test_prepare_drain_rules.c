/* Preparations of nodes with a rulebook. */
#include "request/prepare.h"

#include "tests/unit/request/prepare_fixture.h"

#define POD(name, labels)                                                                          \
    "- apiVersion: v1\n"                                                                           \
    "  kind: Pod\n"                                                                                \
    "  metadata: {name: " name ", namespace: default, labels: {" labels "}}\n"                     \
    "  spec:\n"                                                                                    \
    "    nodeName: node-001\n"                                                                     \
    "    containers: [{name: a, image: b}]\n"                                                      \
    "    volumes: [{name: v, persistentVolumeClaim: {claimName: " name "}}]\n"

#define CLAIM(name)                                                                                \
    "- apiVersion: v1\n"                                                                           \
    "  kind: PersistentVolumeClaim\n"                                                              \
    "  metadata: {name: " name ", namespace: default}\n"                                           \
    "  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: "   \
    "pv-" name "}\n"

#define AGENT_STAYS                                                                                \
    "{\\\"name\\\":\\\"1\\\",\\\"behavior\\\":\\\"Skip\\\",\\\"pods\\\":[{\\\"selector\\\":"       \
    "\\\"app=agent\\\"}]}"
#define JOB_WAITS                                                                                  \
    "{\\\"name\\\":\\\"2\\\",\\\"behavior\\\":\\\"WaitCompleted\\\",\\\"pods\\\":[{\\\"selector"   \
    "\\\":\\\"app=job\\\"}]}"

/* What the bridge writes, with one patch. */
static void annotate(struct prepare_fixture *st, const char *request, const char *rules)
{
    drain_fixture_api(
        &st->s, 200, "PATCH", "/api/v1/nodes/node-001",
        arena_printf(&st->s.memory,
                     "{\"metadata\":{\"annotations\":{\"drydock.dev/deletion-request\":%s,"
                     "\"drydock.dev/drain-rules\":%s}}}",
                     request, rules)
            .p);
}

static bool is_there(struct prepare_fixture *st, const char *name)
{
    const struct jval *pod =
        apiserver_find(st->s.server, STR(""), STR("pods"), STR("default"), str_from(name));
    return pod != NULL && jval_at(pod, "metadata.deletionTimestamp") == NULL;
}

static void begin(struct prepare_fixture *st)
{
    prepare_fixture_begin(st, 2, NULL,
                          "objects:\n" CLAIM("agent") POD("agent", "app: agent")
                              POD("job", "app: job") POD("web", "app: web"));
    st->options.drain.evict_unmanaged = true;
}

TEST(prepare_drains_by_the_rules_that_its_node_carries)
{
    struct prepare_fixture st;
    begin(&st);
    st.options.detach.enabled = true;
    prepare_fixture_attach(&st, "va-a", "node-001", "csi.example.com", "pv-agent");
    annotate(&st, "null", "\"[" AGENT_STAYS "," JOB_WAITS "]\"");
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, MINUTES(2));
    CHECK(is_there(&st, "agent") && is_there(&st, "job") && !is_there(&st, "web"));
    struct prepare_view v = prepare_fixture_view(&st);
    CHECK_EQ(v.step, PREPARE_DRAIN);
    CHECK_EQ(v.pods_left, 1);
    CHECK_STR(v.reason, "Draining");
    CHECK_STR(v.message, "draining: 1 pod is left; default/job: it is waited for until it is gone "
                         "(MachineDrainRule '2')");
    CHECK_EQ(drain_fixture_events(&st.s, "DrainBlocked", "MaintenanceRequest", NULL), 0);
    /* They change, and are wrong for a while. */
    annotate(&st, "null", "\"{\\\"error\\\":\\\"no\\\"}\"");
    drain_fixture_run(&st.s, MINUTES(1));
    CHECK(is_there(&st, "agent") && is_there(&st, "job"));
    CHECK_EQ(drain_fixture_events(&st.s, "DrainBlocked", "MaintenanceRequest", NULL), 1);
    annotate(&st, "null", "\"[" AGENT_STAYS "]\"");
    CHECK(prepare_fixture_run_until(&st, PREPARE_DETACH, MINUTES(1)));
    CHECK(is_there(&st, "agent") && !is_there(&st, "job"));
    /* What stays on purpose keeps its volume. */
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(1)));
    prepare_fixture_end(&st);
}

/* The same after a restart, when only volumes are waited for. */
TEST(prepare_knows_by_the_rules_whose_volumes_stay)
{
    struct prepare_fixture st;
    begin(&st);
    st.options.detach.enabled = true;
    prepare_fixture_attach(&st, "va-a", "node-001", "csi.example.com", "pv-agent");
    prepare_fixture_attach(&st, "va-o", "node-001", "csi.example.com", "pv-other");
    annotate(&st, "null", "\"[" AGENT_STAYS "]\"");
    prepare_fixture_prepare(&st);
    CHECK(prepare_fixture_run_until(&st, PREPARE_DETACH, MINUTES(1)));
    prepare_fixture_crash(&st);
    drain_fixture_run(&st.s, SECONDS(20));
    CHECK_EQ(prepare_fixture_view(&st).volumes_left, 1);
    CHECK_STR(prepare_fixture_view(&st).blocked_by[0], "volume pv-other (csi.example.com)");
    annotate(&st, "null", "null");
    drain_fixture_run(&st.s, SECONDS(20));
    CHECK_EQ(prepare_fixture_view(&st).volumes_left, 2);
    prepare_fixture_end(&st);
}

/* The request is seen before the node that it was made for. */
TEST(prepare_for_a_machine_does_not_drain_a_node_that_is_known_from_before)
{
    struct prepare_fixture st;
    begin(&st);
    st.machine_request = "u-1/2";
    annotate(&st, "\"u-1/1\"", "\"[]\"");
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, MINUTES(5));
    CHECK(prepare_fixture_is_cordoned(&st));
    CHECK_EQ(prepare_fixture_view(&st).step, PREPARE_DRAIN);
    CHECK_EQ(st.s.evicting, 0);
    CHECK_STR(prepare_fixture_view(&st).message,
              "draining: it waits until the node carries request 'u-1/2' "
              "of its Machine, and with it the rules to drain by");
    drain_fixture_api(
        &st.s, 200, "PATCH", "/api/v1/nodes/node-001",
        "{\"metadata\":{\"annotations\":{\"drydock.dev/maintenance-request\":\"u-1/2\","
        "\"drydock.dev/drain-rules\":\"[" AGENT_STAYS "," JOB_WAITS "]\"}}}");
    drain_fixture_run(&st.s, MINUTES(1));
    CHECK_EQ(st.s.evicting, 1);
    CHECK(!is_there(&st, "web"));
    /* The request is withdrawn, and its rules with it. That must not free those they spare. */
    drain_fixture_api(&st.s, 200, "PATCH", "/api/v1/nodes/node-001",
                      "{\"metadata\":{\"annotations\":{\"drydock.dev/maintenance-request\":null,"
                      "\"drydock.dev/drain-rules\":null}}}");
    drain_fixture_run(&st.s, SECONDS(1));
    drain_fixture_create(&st.s, "objects:\n" POD("late", "app: web"));
    drain_fixture_run(&st.s, MINUTES(5));
    CHECK_EQ(st.s.evicting, 1);
    CHECK(is_there(&st, "late"));
    CHECK_EQ(prepare_fixture_view(&st).step, PREPARE_DRAIN);
    CHECK(str_starts(prepare_fixture_view(&st).message,
                     STR("draining: it waits until the node carries")));
    prepare_fixture_end(&st);
}

/* What never comes does not hold the slot for ever. */
TEST(prepare_for_a_machine_whose_node_never_shows_it_is_rejected_in_time)
{
    struct prepare_fixture st;
    begin(&st);
    st.machine_request = "u-1";
    st.options.drain.timeout_s = 600;
    st.options.drain.on_timeout = ON_TIMEOUT_FORCE;
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, MINUTES(11));
    CHECK(prepare_fixture_view(&st).rejected);
    CHECK_EQ(st.s.evicting, 0);
    prepare_fixture_end(&st);
}
