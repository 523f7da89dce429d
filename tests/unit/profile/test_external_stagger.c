#include "profile/external_facts.h"

#include "tests/check.h"
#include "tests/lib/external_facts_fixture.h"

static const struct jval *lease(struct facts_fixture *w, const char *name)
{
    const struct jval *found = apiserver_find(w->server, STR("coordination.k8s.io"), STR("leases"),
                                              STR("default"), str_from(name));
    CHECK(found != NULL);
    return jval_get(found, STR("spec"));
}

static uint64_t lease_requests(struct facts_fixture *w)
{
    uint32_t n = 0;
    uint64_t sum = 0;
    const struct sim_api_count *tallies = sim_api_counts(w->replicas[0].api, &n);
    for (uint32_t i = 0; i < n; i++) {
        for (int verb = 0; verb < SIM_VERBS; verb++) {
            sum += str_eq(tallies[i].resource, STR("leases")) ? tallies[i].sent[verb] : 0;
        }
    }
    return sum;
}

TEST(external_facts_makes_a_missing_lease_as_the_original_does)
{
    struct facts_fixture w;
    facts_fixture_begin(&w);
    facts_fixture_want(&w.replicas[0], FACTS_STAGGER, CHECK_AT_ONE, "n1");
    facts_fixture_run(&w, SECONDS(1));
    const struct jval *spec = lease(&w, "slow-0");
    int64_t duration = 0;
    CHECK_STR(jval_str(jval_get(spec, STR("holderIdentity"))), "n1");
    CHECK_EQ(jval_i64(jval_get(spec, STR("leaseDurationSeconds")), &duration), true);
    CHECK_EQ(duration, 600);
    struct str renewed = jval_str(jval_get(spec, STR("renewTime")));
    CHECK_STR(str_sub(renewed, 0, 20), "2026-01-02T02:44:05."); /* twenty minutes before */
    CHECK_EQ(renewed.n, 27);
    CHECK_STR(jval_str(jval_get(spec, STR("acquireTime"))), renewed);
    CHECK(jval_get(spec, STR("leaseTransitions")) == NULL);
    struct facts_lease l = facts_stagger(facts_fixture_facts(&w), CHECK_AT_ONE, 0);
    CHECK(facts_lease_is_free(&l, FACTS_FIXTURE_WALL + SECONDS(1)));
    CHECK_EQ(w.replicas[0].changed, 1u << CHECK_AT_ONE);
    CHECK_EQ(lease_requests(&w), 2);
    facts_fixture_end(&w);
}

TEST(external_facts_takes_a_lease_for_one_node_at_a_time)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    int64_t transitions = -1;
    facts_fixture_begin(&w);
    facts_fixture_want(r, FACTS_STAGGER, CHECK_AT_ONE, "n1");
    facts_fixture_run(&w, SECONDS(1));
    (void)stagger_take(r->external, CHECK_AT_ONE, STR("n2"), facts_fixture_on_take, r);
    struct facts_lease l = facts_stagger(facts_fixture_facts(&w), CHECK_AT_ONE, 0);
    CHECK_STR(l.holder, "n2"); /* from the call on */
    (void)stagger_take(r->external, CHECK_AT_ONE, STR("n3"), facts_fixture_on_take, r);
    facts_fixture_run(&w, MSECONDS(1));
    CHECK_EQ(r->done, 1);
    CHECK_EQ(r->code, ERR_CONFLICT);
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->done, 2);
    CHECK_EQ(r->code, 0);
    const struct jval *spec = lease(&w, "slow-0");
    CHECK_STR(jval_str(jval_get(spec, STR("holderIdentity"))), "n2");
    CHECK_STR(jval_str(jval_get(spec, STR("renewTime"))), "2026-01-02T03:04:06.250000Z");
    CHECK_STR(jval_str(jval_get(spec, STR("acquireTime"))), "2026-01-02T03:04:06.250000Z");
    CHECK(jval_i64(jval_get(spec, STR("leaseTransitions")), &transitions));
    CHECK_EQ(transitions, 0);
    l = facts_stagger(facts_fixture_facts(&w), CHECK_AT_ONE, 0);
    CHECK_STR(l.holder, "n2");
    CHECK_EQ(facts_lease_free_at(&l, FACTS_FIXTURE_WALL), FACTS_FIXTURE_WALL + SECONDS(601) + 1);

    facts_fixture_run(&w, SECONDS(600)); /* its time is over without a further look */
    (void)stagger_take(r->external, CHECK_AT_ONE, STR("n3"), facts_fixture_on_take, r);
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->done, 3);
    CHECK_EQ(r->code, 0);
    spec = lease(&w, "slow-0");
    CHECK_STR(jval_str(jval_get(spec, STR("holderIdentity"))), "n3");
    CHECK(jval_i64(jval_get(spec, STR("leaseTransitions")), &transitions));
    CHECK_EQ(transitions, 1);
    CHECK_EQ(w.taken_early, 0);
    facts_fixture_end(&w);
}

TEST(external_facts_lets_as_many_go_as_there_are_leases)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    facts_fixture_want(r, FACTS_STAGGER, CHECK_AT_TWO, "n1");
    facts_fixture_run(&w, SECONDS(1));
    CHECK(!facts_stagger(facts_fixture_facts(&w), CHECK_AT_TWO, 1)
               .known); /* the first is free: enough to know */
    (void)stagger_take(r->external, CHECK_AT_TWO, STR("n1"), facts_fixture_on_take, r);
    facts_fixture_want(r, FACTS_STAGGER, CHECK_AT_TWO, "n2"); /* while the first is being taken */
    facts_fixture_run(&w, MSECONDS(200));
    struct facts_lease second = facts_stagger(facts_fixture_facts(&w), CHECK_AT_TWO, 1);
    CHECK(facts_lease_is_free(&second, loop_wall(r->loop)));
    (void)stagger_take(r->external, CHECK_AT_TWO, STR("n2"), facts_fixture_on_take, r);
    facts_fixture_run(&w, MSECONDS(200));
    CHECK_EQ(r->done, 2);
    CHECK_EQ(r->code, 0);
    CHECK_STR(jval_str(jval_get(lease(&w, "wide-0"), STR("holderIdentity"))), "n1");
    CHECK_STR(jval_str(jval_get(lease(&w, "wide-1"), STR("holderIdentity"))), "n2");
    (void)stagger_take(r->external, CHECK_AT_TWO, STR("n3"), facts_fixture_on_take, r);
    facts_fixture_run(&w, MSECONDS(200));
    CHECK_EQ(r->code, ERR_CONFLICT);
    facts_fixture_end(&w);
}

TEST(external_facts_finds_out_that_somebody_was_faster)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    facts_fixture_want(r, FACTS_STAGGER, CHECK_AT_ONE, "n1");
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(facts_fixture_request(&w, "PATCH",
                                   "/apis/coordination.k8s.io/v1/namespaces/default/leases/slow-0",
                                   "{\"spec\":{\"holderIdentity\":\"other\","
                                   "\"renewTime\":\"2026-01-02T03:04:06.000000Z\"}}"),
             200);
    (void)stagger_take(r->external, CHECK_AT_ONE, STR("n1"), facts_fixture_on_take, r);
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->done, 1);
    CHECK_EQ(r->code, ERR_CONFLICT);
    struct facts_lease l = facts_stagger(facts_fixture_facts(&w), CHECK_AT_ONE, 0);
    CHECK_STR(l.holder, "other"); /* read again without being asked */
    CHECK(!facts_lease_is_free(&l, loop_wall(r->loop)));
    /* And one that was deleted meanwhile is made again. */
    CHECK_EQ(facts_fixture_request(
                 &w, "DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases/slow-0", ""),
             200);
    facts_fixture_run(&w, SECONDS(700));
    (void)stagger_take(r->external, CHECK_AT_ONE, STR("n1"), facts_fixture_on_take, r);
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->code, ERR_CONFLICT);
    l = facts_stagger(facts_fixture_facts(&w), CHECK_AT_ONE, 0);
    CHECK(facts_lease_is_free(&l, loop_wall(r->loop)));
    facts_fixture_end(&w);
}

TEST(external_facts_looks_whether_an_unanswered_take_went_through)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    facts_fixture_want(r, FACTS_STAGGER, CHECK_AT_ONE, "n1");
    facts_fixture_run(&w, SECONDS(1));
    w.faults.reply_lost = 1000;
    (void)stagger_take(r->external, CHECK_AT_ONE, STR("n1"), facts_fixture_on_take, r);
    facts_fixture_run(&w, SECONDS(1));
    w.faults.reply_lost = 0;
    CHECK_EQ(r->done, 0);
    facts_fixture_run(&w, MINUTES(2));
    CHECK_EQ(r->done, 1);
    CHECK_EQ(r->code, 0);
    CHECK_STR(jval_str(jval_get(lease(&w, "slow-0"), STR("holderIdentity"))), "n1");

    /* One that never arrived is told as what it is, and the lease is free again. */
    facts_fixture_run(&w, SECONDS(700));
    w.faults.request_lost = 1000;
    (void)stagger_take(r->external, CHECK_AT_ONE, STR("n2"), facts_fixture_on_take, r);
    facts_fixture_run(&w, SECONDS(1));
    w.faults.request_lost = 0;
    facts_fixture_run(&w, MINUTES(2));
    CHECK_EQ(r->done, 2);
    CHECK(r->code != 0 && r->code != ERR_CONFLICT);
    struct facts_lease l = facts_stagger(facts_fixture_facts(&w), CHECK_AT_ONE, 0);
    CHECK_STR(l.holder, "n1");
    CHECK(facts_lease_is_free(&l, loop_wall(r->loop)));
    facts_fixture_end(&w);
}

TEST(external_facts_leaves_a_foreign_lease_alone)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    CHECK_EQ(facts_fixture_request(&w, "POST",
                                   "/apis/coordination.k8s.io/v1/namespaces/default/leases",
                                   "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                                   "\"metadata\":{\"name\":\"wide-0\"},\"spec\":{}}"),
             201);
    facts_fixture_want(r, FACTS_STAGGER, CHECK_AT_TWO, "n1");
    facts_fixture_run(&w, SECONDS(1));
    struct facts_lease l = facts_stagger(facts_fixture_facts(&w), CHECK_AT_TWO, 0);
    CHECK(l.known && !l.absent && !l.complete);
    l = facts_stagger(facts_fixture_facts(&w), CHECK_AT_TWO,
                      1); /* what comes behind it is read, too */
    CHECK(l.known && l.complete);
    (void)stagger_take(r->external, CHECK_AT_TWO, STR("n1"), facts_fixture_on_take, r);
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->code, 0);
    CHECK(jval_get(lease(&w, "wide-0"), STR("holderIdentity")) == NULL);
    CHECK_STR(jval_str(jval_get(lease(&w, "wide-1"), STR("holderIdentity"))), "n1");
    facts_fixture_end(&w);
}

TEST(external_facts_refuses_to_take_what_the_configuration_has_no_more)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    (void)stagger_take(r->external, CHECK_AT_LOAD, STR("n1"), facts_fixture_on_take, r);
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->code, ERR_CONFLICT);
    (void)stagger_take(r->external, 99, STR("n1"), facts_fixture_on_take, r);
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->done, 2);
    CHECK_EQ(r->code, ERR_CONFLICT);
    CHECK_EQ(sim_api_sent(r->api), 0);
    facts_fixture_end(&w);
}

TEST(external_facts_says_why_a_lease_cannot_be_had)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    struct config config = facts_fixture_load(
        &w, "intervals: {requeue: 60s}\n"
            "instances: {check: [{type: stagger, name: a, config: {duration: 1m, leaseName: "
            "l, leaseNamespace: nowhere}}, {type: stagger, name: b, config: {duration: 1m, "
            "leaseName: l, leaseNamespace: default, parallel: 2000}}, {type: stagger, name: "
            "c, config: {duration: 1m, leaseName: l, leaseNamespace: default, parallel: 0}}]}");
    external_facts_configure(r->external, &config);
    facts_fixture_want(r, FACTS_STAGGER, 0, "n1");
    facts_fixture_want(r, FACTS_STAGGER, 1, "n1");
    facts_fixture_want(r, FACTS_STAGGER, 2, "n1");
    facts_fixture_run(&w, MSECONDS(400));
    CHECK_STR(facts_stagger(facts_fixture_facts(&w), 0, 0).error,
              "lease nowhere/l-0: the server answered 404: namespaces \"nowhere\" not found");
    CHECK_STR(facts_stagger(facts_fixture_facts(&w), 1, 0).error,
              "parallel is 2000, at most 1000 are possible");
    CHECK(!facts_stagger(facts_fixture_facts(&w), 2, 0).known);
    facts_fixture_end(&w);
}

TEST(stagger_take_can_be_given_up)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    facts_fixture_want(r, FACTS_STAGGER, CHECK_AT_ONE, "n1");
    facts_fixture_run(&w, SECONDS(1));
    struct stagger_take *t =
        stagger_take(r->external, CHECK_AT_ONE, STR("n1"), facts_fixture_on_take, r);
    stagger_take_cancel(t);
    CHECK(!facts_stagger(facts_fixture_facts(&w), CHECK_AT_ONE, 0).known);
    facts_fixture_run(&w, SECONDS(1));
    CHECK(facts_stagger(facts_fixture_facts(&w), CHECK_AT_ONE, 0).known);
    /* A configuration without the stagger does not end what is under way. */
    (void)stagger_take(r->external, CHECK_AT_ONE, STR("n1"), facts_fixture_on_take, r);
    struct config config = facts_fixture_load(&w, "intervals: {requeue: 60s}");
    external_facts_configure(r->external, &config);
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->done, 1);
    CHECK_EQ(r->code, 0);
    CHECK_STR(jval_str(jval_get(lease(&w, "slow-0"), STR("holderIdentity"))), "n1");
    /* Nor does an end of everything, which says nothing to anybody. */
    config = facts_fixture_load(&w, facts_fixture_checks);
    external_facts_configure(r->external, &config);
    facts_fixture_want(r, FACTS_STAGGER, CHECK_AT_TWO, "n1");
    facts_fixture_run(&w, SECONDS(1));
    (void)stagger_take(r->external, CHECK_AT_TWO, STR("n1"), facts_fixture_on_take, r);
    facts_fixture_end(&w);
    CHECK_EQ(r->done, 1);
}

static void take_at_random(struct rng *rng, struct facts_replica *r, uint32_t *pending)
{
    uint32_t index = rng_chance(rng, 500) ? CHECK_AT_ONE : CHECK_AT_TWO;
    char node[] = { 'n', (char)('0' + rng_below(rng, 5)), '\0' };
    usec_t wall = loop_wall(r->loop);
    const struct facts *facts = external_facts_facts(r->external);
    for (uint32_t i = 0; i < 2; i++) {
        struct facts_lease l = facts_stagger(facts, index, i);
        if (facts_lease_is_free(&l, wall)) {
            (void)stagger_take(r->external, index, str_from(node), facts_fixture_on_take, r);
            (*pending)++;
            return;
        }
    }
    facts_fixture_want(r, FACTS_STAGGER, index, node);
}

/* Two controllers, a bad network, everybody as greedy as can be. */
PROPERTY(external_facts_never_takes_a_lease_before_its_time)
{
    struct facts_fixture w;
    uint32_t takes[2] = { 0 };
    facts_fixture_begin_with(&w, rng_next(rng), true);
    facts_fixture_add_replica(&w, &w.replicas[1], true);
    faults_randomize(&w.faults);
    for (int step = 0; step < 60; step++) {
        uint32_t i = rng_below(rng, 2);
        take_at_random(rng, &w.replicas[i], &takes[i]);
        facts_fixture_run(&w, rng_usec(rng, 0, rng_chance(rng, 100) ? SECONDS(300) : SECONDS(2)));
    }
    w.faults.calm = true;
    w.faults.down = false;
    w.faults.partitioned = false;
    facts_fixture_run(&w, MINUTES(10));
    CHECK_EQ(w.taken_early, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(w.replicas[i].done, takes[i]); /* each is answered */
    }
    facts_fixture_end(&w);
}
