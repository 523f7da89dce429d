/*
 * bridge_process: one bridge as an operating system sees it: started, crashed, frozen, cut off from
 * the management cluster or from single workload clusters, stopped in order.
 *
 * Each start is a new incarnation with an identity of its own; its clock and its networks stay.
 */
#pragma once

#include "bridge/bridge.h"
#include "sandbox/sim/dialer.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/swarm/api_tap.h"
#include "tests/swarm/check_bridge.h"

struct bridge_process {
    uint32_t index;
    uint32_t incarnation;
    bool elect;
    mutations_t mutations;
    struct virtual_loop *vloop;       /* borrowed */
    struct apiserver *management;     /* borrowed: the management cluster */
    struct check_bridge *check;       /* borrowed */
    const struct bridge_config *base; /* borrowed: what all of them have in common */
    struct loop *view;
    uint32_t view_id; /* as the trace names it */
    struct faults management_faults;
    struct faults workload_faults[CHECK_BRIDGE_CLUSTERS_MAX];
    struct api *upstream;
    struct api_tap tap;            /* the head of all its taps */
    struct sim_clusters addresses; /* the workload clusters, as its network reaches them */
    struct dialer *inner_dialer;   /* the sandbox's */
    struct dialer dialer;          /* what the bridge is given */
    struct list conns;             /* that are open: struct bridge_process_conn */
    struct bridge *bridge;         /* NULL while it does not run */
    bool stopped;                  /* the orderly end has come */
    usec_t start_at;               /* when something will start it again; USEC_NEVER: nothing */
    usec_t unfreeze_at;
    usec_t reconnect_at; /* when its network to the management cluster is back */
    usec_t workload_reconnect_at[CHECK_BRIDGE_CLUSTERS_MAX];
    usec_t late_at; /* when the write that is on its way for long arrives; USEC_NEVER: none is */
    usec_t late_duration; /* how long one will take */
    char late_agent[64];
    char identity[64];
};

/* The name that a cluster's kubeconfig has for its server. */
#define BRIDGE_PROCESS_SERVER_URL "https://cluster-%u"

/* What is borrowed is set before; then clusters are added in the order of their numbers. */
void bridge_process_init(struct bridge_process *p);
void bridge_process_add_workload(struct bridge_process *p, uint32_t cluster,
                                 struct apiserver *server);
void bridge_process_done(struct bridge_process *p);

void bridge_process_start(struct bridge_process *p);
void bridge_process_crash(struct bridge_process *p);
bool bridge_process_runs(const struct bridge_process *p);
bool bridge_process_frozen(const struct bridge_process *p);
/* Breaks its connections to that cluster. */
void bridge_process_disconnect(struct bridge_process *p, uint32_t cluster);
/* How many connections to that cluster it has not given back. */
uint32_t bridge_process_conn_count(const struct bridge_process *p, uint32_t cluster);

/* After an event: buries what has ended. */
void bridge_process_reap(struct bridge_process *p);
