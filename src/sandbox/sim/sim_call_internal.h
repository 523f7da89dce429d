/*
 * sim_call: one request of a simulated client, on its way to a server and back.
 *
 * The clients of the API server (sim_api) and of third parties (outbound) share it: latency, the
 * faults drawn for a request, the client's timeout, and a client that crashes while its requests
 * are under way. A request whose client is gone may still be executed; until then it is an orphan
 * of the network (faults.h).
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "port/loop.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/faults.h"

/* Why there was no answer; `text` is static. */
struct sim_failure {
    enum err_code code; /* 0 = there was one */
    const char *text;
};

/* What the server's side does with a request that arrives. */
enum sim_action {
    SIM_ACTION_SERVE, /* execute and answer */
    SIM_ACTION_FAIL,  /* `failure` */
    SIM_ACTION_DROP,  /* nothing comes back */
    SIM_ACTION_REPLY, /* an answer of the fault's own, executed or not */
};

struct sim_outcome {
    enum sim_action action;
    bool execute; /* the server acts, whatever the client learns */
    struct sim_failure failure;
    struct apiserver_reply answer; /* static texts */
};

/* Draws what happens to a request that reaches the server's side now. */
void sim_outcome_draw(struct faults *f, struct sim_outcome *ret);
struct err sim_failure_err(struct sim_failure failure);

extern const struct sim_failure sim_connection_reset;

struct sim_client {
    struct loop *view;     /* borrowed: the client's */
    struct loop *net;      /* borrowed: where networks and servers run */
    struct faults *faults; /* borrowed, or `no_faults` */
    struct faults no_faults;
    struct list calls;
    uint32_t in_flight;
    uint32_t requests_max; /* that travel at once; 0 = any number. The rest waits in `waiting` */
    uint32_t travelling;   /* of those that the maximum counts */
    struct list waiting;
    bool ending;
};

/* `faults` is borrowed and may be NULL: a calm network of the client's own. */
void sim_client_init(struct sim_client *c, struct loop *view, struct faults *faults);
void sim_client_done(struct sim_client *c); /* abandons its calls */

struct sim_call {
    struct list link;            /* in the client's calls */
    struct list waiting;         /* in the client's, until one that travels has ended */
    bool counted;                /* it travels, and the maximum counts it */
    struct faults_orphan orphan; /* when the client is gone */
    struct sim_client *client;   /* NULL when the client is gone */
    struct faults *faults;
    void (*free)(struct sim_call *call); /* the owner's: calls sim_call_done */
    usec_t deadline;                     /* in the view's time */
    struct loop_timer transit;           /* on the net: the request arrives */
    struct loop_timer delivered; /* on the view: an outcome arrives, or the deadline passes */
    struct sim_failure failure;
    struct arena memory; /* of the owner, for the request and its answer */
};

struct sim_call_handlers {
    void (*arrives)(void *ctx);
    void (*delivered)(void *ctx);
    void (*free)(struct sim_call *call);
};

/* Sends `call` on its way, or lets it wait for its turn; one with its own connection never waits.
 * Both handlers get `ctx`. */
void sim_call_start(struct sim_call *call, struct sim_client *client, usec_t timeout,
                    bool own_connection, const struct sim_call_handlers *handlers, void *ctx);
/* Lets the outcome arrive `after` from now, or the timeout if that is sooner. */
void sim_call_deliver(struct sim_call *call, usec_t after);
/* The client waits no longer. A request that has not arrived may still be executed. */
void sim_call_abandon(struct sim_call *call);
void sim_call_done(struct sim_call *call);
