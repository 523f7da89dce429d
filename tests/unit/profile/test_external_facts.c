#include "profile/external_facts.h"

#include <math.h>

#include "tests/check.h"
#include "tests/lib/external_facts_fixture.h"

/* ── Prometheus ────────────────────────────────────────────────────────────────────────────── */

TEST(external_facts_asks_prometheus_as_its_own_client_does)
{
    struct facts_fixture w;
    facts_fixture_begin(&w);
    facts_fixture_want(&w.replicas[0], FACTS_PROMETHEUS, CHECK_AT_LOAD, "");
    CHECK_EQ(w.inbox.arrived, 0); /* nothing goes out from inside a call */
    facts_fixture_run(&w, SECONDS(1));
    const struct inbox_message *m = inbox_at(&w.inbox, 0);
    CHECK_STR(m->request.method, "POST");
    CHECK_STR(m->request.url, "http://prom/p/api/v1/query");
    CHECK_STR(inbox_header(m, "Content-Type"), "application/x-www-form-urlencoded");
    CHECK_STR(m->request.body, "query=up%7Ba%3D%22b+c%22%7D&time=1767323045.25");
    CHECK_EQ(m->request.timeout, SECONDS(30));
    struct facts_prometheus p = facts_prometheus(facts_fixture_facts(&w), CHECK_AT_LOAD);
    CHECK(p.known && p.error.n == 0 && p.value == 2.5);
    CHECK_EQ(p.asked, FACTS_FIXTURE_WALL);
    CHECK_EQ(w.replicas[0].changed, 1u << CHECK_AT_LOAD);
    facts_fixture_end(&w);
}

TEST(external_facts_asks_by_get_when_post_is_not_allowed)
{
    struct facts_fixture w;
    facts_fixture_begin(&w);
    w.prometheus.no_post = true;
    w.prometheus.dead_is_back = true;
    facts_fixture_want(&w.replicas[0], FACTS_PROMETHEUS, CHECK_AT_DEAD, "");
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(w.inbox.arrived, 2);
    CHECK_STR(inbox_at(&w.inbox, 0)->request.url, "http://dead/api/v1/query?x=1");
    const struct inbox_message *m = inbox_at(&w.inbox, 1);
    CHECK_STR(m->request.method, "GET");
    CHECK_STR(m->request.url, "http://dead/api/v1/query?x=1&query=up&time=1767323045.25");
    CHECK_EQ(m->request.body.n, 0);
    CHECK(facts_prometheus(facts_fixture_facts(&w), CHECK_AT_DEAD).value == 2.5);
    facts_fixture_end(&w);
}

#define VECTOR(result)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" result "]}}"
#define ELEMENT(value) "{\"metric\":{},\"value\":[1.5,\"" value "\"]}"

TEST(external_facts_reads_what_prometheus_says)
{
    static const struct {
        const char *body;
        int status;
        double value;
        const char *error;
    } cases[] = {
        { VECTOR(ELEMENT("1e3")), 200, 1000, "" },
        { VECTOR(ELEMENT("+Inf")), 200, INFINITY, "" },
        { VECTOR(ELEMENT("NaN")), 200, NAN, "" },
        { VECTOR(""), 200, 0, "result does not contain exactly one element" },
        { VECTOR(ELEMENT("1") "," ELEMENT("2")), 200, 0,
          "result does not contain exactly one element" },
        { "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"1\"]}}", 200,
          0, "result from prometheus is not a vector" },
        { "{\"status\":\"success\"}", 200, 0, "result from prometheus is not a vector" },
        { VECTOR(ELEMENT("one")), 200, 0, "result from prometheus has no value that is a number" },
        { VECTOR("{\"histogram\":[1,{}]}"), 200, 0,
          "result from prometheus has no value that is a number" },
        { VECTOR("{\"value\":[]}"), 200, 0,
          "result from prometheus has no value that is a number" },
        { "<html>", 200, 0, "the answer of prometheus is no JSON object" },
        { "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"slow\"}", 200, 0,
          "prometheus answered 200: timeout: slow" },
        { "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"no query\"}", 400, 0,
          "prometheus answered 400: bad_data: no query" },
        { "not here", 404, 0, "prometheus answered 404" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct facts_fixture w;
        check_case((int64_t)i);
        facts_fixture_begin(&w);
        w.prometheus.body = cases[i].body;
        w.prometheus.status = cases[i].status;
        facts_fixture_want(&w.replicas[0], FACTS_PROMETHEUS, CHECK_AT_LOAD, "");
        facts_fixture_run(&w, SECONDS(1) / 4);
        struct facts_prometheus p = facts_prometheus(facts_fixture_facts(&w), CHECK_AT_LOAD);
        CHECK(p.known);
        CHECK_STR(p.error, cases[i].error);
        CHECK(p.value == cases[i].value || (isnan(p.value) && isnan(cases[i].value)));
        facts_fixture_end(&w);
    }
    check_case(-1);
}

TEST(external_facts_passes_warnings_on)
{
    struct facts_fixture w;
    facts_fixture_begin(&w);
    w.prometheus.body = "{\"status\":\"success\",\"warnings\":[\"old\",\"slow\"],\"data\":{"
                        "\"resultType\":\"vector\",\"result\":[" ELEMENT("1") "]}}";
    facts_fixture_want(&w.replicas[0], FACTS_PROMETHEUS, CHECK_AT_LOAD, "");
    facts_fixture_run(&w, SECONDS(1));
    struct facts_prometheus p = facts_prometheus(facts_fixture_facts(&w), CHECK_AT_LOAD);
    CHECK_EQ(p.warning_n, 2);
    CHECK_STR(p.warnings[1], "slow");
    facts_fixture_end(&w);
}

TEST(external_facts_asks_once_however_many_want_it_and_tells_each_answer)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    for (int i = 0; i < 100; i++) {
        facts_fixture_want(r, FACTS_PROMETHEUS, CHECK_AT_LOAD, "");
    }
    facts_fixture_run(&w, SECONDS(60));
    CHECK_EQ(w.inbox.arrived, 1); /* an answer that nobody wants again is not refreshed */
    CHECK_EQ(r->change_n, 1);
    facts_fixture_want(r, FACTS_PROMETHEUS, CHECK_AT_LOAD, "");
    facts_fixture_run(&w, SECONDS(60));
    CHECK_EQ(w.inbox.arrived, 2);
    CHECK_EQ(r->change_n, 2); /* the same value, but the old one did not count any more */
    CHECK_EQ(facts_prometheus(facts_fixture_facts(&w), CHECK_AT_LOAD).asked,
             FACTS_FIXTURE_WALL + SECONDS(60));
    w.prometheus.body = VECTOR(ELEMENT("3"));
    facts_fixture_want(r, FACTS_PROMETHEUS, CHECK_AT_LOAD, "");
    facts_fixture_run(&w, SECONDS(1));
    CHECK_EQ(r->change_n, 3);
    facts_fixture_end(&w);
}

TEST(external_facts_backs_off_from_the_dead_and_serves_the_others)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    facts_fixture_want(r, FACTS_PROMETHEUS, CHECK_AT_DEAD, "");
    facts_fixture_run(&w, MSECONDS(400));
    CHECK(!facts_prometheus(facts_fixture_facts(&w), CHECK_AT_DEAD)
               .known); /* one failure is nobody's error */
    facts_fixture_want(r, FACTS_PROMETHEUS, CHECK_AT_LOAD, "");
    facts_fixture_run(&w, MSECONDS(400));
    CHECK(facts_prometheus(facts_fixture_facts(&w), CHECK_AT_LOAD).known);
    facts_fixture_run(&w, SECONDS(20));
    struct facts_prometheus p = facts_prometheus(facts_fixture_facts(&w), CHECK_AT_DEAD);
    CHECK(p.known && str_starts(p.error, STR("prometheus cannot be asked: ")));
    uint64_t asked = w.inbox.arrived;
    CHECK(asked >= 4 && asked <= 8); /* 1, 2, 4, 8 s apart, less some jitter */
    w.prometheus.dead_is_back = true;
    facts_fixture_run(&w, SECONDS(16));
    p = facts_prometheus(facts_fixture_facts(&w), CHECK_AT_DEAD);
    CHECK(p.known && p.error.n == 0);
    CHECK((r->changed & (1u << CHECK_AT_DEAD)) != 0);
    asked = w.inbox.arrived;
    facts_fixture_run(&w, HOURS(1));
    CHECK_EQ(w.inbox.arrived, asked); /* nothing polls */
    CHECK_EQ(virtual_loop_armed(w.time), 0);
    facts_fixture_end(&w);
}

TEST(external_facts_stops_when_nobody_wants_it_any_more)
{
    struct facts_fixture w;
    facts_fixture_begin(&w);
    facts_fixture_want(&w.replicas[0], FACTS_PROMETHEUS, CHECK_AT_DEAD, "");
    facts_fixture_run(&w, HOURS(1));
    uint64_t asked = w.inbox.arrived;
    CHECK(asked < 12);
    CHECK(facts_prometheus(facts_fixture_facts(&w), CHECK_AT_DEAD).error.n > 0);
    facts_fixture_run(&w, HOURS(10));
    CHECK_EQ(w.inbox.arrived, asked);
    facts_fixture_end(&w);
}

TEST(external_facts_without_a_wire_says_so)
{
    struct facts_fixture w;
    facts_fixture_begin_with(&w, 7, false);
    facts_fixture_want(&w.replicas[0], FACTS_PROMETHEUS, CHECK_AT_LOAD, "");
    facts_fixture_run(&w, SECONDS(1));
    CHECK_STR(facts_prometheus(facts_fixture_facts(&w), CHECK_AT_LOAD).error,
              "prometheus cannot be asked from here");
    facts_fixture_end(&w);
}

TEST(external_facts_waits_out_a_server_that_is_away)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    w.faults.down = true;
    facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, "n");
    facts_fixture_want(r, FACTS_STAGGER, CHECK_AT_ONE, "n");
    facts_fixture_run(&w, SECONDS(40));
    CHECK(str_starts(facts_affinity(facts_fixture_facts(&w), STR("n")).error,
                     STR("look at the pods of node 'n': ")));
    w.faults.down = false;
    facts_fixture_run(&w, MINUTES(2));
    CHECK_EQ(facts_affinity(facts_fixture_facts(&w), STR("n")).error.n, 0);
    CHECK(facts_affinity(facts_fixture_facts(&w), STR("n")).live);
    CHECK(facts_stagger(facts_fixture_facts(&w), CHECK_AT_ONE, 0).known);
    CHECK_EQ(facts_stagger(facts_fixture_facts(&w), CHECK_AT_ONE, 0).error.n, 0);
    facts_fixture_end(&w);
}

/* ── configuration ─────────────────────────────────────────────────────────────────────────── */

TEST(external_facts_keeps_the_answers_of_what_stays_in_the_configuration)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    facts_fixture_want(r, FACTS_PROMETHEUS, CHECK_AT_LOAD, "");
    facts_fixture_want(r, FACTS_STAGGER, CHECK_AT_ONE, "n");
    facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, "n");
    facts_fixture_run(&w, SECONDS(1));
    struct config config = facts_fixture_load(
        &w, "intervals: {requeue: 60s}\n"
            "instances: {check: [{type: prometheusInstant, name: dead, config: {url: "
            "'http://prom', query: up, expr: value}}, {type: prometheusInstant, name: load, "
            "config: {url: 'http://prom/p/', query: 'up{a=\"b c\"}', expr: value}}]}");
    facts_fixture_want(r, FACTS_PROMETHEUS, CHECK_AT_DEAD, "");
    external_facts_configure(r->external, &config);
    CHECK(
        !facts_prometheus(facts_fixture_facts(&w), 0).known); /* another URL is another question */
    CHECK(facts_prometheus(facts_fixture_facts(&w), 1).value == 2.5);
    CHECK(!facts_stagger(facts_fixture_facts(&w), CHECK_AT_ONE, 0).known);
    CHECK(!facts_affinity(facts_fixture_facts(&w), STR("n")).known);
    r->changed = 0;
    w.prometheus.body = VECTOR(ELEMENT("9"));
    facts_fixture_want(r, FACTS_PROMETHEUS, 1, "");
    facts_fixture_run(&w, SECONDS(1));
    CHECK(facts_prometheus(facts_fixture_facts(&w), 1).value == 9);
    CHECK_EQ(r->changed, 1u << 1);
    facts_fixture_end(&w);
}

TEST(external_facts_ends_in_the_middle_of_everything)
{
    struct facts_fixture w;
    struct facts_replica *r = &w.replicas[0];
    facts_fixture_begin(&w);
    facts_fixture_want(r, FACTS_PROMETHEUS, CHECK_AT_LOAD, "");
    facts_fixture_want(r, FACTS_PROMETHEUS, CHECK_AT_DEAD, "");
    facts_fixture_want(r, FACTS_STAGGER, CHECK_AT_TWO, "n");
    facts_fixture_want(r, FACTS_AFFINITY, CHECK_AT_NEAR, "n");
    (void)virtual_loop_step(w.time, 0);
    CHECK(sim_api_in_flight(r->api) > 0);
    facts_fixture_end(&w);
    external_facts_free(NULL);
}
