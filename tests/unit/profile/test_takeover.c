/* What the leader before recorded, and may still write: the next one neither exceeds a limit by it
 * nor waits for it. */
#include "ledger/ledger.h"
#include "profile/controller_room.h"
#include "sandbox/apiserver.h"
#include "sandbox/door.h"
#include "sandbox/vloop.h"
#include "tests/check.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

struct story {
    struct arena memory;
    struct vloop *time;
    struct apiserver *server;
    struct api *door;
    struct controller *c;
};

static const char profiles[] =
    "intervals: {requeue: 24h}\n"
    "instances:\n"
    "  check:\n"
    "  - {type: hasLabel, name: asked, config: {key: asked}}\n"
    "  - {type: hasLabel, name: for_p, config: {key: for-p}}\n"
    "  - {type: hasLabel, name: for_q, config: {key: for-q}}\n"
    "  - {type: maxMaintenance, name: room_p, config: {max: 1, profile: p}}\n"
    "  - {type: maxMaintenance, name: room_q, config: {max: 1, profile: q}}\n"
    "profiles:\n"
    "- name: p\n"
    "  operational: {transitions: [{check: asked, next: maintenance-required}]}\n"
    "  maintenance-required: {transitions: [{check: for_p && room_p, next: in-maintenance}]}\n"
    "- name: q\n"
    "  operational: {transitions: [{check: asked, next: maintenance-required}]}\n"
    "  maintenance-required: {transitions: [{check: for_q && room_q, next: in-maintenance}]}\n";

static int send(struct story *s, const char *method, const char *path, struct str body)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
        .body = body,
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    return reply.status;
}

static const struct jval *node_of(struct story *s, const char *name)
{
    return apiserver_find(s->server, STR(""), STR("nodes"), STR(""), str_from(name));
}

static struct str version_of(struct story *s, const char *name)
{
    return jval_str(jval_at(node_of(s, name), "metadata.resourceVersion"));
}

static struct str fence_of(struct story *s, const char *name)
{
    return jval_str(jval_get(jval_at(node_of(s, name), "metadata.annotations"), SUBJECT_FENCE));
}

static bool goes_by(struct story *s, const char *name, const char *profile)
{
    struct str data =
        jval_str(jval_get(jval_at(node_of(s, name), "metadata.annotations"), DATA_ANNOTATION));
    struct str entry;
    struct str rest;
    return str_cut(data, arena_printf(&s->memory, "\"%s\":{", profile), &rest, &entry) &&
           str_cut(entry, STR("}"), &entry, &rest) &&
           str_contains(entry, STR("\"Current\":\"in-maintenance\""));
}

static void lead(struct story *s, const char *identity)
{
    s->c = controller_new(
        vloop_root(s->time), s->door, NULL, NULL,
        &(struct controller_config){ .identity = str_from(identity), .elect = true });
    CHECK_EQ(controller_configure(s->c, STR("f"), str_from(profiles), (struct ucfg_env){ 0 }), 0);
    (void)vloop_run(s->time, vloop_now(s->time) + MINUTES(2));
    controller_check(s->c);
}

static void add_node(struct story *s, const char *name)
{
    CHECK_EQ(send(s, "POST", "/api/v1/nodes",
                  arena_printf(&s->memory,
                               "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"asked\":\"\","
                               "\"cloud.sap/maintenance-profile\":\"p--q\"}}}",
                               name)),
             201);
}

static void approve(struct story *s, const char *name, const char *label)
{
    CHECK_EQ(send(s, "PATCH", arena_printf(&s->memory, "/api/v1/nodes/%s", name).p,
                  arena_printf(&s->memory, "{\"metadata\":{\"labels\":{\"%s\":\"\"}}}", label)),
             200);
}

/* The nodes wait; the leader has granted n1 to q, and died. */
static void story_begin(struct story *s, const char *n1, const char *n2)
{
    *s = (struct story){ .time = vloop_new(1, WALL) };
    s->server = apiserver_new(vloop_root(s->time), 1);
    s->door = door_new(vloop_root(s->time), s->server, NULL);
    add_node(s, "n1");
    add_node(s, "n2");
    lead(s, "a_1");
    controller_free(s->c);
    approve(s, "n1", n1);
    approve(s, "n2", n2);
    struct str grants =
        arena_printf(&s->memory,
                     "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":"
                     "\"{\\\"n1\\\":{\\\"profile\\\":\\\"q\\\",\\\"version\\\":" STR_FMT "}}\"}}}",
                     STR_ARG(LEDGER_ANNOTATION), STR_ARG(version_of(s, "n1")));
    CHECK_EQ(send(s, "PATCH",
                  arena_printf(&s->memory,
                               "/apis/coordination.k8s.io/v1/namespaces/default/leases/" STR_FMT,
                               STR_ARG(CONTROLLER_LEASE_NAME))
                      .p,
                  grants),
             200);
}

static void story_end(struct story *s)
{
    controller_free(s->c);
    door_free(s->door);
    apiserver_free(s->server);
    arena_done(&s->memory);
    vloop_free(s->time);
}

/* Another profile asks for n1 now: the late patch is shut out, and it goes on. */
TEST(takeover_shuts_out_the_grant_of_another_profile)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "for-p", "other");
    struct str version = version_of(&s, "n1");
    lead(&s, "b_1");
    CHECK(str_eq(fence_of(&s, "n1"), version));
    CHECK(goes_by(&s, "n1", "p"));
    CHECK(!goes_by(&s, "n1", "q"));
    CHECK_EQ(send(&s, "PATCH", "/api/v1/nodes/n1",
                  arena_printf(&s.memory,
                               "{\"metadata\":{\"resourceVersion\":\"" STR_FMT
                               "\",\"labels\":{\"late\":\"\"}}}",
                               STR_ARG(version))),
             409);
}

/* Nobody asks for n1 any more: the place is the next one's, without waiting for n1's kubelet. */
TEST(takeover_frees_the_place_of_who_asks_no_more)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "other", "for-q");
    struct str version = version_of(&s, "n1");
    lead(&s, "b_1");
    CHECK(str_eq(fence_of(&s, "n1"), version));
    CHECK(goes_by(&s, "n2", "q"));
    CHECK_EQ(fence_of(&s, "n2").n, 0);
}

/* The same is asked for again: it goes on, without another write. */
TEST(takeover_goes_on_with_a_grant_that_is_asked_for)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "for-q", "for-q");
    lead(&s, "b_1");
    CHECK(goes_by(&s, "n1", "q"));
    CHECK(!goes_by(&s, "n2", "q")); /* there is one place */
    CHECK_EQ(fence_of(&s, "n1").n, 0);
}
