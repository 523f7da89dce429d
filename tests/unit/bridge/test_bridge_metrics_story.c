/* What the numbers say of a bridge, of one that does not act, and of one of many. */
#include "base/metric.h"
#include "tests/check.h"
#include "tests/lib/bridge_fixture.h"

struct bed {
    struct strait s;
    struct metrics m;
};

static void begin(struct bed *b, const struct bridge_config *config)
{
    *b = (struct bed){ 0 };
    metrics_init(&b->m);
    strait_begin(&b->s, "v1beta2");
    b->s.metrics = &b->m;
    strait_shore(&b->s, "east");
    strait_machine(&b->s, "east", "e1", "enabled managed");
    strait_bridge(&b->s, config);
    strait_run(&b->s, SECONDS(5));
}

static void end(struct bed *b)
{
    strait_end(&b->s);
    metrics_done(&b->m);
}

static struct metric_series *series(struct bed *b, const char *name, const char *label)
{
    struct str value = str_from(label);
    metrics_collect(&b->m);
    struct metric *family = metrics_find(&b->m, str_from(name));
    CHECK(family != NULL);
    return metric_series(family, label == NULL ? NULL : &value);
}

static double machines(struct bed *b)
{
    double sum = 0;
    for (int i = RULES_OFF; i <= RULES_IN_MAINTENANCE; i++) {
        struct str name = rules_phase_name((enum rules_phase)i);
        sum += series(b, "drydock_bridge_machines", name.p)->value;
    }
    return sum;
}

TEST(bridge_that_needs_no_lease_counts_as_leading)
{
    struct bed b;
    begin(&b, NULL);
    CHECK(bridge_leading(b.s.bridge));
    CHECK_EQ(series(&b, "leader_election_master_status", BRIDGE_LEASE_NAME.p)->value, 1);
    end(&b);
}

TEST(bridge_counts_its_machines_by_phase_and_nobody_elses)
{
    struct bed b;
    begin(&b, NULL);
    CHECK_EQ(machines(&b), 1);
    CHECK_EQ(series(&b, "drydock_bridge_machines", rules_phase_name(RULES_PROTECTED).p)->value, 1);
    end(&b);
    double sum = 0;
    for (uint32_t shard = 0; shard < 3; shard++) {
        begin(&b, &(struct bridge_config){ .shard = shard, .shards = 3 });
        sum += machines(&b);
        CHECK_EQ(series(&b, "drydock_bridge_machines", rules_phase_name(RULES_OFF).p)->value, 0);
        end(&b);
    }
    CHECK_EQ(sum, 1);
}

TEST(bridge_that_does_not_act_counts_no_machine)
{
    struct bed b;
    begin(&b, &(struct bridge_config){ .elect = true, .identity = STR("other") });
    CHECK_EQ(machines(&b), 1);
    strait_crash(&b.s); /* its Lease is still good for a while */
    metrics_done(&b.m);
    metrics_init(&b.m);
    strait_bridge(&b.s, &(struct bridge_config){ .elect = true });
    strait_run(&b.s, SECONDS(5));
    CHECK(!bridge_leading(b.s.bridge));
    CHECK_EQ(machines(&b), 0);
    CHECK_EQ(series(&b, "leader_election_master_status", BRIDGE_LEASE_NAME.p)->value, 0);
    strait_run(&b.s, MINUTES(1));
    CHECK(bridge_leading(b.s.bridge));
    CHECK_EQ(machines(&b), 1);
    CHECK_EQ(series(&b, "leader_election_master_status", BRIDGE_LEASE_NAME.p)->value, 1);
    bridge_stop(b.s.bridge);
    strait_run(&b.s, SECONDS(5));
    CHECK_EQ(series(&b, "leader_election_master_status", BRIDGE_LEASE_NAME.p)->value, 0);
    end(&b);
}
TEST(bridge_counts_how_long_lists_take)
{
    struct bed b;
    begin(&b, NULL);
    const struct metric_series *listed = series(&b, "drydock_bridge_list_seconds", NULL);
    CHECK_EQ(listed->count, 1);
    CHECK(listed->sum > 0 && listed->sum < 5);
    end(&b);
}

TEST(bridge_does_not_count_a_cluster_that_nobody_needs_as_away)
{
    struct bed b;
    begin(&b, NULL);
    CHECK_EQ(series(&b, "drydock_bridge_away_seconds", NULL)->count, 1);
    strait_label_machine(&b.s, "e1", KEY_ENABLED, NULL);
    strait_run(&b.s, HOURS(24));
    CHECK_EQ(series(&b, "drydock_bridge_links", "idle")->value, 1);
    strait_label_machine(&b.s, "e1", KEY_ENABLED, "true");
    strait_run(&b.s, SECONDS(5));
    const struct metric_series *away = series(&b, "drydock_bridge_away_seconds", NULL);
    CHECK_EQ(away->count, 2);
    CHECK(away->sum < 5);
    end(&b);
}
