#include "sandbox/apiserver/watch.h"

#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

struct server_fixture {
    struct virtual_loop *vloop;
    struct apiserver *server;
    struct arena arena;
};

static void server_fixture_init(struct server_fixture *w)
{
    *w = (struct server_fixture){ 0 };
    w->vloop = virtual_loop_new(3, SECONDS(1577836800));
    w->server = apiserver_new(virtual_loop_root(w->vloop), 3);
}

static void server_fixture_done(struct server_fixture *w)
{
    apiserver_free(w->server);
    virtual_loop_free(w->vloop);
    arena_done(&w->arena);
}

static struct apiserver_reply request_send(struct server_fixture *w, const char *method,
                                           const char *path, const char *body)
{
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? STR("application/merge-patch+json")
                                                               : STR("application/json"),
        .body = str_from(body),
    };
    struct apiserver_reply reply;
    apiserver_handle(w->server, &request, &w->arena, &reply);
    return reply;
}

static struct apiserver_watch *watch(struct server_fixture *w, const char *query)
{
    struct str path = arena_printf(&w->arena, "/api/v1/nodes?watch=1&%s", query);
    struct apiserver_reply reply = request_send(w, "GET", path.p, "");
    CHECK_EQ(reply.status, 200);
    CHECK(reply.watch != NULL);
    return reply.watch;
}

static void create(struct server_fixture *w, const char *name)
{
    struct str body = arena_printf(&w->arena, "{\"metadata\":{\"name\":\"%s\"}}", name);
    CHECK_EQ(request_send(w, "POST", "/api/v1/nodes", body.p).status, 201);
}

/* The types and names of what is there to read, "ADDED n1;BOOKMARK ;". */
static struct str read_all(struct server_fixture *w, struct apiserver_watch *stream,
                           bool *ret_ended)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct str line;
    while (apiserver_watch_next(stream, &w->arena, &line, ret_ended)) {
        const struct jval *event;
        struct err err = { 0 };
        CHECK_EQ(json_parse(line, 0, &w->arena, &event, &err), 0);
        buf_printf(&out, STR_FMT " " STR_FMT ";", STR_ARG(jval_str(jval_at(event, "type"))),
                   STR_ARG(jval_str(jval_at(event, "object.metadata.name"))));
    }
    return arena_str(&w->arena, buf_str(&out));
}

TEST(watch_shows_what_is_there_then_the_mark_then_changes)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    create(&w, "b");
    create(&w, "a");
    struct apiserver_watch *stream = watch(
        &w, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    create(&w, "c");
    bool ended;
    CHECK_STR(read_all(&w, stream, &ended), "ADDED a;ADDED b;BOOKMARK ;ADDED c;");
    CHECK(!ended);
    apiserver_watch_close(stream);
}

TEST(watch_sends_a_bookmark_every_minute_to_those_who_ask)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    struct apiserver_watch *with = watch(&w, "allowWatchBookmarks=true");
    struct apiserver_watch *without = watch(&w, "");
    bool ended;
    (void)virtual_loop_run(w.vloop, SECONDS(61));
    CHECK_STR(read_all(&w, with, &ended), "BOOKMARK ;");
    CHECK_STR(read_all(&w, without, &ended), "");
    (void)virtual_loop_run(w.vloop, SECONDS(121));
    CHECK_STR(read_all(&w, with, &ended), "BOOKMARK ;");
    apiserver_watch_close(with);
    apiserver_watch_close(without);
}

TEST(watch_ends_by_itself_between_half_an_hour_and_an_hour)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    struct apiserver_watch *stream = watch(&w, "");
    bool ended;
    (void)virtual_loop_run(w.vloop, MINUTES(30) - 1);
    CHECK_STR(read_all(&w, stream, &ended), "");
    CHECK(!ended);
    (void)virtual_loop_run(w.vloop, MINUTES(60));
    CHECK_STR(read_all(&w, stream, &ended), "");
    CHECK(ended);
    apiserver_watch_close(stream);
}

TEST(watch_from_before_a_compaction_gets_an_error_event)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    uint64_t before = apiserver_resource_version(w.server);
    create(&w, "a");
    apiserver_compact(w.server);
    struct str query = arena_printf(&w.arena, "resourceVersion=%llu", (unsigned long long)before);
    struct apiserver_watch *stream = watch(&w, query.p);
    bool ended;
    CHECK_STR(read_all(&w, stream, &ended), "ERROR ;");
    CHECK(ended);
    apiserver_watch_close(stream);
    query = arena_printf(&w.arena, "resourceVersion=%llu",
                         (unsigned long long)apiserver_resource_version(w.server));
    stream = watch(&w, query.p);
    CHECK_STR(read_all(&w, stream, &ended), "");
    CHECK(!ended);
    apiserver_watch_close(stream);
}

static void count(void *ctx)
{
    (*(int *)ctx)++;
}

TEST(watch_ends_when_the_server_restarts)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    struct apiserver_watch *stream = watch(&w, "");
    int told = 0;
    bool ended;
    apiserver_watch_notify(stream, count, &told);
    apiserver_restart(w.server);
    (void)virtual_loop_run(w.vloop, SECONDS(1));
    CHECK_EQ(told, 1);
    CHECK_STR(read_all(&w, stream, &ended), "");
    CHECK(ended);
    apiserver_watch_close(stream);
}

TEST(watch_that_does_not_read_is_ended_not_fed_gaps)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    struct apiserver_watch *stream = watch(&w, "");
    create(&w, "a");
    for (uint32_t i = 0; i <= STORAGE_HISTORY_MAX; i++) {
        struct arena tmp = { 0 };
        struct str body = arena_printf(&tmp, "{\"metadata\":{\"labels\":{\"i\":\"%u\"}}}", i);
        struct apiserver_request request = { .method = STR("PATCH"),
                                             .path = STR("/api/v1/nodes/a"),
                                             .content_type = STR("application/merge-patch+json"),
                                             .body = body };
        struct apiserver_reply reply;
        apiserver_handle(w.server, &request, &tmp, &reply);
        CHECK_EQ(reply.status, 200);
        arena_done(&tmp);
    }
    bool ended;
    CHECK_STR(read_all(&w, stream, &ended), "");
    CHECK(ended);
    apiserver_watch_close(stream);
}

/* Dependents go with their owner, and the answer does not wait for it. */
TEST(gc_follows_a_deletion_from_the_loop)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    create(&w, "owner");
    const struct jval *owner =
        apiserver_find(w.server, STR(""), STR("nodes"), STR(""), STR("owner"));
    struct str body =
        arena_printf(&w.arena,
                     "{\"metadata\":{\"name\":\"c\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
                     "\"kind\":\"Node\",\"name\":\"owner\",\"uid\":\"" STR_FMT "\"}]}}",
                     STR_ARG(jval_str(jval_at(owner, "metadata.uid"))));
    const char *path = "/api/v1/namespaces/default/configmaps";
    CHECK_EQ(request_send(&w, "POST", path, body.p).status, 201);
    CHECK_EQ(request_send(&w, "DELETE", "/api/v1/nodes/owner", "").status, 200);
    CHECK_EQ(apiserver_count(w.server, STR(""), STR("configmaps")), 1);
    (void)virtual_loop_run(w.vloop, SECONDS(1));
    CHECK_EQ(apiserver_count(w.server, STR(""), STR("configmaps")), 0);
}

TEST(gc_empties_a_namespace_before_it_goes)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    CHECK_EQ(
        request_send(&w, "POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"x\"}}").status,
        201);
    CHECK_EQ(request_send(&w, "POST", "/api/v1/namespaces/x/configmaps",
                          "{\"metadata\":{\"name\":\"c\"}}")
                 .status,
             201);
    CHECK_EQ(request_send(&w, "DELETE", "/api/v1/namespaces/x", "").status, 200);
    CHECK_EQ(request_send(&w, "GET", "/api/v1/namespaces/x", "").status, 200);
    (void)virtual_loop_run(w.vloop, SECONDS(10));
    CHECK_EQ(request_send(&w, "GET", "/api/v1/namespaces/x", "").status, 404);
    CHECK_EQ(apiserver_count(w.server, STR(""), STR("configmaps")), 0);
}

TEST(gc_foreground_keeps_the_owner_until_its_dependents_are_gone)
{
    CLEANUP(server_fixture_done)
    struct server_fixture w;
    server_fixture_init(&w);
    create(&w, "owner");
    const struct jval *owner =
        apiserver_find(w.server, STR(""), STR("nodes"), STR(""), STR("owner"));
    struct str body = arena_printf(
        &w.arena,
        "{\"metadata\":{\"name\":\"c\",\"finalizers\":[\"x.io/f\"],\"ownerReferences\":["
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"owner\",\"blockOwnerDeletion\":true,"
        "\"uid\":\"" STR_FMT "\"}]}}",
        STR_ARG(jval_str(jval_at(owner, "metadata.uid"))));
    CHECK_EQ(request_send(&w, "POST", "/api/v1/namespaces/default/configmaps", body.p).status, 201);
    CHECK_EQ(
        request_send(&w, "DELETE", "/api/v1/nodes/owner?propagationPolicy=Foreground", "").status,
        200);
    (void)virtual_loop_run(w.vloop, SECONDS(10));
    CHECK_EQ(request_send(&w, "GET", "/api/v1/nodes/owner", "").status, 200);
    CHECK_EQ(request_send(&w, "PATCH", "/api/v1/namespaces/default/configmaps/c",
                          "{\"metadata\":{\"finalizers\":null}}")
                 .status,
             200);
    (void)virtual_loop_run(w.vloop, SECONDS(20));
    CHECK_EQ(request_send(&w, "GET", "/api/v1/nodes/owner", "").status, 404);
}
