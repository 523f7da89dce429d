#include "agent/gather.h"

#include "tests/check.h"

struct fixture {
    struct arena memory;
    struct gather gather;
};

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){ 0 };
    gather_init(&f->gather, 8, &f->memory);
}

TEST(gather_lets_what_comes_together_go_together)
{
    struct fixture f;
    uint32_t v;
    fixture_init(&f);
    CHECK_EQ(gather_next(&f.gather), USEC_NEVER);
    gather_note(&f.gather, 3, WATCH_CHANGED, SECONDS(1));
    gather_note(&f.gather, 1, WATCH_CHANGED, SECONDS(1) + GATHER_TIME / 2);
    gather_note(&f.gather, 3, WATCH_CHANGED, SECONDS(1) + GATHER_TIME / 2);
    CHECK_EQ(gather_next(&f.gather), SECONDS(1) + GATHER_TIME);
    CHECK(!gather_take(&f.gather, SECONDS(1), &v));
    CHECK(gather_take(&f.gather, SECONDS(1) + GATHER_TIME, &v));
    CHECK_EQ(v, 3);
    CHECK(gather_take(&f.gather, SECONDS(1) + GATHER_TIME, &v));
    CHECK_EQ(v, 1);
    CHECK(!gather_take(&f.gather, SECONDS(9), &v));
    arena_done(&f.memory);
}

TEST(gather_waits_until_a_writer_is_quiet_and_not_for_ever)
{
    struct fixture f;
    uint32_t v;
    usec_t now = SECONDS(1);
    fixture_init(&f);
    gather_note(&f.gather, 0, WATCH_WRITING, now);
    CHECK_EQ(gather_next(&f.gather), now + GATHER_QUIET);
    for (; now < SECONDS(1) + GATHER_QUIET_MAX; now += GATHER_QUIET / 2) {
        gather_note(&f.gather, 0, WATCH_WRITING, now);
        CHECK(gather_next(&f.gather) <= SECONDS(1) + GATHER_QUIET_MAX);
        CHECK(!gather_take(&f.gather, now, &v));
    }
    CHECK(gather_take(&f.gather, SECONDS(1) + GATHER_QUIET_MAX, &v));
    arena_done(&f.memory);
}

TEST(gather_takes_a_file_that_was_closed_at_once)
{
    struct fixture f;
    uint32_t v;
    fixture_init(&f);
    gather_note(&f.gather, 0, WATCH_WRITING, SECONDS(1));
    gather_note(&f.gather, 0, WATCH_CHANGED, SECONDS(1) + 10);
    CHECK_EQ(gather_next(&f.gather), SECONDS(1) + 10 + GATHER_TIME);
    gather_note(&f.gather, 0, WATCH_WRITING, SECONDS(1) + 20); /* puts nothing off */
    CHECK_EQ(gather_next(&f.gather), SECONDS(1) + 10 + GATHER_TIME);
    gather_drop(&f.gather, 0);
    CHECK_EQ(gather_next(&f.gather), USEC_NEVER);
    CHECK(!gather_take(&f.gather, SECONDS(9), &v));
    gather_drop(&f.gather, 5); /* which does not wait */
    gather_note(&f.gather, 2, WATCH_MOUNTED, SECONDS(10));
    CHECK_EQ(gather_next(&f.gather), SECONDS(10) + GATHER_MOUNTS);
    arena_done(&f.memory);
}
