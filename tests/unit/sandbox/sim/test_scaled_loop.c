#include "sandbox/sim/scaled_loop.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

#define WALL_START SECONDS(1700000000)

struct ring {
    struct loop_timer timer;
    uint32_t count;
    usec_t now;
    usec_t wall;
    usec_t every; /* 0 = once */
};

static void ring_fire(void *ctx)
{
    struct ring *r = ctx;
    r->count++;
    r->now = loop_now(r->timer.loop);
    r->wall = loop_wall(r->timer.loop);
    if (r->every > 0) {
        loop_timer_set(&r->timer, r->timer.at + r->every);
    }
}

TEST(scaled_loop_runs_faster_than_the_loop_below)
{
    struct virtual_loop *v = virtual_loop_new(1, WALL_START);
    CHECK(!virtual_loop_step(v, SECONDS(5)));
    struct loop *fast = scaled_loop_new(virtual_loop_root(v), 60);
    CHECK_EQ(loop_now(fast), SECONDS(5));
    struct ring r = { 0 };
    loop_timer_init(&r.timer, fast, ring_fire, &r);
    loop_timer_set(&r.timer, SECONDS(5) + HOURS(1));
    CHECK_EQ(virtual_loop_run(v, SECONDS(64)), 0);
    CHECK_EQ(loop_now(fast), SECONDS(5) + MINUTES(59));
    CHECK_EQ(virtual_loop_run(v, SECONDS(65)), 1);
    CHECK_EQ(r.now, SECONDS(5) + HOURS(1));
    CHECK_EQ(r.wall, WALL_START + SECONDS(5) + HOURS(1));
    loop_timer_done(&r.timer);
    scaled_loop_free(fast);
    virtual_loop_free(v);
}

TEST(scaled_loop_timer_can_be_stopped_set_again_and_forgotten)
{
    struct virtual_loop *v = virtual_loop_new(1, WALL_START);
    struct loop *fast = scaled_loop_new(virtual_loop_root(v), 10);
    struct ring r = { .every = SECONDS(10) };
    loop_timer_init(&r.timer, fast, ring_fire, &r);
    loop_timer_set(&r.timer, SECONDS(10));
    CHECK_EQ(virtual_loop_run(v, SECONDS(10)), 10);
    loop_timer_stop(&r.timer);
    CHECK_EQ(virtual_loop_run(v, SECONDS(20)), 0);
    loop_timer_set(&r.timer, USEC_NEVER);
    CHECK_EQ(virtual_loop_run(v, DAYS(1)), 0);
    loop_timer_done(&r.timer);
    CHECK_EQ(virtual_loop_armed(v), 0);
    loop_timer_done(&r.timer);
    scaled_loop_free(fast);
    virtual_loop_free(v);
}

/* At any speed: never early, and late by no more than the loop below can tell. */
PROPERTY(scaled_loop_timer_is_never_early)
{
    struct virtual_loop *v = virtual_loop_new(rng_next(rng), WALL_START);
    double speed = (double)(1 + rng_below(rng, 100000)) / (1 + rng_below(rng, 100));
    struct loop *fast = scaled_loop_new(virtual_loop_root(v), speed);
    struct ring r = { 0 };
    loop_timer_init(&r.timer, fast, ring_fire, &r);
    for (uint32_t i = 1; i <= 20; i++) {
        usec_t at = loop_now(fast) + rng_usec(rng, 0, HOURS(1));
        loop_timer_set(&r.timer, at);
        CHECK(virtual_loop_step(v, USEC_NEVER));
        CHECK_EQ(r.count, i);
        CHECK(r.now >= at);
        CHECK(r.now <= at + (usec_t)speed + 1);
    }
    loop_timer_done(&r.timer);
    scaled_loop_free(fast);
    virtual_loop_free(v);
}

TEST(scaled_loop_civil_time_can_begin_anywhere)
{
    struct virtual_loop *v = virtual_loop_new(1, WALL_START);
    struct loop *fast = scaled_loop_new(virtual_loop_root(v), 10);
    CHECK(!virtual_loop_step(v, SECONDS(3)));
    scaled_loop_set_wall(fast, SECONDS(5000));
    CHECK_EQ(loop_wall(fast), SECONDS(5000));
    CHECK_EQ(loop_now(fast), SECONDS(30));
    CHECK(!virtual_loop_step(v, SECONDS(4)));
    CHECK_EQ(loop_wall(fast), SECONDS(5010));
    scaled_loop_free(fast);
    virtual_loop_free(v);
}
