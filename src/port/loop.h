/*
 * loop: the door to time. What time it is, and being called at a time.
 *
 * One thread. A timer fires from the loop, never from inside the call that set it, so nobody acts
 * inside a foreign callback. `now` is monotonic and is read once a turn; `wall` is civil time,
 * which may jump: only logs, API fields and calendars use it. host/ opens this door on libevent,
 * sandbox/ on a heap of virtual times.
 */
#pragma once

#include "base/defs.h"

struct loop_timer {
    struct loop *loop;
    void (*fire)(void *ctx);
    void *ctx;
    usec_t at; /* monotonic; meaningful while armed */
    bool armed;
    void *impl;   /* owned by the implementation */
    uint64_t seq; /* the implementation's tie-break: timers due at one instant fire in the order
                     they were set */
};

struct loop_ops {
    usec_t (*now)(struct loop *loop);
    usec_t (*wall)(struct loop *loop);
    uint64_t (*random)(struct loop *loop);
    void (*timer_set)(struct loop_timer *t, usec_t at);
    void (*timer_stop)(struct loop_timer *t);
    void (*timer_done)(struct loop_timer *t);
};

struct loop {
    const struct loop_ops *ops;
    /* Borrowed: in a simulation, the loop of true time that goes on while the process of this loop
     * is frozen; servers and networks run on it. NULL: this loop is its own. */
    struct loop *root;
};

static inline struct loop *loop_root(struct loop *loop)
{
    return loop->root != NULL ? loop->root : loop;
}

static inline usec_t loop_now(struct loop *loop)
{
    return loop->ops->now(loop);
}

static inline usec_t loop_wall(struct loop *loop)
{
    return loop->ops->wall(loop);
}

/* For jitter. From the seed in a simulation. */
static inline uint64_t loop_random(struct loop *loop)
{
    return loop->ops->random(loop);
}

static inline void loop_timer_init(struct loop_timer *t, struct loop *loop, void (*fire)(void *ctx),
                                   void *ctx)
{
    *t = (struct loop_timer){ .loop = loop, .fire = fire, .ctx = ctx };
}

/* (Re)arms: it fires once, at or after `at`; a time in the past means as soon as the loop runs. */
static inline void loop_timer_set(struct loop_timer *t, usec_t at)
{
    t->loop->ops->timer_set(t, at);
}

static inline void loop_timer_stop(struct loop_timer *t)
{
    if (t->armed) {
        t->loop->ops->timer_stop(t);
    }
}

/* Arms the timer for `at` unless it fires earlier already. */
static inline void loop_timer_pull(struct loop_timer *t, usec_t at)
{
    if (!t->armed || at < t->at) {
        loop_timer_set(t, at);
    }
}

/* Accepts a zeroed timer. */
static inline void loop_timer_done(struct loop_timer *t)
{
    if (t->loop != NULL) {
        t->loop->ops->timer_done(t);
        t->loop = NULL;
    }
}
