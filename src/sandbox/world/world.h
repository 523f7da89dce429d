/*
 * world: what lives in a cluster beside its API server: kubelets, a scheduler, the controllers of
 * workloads, budgets and nodes.
 *
 * It sees every commit and acts through requests a moment later, level-triggered: what an object
 * needs follows from how it is, whatever led there. Nothing polls; a world in which nothing
 * happens costs nothing but its heartbeats. All time is the loop's, all chance from the seed, so a
 * run repeats exactly.
 *
 * For demonstrations nodes and pods listen to annotations:
 *   sandbox.drydock.dev/reboot  on a node: it reboots; the annotation goes when it is back
 *   sandbox.drydock.dev/run     on a pod: how long its containers run before they succeed ("90s")
 *   sandbox.drydock.dev/stop    on a pod: how long it takes to stop, up to its grace period
 *   sandbox.drydock.dev/exit    on a pod that runs for a while: the exit code of its containers;
 *                               otherwise that of a script of run-on-host that ends with "exit N"
 *   sandbox.drydock.dev/output  on a pod of drydock run-on-host that fails: the end of its output
 *   sandbox.drydock.dev/reboot-required  on a pod of drydock run-on-host: what it finds out
 * ("true")
 *
 * A pod of `drydock run-on-host --reboot` reboots its node, if that has the boot ID still.
 */
#pragma once

#include "base/err.h"
#include "sandbox/apiserver/apiserver.h"

struct world;

#define WORLD_NODES_MAX 20000u /* more than any cluster has */
#define WORLD_ZONES_MAX 26u    /* named by letters */

enum world_heartbeats {
    WORLD_HEARTBEATS_NONE,
    WORLD_HEARTBEATS_STATUS, /* the node's status every five minutes */
    WORLD_HEARTBEATS_LEASE,  /* the node's Lease every ten seconds */
    WORLD_HEARTBEATS_BOTH,   /* as a real kubelet */
};

/* A field that is 0 takes its default, where 0 makes no sense as a value. */
struct world_config {
    uint64_t seed;
    uint32_t nodes; /* node-001 …, there from the start and ready */
    uint32_t zones; /* default 1 */
    enum world_heartbeats heartbeats;
    usec_t react;     /* until a controller acts on what it has seen; default 20 ms */
    usec_t start_min; /* a pod's way from bound to ready; default 1 s … */
    usec_t start_max; /* … to 3 s */
    usec_t stop;      /* a pod's way from deleted to gone, if its grace allows; default 2 s */
    usec_t run;       /* a job's pod runs that long unless it says otherwise; default 20 s */
    usec_t boot;      /* a new node's way to ready; default 30 s */
    usec_t reboot;    /* default 60 s */
    usec_t unknown;   /* a silent kubelet's node becomes Unknown; default 40 s */
};

/* Both are borrowed and outlive it. The world takes the server's commit listener. */
struct world *world_new(struct loop *loop, struct apiserver *server,
                        const struct world_config *config);
void world_free(struct world *w); /* accepts NULL */

/* Sees every commit before the world does; as apiserver_on_commit, which the world uses itself. */
void world_on_commit(struct world *w, apiserver_on_commit_fn fn, void *ctx);

/* A machine is switched on; it registers now and is ready after its boot. An empty name takes the
 * next number. -ERR_CONFLICT when there is one of that name. */
NODISCARD
int world_add_node(struct world *w, struct str name, struct err *err);
/* The machine and its Node object are gone. These answer -ERR_NOTFOUND when there is none. */
NODISCARD
int world_remove_node(struct world *w, struct str name, struct err *err);
NODISCARD
int world_reboot_node(struct world *w, struct str name, struct err *err);
/* The kubelet dies, and is back. */
NODISCARD
int world_fail_node(struct world *w, struct str name, struct err *err);
NODISCARD
int world_recover_node(struct world *w, struct str name, struct err *err);

uint32_t world_node_count(const struct world *w);
uint64_t world_requests_sent(const struct world *w); /* sent to the server so far */

/* Reads a world's file (YAML; the grammar is in world_file.c) over the defaults in `*ret`; the
 * objects it lists are in `*ret_objects`, JSON documents to be created in this order. */
NODISCARD
int world_file_read(struct str yaml, struct arena *out, struct world_config *ret,
                    struct str **ret_objects, uint32_t *ret_objects_n, struct err *err);
/* Creates them. The first that is refused ends it, with the server's words. */
NODISCARD
int world_create_objects(struct world *w, const struct str *objects, uint32_t n, struct err *err);
