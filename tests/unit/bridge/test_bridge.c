/* The flows of deletion and maintenance, with a management and two workload clusters. */
#include "tests/check.h"
#include "kinds/keys.h"
#include "tests/lib/bridge_fixture.h"

static const char *const versions[] = { "v1beta2", "v1beta1" };

/* East has an enabled, managed Machine, west another. */
static void begin(struct bridge_fixture *s, const char *version, const struct bridge_config *config)
{
    bridge_fixture_begin(s, version);
    bridge_fixture_add_cluster(s, "east");
    bridge_fixture_add_cluster(s, "west");
    bridge_fixture_machine(s, "east", "e1", "enabled managed");
    bridge_fixture_machine(s, "west", "w1", "enabled managed");
    bridge_fixture_bridge(s, config);
    bridge_fixture_run(s, SECONDS(5));
}

static const struct bridge_config strict = { .rules = { .strict_approval = true } };

/* ── what the original's own tests check (A12) ─────────────────────────────────────────────── */

TEST(bridge_leaves_machines_alone_whose_node_is_not_managed)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct bridge_fixture s;
        bridge_fixture_begin(&s, versions[i]);
        bridge_fixture_add_cluster(&s, "east");
        bridge_fixture_machine(&s, "east", "e1", "enabled");
        bridge_fixture_bridge(&s, NULL);
        bridge_fixture_run(&s, SECONDS(5));
        CHECK(!bridge_fixture_has_hook(&s, "e1"));
        bridge_fixture_delete_machine(&s, "e1");
        bridge_fixture_run(&s, SECONDS(5));
        CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
        CHECK(!bridge_fixture_has_hook(&s, "e1"));
        bridge_fixture_end(&s);
    }
}

TEST(bridge_attaches_the_hook_when_the_engine_manages_the_node)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct bridge_fixture s;
        bridge_fixture_begin(&s, versions[i]);
        bridge_fixture_add_cluster(&s, "east");
        bridge_fixture_machine(&s, "east", "e1", "enabled");
        bridge_fixture_bridge(&s, NULL);
        bridge_fixture_run(&s, SECONDS(5));
        bridge_fixture_label_node(&s, "east", "e1", KEY_STATE, "in-maintenance");
        bridge_fixture_run(&s, SECONDS(1));
        CHECK_STR(bridge_fixture_machine_annotation(&s, "e1", KEY_HOOK), KEY_HOOK_VALUE);
        bridge_fixture_label_node(&s, "east", "e1", KEY_STATE, NULL);
        bridge_fixture_run(&s, SECONDS(1));
        CHECK(!bridge_fixture_has_hook(&s, "e1"));
        bridge_fixture_end(&s);
    }
}

TEST(bridge_asks_the_node_and_releases_the_machine_when_it_agrees)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct bridge_fixture s;
        begin(&s, versions[i], NULL);
        CHECK(bridge_fixture_has_hook(&s, "e1") && bridge_fixture_has_hook(&s, "w1"));
        bridge_fixture_delete_machine(&s, "e1");
        bridge_fixture_run(&s, SECONDS(1));
        CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
        CHECK(bridge_fixture_has_hook(&s, "e1"));
        bridge_fixture_run(&s, HOURS(1));
        CHECK(bridge_fixture_has_hook(&s, "e1"));
        bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
        bridge_fixture_run(&s, SECONDS(1));
        CHECK(!bridge_fixture_has_hook(&s, "e1"));
        CHECK(bridge_fixture_has_hook(&s, "w1"));
        CHECK(bridge_fixture_node_label(&s, "west", "w1", KEY_MACHINE_DELETED).p == NULL);
        CHECK_EQ(bridge_fixture_events(&s, "HookReleased"), 1);
        bridge_fixture_end(&s);
    }
}

TEST(bridge_takes_the_hook_away_when_a_machine_is_disabled)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_label_machine(&s, "e1", KEY_ENABLED, NULL);
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_label_machine(&s, "e1", KEY_ENABLED, "True");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(!bridge_fixture_has_hook(&s, "e1")); /* exactly "true" */
    bridge_fixture_end(&s);
}

TEST(bridge_passes_a_maintenance_on_and_its_approval_back)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct bridge_fixture s;
        begin(&s, versions[i], NULL);
        bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
        bridge_fixture_run(&s, SECONDS(1));
        CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE), "true");
        CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "requested");
        bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
        bridge_fixture_run(&s, SECONDS(1));
        CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "approved");
        CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE), "true");
        CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_SKIP_REMEDIATION).p != NULL);
        bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
        bridge_fixture_run(&s, SECONDS(1));
        CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
        CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_SKIP_REMEDIATION).p == NULL);
        bridge_fixture_end(&s);
    }
}

TEST(bridge_lets_approvals_count_whenever_they_are_there_if_told_so)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", &strict);
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "approved");
    bridge_fixture_end(&s);
}

/* ── approvals ─────────────────────────────────────────────────────────────────────────────── */

TEST(bridge_does_not_honour_an_approval_that_was_there_before_the_request)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, MINUTES(10));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_DELETION).p == NULL);
    CHECK_EQ(bridge_fixture_events(&s, "StaleApprovalRemoved"), 1);
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    /* And it is not attached again when the engine takes its word back. */
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, NULL);
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

TEST(bridge_wants_another_approval_for_the_next_maintenance)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(1));
    struct str first = bridge_fixture_node_annotation(&s, "east", "e1", KEY_MAINTENANCE_REQUEST);
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(5));
    CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "requested");
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_MAINTENANCE).p == NULL);
    CHECK(
        !str_eq(bridge_fixture_node_annotation(&s, "east", "e1", KEY_MAINTENANCE_REQUEST), first));
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "approved");
    bridge_fixture_end(&s);
}

TEST(bridge_clears_a_used_approval_that_the_engine_left)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_run(&s, SECONDS(50));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_MAINTENANCE), "true");
    bridge_fixture_run(&s, SECONDS(15));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_MAINTENANCE).p == NULL);
    bridge_fixture_end(&s);
}

/* ── Nodes that are not there ──────────────────────────────────────────────────────────────── */

TEST(bridge_releases_a_machine_whose_node_is_gone_for_good)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(5));
    bridge_fixture_delete_node(&s, "east", "e1");
    bridge_fixture_run(&s, SECONDS(25));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_run(&s, SECONDS(10));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    CHECK_EQ(bridge_fixture_events(&s, "HookReleased"), 1);
    bridge_fixture_end(&s);
}

TEST(bridge_holds_while_the_cluster_cannot_say_that_the_node_is_gone)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    struct bridge_fixture_cluster *east = bridge_fixture_find_cluster(&s, "east");
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(5));
    east->faults.down = true;
    bridge_fixture_delete_node(&s, "east", "e1");
    bridge_fixture_run(&s, HOURS(2));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    east->faults.down = false;
    bridge_fixture_run(&s, MINUTES(7));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

TEST(bridge_holds_a_missing_node_for_ever_if_told_so)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", &(struct bridge_config){ .rules = { .missing_holds = true } });
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_delete_node(&s, "east", "e1");
    bridge_fixture_run(&s, HOURS(1));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

TEST(bridge_gives_up_on_a_cluster_after_its_time_if_told_so)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", &(struct bridge_config){ .rules = { .unreachable_max = MINUTES(10) } });
    bridge_fixture_find_cluster(&s, "east")->faults.partitioned = true;
    bridge_fixture_run(&s, MINUTES(3));
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, MINUTES(6));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_run(&s, MINUTES(10));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

TEST(bridge_holds_no_longer_than_it_was_told)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_annotate_machine(&s, "e1", KEY_HOLD_SECONDS, "600");
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, MINUTES(10));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_run(&s, SECONDS(10));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    CHECK(bridge_fixture_has_hook(&s, "w1"));
    bridge_fixture_end(&s);
}

TEST(bridge_attaches_the_hook_before_the_node_is_there_if_eager)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    bridge_fixture_add_cluster(&s, "east");
    bridge_fixture_machine(&s, "east", "e1", "enabled");
    bridge_fixture_bridge(&s, &(struct bridge_config){ .rules = { .eager = true } });
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

/* ── whole clusters ────────────────────────────────────────────────────────────────────────── */

TEST(bridge_lets_machines_go_with_their_cluster)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    struct str path = STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/east");
    bridge_fixture_management(&s, "PATCH", path, "{\"metadata\":{\"finalizers\":[\"x\"]}}");
    bridge_fixture_management(&s, "DELETE", path, "");
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_management(&s, "PATCH", path, "{\"metadata\":{\"finalizers\":null}}");
    bridge_fixture_run(&s, SECONDS(30));
    CHECK_EQ(bridge_fixture_find_cluster(&s, "east")->entry->open, 0);
    CHECK_EQ(bridge_fixture_find_cluster(&s, "west")->entry->open, 1);
    bridge_fixture_end(&s);
}

TEST(bridge_tells_clusters_of_one_name_apart_by_their_namespaces)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    bridge_fixture_add_cluster(&s, "a/prod");
    bridge_fixture_add_cluster(&s, "b/prod");
    bridge_fixture_machine(&s, "a/prod", "m", "enabled managed");
    bridge_fixture_machine(&s, "b/prod", "m", "enabled managed");
    bridge_fixture_bridge(&s, NULL);
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(bridge_fixture_has_hook(&s, "a/m") && bridge_fixture_has_hook(&s, "b/m"));
    bridge_fixture_delete_machine(&s, "b/m");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(bridge_fixture_node_label(&s, "a/prod", "m", KEY_MACHINE_DELETED).p == NULL);
    CHECK_STR(bridge_fixture_node_label(&s, "b/prod", "m", KEY_MACHINE_DELETED), "true");
    bridge_fixture_label_machine(&s, "a/m", KEY_ENABLED, NULL);
    bridge_fixture_run(&s, SECONDS(40));
    CHECK_EQ(bridge_fixture_find_cluster(&s, "a/prod")->entry->open, 0);
    CHECK_EQ(bridge_fixture_find_cluster(&s, "b/prod")->entry->open, 1);
    bridge_fixture_label_node(&s, "b/prod", "m", KEY_APPROVE_DELETION, "true");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(!bridge_fixture_has_hook(&s, "b/m"));
    bridge_fixture_end(&s);
}

/* A hostile cluster names another one's Machine on its Node. */
TEST(bridge_believes_no_node_that_names_a_machine_of_another_cluster)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_delete_machine(&s, "w1");
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_node(&s, "east", "w1", true);
    bridge_fixture_annotate_node(&s, "east", "w1", KEY_NODE_MACHINE, "w1");
    bridge_fixture_annotate_node(&s, "east", "w1", KEY_NODE_NAMESPACE, "default");
    bridge_fixture_label_node(&s, "east", "w1", KEY_MACHINE_DELETED, "true");
    bridge_fixture_label_node(&s, "east", "w1", KEY_APPROVE_DELETION, "true");
    bridge_fixture_run(&s, MINUTES(1));
    CHECK(bridge_fixture_has_hook(&s, "w1"));
    CHECK(bridge_fixture_events(&s, "PairingMismatch") >= 1);
    bridge_fixture_end(&s);
}

TEST(bridge_ignores_a_node_that_names_another_machine_than_claims_it)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_annotate_node(&s, "east", "e1", KEY_NODE_MACHINE, "other");
    bridge_fixture_annotate_node(&s, "east", "e1", KEY_NODE_NAMESPACE, "default");
    bridge_fixture_run(&s, SECONDS(1));
    uint64_t before = s.patches;
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    bridge_fixture_run(&s, MINUTES(1));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    CHECK_EQ(s.patches, before);
    CHECK_EQ(bridge_fixture_events(&s, "PairingMismatch"), 1);
    bridge_fixture_label_machine(&s, "e1", KEY_ENABLED,
                                 NULL); /* whatever a Node says, people decide */
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

/* ── the end of it ─────────────────────────────────────────────────────────────────────────── */

TEST(bridge_cleans_the_node_of_the_last_machine_before_it_hangs_up)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE), "true");
    bridge_fixture_label_machine(&s, "e1", KEY_ENABLED, NULL);
    bridge_fixture_run(&s, SECONDS(40));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
    CHECK(bridge_fixture_node_annotation(&s, "east", "e1", KEY_DELETION_REQUEST).p == NULL);
    CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_STATUS).p == NULL);
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    CHECK_EQ(bridge_fixture_find_cluster(&s, "east")->entry->open, 0);
    bridge_fixture_end(&s);
}

TEST(bridge_cleans_a_node_when_its_cluster_is_back)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(5));
    bridge_fixture_find_cluster(&s, "east")->faults.down = true;
    bridge_fixture_run(&s, SECONDS(60));
    bridge_fixture_label_machine(&s, "e1", KEY_ENABLED, NULL);
    bridge_fixture_run(&s, HOURS(1));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_find_cluster(&s, "east")->faults.down = false;
    bridge_fixture_run(&s, MINUTES(7));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_STATUS).p == NULL);
    CHECK_EQ(bridge_fixture_find_cluster(&s, "east")->entry->open, 0);
    bridge_fixture_end(&s);
}

TEST(bridge_cleans_a_node_whose_machine_is_gone)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_machine(&s, "east", "e2", "enabled managed");
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    bridge_fixture_management(&s, "PATCH",
                              STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/e1"),
                              "{\"metadata\":{\"finalizers\":null}}");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    CHECK(bridge_fixture_node_annotation(&s, "east", "e1", KEY_DELETION_REQUEST).p == NULL);
    bridge_fixture_end(&s);
}

/* Both kubeconfigs lead to one server: each link sees the Nodes of both. */
TEST(bridge_tries_again_to_clean_a_node_whose_machine_is_gone)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_machine(&s, "east", "e2", "enabled managed");
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(1));
    struct faults *faults = &bridge_fixture_find_cluster(&s, "east")->faults;
    faults->down = true; /* the watch that is open stays */
    bridge_fixture_management(&s, "PATCH",
                              STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/e1"),
                              "{\"metadata\":{\"finalizers\":null}}");
    bridge_fixture_run(&s, SECONDS(2));
    faults->down = false;
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    bridge_fixture_run(&s, MINUTES(1));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    bridge_fixture_end(&s);
}

TEST(bridge_cleans_a_node_whose_machine_went_while_its_cluster_was_paused)
{
    static const struct str path =
        STR_INIT("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/east");
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_machine(&s, "east", "e2", "enabled managed");
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_management(&s, "PATCH", path, "{\"spec\":{\"paused\":true}}");
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_management(&s, "PATCH",
                              STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/e1"),
                              "{\"metadata\":{\"finalizers\":null}}");
    bridge_fixture_run(&s, SECONDS(5));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    bridge_fixture_management(&s, "PATCH", path, "{\"spec\":{\"paused\":false}}");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    bridge_fixture_end(&s);
}

TEST(bridge_cleans_a_node_that_is_being_asked_when_its_machine_is_disabled)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    struct faults *faults = &bridge_fixture_find_cluster(&s, "east")->faults;
    faults->latency_min = SECONDS(2);
    faults->latency_max = SECONDS(2);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_STATUS).p !=
          NULL); /* there is something to clean */
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
    bridge_fixture_label_machine(&s, "e1", KEY_ENABLED, NULL);
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE), "true");
    bridge_fixture_run(&s, SECONDS(30));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
    CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_STATUS).p == NULL);
    bridge_fixture_end(&s);
}

TEST(bridge_keeps_its_word_on_a_machine_until_the_node_is_clean)
{
    struct bridge_fixture s;
    begin(&s, "v1beta2", NULL);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE), "true");
    bridge_fixture_find_cluster(&s, "east")->faults.partitioned = true;
    bridge_fixture_run(&s, MINUTES(3)); /* out of reach, and known to be */
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_STATUS).p != NULL);
    bridge_fixture_crash(&s);
    bridge_fixture_label_machine(&s, "e1", KEY_ENABLED, NULL);
    bridge_fixture_find_cluster(&s, "east")->faults.partitioned = false;
    bridge_fixture_bridge(&s, NULL);
    bridge_fixture_run(&s, SECONDS(10));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
    CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_STATUS).p == NULL);
    bridge_fixture_end(&s);
}

TEST(bridge_leaves_the_nodes_of_another_cluster_on_the_same_server_alone)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    bridge_fixture_add_cluster(&s, "east");
    bridge_fixture_add_cluster(&s, "west");
    bridge_fixture_find_cluster(&s, "west")->entry->server =
        bridge_fixture_find_cluster(&s, "east")->server;
    bridge_fixture_machine(&s, "east", "e1", "enabled managed");
    bridge_fixture_machine(&s, "west", "w1", "enabled managed");
    bridge_fixture_node(&s, "east", "w1", true);
    bridge_fixture_bridge(&s, NULL);
    bridge_fixture_run(&s, SECONDS(5));
    bridge_fixture_delete_machine(&s, "w1");
    bridge_fixture_run(&s, SECONDS(5));
    uint64_t before = s.patches;
    CHECK_STR(bridge_fixture_node_label(&s, "east", "w1", KEY_MACHINE_DELETED), "true");
    bridge_fixture_run(&s, MINUTES(5));
    CHECK_EQ(s.patches, before);
    bridge_fixture_end(&s);
}
