/*
 * dialer: the door to clusters that are found at run time, in a simulated world; and the phonebook,
 * which says what API server is behind an address.
 *
 * A kubeconfig leads to the entry of its `server:`. Its token goes with every request, so what the
 * API server takes (apiserver_set_token) decides: without a token it is the administrator. As on a
 * real machine nothing is tried by dialling itself; behind an address that is not in the book
 * nobody listens. The book outlives its dialers, as clusters outlive the controllers that call
 * them: freeing a dialer is a crash of the client.
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
    uint32_t open;            /* doors */
    uint64_t dial_count;      /* ever, refusals included */
};

struct sim_clusters {
    struct list entries;
    struct arena memory;
    struct faults unknown_host_faults; /* the network behind addresses that are not here */
};

void sim_clusters_init(struct sim_clusters *b);
void sim_clusters_done(struct sim_clusters *b); /* every door is gone; accepts a zeroed one */

/* Its fields may be changed at any time; they hold for doors that are made later. */
struct sim_cluster *sim_clusters_add(struct sim_clusters *b, struct str address,
                                     struct apiserver *server, struct faults *faults);
struct sim_cluster *sim_clusters_find(const struct sim_clusters *b, struct str address);
/* What leads there, as Cluster API writes it into Secrets. */
struct str sim_clusters_kubeconfig(struct str address, struct str token, struct arena *out);

struct dialer *sim_dialer_new(struct loop *view, struct sim_clusters *clusters);
void sim_dialer_free(struct dialer *d);     /* with all its doors; accepts NULL */
uint32_t sim_dialer_open(struct dialer *d); /* doors */
