/*
 * sim_api_internal: what the two halves of the door, calls and watches, share.
 */
#pragma once

#include "base/arena.h"
#include "base/alloc.h"
#include "sandbox/sim/sim_api.h"

struct sim_api {
    struct api api;
    struct loop *view; /* borrowed: the client's */
    struct loop *net;  /* borrowed: where wires and servers live */
    struct apiserver *server;
    struct faults *faults; /* borrowed, or `own` */
    struct faults no_faults;
    struct list calls;
    struct list watches;
    uint64_t sent;
    uint32_t in_flight;
    uint32_t counts_n;
    struct sim_api_count counts[SIM_RESOURCES_MAX];
    struct str agent;
    struct str authorization; /* the header; empty = none */
    struct arena memory;      /* of the tallies' names, the agent's and the header */
};

/* Why there was no answer; `text` is static. */
struct sim_failure {
    enum err_code code; /* 0 = there was one */
    const char *text;
};

/* What the server's side does with a request that arrives. */
enum sim_api_action {
    SIM_ACTION_SERVE, /* execute and answer */
    SIM_ACTION_FAIL,  /* `failure` */
    SIM_ACTION_DROP,  /* nothing comes back */
    SIM_ACTION_REPLY, /* an answer of the fault's own, executed or not */
};

struct sim_api_outcome {
    enum sim_api_action fate;
    bool execute; /* the server acts, whatever the client learns */
    struct sim_failure failure;
    struct apiserver_reply answer; /* static texts */
};

/* Draws what happens to a request that reaches the server's side now. */
void sim_api_draw_outcome(struct faults *f, struct sim_api_outcome *ret);
void sim_api_count_request(struct sim_api *d, struct str path, enum sim_api_verb verb);
struct sim_api *sim_api_of(struct api *api);
struct err sim_api_err(struct sim_failure failure);

struct api_watch *sim_api_watch(struct api *api, const struct api_watch_spec *spec,
                                api_on_event on_event, void *ctx);
void sim_api_watch_stop(struct api *api, struct api_watch *w);
/* The connection breaks now. */
void sim_api_watch_disconnect(struct api_watch *w);
struct api_watch *sim_api_watch_from(struct list *link);
