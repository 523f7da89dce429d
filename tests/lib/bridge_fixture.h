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

#define BRIDGE_FIXTURE_CLUSTERS_MAX 64u

/* One workload cluster. */
struct bridge_fixture_cluster {
    struct str name; /* "default/east" */
    struct apiserver *server;
    struct faults faults;
    struct sim_cluster *entry;
};

struct bridge_fixture {
    struct arena memory;
    struct virtual_loop *time;
    struct loop *loop; /* the bridge's view */
    struct apiserver *management;
    struct faults faults; /* of the way to it */
    struct api *api;
    struct sim_clusters book;
    struct dialer *dialer;
    struct bridge *bridge;
    struct metrics *metrics; /* of bridges that are made from now on; NULL = none */
    struct buf log;
    struct log sink;
    struct bridge_fixture_cluster *workloads[BRIDGE_FIXTURE_CLUSTERS_MAX];
    uint32_t workload_n;
    const char *version; /* of Cluster API's kinds: "v1beta2" */
    uint64_t patches;    /* of Machines, hosts and Nodes, by the bridge, that were taken */
    bool stopped;        /* on_stopped was called */
};

/* Servers with Cluster API's kinds in that version and Metal3's, and no bridge yet. */
void bridge_fixture_begin(struct bridge_fixture *s, const char *version);
void bridge_fixture_end(struct bridge_fixture *s);
/* One more kind of Cluster API's. */
void bridge_fixture_kind(struct bridge_fixture *s, const char *kind, const char *plural);
/* Makes a bridge that acts from the start; NULL = all defaults. */
void bridge_fixture_bridge(struct bridge_fixture *s, const struct bridge_config *config);
/* Frees it, like a crash. */
void bridge_fixture_crash(struct bridge_fixture *s);

void bridge_fixture_run(struct bridge_fixture *s, usec_t span);
/* Runs until it is true; false: it was not within `span`. */
bool bridge_fixture_run_until(struct bridge_fixture *s, bool (*is)(struct bridge_fixture *s),
                              usec_t span);

/* A Cluster with a workload server that takes the token "t1", and its Secret. */
struct bridge_fixture_cluster *bridge_fixture_add_cluster(struct bridge_fixture *s,
                                                          const char *name);
struct bridge_fixture_cluster *bridge_fixture_find_cluster(struct bridge_fixture *s,
                                                           const char *name);
/* The kubeconfig Secret, made or replaced. */
void bridge_fixture_secret(struct bridge_fixture *s, const char *name, const char *token);
/* Its Secret has a token from now on that may do what these rules of a ClusterRole say and nothing
 * else; once a workload cluster. */
void bridge_fixture_restrict(struct bridge_fixture *s, const char *name, const char *rules);

/* A MachineDrainRule, made or replaced; `spec` NULL takes it away. */
void bridge_fixture_rule(struct bridge_fixture *s, const char *name, const char *spec);
/* A Machine of that cluster with a finalizer and a Node of the same name: "east-1" on both sides.
 * `labels` of the Machine: "enabled control-plane", the engine's label is on the Node if it says
 * "managed". */
void bridge_fixture_machine(struct bridge_fixture *s, const char *cluster, const char *name,
                            const char *words);
/* A Node alone. */
void bridge_fixture_node(struct bridge_fixture *s, const char *cluster, const char *name,
                         bool managed);

/* A request of somebody else; it must succeed. "APPLY" is a PATCH by server-side apply. */
void bridge_fixture_management(struct bridge_fixture *s, const char *method, struct str path,
                               const char *body);
void bridge_fixture_workload(struct bridge_fixture *s, const char *cluster, const char *method,
                             struct str path, const char *body);
/* "a/b" names the namespace. `value` NULL takes it away. */
void bridge_fixture_label_machine(struct bridge_fixture *s, const char *name, struct str key,
                                  const char *value);
void bridge_fixture_annotate_machine(struct bridge_fixture *s, const char *name, struct str key,
                                     const char *value);
void bridge_fixture_label_node(struct bridge_fixture *s, const char *cluster, const char *name,
                               struct str key, const char *value);
void bridge_fixture_annotate_node(struct bridge_fixture *s, const char *cluster, const char *name,
                                  struct str key, const char *value);
void bridge_fixture_delete_machine(struct bridge_fixture *s, const char *name);
void bridge_fixture_delete_node(struct bridge_fixture *s, const char *cluster, const char *name);

/* Labels and annotations as the servers have them; `.p` NULL = it is not there. */
struct str bridge_fixture_machine_label(struct bridge_fixture *s, const char *name, struct str key);
struct str bridge_fixture_machine_annotation(struct bridge_fixture *s, const char *name,
                                             struct str key);
struct str bridge_fixture_node_label(struct bridge_fixture *s, const char *cluster,
                                     const char *name, struct str key);
struct str bridge_fixture_node_annotation(struct bridge_fixture *s, const char *cluster,
                                          const char *name, struct str key);
bool bridge_fixture_has_hook(struct bridge_fixture *s, const char *name);
/* Events with that reason. */
uint32_t bridge_fixture_events(struct bridge_fixture *s, const char *reason);
