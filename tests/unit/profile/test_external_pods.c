#include "profile/external_facts.h"

#include "tests/check.h"
#include "tests/lib/external_facts_fixture.h"

#define PREFER(key, operator, values)                                                              \
    "\"affinity\":{\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":["        \
    "{\"weight\":1,\"preference\":{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":"          \
    "\"Exists\"}]}},{\"weight\":1,\"preference\":{\"matchExpressions\":[{\"key\":\"" key           \
    "\",\"operator\":\""                                                                           \
    operator"\",\"values\":[" values "]}]}}]}},"

static void add_pod(struct facts_fixture *w, const char *name, const char *node,
                    const char *affinity)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str body = arena_printf(
        &tmp,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"},\"spec\":{%s"
        "\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
        name, affinity, node);
    CHECK_EQ(facts_fixture_request(w, "POST", "/api/v1/namespaces/default/pods", body.p), 201);
}

TEST(external_facts_knows_a_pod_that_prefers_operational_nodes)
{
    static const struct {
        const char *affinity;
        bool has;
    } cases[] = {
        { "", false },
        { PREFER("cloud.sap/maintenance-state", "In", "\"operational\""), true },
        { PREFER("cloud.sap/maintenance-state", "NotIn", "\"operational\""), false },
        { PREFER("cloud.sap/maintenance-state", "In", "\"operational\",\"in-maintenance\""),
          false },
        { PREFER("cloud.sap/maintenance-state", "In", "\"in-maintenance\""), false },
        { PREFER("state", "In", "\"operational\""), false },
    };
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    add_pod(&w, "elsewhere", "other", cases[1].affinity);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char node[] = { 'n', (char)('0' + i), '\0' };
        add_pod(&w, node, node, cases[i].affinity);
        facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, node);
    }
    facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, "empty");
    facts_fixture_run(&w, SECONDS(1));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char node[] = { 'n', (char)('0' + i), '\0' };
        struct facts_affinity a = facts_affinity(facts_fixture_facts(&w), str_from(node));
        check_case((int64_t)i);
        CHECK(a.known && a.error.n == 0);
        CHECK_EQ(a.has, cases[i].has);
    }
    check_case(-1);
    CHECK(facts_affinity(facts_fixture_facts(&w), STR("empty")).known);
    CHECK(!facts_affinity(facts_fixture_facts(&w), STR("empty")).has);
    CHECK_EQ(r->changed, 1u << CHECK_AT_NEAR);
    facts_fixture_end(&w);
}

static void never_told(void *ctx, uint64_t instances)
{
    (void)ctx; /* it must not come to that */
    CHECK_EQ(instances, 0);
}

static void on_pods(void *ctx, struct str node)
{
    struct facts_replica *r = ctx;
    CHECK_STR(node, "n");
    r->done++;
}

/* Who sums the pods of many nodes up is told of each of them, and the check instances are not. */
TEST(external_facts_tells_of_one_nodes_pods_to_who_asks_for_that)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    external_facts_free(r->external);
    r->external =
        external_facts_new(r->loop, &(struct external_facts_config){ .client = &r->client,
                                                                     .outbound = r->outbound,
                                                                     .on_change = never_told,
                                                                     .on_pods = on_pods,
                                                                     .ctx = r });
    facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, "n");
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->done, 1);
    CHECK(facts_affinity(facts_fixture_facts(&w), STR("n")).known);
    uint64_t changes = facts_affinity_changes(facts_fixture_facts(&w));
    facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, "n");
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->done, 1); /* the same answer is no news */
    CHECK_EQ(facts_affinity_changes(facts_fixture_facts(&w)), changes);
    facts_fixture_end(&w);
}

static const char picky[] = PREFER("cloud.sap/maintenance-state", "In", "\"operational\"");

static void remove_pod(struct facts_fixture *w, const char *name)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str path = arena_printf(&tmp, "/api/v1/namespaces/default/pods/%s", name);
    CHECK_EQ(facts_fixture_request(w, "DELETE", path.p, "{\"gracePeriodSeconds\":0}"), 200);
}

static struct facts_affinity fact_of(struct facts_fixture *w, const char *node)
{
    return facts_affinity(facts_fixture_facts(w), str_from(node));
}

static uint64_t sent(struct facts_fixture *w, enum sim_api_verb verb)
{
    uint32_t n = 0;
    uint64_t sum = 0;
    const struct sim_api_count *tallies = sim_api_counts(w->replicas[0].api, &n);
    for (uint32_t i = 0; i < n; i++) {
        sum += str_eq(tallies[i].resource, STR("pods")) ? tallies[i].sent[verb] : 0;
    }
    return sum;
}

static const char *numbered(struct facts_fixture *w, int i)
{
    return arena_printf(&w->memory, "n%03d", i).p;
}

/* How many of the first n nodes are watched, all being known. */
static uint32_t live_of(struct facts_fixture *w, int n)
{
    uint32_t live = 0;
    for (int i = 0; i < n; i++) {
        struct facts_affinity a = fact_of(w, numbered(w, i));
        CHECK(a.known && a.error.n == 0);
        live += a.live ? 1 : 0;
    }
    return live;
}

TEST(external_facts_follows_the_pods_of_a_node_by_events)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, "n");
    facts_fixture_run(&w, SECONDS(1));
    CHECK(fact_of(&w, "n").live && !fact_of(&w, "n").has);
    add_pod(&w, "plain", "n", "");
    add_pod(&w, "elsewhere", "m", picky);
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->change_n, 1); /* nothing that a check could tell has changed */
    add_pod(&w, "one", "n", picky);
    add_pod(&w, "two", "n", picky);
    facts_fixture_run(&w, SECONDS(1));
    CHECK(fact_of(&w, "n").live && fact_of(&w, "n").has);
    remove_pod(&w, "one");
    facts_fixture_run(&w, SECONDS(1));
    CHECK(fact_of(&w, "n").has); /* one is enough */
    CHECK_EQ(r->change_n, 2);
    remove_pod(&w, "two");
    facts_fixture_run(&w, SECONDS(1));
    CHECK(fact_of(&w, "n").live && !fact_of(&w, "n").has);
    CHECK_EQ(r->change_n, 3);
    CHECK_EQ(sent(&w, SIM_WATCH), 1);
    CHECK_EQ(sent(&w, SIM_LIST), 0);
    facts_fixture_end(&w);
}

/* A watch is opened again when the server ends it, which it is asked to do; nothing else is sent,
 * and nothing is listed again. */
TEST(external_facts_sends_nothing_about_pods_that_do_not_change)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    add_pod(&w, "one", "n", picky);
    facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, "n");
    facts_fixture_run(&w, SECONDS(1));
    usec_t asked = fact_of(&w, "n").asked;
    facts_fixture_run(&w, HOURS(6));
    CHECK(fact_of(&w, "n").live && fact_of(&w, "n").has);
    CHECK_EQ(fact_of(&w, "n").asked, asked);
    CHECK_EQ(r->change_n, 1);
    CHECK_EQ(sent(&w, SIM_LIST) + sent(&w, SIM_GET), 0);
    CHECK(sent(&w, SIM_WATCH) <= 1 + HOURS(6) / SECONDS(290));
    CHECK_EQ(sim_api_sent(r->api), sent(&w, SIM_WATCH));
    facts_fixture_end(&w);
}

/* What happened meanwhile is not known, so what was known before does not count. */
TEST(external_facts_knows_nothing_by_a_watch_that_was_cut)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, "n");
    facts_fixture_run(&w, SECONDS(1));
    CHECK(fact_of(&w, "n").live);
    add_pod(&w, "one", "n", picky);
    sim_api_disconnect(r->api);
    facts_fixture_run(&w, MSECONDS(400));
    CHECK(!fact_of(&w, "n").known);
    CHECK_EQ(r->change_n, 2);
    facts_fixture_run(&w, SECONDS(5));
    CHECK(fact_of(&w, "n").live && fact_of(&w, "n").has);
    CHECK_EQ(r->change_n, 3);
    facts_fixture_end(&w);
}

TEST(external_facts_lists_again_when_the_watch_has_expired)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    add_pod(&w, "one", "n", picky);
    facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, "n");
    facts_fixture_run(&w, SECONDS(1));
    CHECK(fact_of(&w, "n").has);
    remove_pod(&w, "one");
    apiserver_restart(w.server); /* and what it remembers begins now */
    apiserver_compact(w.server);
    facts_fixture_run(&w, MINUTES(15));
    CHECK(fact_of(&w, "n").live && !fact_of(&w, "n").has);
    facts_fixture_end(&w);
}

/* Everybody is looked at once; those that were wanted first stay watched, and the others keep their
 * answers without another request. */
TEST(external_facts_watches_some_nodes_and_knows_all)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    for (int i = 0; i < 100; i++) {
        facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, numbered(&w, i));
    }
    facts_fixture_run(&w, SECONDS(10));
    CHECK_EQ(live_of(&w, 100), FACTS_WATCHES_MAX);
    CHECK_EQ(live_of(&w, FACTS_WATCHES_MAX - 8), FACTS_WATCHES_MAX - 8);
    CHECK_EQ(sent(&w, SIM_WATCH), 100);
    facts_fixture_run(&w, MINUTES(4)); /* sooner than a watch is renewed */
    for (int i = 0; i < 100; i++) {
        facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR,
                           numbered(&w, i)); /* a kept answer is one */
    }
    facts_fixture_run(&w, SECONDS(10));
    CHECK_EQ(sent(&w, SIM_WATCH), 100);
    facts_fixture_end(&w);
}

TEST(external_facts_gives_a_free_place_to_who_has_waited_longest)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    for (int i = 0; i < 40; i++) {
        facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, numbered(&w, i));
    }
    facts_fixture_run(&w, SECONDS(10));
    int first = 0;
    while (fact_of(&w, numbered(&w, first)).live) {
        first++;
    }
    add_pod(&w, "one", numbered(&w, first), picky);
    facts_fixture_run(&w, HOURS(1));
    CHECK(!fact_of(&w, numbered(&w, first)).has); /* as it was when it was looked at */
    external_facts_drop_pods(r->external, STR("n000"));
    CHECK(!external_facts_wants_pods(r->external, STR("n000")));
    facts_fixture_run(&w, SECONDS(1));
    CHECK(!fact_of(&w, "n000").known);
    CHECK(fact_of(&w, numbered(&w, first)).live && fact_of(&w, numbered(&w, first)).has);
    external_facts_drop_pods(r->external, STR("nobody")); /* was never wanted */
    facts_fixture_end(&w);
}

static void want_live(struct facts_replica *r, const char *node)
{
    external_facts_want(r->external, &(struct facts_want){ .kind = FACTS_AFFINITY,
                                                           .index = CHECK_AT_NEAR,
                                                           .node = str_from(node),
                                                           .live = true });
}

/* However many must be live, each of them is in its turn; and it is not the other ones that wait
 * for thousands of nodes to be looked at. */
TEST(external_facts_makes_room_for_whoever_must_be_live)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    for (int i = 0; i < 80; i++) {
        facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, numbered(&w, i));
    }
    facts_fixture_run(&w, SECONDS(10));
    for (int i = 79; i >= 0; i--) {
        want_live(r, numbered(&w, i));
        facts_fixture_run(&w, SECONDS(1));
        CHECK(fact_of(&w, numbered(&w, i)).live);
        CHECK_EQ(live_of(&w, 80), FACTS_WATCHES_MAX);
    }
    for (int i = 100; i < 900; i++) {
        facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, numbered(&w, i));
    }
    CHECK(!fact_of(&w, "n079").live);
    want_live(r, "n079");
    while (!fact_of(&w, "n079").live) {
        CHECK(virtual_loop_step(w.time, SECONDS(600)));
    }
    CHECK(!fact_of(&w, "n899").known);
    facts_fixture_end(&w);
}

TEST(external_facts_forgets_the_pods_of_all_nodes)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    for (int i = 0; i < 50; i++) {
        facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, numbered(&w, i));
    }
    (void)virtual_loop_step(w.time, SECONDS(1));
    facts_fixture_run(&w, MSECONDS(30)); /* in the middle of it */
    external_facts_drop_all_pods(r->external);
    external_facts_check(r->external);
    uint64_t before = sim_api_sent(r->api);
    facts_fixture_run(&w, HOURS(1));
    CHECK_EQ(sim_api_sent(r->api), before);
    CHECK(!fact_of(&w, "n000").known);
    facts_fixture_end(&w);
}

/* Whatever the network does, what a watch says is what is on the server, once all has arrived; and
 * everybody is known in the end. */
PROPERTY(external_facts_knows_the_pods_as_they_are)
{
    struct facts_fixture w;
    bool has[48] = { 0 };
    bool wanted[48] = { 0 };
    facts_fixture_begin_with(&w, rng_next(rng), true);
    struct facts_replica *r = &w.replicas[0];
    w.faults.watch_cut = 200;
    w.faults.watch_life = SECONDS(20);
    w.faults.error_503 = 50;
    w.faults.request_lost = 20;
    for (int step = 0; step < 60; step++) {
        uint32_t i = rng_below(rng, ARRAY_LEN(has));
        const char *node = numbered(&w, (int)i);
        switch (rng_below(rng, 4)) {
        case 0:
            if (has[i]) {
                remove_pod(&w, node);
            } else {
                add_pod(&w, node, node, picky);
            }
            has[i] = !has[i];
            break;
        case 1:
            external_facts_drop_pods(r->external, str_from(node));
            wanted[i] = false;
            break;
        default:
            want_live(r, node);
            wanted[i] = true;
        }
        facts_fixture_run(&w, MSECONDS(rng_below(rng, 800)));
    }
    w.faults.calm = true;
    facts_fixture_run(&w, MINUTES(10));
    uint32_t live = 0;
    uint32_t count = 0;
    for (int i = 0; i < (int)ARRAY_LEN(has); i++) {
        struct facts_affinity a = fact_of(&w, numbered(&w, i));
        CHECK_EQ(a.known, wanted[i]);
        CHECK(!a.live || a.has == has[i]);
        live += a.live ? 1 : 0;
        count += wanted[i] ? 1 : 0;
    }
    CHECK_EQ(live, MIN(count, FACTS_WATCHES_MAX));
    facts_fixture_end(&w);
}
