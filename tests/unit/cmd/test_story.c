#include "cmd/story.h"

#include "cmd/picture.h"
#include "sandbox/vloop.h"
#include "tests/check.h"

struct teller {
    struct buf text;
    uint32_t lines;
};

static void tell(void *ctx, usec_t at UNUSED, struct str text)
{
    struct teller *t = ctx;
    buf_add(&t->text, text);
    buf_add_char(&t->text, '\n');
    t->lines++;
}

/* The whole demo in virtual time; what it told is in `ret`. */
static void run_story(uint64_t seed, struct teller *ret, struct story_view *ret_view,
                      uint32_t *ret_failovers, bool *ret_failed)
{
    struct vloop *time = vloop_new(seed, SECONDS(1700000000));
    struct loop *loop = vloop_view(time, 0);
    struct story s;
    story_init(&s, loop, seed, /* endless= */ false);
    s.on_milestone = tell;
    s.ctx = ret;
    story_begin(&s);
    while (!s.over && vloop_now(time) < MINUTES(30)) {
        (void)vloop_step(time, MINUTES(30));
    }
    story_look(&s, ret_view);
    *ret_failovers = s.failovers;
    *ret_failed = s.failed || !s.over;
    story_done(&s);
    vloop_view_free(loop);
    vloop_free(time);
}

TEST(story_reaches_every_milestone)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct teller t = { 0 };
        struct story_view view;
        uint32_t failovers;
        bool failed;
        run_story(seed, &t, &view, &failovers, &failed);
        CHECK(!failed);
        CHECK_EQ(t.lines, 7);
        CHECK_EQ(view.n, 25); /* three waves, and one that joined during the outage */
        CHECK_EQ(view.labelled, 25);
        CHECK(failovers >= 1);
        CHECK(str_contains(buf_str(&t.text), STR("24 of 24 are ready and labelled operational\n")));
        CHECK(str_contains(buf_str(&t.text), STR("deleted the labels of 6 nodes")));
        buf_done(&t.text);
    }
}

TEST(story_repeats_from_its_seed)
{
    struct teller a = { 0 };
    struct teller b = { 0 };
    struct story_view view;
    uint32_t failovers;
    bool failed;
    run_story(7, &a, &view, &failovers, &failed);
    run_story(7, &b, &view, &failovers, &failed);
    CHECK_STR(buf_str(&a.text), buf_str(&b.text));
    buf_done(&a.text);
    buf_done(&b.text);
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

TEST(picture_fits_a_terminal_with_and_without_colour)
{
    struct vloop *time = vloop_new(1, SECONDS(1700000000));
    struct loop *loop = vloop_view(time, 0);
    struct teller t = { 0 };
    struct story s;
    story_init(&s, loop, 1, /* endless= */ true);
    s.on_milestone = tell;
    s.ctx = &t;
    story_begin(&s);
    (void)vloop_run(time, MINUTES(10)); /* several times round */
    for (int colour = 0; colour < 2; colour++) {
        CLEANUP(buf_done)
        struct buf out = { 0 };
        struct picture p = { .colour = colour == 1,
                             .speed = 4,
                             .url = STR("http://127.0.0.1:8080/") };
        for (uint32_t i = 0; i < PICTURE_LINES_MAX + 3; i++) {
            picture_add(&p, SECONDS(i), str_sub(buf_str(&t.text), 0, MIN(t.text.n, (size_t)300)));
        }
        picture_draw(&p, &s, &out);
        CHECK(!s.failed);
        CHECK(t.lines > 15);
        CHECK_EQ(p.n, PICTURE_LINES_MAX);
        CHECK(str_contains(buf_str(&out), STR("25 nodes")));
        CHECK(str_contains(buf_str(&out), STR("http://127.0.0.1:8080/")));
        CHECK(str_contains(buf_str(&out), STR("\x1b[32m")) == (colour == 1));
        struct str rest = buf_str(&out);
        struct str line;
        while (str_split_next(&rest, '\n', &line)) {
            CHECK(columns(line) <= PICTURE_COLUMNS);
        }
    }
    buf_done(&t.text);
    story_done(&s);
    vloop_view_free(loop);
    vloop_free(time);
}
