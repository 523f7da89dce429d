/* What stands between an ask and its grant where pods count: more nodes wait than are watched. */
#include "profile/controller.h"
#include "profile/node_report.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/outbound.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/controller_fixture.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

struct story {
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct api *door;
    struct controller *c;
    int order[64]; /* in which nodes have gone into maintenance */
    int gone;
};

static const char profiles[] =
    "intervals: {requeue: 30s}\n"
    "instances:\n"
    "  check:\n"
    "  - {type: hasLabel, name: needed, config: {key: needed}}\n"
    "  - {type: hasLabel, name: approved, config: {key: approved}}\n"
    "  - {type: hasLabel, name: done, config: {key: done}}\n"
    "  - {type: affinity, name: near, config: null}\n"
    "  - {type: maxMaintenance, name: room, config: {max: 1}}\n"
    "profiles:\n"
    "- name: p\n"
    "  operational:\n"
    "    transitions: [{check: needed, next: maintenance-required}]\n"
    "  maintenance-required:\n"
    "    transitions: [{check: approved && near && room, next: in-maintenance}]\n"
    "  in-maintenance:\n"
    "    transitions: [{check: done, next: operational}]\n";

static void send(struct story *s, const char *method, struct str path, struct str body)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = str_from(method),
        .path = path,
        .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
        .body = body,
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    CHECK_EQ(reply.status / 100, 2);
}

static struct str name_of(struct story *s, int i)
{
    return arena_printf(&s->memory, "n%02d", i);
}

static void relabel(struct story *s, int i, const char *label)
{
    send(s, "PATCH", arena_printf(&s->memory, "/api/v1/nodes/n%02d", i),
         arena_printf(&s->memory, "{\"metadata\":{\"labels\":{\"%s\":\"x\"}}}", label));
}

static void finish(struct story *s, int i)
{
    send(s, "PATCH", arena_printf(&s->memory, "/api/v1/nodes/n%02d", i),
         STR("{\"metadata\":{\"labels\":{\"needed\":null,\"done\":\"x\"}}}"));
}

/* A pod that prefers operational nodes, named like its node. */
static void add_pod(struct story *s, int i)
{
    send(s, "POST", STR("/api/v1/namespaces/default/pods"),
         arena_printf(
             &s->memory,
             "{\"metadata\":{\"name\":\"n%02d\"},\"spec\":{\"nodeName\":\"n%02d\",\"containers\":"
             "[{\"name\":\"c\",\"image\":\"i\"}],\"affinity\":{\"nodeAffinity\":{"
             "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":1,\"preference\":{"
             "\"matchExpressions\":[{\"key\":\"cloud.sap/maintenance-state\",\"operator\":\"In\","
             "\"values\":[\"operational\"]}]}}]}}}}",
             i, i));
}

static void remove_pod(struct story *s, int i)
{
    send(s, "DELETE", arena_printf(&s->memory, "/api/v1/namespaces/default/pods/n%02d", i),
         STR("{\"gracePeriodSeconds\":0}"));
}

static bool in_state(struct story *s, int i, const char *state)
{
    const struct jval *node =
        apiserver_find(s->server, STR(""), STR("nodes"), STR(""), name_of(s, i));
    const struct jval *labels = jval_at(node, "metadata.labels");
    return str_eq(jval_str(jval_get(labels, STR("cloud.sap/maintenance-state"))), str_from(state));
}

static uint64_t sent(struct story *s, const char *resource, enum sim_api_verb verb)
{
    uint32_t n = 0;
    uint64_t sum = 0;
    const struct sim_api_count *tallies = sim_api_counts(s->door, &n);
    for (uint32_t i = 0; i < n; i++) {
        sum += str_eq(tallies[i].resource, str_from(resource)) ? tallies[i].sent[verb] : 0;
    }
    return sum;
}

static void on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct story *s = ctx;
    struct str key = STR("cloud.sap/maintenance-state");
    if (!str_eq(commit->plural, STR("nodes")) || commit->now == NULL || commit->old == NULL) {
        return;
    }
    struct str was = jval_str(jval_get(jval_at(commit->old, "metadata.labels"), key));
    struct str is = jval_str(jval_get(jval_at(commit->now, "metadata.labels"), key));
    if (!str_eq(was, is) && str_eq(is, STR("in-maintenance"))) {
        uint64_t i = 0;
        CHECK(str_to_u64(str_sub(commit->name, 1, 3), &i));
        s->order[s->gone++] = (int)i;
    }
}

static void story_run(struct story *s, usec_t span)
{
    usec_t until = virtual_loop_now(s->time) + span;
    while (virtual_loop_step(s->time, until)) {
        controller_check(s->c);
    }
}

/* So many nodes wait; all but `bare` of them from `first` on have pods that prefer operational
 * nodes. */
static void story_begin(struct story *s, int nodes, int first, int bare)
{
    *s = (struct story){ .time = virtual_loop_new(1, WALL) };
    s->server = apiserver_new(virtual_loop_root(s->time), 1);
    s->door = sim_api_new(virtual_loop_root(s->time), s->server, NULL);
    apiserver_on_commit_check(s->server, on_commit, s);
    for (int i = 0; i < nodes; i++) {
        send(s, "POST", STR("/api/v1/nodes"),
             arena_printf(&s->memory,
                          "{\"metadata\":{\"name\":\"n%02d\",\"labels\":{\"needed\":\"x\","
                          "\"cloud.sap/maintenance-profile\":\"p\"}}}",
                          i));
        if (i < first || i >= first + bare) {
            add_pod(s, i);
        }
    }
    s->c = controller_open(&(struct core_config){ .loop = virtual_loop_root(s->time),
                                                  .api = s->door,
                                                  .identity = STR("a_1") },
                           &(struct controller_config){ 0 });
    CHECK_EQ(controller_configure(s->c, STR("f"), str_from(profiles), (struct ucfg_env){ 0 }), 0);
    story_run(s, SECONDS(30));
}

static void story_end(struct story *s)
{
    controller_close(s->c);
    sim_api_free(s->door);
    apiserver_free(s->server);
    arena_done(&s->memory);
    virtual_loop_free(s->time);
}

static bool explains(struct story *s, int i, const char *words)
{
    struct node_report report;
    bool found = false;
    CHECK(controller_explain(s->c, name_of(s, i), &s->memory, &report));
    for (uint32_t p = 0; p < report.profile_n; p++) {
        for (uint32_t t = 0; t < report.profiles[p].transition_n; t++) {
            const struct node_report_transition *transition = &report.profiles[p].transitions[t];
            for (uint32_t k = 0; k < transition->check_n; k++) {
                found = found || str_contains(transition->checks[k].reason, str_from(words));
            }
        }
    }
    return found;
}

/* What is decided by pods that nobody touches costs nothing, however long it takes. */
TEST(grant_waits_for_hours_without_a_request)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, 20, 0, 1);
    CHECK_EQ(sent(&s, "pods", SIM_WATCH), 20);
    uint64_t others = sim_api_sent(s.door) - sent(&s, "pods", SIM_WATCH) -
                      sent(&s, "nodes", SIM_WATCH) - sent(&s, "leases", SIM_WATCH);
    struct controller_stats before;
    struct controller_stats after;
    controller_stats(s.c, &before);
    story_run(&s, HOURS(6));
    controller_stats(s.c, &after);
    CHECK_EQ(after.turns, before.turns); /* renewals of watches are no reason to decide */
    CHECK_EQ(sim_api_sent(s.door) - sent(&s, "pods", SIM_WATCH) - sent(&s, "nodes", SIM_WATCH) -
                 sent(&s, "leases", SIM_WATCH),
             others);
    CHECK_EQ(sent(&s, "pods", SIM_LIST), 0);
    CHECK(sent(&s, "pods", SIM_WATCH) <= 20 * (1 + HOURS(6) / SECONDS(290)));
    CHECK_EQ(s.gone, 0);
    /* And the first event makes all the difference, at once. */
    relabel(&s, 5, "approved");
    story_run(&s, SECONDS(1));
    CHECK_EQ(s.gone, 0);
    CHECK(explains(&s, 5, "node n00 goes first"));
    add_pod(&s, 0);
    story_run(&s, SECONDS(1));
    CHECK_EQ(s.gone, 1);
    CHECK_EQ(s.order[0], 5);
}

/* More wait than are watched, and those that are watched are held back: the others go, each by what
 * its pods are then. */
TEST(grant_looks_again_at_pods_that_were_not_watched)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, 50, 0, 48);
    int last = 47; /* without such pods when it was looked at */
    while (!explains(&s, last, "its pods are looked at again before it goes")) {
        CHECK(--last > 0);
    }
    add_pod(&s, last); /* which nobody sees */
    story_run(&s, MINUTES(10));
    uint64_t watches = sent(&s, "pods", SIM_WATCH);
    CHECK(explains(&s, last, "its pods are looked at again before it goes"));
    relabel(&s, last, "approved");
    story_run(&s, SECONDS(5));
    CHECK_EQ(s.gone, 0); /* others go before it */
    CHECK(explains(&s, last, "goes first: its pods do not mind"));
    CHECK(sent(&s, "pods", SIM_WATCH) > watches);
    remove_pod(&s, last);
    story_run(&s, SECONDS(5));
    CHECK_EQ(s.gone, 1);
    CHECK_EQ(s.order[0], last);
}

/* Whom the others wait for is watched, wherever it stands: nobody waits for a node that would not
 * go first any more. */
TEST(grant_does_not_wait_for_who_has_such_pods_now)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, 50, 40, 1);
    relabel(&s, 45, "approved");
    story_run(&s, MINUTES(30));
    CHECK(explains(&s, 45, "node n40 goes first"));
    CHECK_EQ(s.gone, 0);
    add_pod(&s, 40);
    story_run(&s, SECONDS(5));
    CHECK_EQ(s.gone, 1);
    CHECK_EQ(s.order[0], 45);
}

/* All of a large fleet go, those without such pods first, and both in the order in which they have
 * waited; what is done with is watched no more. */
TEST(grant_serves_more_nodes_than_are_watched)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, 45, 0, 0);
    for (int i = 0; i < 45; i++) {
        if (i % 3 == 0) {
            remove_pod(&s, i);
        }
    }
    story_run(&s, SECONDS(5));
    /* What has changed is known of those that are watched, and of the others when they are. */
    for (int i = 0; i < 45; i++) {
        relabel(&s, i, "approved");
    }
    for (int n = 0; n < 45; n++) {
        story_run(&s, SECONDS(5));
        CHECK_EQ(s.gone, n + 1);
        finish(&s, s.order[n]);
    }
    for (int n = 1; n < 8; n++) {
        CHECK_EQ(s.order[n - 1] % 3, 0);
        CHECK(s.order[n - 1] < s.order[n]);
    }
    story_run(&s, SECONDS(5));
    CHECK_EQ(s.gone, 45);
    uint64_t watches = sent(&s, "pods", SIM_WATCH);
    story_run(&s, HOURS(2));
    CHECK_EQ(sent(&s, "pods", SIM_WATCH), watches);
}

/* Who is on its way goes on while the watches begin anew, and who is not waits for them. */
TEST(grant_is_not_given_by_a_watch_that_was_cut)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, 2, 0, 0);
    sim_api_disconnect(s.door);
    story_run(&s, MSECONDS(100));
    relabel(&s, 0, "approved");
    remove_pod(&s, 1);
    story_run(&s, MINUTES(1));
    CHECK_EQ(s.gone, 0); /* as its pods were when the watch was cut, it would have gone */
    CHECK(in_state(&s, 0, "maintenance-required"));
    CHECK(explains(&s, 0, "node n01 goes first"));
}
/* ── other systems ─────────────────────────────────────────────────────────────────────────── */

#define PROMETHEUS_SAYS(value)                                                                     \
    STR("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{},"  \
        "\"value\":[1,\"" value "\"]}]}}")

static const char gated_profiles[] =
    "intervals: {requeue: 30s}\n"
    "instances:\n"
    "  check:\n"
    "  - {type: hasLabel, name: approved, config: {key: approved}}\n"
    "  - {type: hasLabel, name: done, config: {key: done}}\n"
    "  - {type: prometheusInstant, name: calm, config: {url: 'http://p', query: q, "
    "expr: value == 1}}\n"
    "  - {type: maxMaintenance, name: room, config: {max: 5}}\n"
    "profiles:\n"
    "- name: p\n"
    "  operational:\n"
    "    transitions: [{check: approved && calm && room, next: in-maintenance}]\n"
    "  maintenance-required: {transitions: []}\n"
    "  in-maintenance:\n"
    "    transitions: [{check: done, next: operational}]\n";

struct gated {
    struct story s;
    struct inbox inbox;
    struct outbound *outbound;
    bool calm;
    int calm_answers; /* then it changes its mind; -1: it does not */
    usec_t delay;     /* of its answers; 0 = 20 ms */
};

static void on_query(void *ctx, const struct inbox_message *message UNUSED,
                     struct inbox_answer *answer)
{
    struct gated *g = ctx;
    answer->body = g->calm ? PROMETHEUS_SAYS("1") : PROMETHEUS_SAYS("0");
    answer->delay = g->delay > 0 ? g->delay : MSECONDS(20);
    if (g->calm && g->calm_answers > 0 && --g->calm_answers == 0) {
        g->calm = false;
    }
}

static void gated_begin(struct gated *g, bool elect)
{
    *g = (struct gated){ .s = { .time = virtual_loop_new(1, WALL) },
                         .calm = true,
                         .calm_answers = -1 };
    struct story *s = &g->s;
    s->server = apiserver_new(virtual_loop_root(s->time), 1);
    s->door = sim_api_new(virtual_loop_root(s->time), s->server, NULL);
    apiserver_on_commit_check(s->server, on_commit, s);
    inbox_init(&g->inbox);
    g->inbox.script = on_query;
    g->inbox.ctx = g;
    g->outbound = sim_outbound_new(virtual_loop_root(s->time), &g->inbox, NULL);
    for (int i = 0; i < 3; i++) {
        send(s, "POST", STR("/api/v1/nodes"),
             arena_printf(&s->memory,
                          "{\"metadata\":{\"name\":\"n%02d\",\"labels\":{"
                          "\"cloud.sap/maintenance-profile\":\"p\"}}}",
                          i));
    }
    s->c = controller_open(&(struct core_config){ .loop = virtual_loop_root(s->time),
                                                  .api = s->door,
                                                  .identity = STR("a_1"),
                                                  .elect = elect },
                           &(struct controller_config){ .outbound = g->outbound });
    CHECK_EQ(controller_configure(s->c, STR("f"), str_from(gated_profiles), (struct ucfg_env){ 0 }),
             0);
    story_run(s, SECONDS(60));
}

static void gated_end(struct gated *g)
{
    struct story *s = &g->s;
    controller_close(s->c);
    sim_outbound_free(g->outbound);
    inbox_done(&g->inbox);
    sim_api_free(s->door);
    apiserver_free(s->server);
    arena_done(&s->memory);
    virtual_loop_free(s->time);
}

/* Prometheus said yes, and then no: who comes after that does not go, however fresh the last answer
 * is by the refresh interval. */
TEST(grant_asks_prometheus_again_before_the_node_goes)
{
    for (int elect = 0; elect < 2; elect++) {
        CLEANUP(gated_end)
        struct gated g;
        gated_begin(&g, elect == 1);
        relabel(&g.s, 0, "approved");
        story_run(&g.s, SECONDS(2));
        CHECK_EQ(g.s.gone, 1);
        g.calm = false;
        relabel(&g.s, 1, "approved");
        story_run(&g.s, SECONDS(60));
        CHECK_EQ(g.s.gone, 1);
        relabel(&g.s, 2, "approved");
        story_run(&g.s, SECONDS(60));
        CHECK_EQ(g.s.gone, 1);
        CHECK(explains(&g.s, 2, "the value is 0"));
        g.calm = true;
        story_run(&g.s, SECONDS(60));
        CHECK_EQ(g.s.gone, 3);
    }
}

/* It said yes for the decision, and no when it was asked again inside the grant. */
TEST(grant_ends_when_prometheus_changes_its_mind)
{
    CLEANUP(gated_end)
    struct gated g;
    gated_begin(&g, true);
    g.calm = false;
    story_run(&g.s, SECONDS(60));
    g.calm = true;
    g.calm_answers = 1; /* enough for the decision */
    relabel(&g.s, 0, "approved");
    story_run(&g.s, MINUTES(5));
    CHECK_EQ(g.s.gone, 0);
    struct controller_stats stats;
    controller_stats(g.s.c, &stats);
    CHECK_EQ(stats.granting, 0); /* its place is free again */
}

/* Nobody answers: the place is not kept for ever, and the node goes when somebody does. */
TEST(grant_does_not_wait_for_ever_for_prometheus)
{
    CLEANUP(gated_end)
    struct gated g;
    gated_begin(&g, true);
    relabel(&g.s, 0, "approved");
    g.inbox.script = NULL; /* "ok" is no answer of Prometheus */
    story_run(&g.s, MINUTES(10));
    CHECK_EQ(g.s.gone, 0);
    struct controller_stats stats;
    controller_stats(g.s.c, &stats);
    CHECK_EQ(stats.granting, 0);
    g.inbox.script = on_query;
    story_run(&g.s, MINUTES(10));
    CHECK_EQ(g.s.gone, 1);
}

/* While other systems are asked again, the node takes a way for which it needs no grant. */
TEST(grant_ends_when_its_node_goes_another_way)
{
    static const char other_way[] =
        "intervals: {requeue: 30s}\n"
        "instances:\n"
        "  check:\n"
        "  - {type: hasLabel, name: approved, config: {key: approved}}\n"
        "  - {type: hasLabel, name: other, config: {key: other}}\n"
        "  - {type: prometheusInstant, name: calm, config: {url: 'http://p', query: q, "
        "expr: value == 1}}\n"
        "  - {type: maxMaintenance, name: room, config: {max: 5}}\n"
        "profiles:\n"
        "- name: p\n"
        "  operational:\n"
        "    transitions:\n"
        "    - {check: other, next: maintenance-required}\n"
        "    - {check: approved && calm && room, next: in-maintenance}\n";
    for (int elect = 0; elect < 2; elect++) {
        CLEANUP(gated_end)
        struct gated g;
        struct controller_stats stats;
        gated_begin(&g, elect == 1);
        CHECK_EQ(controller_configure(g.s.c, STR("f"), str_from(other_way), (struct ucfg_env){ 0 }),
                 0);
        story_run(&g.s, SECONDS(60));
        g.delay = SECONDS(10);
        relabel(&g.s, 0, "approved");
        story_run(&g.s, SECONDS(2));
        controller_stats(g.s.c, &stats);
        CHECK_EQ(stats.granting, 1); /* it is asked again */
        relabel(&g.s, 0, "other");
        story_run(&g.s, MINUTES(1));
        controller_stats(g.s.c, &stats);
        CHECK_EQ(stats.granting, 0);
        CHECK_EQ(g.s.gone, 0);
        const struct jval *node =
            apiserver_find(g.s.server, STR(""), STR("nodes"), STR(""), STR("n00"));
        CHECK_STR(jval_str(jval_get(jval_at(node, "metadata.labels"),
                                    STR("cloud.sap/maintenance-state"))),
                  "maintenance-required");
    }
}
