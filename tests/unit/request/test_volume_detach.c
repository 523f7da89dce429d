/* Waiting for volumes, through the preparation that waits. */
#include "request/volume_detach.h"

#include "tests/unit/request/prepare_fixture.h"

static uint32_t attachments_watched(struct prepare_fixture *st)
{
    return (uint32_t)drain_fixture_sent(&st->s, "volumeattachments", SIM_WATCH);
}

static void begin(struct prepare_fixture *st, const char *yaml)
{
    prepare_fixture_begin(st, 2, NULL, yaml);
    st->options.drain.enabled = false;
    st->options.detach.enabled = true;
}

/* R22, the first half. */
TEST(detach_waits_for_the_last_attachment_of_the_node)
{
    struct prepare_fixture st;
    begin(&st, "{}");
    prepare_fixture_attach(&st, "va-1", "node-001", "csi.example.com", "pv-1");
    prepare_fixture_attach(&st, "va-2", "node-001", "csi.example.com", "pv-2");
    prepare_fixture_attach(&st, "va-3", "node-002", "csi.example.com", "pv-3");
    CHECK_EQ(attachments_watched(&st), 0);
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, SECONDS(5));
    struct prepare_view v = prepare_fixture_view(&st);
    CHECK_EQ(v.step, PREPARE_DETACH);
    CHECK_STR(v.reason, "WaitingForDetach");
    CHECK_EQ(v.volumes_left, 2);
    CHECK_EQ(v.blocked_n, 2);
    CHECK_STR(v.blocked_by[0], "volume pv-1 (csi.example.com)");
    CHECK_STR(v.blocked_by[1], "volume pv-2 (csi.example.com)");
    CHECK_EQ(v.deadline, v.step_time + SECONDS(1800));
    prepare_fixture_detach(&st, "va-1");
    drain_fixture_run(&st.s, SECONDS(1));
    CHECK_EQ(prepare_fixture_view(&st).volumes_left, 1);
    CHECK_EQ(prepare_fixture_view(&st).step, PREPARE_DETACH);
    uint64_t sent = sim_api_sent(st.s.door);
    drain_fixture_run(&st.s, SECONDS(60));
    CHECK_EQ(sim_api_sent(st.s.door), sent); /* nothing polls */
    prepare_fixture_detach(&st, "va-2");
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, SECONDS(5)));
    drain_fixture_run(&st.s, SECONDS(5));
    CHECK_EQ(drain_fixture_events(&st.s, "VolumesDetached", "MaintenanceRequest", NULL), 1);
    /* The watch ends with the last who waits. */
    uint32_t watched = attachments_watched(&st);
    drain_fixture_run(&st.s, HOURS(1));
    CHECK_EQ(attachments_watched(&st), watched);
    prepare_fixture_end(&st);
}

/* An attachment that is being deleted counts until it is gone. */
TEST(detach_waits_for_what_is_being_deleted)
{
    struct prepare_fixture st;
    begin(&st, "{}");
    prepare_fixture_attach(&st, "va-1", "node-001", "csi.example.com", "pv-1");
    drain_fixture_api(&st.s, 200, "PATCH", "/apis/storage.k8s.io/v1/volumeattachments/va-1",
                      "{\"metadata\":{\"finalizers\":[\"external-attacher/csi-example-com\"]}}");
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, SECONDS(5));
    prepare_fixture_detach(&st, "va-1");
    drain_fixture_run(&st.s, SECONDS(60));
    CHECK_EQ(prepare_fixture_view(&st).volumes_left, 1);
    drain_fixture_api(&st.s, 200, "PATCH", "/apis/storage.k8s.io/v1/volumeattachments/va-1",
                      "{\"metadata\":{\"finalizers\":null}}");
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, SECONDS(5)));
    prepare_fixture_end(&st);
}

TEST(detach_waits_for_what_the_node_still_lists)
{
    struct prepare_fixture st;
    begin(&st, "{}");
    prepare_fixture_volumes(&st, "[{\"name\":\"kubernetes.io/csi/x^1\",\"devicePath\":\"\"}]");
    drain_fixture_run(&st.s, SECONDS(1));
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, SECONDS(30));
    CHECK_EQ(prepare_fixture_view(&st).step, PREPARE_DETACH);
    CHECK_EQ(prepare_fixture_view(&st).volumes_left, 1);
    prepare_fixture_volumes(&st, "null");
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, SECONDS(5)));
    prepare_fixture_end(&st);
}

TEST(detach_ignores_drivers_that_it_is_told_to)
{
    struct prepare_fixture st;
    const struct str ignored[] = { STR_INIT("local.example.com") };
    begin(&st, "{}");
    st.options.detach.ignore_drivers = ignored;
    st.options.detach.ignore_n = 1;
    prepare_fixture_attach(&st, "va-1", "node-001", "local.example.com", "pv-1");
    prepare_fixture_attach(&st, "va-2", "node-001", "csi.example.com", "pv-2");
    /* The ignored one accounts for one of these. */
    prepare_fixture_volumes(
        &st, "[{\"name\":\"a\",\"devicePath\":\"\"},{\"name\":\"b\",\"devicePath\":\"\"}]");
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, SECONDS(5));
    CHECK_EQ(prepare_fixture_view(&st).volumes_left, 1);
    prepare_fixture_detach(&st, "va-2");
    drain_fixture_run(&st.s, SECONDS(5));
    CHECK_EQ(prepare_fixture_view(&st).volumes_left, 1); /* the node lists it still */
    prepare_fixture_volumes(&st, "[{\"name\":\"a\",\"devicePath\":\"\"}]");
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, SECONDS(5)));
    prepare_fixture_end(&st);
}

#define CLAIM(name, volume)                                                                        \
    "- apiVersion: v1\n"                                                                           \
    "  kind: PersistentVolumeClaim\n"                                                              \
    "  metadata: {name: " name ", namespace: default}\n"                                           \
    "  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: "   \
    "'" volume "'}\n"

#define DAEMONS                                                                                    \
    "- apiVersion: apps/v1\n"                                                                      \
    "  kind: DaemonSet\n"                                                                          \
    "  metadata: {name: agent, namespace: default}\n"                                              \
    "  spec:\n"                                                                                    \
    "    selector: {matchLabels: {app: agent}}\n"                                                  \
    "    template:\n"                                                                              \
    "      metadata: {labels: {app: agent}}\n"                                                     \
    "      spec:\n"                                                                                \
    "        containers: [{name: a, image: b}]\n"                                                  \
    "        volumes: [{name: v, persistentVolumeClaim: {claimName: daemons}}]\n"

#define SKIPPED                                                                                    \
    "- apiVersion: v1\n"                                                                           \
    "  kind: Pod\n"                                                                                \
    "  metadata: {name: skipped, namespace: default, labels: {cluster.x-k8s.io/drain: skip}}\n"    \
    "  spec:\n"                                                                                    \
    "    nodeName: node-001\n"                                                                     \
    "    containers: [{name: a, image: b}]\n"                                                      \
    "    volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {accessModes: "         \
    "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]\n"

/* R22, the second half; with a drain and without one. */
TEST(detach_does_not_wait_for_volumes_of_pods_that_stay)
{
    for (uint32_t drain = 0; drain < 2; drain++) {
        check_case(drain);
        struct prepare_fixture st;
        begin(&st, "objects:\n" CLAIM("daemons", "pv-d") CLAIM("skipped-scratch", "pv-s")
                       CLAIM("other", "pv-o") DAEMONS SKIPPED);
        st.options.drain.enabled = drain > 0;
        prepare_fixture_attach(&st, "va-d", "node-001", "csi.example.com", "pv-d");
        prepare_fixture_attach(&st, "va-s", "node-001", "csi.example.com", "pv-s");
        prepare_fixture_attach(&st, "va-o", "node-001", "csi.example.com", "pv-o");
        prepare_fixture_volumes(
            &st, "[{\"name\":\"a\",\"devicePath\":\"\"},{\"name\":\"b\",\"devicePath\":\"\"}]");
        prepare_fixture_prepare(&st);
        drain_fixture_run(&st.s, SECONDS(10));
        struct prepare_view v = prepare_fixture_view(&st);
        CHECK_EQ(v.step, PREPARE_DETACH);
        CHECK_EQ(v.volumes_left, 1);
        CHECK_STR(v.blocked_by[0], "volume pv-o (csi.example.com)");
        CHECK(str_contains(v.message, STR("1 is left, 2 not waited for")));
        CHECK_EQ(drain_fixture_sent(&st.s, "persistentvolumeclaims", SIM_GET), 2);
        prepare_fixture_detach(&st, "va-o");
        CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, SECONDS(10)));
        prepare_fixture_end(&st);
    }
    check_case(-1);
}

/* A claim that is bound late: nothing watches claims, so it is read again. */
TEST(detach_reads_a_claim_again_until_it_is_bound)
{
    struct prepare_fixture st;
    begin(&st, "objects:\n" CLAIM("daemons", "") DAEMONS);
    prepare_fixture_attach(&st, "va-d", "node-001", "csi.example.com", "pv-d");
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, SECONDS(30));
    CHECK_EQ(prepare_fixture_view(&st).volumes_left, 1);
    drain_fixture_api(&st.s, 200, "PATCH",
                      "/api/v1/namespaces/default/persistentvolumeclaims/daemons",
                      "{\"spec\":{\"volumeName\":\"pv-d\"}}");
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(2)));
    prepare_fixture_end(&st);
}

TEST(detach_is_rejected_or_goes_on_when_its_time_is_over)
{
    for (uint32_t i = 0; i < 2; i++) {
        check_case(i);
        struct prepare_fixture st;
        begin(&st, "{}");
        st.options.detach.timeout_s = 60;
        st.options.detach.on_timeout = i == 0 ? ON_TIMEOUT_REJECT : ON_TIMEOUT_PROCEED;
        prepare_fixture_attach(&st, "va-1", "node-001", "csi.example.com", "pv-1");
        prepare_fixture_prepare(&st);
        drain_fixture_run(&st.s, SECONDS(58));
        CHECK_EQ(prepare_fixture_view(&st).step, PREPARE_DETACH);
        CHECK(!prepare_fixture_view(&st).rejected);
        drain_fixture_run(&st.s, SECONDS(4));
        struct prepare_view v = prepare_fixture_view(&st);
        CHECK_EQ(v.rejected, i == 0);
        CHECK_EQ(v.step, i == 0 ? PREPARE_DETACH : PREPARE_DONE);
        if (i == 0) {
            CHECK_STR(v.reason, "DetachTimeout");
            CHECK_EQ(v.volumes_left, 1);
            CHECK_STR(v.blocked_by[0], "volume pv-1 (csi.example.com)");
        }
        CHECK(apiserver_find(st.s.server, STR("storage.k8s.io"), STR("volumeattachments"), STR(""),
                             STR("va-1")) != NULL);
        prepare_fixture_end(&st);
    }
    check_case(-1);
}

/* What cannot be read is said, and not any more when it can. */
TEST(detach_says_what_it_cannot_read_as_long_as_it_cannot)
{
    struct prepare_fixture st;
    begin(&st, "{}");
    prepare_fixture_attach(&st, "va-1", "node-001", "csi.example.com", "pv-1");
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, SECONDS(5));
    CHECK(!str_contains(prepare_fixture_view(&st).message, STR("connection re")));
    st.s.faults.down = true;
    sim_api_disconnect(st.s.door);
    drain_fixture_run(&st.s, SECONDS(30));
    CHECK(str_contains(prepare_fixture_view(&st).message, STR("1 is left")));
    CHECK(str_contains(prepare_fixture_view(&st).message, STR("connection re")));
    st.s.faults.down = false;
    drain_fixture_run(&st.s, MINUTES(3));
    CHECK(!str_contains(prepare_fixture_view(&st).message, STR("connection re")));
    prepare_fixture_detach(&st, "va-1");
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, MINUTES(1)));
    prepare_fixture_end(&st);
}

static void note_done(void *ctx)
{
    bool *called = ctx;
    *called = true;
}

/* The second comes while the first waits: what the watch had seen of its node was not kept. */
TEST(detach_of_a_second_node_sees_what_was_there_before)
{
    struct prepare_fixture st;
    bool called = false;
    begin(&st, "{}");
    prepare_fixture_attach(&st, "va-1", "node-001", "csi.example.com", "pv-1");
    prepare_fixture_attach(&st, "va-2", "node-002", "csi.example.com", "pv-2");
    prepare_fixture_prepare(&st);
    drain_fixture_run(&st.s, SECONDS(5));
    CHECK_EQ(prepare_fixture_view(&st).volumes_left, 1);
    const struct prepare_spec spec = {
        .uid = STR("other"),
        .request = STR("mr-2"),
        .node = STR("node-002"),
        .options = st.options,
    };
    struct prepare *second = prepare_new(st.preparer, &spec, note_done, &called);
    drain_fixture_run(&st.s, SECONDS(5));
    CHECK(called);
    struct prepare_view v;
    prepare_view(second, &v);
    CHECK_EQ(v.volumes_left, 1);
    CHECK_STR(v.blocked_by[0], "volume pv-2 (csi.example.com)");
    CHECK_EQ(prepare_fixture_view(&st).volumes_left, 1);
    prepare_fixture_detach(&st, "va-1");
    CHECK(prepare_fixture_run_until(&st, PREPARE_DONE, SECONDS(5)));
    prepare_fixture_detach(&st, "va-2");
    drain_fixture_run(&st.s, SECONDS(5));
    prepare_view(second, &v);
    CHECK_EQ(v.step, PREPARE_DONE);
    prepare_fixture_end(&st);
}
