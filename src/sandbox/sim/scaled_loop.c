#include "sandbox/sim/scaled_loop.h"

#include "base/alloc.h"

/* Some 140 years: what is later than that never comes, and doubles count exactly up to there. */
#define SCALED_LOOP_NEVER ((usec_t)1 << 52)

struct scaled_loop {
    struct loop loop;
    struct loop *below; /* borrowed */
    double speed;
    usec_t now_start;
    usec_t wall_start;
    uint32_t armed;
};

/* The timer below that stands for one above. */
struct scaled_loop_timer {
    struct loop_timer below;
    struct loop_timer *above; /* borrowed: it owns this through its `impl` */
};

static struct scaled_loop *scaled_loop_of(struct loop *loop)
{
    return CONTAINER_OF(loop, struct scaled_loop, loop);
}

static usec_t scaled_loop_gone(const struct scaled_loop *s)
{
    return (usec_t)((double)(loop_now(s->below) - s->now_start) * s->speed);
}

static usec_t scaled_loop_op_now(struct loop *loop)
{
    struct scaled_loop *s = scaled_loop_of(loop);
    return s->now_start + scaled_loop_gone(s);
}

static usec_t scaled_loop_op_wall(struct loop *loop)
{
    struct scaled_loop *s = scaled_loop_of(loop);
    return s->wall_start + scaled_loop_gone(s);
}

static uint64_t scaled_loop_op_random(struct loop *loop)
{
    return loop_random(scaled_loop_of(loop)->below);
}

/* The first time below at which the clock above shows `at` or more; USEC_NEVER if that is beyond
 * all counting. */
static usec_t scaled_loop_below(const struct scaled_loop *s, usec_t at)
{
    double gone = (double)(at - s->now_start) / s->speed;
    if (at >= SCALED_LOOP_NEVER || gone >= (double)SCALED_LOOP_NEVER) {
        return USEC_NEVER;
    }
    usec_t below = s->now_start + (usec_t)gone;
    while (s->now_start + (usec_t)((double)(below - s->now_start) * s->speed) < at) {
        below++;
    }
    return below;
}

static void scaled_loop_fire(void *ctx)
{
    struct scaled_loop_timer *t = ctx;
    struct loop_timer *above = t->above;
    above->armed = false;
    scaled_loop_of(above->loop)->armed--;
    above->fire(above->ctx);
}

static void scaled_loop_op_set(struct loop_timer *above, usec_t at)
{
    struct scaled_loop *s = scaled_loop_of(above->loop);
    struct scaled_loop_timer *t = above->impl;
    if (t == NULL) {
        t = ALLOC_NEW(struct scaled_loop_timer);
        t->above = above;
        loop_timer_init(&t->below, s->below, scaled_loop_fire, t);
        above->impl = t;
    }
    s->armed += above->armed ? 0 : 1;
    above->armed = true;
    above->at = at;
    loop_timer_set(&t->below, scaled_loop_below(s, at));
    above->seq = t->below.seq;
}

static void scaled_loop_op_stop(struct loop_timer *above)
{
    struct scaled_loop_timer *t = above->impl;
    if (above->armed) {
        loop_timer_stop(&t->below);
        above->armed = false;
        scaled_loop_of(above->loop)->armed--;
    }
}

static void scaled_loop_op_done(struct loop_timer *above)
{
    struct scaled_loop_timer *t = above->impl;
    scaled_loop_op_stop(above);
    if (t != NULL) {
        loop_timer_done(&t->below);
        alloc_free(t);
        above->impl = NULL;
    }
}

static const struct loop_ops scaled_loop_ops = {
    .now = scaled_loop_op_now,
    .wall = scaled_loop_op_wall,
    .random = scaled_loop_op_random,
    .timer_set = scaled_loop_op_set,
    .timer_stop = scaled_loop_op_stop,
    .timer_done = scaled_loop_op_done,
};

struct loop *scaled_loop_new(struct loop *below, double speed)
{
    ASSERT(speed > 0);
    ASSERT(speed <= SCALED_LOOP_SPEED_MAX);
    struct scaled_loop *s = ALLOC_NEW(struct scaled_loop);
    s->loop.ops = &scaled_loop_ops;
    s->below = below;
    s->speed = speed;
    s->now_start = loop_now(below);
    s->wall_start = loop_wall(below);
    return &s->loop;
}

void scaled_loop_set_wall(struct loop *loop, usec_t wall)
{
    struct scaled_loop *s = scaled_loop_of(loop);
    s->wall_start = wall - scaled_loop_gone(s);
}

void scaled_loop_free(struct loop *loop)
{
    if (loop == NULL) {
        return;
    }
    struct scaled_loop *s = scaled_loop_of(loop);
    ASSERT(s->armed == 0);
    alloc_free(s);
}
