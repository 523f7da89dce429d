/*
 * random_limits: the limits of one run from a seed, and how its actors behave.
 *
 * A limit is data here and a MaintenanceLimit on the server; the promises (check_requests.h) read
 * the server's, which people may have changed since.
 */
#pragma once

#include "base/buf.h"
#include "base/rng.h"

#define RANDOM_LIMITS_MAX 3u
#define RANDOM_LIMITS_CLASSES 3u
#define RANDOM_LIMITS_CLASS_LABEL                                                                  \
    STR("example.com/class") /* label of nodes that limits select by: "a", … */

/* The same in all limits of all runs, where a limit has them at all: no time limit that fires can
 * be explained by another limit's. */
#define RANDOM_LIMITS_APPROVED_S 40u
#define RANDOM_LIMITS_IN_PROGRESS_S 50u

enum random_limits_on_progress {
    RANDOM_LIMITS_RELEASE,
    RANDOM_LIMITS_REQUEUE,
    RANDOM_LIMITS_CLOSE,
    RANDOM_LIMITS_HOLD,
    RANDOM_LIMITS_ON_PROGRESS
};
enum random_limits_on_drain {
    RANDOM_LIMITS_REJECT,
    RANDOM_LIMITS_PROCEED,
    RANDOM_LIMITS_FORCE,
    RANDOM_LIMITS_ON_DRAIN
};

struct random_limit {
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
    enum random_limits_on_drain on_drain;
    uint32_t drain_s;
    uint32_t grace_s;
    uint32_t gap_s;
    bool approved_timeout;
    bool approved_timeout_closes;
    bool progress_timeout;
    enum random_limits_on_progress on_progress;
    uint32_t rejections_max;
};

struct random_limits {
    struct random_limit limits[RANDOM_LIMITS_MAX];
    uint32_t n;
    usec_t finished_ttl; /* 0: none */
    bool profile;        /* nodes go into maintenance by a profile, too, under the same limits */
    bool profile_max;    /* … that has a maximum of its own, so that its grants are recorded */
};

void random_limits_make(struct random_limits *t, uint64_t seed);
/* The spec of a MaintenanceLimit, as JSON. */
void random_limit_print(const struct random_limit *limit, struct buf *out);

/* How an actor behaves. In the end all of them finish what they have. */
enum actor_behavior {
    BEHAVIOR_DILIGENT, /* begins when it may, and finishes */
    BEHAVIOR_IDLE,     /* never begins */
    BEHAVIOR_HANGS,    /* begins, and never finishes */
    BEHAVIOR_WITHDRAWS,
    BEHAVIOR_GIVES_BACK, /* once it is approved, and asks again */
    BEHAVIOR_DELETES,
    BEHAVIOR_FORGES, /* approves itself, and begins if nobody minds */
    BEHAVIOR_COUNT,
};
