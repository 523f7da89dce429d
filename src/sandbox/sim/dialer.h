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

struct phonebook_entry {
    struct list link;
    struct str address;       /* "https://east" */
    struct apiserver *server; /* borrowed, as the next */
    struct faults *faults;    /* of all ways to it; NULL = a calm network */
    const char *refusal;      /* why a kubeconfig that names it is refused; NULL = it is not */
    uint32_t open;            /* doors */
    uint64_t dialled;         /* ever, refusals included */
};

struct phonebook {
    struct list entries;
    struct arena memory;
    struct faults nowhere; /* the network behind addresses that are not here */
};

void phonebook_init(struct phonebook *b);
void phonebook_done(struct phonebook *b); /* every door is gone; accepts a zeroed one */

/* Its fields may be changed at any time; they hold for doors that are made later. */
struct phonebook_entry *phonebook_put(struct phonebook *b, struct str address,
                                      struct apiserver *server, struct faults *faults);
struct phonebook_entry *phonebook_find(const struct phonebook *b, struct str address);
/* What leads there, as Cluster API writes it into Secrets. */
struct str phonebook_kubeconfig(struct str address, struct str token, struct arena *out);

struct dialer *sandbox_dialer_new(struct loop *view, struct phonebook *book);
void sandbox_dialer_free(struct dialer *d);     /* with all its doors; accepts NULL */
uint32_t sandbox_dialer_open(struct dialer *d); /* doors */
