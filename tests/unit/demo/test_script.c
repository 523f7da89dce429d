#include "demo/script.h"

#include "demo/screen.h"
#include "profile/controller.h"
#include "profile/node_report.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

#define DAY SECONDS(1700000000)

struct teller {
    struct buf text;
    struct buf blocked; /* a frame while a drain was blocked */
    struct picture picture;
    uint32_t lines;
};

static void tell(void *ctx, usec_t wall, struct str text)
{
    struct teller *t = ctx;
    picture_clock(&t->text, wall);
    buf_add_char(&t->text, ' ');
    buf_add(&t->text, text);
    buf_add_char(&t->text, '\n');
    picture_add(&t->picture, wall, text);
    t->lines++;
}

struct telling {
    struct virtual_loop *time;
    struct loop *loop;
    struct story story;
    struct teller teller;
};

static void telling_begin(struct telling *t, uint64_t seed)
{
    t->time = virtual_loop_new(seed, story_evening(DAY));
    t->loop = virtual_loop_view_new(t->time, 0);
    t->teller = (struct teller){
        .picture = { .colour = true, .speed = 4, .url = STR("http://127.0.0.1:8080/") }
    };
    story_init(&t->story, t->loop, seed);
    t->story.on_milestone = tell;
    t->story.ctx = &t->teller;
    story_begin(&t->story);
}

/* In virtual time, to the end. */
static void telling_run(struct telling *t)
{
    while (!t->story.over && virtual_loop_now(t->time) < MINUTES(30)) {
        (void)virtual_loop_step(t->time, MINUTES(30));
        if (t->story.blocked.node[0] != '\0' && t->teller.blocked.n == 0) {
            CLEANUP(arena_done)
            struct arena a = { 0 };
            struct report report;
            picture_draw(&t->teller.picture, &t->story, &t->teller.blocked);
            /* Whoever opens the node in the dashboard reads the same. */
            CHECK(controller_explain(t->story.source.controller, str_from(t->story.blocked.node),
                                     &a, &report));
            CHECK(str_starts(report.drain, STR("draining: 1 pod is left; shop/payments-")));
            CHECK(str_ends(report.drain, str_from(t->story.blocked.why)));
        }
    }
}

static void telling_end(struct telling *t)
{
    story_done(&t->story);
    virtual_loop_view_free(t->loop);
    virtual_loop_free(t->time);
    buf_done(&t->teller.text);
    buf_done(&t->teller.blocked);
}

TEST(story_services_every_node_within_the_limits)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct telling t;
        struct scene scene;
        CLEANUP(buf_done)
        struct buf sum = { 0 };
        telling_begin(&t, seed);
        telling_run(&t);
        scene_look(t.story.server, &scene);
        struct str text = buf_str(&t.teller.text);
        if (t.story.failed || !t.story.over) {
            print_message(STR_FMT, STR_ARG(text));
        }
        CHECK(t.story.over);
        CHECK(!t.story.failed);
        CHECK_EQ(t.teller.lines, 11);
        CHECK_EQ(scene.n, 24);
        CHECK_EQ(scene.serviced, 24);
        CHECK_EQ(scene.out, 0);
        /* The limit is used, and one leader's death does not break it. */
        CHECK_EQ(t.story.peak_zone, STORY_ZONE_LIMIT);
        CHECK_EQ(t.story.peak, 3 * STORY_ZONE_LIMIT);
        CHECK_EQ(t.story.failovers, 1);
        /* Each of the shop's 60 pods once, and some again that went where it was not done yet. */
        CHECK(t.story.moved >= 60);
        CHECK(t.story.moved < 120);
        /* Nobody goes before the window opens. */
        CHECK(t.story.first_out >= story_evening(DAY) + STORY_BEFORE);
        CHECK(t.story.first_out < story_evening(DAY) + STORY_BEFORE + SECONDS(2));
        CHECK(str_contains(text, STR("cannot be drained: shop/payments-")));
        CHECK(str_contains(text, STR("budget payments allows no disruption")));
        /* A mail for each node, and one message when it goes and one when it is back. What a leader
         * sent and could not note before it died is sent again. */
        CHECK(t.story.inbox.arrived >= 72);
        CHECK(t.story.inbox.arrived < 80);
        story_sum(&t.story, &sum);
        CHECK(str_starts(buf_str(&sum), STR("24 of 24 nodes serviced; peak 6 in maintenance")));
        telling_end(&t);
    }
}

TEST(story_repeats_from_its_seed)
{
    struct telling a;
    struct telling b;
    telling_begin(&a, 7);
    telling_run(&a);
    telling_begin(&b, 7);
    telling_run(&b);
    CHECK_STR(buf_str(&a.teller.text), buf_str(&b.teller.text));
    telling_end(&a);
    telling_end(&b);
}

TEST(story_begins_in_the_evening_of_any_day)
{
    /* 2023-11-14T22:13:20Z, and the same day at 21:59:20. */
    CHECK_EQ(story_evening(DAY), SECONDS(1699999160));
    CHECK_EQ(story_evening(story_evening(DAY)), story_evening(DAY));
    CHECK_EQ(story_evening(0), SECONDS(79160));
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
        CHECK(columns(line) <= PICTURE_COLUMNS);
        rows++;
    }
    CHECK(rows <= PICTURE_ROWS);
}

TEST(picture_fits_a_terminal_in_every_chapter)
{
    struct telling t;
    telling_begin(&t, 1);
    uint32_t frames = 0;
    usec_t next = 0;
    while (!t.story.over && virtual_loop_step(t.time, MINUTES(30))) {
        if (virtual_loop_now(t.time) >= next) {
            CLEANUP(buf_done)
            struct buf out = { 0 };
            t.teller.picture.colour = frames % 2 == 0;
            picture_draw(&t.teller.picture, &t.story, &out);
            check_fits(buf_str(&out));
            CHECK(str_contains(buf_str(&out), STR("\x1b[32m")) == t.teller.picture.colour ||
                  frames == 0);
            CHECK(str_contains(buf_str(&out), STR("http://127.0.0.1:8080/")));
            frames++;
            next += SECONDS(5);
        }
    }
    CHECK(frames > 30);
    CHECK_EQ(t.teller.picture.n, PICTURE_LINES_MAX); /* older ones have gone */
    telling_end(&t);
}

TEST(picture_names_the_blocked_node_and_the_letters_that_came)
{
    struct telling t;
    telling_begin(&t, 1);
    telling_run(&t);
    struct str frame = buf_str(&t.teller.blocked);
    CHECK(frame.n > 0);
    CHECK(str_contains(frame, STR("blocked")));
    CHECK(str_contains(frame, STR("shop/payments-")));
    CHECK(str_contains(frame, STR("#nodes  node-0")));
    CHECK(str_contains(frame, STR("!")));
    CLEANUP(buf_done)
    struct buf out = { 0 };
    picture_draw(&t.teller.picture, &t.story, &out);
    check_fits(buf_str(&out));
    CHECK(str_contains(buf_str(&out), STR("24 of 24 nodes serviced")));
    telling_end(&t);
}
