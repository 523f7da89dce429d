/*
 * client_fixture: an actor, a cluster with the CRDs and two nodes, and a hand that moves states
 * while the actor waits; all in virtual time.
 */
#pragma once

#include "client/actor.h"
#include "format/json_tree.h"
#include "kinds/crd.h"
#include "kinds/keys.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)
#define CRD_PATH "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define NODE(text) ((struct request_target){ .type = STR("node"), .name = STR(text) })

struct actor_fixture {
    struct virtual_loop *time;
    struct apiserver *server;
    struct api *door;
    struct blocking_api blocking_api;
    struct actor actor;
    struct arena memory;
    struct loop_timer other_writer;
    void (*write)(struct actor_fixture *s);
    uint32_t writes; /* how often the hand has come */
    usec_t cut;      /* for stories of lost answers: how long after the approval */
    bool leaving;
    uint32_t progress_n;
    struct str last; /* reason that was told last */
    struct err err;
};

static inline void actor_fixture_run_loop(void *ctx, usec_t until)
{
    struct actor_fixture *s = ctx;
    (void)virtual_loop_step(s->time, until);
}

static inline bool actor_fixture_leaving(void *ctx)
{
    const struct actor_fixture *s = ctx;
    return s->leaving;
}

static inline void actor_fixture_on_progress(void *ctx, const struct maintenance_request *r)
{
    struct actor_fixture *s = ctx;
    s->progress_n++;
    s->last = arena_str(&s->memory, r->status.reason);
}

static inline int actor_fixture_http(struct actor_fixture *s, const char *method, struct str path,
                                     struct str body)
{
    struct apiserver_reply reply;
    bool patch = str_eq(str_from(method), STR("PATCH"));
    apiserver_handle(s->server,
                     &(struct apiserver_request){
                         .method = str_from(method),
                         .path = path,
                         .content_type = patch ? API_MERGE_PATCH : API_JSON,
                         .body = body,
                     },
                     &s->memory, &reply);
    return reply.status;
}

static inline void actor_fixture_on_writer(void *ctx)
{
    struct actor_fixture *s = ctx;
    s->writes++;
    s->write(s);
}

/* The hand comes in `after`, and whenever it says so itself. */
static inline void actor_fixture_write_after(struct actor_fixture *s, usec_t after,
                                             void (*write)(struct actor_fixture *s))
{
    s->write = write;
    loop_timer_set(&s->other_writer, loop_now(virtual_loop_root(s->time)) + after);
}

static inline void actor_fixture_begin(struct actor_fixture *s, const char *client)
{
    *s = (struct actor_fixture){ .time = virtual_loop_new(1, WALL) };
    struct loop *loop = virtual_loop_root(s->time);
    s->server = apiserver_new(loop, 1);
    s->door = sim_api_new(loop, s->server, NULL);
    s->blocking_api = (struct blocking_api){
        .loop = loop,
        .api = s->door,
        .turn = actor_fixture_run_loop,
        .leaving = actor_fixture_leaving,
        .ctx = s,
    };
    loop_timer_init(&s->other_writer, loop, actor_fixture_on_writer, s);
    CHECK_EQ(actor_init(&s->actor, &s->blocking_api, str_from(client), &s->err), 0);
    s->actor.on_progress = actor_fixture_on_progress;
    s->actor.ctx = s;
}

static inline void actor_fixture_install(struct actor_fixture *s)
{
    for (size_t i = 0; i < crds_count; i++) {
        const struct tree *crd = tree_from(&s->memory, crd_object(&crds[i], &s->memory));
        CHECK_EQ(actor_fixture_http(s, "POST", STR(CRD_PATH), tree_json(&s->memory, crd)), 201);
    }
    for (int i = 1; i <= 2; i++) {
        CHECK_EQ(
            actor_fixture_http(s, "POST", STR("/api/v1/nodes"),
                               arena_printf(&s->memory, "{\"metadata\":{\"name\":\"n%d\"}}", i)),
            201);
    }
    /* A new kind is served a moment after its creation. */
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + SECONDS(5));
}

static inline void actor_fixture_end(struct actor_fixture *s)
{
    loop_timer_done(&s->other_writer);
    sim_api_free(s->door);
    apiserver_free(s->server);
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + MINUTES(1));
    virtual_loop_free(s->time);
    arena_done(&s->memory);
}

/* The only request, or that of the name. */
static inline void actor_fixture_take(void *ctx, const struct jval *object)
{
    const struct jval **found = ctx;
    *found = object;
}

static inline const struct jval *actor_fixture_request(struct actor_fixture *s)
{
    const struct jval *found = NULL;
    apiserver_each(s->server, STR("repairman.k8s.io"), STR("maintenancerequests"), STR_NONE,
                   actor_fixture_take, &found);
    CHECK(found != NULL);
    return found;
}

static inline struct str actor_fixture_state(struct actor_fixture *s)
{
    return jval_str(jval_at(actor_fixture_request(s), "spec.state"));
}

/* Somebody writes into the only request. */
static inline void actor_fixture_write(struct actor_fixture *s, const char *patch, bool status)
{
    struct str name = jval_str(jval_at(actor_fixture_request(s), "metadata.name"));
    struct str path = arena_printf(&s->memory, MAINTENANCE_REQUESTS_PATH "/" STR_FMT "%s",
                                   STR_ARG(name), status ? "/status" : "");
    CHECK_EQ(actor_fixture_http(s, "PATCH", path, str_from(patch)), 200);
}

static inline void actor_fixture_approve(struct actor_fixture *s)
{
    actor_fixture_write(s, "{\"spec\":{\"state\":\"Approved\"}}", false);
}
