/* Quiet, pauses, crashes, rotation, bad clusters, control planes, templates, election. */
#include "tests/check.h"
#include "kinds/keys.h"
#include "tests/lib/bridge_fixture.h"

static void begin(struct bridge_fixture *s, const struct bridge_config *config)
{
    bridge_fixture_begin(s, "v1beta2");
    bridge_fixture_add_cluster(s, "east");
    bridge_fixture_machine(s, "east", "e1", "enabled managed");
    bridge_fixture_bridge(s, config);
    bridge_fixture_run(s, SECONDS(5));
}

TEST(bridge_writes_nothing_while_nothing_happens)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    bridge_fixture_add_cluster(&s, "east");
    bridge_fixture_add_cluster(&s, "west");
    for (int i = 0; i < 1000; i++) {
        const char *name = arena_printf(&s.memory, "m%d", i).p;
        bridge_fixture_machine(&s, i % 3 == 0 ? "east" : "west", name,
                               i % 2 == 0 ? "enabled managed" : "");
    }
    bridge_fixture_bridge(&s, NULL);
    bridge_fixture_run(&s, MINUTES(1));
    CHECK_EQ(s.patches, 500);
    bridge_fixture_run(&s, MINUTES(10));
    CHECK_EQ(s.patches, 500);
    bridge_fixture_end(&s);
}

TEST(bridge_with_an_account_of_its_own_does_all_with_its_token)
{
    struct bridge_fixture s;
    begin(&s, &(struct bridge_config){ .manage_rbac = true });
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    /* Nobody knows the administrator any more. */
    apiserver_set_token(bridge_fixture_find_cluster(&s, "east")->server, STR("t2"));
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

TEST(bridge_holds_while_it_may_not_make_an_account)
{
    struct bridge_fixture s;
    begin(&s, &(struct bridge_config){ .manage_rbac = true });
    apiserver_set_token(bridge_fixture_find_cluster(&s, "east")->server, STR("t2"));
    bridge_fixture_crash(&s);
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_bridge(&s, &(struct bridge_config){ .manage_rbac = true });
    bridge_fixture_run(&s, HOURS(2));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_secret(&s, "east", "t2");
    bridge_fixture_run(&s, SECONDS(10));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    bridge_fixture_end(&s);
}

TEST(bridge_writes_nothing_on_paused_machines)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    bridge_fixture_annotate_machine(&s, "e1", KEY_PAUSED, "");
    bridge_fixture_run(&s, SECONDS(1));
    uint64_t before = s.patches;
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(5));
    bridge_fixture_label_machine(&s, "e1", KEY_ENABLED, NULL);
    bridge_fixture_run(&s, MINUTES(10));
    CHECK_EQ(s.patches, before);
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_annotate_machine(&s, "e1", KEY_PAUSED, NULL);
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

TEST(bridge_writes_nothing_in_paused_clusters)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    struct str path = STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/east");
    bridge_fixture_management(&s, "PATCH", path, "{\"spec\":{\"paused\":true}}");
    bridge_fixture_run(&s, SECONDS(1));
    uint64_t before = s.patches;
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, MINUTES(10));
    CHECK_EQ(s.patches, before);
    bridge_fixture_management(&s, "PATCH", path, "{\"spec\":{\"paused\":null}}");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    bridge_fixture_end(&s);
}

/* Wherever it dies, the next one finds all it needs. */
TEST(bridge_goes_on_after_a_crash_at_any_moment)
{
    for (usec_t at = 0; at < MSECONDS(60); at += MSECONDS(1)) {
        struct bridge_fixture s;
        begin(&s, NULL);
        bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
        bridge_fixture_delete_machine(&s, "e1");
        bridge_fixture_run(&s, at);
        bridge_fixture_crash(&s);
        bridge_fixture_run(&s, SECONDS(1));
        CHECK(bridge_fixture_has_hook(&s, "e1"));
        bridge_fixture_bridge(&s, NULL);
        bridge_fixture_run(&s, SECONDS(10));
        CHECK(bridge_fixture_has_hook(&s, "e1")); /* the old approval is not taken for a new one */
        bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
        bridge_fixture_run(&s, at);
        bridge_fixture_crash(&s);
        bridge_fixture_bridge(&s, NULL);
        bridge_fixture_run(&s, SECONDS(10));
        CHECK(!bridge_fixture_has_hook(&s, "e1"));
        bridge_fixture_end(&s);
    }
}

TEST(bridge_follows_a_secret_that_rotates)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    struct bridge_fixture_cluster *east = bridge_fixture_find_cluster(&s, "east");
    uint64_t dial_count = east->entry->dial_count;
    bridge_fixture_secret(&s, "east", "t2"); /* nothing is refused yet */
    bridge_fixture_run(&s, MSECONDS(10));
    apiserver_set_token(east->server, STR("t2"));
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(east->entry->dial_count > dial_count);
    CHECK_EQ(east->entry->open, 1);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    bridge_fixture_end(&s);
}

/* The password is changed first, and the Secret only after a while. */
TEST(bridge_delivers_what_was_refused_when_the_secret_is_right_again)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    struct bridge_fixture_cluster *east = bridge_fixture_find_cluster(&s, "east");
    apiserver_set_token(east->server, STR("t2"));
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, MINUTES(30));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    bridge_fixture_secret(&s, "east", "t2");
    bridge_fixture_run(&s, SECONDS(5));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    bridge_fixture_end(&s);
}

TEST(bridge_serves_clusters_beside_dead_and_silent_ones)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    for (int i = 0; i < 50; i++) {
        const char *name = arena_printf(&s.memory, "c%d", i).p;
        bridge_fixture_add_cluster(&s, name);
        bridge_fixture_machine(&s, name, arena_printf(&s.memory, "m%d", i).p, "enabled managed");
    }
    bridge_fixture_find_cluster(&s, "c0")->faults.partitioned = true;
    bridge_fixture_find_cluster(&s, "c1")->faults.down = true;
    bridge_fixture_bridge(&s, NULL);
    bridge_fixture_run(&s, SECONDS(3));
    for (int i = 2; i < 50; i++) {
        const char *name = arena_printf(&s.memory, "m%d", i).p;
        CHECK(bridge_fixture_has_hook(&s, name));
        bridge_fixture_delete_machine(&s, name);
    }
    bridge_fixture_run(&s, SECONDS(1));
    for (int i = 2; i < 50; i++) {
        CHECK_STR(bridge_fixture_node_label(&s, arena_printf(&s.memory, "c%d", i).p,
                                            arena_printf(&s.memory, "m%d", i).p,
                                            KEY_MACHINE_DELETED),
                  "true");
    }
    bridge_fixture_end(&s);
}

TEST(bridge_approves_members_of_a_control_plane_one_after_another)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    bridge_fixture_add_cluster(&s, "east");
    static const char *const names[] = { "p0", "p1", "p2" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bridge_fixture_machine(&s, "east", names[i], "enabled managed control-plane");
    }
    bridge_fixture_bridge(&s, NULL);
    bridge_fixture_run(&s, SECONDS(1));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bridge_fixture_label_machine(&s, names[i], KEY_MAINTENANCE, "requested");
    }
    bridge_fixture_run(&s, SECONDS(1));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bridge_fixture_label_node(&s, "east", names[i], KEY_APPROVE_MAINTENANCE, "true");
    }
    for (size_t done = 0; done < ARRAY_LEN(names); done++) {
        bridge_fixture_run(&s, SECONDS(5));
        const char *approved = NULL;
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            if (str_eq(bridge_fixture_machine_label(&s, names[i], KEY_MAINTENANCE), KEY_APPROVED)) {
                CHECK(approved == NULL);
                approved = names[i];
            }
        }
        CHECK(approved != NULL);
        bridge_fixture_label_machine(&s, approved, KEY_MAINTENANCE, NULL);
    }
    bridge_fixture_end(&s);
}

TEST(bridge_does_not_fight_with_a_template_over_its_label)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    struct str path = STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/e1"
                          "?fieldManager=capi-machineset&force=true");
    bridge_fixture_management(
        &s, "APPLY", path,
        "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\",\"metadata\":{"
        "\"name\":\"e1\",\"labels\":{\"" KEYS_LEGACY "maintenance\":\"requested\"}}}");
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "requested");
    CHECK_STR(bridge_fixture_machine_annotation(&s, "e1", KEY_APPROVED_ASIDE), "true");
    uint64_t before = s.patches;
    bridge_fixture_run(&s, MINUTES(10));
    CHECK_EQ(s.patches, before);
    bridge_fixture_end(&s);
}

TEST(bridge_keeps_what_others_say_about_remediation)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    bridge_fixture_annotate_machine(&s, "e1", KEY_SKIP_REMEDIATION, "theirs");
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "approved");
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_machine_annotation(&s, "e1", KEY_SKIP_REMEDIATION), "theirs");
    bridge_fixture_end(&s);
}

TEST(bridge_reports_an_approval_that_it_has_not_given)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "approved");
    bridge_fixture_run(&s, SECONDS(5));
    CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "approved");
    CHECK_EQ(bridge_fixture_events(&s, "ForgedApproval"), 1);
    bridge_fixture_end(&s);
    begin(&s, &(struct bridge_config){ .rules = { .refuse_forged = true } });
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "approved");
    bridge_fixture_run(&s, SECONDS(5));
    CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "requested");
    bridge_fixture_end(&s);
}

TEST(bridge_acts_only_with_its_lease_and_gives_it_back)
{
    struct bridge_fixture s;
    begin(&s, &(struct bridge_config){ .elect = true, .lease_namespace = STR("default") });
    CHECK(bridge_leading(s.bridge));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_stop(s.bridge);
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(s.stopped);
    CHECK(!bridge_leading(s.bridge));
    CHECK_EQ(bridge_fixture_find_cluster(&s, "east")->entry->open, 0);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, MINUTES(5));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    bridge_fixture_end(&s);
}

TEST(bridge_shards_share_all_clusters_and_no_machine)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    for (int i = 0; i < 20; i++) {
        const char *name = arena_printf(&s.memory, "c%d", i).p;
        bridge_fixture_add_cluster(&s, name);
        bridge_fixture_machine(&s, name, arena_printf(&s.memory, "m%d", i).p, "enabled managed");
    }
    uint32_t hooked[2] = { 0 };
    for (uint32_t shard = 0; shard < 2; shard++) {
        bridge_fixture_bridge(&s, &(struct bridge_config){ .shard = shard, .shards = 2 });
        bridge_fixture_run(&s, SECONDS(10));
        for (int i = 0; i < 20; i++) {
            hooked[shard] +=
                bridge_fixture_has_hook(&s, arena_printf(&s.memory, "m%d", i).p) ? 1 : 0;
        }
        bridge_fixture_crash(&s);
    }
    CHECK(hooked[0] > 0 && hooked[0] < 20);
    CHECK_EQ(hooked[1], 20);
    bridge_fixture_end(&s);
}

TEST(bridge_waits_for_cluster_api_to_be_installed)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    static const char *const kinds[] = { "machines", "clusters", "machinedrainrules" };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        bridge_fixture_management(
            &s, "DELETE",
            arena_printf(&s.memory,
                         "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
                         "%s.cluster.x-k8s.io",
                         kinds[i]),
            "");
    }
    bridge_fixture_bridge(&s, NULL);
    bridge_fixture_run(&s, MINUTES(5));
    struct str why;
    CHECK(!bridge_ready(s.bridge, &why));
    CHECK(str_contains(why, STR("Cluster API is not installed")));
    bridge_fixture_end(&s);
}
