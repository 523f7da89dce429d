#include "core/core.h"

#include "kinds/keys.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "web/metrics_text.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

/* A part that counts what it is told. */
struct counting_part {
    struct core_part part;
    bool ready;
    bool busy;
    uint32_t nodes;
    uint32_t gone;
    uint32_t synced;
    uint32_t arbiters;
    uint32_t capacity;
    int leading;
};

/* The API server, but that it says of one right that it is missing, and may refuse evictions. */
struct denying_api {
    struct api api; /* first */
    struct api *upstream;
    const char *verb; /* NULL: all are there */
    const char *plural;
    int status;       /* of the answer about that right; 0 = 201 */
    const char *body; /* likewise; NULL: that it is missing */
    bool no_evictions;
    api_on_reply on_reply; /* of the question that is under way: there is one at a time */
    void *ctx;
};

struct fixture {
    struct denying_api denying;
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct api *api;
    struct core *core;
    struct counting_part a;
    struct counting_part b;
    uint32_t stopped;
};

static struct counting_part *counting(const struct core_part *p)
{
    return CONTAINER_OF((struct core_part *)(uintptr_t)p, struct counting_part, part);
}

static void on_node(struct core_part *p, struct store_item *item UNUSED, const void *before UNUSED,
                    bool gone)
{
    counting(p)->nodes += gone ? 0 : 1;
    counting(p)->gone += gone ? 1 : 0;
}

static void on_synced(struct core_part *p)
{
    counting(p)->synced++;
}

static void on_leading(struct core_part *p, bool leading)
{
    counting(p)->leading += leading ? 1 : -1;
}

static void on_arbiter(struct core_part *p)
{
    counting(p)->arbiters++;
}

static void on_capacity(struct core_part *p)
{
    counting(p)->capacity++;
}

static bool is_ready(const struct core_part *p, struct str *ret_why)
{
    *ret_why = STR("the part waits");
    return counting(p)->ready;
}

static bool is_busy(const struct core_part *p)
{
    return counting(p)->busy;
}

static const struct core_part_ops counting_ops = {
    .on_node = on_node,
    .on_synced = on_synced,
    .on_leading = on_leading,
    .on_arbiter = on_arbiter,
    .on_capacity = on_capacity,
    .is_ready = is_ready,
    .is_busy = is_busy,
};

static void denying_on_reply(void *ctx, const struct api_reply *reply)
{
    struct denying_api *d = ctx;
    struct api_reply told = *reply;
    told.status = d->status != 0 ? d->status : 201;
    told.body = d->body != NULL ? str_from(d->body) : STR("{\"status\":{\"allowed\":false}}");
    d->on_reply(d->ctx, &told);
}

static void denying_on_eviction(void *ctx, const struct api_reply *reply)
{
    struct denying_api *d = ctx;
    struct api_reply told = *reply;
    told.status = 403;
    told.body = STR("{\"message\":\"pods \\\"p\\\" is forbidden: User \\\"u\\\" cannot create "
                    "resource \\\"pods/eviction\\\"\"}");
    d->on_reply(d->ctx, &told);
}

static struct api_call *denying_send(struct api *api, const struct api_request *request,
                                     api_on_reply on_reply, void *ctx)
{
    struct denying_api *d = CONTAINER_OF(api, struct denying_api, api);
    if (d->no_evictions && str_ends(request->path, STR("/eviction"))) {
        const struct api_request other = { .verb = API_GET, .path = STR("/api/v1/nodes/n1") };
        d->on_reply = on_reply;
        d->ctx = ctx;
        return api_send(d->upstream, &other, denying_on_eviction, d);
    }
    if (d->verb == NULL || !str_contains(request->path, STR("selfsubjectaccessreviews")) ||
        !str_contains(request->body, str_from(d->verb)) ||
        !str_contains(request->body, str_from(d->plural))) {
        return api_send(d->upstream, request, on_reply, ctx);
    }
    d->on_reply = on_reply;
    d->ctx = ctx;
    return api_send(d->upstream, request, denying_on_reply, d);
}

static void denying_cancel(struct api *api, struct api_call *call)
{
    api_cancel(CONTAINER_OF(api, struct denying_api, api)->upstream, call);
}

static struct api_watch *denying_watch(struct api *api, const struct api_watch_spec *spec,
                                       api_on_event on_event, void *ctx)
{
    return api_watch(CONTAINER_OF(api, struct denying_api, api)->upstream, spec, on_event, ctx);
}

static void denying_watch_stop(struct api *api, struct api_watch *watch)
{
    api_watch_stop(CONTAINER_OF(api, struct denying_api, api)->upstream, watch);
}

static const struct api_ops denying_ops = {
    .send = denying_send,
    .cancel = denying_cancel,
    .watch = denying_watch,
    .watch_stop = denying_watch_stop,
};

static void fixture_on_stopped(void *ctx)
{
    struct fixture *f = ctx;
    f->stopped++;
}

static void fixture_send(struct fixture *f, const char *method, const char *path, struct str body,
                         bool yaml)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = yaml                                     ? STR("application/yaml")
                        : str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH
                                                                 : API_JSON,
        .body = body,
    };
    apiserver_handle(f->server, &request, &f->memory, &reply);
    CHECK(reply.status < 300);
}

static void fixture_open_core(struct fixture *f, struct metrics *metrics, bool elect)
{
    f->core = core_new(&(struct core_config){ .loop = virtual_loop_root(f->time),
                                              .api = &f->denying.api,
                                              .metrics = metrics,
                                              .server = STR("api:6443"),
                                              .identity = STR("a_1"),
                                              .elect = elect,
                                              .use_limits = true,
                                              .limits = { .namespace = STR("default") },
                                              .on_stopped = fixture_on_stopped,
                                              .ctx = f });
    core_join(f->core, &f->a.part, &counting_ops);
    core_join(f->core, &f->b.part, &counting_ops);
}

static void fixture_begin_with(struct fixture *f, struct metrics *metrics)
{
    *f = (struct fixture){ .time = virtual_loop_new(1, WALL), .a.ready = true, .b.ready = true };
    struct loop *loop = virtual_loop_root(f->time);
    f->server = apiserver_new(loop, 1);
    f->api = sim_api_new(loop, f->server, NULL);
    f->denying = (struct denying_api){ .api.ops = &denying_ops, .upstream = f->api };
    fixture_send(f, "POST", "/api/v1/nodes", STR("{\"metadata\":{\"name\":\"n1\"}}"), false);
    fixture_open_core(f, metrics, /* elect= */ true);
}

static void fixture_begin(struct fixture *f)
{
    fixture_begin_with(f, NULL);
}

static void fixture_run(struct fixture *f, usec_t span)
{
    (void)virtual_loop_run(f->time, virtual_loop_now(f->time) + span);
    core_check(f->core);
}

static void fixture_close_core(struct fixture *f)
{
    core_leave(&f->a.part);
    core_leave(&f->b.part);
    core_free(f->core);
}

static void fixture_end(struct fixture *f)
{
    fixture_close_core(f);
    sim_api_free(f->api);
    apiserver_free(f->server);
    arena_done(&f->memory);
    CHECK_EQ(virtual_loop_armed(f->time), 0);
    virtual_loop_free(f->time);
}

TEST(core_measures_the_pause_that_the_server_asked_for)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct metrics metrics;
    struct fixture f;
    metrics_init(&metrics);
    fixture_begin_with(&f, &metrics);
    core_start(f.core);
    fixture_run(&f, SECONDS(10));
    metrics_text_print(&metrics, &text);
    CHECK(str_contains(buf_str(&text), STR("drydock_api_pause_until_timestamp_seconds{code=\"429\","
                                           "host=\"api:6443\"} 0\n")));
    (void)client_note(&f.core->client, API_GET,
                      &(struct api_reply){ .status = 429, .retry_after = SECONDS(20) });
    buf_reset(&text);
    metrics_text_print(&metrics, &text);
    CHECK(str_contains(buf_str(&text), STR("drydock_api_pause_since_timestamp_seconds{code=\"429\","
                                           "host=\"api:6443\"} 17673230")));
    CHECK(str_contains(buf_str(&text), STR("drydock_api_pause_until_timestamp_seconds{code=\"429\","
                                           "host=\"api:6443\"} 17673230")));
    CHECK(str_contains(buf_str(&text), STR("drydock_api_pause_since_timestamp_seconds{code=\"503\","
                                           "host=\"api:6443\"} 0\n")));
    fixture_end(&f);
    metrics_done(&metrics);
}

TEST(core_tells_every_part_of_nodes_and_leadership)
{
    struct fixture f;
    fixture_begin(&f);
    core_start(f.core);
    fixture_run(&f, SECONDS(30));
    fixture_send(&f, "DELETE", "/api/v1/nodes/n1", STR(""), false);
    fixture_run(&f, SECONDS(1));
    const struct counting_part *parts[] = { &f.a, &f.b };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        CHECK_EQ(parts[i]->nodes, 1);
        CHECK_EQ(parts[i]->gone, 1);
        CHECK_EQ(parts[i]->leading, 1);
        CHECK(parts[i]->synced > 0);
    }
    fixture_end(&f);
}

TEST(core_lets_parts_work_while_another_is_not_ready)
{
    struct fixture f;
    struct str why;
    fixture_begin(&f);
    f.b.ready = false;
    core_start(f.core);
    fixture_run(&f, SECONDS(30));
    CHECK(core_leads(f.core));
    CHECK(core_may_act(f.core));
    CHECK(!core_ready(f.core, &why));
    CHECK_STR(why, "the part waits");
    f.b.ready = true;
    CHECK(core_ready(f.core, &why));
    fixture_end(&f);
}

static const char *const crd_files[] = { "crds/maintenancelimits.repairman.k8s.io.yaml",
                                         "crds/maintenancerequests.repairman.k8s.io.yaml",
                                         "crds/maintenanceselectors.repairman.k8s.io.yaml" };
#define SELECTORS_CRD 2u

static void fixture_install_crd(struct fixture *f, const char *file)
{
    fixture_send(f, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 check_data(file), /* yaml= */ true);
}

static void fixture_install_crds(struct fixture *f)
{
    for (size_t i = 0; i < ARRAY_LEN(crd_files); i++) {
        fixture_install_crd(f, crd_files[i]);
    }
}

TEST(core_does_not_wait_for_kinds_that_it_may_not_read)
{
    struct fixture f;
    struct str why;
    fixture_begin(&f);
    fixture_install_crds(&f);
    f.denying.verb = "watch";
    f.denying.plural = "maintenancelimits";
    core_start(f.core);
    fixture_run(&f, SECONDS(30));
    CHECK(f.core->limits_known); /* so profiles go on */
    CHECK(f.core->arbiter == NULL);
    CHECK_EQ(f.a.arbiters, 1);
    CHECK(core_may_act(f.core));
    CHECK(core_ready(f.core, &why)); /* nor do probes end what profiles do */
    CHECK_STR(why, "MaintenanceRequests and MaintenanceLimits are not served: this controller may "
                   "not watch maintenancelimits of repairman.k8s.io");
    f.denying.verb = NULL; /* somebody has given it the right */
    fixture_run(&f, MINUTES(6));
    CHECK(f.core->arbiter != NULL);
    CHECK(core_ready(f.core, &why));
    CHECK_STR(why, "");
    fixture_end(&f);
}

static void log_keep_served(void *ctx, struct str line)
{
    if (str_contains(line, STR("installed")) || str_contains(line, STR("are served"))) {
        buf_add(ctx, line);
    }
}

TEST(core_says_what_is_served_and_no_more)
{
    static const char *const said[] = {
        "INFO  MaintenanceRequests and MaintenanceLimits are not installed\n",
        "INFO  MaintenanceLimits are served; MaintenanceRequests are not installed\n",
        "INFO  MaintenanceRequests are served; MaintenanceLimits are not installed\n",
        "INFO  MaintenanceRequests and MaintenanceLimits are served\n",
    };
    for (unsigned there = 0; there < ARRAY_LEN(said); there++) {
        CLEANUP(buf_done)
        struct buf lines = { 0 };
        struct log log = { .write = log_keep_served, .ctx = &lines };
        struct fixture f;
        check_case(there);
        fixture_begin(&f);
        f.core->log = &log;
        for (unsigned i = 0; i < ARRAY_LEN(crd_files); i++) {
            if (i == SELECTORS_CRD || (there & (1u << i)) != 0) {
                fixture_install_crd(&f, crd_files[i]);
            }
        }
        core_start(f.core);
        fixture_run(&f, SECONDS(30));
        CHECK_STR(buf_str(&lines), said[there]);
        fixture_end(&f);
    }
    check_case(-1);
}

/* Limits that cannot be seen yet may be in force. */
TEST(core_takes_no_answer_about_a_right_for_a_yes)
{
    static const struct {
        int status;
        const char *body;
        bool goes_on; /* the question itself is refused: the watches will tell */
    } cases[] = {
        { 201, "<html>a proxy's page</html>", false },
        { 201, "{\"status\":{}}", false },
        { 201, "{\"status\":{\"allowed\":\"yes\"}}", false },
        { 201, "[]", false },
        { 500, "", false },
        { 404, "404 page not found", true },
        { 403, "{\"kind\":\"Status\",\"code\":403}", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        struct str why;
        check_case((int64_t)i);
        fixture_begin(&f);
        fixture_install_crds(&f);
        f.denying.verb = "list";
        f.denying.plural = "maintenancerequests";
        f.denying.status = cases[i].status;
        f.denying.body = cases[i].body;
        core_start(f.core);
        fixture_run(&f, MINUTES(1));
        CHECK_EQ(f.core->limits_known, cases[i].goes_on);
        CHECK_EQ(f.core->arbiter != NULL, cases[i].goes_on);
        CHECK(core_ready(f.core, &why));
        CHECK_STR(why, cases[i].goes_on ? ""
                                        : "MaintenanceRequests and MaintenanceLimits are not "
                                          "served: it is not known yet whether this controller "
                                          "may list maintenancerequests of repairman.k8s.io");
        f.denying.verb = NULL; /* the server answers again */
        fixture_run(&f, SECONDS(10));
        CHECK(f.core->arbiter != NULL);
        CHECK(core_ready(f.core, &why));
        CHECK_STR(why, "");
        fixture_end(&f);
    }
    check_case(-1);
}

TEST(core_starts_the_arbiter_when_the_crds_are_installed)
{
    struct fixture f;
    fixture_begin(&f);
    core_start(f.core);
    CHECK(!f.core->limits_known);
    fixture_run(&f, SECONDS(30));
    CHECK(f.core->limits_known);
    CHECK(f.core->arbiter == NULL);
    CHECK_EQ(f.a.arbiters, 1);
    fixture_install_crds(&f);
    fixture_run(&f, SECONDS(5));
    CHECK(f.core->arbiter != NULL);
    CHECK_EQ(f.a.arbiters, 2);
    CHECK_EQ(f.b.arbiters, 2);
    fixture_end(&f);
}

TEST(core_stop_waits_for_writes_of_parts_and_gives_the_lease_back)
{
    struct fixture f;
    fixture_begin(&f);
    core_start(f.core);
    fixture_run(&f, SECONDS(30));
    CHECK_STR(core_leader(f.core), "a_1");
    f.a.busy = true;
    core_stop(f.core);
    fixture_run(&f, SECONDS(1));
    CHECK_EQ(f.stopped, 0);
    f.a.busy = false;
    core_written(f.core);
    fixture_run(&f, MSECONDS(500));
    CHECK_EQ(f.stopped, 1);
    CHECK_EQ(f.a.leading, 0);
    const struct jval *lease = apiserver_find(f.server, STR("coordination.k8s.io"), STR("leases"),
                                              STR("default"), CORE_LEASE_NAME);
    CHECK_EQ(jval_str(jval_at(lease, "spec.holderIdentity")).n, 0);
    fixture_end(&f);
}

static void drain_on_change(void *ctx UNUSED)
{
}

static void log_keep(void *ctx, struct str line)
{
    if (str_contains(line, STR("evicted"))) {
        buf_add(ctx, line);
    }
}

TEST(core_logs_once_that_evictions_are_denied)
{
    CLEANUP(buf_done)
    struct buf lines = { 0 };
    struct log log = { .write = log_keep, .ctx = &lines };
    struct fixture f;
    fixture_begin(&f);
    f.core->log = &log;
    f.denying.no_evictions = true;
    fixture_send(
        &f, "POST", "/api/v1/namespaces/default/pods",
        STR("{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{"
            "\"name\":\"c\",\"image\":\"i\"}]}}"),
        false);
    core_start(f.core);
    fixture_run(&f, SECONDS(30));
    struct drain *d = drain_start(f.core->drains,
                                  &(struct drain_spec){ .node = STR("n1"),
                                                        .eviction_timeout = MINUTES(10),
                                                        .deletion_timeout = MINUTES(10),
                                                        .grace = -1 },
                                  drain_on_change, NULL);
    fixture_run(&f, MINUTES(30));
    struct drains_stats stats;
    drains_stats(f.core->drains, &stats);
    CHECK(stats.failed > 3);
    CHECK_STR(
        buf_str(&lines),
        "ERROR The server does not let pods be evicted node=n1 pod=default/p "
        "error=\"the right to create pods/eviction in namespace default is missing: the server "
        "answered 403: pods \\\"p\\\" is forbidden: User \\\"u\\\" cannot create resource "
        "\\\"pods/eviction\\\"\"\n");
    drain_stop(d);
    fixture_end(&f);
}

/* ── the pause of everything ───────────────────────────────────────────────────────────────── */

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"
#define LEASE LEASES "/maintenance-controller-leader-election.cloud.sap"
#define PAUSED(reason) STR("{\"metadata\":{\"annotations\":{\"drydock.dev/paused\":" reason "}}}")

struct event_search {
    const char *reason;
    struct str note;
    uint32_t n;
};

static void event_visit(void *ctx, const struct jval *event)
{
    struct event_search *s = ctx;
    if (str_eq(jval_str(jval_get(event, STR("reason"))), str_from(s->reason))) {
        s->note = jval_str(jval_get(event, STR("message"))); /* as it is stored */
        s->n++;
    }
}

static struct event_search fixture_events(struct fixture *f, const char *reason)
{
    struct event_search s = { .reason = reason };
    apiserver_each(f->server, STR("events.k8s.io"), STR("events"), STR("default"), event_visit, &s);
    return s;
}

TEST(core_is_paused_by_an_annotation_of_its_lease)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct metrics metrics;
    struct fixture f;
    metrics_init(&metrics);
    fixture_begin_with(&f, &metrics);
    CHECK(!core_may_grant(f.core)); /* not before the Lease was read */
    core_start(f.core);
    fixture_run(&f, SECONDS(30));
    CHECK(core_may_grant(f.core));
    uint32_t told = f.a.capacity;
    fixture_send(&f, "PATCH", LEASE, PAUSED("\"storage\\nis down\""), false);
    fixture_run(&f, SECONDS(6));
    CHECK(core_holds_lease(f.core)); /* people's writes do not cost the Lease */
    CHECK(!core_may_grant(f.core));
    CHECK(core_may_act(f.core)); /* what was begun is brought to its end */
    CHECK_STR(core_grants_stopped(f.core), "everything is paused: storage is down");
    CHECK_EQ(f.a.capacity, told + 1);
    struct event_search event = fixture_events(&f, "EverythingPaused");
    CHECK_EQ(event.n, 1);
    CHECK_STR(event.note, "everything is paused: storage is down");
    metrics_text_print(&metrics, &text);
    CHECK(str_contains(buf_str(&text), STR("\ndrydock_paused 1\n")));
    fixture_run(&f, MINUTES(1)); /* renewals leave it where it is */
    CHECK(!core_may_grant(f.core));
    fixture_send(&f, "PATCH", LEASE, PAUSED("null"), false);
    fixture_run(&f, SECONDS(6));
    CHECK(core_may_grant(f.core));
    CHECK_EQ(f.a.capacity, told + 2);
    CHECK_EQ(fixture_events(&f, "EverythingResumed").n, 1);
    buf_reset(&text);
    metrics_text_print(&metrics, &text);
    CHECK(str_contains(buf_str(&text), STR("\ndrydock_paused 0\n")));
    fixture_end(&f);
    metrics_done(&metrics);
}

/* Restarts and new leaders find it, with election and without, and without any CRD. */
TEST(core_stays_paused_whoever_leads)
{
    for (int elect = 0; elect <= 1; elect++) {
        struct fixture f;
        check_case(elect);
        fixture_begin(&f);
        fixture_close_core(&f);
        fixture_send(&f, "POST", LEASES,
                     STR("{\"metadata\":{\"name\":\"maintenance-controller-leader-election.cloud."
                         "sap\",\"annotations\":{\"drydock.dev/paused\":\"\"}}}"),
                     false);
        for (int life = 0; life < 2; life++) {
            fixture_open_core(&f, NULL, elect != 0);
            core_start(f.core);
            for (int i = 0; i < 100; i++) {
                fixture_run(&f, MSECONDS(500));
                CHECK(!core_may_grant(f.core));
            }
            CHECK(core_leads(f.core));
            CHECK_STR(core_grants_stopped(f.core), "everything is paused");
            if (life == 0) {
                fixture_close_core(&f);
            }
        }
        fixture_send(&f, "DELETE", LEASE, STR(""), false);
        fixture_run(&f, SECONDS(6));
        CHECK(core_may_grant(f.core));
        fixture_end(&f);
    }
    check_case(-1);
}

TEST(core_evicts_nothing_while_everything_is_paused)
{
    struct fixture f;
    struct drain_status status;
    fixture_begin(&f);
    fixture_send(
        &f, "POST", "/api/v1/namespaces/default/pods",
        STR("{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{"
            "\"name\":\"c\",\"image\":\"i\"}]}}"),
        false);
    core_start(f.core);
    fixture_run(&f, SECONDS(30));
    fixture_send(&f, "PATCH", LEASE, PAUSED("\"x\""), false);
    fixture_run(&f, SECONDS(6));
    struct drain *d = drain_start(f.core->drains,
                                  &(struct drain_spec){ .node = STR("n1"),
                                                        .eviction_timeout = MINUTES(10),
                                                        .deletion_timeout = MINUTES(10),
                                                        .grace = -1 },
                                  drain_on_change, NULL);
    fixture_run(&f, MINUTES(30));
    drain_status(d, &status);
    CHECK_EQ(status.left, 1);
    CHECK_EQ(status.evicted, 0);
    fixture_send(&f, "PATCH", LEASE, PAUSED("null"), false);
    fixture_run(&f, SECONDS(6));
    drain_status(d, &status);
    CHECK_EQ(status.evicted, 1);
    drain_stop(d);
    fixture_end(&f);
}
