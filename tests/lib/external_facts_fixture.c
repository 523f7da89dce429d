#include "tests/lib/external_facts_fixture.h"

#include "tests/check.h"

const char facts_fixture_checks[] =
    "intervals: {requeue: 60s}\n"
    "instances:\n"
    "  check:\n"
    "  - {type: hasLabel, name: idle, config: {key: a}}\n"
    "  - {type: prometheusInstant, name: load, config: {url: 'http://prom/p/', query: 'up{a=\"b "
    "c\"}', expr: value}}\n"
    "  - {type: stagger, name: one, config: {duration: 10m, leaseName: slow, leaseNamespace: "
    "default}}\n"
    "  - {type: stagger, name: two, config: {duration: 1500ms, leaseName: wide, leaseNamespace: "
    "default, parallel: 2}}\n"
    "  - {type: affinity, name: near}\n"
    "  - {type: prometheusInstant, name: dead, config: {url: 'http://dead?x=1#y', query: up, expr: "
    "value}}\n"
    "profiles: []\n";

static void answer_query(void *ctx, const struct inbox_message *message,
                         struct inbox_answer *answer)
{
    struct facts_fixture *w = ctx;
    struct fake_prometheus *p = &w->prometheus;
    if (str_starts(message->request.url, STR("http://dead")) && !p->dead_is_back) {
        answer->failure = ERR_IO;
        return;
    }
    if (p->no_post && str_eq(message->request.method, STR("POST"))) {
        answer->status = 405;
        return;
    }
    answer->status = p->status != 0 ? p->status : 200;
    answer->body = str_from(p->body);
}

static void on_change(void *ctx, uint64_t instances)
{
    struct facts_replica *r = ctx;
    CHECK(instances != 0);
    r->changed |= instances;
    r->change_n++;
}

void facts_fixture_on_take(void *ctx, const struct err *err)
{
    struct facts_replica *r = ctx;
    r->done++;
    r->code = err != NULL ? err->code : 0;
}

/* Nobody gets a lease before its time is over, by the server's own clock. */
static void on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct facts_fixture *w = ctx;
    struct timestamp renewed = timestamp_zero;
    struct err err = { 0 };
    int64_t duration = 0;
    if (!str_eq(commit->plural, STR("leases")) || commit->old == NULL || commit->now == NULL ||
        timestamp_parse(jval_str(jval_at(commit->old, "spec.renewTime")), &renewed, &err) < 0 ||
        !jval_i64(jval_at(commit->old, "spec.leaseDurationSeconds"), &duration)) {
        return;
    }
    usec_t wall = loop_wall(virtual_loop_root(w->time));
    w->taken_early += wall <= timestamp_to_usec(renewed) + SECONDS(duration) ? 1 : 0;
}

struct config facts_fixture_load(struct facts_fixture *w, const char *yaml)
{
    struct config config;
    struct problems problems = { .out = &w->memory };
    int r = config_load(str_from(yaml), (struct ucfg_env){ 0 }, &w->memory, &config, &problems);
    CHECK_STR(problems.n > 0 ? problems.items[0].text : STR(""), "");
    CHECK_EQ(r, 0);
    return config;
}

void facts_fixture_add_replica(struct facts_fixture *w, struct facts_replica *r, bool with_wire)
{
    r->loop = virtual_loop_view_new(w->time, 0);
    r->api = sim_api_new(r->loop, w->server, &w->faults);
    r->outbound = with_wire ? sim_outbound_new(r->loop, &w->inbox, &w->faults) : NULL;
    client_init(&r->client, r->loop, r->api);
    r->external = external_facts_new(r->loop, &(struct external_facts_config){
                                                  .client = &r->client,
                                                  .outbound = r->outbound,
                                                  .on_change = on_change,
                                                  .ctx = r,
                                              });
    struct config config = facts_fixture_load(w, facts_fixture_checks);
    external_facts_configure(r->external, &config);
}

void facts_fixture_begin_with(struct facts_fixture *w, uint64_t seed, bool with_wire)
{
    *w = (struct facts_fixture){ .time = virtual_loop_new(seed, FACTS_FIXTURE_WALL) };
    faults_init(&w->faults, seed);
    inbox_init(&w->inbox);
    w->inbox.script = answer_query;
    w->inbox.ctx = w;
    w->prometheus.body = "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\","
                         "\"result\":[{\"metric\":{},\"value\":[1,\"2.5\"]}]}}";
    w->server = apiserver_new(virtual_loop_root(w->time), seed);
    apiserver_on_commit_check(w->server, on_commit, w);
    facts_fixture_add_replica(w, &w->replicas[0], with_wire);
}

void facts_fixture_begin(struct facts_fixture *w)
{
    facts_fixture_begin_with(w, 7, true);
}

void facts_fixture_end(struct facts_fixture *w)
{
    for (int i = 0; i < 2; i++) {
        struct facts_replica *r = &w->replicas[i];
        if (r->loop != NULL) {
            external_facts_free(r->external);
            sim_outbound_free(r->outbound);
            sim_api_free(r->api);
            virtual_loop_view_free(r->loop);
        }
    }
    faults_done(&w->faults);
    inbox_done(&w->inbox);
    apiserver_free(w->server);
    virtual_loop_free(w->time);
    arena_done(&w->memory);
}

void facts_fixture_run(struct facts_fixture *w, usec_t span)
{
    usec_t until = virtual_loop_now(w->time) + span;
    while (virtual_loop_step(w->time, until)) {
        for (int i = 0; i < 2; i++) {
            if (w->replicas[i].external != NULL) {
                external_facts_check(w->replicas[i].external);
            }
        }
    }
}

const struct facts *facts_fixture_facts(struct facts_fixture *w)
{
    return external_facts_facts(w->replicas[0].external);
}

void facts_fixture_want(struct facts_replica *r, enum facts_kind kind, uint32_t index,
                        const char *node)
{
    external_facts_want(
        r->external, &(struct facts_want){ .kind = kind, .index = index, .node = str_from(node) });
}

int facts_fixture_request(struct facts_fixture *w, const char *method, const char *path,
                          const char *body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct apiserver_reply reply;
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .body = str_from(body),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? STR("application/merge-patch+json")
                                                               : STR("application/json"),
    };
    apiserver_handle(w->server, &request, &tmp, &reply);
    return reply.status;
}
