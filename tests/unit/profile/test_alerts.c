/* What is told besides the states of profiles, by a whole controller against the sandbox. */
#include "profile/controller.h"
#include "profile/node_report.h"

#include "sandbox/sim/outbound.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/world/world.h"
#include "tests/check.h"
#include "tests/lib/controller_fixture.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

struct story {
    struct arena memory;
    struct virtual_loop *v;
    struct apiserver *server;
    struct world *world;
    struct faults faults;
    struct api *door;
    struct inbox inbox;
    struct outbound *outbound;
    struct controller *c;
    uint32_t refuse; /* so many messages are refused first */
};

static void on_message(void *ctx, const struct inbox_message *message UNUSED,
                       struct inbox_answer *answer)
{
    struct story *s = ctx;
    if (s->refuse > 0) {
        s->refuse--;
        answer->status = 503;
    }
}

static void story_ask(struct story *s, const char *method, const char *path, const char *body)
{
    struct apiserver_reply reply = { 0 };
    bool patch = str_eq(str_from(method), STR("PATCH"));
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = patch ? STR("application/merge-patch+json") : API_JSON,
        .body = str_from(body),
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    CHECK(reply.status < 300);
}

static void story_run(struct story *s, usec_t span)
{
    (void)virtual_loop_run(s->v, virtual_loop_now(s->v) + span);
    controller_check(s->c);
}

#define BUDGETS "/apis/policy/v1/namespaces/default/poddisruptionbudgets"

static void story_start(struct story *s, const char *identity)
{
    s->c = controller_open(&(struct core_config){ .loop = virtual_loop_root(s->v),
                                                  .api = s->door,
                                                  .identity = str_from(identity),
                                                  .elect = true },
                           &(struct controller_config){ .outbound = s->outbound });
    CHECK_EQ(controller_configure(
                 s->c, STR("f"),
                 STR("intervals: {requeue: 24h}\n"
                     "instances:\n"
                     "  check:\n"
                     "  - {type: hasLabel, name: asked, config: {key: asked}}\n"
                     "  trigger:\n"
                     "  - {type: eviction, name: drain, config: {action: drain}}\n"
                     "  notify:\n"
                     "  - type: webhook\n"
                     "    name: hook\n"
                     "    config:\n"
                     "      url: 'http://hook'\n"
                     "      body: '{{ .Node.Name }}|{{ .State }}|{{ .Request }}|{{ .Reason }}'\n"
                     "    schedule: {type: oneshot, config: {delay: 0s}}\n"
                     "  - type: webhook\n"
                     "    name: plain\n"
                     "    config: {url: 'http://plain'}\n"
                     "    schedule: {type: oneshot, config: {delay: 0s}}\n"
                     "notify:\n"
                     "  drainBlocked: {after: 30m, instances: hook}\n"
                     "  requestRejected: {instances: hook && plain}\n"
                     "  requestExpired: {instances: hook}\n"
                     "profiles:\n"
                     "- name: p\n"
                     "  operational:\n"
                     "    transitions: [{check: asked, next: maintenance-required}]\n"
                     "  maintenance-required:\n"
                     "    transitions:\n"
                     "    - {check: asked, trigger: drain, next: in-maintenance}\n"),
                 (struct ucfg_env){ 0 }),
             0);
}

/* The leader dies, and another one comes. */
static void story_next_leader(struct story *s)
{
    controller_close(s->c);
    story_start(s, "b_2");
    story_run(s, MINUTES(1));
}

/* A node with one pod under a budget that lets no pod go; a label has the node drained. */
static void story_begin(struct story *s)
{
    *s = (struct story){ .v = virtual_loop_new(1, WALL) };
    struct loop *loop = virtual_loop_root(s->v);
    s->server = apiserver_new(loop, 1);
    s->world = world_new(loop, s->server, &(struct world_config){ .seed = 1, .nodes = 1 });
    faults_init(&s->faults, 1);
    s->door = sim_api_new(loop, s->server, &s->faults);
    inbox_init(&s->inbox);
    s->inbox.script = on_message;
    s->inbox.ctx = s;
    s->outbound = sim_outbound_new(loop, &s->inbox, NULL);
    story_start(s, "a_1");
    story_ask(s, "POST", "/api/v1/namespaces/default/pods",
              "{\"metadata\":{\"name\":\"web\",\"labels\":{\"app\":\"web\"}},\"spec\":{"
              "\"nodeName\":\"node-001\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}");
    story_ask(s, "POST", BUDGETS,
              "{\"metadata\":{\"name\":\"all\"},\"spec\":{\"selector\":{},\"maxUnavailable\":0}}");
    story_ask(s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-profile\":\"p\"}}}");
    story_run(s, MINUTES(1));
}

static void story_end(struct story *s)
{
    controller_check(s->c);
    controller_close(s->c);
    sim_outbound_free(s->outbound);
    sim_api_free(s->door);
    faults_done(&s->faults);
    world_free(s->world);
    apiserver_free(s->server);
    inbox_done(&s->inbox);
    arena_done(&s->memory);
    virtual_loop_free(s->v);
}

static void story_label(struct story *s, const char *value)
{
    story_ask(s, "PATCH", "/api/v1/nodes/node-001",
              arena_printf(&s->memory, "{\"metadata\":{\"labels\":{\"asked\":%s}}}", value).p);
}

TEST(alerts_tell_once_of_a_drain_that_stays_blocked)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_label(&s, "\"\"");
    story_run(&s, MINUTES(29));
    CHECK_EQ(s.inbox.arrived, 0);
    s.refuse = 2;
    story_run(&s, HOURS(3));
    CHECK_EQ(s.inbox.arrived, 3); /* two were refused, and none came after the third */
    struct str body = inbox_at(&s.inbox, 2)->request.body;
    CHECK(str_starts(body, STR("node-001|drainBlocked||pod default/web: budget all allows no "
                               "disruption: ")));
    /* It is given up and begun anew: that is another one. */
    story_label(&s, "null");
    story_run(&s, MINUTES(1));
    story_label(&s, "\"\"");
    story_run(&s, MINUTES(29));
    CHECK_EQ(s.inbox.arrived, 3);
    story_run(&s, MINUTES(5));
    CHECK_EQ(s.inbox.arrived, 4);
}

TEST(alerts_tell_nothing_of_a_drain_that_goes_on_in_time)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_label(&s, "\"\"");
    story_run(&s, MINUTES(20));
    story_ask(&s, "DELETE", BUDGETS "/all", "");
    story_run(&s, HOURS(3));
    CHECK_EQ(s.inbox.arrived, 0);
}

/* Messages of one moment arrive in any order. */
static bool story_has(const struct story *s, const char *body)
{
    for (uint32_t i = 0; i < s->inbox.n; i++) {
        if (str_eq(inbox_at(&s->inbox, i)->request.body, str_from(body))) {
            return true;
        }
    }
    return false;
}

TEST(alerts_tell_of_requests_by_every_instance_that_is_named)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    struct core *core = controller_core(s.c);
    core_tell_request(core, &(struct core_request_news){ .request = STR("r1"),
                                                         .node = STR("node-001"),
                                                         .reason = STR("a \"check\" failed") });
    story_run(&s, MINUTES(1));
    CHECK_EQ(s.inbox.arrived, 2);
    CHECK(story_has(&s, "node-001|requestRejected|r1|a \"check\" failed"));
    CHECK(story_has(&s, "{\"node\":\"node-001\",\"profile\":\"\",\"state\":\"requestRejected\","
                        "\"inMaintenance\":false,\"lastTransition\":\"2026-01-02T03:05:05Z\","
                        "\"reason\":\"a \\\"check\\\" failed\",\"request\":\"r1\"}"));
    /* The target of this one is a workload: there is no node. */
    core_tell_request(core, &(struct core_request_news){ .expired = true,
                                                         .request = STR("r2"),
                                                         .reason = STR("not finished in time") });
    story_run(&s, MINUTES(1));
    CHECK_EQ(s.inbox.arrived, 3);
    CHECK(story_has(&s, "|requestExpired|r2|not finished in time"));
}

/* ── the next leader ───────────────────────────────────────────────────────────────────────── */

static struct str story_note(struct story *s)
{
    const struct jval *lease =
        apiserver_find(s->server, STR("coordination.k8s.io"), STR("leases"), STR("default"),
                       STR("maintenance-controller-leader-election.cloud.sap"));
    return jval_str(jval_get(jval_at(lease, "metadata.annotations"), STR("drydock.dev/alerts")));
}

TEST(alerts_of_a_drain_are_not_told_again_by_the_next_leader)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_label(&s, "\"\"");
    story_run(&s, HOURS(1));
    CHECK_EQ(s.inbox.arrived, 1);
    CHECK_STR(story_note(&s), "{\"told\":[\"node-001\"],\"unsent\":[]}");
    story_next_leader(&s);
    story_run(&s, HOURS(5));
    CHECK_EQ(s.inbox.arrived, 1); /* it is blocked all the time */
    CHECK_STR(story_note(&s), "{\"told\":[\"node-001\"],\"unsent\":[]}");
    story_ask(&s, "DELETE", BUDGETS "/all", "");
    story_run(&s, MINUTES(30));
    CHECK_STR(story_note(&s), ""); /* the drain has ended, and with it what is to be known */
}

/* A drain that went on after the last leader told of it, and is blocked again, is news. */
TEST(alerts_of_a_drain_that_went_on_are_told_by_the_next_leader)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_label(&s, "\"\"");
    story_run(&s, HOURS(1));
    CHECK_EQ(s.inbox.arrived, 1);
    story_label(&s, "null"); /* the drain ends while nobody leads */
    controller_close(s.c);
    story_start(&s, "b_2");
    story_run(&s, HOURS(2)); /* long enough for the last leader's word to be of no use */
    CHECK_EQ(s.inbox.arrived, 1);
    story_label(&s, "\"\"");
    story_run(&s, HOURS(1));
    CHECK_EQ(s.inbox.arrived, 2);
}

TEST(alerts_that_could_not_be_sent_are_sent_by_the_next_leader)
{
    CLEANUP(story_end)
    struct story s;
    struct node_report report;
    story_begin(&s);
    s.refuse = UINT32_MAX;
    core_tell_request(controller_core(s.c),
                      &(struct core_request_news){ .request = STR("mr-1"),
                                                   .node = STR("node-001"),
                                                   .reason = STR("it took too long"),
                                                   .expired = true });
    story_run(&s, MINUTES(10));
    CHECK(controller_explain(s.c, STR("node-001"), &s.memory, &report));
    CHECK_EQ(report.unsent_n, 1);
    CHECK_STR(report.unsent[0].instance, "hook");
    CHECK_STR(report.unsent[0].profile, "request mr-1");
    CHECK_STR(report.unsent[0].state, "requestExpired");
    CHECK(str_contains(report.unsent[0].error, STR("503")));
    CHECK(report.unsent[0].next > report.now);
    CHECK(str_contains(story_note(&s), STR("\"request\":\"mr-1\"")));
    uint64_t tried = s.inbox.arrived;
    s.refuse = 0;
    story_next_leader(&s);
    CHECK_EQ(s.inbox.arrived, tried + 1);
    CHECK_STR(inbox_at(&s.inbox, (uint32_t)tried)->request.body,
              "node-001|requestExpired|mr-1|it took too long");
    CHECK_STR(story_note(&s), "");
    story_run(&s, HOURS(2));
    CHECK_EQ(s.inbox.arrived, tried + 1);
}
