#include "demo/script.h"

#include "demo/screen.h"
#include "profile/controller.h"
#include "profile/node_report.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

#define DAY SECONDS(1700000000)

struct milestones {
    struct buf text;
    struct buf blocked; /* a frame while a drain was blocked */
    struct screen screen;
    uint32_t lines;
};

static void on_milestone(void *ctx, usec_t wall, struct str text)
{
    struct milestones *t = ctx;
    screen_clock(&t->text, wall);
    buf_add_char(&t->text, ' ');
    buf_add(&t->text, text);
    buf_add_char(&t->text, '\n');
    screen_add(&t->screen, wall, text);
    t->lines++;
}

struct script_run {
    struct virtual_loop *time;
    struct loop *loop;
    struct script script;
    struct milestones milestones;
};

static void script_run_begin(struct script_run *t, uint64_t seed)
{
    t->time = virtual_loop_new(seed, script_start_time(DAY));
    t->loop = virtual_loop_view_new(t->time, 0);
    t->milestones = (struct milestones){
        .screen = { .colour = true, .speed = 4, .url = STR("http://127.0.0.1:8080/") }
    };
    script_init(&t->script, t->loop, seed);
    t->script.on_milestone = on_milestone;
    t->script.ctx = &t->milestones;
    script_begin(&t->script);
}

/* In virtual time, to the end. */
static void script_run_run(struct script_run *t)
{
    while (!t->script.over && virtual_loop_now(t->time) < MINUTES(30)) {
        (void)virtual_loop_step(t->time, MINUTES(30));
        if (t->script.blocked.node[0] != '\0' && t->milestones.blocked.n == 0) {
            CLEANUP(arena_done)
            struct arena a = { 0 };
            struct node_report report;
            screen_draw(&t->milestones.screen, &t->script, &t->milestones.blocked);
            /* Whoever opens the node in the dashboard reads the same. */
            CHECK(controller_explain(t->script.source.controller, str_from(t->script.blocked.node),
                                     &a, &report));
            CHECK(str_starts(report.drain, STR("draining: 1 pod is left; shop/payments-")));
            CHECK(str_ends(report.drain, str_from(t->script.blocked.why)));
        }
    }
}

static void script_run_end(struct script_run *t)
{
    script_done(&t->script);
    virtual_loop_view_free(t->loop);
    virtual_loop_free(t->time);
    buf_done(&t->milestones.text);
    buf_done(&t->milestones.blocked);
}

TEST(script_services_every_node_within_the_limits)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct script_run t;
        struct demo_state fleet;
        CLEANUP(buf_done)
        struct buf sum = { 0 };
        script_run_begin(&t, seed);
        script_run_run(&t);
        demo_state_read(t.script.server, &fleet);
        struct str text = buf_str(&t.milestones.text);
        if (t.script.failed || !t.script.over) {
            print_message(STR_FMT, STR_ARG(text));
        }
        CHECK(t.script.over);
        CHECK(!t.script.failed);
        CHECK_EQ(t.milestones.lines, 11);
        CHECK_EQ(fleet.n, 24);
        CHECK_EQ(fleet.serviced, 24);
        CHECK_EQ(fleet.out, 0);
        /* The limit is used, and one leader's death does not break it. */
        CHECK_EQ(t.script.peak_zone, SCRIPT_ZONE_LIMIT);
        CHECK_EQ(t.script.peak, 3 * SCRIPT_ZONE_LIMIT);
        CHECK_EQ(t.script.failovers, 1);
        /* Each of the shop's 60 pods once, and some again that went where it was not done yet. */
        CHECK(t.script.moved >= 60);
        CHECK(t.script.moved < 120);
        /* Nobody goes before the window opens. */
        CHECK(t.script.first_out >= script_start_time(DAY) + SCRIPT_LEAD_TIME);
        CHECK(t.script.first_out < script_start_time(DAY) + SCRIPT_LEAD_TIME + SECONDS(2));
        CHECK(str_contains(text, STR("cannot be drained: shop/payments-")));
        CHECK(str_contains(text, STR("budget payments allows no disruption")));
        /* A mail for each node, and one message when it goes and one when it is back. What a leader
         * sent and could not note before it died is sent again. */
        CHECK(t.script.inbox.arrived >= 72);
        CHECK(t.script.inbox.arrived < 80);
        script_summary(&t.script, &sum);
        CHECK(str_starts(buf_str(&sum), STR("24 of 24 nodes serviced; peak 6 in maintenance")));
        script_run_end(&t);
    }
}

TEST(script_repeats_from_its_seed)
{
    struct script_run a;
    struct script_run b;
    script_run_begin(&a, 7);
    script_run_run(&a);
    script_run_begin(&b, 7);
    script_run_run(&b);
    CHECK_STR(buf_str(&a.milestones.text), buf_str(&b.milestones.text));
    script_run_end(&a);
    script_run_end(&b);
}

TEST(script_begins_in_the_evening_of_any_day)
{
    /* 2023-11-14T22:13:20Z, and the same day at 21:59:20. */
    CHECK_EQ(script_start_time(DAY), SECONDS(1699999160));
    CHECK_EQ(script_start_time(script_start_time(DAY)), script_start_time(DAY));
    CHECK_EQ(script_start_time(0), SECONDS(79160));
}

static uint32_t columns(struct str line)
{
    uint32_t n = 0;
    for (size_t i = 0; i < line.n; i++) {
        if (line.p[i] == '\x1b') {
            while (i < line.n && !((line.p[i] >= 'A' && line.p[i] <= 'Z') ||
                                   (line.p[i] >= 'a' && line.p[i] <= 'z'))) {
                i++;
            }
        } else {
            n += ((unsigned char)line.p[i] & 0xc0u) != 0x80u;
        }
    }
    return n;
}

static void check_fits(struct str frame)
{
    struct str line;
    uint32_t rows = 0;
    while (str_split_next(&frame, '\n', &line)) {
        CHECK(columns(line) <= SCREEN_COLUMNS);
        rows++;
    }
    CHECK(rows <= SCREEN_ROWS);
}

TEST(screen_fits_a_terminal_in_every_chapter)
{
    struct script_run t;
    script_run_begin(&t, 1);
    uint32_t frames = 0;
    usec_t next = 0;
    while (!t.script.over && virtual_loop_step(t.time, MINUTES(30))) {
        if (virtual_loop_now(t.time) >= next) {
            CLEANUP(buf_done)
            struct buf out = { 0 };
            t.milestones.screen.colour = frames % 2 == 0;
            screen_draw(&t.milestones.screen, &t.script, &out);
            check_fits(buf_str(&out));
            CHECK(str_contains(buf_str(&out), STR("\x1b[32m")) == t.milestones.screen.colour ||
                  frames == 0);
            CHECK(str_contains(buf_str(&out), STR("http://127.0.0.1:8080/")));
            frames++;
            next += SECONDS(5);
        }
    }
    CHECK(frames > 30);
    CHECK_EQ(t.milestones.screen.n, SCREEN_LINES_MAX); /* older ones have gone */
    script_run_end(&t);
}

TEST(screen_names_the_blocked_node_and_the_letters_that_came)
{
    struct script_run t;
    script_run_begin(&t, 1);
    script_run_run(&t);
    struct str frame = buf_str(&t.milestones.blocked);
    CHECK(frame.n > 0);
    CHECK(str_contains(frame, STR("blocked")));
    CHECK(str_contains(frame, STR("shop/payments-")));
    CHECK(str_contains(frame, STR("#nodes  node-0")));
    CHECK(str_contains(frame, STR("!")));
    CLEANUP(buf_done)
    struct buf out = { 0 };
    screen_draw(&t.milestones.screen, &t.script, &out);
    check_fits(buf_str(&out));
    CHECK(str_contains(buf_str(&out), STR("24 of 24 nodes serviced")));
    script_run_end(&t);
}
