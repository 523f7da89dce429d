#include "kinds/run_history.h"

#include "tests/check.h"

static const struct run_history_entry failed = {
    .time = SECONDS(1767571200),
    .node = STR_INIT("worker-1"),
    .maintenance = STR_INIT("patches"),
    .operation = STR_INIT("upgrade"),
    .result = STR_INIT("Failed"),
    .reason = STR_INIT("ExitCode"),
    .message = STR_INIT("dpkg: \"broken\"\nline 2"),
    .attempt = 2,
    .took = SECONDS(95),
    .rebooted = true,
};

TEST(run_history_reads_what_it_prints)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct run_history_entry e;
    struct str line;
    run_history_print(&failed, &out);
    struct str rest = buf_str(&out);
    CHECK(str_split_next(&rest, '\n', &line));
    CHECK_EQ(rest.n, 0); /* a line break of the output is none of the text */
    CHECK(run_history_read(line, &a, &e));
    CHECK_EQ(e.time, failed.time);
    CHECK_STR(e.node, "worker-1");
    CHECK_STR(e.maintenance, "patches");
    CHECK_STR(e.operation, "upgrade");
    CHECK_STR(e.result, "Failed");
    CHECK_STR(e.reason, "ExitCode");
    CHECK(str_eq(e.message, failed.message));
    CHECK_EQ(e.attempt, 2);
    CHECK_EQ(e.took, SECONDS(95));
    CHECK(e.rebooted);
}

TEST(run_history_passes_over_what_somebody_wrote_by_hand)
{
    static const char *const lines[] = { "", "hello", "[]", "{}", "{\"time\":7}", "{\"time\":\"" };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct run_history_entry e;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        check_case((int)i);
        CHECK(!run_history_read(str_from(lines[i]), &a, &e));
    }
    check_case(-1);
}

TEST(run_history_keeps_the_newest_entries)
{
    CLEANUP(buf_done)
    struct buf kept = { 0 };
    for (uint32_t i = 0; i < RUN_HISTORY_ENTRIES_MAX + 7; i++) {
        CLEANUP(buf_done)
        struct buf line = { 0 };
        CLEANUP(buf_done)
        struct buf next = { 0 };
        buf_printf(&line, "%u\n", i);
        run_history_append(buf_str(&kept), buf_str(&line), &next);
        buf_reset(&kept);
        buf_add(&kept, buf_str(&next));
    }
    CHECK(str_starts(buf_str(&kept), STR("7\n8\n")));
    CHECK(str_ends(buf_str(&kept), STR("\n105\n106\n")));
}

TEST(run_history_has_a_limit_of_bytes)
{
    CLEANUP(buf_done)
    struct buf old = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    for (uint32_t i = 0; i < 40; i++) {
        for (uint32_t k = 0; k < 999; k++) {
            buf_add_char(&old, (char)('a' + i % 26));
        }
        buf_add_char(&old, '\n');
    }
    run_history_append(buf_str(&old), STR("last\n"), &out);
    CHECK(out.n <= RUN_HISTORY_BYTES_MAX && out.n > RUN_HISTORY_BYTES_MAX - 1000);
    CHECK(str_ends(buf_str(&out), STR("\nlast\n")));
    buf_reset(&out);
    run_history_append(STR("no end of line"), STR("last\n"), &out);
    CHECK_STR(buf_str(&out), "no end of line\nlast\n");
}

TEST(run_history_of_a_machine_has_a_name_that_fits)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str name = run_history_name(STR("worker-1"), &a);
    CHECK_EQ(name.n, 8 + 32);
    CHECK(str_starts(name, STR("history-")));
    CHECK(!str_eq(name, run_history_name(STR("worker-2"), &a)));
}
