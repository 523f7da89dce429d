/* Notifications as a whole controller sends them, against the sandbox. */
#include "profile/controller.h"
#include "profile/node_report.h"

#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/sim/outbound.h"
#include "tests/check.h"
#include "tests/lib/controller_fixture.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

struct story {
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct api *api;
    struct faults faults;
    struct inbox inbox;
    struct outbound *outbound;
    struct controller *c;
    uint32_t refuse;    /* so many messages are refused first, */
    usec_t retry_after; /* with this wish */
    bool silent;        /* nothing is answered */
};

static void on_message(void *ctx, const struct inbox_message *message UNUSED,
                       struct inbox_answer *answer)
{
    struct story *s = ctx;
    if (s->silent) {
        answer->status = 0;
    } else if (s->refuse > 0) {
        s->refuse--;
        answer->status = 503;
        answer->retry_after = s->retry_after;
    }
}

static void story_open(struct story *s)
{
    *s = (struct story){ .time = virtual_loop_new(1, WALL) };
    struct loop *loop = virtual_loop_root(s->time);
    s->server = apiserver_new(loop, 1);
    faults_init(&s->faults, 1);
    s->api = sim_api_new(loop, s->server, &s->faults);
    inbox_init(&s->inbox);
    s->inbox.script = on_message;
    s->inbox.ctx = s;
    s->outbound = sim_outbound_new(loop, &s->inbox, NULL);
    s->c = controller_open(
        &(struct core_config){ .loop = loop, .api = s->api, .identity = STR("a_1"), .elect = true },
        &(struct controller_config){ .outbound = s->outbound });
}

/* A profile "p" that tells by a webhook of nodes which need maintenance, and looks at them again
 * `settled` after that. */
static void story_begin(struct story *s, const char *settled)
{
    story_open(s);
    struct str text =
        arena_printf(&s->memory,
                     "intervals: {requeue: 24h}\n"
                     "instances:\n"
                     "  check:\n"
                     "  - {type: wait, name: settled, config: {duration: %s}}\n"
                     "  - {type: hasLabel, name: asked, config: {key: asked}}\n"
                     "  - {type: hasLabel, name: approved, config: {key: approved}}\n"
                     "  notify:\n"
                     "  - type: webhook\n"
                     "    name: hook\n"
                     "    config: {url: 'http://hook', body: '{{ .Node.Name }} {{ .State }}'}\n"
                     "    schedule: {type: oneshot, config: {delay: 0s}}\n"
                     "profiles:\n"
                     "- name: p\n"
                     "  operational: {transitions: [{check: asked, next: maintenance-required}]}\n"
                     "  maintenance-required:\n"
                     "    notify: hook\n"
                     "    transitions: [{check: settled && approved, next: in-maintenance}]\n",
                     settled);
    CHECK_EQ(controller_configure(s->c, STR("f"), text, (struct ucfg_env){ 0 }), 0);
}

static void story_end(struct story *s)
{
    controller_check(s->c);
    controller_close(s->c);
    sim_outbound_free(s->outbound);
    sim_api_free(s->api);
    faults_done(&s->faults);
    apiserver_free(s->server);
    inbox_done(&s->inbox);
    arena_done(&s->memory);
    virtual_loop_free(s->time);
}

static void story_run(struct story *s, usec_t span)
{
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + span);
    controller_check(s->c);
}

static void add_node(struct story *s, const char *name)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = STR("POST"),
        .path = STR("/api/v1/nodes"),
        .content_type = API_JSON,
        .body = arena_printf(&s->memory,
                             "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"asked\":\"\","
                             "\"cloud.sap/maintenance-profile\":\"p\"}}}",
                             name),
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    CHECK_EQ(reply.status, 201);
}

TEST(node_notify_tells_of_a_change_once)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "30s");
    add_node(&s, "n1");
    story_run(&s, HOURS(2));
    CHECK_EQ(s.inbox.arrived, 1);
    CHECK_STR(inbox_at(&s.inbox, 0)->request.body, "n1 maintenance-required");
}

/* Nothing else happens to the node: the wait's end alone must bring the next try, also when a check
 * has the node looked at before that. */
TEST(node_notify_tries_again_when_its_wait_is_over)
{
    static const char *const settled[] = { "30s", "5s", "1h" };
    for (size_t i = 0; i < ARRAY_LEN(settled); i++) {
        check_case((int64_t)i);
        CLEANUP(story_end)
        struct story s;
        story_begin(&s, settled[i]);
        s.refuse = 2;
        s.retry_after = SECONDS(20);
        add_node(&s, "n1");
        story_run(&s, HOURS(2));
        CHECK_EQ(s.inbox.arrived, 3);
        usec_t first = inbox_at(&s.inbox, 0)->at;
        usec_t second = inbox_at(&s.inbox, 1)->at;
        usec_t third = inbox_at(&s.inbox, 2)->at;
        CHECK(second - first >= SECONDS(20) && second - first < SECONDS(22));
        CHECK(third - second >= SECONDS(20) && third - second < SECONDS(22));
    }
    check_case(-1);
}

/* Another writer makes patches conflict, and each conflict has the node looked at for reasons of
 * its own; the next try comes all the same. */
TEST(node_notify_tries_again_after_a_conflict)
{
    for (usec_t after = 0; after < MSECONDS(30); after += MSECONDS(1)) {
        check_case(after);
        CLEANUP(story_end)
        struct story s;
        story_begin(&s, "30s");
        s.refuse = 2;
        s.retry_after = SECONDS(3);
        add_node(&s, "n1");
        story_run(&s, after);
        struct apiserver_reply reply = { 0 };
        struct apiserver_request request = {
            .method = STR("PATCH"),
            .path = STR("/api/v1/nodes/n1"),
            .content_type = API_MERGE_PATCH,
            .body = STR("{\"metadata\":{\"annotations\":{\"else\":\"where\"}}}"),
        };
        apiserver_handle(s.server, &request, &s.memory, &reply);
        CHECK_EQ(reply.status, 200);
        story_run(&s, MINUTES(5));
        CHECK_EQ(s.inbox.arrived, 3);
    }
    check_case(-1);
}

TEST(node_notify_that_fails_holds_up_no_other_node)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "30s");
    s.refuse = 1;
    s.retry_after = MINUTES(10);
    add_node(&s, "n1");
    story_run(&s, SECONDS(1));
    add_node(&s, "n2");
    story_run(&s, SECONDS(1));
    CHECK_EQ(s.inbox.arrived, 2);
    CHECK_STR(inbox_at(&s.inbox, 1)->request.body, "n2 maintenance-required");
    story_run(&s, MINUTES(11));
    CHECK_EQ(s.inbox.arrived, 3);
    CHECK_STR(inbox_at(&s.inbox, 2)->request.body, "n1 maintenance-required");
}

/* Three that are due on entry: each is sent once, although the annotation tells of the first before
 * the last has gone out. */
TEST(node_notify_sends_each_of_several_messages_once)
{
    CLEANUP(story_end)
    struct story s;
    story_open(&s);
    CHECK_EQ(controller_configure(
                 s.c, STR("f"),
                 STR("intervals: {requeue: 24h}\n"
                     "instances:\n"
                     "  check: [{type: hasLabel, name: asked, config: {key: asked}}]\n"
                     "  notify:\n"
                     "  - {type: webhook, name: a, config: {url: 'http://a', body: 'a'},\n"
                     "     schedule: {type: periodic, config: {interval: 12h}}}\n"
                     "  - {type: webhook, name: b, config: {url: 'http://b', body: 'b'},\n"
                     "     schedule: {type: periodic, config: {interval: 12h}}}\n"
                     "  - {type: webhook, name: c, config: {url: 'http://c', body: 'c'},\n"
                     "     schedule: {type: oneshot, config: {delay: 0s}}}\n"
                     "profiles:\n"
                     "- name: p\n"
                     "  operational: {transitions: [{check: asked, next: maintenance-required}]}\n"
                     "  maintenance-required: {notify: a && b && c}\n"),
                 (struct ucfg_env){ 0 }),
             0);
    s.refuse = 1; /* the first is sent twice, and heard once; the others do not wait for it */
    add_node(&s, "n1");
    story_run(&s, HOURS(2));
    CHECK_EQ(s.inbox.arrived, 4);
    CHECK_STR(inbox_at(&s.inbox, 1)->request.body, "b");
    CHECK_STR(inbox_at(&s.inbox, 2)->request.body, "c");
    CHECK_STR(inbox_at(&s.inbox, 3)->request.body, "a");
    story_run(&s, HOURS(11)); /* and each reminds when its time has come */
    CHECK_EQ(s.inbox.arrived, 6);
}

/* The message is under way when the lease ends, and nothing happens to the node afterwards. */
TEST(node_notify_goes_on_when_its_controller_leads_again)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "1s");
    s.silent = true;
    add_node(&s, "n1");
    story_run(&s, SECONDS(5));
    CHECK_EQ(s.inbox.arrived, 1);
    CHECK(core_leads(controller_core(s.c)));
    s.faults.down = true; /* for longer than the lease lasts */
    sim_api_disconnect(s.api);
    story_run(&s, SECONDS(20));
    CHECK(!core_leads(controller_core(s.c)));
    s.faults.down = false;
    s.silent = false;
    story_run(&s, HOURS(1));
    CHECK(core_leads(controller_core(s.c)));
    CHECK_EQ(s.inbox.arrived, 2);
}

static struct str state_of(struct story *s, const char *name)
{
    const struct jval *node =
        apiserver_find(s->server, STR(""), STR("nodes"), STR(""), str_from(name));
    return jval_str(jval_get(jval_at(node, "metadata.labels"), STR("cloud.sap/maintenance-state")));
}

static void set_labels(struct story *s, const char *name, const char *labels)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = STR("PATCH"),
        .path = arena_printf(&s->memory, "/api/v1/nodes/%s", name),
        .content_type = API_MERGE_PATCH,
        .body = arena_printf(&s->memory, "{\"metadata\":{\"labels\":{%s}}}", labels),
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    CHECK_EQ(reply.status, 200);
}

/* The hook is down for hours: who is approved goes, who is done comes back; people are told when
 * the hook is up again, of both states, and see until then what is wrong. */
TEST(node_notify_that_fails_does_not_hold_up_its_node)
{
    CLEANUP(story_end)
    struct story s;
    story_open(&s);
    CHECK_EQ(controller_configure(
                 s.c, STR("f"),
                 STR("intervals: {requeue: 24h}\n"
                     "instances:\n"
                     "  check:\n"
                     "  - {type: hasLabel, name: asked, config: {key: asked}}\n"
                     "  - {type: hasLabel, name: approved, config: {key: approved}}\n"
                     "  notify:\n"
                     "  - {type: webhook, name: hook, config: {url: 'http://hook', body: "
                     "'{{ .State }}'}, schedule: {type: oneshot, config: {delay: 0s}}}\n"
                     "profiles:\n"
                     "- name: p\n"
                     "  operational: {transitions: [{check: asked, next: maintenance-required}]}\n"
                     "  maintenance-required:\n"
                     "    notify: hook\n"
                     "    transitions: [{check: approved, next: in-maintenance}]\n"
                     "  in-maintenance:\n"
                     "    notify: hook\n"
                     "    transitions: [{check: '!asked', next: operational}]\n"),
                 (struct ucfg_env){ 0 }),
             0);
    s.refuse = UINT32_MAX;
    add_node(&s, "n1");
    story_run(&s, MINUTES(30));
    CHECK_STR(state_of(&s, "n1"), "maintenance-required");
    CHECK_EQ(controller_events(s.server, "NotificationFailed", NULL, NULL),
             1); /* however often it was tried */
    struct node_report report;
    CHECK(controller_explain(s.c, STR("n1"), &s.memory, &report));
    CHECK_EQ(report.unsent_n, 1);
    CHECK_STR(report.unsent[0].instance, "hook");
    CHECK_STR(report.unsent[0].state, "maintenance-required");
    CHECK(str_contains(report.unsent[0].error, STR("answered 503")));
    CHECK(report.unsent[0].next > report.now && report.unsent[0].next < report.now + MINUTES(6));
    CHECK_EQ(report.profiles[0].transition_n, 1); /* beside the checks, not instead of them */
    CHECK_STR(report.profiles[0].error, "");
    set_labels(&s, "n1", "\"approved\":\"x\"");
    story_run(&s, SECONDS(5));
    CHECK_STR(state_of(&s, "n1"), "in-maintenance");
    set_labels(&s, "n1", "\"asked\":null,\"approved\":null");
    story_run(&s, SECONDS(5));
    CHECK_STR(state_of(&s, "n1"), "operational");
    story_run(&s, HOURS(5));
    uint64_t before = s.inbox.arrived;
    s.refuse = 0;
    story_run(&s, MINUTES(6));
    CHECK_EQ(s.inbox.arrived, before + 2);
    story_run(&s, HOURS(5));
    CHECK_EQ(s.inbox.arrived, before + 2);
    uint32_t kept = s.inbox.n;
    struct str last[] = { inbox_at(&s.inbox, kept - 2)->request.body,
                          inbox_at(&s.inbox, kept - 1)->request.body };
    bool in_order = str_eq(last[0], STR("maintenance-required"));
    CHECK_STR(last[in_order ? 0 : 1], "maintenance-required");
    CHECK_STR(last[in_order ? 1 : 0], "in-maintenance");
    CHECK(controller_explain(s.c, STR("n1"), &s.memory, &report));
    CHECK_EQ(report.unsent_n, 0);
}

/* A new file may have the right address: nobody waits for the back-off. */
TEST(node_notify_tries_again_at_once_with_another_configuration)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "1h");
    s.refuse = 1;
    s.retry_after = MINUTES(30);
    add_node(&s, "n1");
    story_run(&s, SECONDS(5));
    CHECK_EQ(s.inbox.arrived, 1);
    CHECK_EQ(controller_configure(
                 s.c, STR("f"),
                 STR("intervals: {requeue: 24h}\n"
                     "instances:\n"
                     "  check: [{type: hasLabel, name: asked, config: {key: asked}}]\n"
                     "  notify:\n"
                     "  - {type: webhook, name: hook, config: {url: 'http://new', body: 'again'},\n"
                     "     schedule: {type: oneshot, config: {delay: 0s}}}\n"
                     "profiles:\n"
                     "- name: p\n"
                     "  operational: {transitions: [{check: asked, next: maintenance-required}]}\n"
                     "  maintenance-required: {notify: hook}\n"),
                 (struct ucfg_env){ 0 }),
             0);
    story_run(&s, SECONDS(1));
    CHECK_EQ(s.inbox.arrived, 2);
    CHECK_STR(inbox_at(&s.inbox, 1)->request.url, "http://new");
    CHECK_STR(inbox_at(&s.inbox, 1)->request.body, "again");
}
