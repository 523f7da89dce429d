/*
 * arbiter_fixture: a simulated cluster without kubelets, with one or two arbiters in it, for tests.
 *
 * After every write to a limit it is checked that no more is reserved than the test allows, and
 * after every write to a target lock that nobody else had it.
 */
#pragma once

#include "kube/node.h"
#include "kube/reflector.h"
#include "ledger/arbiter.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

#define FIXTURE_CONTROLLERS 2u
#ifndef FIXTURE_ASKS
#define FIXTURE_ASKS 64u
#endif
#define FIXTURE_START SECONDS(1767323045) /* 2026-01-02T03:04:05Z */

struct fixture_ask {
    struct fixture_controller *controller;
    struct ask *ask;
    uint32_t changes;
    bool free_when_ended;
    bool checked;
    struct err check;
};

/* One controller: its nodes, its arbiter, what it asks for. */
struct fixture_controller {
    struct node_keep keep; /* first: the store's context */
    struct arbiter_fixture *fixture;
    struct loop *loop;
    struct api *door;
    struct client client;
    struct recorder recorder;
    struct intern labels;
    struct store nodes;
    struct reflector reflector;
    struct arbiter *arbiter;
    struct arbiter_config config;
    struct fixture_ask asks[FIXTURE_ASKS];
    bool may_act;
    bool marked; /* something of every request is still to be undone */
};

struct arbiter_fixture {
    struct virtual_loop *v;
    struct apiserver *server;
    struct faults faults;
    struct fixture_controller controllers[FIXTURE_CONTROLLERS];
    struct arena memory;
    uint32_t most;        /* reservations in any limit, at any time; UINT32_MAX: not looked at */
    uint32_t seen;        /* the most there ever was */
    uint64_t writes;      /* to limits */
    uint64_t lock_steals; /* a lock that changed its holder without being deleted */
};

static inline struct str fixture_api(struct arbiter_fixture *c, int status, const char *method,
                                     const char *path, const char *body)
{
    bool patch = str_eq(str_from(method), STR("PATCH"));
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = patch            ? STR("application/merge-patch+json")
                        : body[0] == '{' ? STR("application/json")
                                         : STR("application/yaml"),
        .body = str_from(body),
    };
    struct apiserver_reply reply;
    apiserver_handle(c->server, &request, &c->memory, &reply);
    if (reply.status != status) {
        check_fail(__FILE__, __LINE__, "%s %s: %d " STR_FMT, method, path, reply.status,
                   STR_ARG(reply.body));
    }
    return reply.body;
}

static inline const struct jval *fixture_json(struct arbiter_fixture *c, struct str text)
{
    const struct jval *v = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(text, 0, &c->memory, &v, &err), 0);
    return v;
}

static inline void fixture_crds(struct arbiter_fixture *c)
{
    static const char *const names[] = { "maintenancelimits", "maintenancerequests",
                                         "maintenanceselectors" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct str file = arena_printf(&c->memory, "crds/%s.repairman.k8s.io.yaml", names[i]);
        fixture_api(c, 201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                    check_data(file.p).p);
    }
}

#define FIXTURE_LIMITS "/apis/repairman.k8s.io/v1/maintenancelimits"

static inline void fixture_limit(struct arbiter_fixture *c, const char *name, const char *spec)
{
    fixture_api(
        c, 201, "POST", FIXTURE_LIMITS,
        arena_printf(&c->memory,
                     "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceLimit\","
                     "\"metadata\":{\"name\":\"%s\"}%s%s}",
                     name, spec[0] == '\0' ? "" : ",\"spec\":", spec)
            .p);
}

static inline void fixture_patch_limit(struct arbiter_fixture *c, const char *name,
                                       const char *patch)
{
    fixture_api(c, 200, "PATCH", arena_printf(&c->memory, FIXTURE_LIMITS "/%s", name).p, patch);
}

static inline void fixture_delete_limit(struct arbiter_fixture *c, const char *name)
{
    fixture_api(c, 200, "DELETE", arena_printf(&c->memory, FIXTURE_LIMITS "/%s", name).p, "");
}

/* `labels` is JSON, or NULL. */
static inline void fixture_node(struct arbiter_fixture *c, const char *name, const char *labels)
{
    fixture_api(
        c, 201, "POST", "/api/v1/nodes",
        arena_printf(&c->memory,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\","
                     "\"labels\":%s}}",
                     name, labels != NULL ? labels : "{}")
            .p);
}

static inline void fixture_nodes(struct arbiter_fixture *c, uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++) {
        fixture_node(c, arena_printf(&c->memory, "n%u", i).p, NULL);
    }
}

static inline void fixture_patch_node(struct arbiter_fixture *c, const char *name,
                                      const char *patch)
{
    fixture_api(c, 200, "PATCH", arena_printf(&c->memory, "/api/v1/nodes/%s", name).p, patch);
}

static inline void fixture_ready(struct arbiter_fixture *c, const char *name, const char *status)
{
    fixture_api(
        c, 200, "PATCH", arena_printf(&c->memory, "/api/v1/nodes/%s/status", name).p,
        arena_printf(&c->memory,
                     "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
                     status)
            .p);
}

static inline const struct jval *fixture_status(struct arbiter_fixture *c, const char *limit)
{
    const struct jval *object = apiserver_find(c->server, STR("repairman.k8s.io"),
                                               STR("maintenancelimits"), STR(""), str_from(limit));
    CHECK(object != NULL);
    return jval_get(object, STR("status"));
}

static inline int64_t fixture_number(struct arbiter_fixture *c, const char *limit,
                                     const char *field)
{
    int64_t n = -1;
    (void)jval_i64(jval_get(fixture_status(c, limit), str_from(field)), &n); /* -1: absent */
    return n;
}

static inline uint32_t fixture_reserved(struct arbiter_fixture *c, const char *limit)
{
    const struct jval *list = jval_get(fixture_status(c, limit), STR("reservations"));
    return jval_kind(list) == JARR ? list->n : 0;
}

static inline struct str fixture_condition(struct arbiter_fixture *c, const char *limit,
                                           const char *type, const char *field)
{
    JVAL_EACH (jval_get(fixture_status(c, limit), STR("conditions")), item) {
        if (str_eq(jval_str(jval_get(item, STR("type"))), str_from(type))) {
            return jval_str(jval_get(item, str_from(field)));
        }
    }
    return STR_NONE;
}

static inline void fixture_count_lock(void *ctx, const struct jval *lease)
{
    uint32_t *n = ctx;
    *n += str_starts(jval_str(jval_at(lease, "metadata.name")), STR("target-")) ? 1 : 0;
}

static inline uint32_t fixture_locks(struct arbiter_fixture *c)
{
    uint32_t n = 0;
    apiserver_each(c->server, STR("coordination.k8s.io"), STR("leases"), STR("drydock"),
                   fixture_count_lock, &n);
    return n;
}

struct fixture_search {
    const char *reason;
    uint32_t found;
    struct str note;
};

static inline void fixture_search_event(void *ctx, const struct jval *event)
{
    struct fixture_search *search = ctx;
    if (str_eq(jval_str(jval_at(event, "reason")), str_from(search->reason))) {
        search->found++;
        search->note = jval_str(jval_at(event, "message"));
    }
}

static inline uint32_t fixture_events(struct arbiter_fixture *c, const char *reason,
                                      struct str *ret_note)
{
    struct fixture_search search = { .reason = reason };
    apiserver_each(c->server, STR(""), STR("events"), STR(""), fixture_search_event, &search);
    if (ret_note != NULL) {
        *ret_note = arena_str(&c->memory, search.note);
    }
    return search.found;
}

/* ── seats ─────────────────────────────────────────────────────────────────────────────────── */

static inline bool controller_may_act(void *ctx)
{
    const struct fixture_controller *s = ctx;
    return s->may_act && s->reflector.synced && !s->reflector.failing;
}

static inline usec_t controller_wall(void *ctx)
{
    const struct fixture_controller *s = ctx;
    return loop_wall(s->loop);
}

static inline void controller_on_change(void *ctx, struct store_item *item, const void *before)
{
    struct fixture_controller *s = ctx;
    arbiter_on_node(s->arbiter, item, before, /* gone= */ false);
}

static inline void controller_on_gone(void *ctx, struct store_item *item)
{
    struct fixture_controller *s = ctx;
    arbiter_on_node(s->arbiter, item, item->object, /* gone= */ true);
}

static inline void controller_on_list(void *ctx)
{
    struct fixture_controller *s = ctx;
    store_list_begin(&s->nodes);
}

static inline int controller_on_object(void *ctx, const struct jval *object, bool deleted,
                                       struct err *err)
{
    struct fixture_controller *s = ctx;
    return store_observe(&s->nodes, object, deleted, err);
}

static inline bool controller_on_synced(void *ctx, uint64_t version)
{
    struct fixture_controller *s = ctx;
    bool good = store_list_end(&s->nodes, version);
    arbiter_wake(s->arbiter);
    return good;
}

static inline void controller_on_error(void *ctx, const struct err *err UNUSED, bool bad UNUSED)
{
    struct fixture_controller *s = ctx;
    arbiter_wake(s->arbiter);
}

/* A controller starts. What `config` says besides the doors is taken over. */
static inline struct fixture_controller *
fixture_start_controller(struct arbiter_fixture *c, uint32_t i, const struct arbiter_config *config)
{
    struct fixture_controller *s = &c->controllers[i];
    *s = (struct fixture_controller){ .fixture = c, .may_act = true };
    s->loop = virtual_loop_root(c->v);
    s->door = sim_api_new(s->loop, c->server, &c->faults);
    client_init(&s->client, s->loop, s->door);
    recorder_init(&s->recorder, &s->client, STR("maintenance"), STR("maintenance-test"));
    intern_init(&s->labels, 1, 2);
    s->keep = (struct node_keep){ .labels = &s->labels };
    store_init(&s->nodes, &node_kind, s, 3);
    s->config = config != NULL ? *config : (struct arbiter_config){ 0 };
    s->config.client = &s->client;
    s->config.recorder = &s->recorder;
    s->config.nodes = &s->nodes;
    s->config.namespace = STR("drydock");
    s->config.may_act = controller_may_act;
    s->config.wall = controller_wall;
    s->config.ctx = s;
    s->arbiter = arbiter_new(&s->config);
    s->nodes.on_change = controller_on_change;
    s->nodes.on_gone = controller_on_gone;
    reflector_init(&s->reflector, &s->client,
                   &(struct reflector_config){ .path = STR("/api/v1/nodes"),
                                               .on_list = controller_on_list,
                                               .on_object = controller_on_object,
                                               .on_synced = controller_on_synced,
                                               .on_error = controller_on_error,
                                               .ctx = s });
    reflector_start(&s->reflector);
    return s;
}

/* Like a crash. */
static inline void controller_crash(struct fixture_controller *s)
{
    for (uint32_t i = 0; i < FIXTURE_ASKS; i++) {
        ask_free(s->asks[i].ask);
    }
    reflector_done(&s->reflector);
    s->nodes.on_gone = NULL;
    arbiter_free(s->arbiter);
    store_done(&s->nodes);
    intern_done(&s->labels);
    recorder_done(&s->recorder);
    sim_api_free(s->door);
    *s = (struct fixture_controller){ 0 };
}

static inline void controller_on_ask_change(void *ctx)
{
    struct fixture_ask *one = ctx;
    one->changes++;
    if (one->free_when_ended && ask_stage(one->ask) == ASK_ENDED) {
        ask_free(STEAL(one->ask));
    }
}

static inline struct ask_spec controller_spec(struct fixture_controller *s, uint32_t i,
                                              const char *node)
{
    return (struct ask_spec){
        .owner = ASK_OF_REQUEST,
        .uid = arena_printf(&s->fixture->memory, "uid-%02u", i),
        .name = arena_printf(&s->fixture->memory, "mr-%02u", i),
        .type = TARGET_NODE,
        .target = str_from(node),
        .since = FIXTURE_START + SECONDS(i),
        .state = STR("Preparing"),
    };
}

static inline struct ask *controller_ask_spec(struct fixture_controller *s, uint32_t i,
                                              const struct ask_spec *spec)
{
    CHECK(s->asks[i].ask == NULL);
    s->asks[i] = (struct fixture_ask){ .controller = s };
    s->asks[i].ask = ask_new(s->arbiter, spec, controller_on_ask_change, &s->asks[i]);
    return s->asks[i].ask;
}

static inline struct ask *controller_ask(struct fixture_controller *s, uint32_t i, const char *node)
{
    struct ask_spec spec = controller_spec(s, i, node);
    return controller_ask_spec(s, i, &spec);
}

static inline void controller_end(struct fixture_controller *s, uint32_t i)
{
    s->asks[i].free_when_ended = true;
    ask_close_grants_below(s->asks[i].ask, ASK_GRANTS_ALL);
    ask_end(s->asks[i].ask);
}

static inline void controller_on_checked(void *ctx, const struct err *err)
{
    struct fixture_ask *one = ctx;
    one->checked = true;
    one->check = err != NULL ? *err : (struct err){ 0 };
}

static inline struct ask_view controller_view(struct fixture_controller *s, uint32_t i)
{
    struct ask_view v;
    ask_view(s->asks[i].ask, &v);
    return v;
}

static inline uint64_t controller_sent(struct fixture_controller *s, const char *resource,
                                       enum sim_api_verb verb)
{
    uint32_t n;
    const struct sim_api_count *tallies = sim_api_counts(s->door, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(tallies[i].resource, str_from(resource))) {
            return tallies[i].sent[verb];
        }
    }
    return 0;
}

/* ── the world ─────────────────────────────────────────────────────────────────────────────── */

static inline void fixture_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct arbiter_fixture *c = ctx;
    if (str_eq(commit->plural, STR("maintenancelimits"))) {
        const struct jval *list = jval_at(commit->now, "status.reservations");
        uint32_t n = jval_kind(list) == JARR ? list->n : 0;
        c->writes++;
        c->seen = MAX(c->seen, n);
        if (n > c->most) {
            check_fail(__FILE__, __LINE__, "%u reservations, at most %u", n, c->most);
        }
    }
    if (str_eq(commit->plural, STR("leases")) && commit->old != NULL && commit->now != NULL) {
        c->lock_steals += str_eq(jval_str(jval_at(commit->old, "spec.holderIdentity")),
                                 jval_str(jval_at(commit->now, "spec.holderIdentity")))
                              ? 0
                              : 1;
    }
}

static inline void fixture_begin(struct arbiter_fixture *c)
{
    *c = (struct arbiter_fixture){ .v = virtual_loop_new(7, FIXTURE_START), .most = UINT32_MAX };
    c->server = apiserver_new(virtual_loop_root(c->v), 7);
    faults_init(&c->faults, 7);
    apiserver_on_commit_check(c->server, fixture_on_commit, c);
    fixture_api(
        c, 201, "POST", "/api/v1/namespaces",
        "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"drydock\"}}");
    fixture_crds(c);
}

static inline void fixture_check(struct arbiter_fixture *c)
{
    for (uint32_t i = 0; i < FIXTURE_CONTROLLERS; i++) {
        if (c->controllers[i].arbiter != NULL) {
            arbiter_check(c->controllers[i].arbiter);
        }
    }
}

static inline void fixture_run(struct arbiter_fixture *c, usec_t span)
{
    usec_t until = virtual_loop_now(c->v) + span;
    while (virtual_loop_step(c->v, until)) {
        fixture_check(c);
    }
}

/* Runs until the ask is in that stage, and answers whether it is. */
static inline bool fixture_run_until(struct arbiter_fixture *c, struct fixture_controller *s,
                                     uint32_t i, enum ask_stage stage, usec_t most)
{
    usec_t until = virtual_loop_now(c->v) + most;
    while (ask_stage(s->asks[i].ask) != stage && virtual_loop_step(c->v, until)) {
        fixture_check(c);
        if (s->asks[i].ask == NULL) {
            return false;
        }
    }
    return ask_stage(s->asks[i].ask) == stage;
}

static inline void fixture_end(struct arbiter_fixture *c)
{
    for (uint32_t i = 0; i < FIXTURE_CONTROLLERS; i++) {
        if (c->controllers[i].arbiter != NULL) {
            controller_crash(&c->controllers[i]);
        }
    }
    faults_done(&c->faults);
    apiserver_free(c->server);
    arena_done(&c->memory);
    CHECK_EQ(c->lock_steals, 0);
    CHECK_EQ(virtual_loop_armed(c->v), 0);
    virtual_loop_free(c->v);
}
