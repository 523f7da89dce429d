/*
 * bridge_run: a run of the bridge's story: a management cluster, two to four workload clusters and
 * one to three bridges on one virtual clock, with everybody who lives there.
 *
 * Cluster API's Machine controller, the engines of the workload clusters and people are played from
 * the seed: whoever notices that something has changed has a *follow-up*, and looks some time later
 * at how things are then. Machines and Nodes of different clusters have the same names, and two of
 * the Clusters, in two namespaces, have the same name.
 */
#pragma once

#include "base/rng.h"
#include "tests/swarm/bridge_process.h"
#include "tests/swarm/scenario.h"
#include "tests/swarm/run.h"

enum followup_kind {
    FOLLOWUP_MACHINE,         /* Cluster API looks at a Machine */
    FOLLOWUP_CLUSTER,         /* Cluster API looks at a Cluster */
    FOLLOWUP_ENGINE,          /* an engine looks at a Node */
    FOLLOWUP_WITHDRAW,        /* who has been given a maintenance ends it */
    FOLLOWUP_MACHINE_UNPAUSE, /* a Machine */
    FOLLOWUP_CLUSTER_UNPAUSE, /* a Cluster is not paused any more */
    FOLLOWUP_SECRET_RESTORE,  /* the Secret is right again */
    FOLLOWUP_HOST_ASSIGN,     /* Metal3's provider looks for a host for a Machine */
    FOLLOWUP_HOST_RELEASE,    /* it gives a host back whose Machine is gone */
    FOLLOWUP_HOST,            /* Metal3's operator looks at a host */
    FOLLOWUP_HOST_RESTORE,    /* a host is not paused, detached or in another state any more */
    FOLLOWUP_HOST_RECREATE,   /* a host that was deleted is there again */
    FOLLOWUP_HOST_CRD,        /* hosts are served */
};

struct followup {
    struct list link;
    usec_t at;
    enum followup_kind kind;
    uint32_t cluster;
    char name[64]; /* of the Machine, the Node or the host */
};

struct bridge_run_cluster {
    struct str namespace;
    struct str name;
    struct apiserver *server;
    uint32_t token;    /* the number of the one that works */
    bool approved_for; /* its engine says which request it approves */
    uint32_t machines; /* made so far */
};

struct bridge_run {
    const struct scenario *scenario; /* borrowed */
    struct rng rng;
    struct virtual_loop *vloop;
    struct apiserver *management;
    struct str version; /* that the kinds of Cluster API are served in */
    /* Secrets may lead to another cluster; otherwise Nodes may lie. Both at once nobody could tell
     * from the truth. */
    bool wrong_secret;
    bool keeps_maintenance; /* those who have been given a maintenance do not end it */
    bool sets_wait_time;    /* Cluster API says since when it waits for hooks */
    /* Metal3, where the scenario has it. */
    struct rng metal3_rng; /* what is drawn for it, so that other runs are what they were */
    bool crd_installed;    /* its kind is there */
    bool drains;           /* the bridges wait for Nodes that are drained, and engines drain them */
    uint32_t host_n;       /* made so far */
    struct bridge_run_cluster clusters[CHECK_BRIDGE_CLUSTERS_MAX];
    struct bridge_process processes[SCENARIO_PROCESSES_MAX];
    struct bridge_config base;
    struct check_basic basic;
    struct check_bridge check;
    struct list followups; /* of struct followup; the earliest is looked for */
    struct arena tmp;      /* one event */
    uint32_t next_action;
    usec_t faults_end[CHECK_BRIDGE_CLUSTERS_MAX + 1];
    usec_t server_up_at; /* when the management cluster is back */
    bool calm;
    uint64_t hash;
    uint64_t events;
    usec_t event_rate_since;
    uint32_t event_rate;
    uint32_t last_view; /* the view of the event that was last */
    bool verbose;
};

/* ── bridge_actors.c: Cluster API, engines, and what people have begun ── */

/* A request of `who` to a server (MANAGEMENT_CLUSTER: the management cluster's); its status. */
int bridge_run_request(struct bridge_run *f, const char *who, uint32_t where, const char *method,
                       struct str path, struct str body);
struct str bridge_run_machine_path(struct bridge_run *f, uint32_t cluster, struct str name);
struct str bridge_run_cluster_path(struct bridge_run *f, uint32_t cluster);
struct str bridge_run_rule_path(struct bridge_run *f, uint32_t cluster, const char *name);
struct str bridge_run_node_path(struct bridge_run *f, struct str name);
/* "" = the collection. */
struct str bridge_run_host_path(struct bridge_run *f, uint32_t cluster, struct str name);
const struct jval *bridge_run_machine(struct bridge_run *f, uint32_t cluster, struct str name);
const struct jval *bridge_run_node(struct bridge_run *f, uint32_t cluster, struct str name);
const struct jval *bridge_run_cluster(struct bridge_run *f, uint32_t cluster);
const struct jval *bridge_run_host(struct bridge_run *f, uint32_t cluster, struct str name);
/* The names of all Machines of a cluster, or of all its Nodes. */
struct bridge_run_names {
    struct arena *out;
    struct str *items;
    uint32_t n;
    uint32_t cap;
    struct str cluster; /* empty: whatever it belongs to */
};
struct bridge_run_names bridge_run_machines(struct bridge_run *f, uint32_t cluster);
struct bridge_run_names bridge_run_nodes(struct bridge_run *f, uint32_t cluster);
/* Of its namespace. */
struct bridge_run_names bridge_run_hosts(struct bridge_run *f, uint32_t cluster);

/* One that is there already stays as it is. */
void bridge_run_schedule(struct bridge_run *f, enum followup_kind kind, uint32_t cluster,
                         struct str name, usec_t at);
usec_t bridge_run_next_followup(const struct bridge_run *f);
void bridge_run_followups_due(struct bridge_run *f, usec_t now);
/* Somebody will look at what was written. */
void bridge_run_schedule_followups(struct bridge_run *f, uint32_t where,
                                   const struct apiserver_commit *commit);

/* Creates the Cluster, its Secret and some Machines. */
void bridge_run_create_cluster(struct bridge_run *f, uint32_t cluster);
/* A kind of custom resources, with a status of its own. */
struct bridge_run_crd {
    struct str group;
    struct str version;
    const char *kind;
    const char *plural;
};
void bridge_run_install_crd(struct bridge_run *f, const struct bridge_run_crd *kind);
#define BRIDGE_RUN_CONTROL_PLANE                                                                   \
    576u /* an enabled Machine of a control plane, and nothing special about it                    \
          */
/* `what` says what is special about it. */
void bridge_run_new_machine(struct bridge_run *f, uint32_t cluster, uint32_t variant);
void bridge_run_write_secret(struct bridge_run *f, uint32_t cluster, struct str kubeconfig);
struct str bridge_run_kubeconfig(struct bridge_run *f, uint32_t cluster, uint32_t token);

/* ── bridge_metal3.c: Metal3 ── */

/* How the bridges are set up for it. */
void bridge_metal3_draw(struct bridge_run *f);
/* The kind of hosts comes, now or later. */
void bridge_metal3_install(struct bridge_run *f);
/* What a Machine's spec has besides its Cluster. */
struct str bridge_metal3_machine_spec(struct bridge_run *f, struct str machine, uint32_t number);
void bridge_metal3_on_commit(struct bridge_run *f, const struct apiserver_commit *commit);
/* The Machine is about to be gone: sooner or later its host is given back. */
void bridge_metal3_on_machine_gone(struct bridge_run *f, uint32_t cluster, struct str machine);
/* An engine cordons and drains a Node that it has approved, or gives it back. */
void bridge_metal3_drain_node(struct bridge_run *f, uint32_t cluster, struct str node);
void bridge_metal3_followup(struct bridge_run *f, const struct followup *e);
void bridge_metal3_action(struct bridge_run *f, const struct action *action);
void bridge_metal3_recover(struct bridge_run *f);

/* ── bridge_actions.c ── */

usec_t bridge_run_next_action(const struct bridge_run *f);
void bridge_run_actions_due(struct bridge_run *f);
/* Ends everything that is wrong, and makes everybody finish what they have. */
void bridge_run_recover(struct bridge_run *f);
