/* The flows of deletion and maintenance, with a management and two workload clusters. */
#include "tests/check.h"
#include "tests/lib/bridge_fixture.h"

static const char *const versions[] = { "v1beta2", "v1beta1" };

/* East has an enabled, managed Machine, west another. */
static void begin(struct strait *s, const char *version, const struct bridge_config *config)
{
    strait_begin(s, version);
    strait_shore(s, "east");
    strait_shore(s, "west");
    strait_machine(s, "east", "e1", "enabled managed");
    strait_machine(s, "west", "w1", "enabled managed");
    strait_bridge(s, config);
    strait_run(s, SECONDS(5));
}

static const struct bridge_config strict = { .rules = { .strict_approval = true } };

/* ── what the original's own tests check (A12) ─────────────────────────────────────────────── */

TEST(bridge_leaves_machines_alone_whose_node_is_not_managed)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct strait s;
        strait_begin(&s, versions[i]);
        strait_shore(&s, "east");
        strait_machine(&s, "east", "e1", "enabled");
        strait_bridge(&s, NULL);
        strait_run(&s, SECONDS(5));
        CHECK(!strait_hooked(&s, "e1"));
        strait_delete_machine(&s, "e1");
        strait_run(&s, SECONDS(5));
        CHECK(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
        CHECK(!strait_hooked(&s, "e1"));
        strait_end(&s);
    }
}

TEST(bridge_attaches_the_hook_when_the_engine_manages_the_node)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct strait s;
        strait_begin(&s, versions[i]);
        strait_shore(&s, "east");
        strait_machine(&s, "east", "e1", "enabled");
        strait_bridge(&s, NULL);
        strait_run(&s, SECONDS(5));
        strait_label_node(&s, "east", "e1", KEY_STATE, "in-maintenance");
        strait_run(&s, SECONDS(1));
        CHECK_STR(strait_machine_note(&s, "e1", KEY_HOOK), KEY_HOOK_VALUE);
        strait_label_node(&s, "east", "e1", KEY_STATE, NULL);
        strait_run(&s, SECONDS(1));
        CHECK(!strait_hooked(&s, "e1"));
        strait_end(&s);
    }
}

TEST(bridge_asks_the_node_and_releases_the_machine_when_it_agrees)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct strait s;
        begin(&s, versions[i], NULL);
        CHECK(strait_hooked(&s, "e1") && strait_hooked(&s, "w1"));
        strait_delete_machine(&s, "e1");
        strait_run(&s, SECONDS(1));
        CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
        CHECK(strait_hooked(&s, "e1"));
        strait_run(&s, HOURS(1));
        CHECK(strait_hooked(&s, "e1"));
        strait_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
        strait_run(&s, SECONDS(1));
        CHECK(!strait_hooked(&s, "e1"));
        CHECK(strait_hooked(&s, "w1"));
        CHECK(strait_node_label(&s, "west", "w1", KEY_MACHINE_DELETED).p == NULL);
        CHECK_EQ(strait_events(&s, "HookReleased"), 1);
        strait_end(&s);
    }
}

TEST(bridge_takes_the_hook_away_when_a_machine_is_disabled)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_label_machine(&s, "e1", KEY_ENABLED, NULL);
    strait_run(&s, SECONDS(1));
    CHECK(!strait_hooked(&s, "e1"));
    strait_label_machine(&s, "e1", KEY_ENABLED, "True");
    strait_run(&s, SECONDS(1));
    CHECK(!strait_hooked(&s, "e1")); /* exactly "true" */
    strait_end(&s);
}

TEST(bridge_passes_a_maintenance_on_and_its_approval_back)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct strait s;
        begin(&s, versions[i], NULL);
        strait_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
        strait_run(&s, SECONDS(1));
        CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE), "true");
        CHECK_STR(strait_machine_label(&s, "e1", KEY_MAINTENANCE), "requested");
        strait_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
        strait_run(&s, SECONDS(1));
        CHECK_STR(strait_machine_label(&s, "e1", KEY_MAINTENANCE), "approved");
        CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE), "true");
        CHECK(strait_machine_note(&s, "e1", KEY_SKIP_REMEDIATION).p != NULL);
        strait_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
        strait_run(&s, SECONDS(1));
        CHECK(strait_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
        CHECK(strait_machine_note(&s, "e1", KEY_SKIP_REMEDIATION).p == NULL);
        strait_end(&s);
    }
}

TEST(bridge_lets_approvals_count_whenever_they_are_there_if_told_so)
{
    struct strait s;
    begin(&s, "v1beta2", &strict);
    CHECK(strait_hooked(&s, "e1"));
    strait_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    strait_run(&s, SECONDS(1));
    CHECK(!strait_hooked(&s, "e1"));
    strait_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    strait_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    strait_run(&s, SECONDS(1));
    CHECK_STR(strait_machine_label(&s, "e1", KEY_MAINTENANCE), "approved");
    strait_end(&s);
}

/* ── approvals (C4) ────────────────────────────────────────────────────────────────────────── */

TEST(bridge_does_not_honour_an_approval_that_was_there_before_the_request)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    strait_run(&s, SECONDS(1));
    CHECK(strait_hooked(&s, "e1"));
    strait_delete_machine(&s, "e1");
    strait_run(&s, MINUTES(10));
    CHECK(strait_hooked(&s, "e1"));
    CHECK(strait_node_label(&s, "east", "e1", KEY_APPROVE_DELETION).p == NULL);
    CHECK_EQ(strait_events(&s, "StaleApprovalRemoved"), 1);
    strait_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    strait_run(&s, SECONDS(1));
    CHECK(!strait_hooked(&s, "e1"));
    /* And it is not attached again when the engine takes its word back. */
    strait_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, NULL);
    strait_run(&s, SECONDS(5));
    CHECK(!strait_hooked(&s, "e1"));
    strait_end(&s);
}

TEST(bridge_wants_another_approval_for_the_next_maintenance)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    strait_run(&s, SECONDS(1));
    struct str first = strait_node_note(&s, "east", "e1", KEY_MAINTENANCE_REQUEST);
    strait_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    strait_run(&s, SECONDS(1));
    strait_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    strait_run(&s, SECONDS(1));
    strait_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    strait_run(&s, SECONDS(5));
    CHECK_STR(strait_machine_label(&s, "e1", KEY_MAINTENANCE), "requested");
    CHECK(strait_node_label(&s, "east", "e1", KEY_APPROVE_MAINTENANCE).p == NULL);
    CHECK(!str_eq(strait_node_note(&s, "east", "e1", KEY_MAINTENANCE_REQUEST), first));
    strait_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    strait_run(&s, SECONDS(1));
    CHECK_STR(strait_machine_label(&s, "e1", KEY_MAINTENANCE), "approved");
    strait_end(&s);
}

TEST(bridge_clears_a_used_approval_that_the_engine_left)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    strait_run(&s, SECONDS(1));
    strait_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    strait_run(&s, SECONDS(1));
    strait_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    strait_run(&s, SECONDS(50));
    CHECK_STR(strait_node_label(&s, "east", "e1", KEY_APPROVE_MAINTENANCE), "true");
    strait_run(&s, SECONDS(15));
    CHECK(strait_node_label(&s, "east", "e1", KEY_APPROVE_MAINTENANCE).p == NULL);
    strait_end(&s);
}

/* ── Nodes that are not there (C3) ─────────────────────────────────────────────────────────── */

TEST(bridge_releases_a_machine_whose_node_is_gone_for_good)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_delete_machine(&s, "e1");
    strait_run(&s, SECONDS(5));
    strait_delete_node(&s, "east", "e1");
    strait_run(&s, SECONDS(25));
    CHECK(strait_hooked(&s, "e1"));
    strait_run(&s, SECONDS(10));
    CHECK(!strait_hooked(&s, "e1"));
    CHECK_EQ(strait_events(&s, "HookReleased"), 1);
    strait_end(&s);
}

TEST(bridge_holds_while_the_cluster_cannot_say_that_the_node_is_gone)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    struct strait_shore *east = strait_find(&s, "east");
    strait_delete_machine(&s, "e1");
    strait_run(&s, SECONDS(5));
    east->faults.down = true;
    strait_delete_node(&s, "east", "e1");
    strait_run(&s, HOURS(2));
    CHECK(strait_hooked(&s, "e1"));
    east->faults.down = false;
    strait_run(&s, MINUTES(7));
    CHECK(!strait_hooked(&s, "e1"));
    strait_end(&s);
}

TEST(bridge_holds_a_missing_node_for_ever_if_told_so)
{
    struct strait s;
    begin(&s, "v1beta2", &(struct bridge_config){ .rules = { .missing_holds = true } });
    strait_delete_machine(&s, "e1");
    strait_delete_node(&s, "east", "e1");
    strait_run(&s, HOURS(1));
    CHECK(strait_hooked(&s, "e1"));
    strait_end(&s);
}

TEST(bridge_gives_up_on_a_cluster_after_its_time_if_told_so)
{
    struct strait s;
    begin(&s, "v1beta2", &(struct bridge_config){ .rules = { .away_max = MINUTES(10) } });
    strait_find(&s, "east")->faults.partitioned = true;
    strait_run(&s, MINUTES(3));
    strait_delete_machine(&s, "e1");
    strait_run(&s, MINUTES(6));
    CHECK(strait_hooked(&s, "e1"));
    strait_run(&s, MINUTES(10));
    CHECK(!strait_hooked(&s, "e1"));
    strait_end(&s);
}

TEST(bridge_holds_no_longer_than_it_was_told)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_note_machine(&s, "e1", KEY_HOLD_SECONDS, "600");
    strait_delete_machine(&s, "e1");
    strait_run(&s, MINUTES(10));
    CHECK(strait_hooked(&s, "e1"));
    strait_run(&s, SECONDS(10));
    CHECK(!strait_hooked(&s, "e1"));
    CHECK(strait_hooked(&s, "w1"));
    strait_end(&s);
}

TEST(bridge_attaches_the_hook_before_the_node_is_there_if_eager)
{
    struct strait s;
    strait_begin(&s, "v1beta2");
    strait_shore(&s, "east");
    strait_machine(&s, "east", "e1", "enabled");
    strait_bridge(&s, &(struct bridge_config){ .rules = { .eager = true } });
    strait_run(&s, SECONDS(1));
    CHECK(strait_hooked(&s, "e1"));
    strait_end(&s);
}

/* ── whole clusters ────────────────────────────────────────────────────────────────────────── */

TEST(bridge_lets_machines_go_with_their_cluster)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    struct str path = STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/east");
    strait_home(&s, "PATCH", path, "{\"metadata\":{\"finalizers\":[\"x\"]}}");
    strait_home(&s, "DELETE", path, "");
    strait_delete_machine(&s, "e1");
    strait_run(&s, SECONDS(1));
    CHECK(!strait_hooked(&s, "e1"));
    strait_home(&s, "PATCH", path, "{\"metadata\":{\"finalizers\":null}}");
    strait_run(&s, SECONDS(30));
    CHECK_EQ(strait_find(&s, "east")->entry->open, 0);
    CHECK_EQ(strait_find(&s, "west")->entry->open, 1);
    strait_end(&s);
}

TEST(bridge_tells_clusters_of_one_name_apart_by_their_namespaces)
{
    struct strait s;
    strait_begin(&s, "v1beta2");
    strait_shore(&s, "a/prod");
    strait_shore(&s, "b/prod");
    strait_machine(&s, "a/prod", "m", "enabled managed");
    strait_machine(&s, "b/prod", "m", "enabled managed");
    strait_bridge(&s, NULL);
    strait_run(&s, SECONDS(5));
    CHECK(strait_hooked(&s, "a/m") && strait_hooked(&s, "b/m"));
    strait_delete_machine(&s, "b/m");
    strait_run(&s, SECONDS(1));
    CHECK(strait_node_label(&s, "a/prod", "m", KEY_MACHINE_DELETED).p == NULL);
    CHECK_STR(strait_node_label(&s, "b/prod", "m", KEY_MACHINE_DELETED), "true");
    strait_label_machine(&s, "a/m", KEY_ENABLED, NULL);
    strait_run(&s, SECONDS(40));
    CHECK_EQ(strait_find(&s, "a/prod")->entry->open, 0);
    CHECK_EQ(strait_find(&s, "b/prod")->entry->open, 1);
    strait_label_node(&s, "b/prod", "m", KEY_APPROVE_DELETION, "true");
    strait_run(&s, SECONDS(1));
    CHECK(!strait_hooked(&s, "b/m"));
    strait_end(&s);
}

/* A hostile cluster names another one's Machine on its Node. */
TEST(bridge_believes_no_node_that_names_a_machine_of_another_cluster)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_delete_machine(&s, "w1");
    strait_run(&s, SECONDS(1));
    strait_node(&s, "east", "w1", true);
    strait_note_node(&s, "east", "w1", KEY_NODE_MACHINE, "w1");
    strait_note_node(&s, "east", "w1", KEY_NODE_SPACE, "default");
    strait_label_node(&s, "east", "w1", KEY_MACHINE_DELETED, "true");
    strait_label_node(&s, "east", "w1", KEY_APPROVE_DELETION, "true");
    strait_run(&s, MINUTES(1));
    CHECK(strait_hooked(&s, "w1"));
    CHECK(strait_events(&s, "PairingMismatch") >= 1);
    strait_end(&s);
}

TEST(bridge_ignores_a_node_that_names_another_machine_than_claims_it)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_note_node(&s, "east", "e1", KEY_NODE_MACHINE, "other");
    strait_note_node(&s, "east", "e1", KEY_NODE_SPACE, "default");
    strait_run(&s, SECONDS(1));
    uint64_t before = s.patches;
    strait_delete_machine(&s, "e1");
    strait_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    strait_run(&s, MINUTES(1));
    CHECK(strait_hooked(&s, "e1"));
    CHECK_EQ(s.patches, before);
    CHECK_EQ(strait_events(&s, "PairingMismatch"), 1);
    strait_label_machine(&s, "e1", KEY_ENABLED, NULL); /* whatever a Node says, people decide */
    strait_run(&s, SECONDS(1));
    CHECK(!strait_hooked(&s, "e1"));
    strait_end(&s);
}

/* ── the end of it ─────────────────────────────────────────────────────────────────────────── */

TEST(bridge_cleans_the_node_of_the_last_machine_before_it_hangs_up)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    strait_delete_machine(&s, "e1");
    strait_run(&s, SECONDS(1));
    CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE), "true");
    strait_label_machine(&s, "e1", KEY_ENABLED, NULL);
    strait_run(&s, SECONDS(40));
    CHECK(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    CHECK(strait_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
    CHECK(strait_node_note(&s, "east", "e1", KEY_DELETION_REQUEST).p == NULL);
    CHECK(strait_machine_note(&s, "e1", KEY_STATUS).p == NULL);
    CHECK(!strait_hooked(&s, "e1"));
    CHECK_EQ(strait_find(&s, "east")->entry->open, 0);
    strait_end(&s);
}

TEST(bridge_cleans_a_node_when_its_cluster_is_back)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_delete_machine(&s, "e1");
    strait_run(&s, SECONDS(5));
    strait_find(&s, "east")->faults.down = true;
    strait_run(&s, SECONDS(60));
    strait_label_machine(&s, "e1", KEY_ENABLED, NULL);
    strait_run(&s, HOURS(1));
    CHECK(!strait_hooked(&s, "e1"));
    strait_find(&s, "east")->faults.down = false;
    strait_run(&s, MINUTES(7));
    CHECK(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    CHECK(strait_machine_note(&s, "e1", KEY_STATUS).p == NULL);
    CHECK_EQ(strait_find(&s, "east")->entry->open, 0);
    strait_end(&s);
}

TEST(bridge_cleans_a_node_whose_machine_is_gone)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_machine(&s, "east", "e2", "enabled managed");
    strait_delete_machine(&s, "e1");
    strait_run(&s, SECONDS(1));
    CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    strait_home(&s, "PATCH", STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/e1"),
                "{\"metadata\":{\"finalizers\":null}}");
    strait_run(&s, SECONDS(1));
    CHECK(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    CHECK(strait_node_note(&s, "east", "e1", KEY_DELETION_REQUEST).p == NULL);
    strait_end(&s);
}

/* Both kubeconfigs lead to one server: each link sees the Nodes of both. */
TEST(bridge_tries_again_to_clean_a_node_whose_machine_is_gone)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_machine(&s, "east", "e2", "enabled managed");
    strait_delete_machine(&s, "e1");
    strait_run(&s, SECONDS(1));
    struct faults *faults = &strait_find(&s, "east")->faults;
    faults->down = true; /* the watch that is open stays */
    strait_home(&s, "PATCH", STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/e1"),
                "{\"metadata\":{\"finalizers\":null}}");
    strait_run(&s, SECONDS(2));
    faults->down = false;
    CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    strait_run(&s, MINUTES(1));
    CHECK(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    strait_end(&s);
}

TEST(bridge_cleans_a_node_whose_machine_went_while_its_cluster_was_paused)
{
    static const struct str path =
        STR_INIT("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/east");
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_machine(&s, "east", "e2", "enabled managed");
    strait_delete_machine(&s, "e1");
    strait_run(&s, SECONDS(1));
    strait_home(&s, "PATCH", path, "{\"spec\":{\"paused\":true}}");
    strait_run(&s, SECONDS(1));
    strait_home(&s, "PATCH", STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/e1"),
                "{\"metadata\":{\"finalizers\":null}}");
    strait_run(&s, SECONDS(5));
    CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    strait_home(&s, "PATCH", path, "{\"spec\":{\"paused\":false}}");
    strait_run(&s, SECONDS(1));
    CHECK(strait_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    strait_end(&s);
}

TEST(bridge_cleans_a_node_that_is_being_asked_when_its_machine_is_disabled)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    struct faults *faults = &strait_find(&s, "east")->faults;
    faults->latency_min = SECONDS(2);
    faults->latency_max = SECONDS(2);
    strait_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    strait_run(&s, SECONDS(1));
    CHECK(strait_machine_note(&s, "e1", KEY_STATUS).p != NULL); /* there is something to clean */
    CHECK(strait_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
    strait_label_machine(&s, "e1", KEY_ENABLED, NULL);
    strait_run(&s, SECONDS(2));
    CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE), "true");
    strait_run(&s, SECONDS(30));
    CHECK(strait_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
    CHECK(strait_machine_note(&s, "e1", KEY_STATUS).p == NULL);
    strait_end(&s);
}

TEST(bridge_keeps_its_word_on_a_machine_until_the_node_is_clean)
{
    struct strait s;
    begin(&s, "v1beta2", NULL);
    strait_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    strait_run(&s, SECONDS(1));
    CHECK_STR(strait_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE), "true");
    strait_find(&s, "east")->faults.partitioned = true;
    strait_run(&s, MINUTES(3)); /* out of reach, and known to be */
    strait_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    strait_run(&s, SECONDS(1));
    CHECK(strait_machine_note(&s, "e1", KEY_STATUS).p != NULL);
    strait_crash(&s);
    strait_label_machine(&s, "e1", KEY_ENABLED, NULL);
    strait_find(&s, "east")->faults.partitioned = false;
    strait_bridge(&s, NULL);
    strait_run(&s, SECONDS(10));
    CHECK(strait_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
    CHECK(strait_machine_note(&s, "e1", KEY_STATUS).p == NULL);
    strait_end(&s);
}

TEST(bridge_leaves_the_nodes_of_another_cluster_on_the_same_server_alone)
{
    struct strait s;
    strait_begin(&s, "v1beta2");
    strait_shore(&s, "east");
    strait_shore(&s, "west");
    strait_find(&s, "west")->entry->server = strait_find(&s, "east")->server;
    strait_machine(&s, "east", "e1", "enabled managed");
    strait_machine(&s, "west", "w1", "enabled managed");
    strait_node(&s, "east", "w1", true);
    strait_bridge(&s, NULL);
    strait_run(&s, SECONDS(5));
    strait_delete_machine(&s, "w1");
    strait_run(&s, SECONDS(5));
    uint64_t before = s.patches;
    CHECK_STR(strait_node_label(&s, "east", "w1", KEY_MACHINE_DELETED), "true");
    strait_run(&s, MINUTES(5));
    CHECK_EQ(s.patches, before);
    strait_end(&s);
}
