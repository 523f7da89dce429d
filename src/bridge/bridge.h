/*
 * bridge: Machines of a management cluster and Nodes of its workload clusters agree before a
 * Machine is deleted or maintained.
 *
 * It watches Machines and Clusters, keeps one link to each workload cluster that has an enabled
 * Machine, decides for each Machine and its Node what both should carry (rules.h, metal3_power.h)
 * and sends the difference as merge patches on the versions that were seen. A Node is matched with
 * the Machine that belongs to its cluster and names it; what the Node itself says of its Machine is
 * only compared. It acts only while it holds its Lease.
 *
 * It knows nothing but port/: the swarm, the tests and production run the same code.
 */
#pragma once

#include "base/log.h"
#include "bridge/link.h"
#include "bridge/metal3_power.h"
#include "bridge/rules.h"
#include "base/mutation.h"

struct metrics; /* base/metric.h */

#define BRIDGE_MANAGER "drydock-bridge" /* field manager of its patches */
#define BRIDGE_IN_FLIGHT_MAX 16u        /* patches of Machines and hosts in flight */
#define BRIDGE_CONNECT_RATE 50u         /* links that begin to connect, a second */

struct bridge;

struct bridge_config {
    struct str identity;        /* "<hostname>_<uuid>": who holds the Lease; copied, as all texts */
    struct str lease_namespace; /* empty = "default" */
    struct str namespace;       /* --namespace: only objects of this one; empty = all */
    struct str watch_filter;    /* --watch-filter: only Machines with this label; empty = all */
    struct str server;          /* the API server's host and port, for metrics; may be empty */
    uint32_t shard;             /* 0 … shards-1 */
    uint32_t shards;            /* 0 or 1 = it has all Clusters */
    bool elect;                 /* false: it acts from the start and there is no Lease */
    bool metal3;
    bool cluster_metrics; /* --per-cluster-metrics */
    bool manage_rbac;     /* --workload-rbac=manage */
    bool by_requests;     /* --workload-approval=requests: see approval_route.h */
    struct rules_options rules;
    struct power_options power;
    struct dialer *dialer; /* borrowed */
    MUTATIONS_FIELD;
    /* From the loop; may be NULL. */
    void (*on_leading)(void *ctx, bool leading);
    void (*on_stopped)(void *ctx);
    void *ctx;
};

/* All pointers are borrowed; `log` and `metrics` may be NULL. */
struct bridge *bridge_new(struct loop *loop, struct api *api, struct log *log,
                          struct metrics *metrics, const struct bridge_config *config);
/* The orderly end: acts no more, gives the Lease back, then calls on_stopped. */
void bridge_stop(struct bridge *b);
void bridge_free(struct bridge *b); /* like a crash; accepts NULL */

bool bridge_leading(const struct bridge *b); /* may act at this instant */
struct str bridge_leader(const struct bridge *b);
/* Machines and Clusters are known and their watches do not fail, nor does that of
 * MachineDrainRules. `*ret_why` says what is missing, or why no requests are sent now although it
 * is ready; it lives until the next call. */
bool bridge_ready(struct bridge *b, struct str *ret_why);

/* All that there is to say about one Machine. Texts live in `out`, or until the loop runs. */
struct bridge_machine_view {
    struct str namespace;
    struct str name;
    const struct machine *machine;
    const struct cluster *cluster; /* NULL = there is none */
    bool ours;                     /* another shard's are not looked at */
    bool linked;                   /* there is a link, and `link` tells of it */
    struct link_view link;
    enum rules_node_sight sight;
    const struct workload_node *node;
    uint64_t node_version;
    struct rules_verdict verdict; /* as of now */
    bool has_request;             /* its Node is to be asked for something, by the drain rules: */
    bool rules_known;
    uint32_t rules;         /* that apply to it */
    struct str rules_error; /* why they cannot be used, or are not known; empty = they can */
    struct str request;     /* the MaintenanceRequest that stands for it; empty = none does */
    struct str workload_request_state;
    bool has_host;   /* `power` tells of its Metal3 host */
    struct str host; /* "namespace/name" */
    struct power_verdict power;
    struct str error; /* why its last patch failed; empty = it did not */
    usec_t wall;      /* now */
};
/* False: no such Machine. */
bool bridge_explain(struct bridge *b, struct str namespace, struct str name, struct arena *out,
                    struct bridge_machine_view *ret);

struct bridge_stats {
    uint32_t machines;
    uint32_t enabled;
    uint32_t clusters;
    uint32_t links; /* not idle */
    uint32_t fresh;
    uint32_t nodes;
    uint32_t dirty;      /* Machines that wait for a decision */
    uint32_t in_flight;  /* patches, of Machines, hosts and Nodes */
    uint64_t patches[4]; /* sent: of Machines, Nodes, hosts, MaintenanceRequests */
    uint64_t conflicts;
    uint64_t errors;
    uint64_t released; /* hooks */
    uint64_t mismatches;
    uint64_t stale; /* approvals that were taken away */
};
void bridge_stats(const struct bridge *b, struct bridge_stats *ret);
void bridge_each_link(const struct bridge *b, void (*fn)(void *ctx, const struct link_view *view),
                      void *ctx);

/* Asserts what must hold between turns. */
void bridge_check(const struct bridge *b);
