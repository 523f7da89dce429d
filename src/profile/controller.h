/*
 * controller: keeps every node's maintenance state, through the doors alone.
 *
 * It watches the nodes, decides in turns what labels and annotations each is to have (engine.h) and
 * sends the difference as merge patches with a resourceVersion, at most a window of them at a time.
 * It acts only while it holds the leader lease, or always where election is off. It reaches time
 * and network only through port/: the swarm, the demo and production run the same code, and two
 * controllers can run in one process. Nothing polls: an idle controller has no timer but the
 * lease's.
 */
#pragma once

#include "base/log.h"
#include "base/str.h"
#include "format/ucfg.h"
#include "port/api.h"
#include "port/loop.h"

struct arbiter; /* ledger/arbiter.h */
struct ask_view;
struct client;   /* kube/client.h */
struct drains;   /* drain/drain.h */
struct recorder; /* kube/recorder.h */
struct store;    /* kube/store.h */
struct store_item;
struct metrics;     /* base/metric.h */
struct outbound;    /* port/outbound.h */
struct node_report; /* profile/node_report.h */
struct config;
struct controller;
struct core;       /* core/core.h */
struct files;      /* port/files.h */
struct node_label; /* kube/node.h */

#define CONTROLLER_WINDOW 16u /* patches in flight; more only queue in the API server */

struct controller_config {
    uint32_t window;           /* 0 = CONTROLLER_WINDOW */
    struct outbound *outbound; /* to third parties; borrowed, may be NULL */
    const struct files *files; /* credentials of OpenStack; borrowed, may be NULL */
    bool wait_for_config;      /* nothing is done before controller_configure has succeeded */
};

/* Joins the core, which is borrowed and outlives it. */
struct controller *controller_new(struct core *core, const struct controller_config *config);
/* Sends nothing more, as after a crash. Accepts NULL. */
void controller_free(struct controller *c);
struct core *controller_core(const struct controller *c);

/* Puts a configuration in force as a whole, or not at all: then the old one stays, and the error is
 * in the log, a metric, an Event and controller_config_state. `file` names it in messages. Until
 * the first one every node has the default profile alone, or nothing is done (`wait_for_config`).
 */
NODISCARD
int controller_configure(struct controller *c, struct str file, struct str text,
                         struct ucfg_env env);
/* The same for a file that cannot be read at all. */
void controller_configure_failed(struct controller *c, struct str file, const struct err *err);

struct controller_config_state {
    struct str file;             /* empty = none was given */
    struct str error;            /* why the newest is not in force; empty = it is */
    struct str warnings;         /* about the one in force, one a line; empty = none */
    usec_t loaded;               /* wall time */
    uint64_t generation;         /* counts those that came into force */
    const struct config *config; /* in force; NULL = none yet */
};
/* Lives until the controller runs again. */
void controller_config_state(const struct controller *c, struct controller_config_state *ret);

/* A node as the controller knows it. Texts live until the controller runs again. */
struct controller_node {
    struct str name;
    struct str uid;
    struct str state; /* the state label as it is on the server; empty = none yet */
    struct str data;  /* the data annotation; empty = none yet */
    struct str error; /* why the node is not touched; empty = nothing is wrong */
    uint64_t version; /* resourceVersion */
    usec_t decided;   /* wall time of the last decision about it; 0 = none yet */
    bool unschedulable;
    bool ready;
    bool busy;                       /* a patch is in flight */
    const struct node_label *labels; /* kube/node.h; sorted by key */
    uint32_t label_count;
};

uint32_t controller_node_count(const struct controller *c);
/* In the order in which they were first seen. False stops the walk. */
void controller_each_node(const struct controller *c,
                          bool (*fn)(void *ctx, const struct controller_node *node), void *ctx);
bool controller_find_node(const struct controller *c, struct str name, struct controller_node *ret);

struct controller_stats {
    uint64_t turns;
    uint64_t patches;   /* sent */
    uint64_t conflicts; /* answered 409 */
    uint64_t errors;    /* other failures of a patch */
    uint64_t relists;
    uint64_t bad_input; /* lines and objects that could not be read */
    uint32_t in_flight;
    uint32_t dirty;    /* nodes that wait for a decision */
    uint32_t later;    /* nodes that will be decided again at some time */
    uint32_t waiting;  /* nodes that wait for a place in maintenance */
    uint32_t granting; /* grants that are being recorded */
    uint64_t evicted;  /* pods, by drains */
    uint64_t refused;  /* evictions that the server refused because of a budget */
};
/* What the engine thinks of a node at this moment, with all texts; in `out`. False: no such node.
 */
bool controller_explain(struct controller *c, struct str name, struct arena *out,
                        struct node_report *ret);

void controller_stats(const struct controller *c, struct controller_stats *ret);

/* A node whose step into maintenance MaintenanceLimits refuse. Texts live until the loop runs. */
struct controller_limit_wait {
    struct str node;
    struct str uid;
    struct str profile;          /* that asks; empty = unknown */
    usec_t since;                /* wall */
    const struct ask_view *view; /* ledger/arbiter.h */
};
/* In no order. */
void controller_each_limit_wait(const struct controller *c, struct arena *out,
                                void (*fn)(void *ctx, const struct controller_limit_wait *wait),
                                void *ctx);

/* Every drain that is under way, for profiles and requests alike; texts live in `out`. */
struct node_report_drain;
void controller_each_drain(const struct controller *c, struct arena *out,
                           void (*fn)(void *ctx, struct str node,
                                      const struct node_report_drain *drain),
                           void *ctx);

/* Asserts what must hold between turns; the swarm calls it after every event. */
void controller_check(const struct controller *c);
