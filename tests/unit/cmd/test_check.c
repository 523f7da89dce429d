#include "base/limits.h"
#include "cmd/commands.h"
#include "cmd/check_output.h"
#include "host/file.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What check says of a text, as if it stood in f.yaml. */
static struct str check_output_text(const char *yaml, struct arena *a)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct problems problems = { .out = a };
    struct config config;
    struct str text = str_from(yaml);
    int result = config_load(text, (struct ucfg_env){ 0 }, a, &config, &problems);
    check_output_problems(STR("f.yaml"), text, &problems, &out);
    if (result == 0) {
        check_output_valid(STR("f.yaml"), &config, &out);
    }
    return arena_str(a, buf_str(&out));
}

TEST(check_counts_what_a_fine_file_has)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CHECK_STR(check_output_text("intervals: {requeue: 1m}\n", &a),
              "f.yaml: fine, 1 profile, 0 checks, 0 triggers, 0 notifications\n");
}

TEST(check_marks_each_place)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CHECK_STR(check_output_text("intervals: {requeue: soon}\n"
                                "instances:\n"
                                "  check:\n"
                                "  - {type: nodeCount, name: ü, config: {count: x}}\n",
                                &a),
              "f.yaml:1:22: key 'requeue': found 'soon', want a duration such as 1h30m or 45s\n"
              "     1 | intervals: {requeue: soon}\n"
              "       |                      ^\n"
              "f.yaml:4:48: key 'count': found 'x', want an integer\n"
              "     4 |   - {type: nodeCount, name: ü, config: {count: x}}\n"
              "       |                                                ^\n");
}

TEST(check_warns_and_finds_the_file_fine)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CHECK_STR(
        check_output_text("intervals: {requeue: 1m}\n"
                          "instances:\n"
                          "  notify:\n"
                          "  - type: slack\n"
                          "    name: tell\n"
                          "    config: {hook: h, channel: c, message: '{{ .Node.Name'}\n"
                          "    schedule: {type: oneshot, config: {}}\n",
                          &a),
        "f.yaml:6:58: warning: key 'message': line 1, column 14: found the end of the template, "
        "want '}}'; the message cannot be sent\n"
        "     6 |     config: {hook: h, channel: c, message: '{{ .Node.Name'}\n"
        "       |                                                          ^\n"
        "f.yaml: fine, 1 profile, 0 checks, 0 triggers, 1 notification\n");
}

static uint32_t columns(struct str line)
{
    uint32_t n = 0;
    for (size_t i = 0; i < line.n; i++) {
        n += ((unsigned char)line.p[i] & 0xc0u) != 0x80u;
    }
    return n;
}

/* Wherever the place is, the mark stands under its first character and the line fits. */
TEST(check_shows_long_lines_in_part)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (uint32_t pad = 0; pad < 200; pad++) {
        for (uint32_t behind = 0; behind < 120; behind += 40) {
            check_case(pad * 1000 + behind);
            arena_reset(&a);
            struct str yaml =
                arena_printf(&a, "intervals: {%*srequeue: @%*s}\n", (int)pad, "", (int)behind, "");
            struct str rest = check_output_text(yaml.p, &a);
            struct str head;
            struct str source;
            struct str mark;
            CHECK(str_split_next(&rest, '\n', &head));
            CHECK(str_split_next(&rest, '\n', &source));
            CHECK(str_split_next(&rest, '\n', &mark));
            CHECK(columns(source) <= 80);
            uint32_t at = 0;
            while (at < source.n && source.p[at] != '@') {
                at++;
            }
            CHECK_EQ(columns(str_sub(source, 0, at)) + 1, mark.n);
            CHECK(str_ends(mark, STR("^")));
        }
    }
    check_case(-1);
}

TEST(check_keeps_control_characters_from_the_terminal)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str said = check_output_text("a: \"\x1b[31m\"\n", &a);
    CHECK(str_starts(said, STR("f.yaml")));
    CHECK(str_find_char(said, '\x1b') == SIZE_MAX);
}

static const struct command *const items[] = { &command_check, NULL };
static const struct command_list list = { .items = items };

/* Without what it prints: stdout is the test's own protocol. */
static int run(const char *a, const char *b)
{
    char *argv[] = { (char *)(uintptr_t) "drydock", (char *)(uintptr_t) "check",
                     (char *)(uintptr_t)a, (char *)(uintptr_t)b, NULL };
    (void)fflush(stdout);
    int out = dup(STDOUT_FILENO);
    int null = open("/dev/null", O_WRONLY);
    CHECK(out >= 0 && null >= 0 && dup2(null, STDOUT_FILENO) >= 0);
    int code = command_main(&list, argv);
    (void)fflush(stdout);
    CHECK(dup2(out, STDOUT_FILENO) >= 0);
    CHECK_EQ(close(null) + close(out), 0);
    return code;
}

static struct str data_path(struct arena *a, const char *name)
{
    return arena_printf(a, "%s/%s", getenv("CHECK_DATA"), name);
}

TEST(check_exits_with_0_1_and_2)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str example = data_path(&a, "../../docs/examples/maintenance.yaml");
    struct str update = data_path(&a, "../../docs/examples/os-update.yaml");
    struct str broken = data_path(&a, "config/wrong.yaml");
    CHECK_EQ(run(example.p, update.p), 0);
    CHECK_EQ(run(example.p, broken.p), 1);
    CHECK_EQ(run(broken.p, example.p), 1);
    CHECK_EQ(run("/nonexistent/maintenance.yaml", NULL), 1);
    CHECK_EQ(run(NULL, NULL), 2);
}

TEST(check_page_names_the_limits_of_a_file)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct str page;
    CHECK_EQ(file_read(data_path(&a, "../../docs/check.md"), 65536, &a, &page, &err), 0);
    const struct str wanted[] = {
        arena_printf(&a, "%zu MiB in all", UCFG_BYTES_MAX / 1024 / 1024),
        arena_printf(&a, "%zu KiB in one value", UCFG_TEXT_MAX / 1024),
        arena_printf(&a, "%u instances of each kind", CONFIG_INSTANCES_MAX),
        arena_printf(&a, "%u profiles", CONFIG_PROFILES_MAX),
        arena_printf(&a, "%u levels of nesting", YAML_DEPTH_MAX),
        arena_printf(&a, "%u values", YAML_VALUES_MAX),
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        check_case((int64_t)i);
        CHECK(str_contains(page, wanted[i]));
    }
    check_case(-1);
}

/* The page in docs/ shows what is really printed. */
TEST(check_page_shows_the_real_output)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct problems problems = { .out = &a };
    struct config config;
    struct err err = { 0 };
    struct str text = check_data("config/wrong.yaml");
    struct str page;
    CHECK_EQ(file_read(data_path(&a, "../../docs/check.md"), 65536, &a, &page, &err), 0);
    CHECK_EQ(config_load(text, (struct ucfg_env){ 0 }, &a, &config, &problems), -ERR_INVALID);
    check_output_problems(STR("wrong.yaml"), text, &problems, &out);
    CHECK(str_contains(page, text));
    CHECK(str_contains(page, buf_str(&out)));
}
