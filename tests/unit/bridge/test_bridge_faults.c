/* What goes wrong between the bridge and its management cluster: late news, lost answers, a server
 * that was set back. */
#include "bridge/bridge_internal.h"
#include "kinds/keys.h"
#include "sandbox/sim/sim_api.h"
#include "tests/check.h"
#include "tests/lib/bridge_fixture.h"

#define TRIES_MAX 12u /* in a minute, by a back-off that begins with half a second */

static void begin(struct bridge_fixture *s, const struct bridge_config *config)
{
    bridge_fixture_begin(s, "v1beta2");
    bridge_fixture_add_cluster(s, "east");
    bridge_fixture_machine(s, "east", "e1", "enabled managed");
    bridge_fixture_bridge(s, config);
    bridge_fixture_run(s, SECONDS(5));
}

/* From now on no watch of the management cluster brings anything, for a long time. */
static void deafen(struct bridge_fixture *s)
{
    s->faults.watch_stall = 1000;
    s->faults.watch_stall_max = HOURS(10);
}

/* Likewise of a workload cluster. */
static void deafen_to(struct bridge_fixture *s, const char *cluster)
{
    struct bridge_fixture_cluster *workload = bridge_fixture_find_cluster(s, cluster);
    workload->faults.watch_stall = 1000;
    workload->faults.watch_stall_max = HOURS(10);
}

static uint64_t sent(struct api *api, const char *resource, enum sim_api_verb verb)
{
    uint32_t n = 0;
    const struct sim_api_count *tallies = sim_api_counts(api, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(tallies[i].resource, str_from(resource))) {
            return tallies[i].sent[verb];
        }
    }
    return 0;
}

static uint64_t node_patches(struct bridge_fixture *s)
{
    struct bridge_stats stats;
    bridge_stats(s->bridge, &stats);
    return stats.patches[WRITE_NODE];
}

static struct str machine_path(struct bridge_fixture *s, const char *name)
{
    return arena_printf(&s->memory, "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/%s",
                        name);
}

TEST(bridge_does_not_ask_again_and_again_for_a_machine_that_is_gone)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    deafen(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_management(&s, "PATCH", machine_path(&s, "e1"),
                              "{\"metadata\":{\"finalizers\":null}}");
    bridge_fixture_label_node(&s, "east", "e1", KEY_STATE, NULL);
    uint64_t before = sent(s.api, "machines", SIM_PATCH);
    bridge_fixture_run(&s, MINUTES(1));
    uint64_t tries = sent(s.api, "machines", SIM_PATCH) - before;
    CHECK(tries >= 1);
    CHECK(tries <= TRIES_MAX);
    bridge_fixture_end(&s);
}

/* What is to be written to the Node now cannot be, and is not tried too often. */
static void check_tries_at_node(struct bridge_fixture *s)
{
    uint64_t before = node_patches(s);
    bridge_fixture_label_machine(s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(s, MINUTES(1));
    CHECK(node_patches(s) > before);
    CHECK(node_patches(s) <= before + TRIES_MAX);
}

TEST(bridge_does_not_ask_again_and_again_for_a_node_that_is_gone)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    deafen_to(&s, "east");
    bridge_fixture_delete_node(&s, "east", "e1");
    check_tries_at_node(&s);
    bridge_fixture_end(&s);
}

TEST(bridge_waits_for_the_version_that_it_was_refused_for)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    deafen(&s);
    bridge_fixture_annotate_machine(&s, "e1", STR("somebody/was"), "faster");
    uint64_t before = sent(s.api, "machines", SIM_PATCH);
    bridge_fixture_label_node(&s, "east", "e1", KEY_STATE, NULL);
    bridge_fixture_run(&s, MINUTES(1));
    uint64_t tries = sent(s.api, "machines", SIM_PATCH) - before;
    CHECK(tries >= 1);
    CHECK(tries <= TRIES_MAX);
    /* The silent watch is given up, and with what the next one brings nothing is waited for. */
    s.faults.watch_stall = 0;
    sim_api_disconnect(s.api);
    bridge_fixture_run(&s, MINUTES(2));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

TEST(bridge_waits_for_the_version_of_a_node_that_it_was_refused_for)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    deafen_to(&s, "east");
    bridge_fixture_label_node(&s, "east", "e1", STR("somebody/was"), "faster");
    check_tries_at_node(&s);
    bridge_fixture_end(&s);
}

/* A control plane of three, and no bridge yet. */
static void begin_members(struct bridge_fixture *s)
{
    static const char *const names[] = { "cp1", "cp2", "cp3" };
    bridge_fixture_begin(s, "v1beta2");
    bridge_fixture_add_cluster(s, "east");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bridge_fixture_machine(s, "east", names[i], "enabled managed control-plane");
    }
}

static bool cp1_is_approved(struct bridge_fixture *s)
{
    return str_eq(bridge_fixture_machine_label(s, "cp1", KEY_MAINTENANCE), KEY_APPROVED);
}

TEST(bridge_approves_no_second_member_while_the_first_ones_answer_is_lost)
{
    struct bridge_fixture s;
    begin_members(&s);
    bridge_fixture_label_machine(&s, "cp1", KEY_MAINTENANCE, "requested");
    bridge_fixture_label_machine(&s, "cp2", KEY_MAINTENANCE, "requested");
    bridge_fixture_bridge(&s, NULL);
    bridge_fixture_run(&s, SECONDS(5));
    deafen(&s);
    bridge_fixture_label_node(&s, "east", "cp1", KEY_APPROVE_MAINTENANCE, "true");
    CHECK(bridge_fixture_run_until(&s, cp1_is_approved, SECONDS(1)));
    sim_api_disconnect(s.api); /* before the answer is there */
    bridge_fixture_label_node(&s, "east", "cp2", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_run(&s, MINUTES(5));
    CHECK_STR(bridge_fixture_machine_label(&s, "cp1", KEY_MAINTENANCE), "approved");
    CHECK_STR(bridge_fixture_machine_label(&s, "cp2", KEY_MAINTENANCE), "requested");
    bridge_fixture_label_machine(&s, "cp1", KEY_MAINTENANCE, NULL);
    s.faults.watch_stall = 0;
    sim_api_disconnect(s.api);
    bridge_fixture_run(&s, MINUTES(1));
    CHECK_STR(bridge_fixture_machine_label(&s, "cp2", KEY_MAINTENANCE), "approved");
    bridge_fixture_end(&s);
}

/* The member before is done, and starts: its Node is there, but not healthy yet. */
TEST(bridge_approves_no_second_member_before_the_first_one_is_healthy)
{
    struct bridge_fixture s;
    begin_members(&s);
    bridge_fixture_management(
        &s, "PATCH", machine_path(&s, "cp1"),
        "{\"status\":{\"conditions\":[{\"type\":\"NodeHealthy\",\"status\":\"Unknown\","
        "\"reason\":\"NodeNotHealthy\",\"lastTransitionTime\":\"2026-11-16T00:00:00Z\"}]}}");
    bridge_fixture_label_machine(&s, "cp2", KEY_MAINTENANCE, "requested");
    bridge_fixture_bridge(&s, NULL);
    bridge_fixture_run(&s, SECONDS(5));
    bridge_fixture_label_node(&s, "east", "cp2", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_run(&s, MINUTES(5));
    CHECK_STR(bridge_fixture_machine_label(&s, "cp2", KEY_MAINTENANCE), "requested");
    bridge_fixture_management(
        &s, "PATCH", machine_path(&s, "cp1"),
        "{\"status\":{\"conditions\":[{\"type\":\"NodeHealthy\",\"status\":\"True\","
        "\"reason\":\"NodeHealthy\",\"lastTransitionTime\":\"2026-11-16T00:01:00Z\"}]}}");
    bridge_fixture_run(&s, SECONDS(5));
    CHECK_STR(bridge_fixture_machine_label(&s, "cp2", KEY_MAINTENANCE), "approved");
    bridge_fixture_end(&s);
}

TEST(bridge_holds_when_the_management_cluster_is_set_back)
{
    struct bridge_fixture s;
    begin(&s, NULL);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
    /* What a backup brought back is older than what was known. */
    struct informer *const supplies[] = { &s.bridge->clusters, &s.bridge->machines };
    for (size_t i = 0; i < ARRAY_LEN(supplies); i++) {
        supplies[i]->store.version_max += 1000000;
        apiserver_compact(s.management);
        sim_api_disconnect(s.api);
        bridge_fixture_run(&s, MINUTES(10));
        CHECK(bridge_fixture_has_hook(&s, "e1"));
        CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED), "true");
        CHECK_EQ(bridge_fixture_events(&s, "NodeRequestDelivered"), 1);
    }
    bridge_fixture_label_node(&s, "east", "e1", KEY_APPROVE_DELETION, "true");
    bridge_fixture_run(&s, SECONDS(1));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}
