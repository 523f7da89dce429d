/*
 * scaled_loop: a loop that runs faster than the one below it.
 *
 * `drydock sandbox --speed 60` puts the API server and the world on it: an hour passes in a minute
 * of real time. It begins at the time of the loop below, so civil time starts right and then runs
 * ahead. Timers keep their order; those due at one instant fire in the order of setting as far as
 * the loop below keeps it.
 */
#pragma once

#include "port/loop.h"

#define SCALED_LOOP_SPEED_MAX                                                                      \
    100000.0 /* faster, and a microsecond below is no longer a tenth of a                          \
                second above */

/* 0 < speed <= SCALED_LOOP_SPEED_MAX. `below` outlives it. */
struct loop *scaled_loop_new(struct loop *below, double speed);
/* Civil time is `wall` at this moment and goes on from there; monotonic time does not notice. */
void scaled_loop_set_wall(struct loop *loop, usec_t wall);
/* No timer may be armed. Accepts NULL. */
void scaled_loop_free(struct loop *loop);
