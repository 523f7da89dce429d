#include "base/arena.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

#define WALL_START SECONDS(1700000000)

/* What fired, in order, as letters; and a timer that can set itself again. */
struct probe {
    char fired[512];
    size_t n;
};

struct mark {
    struct probe *probe;
    struct loop_timer timer;
    char name;
    usec_t again; /* sets itself again that much later, once; 0 = not */
    usec_t seen;  /* the view's time when it fired last */
};

static void mark_fire(void *ctx)
{
    struct mark *m = ctx;
    CHECK(m->probe->n + 1 < sizeof(m->probe->fired));
    m->probe->fired[m->probe->n++] = m->name;
    m->seen = loop_now(m->timer.loop);
    if (m->again != 0) {
        usec_t at = m->seen + m->again;
        m->again = 0;
        loop_timer_set(&m->timer, at);
    }
}

static void mark_init(struct mark *m, struct probe *probe, struct loop *loop, char name)
{
    *m = (struct mark){ .probe = probe, .name = name };
    loop_timer_init(&m->timer, loop, mark_fire, m);
}

TEST(virtual_loop_fires_by_time_then_by_order_of_setting)
{
    struct virtual_loop *v = virtual_loop_new(1, WALL_START);
    struct probe probe = { 0 };
    struct mark m[5];
    for (int i = 0; i < 5; i++) {
        mark_init(&m[i], &probe, virtual_loop_root(v), (char)('a' + i));
    }
    loop_timer_set(&m[4].timer, SECONDS(5));
    loop_timer_set(&m[3].timer, SECONDS(5));
    loop_timer_set(&m[0].timer, SECONDS(9));
    loop_timer_set(&m[1].timer, SECONDS(5));
    loop_timer_set(&m[2].timer, SECONDS(1));
    loop_timer_set(&m[4].timer, SECONDS(5)); /* set again: now the youngest of the three */
    CHECK_EQ(virtual_loop_armed(v), 5);
    CHECK_EQ(virtual_loop_next(v), SECONDS(1));
    CHECK_EQ(virtual_loop_run(v, SECONDS(5)), 4);
    CHECK_STR(probe.fired, "cdbe");
    CHECK_EQ(virtual_loop_now(v), SECONDS(5));
    CHECK(!virtual_loop_step(v, SECONDS(8)));
    CHECK_EQ(virtual_loop_now(v), SECONDS(8));
    CHECK(virtual_loop_step(v, SECONDS(20)));
    CHECK_EQ(virtual_loop_now(v), SECONDS(9));
    CHECK_EQ(virtual_loop_next(v), USEC_NEVER);
    CHECK_EQ(loop_wall(virtual_loop_root(v)), WALL_START + SECONDS(9));
    virtual_loop_free(v);
}

TEST(virtual_loop_runs_a_past_time_at_once_but_after_what_waits_already)
{
    struct virtual_loop *v = virtual_loop_new(1, WALL_START);
    struct probe probe = { 0 };
    struct mark a;
    struct mark b;
    mark_init(&a, &probe, virtual_loop_root(v), 'a');
    mark_init(&b, &probe, virtual_loop_root(v), 'b');
    CHECK(!virtual_loop_step(v, SECONDS(10)));
    loop_timer_set(&a.timer, SECONDS(10));
    loop_timer_set(&b.timer, SECONDS(3));
    CHECK_EQ(b.timer.at, SECONDS(3));
    CHECK_EQ(virtual_loop_run(v, SECONDS(10)), 2);
    CHECK_STR(probe.fired, "ab");
    CHECK_EQ(b.seen, SECONDS(10));
    virtual_loop_free(v);
}

TEST(virtual_loop_stops_and_pulls)
{
    struct virtual_loop *v = virtual_loop_new(1, WALL_START);
    struct probe probe = { 0 };
    struct mark a;
    struct mark b;
    mark_init(&a, &probe, virtual_loop_root(v), 'a');
    mark_init(&b, &probe, virtual_loop_root(v), 'b');
    loop_timer_set(&a.timer, SECONDS(1));
    loop_timer_set(&b.timer, SECONDS(9));
    loop_timer_stop(&a.timer);
    loop_timer_stop(&a.timer);
    loop_timer_pull(&b.timer, SECONDS(12));
    CHECK_EQ(virtual_loop_next(v), SECONDS(9));
    loop_timer_pull(&b.timer, SECONDS(2));
    CHECK_EQ(virtual_loop_next(v), SECONDS(2));
    b.again = SECONDS(3);
    CHECK_EQ(virtual_loop_run(v, MINUTES(1)), 2);
    CHECK_STR(probe.fired, "bb");
    CHECK_EQ(b.seen, SECONDS(5));
    loop_timer_set(&a.timer, MINUTES(2));
    loop_timer_done(&a.timer);
    loop_timer_done(&a.timer);
    CHECK_EQ(virtual_loop_armed(v), 0);
    virtual_loop_free(v);
}

TEST(virtual_loop_views_have_their_own_civil_time)
{
    struct virtual_loop *v = virtual_loop_new(1, WALL_START);
    struct loop *early = virtual_loop_view_new(v, -SECONDS(7));
    struct loop *late = virtual_loop_view_new(v, SECONDS(3));
    CHECK(!virtual_loop_step(v, SECONDS(10)));
    CHECK_EQ(loop_now(early), loop_now(late));
    CHECK_EQ(loop_wall(late) - loop_wall(early), SECONDS(10));
    virtual_loop_step_wall(late, -HOURS(1));
    CHECK_EQ(loop_now(late), SECONDS(10));
    CHECK_EQ(loop_wall(late), WALL_START + SECONDS(13) - HOURS(1));
    CHECK(loop_root(late) == virtual_loop_root(v));
    CHECK(loop_root(virtual_loop_root(v)) == virtual_loop_root(v));
    virtual_loop_view_free(early);
    virtual_loop_view_free(late);
    virtual_loop_free(v);
}

TEST(virtual_loop_views_differ_in_their_random_numbers_and_repeat_by_seed)
{
    uint64_t seen[2][3];
    for (int run = 0; run < 2; run++) {
        struct virtual_loop *v = virtual_loop_new(42, WALL_START);
        struct loop *view = virtual_loop_view_new(v, 0);
        seen[run][0] = loop_random(virtual_loop_root(v));
        seen[run][1] = loop_random(view);
        seen[run][2] = loop_random(view);
        virtual_loop_view_free(view);
        virtual_loop_free(v);
    }
    CHECK(memcmp(seen[0], seen[1], sizeof(seen[0])) == 0);
    CHECK(seen[0][0] != seen[0][1]);
    CHECK(seen[0][1] != seen[0][2]);
}

TEST(virtual_loop_frozen_view_waits_and_catches_up_in_order)
{
    struct virtual_loop *v = virtual_loop_new(1, WALL_START);
    struct loop *view = virtual_loop_view_new(v, 0);
    struct probe probe = { 0 };
    struct mark m[5];
    for (int i = 0; i < 4; i++) {
        mark_init(&m[i], &probe, view, (char)('a' + i));
    }
    mark_init(&m[4], &probe, virtual_loop_root(v), 'R');
    loop_timer_set(&m[2].timer, SECONDS(7));
    loop_timer_set(&m[0].timer, SECONDS(5));
    loop_timer_set(&m[1].timer, SECONDS(6));
    loop_timer_set(&m[3].timer, SECONDS(30));
    loop_timer_set(&m[4].timer, SECONDS(8));
    virtual_loop_freeze(view, true);
    CHECK(virtual_loop_is_frozen(view));
    CHECK_EQ(virtual_loop_run(v, SECONDS(20)), 1);
    CHECK_STR(probe.fired, "R");
    CHECK_EQ(virtual_loop_armed(v), 4);
    loop_timer_stop(&m[1].timer);             /* a held timer can still be stopped, */
    loop_timer_set(&m[0].timer, SECONDS(19)); /* … and set anew */
    virtual_loop_check(v);
    virtual_loop_freeze(view, false);
    virtual_loop_check(v);
    CHECK_EQ(virtual_loop_next(v), SECONDS(20));
    CHECK_EQ(virtual_loop_run(v, MINUTES(1)), 3);
    CHECK_STR(probe.fired, "Rcad");
    CHECK_EQ(m[2].seen, SECONDS(20));
    CHECK_EQ(m[3].seen, SECONDS(30));
    virtual_loop_view_free(view);
    virtual_loop_free(v);
}

TEST(virtual_loop_drift_moves_clock_and_timers)
{
    struct virtual_loop *v = virtual_loop_new(1, WALL_START);
    struct loop *view = virtual_loop_view_new(v, 0);
    struct probe probe = { 0 };
    struct mark m;
    mark_init(&m, &probe, view, 'a');
    loop_timer_set(&m.timer, SECONDS(1100));
    virtual_loop_set_drift(view, 100000); /* 10 % fast */
    CHECK_EQ(virtual_loop_next(v), SECONDS(1000));
    CHECK(virtual_loop_step(v, HOURS(1)));
    CHECK_EQ(virtual_loop_now(v), SECONDS(1000));
    CHECK_EQ(m.seen, SECONDS(1100));
    CHECK_EQ(loop_wall(view), WALL_START + SECONDS(1100));
    virtual_loop_set_drift(view, 0); /* true again, and what was gained stays */
    loop_timer_set(&m.timer, SECONDS(1200));
    CHECK_EQ(virtual_loop_next(v), SECONDS(1100));
    loop_timer_set(&m.timer, USEC_NEVER);
    CHECK_EQ(virtual_loop_next(v), USEC_NEVER);
    virtual_loop_set_drift(view, -20);
    CHECK_EQ(virtual_loop_next(v), USEC_NEVER);
    loop_timer_stop(&m.timer);
    virtual_loop_view_free(view);
    virtual_loop_free(v);
}

#define STRESS_TIMERS 64

struct stress {
    struct virtual_loop *v;
    struct loop *views[4]; /* the first is the root */
    struct mark_plain {
        struct stress *stress;
        struct loop_timer timer;
        usec_t due; /* in the view's time */
    } timers[STRESS_TIMERS];
    uint64_t hash;
    uint64_t fired;
    usec_t last;
    struct rng *rng;
};

static void stress_on_fire(void *ctx, const struct virtual_loop_event *event)
{
    struct stress *s = ctx;
    CHECK(event->now >= s->last);
    s->last = event->now;
    s->hash = (s->hash ^ (uint64_t)event->now) * 1099511628211ULL;
    s->hash = (s->hash ^ event->seq) * 1099511628211ULL;
    s->hash = (s->hash ^ event->view) * 1099511628211ULL;
}

static void stress_fire(void *ctx)
{
    struct mark_plain *m = ctx;
    struct stress *s = m->stress;
    s->fired++;
    CHECK(!m->timer.armed);
    CHECK(loop_now(m->timer.loop) >= m->due);
    if (rng_chance(s->rng, 300)) {
        m->due = loop_now(m->timer.loop) + rng_usec(s->rng, 0, SECONDS(2));
        loop_timer_set(&m->timer, m->due);
    }
}

static void stress_act(struct stress *s)
{
    struct mark_plain *m = &s->timers[rng_below(s->rng, STRESS_TIMERS)];
    struct loop *view = s->views[1 + rng_below(s->rng, 3)];
    switch (rng_below(s->rng, 10)) {
    case 0:
        loop_timer_stop(&m->timer);
        break;
    case 1:
        virtual_loop_freeze(view, !virtual_loop_is_frozen(view));
        break;
    case 2:
        virtual_loop_set_drift(view, (int32_t)rng_below(s->rng, 2 * VIRTUAL_LOOP_DRIFT_MAX + 1) -
                                         VIRTUAL_LOOP_DRIFT_MAX);
        break;
    case 3:
    case 4:
        (void)virtual_loop_run(s->v, virtual_loop_now(s->v) + rng_usec(s->rng, 0, SECONDS(1)));
        break;
    default:
        m->due = loop_now(m->timer.loop) + rng_usec(s->rng, -SECONDS(1), SECONDS(3));
        loop_timer_set(&m->timer, m->due);
        break;
    }
    virtual_loop_check(s->v);
}

static uint64_t stress_run(struct rng *rng)
{
    struct stress s = { .v = virtual_loop_new(rng_next(rng), WALL_START), .rng = rng };
    virtual_loop_trace(s.v, stress_on_fire, &s);
    s.views[0] = virtual_loop_root(s.v);
    for (int i = 1; i < 4; i++) {
        s.views[i] = virtual_loop_view_new(s.v, 0);
    }
    for (uint32_t i = 0; i < STRESS_TIMERS; i++) {
        s.timers[i].stress = &s;
        loop_timer_init(&s.timers[i].timer, s.views[i % 4], stress_fire, &s.timers[i]);
    }
    for (int step = 0; step < 300; step++) {
        stress_act(&s);
    }
    for (int i = 1; i < 4; i++) {
        virtual_loop_freeze(s.views[i], false);
    }
    /* Whatever was set and not stopped has fired in the end. */
    (void)virtual_loop_run(s.v, virtual_loop_now(s.v) + DAYS(1));
    CHECK_EQ(virtual_loop_armed(s.v), 0);
    for (uint32_t i = 0; i < STRESS_TIMERS; i++) {
        loop_timer_done(&s.timers[i].timer);
    }
    for (int i = 1; i < 4; i++) {
        virtual_loop_view_free(s.views[i]);
    }
    virtual_loop_free(s.v);
    return s.hash;
}

/* Whatever is set, stopped, frozen and drifted: nothing fires early, twice or out of order. */
PROPERTY(virtual_loop_keeps_order_and_promises)
{
    (void)stress_run(rng);
}

PROPERTY(virtual_loop_repeats_a_run_from_its_seed)
{
    uint64_t seed = rng_next(rng);
    struct rng first;
    struct rng second;
    rng_init(&first, seed);
    rng_init(&second, seed);
    CHECK(stress_run(&first) == stress_run(&second));
}
