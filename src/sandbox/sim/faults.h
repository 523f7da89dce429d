/*
 * faults: what a network and a server do to a client, from one seed.
 *
 * One `struct faults` is one network between clients and one API server; several clients share it.
 * Chances are per mille and 0 after faults_init: a calm network with a short latency. Switches act
 * at once. Everything drawn comes from its own generator, so a run repeats from the seed.
 *
 * What is not here because the protocol does not allow it: a watch never repeats or reorders events
 * on one connection. Duplicates come as they really do, after a reconnect from an older version;
 * `bookmark_lost` makes that version older.
 */
#pragma once

#include "base/list.h"
#include "base/rng.h"

/* A request under way whose client is gone. */
struct faults_orphan {
    struct list link;
    void (*drop)(struct faults_orphan *orphan); /* ends it without executing it */
};

struct faults {
    struct rng rng;

    /* Latency of each way; `slow` of all ways take up to latency_slow instead. */
    usec_t latency_min;
    usec_t latency_max;
    uint32_t slow;
    usec_t latency_slow;

    uint32_t request_lost; /* before the server saw it */
    uint32_t reply_lost;   /* the server has acted */
    uint32_t refused;      /* connection refused although the server is up */
    uint32_t error_429;    /* 429, with Retry-After half of the time */
    uint32_t error_500;    /* the server may have acted */
    uint32_t error_503;    /* it has not */
    uint32_t error_504;    /* it may have acted */

    uint32_t watch_cut;     /* of watches: cut after some lines or some time, noticed at once */
    uint32_t watch_dead;    /* of watches: likewise, but the client notices only silence */
    usec_t watch_life;      /* until when a watch that will be cut by time is cut */
    uint32_t watch_stall;   /* of lines: this one and all behind it wait … */
    usec_t watch_stall_max; /* … for up to that long */
    uint32_t watch_garbled; /* of lines: arrives broken, and the stream ends behind it */
    uint32_t bookmark_lost; /* of bookmarks; never the one that ends the initial list */

    uint32_t cancel_executes; /* of calls not yet executed when the client cancels or crashes */

    bool down;        /* nobody listens: connections are refused */
    bool partitioned; /* packets vanish: requests end by timeout, watches fall silent */
    bool calm;        /* chances count as 0; latency and switches stay */

    struct list orphans; /* of struct faults_orphan */
    uint64_t injected;   /* faults that struck so far, for reports */
};

void faults_init(struct faults *f, uint64_t seed);
/* Requests still under way are lost. Every client is gone. Accepts a zeroed object. */
void faults_done(struct faults *f);

/* Chooses a mixture from the generator: which faults occur in this run and how often. Only tests
 * link it. */
void faults_randomize(struct faults *f);

usec_t faults_latency(struct faults *f);
/* Whether a fault of that chance strikes now; counts it. */
bool faults_happens(struct faults *f, uint32_t per_mille);
