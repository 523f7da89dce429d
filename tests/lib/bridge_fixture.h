/*
 * bridge_fixture: a management cluster, workload clusters and a bridge between them, on virtual
 * time.
 *
 * Objects are made and changed by requests of other clients; what is checked is what is on the
 * servers. Clusters "east", "west", … are in namespace "default" unless a name says "space/east".
 */
#pragma once

#include "bridge/bridge.h"
#include "kinds/keys.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/dialer.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"

#define STRAIT_SHORES_MAX 64u

/* One workload cluster. */
struct strait_shore {
    struct str name; /* "default/east" */
    struct apiserver *server;
    struct faults faults;
    struct sim_cluster *entry;
};

struct strait {
    struct arena memory;
    struct virtual_loop *time;
    struct loop *loop; /* the bridge's view */
    struct apiserver *home;
    struct faults faults; /* of the way to it */
    struct api *api;
    struct sim_clusters book;
    struct dialer *dialer;
    struct bridge *bridge;
    struct metrics *metrics; /* of bridges that are made from now on; NULL = none */
    struct buf log;
    struct log sink;
    struct strait_shore *shores[STRAIT_SHORES_MAX];
    uint32_t shore_n;
    const char *version; /* of Cluster API's kinds: "v1beta2" */
    uint64_t patches;    /* of Machines, hosts and Nodes, by the bridge, that were taken */
    bool stopped;        /* on_stopped was called */
};

/* Servers with Cluster API's kinds in that version and Metal3's, and no bridge yet. */
void strait_begin(struct strait *s, const char *version);
void strait_end(struct strait *s);
/* One more kind of Cluster API's. */
void strait_kind(struct strait *s, const char *kind, const char *plural);
/* Makes a bridge that acts from the start; NULL = all defaults. */
void strait_bridge(struct strait *s, const struct bridge_config *config);
/* Frees it, like a crash. */
void strait_crash(struct strait *s);

void strait_run(struct strait *s, usec_t span);
/* Runs until it is true; false: it was not within `span`. */
bool strait_until(struct strait *s, bool (*is)(struct strait *s), usec_t span);

/* A Cluster with a workload server that takes the token "t1", and its Secret. */
struct strait_shore *strait_shore(struct strait *s, const char *name);
struct strait_shore *strait_find(struct strait *s, const char *name);
/* The kubeconfig Secret, made or replaced. */
void strait_secret(struct strait *s, const char *name, const char *token);
/* Its Secret has a token from now on that may do what these rules of a ClusterRole say and nothing
 * else; once a workload cluster. */
void strait_restrict(struct strait *s, const char *name, const char *rules);

/* A MachineDrainRule, made or replaced; `spec` NULL takes it away. */
void strait_rule(struct strait *s, const char *name, const char *spec);
/* A Machine of that cluster with a finalizer and a Node of the same name: "east-1" on both sides.
 * `labels` of the Machine: "enabled control-plane", the engine's label is on the Node if it says
 * "managed". */
void strait_machine(struct strait *s, const char *cluster, const char *name, const char *words);
/* A Node alone. */
void strait_node(struct strait *s, const char *cluster, const char *name, bool managed);

/* A request of somebody else; it must succeed. "APPLY" is a PATCH by server-side apply. */
void strait_home(struct strait *s, const char *method, struct str path, const char *body);
void strait_away(struct strait *s, const char *cluster, const char *method, struct str path,
                 const char *body);
/* "a/b" names the namespace. `value` NULL takes it away. */
void strait_label_machine(struct strait *s, const char *name, struct str key, const char *value);
void strait_note_machine(struct strait *s, const char *name, struct str key, const char *value);
void strait_label_node(struct strait *s, const char *cluster, const char *name, struct str key,
                       const char *value);
void strait_note_node(struct strait *s, const char *cluster, const char *name, struct str key,
                      const char *value);
void strait_delete_machine(struct strait *s, const char *name);
void strait_delete_node(struct strait *s, const char *cluster, const char *name);

/* Labels and annotations as the servers have them; `.p` NULL = it is not there. */
struct str strait_machine_label(struct strait *s, const char *name, struct str key);
struct str strait_machine_note(struct strait *s, const char *name, struct str key);
struct str strait_node_label(struct strait *s, const char *cluster, const char *name,
                             struct str key);
struct str strait_node_note(struct strait *s, const char *cluster, const char *name,
                            struct str key);
bool strait_hooked(struct strait *s, const char *name);
/* Events with that reason. */
uint32_t strait_events(struct strait *s, const char *reason);
