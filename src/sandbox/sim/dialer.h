/*
 * dialer: simulated clusters that are found at run time (port/dialer.h), and the list that says
 * which API server answers at which address. Only tests link it.
 *
 * A kubeconfig leads to the cluster whose address is its `server:`. Its token goes with every
 * request, and the API server decides about it (apiserver_set_token); without a token the client is
 * the administrator. As on a real machine, dialling sends nothing; at an unknown address
 * connections are refused. The clusters outlive the dialers: freeing a dialer is a crash of the
 * client.
 */
#pragma once

#include "base/arena.h"
#include "port/dialer.h"
#include "port/loop.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/faults.h"

struct sim_cluster {
    struct list link;
    struct str address;       /* "https://east" */
    struct apiserver *server; /* borrowed, as the next */
    struct faults *faults;    /* of all ways to it; NULL = a calm network */
    const char *refusal;      /* why a kubeconfig that names it is refused; NULL = it is not */
    uint32_t open;            /* connections */
    uint64_t dial_count;      /* ever, refusals included */
};

struct sim_clusters {
    struct list entries;
    struct arena memory;
    struct faults unknown_host_faults; /* the network to unknown addresses */
};

void sim_clusters_init(struct sim_clusters *b);
void sim_clusters_done(struct sim_clusters *b); /* after every connection; accepts a zeroed one */

/* Its fields may be changed at any time; they hold for later connections. */
struct sim_cluster *sim_clusters_add(struct sim_clusters *b, struct str address,
                                     struct apiserver *server, struct faults *faults);
struct sim_cluster *sim_clusters_find(const struct sim_clusters *b, struct str address);
/* A kubeconfig for the address, as Cluster API writes it into Secrets. */
struct str sim_clusters_kubeconfig(struct str address, struct str token, struct arena *out);

struct dialer *sim_dialer_new(struct loop *view, struct sim_clusters *clusters);
void sim_dialer_free(struct dialer *d);     /* with all its connections; accepts NULL */
uint32_t sim_dialer_open(struct dialer *d); /* connections */
