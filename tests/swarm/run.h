/*
 * run: one simulated run: a server, a world and controllers on one virtual clock, and the
 * scenario's actions done to them.
 *
 * After every event the promises (check_basic.h) are checked; the first that is broken ends the
 * run. A run is a function of its scenario and mutations: the same ones give the same hash.
 */
#pragma once

#include "base/mutation.h"
#include "tests/swarm/scenario.h"

struct sim_run_outcome {
    bool violated;
    char violation[512]; /* which promise, and what was seen */
    usec_t at;           /* true time of it */
    uint64_t hash;       /* of every timer that fired and every write */
    uint64_t events;
    usec_t node_time; /* simulated time, times nodes */
};

void sim_run_scenario(const struct scenario *scenario, mutations_t mutations, bool verbose,
                      struct sim_run_outcome *ret);
/* The same for the bridge's story (bridge_run.h), which has other servers and other processes. */
void bridge_run_scenario(const struct scenario *scenario, mutations_t mutations, bool verbose,
                         struct sim_run_outcome *ret);
