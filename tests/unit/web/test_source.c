#include "web/source.h"

#include "profile/controller.h"
#include "sandbox/apiserver.h"
#include "sandbox/door.h"
#include "sandbox/vloop.h"
#include "tests/check.h"

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

TEST(source_shows_what_the_controller_knows)
{
    struct vloop *time = vloop_new(1, SECONDS(1700000000));
    struct loop *loop = vloop_view(time, 0);
    struct apiserver *server = apiserver_new(loop, 1);
    struct api *api = door_new(loop, server, NULL);
    add_node(server, "a", "z1");
    add_node(server, "b", "z2");

    struct source s;
    source_init(&s, NULL);
    struct str why = STR_NONE;
    CHECK(!s.health.ready(s.health.ctx, &why));
    CHECK_STR(why, "no controller runs");

    struct controller *c =
        controller_new(loop, api, NULL, NULL,
                       &(struct controller_config){ .identity = STR("me_1"), .elect = true });
    s.controller = c;
    CHECK(!s.health.ready(s.health.ctx, &why));
    (void)vloop_run(time, SECONDS(30));
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

    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct report report;
    CHECK(!s.web.report(s.web.ctx, STR("nobody"), &tmp, &report));
    CHECK(s.web.report(s.web.ctx, STR("b"), &tmp, &report));
    CHECK_STR(report.state, "operational");
    CHECK_EQ(report.label_n, 0);

    buf_done(&count.zones);
    source_done(&s);
    controller_free(c);
    door_free(api);
    apiserver_free(server);
    vloop_view_free(loop);
    vloop_free(time);
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

TEST(source_explains_by_the_configuration)
{
    struct vloop *time = vloop_new(1, SECONDS(1700000000));
    struct loop *loop = vloop_view(time, 0);
    struct apiserver *server = apiserver_new(loop, 1);
    struct api *api = door_new(loop, server, NULL);
    add_node(server, "a", "z1");
    struct controller *c = controller_new(
        loop, api, NULL, NULL,
        &(struct controller_config){ .identity = STR("me_1"), .wait_for_setup = true });
    struct source s;
    source_init(&s, c);
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct report report;
    (void)vloop_run(time, SECONDS(5));
    CHECK(s.web.report(s.web.ctx, STR("a"), &tmp, &report)); /* before there is any */
    CHECK_STR(report.node, "a");

    CHECK_EQ(controller_configure(c, STR("m.yaml"), str_from(setup), (struct ucfg_env){ 0 }), 0);
    (void)vloop_run(time, SECONDS(10));
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
    const struct report_transition *t = &report.profiles[0].transitions[0];
    CHECK_STR(t->expression, "due");
    CHECK_EQ(t->check_n, 1);
    CHECK_STR(t->checks[0].type, "hasLabel");
    CHECK(t->checks[0].holds);
    CHECK(t->checks[0].reason.n > 0);

    source_done(&s);
    controller_free(c);
    door_free(api);
    apiserver_free(server);
    vloop_view_free(loop);
    vloop_free(time);
}
