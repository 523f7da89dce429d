#include "kube/reflector.h"

#include "base/limits.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/fake_api.h"

struct seen {
    struct virtual_loop *time;
    struct fake_api api;
    struct client client;
    struct reflector r;
    struct arena a;
    struct buf names; /* "+a +b -a " */
    int lists;
    int synced;
    uint64_t version;
    int errors;
    int bad;
    int well;
    int status;     /* of the last error */
    bool backwards; /* the next list is refused */
    char last[512];
};

static void on_list(void *ctx)
{
    struct seen *s = ctx;
    s->lists++;
}

static int on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct seen *s = ctx;
    struct str name = jval_str(jval_at(object, "metadata.name"));
    if (name.n == 0) {
        return err_set(err, ERR_PROTO, "a thing without a name");
    }
    buf_printf(&s->names, "%c" STR_FMT " ", deleted ? '-' : '+', STR_ARG(name));
    return 0;
}

static bool on_synced(void *ctx, uint64_t version)
{
    struct seen *s = ctx;
    if (s->backwards) {
        s->backwards = false;
        return false;
    }
    s->synced++;
    s->version = version;
    return true;
}

static void on_error(void *ctx, const struct err *err, bool bad)
{
    struct seen *s = ctx;
    s->errors++;
    s->bad += bad ? 1 : 0;
    s->status = s->r.status;
    (void)snprintf(s->last, sizeof(s->last), "%s", err->msg);
}

static void on_well(void *ctx)
{
    struct seen *s = ctx;
    s->well++;
}

static void begin_with(struct seen *s, mutations_t mutations, struct reflector_config config)
{
    *s = (struct seen){ .time = virtual_loop_new(1, 0) };
    fake_api_init(&s->api);
    client_init(&s->client, virtual_loop_root(s->time), &s->api.api);
    s->client.mutations = mutations;
    config.path = STR("/api/v1/things");
    config.query = STR("&labelSelector=a");
    config.on_list = on_list;
    config.on_object = on_object;
    config.on_synced = on_synced;
    config.on_error = on_error;
    config.on_well = on_well;
    config.ctx = s;
    reflector_init(&s->r, &s->client, &config);
    reflector_start(&s->r);
}

static void begin_as(struct seen *s, mutations_t mutations)
{
    begin_with(s, mutations, (struct reflector_config){ 0 });
}

static void begin(struct seen *s)
{
    begin_as(s, 0);
}

static void end(struct seen *s)
{
    reflector_done(&s->r);
    fake_api_done(&s->api);
    CHECK_EQ(virtual_loop_armed(s->time), 0);
    virtual_loop_free(s->time);
    buf_done(&s->names);
    arena_done(&s->a);
}

static void run(struct seen *s, usec_t span)
{
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + span);
}

static struct fake_watch *stream(struct seen *s)
{
    struct fake_watch *w = fake_watch_first(&s->api);
    CHECK(w != NULL);
    return w;
}

static void event(struct seen *s, const char *type, const char *name, int version)
{
    fake_watch_line(stream(s),
                    arena_printf(&s->a,
                                 "{\"type\":\"%s\",\"object\":{\"metadata\":{\"name\":\"%s\","
                                 "\"resourceVersion\":\"%d\"}}}",
                                 type, name, version));
}

static void mark(struct seen *s, int version, bool initial_end)
{
    fake_watch_line(stream(s),
                    arena_printf(&s->a,
                                 "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
                                 "\"resourceVersion\":\"%d\"%s}}}",
                                 version,
                                 initial_end
                                     ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"
                                     : ""));
}

/* The requests differ only in their random timeout. */
static bool path_is(struct str path, const char *before, const char *after)
{
    struct str rest;
    return str_cut_prefix(path, str_from(before), &rest) && str_ends(rest, str_from(after)) &&
           rest.n == str_from(after).n + 3;
}

TEST(reflector_streams_the_first_list_and_goes_on_with_changes)
{
    struct seen s;
    begin(&s);
    CHECK(path_is(stream(&s)->path,
                  "/api/v1/things?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
                  "&sendInitialEvents=true&timeoutSeconds=",
                  "&watch=1&labelSelector=a"));
    CHECK_EQ(stream(&s)->silence_max, SECONDS(150));
    event(&s, "ADDED", "b", 9);
    event(&s, "ADDED", "a", 3);
    CHECK_EQ(s.synced, 0);
    mark(&s, 12, true);
    CHECK_EQ(s.synced, 1);
    CHECK_EQ(s.version, 12);
    event(&s, "MODIFIED", "a", 14);
    event(&s, "DELETED", "b", 15);
    CHECK_STR(buf_str(&s.names), "+b +a +a -b ");
    CHECK_EQ(s.api.watched, 1); /* one stream for all of it */
    CHECK_EQ(virtual_loop_armed(s.time), 0);
    end(&s);
}

TEST(reflector_resumes_where_it_was)
{
    struct seen s;
    begin(&s);
    mark(&s, 12, true);
    event(&s, "ADDED", "a", 14);
    fake_watch_fail(&s.api, stream(&s), ERR_IO);
    CHECK(s.r.failing);
    CHECK_EQ(s.errors, 1);
    CHECK_EQ(s.well, 0);
    run(&s, SECONDS(1));
    CHECK(path_is(stream(&s)->path,
                  "/api/v1/things?allowWatchBookmarks=true&resourceVersion=14&timeoutSeconds=",
                  "&watch=1&labelSelector=a"));
    mark(&s, 30, false); /* nothing happened to us, much to others */
    CHECK(!s.r.failing);
    CHECK_EQ(s.well, 1); /* it is told, because no object tells it */
    run(&s, MINUTES(6));
    fake_watch_end(&s.api, stream(&s), 200, STR(""));
    run(&s, 0); /* an orderly end is followed at once */
    CHECK(str_contains(stream(&s)->path, STR("&resourceVersion=30&")));
    CHECK_EQ(s.errors, 1);
    CHECK_EQ(s.lists, 1);
    end(&s);
}

/* A cut every few minutes, for hours: each is followed as soon as the first was. */
TEST(reflector_does_not_count_cuts_that_are_far_apart)
{
    struct seen s;
    begin(&s);
    mark(&s, 12, true);
    for (int i = 0; i < 50; i++) {
        mark(&s, 20 + i, false);
        run(&s, MINUTES(3));
        fake_watch_fail(&s.api, stream(&s), ERR_IO);
        run(&s, MSECONDS(200));
        CHECK_EQ(s.api.watched, i + 2);
    }
    end(&s);
}

TEST(reflector_lists_again_when_its_version_has_expired)
{
    for (int how = 0; how < 2; how++) {
        struct seen s;
        begin(&s);
        event(&s, "ADDED", "a", 3);
        mark(&s, 12, true);
        if (how == 0) {
            fake_watch_line(stream(&s),
                            STR("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                                "\"message\":\"too old resource version: 12 (40)\"}}"));
        } else {
            fake_watch_fail(&s.api, stream(&s), ERR_IO);
            run(&s, SECONDS(1));
            fake_watch_end(&s.api, stream(&s), 410, STR("{\"message\":\"too old\"}"));
        }
        run(&s, SECONDS(1));
        CHECK_EQ(s.lists, 2);
        CHECK_EQ(s.bad, 0);
        CHECK(str_contains(stream(&s)->path, STR("sendInitialEvents=true")));
        mark(&s, 45, true);
        CHECK_EQ(s.synced, 2);
        CHECK_EQ(s.version, 45);
        CHECK(!s.r.failing);
        end(&s);
    }
}

TEST(reflector_lists_again_when_resuming_is_refused_for_long)
{
    struct seen s;
    begin(&s);
    mark(&s, 12, true);
    fake_watch_fail(&s.api, stream(&s), ERR_IO);
    for (int i = 0; i < 5; i++) {
        run(&s, SECONDS(40));
        CHECK(str_contains(stream(&s)->path, STR("resourceVersion=12&")));
        fake_watch_end(&s.api, stream(&s), 504,
                       STR("{\"message\":\"Too large resource version\"}"));
    }
    run(&s, SECONDS(15));
    CHECK_EQ(s.lists, 2);
    end(&s);
}

static void page(struct seen *s, const char *items, const char *token)
{
    struct fake_call *call = fake_call_first(&s->api);
    CHECK(call != NULL);
    fake_call_reply(&s->api, call, 200,
                    arena_printf(&s->a,
                                 "{\"kind\":\"ThingList\",\"metadata\":{\"resourceVersion\":\"20\","
                                 "\"continue\":\"%s\"},\"items\":[%s]}",
                                 token, items));
}

TEST(reflector_asks_for_pages_when_the_server_knows_no_streams)
{
    static const int refusals[] = { 400, 422 };
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        struct seen s;
        begin(&s);
        fake_watch_end(&s.api, stream(&s), refusals[i], STR("{}"));
        run(&s, 0);
        CHECK_STR(fake_call_first(&s.api)->path, "/api/v1/things?limit=100&labelSelector=a");
        page(&s, "{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"}}", "x=/+");
        CHECK_STR(fake_call_first(&s.api)->path,
                  "/api/v1/things?limit=100&labelSelector=a&continue=x%3D%2F%2B");
        page(&s, "{\"metadata\":{\"name\":\"c\"}}", "");
        CHECK_STR(buf_str(&s.names), "+a +b +c ");
        CHECK_EQ(s.version, 20);
        CHECK(str_contains(stream(&s)->path, STR("&resourceVersion=20&")));
        CHECK_EQ(s.errors, 0);
        /* It is remembered: the next list does not ask again. */
        fake_watch_line(stream(&s), STR("{\"type\":\"ERROR\",\"object\":{\"code\":410}}"));
        run(&s, SECONDS(1));
        CHECK_EQ(s.api.call_count, 1);
        end(&s);
    }
}

TEST(reflector_asks_for_metadata_alone_and_keeps_to_its_configuration)
{
    struct seen s;
    begin_with(&s, 0,
               (struct reflector_config){
                   .metadata_only = true, .page = 500, .silence_max = SECONDS(90) });
    CHECK_STR(stream(&s)->accept, API_METADATA);
    CHECK_EQ(stream(&s)->silence_max, SECONDS(90));
    fake_watch_end(&s.api, stream(&s), 422, STR("{}"));
    run(&s, 0);
    CHECK_STR(fake_call_first(&s.api)->path, "/api/v1/things?limit=500&labelSelector=a");
    CHECK_STR(fake_call_first(&s.api)->accept, API_METADATA_LIST);
    page(&s, "{\"metadata\":{\"name\":\"a\"}}", "t");
    CHECK_STR(fake_call_first(&s.api)->accept, API_METADATA_LIST);
    /* Of a list without items the real server says null, if only metadata is asked for. */
    fake_call_reply(&s.api, fake_call_first(&s.api), 200,
                    STR("{\"kind\":\"PartialObjectMetadataList\",\"metadata\":"
                        "{\"resourceVersion\":\"21\"},\"items\":null}"));
    CHECK_EQ(s.version, 21);
    CHECK_STR(buf_str(&s.names), "+a ");
    CHECK_STR(stream(&s)->accept, API_METADATA);
    CHECK_EQ(stream(&s)->silence_max, SECONDS(90));
    end(&s);
    begin(&s);
    CHECK_STR(stream(&s)->accept, "");
    fake_watch_end(&s.api, stream(&s), 422, STR("{}"));
    run(&s, 0);
    CHECK_STR(fake_call_first(&s.api)->accept, "");
    end(&s);
}

/* Whoever is told of an error can ask what the server said: a 401 is another matter than a cut. */
TEST(reflector_keeps_the_status_of_what_failed)
{
    struct seen s;
    begin(&s);
    fake_watch_end(&s.api, stream(&s), 401, STR("{}"));
    CHECK_EQ(s.status, 401);
    run(&s, SECONDS(1));
    fake_watch_fail(&s.api, stream(&s), ERR_IO);
    CHECK_EQ(s.status, 0);
    run(&s, SECONDS(2));
    fake_watch_line(stream(&s), STR("{\"type\":\"ERROR\",\"object\":{\"code\":403}}"));
    CHECK_EQ(s.status, 403);
    run(&s, SECONDS(3));
    fake_watch_line(stream(&s), STR("{\"type\":\"ERROR\",\"object\":{\"code\":4294967697}}"));
    CHECK_EQ(s.status, 0);
    run(&s, SECONDS(5));
    fake_watch_end(&s.api, stream(&s), 503, STR("{}"));
    CHECK_EQ(s.status, 503);
    run(&s, SECONDS(10));
    fake_watch_line(stream(&s), STR("nonsense"));
    CHECK_EQ(s.status, 0);
    CHECK_EQ(s.bad, 1);
    run(&s, SECONDS(20));
    fake_watch_end(&s.api, stream(&s), 422, STR("{}"));
    run(&s, 0);
    fake_call_reply(&s.api, fake_call_first(&s.api), 403, STR("{}"));
    CHECK_EQ(s.status, 403);
    run(&s, SECONDS(30));
    fake_call_fail(&s.api, fake_call_first(&s.api), ERR_TIMEOUT);
    CHECK_EQ(s.status, 0);
    CHECK_EQ(s.errors, 8);
    end(&s);
}

TEST(reflector_begins_the_pages_again_when_their_token_expires)
{
    struct seen s;
    begin(&s);
    fake_watch_end(&s.api, stream(&s), 422, STR("{}"));
    run(&s, 0);
    page(&s, "{\"metadata\":{\"name\":\"a\"}}", "t");
    fake_call_reply(&s.api, fake_call_first(&s.api), 410, STR("{}"));
    run(&s, SECONDS(1));
    CHECK_EQ(s.lists, 3); /* the refused stream, and twice pages */
    CHECK_STR(fake_call_first(&s.api)->path, "/api/v1/things?limit=100&labelSelector=a");
    end(&s);
}

TEST(reflector_gives_up_streams_that_do_not_end_their_list)
{
    struct seen s;
    begin(&s);
    event(&s, "ADDED", "a", 3); /* an old server: objects, and no mark */
    run(&s, SECONDS(22));
    event(&s, "ADDED", "a", 3);
    run(&s, SECONDS(22));
    CHECK_EQ(s.api.watch_count, 0);
    CHECK_EQ(s.api.call_count, 1);
    CHECK(str_starts(fake_call_first(&s.api)->path, STR("/api/v1/things?limit=")));
    CHECK_EQ(s.errors, 2);
    end(&s);
}

TEST(reflector_reports_what_it_cannot_read_and_lists_again)
{
    static const char *const lines[] = {
        "",
        "{",
        "nonsense",
        "{\"type\":\"ADDED\"}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":7}}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xc3\x28\"}}}",
        "{\"type\":5,\"object\":{}}",
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"x\"}}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        for (int synced = 0; synced < 2; synced++) {
            struct seen s;
            begin(&s);
            check_case((int64_t)i);
            if (synced == 1) {
                mark(&s, 12, true);
            }
            fake_watch_line(stream(&s), str_from(lines[i]));
            CHECK_EQ(s.bad, 1);
            CHECK_EQ(s.r.bad, 1);
            CHECK(str_starts(str_from(s.last), STR("watch of /api/v1/things: ")));
            event(&s, "ADDED", "late", 4); /* the stream still talks: nobody listens */
            CHECK_EQ(s.names.n, 0);
            run(&s, SECONDS(1));
            CHECK_EQ(s.lists, 2);
            mark(&s, 13, true);
            CHECK_EQ(s.synced, synced + 1);
            end(&s);
        }
    }
}

TEST(reflector_refuses_a_line_that_is_too_long)
{
    struct seen s;
    begin(&s);
    char *line = arena_alloc(&s.a, OBJECT_BYTES_MAX + 1);
    memset(line, ' ', OBJECT_BYTES_MAX + 1);
    fake_watch_line(stream(&s), (struct str){ .p = line, .n = OBJECT_BYTES_MAX + 1 });
    CHECK_EQ(s.bad, 1);
    CHECK(str_contains(str_from(s.last), STR("a line of 4194305 bytes, at most 4194304")));
    run(&s, SECONDS(1));
    CHECK_EQ(s.lists, 2);
    end(&s);
}

TEST(reflector_survives_pages_that_are_no_lists)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "[]",
        "{\"items\":[{]}",
        "{\"metadata\":{\"resourceVersion\":\"x\"},\"items\":[]}",
        "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{}]}",
        "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"metadata\":{\"name\":\"\xff\"}}]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct seen s;
        begin(&s);
        check_case((int64_t)i);
        fake_watch_end(&s.api, stream(&s), 422, STR("{}"));
        run(&s, 0);
        fake_call_reply(&s.api, fake_call_first(&s.api), 200, str_from(bodies[i]));
        CHECK_EQ(s.synced, 0);
        CHECK_EQ(s.bad, 1);
        run(&s, SECONDS(1));
        page(&s, "", "");
        CHECK_EQ(s.synced, 1);
        end(&s);
    }
}

TEST(reflector_backs_off_from_a_server_that_is_gone)
{
    struct seen s;
    begin(&s);
    for (int i = 0; i < 200 && virtual_loop_now(s.time) < MINUTES(10); i++) {
        if (s.api.watch_count > 0) {
            fake_watch_fail(&s.api, stream(&s), ERR_IO);
        }
        (void)virtual_loop_step(s.time, virtual_loop_now(s.time) + MINUTES(1));
    }
    CHECK(s.api.watched > 15 && s.api.watched < 60); /* every 15 to 30 s in the end */
    run(&s, MINUTES(1));
    mark(&s, 5, true);
    CHECK_EQ(s.synced, 1);
    end(&s);
}

TEST(reflector_lists_again_when_its_keeper_asks)
{
    struct seen s;
    begin(&s);
    s.backwards = true;
    mark(&s, 5, true);
    CHECK_EQ(s.synced, 0);
    run(&s, SECONDS(1));
    CHECK_EQ(s.lists, 2);
    mark(&s, 5, true);
    CHECK_EQ(s.synced, 1);
    end(&s);
}

TEST(reflector_mutations_do_what_they_say)
{
    struct seen s;
    begin_as(&s, MUTATION_BIT(MUTATION_IGNORE_410));
    mark(&s, 12, true);
    fake_watch_line(stream(&s), STR("{\"type\":\"ERROR\",\"object\":{\"code\":410}}"));
    run(&s, SECONDS(1));
    CHECK_EQ(s.lists, 1);
    CHECK(str_contains(stream(&s)->path, STR("resourceVersion=12&")));
    end(&s);
    begin_as(&s, MUTATION_BIT(MUTATION_NO_RESYNC_AFTER_CUT));
    mark(&s, 12, true);
    fake_watch_fail(&s.api, stream(&s), ERR_IO);
    run(&s, HOURS(1));
    CHECK_EQ(s.api.watch_count, 0);
    end(&s);
}
