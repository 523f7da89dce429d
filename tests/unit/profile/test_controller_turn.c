/* What a controller says of its decisions. */
#include "profile/controller.h"
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
    struct apiserver *server;
    struct api *door;
    struct log log;
    struct buf lines; /* since they were last looked at */
    struct controller *c;
};

static const char profiles[] =
    "intervals: {requeue: 24h}\n"
    "instances:\n"
    "  check:\n"
    "  - {type: hasLabel, name: asked, config: {key: asked}}\n"
    "  - {type: hasLabel, name: approved, config: {key: approved}}\n"
    "  trigger:\n"
    "  - {type: alterLabel, name: leave, config: {key: left, value: x}}\n"
    "  - {type: alterLabel, name: arrive, config: {key: here, value: x}}\n"
    "  notify:\n"
    "  - type: webhook\n"
    "    name: hook\n"
    "    config: {url: 'http://hook', body: x}\n"
    "    schedule: {type: periodic, config: {interval: 1h}}\n"
    "  - type: webhook\n"
    "    name: once\n"
    "    config: {url: 'http://hook', body: x}\n"
    "    schedule: {type: oneshot, config: {delay: 1h}}\n"
    "profiles:\n"
    "- name: p\n"
    "  operational:\n"
    "    notify: hook && once\n"
    "    transitions: [{check: asked, next: maintenance-required}]\n"
    "  maintenance-required:\n"
    "    transitions:\n"
    "    - {check: '!asked', next: operational}\n"
    "    - {check: asked && approved, next: in-maintenance, trigger: leave}\n"
    "  in-maintenance:\n"
    "    enter: arrive\n";

static void on_line(void *ctx, struct str line)
{
    struct story *s = ctx;
    buf_add(&s->lines, line);
}

static void story_run(struct story *s)
{
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + SECONDS(5));
    controller_check(s->c);
}

static void write_node(struct story *s, const char *method, const char *path, struct str body)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
        .body = body,
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    CHECK_EQ(reply.status / 100, 2);
}

/* A node of the profile p with these labels too. */
static void story_begin(struct story *s, const char *labels)
{
    *s = (struct story){ .time = virtual_loop_new(1, WALL) };
    s->log = (struct log){ .write = on_line, .ctx = s };
    s->server = apiserver_new(virtual_loop_root(s->time), 1);
    s->door = sim_api_new(virtual_loop_root(s->time), s->server, NULL);
    write_node(s, "POST", "/api/v1/nodes",
               arena_printf(&s->memory,
                            "{\"metadata\":{\"name\":\"n1\",\"labels\":{%s"
                            "\"cloud.sap/maintenance-profile\":\"p\"}}}",
                            labels));
    s->c = controller_open(&(struct core_config){ .loop = virtual_loop_root(s->time),
                                                  .api = s->door,
                                                  .log = &s->log,
                                                  .identity = STR("a_1") },
                           &(struct controller_config){ 0 });
    CHECK_EQ(controller_configure(s->c, STR("f"), str_from(profiles), (struct ucfg_env){ 0 }), 0);
    story_run(s);
}

static void story_end(struct story *s)
{
    controller_close(s->c);
    sim_api_free(s->door);
    apiserver_free(s->server);
    buf_done(&s->lines);
    arena_done(&s->memory);
    virtual_loop_free(s->time);
}

static void relabel(struct story *s, const char *labels)
{
    buf_reset(&s->lines);
    write_node(s, "PATCH", "/api/v1/nodes/n1",
               arena_printf(&s->memory, "{\"metadata\":{\"labels\":{%s}}}", labels));
    story_run(s);
}

/* How many lines have this in them. */
static uint32_t said(const struct story *s, const char *text)
{
    struct str rest = buf_str(&s->lines);
    struct str line;
    uint32_t n = 0;
    while (str_split_next(&rest, '\n', &line)) {
        n += str_contains(line, str_from(text)) ? 1 : 0;
    }
    return n;
}

TEST(turn_tells_details_of_a_node_that_asks_for_them)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "\"cloud.sap/maintenance-log-details\":\"true\",");
    relabel(&s, "\"poke\":\"1\"");
    CHECK_EQ(said(&s, "results of check plugins node=n1 profile=p next=maintenance-required "
                      "checks=\"asked=false\""),
             1);
    CHECK_EQ(said(&s, "NotifyPeriodic: no state change node=n1 profile=p instance=hook"), 1);
    CHECK_EQ(said(&s, "NotifyPeriodic: interval not passed or operational node=n1"), 1);
    CHECK_EQ(said(&s, "Notification instance is not scheduled to run node=n1"), 2);
    relabel(&s, "\"asked\":\"x\"");
    CHECK_EQ(said(&s, "next=maintenance-required checks=\"asked=true\""), 1);
    CHECK_EQ(said(&s, "next=operational checks=\"asked=true\""), 1);
    CHECK_EQ(said(&s, "next=in-maintenance checks=\"asked=true approved=false\""), 1);
}

TEST(turn_tells_no_details_unasked)
{
    static const char *const labels[] = {
        "",
        "\"cloud.sap/maintenance-log-details\":\"True\",",
    };
    for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
        check_case((int64_t)i);
        CLEANUP(story_end)
        struct story s;
        story_begin(&s, labels[i]);
        relabel(&s, "\"poke\":\"1\"");
        CHECK_EQ(s.lines.n, 0);
    }
    check_case(-1);
}

TEST(turn_tells_of_triggers_when_their_patch_is_through)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "");
    relabel(&s, "\"asked\":\"x\"");
    CHECK_EQ(said(&s, "Moved node to next state node=n1 profile=p state=maintenance-required"), 1);
    CHECK_EQ(said(&s, "Executed trigger instance"), 0);
    relabel(&s, "\"approved\":\"x\"");
    CHECK_EQ(said(&s, "Executed trigger instance node=n1 profile=p instance=leave"), 1);
    CHECK_EQ(said(&s, "Executed trigger instance node=n1 profile=p instance=arrive"), 1);
    CHECK_EQ(said(&s, "Moved node to next state node=n1 profile=p state=in-maintenance"), 1);
    relabel(&s, "\"poke\":\"1\"");
    CHECK_EQ(s.lines.n, 0);
}
