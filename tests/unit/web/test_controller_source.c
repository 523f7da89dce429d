#include "web/controller_source.h"

#include "format/json_writer.h"
#include "format/yaml.h"
#include "request/requests_part.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/controller_fixture.h"

struct count {
    uint32_t nodes;
    uint32_t operational;
    struct buf zones;
};

static void count_node(void *ctx, const struct web_node *node)
{
    struct count *count = ctx;
    count->nodes++;
    count->operational += str_eq(node->state, STR("operational")) ? 1 : 0;
    for (uint32_t i = 0; i < node->label_count; i++) {
        if (str_eq(node->labels[i].key, STR("topology.kubernetes.io/zone"))) {
            buf_add(&count->zones, node->labels[i].value);
        }
    }
}

static void add_node(struct apiserver *server, const char *name, const char *zone)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = STR("POST"),
        .path = STR("/api/v1/nodes"),
        .body = arena_printf(&a,
                             "{\"metadata\":{\"name\":\"%s\",\"labels\":"
                             "{\"topology.kubernetes.io/zone\":\"%s\"}}}",
                             name, zone),
    };
    apiserver_handle(server, &request, &a, &reply);
    CHECK_EQ(reply.status, 201);
}

TEST(controller_source_shows_what_the_controller_knows)
{
    struct virtual_loop *time = virtual_loop_new(1, SECONDS(1700000000));
    struct loop *loop = virtual_loop_view_new(time, 0);
    struct apiserver *server = apiserver_new(loop, 1);
    struct api *api = sim_api_new(loop, server, NULL);
    add_node(server, "a", "z1");
    add_node(server, "b", "z2");

    struct controller_source s;
    controller_source_init(&s, NULL);
    struct str why = STR_NONE;
    CHECK(!s.health.ready(s.health.ctx, &why));
    CHECK_STR(why, "no controller runs");

    struct controller *c = controller_open(
        &(struct core_config){ .loop = loop, .api = api, .identity = STR("me_1"), .elect = true },
        &(struct controller_config){ 0 });
    s.controller = c;
    CHECK(!s.health.ready(s.health.ctx, &why));
    (void)virtual_loop_run(time, SECONDS(30));
    CHECK(s.health.ready(s.health.ctx, &why));
    struct web_status status;
    s.web.status(s.web.ctx, &status);
    CHECK(status.leading);
    CHECK(status.ready);
    CHECK_STR(status.leader, "me_1");
    CHECK_EQ(status.writes, 2);
    struct count count = { 0 };
    s.web.each_node(s.web.ctx, &(struct web_visit){ .fn = count_node, .ctx = &count });
    CHECK_EQ(count.nodes, 2);
    CHECK_EQ(count.operational, 2);
    CHECK_STR(buf_str(&count.zones), "z1z2");

    /* The server asks for a pause: it is ready, and says so. */
    (void)client_note(&controller_core(c)->client, API_GET,
                      &(struct api_reply){ .status = 429, .retry_after = SECONDS(20) });
    CHECK(s.health.ready(s.health.ctx, &why));
    CHECK(str_starts(why, STR("no requests to the API server since 2023-11-14T22:13:50Z and ")));
    s.web.status(s.web.ctx, &status);
    CHECK(str_ends(status.pause, STR(": it answered 429 with Retry-After (20 s are waited)")));

    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct node_report report;
    CHECK(!s.web.report(s.web.ctx, STR("nobody"), &tmp, &report));
    CHECK(s.web.report(s.web.ctx, STR("b"), &tmp, &report));
    CHECK_STR(report.state, "operational");
    CHECK_EQ(report.label_n, 0);

    buf_done(&count.zones);
    controller_source_done(&s);
    controller_close(c);
    sim_api_free(api);
    apiserver_free(server);
    virtual_loop_view_free(loop);
    virtual_loop_free(time);
}

static const char setup[] = "intervals: {requeue: 60s}\n"
                            "dashboard: {labelFilter: [topology.kubernetes.io/zone]}\n"
                            "instances:\n"
                            "  check:\n"
                            "  - {type: hasLabel, name: due, config: {key: reboot}}\n"
                            "  trigger: []\n"
                            "  notify: []\n"
                            "profiles:\n"
                            "- name: default\n"
                            "  operational:\n"
                            "    transitions: [{check: due, next: maintenance-required}]\n";

TEST(controller_source_explains_by_the_configuration)
{
    struct virtual_loop *time = virtual_loop_new(1, SECONDS(1700000000));
    struct loop *loop = virtual_loop_view_new(time, 0);
    struct apiserver *server = apiserver_new(loop, 1);
    struct api *api = sim_api_new(loop, server, NULL);
    add_node(server, "a", "z1");
    struct controller *c =
        controller_open(&(struct core_config){ .loop = loop, .api = api, .identity = STR("me_1") },
                        &(struct controller_config){ .wait_for_config = true });
    struct controller_source s;
    controller_source_init(&s, c);
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct node_report report;
    (void)virtual_loop_run(time, SECONDS(5));
    CHECK(s.web.report(s.web.ctx, STR("a"), &tmp, &report)); /* before there is any */
    CHECK_STR(report.node, "a");

    CHECK_EQ(controller_configure(c, STR("m.yaml"), str_from(setup), (struct ucfg_env){ 0 }), 0);
    (void)virtual_loop_run(time, SECONDS(10));
    CHECK(controller_configure(c, STR("m.yaml"), STR("profiles: 7"), (struct ucfg_env){ 0 }) < 0);
    struct web_status status;
    s.web.status(s.web.ctx, &status);
    CHECK_STR(status.config_file, "m.yaml");
    CHECK(str_contains(status.config_error, STR("m.yaml")));
    CHECK_EQ(status.profile_count, 1);
    CHECK_STR(status.profiles[0], "default");

    CHECK(s.web.report(s.web.ctx, STR("a"), &tmp, &report));
    CHECK_EQ(report.label_n, 1);
    CHECK_STR(report.labels[0].value, "z1");
    CHECK_EQ(report.profile_n, 1);
    CHECK_EQ(report.profiles[0].transition_n, 1);
    const struct node_report_transition *t = &report.profiles[0].transitions[0];
    CHECK_STR(t->expression, "due");
    CHECK_EQ(t->check_n, 1);
    CHECK_STR(t->checks[0].type, "hasLabel");
    CHECK(t->checks[0].holds);
    CHECK(t->checks[0].reason.n > 0);

    controller_source_done(&s);
    controller_close(c);
    sim_api_free(api);
    apiserver_free(server);
    virtual_loop_view_free(loop);
    virtual_loop_free(time);
}

/* ---- limits ---- */

static const char rolling[] = "intervals: {requeue: 60s}\n"
                              "instances:\n"
                              "  check:\n"
                              "  - {type: hasLabel, name: due, config: {key: reboot}}\n"
                              "  trigger: []\n"
                              "  notify: []\n"
                              "profiles:\n"
                              "- name: default\n"
                              "  operational:\n"
                              "    transitions: [{check: due, next: maintenance-required}]\n"
                              "  maintenance-required:\n"
                              "    transitions: [{check: due, next: in-maintenance}]\n";

static void send(struct apiserver *server, int status, const char *method, const char *path,
                 struct str body)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? STR("application/merge-patch+json")
                                                               : STR("application/json"),
        .body = body,
    };
    apiserver_handle(server, &request, &a, &reply);
    CHECK_EQ(reply.status, status);
}

static void install(struct apiserver *server)
{
    static const char *const files[] = { "crds/maintenancelimits.repairman.k8s.io.yaml",
                                         "crds/maintenancerequests.repairman.k8s.io.yaml",
                                         "crds/maintenanceselectors.repairman.k8s.io.yaml" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        CLEANUP(buf_done)
        struct buf json = { 0 };
        struct ydoc doc = { 0 };
        struct err err = { 0 };
        CHECK_EQ(ydoc_parse(check_data(files[i]), &a, &doc, &err), 0);
        struct json_writer w = json_writer_on(&json);
        jw_val(&w, doc.root);
        send(server, 201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             buf_str(&json));
    }
}

static void check_limits_report(const struct limits_report *limits_report)
{
    CHECK_EQ(limits_report->limit_n, 1);
    CHECK_EQ(limits_report->limits[0].allowed, 1);
    CHECK_EQ(limits_report->limits[0].held, 1);
    CHECK_EQ(limits_report->limits[0].waiting, 2);
    CHECK_EQ(limits_report->claim_n, 3);
    static const struct {
        const char *name;
        const char *target;
        const char *reason;
    } wanted[] = {
        { "profile/default", "b", "LimitReached" }, /* who came first */
        { "mr-c", "c", "LimitReached" },
        { "profile/default", "a", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        CHECK_STR(limits_report->claims[i].name, wanted[i].name);
        CHECK_STR(limits_report->claims[i].target, wanted[i].target);
        CHECK_STR(limits_report->claims[i].reason, wanted[i].reason);
        CHECK_EQ(limits_report->claims[i].limit_n, 1);
    }
    CHECK_STR(limits_report->claims[0].blocker->target, "a");
    CHECK_STR(limits_report->claims[0].until, "the one held under limit node ends");
}

/* A node in maintenance, one whose profile waits for the limit, and a request that does. */
TEST(controller_source_shows_profiles_and_requests_under_one_limit)
{
    struct virtual_loop *time = virtual_loop_new(1, SECONDS(1700000000));
    struct loop *loop = virtual_loop_view_new(time, 0);
    struct apiserver *server = apiserver_new(loop, 1);
    struct api *api = sim_api_new(loop, server, NULL);
    struct requests_part requests;
    struct controller_source s;
    struct limits_report limits_report;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    add_node(server, "a", "z1");
    add_node(server, "b", "z1");
    add_node(server, "c", "z1");
    struct core *core =
        core_new(&(struct core_config){ .loop = loop,
                                        .api = api,
                                        .identity = STR("me_1"),
                                        .use_limits = true,
                                        .limits = { .namespace = STR("default") } });
    struct controller *c =
        controller_new(core, &(struct controller_config){ .wait_for_config = true });
    requests_part_init(&requests, core, &(struct requests_config){ 0 });
    controller_source_init(&s, c);
    s.requests = &requests.requests;
    CHECK(!s.web.limits_report(s.web.ctx, /* ended= */ false, &tmp,
                               &limits_report)); /* there are no CRDs */
    CHECK_EQ(s.web.limits_report_version(s.web.ctx), 0);
    install(server);
    send(server, 201, "POST", "/apis/repairman.k8s.io/v1/maintenancelimits",
         STR("{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceLimit\","
             "\"metadata\":{\"name\":\"node\"},\"spec\":{\"limit\":10}}"));
    core_start(core);
    CHECK_EQ(controller_configure(c, STR("m.yaml"), str_from(rolling), (struct ucfg_env){ 0 }), 0);
    (void)virtual_loop_run(time, SECONDS(30));
    send(server, 200, "PATCH", "/api/v1/nodes/a",
         STR("{\"metadata\":{\"labels\":{\"reboot\":\"1\"}}}"));
    (void)virtual_loop_run(time, SECONDS(60));
    send(server, 200, "PATCH", "/api/v1/nodes/b",
         STR("{\"metadata\":{\"labels\":{\"reboot\":\"1\"}}}"));
    (void)virtual_loop_run(time, SECONDS(90));
    send(server, 201, "POST", "/apis/repairman.k8s.io/v1/maintenancerequests",
         STR("{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceRequest\","
             "\"metadata\":{\"name\":\"mr-c\"},\"spec\":{\"name\":\"c\",\"type\":\"node\"}}"));
    uint64_t version = s.web.limits_report_version(s.web.ctx);
    (void)virtual_loop_run(time, SECONDS(120));
    CHECK(s.web.limits_report_version(s.web.ctx) > version);

    CHECK(s.web.limits_report(s.web.ctx, /* ended= */ false, &tmp, &limits_report));
    check_limits_report(&limits_report);

    controller_source_done(&s);
    requests_part_done(&requests);
    controller_close(c);
    sim_api_free(api);
    apiserver_free(server);
    virtual_loop_view_free(loop);
    virtual_loop_free(time);
}
