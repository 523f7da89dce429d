/* The checks that look at other nodes and at what foreign systems answered. */
#include "profile/check/check.h"

#include "tests/check.h"
#include "tests/lib/check_fixture.h"

#include <math.h>

static const char versions[] =
    "  - {name: any, type: anyLabel, config: {key: label}}\n"
    "  - {name: gopher, type: anyLabel, config: {key: label, value: gopher}}\n"
    "  - {name: something, type: anyLabel, config: {key: label, value: something}}\n"
    "  - {name: zone, type: anyLabel, config: {key: zone}}\n"
    "  - {name: one, type: nodeCount, config: {count: 4}}\n"
    "  - {name: three, type: nodeCount, config: {count: 5}}\n"
    "  - {name: newer, type: clusterSemver, config: {key: version}}\n"
    "  - {name: scoped, type: clusterSemver, config: {key: version, profileScoped: yes}}\n";

/* The original's cases: "values 2.3.1, 1.34.7, garbage, none", and a gopher for anyLabel. */
static void begin_versions(struct check_fixture *b)
{
    check_fixture_begin(b, versions);
    check_fixture_node(b, "newest", "version=2.3.1 label=gopher", NULL);
    check_fixture_node(b, "older", "version=1.34.7 cloud.sap/maintenance-profile=q", NULL);
    check_fixture_node(b, "garbage", "version=v2.x", NULL);
    check_fixture_node(b, "none", NULL, NULL);
}

struct fleet_case {
    const char *line; /* the original's case */
    const char *check;
    const char *node;
    const char *profile;
    enum check_answer answer;
    const char *info;
    const char *reason; /* or the error */
};

static const struct fleet_case fleet_cases[] = {
    { "anyLabel: label=gopher pass", "gopher", "none", "p", CHECK_PASS, "",
      "1 of 4 nodes has the label label=gopher" },
    { "anyLabel: label pass", "any", "none", "p", CHECK_PASS, "",
      "1 of 4 nodes has the label label" },
    { "anyLabel: label=something fail", "something", "newest", "p", CHECK_FAIL, "",
      "0 of 4 nodes have the label label=something" },
    { "anyLabel: zone fail", "zone", "newest", "p", CHECK_FAIL, "",
      "0 of 4 nodes have the label zone" },
    { "nodeCount: 1 of 1 pass", "one", "none", "p", CHECK_PASS, "{\"current\":4,\"expected\":4}",
      "the cluster has 4 nodes, 4 are wanted" },
    { "nodeCount: 1 of 3 fail", "three", "none", "p", CHECK_FAIL, "{\"current\":4,\"expected\":5}",
      "the cluster has 4 nodes, 5 are wanted" },
    { "clusterSemver: newest -> fail", "newer", "newest", "p", CHECK_FAIL,
      "{\"max\":\"2.3.1\",\"own\":\"2.3.1\"}", "no node has a newer version than 2.3.1" },
    { "clusterSemver: older -> pass", "newer", "older", "p", CHECK_PASS,
      "{\"max\":\"2.3.1\",\"own\":\"1.34.7\"}", "version 1.34.7 is older than 2.3.1" },
    { "clusterSemver: scoped to a profile without nodes -> fail", "scoped", "older", "p",
      CHECK_FAIL, "{\"max\":\"0.1.0\",\"own\":\"1.34.7\"}",
      "no node has a newer version than 1.34.7" },
    { "clusterSemver: scoped to the node's own profile", "scoped", "newest", "q", CHECK_FAIL,
      "{\"max\":\"1.34.7\",\"own\":\"2.3.1\"}", "no node has a newer version than 2.3.1" },
    { "clusterSemver: scoped, unlabelled nodes have no profile", "scoped", "older", "default",
      CHECK_FAIL, "{\"max\":\"0.1.0\",\"own\":\"1.34.7\"}",
      "no node has a newer version than 1.34.7" },
    { "clusterSemver: none -> error", "newer", "none", "p", CHECK_ERROR, "",
      "node does not have label version containing version" },
};

TEST(checks_look_at_all_nodes)
{
    struct check_fixture b;
    begin_versions(&b);
    for (size_t i = 0; i < ARRAY_LEN(fleet_cases); i++) {
        const struct fleet_case *c = &fleet_cases[i];
        check_case((int64_t)i);
        b.profile = str_from(c->profile);
        struct check_verdict v = check_fixture_run(&b, c->check, c->node);
        CHECK_EQ(v.answer, c->answer);
        CHECK_STR(v.info, c->info);
        CHECK_STR(c->answer == CHECK_ERROR ? v.error : v.reason, c->reason);
        CHECK_EQ(v.next, USEC_NEVER);
    }
    check_case(-1);
    struct check_verdict v = check_fixture_run(&b, "newer", "garbage");
    CHECK_EQ(v.answer, CHECK_ERROR); /* clusterSemver: garbage -> error */
    CHECK(str_starts(v.error, STR("failed to parse current nodes version label: ")));
    check_fixture_end(&b);
}

TEST(checks_versions_follow_the_nodes)
{
    struct check_fixture b;
    begin_versions(&b);
    check_fixture_node(&b, "garbage", "version=2.3.1+build", NULL);
    check_fixture_remove_node(&b, "newest");
    CHECK_EQ(check_fixture_run(&b, "newer", "older").answer, CHECK_PASS); /* garbage is as new */
    check_fixture_remove_node(&b, "garbage");
    CHECK_EQ(check_fixture_run(&b, "newer", "older").answer, CHECK_FAIL);
    check_fixture_node(&b, "none", "version=1.35.0-alpha", NULL);
    struct check_verdict v = check_fixture_run(&b, "newer", "older");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_STR(v.info, "{\"max\":\"1.35.0-alpha\",\"own\":\"1.34.7\"}");
    check_fixture_node(&b, "old", "version=0.0.9", NULL);
    check_fixture_remove_node(&b, "none");
    check_fixture_remove_node(&b, "older");
    v = check_fixture_run(&b, "newer", "old"); /* below where the original begins to look */
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_STR(v.info, "{\"max\":\"0.1.0\",\"own\":\"0.0.9\"}");
    CHECK_EQ(check_fixture_run(&b, "any", "old").answer, CHECK_FAIL); /* the gopher has gone */
    check_fixture_end(&b);
}

/* ── Prometheus ────────────────────────────────────────────────────────────────────────────── */

static const char queries[] =
    "  - {name: equal, type: prometheusInstant, config: {url: http://p, query: up, "
    "expr: value == 1}}\n"
    "  - {name: less, type: prometheusInstant, config: {url: http://p, query: up, "
    "expr: value < 1}}\n"
    "  - {name: wrong, type: prometheusInstant, config: {url: http://p, query: up, "
    "expr: value <}}\n"
    "  - {name: name, type: prometheusInstant, config: {url: http://p, query: up, "
    "expr: x == 1}}\n";

static void answer(struct check_fixture *b, const char *instance, double value, const char *error)
{
    static const struct str warnings[] = { STR_INIT("slow") };
    const struct facts_prometheus fact = {
        .known = true,
        .error = str_from(error),
        .value = value,
        .warnings = warnings,
        .warning_n = value > 1 ? 1 : 0,
        .asked = check_fixture_wall(b->now),
    };
    (void)facts_put_prometheus(b->facts, check_fixture_index(b, instance), &fact);
}

#define INFO(expr, rest) "{\"expr\":\"" expr "\",\"query\":\"up\",\"url\":\"http://p\"" rest "}"

struct prometheus_case {
    const char *line; /* the original's case */
    const char *check;
    double value;
    const char *error;
    enum check_answer answer;
    const char *info;
    const char *reason; /* or the error */
};

static const struct prometheus_case prometheus_cases[] = {
    { "value == 1 pass", "equal", 1, NULL, CHECK_PASS, INFO("value == 1", ",\"value\":1"),
      "the value is 1, so 'value == 1' holds" },
    { "value < 1 fail without error", "less", 1, NULL, CHECK_FAIL,
      INFO("value \\u003c 1", ",\"value\":1"), "the value is 1, so 'value < 1' does not hold" },
    { "unreachable path -> error", "equal", 0, "404", CHECK_ERROR, INFO("value == 1", ""), "404" },
    { "query without data -> error", "equal", 0, "result does not contain exactly one element",
      CHECK_ERROR, INFO("value == 1", ""), "result does not contain exactly one element" },
    { "warnings are shown", "equal", 2.5, NULL, CHECK_FAIL,
      INFO("value == 1", ",\"value\":2.5,\"warns\":[\"slow\"]"),
      "the value is 2.5, so 'value == 1' does not hold" },
    { "no number stays JSON", "less", NAN, NULL, CHECK_FAIL,
      INFO("value \\u003c 1", ",\"value\":\"NaN\""),
      "the value is NaN, so 'value < 1' does not hold" },
    { "infinity stays JSON", "less", -INFINITY, NULL, CHECK_PASS,
      INFO("value \\u003c 1", ",\"value\":\"-Inf\""), "the value is -Inf, so 'value < 1' holds" },
    { "an unknown name is an error", "name", 1, NULL, CHECK_ERROR, INFO("x == 1", ",\"value\":1"),
      "failed to evaluate prometheus expression: unknown parameter x" },
};

TEST(checks_judge_what_prometheus_answered)
{
    struct check_fixture b;
    check_fixture_begin(&b, queries);
    check_fixture_node(&b, "n", NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(prometheus_cases); i++) {
        const struct prometheus_case *c = &prometheus_cases[i];
        check_case((int64_t)i);
        answer(&b, c->check, c->value, c->error);
        struct check_verdict v = check_fixture_run(&b, c->check, "n");
        CHECK_EQ(v.answer, c->answer);
        CHECK_STR(v.info, c->info);
        CHECK_STR(c->answer == CHECK_ERROR ? v.error : v.reason, c->reason);
        CHECK_EQ(v.want_n, 0);
        CHECK_EQ(v.next, check_fixture_wall("2022-03-01T13:00:30Z")); /* it is asked again then */
    }
    check_case(-1);
    check_fixture_end(&b);
}

static const char pools[] =
    "  - {name: count, type: kubernikusCount, config: {cluster: c}}\n"
    "  - {name: secret, type: kubernikusCount, config: {cluster: c, cloudProviderSecret: {name: n, "
    "namespace: s}}}\n";

TEST(checks_count_the_nodes_of_pools)
{
    static const struct {
        double pools;
        const char *error;
        enum check_answer answer;
        const char *info;
        const char *reason; /* or the error */
    } cases[] = {
        { 1, NULL, CHECK_PASS,
          "{\"reason\":\"found equal or more nodes than specified by nodepool\"}",
          "the cluster has 1 node, its pools are to have 1" },
        { 2, NULL, CHECK_FAIL, "{\"reason\":\"found less nodes than specified by nodepool\"}",
          "the cluster has 1 node, its pools are to have 2" },
        { 0, "Kubernikus answered 503", CHECK_ERROR, "", "Kubernikus answered 503" },
    };
    struct check_fixture b;
    check_fixture_begin(&b, pools);
    check_fixture_node(&b, "n", NULL, NULL);
    struct check_verdict v = check_fixture_run(&b, "secret", "n");
    CHECK_EQ(v.answer, CHECK_PENDING);
    CHECK_EQ(v.wants[0].kind, FACTS_POOLS);
    CHECK_STR(v.reason, "Kubernikus has not answered yet");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        answer(&b, "count", cases[i].pools, cases[i].error);
        v = check_fixture_run(&b, "count", "n");
        CHECK_EQ(v.answer, cases[i].answer);
        CHECK_STR(v.info, cases[i].info);
        CHECK_STR(v.answer == CHECK_ERROR ? v.error : v.reason, cases[i].reason);
    }
    check_case(-1);
    answer(&b, "count", 1, NULL);
    b.now = "2022-03-01T13:00:30Z";
    v = check_fixture_run(&b, "count", "n");
    CHECK_EQ(v.answer, CHECK_PENDING); /* a node may have gone */
    CHECK_EQ(v.want_n, 1);
    check_fixture_end(&b);
}

TEST(checks_want_what_prometheus_has_not_answered)
{
    struct check_fixture b;
    check_fixture_begin(&b, queries);
    check_fixture_node(&b, "n", NULL, NULL);
    struct check_verdict v = check_fixture_run(&b, "less", "n");
    CHECK_EQ(v.answer, CHECK_PENDING);
    CHECK_EQ(v.want_n, 1);
    CHECK_EQ(v.wants[0].kind, FACTS_PROMETHEUS);
    CHECK_EQ(v.wants[0].index, 1);
    CHECK_STR(v.reason, "Prometheus has not answered yet");
    answer(&b, "less", 0, NULL);
    b.now = "2022-03-01T13:00:29.999999Z";
    CHECK_EQ(check_fixture_run(&b, "less", "n").want_n, 0);
    b.now = "2022-03-01T13:00:30Z";
    v = check_fixture_run(&b, "less", "n");
    CHECK_EQ(v.answer, CHECK_PENDING); /* what was true then may not be true now */
    CHECK_EQ(v.want_n, 1);
    CHECK_EQ(v.next, check_fixture_wall("2022-03-01T13:01:00Z"));
    CHECK_STR(v.reason, "the value was 0, 30s ago; Prometheus is asked again");
    b.granted = true; /* its grant rests on a newer answer than its record */
    v = check_fixture_run(&b, "less", "n");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_EQ(v.want_n, 1);
    b.granted = false;
    b.now = "2022-03-01T12:00:00Z"; /* the clock was set back: nobody knows how old it is */
    CHECK_EQ(check_fixture_run(&b, "less", "n").answer, CHECK_PENDING);
    check_fixture_end(&b);
}

TEST(checks_ask_prometheus_at_each_look_without_an_interval)
{
    struct check_fixture b;
    check_fixture_begin(&b, queries);
    check_fixture_node(&b, "n", NULL, NULL);
    b.config.requeue_ns = -5000000000;
    CHECK_EQ(check_fixture_run(&b, "less", "n").want_n, 1);
    answer(&b, "less", 0, NULL);
    struct check_verdict v = check_fixture_run(&b, "less", "n");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_EQ(v.want_n, 0);
    CHECK_EQ(v.next, check_fixture_wall("2022-03-01T13:05:00Z"));
    b.now = "2022-03-01T13:00:01Z"; /* not more than once a second */
    v = check_fixture_run(&b, "less", "n");
    CHECK_EQ(v.answer, CHECK_PENDING);
    CHECK_EQ(v.want_n, 1);
    CHECK_EQ(v.next, check_fixture_wall("2022-03-01T13:05:01Z"));
    b.config.requeue_ns = 1; /* an interval that would make it spin */
    b.now = "2022-03-01T13:00:00.5Z";
    v = check_fixture_run(&b, "less", "n");
    CHECK_EQ(v.want_n, 0);
    CHECK_EQ(v.next, check_fixture_wall("2022-03-01T13:00:01Z"));
    check_fixture_end(&b);
}

TEST(checks_a_slow_answer_of_prometheus_counts_when_it_comes)
{
    struct check_fixture b;
    check_fixture_begin(&b, queries);
    check_fixture_node(&b, "n", NULL, NULL);
    b.config.requeue_ns = 1000000000;
    const struct facts_prometheus slow = {
        .known = true,
        .asked = check_fixture_wall("2022-03-01T12:59:50Z"),
        .answered = check_fixture_wall("2022-03-01T13:00:00Z"),
    };
    (void)facts_put_prometheus(b.facts, check_fixture_index(&b, "less"), &slow);
    CHECK_EQ(check_fixture_run(&b, "less", "n").answer, CHECK_PASS);
    b.now = "2022-03-01T13:00:01Z";
    CHECK_EQ(check_fixture_run(&b, "less", "n").answer, CHECK_PENDING);
    check_fixture_end(&b);
}

TEST(checks_an_expression_that_cannot_be_read_fails_when_it_is_used)
{
    struct check_fixture b;
    check_fixture_begin(&b, queries);
    check_fixture_node(&b, "n", NULL, NULL);
    CHECK_EQ(check_fixture_run(&b, "wrong", "n").answer, CHECK_PENDING);
    answer(&b, "wrong", 1, NULL);
    struct check_verdict v = check_fixture_run(&b, "wrong", "n");
    CHECK_EQ(v.answer, CHECK_ERROR);
    CHECK_STR(v.info, INFO("value \\u003c", ",\"value\":1"));
    check_fixture_end(&b);
}

/* ── leases ────────────────────────────────────────────────────────────────────────────────── */

static const char staggers[] =
    "  - {name: one, type: stagger, config: {duration: 3s, leaseName: l, leaseNamespace: d}}\n"
    "  - {name: two, type: stagger, config: {duration: 3s, leaseName: l, leaseNamespace: d, "
    "parallel: 2}}\n"
    "  - {name: zero, type: stagger, config: {duration: 3s, leaseName: l, leaseNamespace: d, "
    "parallel: 0}}\n";

static struct facts_lease held_by(const char *holder, const char *renewed, const char *asked)
{
    return (struct facts_lease){
        .known = true,
        .complete = true,
        .holder = str_from(holder),
        .renewed = timestamp_from_usec(check_fixture_wall(renewed)),
        .duration_s = 3,
        .asked = check_fixture_wall(asked),
    };
}

static void put_lease(struct check_fixture *b, const char *instance, uint32_t i,
                      struct facts_lease lease)
{
    (void)facts_put_lease(b->facts, check_fixture_index(b, instance), i, &lease);
}

TEST(checks_nodes_go_one_after_the_other)
{
    struct check_fixture b;
    check_fixture_begin(&b, staggers);
    check_fixture_node(&b, "n", NULL, NULL);
    check_fixture_node(&b, "m", NULL, NULL);
    struct check_verdict v = check_fixture_run(&b, "one", "n");
    CHECK_EQ(v.answer, CHECK_PENDING);
    CHECK_EQ(v.want_n, 1);
    CHECK_EQ(v.wants[0].kind, FACTS_STAGGER);
    CHECK_STR(v.wants[0].node, "n"); /* the first holder, if there is none to find */
    put_lease(
        &b, "one", 0,
        (struct facts_lease){ .known = true, .absent = true, .asked = check_fixture_wall(b.now) });
    v = check_fixture_run(&b, "one", "n");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_STR(v.info, "");
    CHECK_STR(v.reason, "lease l-0 is free");
    /* As in the original: second check by same and other node within 3 s fails. */
    put_lease(&b, "one", 0, held_by("n", b.now, b.now));
    b.now = "2022-03-01T13:00:03Z";
    v = check_fixture_run(&b, "one", "n");
    CHECK_EQ(v.answer, CHECK_FAIL);
    CHECK_STR(v.info, "{\"availableInSec\":[0]}");
    b.now = "2022-03-01T13:00:00.5Z";
    v = check_fixture_run(&b, "one", "m");
    CHECK_EQ(v.answer, CHECK_FAIL);
    CHECK_STR(v.info, "{\"availableInSec\":[2.5]}");
    CHECK_STR(v.reason, "another node went; free in 2s");
    CHECK_EQ(v.next, check_fixture_wall("2022-03-01T13:00:03.000001Z"));
    CHECK_EQ(v.want_n, 0);
    /* As in the original: after expiry the other node passes. */
    b.now = "2022-03-01T13:00:03.000001Z";
    CHECK_EQ(check_fixture_run(&b, "one", "m").answer, CHECK_PASS);
    check_fixture_end(&b);
}

TEST(checks_several_leases_let_several_nodes_go)
{
    struct check_fixture b;
    check_fixture_begin(&b, staggers);
    check_fixture_node(&b, "n", NULL, NULL);
    put_lease(&b, "two", 0, held_by("x", b.now, b.now));
    struct check_verdict v = check_fixture_run(&b, "two", "n");
    CHECK_EQ(v.answer, CHECK_PENDING); /* the second is not known */
    CHECK_EQ(v.want_n, 1);
    put_lease(&b, "two", 1, held_by("y", "2022-03-01T12:59:56Z", b.now));
    v = check_fixture_run(&b, "two", "n"); /* parallel 2 -> two nodes pass */
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_STR(v.reason, "lease l-1 is free");
    put_lease(&b, "two", 1, held_by("y", "2022-03-01T12:59:58Z", b.now));
    v = check_fixture_run(&b, "two", "n");
    CHECK_EQ(v.answer, CHECK_FAIL);
    CHECK_STR(v.info, "{\"availableInSec\":[3,1]}");
    CHECK_STR(v.reason, "all 2 leases are taken; the first is free in 1s");
    CHECK_EQ(v.next, check_fixture_wall("2022-03-01T13:00:01.000001Z"));
    v = check_fixture_run(&b, "zero", "n");
    CHECK_EQ(v.answer, CHECK_FAIL);
    CHECK_STR(v.info, "{\"availableInSec\":[]}");
    CHECK_EQ(v.next, USEC_NEVER);
    check_fixture_end(&b);
}

/* P7: what takes longer than one turn must not lock itself out. */
TEST(checks_a_granted_node_passes_by_its_own_lease)
{
    struct check_fixture b;
    check_fixture_begin(&b, staggers);
    check_fixture_node(&b, "n", NULL, NULL);
    check_fixture_node(&b, "m", NULL, NULL);
    put_lease(&b, "one", 0, held_by("n", b.now, b.now));
    CHECK_EQ(check_fixture_run(&b, "one", "n").answer, CHECK_FAIL);
    b.granted = true;
    struct check_verdict v = check_fixture_run(&b, "one", "n");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_STR(v.reason, "lease l-0 is the node's own");
    CHECK_EQ(check_fixture_run(&b, "one", "m").answer, CHECK_FAIL);
    check_fixture_end(&b);
}

TEST(checks_a_lease_that_cannot_be_used_is_an_error)
{
    struct check_fixture b;
    check_fixture_begin(&b, staggers);
    check_fixture_node(&b, "n", NULL, NULL);
    put_lease(&b, "one", 0,
              (struct facts_lease){ .known = true, .asked = check_fixture_wall(b.now) });
    struct check_verdict v = check_fixture_run(&b, "one", "n");
    CHECK_EQ(v.answer, CHECK_ERROR);
    CHECK_STR(v.error, "lease 'l-0' lacks its times: another's object?");
    put_lease(&b, "one", 0,
              (struct facts_lease){ .known = true, .error = STR("forbidden"), .asked = 0 });
    v = check_fixture_run(&b, "one", "n");
    CHECK_EQ(v.answer, CHECK_ERROR);
    CHECK_STR(v.error, "forbidden");
    CHECK_EQ(v.want_n, 1); /* asked long ago */
    check_fixture_end(&b);
}

/* ── affinity ──────────────────────────────────────────────────────────────────────────────── */

static const char affinities[] = "  - {name: aff, type: affinity, config: null}\n"
                                 "  - {name: min, type: affinity, config: {minOperational: 2}}\n";

static void put_pods(struct check_fixture *b, const char *node, bool has)
{
    const struct facts_affinity fact = {
        .known = true, .has = has, .live = true, .asked = check_fixture_wall(b->now)
    };
    (void)facts_put_affinity(b->facts, str_from(node), &fact);
}

static void put_node(struct check_fixture *b, const char *name, const char *profile,
                     const char *state)
{
    struct str data = arena_printf(&b->memory,
                                   "data={\"Profiles\":{\"%s\":{\"Transition\":\"2022-03-01T00:00:"
                                   "00Z\",\"Current\":\"%s\",\"Previous\":\"%s\"}}}",
                                   profile, state, state);
    check_fixture_node(b, name, NULL, data.p);
}

static void begin_affinity(struct check_fixture *b)
{
    check_fixture_begin(b, affinities);
    b->state = PROFILE_STATE_REQUIRED;
    put_node(b, "n", "p", "maintenance-required");
    put_node(b, "m", "p", "maintenance-required");
    put_node(b, "up", "p", "operational");
    put_node(b, "down", "p", "in-maintenance");
    put_node(b, "else", "q", "maintenance-required");
    check_fixture_node(b, "broken", NULL, "data={{");
}

TEST(checks_affinity_is_for_nodes_that_wait)
{
    struct check_fixture b;
    begin_affinity(&b);
    b.state = PROFILE_STATE_OPERATIONAL;
    struct check_verdict v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_ERROR);
    CHECK_STR(v.error, "affinity check plugin failed, node n is not in maintenance-required but "
                       "operational state");
    check_fixture_end(&b);
}

TEST(checks_affinity_lets_nodes_without_such_pods_go_first)
{
    struct check_fixture b;
    begin_affinity(&b);
    struct check_verdict v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_PENDING);
    CHECK_EQ(v.want_n, 1);
    CHECK_EQ(v.wants[0].kind, FACTS_AFFINITY);
    CHECK_STR(v.wants[0].node, "n");
    put_pods(&b, "n", false);
    v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_STR(v.info, "{\"reason\":\"no pods with affinity\"}");
    put_pods(&b, "n", true);
    v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_PENDING);
    CHECK_EQ(v.want_n, 1);
    CHECK_STR(v.wants[0].node, "m"); /* neither those of other states nor of other profiles */
    put_pods(&b, "m", false);
    v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_FAIL);
    CHECK_STR(v.info, "{\"reason\":\"pods without affinity on: m\"}");
    CHECK_STR(v.reason, "node m goes first: its pods do not mind");
    put_pods(&b, "m", true);
    v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_STR(v.info, "");
    CHECK_STR(v.reason, "all 2 waiting nodes have pods that prefer operational ones");
    CHECK_EQ(v.next, USEC_NEVER); /* events tell */
    CHECK(v.reads_pods);
    check_fixture_end(&b);
}

static void keep_pods(struct check_fixture *b, const char *node, bool has)
{
    const struct facts_affinity fact = { .known = true,
                                         .has = has,
                                         .asked = check_fixture_wall(b->now) };
    (void)facts_put_affinity(b->facts, str_from(node), &fact);
}

/* What is not watched any more counts for waiting; but nobody is waited for in vain. */
TEST(checks_affinity_goes_by_answers_that_are_kept)
{
    struct check_fixture b;
    begin_affinity(&b);
    keep_pods(&b, "n", false);
    struct check_verdict v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_EQ(v.want_n, 0);
    CHECK_STR(v.info, "{\"reason\":\"no pods with affinity\"}");
    CHECK_STR(v.reason, "the node has no pods that prefer operational nodes, as of Tue 13:00; its "
                        "pods are looked at again before it goes");
    keep_pods(&b, "n", true);
    keep_pods(&b, "m", true);
    v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_EQ(v.want_n, 0);
    CHECK_STR(v.reason, "all 2 waiting nodes have pods that prefer operational ones, 2 of them "
                        "when they were last looked at");
    keep_pods(&b, "m", false);
    v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_FAIL);
    CHECK_EQ(v.want_n, 1);
    CHECK_STR(v.wants[0].node, "m");
    CHECK(v.wants[0].live);
    put_node(&b, "third", "p", "maintenance-required");
    put_pods(&b, "third", false); /* one that is watched is a better reason */
    v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.want_n, 0);
    CHECK_STR(v.info, "{\"reason\":\"pods without affinity on: third\"}");
    check_fixture_end(&b);
}

TEST(checks_affinity_does_not_turn_back_who_is_on_its_way)
{
    struct check_fixture b;
    begin_affinity(&b);
    struct check_verdict v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_PENDING);
    CHECK_STR(v.reason, "the node's pods are not known yet: they are looked at when one of 32 "
                        "watches is free");
    b.granted = true;
    CHECK_EQ(check_fixture_run(&b, "aff", "n").answer, CHECK_PASS);
    put_pods(&b, "n", true);
    CHECK_EQ(check_fixture_run(&b, "aff", "n").answer, CHECK_PASS); /* m is unknown */
    put_pods(&b, "m", false);
    CHECK_EQ(check_fixture_run(&b, "aff", "n").answer, CHECK_FAIL);
    check_fixture_end(&b);
}

TEST(checks_affinity_does_not_matter_with_enough_operational_nodes)
{
    struct check_fixture b;
    begin_affinity(&b);
    CHECK_EQ(check_fixture_run(&b, "min", "n").answer, CHECK_PENDING);
    put_node(&b, "else", "p", "operational");
    struct check_verdict v = check_fixture_run(&b, "min", "n");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_EQ(v.want_n, 0);
    CHECK_STR(v.info, "{\"reason\":\"minOperational exceeded\"}");
    CHECK_STR(v.reason, "2 nodes are operational, 2 are enough");
    check_fixture_end(&b);
}

TEST(checks_affinity_errors_name_the_node)
{
    struct check_fixture b;
    begin_affinity(&b);
    put_pods(&b, "n", true);
    const struct facts_affinity fact = { .known = true, .error = STR("503"), .asked = 0 };
    (void)facts_put_affinity(b.facts, STR("m"), &fact);
    struct check_verdict v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_ERROR);
    CHECK_STR(v.error, "failed to check if node m has affinity pods: 503");
    check_fixture_end(&b);
}

/* What was summed up for all of them is what each would find. */
TEST(checks_affinity_reads_the_sum_of_the_turn)
{
    struct check_fixture b;
    begin_affinity(&b);
    uint64_t bits = UINT64_C(3); /* both instances */
    fleet_set_facts(b.fleet, b.facts);
    CHECK((fleet_changed(b.fleet) & bits) == bits);
    CHECK(fleet_changed(b.fleet) == 0);
    put_pods(&b, "n", true);
    CHECK(fleet_changed(b.fleet) == 0); /* m is still unknown */
    CHECK_EQ(check_fixture_run(&b, "aff", "n").answer, CHECK_PENDING);
    put_pods(&b, "m", false);
    CHECK_EQ(check_fixture_run(&b, "aff", "n").answer,
             CHECK_FAIL); /* before it is summed up again, too */
    CHECK(fleet_changed(b.fleet) == bits);
    CHECK_EQ(check_fixture_run(&b, "aff", "n").answer, CHECK_FAIL);
    put_node(&b, "third", "p", "maintenance-required");
    put_pods(&b, "third", false);
    CHECK(fleet_changed(b.fleet) == 0); /* one more that goes first */
    put_node(&b, "m", "p", "in-maintenance");
    CHECK(fleet_changed(b.fleet) == 0);
    CHECK_STR(check_fixture_run(&b, "aff", "n").info,
              "{\"reason\":\"pods without affinity on: third\"}");
    check_fixture_remove_node(&b, "third");
    CHECK(fleet_changed(b.fleet) == bits);
    CHECK_EQ(check_fixture_run(&b, "aff", "n").answer, CHECK_PASS);
    put_node(&b, "up2", "p", "operational"); /* the second is enough for 'min' */
    CHECK(fleet_changed(b.fleet) == UINT64_C(2));
    put_node(&b, "more", "p", "operational");
    CHECK(fleet_changed(b.fleet) == 0);
    put_node(&b, "n", "p", "in-maintenance");
    CHECK(fleet_changed(b.fleet) == 0); /* nobody waits any more */
    check_fixture_end(&b);
}

/* A large fleet that waits must not ask for everybody's pods at once. */
TEST(checks_affinity_asks_for_some_nodes_at_a_time)
{
    struct check_fixture b;
    begin_affinity(&b);
    put_pods(&b, "n", true);
    put_pods(&b, "m", true);
    for (int i = 0; i < 100; i++) {
        put_node(&b, arena_printf(&b.memory, "node-%d", i).p, "p", "maintenance-required");
    }
    struct check_verdict v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_PENDING);
    CHECK_EQ(v.want_n, 32);
    for (int i = 0; i < 100; i++) {
        put_pods(&b, arena_printf(&b.memory, "node-%d", i).p, true);
    }
    CHECK_EQ(check_fixture_run(&b, "aff", "n").answer, CHECK_PASS);
    b.now = "2022-03-01T14:00:00Z";
    v = check_fixture_run(&b, "aff", "n");
    CHECK_EQ(v.answer, CHECK_PASS);
    CHECK_EQ(v.want_n, 0); /* they are watched */
    check_fixture_end(&b);
}
