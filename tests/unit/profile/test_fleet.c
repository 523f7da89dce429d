#include "profile/fleet.h"

#include "tests/check.h"
#include "tests/lib/check_fixture.h"

#define IN "cloud.sap/maintenance-state=in-maintenance"
#define DATA(profile, time, state)                                                                 \
    "data={\"Profiles\":{\"" profile "\":{\"Transition\":\"" time "\",\"Current\":\"" state        \
    "\",\"Previous\":\"operational\"}},\"Notifications\":{}}"

static const char limits[] =
    "  - {name: two, type: maxMaintenance, config: {max: 2}}\n"
    "  - {name: one, type: maxMaintenance, config: {max: 1}}\n"
    "  - {name: of-q, type: maxMaintenance, config: {max: 1, profile: q}}\n"
    "  - {name: skip5, type: maxMaintenance, config: {max: 1, skipAfter: 5s}}\n"
    "  - {name: skip50, type: maxMaintenance, config: {max: 1, skipAfter: 50s}}\n"
    "  - {name: skip5-q, type: maxMaintenance, config: {max: 1, profile: q, skipAfter: 5s}}\n"
    "  - {name: skip50-q, type: maxMaintenance, config: {max: 1, profile: q, skipAfter: 50s}}\n"
    "  - {name: zone, type: maxMaintenance, config: {max: 1, groupBy: [zone]}}\n"
    "  - {name: both, type: maxMaintenance, config: {max: 1, groupBy: [zone], groupLabel: row}}\n"
    "  - {name: legacy, type: maxMaintenance, config: {max: 1, profile: q, skipAfter: 20s, "
    "groupLabel: zone}}\n";

/* The original's cases of maxMaintenance. */
struct limit_case {
    const char *line;
    const char *check;
    const char *own;    /* the labels of the node that asks */
    const char *others; /* labels of the others, '|' between them */
    enum check_answer answer;
    const char *info;
    const char *reason;
};

#define TIME20 DATA("q", "2022-03-01T12:59:40Z", "in-maintenance") /* 20 s ago */
#define PROFILE_Q "cloud.sap/maintenance-profile=p--q"
#define ALL "\"scope\":\"all nodes in the cluster\"}"
#define OF_ZONE "\"scope\":\"nodes matching the zone=a label selector\"}"

static const struct limit_case limit_cases[] = {
    { "1 of 2 pass", "two", "", IN, CHECK_PASS, "{\"maintained\":1,\"max\":2," ALL,
      "1 of 2 nodes is in maintenance" },
    { "2 of 2 fail", "two", "", IN "|" IN, CHECK_FAIL, "{\"maintained\":2,\"max\":2," ALL,
      "2 of 2 nodes are in maintenance" },
    { "profile filter: another profile's", "of-q", "", IN, CHECK_PASS,
      "{\"maintained\":0,\"max\":1," ALL, "0 of 1 nodes are in maintenance" },
    { "profile filter: the profile's", "of-q", "", IN " " PROFILE_Q, CHECK_FAIL,
      "{\"maintained\":1,\"max\":1," ALL, "1 of 1 nodes is in maintenance" },
    { "transition 20 s ago with skipAfter 5 s -> pass", "skip5", "", IN, CHECK_PASS,
      "{\"maintained\":0,\"max\":1," ALL, "0 of 1 nodes are in maintenance" },
    { "transition 20 s ago with skipAfter 50 s -> fail", "skip50", "", IN, CHECK_FAIL,
      "{\"maintained\":1,\"max\":1," ALL, "1 of 1 nodes is in maintenance" },
    { "transition 20 s ago with skipAfter 5 s -> pass, with profile", "skip5-q", "",
      IN " " PROFILE_Q, CHECK_PASS, "{\"maintained\":0,\"max\":1," ALL,
      "0 of 1 nodes are in maintenance" },
    { "transition 20 s ago with skipAfter 50 s -> fail, with profile", "skip50-q", "",
      IN " " PROFILE_Q, CHECK_FAIL, "{\"maintained\":1,\"max\":1," ALL,
      "1 of 1 nodes is in maintenance" },
    { "same group -> fail", "zone", "zone=a", IN " zone=a", CHECK_FAIL,
      "{\"maintained\":1,\"max\":1," OF_ZONE, "1 of 1 nodes with zone=a is in maintenance" },
    { "group member not in maintenance -> pass", "zone", "zone=a", "zone=a", CHECK_PASS,
      "{\"maintained\":0,\"max\":1," OF_ZONE, "0 of 1 nodes with zone=a are in maintenance" },
    { "other group -> pass", "zone", "zone=a", IN " zone=b", CHECK_PASS,
      "{\"maintained\":0,\"max\":1," OF_ZONE, "0 of 1 nodes with zone=a are in maintenance" },
    { "empty group value -> whole cluster -> fail", "zone", "zone=", IN " zone=b", CHECK_FAIL,
      "{\"maintained\":1,\"max\":1,\"scope\":\"nodes matching the zone= label selector\"}",
      "1 of 1 nodes with zone= is in maintenance" },
    { "a key that the node lacks is ignored", "zone", "", IN " zone=b", CHECK_FAIL,
      "{\"maintained\":1,\"max\":1," ALL, "1 of 1 nodes is in maintenance" },
    { "several keys: all of them", "both", "zone=a row=1", IN " zone=a row=2|" IN " zone=b row=1",
      CHECK_PASS,
      "{\"maintained\":0,\"max\":1,\"scope\":\"nodes matching the zone=a,row=1 label selector\"}",
      "0 of 1 nodes with zone=a,row=1 are in maintenance" },
    { "legacy keys (profile, skipAfter 20s, groupLabel)", "legacy", "zone=a",
      IN " zone=a " PROFILE_Q, CHECK_PASS, "{\"maintained\":0,\"max\":1," OF_ZONE,
      "0 of 1 nodes with zone=a are in maintenance" },
    { "live: one node in maintenance fails max 1", "one", IN, "", CHECK_FAIL,
      "{\"maintained\":1,\"max\":1," ALL, "1 of 1 nodes is in maintenance" },
    { "live: none passes", "one", "", "", CHECK_PASS, "{\"maintained\":0,\"max\":1," ALL,
      "0 of 1 nodes are in maintenance" },
};

TEST(fleet_limits_count_the_nodes_in_maintenance)
{
    for (size_t i = 0; i < ARRAY_LEN(limit_cases); i++) {
        const struct limit_case *c = &limit_cases[i];
        struct str rest = str_from(c->others);
        struct str piece;
        struct check_fixture b;
        check_case((int64_t)i);
        check_fixture_begin(&b, limits);
        check_fixture_node(&b, "n", c->own, NULL);
        while (str_split_next(&rest, '|', &piece)) {
            check_fixture_node(&b, arena_printf(&b.memory, "n%zu", rest.n).p,
                               arena_str(&b.memory, piece).p, TIME20);
        }
        struct check_verdict v = check_fixture_run(&b, c->check, "n");
        CHECK_EQ(v.answer, c->answer);
        CHECK_STR(v.info, c->info);
        CHECK_STR(v.reason, c->reason);
        check_fixture_end(&b);
    }
    check_case(-1);
}

static int64_t places_left(struct check_fixture *b, const char *check, const char *node,
                           usec_t *ret_next)
{
    const struct store_item *item = store_find(&b->store, str_from(node));
    const struct node_edit edit = { .name = item->name, .node = item->object };
    const struct check_input in = {
        .config = &b->config,
        .edit = &edit,
        .fleet = b->fleet,
        .now = timestamp_from_usec(check_fixture_wall(b->now)),
        .granted = b->granted,
        .out = &b->memory,
    };
    return check_group_left(&in, check_fixture_index(b, check), ret_next);
}

TEST(fleet_skip_after_says_when_a_place_is_free)
{
    struct check_fixture b;
    usec_t next = 0;
    check_fixture_begin(&b, limits);
    check_fixture_node(&b, "n", NULL, NULL);
    check_fixture_node(&b, "m", IN, TIME20);
    struct check_verdict v = check_fixture_run(&b, "skip50", "n");
    CHECK_EQ(v.answer, CHECK_FAIL);
    CHECK_EQ(v.next, check_fixture_wall("2022-03-01T13:00:30Z"));
    CHECK_EQ(places_left(&b, "skip50", "n", &next), 0);
    CHECK_EQ(next, check_fixture_wall("2022-03-01T13:00:30Z"));
    b.now = "2022-03-01T13:00:29.999999Z";
    CHECK_EQ(check_fixture_run(&b, "skip50", "n").answer, CHECK_FAIL);
    b.now = "2022-03-01T13:00:30Z";
    v = check_fixture_run(&b, "skip50", "n");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_EQ(v.next, USEC_NEVER);
    CHECK_EQ(places_left(&b, "skip50", "n", &next), 1);
    CHECK_EQ(next, USEC_NEVER);
    CHECK_EQ(places_left(&b, "one", "n", &next), 0);
    CHECK_EQ(next, USEC_NEVER);
    check_fixture_end(&b);
}

/* P9: the original ended there. The newest transition counts. */
TEST(fleet_skip_after_takes_the_newest_transition_without_the_profiles_own)
{
    struct check_fixture b;
    check_fixture_begin(&b, limits);
    check_fixture_node(&b, "n", NULL, NULL);
    check_fixture_node(&b, "m", IN " " PROFILE_Q,
                       DATA("other", "2022-03-01T12:59:40Z", "in-maintenance"));
    CHECK_EQ(check_fixture_run(&b, "skip50-q", "n").answer, CHECK_FAIL);
    CHECK_EQ(check_fixture_run(&b, "skip5-q", "n").answer, CHECK_PASS);
    check_fixture_node(&b, "m", IN " " PROFILE_Q, "data={\"Profiles\":{\"q\":null}}");
    CHECK_EQ(check_fixture_run(&b, "skip50-q", "n").answer, CHECK_PASS);
    check_fixture_end(&b);
}

TEST(fleet_an_annotation_that_cannot_be_read_matters_for_skip_after_only)
{
    struct check_fixture b;
    usec_t next;
    check_fixture_begin(&b, limits);
    check_fixture_node(&b, "n", "zone=a", NULL);
    check_fixture_node(&b, "m", IN " zone=b", "data={{}");
    CHECK_EQ(check_fixture_run(&b, "two", "n").answer, CHECK_PASS);
    CHECK_EQ(check_fixture_run(&b, "one", "n").answer, CHECK_FAIL);
    struct check_verdict v = check_fixture_run(&b, "skip50", "n");
    CHECK_EQ(v.answer, CHECK_ERROR);
    CHECK_STR(v.error, "node 'm': its data annotation cannot be read");
    CHECK_EQ(places_left(&b, "skip50", "n", &next), 0);
    /* It is not looked at where it does not count: it has neither the profile nor the zone. */
    CHECK_EQ(check_fixture_run(&b, "skip50-q", "n").answer, CHECK_PASS);
    CHECK_EQ(check_fixture_run(&b, "legacy", "n").answer, CHECK_PASS);
    check_fixture_end(&b);
}

TEST(fleet_grants_count_until_the_node_shows_it_or_they_are_struck_out)
{
    struct check_fixture b;
    usec_t next;
    check_fixture_begin(&b, limits);
    check_fixture_node(&b, "n", "zone=a", NULL);
    check_fixture_node(&b, "m", "zone=b " PROFILE_Q, NULL);
    (void)fleet_usage_changed(b.fleet);
    fleet_grant(b.fleet, STR("m"), STR("q"));
    CHECK(fleet_usage_changed(b.fleet));
    CHECK(!fleet_usage_changed(b.fleet));
    CHECK(fleet_is_granted(b.fleet, STR("m")));
    CHECK(!fleet_is_granted(b.fleet, STR("n")));
    CHECK_EQ(fleet_in_maintenance(b.fleet), 1);
    CHECK_EQ(check_fixture_run(&b, "one", "n").answer, CHECK_FAIL);
    CHECK_EQ(check_fixture_run(&b, "of-q", "n").answer, CHECK_FAIL);
    CHECK_EQ(check_fixture_run(&b, "skip5", "n").answer, CHECK_FAIL); /* it is about to begin */
    CHECK_EQ(check_fixture_run(&b, "zone", "n").answer, CHECK_PASS);
    CHECK_EQ(places_left(&b, "two", "n", &next), 1);
    check_fixture_node(&b, "m", IN " zone=b " PROFILE_Q, TIME20);
    CHECK_EQ(fleet_in_maintenance(b.fleet), 1); /* once */
    CHECK_EQ(check_fixture_run(&b, "skip5", "n").answer, CHECK_PASS);
    fleet_check(b.fleet);
    fleet_ungrant(b.fleet, STR("m"));
    fleet_ungrant(b.fleet, STR("m"));
    CHECK_EQ(fleet_in_maintenance(b.fleet), 1);
    check_fixture_node(&b, "m", "zone=b", TIME20);
    CHECK_EQ(fleet_in_maintenance(b.fleet), 0);
    CHECK(fleet_usage_changed(b.fleet));
    check_fixture_end(&b);
}

TEST(fleet_a_grant_of_an_unknown_node_counts_everywhere_it_might)
{
    struct check_fixture b;
    check_fixture_begin(&b, limits);
    fleet_grant(b.fleet, STR("m"), STR("p"));
    check_fixture_node(&b, "n", "zone=a", NULL);
    CHECK_EQ(check_fixture_run(&b, "one", "n").answer, CHECK_FAIL);
    CHECK_EQ(check_fixture_run(&b, "zone", "n").answer, CHECK_FAIL);
    CHECK_EQ(check_fixture_run(&b, "of-q", "n").answer, CHECK_PASS);
    check_fixture_node(&b, "m", "zone=b", NULL);
    CHECK_EQ(check_fixture_run(&b, "zone", "n").answer, CHECK_PASS);
    CHECK_EQ(check_fixture_run(&b, "one", "n").answer, CHECK_FAIL);
    fleet_check(b.fleet);
    check_fixture_remove_node(&b, "m");
    CHECK_EQ(check_fixture_run(&b, "zone", "n").answer, CHECK_FAIL);
    fleet_check(b.fleet);
    check_fixture_configure(&b, limits); /* grants outlive configurations */
    CHECK_EQ(check_fixture_run(&b, "zone", "n").answer, CHECK_FAIL);
    fleet_ungrant(b.fleet, STR("m"));
    CHECK_EQ(check_fixture_run(&b, "one", "n").answer, CHECK_PASS);
    check_fixture_end(&b);
}

TEST(fleet_a_node_is_not_kept_back_by_its_own_grant)
{
    struct check_fixture b;
    check_fixture_begin(&b, limits);
    check_fixture_node(&b, "n", NULL, NULL);
    fleet_grant(b.fleet, STR("n"), STR("p"));
    CHECK_EQ(check_fixture_run(&b, "one", "n").answer, CHECK_PASS);
    fleet_ungrant(b.fleet, STR("n"));
    check_fixture_node(&b, "n", IN, TIME20);
    CHECK_EQ(check_fixture_run(&b, "one", "n").answer, CHECK_FAIL);
    b.granted = true;
    CHECK_EQ(check_fixture_run(&b, "one", "n").answer, CHECK_PASS);
    check_fixture_node(&b, "m", IN, NULL);
    CHECK_EQ(check_fixture_run(&b, "one", "n").answer, CHECK_FAIL);
    CHECK_EQ(check_fixture_run(&b, "two", "n").answer, CHECK_PASS);
    check_fixture_end(&b);
}

TEST(fleet_groups_are_told_apart_by_limit_and_group)
{
    struct check_fixture b;
    check_fixture_begin(&b, limits);
    check_fixture_node(&b, "a1", "zone=a row=1", NULL);
    check_fixture_node(&b, "a2", "zone=a row=2", NULL);
    check_fixture_node(&b, "b1", "zone=b row=1", NULL);
    check_fixture_node(&b, "none", "row=a", NULL);
    check_fixture_node(&b, "empty", "zone= row=a", NULL);
    CHECK(check_fixture_run(&b, "one", "a1").limit_group ==
          check_fixture_run(&b, "one", "b1").limit_group);
    CHECK(check_fixture_run(&b, "one", "a1").limit_group !=
          check_fixture_run(&b, "two", "a1").limit_group);
    CHECK(check_fixture_run(&b, "zone", "a1").limit_group ==
          check_fixture_run(&b, "zone", "a2").limit_group);
    CHECK(check_fixture_run(&b, "zone", "a1").limit_group !=
          check_fixture_run(&b, "zone", "b1").limit_group);
    CHECK(check_fixture_run(&b, "both", "a1").limit_group !=
          check_fixture_run(&b, "both", "a2").limit_group);
    CHECK(check_fixture_run(&b, "zone", "none").limit_group ==
          check_fixture_run(&b, "zone", "empty").limit_group);
    /* The same value of another key is another group. */
    CHECK(check_fixture_run(&b, "both", "none").limit_group !=
          check_fixture_run(&b, "both", "a1").limit_group);
    check_fixture_end(&b);
}

static const char mixed[] =
    "  - {name: any, type: anyLabel, config: {key: x}}\n"
    "  - {name: any1, type: anyLabel, config: {key: x, value: 1.1.0}}\n"
    "  - {name: new, type: clusterSemver, config: {key: x}}\n"
    "  - {name: new-q, type: clusterSemver, config: {key: x, profileScoped: true}}\n"
    "  - {name: all, type: maxMaintenance, config: {max: 2, groupBy: [zone], skipAfter: 5s}}\n"
    "  - {name: some, type: maxMaintenance, config: {max: 2, profile: q, groupLabel: x}}\n"
    "  - {name: aff, type: affinity}\n"
    "  - {name: count, type: nodeCount, config: {count: 3}}\n";

static const char *some_labels(struct rng *rng, struct arena *out)
{
    static const char *const xs[] = { "", "x=1.1.0", "x=1.2.0", "x=1.2.0+b", "x=2.0.0-rc", "x=z" };
    static const char *const states[] = { "", IN, "cloud.sap/maintenance-state=operational" };
    static const char *const profiles[] = { "", PROFILE_Q, "cloud.sap/maintenance-profile=q" };
    static const char *const zones[] = { "", "zone=a", "zone=b", "zone=" };
    const char *all[] = { xs[rng_below(rng, 6)], states[rng_below(rng, 3)],
                          profiles[rng_below(rng, 3)], zones[rng_below(rng, 4)] };
    struct str text = STR("");
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (all[i][0] != '\0') {
            text = arena_printf(out, STR_FMT "%s%s", STR_ARG(text), text.n > 0 ? " " : "", all[i]);
        }
    }
    return text.n > 0 ? text.p : NULL;
}

static const char *some_data(struct rng *rng)
{
    static const char *const all[] = {
        NULL,
        "data={{",
        "data=",
        DATA("p", "2022-03-01T12:59:40Z", "maintenance-required"),
        DATA("q", "2022-03-01T12:59:40Z", "maintenance-required"),
        DATA("q", "2022-03-01T12:59:59Z", "in-maintenance"),
        DATA("p", "2022-03-01T12:59:40Z", "operational"),
        DATA("default", "2022-03-01T12:59:40Z", "elsewhere"),
    };
    return all[rng_below(rng, ARRAY_LEN(all))];
}

PROPERTY(fleet_is_what_a_walk_finds)
{
    static const char *const names[] = { "a", "b", "c", "d", "e" };
    struct check_fixture b;
    check_fixture_begin(&b, mixed);
    for (int step = 0; step < 30; step++) {
        const char *name = names[rng_below(rng, ARRAY_LEN(names))];
        switch (rng_below(rng, 8)) {
        case 0:
            fleet_grant(b.fleet, str_from(name), rng_chance(rng, 500) ? STR("p") : STR("q"));
            break;
        case 1:
            fleet_ungrant(b.fleet, str_from(name));
            break;
        case 2:
            check_fixture_remove_node(&b, name);
            break;
        case 3:
            check_fixture_configure(&b, rng_chance(rng, 500) ? mixed : limits);
            break;
        default:
            check_fixture_node(&b, name, some_labels(rng, &b.memory), some_data(rng));
        }
        fleet_check(b.fleet);
    }
    check_fixture_end(&b);
}

TEST(fleet_tells_whose_answers_may_have_changed)
{
    struct check_fixture b;
    check_fixture_begin(&b, mixed);
    uint64_t any = UINT64_C(1) << 0;
    uint64_t any1 = UINT64_C(1) << 1;
    uint64_t newest = UINT64_C(1) << 2;
    uint64_t newest_q = UINT64_C(1) << 3;
    uint64_t affinity = UINT64_C(1) << 6;
    uint64_t count = UINT64_C(1) << 7;
    CHECK(fleet_changed(b.fleet) == UINT64_MAX); /* the configuration is new */
    CHECK(fleet_changed(b.fleet) == 0);
    check_fixture_node(&b, "a", "x=1.1.0", NULL);
    CHECK(fleet_changed(b.fleet) == (any | any1 | newest | count | affinity));
    check_fixture_node(&b, "b", "x=1.0.0", NULL);
    CHECK(fleet_changed(b.fleet) == (count | affinity));
    check_fixture_node(&b, "b", "x=1.1.0 " PROFILE_Q, NULL);
    CHECK(fleet_changed(b.fleet) == newest_q);
    check_fixture_node(&b, "a", "x=1.2.0", NULL);
    CHECK(fleet_changed(b.fleet) == newest);
    check_fixture_node(&b, "b", "x=1.0.0 " PROFILE_Q, NULL);
    CHECK(fleet_changed(b.fleet) == (any1 | newest_q));
    (void)fleet_usage_changed(b.fleet);
    check_fixture_node(&b, "b", "x=1.0.0 " PROFILE_Q,
                       DATA("p", "2022-03-01T12:59:40Z", "maintenance-required"));
    CHECK(fleet_changed(b.fleet) == affinity);
    CHECK(!fleet_usage_changed(b.fleet));
    CHECK_EQ(fleet_profile_count(b.fleet, 1, PROFILE_STATE_REQUIRED), 1);
    check_fixture_node(&b, "b", IN, NULL);
    CHECK(fleet_usage_changed(b.fleet));
    CHECK_EQ(fleet_profile_count(b.fleet, 1, PROFILE_STATE_REQUIRED), 0);
    check_fixture_end(&b);
}
