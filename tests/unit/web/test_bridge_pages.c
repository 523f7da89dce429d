#include "web/bridge_pages.h"

#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/unit/web/exchange_fixture.h"

/* A bridge that tests change at will. */
struct bridge_pages_fixture {
    struct virtual_loop *time;
    struct bridge_pages pages;
    struct machine machine;
    bool elsewhere; /* another shard looks after it */
    struct link_view links[80];
    uint32_t link_n;
    struct bridge_stats stats;
    bool leading;
    struct str leader;
    struct str why;   /* it is not ready */
    struct str pause; /* it is, and sends nothing */
};

static bool bridge_pages_fixture_explain(void *ctx, struct str namespace, struct str name,
                                         struct arena *out UNUSED, struct bridge_machine_view *ret)
{
    struct bridge_pages_fixture *t = ctx;
    *ret = (struct bridge_machine_view){
        .namespace = t->machine.namespace,
        .name = t->machine.name,
        .machine = &t->machine,
        .ours = !t->elsewhere,
        .verdict = { .phase = RULES_PHASE_OPEN, .reason = "NoNode", .next = USEC_NEVER },
        .wall = loop_wall(t->pages.loop),
    };
    return str_eq(namespace, t->machine.namespace) && str_eq(name, t->machine.name);
}

static void bridge_pages_fixture_each_link(void *ctx,
                                           void (*fn)(void *ctx, const struct link_view *view),
                                           void *fn_ctx)
{
    struct bridge_pages_fixture *t = ctx;
    for (uint32_t i = 0; i < t->link_n; i++) {
        fn(fn_ctx, &t->links[i]);
    }
}

static void bridge_pages_fixture_stats(void *ctx, struct bridge_stats *ret)
{
    struct bridge_pages_fixture *t = ctx;
    *ret = t->stats;
}

static bool bridge_pages_fixture_leading(void *ctx)
{
    struct bridge_pages_fixture *t = ctx;
    return t->leading;
}

static struct str bridge_pages_fixture_leader(void *ctx)
{
    struct bridge_pages_fixture *t = ctx;
    return t->leader;
}

static bool bridge_pages_fixture_ready(void *ctx, struct str *ret_why)
{
    struct bridge_pages_fixture *t = ctx;
    *ret_why = t->why.n > 0 ? t->why : t->pause;
    return t->why.n == 0;
}

static void bridge_pages_fixture_init(struct bridge_pages_fixture *t)
{
    *t = (struct bridge_pages_fixture){
        .time = virtual_loop_new(1, SECONDS(1794792706)), /* 2026-11-16T01:31:46Z */
        .machine = { .namespace = STR("tenants"), .name = STR("blue-1"), .cluster = STR("blue") },
        .leading = true,
        .leader = STR("bridge-0_1"),
    };
    t->pages.loop = virtual_loop_root(t->time);
    t->pages.source = (struct bridge_pages_source){
        .ctx = t,
        .explain = bridge_pages_fixture_explain,
        .each_link = bridge_pages_fixture_each_link,
        .stats = bridge_pages_fixture_stats,
        .leading = bridge_pages_fixture_leading,
        .leader = bridge_pages_fixture_leader,
        .ready = bridge_pages_fixture_ready,
    };
}

static void bridge_pages_fixture_done(struct bridge_pages_fixture *t)
{
    virtual_loop_free(t->time);
}

static void check_answer(struct bridge_pages_fixture *t, const char *path, int status,
                         const char *body)
{
    CLEANUP(fake_exchange_done)
    struct fake_exchange f = { 0 };
    send_request(bridge_pages_handle, &t->pages, &f, "GET", path);
    CHECK_EQ(f.status, status);
    CHECK_STR(buf_str(&f.body), body);
    CHECK(str_contains(buf_str(&f.headers), STR("Cache-Control: no-store\n")));
}

TEST(bridge_pages_explains_a_machine)
{
    CLEANUP(fake_exchange_done)
    struct fake_exchange f = { 0 };
    CLEANUP(bridge_pages_fixture_done)
    struct bridge_pages_fixture t;
    bridge_pages_fixture_init(&t);
    send_request(bridge_pages_handle, &t.pages, &f, "GET",
                 "/api/v1/explain?machine=tenants%2Fblue-1");
    CHECK_EQ(f.status, 200);
    CHECK(str_contains(buf_str(&f.headers), STR("Content-Type: application/json\n")));
    CHECK(str_starts(buf_str(&f.body),
                     STR("{\"now\":\"2026-11-16T01:31:46Z\",\"namespace\":\"tenants\",\"name\":"
                         "\"blue-1\",\"ours\":true,\"leading\":true,\"leader\":\"bridge-0_1\","
                         "\"phase\":\"Open\",\"reason\":\"NoNode\",")));
}

TEST(bridge_pages_explains_a_machine_as_text)
{
    CLEANUP(fake_exchange_done)
    struct fake_exchange f = { 0 };
    CLEANUP(bridge_pages_fixture_done)
    struct bridge_pages_fixture t;
    bridge_pages_fixture_init(&t);
    t.leading = false;
    (void)virtual_loop_run(t.time, SECONDS(9) + 600000);
    t.machine.deleted_at = loop_wall(t.pages.loop) - SECONDS(3) - 900000;
    send_request(bridge_pages_handle, &t.pages, &f, "GET",
                 "/api/v1/explain?machine=tenants%2Fblue-1&format=text");
    CHECK(str_contains(buf_str(&f.headers), STR("Content-Type: text/plain; charset=utf-8\n")));
    static const char *const want = "machine tenants/blue-1: Open (NoNode)\n"
                                    "  replica  writes nothing, for it does not lead: bridge-0_1\n"
                                    "  machine  not enabled, being deleted for 4s\n"
                                    "  hook     not attached\n"
                                    "  cluster  blue: there is no such Cluster\n"
                                    "  link     none\n"
                                    "  node     none yet\n"
                                    "  writes   nothing\n";
    CHECK_STR(buf_str(&f.body), want);
    check_answer(&t, "/api/v1/explain?format=wide&machine=tenants/blue-1", 200, want);
    check_answer(&t, "/api/v1/explain?format=xml&machine=tenants/blue-1", 400,
                 "{\"error\":\"want format=json, format=text or format=wide\"}");
}

/* Who asks one shard after the other must not take the first one's little for the answer. */
TEST(bridge_pages_with_shard_own_tells_only_of_its_own_machines)
{
    CLEANUP(bridge_pages_fixture_done)
    struct bridge_pages_fixture t;
    bridge_pages_fixture_init(&t);
    static const char *const paths[] = {
        "/api/v1/explain?machine=tenants/blue-1&shard=own",
        "/api/v1/explain?machine=tenants/blue-1&format=text&shard=own",
    };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        CLEANUP(fake_exchange_done)
        struct fake_exchange f = { 0 };
        t.elsewhere = false;
        send_request(bridge_pages_handle, &t.pages, &f, "GET", paths[i]);
        CHECK_EQ(f.status, 200);
        t.elsewhere = true;
        check_answer(&t, paths[i], 404, "{\"error\":\"another shard looks after its Cluster\"}");
    }
    CLEANUP(fake_exchange_done)
    struct fake_exchange f = { 0 };
    send_request(bridge_pages_handle, &t.pages, &f, "GET",
                 "/api/v1/explain?machine=tenants/blue-1&format=text");
    CHECK(str_contains(buf_str(&f.body),
                       STR("\n  replica  another shard looks after its Cluster\n")));
}

TEST(bridge_pages_says_that_a_machine_is_not_known)
{
    CLEANUP(bridge_pages_fixture_done)
    struct bridge_pages_fixture t;
    bridge_pages_fixture_init(&t);
    check_answer(&t, "/api/v1/explain?machine=tenants/red", 404,
                 "{\"error\":\"there is no Machine 'tenants/red'\"}");
    static const char *const wrong[] = {
        "/api/v1/explain",
        "/api/v1/explain?machine=",
        "/api/v1/explain?machine=blue-1",
        "/api/v1/explain?machine=/blue-1",
        "/api/v1/explain?machine=tenants/",
        "/api/v1/explain?node=tenants/blue-1",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        check_answer(&t, wrong[i], 400, "{\"error\":\"want ?machine=NAMESPACE/NAME\"}");
    }
    t.why = STR("Machines are not listed yet");
    check_answer(&t, "/api/v1/explain?machine=tenants/red", 503,
                 "{\"error\":\"Machine 'tenants/red' is not known yet: Machines are not listed "
                 "yet\"}");
}

TEST(bridge_pages_lists_every_link)
{
    CLEANUP(bridge_pages_fixture_done)
    struct bridge_pages_fixture t;
    bridge_pages_fixture_init(&t);
    (void)virtual_loop_run(t.time, SECONDS(100));
    usec_t now = loop_now(t.pages.loop);
    t.link_n = 2;
    t.links[0] = (struct link_view){ .namespace = STR("tenants"),
                                     .cluster = STR("blue"),
                                     .uid = STR("c1"),
                                     .state = LINK_WATCHING,
                                     .since = now - SECONDS(30),
                                     .nodes = 20,
                                     .connects = 1,
                                     .overdue = STR("403") };
    t.links[1] = (struct link_view){ .namespace = STR("tenants"),
                                     .cluster = STR("red"),
                                     .uid = STR("c2"),
                                     .state = LINK_BACKOFF,
                                     .since = now - SECONDS(10),
                                     .retry_at = now + SECONDS(5),
                                     .trouble = STR("nobody answers"),
                                     .connects = 4,
                                     .failures = 4 };
    check_answer(&t, "/api/v1/links", 200,
                 "{\"now\":\"2026-11-16T01:33:26Z\",\"leading\":true,\"leader\":\"bridge-0_1\","
                 "\"links\":[{\"namespace\":\"tenants\",\"cluster\":\"blue\",\"uid\":\"c1\","
                 "\"state\":\"watching\",\"since\":\"2026-11-16T01:32:56Z\","
                 "\"tokenOverdue\":\"403\",\"nodes\":20,\"connects\":1,\"failures\":0},{"
                 "\"namespace\":\"tenants\",\"cluster\":\"red\","
                 "\"uid\":\"c2\",\"state\":\"backoff\",\"since\":\"2026-11-16T01:33:16Z\","
                 "\"retryAt\":\"2026-11-16T01:33:31Z\",\"trouble\":\"nobody answers\","
                 "\"nodes\":0,\"connects\":4,\"failures\":4}]}");
    t.leading = false;
    t.stats = (struct bridge_stats){
        .machines = 40, .enabled = 20, .clusters = 3, .links = 2, .fresh = 1, .nodes = 20
    };
    check_answer(&t, "/", 200,
                 "drydock bridge: does not lead, but bridge-0_1\n"
                 "Machines: 40, enabled: 20; Clusters: 3\n"
                 "links: 2, fresh: 1; Nodes: 20\n"
                 "\n"
                 "clusters out of sight, or that ask for quiet\n"
                 "  tenants/red: backoff for 10s: nobody answers\n"
                 "\n"
                 "/api/v1/explain?machine=NAMESPACE/NAME  what a Machine waits for\n"
                 "/api/v1/links                           all links\n"
                 "/metrics                                numbers for Prometheus\n");
}

/* A server that answers 429 or 503 is left alone for a while: the management cluster's, or one
 * workload cluster's. */
TEST(bridge_pages_shows_who_asked_for_quiet)
{
    CLEANUP(fake_exchange_done)
    struct fake_exchange f = { 0 };
    CLEANUP(fake_exchange_done)
    struct fake_exchange links = { 0 };
    CLEANUP(bridge_pages_fixture_done)
    struct bridge_pages_fixture t;
    bridge_pages_fixture_init(&t);
    t.pause = STR("no requests to the API server until noon: it answered 503");
    t.link_n = 2;
    for (uint32_t i = 0; i < t.link_n; i++) {
        t.links[i] = (struct link_view){ .namespace = STR("tenants"),
                                         .cluster = i == 0 ? STR("blue") : STR("red"),
                                         .state = LINK_WATCHING };
    }
    t.links[1].pause_end = loop_now(t.pages.loop) + SECONDS(25);
    t.links[1].pause_status = 429;
    send_request(bridge_pages_handle, &t.pages, &f, "GET", "/");
    CHECK(
        str_contains(buf_str(&f.body), STR("\npaused: no requests to the API server until noon: it "
                                           "answered 503\n")));
    CHECK(str_contains(buf_str(&f.body), STR("  tenants/red: watching for 0s; nothing is sent for "
                                             "25s, it answered 429\n")));
    CHECK(!str_contains(buf_str(&f.body), STR("tenants/blue")));
    send_request(bridge_pages_handle, &t.pages, &links, "GET", "/api/v1/links");
    CHECK(str_contains(buf_str(&links.body), STR("\"pause\":\"no requests to the API server until "
                                                 "noon: it answered 503\"")));
    CHECK(str_contains(buf_str(&links.body), STR("\"pausedUntil\":\"2026-11-16T01:32:11Z\","
                                                 "\"pausedBy\":429")));
}

TEST(bridge_pages_names_a_limited_number_of_clusters_out_of_sight)
{
    CLEANUP(fake_exchange_done)
    struct fake_exchange f = { 0 };
    CLEANUP(bridge_pages_fixture_done)
    struct bridge_pages_fixture t;
    bridge_pages_fixture_init(&t);
    t.link_n = BRIDGE_PAGES_UNHEALTHY_MAX + 7;
    for (uint32_t i = 0; i < t.link_n; i++) {
        t.links[i] = (struct link_view){ .namespace = STR("a"),
                                         .cluster = STR("b"),
                                         .state = LINK_RESOLVING };
    }
    t.why = STR("Clusters are not listed yet");
    send_request(bridge_pages_handle, &t.pages, &f, "GET", "/");
    CHECK(str_contains(buf_str(&f.body), STR("  and 7 more\n")));
    CHECK(str_contains(buf_str(&f.body), STR("\nnot ready: Clusters are not listed yet\n")));
    CHECK(str_contains(buf_str(&f.headers), STR("Content-Type: text/plain; charset=utf-8\n")));
    CHECK(str_contains(buf_str(&f.headers), STR("X-Content-Type-Options: nosniff\n")));
}

TEST(bridge_pages_serves_metrics_and_nothing_else)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    CLEANUP(bridge_pages_fixture_done)
    struct bridge_pages_fixture t;
    bridge_pages_fixture_init(&t);
    metrics_init(&m);
    metric_add(metric_series(
                   metrics_family(&m, &(struct metric_spec){ .name = "ships", .help = "h" }), NULL),
               2);
    t.pages.metrics = &m;
    static const struct {
        const char *method;
        const char *path;
        int status;
        const char *has;
    } cases[] = {
        { "GET", "/metrics", 200, "\nships 2\n" },
        { "HEAD", "/metrics", 200, "" },
        { "POST", "/metrics", 405, "405" },
        { "DELETE", "/", 405, "405" },
        { "GET", "/api/v1/info", 404, "404" },
        { "GET", "/metrics/", 404, "404" },
        { "GET", "", 404, "404" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(fake_exchange_done)
        struct fake_exchange f = { 0 };
        send_request(bridge_pages_handle, &t.pages, &f, cases[i].method, cases[i].path);
        CHECK_EQ(f.status, cases[i].status);
        CHECK(str_contains(buf_str(&f.body), str_from(cases[i].has)));
        CHECK_EQ(str_contains(buf_str(&f.headers), STR("Allow: GET, HEAD")),
                 cases[i].status == 405);
    }
}
