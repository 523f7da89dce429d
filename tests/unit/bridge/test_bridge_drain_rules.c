/* MachineDrainRules of the management cluster reach the Nodes whose Machines ask for something. */
#include "drain/drain_rules.h"
#include "kinds/keys.h"
#include "tests/check.h"
#include "tests/lib/bridge_fixture.h"

#define SKIP "{\"drain\":{\"behavior\":\"Skip\"}}"
#define SKIP_BOOK "[{\"name\":\"a\",\"behavior\":\"Skip\"}]"
#define CRD                                                                                        \
    STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"                                 \
        "machinedrainrules.cluster.x-k8s.io")

static void begin(struct bridge_fixture *s, const char *version)
{
    bridge_fixture_begin(s, version);
    bridge_fixture_add_cluster(s, "east");
    bridge_fixture_machine(s, "east", "e1", "enabled managed");
}

static void start(struct bridge_fixture *s)
{
    bridge_fixture_bridge(s, NULL);
    bridge_fixture_run(s, SECONDS(5));
}

static struct str book(struct bridge_fixture *s, const char *node)
{
    return bridge_fixture_node_annotation(s, "east", node, KEY_DRAIN_RULES);
}

static bool asked(struct bridge_fixture *s)
{
    return bridge_fixture_node_label(s, "east", "e1", KEY_MACHINE_DELETED).p != NULL;
}

/* ── going along ───────────────────────────────────────────────────────────────────────────── */

TEST(bridge_rules_come_with_the_request_and_go_with_it)
{
    static const char *const versions[] = { "v1beta2", "v1beta1" };
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct bridge_fixture s;
        begin(&s, versions[i]);
        bridge_fixture_rule(&s, "a", SKIP);
        start(&s);
        CHECK(book(&s, "e1").p == NULL); /* nobody asks for anything */
        bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
        bridge_fixture_run(&s, SECONDS(1));
        CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE), "true");
        CHECK_STR(book(&s, "e1"), SKIP_BOOK);
        bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
        bridge_fixture_run(&s, SECONDS(1));
        CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
        CHECK(book(&s, "e1").p == NULL);
        bridge_fixture_end(&s);
    }
}

/* Two patches for the request: what is asked is on the Machine first, then at the Node, and the
 * rules with it. */
TEST(bridge_rules_cost_no_patch_of_their_own)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2");
    bridge_fixture_rule(&s, "a", SKIP);
    start(&s);
    uint64_t before = s.patches;
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, MINUTES(5));
    CHECK(asked(&s));
    CHECK_EQ(s.patches - before, 2);
    CHECK_STR(book(&s, "e1"), SKIP_BOOK);
    bridge_fixture_end(&s);
}

TEST(bridge_rules_are_those_of_the_machines_namespace_and_labels)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2");
    bridge_fixture_management(&s, "POST", STR("/api/v1/namespaces"),
                              "{\"metadata\":{\"name\":\"default-b\"}}");
    bridge_fixture_rule(&s, "default-b/a", SKIP);
    bridge_fixture_rule(
        &s, "b",
        "{\"drain\":{\"behavior\":\"Drain\",\"order\":2},\"machines\":[{\"selector\":{"
        "\"matchLabels\":{\"os\":\"linux\"}}}]}");
    bridge_fixture_rule(
        &s, "c",
        "{\"drain\":{\"behavior\":\"WaitCompleted\"},\"machines\":[{\"clusterSelector\":{"
        "\"matchLabels\":{\"env\":\"prod\"}}}]}");
    start(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), "[]");
    bridge_fixture_label_machine(&s, "e1", STR("os"), "linux");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), "[{\"name\":\"b\",\"behavior\":\"Drain\",\"order\":2}]");
    bridge_fixture_management(
        &s, "PATCH", STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/east"),
        "{\"metadata\":{\"labels\":{\"env\":\"prod\"}}}");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"),
              "[{\"name\":\"b\",\"behavior\":\"Drain\",\"order\":2},{\"name\":\"c\","
              "\"behavior\":\"WaitCompleted\"}]");
    bridge_fixture_end(&s);
}

TEST(bridge_rules_that_change_reach_nodes_that_are_asked_already)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2");
    bridge_fixture_machine(&s, "east", "e2", "enabled managed");
    start(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), "[]");
    uint64_t before = s.patches;
    uint32_t told = bridge_fixture_events(&s, "NodeRequestDelivered");
    bridge_fixture_rule(&s, "a", SKIP);
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), SKIP_BOOK);
    bridge_fixture_rule(&s, "b", "{\"drain\":{\"behavior\":\"Evict\"}}");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), "{\"error\":\"MachineDrainRule 'b': spec.drain: behavior: 'Evict' is "
                              "none of Drain, Skip and WaitCompleted\"}");
    bridge_fixture_rule(&s, "b", NULL);
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), SKIP_BOOK);
    bridge_fixture_rule(&s, "a", NULL);
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), "[]");
    CHECK_EQ(s.patches - before, 4); /* one a change, and none for those that are not asked */
    CHECK_EQ(bridge_fixture_events(&s, "NodeRequestDelivered"), told);
    CHECK(book(&s, "e2").p == NULL);
    bridge_fixture_end(&s);
}

TEST(bridge_rules_that_others_change_at_the_node_are_set_right)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2");
    bridge_fixture_rule(&s, "a", SKIP);
    start(&s);
    bridge_fixture_annotate_node(&s, "east", "e1", KEY_DRAIN_RULES, "[]");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), "[]"); /* without a request it is not ours */
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), SKIP_BOOK);
    static const char *const values[] = { "[]", NULL, "" };
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        bridge_fixture_annotate_node(&s, "east", "e1", KEY_DRAIN_RULES, values[i]);
        bridge_fixture_run(&s, SECONDS(2));
        CHECK_STR(book(&s, "e1"), SKIP_BOOK);
    }
    /* Also what was changed while nobody looked. */
    bridge_fixture_crash(&s);
    bridge_fixture_annotate_node(&s, "east", "e1", KEY_DRAIN_RULES, "[]");
    start(&s);
    CHECK_STR(book(&s, "e1"), SKIP_BOOK);
    /* And not while the Cluster is paused. */
    bridge_fixture_management(
        &s, "PATCH", STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/east"),
        "{\"spec\":{\"paused\":true}}");
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_annotate_node(&s, "east", "e1", KEY_DRAIN_RULES, "[]");
    bridge_fixture_run(&s, SECONDS(5));
    CHECK_STR(book(&s, "e1"), "[]");
    bridge_fixture_end(&s);
}

TEST(bridge_rules_go_when_a_machine_is_disabled_or_gone)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2");
    bridge_fixture_machine(&s, "east", "e2", "enabled managed");
    start(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_delete_machine(&s, "e2");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), "[]");
    bridge_fixture_label_machine(&s, "e1", KEY_ENABLED, NULL);
    bridge_fixture_management(&s, "PATCH",
                              STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/e2"),
                              "{\"metadata\":{\"finalizers\":null}}");
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(!asked(&s));
    CHECK(book(&s, "e1").p == NULL);
    CHECK(bridge_fixture_node_label(&s, "east", "e2", KEY_MACHINE_DELETED).p == NULL);
    CHECK(book(&s, "e2").p == NULL);
    bridge_fixture_end(&s);
}

/* More than an annotation holds: nothing is drained, and explain says why. */
TEST(bridge_rules_that_are_too_many_are_an_error)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2");
    for (int i = 0; i < 700; i++) {
        bridge_fixture_rule(&s, arena_printf(&s.memory, "rule-%0200d", i).p, SKIP);
    }
    start(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"),
              "{\"error\":\"the rules for this node are too many: they do not fit into 65536 "
              "bytes\"}");
    struct bridge_machine_view report;
    CHECK(bridge_explain(s.bridge, STR("default"), STR("e1"), &s.memory, &report));
    CHECK(str_contains(report.rules_error, STR("too many")));
    bridge_fixture_end(&s);
}

/* ── not known ─────────────────────────────────────────────────────────────────────────────── */

/* A server without the kind has said so twice before it is believed. */
TEST(bridge_rules_of_a_server_without_the_kind_are_none)
{
    struct bridge_fixture s;
    struct str why;
    begin(&s, "v1beta1");
    bridge_fixture_management(&s, "DELETE", CRD, "");
    start(&s);
    CHECK(bridge_ready(s.bridge, &why));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(20));
    CHECK(!asked(&s));
    CHECK(str_contains(bridge_fixture_machine_annotation(&s, "e1", KEY_STATUS),
                       STR("DrainRulesUnknown")));
    bridge_fixture_run(&s, SECONDS(60));
    CHECK(asked(&s));
    CHECK_STR(book(&s, "e1"), "[]");
    CHECK(str_contains(bridge_fixture_machine_annotation(&s, "e1", KEY_STATUS),
                       STR("WaitingForApproval")));
    CHECK(bridge_ready(s.bridge, &why));
    bridge_fixture_end(&s);
}

TEST(bridge_rules_of_a_kind_that_comes_later_are_found)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    bridge_fixture_add_cluster(&s, "east");
    bridge_fixture_machine(&s, "east", "e1", "enabled managed");
    bridge_fixture_rule(&s, "a", SKIP);
    start(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), SKIP_BOOK);
    /* The kind goes, and its rules with it: that is believed when it has been said twice. */
    bridge_fixture_management(&s, "DELETE", CRD, "");
    bridge_fixture_run(&s, MINUTES(3));
    CHECK_STR(book(&s, "e1"), "[]");
    bridge_fixture_kind(&s, "MachineDrainRule", "machinedrainrules");
    bridge_fixture_rule(&s, "a", SKIP);
    bridge_fixture_run(&s, MINUTES(2));
    CHECK_STR(book(&s, "e1"), SKIP_BOOK);
    bridge_fixture_end(&s);
}

/* An account of its own, which may do all that is needed but for the rules. */
static struct str token(struct bridge_fixture *s)
{
    static const char *const rules =
        "[{\"apiGroups\":[\"\",\"events.k8s.io\"],\"resources\":[\"secrets\",\"events\"],\"verbs\":"
        "[\"*\"]},{\"apiGroups\":[\"cluster.x-k8s.io\"],\"resources\":[\"machines\",\"clusters\"],"
        "\"verbs\":[\"*\"]}]";
    bridge_fixture_management(s, "POST", STR("/api/v1/namespaces/default/serviceaccounts"),
                              "{\"metadata\":{\"name\":\"b\"}}");
    bridge_fixture_management(
        s, "POST", STR("/apis/rbac.authorization.k8s.io/v1/clusterroles"),
        arena_printf(&s->memory, "{\"metadata\":{\"name\":\"b\"},\"rules\":%s}", rules).p);
    bridge_fixture_management(
        s, "POST", STR("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
        "{\"metadata\":{\"name\":\"b\"},\"roleRef\":{\"apiGroup\":"
        "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"b\"},"
        "\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":\"b\",\"namespace\":"
        "\"default\"}]}");
    struct apiserver_reply reply = { 0 };
    apiserver_handle(s->management,
                     &(struct apiserver_request){
                         .method = STR("POST"),
                         .path = STR("/api/v1/namespaces/default/serviceaccounts/b/token"),
                         .content_type = API_JSON,
                         .body = STR("{\"spec\":{}}"),
                     },
                     &s->memory, &reply);
    CHECK_EQ(reply.status, 201);
    const struct jval *v = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(reply.body, 0, &s->memory, &v, &err), 0);
    return jval_str(jval_at(v, "status.token"));
}

static void grant(struct bridge_fixture *s, const char *kinds)
{
    bridge_fixture_management(
        s, "PATCH", STR("/apis/rbac.authorization.k8s.io/v1/clusterroles/b"),
        arena_printf(&s->memory,
                     "{\"rules\":[{\"apiGroups\":[\"\",\"events.k8s.io\"],\"resources\":["
                     "\"secrets\",\"events\"],\"verbs\":[\"*\"]},{\"apiGroups\":["
                     "\"cluster.x-k8s.io\"],\"resources\":[%s],\"verbs\":[\"*\"]}]}",
                     kinds)
            .p);
}

TEST(bridge_rules_that_may_not_be_listed_hold_requests_until_they_may)
{
    struct bridge_fixture s;
    struct str why;
    begin(&s, "v1beta2");
    bridge_fixture_machine(&s, "east", "e2", "enabled managed");
    bridge_fixture_rule(&s, "a", SKIP);
    struct str account = token(&s);
    bridge_fixture_bridge(&s, NULL);
    sim_api_set_token(s.api, account);
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(bridge_fixture_has_hook(&s, "e1")); /* all else goes on */
    CHECK(!bridge_ready(s.bridge, &why));
    CHECK(str_contains(why, STR("machinedrainrules")));
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, MINUTES(5));
    CHECK(!asked(&s));
    CHECK(book(&s, "e1").p == NULL);
    CHECK(str_contains(bridge_fixture_machine_annotation(&s, "e1", KEY_STATUS),
                       STR("DrainRulesUnknown")));
    struct bridge_machine_view report;
    CHECK(bridge_explain(s.bridge, STR("default"), STR("e1"), &s.memory, &report));
    CHECK(report.has_request && !report.rules_known);
    CHECK(str_contains(report.verdict.message, STR("the MachineDrainRules cannot be listed: ")));
    grant(&s, "\"machines\",\"clusters\",\"machinedrainrules\"");
    bridge_fixture_run(&s, MINUTES(1));
    CHECK(bridge_ready(s.bridge, &why));
    CHECK(asked(&s));
    CHECK_STR(book(&s, "e1"), SKIP_BOOK);
    CHECK(bridge_explain(s.bridge, STR("default"), STR("e1"), &s.memory, &report));
    CHECK(report.rules_known);
    CHECK_EQ(report.rules, 1);
    bridge_fixture_end(&s);
}

/* What may not be listed any more is not known any more: what stands is left, nothing is added. */
TEST(bridge_rules_that_may_not_be_listed_any_more_hold_requests)
{
    struct bridge_fixture s;
    struct str why;
    begin(&s, "v1beta2");
    bridge_fixture_machine(&s, "east", "e2", "enabled managed");
    bridge_fixture_rule(&s, "a", SKIP);
    struct str account = token(&s);
    bridge_fixture_bridge(&s, NULL);
    grant(&s, "\"machines\",\"clusters\",\"machinedrainrules\"");
    sim_api_set_token(s.api, account);
    bridge_fixture_run(&s, SECONDS(5));
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(book(&s, "e1"), SKIP_BOOK);
    grant(&s, "\"machines\",\"clusters\"");
    sim_api_disconnect(s.api);
    bridge_fixture_run(&s, MINUTES(2));
    CHECK(!bridge_ready(s.bridge, &why));
    bridge_fixture_annotate_node(&s, "east", "e1", KEY_DRAIN_RULES, "[]");
    bridge_fixture_delete_machine(&s, "e2");
    bridge_fixture_run(&s, MINUTES(1));
    CHECK_STR(book(&s, "e1"), "[]");
    CHECK(bridge_fixture_node_label(&s, "east", "e2", KEY_MACHINE_DELETED).p == NULL);
    grant(&s, "\"machines\",\"clusters\",\"machinedrainrules\"");
    bridge_fixture_run(&s, MINUTES(1));
    CHECK_STR(book(&s, "e1"), SKIP_BOOK);
    CHECK_STR(book(&s, "e2"), SKIP_BOOK);
    bridge_fixture_end(&s);
}
