#include "web/request_auth.h"

#include "base/arena.h"
#include "format/json.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/unit/web/exchange_fixture.h"

#define ACCOUNTS "/api/v1/namespaces/kube-system/serviceaccounts"
#define RBAC "/apis/rbac.authorization.k8s.io/v1/"

/* An exchange that has headers. */
struct auth_exchange {
    struct fake_exchange f;
    struct str authorization;
    struct str token; /* of the header of our own client */
};

struct auth_fixture {
    struct virtual_loop *time;
    struct loop *loop;
    struct apiserver *server;
    struct api *api;
    struct arena memory;
    struct log log;
    struct buf told;
    struct metrics metrics;
    struct request_auth *auth;
    uint32_t passed; /* requests that reached the handler */
    struct buf path; /* of the last one */
    struct str good; /* a token of one who may read /metrics */
    struct str poor; /* of one who may nothing */
};

static void auth_fixture_handle(void *ctx, struct inbound_exchange *x,
                                const struct inbound_request *req)
{
    struct auth_fixture *w = ctx;
    w->passed++;
    buf_reset(&w->path);
    buf_printf(&w->path, STR_FMT " " STR_FMT "?" STR_FMT, STR_ARG(req->method), STR_ARG(req->path),
               STR_ARG(req->query));
    CHECK(x->on_close == NULL);
    inbound_reply(x, 200, STR("text/plain"), STR("secret"));
}

static void auth_fixture_tell(void *ctx, struct str line)
{
    struct auth_fixture *w = ctx;
    buf_add(&w->told, line);
}

static struct str as_admin(struct auth_fixture *w, const char *method, const char *path,
                           const char *body)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = { .method = str_from(method),
                                         .path = str_from(path),
                                         .content_type = STR("application/json"),
                                         .body = str_from(body) };
    apiserver_handle(w->server, &request, &w->memory, &reply);
    CHECK(reply.status == 200 || reply.status == 201);
    return reply.body;
}

static struct str make_token(struct auth_fixture *w, const char *account, const char *body)
{
    struct err err = { 0 };
    const struct jval *root = NULL;
    struct str path = arena_printf(&w->memory, ACCOUNTS "/%s/token", account);
    struct str reply = as_admin(w, "POST", path.p, body);
    CHECK_EQ(json_parse(reply, 0, &w->memory, &root, &err), 0);
    return jval_str(jval_at(root, "status.token"));
}

static void make_accounts(struct auth_fixture *w)
{
    (void)as_admin(w, "POST", ACCOUNTS, "{\"metadata\":{\"name\":\"reader\"}}");
    (void)as_admin(w, "POST", ACCOUNTS, "{\"metadata\":{\"name\":\"nobody\"}}");
    (void)as_admin(w, "POST", RBAC "clusterroles",
                   "{\"metadata\":{\"name\":\"reader\"},\"rules\":[{\"verbs\":[\"get\"],"
                   "\"nonResourceURLs\":[\"/metrics\",\"/drydock/api/*\"]}]}");
    (void)as_admin(
        w, "POST", RBAC "clusterrolebindings",
        "{\"metadata\":{\"name\":\"reader\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s."
        "io\",\"kind\":\"ClusterRole\",\"name\":\"reader\"},\"subjects\":["
        "{\"kind\":\"ServiceAccount\",\"name\":\"reader\",\"namespace\":\"kube-system\"},"
        "{\"kind\":\"Group\",\"apiGroup\":\"rbac.authorization.k8s.io\",\"name\":\"watchers\"}]}");
    w->good = make_token(w, "reader", "{}");
    w->poor = make_token(w, "nobody", "{}");
}

static void auth_fixture_init(struct auth_fixture *w, const struct str *audiences, uint32_t n)
{
    *w = (struct auth_fixture){ .time = virtual_loop_new(1, SECONDS(1700000000)) };
    w->loop = virtual_loop_view_new(w->time, 0);
    w->server = apiserver_new(w->loop, 1);
    w->api = sim_api_new(w->loop, w->server, NULL);
    w->log = (struct log){ .write = auth_fixture_tell, .ctx = w, .level = LOG_DEBUG };
    metrics_init(&w->metrics);
    make_accounts(w);
    w->auth = request_auth_new(&(struct request_auth_config){ .loop = w->loop,
                                                              .api = w->api,
                                                              .log = &w->log,
                                                              .metrics = &w->metrics,
                                                              .audiences = audiences,
                                                              .audience_n = n,
                                                              .handler = auth_fixture_handle,
                                                              .ctx = w });
}

static void auth_fixture_done(struct auth_fixture *w)
{
    request_auth_free(w->auth);
    metrics_done(&w->metrics);
    sim_api_free(w->api);
    apiserver_free(w->server);
    virtual_loop_view_free(w->loop);
    virtual_loop_free(w->time);
    arena_done(&w->memory);
    buf_done(&w->told);
    buf_done(&w->path);
}

static struct str auth_exchange_get(const struct inbound_exchange *x, const char *name)
{
    struct auth_exchange *e = CONTAINER_OF(fake_exchange_of(x), struct auth_exchange, f);
    if (str_eq(str_from(name), STR("Authorization"))) {
        return e->authorization;
    }
    CHECK_STR(name, REQUEST_AUTH_TOKEN_HEADER);
    return e->token;
}

static void auth_send(struct auth_fixture *w, struct auth_exchange *e, struct inbound_request req)
{
    e->f.door = (struct inbound_exchange){ .ops = &fake_exchange_ops };
    req.header = auth_exchange_get;
    req.method = req.method.n > 0 ? req.method : STR("GET");
    request_auth_handle(w->auth, &e->f.door, &req);
}

static void auth_run(struct auth_fixture *w, usec_t time)
{
    usec_t until = loop_now(w->loop) + time;
    while (virtual_loop_step(w->time, until)) {
    }
}

static struct str bearer(struct auth_fixture *w, struct str token)
{
    return arena_concat(&w->memory, STR("Bearer "), token);
}

/* The status that a request with this header gets in the end. */
static int auth_ask(struct auth_fixture *w, struct str authorization, const char *path)
{
    struct auth_exchange e = { .authorization = authorization };
    auth_send(w, &e, (struct inbound_request){ .path = str_from(path) });
    auth_run(w, MSECONDS(500));
    int status = e.f.status;
    CHECK(status == 200 || !str_contains(buf_str(&e.f.body), STR("secret")));
    fake_exchange_done(&e.f);
    return status;
}

TEST(auth_passes_on_what_the_cluster_allows)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    struct auth_exchange e = { .authorization = bearer(&w, w.good) };
    auth_send(&w, &e,
              (struct inbound_request){ .path = STR("/api/v1/status"), .query = STR("board=0") });
    CHECK_EQ(e.f.status, 0); /* it waits for the cluster */
    auth_run(&w, SECONDS(1));
    CHECK_EQ(e.f.status, 200);
    CHECK_STR(buf_str(&e.f.body), "secret");
    CHECK_STR(buf_str(&w.path), "GET /api/v1/status?board=0");
    fake_exchange_done(&e.f);
}

TEST(auth_refuses_everybody_else)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    struct str forged = arena_str(&w.memory, w.good);
    char *last = (char *)(uintptr_t)(forged.p + forged.n - 1);
    *last = *last == 'A' ? 'B' : 'A';
    char *large = arena_alloc(&w.memory, REQUEST_AUTH_TOKEN_BYTES_MAX + 1);
    memset(large, 'a', REQUEST_AUTH_TOKEN_BYTES_MAX + 1);
    const struct {
        struct str authorization;
        const char *path;
        int status;
        uint32_t reviews; /* that the cluster was asked for */
    } cases[] = {
        { STR_NONE, "/metrics", 401, 0 },
        { STR("Bearer"), "/metrics", 401, 0 },
        { STR("Bearer "), "/metrics", 401, 0 },
        { STR("Basic YWRtaW46YWRtaW4="), "/metrics", 401, 0 },
        { STR("Bearer a\"b"), "/metrics", 401, 0 },
        { STR("Bearer a b"), "/metrics", 401, 0 },
        { bearer(&w, (struct str){ .p = large, .n = REQUEST_AUTH_TOKEN_BYTES_MAX + 1 }), "/metrics",
          401, 0 },
        { STR("Bearer made-up"), "/metrics", 401, 1 },
        { bearer(&w, forged), "/metrics", 401, 1 },
        { bearer(&w, w.poor), "/metrics", 403, 2 },
        { bearer(&w, w.good), "/", 403, 2 },
        { bearer(&w, w.good), "/metrics/", 403, 1 }, /* who it is is known by now */
        /* A role of every cluster lets all users get /api/… for discovery; that is not ours. */
        { bearer(&w, w.poor), "/api/v1/status", 403, 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        uint64_t before = sim_api_sent(w.api);
        CHECK_EQ(auth_ask(&w, cases[i].authorization, cases[i].path), cases[i].status);
        CHECK_EQ(sim_api_sent(w.api) - before, cases[i].reviews);
    }
    CHECK_EQ(w.passed, 0);
}

TEST(auth_says_who_may_not_do_what)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    struct auth_exchange none = { 0 };
    auth_send(&w, &none, (struct inbound_request){ .path = STR("/metrics") });
    CHECK(str_contains(buf_str(&none.f.headers),
                       STR("WWW-Authenticate: Bearer realm=\"drydock\"\n")));
    struct auth_exchange poor = { .authorization = bearer(&w, w.poor) };
    auth_send(&w, &poor, (struct inbound_request){ .path = STR("/metrics") });
    auth_run(&w, SECONDS(1));
    CHECK_STR(buf_str(&poor.f.body),
              "{\"error\":\"'system:serviceaccount:kube-system:nobody' may not get '/metrics': no "
              "ClusterRole of theirs has this verb and nonResourceURL\"}");
    fake_exchange_done(&none.f);
    fake_exchange_done(&poor.f);
}

TEST(auth_takes_head_for_get_and_nothing_else)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    static const struct {
        struct str method;
        int status;
    } cases[] = {
        { STR_INIT("HEAD"), 200 },
        { STR_INIT("POST"), 403 },
        { STR_INIT("DELETE"), 403 },
        { STR_INIT("BREW"), 403 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct auth_exchange e = { .authorization = bearer(&w, w.good) };
        auth_send(&w, &e,
                  (struct inbound_request){ .method = cases[i].method, .path = STR("/metrics") });
        auth_run(&w, SECONDS(1));
        CHECK_EQ(e.f.status, cases[i].status);
        fake_exchange_done(&e.f);
    }
}

TEST(auth_reads_the_token_of_our_own_client_unless_there_is_another)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    struct auth_exchange own = { .token = w.good };
    auth_send(&w, &own, (struct inbound_request){ .path = STR("/metrics") });
    struct auth_exchange both = { .token = w.good, .authorization = STR("Bearer made-up") };
    auth_send(&w, &both, (struct inbound_request){ .path = STR("/metrics") });
    auth_run(&w, SECONDS(1));
    CHECK_EQ(own.f.status, 200);
    CHECK_EQ(both.f.status, 401);
    fake_exchange_done(&own.f);
    fake_exchange_done(&both.f);
}

TEST(auth_knows_certificates_by_name_and_organisation)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    static const struct str watchers[] = { STR_INIT("others"), STR_INIT("watchers") };
    const struct {
        uint32_t groups;
        int status;
    } cases[] = { { 2, 200 }, { 1, 403 }, { 0, 403 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct auth_exchange e = { 0 };
        auth_send(&w, &e,
                  (struct inbound_request){ .path = STR("/metrics"),
                                            .peer = STR("grafana"),
                                            .peer_groups = watchers,
                                            .peer_group_n = cases[i].groups });
        auth_run(&w, SECONDS(1));
        CHECK_EQ(e.f.status, cases[i].status);
        fake_exchange_done(&e.f);
    }
    /* A header that is no token is not passed over for the sake of a certificate. */
    struct auth_exchange odd = { .authorization = STR("Basic eDp4") };
    auth_send(&w, &odd,
              (struct inbound_request){ .path = STR("/metrics"),
                                        .peer = STR("grafana"),
                                        .peer_groups = watchers,
                                        .peer_group_n = 2 });
    CHECK_EQ(odd.f.status, 401);
    fake_exchange_done(&odd.f);
}

TEST(auth_wants_tokens_for_its_audience)
{
    static const struct str audience = STR_INIT("drydock");
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, &audience, 1);
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 401);
    struct str token = make_token(&w, "reader", "{\"spec\":{\"audiences\":[\"drydock\"]}}");
    CHECK_EQ(auth_ask(&w, bearer(&w, token), "/metrics"), 200);
}

TEST(auth_asks_once_for_many_and_again_when_the_time_is_over)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    struct auth_exchange e[20] = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(e); i++) {
        e[i].authorization = bearer(&w, w.good);
        auth_send(&w, &e[i], (struct inbound_request){ .path = STR("/metrics") });
    }
    auth_run(&w, SECONDS(1));
    for (size_t i = 0; i < ARRAY_LEN(e); i++) {
        CHECK_EQ(e[i].f.status, 200);
        fake_exchange_done(&e[i].f);
    }
    CHECK_EQ(sim_api_sent(w.api), 2);
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 200);
    CHECK_EQ(sim_api_sent(w.api), 2);
    auth_run(&w, REQUEST_AUTH_GOOD_TIME);
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 200);
    CHECK_EQ(sim_api_sent(w.api), 4);
}

/* Whoever reads every half a minute never waits for the cluster. */
TEST(auth_renews_what_is_in_use_before_its_time_is_over)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 200);
    for (int i = 0; i < 10; i++) {
        auth_run(&w, REQUEST_AUTH_GOOD_TIME * 2 / 3);
        struct auth_exchange e = { .authorization = bearer(&w, w.good) };
        auth_send(&w, &e, (struct inbound_request){ .path = STR("/metrics") });
        CHECK_EQ(e.f.status, 200); /* at once */
        fake_exchange_done(&e.f);
        auth_run(&w, SECONDS(1));
    }
}

TEST(auth_ends_a_right_that_is_taken_away)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 200);
    (void)as_admin(&w, "DELETE", RBAC "clusterrolebindings/reader", "");
    auth_run(&w, REQUEST_AUTH_GOOD_TIME);
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 403);
    (void)as_admin(&w, "DELETE", ACCOUNTS "/reader", "");
    auth_run(&w, REQUEST_AUTH_GOOD_TIME);
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 401);
    CHECK_EQ(request_auth_stats(w.auth).accepted, 0);
}

/* The accounts are answered for, but reviews are refused, as without the right to make them. */
TEST(auth_refuses_all_while_the_cluster_cannot_be_asked)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    sim_api_set_token(w.api, w.poor);
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 503);
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 503);
    CHECK_EQ(w.passed, 0);
    CHECK(str_contains(buf_str(&w.told),
                       STR("requests are refused: the cluster does not say whose a token is")));
    CHECK(str_contains(buf_str(&w.told), STR("tokenreviews.authentication.k8s.io is forbidden")));
    CHECK(!str_contains(buf_str(&w.told), w.good));
    size_t told = w.told.n;
    CHECK_EQ(auth_ask(&w, STR("Bearer other"), "/metrics"), 503);
    CHECK_EQ(w.told.n, told); /* it is told once a minute */
    sim_api_set_token(w.api, STR(""));
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 200);
}

/* Whose time has run out while the cluster is away does not get in on old knowledge. */
TEST(auth_trusts_nobody_longer_than_their_time)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 200);
    sim_api_set_token(w.api, w.poor);
    auth_run(&w, REQUEST_AUTH_GOOD_TIME - SECONDS(1));
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 200); /* the renewal fails unseen */
    auth_run(&w, SECONDS(2));
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 503);
    CHECK_EQ(w.passed, 2);
}

#define CROWD 400u

/* Tokens by the hundred, all different: the cluster is asked at a steady rate, memory is bounded,
 * and who was accepted before neither waits nor is pushed out. */
TEST(auth_serves_the_accepted_beside_a_crowd_of_strangers)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    static struct auth_exchange crowd[CROWD];
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/metrics"), 200);
    uint64_t before = sim_api_sent(w.api);
    usec_t began = loop_now(w.loop);
    uint32_t busy = 0;
    for (uint32_t i = 0; i < CROWD; i++) {
        crowd[i] =
            (struct auth_exchange){ .authorization = arena_printf(&w.memory, "Bearer t%u", i) };
        auth_send(&w, &crowd[i], (struct inbound_request){ .path = STR("/metrics") });
        busy += crowd[i].f.status == 503;
        struct request_auth_stats stats = request_auth_stats(w.auth);
        CHECK(stats.waiting <= REQUEST_AUTH_WAITING_MAX);
        CHECK(stats.in_flight <= REQUEST_AUTH_REVIEWS_MAX);
        CHECK(stats.others <= REQUEST_AUTH_OTHERS_MAX + REQUEST_AUTH_WAITING_MAX);
        auth_run(&w, MSECONDS(2));
    }
    CHECK(busy > CROWD / 2);
    struct auth_exchange e = { .authorization = bearer(&w, w.good) };
    auth_send(&w, &e, (struct inbound_request){ .path = STR("/metrics") });
    CHECK_EQ(e.f.status, 200); /* at once */
    fake_exchange_done(&e.f);
    auth_run(&w, REQUEST_AUTH_TIMEOUT + SECONDS(1));
    for (uint32_t i = 0; i < CROWD; i++) {
        CHECK(crowd[i].f.status == 401 || crowd[i].f.status == 503);
        fake_exchange_done(&crowd[i].f);
    }
    usec_t took = loop_now(w.loop) - began;
    CHECK(sim_api_sent(w.api) - before <=
          REQUEST_AUTH_STRANGER_BURST + (uint64_t)took * REQUEST_AUTH_STRANGER_RATE / 1000000 + 2);
    CHECK_EQ(request_auth_stats(w.auth).accepted, 1);
    CHECK_EQ(request_auth_stats(w.auth).waiting, 0);
}

TEST(auth_keeps_few_answers_of_one_sender)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    for (uint32_t i = 0; i < 3 * REQUEST_AUTH_PATHS_MAX; i++) {
        struct str path = arena_printf(&w.memory, "/api/%u", i);
        CHECK_EQ(auth_ask(&w, bearer(&w, w.good), path.p), 200);
    }
    uint64_t before = sim_api_sent(w.api);
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), "/api/0"), 200); /* forgotten, and asked again */
    CHECK_EQ(sim_api_sent(w.api) - before, 1);
    char *path = arena_alloc(&w.memory, 2000);
    memset(path, 'x', 1999);
    path[0] = '/';
    path[1999] = '\0';
    CHECK_EQ(auth_ask(&w, bearer(&w, w.good), path), 414);
}

TEST(auth_forgets_who_goes_away_while_waiting)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    struct auth_exchange e = { .authorization = bearer(&w, w.good) };
    auth_send(&w, &e, (struct inbound_request){ .path = STR("/metrics") });
    CHECK_EQ(request_auth_stats(w.auth).waiting, 1);
    e.f.door.on_close(e.f.door.on_close_ctx);
    CHECK_EQ(request_auth_stats(w.auth).waiting, 0);
    auth_run(&w, SECONDS(1));
    CHECK_EQ(e.f.status, 0);
    CHECK_EQ(w.passed, 0);
    struct auth_exchange last = { .authorization = STR("Bearer other") };
    auth_send(&w, &last, (struct inbound_request){ .path = STR("/metrics") });
    fake_exchange_done(&e.f);
    fake_exchange_done(&last.f); /* the fixture frees the rest while it waits */
}

TEST(auth_counts_what_it_did)
{
    CLEANUP(auth_fixture_done)
    struct auth_fixture w;
    auth_fixture_init(&w, NULL, 0);
    (void)auth_ask(&w, bearer(&w, w.good), "/metrics");
    (void)auth_ask(&w, bearer(&w, w.poor), "/metrics");
    (void)auth_ask(&w, STR_NONE, "/metrics");
    static const struct str results[] = { STR_INIT("allowed"), STR_INIT("forbidden"),
                                          STR_INIT("unauthenticated") };
    struct metric *family = metrics_find(&w.metrics, STR("drydock_http_auth_total"));
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        check_case((int64_t)i);
        CHECK_EQ((int64_t)metric_series(family, &results[i])->value, 1);
    }
}
