#include "sandbox/apiserver/apiserver.h"

#include "format/json_tree.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

struct server_fixture {
    struct virtual_loop *vloop;
    struct apiserver *server;
    struct arena arena;
};

static void server_fixture_init(struct server_fixture *w, uint64_t seed)
{
    *w = (struct server_fixture){ 0 };
    w->vloop = virtual_loop_new(seed, SECONDS(1577836800));
    w->server = apiserver_new(virtual_loop_root(w->vloop), seed);
}

static void server_fixture_done(struct server_fixture *w)
{
    apiserver_free(w->server);
    virtual_loop_free(w->vloop);
    arena_done(&w->arena);
}

static struct apiserver_reply request_send(struct server_fixture *w, const char *method,
                                           const char *path, const char *type, const char *body)
{
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_from(type),
        .user_agent = STR("test"),
        .body = str_from(body),
    };
    struct apiserver_reply reply;
    apiserver_handle(w->server, &request, &w->arena, &reply);
    return reply;
}

#define NODE(name) "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"a\":\"b\"}}}"
#define JSON "application/json"
#define MERGE "application/merge-patch+json"

TEST(apiserver_creates_changes_and_deletes_a_node)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w, 1);
    CHECK_EQ(request_send(&w, "POST", "/api/v1/nodes", JSON, NODE("n1")).status, 201);
    CHECK_EQ(request_send(&w, "POST", "/api/v1/nodes", JSON, NODE("n1")).status, 409);
    CHECK_EQ(request_send(&w, "GET", "/api/v1/nodes/n1", "", "").status, 200);
    CHECK_EQ(
        request_send(&w, "PATCH", "/api/v1/nodes/n1", MERGE, "{\"spec\":{\"unschedulable\":true}}")
            .status,
        200);
    const struct jval *node = apiserver_find(w.server, STR(""), STR("nodes"), STR(""), STR("n1"));
    CHECK(jval_bool(jval_at(node, "spec.unschedulable"), false));
    CHECK_EQ(request_send(&w, "DELETE", "/api/v1/nodes/n1", "", "").status, 200);
    CHECK_EQ(request_send(&w, "GET", "/api/v1/nodes/n1", "", "").status, 404);
    apiserver_check(w.server);
}

/* Messages of a real server; those of a 400 are compared loosely elsewhere. */
TEST(apiserver_says_once_what_is_wrong_with_a_selector)
{
    static const struct {
        const char *query;
        const char *message;
    } cases[] = {
        { "labelSelector=a%3D%3D%3Db",
          "unable to parse requirement: found '=', expected: identifier" },
        { "labelSelector=a%20in%20b", "unable to parse requirement: found 'b' expected: '('" },
        { "labelSelector=a%3Db%20c", "found 'c', expected: ',' or 'end of string'" },
        { "watch=1&labelSelector=a%20in%20b",
          "unable to parse requirement: found 'b' expected: '('" },
        { "resourceVersion=some", "invalid resource version: resourceVersion: Invalid value: "
                                  "\"some\": strconv.ParseUint: parsing \"some\": invalid "
                                  "syntax" },
    };
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct str path = arena_printf(&w.arena, "/api/v1/nodes?%s", cases[i].query);
        struct apiserver_reply reply = request_send(&w, "GET", path.p, "", "");
        struct tree *status;
        struct err err = { 0 };
        CHECK_EQ(reply.status, 400);
        CHECK_EQ(tree_parse(reply.body, &w.arena, &status, &err), 0);
        CHECK_STR(tree_text_at(status, "message"), cases[i].message);
    }
    check_case(-1);
}

static uint32_t drain(struct server_fixture *w, struct apiserver_watch *watch, bool *ret_ended)
{
    uint32_t n = 0;
    struct str line;
    while (apiserver_watch_next(watch, &w->arena, &line, ret_ended)) {
        n++;
    }
    return n;
}

static void count(void *ctx)
{
    (*(int *)ctx)++;
}

TEST(apiserver_watch_tells_from_the_loop_and_ends_in_time)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w, 2);
    struct apiserver_reply reply = request_send(
        &w, "GET", "/api/v1/nodes?watch=1&timeoutSeconds=5&labelSelector=a%3Db", "", "");
    CHECK(reply.watch != NULL);
    int told = 0;
    bool ended;
    apiserver_watch_notify(reply.watch, count, &told);
    (void)request_send(&w, "POST", "/api/v1/nodes", JSON, NODE("n1"));
    CHECK_EQ(told, 0);
    (void)virtual_loop_run(w.vloop, SECONDS(1));
    CHECK_EQ(told, 1);
    CHECK_EQ(drain(&w, reply.watch, &ended), 1);
    (void)request_send(&w, "POST", "/api/v1/nodes", JSON, "{\"metadata\":{\"name\":\"other\"}}");
    (void)virtual_loop_run(w.vloop, SECONDS(2));
    CHECK_EQ(told, 1); /* the selector leaves it out */
    (void)virtual_loop_run(w.vloop, SECONDS(6));
    CHECK_EQ(told, 2);
    CHECK_EQ(drain(&w, reply.watch, &ended), 0);
    CHECK(ended);
    apiserver_watch_close(reply.watch);
}

struct growth {
    uint64_t version;
    uint32_t commits;
};

static void on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct growth *growth = ctx;
    CHECK(commit->version > growth->version);
    CHECK(commit->old != NULL || commit->now != NULL);
    growth->version = commit->version;
    growth->commits++;
}

static const char *const paths[] = {
    "/api/v1/nodes",
    "/api/v1/nodes/a",
    "/api/v1/nodes/b/status",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/pods/a",
    "/api/v1/namespaces/default/pods/a/eviction",
    "/api/v1/namespaces/default/pods/a/binding",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets/a?dryRun=All",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases/a?fieldManager=m&force=true",
    "/api/v1/namespaces/default",
    "/api/v1/nodes?watch=1&timeoutSeconds=3",
    "/apis/events.k8s.io/v1/namespaces/default/events",
    "/apis/apps/v1/namespaces/default/deployments/a/scale",
    "/api/v1/nodes?limit=1&resourceVersion=101",
    "/api/v1/namespaces/default/serviceaccounts",
    "/api/v1/namespaces/default/serviceaccounts/a/token",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/a",
};

static const char *const bodies[] = {
    "",
    "{}",
    "[]",
    "null",
    "{\"metadata\":{\"name\":\"a\"}}",
    "{\"metadata\":{\"name\":\"b\",\"finalizers\":[\"x.io/f\"]}}",
    "{\"metadata\":{\"finalizers\":null}}",
    "{\"metadata\":7}",
    "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
    "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"selector\":{}},\"target\":{\"name\":\"n\"}}",
    "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\"}]}}",
    "[{\"op\":\"remove\",\"path\":\"/spec\"}]",
    "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]",
    "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}}",
    "{\"gracePeriodSeconds\":0,\"propagationPolicy\":\"Foreground\"}",
};

/* Any request has an answer, and every write that counts a higher version. */
PROPERTY(apiserver_survives_any_request_and_versions_only_grow)
{
    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD" };
    static const char *const types[] = { JSON,
                                         MERGE,
                                         "application/json-patch+json",
                                         "application/strategic-merge-patch+json",
                                         "application/apply-patch+yaml",
                                         "text/plain" };
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w, rng_next(rng));
    struct growth growth = { .version = apiserver_resource_version(w.server) };
    apiserver_on_commit(w.server, on_commit, &growth);
    for (int step = 0; step < 60; step++) {
        struct apiserver_reply reply = request_send(&w, methods[rng_below(rng, ARRAY_LEN(methods))],
                                                    paths[rng_below(rng, ARRAY_LEN(paths))],
                                                    types[rng_below(rng, ARRAY_LEN(types))],
                                                    bodies[rng_below(rng, ARRAY_LEN(bodies))]);
        CHECK(reply.status >= 200 && reply.status < 600);
        CHECK(reply.watch != NULL || reply.content_type.n > 0);
        apiserver_watch_close(reply.watch);
        if (rng_chance(rng, 100)) {
            (void)virtual_loop_run(w.vloop, virtual_loop_now(w.vloop) + SECONDS(1));
        }
    }
    apiserver_check(w.server);
}
