/*
 * external_facts_fixture: one or two controllers that ask, everybody whom they ask, and a network
 * between them that can be as bad as a test wants it.
 */
#pragma once

#include "profile/external_facts.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/sim/outbound.h"

/* 2026-01-02T03:04:05.25Z */
#define WALL (SECONDS(1767323045) + MSECONDS(250))

/* The check instances of the configuration it begins with; LOAD and DEAD ask Prometheus, ONE and
 * TWO have so many leases, NEAR is an affinity. */
extern const char two_of_each[];
enum { IDLE, LOAD, ONE, TWO, NEAR, DEAD };

struct prometheus {
    const char *body;
    bool no_post;
    bool dead_is_back;
    int status; /* 0 = 200 */
};

struct world {
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct faults faults;
    struct inbox inbox;
    struct prometheus prometheus;
    uint32_t taken_early; /* leases that got a new holder before their time was over */
    struct replica {
        struct loop *loop;
        struct api *api;
        struct outbound *outbound;
        struct client client;
        struct inquiry *inquiry;
        uint64_t told;
        uint32_t tellings;
        uint32_t done;
        enum err_code code; /* of the last take; 0 = success */
    } replicas[2];
};

void world_begin_with(struct world *w, uint64_t seed, bool with_wire);
void world_begin(struct world *w);
void world_end(struct world *w);
/* A second controller. */
void replica_begin(struct world *w, struct replica *r, bool with_wire);
/* Runs so long and checks after each step what must hold. */
void run(struct world *w, usec_t span);

struct config load(struct world *w, const char *yaml);
const struct facts *facts_of(struct world *w);
void want(struct replica *r, enum facts_kind kind, uint32_t index, const char *node);
/* For inquiry_take: counts and keeps the code; ctx is the replica. */
void on_done(void *ctx, const struct err *err);
/* To the API server, by somebody else; answers the status. */
int request(struct world *w, const char *method, const char *path, const char *body);
