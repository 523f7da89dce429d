/* Hosts of Metal3 are switched off for a maintenance, and on again. */
#include "tests/check.h"
#include "kinds/keys.h"
#include "tests/lib/bridge_fixture.h"

#define HOSTS "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts"
#define MACHINE STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/e1")

static const struct bridge_config metal3 = { .metal3 = true };

static void add_host(struct bridge_fixture *s)
{
    bridge_fixture_management(
        s, "POST", STR(HOSTS),
        "{\"apiVersion\":\"metal3.io/v1alpha1\",\"kind\":\"BareMetalHost\",\"metadata\":{"
        "\"name\":\"h1\"},\"spec\":{\"consumerRef\":{\"kind\":\"Metal3Machine\",\"name\":"
        "\"e1\",\"namespace\":\"default\"}},\"status\":{\"poweredOn\":true,"
        "\"provisioning\":{\"state\":\"provisioned\"}}}");
}

static void begin(struct bridge_fixture *s, const struct bridge_config *config,
                  const char *provider_id)
{
    bridge_fixture_begin(s, "v1beta2");
    bridge_fixture_add_cluster(s, "east");
    bridge_fixture_machine(s, "east", "e1", "enabled managed");
    bridge_fixture_management(
        s, "PATCH", MACHINE,
        arena_printf(&s->memory,
                     "{\"spec\":{\"providerID\":\"%s\",\"infrastructureRef\":{\"kind\":"
                     "\"Metal3Machine\",\"name\":\"e1\"}}}",
                     provider_id)
            .p);
    add_host(s);
    bridge_fixture_bridge(s, config);
    bridge_fixture_run(s, SECONDS(5));
}

static struct str reboot(struct bridge_fixture *s)
{
    const struct jval *host = apiserver_find(s->management, STR("metal3.io"), STR("baremetalhosts"),
                                             STR("default"), STR("h1"));
    return jval_str(jval_get(jval_at(host, "metadata.annotations"), KEY_REBOOT));
}

static void approve(struct bridge_fixture *s)
{
    bridge_fixture_label_machine(s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(s, SECONDS(1));
    bridge_fixture_label_node(s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_run(s, SECONDS(2));
    CHECK_STR(bridge_fixture_machine_label(s, "e1", KEY_MAINTENANCE), "approved");
}

TEST(metal3_host_is_off_while_its_machine_is_approved)
{
    struct bridge_fixture s;
    begin(&s, &metal3, "metal3://default/h1/e1");
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(reboot(&s).p == NULL);
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK(reboot(&s).p != NULL);
    CHECK_STR(bridge_fixture_machine_annotation(&s, "e1", KEY_POWER), "on");
    bridge_fixture_management(&s, "PATCH", STR(HOSTS "/h1"), "{\"status\":{\"poweredOn\":false}}");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_machine_annotation(&s, "e1", KEY_POWER), "off");
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(reboot(&s).p == NULL);
    CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_POWER).p == NULL);
    bridge_fixture_end(&s);
}

TEST(metal3_annotation_is_put_again_when_it_vanishes)
{
    struct bridge_fixture s;
    begin(&s, &metal3, "metal3://default/h1/e1");
    approve(&s);
    bridge_fixture_management(&s, "PATCH", STR(HOSTS "/h1"),
                              "{\"metadata\":{\"annotations\":null}}");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(reboot(&s).p != NULL);
    bridge_fixture_end(&s);
}

TEST(metal3_host_is_on_again_when_its_machine_is_gone)
{
    struct bridge_fixture s;
    begin(&s, &metal3, "metal3://default/h1/e1");
    approve(&s);
    CHECK(reboot(&s).p != NULL);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(reboot(&s).p == NULL);
    bridge_fixture_end(&s);
    /* Also when it went while nobody looked. */
    begin(&s, &metal3, "metal3://default/h1/e1");
    approve(&s);
    bridge_fixture_crash(&s);
    bridge_fixture_management(&s, "PATCH", MACHINE, "{\"metadata\":{\"finalizers\":null}}");
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_bridge(&s, &metal3);
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(reboot(&s).p == NULL);
    bridge_fixture_end(&s);
}

/* Takes the Machine away as Cluster API does in the end, whatever it waits for. */
static void bury_machine(struct bridge_fixture *s)
{
    bridge_fixture_management(s, "PATCH", MACHINE, "{\"metadata\":{\"finalizers\":null}}");
    bridge_fixture_delete_machine(s, "e1");
}

TEST(metal3_host_whose_machine_is_gone_is_switched_on_after_failures)
{
    struct bridge_fixture s;
    begin(&s, &metal3, "metal3://default/h1/e1");
    approve(&s);
    s.faults.error_503 = 1000;
    bury_machine(&s);
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(reboot(&s).p != NULL);
    s.faults.error_503 = 0;
    bridge_fixture_run(&s, MINUTES(2));
    CHECK(reboot(&s).p == NULL);
    bridge_fixture_end(&s);
}

static struct str owner(struct bridge_fixture *s)
{
    const struct jval *host = apiserver_find(s->management, STR("metal3.io"), STR("baremetalhosts"),
                                             STR("default"), STR("h1"));
    return jval_str(jval_get(jval_at(host, "metadata.annotations"), KEY_REBOOT_OWNER));
}

/* Metal3 itself takes wishes to reboot away from a host that is given back. */
TEST(metal3_note_of_an_owner_does_not_outlive_the_machine)
{
    struct bridge_fixture s;
    begin(&s, &metal3, "metal3://default/h1/e1");
    approve(&s);
    CHECK(owner(&s).n > 0);
    bridge_fixture_crash(&s);
    bury_machine(&s);
    bridge_fixture_management(&s, "PATCH", STR(HOSTS "/h1"),
                              "{\"metadata\":{\"annotations\":{\"reboot.metal3.io/"
                              "runtime-extension-maintenance-controller\":null}}}");
    bridge_fixture_bridge(&s, &metal3);
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(owner(&s).p == NULL);
    bridge_fixture_end(&s);
}

TEST(metal3_power_is_not_told_of_a_host_that_is_gone)
{
    struct bridge_fixture s;
    begin(&s, &metal3, "metal3://default/h1/e1");
    approve(&s);
    CHECK_STR(bridge_fixture_machine_annotation(&s, "e1", KEY_POWER), "on");
    bridge_fixture_management(&s, "DELETE", STR(HOSTS "/h1"), "");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_POWER).p == NULL);
    add_host(&s);
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(bridge_fixture_machine_annotation(&s, "e1", KEY_POWER), "on");
    CHECK(reboot(&s).p != NULL);
    bridge_fixture_end(&s);
}

/* The host is deleted and made again while nobody looks: it is another one, of another UID. */
TEST(metal3_power_is_not_told_of_a_host_that_has_been_replaced)
{
    struct bridge_fixture s;
    begin(&s, &metal3, "");
    const struct jval *host = apiserver_find(s.management, STR("metal3.io"), STR("baremetalhosts"),
                                             STR("default"), STR("h1"));
    bridge_fixture_management(&s, "PATCH", MACHINE,
                              arena_printf(&s.memory,
                                           "{\"spec\":{\"providerID\":\"metal3://" STR_FMT "\"}}",
                                           STR_ARG(jval_str(jval_at(host, "metadata.uid"))))
                                  .p);
    approve(&s);
    CHECK(reboot(&s).p != NULL);
    CHECK_STR(bridge_fixture_machine_annotation(&s, "e1", KEY_POWER), "on");
    s.faults.down = true;
    sim_api_disconnect(s.api);
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_management(&s, "DELETE", STR(HOSTS "/h1"), "");
    add_host(&s);
    apiserver_compact(s.management);
    s.faults.down = false;
    bridge_fixture_run(&s, MINUTES(2));
    CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_POWER).p == NULL);
    CHECK(reboot(&s).p == NULL);
    bridge_fixture_end(&s);
}

/* A Machine of another cluster that names the same host. */
static void add_rival(struct bridge_fixture *s)
{
    bridge_fixture_add_cluster(s, "west");
    bridge_fixture_machine(s, "west", "w1", "enabled managed");
    bridge_fixture_management(
        s, "PATCH", STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/w1"),
        "{\"spec\":{\"providerID\":\"metal3://default/h1/w1\",\"infrastructureRef\":{"
        "\"kind\":\"Metal3Machine\",\"name\":\"w1\"}}}");
}

TEST(metal3_power_is_not_told_by_a_machine_that_has_lost_its_host)
{
    struct bridge_fixture s;
    begin(&s, &metal3, "metal3://default/h1/e1");
    add_rival(&s);
    bridge_fixture_management(&s, "PATCH", STR(HOSTS "/h1"),
                              "{\"status\":{\"provisioning\":{\"state\":\"preparing\"}}}");
    approve(&s);
    CHECK_STR(bridge_fixture_machine_annotation(&s, "e1", KEY_POWER), "on");
    bridge_fixture_management(&s, "PATCH", STR(HOSTS "/h1"),
                              "{\"spec\":{\"consumerRef\":{\"name\":\"w1\"}}}");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_POWER).p == NULL);
    bridge_fixture_end(&s);
}

/* The first that names a host is remembered; when it goes, the next one is, of whatever cluster. */
TEST(metal3_host_is_found_by_its_machine_when_another_one_that_named_it_is_gone)
{
    struct bridge_fixture s;
    begin(&s, &metal3, "metal3://default/h1/e1");
    add_rival(&s);
    bridge_fixture_management(&s, "PATCH", STR(HOSTS "/h1"),
                              "{\"spec\":{\"consumerRef\":{\"name\":\"w1\"}}}");
    bridge_fixture_run(&s, SECONDS(1));
    bury_machine(&s);
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_label_machine(&s, "w1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_label_node(&s, "west", "w1", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK(reboot(&s).p != NULL);
    bridge_fixture_end(&s);
}

TEST(metal3_leaves_hosts_of_other_providers_alone)
{
    static const char *const providers[] = { "", "aws:///eu/i-1", "metal3://default", "metal3://" };
    for (size_t i = 0; i < ARRAY_LEN(providers); i++) {
        struct bridge_fixture s;
        begin(&s, &metal3, providers[i]);
        approve(&s);
        CHECK(reboot(&s).p == NULL);
        bridge_fixture_end(&s);
    }
}

/* A pod "p" on the Node, with more metadata if there is any. */
static void add_pod(struct bridge_fixture *s, const char *namespace, const char *metadata)
{
    bridge_fixture_workload(
        s, "east", "POST", arena_printf(&s->memory, "/api/v1/namespaces/%s/pods", namespace),
        arena_printf(&s->memory,
                     "{\"metadata\":{\"name\":\"p\"%s%s},\"spec\":{\"nodeName\":\"e1\","
                     "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
                     metadata[0] == 0 ? "" : ",", metadata)
            .p);
}

static void cordon(struct bridge_fixture *s)
{
    bridge_fixture_workload(s, "east", "PATCH", STR("/api/v1/nodes/e1"),
                            "{\"spec\":{\"unschedulable\":true}}");
}

/* What `drydock explain machine` says of the host. */
static struct str power_message(struct bridge_fixture *s)
{
    struct bridge_machine_view report;
    CHECK(bridge_explain(s->bridge, STR("default"), STR("e1"), &s->memory, &report));
    CHECK(report.has_host);
    return report.power.message;
}

static void check_drained(bool manage)
{
    struct bridge_fixture s;
    begin(&s,
          &(struct bridge_config){
              .metal3 = true, .manage_rbac = manage, .power = { .require_drained = true } },
          "metal3://default/h1/e1");
    add_pod(&s, "default", "");
    approve(&s);
    bridge_fixture_run(&s, MINUTES(1));
    CHECK(reboot(&s).p == NULL);
    CHECK_STR(power_message(&s), "The Node is not cordoned and drained yet: it is not cordoned.");
    cordon(&s);
    bridge_fixture_run(&s, MINUTES(1));
    CHECK(reboot(&s).p == NULL);
    CHECK_STR(power_message(&s),
              "The Node is not cordoned and drained yet: pod 'default/p' is still there.");
    bridge_fixture_workload(&s, "east", "DELETE",
                            STR("/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0"), "");
    bridge_fixture_run(&s, MINUTES(1));
    CHECK(reboot(&s).p != NULL);
    bridge_fixture_end(&s);
}

TEST(metal3_waits_until_the_node_is_drained_if_told_so)
{
    check_drained(/* manage= */ false);
}

/* What was drained while its host could not be switched off need not be any more when it can. */
TEST(metal3_looks_again_whether_the_node_is_drained)
{
    struct bridge_fixture s;
    begin(&s, &(struct bridge_config){ .metal3 = true, .power = { .require_drained = true } },
          "metal3://default/h1/e1");
    bridge_fixture_workload(&s, "east", "PATCH", STR("/api/v1/nodes/e1"),
                            "{\"spec\":{\"unschedulable\":true}}");
    bridge_fixture_management(&s, "PATCH", STR(HOSTS "/h1"),
                              "{\"status\":{\"provisioning\":{\"state\":\"preparing\"}}}");
    approve(&s);
    bridge_fixture_run(&s, MINUTES(1));
    bridge_fixture_workload(&s, "east", "PATCH", STR("/api/v1/nodes/e1"),
                            "{\"spec\":{\"unschedulable\":false}}");
    bridge_fixture_run(&s, MINUTES(1));
    bridge_fixture_management(&s, "PATCH", STR(HOSTS "/h1"),
                              "{\"status\":{\"provisioning\":{\"state\":\"provisioned\"}}}");
    bridge_fixture_run(&s, MINUTES(1));
    CHECK(reboot(&s).p == NULL);
    bridge_fixture_workload(&s, "east", "PATCH", STR("/api/v1/nodes/e1"),
                            "{\"spec\":{\"unschedulable\":true}}");
    bridge_fixture_run(&s, MINUTES(1));
    CHECK(reboot(&s).p != NULL);
    bridge_fixture_end(&s);
}

TEST(metal3_sees_pods_with_an_account_of_its_own)
{
    check_drained(/* manage= */ true);
}

/* ── drained by the rules of Cluster API ───────────────────────────────────────────────────── */

#define SELECT(key, value) "{\"matchLabels\":{\"" key "\":\"" value "\"}}"
#define DAEMON                                                                                     \
    "\"ownerReferences\":[{\"apiVersion\":\"apps/"                                                 \
    "v1\",\"kind\":\"DaemonSet\",\"name\":\"d\",\"uid\":"                                          \
    "\"d\",\"controller\":true}]"
#define LABEL(key, value) "\"labels\":{\"" key "\":\"" value "\"}"

/* A pod in namespace "team", which has the label team=a. */
TEST(metal3_counts_pods_as_cluster_api_would)
{
    static const struct {
        const char *rule; /* the spec of one; NULL = none */
        const char *metadata;
        const char *phase;
        bool drained;
    } cases[] = {
        { NULL, "", "Running", false },
        { NULL, "", "Succeeded", false }, /* its drain would take it away */
        { NULL, DAEMON, "Running", true },
        { NULL, DAEMON, "Failed", false },
        { NULL, LABEL("cluster.x-k8s.io/drain", "skip"), "Running", true },
        { NULL, LABEL("cluster.x-k8s.io/drain", "wait-completed"), "Succeeded", false },
        { "{\"drain\":{\"behavior\":\"Skip\"}}", "", "Running", true },
        { "{\"drain\":{\"behavior\":\"Skip\"}}", DAEMON, "Failed", true },
        { "{\"drain\":{\"behavior\":\"Skip\"}}", LABEL("cluster.x-k8s.io/drain", "wait-completed"),
          "Running", false }, /* its label comes first */
        { "{\"drain\":{\"behavior\":\"WaitCompleted\"}}", "", "Succeeded", false },
        { "{\"drain\":{\"behavior\":\"WaitCompleted\"}}", LABEL("cluster.x-k8s.io/drain", "skip"),
          "Running", true },
        { "{\"drain\":{\"behavior\":\"Drain\",\"order\":3}}", "", "Running", false },
        { "{\"drain\":{\"behavior\":\"Skip\"},\"pods\":[{\"selector\":" SELECT("app", "db") "}]}",
          LABEL("app", "db"), "Running", true },
        { "{\"drain\":{\"behavior\":\"Skip\"},\"pods\":[{\"selector\":" SELECT("app", "db") "}]}",
          LABEL("app", "web"), "Running", false },
        { "{\"drain\":{\"behavior\":\"Skip\"},\"pods\":[{\"namespaceSelector\":" SELECT("team",
                                                                                        "a") "}]}",
          "", "Running", true },
        { "{\"drain\":{\"behavior\":\"Skip\"},\"pods\":[{\"namespaceSelector\":" SELECT("team",
                                                                                        "b") "}]}",
          "", "Running", false },
        { "{\"drain\":{\"behavior\":\"Evict\"}}", DAEMON, "Running", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct bridge_fixture s;
        begin(&s,
              &(struct bridge_config){
                  .metal3 = true, .manage_rbac = i % 2 > 0, .power = { .require_drained = true } },
              "metal3://default/h1/e1");
        if (cases[i].rule != NULL) {
            bridge_fixture_rule(&s, "a", cases[i].rule);
        }
        bridge_fixture_workload(&s, "east", "POST", STR("/api/v1/namespaces"),
                                "{\"metadata\":{\"name\":\"team\",\"labels\":{\"team\":\"a\"}}}");
        add_pod(&s, "team", cases[i].metadata);
        bridge_fixture_workload(
            &s, "east", "PATCH", STR("/api/v1/namespaces/team/pods/p/status"),
            arena_printf(&s.memory, "{\"status\":{\"phase\":\"%s\"}}", cases[i].phase).p);
        cordon(&s);
        approve(&s);
        bridge_fixture_run(&s, MINUTES(1));
        CHECK_EQ(reboot(&s).p != NULL, cases[i].drained);
        bridge_fixture_end(&s);
    }
    check_case(-1);
}

/* Namespaces come in pages; the last one has the pod's. */
TEST(metal3_reads_namespaces_page_by_page)
{
    struct bridge_fixture s;
    begin(&s, &(struct bridge_config){ .metal3 = true, .power = { .require_drained = true } },
          "metal3://default/h1/e1");
    bridge_fixture_rule(
        &s, "a",
        "{\"drain\":{\"behavior\":\"Skip\"},\"pods\":[{\"namespaceSelector\":" SELECT("team",
                                                                                      "a") "}]}");
    for (int i = 0; i < 1100; i++) {
        bridge_fixture_workload(
            &s, "east", "POST", STR("/api/v1/namespaces"),
            arena_printf(&s.memory,
                         "{\"metadata\":{\"name\":\"n-%04d\",\"labels\":{\"team\":\"%s\"}}}", i,
                         i == 1099 ? "a" : "b")
                .p);
    }
    add_pod(&s, "n-1099", "");
    cordon(&s);
    approve(&s);
    bridge_fixture_run(&s, MINUTES(1));
    CHECK(reboot(&s).p != NULL);
    bridge_fixture_end(&s);
}

#define NODES                                                                                      \
    "{\"apiGroups\":[\"\"],\"resources\":[\"nodes\"],\"verbs\":[\"get\",\"list\",\"watch\","       \
    "\"patch\"]},{\"apiGroups\":[\"\"],\"resources\":[\"pods\"],\"verbs\":[\"list\"]}"

/* What a namespaceSelector asks for cannot be seen: the host stays on until it can. */
TEST(metal3_that_may_not_list_namespaces_leaves_the_host_on)
{
    struct bridge_fixture s;
    begin(&s, &(struct bridge_config){ .metal3 = true, .power = { .require_drained = true } },
          "metal3://default/h1/e1");
    bridge_fixture_restrict(&s, "east", NODES);
    bridge_fixture_rule(
        &s, "a",
        "{\"drain\":{\"behavior\":\"Skip\"},\"pods\":[{\"namespaceSelector\":" SELECT(
            "kubernetes.io/metadata.name", "default") "}]}");
    add_pod(&s, "default", "");
    cordon(&s);
    approve(&s);
    bridge_fixture_run(&s, MINUTES(5));
    CHECK(reboot(&s).p == NULL);
    CHECK(str_contains(power_message(&s), STR("yet: the namespaces cannot be listed: the server "
                                              "answered 403: ")));
    bridge_fixture_workload(
        &s, "east", "PATCH", STR("/apis/rbac.authorization.k8s.io/v1/clusterroles/narrow"),
        "{\"rules\":[" NODES ",{\"apiGroups\":[\"\"],\"resources\":[\"namespaces\"],"
        "\"verbs\":[\"list\"]}]}");
    bridge_fixture_run(&s, MINUTES(5));
    CHECK(reboot(&s).p != NULL);
    bridge_fixture_end(&s);
}

TEST(metal3_that_is_not_installed_holds_nothing_up)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    bridge_fixture_add_cluster(&s, "east");
    bridge_fixture_machine(&s, "east", "e1", "enabled managed");
    bridge_fixture_management(&s, "DELETE",
                              STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
                                  "baremetalhosts.metal3.io"),
                              "");
    bridge_fixture_bridge(&s, &metal3);
    bridge_fixture_run(&s, SECONDS(5));
    struct str why;
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    CHECK(!bridge_ready(s.bridge, &why));
    CHECK(str_contains(why, STR("baremetalhosts")));
    bridge_fixture_end(&s);
}
