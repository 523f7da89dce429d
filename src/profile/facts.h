/*
 * facts: what other systems answered, as the checks read it: a plain lookup.
 *
 * profile/external_facts.h asks them; tests put answers here by hand. A fact that is not known, or
 * is older than the configured refresh interval, is named as a want by the check that needs it. An
 * old answer of Prometheus does not count any more; a Lease's counts until the new one is there,
 * because it is taken by compare-and-swap. Pods are watched instead, for some nodes at a time; of
 * the other nodes the last answer is kept. The result of a lookup is valid until the next change.
 */
#pragma once

#include "base/arena.h"
#include "base/timestamp.h"
#include "profile/hypervisor.h"

/* More nodes at a time than any fleet needs; each is a lease to read. */
#define FACTS_LEASES_MAX 1000u
/* Nodes whose pods are watched at a time: a watch holds a connection, some 100 KiB here and a place
 * in the API server, and the nodes that can go next are few. */
#define FACTS_WATCHES_MAX 32u

enum facts_kind {
    FACTS_PROMETHEUS, /* by check instance: the answer is the same for every node */
    FACTS_STAGGER,    /* by check instance: its leases */
    FACTS_POOLS,      /* by check instance: the nodes that the pools of Kubernikus are to have */
    FACTS_AFFINITY,   /* by node: whether it runs pods that prefer operational nodes */
};

struct facts_want {
    enum facts_kind kind;
    uint32_t index;  /* of the check instance */
    struct str node; /* FACTS_AFFINITY: whose pods; FACTS_STAGGER: the node that asks, which is the
                      * first holder of a Lease that has to be made. Borrowed */
    bool live;       /* FACTS_AFFINITY: a kept answer is not enough */
};

/* What a foreign system answered to a check instance: Prometheus with a value, Kubernikus with a
 * number of nodes. */
struct facts_prometheus {
    bool known;
    struct str error; /* empty = there is a value */
    double value;
    const struct str *warnings;
    uint32_t warning_n;
    usec_t asked;    /* wall time */
    usec_t answered; /* likewise */
};

struct facts_lease {
    bool known;
    bool absent;
    bool complete;    /* renewTime and leaseDurationSeconds are there */
    struct str error; /* it could not be read */
    struct str holder;
    struct timestamp renewed;
    int64_t duration_s;
    usec_t asked;
};

struct facts_affinity {
    bool known;
    bool has;
    bool live; /* the pods are watched; otherwise it is what was last read */
    struct str error;
    usec_t asked; /* wall time since when it is live, or until when it was */
};

/* The Hypervisor of a node. Neither an object nor an error: it is not known yet. */
struct facts_hypervisor {
    const struct hypervisor *object;
    struct str error; /* there is none, there is no such kind, or it cannot be watched */
};

struct facts;

struct facts *facts_new(void);
void facts_free(struct facts *f); /* accepts NULL */

struct facts_prometheus facts_prometheus(const struct facts *f, uint32_t index);
/* Of a check that asks a foreign system (plugin_table.h, asks_outside), whichever it is: the wall
 * time at which the answer that is known was asked for; INT64_MIN: none is known. */
usec_t facts_asked(const struct facts *f, uint32_t index);
/* The i-th lease of a stagger. The leases behind a free one may be unknown: nobody needs them. */
struct facts_lease facts_stagger(const struct facts *f, uint32_t index, uint32_t i);
struct facts_affinity facts_affinity(const struct facts *f, struct str node);
/* Texts live in `out`. */
struct facts_hypervisor facts_hypervisor(const struct facts *f, struct str node, struct arena *out);
/* Counts the changes of answers about pods that other nodes read: while the number is the same,
 * nothing has changed. */
uint64_t facts_affinity_changes(const struct facts *f);

/* Whether a node may take this Lease at that wall time: it has expired, or does not exist yet.
 * False while it is unknown, and for a Lease without times, which is not a stagger's. */
bool facts_lease_is_free(const struct facts_lease *lease, usec_t wall);
/* When it will be free by itself; USEC_NEVER when it is free or unknown. */
usec_t facts_lease_free_at(const struct facts_lease *lease, usec_t wall);

/* Each returns whether the new answer differs from the old one for a check; another `asked` alone
 * is no difference. Texts are copied. */
bool facts_put_prometheus(struct facts *f, uint32_t index, const struct facts_prometheus *answer);
bool facts_put_lease(struct facts *f, uint32_t index, uint32_t i, const struct facts_lease *answer);
bool facts_put_affinity(struct facts *f, struct str node, const struct facts_affinity *answer);

/* Where the Hypervisors are; borrowed. NULL: they are not known. */
void facts_set_hypervisors(struct facts *f, const struct informer *hypervisors);

/* The instances of a new configuration: the i-th has the answers that from[i] had, none for
 * UINT32_MAX. No two have the same. */
void facts_reindex(struct facts *f, const uint32_t *from, uint32_t n);
void facts_forget_node(struct facts *f, struct str node);
