/*
 * The door in front of the real API server of the sandbox, with a world behind it.
 */
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/world/world.h"
#include "tests/check.h"

struct sim_api_fixture {
    struct virtual_loop *v;
    struct apiserver *server;
    struct world *world;
    struct loop *view;
    struct faults faults;
    struct api *api;
    uint32_t added;
    uint32_t modified;
    uint32_t errors;
    uint32_t ends;
    int end_status;
    enum err_code end_code;
    int status;
};

static void sim_api_fixture_init(struct sim_api_fixture *s, uint32_t nodes)
{
    *s = (struct sim_api_fixture){ .v = virtual_loop_new(1, SECONDS(1700000000)) };
    s->server = apiserver_new(virtual_loop_root(s->v), 1);
    struct world_config config = { .seed = 1, .nodes = nodes };
    s->world = world_new(virtual_loop_root(s->v), s->server, &config);
    s->view = virtual_loop_view_new(s->v, 0);
    faults_init(&s->faults, 1);
    s->api = sim_api_new(s->view, s->server, &s->faults);
    (void)virtual_loop_run(s->v, SECONDS(1));
}

static void sim_api_fixture_run(struct sim_api_fixture *s, usec_t duration)
{
    (void)virtual_loop_run(s->v, virtual_loop_now(s->v) + duration);
}

static void sim_api_fixture_done(struct sim_api_fixture *s)
{
    sim_api_free(s->api);
    faults_done(&s->faults);
    world_free(s->world);
    apiserver_free(s->server);
    virtual_loop_view_free(s->view);
    CHECK_EQ(virtual_loop_armed(s->v), 0);
    virtual_loop_free(s->v);
}

static void sim_api_fixture_on_event(void *ctx, const struct api_watch_event *event)
{
    struct sim_api_fixture *s = ctx;
    s->added += str_starts(event->line, STR("{\"type\":\"ADDED\""));
    s->modified += str_starts(event->line, STR("{\"type\":\"MODIFIED\""));
    s->errors += str_starts(event->line, STR("{\"type\":\"ERROR\""));
    if (event->kind == API_WATCH_END) {
        s->ends++;
        s->end_status = event->status;
        s->end_code = event->err != NULL ? event->err->code : 0;
    }
}

static void sim_api_fixture_on_reply(void *ctx, const struct api_reply *reply)
{
    ((struct sim_api_fixture *)ctx)->status = reply->status;
}

static void sim_api_fixture_watch(struct sim_api_fixture *s, const char *path)
{
    struct api_watch_spec spec = { .path = str_from(path) };
    (void)api_watch(s->api, &spec, sim_api_fixture_on_event,
                    s); /* its end is counted, it is never stopped */
}

TEST(sim_api_shows_the_servers_objects_and_changes)
{
    struct sim_api_fixture s;
    sim_api_fixture_init(&s, 5);
    sim_api_fixture_watch(&s, "/api/v1/nodes?watch=1");
    sim_api_fixture_run(&s, SECONDS(1));
    CHECK_EQ(s.added, 5);
    struct api_request request = {
        .verb = API_PATCH,
        .path = STR("/api/v1/nodes/node-001"),
        .content_type = API_MERGE_PATCH,
        .body = STR("{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"),
    };
    (void)api_send(s.api, &request, sim_api_fixture_on_reply, &s);
    sim_api_fixture_run(&s, SECONDS(1));
    CHECK_EQ(s.status, 200);
    CHECK_EQ(s.modified, 1);
    CHECK_EQ(s.ends, 0);
    sim_api_fixture_done(&s);
}

TEST(sim_api_restart_ends_watches_and_old_versions_are_gone)
{
    struct sim_api_fixture s;
    sim_api_fixture_init(&s, 2);
    sim_api_fixture_watch(&s, "/api/v1/nodes?watch=1");
    sim_api_fixture_run(&s, SECONDS(1));
    s.faults.down = true;
    apiserver_restart(s.server);
    sim_api_fixture_run(&s, SECONDS(1));
    CHECK_EQ(s.ends, 1);
    CHECK_EQ(s.end_code, ERR_IO);
    s.faults.down = false;
    struct err err = { 0 };
    CHECK_EQ(world_add_node(s.world, STR(""), &err), 0);
    apiserver_compact(s.server);
    sim_api_fixture_watch(&s, "/api/v1/nodes?watch=1&resourceVersion=2");
    sim_api_fixture_run(&s, SECONDS(1));
    /* The real server refuses or sends an ERROR event; either way the client learns of 410. */
    CHECK(s.errors == 1 || s.end_status == 410);
    sim_api_fixture_done(&s);
}
