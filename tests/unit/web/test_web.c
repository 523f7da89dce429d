#include "web/web.h"

#include "format/json.h"
#include "profile/fleet_report.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/unit/web/exchange_fixture.h"
#include "web/health.h"
#include "web/fleet_document.h"

/* A fleet that tests change at will. */
struct web_fixture {
    struct virtual_loop *time;
    struct loop *loop;
    struct web_node nodes[4];
    uint32_t n;
    uint32_t repeat;  /* node "a" is there so many times more */
    uint64_t version; /* of every node */
    uint32_t visited;
    uint32_t reported;
    struct str error; /* of every profile */
    struct web_status status;
    struct web_source source;
    struct metrics metrics;
    struct web *web;
    uint32_t boards; /* how many were made */
    uint64_t limits_report_version;
    uint64_t operations_version;
    bool paused;
};

static void web_fixture_status(void *ctx, struct web_status *ret)
{
    struct web_fixture *f = ctx;
    *ret = f->status;
}

static void web_fixture_each(void *ctx, const struct web_visit *visit)
{
    struct web_fixture *f = ctx;
    for (uint32_t i = 0; i < f->n + f->repeat; i++) {
        struct web_node *node = &f->nodes[i < f->n ? i : 0];
        node->version = f->version;
        if (visit->wants == NULL || visit->wants(visit->ctx, node->name, node->version)) {
            f->visited++;
            visit->fn(visit->ctx, node);
        }
    }
}

static const struct web_label zone_a[] = { { STR_INIT("other"), STR_INIT("x") },
                                           { STR_INIT("zone"), STR_INIT("<a>") } };

static const struct web_profile in_os = { STR_INIT("os"), STR_INIT("operational"),
                                          SECONDS(1700000000) };

static struct node_report_check check = { .name = STR_INIT("reboot"),
                                          .type = STR_INIT("hasAnnotation"),
                                          .reason = STR_INIT("annotation reboot is not there"),
                                          .next = USEC_NEVER };
static struct node_report_transition transition = { .target = PROFILE_STATE_REQUIRED,
                                                    .expression = STR_INIT("reboot"),
                                                    .next = USEC_NEVER,
                                                    .checks = &check,
                                                    .check_n = 1 };
static struct node_report_label exported = { STR_INIT("zone"), STR_INIT("<a>") };

static bool web_fixture_report(void *ctx, struct str name, struct arena *out,
                               struct node_report *ret)
{
    struct web_fixture *f = ctx;
    f->reported++;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct web_node *node = &f->nodes[i];
        if (!str_eq(node->name, name)) {
            continue;
        }
        struct node_report_profile *p = ARENA_NEW(out, struct node_report_profile);
        *p = (struct node_report_profile){
            .name = STR("os"), .error = f->error, .transitions = &transition, .transition_n = 1
        };
        (void)profile_state_parse(node->state, &p->state);
        *ret =
            (struct node_report){ .node = node->name,
                                  .state = node->state,
                                  .error = node->error,
                                  .updated = node->state.n > 0 ? SECONDS(1700000001) + 500000 : 0,
                                  .labels = &exported,
                                  .label_n = 1,
                                  .profiles = p,
                                  .profile_n = 1 };
        node_report_mark_blocking(ret);
        return true;
    }
    return false;
}

static void web_fixture_init(struct web_fixture *f)
{
    *f = (struct web_fixture){ .n = 2, .time = virtual_loop_new(1, SECONDS(1700000000)) };
    f->loop = virtual_loop_view_new(f->time, 0);
    f->source = (struct web_source){ .ctx = f,
                                     .status = web_fixture_status,
                                     .each_node = web_fixture_each,
                                     .report = web_fixture_report };
    f->nodes[0] = (struct web_node){ .name = STR("a"),
                                     .state = STR("operational"),
                                     .ready = true,
                                     .profiles = &in_os,
                                     .profile_count = 1,
                                     .labels = zone_a,
                                     .label_count = 2 };
    f->nodes[1] = (struct web_node){ .name = STR("b") };
    f->status =
        (struct web_status){ .identity = STR("me_1"), .leader = STR("me_1"), .ready = true };
    metrics_init(&f->metrics);
    f->web = web_new(f->loop, &f->source, &f->metrics);
}

static void web_fixture_done(struct web_fixture *f)
{
    web_free(f->web);
    metrics_done(&f->metrics);
    virtual_loop_view_free(f->loop);
    virtual_loop_free(f->time);
}

static void run_for(struct web_fixture *f, usec_t time)
{
    usec_t until = loop_now(f->loop) + time;
    while (virtual_loop_step(f->time, until)) {
    }
}

TEST(web_info_has_the_shape_of_the_original)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    f.error = STR("check \"x\"\nis bad");
    send_request(web_handle, f.web, &x, "POST", "/api/v1/info");
    CHECK_EQ(x.status, 200);
    CHECK_STR(buf_str(&x.body),
              "[{\"node\":\"a\",\"profiles\":[{\"applied\":{\"next\":\"operational\","
              "\"transitions\":[{\"passed\":false,\"target\":\"maintenance-required\",\"chain\":{"
              "\"passed\":false,\"info\":{\"reboot\":{\"id\":\"hasAnnotation\",\"passed\":false,"
              "\"info\":{}}},\"expression\":\"reboot\"},\"error\":\"\"}],"
              "\"error\":\"check \\\"x\\\"\\nis bad\"},\"name\":\"os\","
              "\"state\":\"operational\"}],\"labels\":{\"zone\":\"\\u003ca\\u003e\"},"
              "\"updated\":\"2023-11-14T22:13:21.5Z\"}]");
    CHECK(str_contains(buf_str(&x.headers), STR("Content-Type: application/json\n")));
}

TEST(web_explains_one_node)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    f.nodes[0].name = STR("a b/c");
    send_request(web_handle, f.web, &x, "GET", "/api/v1/explain?x=1&node=a+b%2fc");
    CHECK_EQ(x.status, 200);
    CHECK(str_starts(buf_str(&x.body), STR("{\"node\":\"a b/c\",")));
    CHECK(str_contains(buf_str(&x.body), STR("\"now\":\"2023-11-14T22:13:20Z\"")));
    CHECK(str_contains(buf_str(&x.body), STR("\"name\":\"reboot\",\"type\":\"hasAnnotation\","
                                             "\"answer\":\"fail\",\"holds\":true")));
    static const struct {
        const char *path;
        int status;
        const char *body;
    } cases[] = {
        { "/api/v1/explain", 400,
          "{\"error\":\"want ?node=NAME, ?request=NAME, ?limit=NAME or ?nodemaintenance=NAME\"}" },
        { "/api/v1/explain?node=%zz", 404, "{\"error\":\"there is no node '%zz'\"}" },
        { "/api/v1/explain?node=%22", 404, "{\"error\":\"there is no node '\\\"'\"}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(fake_exchange_done)
        struct fake_exchange y = { 0 };
        send_request(web_handle, f.web, &y, "GET", cases[i].path);
        CHECK_EQ(y.status, cases[i].status);
        CHECK_STR(buf_str(&y.body), cases[i].body);
    }
}

TEST(web_status_sums_the_fleet_up)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    struct str configured[] = { STR("os"), STR("other") };
    f.status.profiles = configured;
    f.status.profile_count = 2;
    f.status.config_file = STR("m.yaml");
    f.status.config_error = STR("m.yaml:1:1: no");
    f.nodes[0].state = STR("in-maintenance");
    send_request(web_handle, f.web, &x, "GET", "/api/v1/status");
    CHECK_EQ(x.status, 200);
    CHECK_STR(buf_str(&x.body),
              "{\"version\":\"" DRYDOCK_VERSION "\",\"title\":\"\",\"leader\":\"me_1\",\"why\":"
              "\"\",\"config\":{\"file\":\"m.yaml\",\"error\":\"m.yaml:1:1: no\"},\"now\":"
              "\"2023-11-14T22:13:20Z\",\"nodes\":2,\"draining\":0,\"blocked\":0,\"states\":{"
              "\"operational\":1,"
              "\"maintenance-required\":0,\"in-maintenance\":1},\"profiles\":[{\"name\":\"os\","
              "\"operational\":1,\"maintenance-required\":0,\"in-maintenance\":1},{\"name\":"
              "\"other\",\"operational\":0,\"maintenance-required\":0,\"in-maintenance\":0}],"
              "\"entries\":[{\"node\":\"a\",\"profile\":\"os\",\"state\":\"in-maintenance\","
              "\"failing\":false,\"gist\":\"goes to operational\"}]}");
}

/* The demo's nodes live in a faster time than the browser that looks at them. */
TEST(web_tells_times_by_the_clock_of_its_source)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    struct loop *ahead = virtual_loop_view_new(f.time, HOURS(7));
    f.source.clock = ahead;
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    CLEANUP(fake_exchange_done)
    struct fake_exchange y = { 0 };
    send_request(web_handle, f.web, &x, "GET", "/api/v1/explain?node=a");
    CHECK(str_contains(buf_str(&x.body), STR("\"now\":\"2023-11-15T05:13:20Z\"")));
    send_request(web_handle, f.web, &y, "GET", "/api/v1/status");
    CHECK(str_contains(buf_str(&y.body), STR("\"now\":\"2023-11-15T05:13:20Z\"")));
    virtual_loop_view_free(ahead);
}

/* A large fleet is looked at over several turns, and whoever leaves meanwhile is not answered. */
TEST(web_surveys_a_large_fleet_in_slices)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    CLEANUP(fake_exchange_done)
    struct fake_exchange gone = { 0 };
    f.repeat = 2 * FLEET_DOCUMENT_SLICE + 10;
    send_request(web_handle, f.web, &x, "GET", "/api/v1/info");
    CHECK(!x.ended);
    CHECK_EQ(f.reported, FLEET_DOCUMENT_SLICE);
    send_request(web_handle, f.web, &gone, "GET", "/api/v1/info");
    gone.door.on_close(gone.door.on_close_ctx);
    run_for(&f, SECONDS(1));
    CHECK(x.ended);
    CHECK(!gone.ended);
    CHECK_EQ(f.reported, 2 * FLEET_DOCUMENT_SLICE + 10 + 2);
    send_request(web_handle, f.web, &gone, "GET", "/api/v1/status");
    CHECK(!gone.ended); /* ends with the server */
}

/* Whoever asks while a document is being made gets the next one, with what has changed since. */
TEST(web_makes_one_document_for_all_who_wait_for_it)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    struct fake_exchange first = { 0 };
    struct fake_exchange info[3] = { 0 };
    struct fake_exchange status = { 0 };
    f.repeat = FLEET_DOCUMENT_SLICE;
    send_request(web_handle, f.web, &first, "GET", "/api/v1/info");
    f.n = 3;
    f.nodes[2] = (struct web_node){ .name = STR("came"), .state = STR("operational") };
    send_request(web_handle, f.web, &info[0], "GET", "/api/v1/info");
    send_request(web_handle, f.web, &status, "GET", "/api/v1/status");
    send_request(web_handle, f.web, &info[1], "GET", "/api/v1/info");
    send_request(web_handle, f.web, &info[2], "GET", "/api/v1/info");
    info[2].door.on_close(info[2].door.on_close_ctx);
    run_for(&f, SECONDS(1));
    CHECK(first.ended && status.ended && info[0].ended && info[1].ended && !info[2].ended);
    CHECK(!str_contains(buf_str(&first.body), STR("came")));
    CHECK(str_contains(buf_str(&info[0].body), STR("came")));
    CHECK(info[0].shared == info[1].shared);
    CHECK_EQ(f.reported, 3 * FLEET_DOCUMENT_SLICE + 2 + 3 + 3);
    fake_exchange_done(&first);
    fake_exchange_done(&info[0]);
    fake_exchange_done(&info[1]);
    fake_exchange_done(&status);
}

TEST(web_leaves_a_document_that_nobody_waits_for)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    struct fake_exchange gone = { 0 };
    CLEANUP(fake_exchange_done)
    struct fake_exchange next = { 0 };
    f.repeat = FLEET_DOCUMENT_SLICE;
    send_request(web_handle, f.web, &gone, "GET", "/api/v1/info");
    send_request(web_handle, f.web, &next, "GET", "/api/v1/status");
    gone.door.on_close(gone.door.on_close_ctx);
    run_for(&f, SECONDS(1));
    CHECK(next.ended && !gone.ended);
    CHECK_EQ(f.reported, 2 * FLEET_DOCUMENT_SLICE + 2);
}

TEST(web_streams_share_their_snapshot_and_what_changes)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange one = { 0 };
    CLEANUP(fake_exchange_done)
    struct fake_exchange two = { 0 };
    send_request(web_handle, f.web, &one, "GET", "/api/v1/events");
    uint32_t visited = f.visited;
    send_request(web_handle, f.web, &two, "GET", "/api/v1/events");
    CHECK(one.shared == two.shared);
    CHECK_EQ(f.visited, visited); /* nothing was put together again */
    CHECK(str_eq(buf_str(&one.body), buf_str(&two.body)));
    f.version++;
    f.nodes[1].ready = true;
    CLEANUP(fake_exchange_done)
    struct fake_exchange three = { 0 };
    send_request(web_handle, f.web, &three, "GET", "/api/v1/events");
    CHECK(one.shared == two.shared);
    CHECK(str_contains(buf_str(&one.body), STR("event: delta")));
    CHECK(str_eq(buf_str(&one.body), buf_str(&two.body)));
    CHECK(!str_contains(buf_str(&three.body), STR("event: delta")));
}

/* Four labels of 20 MiB are more than a document may have. */
TEST(web_ends_streams_when_too_much_changes_at_once)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    send_request(web_handle, f.web, &x, "GET", "/api/v1/events");
    CLEANUP(buf_done)
    struct buf text = { 0 };
    while (text.n < (size_t)20 * 1024 * 1024) {
        buf_add(&text, STR("0123456789abcdef0123456789abcdef"));
    }
    const struct web_label label = { .key = STR("long"), .value = buf_str(&text) };
    static const struct str names[] = { STR_INIT("a"), STR_INIT("b"), STR_INIT("c"),
                                        STR_INIT("d") };
    for (f.n = 0; f.n < ARRAY_LEN(names); f.n++) {
        f.nodes[f.n] = (struct web_node){ .name = names[f.n], .labels = &label, .label_count = 1 };
    }
    f.version++;
    run_for(&f, WEB_INTERVAL);
    CHECK(x.ended);
    CHECK_EQ(web_streams(f.web), 0);
}

TEST(web_info_of_nothing_is_an_empty_list)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    f.n = 0;
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    send_request(web_handle, f.web, &x, "GET", "/api/v1/info");
    CHECK_STR(buf_str(&x.body), "[]");
}

TEST(web_events_begin_with_a_snapshot_and_go_on_with_what_changed)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    send_request(web_handle, f.web, &x, "GET", "/api/v1/events");
    CHECK(x.streaming);
    CHECK_EQ(web_streams(f.web), 1);
    CHECK(str_starts(buf_str(&x.body), STR("retry: 1000\n\nevent: snapshot\ndata: {\"status\":{")));
    CHECK(str_contains(
        buf_str(&x.body),
        STR("{\"name\":\"b\",\"state\":\"\",\"ready\":false,\"cordoned\":false,"
            "\"profiles\":[],\"labels\":{}}],\"board\":null,\"operations\":null}\n\n")));
    CHECK(str_contains(buf_str(&x.body),
                       STR("\"profiles\":[{\"name\":\"os\",\"state\":\"operational\",\"since\":"
                           "\"2023-11-14T22:13:20Z\"}],\"labels\":{\"other\":\"x\",")));
    buf_reset(&x.body);
    run_for(&f, SECONDS(2));
    CHECK_EQ(x.body.n, 0); /* nothing changed, nothing is said */

    CHECK_EQ(f.visited, 4); /* twice each at the beginning; nobody is put together for nothing */
    f.version++;
    f.nodes[1].state = STR("operational");
    f.nodes[1].ready = true;
    f.nodes[2] = (struct web_node){ .name = STR("c") };
    f.n = 3;
    f.status.leading = true;
    run_for(&f, WEB_INTERVAL);
    CHECK(str_starts(buf_str(&x.body), STR("event: status\ndata: {\"version\":")));
    CHECK(str_contains(buf_str(&x.body),
                       STR("event: delta\ndata: "
                           "{\"set\":[{\"name\":\"b\",\"state\":\"operational\",\"ready\":true,"
                           "\"cordoned\":false,\"profiles\":[],\"labels\":{}},{\"name\":\"c\","
                           "\"state\":\"\",\"ready\":false,"
                           "\"cordoned\":false,\"profiles\":[],\"labels\":{}}],\"del\":[]}\n\n")));
    buf_reset(&x.body);
    f.n = 1;
    run_for(&f, WEB_INTERVAL);
    CHECK_STR(buf_str(&x.body), "event: delta\ndata: {\"set\":[],\"del\":[\"b\",\"c\"]}\n\n");
    buf_reset(&x.body);
    run_for(&f, WEB_KEEPALIVE + WEB_INTERVAL);
    CHECK_STR(buf_str(&x.body), ": still here\n\n");
    x.door.on_close(x.door.on_close_ctx);
    CHECK_EQ(web_streams(f.web), 0);
    CHECK(!virtual_loop_step(f.time, loop_now(f.loop) + HOURS(1))); /* no timer runs for nobody */
}

TEST(web_events_of_one_node_follow_its_report)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    send_request(web_handle, f.web, &x, "GET", "/api/v1/events?node=a");
    CHECK(x.streaming);
    CHECK(str_starts(buf_str(&x.body),
                     STR("retry: 1000\n\nevent: explain\ndata: {\"node\":\"a\",\"state\":")));
    CHECK(str_contains(buf_str(&x.body), STR("\"now\":\"2023-11-14T22:13:20Z\"")));
    buf_reset(&x.body);
    run_for(&f, SECONDS(5));
    CHECK_EQ(x.body.n, 0); /* time alone is no change */
    f.error = STR("boom");
    run_for(&f, WEB_EXPLAIN_EVERY + WEB_INTERVAL);
    CHECK(str_starts(buf_str(&x.body), STR("event: explain\ndata: {")));
    CHECK(str_contains(buf_str(&x.body), STR("\"error\":\"boom\"")));
    buf_reset(&x.body);
    f.n = 0;
    run_for(&f, WEB_EXPLAIN_EVERY + WEB_INTERVAL);
    CHECK_STR(buf_str(&x.body), "event: gone\ndata: {}\n\n");
    x.backlog = WEB_BACKLOG_MAX + 1;
    f.n = 1;
    run_for(&f, WEB_EXPLAIN_EVERY + WEB_INTERVAL);
    CHECK(x.ended);
    CHECK_EQ(web_streams(f.web), 0);
}

TEST(web_events_drop_who_does_not_read)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange slow = { 0 };
    CLEANUP(fake_exchange_done)
    struct fake_exchange good = { 0 };
    send_request(web_handle, f.web, &slow, "GET", "/api/v1/events");
    send_request(web_handle, f.web, &good, "GET", "/api/v1/events");
    slow.backlog = WEB_BACKLOG_MAX + 1;
    f.version++;
    f.nodes[0].unschedulable = true;
    run_for(&f, WEB_INTERVAL);
    CHECK(slow.ended);
    CHECK(!good.ended);
    CHECK_EQ(web_streams(f.web), 1);
    CHECK(str_contains(buf_str(&good.body), STR("\"cordoned\":true")));
    good.door.on_close(good.door.on_close_ctx);
}

/* ---- limits ---- */

static const struct str limit_names[] = { STR_INIT("node") };

static bool web_fixture_limits_report(void *ctx, bool ended, struct arena *out,
                                      struct limits_report *ret)
{
    struct web_fixture *f = ctx;
    struct limits_report_holder *holder = ARENA_NEW(out, struct limits_report_holder);
    f->boards++;
    *ret = (struct limits_report){ 0 };
    *holder = (struct limits_report_holder){
        .target = STR("a"), .uid = STR("1"), .name = STR("mr-1"), .deadline = USEC_NEVER
    };
    limits_report_add_limit(ret,
                            &(struct limits_report_limit){ .name = STR("node"),
                                                           .type = STR("node"),
                                                           .most = UINT32_MAX,
                                                           .computed = true,
                                                           .allowed = 1,
                                                           .held = 1,
                                                           .paused = f->paused,
                                                           .holders = holder,
                                                           .holder_n = 1 },
                            out);
    struct limits_report_claim c = { .uid = STR("1"),
                                     .name = STR("mr-1"),
                                     .client = STR("kured"),
                                     .type = STR("node"),
                                     .target = STR("a"),
                                     .phase = STR("InProgress"),
                                     .deadline = USEC_NEVER,
                                     .next = USEC_NEVER,
                                     .limits = limit_names,
                                     .limit_n = 1 };
    limits_report_add_claim(ret, &c, out);
    c.uid = STR("2");
    c.name = STR("mr-2");
    c.phase = STR("Pending");
    c.waits = true;
    c.reason = STR("TargetBusy");
    c.message = STR("node a is held by mr-1");
    c.blocker_uid = STR("1");
    limits_report_add_claim(ret, &c, out);
    if (ended) {
        c = (struct limits_report_claim){ .uid = STR("0"), .name = STR("mr-0"), .ended = true };
        limits_report_add_claim(ret, &c, out);
    }
    limits_report_finish(ret, out);
    return true;
}

static uint64_t web_fixture_limits_report_version(void *ctx)
{
    const struct web_fixture *f = ctx;
    return f->limits_report_version;
}

static void web_fixture_limit(struct web_fixture *f)
{
    f->limits_report_version = 1;
    f->source.limits_report = web_fixture_limits_report;
    f->source.limits_report_version = web_fixture_limits_report_version;
}

static const struct jval *web_fixture_get_json(struct web_fixture *f, const char *path,
                                               struct arena *a)
{
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    const struct jval *root;
    struct err err = { 0 };
    send_request(web_handle, f->web, &x, "GET", path);
    CHECK_EQ(x.status, 200);
    CHECK_EQ(json_parse(arena_str(a, buf_str(&x.body)), 0, a, &root, &err), 0);
    return root;
}

static void web_fixture_check_text(struct web_fixture *f, const char *path, const char *want)
{
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    send_request(web_handle, f->web, &x, "GET", path);
    CHECK_EQ(x.status, 200);
    CHECK_STR(buf_str(&x.body), want);
    CHECK(str_contains(buf_str(&x.headers), STR("Content-Type: text/plain; charset=utf-8\n")));
    CHECK(str_contains(buf_str(&x.headers), STR("Cache-Control: no-store\n")));
}

TEST(web_tells_limits_and_one_request_or_limit)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    web_fixture_limit(&f);
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *root = web_fixture_get_json(&f, "/api/v1/limits", &a);
    CHECK_STR(jval_str(jval_get(root, STR("about"))), "all");
    CHECK_STR(jval_str(jval_get(root, STR("now"))), "2023-11-14T22:13:20Z");
    CHECK_EQ(jval_get(root, STR("limits"))->n, 1);
    CHECK_EQ(jval_get(root, STR("claims"))->n, 2);
    root = web_fixture_get_json(&f, "/api/v1/explain?request=mr-2", &a);
    CHECK_STR(jval_str(jval_get(root, STR("about"))), "request");
    CHECK_STR(jval_str(jval_at(jval_first(jval_get(root, STR("claims"))), "blocker.name")), "mr-1");
    root = web_fixture_get_json(&f, "/api/v1/explain?request=mr-0", &a); /* although it has ended */
    CHECK(jval_bool(jval_get(jval_first(jval_get(root, STR("claims"))), STR("ended")), false));
    root = web_fixture_get_json(&f, "/api/v1/explain?limit=node", &a);
    CHECK_STR(jval_str(jval_get(root, STR("about"))), "limit");
    CHECK_EQ(jval_get(root, STR("claims"))->n, 2);
    static const struct {
        const char *path;
        const char *body;
    } cases[] = {
        { "/api/v1/explain?request=x%22", "{\"error\":\"there is no request 'x\\\"'\"}" },
        { "/api/v1/explain?limit=x", "{\"error\":\"there is no limit 'x'\"}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(fake_exchange_done)
        struct fake_exchange x = { 0 };
        send_request(web_handle, f.web, &x, "GET", cases[i].path);
        CHECK_EQ(x.status, 404);
        CHECK_STR(buf_str(&x.body), cases[i].body);
    }
}

TEST(web_says_that_a_cluster_knows_no_limits)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    send_request(web_handle, f.web, &x, "GET", "/api/v1/limits");
    CHECK_EQ(x.status, 404);
    CHECK(str_contains(buf_str(&x.body), STR("this cluster knows no limits")));
}

TEST(web_puts_limits_into_status_and_claims_into_explain)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    web_fixture_limit(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    CLEANUP(fake_exchange_done)
    struct fake_exchange y = { 0 };
    CLEANUP(fake_exchange_done)
    struct fake_exchange z = { 0 };
    send_request(web_handle, f.web, &x, "GET", "/api/v1/status");
    CHECK(str_contains(buf_str(&x.body), STR("\"board\":{\"now\":")));
    send_request(web_handle, f.web, &y, "GET", "/api/v1/status?board=0");
    CHECK_EQ(y.status, 200);
    CHECK(!str_contains(buf_str(&y.body), STR("\"board\"")));
    send_request(web_handle, f.web, &z, "GET", "/api/v1/explain?node=a");
    CHECK(str_contains(
        buf_str(&z.body),
        STR("\"claims\":[{\"who\":\"request mr-1 of kured\",\"holds\":true,\"words\":"
            "\"InProgress\",\"until\":\"its client says Completed\",\"limits\":\"node\"},{"
            "\"who\":\"request mr-2 of kured\",\"holds\":false,\"words\":\"node a is held by "
            "mr-1\",\"until\":\"node a is released\",\"limits\":\"node\"}]")));
}

#define FLEET_TEXT                                                                                 \
    "2 nodes: 1 operational, 1 waiting, 0 in maintenance\n"                                        \
    "leader   me_1\n"                                                                              \
    "\n"                                                                                           \
    "profile  operational  maintenance-required  in-maintenance\n"                                 \
    "os                 1                     1               0\n"                                 \
    "\n"                                                                                           \
    "waiting for maintenance (1)\n"                                                                \
    "  a  os: goes to operational\n"
#define NODE_TEXT                                                                                  \
    "  decided  1m ago\n"                                                                          \
    "  labels   zone=<a>\n"                                                                        \
    "\n"                                                                                           \
    "profile os: maintenance-required, goes to operational\n"                                      \
    "  to maintenance-required: no\n"                                                              \
    "      if       reboot\n"                                                                      \
    "    * fail     reboot (hasAnnotation): annotation reboot is not there\n"
#define LIMITS_TEXT                                                                                \
    "limit  type  allowed  held  unavailable  waiting\n"                                           \
    "node   node  1 of 0   1     0            1        full\n"
#define CLAIMS_TEXT                                                                                \
    "\n"                                                                                           \
    "held (1)\n"                                                                                   \
    "  a  mr-1 of kured, InProgress; under node\n"                                                 \
    "\n"                                                                                           \
    "queue (1)\n"                                                                                  \
    "  a  mr-2 of kured: node a is held by mr-1\n"                                                 \
    "     until node a is released; held by mr-1 of kured, InProgress\n"

TEST(web_answers_reports_as_text)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    f.nodes[0].state = STR("maintenance-required");
    run_for(&f, SECONDS(61) + 400000); /* times of reports are whole seconds */
    web_fixture_check_text(&f, "/api/v1/status?format=text", FLEET_TEXT);
    web_fixture_check_text(&f, "/api/v1/explain?node=a&format=text",
                           "node a: maintenance-required, not ready\n" NODE_TEXT);
    web_fixture_limit(&f);
    web_fixture_check_text(&f, "/api/v1/status?format=text",
                           FLEET_TEXT "\n" LIMITS_TEXT CLAIMS_TEXT);
    web_fixture_check_text(&f, "/api/v1/status?format=wide&board=0", FLEET_TEXT);
    web_fixture_check_text(
        &f, "/api/v1/explain?format=wide&node=a",
        "node a: maintenance-required, not ready\n"
        "  held     by request mr-1 of kured: InProgress; until its client says "
        "Completed; under node\n"
        "  asked    by request mr-2 of kured: node a is held by mr-1; until node "
        "a is released; under node\n" NODE_TEXT);
    web_fixture_check_text(&f, "/api/v1/limits?format=text", LIMITS_TEXT CLAIMS_TEXT);
    web_fixture_check_text(&f, "/api/v1/explain?request=mr-2&format=text",
                           "request mr-2: Pending\n"
                           "  target   node a\n"
                           "  client   kured\n"
                           "  waits    TargetBusy: node a is held by mr-1\n"
                           "  until    node a is released; held by mr-1 of kured, InProgress\n"
                           "  limits   node\n"
                           "\n" LIMITS_TEXT);
    web_fixture_check_text(&f, "/api/v1/explain?limit=node&format=text",
                           "limit node: full\n"
                           "  selects  every node\n"
                           "  allows   1 of 0: 0 %\n"
                           "  held     1\n"
                           "  out      0 unavailable and not held\n"
                           "  free     for 0 more\n"
                           "  waiting  1\n" CLAIMS_TEXT);
}

TEST(web_refuses_a_format_that_it_does_not_know)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    static const struct {
        const char *path;
        int status;
    } cases[] = {
        { "/api/v1/status?format=yaml", 400 },
        { "/api/v1/limits?format=yaml", 400 },
        { "/api/v1/explain?node=a&format=TEXT", 400 },
        { "/api/v1/explain?node=nobody&format=text", 404 },
        { "/api/v1/limits?format=text", 404 }, /* there are none */
        { "/api/v1/info?format=text", 200 },   /* always in the original's shape */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(fake_exchange_done)
        struct fake_exchange x = { 0 };
        check_case((int64_t)i);
        send_request(web_handle, f.web, &x, "GET", cases[i].path);
        CHECK_EQ(x.status, cases[i].status);
        CHECK(str_contains(buf_str(&x.headers), STR("Content-Type: application/json\n")));
        CHECK(cases[i].status != 400 ||
              str_eq(buf_str(&x.body), STR("{\"error\":\"want format=json, format=text or "
                                           "format=wide\"}")));
    }
    check_case(-1);
}

/* A board is made for those who look, and only after something has changed. */
TEST(web_events_tell_limits_when_they_change)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    web_fixture_limit(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    run_for(&f, SECONDS(2));
    CHECK_EQ(f.boards, 0);
    send_request(web_handle, f.web, &x, "GET", "/api/v1/events");
    CHECK(str_contains(buf_str(&x.body), STR("\"board\":{\"about\":\"all\",\"limits\":[{")));
    run_for(&f, SECONDS(3));
    uint32_t made = f.boards;
    buf_reset(&x.body);
    run_for(&f, SECONDS(3));
    CHECK_EQ(f.boards, made);
    CHECK_EQ(x.body.n, 0);
    f.limits_report_version++;
    run_for(&f, SECONDS(3));
    CHECK_EQ(f.boards, made + 1);
    CHECK_EQ(x.body.n, 0); /* it is another, and says the same */
    f.limits_report_version++;
    f.paused = true;
    run_for(&f, WEB_INTERVAL);
    CHECK(str_starts(buf_str(&x.body), STR("event: board\ndata: {\"about\":\"all\"")));
    CHECK(str_contains(buf_str(&x.body), STR("\"standing\":\"paused\"")));
    buf_reset(&x.body);
    for (int i = 0; i < 8; i++) {
        f.limits_report_version++;
        f.paused = !f.paused;
        run_for(&f, WEB_INTERVAL);
    }
    CHECK_EQ(f.boards, made + 4); /* two seconds: no more often than people read */
    x.door.on_close(x.door.on_close_ctx);
}

/* ---- operations ---- */

static bool web_fixture_operations(void *ctx, struct arena *out, struct operations_report *ret)
{
    struct operations_report_maintenance *m =
        ARENA_ARRAY(out, struct operations_report_maintenance, 1);
    struct operations_report_machine *machine =
        ARENA_ARRAY(out, struct operations_report_machine, 1);
    (void)ctx;
    *machine = (struct operations_report_machine){ .name = STR("a"),
                                                   .state = REPORT_MACHINE_PENDING,
                                                   .waits = STR("its turn"),
                                                   .next = USEC_NEVER };
    *m = (struct operations_report_maintenance){ .name = STR("patches"),
                                                 .phase = STR("Waiting"),
                                                 .reason = STR("WaitingWindow"),
                                                 .message = STR("the window is shut"),
                                                 .open_until = USEC_NEVER,
                                                 .next = SECONDS(1700003600),
                                                 .selected = 1,
                                                 .counts = { [REPORT_MACHINE_PENDING] = 1 },
                                                 .machines = machine,
                                                 .machine_n = 1 };
    *ret = (struct operations_report){
        .now = SECONDS(1700000000), .known = true, .maintenances = m, .maintenance_n = 1
    };
    return true;
}

static uint64_t web_fixture_operations_version(void *ctx)
{
    const struct web_fixture *f = ctx;
    return f->operations_version;
}

static void web_fixture_add_operations(struct web_fixture *f)
{
    f->operations_version = 1;
    f->source.operations_report = web_fixture_operations;
    f->source.operations_version = web_fixture_operations_version;
}

TEST(web_tells_operations_in_documents_of_their_own_and_of_others)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    CLEANUP(arena_done)
    struct arena a = { 0 };
    web_fixture_init(&f);
    web_fixture_add_operations(&f);
    const struct jval *root = web_fixture_get_json(&f, "/api/v1/operations", &a);
    CHECK_STR(jval_str(jval_get(jval_first(jval_get(root, STR("maintenances"))), STR("name"))),
              "patches");
    root = web_fixture_get_json(&f, "/api/v1/explain?nodemaintenance=patches", &a);
    CHECK_EQ(jval_get(jval_first(jval_get(root, STR("maintenances"))), STR("machines"))->n, 1);
    root = web_fixture_get_json(&f, "/api/v1/status", &a);
    CHECK_EQ(jval_at(root, "operations.maintenances")->n, 1);
    root = web_fixture_get_json(&f, "/api/v1/explain?node=a", &a);
    const struct jval *work = jval_first(jval_get(root, STR("operations")));
    CHECK_STR(jval_str(jval_get(work, STR("words"))), "waits: its turn");
    CHECK_STR(jval_str(jval_get(work, STR("next"))), "2023-11-14T23:13:20Z");
    root = web_fixture_get_json(&f, "/api/v1/explain?node=b", &a);
    CHECK(jval_get(root, STR("operations")) == NULL); /* it is none of their machines */
    web_fixture_check_text(
        &f, "/api/v1/operations?format=text",
        "operations  phase      done       failed  why\n"
        "patches     Waiting    0/1        0       the window is shut; next in 1h (Tue\n"
        "                                          23:13:20 UTC)\n");
}

TEST(web_says_which_node_maintenance_is_not_there)
{
    static const struct {
        const char *path;
        const char *text;
    } cases[] = {
        { "/api/v1/explain?nodemaintenance=x", "there is no NodeMaintenance 'x'" },
        { "/api/v1/explain?nodemaintenance=x&format=text", "there is no NodeMaintenance 'x'" },
    };
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange none = { 0 };
    send_request(web_handle, f.web, &none, "GET", "/api/v1/operations");
    CHECK_EQ(none.status, 404);
    CHECK(str_contains(buf_str(&none.body), STR("this cluster has no NodeMaintenances")));
    web_fixture_add_operations(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(fake_exchange_done)
        struct fake_exchange x = { 0 };
        send_request(web_handle, f.web, &x, "GET", cases[i].path);
        CHECK_EQ(x.status, 404);
        CHECK(str_contains(buf_str(&x.body), str_from(cases[i].text)));
    }
}

TEST(web_events_tell_operations_when_they_change)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    send_request(web_handle, f.web, &x, "GET", "/api/v1/events");
    CHECK(!str_contains(buf_str(&x.body), STR("event: operations")));
    (void)virtual_loop_run(f.time, virtual_loop_now(f.time) + SECONDS(3));
    web_fixture_add_operations(&f); /* the CRD was installed */
    (void)virtual_loop_run(f.time, virtual_loop_now(f.time) + SECONDS(3));
    CHECK(str_contains(buf_str(&x.body), STR("event: operations\ndata: {\"known\":true")));
    size_t sent = x.body.n;
    f.operations_version++; /* a turn that changed nothing */
    (void)virtual_loop_run(f.time, virtual_loop_now(f.time) + SECONDS(3));
    CHECK_EQ(x.body.n, sent);
}

TEST(web_limits_the_number_of_streams)
{
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    static struct fake_exchange many[WEB_STREAMS_MAX + 1];
    for (uint32_t i = 0; i <= WEB_STREAMS_MAX; i++) {
        send_request(web_handle, f.web, &many[i], "GET", "/api/v1/events");
        CHECK_EQ(many[i].status, i < WEB_STREAMS_MAX ? 200 : 503);
    }
    web_free(STEAL(f.web));
    for (uint32_t i = 0; i <= WEB_STREAMS_MAX; i++) {
        CHECK(many[i].ended);
        fake_exchange_done(&many[i]);
    }
}

TEST(web_routes)
{
    static const struct {
        const char *method;
        const char *path;
        int status;
        const char *header;
    } cases[] = {
        { "GET", "/", 200, "Content-Type: text/html; charset=utf-8\n" },
        { "GET", "/static/", 200, "Content-Security-Policy: default-src 'self'" },
        { "GET", "/static/app.js", 200, "Content-Type: text/javascript; charset=utf-8\n" },
        { "GET", "/static/shared.js", 200, "Content-Type: text/javascript; charset=utf-8\n" },
        { "GET", "/static/fleet.js", 200, "Content-Type: text/javascript; charset=utf-8\n" },
        { "GET", "/static/explain.js", 200, "Content-Type: text/javascript; charset=utf-8\n" },
        { "GET", "/static/waiting.js", 200, "Content-Type: text/javascript; charset=utf-8\n" },
        { "GET", "/static/style.css", 200, "Content-Type: text/css" },
        { "GET", "/static/logo.svg", 200, "Content-Type: image/svg+xml\n" },
        { "GET", "/static", 307, "Location: /static/\n" },
        { "GET", "/static/index.html", 301, "Location: ./\n" },
        { "GET", "/static/../web.c", 404, "" },
        { "GET", "/elsewhere", 301, "Location: /static\n" },
        { "GET", "/api/v2", 404, "" },
        { "DELETE", "/", 405, "Allow: GET, HEAD\n" },
        { "GET", "/metrics", 200, "Content-Type: text/plain; version=0.0.4; charset=utf-8\n" },
    };
    CLEANUP(web_fixture_done)
    struct web_fixture f;
    web_fixture_init(&f);
    (void)metrics_family(&f.metrics, &(struct metric_spec){ .name = "m", .help = "h" });
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(fake_exchange_done)
        struct fake_exchange x = { 0 };
        send_request(web_handle, f.web, &x, cases[i].method, cases[i].path);
        CHECK_EQ(x.status, cases[i].status);
        CHECK(str_contains(buf_str(&x.headers), str_from(cases[i].header)));
    }
    CHECK_EQ(web_scrapes(f.web), 1);
}

static bool not_ready(void *ctx, struct str *ret_why)
{
    *ret_why = str_from(ctx);
    return false;
}

static bool ready_with_a_note(void *ctx, struct str *ret_why)
{
    *ret_why = str_from(ctx);
    return true;
}

TEST(health_shows_what_there_is_to_say_although_it_is_ready)
{
    static char note[] = "the server asked for a pause";
    struct health good = { .ready = ready_with_a_note, .ctx = note };
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    CLEANUP(fake_exchange_done)
    struct fake_exchange y = { 0 };
    send_request(health_handle, &good, &x, "GET", "/readyz");
    CHECK_STR(buf_str(&x.body), "ok"); /* as probes know it */
    send_request(health_handle, &good, &y, "GET", "/readyz?verbose");
    CHECK_STR(buf_str(&y.body),
              "[+]readyz ok: the server asked for a pause\nreadyz check passed\n");
}

TEST(health_is_honest)
{
    static const struct {
        const char *path;
        int good;
        const char *good_body;
        int bad;
        const char *bad_body;
    } cases[] = {
        { "/healthz", 200, "ok", 200, "ok" },
        { "/healthz/", 200, "ok", 200, "ok" },
        { "/healthz/healthz", 200, "ok", 200, "ok" },
        { "/healthz?verbose", 200, "[+]healthz ok\nhealthz check passed\n", 200,
          "[+]healthz ok\nhealthz check passed\n" },
        { "/readyz", 200, "ok", 500, "[-]readyz failed: no list yet\nreadyz check failed\n" },
        { "/readyz/readyz", 200, "ok", 500,
          "[-]readyz failed: no list yet\nreadyz check failed\n" },
        { "/readyz?x=1&verbose=", 200, "[+]readyz ok\nreadyz check passed\n", 500,
          "[-]readyz failed: no list yet\nreadyz check failed\n" },
        { "/healthz/other", 404, "404 page not found\n", 404, "404 page not found\n" },
        { "/", 404, "404 page not found\n", 404, "404 page not found\n" },
    };
    static char why[] = "no list yet";
    struct health good = { 0 };
    struct health bad = { .ready = not_ready, .ctx = why };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(fake_exchange_done)
        struct fake_exchange x = { 0 };
        CLEANUP(fake_exchange_done)
        struct fake_exchange y = { 0 };
        send_request(health_handle, &good, &x, "GET", cases[i].path);
        CHECK_EQ(x.status, cases[i].good);
        CHECK_STR(buf_str(&x.body), cases[i].good_body);
        send_request(health_handle, &bad, &y, "GET", cases[i].path);
        CHECK_EQ(y.status, cases[i].bad);
        CHECK_STR(buf_str(&y.body), cases[i].bad_body);
    }
}
