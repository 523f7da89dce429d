/*
 * The door in front of the real API server of the sandbox, with a world behind it.
 */
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/world/world.h"
#include "tests/check.h"

struct scene {
    struct vloop *v;
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

static void scene_init(struct scene *s, uint32_t nodes)
{
    *s = (struct scene){ .v = vloop_new(1, SECONDS(1700000000)) };
    s->server = apiserver_new(vloop_root(s->v), 1);
    struct world_config config = { .seed = 1, .nodes = nodes };
    s->world = world_new(vloop_root(s->v), s->server, &config);
    s->view = vloop_view(s->v, 0);
    faults_init(&s->faults, 1);
    s->api = door_new(s->view, s->server, &s->faults);
    (void)vloop_run(s->v, SECONDS(1));
}

static void scene_run(struct scene *s, usec_t duration)
{
    (void)vloop_run(s->v, vloop_now(s->v) + duration);
}

static void scene_done(struct scene *s)
{
    door_free(s->api);
    faults_done(&s->faults);
    world_free(s->world);
    apiserver_free(s->server);
    vloop_view_free(s->view);
    CHECK_EQ(vloop_armed(s->v), 0);
    vloop_free(s->v);
}

static void scene_on_event(void *ctx, const struct api_watch_event *event)
{
    struct scene *s = ctx;
    s->added += str_starts(event->line, STR("{\"type\":\"ADDED\""));
    s->modified += str_starts(event->line, STR("{\"type\":\"MODIFIED\""));
    s->errors += str_starts(event->line, STR("{\"type\":\"ERROR\""));
    if (event->kind == API_WATCH_END) {
        s->ends++;
        s->end_status = event->status;
        s->end_code = event->err != NULL ? event->err->code : 0;
    }
}

static void scene_on_reply(void *ctx, const struct api_reply *reply)
{
    ((struct scene *)ctx)->status = reply->status;
}

static void scene_watch(struct scene *s, const char *path)
{
    struct api_watch_spec spec = { .path = str_from(path) };
    (void)api_watch(s->api, &spec, scene_on_event, s); /* its end is counted, it is never stopped */
}

TEST(door_shows_the_servers_objects_and_changes)
{
    struct scene s;
    scene_init(&s, 5);
    scene_watch(&s, "/api/v1/nodes?watch=1");
    scene_run(&s, SECONDS(1));
    CHECK_EQ(s.added, 5);
    struct api_request request = {
        .verb = API_PATCH,
        .path = STR("/api/v1/nodes/node-001"),
        .content_type = API_MERGE_PATCH,
        .body = STR("{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"),
    };
    (void)api_send(s.api, &request, scene_on_reply, &s);
    scene_run(&s, SECONDS(1));
    CHECK_EQ(s.status, 200);
    CHECK_EQ(s.modified, 1);
    CHECK_EQ(s.ends, 0);
    scene_done(&s);
}

TEST(door_restart_ends_watches_and_old_versions_are_gone)
{
    struct scene s;
    scene_init(&s, 2);
    scene_watch(&s, "/api/v1/nodes?watch=1");
    scene_run(&s, SECONDS(1));
    s.faults.down = true;
    apiserver_restart(s.server);
    scene_run(&s, SECONDS(1));
    CHECK_EQ(s.ends, 1);
    CHECK_EQ(s.end_code, ERR_IO);
    s.faults.down = false;
    struct err err = { 0 };
    CHECK_EQ(world_add_node(s.world, STR(""), &err), 0);
    apiserver_compact(s.server);
    scene_watch(&s, "/api/v1/nodes?watch=1&resourceVersion=2");
    scene_run(&s, SECONDS(1));
    /* The real server refuses or sends an ERROR event; either way the client learns of 410. */
    CHECK(s.errors == 1 || s.end_status == 410);
    scene_done(&s);
}
