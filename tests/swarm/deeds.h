/*
 * deeds: a trial's state, and what the plan's deeds do to it.
 */
#pragma once

#include "base/rng.h"
#include "sandbox/world.h"
#include "tests/swarm/plan.h"
#include "tests/swarm/process.h"

struct trial {
    const struct plan *plan; /* borrowed */
    struct rng rng;
    struct vloop *vloop;
    struct apiserver *server;
    struct world *world;
    struct process processes[PLAN_PROCESSES_MAX];
    struct promise promise;
    struct arena tmp; /* one event */
    uint32_t next_deed;
    usec_t weather_end;
    usec_t server_up_at;
    uint64_t hash;
    uint64_t events;
    uint32_t ran; /* the view of the event that was last: 0 is the world's */
    bool verbose;
};

/* Workloads and budgets, so that the server and the world are not empty but for nodes. */
void trial_populate(struct trial *t);

/* When the next deed begins or the next one ends; USEC_NEVER: none. */
usec_t trial_next_deed(const struct trial *t);
/* Does and ends what is due now. */
void trial_do_deeds(struct trial *t);
/* Ends everything that is wrong: thaws, joins, starts, clears the sky. */
void trial_calm_down(struct trial *t);
