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

struct notify_fixture {
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct faults api_faults;
    struct faults outbound_faults;
    struct api *api;
    struct client client;
    struct inbox inbox;
    struct outbound *outbound;
    struct notifier door;
    struct config config;
    struct notify_facts facts; /* of node "node-1" */
    /* What became of the messages. */
    uint32_t sent;
    uint32_t failed;
    struct err err; /* the last failure's */
    usec_t retry_after;
};

/* The configuration has one notification of this type, with this `config` in flow style. */
void notify_fixture_init(struct notify_fixture *m, const char *type, const char *config);
void notify_fixture_done(struct notify_fixture *m);

struct notify_call *notify_fixture_send(struct notify_fixture *m);
/* Lets `time` pass. */
void notify_fixture_run(struct notify_fixture *m, usec_t time);
/* Sends and waits until that is over. */
void notify_fixture_deliver(struct notify_fixture *m);
/* A request to the server; the answer's body. */
struct str notify_fixture_request(struct notify_fixture *m, const char *method, const char *path,
                                  int status, const char *body);
/* The i-th message that arrived; fails the test when there is none. */
const struct inbox_message *notify_fixture_message(struct notify_fixture *m, uint32_t i);
