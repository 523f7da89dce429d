/* Drains that a profile asks for, of nodes with drain rules, against the sandbox. */
#include "profile/controller.h"
#include "profile/fleet_report.h"

#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/world/world.h"
#include "tests/check.h"
#include "tests/lib/controller_fixture.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

#define POD(name)                                                                                  \
    "- apiVersion: v1\n"                                                                           \
    "  kind: Pod\n"                                                                                \
    "  metadata: {name: " name ", namespace: default, labels: {app: " name "}}\n"                  \
    "  spec: {nodeName: node-001, containers: [{name: a, image: b}]}\n"

struct story {
    struct arena memory;
    struct virtual_loop *v;
    struct apiserver *server;
    struct world *world;
    struct faults faults;
    struct api *door;
    struct controller *c;
};

static void story_ask(struct story *s, const char *method, const char *path, const char *body)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = STR("application/merge-patch+json"),
        .body = str_from(body),
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    CHECK_EQ(reply.status, 200);
}

static void story_run(struct story *s, usec_t span)
{
    (void)virtual_loop_run(s->v, virtual_loop_now(s->v) + span);
    controller_check(s->c);
}

static void story_begin(struct story *s)
{
    struct world_config ignored = { 0 };
    struct str *objects;
    uint32_t n;
    struct err err = { 0 };
    *s = (struct story){ .v = virtual_loop_new(1, WALL) };
    struct loop *loop = virtual_loop_root(s->v);
    s->server = apiserver_new(loop, 1);
    s->world = world_new(loop, s->server, &(struct world_config){ .seed = 1, .nodes = 1 });
    faults_init(&s->faults, 1);
    s->door = sim_api_new(loop, s->server, &s->faults);
    s->c = controller_open(
        &(struct core_config){
            .loop = loop, .api = s->door, .identity = STR("a_1"), .elect = true },
        &(struct controller_config){ 0 });
    CHECK_EQ(controller_configure(
                 s->c, STR("f"),
                 STR("intervals: {requeue: 24h}\n"
                     "instances:\n"
                     "  check:\n"
                     "  - {type: hasLabel, name: deleted, config: {key: machine-deleted}}\n"
                     "  trigger:\n"
                     "  - {type: eviction, name: cordon, config: {action: cordon}}\n"
                     "  - {type: eviction, name: drain, config: {action: drain}}\n"
                     "profiles:\n"
                     "- name: p\n"
                     "  operational:\n"
                     "    transitions: [{check: deleted, next: maintenance-required}]\n"
                     "  maintenance-required:\n"
                     "    transitions:\n"
                     "    - {check: deleted, trigger: cordon && drain, next: in-maintenance}\n"),
                 (struct ucfg_env){ 0 }),
             0);
    CHECK_EQ(world_file_read(STR("objects:\n" POD("agent") POD("db") POD("job") POD("web")),
                             &s->memory, &ignored, &objects, &n, &err),
             0);
    CHECK_EQ(world_create_objects(s->world, objects, n, &err), 0);
    story_ask(s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-profile\":\"p\"}}}");
    story_run(s, MINUTES(1));
}

static void story_end(struct story *s)
{
    controller_check(s->c);
    controller_close(s->c);
    sim_api_free(s->door);
    faults_done(&s->faults);
    world_free(s->world);
    apiserver_free(s->server);
    arena_done(&s->memory);
    virtual_loop_free(s->v);
}

static bool is_there(struct story *s, const char *name)
{
    const struct jval *pod =
        apiserver_find(s->server, STR(""), STR("pods"), STR("default"), str_from(name));
    return pod != NULL && jval_at(pod, "metadata.deletionTimestamp") == NULL;
}

static struct str state_of(struct story *s)
{
    const struct jval *node =
        apiserver_find(s->server, STR(""), STR("nodes"), STR(""), STR("node-001"));
    return jval_str(jval_get(jval_at(node, "metadata.labels"), STR("cloud.sap/maintenance-state")));
}

static uint64_t namespaces_asked_for(struct story *s)
{
    uint32_t n;
    const struct sim_api_count *tallies = sim_api_counts(s->door, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(tallies[i].resource, STR("namespaces"))) {
            return tallies[i].sent[SIM_WATCH] + tallies[i].sent[SIM_LIST];
        }
    }
    return 0;
}

#define AGENT_STAYS                                                                                \
    "{\\\"name\\\":\\\"1\\\",\\\"behavior\\\":\\\"Skip\\\",\\\"pods\\\":[{\\\"selector\\\":"       \
    "\\\"app=agent\\\"}]}"
#define JOB_WAITS                                                                                  \
    "{\\\"name\\\":\\\"2\\\",\\\"behavior\\\":\\\"WaitCompleted\\\",\\\"pods\\\":[{\\\"selector"   \
    "\\\":\\\"app=job\\\"}]}"
#define DB_LATER                                                                                   \
    "{\\\"name\\\":\\\"3\\\",\\\"behavior\\\":\\\"Drain\\\",\\\"order\\\":1,\\\"pods\\\":[{"       \
    "\\\"selector\\\":\\\"app=db\\\"}]}"

TEST(node_drain_goes_by_the_rules_that_come_with_the_request)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"machine-deleted\":\"true\"},\"annotations\":{"
              "\"drydock.dev/drain-rules\":\"[" AGENT_STAYS "," JOB_WAITS "," DB_LATER "]\"}}}");
    story_run(&s, MINUTES(5));
    CHECK(is_there(&s, "agent") && is_there(&s, "db") && is_there(&s, "job"));
    CHECK(!is_there(&s, "web"));
    CHECK_STR(state_of(&s), "maintenance-required");
    /* The rules change while it drains. */
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"annotations\":{\"drydock.dev/drain-rules\":\"[" AGENT_STAYS
              "," JOB_WAITS "]\"}}}");
    story_run(&s, MINUTES(1));
    CHECK(is_there(&s, "agent") && is_there(&s, "job"));
    CHECK(!is_there(&s, "db"));
    CHECK_STR(state_of(&s), "maintenance-required");
    story_ask(&s, "DELETE", "/api/v1/namespaces/default/pods/job", "");
    story_run(&s, MINUTES(2));
    CHECK(is_there(&s, "agent"));
    CHECK_STR(state_of(&s), "in-maintenance");
    CHECK_EQ(namespaces_asked_for(&s), 0);
}

TEST(node_drain_without_rules_evicts_every_pod)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"machine-deleted\":\"true\"}}}");
    story_run(&s, MINUTES(2));
    CHECK(!is_there(&s, "agent") && !is_there(&s, "db") && !is_there(&s, "job"));
    CHECK_STR(state_of(&s), "in-maintenance");
    CHECK_EQ(namespaces_asked_for(&s), 0);
}

/* The rules are removed with what asked for the drain; the pods they spared stay. */
TEST(node_drain_evicts_nothing_once_the_request_is_withdrawn)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"machine-deleted\":\"true\"},\"annotations\":{"
              "\"drydock.dev/drain-rules\":\"[" AGENT_STAYS "," JOB_WAITS "," DB_LATER "]\"}}}");
    story_run(&s, MINUTES(5));
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"machine-deleted\":null},\"annotations\":{"
              "\"drydock.dev/drain-rules\":null}}}");
    story_run(&s, MINUTES(5));
    CHECK(is_there(&s, "agent") && is_there(&s, "db") && is_there(&s, "job"));
}

static bool is_cordoned(struct story *s)
{
    const struct jval *node =
        apiserver_find(s->server, STR(""), STR("nodes"), STR(""), STR("node-001"));
    bool marked =
        jval_get(jval_at(node, "metadata.annotations"), STR("drydock.dev/cordoned-by")) != NULL;
    bool cordoned = jval_bool(jval_at(node, "spec.unschedulable"), false);
    CHECK_EQ(marked, cordoned);
    return cordoned;
}

/* A budget lets no pod go: the drain is under way for as long as nobody ends it. */
static void story_block(struct story *s)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = STR("POST"),
        .path = STR("/apis/policy/v1/namespaces/default/poddisruptionbudgets"),
        .content_type = API_JSON,
        .body = STR("{\"metadata\":{\"name\":\"all\"},\"spec\":{\"selector\":{},"
                    "\"maxUnavailable\":0}}"),
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    CHECK_EQ(reply.status, 201);
    story_run(s, SECONDS(5));
    story_ask(s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"machine-deleted\":\"true\"}}}");
    story_run(s, SECONDS(30));
    CHECK(is_cordoned(s));
    CHECK_STR(state_of(s), "maintenance-required");
}

TEST(node_drain_ends_with_its_profile_and_leaves_no_cordon)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_block(&s);
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-profile\":null}}}");
    story_run(&s, SECONDS(5));
    CHECK(!is_cordoned(&s));
    story_ask(&s, "PATCH", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/all",
              "{\"spec\":{\"maxUnavailable\":4}}");
    story_run(&s, MINUTES(5));
    CHECK(is_there(&s, "web") && is_there(&s, "db")); /* nobody drains any more */
    CHECK_STR(state_of(&s), "operational");
}

TEST(node_drain_ends_when_the_configuration_has_its_profile_no_more)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_block(&s);
    CHECK_EQ(controller_configure(s.c, STR("f"), STR("intervals: {requeue: 24h}\n"),
                                  (struct ucfg_env){ 0 }),
             0);
    story_run(&s, SECONDS(5));
    CHECK(!is_cordoned(&s));
}

TEST(node_drain_can_be_aborted)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_block(&s);
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"machine-deleted\":null},"
              "\"annotations\":{\"drydock.dev/abort\":\"true\"}}}");
    story_run(&s, SECONDS(5));
    CHECK(!is_cordoned(&s));
    CHECK_STR(state_of(&s), "operational");
    const struct jval *node =
        apiserver_find(s.server, STR(""), STR("nodes"), STR(""), STR("node-001"));
    CHECK(jval_get(jval_at(node, "metadata.annotations"), STR("drydock.dev/abort")) == NULL);
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001", /* and it can go again */
              "{\"metadata\":{\"labels\":{\"machine-deleted\":\"true\"}}}");
    story_run(&s, SECONDS(5));
    CHECK(is_cordoned(&s));
}

/* A node whose data cannot be read is left alone, cordon and all: that is shown. */
TEST(node_drain_shows_a_cordon_without_owner)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_block(&s);
    struct node_report report;
    CHECK(controller_explain(s.c, STR("node-001"), &s.memory, &report));
    CHECK_STR(report.orphan, "");
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"annotations\":{\"cloud.sap/maintenance-data\":\"{\"}}}");
    story_run(&s, SECONDS(5));
    CHECK(controller_explain(s.c, STR("node-001"), &s.memory, &report));
    CHECK_STR(report.orphan, "p");
    struct fleet_report fleet = { 0 };
    fleet_report_add(&fleet, &report, &s.memory);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < fleet.entry_n; i++) {
        shown += str_eq(fleet.entries[i].summary,
                        STR("cordoned by profile p, which does not serve the node"))
                     ? 1
                     : 0;
    }
    CHECK_EQ(shown, 1);
}

/* The name of a cordon's profile is whatever somebody has written there. */
TEST(node_drain_warns_of_a_cordon_whose_data_is_gone)
{
    CLEANUP(story_end)
    struct story s;
    struct str note;
    story_begin(&s);
    story_block(&s);
    CHECK_EQ(controller_events(s.server, "MaintenanceDataLost", NULL, NULL), 0);
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"machine-deleted\":null},"
              "\"annotations\":{\"cloud.sap/maintenance-data\":null}}}");
    story_run(&s, MINUTES(1));
    CHECK_STR(state_of(&s), "operational");
    CHECK(is_cordoned(&s));
    CHECK_EQ(controller_events(s.server, "MaintenanceDataLost", &s.memory, &note), 1);
    CHECK_STR(note, "The data annotation was gone although the node is cordoned by profile p: its "
                    "profiles begin anew, and it counts against limits until the cordon is lifted");
}

TEST(node_drain_takes_any_text_for_the_owner_of_a_cordon)
{
    static const char *const marks[] = { "a\\nb\\nc\\nd", "\\n\\n\\n\\n\\n", "entered\\n",
                                         "\\u0000x" };
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        CLEANUP(story_end)
        struct story s;
        check_case((int64_t)i);
        story_begin(&s);
        story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
                  arena_printf(&s.memory,
                               "{\"spec\":{\"unschedulable\":true},\"metadata\":{\"annotations\":{"
                               "\"cloud.sap/maintenance-data\":null,"
                               "\"drydock.dev/cordoned-by\":\"%s\"}}}",
                               marks[i])
                      .p);
        story_run(&s, MINUTES(1));
        CHECK_STR(state_of(&s), "operational");
        CHECK(!is_cordoned(&s)); /* a mark of ours, and nobody's cordon */
    }
    check_case(-1);
}

/* Each pod that the drain waits for is named. */
TEST(node_drain_names_every_pod_that_is_blocked)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_block(&s);
    story_run(&s, MINUTES(15));
    struct node_report report;
    CHECK(controller_explain(s.c, STR("node-001"), &s.memory, &report));
    CHECK(str_starts(report.drain, STR("draining: 4 pods are left; ")));
    CHECK(str_contains(report.drain, STR("default/agent: ")));
    CHECK(str_contains(report.drain, STR("default/db: ")));
    CHECK(str_contains(report.drain, STR("default/job: ")));
    CHECK(str_contains(report.drain, STR("default/web: ")));
    CHECK(str_contains(report.drain, STR("budget all allows no disruption")));
}

#define LEASE                                                                                      \
    "/apis/coordination.k8s.io/v1/namespaces/default/leases/"                                      \
    "maintenance-controller-leader-election.cloud.sap"

static void story_pause(struct story *s, const char *reason)
{
    story_ask(s, "PATCH", LEASE,
              arena_printf(&s->memory,
                           "{\"metadata\":{\"annotations\":{\"drydock.dev/paused\":%s}}}", reason)
                  .p);
    story_run(s, SECONDS(6));
}

/* A drain that is under way stands still with its cordon, says so, and goes on. */
TEST(node_drain_rests_while_everything_is_paused)
{
    CLEANUP(story_end)
    struct story s;
    struct node_report report;
    story_begin(&s);
    story_block(&s);
    story_pause(&s, "\"storage is down\"");
    story_ask(&s, "DELETE", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/all", "");
    story_run(&s, MINUTES(30));
    CHECK(is_there(&s, "web") && is_there(&s, "db") && is_there(&s, "job"));
    CHECK(is_cordoned(&s));
    CHECK(controller_explain(s.c, STR("node-001"), &s.memory, &report));
    CHECK_STR(report.waits, "everything is paused: storage is down");
    CHECK(str_ends(report.drain, STR("; pods stay, everything is paused: storage is down")));
    story_pause(&s, "null");
    story_run(&s, MINUTES(5));
    CHECK(!is_there(&s, "web"));
    CHECK_STR(state_of(&s), "in-maintenance");
}

/* Nothing begins: neither a cordon nor, for a node that is empty already, its maintenance. */
TEST(node_drain_does_not_begin_while_everything_is_paused)
{
    CLEANUP(story_end)
    struct story s;
    struct node_report report;
    story_begin(&s);
    story_pause(&s, "\"\"");
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"machine-deleted\":\"true\"}}}");
    story_run(&s, MINUTES(30));
    CHECK_STR(state_of(&s), "maintenance-required"); /* that it is needed may be said */
    CHECK(!is_cordoned(&s));
    CHECK(controller_explain(s.c, STR("node-001"), &s.memory, &report));
    CHECK_STR(report.waits, "everything is paused");
    story_pause(&s, "null");
    story_run(&s, MINUTES(5));
    CHECK_STR(state_of(&s), "in-maintenance");
}

/* A node that is on its way can be given up all the same. */
TEST(node_drain_can_be_aborted_while_everything_is_paused)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    story_block(&s);
    story_pause(&s, "\"x\"");
    story_ask(&s, "PATCH", "/api/v1/nodes/node-001",
              "{\"metadata\":{\"labels\":{\"machine-deleted\":null},"
              "\"annotations\":{\"drydock.dev/abort\":\"true\"}}}");
    story_run(&s, SECONDS(5));
    CHECK(!is_cordoned(&s));
    CHECK_STR(state_of(&s), "operational");
}
