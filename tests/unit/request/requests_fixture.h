/*
 * requests_fixture: a simulated cluster with the whole request part on it: nodes, limits, drains,
 * and actors that ask, for tests.
 *
 * fixture_start_controller starts a controller, fixture_crash ends it as a crash does; the cluster
 * stays.
 */
#pragma once

#include "core/core.h"
#include "base/metric.h"
#include "format/json_writer.h"
#include "format/yaml.h"
#include "kube/node.h"
#include "kube/reflector.h"
#include "ledger/arbiter.h"
#include "kinds/maintenance_request.h"
#include "request/prepare.h"
#include "request/requests.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/world/world.h"
#include "tests/check.h"

#define FIXTURE_WALL SECONDS(1767323045)
#define FIXTURE_GROUP STR("repairman.k8s.io")

struct requests_fixture {
    struct node_keep keep; /* first: the context of the nodes' store */
    struct intern labels;
    struct store nodes;
    struct reflector reflector;
    struct virtual_loop *v;
    struct apiserver *server;
    struct world *world;
    struct faults faults;
    struct api *door;
    struct client client;
    struct recorder recorder;
    struct drains *drains;
    struct arbiter *arbiter;
    struct requests *requests;
    struct metrics metrics;
    struct arena memory;
    struct requests_config config; /* what a test wants different */
    bool leading;
    bool open;
    const char *paused;     /* everything is, and why; NULL: it is not. arbiter_wake follows */
    bool grants_unnumbered; /* the CRDs are of a version that did not number grants */
    usec_t skew;            /* how far the clock of the next controller is off */
    struct loop *view;      /* of such a controller; otherwise it shares the world's */
    /* Actors. */
    bool actors_begin;    /* Approved → InProgress */
    bool actors_complete; /* InProgress → Completed */
    uint32_t most;        /* requests Approved or InProgress at once, at any commit */
    uint32_t rejected;    /* requests that were, as told to others */
    uint32_t expired;
};

static const struct str fixture_annotations[] = {
    STR_INIT("repairman.k8s.io/cordoned-by"),
    STR_INIT("drydock.dev/drain-rules"),
    STR_INIT("drydock.dev/deletion-request"),
    STR_INIT("drydock.dev/maintenance-request"),
};

/* ── the server ────────────────────────────────────────────────────────────────────────────── */

static inline struct str fixture_http(struct requests_fixture *q, int status, const char *method,
                                      const char *path, const char *body)
{
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? STR("application/merge-patch+json")
                                                               : STR("application/json"),
        .user_agent = STR("actor"),
        .body = str_from(body),
    };
    struct apiserver_reply reply;
    apiserver_handle(q->server, &request, &q->memory, &reply);
    if (status != 0 && reply.status != status) {
        check_fail(__FILE__, __LINE__, "%s %s: %d " STR_FMT, method, path, reply.status,
                   STR_ARG(reply.body));
    }
    return reply.body;
}

static inline void fixture_install(struct requests_fixture *q, const char *file)
{
    struct ydoc doc = { 0 };
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct str text = arena_str(&q->memory, check_data(file));
    struct str head;
    struct str tail;
    if (q->grants_unnumbered && str_cut(text, STR(" grant:\n"), &head, &tail)) {
        text = arena_printf(&q->memory, STR_FMT " other:\n" STR_FMT, STR_ARG(head), STR_ARG(tail));
    }
    if (ydoc_parse(text, &q->memory, &doc, &err) != 0) {
        check_fail(__FILE__, __LINE__, "%s: %s", file, err.msg);
    }
    struct json_writer w = json_writer_on(&json);
    jw_val(&w, doc.root);
    (void)fixture_http(q, 201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                       arena_str(&q->memory, buf_str(&json)).p);
}

static inline const struct jval *fixture_find(struct requests_fixture *q, const char *name)
{
    return apiserver_find(q->server, FIXTURE_GROUP, STR("maintenancerequests"), STR(""),
                          str_from(name));
}

static inline struct str fixture_text(struct requests_fixture *q, const char *name,
                                      const char *path)
{
    return jval_str(jval_at(fixture_find(q, name), path));
}

static inline struct str fixture_condition(struct requests_fixture *q, const char *name,
                                           const char *type, const char *key)
{
    JVAL_EACH (jval_at(fixture_find(q, name), "status.conditions"), c) {
        if (str_eq(jval_str(jval_get(c, STR("type"))), str_from(type))) {
            return jval_str(jval_get(c, str_from(key)));
        }
    }
    return STR_NONE;
}

static inline void fixture_create_request(struct requests_fixture *q, const char *name,
                                          const char *node, const char *spec)
{
    (void)fixture_http(
        q, 201, "POST", "/apis/repairman.k8s.io/v1/maintenancerequests",
        arena_printf(&q->memory,
                     "{\"apiVersion\":\"repairman.k8s.io/v1\","
                     "\"kind\":\"MaintenanceRequest\",\"metadata\":{\"name\":\"%s\","
                     "\"labels\":{\"maintenancerequests.repairman.k8s.io/clientname\":"
                     "\"actor\"}},\"spec\":{\"name\":\"%s\",\"type\":\"node\"%s}}",
                     name, node, spec)
            .p);
}

static inline void fixture_create_limit(struct requests_fixture *q, const char *name,
                                        const char *spec)
{
    (void)fixture_http(q, 201, "POST", "/apis/repairman.k8s.io/v1/maintenancelimits",
                       arena_printf(&q->memory,
                                    "{\"apiVersion\":\"repairman.k8s.io/v1\","
                                    "\"kind\":\"MaintenanceLimit\",\"metadata\":{\"name\":\"%s\"},"
                                    "\"spec\":%s}",
                                    name, spec)
                           .p);
}

static inline void fixture_patch(struct requests_fixture *q, const char *name, const char *patch)
{
    (void)fixture_http(
        q, 200, "PATCH",
        arena_printf(&q->memory, "/apis/repairman.k8s.io/v1/maintenancerequests/%s", name).p,
        patch);
}

static inline void fixture_set_state(struct requests_fixture *q, const char *name,
                                     const char *state)
{
    fixture_patch(q, name, arena_printf(&q->memory, "{\"spec\":{\"state\":\"%s\"}}", state).p);
}

static inline void fixture_delete(struct requests_fixture *q, const char *name)
{
    (void)fixture_http(
        q, 200, "DELETE",
        arena_printf(&q->memory, "/apis/repairman.k8s.io/v1/maintenancerequests/%s", name).p, "");
}

/* ── what must always hold ─────────────────────────────────────────────────────────────────── */

struct requests_count {
    struct requests_fixture *q;
    uint32_t given;
    uint32_t n;
    struct str uid;
    bool found;
};

static inline void fixture_count_given(void *ctx, const struct jval *object)
{
    struct requests_count *c = ctx;
    struct str state = jval_str(jval_at(object, "spec.state"));
    bool expired = str_eq(jval_str(jval_at(object, "status.phase")), STR("Expired"));
    c->given +=
        !expired && (str_eq(state, STR("Approved")) || str_eq(state, STR("InProgress"))) ? 1 : 0;
    c->n++;
}

static inline void fixture_find_reservation(void *ctx, const struct jval *limit)
{
    struct requests_count *c = ctx;
    JVAL_EACH (jval_at(limit, "status.reservations"), held) {
        c->found = c->found || str_eq(jval_str(jval_get(held, STR("requestUID"))), c->uid);
        c->n++;
    }
}

static inline void fixture_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct requests_fixture *q = ctx;
    if (!str_eq(commit->plural, STR("maintenancerequests"))) {
        return;
    }
    struct requests_count c = { .q = q };
    apiserver_each(q->server, FIXTURE_GROUP, STR("maintenancerequests"), STR(""),
                   fixture_count_given, &c);
    q->most = MAX(q->most, c.given);
    struct str old = jval_str(jval_at(commit->old, "spec.state"));
    struct str now = jval_str(jval_at(commit->now, "spec.state"));
    bool ours = str_eq(commit->user_agent, STR("drydock"));
    CHECK(!(str_eq(old, STR("InProgress")) && str_eq(now, STR("Approved")))); /* R15 */
    CHECK(!(str_eq(old, STR("Completed")) && commit->now != NULL &&
            !str_eq(now, STR("Completed")))); /* R6 */
    if (ours && str_eq(now, STR("Approved")) && !str_eq(old, now) &&
        apiserver_count(q->server, FIXTURE_GROUP, STR("maintenancelimits")) > 0) {
        struct requests_count held = { .uid = jval_str(jval_at(commit->now, "metadata.uid")) };
        apiserver_each(q->server, FIXTURE_GROUP, STR("maintenancelimits"), STR(""),
                       fixture_find_reservation, &held);
        CHECK(held.found); /* R2 */
    }
}

/* ── a controller ──────────────────────────────────────────────────────────────────────────── */

static inline void fixture_on_list(void *ctx)
{
    struct requests_fixture *q = ctx;
    store_list_begin(&q->nodes);
}

static inline int fixture_on_object(void *ctx, const struct jval *object, bool deleted,
                                    struct err *err)
{
    struct requests_fixture *q = ctx;
    return store_observe(&q->nodes, object, deleted, err);
}

static inline bool fixture_on_synced(void *ctx, uint64_t version)
{
    struct requests_fixture *q = ctx;
    bool taken = store_list_end(&q->nodes, version);
    arbiter_wake(q->arbiter);
    requests_wake(q->requests);
    return taken;
}

static inline void fixture_on_error(void *ctx UNUSED, const struct err *err UNUSED, bool bad UNUSED)
{
}

static inline void fixture_on_node(void *ctx, struct store_item *item, const void *before)
{
    struct requests_fixture *q = ctx;
    arbiter_on_node(q->arbiter, item, before, false);
    requests_on_node(q->requests, item, before, false);
}

static inline void fixture_on_node_gone(void *ctx, struct store_item *item)
{
    struct requests_fixture *q = ctx;
    if (q->open) {
        arbiter_on_node(q->arbiter, item, item->object, true);
        requests_on_node(q->requests, item, item->object, true);
    }
}

static inline bool fixture_may_act(void *ctx)
{
    struct requests_fixture *q = ctx;
    return q->leading && q->reflector.synced;
}

static inline struct str fixture_paused(void *ctx)
{
    struct requests_fixture *q = ctx;
    return q->paused != NULL ? str_from(q->paused) : STR_NONE;
}

static inline void fixture_on_turn(void *ctx)
{
    struct requests_fixture *q = ctx;
    requests_on_arbiter_turn(q->requests);
}

static inline usec_t fixture_wall(void *ctx)
{
    struct requests_fixture *q = ctx;
    return server_clock_wall(&q->client.clock); /* as the real ones do */
}

static inline void fixture_on_trouble(void *ctx, const struct core_request_news *news)
{
    struct requests_fixture *q = ctx;
    CHECK(news->request.n > 0 && news->reason.n > 0);
    q->rejected += news->expired ? 0 : 1;
    q->expired += news->expired ? 1 : 0;
}

static inline void fixture_start_controller(struct requests_fixture *q)
{
    q->view = q->skew != 0 ? virtual_loop_view_new(q->v, q->skew) : NULL;
    struct loop *loop = q->view != NULL ? q->view : virtual_loop_root(q->v);
    q->door = sim_api_new(loop, q->server, &q->faults);
    client_init(&q->client, loop, q->door);
    /* The part starts when the server has said that it knows the kinds, and its clock with it. */
    server_clock_note(&q->client.clock, loop_wall(virtual_loop_root(q->v)), 0);
    recorder_init(&q->recorder, &q->client, STR("drydock"), STR("drydock-test"));
    q->drains =
        drains_new(loop, &(struct drains_config){ .client = &q->client, .recorder = &q->recorder });
    intern_init(&q->labels, 3, 4);
    q->keep = (struct node_keep){
        .labels = &q->labels,
        .annotations = fixture_annotations,
        .annotation_count = ARRAY_LEN(fixture_annotations),
    };
    store_init(&q->nodes, &node_kind, q, 9);
    q->nodes.on_change = fixture_on_node;
    q->nodes.on_gone = fixture_on_node_gone;
    q->arbiter = arbiter_new(&(struct arbiter_config){
        .client = &q->client,
        .recorder = &q->recorder,
        .nodes = &q->nodes,
        .namespace = STR("default"),
        .may_act = fixture_may_act,
        .paused = fixture_paused,
        .wall = fixture_wall,
        .on_turn = fixture_on_turn,
        .ctx = q,
    });
    struct requests_config config = q->config;
    config.client = &q->client;
    config.recorder = &q->recorder;
    config.metrics = &q->metrics;
    config.arbiter = q->arbiter;
    config.drains = q->drains;
    config.nodes = &q->nodes;
    config.may_act = fixture_may_act;
    config.wall = fixture_wall;
    config.on_trouble = fixture_on_trouble;
    config.ctx = q;
    q->requests = requests_new(&config);
    reflector_init(&q->reflector, &q->client,
                   &(struct reflector_config){
                       .path = STR("/api/v1/nodes"),
                       .on_list = fixture_on_list,
                       .on_object = fixture_on_object,
                       .on_synced = fixture_on_synced,
                       .on_error = fixture_on_error,
                       .ctx = q,
                   });
    reflector_start(&q->reflector);
    q->open = true;
    arbiter_owner_synced(q->arbiter, ASK_OF_TARGET, true);
}

static inline void fixture_crash(struct requests_fixture *q)
{
    q->open = false;
    reflector_done(&q->reflector);
    requests_free(q->requests);
    arbiter_free(q->arbiter);
    drains_free(q->drains);
    store_done(&q->nodes);
    CHECK_EQ(q->labels.count, 0);
    intern_done(&q->labels);
    recorder_done(&q->recorder);
    sim_api_free(q->door);
    virtual_loop_view_free(STEAL(q->view));
}

static inline void fixture_begin(struct requests_fixture *q, uint32_t nodes, uint64_t seed)
{
    q->v = virtual_loop_new(seed, FIXTURE_WALL);
    q->server = apiserver_new(virtual_loop_root(q->v), seed);
    q->world = world_new(virtual_loop_root(q->v), q->server,
                         &(struct world_config){ .seed = seed, .nodes = nodes });
    apiserver_on_commit_check(q->server, fixture_on_commit, q);
    faults_init(&q->faults, seed);
    metrics_init(&q->metrics);
    q->leading = true;
    q->config.skew_tolerance = SECONDS(5);
    fixture_install(q, "crds/maintenancerequests.repairman.k8s.io.yaml");
    fixture_install(q, "crds/maintenancelimits.repairman.k8s.io.yaml");
    fixture_install(q, "crds/maintenanceselectors.repairman.k8s.io.yaml");
    fixture_start_controller(q);
}

static inline void fixture_end(struct requests_fixture *q)
{
    if (q->open) {
        requests_check(q->requests);
        arbiter_check(q->arbiter);
        fixture_crash(q);
    }
    metrics_done(&q->metrics);
    faults_done(&q->faults);
    world_free(q->world);
    apiserver_free(q->server);
    arena_done(&q->memory);
    CHECK_EQ(virtual_loop_armed(q->v), 0);
    virtual_loop_free(q->v);
}

/* ── time ──────────────────────────────────────────────────────────────────────────────────── */

struct actor_writes {
    struct requests_fixture *q;
    const char *names[256];
    const char *states[256];
    uint32_t n;
};

static inline void fixture_add_actor_write(void *ctx, const struct jval *object)
{
    struct actor_writes *m = ctx;
    struct str state = jval_str(jval_at(object, "spec.state"));
    bool begins = m->q->actors_begin && str_eq(state, STR("Approved"));
    bool completes = m->q->actors_complete && str_eq(state, STR("InProgress"));
    if ((begins || completes) && m->n < ARRAY_LEN(m->names)) {
        m->names[m->n] = arena_str(&m->q->memory, jval_str(jval_at(object, "metadata.name"))).p;
        m->states[m->n++] = begins ? "InProgress" : "Completed";
    }
}

static inline void fixture_run_actors(struct requests_fixture *q)
{
    struct actor_writes m = { .q = q };
    apiserver_each(q->server, FIXTURE_GROUP, STR("maintenancerequests"), STR(""),
                   fixture_add_actor_write, &m);
    for (uint32_t i = 0; i < m.n; i++) {
        fixture_set_state(q, m.names[i], m.states[i]);
    }
}

static inline void fixture_step(struct requests_fixture *q, usec_t until)
{
    while (virtual_loop_step(q->v, until)) {
        if (q->open) {
            requests_check(q->requests);
            arbiter_check(q->arbiter);
        }
    }
}

/* Lets time pass; actors look around five times a second. */
static inline void fixture_run(struct requests_fixture *q, usec_t span)
{
    usec_t until = virtual_loop_now(q->v) + span;
    if (!q->actors_begin && !q->actors_complete) {
        fixture_step(q, until);
        return;
    }
    while (virtual_loop_now(q->v) < until) {
        fixture_step(q, MIN(until, virtual_loop_now(q->v) + MSECONDS(200)));
        fixture_run_actors(q);
    }
}

/* Runs until the text at `path` of the request is `text`; fails the test after `most`. */
static inline void fixture_run_until(struct requests_fixture *q, const char *name, const char *path,
                                     const char *text, usec_t most)
{
    usec_t until = virtual_loop_now(q->v) + most;
    while (virtual_loop_now(q->v) < until) {
        if (str_eq(fixture_text(q, name, path), str_from(text))) {
            return;
        }
        fixture_run(q, MSECONDS(100));
    }
    struct str is = fixture_text(q, name, path);
    struct str message = fixture_text(q, name, "status.message");
    check_fail(__FILE__, __LINE__, "%s %s: '" STR_FMT "' after %lld s, want '%s' (" STR_FMT ")",
               name, path, STR_ARG(is), (long long)(most / SECONDS(1)), text, STR_ARG(message));
}

static inline void fixture_run_until_phase(struct requests_fixture *q, const char *name,
                                           const char *phase)
{
    fixture_run_until(q, name, "status.phase", phase, MINUTES(10));
}

/* ── what is left ──────────────────────────────────────────────────────────────────────────── */

static inline void fixture_count_lock(void *ctx, const struct jval *lease)
{
    struct requests_count *c = ctx;
    c->n += str_starts(jval_str(jval_at(lease, "metadata.name")), STR("target-")) ? 1 : 0;
}

static inline void fixture_count_cordon(void *ctx, const struct jval *node)
{
    struct requests_count *c = ctx;
    bool node_marked = jval_get(jval_at(node, "metadata.annotations"), KEY_REQUEST_CORDON) != NULL;
    c->n += node_marked || jval_bool(jval_at(node, "spec.unschedulable"), false) ? 1 : 0;
}

static inline uint32_t fixture_locks(struct requests_fixture *q)
{
    struct requests_count c = { .q = q };
    apiserver_each(q->server, STR("coordination.k8s.io"), STR("leases"), STR("default"),
                   fixture_count_lock, &c);
    return c.n;
}

static inline uint32_t fixture_reservations(struct requests_fixture *q)
{
    struct requests_count c = { .q = q };
    apiserver_each(q->server, FIXTURE_GROUP, STR("maintenancelimits"), STR(""),
                   fixture_find_reservation, &c);
    return c.n;
}

static inline uint32_t fixture_cordons(struct requests_fixture *q)
{
    struct requests_count c = { .q = q };
    apiserver_each(q->server, STR(""), STR("nodes"), STR(""), fixture_count_cordon, &c);
    return c.n;
}

/* No lock, no reservation, no cordon, after some time. */
static inline void fixture_run_until_clean(struct requests_fixture *q)
{
    usec_t until = virtual_loop_now(q->v) + MINUTES(10);
    while (fixture_locks(q) + fixture_reservations(q) + fixture_cordons(q) > 0) {
        if (virtual_loop_now(q->v) >= until) {
            check_fail(__FILE__, __LINE__, "left: %u locks, %u reservations, %u cordons",
                       fixture_locks(q), fixture_reservations(q), fixture_cordons(q));
        }
        fixture_run(q, SECONDS(1));
    }
}

struct event_search {
    const char *reason;
    uint32_t found;
    struct str note;
};

static inline void fixture_search_event(void *ctx, const struct jval *event)
{
    struct event_search *s = ctx;
    if (str_eq(jval_str(jval_at(event, "reason")), str_from(s->reason))) {
        s->found++;
        s->note = jval_str(jval_at(event, "message"));
    }
}

/* Events (kept in their core form) with that reason. */
static inline uint32_t fixture_events(struct requests_fixture *q, const char *reason,
                                      struct str *ret_note)
{
    struct event_search s = { .reason = reason };
    apiserver_each(q->server, STR(""), STR("events"), STR(""), fixture_search_event, &s);
    if (ret_note != NULL) {
        *ret_note = arena_str(&q->memory, s.note);
    }
    return s.found;
}

static inline uint64_t fixture_requests_sent(struct requests_fixture *q, const char *resource,
                                             enum sim_api_verb verb)
{
    uint32_t n;
    const struct sim_api_count *tallies = sim_api_counts(q->door, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(tallies[i].resource, str_from(resource))) {
            return tallies[i].sent[verb];
        }
    }
    return 0;
}
