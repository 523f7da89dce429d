/*
 * prepare_fixture: a simulated cluster with a preparation of node-001 in it, for tests.
 *
 * What the caller of a preparation would keep in the request is kept here, as it would be: the step
 * and its time in whole seconds. A crash forgets everything else.
 */
#pragma once

#include "kinds/keys.h"
#include "kube/node.h"
#include "kube/reflector.h"
#include "request/prepare.h"
#include "tests/unit/drain/drain_fixture.h"

#define PREPARE_FIXTURE_UID "11111111-2222-3333-4444-555555555555"

struct prepare_fixture {
    struct node_keep keep; /* first: the context of the nodes' store */
    struct intern labels;
    struct store nodes;
    struct reflector reflector;
    struct drain_fixture s;
    struct preparer *preparer;
    struct prepare *q;
    struct prepare_undo *undo;
    struct limit_options options;
    usec_t tolerance;
    uint32_t changes;
    bool undone;
    const char *machine_request; /* the Machine's request that it is for; NULL: none */
    /* In the request's status. */
    enum prepare_step step;
    usec_t step_time;
    uint32_t steps_seen; /* bits */
};

static const struct str prepare_fixture_annotations[] = {
    STR_INIT("repairman.k8s.io/cordoned-by"),
    STR_INIT("drydock.dev/drain-rules"),
    STR_INIT("drydock.dev/deletion-request"),
    STR_INIT("drydock.dev/maintenance-request"),
};

/* The defaults of spec.drain and spec.infraDrain. */
static const struct limit_options prepare_fixture_defaults = {
    .drain = {
        .enabled = true,
        .cordon = true,
        .uncordon_after = true,
        .ignore_daemon_sets = true,
        .delete_empty_dir = true,
        .evict_unmanaged = false,
        .grace_s = -1,
        .timeout_s = 3600,
        .retry_s = 5,
    },
    .detach = { .timeout_s = 1800 },
};

static inline void prepare_fixture_on_list(void *ctx)
{
    struct prepare_fixture *st = ctx;
    store_list_begin(&st->nodes);
}

static inline int prepare_fixture_on_object(void *ctx, const struct jval *object, bool deleted,
                                            struct err *err)
{
    struct prepare_fixture *st = ctx;
    return store_observe(&st->nodes, object, deleted, err);
}

static inline bool prepare_fixture_on_synced(void *ctx, uint64_t version)
{
    struct prepare_fixture *st = ctx;
    return store_list_end(&st->nodes, version);
}

static inline void prepare_fixture_on_error(void *ctx UNUSED, const struct err *err UNUSED,
                                            bool bad UNUSED)
{
}

static inline void prepare_fixture_on_node(void *ctx, struct store_item *item,
                                           const void *before UNUSED)
{
    struct prepare_fixture *st = ctx;
    preparer_on_node(st->preparer, item, false);
}

static inline void prepare_fixture_on_node_gone(void *ctx, struct store_item *item)
{
    struct prepare_fixture *st = ctx;
    if (st->preparer != NULL) {
        preparer_on_node(st->preparer, item, true);
    }
}

static inline usec_t prepare_fixture_wall(void *ctx)
{
    struct prepare_fixture *st = ctx;
    return loop_wall(virtual_loop_root(st->s.v));
}

/* A controller starts; the scene's client, recorder and drains are there already. */
static inline void prepare_fixture_start_controller(struct prepare_fixture *st)
{
    intern_init(&st->labels, 3, 4);
    st->keep = (struct node_keep){
        .labels = &st->labels,
        .annotations = prepare_fixture_annotations,
        .annotation_count = ARRAY_LEN(prepare_fixture_annotations),
    };
    store_init(&st->nodes, &node_kind, st, 9);
    st->nodes.on_change = prepare_fixture_on_node;
    st->nodes.on_gone = prepare_fixture_on_node_gone;
    st->preparer = preparer_new(&(struct preparer_config){
        .client = &st->s.client,
        .recorder = &st->s.recorder,
        .drains = st->s.drains,
        .nodes = &st->nodes,
        .wall = prepare_fixture_wall,
        .ctx = st,
        .skew_tolerance = st->tolerance,
    });
    reflector_init(&st->reflector, &st->s.client,
                   &(struct reflector_config){
                       .path = STR("/api/v1/nodes"),
                       .on_list = prepare_fixture_on_list,
                       .on_object = prepare_fixture_on_object,
                       .on_synced = prepare_fixture_on_synced,
                       .on_error = prepare_fixture_on_error,
                       .ctx = st,
                   });
    reflector_start(&st->reflector);
}

static inline void prepare_fixture_stop_controller(struct prepare_fixture *st)
{
    preparer_free(STEAL(st->preparer));
    st->q = NULL;
    st->undo = NULL;
    reflector_done(&st->reflector);
    store_done(&st->nodes);
    CHECK_EQ(st->labels.count, 0);
    intern_done(&st->labels);
}

static inline void prepare_fixture_begin(struct prepare_fixture *st, uint32_t nodes,
                                         const char *app, const char *yaml)
{
    *st = (struct prepare_fixture){ .options = prepare_fixture_defaults };
    drain_fixture_begin(&st->s, nodes, app, yaml);
    drain_fixture_cordon(&st->s, "node-001", false);
    prepare_fixture_start_controller(st);
    drain_fixture_run(&st->s, SECONDS(1));
}

static inline void prepare_fixture_end(struct prepare_fixture *st)
{
    prepare_fixture_stop_controller(st);
    drain_fixture_end(&st->s);
}

static inline struct prepare_view prepare_fixture_view(const struct prepare_fixture *st)
{
    struct prepare_view view;
    prepare_view(st->q, &view);
    return view;
}

static inline void prepare_fixture_on_change(void *ctx)
{
    struct prepare_fixture *st = ctx;
    struct prepare_view view = prepare_fixture_view(st);
    st->changes++;
    CHECK(view.step >= st->step); /* no step is taken back */
    CHECK_EQ(view.step_time % SECONDS(1), 0);
    st->step = view.step;
    st->step_time = view.step_time;
    st->steps_seen |= 1u << view.step;
}

static inline void prepare_fixture_prepare(struct prepare_fixture *st)
{
    const struct prepare_spec spec = {
        .uid = STR(PREPARE_FIXTURE_UID),
        .request = STR("mr-1"),
        .node = STR("node-001"),
        .options = st->options,
        .machine_request = st->machine_request != NULL ? str_from(st->machine_request) : STR_NONE,
        .step = st->step,
        .step_time = st->step_time,
    };
    st->q = prepare_new(st->preparer, &spec, prepare_fixture_on_change, st);
}

/* The controller dies and another one starts, with what is in the request. */
static inline void prepare_fixture_crash(struct prepare_fixture *st)
{
    bool preparing = st->q != NULL;
    prepare_fixture_stop_controller(st);
    drain_fixture_close(&st->s);
    drain_fixture_open(&st->s);
    prepare_fixture_start_controller(st);
    if (preparing) {
        prepare_fixture_prepare(st);
    }
}

static inline void prepare_fixture_on_undone(void *ctx)
{
    struct prepare_fixture *st = ctx;
    st->undone = true;
}

static inline void prepare_fixture_undo(struct prepare_fixture *st, bool uncordon)
{
    prepare_free(STEAL(st->q));
    st->undone = false;
    st->undo = prepare_undo(st->preparer, STR(PREPARE_FIXTURE_UID), STR("node-001"), uncordon,
                            prepare_fixture_on_undone, st);
}

/* Runs until the preparation is at that step, or says that it is rejected. */
static inline bool prepare_fixture_run_until(struct prepare_fixture *st, enum prepare_step step,
                                             usec_t most)
{
    usec_t until = virtual_loop_now(st->s.v) + most;
    while (prepare_fixture_view(st).step < step && !prepare_fixture_view(st).rejected &&
           virtual_loop_step(st->s.v, until)) {
        drains_check(st->s.drains);
    }
    return prepare_fixture_view(st).step >= step;
}

static inline bool prepare_fixture_finish_undo(struct prepare_fixture *st, usec_t most)
{
    usec_t until = virtual_loop_now(st->s.v) + most;
    while (!st->undone && virtual_loop_step(st->s.v, until)) {
    }
    prepare_undo_free(STEAL(st->undo));
    return st->undone;
}

static inline const struct jval *prepare_fixture_node(struct prepare_fixture *st)
{
    return apiserver_find(st->s.server, STR(""), STR("nodes"), STR(""), STR("node-001"));
}

static inline bool prepare_fixture_is_cordoned(struct prepare_fixture *st)
{
    return jval_bool(jval_at(prepare_fixture_node(st), "spec.unschedulable"), false);
}

/* The mark's value, empty when there is none. */
static inline struct str prepare_fixture_mark(struct prepare_fixture *st)
{
    return jval_str(
        jval_get(jval_at(prepare_fixture_node(st), "metadata.annotations"), KEY_REQUEST_CORDON));
}

static inline void prepare_fixture_volumes(struct prepare_fixture *st, const char *list)
{
    drain_fixture_api(&st->s, 200, "PATCH", "/api/v1/nodes/node-001/status",
                      arena_printf(&st->s.memory, "{\"status\":{\"volumesAttached\":%s}}", list).p);
}

static inline void prepare_fixture_attach(struct prepare_fixture *st, const char *name,
                                          const char *node, const char *driver, const char *volume)
{
    drain_fixture_api(
        &st->s, 201, "POST", "/apis/storage.k8s.io/v1/volumeattachments",
        arena_printf(&st->s.memory,
                     "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"attacher\":\"%s\","
                     "\"nodeName\":\"%s\",\"source\":{\"persistentVolumeName\":\"%s\"}}}",
                     name, driver, node, volume)
            .p);
    drain_fixture_api(
        &st->s, 200, "PATCH",
        arena_printf(&st->s.memory, "/apis/storage.k8s.io/v1/volumeattachments/%s/status", name).p,
        "{\"status\":{\"attached\":true}}");
}

static inline void prepare_fixture_detach(struct prepare_fixture *st, const char *name)
{
    drain_fixture_api(
        &st->s, 200, "DELETE",
        arena_printf(&st->s.memory, "/apis/storage.k8s.io/v1/volumeattachments/%s", name).p, "");
}
