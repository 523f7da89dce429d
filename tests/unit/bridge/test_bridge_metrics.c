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
        .namespace = STR("tenants"),
        .cluster = str_from(cluster),
        .state = state,
        .connects = 3,
        .failures = 2,
        .over_limit = 1,
        .renewals_failed = 1,
    };
}

TEST(bridge_metrics_without_a_registry_does_nothing)
{
    struct bridge_metrics t;
    struct link_view blue = view("blue", LINK_WATCHING);
    bridge_metrics_init(&t, NULL, true, LEASE);
    bridge_metrics_patch(&t, WRITE_NODE, WRITE_CONFLICT);
    bridge_metrics_unreachable(&t, SECONDS(1));
    bridge_metrics_hold(&t, SECONDS(1));
    bridge_metrics_stale(&t);
    bridge_metrics_mismatch(&t);
    bridge_metrics_leading(&t, true);
    bridge_metrics_begin(&t);
    bridge_metrics_link(&t, &blue);
    bridge_metrics_machines(&t, RULES_PHASE_HOLDING, 1);
    bridge_metrics_end(&t);
    bridge_metrics_link_gone(&t, &blue);
    CHECK(t.metrics == NULL);
}

TEST(bridge_metrics_counts_what_happens)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    struct bridge_metrics t;
    metrics_init(&m);
    bridge_metrics_init(&t, &m, false, LEASE);
    bridge_metrics_patch(&t, WRITE_MACHINE, WRITE_DONE);
    bridge_metrics_patch(&t, WRITE_NODE, WRITE_CONFLICT);
    bridge_metrics_patch(&t, WRITE_NODE, WRITE_CONFLICT);
    bridge_metrics_patch(&t, WRITE_HOST, WRITE_FAILED);
    bridge_metrics_patch(&t, WRITE_REQUEST, WRITE_DONE);
    bridge_metrics_stale(&t);
    bridge_metrics_mismatch(&t);
    bridge_metrics_mismatch(&t);
    bridge_metrics_leading(&t, true);
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
    bridge_metrics_leading(&t, false);
    CHECK_EQ(value(&m, "leader_election_master_status", (struct str[]){ LEASE }), 0);
}

TEST(bridge_metrics_of_times_reaches_from_a_second_to_a_week)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    struct bridge_metrics t;
    metrics_init(&m);
    bridge_metrics_init(&t, &m, false, LEASE);
    bridge_metrics_hold(&t, MSECONDS(900));
    bridge_metrics_hold(&t, HOURS(24 * 7));
    bridge_metrics_hold(&t, HOURS(24 * 7) + SECONDS(1));
    const struct metric_series *hold =
        metric_series(metrics_find(&m, STR("drydock_bridge_hook_hold_seconds")), NULL);
    uint32_t last = hold->spec->bucket_count;
    CHECK_EQ(hold->buckets[0], 1);
    CHECK_EQ(hold->buckets[last - 1], 1);
    CHECK_EQ(hold->buckets[last], 1);
    for (uint32_t i = 1; i < last; i++) {
        CHECK(hold->spec->buckets[i] > hold->spec->buckets[i - 1]);
    }
    bridge_metrics_unreachable(&t, MINUTES(2));
    const struct metric_series *away =
        metric_series(metrics_find(&m, STR("drydock_bridge_away_seconds")), NULL);
    CHECK_EQ(away->count, 1);
    CHECK_EQ(away->sum, 120);
    for (uint32_t i = 1; i < away->spec->bucket_count; i++) {
        CHECK(away->spec->buckets[i] > away->spec->buckets[i - 1]);
    }
}

TEST(bridge_metrics_of_links_forgets_what_is_not_there_any_more)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    struct bridge_metrics t;
    const char *links = "drydock_bridge_links";
    const char *cluster = "drydock_bridge_cluster_link_state";
    const struct str watching[] = { STR("tenants"), STR("blue"), STR("watching") };
    const struct str backoff[] = { STR("tenants"), STR("blue"), STR("backoff") };
    metrics_init(&m);
    bridge_metrics_init(&t, &m, true, LEASE);
    struct link_view blue = view("blue", LINK_WATCHING);
    struct link_view red = view("red", LINK_WATCHING);
    bridge_metrics_begin(&t);
    bridge_metrics_link(&t, &blue);
    bridge_metrics_link(&t, &red);
    bridge_metrics_machines(&t, RULES_PHASE_HOLDING, 4);
    bridge_metrics_end(&t);
    CHECK_EQ(value(&m, links, (struct str[]){ STR("watching") }), 2);
    CHECK_EQ(value(&m, cluster, watching), 1);
    CHECK_EQ(value(&m, "drydock_bridge_connects_total", NULL), 6);
    CHECK_EQ(value(&m, "drydock_bridge_connect_failures_total", NULL), 4);
    CHECK_EQ(value(&m, "drydock_bridge_token_renewal_failures_total", NULL), 2);
    CHECK_EQ(value(&m, "drydock_bridge_connections_over_limit_total", NULL), 2);
    CHECK_EQ(value(&m, "drydock_bridge_machines",
                   (struct str[]){ rules_phase_name(RULES_PHASE_HOLDING) }),
             4);

    bridge_metrics_link_gone(&t, &red);
    blue.state = LINK_BACKOFF;
    blue.failures = 3;
    bridge_metrics_begin(&t);
    bridge_metrics_link(&t, &blue);
    bridge_metrics_end(&t);
    CHECK_EQ(value(&m, links, (struct str[]){ STR("watching") }), 0);
    CHECK_EQ(value(&m, links, (struct str[]){ STR("backoff") }), 1);
    CHECK_EQ(value(&m, cluster, watching), 0);
    CHECK_EQ(value(&m, cluster, backoff), 1);
    CHECK_EQ(value(&m, "drydock_bridge_connects_total", NULL), 6);
    CHECK_EQ(value(&m, "drydock_bridge_connect_failures_total", NULL), 5);
    CHECK_EQ(value(&m, "drydock_bridge_machines",
                   (struct str[]){ rules_phase_name(RULES_PHASE_HOLDING) }),
             0);
    bridge_metrics_begin(
        &t); /* a link that was dropped without a word must not make a counter fall */
    bridge_metrics_end(&t);
    CHECK_EQ(value(&m, "drydock_bridge_connects_total", NULL), 6);
}

TEST(bridge_metrics_names_no_cluster_unless_that_is_wanted)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct bridge_metrics t;
    struct link_view blue = view("blue", LINK_WATCHING);
    metrics_init(&m);
    bridge_metrics_init(&t, &m, false, LEASE);
    bridge_metrics_begin(&t);
    bridge_metrics_link(&t, &blue);
    bridge_metrics_end(&t);
    metrics_text_print(&m, &out);
    CHECK(!str_contains(buf_str(&out), STR("blue")));
    CHECK(str_contains(buf_str(&out), STR("\ndrydock_bridge_links{state=\"watching\"} 1\n")));
}
