/*
 * check_bridge: the promises between Machines and the Nodes of workload clusters, as they can be
 * seen at the servers' commits and at the wire: the invariants of the bridge's contract, and that
 * in the end nothing hangs and nothing is left.
 *
 * Written from the contract: it reads Machines, Clusters and Nodes with its own eyes. A write to a
 * Machine or a Node carries the version it was decided on, so what that object said at the commit
 * is what its writer knew, and is judged without slack. What a writer knows of *other* objects
 * comes by watches: it counts for TREATY_LAG after it was true, and for TREATY_LONG where the
 * writer was frozen, cut off or in bad weather not long ago, or is dead and its write was on its
 * way for long.
 */
#pragma once

#include "port/api.h"
#include "sandbox/apiserver/apiserver.h"
#include "tests/swarm/check_basic.h"

#define TREATY_CLUSTERS_MAX 4u
#define TREATY_PILOTS_MAX 3u
#define TREATY_HOME TREATY_CLUSTERS_MAX /* where trouble is: the management cluster */

#define TREATY_GROUP STR("cluster.x-k8s.io")
#define TREATY_METAL3 STR("metal3.io")
#define TREATY_LAG SECONDS(5)     /* a watch that works, and a patch on its way */
#define TREATY_SETTLES MINUTES(4) /* a dead watch is given up after 150 s at the latest */
#define TREATY_LONG MINUTES(15)   /* longer than all trouble of a run */
#define TREATY_ABSENT SECONDS(29) /* two reads, 30 s apart by a clock that runs fast */
#define TREATY_QUIET SECONDS(59)  /* a used approval is left to the engine for 60 s */

/* Label of a Node on which a stranger has forged the marks of another cluster's Machine. */
#define TREATY_STRANGER STR("example.com/stranger")

/* Labels that drain rules select by: of a Machine, of a Cluster. */
#define TREATY_TIER STR("example.com/tier")
#define TREATY_ENV STR("example.com/env")
#define TREATY_NO_BEHAVIOR STR("Evict") /* a rule with that one cannot be read */

/* How the bridges of one run are set up. */
struct treaty_terms {
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
struct trait {
    bool is;
    usec_t since; /* without a break */
    usec_t last;  /* when it was so for the last time; 0: never */
};

struct treaty_cluster {
    struct str space;
    struct str name;
    struct apiserver *server; /* borrowed */
    uint32_t incarnation;     /* counts the Clusters of that name */
    struct trait going;       /* it is being deleted, or there is none */
    struct trait paused;
    struct trait astray; /* its Secret leads to another cluster */
    usec_t rules_at;     /* when its drain rules, or what they select by, have changed */
    struct map nodes;    /* name → struct treaty_node */
};

struct treaty {
    struct promise *promise; /* borrowed */
    struct apiserver *home;  /* borrowed */
    struct treaty_terms terms;
    bool elect;
    usec_t now; /* of the event, true time */
    struct treaty_cluster clusters[TREATY_CLUSTERS_MAX];
    uint32_t cluster_n;
    struct map machines; /* uid → struct treaty_machine */
    struct map requests; /* which kind, and its name → struct treaty_request */
    uint32_t incarnations[TREATY_PILOTS_MAX];
    usec_t started[TREATY_PILOTS_MAX];
    usec_t trouble[TREATY_PILOTS_MAX][TREATY_CLUSTERS_MAX + 1]; /* its end; 0: none */
    uint64_t writes; /* by bridges, Leases and Events not counted */
    struct arena memory;
};

void treaty_done(struct treaty *t);

/* Something is committed in the management cluster (TREATY_HOME), or in a workload cluster. */
void treaty_on_commit(struct treaty *t, uint32_t where, const struct apiserver_commit *commit,
                      usec_t now);
/* A request leaves bridge `who`. */
void treaty_on_send(struct treaty *t, struct str who, const struct api_request *request,
                    usec_t now);
void treaty_on_start(struct treaty *t, uint32_t pilot, uint32_t incarnation, usec_t now);
/* What that bridge knows of that cluster may be old until some time after `until`. */
void treaty_trouble(struct treaty *t, uint32_t pilot, uint32_t where, usec_t until);
/* Its Secret leads to another cluster, or does not any more. */
void treaty_astray(struct treaty *t, uint32_t cluster, bool astray, usec_t now);

/* Everybody has finished: nothing hangs, and nothing is left. */
void treaty_at_rest(struct treaty *t, usec_t now);
/* Whether anybody needs a connection to that cluster. */
bool treaty_needs(struct treaty *t, uint32_t cluster);
