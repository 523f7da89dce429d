#include "agent/journal.h"

#include "tests/lib/agent_fixture.h"

#define PATH "/var/lib/drydock/agent/journal"

static void reopen(struct agent_fixture *f, struct journal *j, usec_t wall)
{
    struct err err = { 0 };
    journal_done(j);
    CHECK_EQ(journal_open(j, &f->root, STR(PATH), wall, &err), 0);
}

TEST(journal_keeps_a_mark_until_it_is_struck_out)
{
    struct agent_fixture f;
    struct journal j = { 0 };
    struct err err = { 0 };
    struct str ids[] = { STR("service:a"), STR("service:b") };
    agent_fixture_init(&f);
    reopen(&f, &j, 0);
    CHECK_EQ(journal_mark(&j, ids, 2, &err), 0);
    CHECK_EQ(journal_unmark(&j, ids[0], &err), 0);
    reopen(&f, &j, 0);
    CHECK(!journal_is_marked(&j, ids[0]));
    CHECK(journal_is_marked(&j, ids[1]));
    /* What is marked already is not written again. */
    size_t bytes = j.bytes;
    CHECK_EQ(journal_mark(&j, &ids[1], 1, &err), 0);
    CHECK_EQ(j.bytes, bytes);
    CHECK_EQ(agent_mode(&f, PATH), 0600);
    journal_done(&j);
    agent_fixture_done(&f);
}

TEST(journal_cut_at_any_byte_keeps_every_whole_line)
{
    struct agent_fixture f;
    struct journal j = { 0 };
    struct err err = { 0 };
    struct str ids[] = { STR("service:a"), STR("service:b") };
    agent_fixture_init(&f);
    reopen(&f, &j, 0);
    CHECK_EQ(journal_mark(&j, &ids[0], 1, &err), 0);
    size_t first = j.bytes;
    CHECK_EQ(journal_mark(&j, &ids[1], 1, &err), 0);
    struct str whole = agent_read(&f, PATH);
    CHECK_EQ(whole.n, j.bytes);
    for (size_t cut = first; cut <= whole.n; cut++) {
        check_case((int64_t)cut);
        agent_write(&f, PATH, arena_str(&f.memory, str_sub(whole, 0, cut)).p);
        reopen(&f, &j, 0);
        CHECK(journal_is_marked(&j, ids[0]));
        /* The line is whole when only its end is missing. */
        CHECK_EQ(journal_is_marked(&j, ids[1]), cut + 1 >= whole.n);
        /* The next line does not stick to what was cut. */
        struct str third = STR("service:c");
        CHECK_EQ(journal_mark(&j, &third, 1, &err), 0);
        reopen(&f, &j, 0);
        CHECK(journal_is_marked(&j, third));
        CHECK_EQ(j.damaged, 0);
    }
    check_case(-1);
    journal_done(&j);
    agent_fixture_done(&f);
}

TEST(journal_skips_a_damaged_line_and_keeps_those_behind_it)
{
    struct journal j = { 0 };
    struct agent_fixture f;
    struct err err = { 0 };
    struct str ids[] = { STR("service:a"), STR("service:b") };
    agent_fixture_init(&f);
    reopen(&f, &j, 0);
    CHECK_EQ(journal_mark(&j, ids, 2, &err), 0);
    struct str text = agent_read(&f, PATH);
    struct str broken = arena_str(&f.memory, text);
    ((char *)(uintptr_t)broken.p)[20] ^= 1; /* inside of the first line */
    agent_write(&f, PATH, broken.p);
    reopen(&f, &j, 0);
    CHECK_EQ(j.damaged, 1);
    CHECK(!journal_is_marked(&j, ids[0]));
    CHECK(journal_is_marked(&j, ids[1]));
    journal_done(&j);
    agent_fixture_done(&f);
}

TEST(journal_starts_a_run_once)
{
    struct agent_fixture f;
    struct journal j = { 0 };
    struct err err = { 0 };
    agent_fixture_init(&f);
    reopen(&f, &j, 0);
    CHECK(journal_run_find(&j, STR("r1")) == NULL);
    CHECK_EQ(journal_run_begin(&j, STR("r1"), SECONDS(100), &err), 0);
    CHECK_EQ(journal_run_begin(&j, STR("r1"), SECONDS(101), &err), -ERR_CONFLICT);
    reopen(&f, &j, SECONDS(110));
    /* It was started and never ended: interrupted, and not started again. */
    CHECK_EQ(journal_run_find(&j, STR("r1"))->ended, 0);
    CHECK_EQ(journal_run_begin(&j, STR("r1"), SECONDS(120), &err), -ERR_CONFLICT);
    CHECK_STR(err.msg, "run 'r1' was started before");
    CHECK_EQ(journal_run_end(&j, STR("r1"), 3, SECONDS(130), &err), 0);
    reopen(&f, &j, SECONDS(140));
    CHECK_EQ(journal_run_find(&j, STR("r1"))->ended, SECONDS(130));
    CHECK_EQ(journal_run_find(&j, STR("r1"))->exit_code, 3);
    CHECK_EQ(journal_run_find(&j, STR("r1"))->started, SECONDS(100));
    journal_done(&j);
    agent_fixture_done(&f);
}

TEST(journal_is_renewed_when_it_has_grown_and_forgets_old_runs)
{
    struct agent_fixture f;
    struct journal j = { 0 };
    struct err err = { 0 };
    agent_fixture_init(&f);
    struct str id = arena_printf(&f.memory, "service:%04000d", 1); /* so that few lines are much */
    reopen(&f, &j, 0);
    CHECK_EQ(journal_run_begin(&j, STR("old"), DAYS(1), &err), 0);
    CHECK_EQ(journal_run_begin(&j, STR("new"), DAYS(20), &err), 0);
    while (j.bytes <= JOURNAL_RENEW_BYTES) {
        CHECK_EQ(journal_mark(&j, &id, 1, &err), 0);
        CHECK_EQ(journal_unmark(&j, id, &err), 0);
    }
    reopen(&f, &j, DAYS(40));
    CHECK(j.bytes < 200);
    CHECK(journal_run_find(&j, STR("old")) == NULL);
    CHECK(journal_run_find(&j, STR("new")) != NULL);
    reopen(&f, &j, DAYS(40));
    CHECK(journal_run_find(&j, STR("new")) != NULL);
    CHECK(!journal_is_marked(&j, id));
    journal_done(&j);
    agent_fixture_done(&f);
}
