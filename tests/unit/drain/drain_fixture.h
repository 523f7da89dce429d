/*
 * drain_fixture: a simulated cluster with drains in it, for tests.
 */
#pragma once

#include "drain/drain.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/world/world.h"
#include "tests/check.h"

#define DRAIN_FIXTURE_DRAINS 8u

struct fixture_drain {
    struct drain_fixture *fixture;
    struct drain *drain;
    bool stop_when_done;
    uint32_t changes;
};

struct drain_fixture {
    struct virtual_loop *v;
    struct apiserver *server;
    struct world *world;
    struct faults faults;
    struct api *door;
    struct client client;
    struct recorder recorder;
    struct drains *drains;
    struct fixture_drain drain[DRAIN_FIXTURE_DRAINS];
    struct arena memory;
    bool idle; /* the drains may do nothing */
    /* Watched at every commit. */
    const char *app;   /* pods with this label app … */
    uint32_t ready;    /* … that are ready and not being deleted, now */
    uint32_t least;    /* … and at the least */
    uint32_t evicting; /* pods that began to be deleted */
};

/* The drain that most tests want. */
static const struct drain_spec drain_fixture_spec = {
    .node = STR_INIT("node-001"),
    .node_uid = STR_INIT("node-001-uid"),
    .eviction_timeout = MINUTES(10),
    .deletion_timeout = MINUTES(10),
    .grace = -1,
};

static inline void drain_fixture_run(struct drain_fixture *s, usec_t span)
{
    usec_t until = virtual_loop_now(s->v) + span;
    while (virtual_loop_step(s->v, until)) {
        drains_check(s->drains);
    }
}

static inline struct str drain_fixture_api(struct drain_fixture *s, int status, const char *method,
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
    apiserver_handle(s->server, &request, &s->memory, &reply);
    if (reply.status != status) {
        check_fail(__FILE__, __LINE__, "%s %s: %d " STR_FMT, method, path, reply.status,
                   STR_ARG(reply.body));
    }
    return reply.body;
}

static inline void drain_fixture_cordon(struct drain_fixture *s, const char *node, bool on)
{
    drain_fixture_api(s, 200, "PATCH", arena_printf(&s->memory, "/api/v1/nodes/%s", node).p,
                      on ? "{\"spec\":{\"unschedulable\":true}}"
                         : "{\"spec\":{\"unschedulable\":null}}");
}

static inline void drain_fixture_create(struct drain_fixture *s, const char *yaml)
{
    struct world_config config = { 0 };
    struct str *objects;
    uint32_t n;
    struct err err = { 0 };
    if (world_file_read(str_from(yaml), &s->memory, &config, &objects, &n, &err) != 0 ||
        world_create_objects(s->world, objects, n, &err) != 0) {
        check_fail(__FILE__, __LINE__, "%s", err.msg);
    }
}

static inline bool drain_fixture_counts(const struct drain_fixture *s, const struct jval *pod)
{
    bool ready = false;
    JVAL_EACH (jval_at(pod, "status.conditions"), c) {
        ready = ready || (str_eq(jval_str(jval_at(c, "type")), STR("Ready")) &&
                          str_eq(jval_str(jval_at(c, "status")), STR("True")));
    }
    return ready && jval_at(pod, "metadata.deletionTimestamp") == NULL &&
           str_eq(jval_str(jval_at(pod, "metadata.labels.app")), str_from(s->app));
}

static inline void drain_fixture_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct drain_fixture *s = ctx;
    if (!str_eq(commit->plural, STR("pods"))) {
        return;
    }
    s->evicting += jval_at(commit->now, "metadata.deletionTimestamp") != NULL &&
                           jval_at(commit->old, "metadata.deletionTimestamp") == NULL
                       ? 1
                       : 0;
    if (s->app != NULL) {
        s->ready -= drain_fixture_counts(s, commit->old) ? 1 : 0;
        s->ready += drain_fixture_counts(s, commit->now) ? 1 : 0;
        s->least = MIN(s->least, s->ready);
    }
}

static inline bool drain_fixture_may_act(void *ctx)
{
    const struct drain_fixture *s = ctx;
    return !s->idle;
}

static inline void drain_fixture_open(struct drain_fixture *s)
{
    s->door = sim_api_new(virtual_loop_root(s->v), s->server, &s->faults);
    client_init(&s->client, virtual_loop_root(s->v), s->door);
    recorder_init(&s->recorder, &s->client, STR("maintenance"), STR("maintenance-test"));
    s->drains = drains_new(virtual_loop_root(s->v),
                           &(struct drains_config){ .client = &s->client,
                                                    .recorder = &s->recorder,
                                                    .may_act = drain_fixture_may_act,
                                                    .ctx = s });
}

static inline void drain_fixture_close(struct drain_fixture *s)
{
    drains_check(s->drains);
    drains_free(s->drains);
    recorder_done(&s->recorder);
    sim_api_free(s->door);
}

/* `app`, when not NULL, counts from here on. */
static inline void drain_fixture_begin(struct drain_fixture *s, uint32_t nodes, const char *app,
                                       const char *yaml)
{
    *s = (struct drain_fixture){ .v = virtual_loop_new(7, SECONDS(1767323045)), .app = app };
    s->server = apiserver_new(virtual_loop_root(s->v), 7);
    s->world = world_new(virtual_loop_root(s->v), s->server,
                         &(struct world_config){ .seed = 7, .nodes = nodes });
    world_on_commit(s->world, drain_fixture_on_commit, s);
    faults_init(&s->faults, 7);
    drain_fixture_open(s);
    /* Everything starts on node-001. */
    for (uint32_t i = 2; i <= nodes; i++) {
        drain_fixture_cordon(s, arena_printf(&s->memory, "node-%03u", i).p, true);
    }
    drain_fixture_create(s, yaml);
    drain_fixture_run(s, MINUTES(1));
    for (uint32_t i = 2; i <= nodes; i++) {
        drain_fixture_cordon(s, arena_printf(&s->memory, "node-%03u", i).p, false);
    }
    drain_fixture_cordon(s, "node-001", true);
    drain_fixture_run(s, SECONDS(10));
    s->least = s->ready;
    s->evicting = 0;
}

static inline void drain_fixture_end(struct drain_fixture *s)
{
    drain_fixture_close(s);
    faults_done(&s->faults);
    world_free(s->world);
    apiserver_free(s->server);
    arena_done(&s->memory);
    CHECK_EQ(virtual_loop_armed(s->v), 0);
    virtual_loop_free(s->v);
}

static inline void drain_fixture_on_change(void *ctx)
{
    struct fixture_drain *one = ctx;
    one->changes++;
    if (one->stop_when_done && drain_is_done(one->drain)) {
        drain_stop(STEAL(one->drain));
    }
}

static inline struct drain *drain_fixture_drain(struct drain_fixture *s, uint32_t i,
                                                const struct drain_spec *spec)
{
    s->drain[i].fixture = s;
    s->drain[i].drain = drain_start(s->drains, spec, drain_fixture_on_change, &s->drain[i]);
    return s->drain[i].drain;
}

static inline struct drain_status drain_fixture_status(const struct drain *d)
{
    struct drain_status status;
    drain_status(d, &status);
    return status;
}

/* Runs until the drain is done, and answers whether it is. */
static inline bool drain_fixture_finish(struct drain_fixture *s, const struct drain *d, usec_t most)
{
    usec_t until = virtual_loop_now(s->v) + most;
    while (!drain_is_done(d) && virtual_loop_step(s->v, until)) {
        drains_check(s->drains);
    }
    return drain_is_done(d);
}

static inline uint64_t drain_fixture_sent(struct drain_fixture *s, const char *resource,
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

struct fixture_search {
    const char *reason;
    const char *kind;
    uint32_t found;
    struct str note;
};

static inline void drain_fixture_search_event(void *ctx, const struct jval *event)
{
    struct fixture_search *search = ctx;
    if (str_eq(jval_str(jval_at(event, "reason")), str_from(search->reason)) &&
        str_eq(jval_str(jval_at(event, "involvedObject.kind")), str_from(search->kind))) {
        search->found++;
        search->note = jval_str(jval_at(event, "message"));
    }
}

/* Events (kept in their core form) with that reason about that kind; the note is the last one's. */
static inline uint32_t drain_fixture_events(struct drain_fixture *s, const char *reason,
                                            const char *kind, struct str *ret_note)
{
    struct fixture_search search = { .reason = reason, .kind = kind };
    apiserver_each(s->server, STR(""), STR("events"), STR(""), drain_fixture_search_event, &search);
    if (ret_note != NULL) {
        *ret_note = arena_str(&s->memory, search.note);
    }
    return search.found;
}

struct fixture_pod_search {
    const char *node;
    uint32_t pods;
    struct str first;
};

static inline void drain_fixture_pod_visit(void *ctx, const struct jval *pod)
{
    struct fixture_pod_search *c = ctx;
    if (str_eq(jval_str(jval_at(pod, "spec.nodeName")), str_from(c->node))) {
        c->first = c->pods++ == 0 ? jval_str(jval_at(pod, "metadata.name")) : c->first;
    }
}

static inline uint32_t drain_fixture_pods(struct drain_fixture *s, const char *node)
{
    struct fixture_pod_search c = { .node = node };
    apiserver_each(s->server, STR(""), STR("pods"), STR(""), drain_fixture_pod_visit, &c);
    return c.pods;
}

/* The first pod there, by name. */
static inline struct str drain_fixture_pod(struct drain_fixture *s, const char *node)
{
    struct fixture_pod_search c = { .node = node };
    apiserver_each(s->server, STR(""), STR("pods"), STR(""), drain_fixture_pod_visit, &c);
    return arena_str(&s->memory, c.first);
}
