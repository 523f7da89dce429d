/*
 * random_limits: the limits of one run from a seed, and how its actors behave.
 *
 * A limit is data here and a MaintenanceLimit on the server; the promises (budget.h) read the
 * server's, which people may have changed since.
 */
#pragma once

#include "base/buf.h"
#include "base/rng.h"

#define TERMS_LIMITS_MAX 3u
#define TERMS_CLASSES 3u
#define TERMS_CLASS STR("example.com/class") /* label of nodes that limits select by: "a", … */

/* The same in all limits of all runs, where a limit has them at all: no time limit that fires can
 * be explained by another limit's. */
#define TERMS_APPROVED_S 40u
#define TERMS_IN_PROGRESS_S 50u

enum terms_on_progress { TERMS_RELEASE, TERMS_REQUEUE, TERMS_CLOSE, TERMS_HOLD, TERMS_ON_PROGRESS };
enum terms_on_drain { TERMS_REJECT, TERMS_PROCEED, TERMS_FORCE, TERMS_ON_DRAIN };

struct terms_limit {
    uint32_t percent; /* 0: a count */
    uint32_t count;
    int32_t class; /* that it selects; -1: all nodes */
    bool exclusive;
    int32_t priority;
    bool not_ready; /* policies */
    bool unschedulable;
    bool no_repair;
    bool drains;
    bool keeps_cordon; /* uncordonAfter: false */
    enum terms_on_drain on_drain;
    uint32_t drain_s;
    uint32_t grace_s;
    uint32_t gap_s;
    bool times_approval;
    bool closes;
    bool times_work;
    enum terms_on_progress on_progress;
    uint32_t most_rejections;
};

struct terms {
    struct terms_limit limits[TERMS_LIMITS_MAX];
    uint32_t n;
    usec_t finished_ttl; /* 0: none */
    bool profile;        /* nodes go into maintenance by a profile, too, under the same limits */
    bool records;        /* … that has a maximum of its own, so that its grants are recorded */
};

void terms_make(struct terms *t, uint64_t seed);
/* The spec of a MaintenanceLimit, as JSON. */
void terms_print(const struct terms_limit *limit, struct buf *out);

/* How an actor behaves. In the end all of them finish what they have. */
enum manner {
    MANNER_DILIGENT, /* begins when it may, and finishes */
    MANNER_IDLE,     /* never begins */
    MANNER_HANGS,    /* begins, and never finishes */
    MANNER_WITHDRAWS,
    MANNER_GIVES_BACK, /* once it is approved, and asks again */
    MANNER_DELETES,
    MANNER_FORGES, /* approves itself, and begins if nobody minds */
    MANNERS,
};
