/*
 * sim_api_internal: what the two files of sim_api, calls and watches, share.
 */
#pragma once

#include "base/arena.h"
#include "base/alloc.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/sim_call_internal.h"

struct sim_api {
    struct api api;
    struct sim_client client;
    struct apiserver *server;
    struct list watches;
    uint64_t sent;
    uint32_t counts_n;
    struct sim_api_count counts[SIM_RESOURCES_MAX];
    struct str agent;
    struct str authorization; /* the header; empty = none */
    struct arena memory;      /* of the resources of `counts`, the agent and the header */
};

void sim_api_count_request(struct sim_api *d, struct str path, enum sim_api_verb verb);
struct sim_api *sim_api_of(struct api *api);

struct api_watch *sim_api_watch(struct api *api, const struct api_watch_spec *spec,
                                api_on_event on_event, void *ctx);
void sim_api_watch_stop(struct api *api, struct api_watch *w);
/* The connection breaks now. */
void sim_api_watch_disconnect(struct api_watch *w);
struct api_watch *sim_api_watch_from(struct list *link);
