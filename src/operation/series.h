/*
 * series: which machines belong to a series, in which order a sample or a wave takes them, and
 * which are held back.
 *
 * The order is that of SHA-256(seed, 0, UID of the machine): the same machines are canaries in
 * every revision, also when others join or leave.
 */
#pragma once

#include "format/digest.h"
#include "kinds/node_state.h"

struct machine {
    struct str name;
    struct str uid;
    bool external;
    usec_t created;         /* wall clock */
    selector_lookup *label; /* its labels */
    void *label_ctx;
    const struct machine_facts *facts; /* NULL: nothing is known */
};

struct series_rank {
    unsigned char hash[SHA256_BYTES];
    uint32_t index; /* the caller's */
};

/* Apart from `sample`, which needs all of them. */
bool series_has(const struct series_spec *s, const struct machine *m, usec_t now);
/* The `when` of an operation. */
bool series_when(const struct operation_when *when, const struct machine *m);

struct series_rank series_rank(struct str seed, struct str uid, uint32_t index);
/* Sorts, and answers how many of the first belong to the sample; all of them without one. */
uint32_t series_sample(const struct series_spec *s, struct series_rank *ranks, uint32_t n);

/* A label holds the machine back from every visit, or from those of one NodeMaintenance. */
bool machine_is_held(const struct machine *m, struct str maintenance);
