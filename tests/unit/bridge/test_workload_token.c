#include "bridge/workload_token.h"

#include "format/json_tree.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/fake_api.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

#define RBAC "/apis/rbac.authorization.k8s.io/v1/"
#define ACCOUNTS "/api/v1/namespaces/kube-system/serviceaccounts"
#define ROLES RBAC "clusterroles"
#define BINDINGS RBAC "clusterrolebindings"
#define NAME "drydock-bridge"
#define VERBS "[\"get\",\"list\",\"watch\",\"patch\"]"
#define RULES "[{\"apiGroups\":[\"\"],\"resources\":[\"nodes\"],\"verbs\":" VERBS "}]"

struct fixture {
    struct virtual_loop *time;
    struct loop *loop; /* the workload_token's */
    struct apiserver *server;
    struct faults faults;
    struct api *door;
    struct fake_api fake;
    struct client client;
    struct workload_token *issuer;
    struct arena memory;
    uint32_t tokens;
    uint32_t errors;
    uint32_t written;
    struct str token; /* the last */
    usec_t expires_at;
    usec_t renew_at;
    int status; /* of the last error */
    struct err err;
    bool frees; /* inside of whatever is called */
    bool pods;  /* of the next workload_token */
    bool requests;
    bool deposed; /* somebody else leads */
};

static void fixture_quit(struct fixture *s)
{
    if (s->frees) {
        workload_token_free(s->issuer);
        s->issuer = NULL;
    }
}

static void on_token(void *ctx, const struct workload_token_value *token)
{
    struct fixture *s = ctx;
    usec_t now = loop_now(s->loop);
    CHECK(token->renew_at > now);
    CHECK(token->renew_at < token->expires_at);
    s->tokens++;
    s->token = arena_str(&s->memory, token->text);
    s->expires_at = token->expires_at;
    s->renew_at = token->renew_at;
    fixture_quit(s);
}

static void on_error(void *ctx, const struct err *err, int status)
{
    struct fixture *s = ctx;
    CHECK(err->code != 0);
    CHECK(err->msg[0] != '\0');
    s->errors++;
    s->err = *err;
    s->status = status;
    fixture_quit(s);
}

static void on_written(void *ctx, struct str what)
{
    struct fixture *s = ctx;
    CHECK(str_ends(what, STR(" 'drydock-bridge'")));
    s->written++;
}

static bool may_write(void *ctx)
{
    const struct fixture *s = ctx;
    return !s->deposed;
}

static void fixture_start(struct fixture *s)
{
    workload_token_free(s->issuer);
    s->tokens = 0;
    s->errors = 0;
    s->written = 0;
    s->issuer = workload_token_new(&(struct workload_token_config){
        .client = &s->client,
        .pods = s->pods,
        .requests = s->requests,
        .on_token = on_token,
        .on_error = on_error,
        .on_written = on_written,
        .may_write = may_write,
        .ctx = s,
    });
    workload_token_check(s->issuer);
}

static void fixture_open(struct fixture *s, uint64_t seed, usec_t skew)
{
    *s = (struct fixture){ .time = virtual_loop_new(seed, WALL) };
    s->server = apiserver_new(virtual_loop_root(s->time), seed);
    s->loop = virtual_loop_view_new(s->time, skew);
    faults_init(&s->faults, seed);
    s->door = sim_api_new(s->loop, s->server, &s->faults);
    client_init(&s->client, s->loop, s->door);
    fake_api_init(&s->fake);
}

static void fixture_begin(struct fixture *s)
{
    fixture_open(s, 1, 0);
}

/* The cluster is played by hand. */
static void fixture_fake(struct fixture *s)
{
    fixture_begin(s);
    client_init(&s->client, s->loop, &s->fake.api);
    fixture_start(s);
}

static void fixture_end(struct fixture *s)
{
    workload_token_free(s->issuer);
    CHECK_EQ(s->fake.call_count, 0);
    fake_api_done(&s->fake);
    sim_api_free(s->door);
    faults_done(&s->faults);
    apiserver_free(s->server);
    virtual_loop_view_free(s->loop);
    virtual_loop_free(s->time);
    arena_done(&s->memory);
}

static void fixture_pass(struct fixture *s, usec_t time)
{
    usec_t until = virtual_loop_now(s->time) + time;
    while (virtual_loop_step(s->time, until)) {
        if (s->issuer != NULL) {
            workload_token_check(s->issuer);
        }
    }
}

/* Until a token is there; how long it took. */
static usec_t fixture_run(struct fixture *s)
{
    usec_t begin = virtual_loop_now(s->time);
    while (s->tokens == 0 && virtual_loop_step(s->time, begin + MINUTES(60))) {
        if (s->issuer != NULL) {
            workload_token_check(s->issuer);
        }
    }
    CHECK_EQ(s->tokens, 1);
    return virtual_loop_now(s->time) - begin;
}

static int ask(struct fixture *s, struct str token, const char *method, const char *path,
               const char *body)
{
    struct apiserver_reply reply;
    apiserver_handle(
        s->server,
        &(struct apiserver_request){
            .method = str_from(method),
            .path = str_from(path),
            .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
            .authorization =
                token.n > 0 ? arena_concat(&s->memory, STR("Bearer "), token) : STR_NONE,
            .body = str_from(body),
        },
        &s->memory, &reply);
    apiserver_watch_close(reply.watch);
    return reply.status;
}

static int admin(struct fixture *s, const char *method, const char *path, const char *body)
{
    return ask(s, STR_NONE, method, path, body);
}

static struct str member(struct fixture *s, const char *plural, const char *path)
{
    const struct jval *o = apiserver_find(s->server, STR("rbac.authorization.k8s.io"),
                                          str_from(plural), STR(""), STR(NAME));
    const struct jval *v = jval_at(o, path);
    return v == NULL ? STR_NONE : tree_json(&s->memory, tree_from(&s->memory, v));
}

/* All is as it should be. */
static void check_objects(struct fixture *s)
{
    CHECK(apiserver_find(s->server, STR(""), STR("serviceaccounts"), STR("kube-system"),
                         STR(NAME)) != NULL);
    CHECK_STR(member(s, "clusterroles", "rules"), RULES);
    CHECK(member(s, "clusterroles", "aggregationRule").p == NULL);
    CHECK_STR(member(s, "clusterrolebindings", "roleRef.name"), "\"drydock-bridge\"");
    CHECK_STR(member(s, "clusterrolebindings", "subjects"),
              "[{\"kind\":\"ServiceAccount\",\"name\":\"drydock-bridge\","
              "\"namespace\":\"kube-system\"}]");
}

/* ── stories ───────────────────────────────────────────────────────────────────────────────── */

TEST(workload_token_makes_an_account_that_may_read_and_patch_nodes_and_no_more)
{
    struct fixture s;
    fixture_begin(&s);
    fixture_start(&s);
    usec_t took = fixture_run(&s);
    CHECK(took >= WORKLOAD_TOKEN_SETTLE);
    CHECK_EQ(s.errors, 0);
    CHECK_EQ(s.written, 3);
    CHECK_EQ(s.tokens, 1);
    check_objects(&s);

    CHECK_EQ(admin(&s, "POST", "/api/v1/nodes", "{\"metadata\":{\"name\":\"n1\"}}"), 201);
    static const struct {
        const char *method;
        const char *path;
        int status;
    } cases[] = {
        { "GET", "/api/v1/nodes", 200 },
        { "GET", "/api/v1/nodes/n1", 200 },
        { "GET", "/api/v1/nodes?watch=1", 200 },
        { "PATCH", "/api/v1/nodes/n1", 200 },
        { "PATCH", "/api/v1/nodes/n1/status", 403 },
        { "DELETE", "/api/v1/nodes/n1", 403 },
        { "POST", "/api/v1/nodes", 403 },
        { "GET", "/api/v1/pods", 403 },
        { "GET", "/api/v1/namespaces/kube-system/secrets", 403 },
        { "POST", ACCOUNTS "/" NAME "/token", 403 },
        { "PATCH", ROLES "/" NAME, 403 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_EQ(ask(&s, s.token, cases[i].method, cases[i].path, "{}"), cases[i].status);
    }
    check_case(-1);
    fixture_end(&s);
}

TEST(workload_token_lets_pods_be_listed_only_as_long_as_that_is_wanted)
{
    struct fixture s;
    fixture_begin(&s);
    s.pods = true;
    fixture_start(&s);
    (void)fixture_run(&s);
    CHECK_STR(
        member(&s, "clusterroles", "rules"),
        "[{\"apiGroups\":[\"\"],\"resources\":[\"nodes\"],\"verbs\":" VERBS "},"
        "{\"apiGroups\":[\"\"],\"resources\":[\"pods\",\"namespaces\"],\"verbs\":[\"list\"]}]");
    CHECK_EQ(ask(&s, s.token, "GET", "/api/v1/pods", ""), 200);
    CHECK_EQ(ask(&s, s.token, "GET", "/api/v1/namespaces", ""), 200);
    CHECK_EQ(ask(&s, s.token, "GET", "/api/v1/namespaces/default/pods/p", ""), 403);
    s.pods = false;
    fixture_start(&s);
    (void)fixture_run(&s);
    CHECK_EQ(s.written, 1);
    check_objects(&s);
    CHECK_EQ(ask(&s, s.token, "GET", "/api/v1/pods", ""), 403);
    fixture_end(&s);
}

TEST(workload_token_lets_requests_be_made_only_as_long_as_that_is_wanted)
{
    struct fixture s;
    fixture_begin(&s);
    s.requests = true;
    fixture_start(&s);
    (void)fixture_run(&s);
    CHECK_STR(member(&s, "clusterroles", "rules"),
              "[{\"apiGroups\":[\"\"],\"resources\":[\"nodes\"],\"verbs\":" VERBS "},"
              "{\"apiGroups\":[\"repairman.k8s.io\"],\"resources\":[\"maintenancerequests\"],"
              "\"verbs\":[\"list\",\"watch\",\"create\",\"patch\"]}]");
    s.pods = true;
    fixture_start(&s);
    (void)fixture_run(&s);
    CHECK_EQ(ask(&s, s.token, "GET", "/api/v1/pods", ""), 200);
    s.pods = false;
    s.requests = false;
    fixture_start(&s);
    (void)fixture_run(&s);
    CHECK_EQ(s.written, 1);
    check_objects(&s);
    fixture_end(&s);
}

TEST(workload_token_writes_nothing_when_all_is_there)
{
    struct fixture s;
    fixture_begin(&s);
    fixture_start(&s);
    (void)fixture_run(&s);
    struct str first = s.token;
    uint64_t version = apiserver_resource_version(s.server);
    fixture_start(&s);
    CHECK(fixture_run(&s) < WORKLOAD_TOKEN_SETTLE); /* nothing is new, so nothing has to settle */
    CHECK_EQ(s.written + s.errors, 0);
    CHECK_EQ(apiserver_resource_version(s.server), version);
    CHECK(!str_eq(first, s.token));
    CHECK_EQ(ask(&s, first, "GET", "/api/v1/nodes", ""), 200); /* until its time is over */
    fixture_end(&s);
}

TEST(workload_token_tells_when_a_token_ends_and_when_to_renew_it)
{
    struct fixture s;
    fixture_begin(&s);
    fixture_start(&s);
    (void)fixture_run(&s);
    usec_t now = loop_now(s.loop);
    usec_t life = s.expires_at - now;
    CHECK(life > SECONDS(3590) && life <= SECONDS(3600));
    CHECK(s.renew_at - now > SECONDS(2870) && s.renew_at - now <= SECONDS(2880));
    fixture_pass(&s, HOURS(2));
    CHECK_EQ(s.tokens, 1); /* nothing happens by itself */
    CHECK_EQ(ask(&s, s.token, "GET", "/api/v1/nodes", ""), 401);

    fixture_start(&s);
    (void)fixture_run(&s);
    fixture_pass(&s, MINUTES(1));
    CHECK_EQ(s.tokens, 1);
    CHECK_EQ(s.errors, 0);
    CHECK_EQ(ask(&s, s.token, "GET", "/api/v1/nodes", ""), 200);
    fixture_end(&s);
}

/* A local clock that is hours off does not make a good token old. */
TEST(workload_token_measures_by_the_servers_clock)
{
    static const usec_t skews[] = { -HOURS(5), HOURS(5), -DAYS(400) };
    for (size_t i = 0; i < ARRAY_LEN(skews); i++) {
        struct fixture s;
        check_case((int64_t)i);
        fixture_open(&s, 3, skews[i]);
        fixture_start(&s);
        (void)fixture_run(&s);
        usec_t life = s.expires_at - loop_now(s.loop);
        CHECK(life > SECONDS(3590) && life <= SECONDS(3600));
        fixture_end(&s);
    }
    check_case(-1);
}

/* ── what others have done ─────────────────────────────────────────────────────────────────── */

TEST(workload_token_sets_a_role_to_exactly_its_own_rules)
{
    static const char *const changes[] = {
        "{\"rules\":[{\"apiGroups\":[\"*\"],\"resources\":[\"*\"],\"verbs\":[\"*\"]}]}",
        "{\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"nodes\",\"secrets\"],\"verbs\":" VERBS
        "}]}",
        "{\"rules\":[]}",
        "{\"rules\":null}",
        "{\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"nodes\"],\"resourceNames\":[\"a\"],"
        "\"verbs\":" VERBS "}]}",
        "{\"aggregationRule\":{\"clusterRoleSelectors\":[{\"matchLabels\":{\"a\":\"b\"}}]}}",
    };
    struct fixture s;
    fixture_begin(&s);
    fixture_start(&s);
    (void)fixture_run(&s);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        check_case((int64_t)i);
        CHECK_EQ(admin(&s, "PATCH", ROLES "/" NAME, changes[i]), 200);
        CHECK_EQ(admin(&s, "PATCH", ROLES "/" NAME, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"),
                 200);
        fixture_start(&s);
        (void)fixture_run(&s);
        CHECK_EQ(s.written, 1);
        check_objects(&s);
        CHECK_STR(member(&s, "clusterroles", "metadata.labels.a"), "\"b\""); /* is theirs */
    }
    check_case(-1);
    fixture_end(&s);
}

TEST(workload_token_binds_the_role_to_its_account_alone)
{
    struct fixture s;
    fixture_begin(&s);
    fixture_start(&s);
    (void)fixture_run(&s);
    CHECK_EQ(admin(&s, "PATCH", BINDINGS "/" NAME,
                   "{\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":\"drydock-bridge\","
                   "\"namespace\":\"kube-system\"},{\"kind\":\"User\",\"name\":\"eve\"}]}"),
             200);
    fixture_start(&s);
    (void)fixture_run(&s);
    CHECK_EQ(s.written, 1);
    check_objects(&s);
    fixture_end(&s);
}

/* A binding's role cannot be changed: it is made anew. */
TEST(workload_token_replaces_a_binding_to_another_role)
{
    struct fixture s;
    fixture_begin(&s);
    CHECK_EQ(admin(&s, "POST", BINDINGS,
                   "{\"metadata\":{\"name\":\"drydock-bridge\"},\"roleRef\":{\"apiGroup\":"
                   "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"cluster-"
                   "admin\"},\"subjects\":[]}"),
             201);
    fixture_start(&s);
    (void)fixture_run(&s);
    CHECK_EQ(s.errors, 0);
    check_objects(&s);
    CHECK_EQ(ask(&s, s.token, "GET", "/api/v1/nodes", ""), 200);
    fixture_end(&s);
}

TEST(workload_token_waits_for_an_object_that_is_being_deleted)
{
    struct fixture s;
    fixture_begin(&s);
    fixture_start(&s);
    (void)fixture_run(&s);
    CHECK_EQ(
        admin(&s, "PATCH", ROLES "/" NAME, "{\"metadata\":{\"finalizers\":[\"example.com/x\"]}}"),
        200);
    CHECK_EQ(admin(&s, "DELETE", ROLES "/" NAME, ""), 200);
    fixture_start(&s);
    fixture_pass(&s, MINUTES(3));
    CHECK_EQ(s.tokens, 0);
    CHECK(s.errors > 1 && s.errors < 12); /* more and more rarely */
    CHECK_STR(s.err.msg, "ClusterRole 'drydock-bridge': it is being deleted");
    CHECK_EQ(s.status, 0);
    CHECK_EQ(admin(&s, "PATCH", ROLES "/" NAME, "{\"metadata\":{\"finalizers\":null}}"), 200);
    (void)fixture_run(&s);
    check_objects(&s);
    fixture_end(&s);
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static struct fake_call *next_call(struct fixture *s, enum api_verb verb, const char *path)
{
    usec_t until = virtual_loop_now(s->time) + HOURS(1);
    while (s->fake.call_count == 0 && virtual_loop_step(s->time, until)) {
        if (s->issuer != NULL) {
            workload_token_check(s->issuer);
        }
    }
    struct fake_call *call = fake_call_first(&s->fake);
    CHECK(call != NULL);
    CHECK_EQ(call->verb, verb);
    CHECK_STR(call->path, path);
    CHECK_EQ(call->timeout, WORKLOAD_TOKEN_TIMEOUT);
    return call;
}

static void answer(struct fixture *s, enum api_verb verb, const char *path, int status,
                   const char *body)
{
    fake_call_reply(&s->fake, next_call(s, verb, path), status, str_from(body));
}

#define VERSION "\"metadata\":{\"name\":\"drydock-bridge\",\"uid\":\"u\",\"resourceVersion\":\"7\"}"
#define ACCOUNT "{" VERSION "}"
#define ROLE "{" VERSION ",\"rules\":" RULES "}"
#define SUBJECTS                                                                                   \
    "\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":\"drydock-bridge\",\"namespace\":\"kube-" \
    "system\"}]"
#define ROLE_REF(name)                                                                             \
    "\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\","            \
    "\"name\":\"" name "\"}"
#define BINDING "{" VERSION "," ROLE_REF(NAME) "," SUBJECTS "}"
#define TOKEN_PATH ACCOUNTS "/" NAME "/token?fieldManager=drydock-bridge"
#define TOKEN(text, until)                                                                         \
    "{\"status\":{\"token\":\"" text "\",\"expirationTimestamp\":\"" until "\"}}"

static void answer_objects(struct fixture *s)
{
    answer(s, API_GET, ACCOUNTS "/" NAME, 200, ACCOUNT);
    answer(s, API_GET, ROLES "/" NAME, 200, ROLE);
    answer(s, API_GET, BINDINGS "/" NAME, 200, BINDING);
}

TEST(workload_token_writes_nothing_for_somebody_who_does_not_act_any_more)
{
    struct fixture s;
    fixture_begin(&s);
    s.deposed = true;
    fixture_start(&s);
    fixture_pass(&s, MINUTES(10));
    CHECK_EQ(s.written, 0);
    CHECK_EQ(s.tokens, 0);
    CHECK(s.errors > 0);
    CHECK_EQ(s.err.code, ERR_CANCELLED);
    s.deposed = false; /* it leads again */
    fixture_pass(&s, MINUTES(10));
    CHECK_EQ(s.tokens, 1);
    check_objects(&s);
    fixture_end(&s);
}

TEST(workload_token_asks_for_an_hour)
{
    struct fixture s;
    fixture_fake(&s);
    answer_objects(&s);
    struct fake_call *call = next_call(&s, API_POST, TOKEN_PATH);
    CHECK_STR(call->body, "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\","
                          "\"spec\":{\"expirationSeconds\":3600}}");
    fake_call_reply(&s.fake, call, 201, STR(TOKEN("a.b-c_d~e+f/g=", "2026-01-02T03:14:05Z")));
    CHECK_EQ(s.tokens, 1);
    CHECK_STR(s.token, "a.b-c_d~e+f/g=");
    CHECK_EQ(s.expires_at, loop_now(s.loop) + MINUTES(10)); /* the server gives less */
    CHECK_EQ(s.renew_at, loop_now(s.loop) + MINUTES(8));
    fixture_end(&s);
}

TEST(workload_token_takes_no_token_that_it_could_not_use)
{
    static const struct {
        const char *body;
        const char *message;
    } cases[] = {
        { "", NULL },
        { "{", NULL },
        { "[]", "the answer holds no token" },
        { "{\"status\":{}}", "the answer holds no token" },
        { TOKEN("", "2026-01-02T03:14:05Z"), "the answer holds no token" },
        { TOKEN("a\\r\\nX: y", "2026-01-02T03:14:05Z"), "the answer holds no token" },
        { TOKEN("a b", "2026-01-02T03:14:05Z"), "the answer holds no token" },
        { TOKEN("\\u00e4", "2026-01-02T03:14:05Z"), "the answer holds no token" },
        { TOKEN("a", "2026-01-02T03:04:05Z"), "the token has ended before it came" },
        { TOKEN("a", "2020-01-02T03:14:05Z"), "the token has ended before it came" },
        { TOKEN("a", "soon"), "the token has ended before it came" },
        { TOKEN("a", ""), "the token has ended before it came" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture s;
        check_case((int64_t)i);
        fixture_fake(&s);
        answer_objects(&s);
        answer(&s, API_POST, TOKEN_PATH, 201, cases[i].body);
        CHECK_EQ(s.tokens, 0);
        CHECK_EQ(s.errors, 1);
        CHECK(str_starts(str_from(s.err.msg), STR("no token of ServiceAccount 'drydock-bridge'")));
        if (cases[i].message != NULL) {
            CHECK(str_ends(str_from(s.err.msg), str_from(cases[i].message)));
        }
        /* The next one may be good; one that claims to live for ever is renewed in time. */
        answer(&s, API_POST, TOKEN_PATH, 201, TOKEN("\\u0061b", "2036-01-02T03:14:05Z"));
        CHECK_STR(s.token, "ab");
        CHECK_EQ(s.expires_at, loop_now(s.loop) + SECONDS(WORKLOAD_TOKEN_SECONDS));
        fixture_end(&s);
    }
    check_case(-1);
}

#define FORBIDDEN                                                                                  \
    "{\"kind\":\"Status\",\"message\":\"clusterroles.rbac.authorization.k8s.io is forbidden: "     \
    "no\"}"

TEST(workload_token_says_what_the_server_refuses_and_does_not_insist)
{
    struct fixture s;
    fixture_fake(&s);
    answer(&s, API_GET, ACCOUNTS "/" NAME, 200, ACCOUNT);
    answer(&s, API_GET, ROLES "/" NAME, 404, "{}");
    usec_t before = loop_now(s.loop);
    answer(&s, API_POST, ROLES "?fieldManager=drydock-bridge", 403, FORBIDDEN);
    CHECK_EQ(s.errors, 1);
    CHECK_EQ(s.status, 403);
    CHECK_EQ(s.err.code, ERR_DENIED);
    CHECK_STR(s.err.msg, "ClusterRole 'drydock-bridge' cannot be created: the server answered 403: "
                         "clusterroles.rbac.authorization.k8s.io is forbidden: no");
    (void)next_call(&s, API_GET, ROLES "/" NAME);
    CHECK(loop_now(s.loop) - before >= WORKLOAD_TOKEN_REFUSED_MIN);
    fixture_end(&s);
}

TEST(workload_token_tells_of_a_credential_that_is_refused)
{
    struct fixture s;
    fixture_fake(&s);
    answer(&s, API_GET, ACCOUNTS "/" NAME, 401, "{\"message\":\"Unauthorized\"}");
    CHECK_EQ(s.status, 401);
    CHECK_STR(s.err.msg, "ServiceAccount 'drydock-bridge' cannot be read: the server answered 401: "
                         "Unauthorized");
    fixture_end(&s);
}

TEST(workload_token_looks_again_when_somebody_was_faster)
{
    struct fixture s;
    fixture_fake(&s);
    answer(&s, API_GET, ACCOUNTS "/" NAME, 404, "{}");
    answer(&s, API_POST, ACCOUNTS "?fieldManager=drydock-bridge", 409, "{}");
    CHECK_EQ(s.errors, 0);
    answer(&s, API_GET, ACCOUNTS "/" NAME, 200, ACCOUNT);
    answer(&s, API_GET, ROLES "/" NAME, 200, "{" VERSION ",\"rules\":[]}");
    struct fake_call *call =
        next_call(&s, API_PATCH, ROLES "/" NAME "?fieldManager=drydock-bridge");
    CHECK_STR(call->content_type, "application/merge-patch+json");
    CHECK_STR(call->body, "{\"metadata\":{\"resourceVersion\":\"7\"},\"rules\":" RULES "}");
    fake_call_reply(&s.fake, call, 409, STR("{}"));
    CHECK_EQ(s.errors, 0);
    answer(&s, API_GET, ROLES "/" NAME, 200, "{" VERSION ",\"rules\":[]}");
    answer(&s, API_PATCH, ROLES "/" NAME "?fieldManager=drydock-bridge", 409, "{}");
    CHECK_EQ(s.errors, 1); /* twice in a row is worth a word */
    answer(&s, API_GET, ROLES "/" NAME, 200, ROLE);
    answer(&s, API_GET, BINDINGS "/" NAME, 200, "{" VERSION "," ROLE_REF("view") "," SUBJECTS "}");
    call = next_call(&s, API_DELETE, BINDINGS "/" NAME);
    CHECK_STR(call->body, "{\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}}");
    fake_call_reply(&s.fake, call, 404, STR("{}"));
    CHECK_EQ(s.errors, 1);
    answer(&s, API_GET, BINDINGS "/" NAME, 404, "{}");
    answer(&s, API_POST, BINDINGS "?fieldManager=drydock-bridge", 201, BINDING);
    answer(&s, API_POST, TOKEN_PATH, 404, "{}"); /* the account went meanwhile */
    CHECK_EQ(s.errors, 2);
    (void)next_call(&s, API_GET, ACCOUNTS "/" NAME);
    fixture_end(&s);
}

/* A cluster that undoes what is written, or whose answers are no answers, is asked rarely. */
TEST(workload_token_does_not_quarrel_with_a_cluster)
{
    struct fixture s;
    fixture_fake(&s);
    answer(&s, API_GET, ACCOUNTS "/" NAME, 200, "{}");
    CHECK_STR(s.err.msg, "ServiceAccount 'drydock-bridge': the answer is no such object");
    answer(&s, API_GET, ACCOUNTS "/" NAME, 200, "[");
    CHECK_EQ(s.errors, 2);
    answer(&s, API_GET, ACCOUNTS "/" NAME, 200, ACCOUNT);
    usec_t begin = loop_now(s.loop);
    uint32_t before = s.fake.sent;
    while (loop_now(s.loop) - begin < MINUTES(30)) {
        answer(&s, API_GET, ROLES "/" NAME, 200, "{" VERSION ",\"rules\":[]}");
        answer(&s, API_PATCH, ROLES "/" NAME "?fieldManager=drydock-bridge", 200,
               "{" VERSION ",\"rules\":[]}");
        CHECK_STR(s.err.msg,
                  "ClusterRole 'drydock-bridge': the cluster changes what is written to it");
    }
    CHECK(s.fake.sent - before < 60);
    begin = loop_now(s.loop);
    before = s.fake.sent;
    answer(&s, API_GET, ROLES "/" NAME, 200, ROLE);
    while (loop_now(s.loop) - begin < MINUTES(30)) {
        answer(&s, API_GET, BINDINGS "/" NAME, 200, "{" VERSION "," ROLE_REF("view") "}");
        answer(&s, API_DELETE, BINDINGS "/" NAME, 200, "{}");
    }
    CHECK(s.fake.sent - before < 60);
    fixture_end(&s);
}

TEST(workload_token_waits_for_a_server_that_is_busy)
{
    struct fixture s;
    fixture_fake(&s);
    struct fake_call *call = next_call(&s, API_GET, ACCOUNTS "/" NAME);
    usec_t before = loop_now(s.loop);
    fake_call_reply_after(&s.fake, call, 429, SECONDS(20));
    CHECK_EQ(s.errors, 1);
    (void)next_call(&s, API_GET, ACCOUNTS "/" NAME);
    CHECK(loop_now(s.loop) - before >= SECONDS(20));
    fixture_end(&s);
}

TEST(workload_token_may_be_freed_from_inside_its_callbacks)
{
    struct fixture s;
    fixture_begin(&s);
    s.frees = true;
    fixture_start(&s);
    (void)fixture_run(&s);
    CHECK(s.issuer == NULL);
    CHECK_EQ(ask(&s, s.token, "GET", "/api/v1/nodes", ""), 200);
    fixture_pass(&s, HOURS(2));
    fixture_end(&s);

    fixture_fake(&s);
    s.frees = true;
    answer(&s, API_GET, ACCOUNTS "/" NAME, 500, "{}");
    CHECK(s.issuer == NULL);
    fixture_end(&s);
}

/* ── property ──────────────────────────────────────────────────────────────────────────────── */

/* Whatever the network does and whoever meddles: when it is calm there is a token that may what it
 * should, and the objects are as they should be. */
PROPERTY(workload_token_comes_through_any_weather)
{
    struct fixture s;
    fixture_open(&s, rng_next(rng), (usec_t)rng_below(rng, 100) * SECONDS(1));
    faults_randomize(&s.faults);
    fixture_start(&s);
    for (int step = 0; step < 10; step++) {
        fixture_pass(&s, SECONDS(rng_below(rng, 20)));
        switch (rng_below(rng, 8)) {
        case 0:
            (void)admin(&s, "PATCH", ROLES "/" NAME, "{\"rules\":[]}");
            break;
        case 1:
            (void)admin(&s, "DELETE", BINDINGS "/" NAME, "");
            break;
        case 2:
            (void)admin(&s, "DELETE", ACCOUNTS "/" NAME, "");
            break;
        case 3:
            (void)admin(&s, "DELETE", ROLES "/" NAME, "");
            break;
        case 4:
            fixture_start(&s); /* a crash */
            break;
        default:
            break;
        }
    }
    s.faults.calm = true;
    fixture_pass(&s, HOURS(1));
    CHECK_EQ(s.tokens, 1);
    fixture_start(&s);
    (void)fixture_run(&s);
    check_objects(&s);
    CHECK_EQ(ask(&s, s.token, "GET", "/api/v1/nodes", ""), 200);
    CHECK_EQ(ask(&s, s.token, "GET", "/api/v1/pods", ""), 403);
    fixture_end(&s);
}
