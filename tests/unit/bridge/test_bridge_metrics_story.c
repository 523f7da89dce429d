/* What the numbers say of a bridge, of one that does not act, and of one of many. */
#include "base/metric.h"
#include "bridge/bridge_internal.h"
#include "kinds/keys.h"
#include "tests/check.h"
#include "tests/lib/bridge_fixture.h"

struct fixture {
    struct bridge_fixture s;
    struct metrics m;
};

static void begin(struct fixture *b, const struct bridge_config *config)
{
    *b = (struct fixture){ 0 };
    metrics_init(&b->m);
    bridge_fixture_begin(&b->s, "v1beta2");
    b->s.metrics = &b->m;
    bridge_fixture_add_cluster(&b->s, "east");
    bridge_fixture_machine(&b->s, "east", "e1", "enabled managed");
    bridge_fixture_bridge(&b->s, config);
    bridge_fixture_run(&b->s, SECONDS(5));
}

static void end(struct fixture *b)
{
    bridge_fixture_end(&b->s);
    metrics_done(&b->m);
}

static struct metric_series *series(struct fixture *b, const char *name, const char *label)
{
    struct str value = str_from(label);
    metrics_collect(&b->m);
    struct metric *family = metrics_find(&b->m, str_from(name));
    CHECK(family != NULL);
    return metric_series(family, label == NULL ? NULL : &value);
}

static double machines(struct fixture *b)
{
    double sum = 0;
    for (int i = RULES_PHASE_NOT_ENABLED; i <= RULES_PHASE_IN_MAINTENANCE; i++) {
        struct str name = rules_phase_name((enum rules_phase)i);
        sum += series(b, "drydock_bridge_machines", name.p)->value;
    }
    return sum;
}

TEST(bridge_that_needs_no_lease_counts_as_leading)
{
    struct fixture b;
    begin(&b, NULL);
    CHECK(bridge_leading(b.s.bridge));
    CHECK_EQ(series(&b, "leader_election_master_status", BRIDGE_LEASE_NAME.p)->value, 1);
    end(&b);
}

TEST(bridge_says_why_it_sends_nothing_for_a_while)
{
    static const struct str paused[] = { STR_INIT("429"), STR_INIT("api:6443") };
    struct fixture b;
    struct str why;
    begin(&b, &(struct bridge_config){ .server = STR("api:6443") });
    CHECK(bridge_ready(b.s.bridge, &why));
    CHECK_STR(why, "");
    (void)client_note(&b.s.bridge->client, API_GET,
                      &(struct api_reply){ .status = 429, .retry_after = SECONDS(20) });
    CHECK(bridge_ready(b.s.bridge, &why));
    CHECK(str_contains(why, STR("answered 429")));
    metrics_collect(&b.m);
    struct metric *until = metrics_find(&b.m, STR("drydock_api_pause_until_timestamp_seconds"));
    CHECK(until != NULL && metric_series(until, paused)->value > 0);
    end(&b);
}

TEST(bridge_counts_its_machines_by_phase_and_nobody_elses)
{
    struct fixture b;
    begin(&b, NULL);
    CHECK_EQ(machines(&b), 1);
    CHECK_EQ(
        series(&b, "drydock_bridge_machines", rules_phase_name(RULES_PHASE_PROTECTED).p)->value, 1);
    end(&b);
    double sum = 0;
    for (uint32_t shard = 0; shard < 3; shard++) {
        begin(&b, &(struct bridge_config){ .shard = shard, .shards = 3 });
        sum += machines(&b);
        CHECK_EQ(series(&b, "drydock_bridge_machines", rules_phase_name(RULES_PHASE_NOT_ENABLED).p)
                     ->value,
                 0);
        end(&b);
    }
    CHECK_EQ(sum, 1);
}

TEST(bridge_that_does_not_act_counts_no_machine)
{
    struct fixture b;
    begin(&b, &(struct bridge_config){ .elect = true, .identity = STR("other") });
    CHECK_EQ(machines(&b), 1);
    bridge_fixture_crash(&b.s); /* its Lease is still good for a while */
    metrics_done(&b.m);
    metrics_init(&b.m);
    bridge_fixture_bridge(&b.s, &(struct bridge_config){ .elect = true });
    bridge_fixture_run(&b.s, SECONDS(5));
    CHECK(!bridge_leading(b.s.bridge));
    CHECK_EQ(machines(&b), 0);
    CHECK_EQ(series(&b, "leader_election_master_status", BRIDGE_LEASE_NAME.p)->value, 0);
    bridge_fixture_run(&b.s, MINUTES(1));
    CHECK(bridge_leading(b.s.bridge));
    CHECK_EQ(machines(&b), 1);
    CHECK_EQ(series(&b, "leader_election_master_status", BRIDGE_LEASE_NAME.p)->value, 1);
    bridge_stop(b.s.bridge);
    bridge_fixture_run(&b.s, SECONDS(5));
    CHECK_EQ(series(&b, "leader_election_master_status", BRIDGE_LEASE_NAME.p)->value, 0);
    end(&b);
}
TEST(bridge_counts_how_long_lists_take)
{
    struct fixture b;
    begin(&b, NULL);
    const struct metric_series *listed = series(&b, "drydock_bridge_list_seconds", NULL);
    CHECK_EQ(listed->count, 1);
    CHECK(listed->sum > 0 && listed->sum < 5);
    end(&b);
}

TEST(bridge_does_not_count_a_cluster_that_nobody_needs_as_away)
{
    struct fixture b;
    begin(&b, NULL);
    CHECK_EQ(series(&b, "drydock_bridge_away_seconds", NULL)->count, 1);
    bridge_fixture_label_machine(&b.s, "e1", KEY_ENABLED, NULL);
    bridge_fixture_run(&b.s, HOURS(24));
    CHECK_EQ(series(&b, "drydock_bridge_links", "idle")->value, 1);
    bridge_fixture_label_machine(&b.s, "e1", KEY_ENABLED, "true");
    bridge_fixture_run(&b.s, SECONDS(5));
    const struct metric_series *away = series(&b, "drydock_bridge_away_seconds", NULL);
    CHECK_EQ(away->count, 2);
    CHECK(away->sum < 5);
    end(&b);
}
