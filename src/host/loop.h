/*
 * loop: the door to time on a real machine, on libevent.
 *
 * Timers live in a heap of our own, ordered by time and then by the order in which they were set;
 * libevent knows one timer, the earliest. That gives the promise of port/loop.h that timers of one
 * instant fire in order, which libevent does not make. A timer that a firing timer sets for now
 * waits for the next turn, so sockets are never starved.
 *
 * SIGPIPE is ignored from the first loop on: a peer that went away is an error of a write, not the
 * end of the process.
 */
#pragma once

#include "port/loop.h"

struct event_base;

struct host_loop_stats {
    uint64_t turns;
    usec_t turn_max;  /* the longest turn, from its first look at the clock to its end */
    usec_t turn_last; /* the one that ended last */
    usec_t late_max;  /* the latest that a timer fired behind its time */
    usec_t late_last;
};

struct loop *host_loop_new(void);

/* All timers are done before, and everything else that stands on the base. Accepts NULL. */
void host_loop_free(struct loop *loop);

/* Until host_loop_stop; a stop that came before is honoured at once. */
void host_loop_run(struct loop *loop);

/* One turn: waits for the first thing to happen, at most `wait_max`, and handles all that is due.
 */
void host_loop_turn(struct loop *loop, usec_t wait_max);

/* Ends host_loop_run after the turn under way. */
void host_loop_stop(struct loop *loop);

/* For what is built on libevent itself: the HTTP server, libcurl's sockets, children. */
struct event_base *host_loop_base(struct loop *loop);

/* `fn` is called from the loop each time the signal comes. One handler a signal and loop: a second
 * call replaces the first; fn = NULL restores the default. */
void host_loop_on_signal(struct loop *loop, int signo, void (*fn)(void *ctx, int signo), void *ctx);

struct host_loop_stats host_loop_stats(const struct loop *loop);

/* Forgets the maxima: whoever publishes them calls this after each reading. */
void host_loop_stats_reset(struct loop *loop);
