/*
 * run: one simulated run: a server, a world and controllers on one virtual clock, and the plan's
 * deeds done to them.
 *
 * After every event the promises (promise.h) are checked; the first that is broken ends the run. A
 * trial is a function of its plan and mutations: the same ones give the same hash.
 */
#pragma once

#include "base/mutation.h"
#include "tests/swarm/scenario.h"

struct trial_outcome {
    bool broken;
    char why[512]; /* which promise, and what was seen */
    usec_t at;     /* true time of it */
    uint64_t hash; /* of every timer that fired and every write */
    uint64_t events;
    usec_t node_time; /* simulated time, times nodes */
};

void trial_run(const struct plan *plan, mutations_t mutations, bool verbose,
               struct trial_outcome *ret);
/* The same for the bridge's story (fleet.h), which has other servers and other processes. */
void fleet_run(const struct plan *plan, mutations_t mutations, bool verbose,
               struct trial_outcome *ret);
