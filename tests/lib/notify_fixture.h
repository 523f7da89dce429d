/*
 * notify_fixture: a sandboxed cluster with one node and an inbox, for tests of notifications.
 *
 * The clock starts at 2026-03-02 08:00 UTC, a Monday.
 */
#pragma once

#include "profile/notify/notify.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/sim/outbound.h"

struct messenger {
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct faults api_faults;
    struct faults outbound_faults;
    struct api *api;
    struct client client;
    struct inbox inbox;
    struct outbound *outbound;
    struct notify_door door;
    struct config config;
    struct notify_facts facts; /* of node "node-1" */
    /* What became of the messages. */
    uint32_t sent;
    uint32_t failed;
    struct err err; /* the last failure's */
    usec_t retry_after;
};

/* The configuration has one notification of this type, with this `config` in flow style. */
void messenger_init(struct messenger *m, const char *type, const char *config);
void messenger_done(struct messenger *m);

struct notify_call *messenger_send(struct messenger *m);
/* Lets `time` pass. */
void messenger_run(struct messenger *m, usec_t time);
/* Sends and waits until that is over. */
void messenger_tell(struct messenger *m);
/* A request to the server; the answer's body. */
struct str messenger_ask(struct messenger *m, const char *method, const char *path, int status,
                         const char *body);
/* The i-th message that arrived; fails the test when there is none. */
const struct inbox_message *messenger_at(struct messenger *m, uint32_t i);
