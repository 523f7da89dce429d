#include "web/web.h"

#include "format/json.h"
#include "sandbox/vloop.h"
#include "tests/check.h"
#include "web/health.h"

/* An exchange that remembers what was said. */
struct fake {
    struct serve_exchange door;
    int status;
    struct buf headers;
    struct buf body;
    bool streaming;
    bool ended;
    size_t backlog;
};

static struct fake *fake_of(const struct serve_exchange *x)
{
    return CONTAINER_OF((struct serve_exchange *)(uintptr_t)x, struct fake, door);
}

static void fake_header(struct serve_exchange *x, const char *name, struct str value)
{
    buf_printf(&fake_of(x)->headers, "%s: " STR_FMT "\n", name, STR_ARG(value));
}

static void fake_reply(struct serve_exchange *x, int status, struct str type, struct str body)
{
    fake_header(x, "Content-Type", type);
    fake_of(x)->status = status;
    buf_add(&fake_of(x)->body, body);
    fake_of(x)->ended = true;
}

static void fake_start(struct serve_exchange *x, int status, struct str type)
{
    fake_header(x, "Content-Type", type);
    fake_of(x)->status = status;
    fake_of(x)->streaming = true;
}

static void fake_chunk(struct serve_exchange *x, struct str bytes)
{
    CHECK(!fake_of(x)->ended);
    buf_add(&fake_of(x)->body, bytes);
}

static void fake_end(struct serve_exchange *x)
{
    fake_of(x)->ended = true;
}

static size_t fake_backlog(const struct serve_exchange *x)
{
    return fake_of(x)->backlog;
}

static struct str fake_no_header(const struct serve_exchange *x UNUSED, const char *name UNUSED)
{
    return STR_NONE;
}

static const struct serve_ops fake_ops = {
    .set_header = fake_header,
    .reply = fake_reply,
    .start = fake_start,
    .chunk = fake_chunk,
    .end = fake_end,
    .backlog = fake_backlog,
};

static void fake_done(struct fake *f)
{
    buf_done(&f->headers);
    buf_done(&f->body);
}

static void ask(serve_handler handler, void *ctx, struct fake *f, const char *method,
                const char *path)
{
    f->door = (struct serve_exchange){ .ops = &fake_ops };
    struct serve_request req = { .method = str_from(method), .header = fake_no_header };
    (void)str_cut(str_from(path), STR("?"), &req.path, &req.query);
    handler(ctx, &f->door, &req);
}

/* A fleet that tests change at will. */
struct fleet {
    struct vloop *time;
    struct loop *loop;
    struct web_node nodes[4];
    uint32_t n;
    struct web_status status;
    struct web_source source;
    struct metrics metrics;
    struct web *web;
};

static void fleet_status(void *ctx, struct web_status *ret)
{
    struct fleet *f = ctx;
    *ret = f->status;
}

static void fleet_each(void *ctx, void (*fn)(void *fn_ctx, const struct web_node *node),
                       void *fn_ctx)
{
    struct fleet *f = ctx;
    for (uint32_t i = 0; i < f->n; i++) {
        fn(fn_ctx, &f->nodes[i]);
    }
}

static const struct web_label zone_a[] = { { STR_INIT("other"), STR_INIT("x") },
                                           { STR_INIT("zone"), STR_INIT("<a>") } };

static bool fleet_exports(void *ctx UNUSED, struct str key)
{
    return str_eq(key, STR("zone"));
}

static void fleet_init(struct fleet *f)
{
    *f = (struct fleet){ .n = 2, .time = vloop_new(1, SECONDS(1700000000)) };
    f->loop = vloop_view(f->time, 0);
    f->source = (struct web_source){ .ctx = f, .status = fleet_status, .each_node = fleet_each };
    f->nodes[0] = (struct web_node){ .name = STR("a"),
                                     .state = STR("operational"),
                                     .ready = true,
                                     .updated = SECONDS(1700000001) + 500000,
                                     .labels = zone_a,
                                     .label_count = 2 };
    f->nodes[1] = (struct web_node){ .name = STR("b") };
    f->status =
        (struct web_status){ .identity = STR("me_1"), .leader = STR("me_1"), .ready = true };
    metrics_init(&f->metrics);
    f->web = web_new(f->loop, &f->source, &f->metrics);
}

static void fleet_done(struct fleet *f)
{
    web_free(f->web);
    metrics_done(&f->metrics);
    vloop_view_free(f->loop);
    vloop_free(f->time);
}

static void pass(struct fleet *f, usec_t time)
{
    usec_t until = loop_now(f->loop) + time;
    while (vloop_step(f->time, until)) {
    }
}

TEST(web_info_has_the_shape_of_the_original)
{
    CLEANUP(fleet_done)
    struct fleet f;
    fleet_init(&f);
    CLEANUP(fake_done)
    struct fake x = { 0 };
    f.source.exports = fleet_exports;
    f.nodes[0].error = STR("annotation \"x\"\nis bad");
    ask(web_handle, f.web, &x, "POST", "/api/v1/info");
    CHECK_EQ(x.status, 200);
    CHECK_STR(
        buf_str(&x.body),
        "[{\"node\":\"a\",\"profiles\":[{\"applied\":{\"next\":\"operational\","
        "\"transitions\":[],\"error\":\"annotation \\\"x\\\"\\nis bad\"},\"name\":\"default\","
        "\"state\":\"operational\"}],\"labels\":{\"zone\":\"\\u003ca\\u003e\"},"
        "\"updated\":\"2023-11-14T22:13:21.5Z\"}]");
    CHECK(str_contains(buf_str(&x.headers), STR("Content-Type: application/json\n")));
}

TEST(web_info_of_nothing_is_an_empty_list)
{
    CLEANUP(fleet_done)
    struct fleet f;
    fleet_init(&f);
    f.n = 0;
    CLEANUP(fake_done)
    struct fake x = { 0 };
    ask(web_handle, f.web, &x, "GET", "/api/v1/info");
    CHECK_STR(buf_str(&x.body), "[]");
}

TEST(web_events_begin_with_a_snapshot_and_go_on_with_what_changed)
{
    CLEANUP(fleet_done)
    struct fleet f;
    fleet_init(&f);
    CLEANUP(fake_done)
    struct fake x = { 0 };
    ask(web_handle, f.web, &x, "GET", "/api/v1/events");
    CHECK(x.streaming);
    CHECK_EQ(web_streams(f.web), 1);
    CHECK(str_starts(buf_str(&x.body), STR("retry: 1000\n\nevent: snapshot\ndata: {\"status\":{")));
    CHECK(str_contains(buf_str(&x.body),
                       STR("{\"name\":\"b\",\"state\":\"\",\"ready\":false,\"cordoned\":false,"
                           "\"labels\":{}}]}\n\n")));
    buf_reset(&x.body);
    pass(&f, SECONDS(2));
    CHECK_EQ(x.body.n, 0); /* nothing changed, nothing is said */

    f.nodes[1].state = STR("operational");
    f.nodes[1].ready = true;
    f.nodes[2] = (struct web_node){ .name = STR("c") };
    f.n = 3;
    f.status.leading = true;
    pass(&f, WEB_INTERVAL);
    CHECK(str_starts(buf_str(&x.body), STR("event: status\ndata: {\"version\":")));
    CHECK(str_contains(
        buf_str(&x.body),
        STR("event: delta\ndata: "
            "{\"set\":[{\"name\":\"b\",\"state\":\"operational\",\"ready\":true,"
            "\"cordoned\":false,\"labels\":{}},{\"name\":\"c\",\"state\":\"\",\"ready\":false,"
            "\"cordoned\":false,\"labels\":{}}],\"del\":[]}\n\n")));
    buf_reset(&x.body);
    f.n = 1;
    pass(&f, WEB_INTERVAL);
    CHECK_STR(buf_str(&x.body), "event: delta\ndata: {\"set\":[],\"del\":[\"b\",\"c\"]}\n\n");
    buf_reset(&x.body);
    pass(&f, WEB_KEEPALIVE + WEB_INTERVAL);
    CHECK_STR(buf_str(&x.body), ": still here\n\n");
    x.door.on_close(x.door.on_close_ctx);
    CHECK_EQ(web_streams(f.web), 0);
    CHECK(!vloop_step(f.time, loop_now(f.loop) + HOURS(1))); /* no timer runs for nobody */
}

TEST(web_events_drop_who_does_not_read)
{
    CLEANUP(fleet_done)
    struct fleet f;
    fleet_init(&f);
    CLEANUP(fake_done)
    struct fake slow = { 0 };
    CLEANUP(fake_done)
    struct fake good = { 0 };
    ask(web_handle, f.web, &slow, "GET", "/api/v1/events");
    ask(web_handle, f.web, &good, "GET", "/api/v1/events");
    slow.backlog = WEB_BACKLOG_MAX + 1;
    f.nodes[0].unschedulable = true;
    pass(&f, WEB_INTERVAL);
    CHECK(slow.ended);
    CHECK(!good.ended);
    CHECK_EQ(web_streams(f.web), 1);
    CHECK(str_contains(buf_str(&good.body), STR("\"cordoned\":true")));
    good.door.on_close(good.door.on_close_ctx);
}

TEST(web_limits_the_number_of_streams)
{
    CLEANUP(fleet_done)
    struct fleet f;
    fleet_init(&f);
    static struct fake many[WEB_STREAMS_MAX + 1];
    for (uint32_t i = 0; i <= WEB_STREAMS_MAX; i++) {
        ask(web_handle, f.web, &many[i], "GET", "/api/v1/events");
        CHECK_EQ(many[i].status, i < WEB_STREAMS_MAX ? 200 : 503);
    }
    web_free(STEAL(f.web));
    for (uint32_t i = 0; i <= WEB_STREAMS_MAX; i++) {
        CHECK(many[i].ended);
        fake_done(&many[i]);
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
        { "GET", "/static/style.css", 200, "Content-Type: text/css" },
        { "GET", "/static/mark.svg", 200, "Content-Type: image/svg+xml\n" },
        { "GET", "/static", 307, "Location: /static/\n" },
        { "GET", "/static/index.html", 301, "Location: ./\n" },
        { "GET", "/static/../web.c", 404, "" },
        { "GET", "/elsewhere", 301, "Location: /static\n" },
        { "GET", "/api/v2", 404, "" },
        { "DELETE", "/", 405, "Allow: GET, HEAD\n" },
        { "GET", "/metrics", 200, "Content-Type: text/plain; version=0.0.4; charset=utf-8\n" },
    };
    CLEANUP(fleet_done)
    struct fleet f;
    fleet_init(&f);
    (void)metrics_family(&f.metrics, &(struct metric_spec){ .name = "m", .help = "h" });
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(fake_done)
        struct fake x = { 0 };
        ask(web_handle, f.web, &x, cases[i].method, cases[i].path);
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
        CLEANUP(fake_done)
        struct fake x = { 0 };
        CLEANUP(fake_done)
        struct fake y = { 0 };
        ask(health_handle, &good, &x, "GET", cases[i].path);
        CHECK_EQ(x.status, cases[i].good);
        CHECK_STR(buf_str(&x.body), cases[i].good_body);
        ask(health_handle, &bad, &y, "GET", cases[i].path);
        CHECK_EQ(y.status, cases[i].bad);
        CHECK_STR(buf_str(&y.body), cases[i].bad_body);
    }
}
