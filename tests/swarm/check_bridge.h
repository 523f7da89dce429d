/*
 * check_bridge: the promises between Machines and the Nodes of workload clusters, as they can be
 * seen at the servers' commits and at the wire: B1 and the following, and that
 * in the end nothing hangs and nothing is left.
 *
 * Written from docs/contract/bridge.md, with its own readers of the objects. A write to a
 * Machine or a Node carries the version it was decided on, so what that object said at the commit
 * is what its writer knew, and is judged without slack. What a writer knows of *other* objects
 * comes by watches: it counts for CHECK_BRIDGE_LAG after it was true, and for CHECK_BRIDGE_LAG_MAX
 * where the writer was frozen, cut off or under network faults not long ago, or is dead and its
 * write was on its way for long.
 */
#pragma once

#include "port/api.h"
#include "sandbox/apiserver/apiserver.h"
#include "tests/swarm/check_basic.h"

#define CHECK_BRIDGE_CLUSTERS_MAX 4u
#define CHECK_BRIDGE_PROCESSES_MAX 3u
#define MANAGEMENT_CLUSTER                                                                         \
    CHECK_BRIDGE_CLUSTERS_MAX /* where trouble is: the management cluster                          \
                               */

#define CHECK_CAPI_GROUP STR("cluster.x-k8s.io")
#define CHECK_METAL3_GROUP STR("metal3.io")
#define CHECK_BRIDGE_LAG SECONDS(5) /* a watch that works, and a patch on its way */
#define CHECK_BRIDGE_RECONNECT_MAX                                                                 \
    MINUTES(4)                              /* a dead watch is given up after 150 s at the latest */
#define CHECK_BRIDGE_LAG_MAX MINUTES(15)    /* longer than all trouble of a run */
#define CHECK_BRIDGE_ABSENT_MIN SECONDS(29) /* two reads, 30 s apart by a clock that runs fast */
#define CHECK_BRIDGE_APPROVAL_KEPT                                                                 \
    SECONDS(59) /* a used approval is left to the engine for 60 s                                  \
                 */

/* Label of a Node on which a stranger has forged the marks of another cluster's Machine. */
#define CHECK_BRIDGE_FORGED_LABEL STR("example.com/stranger")

/* Labels that drain rules select by: of a Machine, of a Cluster. */
#define CHECK_BRIDGE_TIER_LABEL STR("example.com/tier")
#define CHECK_BRIDGE_ENV_LABEL STR("example.com/env")
#define CHECK_BRIDGE_BAD_BEHAVIOR STR("Evict") /* a rule with that one cannot be read */

/* How the bridges of one run are set up. */
struct check_bridge_options {
    bool eager;
    bool strict; /* approvals count whenever they are there */
    bool missing_holds;
    bool refuse_forged;
    usec_t unreachable_max;
    usec_t hold_max;
    bool metal3;      /* hosts are switched off, */
    bool any_machine; /* for whoever is approved and names them, as the original has it, */
    bool drained;     /* and only under Nodes that are drained */
};

/* Something that is so, or is not. */
struct timed_flag {
    bool is;
    usec_t since; /* without a break */
    usec_t last;  /* when it was so for the last time; 0: never */
};

struct check_bridge_cluster {
    struct str namespace;
    struct str name;
    struct apiserver *server;   /* borrowed */
    uint32_t incarnation;       /* counts the Clusters of that name */
    struct timed_flag deleting; /* it is being deleted, or there is none */
    struct timed_flag paused;
    struct timed_flag wrong_secret; /* its Secret leads to another cluster */
    usec_t rules_at;                /* when its drain rules, or what they select by, have changed */
    struct map nodes;               /* name → struct check_bridge_node */
};

struct check_bridge {
    struct check_basic *basic;    /* borrowed */
    struct apiserver *management; /* borrowed */
    struct check_bridge_options options;
    bool elect;
    usec_t now; /* of the event, true time */
    struct check_bridge_cluster clusters[CHECK_BRIDGE_CLUSTERS_MAX];
    uint32_t cluster_n;
    struct map machines; /* uid → struct check_bridge_machine */
    struct map requests; /* which kind, and its name → struct check_bridge_request */
    uint32_t incarnations[CHECK_BRIDGE_PROCESSES_MAX];
    usec_t started[CHECK_BRIDGE_PROCESSES_MAX];
    usec_t outage_end[CHECK_BRIDGE_PROCESSES_MAX]
                     [CHECK_BRIDGE_CLUSTERS_MAX + 1]; /* its end; 0: none */
    uint64_t writes; /* by bridges, Leases and Events not counted */
    struct arena memory;
};

void check_bridge_done(struct check_bridge *t);

/* Something is committed in the management cluster (MANAGEMENT_CLUSTER), or in a workload cluster.
 */
void check_bridge_on_commit(struct check_bridge *t, uint32_t where,
                            const struct apiserver_commit *commit, usec_t now);
/* A request leaves bridge `who`. */
void check_bridge_on_send(struct check_bridge *t, struct str who, const struct api_request *request,
                          usec_t now);
void check_bridge_on_start(struct check_bridge *t, uint32_t process, uint32_t incarnation,
                           usec_t now);
/* What that bridge knows of that cluster may be old until some time after `until`. */
void check_bridge_on_outage(struct check_bridge *t, uint32_t process, uint32_t where, usec_t until);
/* Its Secret leads to another cluster, or does not any more. */
void check_bridge_on_wrong_secret(struct check_bridge *t, uint32_t cluster, bool wrong_secret,
                                  usec_t now);

/* Everybody has finished: nothing hangs, and nothing is left. */
void check_bridge_at_end(struct check_bridge *t, usec_t now);
/* Whether anybody needs a connection to that cluster. */
bool check_bridge_cluster_needed(struct check_bridge *t, uint32_t cluster);
