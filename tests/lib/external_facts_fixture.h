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
#define FACTS_FIXTURE_WALL (SECONDS(1767323045) + MSECONDS(250))

/* The check instances of the configuration it begins with; LOAD and DEAD ask Prometheus, ONE and
 * TWO have so many leases, NEAR is an affinity. */
extern const char facts_fixture_checks[];
enum { CHECK_AT_IDLE, CHECK_AT_LOAD, CHECK_AT_ONE, CHECK_AT_TWO, CHECK_AT_NEAR, CHECK_AT_DEAD };

struct fake_prometheus {
    const char *body;
    bool no_post;
    bool dead_is_back;
    int status; /* 0 = 200 */
};

struct facts_fixture {
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct faults faults;
    struct inbox inbox;
    struct fake_prometheus prometheus;
    uint32_t taken_early; /* leases that got a new holder before their time was over */
    struct facts_replica {
        struct loop *loop;
        struct api *api;
        struct outbound *outbound;
        struct client client;
        struct external_facts *external;
        uint64_t changed;
        uint32_t change_n;
        uint32_t done;
        enum err_code code; /* of the last take; 0 = success */
    } replicas[2];
};

void facts_fixture_begin_with(struct facts_fixture *w, uint64_t seed, bool with_wire);
void facts_fixture_begin(struct facts_fixture *w);
void facts_fixture_end(struct facts_fixture *w);
/* A second controller. */
void facts_fixture_add_replica(struct facts_fixture *w, struct facts_replica *r, bool with_wire);
/* Runs so long and checks after each step what must hold. */
void facts_fixture_run(struct facts_fixture *w, usec_t span);

struct config facts_fixture_load(struct facts_fixture *w, const char *yaml);
const struct facts *facts_fixture_facts(struct facts_fixture *w);
void facts_fixture_want(struct facts_replica *r, enum facts_kind kind, uint32_t index,
                        const char *node);
/* For stagger_take: counts and keeps the code; ctx is the replica. */
void facts_fixture_on_take(void *ctx, const struct err *err);
/* To the API server, by somebody else; answers the status. */
int facts_fixture_request(struct facts_fixture *w, const char *method, const char *path,
                          const char *body);
