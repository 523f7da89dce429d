/*
 * link_fixture: a management cluster, workload clusters, and a link to each, on virtual time.
 */
#pragma once

#include "bridge/link.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/dialer.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"

#define LINK_WORLD_CLUSTERS_MAX 256u

/* One workload cluster, and the link to it. */
struct link_cluster {
    struct link_world *world;
    struct str name;
    struct str namespace;
    struct apiserver *server;
    struct faults faults;
    struct sim_cluster *entry;
    struct link *link;
    bool locked; /* nothing may be written */
    uint64_t secret_version;
    /* What the link has told. */
    uint32_t states;
    uint32_t fresh; /* of them */
    uint32_t idle;
    uint32_t node_updates;
    uint32_t taken;                                 /* dirty Nodes */
    struct buf gone;                                /* "a b " */
    usec_t fresh_at;                                /* the last time */
    void (*on_state)(struct link_cluster *cluster); /* the test's own; may be NULL */
};

struct link_world {
    struct arena memory;
    struct virtual_loop *time;
    struct loop *loop;
    struct apiserver *server;
    struct faults faults;
    struct api *api;
    struct client management;
    struct sim_clusters book;
    struct dialer *dialer;
    struct dialer *instead; /* what links dial with; NULL = `dialer` */
    bool manage;            /* links that are made from now on have an account of their own */
    struct ratelimit connects;
    struct buf log;
    struct log sink;
    struct link_cluster *clusters[LINK_WORLD_CLUSTERS_MAX];
    uint32_t cluster_n;
};

void link_world_begin(struct link_world *w, uint64_t seed);
/* Checks that nothing is left over. */
void link_world_end(struct link_world *w);
/* Runs so long, and checks after each event what must hold of every link. */
void link_world_run(struct link_world *w, usec_t span);
/* Runs until the link is in this state; false: it was not within `span`. */
bool link_world_until(struct link_world *w, struct link_cluster *cluster, enum link_state state,
                      usec_t span);

/* A cluster "https://<name>" in namespace "default" that takes the token "t1", its Secret with that
 * token, and an idle link. */
struct link_cluster *link_cluster_new(struct link_world *w, const char *name);
/* The same, of which a Secret with this text, not in base64, is put; NULL = none is. */
struct link_cluster *link_cluster_with_kubeconfig(struct link_world *w, const char *name,
                                                  const char *kubeconfig);

/* A new link, after the old one was freed. */
void link_cluster_relink(struct link_cluster *cluster);

/* Puts or replaces the Secret: with a kubeconfig that has this token, or with a text. */
void link_cluster_secret(struct link_cluster *cluster, const char *token);
void link_cluster_secret_text(struct link_cluster *cluster, struct str text);
void link_cluster_secret_delete(struct link_cluster *cluster);
/* Tells the link what version the Secret has, as a watch would. */
void link_cluster_watch_secret(struct link_cluster *cluster);

/* A world with the cluster "east" and its Nodes "a" and "b"; and the same with its link fresh. */
struct link_cluster *link_world_with_cluster(struct link_world *w);
struct link_cluster *link_world_fresh(struct link_world *w);
/* How often Secrets were asked for. */
uint64_t link_world_secret_reads(struct link_world *w);

void link_cluster_node(struct link_cluster *cluster, const char *name);
/* Sets a label to "true", or takes it away. */
void link_cluster_label(struct link_cluster *cluster, const char *name, const char *label,
                        bool set);
void link_cluster_node_delete(struct link_cluster *cluster, const char *name);

struct link_view link_cluster_view(const struct link_cluster *cluster);
/* True when the store has just what the server has. */
bool link_cluster_store_matches(const struct link_cluster *cluster);
