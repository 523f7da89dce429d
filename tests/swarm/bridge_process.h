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

struct pilot {
    uint32_t index;
    uint32_t incarnation;
    bool elect;
    mutations_t mutations;
    struct virtual_loop *vloop;       /* borrowed */
    struct apiserver *home;           /* borrowed: the management cluster */
    struct treaty *treaty;            /* borrowed */
    const struct bridge_config *base; /* borrowed: what all of them have in common */
    struct loop *view;
    uint32_t view_id; /* as the trace names it */
    struct faults home_faults;
    struct faults far_faults[TREATY_CLUSTERS_MAX];
    struct api *upstream;
    struct api_tap tap;       /* the head of all its taps */
    struct sim_clusters book; /* the workload clusters, as its network reaches them */
    struct dialer *phone;     /* the sandbox's */
    struct dialer dialer;     /* what the bridge is given */
    struct list lines;        /* that are open: struct pilot_line */
    struct bridge *bridge;    /* NULL while it does not run */
    bool stopped;             /* the orderly end has come */
    usec_t start_at;          /* when something will start it again; USEC_NEVER: nothing */
    usec_t thaw_at;
    usec_t join_at; /* when its network to the management cluster is back */
    usec_t far_join_at[TREATY_CLUSTERS_MAX];
    usec_t late_at;   /* when the write that is on its way for long arrives; USEC_NEVER: none is */
    usec_t late_span; /* how long one will take */
    char late_agent[64];
    char identity[64];
};

/* The name that a cluster's kubeconfig has for its server. */
#define PILOT_ADDRESS "https://cluster-%u"

/* What is borrowed is set before; then clusters are added in the order of their numbers. */
void pilot_init(struct pilot *p);
void pilot_add_far(struct pilot *p, uint32_t cluster, struct apiserver *server);
void pilot_done(struct pilot *p);

void pilot_start(struct pilot *p);
void pilot_crash(struct pilot *p);
bool pilot_runs(const struct pilot *p);
bool pilot_frozen(const struct pilot *p);
/* Breaks its connections to that cluster. */
void pilot_cut_far(struct pilot *p, uint32_t cluster);
/* How many connections to that cluster it has not given back. */
uint32_t pilot_lines(const struct pilot *p, uint32_t cluster);

/* After an event: buries what has ended. */
void pilot_bury(struct pilot *p);
