#include "sandbox/apiserver.h"

#include "sandbox/vloop.h"
#include "tests/check.h"

struct world {
    struct vloop *vloop;
    struct apiserver *server;
    struct arena arena;
};

static void world_init(struct world *w, uint64_t seed)
{
    *w = (struct world){ 0 };
    w->vloop = vloop_new(seed, SECONDS(1577836800));
    w->server = apiserver_new(vloop_root(w->vloop), seed);
}

static void world_done(struct world *w)
{
    apiserver_free(w->server);
    vloop_free(w->vloop);
    arena_done(&w->arena);
}

static struct apiserver_reply ask(struct world *w, const char *method, const char *path,
                                  const char *type, const char *body)
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
    CLEANUP(world_done)
    struct world w;
    world_init(&w, 1);
    CHECK_EQ(ask(&w, "POST", "/api/v1/nodes", JSON, NODE("n1")).status, 201);
    CHECK_EQ(ask(&w, "POST", "/api/v1/nodes", JSON, NODE("n1")).status, 409);
    CHECK_EQ(ask(&w, "GET", "/api/v1/nodes/n1", "", "").status, 200);
    CHECK_EQ(
        ask(&w, "PATCH", "/api/v1/nodes/n1", MERGE, "{\"spec\":{\"unschedulable\":true}}").status,
        200);
    const struct jval *node = apiserver_find(w.server, STR(""), STR("nodes"), STR(""), STR("n1"));
    CHECK(jval_bool(jval_at(node, "spec.unschedulable"), false));
    CHECK_EQ(ask(&w, "DELETE", "/api/v1/nodes/n1", "", "").status, 200);
    CHECK_EQ(ask(&w, "GET", "/api/v1/nodes/n1", "", "").status, 404);
    apiserver_check(w.server);
}

static uint32_t drain(struct world *w, struct apiserver_watch *watch, bool *ret_ended)
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
    CLEANUP(world_done)
    struct world w;
    world_init(&w, 2);
    struct apiserver_reply reply =
        ask(&w, "GET", "/api/v1/nodes?watch=1&timeoutSeconds=5&labelSelector=a%3Db", "", "");
    CHECK(reply.watch != NULL);
    int told = 0;
    bool ended;
    apiserver_watch_notify(reply.watch, count, &told);
    (void)ask(&w, "POST", "/api/v1/nodes", JSON, NODE("n1"));
    CHECK_EQ(told, 0);
    (void)vloop_run(w.vloop, SECONDS(1));
    CHECK_EQ(told, 1);
    CHECK_EQ(drain(&w, reply.watch, &ended), 1);
    (void)ask(&w, "POST", "/api/v1/nodes", JSON, "{\"metadata\":{\"name\":\"other\"}}");
    (void)vloop_run(w.vloop, SECONDS(2));
    CHECK_EQ(told, 1); /* the selector leaves it out */
    (void)vloop_run(w.vloop, SECONDS(6));
    CHECK_EQ(told, 2);
    CHECK_EQ(drain(&w, reply.watch, &ended), 0);
    CHECK(ended);
    apiserver_watch_close(reply.watch);
}
