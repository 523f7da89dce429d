/*
 * The door alone, in front of a scripted server: here the network is tested, not the API.
 */
#include "base/alloc.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

#define STREAM_LINES 4096

struct apiserver_watch {
    struct apiserver *server;
    struct loop_timer ready;
    uint32_t next;
    bool ended;
    void (*on_ready)(void *ctx);
    void *ctx;
};

struct apiserver {
    struct loop *loop;
    uint32_t handled;
    uint32_t written; /* lines that exist */
    uint32_t open;
    struct apiserver_watch *watch[8];
    int refuse_watch; /* status instead of a stream */
    usec_t delay;
    bool partial; /* what was asked for last was metadata */
};

void apiserver_handle(struct apiserver *s, const struct apiserver_request *request,
                      struct arena *out, struct apiserver_reply *ret)
{
    *ret = (struct apiserver_reply){ .status = 200, .delay = s->delay };
    s->handled++;
    s->partial = str_eq(request->accept, API_METADATA);
    if (!str_contains(request->path, STR("watch=1"))) {
        ret->body = arena_printf(out, STR_FMT " " STR_FMT " " STR_FMT, STR_ARG(request->method),
                                 STR_ARG(request->path), STR_ARG(request->body));
        return;
    }
    if (s->refuse_watch != 0) {
        ret->status = s->refuse_watch;
        ret->body = STR("gone");
        return;
    }
    CHECK(s->open < 8);
    struct apiserver_watch *w = ALLOC_NEW(struct apiserver_watch);
    w->server = s;
    s->watch[s->open++] = w;
    ret->watch = w;
}

void apiserver_watch_notify(struct apiserver_watch *w, void (*on_ready)(void *ctx), void *ctx)
{
    w->on_ready = on_ready;
    w->ctx = ctx;
    loop_timer_init(&w->ready, w->server->loop, on_ready, ctx);
}

bool apiserver_watch_next(struct apiserver_watch *w, struct arena *out, struct str *ret_line,
                          bool *ret_ended)
{
    if (w->next >= w->server->written) {
        *ret_ended = w->ended;
        return false;
    }
    *ret_line = w->next % 10 == 9 ? arena_printf(out, "{\"type\":\"BOOKMARK\",\"n\":%u}", w->next)
                                  : arena_printf(out, "line %u", w->next);
    w->next++;
    return true;
}

void apiserver_watch_close(struct apiserver_watch *w)
{
    struct apiserver *s = w->server;
    uint32_t i = 0;
    while (s->watch[i] != w) {
        i++;
    }
    s->watch[i] = s->watch[--s->open];
    loop_timer_done(&w->ready);
    alloc_free(w);
}

static void server_write(struct apiserver *s, uint32_t lines)
{
    s->written += lines;
    for (uint32_t i = 0; i < s->open; i++) {
        loop_timer_set(&s->watch[i]->ready, loop_now(s->loop));
    }
}

/* A client that writes down what it sees. */
struct sim_client {
    struct virtual_loop *v;
    struct loop *view;
    struct apiserver server;
    struct faults faults;
    struct api *api;
    uint32_t replies;
    uint32_t failures;
    uint32_t timeouts;
    int status;
    usec_t replied_at;
    usec_t took;
    char body[128];
    struct api_watch *watch;
    uint32_t opened;
    uint32_t lines;
    uint32_t ends;
    int end_status;
    enum err_code end_code;
    int64_t last_line;
    bool stop_at_line;
    bool crash_at_line;
    bool garbled;
};

static void sim_client_init(struct sim_client *c, uint64_t seed)
{
    *c = (struct sim_client){ .v = virtual_loop_new(seed, SECONDS(1700000000)), .last_line = -1 };
    c->view = virtual_loop_view_new(c->v, 0);
    c->server.loop = virtual_loop_root(c->v);
    faults_init(&c->faults, seed);
    c->api = sim_api_new(c->view, &c->server, &c->faults);
}

static void sim_client_done(struct sim_client *c)
{
    sim_api_free(c->api);
    faults_done(&c->faults);
    CHECK_EQ(c->server.open, 0);
    CHECK_EQ(virtual_loop_armed(c->v), 0);
    virtual_loop_view_free(c->view);
    virtual_loop_free(c->v);
}

static void sim_client_on_reply(void *ctx, const struct api_reply *reply)
{
    struct sim_client *c = ctx;
    c->replies++;
    c->status = reply->status;
    c->replied_at = loop_now(c->view);
    c->took = reply->took;
    CHECK((reply->status == 0) == (reply->err != NULL));
    if (reply->err != NULL) {
        c->failures++;
        c->timeouts += reply->err->code == ERR_TIMEOUT;
    }
    size_t n = MIN(reply->body.n, sizeof(c->body) - 1);
    memcpy(c->body, reply->body.n > 0 ? reply->body.p : "", n);
    c->body[n] = 0;
}

static void sim_client_on_event(void *ctx, const struct api_watch_event *event)
{
    struct sim_client *c = ctx;
    struct str rest;
    uint32_t n;
    switch (event->kind) {
    case API_WATCH_OPEN:
        c->opened++;
        c->last_line = -1;
        break;
    case API_WATCH_LINE:
        c->lines++;
        if (str_cut_prefix(event->line, STR("line "), &rest) && str_to_u32(rest, &n)) {
            CHECK(c->garbled || n > c->last_line);
            c->last_line = n;
        }
        if (c->stop_at_line) {
            api_watch_stop(c->api, STEAL(c->watch));
        } else if (c->crash_at_line) {
            sim_api_free(STEAL(c->api));
        }
        break;
    case API_WATCH_END:
        c->ends++;
        c->watch = NULL;
        c->end_status = event->status;
        c->end_code = event->err != NULL ? event->err->code : 0;
        break;
    }
}

static struct api_call *sim_client_send(struct sim_client *c, enum api_verb verb, usec_t timeout)
{
    struct api_request request = {
        .verb = verb,
        .path = STR("/api/v1/nodes/n1"),
        .body = STR("{}"),
        .timeout = timeout,
    };
    return api_send(c->api, &request, sim_client_on_reply, c);
}

static void sim_client_watch(struct sim_client *c, usec_t silence_max)
{
    struct api_watch_spec spec = {
        .path = STR("/api/v1/nodes?watch=1"),
        .silence_max = silence_max,
    };
    c->watch = api_watch(c->api, &spec, sim_client_on_event, c);
}

static void sim_client_run(struct sim_client *c, usec_t duration)
{
    (void)virtual_loop_run(c->v, virtual_loop_now(c->v) + duration);
}

TEST(sim_api_call_travels_is_executed_and_answered)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    c.faults.latency_min = c.faults.latency_max = MSECONDS(10);
    c.server.delay = MSECONDS(5);
    (void)sim_client_send(&c, API_PATCH, 0);
    CHECK_EQ(sim_api_in_flight(c.api), 1);
    CHECK_EQ(c.replies, 0);
    sim_client_run(&c, MSECONDS(9));
    CHECK_EQ(c.server.handled, 0);
    sim_client_run(&c, MSECONDS(2));
    CHECK_EQ(c.server.handled, 1);
    CHECK_EQ(c.replies, 0);
    sim_client_run(&c, SECONDS(1));
    CHECK_EQ(c.replies, 1);
    CHECK_EQ(c.replied_at, MSECONDS(25));
    CHECK_EQ(c.took, MSECONDS(25));
    CHECK_EQ(c.status, 200);
    CHECK_STR(c.body, "PATCH /api/v1/nodes/n1 {}");
    CHECK_EQ(sim_api_in_flight(c.api), 0);
    sim_client_done(&c);
}

TEST(sim_api_lets_calls_wait_and_one_with_its_own_connection_pass)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    c.faults.latency_min = c.faults.latency_max = MSECONDS(500);
    for (uint32_t i = 0; i < 10 * SIM_REQUESTS_MAX; i++) {
        (void)sim_client_send(&c, API_PATCH, MSECONDS(4500));
    }
    const struct api_request own = { .path = STR("/own"), .own_connection = true };
    (void)api_send(c.api, &own, sim_client_on_reply, &c);
    sim_client_run(&c, MSECONDS(1001));
    CHECK_EQ(c.server.handled, SIM_REQUESTS_MAX + 1);
    CHECK_EQ(c.replies, SIM_REQUESTS_MAX + 1);
    CHECK_STR(c.body, "GET /own ");
    sim_client_run(&c, SECONDS(10));
    CHECK_EQ(c.replies, 10 * SIM_REQUESTS_MAX + 1);
    CHECK_EQ(c.timeouts, 6 * SIM_REQUESTS_MAX); /* four rounds were in time */
    CHECK_EQ(sim_api_in_flight(c.api), 0);
    sim_client_done(&c);
}

TEST(sim_api_forgets_calls_that_wait_when_connections_break_and_when_it_ends)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    for (uint32_t i = 0; i < 3 * SIM_REQUESTS_MAX; i++) {
        (void)sim_client_send(&c, API_PATCH, 0);
    }
    sim_api_disconnect(c.api);
    sim_client_run(&c, SECONDS(60));
    CHECK_EQ(c.failures, 3 * SIM_REQUESTS_MAX);
    for (uint32_t i = 0; i < 3 * SIM_REQUESTS_MAX; i++) {
        (void)sim_client_send(&c, API_PATCH, 0);
    }
    sim_client_done(&c);
}

TEST(sim_api_says_in_what_form_the_answer_is_wanted)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    char accept[] = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    struct api_request request = { .path = STR("/a"), .accept = str_from(accept) };
    struct api_watch_spec spec = { .path = STR("/a?watch=1"), .accept = str_from(accept) };
    for (int i = 0; i < 2; i++) {
        struct api_watch *watch = NULL;
        if (i == 0) {
            (void)api_send(c.api, &request, sim_client_on_reply, &c);
        } else {
            watch = api_watch(c.api, &spec, sim_client_on_event, &c);
        }
        accept[0] = 'x'; /* the texts are copied */
        sim_client_run(&c, SECONDS(1));
        CHECK(c.server.partial);
        accept[0] = 'a';
        if (watch != NULL) {
            api_watch_stop(c.api, watch);
        }
        (void)sim_client_send(&c, API_GET, 0);
        sim_client_run(&c, SECONDS(1));
        CHECK(!c.server.partial);
    }
    sim_client_done(&c);
}

TEST(sim_api_call_honours_its_timeout)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    c.server.delay = SECONDS(50);
    (void)sim_client_send(&c, API_GET, SECONDS(7));
    sim_client_run(&c, MINUTES(2));
    CHECK_EQ(c.server.handled, 1);
    CHECK_EQ(c.timeouts, 1);
    CHECK_EQ(c.replied_at, SECONDS(7));
    (void)sim_client_send(&c, API_GET, 0);
    sim_client_run(&c, MINUTES(2));
    CHECK_EQ(c.timeouts, 2);
    CHECK_EQ(c.replied_at, MINUTES(2) + API_TIMEOUT);
    sim_client_done(&c);
}

TEST(sim_api_request_slower_than_the_timeout_may_still_arrive)
{
    for (uint32_t executes = 0; executes <= 1000; executes += 1000) {
        struct sim_client c;
        sim_client_init(&c, 1);
        c.faults.latency_min = c.faults.latency_max = SECONDS(60);
        c.faults.cancel_executes = executes;
        (void)sim_client_send(&c, API_GET, SECONDS(30));
        sim_client_run(&c, SECONDS(31));
        CHECK_EQ(c.timeouts, 1);
        CHECK_EQ(c.server.handled, 0);
        sim_client_run(&c, MINUTES(5));
        CHECK_EQ(c.server.handled, executes / 1000);
        CHECK_EQ(c.replies, 1);
        sim_client_done(&c);
    }
}

TEST(sim_api_lost_request_is_not_executed_and_lost_reply_is)
{
    struct sim_client c;
    sim_client_init(&c, 3);
    c.faults.request_lost = 1000;
    for (int i = 0; i < 40; i++) {
        (void)sim_client_send(&c, API_POST, 0);
    }
    sim_client_run(&c, MINUTES(1));
    CHECK_EQ(c.server.handled, 0);
    CHECK_EQ(c.failures, 40);
    CHECK(c.timeouts > 0 && c.timeouts < 40); /* some are noticed at once */
    c.faults.request_lost = 0;
    c.faults.reply_lost = 1000;
    for (int i = 0; i < 40; i++) {
        (void)sim_client_send(&c, API_POST, 0);
    }
    sim_client_run(&c, MINUTES(1));
    CHECK_EQ(c.server.handled, 40);
    CHECK_EQ(c.failures, 80);
    c.faults.calm = true;
    (void)sim_client_send(&c, API_POST, 0);
    sim_client_run(&c, MINUTES(1));
    CHECK_EQ(c.status, 200);
    sim_client_done(&c);
}

TEST(sim_api_injects_answers_a_server_gives_under_pressure)
{
    static const struct {
        int status;
        bool may_act;
    } cases[] = { { 429, false }, { 500, true }, { 503, false }, { 504, true } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sim_client c;
        sim_client_init(&c, 5);
        c.faults.error_429 = cases[i].status == 429 ? 1000 : 0;
        c.faults.error_500 = cases[i].status == 500 ? 1000 : 0;
        c.faults.error_503 = cases[i].status == 503 ? 1000 : 0;
        c.faults.error_504 = cases[i].status == 504 ? 1000 : 0;
        for (int n = 0; n < 40; n++) {
            (void)sim_client_send(&c, API_PATCH, 0);
            sim_client_run(&c, SECONDS(1));
            CHECK_EQ(c.status, cases[i].status);
        }
        CHECK_EQ(c.replies, 40);
        CHECK_EQ(c.server.handled > 0, cases[i].may_act);
        CHECK(c.server.handled < 40);
        CHECK_EQ(c.faults.injected, 40);
        sim_client_done(&c);
    }
}

TEST(sim_api_server_that_is_down_refuses_and_a_parted_network_is_silent)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    c.faults.down = true;
    (void)sim_client_send(&c, API_GET, 0);
    sim_client_watch(&c, 0);
    sim_client_run(&c, SECONDS(1));
    CHECK_EQ(c.failures, 1);
    CHECK_EQ(c.timeouts, 0);
    CHECK_EQ(c.ends, 1);
    CHECK_EQ(c.end_code, ERR_IO);
    c.faults.down = false;
    c.faults.partitioned = true;
    (void)sim_client_send(&c, API_GET, 0);
    sim_client_watch(&c, 0);
    sim_client_run(&c, MINUTES(1));
    CHECK_EQ(c.timeouts, 1);
    CHECK_EQ(c.end_code, ERR_TIMEOUT);
    CHECK_EQ(c.server.handled, 0);
    sim_client_done(&c);
}

TEST(sim_api_watch_delivers_lines_in_order)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    c.faults.latency_max = SECONDS(1);
    sim_client_watch(&c, 0);
    server_write(&c.server, 5);
    sim_client_run(&c, SECONDS(10));
    CHECK_EQ(c.opened, 1);
    CHECK_EQ(c.lines, 5);
    for (int i = 0; i < 100; i++) {
        server_write(&c.server, 3);
        sim_client_run(&c, MSECONDS(50));
    }
    sim_client_run(&c, SECONDS(10));
    CHECK_EQ(c.lines, 305);
    CHECK_EQ(c.ends, 0);
    c.server.watch[0]->ended = true;
    server_write(&c.server, 1);
    sim_client_run(&c, SECONDS(10));
    CHECK_EQ(c.lines, 306);
    CHECK_EQ(c.ends, 1);
    CHECK_EQ(c.end_status, 200);
    CHECK_EQ(c.end_code, 0);
    sim_client_done(&c);
}

TEST(sim_api_watch_that_is_refused_ends_with_status_and_body)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    c.server.refuse_watch = 410;
    sim_client_watch(&c, 0);
    sim_client_run(&c, SECONDS(1));
    CHECK_EQ(c.opened, 0);
    CHECK_EQ(c.ends, 1);
    CHECK_EQ(c.end_status, 410);
    sim_client_done(&c);
}

TEST(sim_api_watch_falls_silent_and_ends_by_silence)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    sim_client_watch(&c, SECONDS(150));
    server_write(&c.server, 1);
    sim_client_run(&c, SECONDS(100));
    server_write(&c.server, 1);
    sim_client_run(&c, SECONDS(100));
    CHECK_EQ(c.ends, 0);
    sim_client_run(&c, SECONDS(60));
    CHECK_EQ(c.ends, 1);
    CHECK_EQ(c.end_code, ERR_TIMEOUT);
    CHECK_EQ(c.server.open, 0);
    sim_client_done(&c);
}

TEST(sim_api_watch_cut_loses_what_follows_and_dead_one_says_nothing)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    c.faults.watch_cut = 1000;
    c.faults.watch_life = MINUTES(1);
    uint32_t cut_early = 0;
    for (uint32_t i = 1; i <= 40; i++) {
        c.lines = 0;
        sim_client_watch(&c, 0);
        server_write(&c.server, 40);
        sim_client_run(&c, MINUTES(2));
        CHECK_EQ(c.ends, i);
        CHECK_EQ(c.end_code, ERR_IO);
        CHECK_EQ(c.server.open, 0);
        cut_early += c.lines < 30;
    }
    CHECK(cut_early > 5 && cut_early < 35);
    c.faults.watch_cut = 0;
    c.faults.watch_dead = 1000;
    sim_client_watch(&c, MINUTES(5));
    server_write(&c.server, 40);
    sim_client_run(&c, MINUTES(3));
    CHECK_EQ(c.ends, 40);
    CHECK_EQ(c.server.open, 0);
    sim_client_run(&c, MINUTES(5));
    CHECK_EQ(c.ends, 41);
    CHECK_EQ(c.end_code, ERR_TIMEOUT);
    sim_client_done(&c);
}

TEST(sim_api_watch_stalls_garbles_and_loses_bookmarks)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    c.faults.bookmark_lost = 1000;
    sim_client_watch(&c, 0);
    server_write(&c.server, 100);
    sim_client_run(&c, SECONDS(1));
    CHECK_EQ(c.lines, 90);
    c.faults.watch_stall = 1000;
    c.faults.watch_stall_max = HOURS(1);
    server_write(&c.server, 20);
    sim_client_run(&c, SECONDS(1));
    CHECK_EQ(c.lines, 90);
    sim_client_run(&c, HOURS(1));
    CHECK_EQ(c.lines, 108);
    c.faults.watch_stall = 0;
    c.faults.watch_garbled = 1000;
    c.garbled = true;
    server_write(&c.server, 20);
    sim_client_run(&c, SECONDS(1));
    CHECK_EQ(c.lines, 109);
    CHECK_EQ(c.ends, 1);
    sim_client_done(&c);
}

TEST(sim_api_parted_watch_catches_up_when_the_network_heals)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    sim_client_watch(&c, 0);
    sim_client_run(&c, SECONDS(1));
    c.faults.partitioned = true;
    server_write(&c.server, 5);
    sim_client_run(&c, SECONDS(100));
    CHECK_EQ(c.lines, 0);
    c.faults.partitioned = false;
    sim_client_run(&c, SECONDS(61));
    CHECK_EQ(c.lines, 5);
    sim_client_done(&c);
}

TEST(sim_api_frozen_client_gets_its_deliveries_at_the_thaw)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    sim_client_watch(&c, 0);
    sim_client_run(&c, SECONDS(1));
    (void)sim_client_send(&c, API_PATCH, 0);
    virtual_loop_freeze(c.view, true);
    server_write(&c.server, 5);
    sim_client_run(&c, MINUTES(10));
    CHECK_EQ(c.server.handled, 2); /* it was on the wire: the server has acted */
    CHECK_EQ(c.replies, 0);
    CHECK_EQ(c.lines, 0);
    virtual_loop_freeze(c.view, false);
    sim_client_run(&c, 0);
    CHECK_EQ(c.replies, 1);
    CHECK_EQ(c.status, 200);
    CHECK_EQ(c.lines, 5);
    sim_client_done(&c);
}

TEST(sim_api_callback_may_stop_its_watch_or_free_the_door)
{
    struct sim_client c;
    sim_client_init(&c, 1);
    c.stop_at_line = true;
    sim_client_watch(&c, SECONDS(60));
    server_write(&c.server, 5);
    sim_client_run(&c, SECONDS(10));
    CHECK_EQ(c.lines, 1);
    CHECK_EQ(c.server.open, 0);
    c.stop_at_line = false;
    c.crash_at_line = true;
    sim_client_watch(&c, SECONDS(60));
    (void)sim_client_send(&c, API_GET, 0);
    sim_client_run(&c, SECONDS(10));
    CHECK(c.api == NULL);
    CHECK_EQ(c.lines, 2);
    CHECK_EQ(c.ends, 0);
    sim_client_done(&c);
}

TEST(sim_api_crash_and_cancel_leave_requests_on_the_wire)
{
    struct sim_client c;
    sim_client_init(&c, 9);
    c.faults.cancel_executes = 500;
    for (int i = 0; i < 40; i++) {
        api_cancel(c.api, sim_client_send(&c, API_POST, 0));
        (void)sim_client_send(&c, API_POST, 0);
    }
    CHECK_EQ(sim_api_in_flight(c.api), 40);
    sim_api_free(c.api);
    c.api = sim_api_new(c.view, &c.server, &c.faults);
    sim_client_run(&c, SECONDS(1));
    CHECK_EQ(c.replies, 0);
    CHECK(c.server.handled > 20 && c.server.handled < 60);
    sim_client_done(&c);
}

TEST(sim_api_cut_breaks_every_connection)
{
    struct sim_client c;
    sim_client_init(&c, 2);
    sim_client_watch(&c, 0);
    sim_client_run(&c, SECONDS(1));
    for (int i = 0; i < 20; i++) {
        (void)sim_client_send(&c, API_POST, 0);
    }
    uint32_t before = c.server.handled;
    sim_api_disconnect(c.api);
    sim_client_run(&c, SECONDS(1));
    CHECK_EQ(c.failures, 20);
    CHECK_EQ(c.ends, 1);
    CHECK(c.server.handled > before && c.server.handled < before + 20);
    sim_client_done(&c);
}

TEST(sim_api_counts_by_verb_and_resource)
{
    struct sim_client c;
    sim_client_init(&c, 2);
    static const char *const paths[] = {
        "/api/v1/nodes?limit=5",
        "/api/v1/nodes/n1",
        "/api/v1/namespaces/x/pods/y/eviction",
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l",
        "/api/v1/namespaces/x",
        "/healthz",
    };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct api_request request = { .verb = API_GET, .path = str_from(paths[i]) };
        (void)api_send(c.api, &request, sim_client_on_reply, &c);
    }
    sim_client_run(&c, SECONDS(1));
    uint32_t n;
    const struct sim_api_count *t = sim_api_counts(c.api, &n);
    CHECK_EQ(n, 5);
    CHECK_EQ(sim_api_sent(c.api), 6);
    CHECK_STR(t[0].resource, "nodes");
    CHECK_EQ(t[0].sent[SIM_LIST], 1);
    CHECK_EQ(t[0].sent[SIM_GET], 1);
    CHECK_STR(t[1].resource, "pods/eviction");
    CHECK_STR(t[2].resource, "leases");
    CHECK_STR(t[3].resource, "namespaces");
    CHECK_EQ(t[3].sent[SIM_GET], 1);
    CHECK_STR(t[4].resource, "other");
    sim_client_done(&c);
}

/* Whatever the network does: each call is answered once, lines keep their order, nothing leaks. */
PROPERTY(sim_api_keeps_its_promises_in_any_weather)
{
    struct sim_client c;
    sim_client_init(&c, rng_next(rng));
    faults_randomize(&c.faults);
    c.garbled = c.faults.watch_garbled > 0;
    uint32_t sent = 0;
    for (int step = 0; step < 60; step++) {
        switch (rng_below(rng, 8)) {
        case 0:
            c.faults.down = !c.faults.down;
            break;
        case 1:
            c.faults.partitioned = rng_chance(rng, 300);
            break;
        case 2:
            virtual_loop_freeze(c.view, rng_chance(rng, 400));
            break;
        case 3:
            if (c.watch == NULL) {
                sim_client_watch(&c, SECONDS(150));
            }
            break;
        case 4:
            server_write(&c.server, rng_below(rng, 20));
            break;
        default:
            (void)sim_client_send(&c, API_PATCH, rng_usec(rng, 0, MINUTES(1)));
            sent++;
            break;
        }
        sim_client_run(&c, rng_usec(rng, 0, SECONDS(20)));
    }
    virtual_loop_freeze(c.view, false);
    c.faults.down = false;
    c.faults.partitioned = false;
    sim_client_run(&c, MINUTES(10));
    CHECK_EQ(c.replies, sent);
    CHECK_EQ(sim_api_in_flight(c.api), 0);
    sim_client_done(&c);
}
