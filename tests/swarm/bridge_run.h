/*
 * bridge_run: a run of the bridge's story: a management cluster, two to four workload clusters and
 * one to three bridges on one virtual clock, with everybody who lives there.
 *
 * Cluster API's Machine controller, the engines of the workload clusters and people are played from
 * the seed: whoever notices that something has changed has an *errand*, and looks some time later
 * at how things are then. Machines and Nodes of different clusters have the same names, and two of
 * the Clusters, in two namespaces, have the same name.
 */
#pragma once

#include "base/rng.h"
#include "tests/swarm/bridge_process.h"
#include "tests/swarm/scenario.h"
#include "tests/swarm/run.h"

enum errand_kind {
    ERRAND_MACHINE,  /* Cluster API looks at a Machine */
    ERRAND_CLUSTER,  /* Cluster API looks at a Cluster */
    ERRAND_ENGINE,   /* an engine looks at a Node */
    ERRAND_WITHDRAW, /* who has been given a maintenance ends it */
    ERRAND_UNPAUSE,  /* a Machine */
    ERRAND_GO_ON,    /* a Cluster is not paused any more */
    ERRAND_SECRET,   /* the Secret is right again */
    ERRAND_ADOPT,    /* Metal3's provider looks for a host for a Machine */
    ERRAND_FREE,     /* it gives a host back whose Machine is gone */
    ERRAND_HOST,     /* Metal3's operator looks at a host */
    ERRAND_WELL,     /* a host is not paused, detached or in another state any more */
    ERRAND_BACK,     /* a host that was deleted is there again */
    ERRAND_KIND,     /* hosts are served */
};

struct errand {
    struct list link;
    usec_t at;
    enum errand_kind kind;
    uint32_t cluster;
    char name[64]; /* of the Machine, the Node or the host */
};

struct fleet_cluster {
    struct str space;
    struct str name;
    struct apiserver *server;
    uint32_t token;    /* the number of the one that works */
    bool answers;      /* its engine says which request it approves */
    uint32_t machines; /* made so far */
};

struct fleet {
    const struct plan *plan; /* borrowed */
    struct rng rng;
    struct virtual_loop *vloop;
    struct apiserver *home;
    struct str version; /* that the kinds of Cluster API are served in */
    /* Secrets may lead to another cluster; otherwise Nodes may lie. Both at once nobody could tell
     * from the truth. */
    bool astray;
    bool stays; /* those who have been given a maintenance do not end it */
    bool tells; /* Cluster API says since when it waits for hooks */
    /* Metal3, where the plan has it. */
    struct rng iron; /* what is drawn for it, so that other runs are what they were */
    bool served;     /* its kind is there */
    bool drains;     /* the bridges wait for Nodes that are drained, and engines drain them */
    uint32_t host_n; /* made so far */
    struct fleet_cluster clusters[TREATY_CLUSTERS_MAX];
    struct pilot pilots[PLAN_PROCESSES_MAX];
    struct bridge_config base;
    struct promise promise;
    struct treaty treaty;
    struct list errands; /* of struct errand; the earliest is looked for */
    struct arena tmp;    /* one event */
    uint32_t next_deed;
    usec_t weather_end[TREATY_CLUSTERS_MAX + 1];
    usec_t up_at; /* when the management cluster is back */
    bool calm;
    uint64_t hash;
    uint64_t events;
    usec_t pace_since;
    uint32_t pace;
    uint32_t ran; /* the view of the event that was last */
    bool verbose;
};

/* ── fleet_life.c: Cluster API, engines, and what people have begun ── */

/* A request of `who` to a server (TREATY_HOME: the management cluster's); its status. */
int fleet_ask(struct fleet *f, const char *who, uint32_t where, const char *method, struct str path,
              struct str body);
struct str fleet_machine_path(struct fleet *f, uint32_t cluster, struct str name);
struct str fleet_cluster_path(struct fleet *f, uint32_t cluster);
struct str fleet_rule_path(struct fleet *f, uint32_t cluster, const char *name);
struct str fleet_node_path(struct fleet *f, struct str name);
/* "" = the collection. */
struct str fleet_host_path(struct fleet *f, uint32_t cluster, struct str name);
const struct jval *fleet_machine(struct fleet *f, uint32_t cluster, struct str name);
const struct jval *fleet_node(struct fleet *f, uint32_t cluster, struct str name);
const struct jval *fleet_cluster(struct fleet *f, uint32_t cluster);
const struct jval *fleet_host(struct fleet *f, uint32_t cluster, struct str name);
/* The names of all Machines of a cluster, or of all its Nodes. */
struct fleet_names {
    struct arena *out;
    struct str *items;
    uint32_t n;
    uint32_t cap;
    struct str cluster; /* empty: whatever it belongs to */
};
struct fleet_names fleet_machines(struct fleet *f, uint32_t cluster);
struct fleet_names fleet_nodes(struct fleet *f, uint32_t cluster);
/* Of its namespace. */
struct fleet_names fleet_hosts(struct fleet *f, uint32_t cluster);

/* One that is there already stays as it is. */
void fleet_errand(struct fleet *f, enum errand_kind kind, uint32_t cluster, struct str name,
                  usec_t at);
usec_t fleet_next_errand(const struct fleet *f);
void fleet_do_errands(struct fleet *f, usec_t now);
/* Somebody will look at what was written. */
void fleet_note(struct fleet *f, uint32_t where, const struct apiserver_commit *commit);

/* Creates the Cluster, its Secret and some Machines. */
void fleet_found(struct fleet *f, uint32_t cluster);
/* A kind of custom resources, with a status of its own. */
struct fleet_kind {
    struct str group;
    struct str version;
    const char *kind;
    const char *plural;
};
void fleet_install(struct fleet *f, const struct fleet_kind *kind);
#define FLEET_MEMBER                                                                               \
    576u /* an enabled Machine of a control plane, and nothing special about it                    \
          */
/* `what` says what is special about it. */
void fleet_new_machine(struct fleet *f, uint32_t cluster, uint32_t what);
void fleet_write_secret(struct fleet *f, uint32_t cluster, struct str kubeconfig);
struct str fleet_kubeconfig(struct fleet *f, uint32_t cluster, uint32_t token);

/* ── fleet_host.c: Metal3 ── */

/* How the bridges are set up for it. */
void fleet_host_draw(struct fleet *f);
/* The kind of hosts comes, now or later. */
void fleet_host_begin(struct fleet *f);
/* What a Machine's spec has besides its Cluster. */
struct str fleet_host_spec(struct fleet *f, struct str machine, uint32_t number);
void fleet_host_note(struct fleet *f, const struct apiserver_commit *commit);
/* The Machine is about to be gone: sooner or later its host is given back. */
void fleet_host_part(struct fleet *f, uint32_t cluster, struct str machine);
/* An engine cordons and drains a Node that it has approved, or gives it back. */
void fleet_host_drain(struct fleet *f, uint32_t cluster, struct str node);
void fleet_host_errand(struct fleet *f, const struct errand *e);
void fleet_host_deed(struct fleet *f, const struct deed *deed);
void fleet_host_calm(struct fleet *f);

/* ── fleet_deeds.c ── */

usec_t fleet_next_deed(const struct fleet *f);
void fleet_do_deeds(struct fleet *f);
/* Ends everything that is wrong, and makes everybody finish what they have. */
void fleet_calm_down(struct fleet *f);
