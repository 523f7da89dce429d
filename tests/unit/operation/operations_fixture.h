/*
 * operations_fixture: a simulated cluster with requests and operations on it, for tests.
 *
 * Time stands still between operations_run calls. What a test creates is YAML, as a person would
 * write it.
 */
#pragma once

#include "format/json_writer.h"
#include "format/yaml.h"
#include "kinds/crd.h"
#include "kinds/keys.h"
#include "operation/operations.h"
#include "request/requests_part.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/world/world.h"
#include "tests/check.h"
#include "tests/lib/rights_judge.h"
#include "tests/unit/operation/denied_api.h"

/* 2026-01-05T00:00:00Z, a Monday */
#define OPERATIONS_WALL SECONDS(1767571200)

struct operations_fixture {
    struct virtual_loop *time;
    struct apiserver *server;
    struct world *world;
    struct faults faults;
    struct api *api;
    struct denied_api door;     /* its `path` is what the controller may not reach */
    struct rights_judge *judge; /* of what the controller asks for; NULL: it may do everything */
    struct core *core;
    struct requests_part requests;
    struct operations *operations;
    struct operations_config config;
    struct metrics *metrics; /* may be NULL */
    struct arena memory;
    /* Watched at every commit. */
    uint32_t cordoned_most; /* nodes that a visit had cordoned at once */
    uint32_t cordoned;
    uint32_t jobs_made;
    uint32_t reboots;
    uint32_t requests_made;
    uint32_t state_writes; /* of NodeStates' status */
};

static inline struct str operations_http(struct operations_fixture *x, int status,
                                         const char *method, const char *path, struct str body)
{
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
        .user_agent = STR("person"),
        .body = body,
    };
    struct apiserver_reply reply;
    apiserver_handle(x->server, &request, &x->memory, &reply);
    if (status != 0 && reply.status != status) {
        check_fail(__FILE__, __LINE__, "%s %s: %d " STR_FMT, method, path, reply.status,
                   STR_ARG(reply.body));
    }
    return reply.body;
}

static inline struct str operations_json(struct operations_fixture *x, struct str yaml)
{
    struct ydoc doc = { 0 };
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    if (ydoc_parse(yaml, &x->memory, &doc, &err) != 0) {
        check_fail(__FILE__, __LINE__, "%s", err.msg);
    }
    struct json_writer w = json_writer_on(&json);
    jw_val(&w, doc.root);
    return arena_str(&x->memory, buf_str(&json));
}

/* Kind and name, then the spec in YAML. */
static inline void operations_create(struct operations_fixture *x, const char *kind,
                                     const char *plural, const char *name, const char *spec)
{
    struct str yaml = arena_printf(&x->memory,
                                   "apiVersion: drydock.dev/v1alpha1\nkind: %s\n"
                                   "metadata: {name: %s}\nspec:\n%s",
                                   kind, name, spec);
    (void)operations_http(x, 201, "POST", arena_printf(&x->memory, OPERATION_PATH "/%s", plural).p,
                          operations_json(x, yaml));
}

static inline void operations_maintain(struct operations_fixture *x, const char *name,
                                       const char *spec)
{
    operations_create(x, "NodeMaintenance", "nodemaintenances", name, spec);
}

static inline void operations_patch(struct operations_fixture *x, const char *name,
                                    const char *patch)
{
    (void)operations_http(x, 200, "PATCH",
                          arena_printf(&x->memory, NODE_MAINTENANCES_PATH "/%s", name).p,
                          str_from(patch));
}

static inline const struct jval *operations_find(struct operations_fixture *x, const char *name)
{
    return apiserver_find(x->server, STR(OPERATION_GROUP), STR("nodemaintenances"), STR(""),
                          str_from(name));
}

static inline struct str operations_text(struct operations_fixture *x, const char *name,
                                         const char *path)
{
    return jval_str(jval_at(operations_find(x, name), path));
}

static inline int64_t operations_number(struct operations_fixture *x, const char *name,
                                        const char *path)
{
    int64_t n = -1;
    (void)jval_i64(jval_at(operations_find(x, name), path), &n); /* -1: it is not there */
    return n;
}

/* "status/reason" of a condition. */
static inline struct str operations_condition(struct operations_fixture *x, const char *name,
                                              const char *type)
{
    JVAL_EACH (jval_at(operations_find(x, name), "status.conditions"), c) {
        if (str_eq(jval_str(jval_get(c, STR("type"))), str_from(type))) {
            return arena_printf(&x->memory, STR_FMT "/" STR_FMT,
                                STR_ARG(jval_str(jval_get(c, STR("status")))),
                                STR_ARG(jval_str(jval_get(c, STR("reason")))));
        }
    }
    return STR_NONE;
}

/* The message of a condition. */
static inline struct str operations_message(struct operations_fixture *x, const char *name,
                                            const char *type)
{
    JVAL_EACH (jval_at(operations_find(x, name), "status.conditions"), c) {
        if (str_eq(jval_str(jval_get(c, STR("type"))), str_from(type))) {
            return jval_str(jval_get(c, STR("message")));
        }
    }
    return STR_NONE;
}

static inline const struct jval *operations_node(struct operations_fixture *x, const char *name)
{
    return apiserver_find(x->server, STR(""), STR("nodes"), STR(""), str_from(name));
}

static inline const struct jval *operations_state(struct operations_fixture *x, const char *name)
{
    return apiserver_find(x->server, STR(OPERATION_GROUP), STR("nodestates"), OPERATIONS_NAMESPACE,
                          str_from(name));
}

static inline bool operations_is_cordoned(struct operations_fixture *x, const char *node)
{
    return jval_bool(jval_at(operations_node(x, node), "spec.unschedulable"), false);
}

static inline uint32_t operations_count(struct operations_fixture *x, const char *group,
                                        const char *plural)
{
    return (uint32_t)apiserver_count(x->server, str_from(group), str_from(plural));
}

static inline void operations_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct operations_fixture *x = ctx;
    bool made = commit->old == NULL && commit->now != NULL;
    if (str_eq(commit->plural, STR("nodes"))) {
        const struct jval *was = jval_at(commit->old, "metadata.annotations");
        const struct jval *is = jval_at(commit->now, "metadata.annotations");
        x->cordoned -= jval_get(was, KEY_VISIT_CORDON) != NULL ? 1 : 0;
        x->cordoned += jval_get(is, KEY_VISIT_CORDON) != NULL ? 1 : 0;
        x->cordoned_most = MAX(x->cordoned_most, x->cordoned);
        struct str before = jval_str(jval_at(commit->old, "status.nodeInfo.bootID"));
        struct str after = jval_str(jval_at(commit->now, "status.nodeInfo.bootID"));
        x->reboots += before.n > 0 && after.n > 0 && !str_eq(before, after) ? 1 : 0;
    } else if (str_eq(commit->plural, STR("jobs"))) {
        x->jobs_made += made ? 1 : 0;
    } else if (str_eq(commit->plural, STR("maintenancerequests"))) {
        x->requests_made += made ? 1 : 0;
    } else if (str_eq(commit->plural, STR("nodestates"))) {
        x->state_writes += !made ? 1 : 0;
    }
}

/* What a failing test shows. */
static inline void operations_dump(struct operations_fixture *x, const char *name, const char *node)
{
    const struct jval *objects[] = { jval_at(operations_find(x, name), "status"),
                                     jval_at(operations_state(x, node), "status"),
                                     jval_at(operations_node(x, node), "metadata.annotations") };
    for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
        CLEANUP(buf_done)
        struct buf json = { 0 };
        struct json_writer w = json_writer_on(&json);
        if (objects[i] != NULL) {
            jw_val(&w, objects[i]);
        }
        (void)fprintf(stderr, "%.*s\n", (int)json.n, json.p);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static inline void operations_start(struct operations_fixture *x)
{
    struct loop *loop = virtual_loop_root(x->time);
    x->api = sim_api_new(loop, x->server, &x->faults);
    denied_api_init(&x->door, x->judge == NULL ? x->api : rights_judge_open(x->judge, x->api));
    x->core = core_new(&(struct core_config){
        .loop = loop,
        .api = &x->door.api,
        .metrics = x->metrics,
        .identity = STR("drydock_1"),
        .use_limits = true,
        .limits = { .namespace = STR("default") },
    });
    requests_part_init(&x->requests, x->core,
                       &(struct requests_config){ .skew_tolerance = SECONDS(5) });
    x->operations = operations_new(x->core, &x->config);
    core_start(x->core);
}

static inline void operations_crash(struct operations_fixture *x)
{
    operations_check(x->operations);
    operations_free(x->operations);
    requests_part_done(&x->requests);
    core_free(x->core);
    sim_api_free(x->api);
}

static inline void operations_run(struct operations_fixture *x, usec_t duration)
{
    (void)virtual_loop_run(x->time, virtual_loop_now(x->time) + duration);
}

static inline void operations_begin(struct operations_fixture *x, uint32_t nodes)
{
    static const char *const namespaces[] = { "drydock-system", "drydock-jobs" };
    *x = (struct operations_fixture){ 0 };
    x->config.runner_image = STR("drydock:test");
    x->config.unlimited_visits = 0;
    x->time = virtual_loop_new(7, OPERATIONS_WALL);
    x->server = apiserver_new(virtual_loop_root(x->time), 7);
    x->world = world_new(virtual_loop_root(x->time), x->server,
                         &(struct world_config){ .seed = 7, .nodes = nodes, .zones = 2 });
    apiserver_on_commit_check(x->server, operations_on_commit, x);
    faults_init(&x->faults, 7);
    for (size_t i = 0; i < crds_count + operation_crds_count; i++) {
        const struct asset *crd = i < crds_count ? &crds[i] : &operation_crds[i - crds_count];
        CLEANUP(buf_done)
        struct buf json = { 0 };
        struct json_writer w = json_writer_on(&json);
        jw_val(&w, crd_object(crd, &x->memory));
        (void)operations_http(x, 201, "POST",
                              "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                              buf_str(&json));
    }
    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
        (void)operations_http(
            x, 201, "POST", "/api/v1/namespaces",
            arena_printf(&x->memory, "{\"metadata\":{\"name\":\"%s\"}}", namespaces[i]));
    }
    operations_start(x);
    operations_run(x, SECONDS(5));
}

static inline void operations_end(struct operations_fixture *x)
{
    operations_crash(x);
    faults_done(&x->faults);
    world_free(x->world);
    apiserver_free(x->server);
    arena_done(&x->door.memory);
    arena_done(&x->memory);
    CHECK_EQ(virtual_loop_armed(x->time), 0);
    virtual_loop_free(x->time);
}
