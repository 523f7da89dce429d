#include "agent/engine.h"

#include "tests/check.h"

/* Resources 0 … n-1 of a type that can be refreshed; no machine behind them. */
struct bench {
    struct arena memory;
    struct resource items[8];
    struct resource_list list;
    struct graph graph;
    struct engine engine;
};

static int never(struct resource_call *call UNUSED, struct err *err UNUSED)
{
    assert_fail("the engine calls nobody", __FILE__, __LINE__);
}

static const struct resource_type deaf = { .name = "deaf" };
static const struct resource_type listening = { .name = "listening", .refresh = never };

static void bench_init(struct bench *b, uint32_t n)
{
    *b = (struct bench){ .list = { .items = b->items, .n = n } };
    for (uint32_t i = 0; i < n; i++) {
        b->items[i].name = arena_printf(&b->memory, "r%u", i);
        b->items[i].id = b->items[i].name;
        b->items[i].type = &listening;
        b->items[i].meta.backoff = SECONDS(1);
    }
}

static void bench_edge(struct bench *b, uint32_t from, bool notify, uint32_t to)
{
    struct str *name = ARENA_NEW(&b->memory, struct str);
    *name = b->items[to].name;
    if (notify) {
        b->items[from].notifies_names = name;
        b->items[from].notifies_n = 1;
    } else {
        b->items[from].requires_names = name;
        b->items[from].requires_n = 1;
    }
}

static void bench_start(struct bench *b, struct engine_rules rules)
{
    struct err err = { 0 };
    CHECK_EQ(graph_build(&b->list, &b->memory, &b->graph, &err), 0);
    engine_init(&b->engine, &b->graph, &rules, &b->memory);
}

/* The vertex that comes next, or -1. */
static int64_t next(struct bench *b, usec_t now)
{
    uint32_t v;
    usec_t when;
    engine_check(&b->engine);
    return engine_next(&b->engine, now, &v, &when) ? (int64_t)v : -1;
}

static const char *state_of(const struct bench *b, uint32_t v)
{
    engine_check(&b->engine);
    return vertex_state_names[b->engine.vertices[v].state];
}

static const struct engine_rules everything = { .allowed = DISRUPTION_VISIT };

TEST(engine_leaves_alone_what_is_right)
{
    struct bench b;
    bench_init(&b, 1);
    bench_start(&b, everything);
    CHECK_EQ(next(&b, 0), 0);
    CHECK_EQ(engine_checked(&b.engine, 0, false, DISRUPTION_NONE), ENGINE_DONE);
    CHECK_STR(state_of(&b, 0), "Ok");
    CHECK_EQ(next(&b, 0), -1);
    CHECK(!b.engine.vertices[0].changed);
    engine_dirty(&b.engine, 0);
    CHECK_EQ(next(&b, 0), 0);
    arena_done(&b.memory);
}

TEST(engine_refreshes_whom_a_change_notifies_after_the_change)
{
    struct bench b;
    bench_init(&b, 3);
    bench_edge(&b, 0, true, 2);
    bench_edge(&b, 1, true, 2);
    bench_start(&b, everything);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(next(&b, 0), i);
        CHECK_EQ(engine_checked(&b.engine, i, true, DISRUPTION_NONE), ENGINE_APPLY);
        CHECK_EQ(engine_applied(&b.engine, i, false), ENGINE_DONE);
    }
    /* Two have changed: one refresh. */
    CHECK_EQ(next(&b, 0), 2);
    CHECK_EQ(engine_checked(&b.engine, 2, false, DISRUPTION_WINDOW), ENGINE_REFRESH);
    engine_refreshed(&b.engine, 2);
    CHECK_STR(state_of(&b, 2), "Ok");
    CHECK_EQ(next(&b, 0), -1);
    CHECK(b.engine.vertices[2].refreshed && !b.engine.vertices[2].changed);
    arena_done(&b.memory);
}

TEST(engine_needs_no_refresh_after_a_change_that_was_one)
{
    struct bench b;
    bench_init(&b, 1);
    bench_start(&b, everything);
    engine_mark(&b.engine, 0);
    CHECK_EQ(next(&b, 0), 0);
    CHECK_EQ(engine_checked(&b.engine, 0, true, DISRUPTION_NONE), ENGINE_APPLY);
    CHECK_EQ(engine_applied(&b.engine, 0, true), ENGINE_REFRESH); /* to strike out the mark */
    engine_refreshed(&b.engine, 0);
    CHECK(!b.engine.vertices[0].refresh);
    arena_done(&b.memory);
}

TEST(engine_waits_with_a_refresh_until_all_sources_are_right)
{
    struct bench b;
    bench_init(&b, 3);
    bench_edge(&b, 0, true, 2);
    bench_edge(&b, 1, true, 2);
    b.items[1].meta.retries_given = true;
    b.items[1].meta.retries = -1;
    bench_start(&b, everything);
    CHECK_EQ(next(&b, 0), 0);
    CHECK_EQ(engine_checked(&b.engine, 0, true, DISRUPTION_NONE), ENGINE_APPLY);
    CHECK_EQ(engine_applied(&b.engine, 0, false), ENGINE_DONE);
    CHECK_EQ(next(&b, 0), 1);
    engine_failed(&b.engine, 1, 0, 0, "Failed", "no");
    CHECK_EQ(next(&b, 0), 2);
    CHECK_EQ(engine_checked(&b.engine, 2, false, DISRUPTION_NONE), ENGINE_DONE);
    CHECK_STR(state_of(&b, 2), "Blocked");
    CHECK_STR(b.engine.vertices[2].message, "waits for 'r1', which is Failed");
    CHECK(b.engine.vertices[2].refresh);
    /* The source comes right: the refresh follows. */
    CHECK_EQ(next(&b, SECONDS(2)), 1);
    CHECK_EQ(engine_checked(&b.engine, 1, false, DISRUPTION_NONE), ENGINE_DONE);
    CHECK_EQ(next(&b, SECONDS(2)), 2);
    CHECK_EQ(engine_checked(&b.engine, 2, false, DISRUPTION_NONE), ENGINE_REFRESH);
    engine_refreshed(&b.engine, 2);
    CHECK_STR(state_of(&b, 2), "Ok");
    arena_done(&b.memory);
}

TEST(engine_blocks_those_behind_a_failure_and_frees_them_when_it_is_mended)
{
    struct bench b;
    usec_t when;
    uint32_t v;
    bench_init(&b, 4);
    bench_edge(&b, 1, false, 0);
    bench_edge(&b, 2, false, 1);
    bench_start(&b, (struct engine_rules){ .allowed = DISRUPTION_VISIT, .retries = 1 });
    CHECK_EQ(next(&b, 0), 0);
    engine_failed(&b.engine, 0, 0, 0, "Failed", "the disk is full");
    CHECK_EQ(next(&b, 0), 3);
    CHECK_EQ(engine_checked(&b.engine, 3, false, DISRUPTION_NONE), ENGINE_DONE);
    CHECK(!engine_next(&b.engine, 0, &v, &when));
    CHECK_STR(state_of(&b, 1), "Blocked");
    CHECK_STR(state_of(&b, 2), "Blocked");
    CHECK_STR(b.engine.vertices[2].message, "waits for 'r1', which is Blocked");
    CHECK(when >= MSECONDS(500) && when <= SECONDS(1));
    CHECK_EQ(next(&b, when), 0);
    CHECK_EQ(engine_checked(&b.engine, 0, false, DISRUPTION_NONE), ENGINE_DONE);
    for (uint32_t i = 1; i < 3; i++) {
        CHECK_EQ(next(&b, when), i);
        CHECK_EQ(engine_checked(&b.engine, i, false, DISRUPTION_NONE), ENGINE_DONE);
        CHECK_STR(state_of(&b, i), "Ok");
    }
    CHECK_EQ(next(&b, when), -1);
    arena_done(&b.memory);
}

TEST(engine_tries_again_as_often_as_it_is_told_and_waits_longer_each_time)
{
    struct bench b;
    usec_t when = 0;
    usec_t last = 0;
    uint32_t v;
    bench_init(&b, 1);
    b.items[0].meta.retries_given = true;
    b.items[0].meta.retries = 12;
    bench_start(&b, everything);
    for (uint32_t i = 0; i <= 12; i++) {
        CHECK(engine_next(&b.engine, when, &v, &last));
        engine_failed(&b.engine, 0, when, UINT64_MAX, "Failed", "no");
        CHECK(!engine_next(&b.engine, when, &v, &last));
        CHECK(last == USEC_NEVER || last - when <= ENGINE_BACKOFF_MAX);
        CHECK_EQ(last == USEC_NEVER, i == 12);
        when = last;
    }
    CHECK_EQ(b.engine.vertices[0].tries, 13);
    arena_done(&b.memory);
}

TEST(engine_defers_what_is_more_disruptive_than_allowed)
{
    static const struct {
        enum disruptive own;
        enum disruption found;
        enum disruption allowed;
        const char *state;
    } cases[] = {
        { DISRUPTIVE_AUTO, DISRUPTION_NONE, DISRUPTION_NONE, "Drifted" },
        { DISRUPTIVE_AUTO, DISRUPTION_WINDOW, DISRUPTION_NONE, "Deferred" },
        { DISRUPTIVE_AUTO, DISRUPTION_WINDOW, DISRUPTION_WINDOW, "Drifted" },
        { DISRUPTIVE_AUTO, DISRUPTION_VISIT, DISRUPTION_WINDOW, "Deferred" },
        { DISRUPTIVE_ALWAYS, DISRUPTION_NONE, DISRUPTION_WINDOW, "Deferred" },
        { DISRUPTIVE_ALWAYS, DISRUPTION_NONE, DISRUPTION_VISIT, "Drifted" },
        { DISRUPTIVE_NEVER, DISRUPTION_VISIT, DISRUPTION_NONE, "Drifted" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench b;
        check_case((int64_t)i);
        bench_init(&b, 2);
        bench_edge(&b, 1, false, 0);
        b.items[0].meta.disruptive = cases[i].own;
        bench_start(&b, (struct engine_rules){ .allowed = cases[i].allowed });
        CHECK_EQ(next(&b, 0), 0);
        bool applied = engine_checked(&b.engine, 0, true, cases[i].found) == ENGINE_APPLY;
        CHECK_STR(state_of(&b, 0), cases[i].state);
        CHECK_EQ(applied, str_eq(str_from(cases[i].state), STR("Drifted")));
        if (!applied) {
            CHECK_EQ(next(&b, 0), -1); /* who requires it waits */
            CHECK_STR(state_of(&b, 1), "Blocked");
        }
        arena_done(&b.memory);
    }
    check_case(-1);
}

TEST(engine_tells_in_a_noop_run_what_a_change_would_refresh)
{
    struct bench b;
    bench_init(&b, 3);
    bench_edge(&b, 0, true, 1);
    bench_edge(&b, 2, false, 0);
    bench_start(&b, (struct engine_rules){ .noop = true });
    CHECK_EQ(next(&b, 0), 0);
    CHECK_EQ(engine_checked(&b.engine, 0, true, DISRUPTION_VISIT), ENGINE_DONE);
    CHECK_STR(state_of(&b, 0), "Noop");
    CHECK_EQ(next(&b, 0), 1);
    CHECK_EQ(engine_checked(&b.engine, 1, false, DISRUPTION_NONE), ENGINE_DONE);
    CHECK_STR(state_of(&b, 1), "Noop");
    /* Those behind it are looked at, as if it had been done. */
    CHECK_EQ(next(&b, 0), 2);
    CHECK_EQ(engine_checked(&b.engine, 2, false, DISRUPTION_NONE), ENGINE_DONE);
    CHECK_STR(state_of(&b, 2), "Ok");
    arena_done(&b.memory);
}

TEST(engine_strikes_out_marks_of_types_that_do_not_listen)
{
    struct bench b;
    bench_init(&b, 1);
    b.items[0].type = &deaf;
    bench_start(&b, (struct engine_rules){ .allowed = DISRUPTION_NONE });
    engine_mark(&b.engine, 0);
    CHECK_EQ(next(&b, 0), 0);
    CHECK_EQ(engine_checked(&b.engine, 0, false, DISRUPTION_VISIT), ENGINE_REFRESH);
    engine_refreshed(&b.engine, 0);
    CHECK(!b.engine.vertices[0].refreshed);
    arena_done(&b.memory);
}

/* Whatever fails and changes: it ends, and when nothing fails any more everything is right and no
 * mark is left. */
PROPERTY(engine_settles_when_failures_stop)
{
    struct bench b;
    usec_t now = 0;
    bench_init(&b, 8);
    for (uint32_t i = 1; i < 8; i++) {
        if (rng_chance(rng, 700)) {
            bench_edge(&b, i, false, rng_below(rng, i));
        }
        if (rng_chance(rng, 700)) {
            bench_edge(&b, i - 1, true, i + rng_below(rng, 8 - i));
        }
    }
    bench_start(&b, (struct engine_rules){ .allowed = DISRUPTION_VISIT, .retries = -1 });
    for (uint32_t step = 0;; step++) {
        uint32_t v;
        usec_t when;
        uint32_t bad = step < 200 ? 300 : 0;
        CHECK(step < 2000);
        engine_check(&b.engine);
        if (step < 200 && rng_chance(rng, 200)) {
            engine_dirty(&b.engine, rng_below(rng, 8));
        }
        if (!engine_next(&b.engine, now, &v, &when)) {
            if (when == USEC_NEVER && step >= 200) {
                break;
            }
            now = when == USEC_NEVER ? now + SECONDS(1) : when;
            continue;
        }
        enum engine_step s = ENGINE_CHECK;
        while (s != ENGINE_DONE) {
            if (rng_chance(rng, bad)) {
                engine_failed(&b.engine, v, now, rng_next(rng), "Failed", "no");
                break;
            }
            if (s == ENGINE_CHECK) {
                s = engine_checked(&b.engine, v, rng_chance(rng, bad), DISRUPTION_WINDOW);
            } else if (s == ENGINE_APPLY) {
                s = engine_applied(&b.engine, v, rng_chance(rng, 500));
            } else {
                engine_refreshed(&b.engine, v);
                break;
            }
        }
    }
    for (uint32_t i = 0; i < 8; i++) {
        CHECK_STR(state_of(&b, i), "Ok");
        CHECK(!b.engine.vertices[i].refresh && !b.engine.vertices[i].dirty);
    }
    arena_done(&b.memory);
}
