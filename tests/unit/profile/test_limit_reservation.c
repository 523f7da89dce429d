/* Profiles under MaintenanceLimits: when a node may ask, and how it waits. */
#include "core/core_internal.h"
#include "profile/node_report.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/controller_fixture.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

struct story {
    struct arena memory;
    struct virtual_loop *time;
    struct loop *view;
    struct apiserver *server;
    struct api *door;
    struct controller *c;
    uint64_t steps;
};

static const char profiles[] = "intervals: {requeue: 1h}\n"
                               "instances:\n"
                               "  check:\n"
                               "  - {type: hasLabel, name: needed, config: {key: needed}}\n"
                               "  - {type: hasLabel, name: done, config: {key: done}}\n"
                               "profiles:\n"
                               "- name: p\n"
                               "  operational:\n"
                               "    transitions: [{check: needed, next: maintenance-required}]\n"
                               "  maintenance-required:\n"
                               "    transitions: [{check: needed, next: in-maintenance}]\n"
                               "  in-maintenance:\n"
                               "    transitions: [{check: done, next: operational}]\n";

static void send(struct story *s, const char *path, struct str body, bool yaml)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = STR("POST"),
        .path = str_from(path),
        .content_type = yaml ? STR("application/yaml") : API_JSON,
        .body = body,
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    CHECK_EQ(reply.status, 201);
}

static void change(struct story *s, const char *method, const char *path, const char *body)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = API_MERGE_PATCH,
        .body = str_from(body),
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    CHECK_EQ(reply.status, 200);
}

static uint32_t in_maintenance(struct story *s, uint32_t nodes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        const struct jval *node = apiserver_find(s->server, STR(""), STR("nodes"), STR(""),
                                                 arena_printf(&s->memory, "n%u", i));
        struct str state = jval_str(
            jval_get(jval_at(node, "metadata.labels"), STR("cloud.sap/maintenance-state")));
        n += str_eq(state, STR("in-maintenance")) ? 1 : 0;
    }
    return n;
}

static void story_run(struct story *s, usec_t span)
{
    usec_t until = virtual_loop_now(s->time) + span;
    while (s->steps < 100000 && virtual_loop_step(s->time, until)) {
        controller_check(s->c);
        s->steps++;
    }
}

/* Nodes that all need maintenance; the controller's own clock is off by `skew`. It does not find
 * out whether there are limits before story_look_for_limits. */
static void story_begin(struct story *s, uint32_t nodes, usec_t skew)
{
    *s = (struct story){ .time = virtual_loop_new(1, WALL) };
    s->server = apiserver_new(virtual_loop_root(s->time), 1);
    for (uint32_t i = 0; i < nodes; i++) {
        send(s, "/api/v1/nodes",
             arena_printf(&s->memory,
                          "{\"metadata\":{\"name\":\"n%u\",\"labels\":{\"needed\":\"x\","
                          "\"cloud.sap/maintenance-profile\":\"p\"}}}",
                          i),
             /* yaml= */ false);
    }
    s->view = virtual_loop_view_new(s->time, skew);
    s->door = sim_api_new(s->view, s->server, NULL);
    s->c = controller_open(&(struct core_config){ .loop = s->view,
                                                  .api = s->door,
                                                  .identity = STR("a_1"),
                                                  .limits = { .namespace = STR("default") } },
                           &(struct controller_config){ 0 });
    controller_core(s->c)->config.use_limits = true;
    CHECK_EQ(controller_configure(s->c, STR("f"), str_from(profiles), (struct ucfg_env){ 0 }), 0);
}

static void story_limit(struct story *s, const char *spec)
{
    static const char *const crds[] = { "crds/maintenancelimits.repairman.k8s.io.yaml",
                                        "crds/maintenancerequests.repairman.k8s.io.yaml",
                                        "crds/maintenanceselectors.repairman.k8s.io.yaml" };
    for (size_t i = 0; i < ARRAY_LEN(crds); i++) {
        send(s, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", check_data(crds[i]),
             /* yaml= */ true);
    }
    send(s, "/apis/repairman.k8s.io/v1/maintenancelimits",
         arena_printf(&s->memory,
                      "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceLimit\","
                      "\"metadata\":{\"name\":\"node\"},\"spec\":%s}",
                      spec),
         /* yaml= */ false);
}

static void story_look_for_limits(struct story *s)
{
    struct core *core = controller_core(s->c);
    server_clock_note(&core->client.clock, loop_wall(virtual_loop_root(s->time)), 0);
    core_arbiter_look(core);
}

static void story_end(struct story *s)
{
    controller_close(s->c);
    sim_api_free(s->door);
    virtual_loop_view_free(s->view);
    apiserver_free(s->server);
    arena_done(&s->memory);
    virtual_loop_free(s->time);
}

/* A controller that has just begun does not know the limits: nobody goes before it does. */
TEST(limit_reservation_waits_until_the_limits_are_known)
{
    struct story s;
    story_begin(&s, 3, 0);
    story_limit(&s, "{\"limit\":0,\"minimum\":1,\"maxCount\":1}");
    story_run(&s, MINUTES(10));
    CHECK_EQ(in_maintenance(&s, 3), 0);
    story_look_for_limits(&s);
    story_run(&s, MINUTES(10));
    CHECK_EQ(in_maintenance(&s, 3), 1);
    story_end(&s);
}

/* It is said that there are none. */
TEST(limit_reservation_waits_for_nothing_when_there_are_no_limits)
{
    struct story s;
    story_begin(&s, 3, 0);
    story_run(&s, MINUTES(10));
    CHECK_EQ(in_maintenance(&s, 3), 0);
    story_look_for_limits(&s);
    story_run(&s, MINUTES(10));
    CHECK_EQ(in_maintenance(&s, 3), 3);
    story_end(&s);
}

static uint32_t reserved(struct story *s)
{
    const struct jval *limit = apiserver_find(s->server, STR("repairman.k8s.io"),
                                              STR("maintenancelimits"), STR(""), STR("node"));
    const struct jval *list = jval_at(limit, "status.reservations");
    return jval_kind(list) == JARR ? list->n : 0;
}

/* They are away, whatever the limit says; each is read before it is written above it. */
TEST(limit_reservation_reserves_for_those_in_maintenance_above_the_limit)
{
    struct story s;
    story_begin(&s, 3, 0);
    story_look_for_limits(&s);
    story_run(&s, MINUTES(1));
    CHECK_EQ(in_maintenance(&s, 3), 3);
    story_limit(&s, "{\"limit\":0,\"minimum\":1,\"maxCount\":1}");
    story_run(&s, MINUTES(1));
    CHECK_EQ(reserved(&s), 3);
    story_end(&s);
}

/* A gap ends by the server's clock. By a clock that is ahead it has ended long ago, and by one that
 * is behind it has hardly begun: neither asks in circles, nor sleeps through it. */
TEST(limit_reservation_waits_for_a_gap_by_the_clock_of_the_server)
{
    static const usec_t skews[] = { MINUTES(10), -MINUTES(10), 0 };
    for (size_t i = 0; i < ARRAY_LEN(skews); i++) {
        struct story s;
        check_case((int64_t)i);
        story_begin(&s, 2, skews[i]);
        story_limit(&s, "{\"limit\":100,\"timeouts\":{\"betweenOperationsSeconds\":120}}");
        story_look_for_limits(&s);
        story_run(&s, SECONDS(60));
        CHECK_EQ(in_maintenance(&s, 2), 1);
        uint64_t before = s.steps;
        story_run(&s, SECONDS(50));
        CHECK_EQ(in_maintenance(&s, 2), 1);
        CHECK(s.steps - before < 1000);
        story_run(&s, SECONDS(60));
        CHECK_EQ(in_maintenance(&s, 2), 2);
        story_end(&s);
    }
    check_case(-1);
}

/* A limit that is paused stops the drains under it, and says so; they go on when it is not. */
static bool is_evicted(struct story *s, const char *pod)
{
    const struct jval *found =
        apiserver_find(s->server, STR(""), STR("pods"), STR("default"), str_from(pod));
    return found == NULL || jval_at(found, "metadata.deletionTimestamp") != NULL;
}

TEST(limit_reservation_pauses_drains_with_its_limit)
{
    struct story s;
    story_begin(&s, 1, 0);
    CHECK_EQ(controller_configure(
                 s.c, STR("f"),
                 STR("intervals: {requeue: 1h}\n"
                     "instances:\n"
                     "  check: [{type: hasLabel, name: needed, config: {key: needed}}]\n"
                     "  trigger: [{type: eviction, name: drain, config: {action: drain}}]\n"
                     "profiles:\n"
                     "- name: p\n"
                     "  operational:\n"
                     "    transitions: [{check: needed, trigger: drain, next: in-maintenance}]\n"),
                 (struct ucfg_env){ 0 }),
             0);
    send(&s, "/api/v1/namespaces/default/pods",
         STR("{\"metadata\":{\"name\":\"web\",\"labels\":{\"app\":\"web\"}},\"spec\":{"
             "\"nodeName\":\"n0\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"),
         /* yaml= */ false);
    send(&s, "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
         STR("{\"metadata\":{\"name\":\"web\"},\"spec\":{\"selector\":{},\"maxUnavailable\":0}}"),
         /* yaml= */ false);
    change(&s, "PATCH", "/api/v1/namespaces/default/pods/web/status",
           "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
           "\"status\":\"True\"}]}}");
    change(&s, "PATCH", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web/status",
           "{\"status\":{\"observedGeneration\":1,\"disruptionsAllowed\":0,\"currentHealthy\":1,"
           "\"desiredHealthy\":1,\"expectedPods\":1}}");
    story_limit(&s, "{\"limit\":0,\"minimum\":1,\"maxCount\":1}");
    story_look_for_limits(&s);
    story_run(&s, MINUTES(1));
    struct node_report report;
    CHECK(controller_explain(s.c, STR("n0"), &s.memory, &report));
    CHECK(str_starts(report.drain, STR("draining: 1 pod is left; default/web: budget web allows")));
    CHECK(!str_contains(report.drain, STR("paused")));
    change(&s, "PATCH", "/apis/repairman.k8s.io/v1/maintenancelimits/node",
           "{\"spec\":{\"paused\":true}}");
    story_run(&s, SECONDS(5));
    CHECK(controller_explain(s.c, STR("n0"), &s.memory, &report));
    CHECK(str_ends(report.drain, STR("; pods stay while limit node is paused")));
    change(&s, "DELETE", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web", "");
    story_run(&s, MINUTES(5));
    CHECK(!is_evicted(&s, "web"));
    change(&s, "PATCH", "/apis/repairman.k8s.io/v1/maintenancelimits/node",
           "{\"spec\":{\"paused\":false}}");
    story_run(&s, MINUTES(5));
    CHECK(is_evicted(&s, "web"));
    story_end(&s);
}
