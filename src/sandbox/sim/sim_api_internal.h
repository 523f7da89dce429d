/*
 * sim_api_internal: what the two halves of the door, calls and watches, share.
 */
#pragma once

#include "base/arena.h"
#include "base/alloc.h"
#include "sandbox/sim/sim_api.h"

struct door {
    struct api api;
    struct loop *view; /* borrowed: the client's */
    struct loop *net;  /* borrowed: where wires and servers live */
    struct apiserver *server;
    struct faults *faults; /* borrowed, or `own` */
    struct faults own;
    struct list calls;
    struct list watches;
    uint64_t sent;
    uint32_t in_flight;
    uint32_t tallies_n;
    struct door_tally tallies[DOOR_RESOURCES_MAX];
    struct str agent;
    struct str authorization; /* the header; empty = none */
    struct arena memory;      /* of the tallies' names, the agent's and the header */
};

/* Why there was no answer; `text` is static. */
struct door_failure {
    enum err_code code; /* 0 = there was one */
    const char *text;
};

/* What the server's side does with a request that arrives. */
enum door_fate {
    DOOR_SERVE,   /* execute and answer */
    DOOR_FAIL,    /* `failure` */
    DOOR_SILENCE, /* nothing comes back */
    DOOR_ANSWER,  /* an answer of the fault's own, executed or not */
};

struct door_verdict {
    enum door_fate fate;
    bool execute; /* the server acts, whatever the client learns */
    struct door_failure failure;
    struct apiserver_reply answer; /* static texts */
};

/* Draws what happens to a request that reaches the server's side now. */
void door_judge(struct faults *f, struct door_verdict *ret);
void door_count(struct door *d, struct str path, enum door_verb verb);
struct door *door_of(struct api *api);
struct err door_err(struct door_failure failure);

struct api_watch *door_watch(struct api *api, const struct api_watch_spec *spec,
                             api_on_event on_event, void *ctx);
void door_watch_stop(struct api *api, struct api_watch *w);
/* The connection breaks now. */
void door_watch_cut(struct api_watch *w);
struct api_watch *door_watch_from(struct list *link);
