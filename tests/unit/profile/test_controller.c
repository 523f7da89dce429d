#include "profile/controller.h"

#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/controller_fixture.h"
#include "tests/lib/fake_api.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

struct story {
    struct virtual_loop *time;
    struct loop *loop;
    struct fake_api api;
    struct controller *c;
    struct arena a;
    int leading;
    int stopped;
};

static void story_on_leading(void *ctx, bool leading)
{
    struct story *s = ctx;
    s->leading += leading ? 1 : -1;
}

static void story_on_stopped(void *ctx)
{
    struct story *s = ctx;
    s->stopped++;
}

static struct fake_watch *nodes_watch(struct story *s)
{
    LIST_EACH (&s->api.watches, link) {
        struct fake_watch *w = CONTAINER_OF(link, struct fake_watch, link);
        if (str_starts(w->path, STR("/api/v1/nodes"))) {
            return w;
        }
    }
    return NULL;
}

/* Without election the Lease is watched, in case somebody pauses everything: there is none. */
static void story_sync_lease(struct story *s)
{
    LIST_EACH (&s->api.watches, link) {
        struct fake_watch *w = CONTAINER_OF(link, struct fake_watch, link);
        if (str_contains(w->path, STR("/leases?"))) {
            fake_watch_line(
                w, STR("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\","
                       "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}"));
        }
    }
}

static void story_begin(struct story *s, bool elect, const struct controller_config *config)
{
    *s = (struct story){ .time = virtual_loop_new(1, WALL) };
    s->loop = virtual_loop_root(s->time);
    fake_api_init(&s->api);
    const struct core_config all = {
        .loop = s->loop,
        .api = &s->api.api,
        .identity = STR("a_1"),
        .elect = elect,
        .on_leading = story_on_leading,
        .on_stopped = story_on_stopped,
        .ctx = s,
    };
    s->c = controller_open(&all, config);
    story_sync_lease(s);
}

static void story_end(struct story *s)
{
    controller_check(s->c);
    controller_close(s->c);
    fake_api_done(&s->api);
    arena_done(&s->a);
    CHECK_EQ(virtual_loop_armed(s->time), 0);
    virtual_loop_free(s->time);
}

static void story_run(struct story *s, usec_t span)
{
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + span);
    controller_check(s->c);
}

static struct str event_of(struct story *s, const char *type, const char *object)
{
    return arena_printf(&s->a, "{\"type\":\"%s\",\"object\":%s}", type, object);
}

static const char *node_of(struct story *s, const char *name, int version, const char *extra)
{
    return arena_printf(&s->a,
                        "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\","
                        "\"resourceVersion\":\"%d\"%s}}",
                        name, name, version, extra)
        .p;
}

static void story_sync(struct story *s, int version)
{
    struct str mark =
        arena_printf(&s->a,
                     "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%d\","
                     "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}",
                     version);
    fake_watch_line(nodes_watch(s), mark);
}

#define DATA                                                                                       \
    "{\\\"Profiles\\\":{\\\"default\\\":{\\\"Transition\\\":\\\"2026-01-02T03:04:05Z\\\","         \
    "\\\"Current\\\":\\\"operational\\\",\\\"Previous\\\":\\\"operational\\\"}},"                  \
    "\\\"Notifications\\\":{}}"
#define DONE                                                                                       \
    ",\"labels\":{\"cloud.sap/maintenance-state\":\"operational\"},"                               \
    "\"annotations\":{\"cloud.sap/maintenance-data\":\"" DATA "\"}"

TEST(controller_gives_a_node_its_state_and_then_rests)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ 0 });
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n1", 5, "")));
    story_run(&s, 0);
    CHECK_EQ(s.api.call_count, 0); /* not before everything is known */
    story_sync(&s, 7);
    story_run(&s, 0);
    CHECK_EQ(s.leading, 1);
    CHECK_EQ(s.api.call_count, 1);
    struct fake_call *patch = fake_call_first(&s.api);
    CHECK_EQ(patch->verb, API_PATCH);
    CHECK_STR(patch->path, "/api/v1/nodes/n1");
    CHECK_STR(patch->content_type, "application/merge-patch+json");
    CHECK_STR(patch->body,
              "{\"metadata\":{\"annotations\":{\"cloud.sap/maintenance-data\":\"" DATA "\"},"
              "\"labels\":{\"cloud.sap/maintenance-state\":\"operational\"},"
              "\"resourceVersion\":\"5\"}}");
    fake_call_reply(&s.api, patch, 200, str_from(node_of(&s, "n1", 8, DONE)));
    story_run(&s, HOURS(1));
    CHECK_EQ(s.api.sent, 1);
    CHECK_EQ(virtual_loop_armed(s.time), 0); /* idle means no timers */
    struct controller_node node;
    CHECK(controller_find_node(s.c, STR("n1"), &node));
    CHECK_STR(node.state, "operational");
    CHECK_EQ(node.version, 8);
    story_end(&s);
}

TEST(controller_ignores_an_event_that_its_own_write_overtook)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ 0 });
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n1", 5, "")));
    story_sync(&s, 5);
    story_run(&s, 0);
    fake_call_reply(&s.api, fake_call_first(&s.api), 200, str_from(node_of(&s, "n1", 8, DONE)));
    fake_watch_line(nodes_watch(&s), event_of(&s, "MODIFIED", node_of(&s, "n1", 6, "")));
    story_run(&s, HOURS(1));
    CHECK_EQ(s.api.sent, 1);
    story_end(&s);
}

TEST(controller_observes_again_after_a_conflict)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ 0 });
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n1", 5, "")));
    story_sync(&s, 5);
    story_run(&s, 0);
    fake_call_reply(&s.api, fake_call_first(&s.api), 409, STR("{}"));
    story_run(&s, 0);
    CHECK_EQ(s.api.call_count, 0);
    /* A heartbeat changes nothing that counts, only the version. */
    fake_watch_line(nodes_watch(&s), event_of(&s, "MODIFIED", node_of(&s, "n1", 6, "")));
    story_run(&s, 0);
    CHECK_EQ(s.api.call_count, 1);
    CHECK(str_ends(fake_call_first(&s.api)->body, STR("\"resourceVersion\":\"6\"}}")));
    story_end(&s);
}

TEST(controller_reads_the_node_when_no_event_explains_a_conflict)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ 0 });
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n1", 5, "")));
    story_sync(&s, 5);
    story_run(&s, 0);
    fake_call_reply(&s.api, fake_call_first(&s.api), 409, STR("{}"));
    story_run(&s, SECONDS(5));
    CHECK_EQ(s.api.call_count, 1);
    CHECK_EQ(fake_call_first(&s.api)->verb, API_GET);
    fake_call_reply(&s.api, fake_call_first(&s.api), 200, str_from(node_of(&s, "n1", 9, DONE)));
    story_run(&s, HOURS(1));
    CHECK_EQ(s.api.sent, 2);
    CHECK_EQ(virtual_loop_armed(s.time), 0);
    story_end(&s);
}

TEST(controller_lets_a_failing_node_wait_alone)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ .window = 1 });
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n1", 5, "")));
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n2", 6, "")));
    story_sync(&s, 6);
    story_run(&s, 0);
    CHECK_EQ(s.api.call_count, 1); /* the window */
    fake_call_reply(&s.api, fake_call_first(&s.api), 500, STR("{\"message\":\"webhook\"}"));
    story_run(&s, 0);
    CHECK_STR(fake_call_first(&s.api)->path, "/api/v1/nodes/n2");
    fake_call_reply(&s.api, fake_call_first(&s.api), 200, str_from(node_of(&s, "n2", 8, DONE)));
    story_run(&s, SECONDS(2));
    CHECK_STR(fake_call_first(&s.api)->path, "/api/v1/nodes/n1");
    story_end(&s);
}

TEST(controller_is_quiet_for_as_long_as_the_server_asks)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ 0 });
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n1", 5, "")));
    story_sync(&s, 6);
    story_run(&s, 0);
    fake_call_reply_after(&s.api, fake_call_first(&s.api), 429, SECONDS(7));
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n2", 7, "")));
    story_run(&s, SECONDS(7) - 1);
    CHECK_EQ(s.api.call_count, 0);
    story_run(&s, SECONDS(2));
    CHECK_EQ(s.api.call_count, 2);
    story_end(&s);
}

TEST(controller_leaves_a_node_alone_whose_data_it_cannot_read)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ 0 });
    fake_watch_line(nodes_watch(&s),
                    event_of(&s, "ADDED",
                             node_of(&s, "n1", 5,
                                     ",\"annotations\":{\"cloud.sap/maintenance-data\":"
                                     "\"{\\\"Extra\\\":1}\"}")));
    story_sync(&s, 6);
    story_run(&s, SECONDS(1));
    /* The node is not written to, and whoever looks at it learns why. */
    struct fake_call *call = fake_call_first(&s.api);
    CHECK_EQ(s.api.sent, 1);
    CHECK_STR(call->path, "/apis/events.k8s.io/v1/namespaces/default/events");
    CHECK(str_contains(call->body, STR("\"reason\":\"MaintenanceDataUnreadable\"")));
    CHECK(str_contains(call->body, STR("\"reportingInstance\":\"maintenance-a\"")));
    fake_call_reply(&s.api, call, 201, STR("{}"));
    story_run(&s, HOURS(1));
    CHECK_EQ(s.api.sent, 1);
    struct controller_node node;
    CHECK(controller_find_node(s.c, STR("n1"), &node));
    CHECK_STR(node.error,
              "failed to parse json value in data annotation: json: unknown field \"Extra\"");
    /* Mended by hand, it is served again. */
    fake_watch_line(nodes_watch(&s), event_of(&s, "MODIFIED", node_of(&s, "n1", 7, "")));
    story_run(&s, 0);
    CHECK_EQ(s.api.call_count, 1);
    story_end(&s);
}

TEST(controller_survives_what_no_server_should_send)
{
    static const struct {
        const char *line;
        const char *why;
    } cases[] = {
        { "{\"type\":\"ADDED\",\"object\":{", "malformed" },
        { "\x00\x01", "malformed" },
        { "[]", "type" },
        { "{\"type\":\"NEW\",\"object\":{}}", "type" },
        { "{\"type\":\"ADDED\",\"object\":[1]}", "without a name" },
        { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"n\"}}}", "want a number" },
        { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"n\xff\xfe\","
          "\"resourceVersion\":\"4\"}}}",
          "malformed" },
        { "{\"type\":\"BOOKMARK\",\"object\":{}}", "bookmark" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct story s;
        story_begin(&s, /* elect= */ false, &(struct controller_config){ 0 });
        fake_watch_line(nodes_watch(&s), str_from(cases[i].line));
        story_run(&s, SECONDS(1));
        struct str why = STR_NONE;
        CHECK(!core_ready(controller_core(s.c), &why));
        CHECK(str_contains(why, str_from(cases[i].why)));
        /* It lists again, and a server that has come to its senses is served. */
        CHECK_EQ(s.api.watched, 3); /* once the Lease, twice the nodes */
        fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n1", 5, "")));
        story_sync(&s, 6);
        story_run(&s, 0);
        CHECK(core_ready(controller_core(s.c), &why));
        CHECK_EQ(s.api.call_count, 1);
        story_end(&s);
    }
}

TEST(controller_refuses_a_ten_megabyte_annotation)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ 0 });
    CLEANUP(buf_done)
    struct buf line = { 0 };
    buf_add(&line, STR("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"n\","
                       "\"resourceVersion\":\"4\",\"annotations\":{"
                       "\"cloud.sap/maintenance-data\":\""));
    for (int i = 0; i < 10 * 1024 * 1024; i++) {
        buf_add_char(&line, 'x');
    }
    buf_add(&line, STR("\"}}}}"));
    fake_watch_line(nodes_watch(&s), buf_str(&line));
    struct str why = STR_NONE;
    CHECK(!core_ready(controller_core(s.c), &why));
    CHECK(str_contains(why, STR("at most")));
    CHECK_EQ(controller_node_count(s.c), 0);
    story_run(&s, SECONDS(1));
    story_end(&s);
}

TEST(controller_acts_only_while_it_leads)
{
    struct story s;
    story_begin(&s, /* elect= */ true, &(struct controller_config){ 0 });
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n1", 5, "")));
    story_sync(&s, 6);
    story_run(&s, 0);
    struct fake_call *get = fake_call_first(&s.api);
    CHECK_STR(get->path, "/apis/coordination.k8s.io/v1/namespaces/default/leases/"
                         "maintenance-controller-leader-election.cloud.sap");
    CHECK_EQ(s.api.call_count, 1);
    fake_call_reply(&s.api, get, 404, STR("{}"));
    story_run(&s, 0);
    struct fake_call *post = fake_call_first(&s.api);
    CHECK_EQ(post->verb, API_POST);
    struct str lease = arena_str(&s.a, post->body);
    CHECK(str_contains(lease, STR("\"holderIdentity\":\"a_1\"")));
    lease = arena_concat(&s.a, STR("{\"metadata\":{\"resourceVersion\":\"3\"},\"spec\":"),
                         str_sub(lease, str_find(lease, STR("\"spec\":")) + 7, SIZE_MAX));
    fake_call_reply(&s.api, post, 201, lease);
    story_run(&s, 0);
    CHECK(core_leads(controller_core(s.c)));
    CHECK_EQ(s.leading, 1);
    CHECK_EQ(s.api.call_count, 1);
    struct fake_call *patch = fake_call_first(&s.api);
    CHECK_EQ(patch->verb, API_PATCH);
    fake_call_reply(&s.api, patch, 200, str_from(node_of(&s, "n1", 8, DONE)));
    story_run(&s, SECONDS(11)); /* the renewal gets no answer */
    CHECK(!core_leads(controller_core(s.c)));
    CHECK_EQ(s.leading, 0);
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n2", 9, "")));
    story_run(&s, 0);
    CHECK_EQ(s.api.call_count, 1); /* the renewal, and no patch */
    CHECK_EQ(fake_call_first(&s.api)->verb, API_PUT);
    story_end(&s);
}

TEST(controller_stop_waits_for_answers_and_reports)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ 0 });
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n1", 5, "")));
    story_sync(&s, 6);
    story_run(&s, 0);
    core_stop(controller_core(s.c));
    story_run(&s, SECONDS(1));
    CHECK_EQ(s.stopped, 0);
    fake_call_reply(&s.api, fake_call_first(&s.api), 200, str_from(node_of(&s, "n1", 8, DONE)));
    story_run(&s, 0);
    CHECK_EQ(s.stopped, 1);
    CHECK_EQ(s.leading, 0);
    story_end(&s);
}

TEST(controller_forgets_a_node_with_its_patch_under_way)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ 0 });
    fake_watch_line(nodes_watch(&s), event_of(&s, "ADDED", node_of(&s, "n1", 5, "")));
    story_sync(&s, 6);
    story_run(&s, 0);
    fake_watch_line(nodes_watch(&s), event_of(&s, "DELETED", node_of(&s, "n1", 7, "")));
    story_run(&s, 0);
    CHECK_EQ(controller_node_count(s.c), 0);
    CHECK_EQ(s.api.call_count, 0);
    story_end(&s);
}

#define ROLL                                                                                       \
    "intervals: {requeue: 30s}\n"                                                                  \
    "instances:\n"                                                                                 \
    "  check: [{type: maxMaintenance, name: room, config: {max: 1}}]\n"                            \
    "profiles:\n"                                                                                  \
    "- name: roll\n"                                                                               \
    "  maintenance-required: {transitions: [{check: room, next: in-maintenance}]}\n"
#define ROLLING(state)                                                                             \
    ",\"labels\":{\"cloud.sap/maintenance-profile\":\"roll\","                                     \
    "\"cloud.sap/maintenance-state\":\"" state "\"},"                                              \
    "\"annotations\":{\"cloud.sap/maintenance-data\":\"{\\\"Profiles\\\":{\\\"roll\\\":{"          \
    "\\\"Transition\\\":\\\"2026-01-02T03:04:05Z\\\",\\\"Current\\\":\\\"" state                   \
    "\\\",\\\"Previous\\\":\\\"" state "\\\"}},\\\"Notifications\\\":{}}\"}"

TEST(controller_gives_the_place_of_a_node_that_is_gone_to_the_next_at_once)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ .wait_for_config = true });
    CHECK_EQ(controller_configure(s.c, STR("f"), STR(ROLL), (struct ucfg_env){ 0 }), 0);
    struct fake_watch *watch = nodes_watch(&s);
    fake_watch_line(watch, event_of(&s, "ADDED", node_of(&s, "n1", 5, ROLLING("in-maintenance"))));
    fake_watch_line(watch,
                    event_of(&s, "ADDED", node_of(&s, "n2", 6, ROLLING("maintenance-required"))));
    story_sync(&s, 7);
    story_run(&s, HOURS(1));
    CHECK_EQ(s.api.sent, 0);
    watch = nodes_watch(&s);
    fake_watch_line(watch,
                    event_of(&s, "DELETED", node_of(&s, "n1", 8, ROLLING("in-maintenance"))));
    story_run(&s, 0);
    CHECK_EQ(s.api.call_count, 1);
    CHECK_STR(fake_call_first(&s.api)->path, "/api/v1/nodes/n2");
    story_end(&s);
}

/* Without a configuration nothing of the annotations was kept, not even the nodes' states. */
TEST(controller_reads_nodes_anew_when_its_first_configuration_comes_late)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ .wait_for_config = true });
    struct str node = event_of(&s, "ADDED", node_of(&s, "n1", 5, ROLLING("in-maintenance")));
    fake_watch_line(nodes_watch(&s), node);
    story_sync(&s, 7);
    story_run(&s, SECONDS(1));
    CHECK_EQ(controller_configure(s.c, STR("f"), STR(ROLL), (struct ucfg_env){ 0 }), 0);
    story_run(&s, SECONDS(1));
    CHECK_EQ(s.api.sent, 0); /* not on half of what there is to know */
    fake_watch_line(nodes_watch(&s), node);
    story_sync(&s, 7);
    story_run(&s, HOURS(1));
    CHECK_EQ(s.api.sent, 0); /* it is as it should be */
    struct controller_node known;
    CHECK(controller_find_node(s.c, STR("n1"), &known));
    CHECK(str_contains(known.data, STR("in-maintenance")));
    story_end(&s);
}

static const char *waiting_of(struct story *s, const char *name, int version, const char *zone,
                              const char *state, const char *since)
{
    struct str more = arena_printf(
        &s->a,
        ",\"labels\":{\"cloud.sap/maintenance-profile\":\"roll\",\"zone\":\"%s\","
        "\"cloud.sap/maintenance-state\":\"%s\"},"
        "\"annotations\":{\"cloud.sap/maintenance-data\":\"{\\\"Profiles\\\":{\\\"roll\\\":{"
        "\\\"Transition\\\":\\\"2026-01-02T03:%sZ\\\",\\\"Current\\\":\\\"%s\\\","
        "\\\"Previous\\\":\\\"%s\\\"}},\\\"Notifications\\\":{}}\"}",
        zone, state, since, state, state);
    return node_of(s, name, version, more.p);
}

TEST(controller_serves_who_waited_longest_when_a_window_opens_for_many)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ .wait_for_config = true });
    CHECK_EQ(controller_configure(
                 s.c, STR("f"),
                 STR("intervals: {requeue: 30s}\n"
                     "instances:\n"
                     "  check:\n"
                     "  - {type: maxMaintenance, name: room, config: {max: 1}}\n"
                     "  - {type: timeWindow, name: window,\n"
                     "     config: {start: '03:10', end: '04:00', weekdays: [fri]}}\n"
                     "profiles:\n"
                     "- name: roll\n"
                     "  maintenance-required:\n"
                     "    transitions: [{check: window && room, next: in-maintenance}]\n"),
                 (struct ucfg_env){ 0 }),
             0);
    struct fake_watch *watch = nodes_watch(&s);
    const char *required = "maintenance-required";
    fake_watch_line(watch, event_of(&s, "ADDED", waiting_of(&s, "n1", 5, "a", required, "03:00")));
    fake_watch_line(watch, event_of(&s, "ADDED", waiting_of(&s, "n2", 6, "a", required, "01:00")));
    fake_watch_line(watch, event_of(&s, "ADDED", waiting_of(&s, "n3", 7, "a", required, "02:00")));
    story_sync(&s, 8);
    story_run(&s, MINUTES(5));
    CHECK_EQ(s.api.sent, 0);
    story_run(&s, MINUTES(2));
    CHECK_EQ(s.api.call_count, 1);
    CHECK_STR(fake_call_first(&s.api)->path, "/api/v1/nodes/n2");
    story_end(&s);
}

/* The patch that is under way; Events are answered. */
static struct fake_call *patch_of(struct story *s)
{
    story_run(s, 0);
    while (fake_call_first(&s->api) != NULL && fake_call_first(&s->api)->verb == API_POST) {
        fake_call_reply(&s->api, fake_call_first(&s->api), 201, STR("{}"));
        story_run(s, 0);
    }
    CHECK_EQ(s->api.call_count, 1);
    return fake_call_first(&s->api);
}

/* Otherwise a place would stay taken for as long as all newcomers together take. */
TEST(controller_goes_on_with_what_has_begun_before_it_begins_something_new)
{
    struct story s;
    story_begin(&s, /* elect= */ false,
                &(struct controller_config){ .wait_for_config = true, .window = 1 });
    CHECK_EQ(controller_configure(
                 s.c, STR("f"),
                 STR("intervals: {requeue: 30s}\n"
                     "instances:\n"
                     "  check: [{type: hasLabel, name: over, config: {key: zone, value: b}}]\n"
                     "profiles:\n"
                     "- name: roll\n"
                     "  in-maintenance: {transitions: [{check: over, next: operational}]}\n"),
                 (struct ucfg_env){ 0 }),
             0);
    struct fake_watch *watch = nodes_watch(&s);
    const char *inside = "in-maintenance";
    fake_watch_line(watch, event_of(&s, "ADDED", node_of(&s, "n1", 5, "")));
    fake_watch_line(watch, event_of(&s, "ADDED", node_of(&s, "n2", 6, "")));
    fake_watch_line(watch, event_of(&s, "ADDED", waiting_of(&s, "n3", 7, "b", inside, "01:00")));
    fake_watch_line(watch, event_of(&s, "ADDED", waiting_of(&s, "n4", 8, "a", inside, "01:00")));
    story_sync(&s, 9);
    CHECK_STR(patch_of(&s)->path, "/api/v1/nodes/n3");
    fake_call_reply(&s.api, patch_of(&s), 200,
                    str_from(waiting_of(&s, "n3", 10, "b", "operational", "04:05")));
    CHECK_STR(patch_of(&s)->path, "/api/v1/nodes/n1");
    /* One that is due meanwhile does not stand behind the other newcomer either. */
    fake_watch_line(watch,
                    event_of(&s, "MODIFIED", waiting_of(&s, "n4", 11, "b", inside, "01:00")));
    fake_call_reply(&s.api, patch_of(&s), 200, str_from(node_of(&s, "n1", 12, DONE)));
    CHECK_STR(patch_of(&s)->path, "/api/v1/nodes/n4");
    story_end(&s);
}

/* A place that the first node of a queue cannot take, because it waits for another group as well,
 * is offered to the next node. */
TEST(controller_offers_a_place_to_the_next_when_the_first_needs_another_one_too)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ .wait_for_config = true });
    CHECK_EQ(controller_configure(
                 s.c, STR("f"),
                 STR("intervals: {requeue: 30s}\n"
                     "instances:\n"
                     "  check:\n"
                     "  - {type: maxMaintenance, name: all, config: {max: 2}}\n"
                     "  - {type: maxMaintenance, name: each, config: {max: 1, groupBy: [zone]}}\n"
                     "profiles:\n"
                     "- name: roll\n"
                     "  maintenance-required:\n"
                     "    transitions: [{check: all && each, next: in-maintenance}]\n"),
                 (struct ucfg_env){ 0 }),
             0);
    struct fake_watch *watch = nodes_watch(&s);
    const char *required = "maintenance-required";
    const char *gone = waiting_of(&s, "n2", 10, "b", "in-maintenance", "00:00");
    fake_watch_line(watch,
                    event_of(&s, "ADDED", waiting_of(&s, "n1", 5, "a", "in-maintenance", "00:00")));
    fake_watch_line(watch,
                    event_of(&s, "ADDED", waiting_of(&s, "n2", 6, "b", "in-maintenance", "00:00")));
    fake_watch_line(watch, event_of(&s, "ADDED", waiting_of(&s, "n3", 7, "a", required, "01:00")));
    fake_watch_line(watch, event_of(&s, "ADDED", waiting_of(&s, "n4", 8, "a", required, "01:00")));
    fake_watch_line(watch, event_of(&s, "ADDED", waiting_of(&s, "n5", 9, "b", required, "01:00")));
    story_sync(&s, 9);
    story_run(&s, HOURS(1));
    CHECK_EQ(s.api.sent, 0);
    fake_watch_line(nodes_watch(&s), event_of(&s, "DELETED", gone));
    story_run(&s, 0);
    CHECK_EQ(s.api.call_count, 1);
    CHECK_STR(fake_call_first(&s.api)->path, "/api/v1/nodes/n5");
    story_end(&s);
}

/* The node's profiles wait for different groups: it is decided when either has a place. */
TEST(controller_looks_at_a_node_that_waits_for_two_groups)
{
    struct story s;
    story_begin(&s, /* elect= */ false, &(struct controller_config){ .wait_for_config = true });
    CHECK_EQ(controller_configure(
                 s.c, STR("f"),
                 STR("intervals: {requeue: 30s}\n"
                     "instances:\n"
                     "  check:\n"
                     "  - {type: maxMaintenance, name: one, config: {max: 1, profile: one}}\n"
                     "  - {type: maxMaintenance, name: two, config: {max: 1, profile: two}}\n"
                     "profiles:\n"
                     "- name: one\n"
                     "  operational: {transitions: [{check: one, next: in-maintenance}]}\n"
                     "- name: two\n"
                     "  operational: {transitions: [{check: two, next: in-maintenance}]}\n"),
                 (struct ucfg_env){ 0 }),
             0);
    static const char in[] =
        ",\"labels\":{\"cloud.sap/maintenance-profile\":\"%s\","
        "\"cloud.sap/maintenance-state\":\"in-maintenance\"},"
        "\"annotations\":{\"cloud.sap/maintenance-data\":\"{\\\"Profiles\\\":{\\\"%s\\\":{"
        "\\\"Transition\\\":\\\"2026-01-02T03:00:00Z\\\",\\\"Current\\\":\\\"in-maintenance\\\","
        "\\\"Previous\\\":\\\"in-maintenance\\\"}},\\\"Notifications\\\":{}}\"}";
    CLEANUP(buf_done)
    struct buf one = { 0 };
    CLEANUP(buf_done)
    struct buf two = { 0 };
    buf_printf(&one, in, "one", "one");
    buf_printf(&two, in, "two", "two");
    buf_add_char(&one, '\0');
    buf_add_char(&two, '\0');
    struct fake_watch *watch = nodes_watch(&s);
    fake_watch_line(watch, event_of(&s, "ADDED", node_of(&s, "n1", 5, buf_str(&one).p)));
    fake_watch_line(watch, event_of(&s, "ADDED", node_of(&s, "n2", 6, buf_str(&two).p)));
    fake_watch_line(
        watch, event_of(&s, "ADDED",
                        node_of(&s, "n3", 7,
                                ",\"labels\":{\"cloud.sap/maintenance-profile\":\"one--two\"}")));
    story_sync(&s, 8);
    story_run(&s, SECONDS(1));
    struct fake_call *patch = fake_call_first(&s.api); /* its first state */
    CHECK(str_contains(patch->body, STR("operational")));
    fake_call_reply(
        &s.api, patch, 200,
        str_from(
            node_of(&s, "n3", 9,
                    ",\"labels\":{\"cloud.sap/maintenance-profile\":\"one--two\","
                    "\"cloud.sap/maintenance-state\":\"operational\"},"
                    "\"annotations\":{\"cloud.sap/maintenance-data\":\"{\\\"Profiles\\\":{"
                    "\\\"one\\\":{\\\"Transition\\\":\\\"2026-01-02T03:04:06Z\\\",\\\"Current\\\":"
                    "\\\"operational\\\",\\\"Previous\\\":\\\"operational\\\"},"
                    "\\\"two\\\":{\\\"Transition\\\":\\\"2026-01-02T03:04:06Z\\\",\\\"Current\\\":"
                    "\\\"operational\\\",\\\"Previous\\\":\\\"operational\\\"}},"
                    "\\\"Notifications\\\":{}}\"}")));
    story_run(&s, HOURS(1));
    CHECK_EQ(s.api.sent, 1);
    fake_watch_line(nodes_watch(&s),
                    event_of(&s, "DELETED", node_of(&s, "n2", 10, buf_str(&two).p)));
    story_run(&s, 0);
    CHECK_EQ(s.api.call_count, 1);
    CHECK(str_contains(fake_call_first(&s.api)->body, STR("in-maintenance")));
    story_end(&s);
}
