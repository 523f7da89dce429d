#include "kube/server_clock.h"

#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

#define WALL SECONDS(1767323045) /* 2026-01-02T03:04:05Z */

struct world {
    struct virtual_loop *time;
    struct loop *loop; /* an hour ahead of the world */
    struct server_clock clock;
};

static void world_begin(struct world *w)
{
    w->time = virtual_loop_new(1, WALL);
    w->loop = virtual_loop_view_new(w->time, HOURS(1));
    server_clock_init(&w->clock, w->loop);
}

static void world_end(struct world *w)
{
    virtual_loop_view_free(w->loop);
    virtual_loop_free(w->time);
}

/* How far the clock is from the world's. */
static usec_t world_error(const struct world *w)
{
    usec_t off = server_clock_wall(&w->clock) - loop_wall(virtual_loop_root(w->time));
    return off < 0 ? -off : off;
}

/* The server answers now: whole seconds of its own time. */
static void world_answer(struct world *w)
{
    server_clock_note(&w->clock, loop_wall(virtual_loop_root(w->time)) / SECONDS(1) * SECONDS(1),
                      0);
}

/* The server answers now, and its answer is on its way for that long. */
static void world_answer_late(struct world *w, usec_t way)
{
    usec_t date = loop_wall(virtual_loop_root(w->time)) / SECONDS(1) * SECONDS(1);
    (void)virtual_loop_run(w->time, virtual_loop_now(w->time) + way); /* nothing is due */
    server_clock_note(&w->clock, date, way);
}

TEST(server_clock_is_the_local_one_until_a_server_has_answered)
{
    CLEANUP(world_end)
    struct world w;
    world_begin(&w);
    server_clock_note(&w.clock, 0, 0); /* an answer without a date */
    CHECK_EQ(server_clock_wall(&w.clock), loop_wall(w.loop));
    world_answer(&w);
    CHECK(world_error(&w) <= MSECONDS(500));
}

TEST(server_clock_follows_the_server_whatever_happens_to_the_local_one)
{
    CLEANUP(world_end)
    struct world w;
    world_begin(&w);
    world_answer(&w);
    virtual_loop_step_wall(w.loop, -HOURS(5));
    CHECK(world_error(&w) <= MSECONDS(500));
    virtual_loop_set_drift(w.loop, 1000); /* a millisecond a second */
    for (int i = 0; i < 5000; i++) {
        (void)virtual_loop_run(w.time,
                               virtual_loop_now(w.time) + MSECONDS(900)); /* nothing is due */
        world_answer(&w);
        CHECK(world_error(&w) <= SECONDS(1));
    }
    CHECK_EQ(w.clock.jumps, 0);
}

TEST(server_clock_goes_on_between_answers)
{
    CLEANUP(world_end)
    struct world w;
    world_begin(&w);
    world_answer(&w);
    usec_t before = server_clock_wall(&w.clock);
    (void)virtual_loop_run(w.time, virtual_loop_now(w.time) + HOURS(2)); /* nothing is due */
    CHECK_EQ(server_clock_wall(&w.clock) - before, HOURS(2));
}

TEST(server_clock_believes_a_server_that_jumps)
{
    CLEANUP(world_end)
    struct world w;
    world_begin(&w);
    world_answer(&w);
    server_clock_note(&w.clock, WALL + HOURS(3), 0);
    CHECK_EQ(w.clock.jumps, 1);
    CHECK(world_error(&w) >= HOURS(3));
    world_answer(&w);
    CHECK_EQ(w.clock.jumps, 2);
    CHECK(world_error(&w) <= MSECONDS(500));
}

/* Otherwise a time limit that begins now would be written as one that began a while ago, and run
 * out early (R7). */
TEST(server_clock_does_not_go_back_for_an_answer_that_was_long_on_its_way)
{
    CLEANUP(world_end)
    struct world w;
    world_begin(&w);
    world_answer(&w);
    world_answer_late(&w, SECONDS(16));
    CHECK_EQ(w.clock.jumps, 0);
    CHECK(world_error(&w) <= MSECONDS(500));
    for (int i = 0; i < 100; i++) {
        world_answer_late(&w, MSECONDS(1900));
    }
    CHECK(world_error(&w) <= MSECONDS(500));
}

/* An answer that was given last, or first: the clock is not ahead, and knows how far behind it may
 * be. */
TEST(server_clock_that_began_with_a_late_answer_knows_how_far_behind_it_may_be)
{
    for (int first = 0; first < 2; first++) {
        CLEANUP(world_end)
        struct world w;
        world_begin(&w);
        check_case(first);
        if (first == 0) {
            server_clock_note(&w.clock, WALL, SECONDS(16));
        } else {
            world_answer_late(&w, SECONDS(16));
        }
        usec_t true_wall = loop_wall(virtual_loop_root(w.time));
        CHECK(server_clock_wall(&w.clock) <= true_wall + MSECONDS(500));
        CHECK(server_clock_wall(&w.clock) + server_clock_doubt(&w.clock) >=
              true_wall - MSECONDS(500));
        world_answer(&w);
        CHECK(world_error(&w) <= MSECONDS(500));
        CHECK_EQ(server_clock_doubt(&w.clock), 0);
    }
    check_case(-1);
}

TEST(server_clock_believes_a_late_answer_that_no_delay_explains)
{
    CLEANUP(world_end)
    struct world w;
    world_begin(&w);
    server_clock_note(&w.clock, WALL + HOURS(3), 0);
    world_answer_late(&w, SECONDS(4));
    CHECK_EQ(w.clock.jumps, 1);
    CHECK(world_error(&w) <= SECONDS(4) + MSECONDS(500));
    CHECK_EQ(server_clock_doubt(&w.clock), SECONDS(4));
}
