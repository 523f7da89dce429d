#include "bridge/bridge_metrics.h"

#include "tests/check.h"
#include "web/metrics_text.h"

#define LEASE STR("runtime-extension-maintenance-controller")

static double value(struct metrics *m, const char *family, const struct str *labels)
{
    struct metric *f = metrics_find(m, str_from(family));
    CHECK(f != NULL);
    return metric_series(f, labels)->value;
}

static struct link_view view(const char *cluster, enum link_state state)
{
    return (struct link_view){
        .space = STR("tenants"),
        .cluster = str_from(cluster),
        .state = state,
        .connects = 3,
        .failures = 2,
        .renewals_failed = 1,
    };
}

TEST(tally_without_a_registry_does_nothing)
{
    struct tally t;
    struct link_view blue = view("blue", LINK_WATCHING);
    tally_init(&t, NULL, true, LEASE);
    tally_patch(&t, TALLY_NODE, TALLY_CONFLICT);
    tally_away(&t, SECONDS(1));
    tally_hold(&t, SECONDS(1));
    tally_stale(&t);
    tally_mismatch(&t);
    tally_leading(&t, true);
    tally_begin(&t);
    tally_link(&t, &blue);
    tally_machines(&t, RULES_HOLDING, 1);
    tally_end(&t);
    tally_gone(&t, &blue);
    CHECK(t.metrics == NULL);
}

TEST(tally_counts_what_happens)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    struct tally t;
    metrics_init(&m);
    tally_init(&t, &m, false, LEASE);
    tally_patch(&t, TALLY_MACHINE, TALLY_DONE);
    tally_patch(&t, TALLY_NODE, TALLY_CONFLICT);
    tally_patch(&t, TALLY_NODE, TALLY_CONFLICT);
    tally_patch(&t, TALLY_HOST, TALLY_FAILED);
    tally_patch(&t, TALLY_REQUEST, TALLY_DONE);
    tally_stale(&t);
    tally_mismatch(&t);
    tally_mismatch(&t);
    tally_leading(&t, true);
    const char *patches = "drydock_bridge_patches_total";
    CHECK_EQ(value(&m, patches, (struct str[]){ STR("machine"), STR("done") }), 1);
    CHECK_EQ(value(&m, patches, (struct str[]){ STR("node"), STR("conflict") }), 2);
    CHECK_EQ(value(&m, patches, (struct str[]){ STR("host"), STR("failed") }), 1);
    CHECK_EQ(value(&m, patches, (struct str[]){ STR("host"), STR("done") }), 0);
    CHECK_EQ(value(&m, patches, (struct str[]){ STR("request"), STR("done") }), 1);
    CHECK_EQ(value(&m, "drydock_bridge_stale_approvals_total", NULL), 1);
    CHECK_EQ(value(&m, "drydock_bridge_pairing_mismatches_total", NULL), 2);
    CHECK_EQ(value(&m, "leader_election_master_status", (struct str[]){ LEASE }), 1);
    CHECK_EQ(metrics_find(&m, STR("drydock_bridge_patches_total"))->series_count, 12);
    tally_leading(&t, false);
    CHECK_EQ(value(&m, "leader_election_master_status", (struct str[]){ LEASE }), 0);
}

TEST(tally_of_times_reaches_from_a_second_to_a_week)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    struct tally t;
    metrics_init(&m);
    tally_init(&t, &m, false, LEASE);
    tally_hold(&t, MSECONDS(900));
    tally_hold(&t, HOURS(24 * 7));
    tally_hold(&t, HOURS(24 * 7) + SECONDS(1));
    const struct metric_series *hold =
        metric_series(metrics_find(&m, STR("drydock_bridge_hook_hold_seconds")), NULL);
    uint32_t last = hold->spec->bucket_count;
    CHECK_EQ(hold->buckets[0], 1);
    CHECK_EQ(hold->buckets[last - 1], 1);
    CHECK_EQ(hold->buckets[last], 1);
    for (uint32_t i = 1; i < last; i++) {
        CHECK(hold->spec->buckets[i] > hold->spec->buckets[i - 1]);
    }
    tally_away(&t, MINUTES(2));
    const struct metric_series *away =
        metric_series(metrics_find(&m, STR("drydock_bridge_away_seconds")), NULL);
    CHECK_EQ(away->count, 1);
    CHECK_EQ(away->sum, 120);
    for (uint32_t i = 1; i < away->spec->bucket_count; i++) {
        CHECK(away->spec->buckets[i] > away->spec->buckets[i - 1]);
    }
}

TEST(tally_of_links_forgets_what_is_not_there_any_more)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    struct tally t;
    const char *links = "drydock_bridge_links";
    const char *cluster = "drydock_bridge_cluster_link_state";
    const struct str watching[] = { STR("tenants"), STR("blue"), STR("watching") };
    const struct str backoff[] = { STR("tenants"), STR("blue"), STR("backoff") };
    metrics_init(&m);
    tally_init(&t, &m, true, LEASE);
    struct link_view blue = view("blue", LINK_WATCHING);
    struct link_view red = view("red", LINK_WATCHING);
    tally_begin(&t);
    tally_link(&t, &blue);
    tally_link(&t, &red);
    tally_machines(&t, RULES_HOLDING, 4);
    tally_end(&t);
    CHECK_EQ(value(&m, links, (struct str[]){ STR("watching") }), 2);
    CHECK_EQ(value(&m, cluster, watching), 1);
    CHECK_EQ(value(&m, "drydock_bridge_connects_total", NULL), 6);
    CHECK_EQ(value(&m, "drydock_bridge_connect_failures_total", NULL), 4);
    CHECK_EQ(value(&m, "drydock_bridge_token_renewal_failures_total", NULL), 2);
    CHECK_EQ(
        value(&m, "drydock_bridge_machines", (struct str[]){ rules_phase_name(RULES_HOLDING) }), 4);

    tally_gone(&t, &red);
    blue.state = LINK_BACKOFF;
    blue.failures = 3;
    tally_begin(&t);
    tally_link(&t, &blue);
    tally_end(&t);
    CHECK_EQ(value(&m, links, (struct str[]){ STR("watching") }), 0);
    CHECK_EQ(value(&m, links, (struct str[]){ STR("backoff") }), 1);
    CHECK_EQ(value(&m, cluster, watching), 0);
    CHECK_EQ(value(&m, cluster, backoff), 1);
    CHECK_EQ(value(&m, "drydock_bridge_connects_total", NULL), 6);
    CHECK_EQ(value(&m, "drydock_bridge_connect_failures_total", NULL), 5);
    CHECK_EQ(
        value(&m, "drydock_bridge_machines", (struct str[]){ rules_phase_name(RULES_HOLDING) }), 0);
    tally_begin(&t); /* a link that was dropped without a word must not make a counter fall */
    tally_end(&t);
    CHECK_EQ(value(&m, "drydock_bridge_connects_total", NULL), 6);
}

TEST(tally_names_no_cluster_unless_that_is_wanted)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct tally t;
    struct link_view blue = view("blue", LINK_WATCHING);
    metrics_init(&m);
    tally_init(&t, &m, false, LEASE);
    tally_begin(&t);
    tally_link(&t, &blue);
    tally_end(&t);
    metrics_text_print(&m, &out);
    CHECK(!str_contains(buf_str(&out), STR("blue")));
    CHECK(str_contains(buf_str(&out), STR("\ndrydock_bridge_links{state=\"watching\"} 1\n")));
}
