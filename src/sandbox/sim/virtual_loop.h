/*
 * virtual_loop: virtual time: one heap of timers, and a view of it for each simulated process. Only
 * tests link it.
 *
 * Time stands still while anything runs and jumps to the next timer when nothing does, so a day
 * costs what happens in it and not a second more. Views share the heap: what happens in one
 * process and what happens in another are in one total order (time, then the order of setting),
 * and a run is a function of its seed. Each view has its own clock error (skew and steps of civil
 * time, drift of both clocks), its own random numbers, and can be frozen as SIGSTOP does: its
 * timers wait, and fire at the thaw in the order in which they were due.
 */
#pragma once

#include "port/loop.h"

struct virtual_loop;

#define VIRTUAL_LOOP_DRIFT_MAX                                                                     \
    100000 /* parts per million; no clock that ticks is worse than 10 % */

struct virtual_loop_event {
    usec_t now;    /* true time */
    uint64_t seq;  /* of the setting that led to it */
    uint32_t view; /* 0 is the root, others in order of making */
};

/* Called before each timer that fires. Hash what it is given: same seed, same hash. */
typedef void (*virtual_loop_on_fire)(void *ctx, const struct virtual_loop_event *event);

struct virtual_loop *virtual_loop_new(uint64_t seed, usec_t wall_start);
/* No timer may be armed, and every view but the root is gone. Accepts NULL. */
void virtual_loop_free(struct virtual_loop *v);

/* The simulation's own view: true time, never frozen. Networks and servers, which belong to no
 * process, run on it; loop_root of every view leads here. */
struct loop *virtual_loop_root(struct virtual_loop *v);
struct loop *virtual_loop_view_new(struct virtual_loop *v, usec_t wall_skew);
/* No timer of the view may be armed. Accepts NULL. */
void virtual_loop_view_free(struct loop *view);

void virtual_loop_freeze(struct loop *view, bool frozen);
bool virtual_loop_is_frozen(struct loop *view);
/* Civil time jumps by `by`; monotonic time does not. */
void virtual_loop_step_wall(struct loop *view, usec_t by);
/* Both clocks of the view run `ppm` parts per million fast from now on. */
void virtual_loop_set_drift(struct loop *view, int32_t ppm);

void virtual_loop_trace(struct virtual_loop *v, virtual_loop_on_fire on_fire, void *ctx);

usec_t virtual_loop_now(const struct virtual_loop *v); /* true time since the start */
/* When the next timer is due that a thawed view owns; USEC_NEVER: none. */
usec_t virtual_loop_next(struct virtual_loop *v);
/* Runs the next timer due at or before `until`; false: there is none, and the clock is at `until`.
 */
bool virtual_loop_step(struct virtual_loop *v, usec_t until);
/* Steps until there is none; answers how many timers fired. */
uint64_t virtual_loop_run(struct virtual_loop *v, usec_t until);

uint32_t
virtual_loop_armed(const struct virtual_loop *v); /* timers, waiting in frozen views included */
void virtual_loop_check(const struct virtual_loop *v); /* asserts the order of the heap; O(n) */
