#include "sandbox/apiserver/token.h"

#include "base/timestamp.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

#define START SECONDS(1577836800) /* 2020-01-01T00:00:00Z */
#define JSON "application/json"
#define MERGE "application/merge-patch+json"
#define ACCOUNTS "/api/v1/namespaces/kube-system/serviceaccounts"
#define ROLES "/apis/rbac.authorization.k8s.io/v1/clusterroles"
#define BINDINGS "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
#define NAMESPACED "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
#define REF(kind, name)                                                                            \
    "\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"" kind                     \
    "\",\"name\":\"" name "\"}"
#define SUBJECT                                                                                    \
    "\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":\"robot\",\"namespace\":\"kube-system\"}" \
    "]"

struct server_fixture {
    struct virtual_loop *vloop;
    struct apiserver *server;
    struct arena arena;
    struct str token; /* who asks; empty = the administrator */
};

static void server_fixture_init(struct server_fixture *w)
{
    *w = (struct server_fixture){ 0 };
    w->vloop = virtual_loop_new(7, START);
    w->server = apiserver_new(virtual_loop_root(w->vloop), 7);
}

static void server_fixture_done(struct server_fixture *w)
{
    apiserver_check(w->server);
    apiserver_free(w->server);
    virtual_loop_free(w->vloop);
    arena_done(&w->arena);
}

static struct apiserver_reply request_send(struct server_fixture *w, const char *method,
                                           const char *path, const char *body)
{
    struct str bearer = arena_concat(&w->arena, STR("Bearer "), w->token);
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? STR(MERGE) : STR(JSON),
        .authorization = w->token.n > 0 ? bearer : STR_NONE,
        .user_agent = STR("test"),
        .body = str_from(body),
    };
    struct apiserver_reply reply;
    apiserver_handle(w->server, &request, &w->arena, &reply);
    return reply;
}

static struct str member(struct server_fixture *w, struct str json, const char *path)
{
    struct err err = { 0 };
    const struct jval *root = NULL;
    CHECK_EQ(json_parse(json, 0, &w->arena, &root, &err), 0);
    return jval_str(jval_at(root, path));
}

/* The service account "robot" and a token of it. */
static void create_service_account(struct server_fixture *w)
{
    CHECK_EQ(request_send(w, "POST", ACCOUNTS, "{\"metadata\":{\"name\":\"robot\"}}").status, 201);
    struct apiserver_reply reply = request_send(w, "POST", ACCOUNTS "/robot/token", "{}");
    CHECK_EQ(reply.status, 201);
    w->token = member(w, reply.body, "status.token");
    CHECK(w->token.n > 100);
}

static int as_admin(struct server_fixture *w, const char *method, const char *path,
                    const char *body)
{
    struct str token = w->token;
    w->token = STR_NONE;
    int status = request_send(w, method, path, body).status;
    w->token = token;
    return status;
}

TEST(token_requests_are_answered_as_by_a_real_server)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    CHECK_EQ(request_send(&w, "POST", ACCOUNTS, "{\"metadata\":{\"name\":\"robot\"}}").status, 201);
    struct apiserver_reply reply =
        request_send(&w, "POST", ACCOUNTS "/robot/token",
                     "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\","
                     "\"spec\":{\"expirationSeconds\":600}}");
    CHECK_EQ(reply.status, 201);
    CHECK_STR(member(&w, reply.body, "kind"), "TokenRequest");
    CHECK_STR(member(&w, reply.body, "metadata.name"), "robot");
    CHECK_STR(member(&w, reply.body, "status.expirationTimestamp"), "2020-01-01T00:10:00Z");
    reply = request_send(&w, "POST", ACCOUNTS "/robot/token", "{}");
    CHECK_STR(member(&w, reply.body, "status.expirationTimestamp"), "2020-01-01T01:00:00Z");
}

TEST(token_requests_that_cannot_be_met_are_refused)
{
    static const struct {
        const char *method;
        const char *path;
        const char *body;
        int status;
        const char *message;
    } cases[] = {
        { "POST", ACCOUNTS "/nobody/token", "{}", 404, "serviceaccounts \"nobody\" not found" },
        { "GET", ACCOUNTS "/robot/token", "", 405,
          "the server does not allow this method on the requested resource" },
        { "POST", ACCOUNTS "/robot/token", "{\"spec\":{\"expirationSeconds\":599}}", 422,
          "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid "
          "value: 599: may not specify a duration less than 10 minutes" },
        { "POST", ACCOUNTS "/robot/token", "{\"spec\":{\"expirationSeconds\":4294967297}}", 422,
          "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid "
          "value: 4294967297: may not specify a duration larger than 2^32 seconds" },
        { "POST", ACCOUNTS "/robot/token", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}", 400,
          "Pod in version \"v1\" cannot be handled as a TokenRequest" },
        { "POST", ACCOUNTS "/robot/token", "", 400, NULL },
        { "POST", ACCOUNTS "/robot/token", "[]", 400, NULL },
        { "POST", ACCOUNTS "/robot/token", "{\"spec\":{\"expirationSeconds\":\"x\"}}", 400, NULL },
        { "POST", "/api/v1/nodes/n/token", "{}", 404, NULL },
    };
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    CHECK_EQ(request_send(&w, "POST", ACCOUNTS, "{\"metadata\":{\"name\":\"robot\"}}").status, 201);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct apiserver_reply reply =
            request_send(&w, cases[i].method, cases[i].path, cases[i].body);
        CHECK_EQ(reply.status, cases[i].status);
        if (cases[i].message != NULL) {
            CHECK_STR(member(&w, reply.body, "message"), cases[i].message);
        }
    }
    check_case(-1);
}

TEST(token_makes_its_holder_that_service_account_who_may_what_roles_allow)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    create_service_account(&w);
    CHECK_EQ(request_send(&w, "GET", "/apis", "").status, 200); /* anybody known may discover */
    struct apiserver_reply reply = request_send(&w, "GET", "/api/v1/nodes", "");
    CHECK_EQ(reply.status, 403);
    CHECK_STR(member(&w, reply.body, "message"),
              "nodes is forbidden: User \"system:serviceaccount:kube-system:robot\" cannot list "
              "resource \"nodes\" in API group \"\" at the cluster scope");

    CHECK_EQ(as_admin(&w, "POST", "/api/v1/nodes", "{\"metadata\":{\"name\":\"n1\"}}"), 201);
    CHECK_EQ(as_admin(&w, "POST", ROLES,
                      "{\"metadata\":{\"name\":\"reader\"},\"rules\":[{\"apiGroups\":[\"\"],"
                      "\"resources\":[\"nodes\"],\"verbs\":[\"get\",\"list\",\"watch\"]},"
                      "{\"apiGroups\":[\"\"],\"resources\":[\"nodes\"],\"verbs\":[\"patch\"],"
                      "\"resourceNames\":[\"n1\"]}]}"),
             201);
    CHECK_EQ(request_send(&w, "GET", "/api/v1/nodes", "").status, 403); /* it is not bound yet */
    CHECK_EQ(as_admin(&w, "POST", BINDINGS,
                      "{\"metadata\":{\"name\":\"b\"}," REF("ClusterRole", "reader") "," SUBJECT
                                                                                     "}"),
             201);
    CHECK_EQ(request_send(&w, "GET", "/api/v1/nodes", "").status, 200);
    CHECK_EQ(request_send(&w, "GET", "/api/v1/nodes/n1", "").status, 200);
    CHECK_EQ(
        request_send(&w, "PATCH", "/api/v1/nodes/n1", "{\"spec\":{\"unschedulable\":true}}").status,
        200);
    CHECK_EQ(request_send(&w, "PATCH", "/api/v1/nodes/n2", "{}").status, 403);
    CHECK_EQ(request_send(&w, "PATCH", "/api/v1/nodes/n1/status", "{}").status, 403);
    CHECK_EQ(request_send(&w, "DELETE", "/api/v1/nodes/n1", "").status, 403);
    CHECK_EQ(request_send(&w, "GET", "/api/v1/pods", "").status, 403);
    CHECK_EQ(request_send(&w, "POST", ACCOUNTS "/robot/token", "{}").status, 403);

    CHECK_EQ(as_admin(&w, "DELETE", BINDINGS "/b", ""), 200);
    CHECK_EQ(request_send(&w, "GET", "/api/v1/nodes", "").status, 403);
}

TEST(token_holders_may_in_a_namespace_what_is_bound_there)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    create_service_account(&w);
    CHECK_EQ(as_admin(&w, "POST", NAMESPACED "roles",
                      "{\"metadata\":{\"name\":\"r\"},\"rules\":[{\"apiGroups\":[\"*\"],"
                      "\"resources\":[\"*\"],\"verbs\":[\"*\"]}]}"),
             201);
    CHECK_EQ(as_admin(&w, "POST", NAMESPACED "rolebindings",
                      "{\"metadata\":{\"name\":\"b\"}," REF("Role", "r") "," SUBJECT "}"),
             201);
    CHECK_EQ(request_send(&w, "GET", "/api/v1/namespaces/default/pods", "").status, 200);
    CHECK_EQ(request_send(&w, "GET", "/api/v1/namespaces/kube-system/pods", "").status, 403);
    CHECK_EQ(request_send(&w, "GET", "/api/v1/pods", "").status, 403);
}

TEST(token_is_refused_when_its_time_is_over)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    create_service_account(&w);
    (void)virtual_loop_run(w.vloop, virtual_loop_now(w.vloop) + SECONDS(3599));
    CHECK_EQ(request_send(&w, "GET", "/apis", "").status, 200);
    (void)virtual_loop_run(w.vloop, virtual_loop_now(w.vloop) + SECONDS(1));
    CHECK_EQ(request_send(&w, "GET", "/apis", "").status, 401);
}

TEST(token_is_refused_when_its_account_is_gone_or_another)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    create_service_account(&w);
    apiserver_restart(w.server);
    CHECK_EQ(request_send(&w, "GET", "/apis", "").status, 200);
    CHECK_EQ(as_admin(&w, "DELETE", ACCOUNTS "/robot", ""), 200);
    CHECK_EQ(request_send(&w, "GET", "/apis", "").status, 401);
    CHECK_EQ(as_admin(&w, "POST", ACCOUNTS, "{\"metadata\":{\"name\":\"robot\"}}"), 201);
    CHECK_EQ(request_send(&w, "GET", "/apis", "").status, 401);
}

TEST(token_for_somebody_else_is_refused)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    create_service_account(&w);
    struct str own = w.token;
    w.token = STR_NONE;
    struct apiserver_reply reply =
        request_send(&w, "POST", ACCOUNTS "/robot/token", "{\"spec\":{\"audiences\":[\"vault\"]}}");
    CHECK_EQ(reply.status, 201);
    w.token = member(&w, reply.body, "status.token");
    CHECK_EQ(request_send(&w, "GET", "/apis", "").status, 401);
    w.token = own;
    CHECK_EQ(request_send(&w, "GET", "/apis", "").status, 200);
}

/* Any change of a token makes it nobody's. */
TEST(token_that_was_changed_is_refused)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    create_service_account(&w);
    struct str own = w.token;
    for (size_t i = 0; i < own.n; i++) {
        check_case((int64_t)i);
        char *changed = arena_alloc(&w.arena, own.n + 1);
        memcpy(changed, own.p, own.n);
        changed[i] = changed[i] == 'x' ? 'y' : 'x';
        w.token = (struct str){ .p = changed, .n = own.n };
        CHECK_EQ(request_send(&w, "GET", "/apis", "").status, 401);
        w.token = str_sub(own, 0, i);
        CHECK_EQ(w.token.n == 0 || request_send(&w, "GET", "/apis", "").status == 401, true);
    }
    check_case(-1);
    static const char *const strange[] = { ".", "..", "a.b.c", "a.b", "Bearer x" };
    for (size_t i = 0; i < ARRAY_LEN(strange); i++) {
        w.token = str_from(strange[i]);
        CHECK_EQ(request_send(&w, "GET", "/apis", "").status, 401);
    }
}

TEST(token_bindings_keep_their_role)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    CHECK_EQ(request_send(&w, "POST", BINDINGS,
                          "{\"metadata\":{\"name\":\"b\"}," REF("ClusterRole", "view") "," SUBJECT
                                                                                       "}")
                 .status,
             201);
    struct apiserver_reply reply =
        request_send(&w, "PATCH", BINDINGS "/b", "{" REF("ClusterRole", "cluster-admin") "}");
    CHECK_EQ(reply.status, 422);
    CHECK_STR(member(&w, reply.body, "message"),
              "ClusterRoleBinding.rbac.authorization.k8s.io \"b\" is invalid: roleRef: Invalid "
              "value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"ClusterRole\","
              "\"Name\":\"cluster-admin\"}: cannot change roleRef");
    CHECK_EQ(request_send(&w, "PATCH", BINDINGS "/b", "{\"subjects\":[]}").status, 200);
    CHECK_EQ(
        request_send(&w, "POST", BINDINGS,
                     "{\"metadata\":{\"name\":\"c\"}," REF(
                         "ClusterRole",
                         "view") ",\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":\"x\"}]}")
            .status,
        422);
    CHECK_EQ(
        request_send(&w, "POST", ROLES,
                     "{\"metadata\":{\"name\":\"system:odd\"},\"rules\":[{\"apiGroups\":[\"\"],"
                     "\"resources\":[\"nodes\"],\"verbs\":[]}]}")
            .status,
        422);
}

#define TOKEN_REVIEWS "/apis/authentication.k8s.io/v1/tokenreviews"
#define ACCESS_REVIEWS "/apis/authorization.k8s.io/v1/subjectaccessreviews"

static struct str review_token(struct server_fixture *w, struct str token, const char *audiences)
{
    struct str body =
        arena_printf(&w->arena, "{\"spec\":{\"token\":\"" STR_FMT "\",\"audiences\":[%s]}}",
                     STR_ARG(token), audiences);
    struct str own = w->token;
    w->token = STR_NONE;
    struct apiserver_reply reply = request_send(w, "POST", TOKEN_REVIEWS, body.p);
    w->token = own;
    CHECK_EQ(reply.status, 201);
    return reply.body;
}

TEST(token_reviews_say_whose_a_token_is)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    create_service_account(&w);
    struct str reply = review_token(&w, w.token, "");
    CHECK(str_contains(reply, STR("\"authenticated\":true")));
    CHECK_STR(member(&w, reply, "status.user.username"), "system:serviceaccount:kube-system:robot");
    CHECK(str_contains(reply, STR("\"system:serviceaccounts:kube-system\"")));
    CHECK(str_contains(reply,
                       STR("\"audiences\":[\"https://kubernetes.default.svc.cluster.local\"]")));
    CHECK(str_contains(review_token(&w, w.token, "\"drydock\""),
                       STR("\"error\":\"invalid bearer token\"")));
    reply = review_token(&w, STR("made-up"), "");
    CHECK(!str_contains(reply, STR("\"authenticated\"")));
    CHECK_STR(member(&w, reply, "status.error"), "invalid bearer token");
    /* Whoever is no administrator needs a role to ask. */
    CHECK_EQ(request_send(&w, "POST", TOKEN_REVIEWS, "{\"spec\":{\"token\":\"x\"}}").status, 403);
    w.token = STR_NONE;
    CHECK_EQ(request_send(&w, "POST", TOKEN_REVIEWS, "{\"spec\":{}}").status, 400);
}

TEST(access_reviews_answer_for_others)
{
    static const struct {
        const char *spec;
        int status;
        const char *says; /* a part of the answer */
    } cases[] = {
        { "\"user\":\"ann\",\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":\"get\"}",
          201, "\"allowed\":false" },
        { "\"user\":\"ann\",\"groups\":[\"readers\"],\"nonResourceAttributes\":{\"path\":"
          "\"/metrics\",\"verb\":\"get\"}",
          201, "\"allowed\":true" },
        { "\"groups\":[\"readers\"],\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":"
          "\"get\"}",
          201, "to Group \\\"readers\\\"" },
        { "\"user\":\"ann\",\"groups\":[\"readers\"],\"nonResourceAttributes\":{\"path\":"
          "\"/metrics\",\"verb\":\"post\"}",
          201, "\"allowed\":false" },
        { "\"user\":\"ann\",\"groups\":[\"system:masters\"],\"resourceAttributes\":{\"verb\":"
          "\"delete\",\"resource\":\"nodes\"}",
          201, "\"allowed\":true" },
        { "\"user\":\"ann\",\"nonResourceAttributes\":{\"path\":\"/api/v1/x\",\"verb\":\"get\"}",
          201, "system:discovery" },
        { "\"user\":\"ann\",\"nonResourceAttributes\":{\"path\":\"/apiary\",\"verb\":\"get\"}", 201,
          "\"allowed\":false" },
        { "\"user\":\"system:anonymous\",\"nonResourceAttributes\":{\"path\":\"/api\",\"verb\":"
          "\"get\"}",
          201, "\"allowed\":false" },
        { "\"user\":\"system:anonymous\",\"nonResourceAttributes\":{\"path\":\"/version\",\"verb\":"
          "\"get\"}",
          201, "\"allowed\":true" },
        { "\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":\"get\"}", 422,
          "at least one of user or group must be specified" },
        { "\"user\":\"ann\"", 422, "exactly one of" },
    };
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    CHECK_EQ(request_send(&w, "POST", ROLES,
                          "{\"metadata\":{\"name\":\"r\"},\"rules\":[{\"verbs\":[\"get\"],"
                          "\"nonResourceURLs\":[\"/metrics\"]}]}")
                 .status,
             201);
    CHECK_EQ(request_send(
                 &w, "POST", BINDINGS,
                 "{\"metadata\":{\"name\":\"r\"}," REF(
                     "ClusterRole", "r") ","
                                         "\"subjects\":[{\"kind\":\"Group\",\"apiGroup\":"
                                         "\"rbac.authorization.k8s.io\",\"name\":\"readers\"}]}")
                 .status,
             201);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct str body = arena_printf(&w.arena, "{\"spec\":{%s}}", cases[i].spec);
        struct apiserver_reply reply = request_send(&w, "POST", ACCESS_REVIEWS, body.p);
        CHECK_EQ(reply.status, cases[i].status);
        CHECK(str_contains(reply.body, str_from(cases[i].says)));
    }
}
