#include "host/loop.h"
#include "tests/check.h"

#include <signal.h>

struct story {
    struct loop *loop;
    struct loop_timer a;
    struct loop_timer b;
    struct loop_timer c;
    char seen[64];
    size_t n;
    usec_t now_first;
};

static void note(struct story *s, char c)
{
    ASSERT(s->n + 1 < sizeof(s->seen));
    s->seen[s->n++] = c;
}

static void fire_a(void *ctx)
{
    struct story *s = ctx;
    note(s, 'a');
}

static void fire_b(void *ctx)
{
    struct story *s = ctx;
    note(s, 'b');
}

static void fire_stop(void *ctx)
{
    struct story *s = ctx;
    note(s, '.');
    host_loop_stop(s->loop);
}

static void story_begin(struct story *s)
{
    *s = (struct story){ .loop = host_loop_new() };
    loop_timer_init(&s->a, s->loop, fire_a, s);
    loop_timer_init(&s->b, s->loop, fire_b, s);
    loop_timer_init(&s->c, s->loop, fire_stop, s);
}

static void story_end(struct story *s)
{
    loop_timer_done(&s->a);
    loop_timer_done(&s->b);
    loop_timer_done(&s->c);
    host_loop_free(s->loop);
}

TEST(loop_fires_timers_in_order_of_time)
{
    struct story s;
    story_begin(&s);
    usec_t now = loop_now(s.loop);
    loop_timer_set(&s.c, now + MSECONDS(3));
    loop_timer_set(&s.b, now + MSECONDS(2));
    loop_timer_set(&s.a, now + MSECONDS(1));
    host_loop_run(s.loop);
    CHECK_STR(s.seen, "ab.");
    CHECK(loop_now(s.loop) >= now + MSECONDS(3));
    story_end(&s);
}

TEST(loop_fires_timers_of_one_instant_in_the_order_they_were_set)
{
    struct story s;
    story_begin(&s);
    usec_t at = loop_now(s.loop) + MSECONDS(1);
    loop_timer_set(&s.a, at);
    loop_timer_set(&s.b, at);
    loop_timer_set(&s.a, at); /* set again: it goes to the end */
    loop_timer_set(&s.c, at);
    host_loop_run(s.loop);
    CHECK_STR(s.seen, "ba.");
    story_end(&s);
}

TEST(loop_stop_keeps_a_timer_from_firing)
{
    struct story s;
    story_begin(&s);
    usec_t now = loop_now(s.loop);
    loop_timer_set(&s.a, now);
    loop_timer_set(&s.b, now);
    loop_timer_set(&s.c, now);
    loop_timer_stop(&s.a);
    loop_timer_stop(&s.a);
    CHECK(!s.a.armed);
    host_loop_run(s.loop);
    CHECK_STR(s.seen, "b.");
    story_end(&s);
}

static void fire_again(void *ctx)
{
    struct story *s = ctx;
    note(s, 'x');
    if (s->n < 3) {
        loop_timer_set(&s->a, loop_now(s->loop));
    } else {
        host_loop_stop(s->loop);
    }
}

TEST(loop_runs_a_timer_set_by_a_timer_in_the_next_turn)
{
    struct story s;
    story_begin(&s);
    s.a.fire = fire_again;
    loop_timer_set(&s.a, 0);
    uint64_t turns = host_loop_stats(s.loop).turns;
    host_loop_run(s.loop);
    CHECK_STR(s.seen, "xxx");
    CHECK_EQ(host_loop_stats(s.loop).turns - turns, 3);
    CHECK(host_loop_stats(s.loop).late_max < SECONDS(60)); /* not since the clock began */
    story_end(&s);
}

static void fire_slow(void *ctx)
{
    struct story *s = ctx;
    s->now_first = loop_now(s->loop);
    struct timespec start;
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        (void)clock_gettime(CLOCK_MONOTONIC, &t);
    } while ((t.tv_sec - start.tv_sec) * 1000000000 + t.tv_nsec - start.tv_nsec < 2000000);
    CHECK_EQ(loop_now(s->loop), s->now_first);
    host_loop_stop(s->loop);
}

TEST(loop_reads_the_clock_once_a_turn_and_measures_the_turn)
{
    struct story s;
    story_begin(&s);
    s.a.fire = fire_slow;
    usec_t before = loop_now(s.loop);
    loop_timer_set(&s.a, before);
    host_loop_run(s.loop);
    CHECK(s.now_first >= before);
    CHECK(host_loop_stats(s.loop).turn_max >= MSECONDS(2));
    host_loop_stats_reset(s.loop);
    CHECK_EQ(host_loop_stats(s.loop).turn_max, 0);
    story_end(&s);
}

static void hear_signal(void *ctx, int signo)
{
    struct story *s = ctx;
    note(s, signo == SIGUSR1 ? '1' : '2');
    if (s->n == 2) {
        host_loop_stop(s->loop);
    }
}

TEST(loop_hears_signals_in_the_loop)
{
    struct story s;
    story_begin(&s);
    host_loop_on_signal(s.loop, SIGUSR1, hear_signal, &s);
    host_loop_on_signal(s.loop, SIGUSR2, hear_signal, &s);
    (void)raise(SIGUSR1);
    CHECK_EQ(s.n, 0);
    (void)raise(SIGUSR2);
    host_loop_run(s.loop);
    CHECK_EQ(s.n, 2);
    host_loop_on_signal(s.loop, SIGUSR1, NULL, NULL);
    story_end(&s);
}

TEST(loop_turn_comes_back_when_nothing_happens)
{
    struct story s;
    story_begin(&s);
    usec_t now = loop_now(s.loop);
    loop_timer_set(&s.a, now + SECONDS(100));
    host_loop_turn(s.loop, MSECONDS(2));
    CHECK(loop_now(s.loop) >= now + MSECONDS(2));
    CHECK_EQ(s.n, 0);
    host_loop_stop(s.loop);
    host_loop_run(s.loop); /* a stop that came before counts */
    story_end(&s);
}

TEST(loop_random_and_wall_answer)
{
    struct story s;
    story_begin(&s);
    CHECK(loop_random(s.loop) != loop_random(s.loop));
    CHECK(loop_wall(s.loop) > DAYS(365) * 50);
    story_end(&s);
}

/* Whatever is set and stopped, timers fire in order of (time, order of setting), each once. */
struct heap_case {
    struct loop_timer timer;
    struct heap_order *order;
    uint64_t seq;
    bool fired;
};

struct heap_order {
    usec_t at;
    uint64_t seq;
    bool wrong;
};

static void fire_ordered(void *ctx)
{
    struct heap_case *c = ctx;
    struct heap_order *o = c->order;
    o->wrong |= c->fired || c->timer.at < o->at || (c->timer.at == o->at && c->seq < o->seq);
    o->at = c->timer.at;
    o->seq = c->seq;
    c->fired = true;
}

PROPERTY(loop_heap_keeps_its_order)
{
    struct loop *loop = host_loop_new();
    struct heap_case cases[40] = { 0 };
    struct heap_order order = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cases[i].order = &order;
        loop_timer_init(&cases[i].timer, loop, fire_ordered, &cases[i]);
    }
    for (uint64_t step = 1; step < 120; step++) {
        struct heap_case *c = &cases[rng_below(rng, ARRAY_LEN(cases))];
        if (rng_below(rng, 3) == 0) {
            loop_timer_stop(&c->timer);
        } else {
            loop_timer_set(&c->timer, 1 + rng_below(rng, 10));
            c->seq = step;
        }
    }
    bool armed[ARRAY_LEN(cases)];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        armed[i] = cases[i].timer.armed;
    }
    host_loop_turn(loop, 0);
    CHECK(!order.wrong);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_EQ(cases[i].fired, armed[i]);
        CHECK(!cases[i].timer.armed);
        loop_timer_done(&cases[i].timer);
    }
    host_loop_free(loop);
}
