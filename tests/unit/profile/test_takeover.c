/* What the leader before recorded, and may still write: the next one neither exceeds a limit by it
 * nor waits for it. */
#include "format/json_writer.h"
#include "kinds/keys.h"
#include "ledger/lease_grants.h"
#include "profile/controller_internal.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/controller_fixture.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

struct story {
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct api *door;
    struct controller *c;
    bool limits; /* whoever leads asks them */
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
    return jval_str(jval_get(jval_at(node_of(s, name), "metadata.annotations"), KEY_FENCE));
}

static bool goes_by(struct story *s, const char *name, const char *profile)
{
    struct str data =
        jval_str(jval_get(jval_at(node_of(s, name), "metadata.annotations"), KEY_DATA));
    struct str entry;
    struct str rest;
    return str_cut(data, arena_printf(&s->memory, "\"%s\":{", profile), &rest, &entry) &&
           str_cut(entry, STR("}"), &entry, &rest) &&
           str_contains(entry, STR("\"Current\":\"in-maintenance\""));
}

static void run(struct story *s, usec_t span)
{
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + span);
    controller_check(s->c);
}

static void begin(struct story *s, const char *identity)
{
    s->c = controller_open(&(struct core_config){ .loop = virtual_loop_root(s->time),
                                                  .api = s->door,
                                                  .identity = str_from(identity),
                                                  .elect = true,
                                                  .use_limits = s->limits,
                                                  .limits = { .namespace = STR("default") } },
                           &(struct controller_config){ 0 });
    CHECK_EQ(controller_configure(s->c, STR("f"), str_from(profiles), (struct ucfg_env){ 0 }), 0);
}

static void lead(struct story *s, const char *identity)
{
    begin(s, identity);
    run(s, MINUTES(2));
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
    *s = (struct story){ .time = virtual_loop_new(1, WALL) };
    s->server = apiserver_new(virtual_loop_root(s->time), 1);
    s->door = sim_api_new(virtual_loop_root(s->time), s->server, NULL);
    add_node(s, "n1");
    add_node(s, "n2");
    lead(s, "a_1");
    controller_close(s->c);
    approve(s, "n1", n1);
    approve(s, "n2", n2);
    struct str grants =
        arena_printf(&s->memory,
                     "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":"
                     "\"{\\\"n1\\\":{\\\"profile\\\":\\\"q\\\",\\\"version\\\":" STR_FMT "}}\"}}}",
                     STR_ARG(KEY_LEASE_GRANTS), STR_ARG(version_of(s, "n1")));
    CHECK_EQ(send(s, "PATCH",
                  arena_printf(&s->memory,
                               "/apis/coordination.k8s.io/v1/namespaces/default/leases/" STR_FMT,
                               STR_ARG(CORE_LEASE_NAME))
                      .p,
                  grants),
             200);
}

static void story_end(struct story *s)
{
    controller_close(s->c);
    sim_api_free(s->door);
    apiserver_free(s->server);
    arena_done(&s->memory);
    virtual_loop_free(s->time);
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

/* ── under limits ──────────────────────────────────────────────────────────────────────────── */

#define LIMITS "/apis/repairman.k8s.io/v1/maintenancelimits"

/* A limit that was not there when the leader before granted n1. */
static void make_limit(struct story *s, const char *spec)
{
    static const char *const crds[] = { "crds/maintenancelimits.repairman.k8s.io.yaml",
                                        "crds/maintenancerequests.repairman.k8s.io.yaml",
                                        "crds/maintenanceselectors.repairman.k8s.io.yaml" };
    for (size_t i = 0; i < ARRAY_LEN(crds); i++) {
        struct apiserver_reply reply = { 0 };
        struct apiserver_request request = {
            .method = STR("POST"),
            .path = STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
            .content_type = STR("application/yaml"),
            .body = check_data(crds[i]),
        };
        apiserver_handle(s->server, &request, &s->memory, &reply);
        CHECK_EQ(reply.status, 201);
    }
    CHECK_EQ(send(s, "POST", LIMITS,
                  arena_printf(&s->memory,
                               "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":"
                               "\"MaintenanceLimit\",\"metadata\":{\"name\":\"node\"},"
                               "\"spec\":%s}",
                               spec)),
             201);
    s->limits = true;
}

static const struct jval *limit_status(struct story *s)
{
    return jval_get(apiserver_find(s->server, STR("repairman.k8s.io"), STR("maintenancelimits"),
                                   STR(""), STR("node")),
                    STR("status"));
}

static uint32_t reserved(struct story *s)
{
    const struct jval *list = jval_get(limit_status(s), STR("reservations"));
    return jval_kind(list) == JARR ? list->n : 0;
}

/* An inherited grant is not in force: it goes on when the new limit allows it, with a reservation.
 */
TEST(takeover_asks_a_limit_that_came_after_the_grant)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "for-q", "for-q");
    make_limit(&s, "{\"limit\":100}");
    lead(&s, "b_1");
    CHECK(goes_by(&s, "n1", "q"));
    CHECK_EQ(fence_of(&s, "n1").n, 0);
    CHECK_EQ(reserved(&s), 1);
    CHECK(jval_get(limit_status(&s), STR("lastGrantTime")) != NULL);
}

/* Neither does it enter the ledger above the limit, nor go without it: what may still arrive is
 * shut out, and it waits like all others. */
TEST(takeover_shuts_out_a_grant_that_a_limit_refuses)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "for-q", "other");
    make_limit(&s, "{\"limit\":0,\"minimum\":0}");
    struct str version = version_of(&s, "n1");
    lead(&s, "b_1");
    CHECK(str_eq(fence_of(&s, "n1"), version));
    CHECK(!goes_by(&s, "n1", "q"));
    CHECK_EQ(reserved(&s), 0);
    CHECK_EQ(send(&s, "PATCH", LIMITS "/node", STR("{\"spec\":{\"limit\":100}}")), 200);
    run(&s, SECONDS(10));
    CHECK(goes_by(&s, "n1", "q"));
    CHECK_EQ(reserved(&s), 1);
}

/* As the leader before would: n1 goes into maintenance by q. */
static void arrive_late(struct story *s)
{
    CLEANUP(buf_done)
    struct buf data = { 0 };
    CLEANUP(buf_done)
    struct buf patch = { 0 };
    struct str text =
        jval_str(jval_get(jval_at(node_of(s, "n1"), "metadata.annotations"), KEY_DATA));
    struct str head;
    struct str tail;
    struct str rest;
    CHECK(str_cut(text, STR("\"q\":{"), &head, &tail));
    buf_printf(&data, STR_FMT "\"q\":{", STR_ARG(head));
    CHECK(str_cut(tail, STR("\"Current\":\"maintenance-required\""), &head, &rest));
    buf_printf(&data, STR_FMT "\"Current\":\"in-maintenance\"" STR_FMT, STR_ARG(head),
               STR_ARG(rest));
    struct json_writer w = json_writer_on(&patch);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_key(&w, STR("annotations"));
    jw_obj(&w);
    jw_key(&w, KEY_DATA);
    jw_str(&w, buf_str(&data));
    jw_obj_end(&w);
    jw_key(&w, STR("labels"));
    jw_obj(&w);
    jw_pair(&w, "cloud.sap/maintenance-state", STR("in-maintenance"));
    jw_obj_end(&w);
    jw_obj_end(&w);
    jw_obj_end(&w);
    CHECK_EQ(send(s, "PATCH", "/api/v1/nodes/n1", buf_str(&patch)), 200);
}

static bool is_expected(struct story *s)
{
    const struct store_item *item = store_find(&s->c->core->nodes.store, STR("n1"));
    const struct managed_node *m = item != NULL ? item->extra : NULL;
    return m != NULL && m->inherited;
}

/* Then it is a fact, whatever the limit says. */
TEST(takeover_reserves_for_a_grant_that_arrives_after_all)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "for-q", "other");
    make_limit(&s, "{\"limit\":0,\"minimum\":0}");
    begin(&s, "b_1");
    while (!is_expected(&s)) {
        CHECK(virtual_loop_step(s.time, MINUTES(10)));
    }
    CHECK_EQ(reserved(&s), 0);
    arrive_late(&s);
    run(&s, SECONDS(10));
    CHECK(goes_by(&s, "n1", "q"));
    CHECK_EQ(fence_of(&s, "n1").n, 0);
    CHECK_EQ(reserved(&s), 1);
}
