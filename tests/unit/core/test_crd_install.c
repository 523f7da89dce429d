#include "core/crd_install.h"

#include "format/json_tree.h"
#include "kinds/crd.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/fake_api.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

#define PATH STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")

struct crd_install_fixture {
    struct virtual_loop *time;
    struct apiserver *server;
    struct api *door;
    struct client client;
    struct crd_install *install;
    struct arena memory;
    uint32_t created;
    uint32_t changed;
    uint32_t done;
    struct err err;
};

static void on_done(void *ctx, const struct err *err)
{
    struct crd_install_fixture *s = ctx;
    s->done++;
    s->err = err != NULL ? *err : (struct err){ 0 };
}

static void on_written(void *ctx, struct str name, bool created)
{
    struct crd_install_fixture *s = ctx;
    CHECK(str_ends(name, STR(".repairman.k8s.io")) || str_ends(name, STR(".drydock.dev")));
    s->created += created ? 1 : 0;
    s->changed += created ? 0 : 1;
}

static void crd_install_fixture_install(struct crd_install_fixture *s)
{
    crd_install_free(s->install);
    s->created = 0;
    s->changed = 0;
    s->done = 0;
    s->install = crd_install_new(&(struct crd_install_config){
        .client = &s->client,
        .on_done = on_done,
        .on_written = on_written,
        .ctx = s,
    });
}

static void crd_install_fixture_begin(struct crd_install_fixture *s)
{
    *s = (struct crd_install_fixture){ .time = virtual_loop_new(1, WALL) };
    s->server = apiserver_new(virtual_loop_root(s->time), 1);
    s->door = sim_api_new(virtual_loop_root(s->time), s->server, NULL);
    client_init(&s->client, virtual_loop_root(s->time), s->door);
}

static void crd_install_fixture_end(struct crd_install_fixture *s)
{
    crd_install_free(s->install);
    sim_api_free(s->door);
    apiserver_free(s->server);
    virtual_loop_free(s->time);
    arena_done(&s->memory);
}

static void crd_install_fixture_run(struct crd_install_fixture *s)
{
    usec_t until = virtual_loop_now(s->time) + MINUTES(1);
    while (s->done == 0 && virtual_loop_step(s->time, until)) {
    }
    CHECK_EQ(s->done, 1);
}

static void crd_install_fixture_patch(struct crd_install_fixture *s, const char *name,
                                      const char *patch)
{
    struct apiserver_reply reply;
    apiserver_handle(s->server,
                     &(struct apiserver_request){
                         .method = STR("PATCH"),
                         .path = arena_printf(&s->memory, STR_FMT "/%s", STR_ARG(PATH), name),
                         .content_type = API_MERGE_PATCH,
                         .body = str_from(patch),
                     },
                     &s->memory, &reply);
    CHECK_EQ(reply.status, 200);
}

TEST(install_creates_what_is_missing_and_waits_until_it_is_served)
{
    struct crd_install_fixture s;
    crd_install_fixture_begin(&s);
    crd_install_fixture_install(&s);
    crd_install_fixture_run(&s);
    CHECK_STR(s.err.msg, "");
    CHECK_EQ(s.created, crd_count());
    CHECK_EQ(s.changed, 0);
    CHECK_EQ(
        apiserver_count(s.server, STR("apiextensions.k8s.io"), STR("customresourcedefinitions")),
        crd_count());
    struct apiserver_reply reply;
    apiserver_handle(s.server,
                     &(struct apiserver_request){
                         .method = STR("GET"),
                         .path = STR("/apis/repairman.k8s.io/v1/maintenancerequests"),
                     },
                     &s.memory, &reply);
    CHECK_EQ(reply.status, 200);
    crd_install_fixture_end(&s);
}

TEST(install_writes_nothing_the_second_time)
{
    struct crd_install_fixture s;
    crd_install_fixture_begin(&s);
    crd_install_fixture_install(&s);
    crd_install_fixture_run(&s);
    uint64_t version = apiserver_resource_version(s.server);
    crd_install_fixture_install(&s);
    crd_install_fixture_run(&s);
    CHECK_STR(s.err.msg, "");
    CHECK_EQ(s.created + s.changed, 0);
    CHECK_EQ(apiserver_resource_version(s.server), version);
    crd_install_fixture_end(&s);
}

/* A column that somebody took away comes back, a label that somebody gave stays. */
TEST(install_brings_an_old_one_up_to_date)
{
    struct crd_install_fixture s;
    crd_install_fixture_begin(&s);
    crd_install_fixture_install(&s);
    crd_install_fixture_run(&s);
    crd_install_fixture_patch(&s, "maintenancelimits.repairman.k8s.io",
                              "{\"metadata\":{\"labels\":{\"owner\":\"me\"}},"
                              "\"spec\":{\"names\":{\"shortNames\":[\"ml\"]}}}");
    crd_install_fixture_install(&s);
    crd_install_fixture_run(&s);
    CHECK_STR(s.err.msg, "");
    CHECK_EQ(s.created, 0);
    CHECK_EQ(s.changed, 1);
    const struct jval *crd =
        apiserver_find(s.server, STR("apiextensions.k8s.io"), STR("customresourcedefinitions"),
                       STR_NONE, STR("maintenancelimits.repairman.k8s.io"));
    CHECK_STR(jval_str(jval_first(jval_at(crd, "spec.names.shortNames"))), "mlimit");
    CHECK_STR(jval_str(jval_at(crd, "metadata.labels.owner")), "me");
    crd_install_fixture_end(&s);
}

/* Annotations of others, such as kubectl's, stay and are no difference. */
TEST(install_leaves_annotations_of_others)
{
    struct crd_install_fixture s;
    crd_install_fixture_begin(&s);
    crd_install_fixture_install(&s);
    crd_install_fixture_run(&s);
    crd_install_fixture_patch(&s, "maintenancelimits.repairman.k8s.io",
                              "{\"metadata\":{\"annotations\":{\"owner\":\"me\"}}}");
    crd_install_fixture_install(&s);
    crd_install_fixture_run(&s);
    CHECK_EQ(s.created + s.changed, 0);
    const struct jval *crd =
        apiserver_find(s.server, STR("apiextensions.k8s.io"), STR("customresourcedefinitions"),
                       STR_NONE, STR("maintenancelimits.repairman.k8s.io"));
    CHECK_STR(jval_str(jval_at(crd, "metadata.annotations.owner")), "me");
    crd_install_fixture_end(&s);
}

/* ── a server played by hand ───────────────────────────────────────────────────────────────── */

struct crd_install_faults {
    struct crd_install_fixture scene; /* first: the context of on_done */
    struct fake_api api;
};

static void crd_install_faults_begin(struct crd_install_faults *p)
{
    *p = (struct crd_install_faults){ .scene = { .time = virtual_loop_new(1, WALL) } };
    fake_api_init(&p->api);
    client_init(&p->scene.client, virtual_loop_root(p->scene.time), &p->api.api);
    crd_install_fixture_install(&p->scene);
}

static void crd_install_faults_end(struct crd_install_faults *p)
{
    crd_install_free(p->scene.install);
    fake_api_done(&p->api);
    virtual_loop_free(p->scene.time);
    arena_done(&p->scene.memory);
}

static struct fake_call *crd_install_faults_next(struct crd_install_faults *p)
{
    usec_t until = virtual_loop_now(p->scene.time) + MINUTES(1);
    while (fake_call_first(&p->api) == NULL && virtual_loop_step(p->scene.time, until)) {
    }
    CHECK(fake_call_first(&p->api) != NULL);
    return fake_call_first(&p->api);
}

TEST(install_says_what_is_forbidden)
{
    struct crd_install_faults p;
    crd_install_faults_begin(&p);
    fake_call_reply(&p.api, crd_install_faults_next(&p), 404, STR("{}"));
    struct fake_call *call = crd_install_faults_next(&p);
    CHECK_EQ(call->verb, API_POST);
    CHECK_STR(call->path, PATH);
    fake_call_reply(&p.api, call, 403, STR("{\"message\":\"crds are forbidden\"}"));
    CHECK_EQ(p.scene.done, 1);
    CHECK_EQ(p.scene.err.code, ERR_DENIED);
    CHECK_STR(p.scene.err.msg, "CRD 'maintenancelimits.repairman.k8s.io' cannot be created: the "
                               "server answered 403: crds are forbidden");
    crd_install_faults_end(&p);
}

TEST(install_looks_again_after_a_conflict_and_after_trouble)
{
    struct crd_install_faults p;
    crd_install_faults_begin(&p);
    fake_call_reply(&p.api, crd_install_faults_next(&p), 503, STR("{}"));
    CHECK_EQ(p.scene.done, 0);
    fake_call_reply(&p.api, crd_install_faults_next(&p), 404, STR("{}"));
    fake_call_reply(&p.api, crd_install_faults_next(&p), 409, STR("{}"));
    struct fake_call *call = crd_install_faults_next(&p);
    CHECK_EQ(call->verb, API_GET);
    fake_call_reply(&p.api, call, 200,
                    STR("{\"metadata\":{\"resourceVersion\":\"7\"},"
                        "\"spec\":{\"preserveUnknownFields\":true,\"scope\":\"Cluster\"}}"));
    call = crd_install_faults_next(&p);
    CHECK_EQ(call->verb, API_PATCH);
    const struct jval *patch = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(call->body, 0, &p.scene.memory, &patch, &err), 0);
    CHECK_STR(jval_str(jval_at(patch, "metadata.resourceVersion")), "7");
    CHECK(!jval_bool(jval_at(patch, "spec.preserveUnknownFields"), true));
    crd_install_faults_end(&p);
}
