#include "operation/gate_question.h"
#include "sandbox/sim/outbound.h"
#include "tests/unit/operation/operations_fixture.h"

#define ONE_SHOT                                                                                   \
    "  operations:\n"                                                                              \
    "  - {name: say, type: one-shot, script: echo hello}\n"
#define URL "http://prom.example:9090/base"

/* A server that answers as the test says. */
struct story {
    struct operations_fixture x;
    struct inbox inbox;
    struct outbound *outbound;
    int status;
    const char *body;
    int status_v1; /* of the first form of the question; 0: as `status` */
};

static void story_answer(void *ctx, const struct inbox_message *message,
                         struct inbox_answer *answer)
{
    struct story *s = ctx;
    bool first = str_contains(message->request.url, STR("/api/v1/alerts")) ||
                 str_eq(message->request.method, STR("POST"));
    answer->status = first && s->status_v1 != 0 ? s->status_v1 : s->status;
    answer->body = str_from(s->body);
}

static void story_begin(struct story *s, const char *allowed)
{
    *s = (struct story){ .status = 200, .body = "{}" };
    operations_begin(&s->x, 1);
    operations_crash(&s->x);
    inbox_init(&s->inbox);
    s->inbox.script = story_answer;
    s->inbox.ctx = s;
    s->outbound = sim_outbound_new(virtual_loop_root(s->x.time), &s->inbox, NULL);
    s->x.config.outbound = s->outbound;
    s->x.config.allow_urls = str_from(allowed);
    operations_start(&s->x);
    operations_run(&s->x, SECONDS(5));
}

static void story_end(struct story *s)
{
    operations_crash(&s->x);
    sim_outbound_free(s->outbound);
    inbox_done(&s->inbox);
    operations_start(&s->x); /* operations_end ends it */
    operations_end(&s->x);
}

static void story_maintain(struct story *s, const char *gate)
{
    operations_maintain(
        &s->x, "hello",
        arena_printf(&s->x.memory, "  rollout: {gates: {beforeNode: [%s]}}\n" ONE_SHOT, gate).p);
}

static void check_has(struct str text, const char *part)
{
    if (!str_contains(text, str_from(part))) {
        check_fail(__FILE__, __LINE__, "'" STR_FMT "' has no '%s'", STR_ARG(text), part);
    }
}

struct gate_case {
    const char *gate;
    int status_v1;
    int status;
    const char *body;
    const char *refusal; /* NULL: it passes */
};

static void check_cases(const struct gate_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct story s;
        check_case((int64_t)i);
        story_begin(&s, URL);
        s.status_v1 = cases[i].status_v1;
        s.status = cases[i].status;
        s.body = cases[i].body;
        story_maintain(&s, cases[i].gate);
        operations_run(&s.x, MINUTES(2));
        CHECK_EQ(s.x.jobs_made, cases[i].refusal == NULL ? 1 : 0);
        if (cases[i].refusal != NULL) {
            check_has(operations_text(&s.x, "hello", "status.gate.message"), cases[i].refusal);
        }
        story_end(&s);
    }
    check_case(-1);
}

#define ALERTS(more) "{alerts: {url: '" URL "'" more "}}"
#define ALERT(name, state) "{\"labels\":{\"alertname\":\"" name "\"},\"state\":\"" state "\"}"
#define V1(alerts) "{\"status\":\"success\",\"data\":{\"alerts\":[" alerts "]}}"
#define V2(name, state)                                                                            \
    "[{\"labels\":{\"alertname\":\"" name "\"},\"status\":{\"state\":\"" state "\"}}]"

TEST(remote_gates_wait_while_an_alert_counts)
{
    static const struct gate_case cases[] = {
        { ALERTS(""), 0, 200, V1(""), NULL },
        { ALERTS(""), 0, 200, V1(ALERT("Down", "firing")), "1 alerts are there: Down" },
        { ALERTS(""), 0, 200, V1(ALERT("Down", "pending")), NULL },
        { ALERTS(", firingOnly: false"), 0, 200, V1(ALERT("Down", "pending")), "Down" },
        { ALERTS(", ignore: '^Watch|Info$'"), 0, 200,
          V1(ALERT("Watchdog", "firing") "," ALERT("DiskInfo", "firing")), NULL },
        { ALERTS(", ignore: '^Watch'"), 0, 200,
          V1(ALERT("Watchdog", "firing") "," ALERT("Down", "firing")), "1 alerts are there: Down" },
        { ALERTS(", only: Etcd"), 0, 200, V1(ALERT("Down", "firing")), NULL },
        { ALERTS(", only: Etcd"), 0, 200, V1(ALERT("EtcdDown", "firing")), "EtcdDown" },
        { ALERTS(""), 404, 200, "[]", NULL }, /* an Alertmanager */
        { ALERTS(""), 410, 200, V2("Down", "active"), "Down" },
        { ALERTS(""), 404, 200, V2("Down", "suppressed"), NULL },
        { ALERTS(", honourSilences: false"), 404, 200, V2("Down", "suppressed"), "Down" },
        { ALERTS(""), 404, 500, "", "the server answered 500" },
        { ALERTS(""), 0, 500, "", "prometheus answered 500" },
        { ALERTS(""), 0, 302, "", "prometheus answered 302" }, /* nothing is followed */
        { ALERTS(""), 0, 200, "hello", "it cannot be asked" },
        { ALERTS(""), 0, 200, "{\"status\":\"success\",\"data\":{}}", "no list of alerts" },
    };
    check_cases(cases, ARRAY_LEN(cases));
}

#define QUERY(more) "{query: {url: '" URL "', query: up == 0" more "}}"
#define VECTOR(values)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" values "]}}"
#define SAMPLE(value) "{\"metric\":{},\"value\":[1,\"" value "\"]}"
#define SCALAR(value)                                                                              \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"" value "\"]}}"
#define COMPARE(op, value) ", compare: {op: " op ", value: '" value "'}"

TEST(remote_gates_wait_until_a_query_answers_as_expected)
{
    static const struct gate_case cases[] = {
        { QUERY(""), 0, 200, VECTOR(""), NULL },
        { QUERY(""), 0, 200, VECTOR(SAMPLE("0")), "the query has 1 results, and none is wanted" },
        { QUERY(", expect: NonEmpty"), 0, 200, VECTOR(SAMPLE("0")), NULL },
        { QUERY(", expect: NonEmpty"), 0, 200, VECTOR(""), "no result, and one is wanted" },
        { QUERY(COMPARE("Lt", "0.5")), 0, 200, VECTOR(SAMPLE("0.2") "," SAMPLE("0.4")), NULL },
        { QUERY(COMPARE("Lt", "0.5")), 0, 200, VECTOR(SAMPLE("0.2") "," SAMPLE("0.7")),
          "a value is 0.7, and Lt 0.5 is wanted" },
        { QUERY(COMPARE("Ge", "3")), 0, 200, SCALAR("3"), NULL },
        { QUERY(COMPARE("Gt", "3")), 0, 200, SCALAR("3"), "a value is 3" },
        { QUERY(COMPARE("Equals", "3")), 0, 200, SCALAR("NaN"), "a value is nan" },
        { QUERY(COMPARE("NotEquals", "3")), 0, 200, SCALAR("NaN"), "a value is nan" },
        { QUERY(COMPARE("Le", "3")), 0, 200, VECTOR(""), "no result to compare" },
        { QUERY(""), 405, 200, VECTOR(""), NULL }, /* it takes no POST */
        { QUERY(""), 0, 400,
          "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}",
          "prometheus answered 400: bad_data: parse error" },
        { QUERY(""), 0, 200, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\"}}",
          "a vector or a scalar is wanted" },
        { QUERY(""), 0, 0, "", "it cannot be asked" }, /* it says nothing */
    };
    check_cases(cases, ARRAY_LEN(cases));
}

TEST(remote_gates_ask_the_address_they_were_given)
{
    struct story s;
    story_begin(&s, URL);
    s.body = VECTOR(SAMPLE("1"));
    story_maintain(&s, "{query: {url: '" URL "/?dedup=1', query: 'a b'}, interval: 30s}");
    operations_run(&s.x, SECONDS(100));
    CHECK_EQ(s.inbox.n, 4); /* at once, and every 30 s */
    const struct inbox_message *m = inbox_at(&s.inbox, 0);
    CHECK_STR(m->request.url, URL "/api/v1/query?dedup=1");
    CHECK_STR(m->request.method, "POST");
    check_has(m->request.body, "query=a+b&time=1767571");
    CHECK_EQ(m->request.timeout, SECONDS(10));
    CHECK_EQ(m->request.reply_max, 1024 * 1024);
    operations_patch(&s.x, "hello", "{\"spec\":{\"suspend\":true}}");
    operations_run(&s.x, HOURS(1));
    CHECK_EQ(s.inbox.n, 4); /* nobody is next: nobody asks */
    story_end(&s);
}

TEST(remote_gates_take_a_token_only_from_a_secret_that_is_made_for_it)
{
    struct story s;
    story_begin(&s, URL);
    s.body = V1("");
    story_maintain(&s, ALERTS(", secretRef: {name: prom}"));
    operations_run(&s.x, SECONDS(20));
    check_has(operations_text(&s.x, "hello", "status.gate.message"), "404");
    (void)operations_http(&s.x, 201, "POST", "/api/v1/namespaces/drydock-jobs/secrets",
                          STR("{\"metadata\":{\"name\":\"prom\"},\"data\":{\"token\":"
                              "\"czNjcmV0Cg==\"}}"));
    operations_run(&s.x, SECONDS(20));
    check_has(operations_text(&s.x, "hello", "status.gate.message"),
              "Secret 'prom' has no label drydock.dev/use=outbound");
    CHECK_EQ(s.inbox.n, 0);
    (void)operations_http(&s.x, 200, "PATCH", "/api/v1/namespaces/drydock-jobs/secrets/prom",
                          STR("{\"metadata\":{\"labels\":{\"drydock.dev/use\":\"outbound\"}}}"));
    operations_run(&s.x, MINUTES(5));
    CHECK_STR(operations_text(&s.x, "hello", "status.phase"), "Complete");
    CHECK_STR(inbox_header(inbox_at(&s.inbox, 0), "Authorization"), "Bearer s3cret");
    story_end(&s);
}

TEST(remote_gates_ask_nobody_whom_the_controller_does_not_allow)
{
    static const struct {
        const char *allowed;
        const char *url;
        bool ok;
    } cases[] = {
        { "", "http://prom:9090", false },
        { "http://prom:9090", "http://prom:9090", true },
        { "http://prom:9090", "http://prom:9090/x", true },
        { "http://prom:9090", "http://prom:9090?x=1", true },
        { "http://prom:9090/", "http://prom:9090/x", true },
        { "http://prom", "http://prom.example", false },
        { "http://prom:9090", "http://prom:9090@evil.example/", false },
        { "http://prom:9090", "https://prom:9090", false },
        { "http://prom:9090/a", "http://prom:9090/a/../b", false },
        { "http://prom:9090/a", "http://prom:9090/a/%2e%2e/b", false },
        { "http://a, http://b", "http://b/x", true },
        { "http://a,", "http://b/x", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_EQ(gate_url_is_allowed(str_from(cases[i].allowed), str_from(cases[i].url)),
                 cases[i].ok);
    }
    check_case(-1);
    struct story s;
    story_begin(&s, "http://other.example");
    story_maintain(&s, ALERTS(""));
    operations_run(&s.x, MINUTES(1));
    CHECK_STR(operations_condition(&s.x, "hello", "Accepted"), "False/DestinationNotAllowed");
    CHECK_EQ(s.inbox.n, 0);
    story_end(&s);
}
