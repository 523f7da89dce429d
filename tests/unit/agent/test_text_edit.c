#include "agent/text_edit.h"

#include "format/regex.h"
#include "tests/check.h"

static const struct regex *compile(struct arena *memory, const char *pattern)
{
    struct regex *regex = NULL;
    struct err err = { 0 };
    if (pattern != NULL) {
        CHECK_EQ(regex_compile(str_from(pattern), memory, &regex, &err), 0);
    }
    return regex;
}

TEST(text_line_is_put_replaced_and_removed)
{
    static const struct {
        const char *text;
        const char *line;
        const char *match;
        const char *anchor;
        enum text_position position;
        bool absent;
        const char *want;
    } cases[] = {
        { "", "x", NULL, NULL, TEXT_END, false, "x\n" },
        { "a\n", "x", NULL, NULL, TEXT_END, false, "a\nx\n" },
        { "a", "x", NULL, NULL, TEXT_END, false, "a\nx\n" },
        { "a\nx\nb\n", "x", NULL, NULL, TEXT_END, false, "a\nx\nb\n" },
        { "a\nx", "x", NULL, NULL, TEXT_END, false, "a\nx" },
        { "a\n", "x", NULL, NULL, TEXT_START, false, "x\na\n" },
        { "a\nb\na\nc", "x", NULL, "^a$", TEXT_AFTER, false, "a\nb\na\nx\nc" },
        { "a\nb\na", "x", NULL, "^a$", TEXT_AFTER, false, "a\nb\na\nx\n" },
        { "a\nb\na\n", "x", NULL, "b", TEXT_BEFORE, false, "a\nx\nb\na\n" },
        { "k=1\nk=2\nz\n", "k=3", "^k=", NULL, TEXT_END, false, "k=1\nk=3\nz\n" },
        { "k=1\nk=3\n", "k=3", "^k=", NULL, TEXT_END, false, "k=1\nk=3\n" },
        { "z\nk=1", "k=3", "^k=", NULL, TEXT_END, false, "z\nk=3" },
        { "a\nx\nx\nb\n", "x", NULL, NULL, TEXT_END, true, "a\nb\n" },
        { "k=1\nz\nk=2", "", "^k=", NULL, TEXT_END, true, "z\n" },
        { "", "x", NULL, NULL, TEXT_END, true, "" },
    };
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct text_line spec = { .line = str_from(cases[i].line),
                                  .match = compile(&memory, cases[i].match),
                                  .anchor = compile(&memory, cases[i].anchor),
                                  .position = cases[i].position,
                                  .absent = cases[i].absent };
        struct str once;
        struct str twice;
        CHECK_EQ(text_line_edit(&spec, str_from(cases[i].text), &memory, &once, &err), 0);
        CHECK_STR(once, cases[i].want);
        CHECK_EQ(text_line_edit(&spec, once, &memory, &twice, &err), 0);
        CHECK_STR(twice, cases[i].want);
    }
    check_case(-1);
    struct text_line lost = { .line = STR("x"), .position = TEXT_AFTER };
    struct str ignored;
    lost.anchor = compile(&memory, "nobody");
    CHECK_EQ(text_line_edit(&lost, STR("a\n"), &memory, &ignored, &err), -ERR_NOTFOUND);
}

TEST(text_block_stands_between_its_marks)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct str text;
    struct text_block spec = { .begin = STR("# B"), .end = STR("# E"), .content = STR("x\ny\n") };
    CHECK_EQ(text_block_edit(&spec, STR("a"), &memory, &text, &err), 0);
    CHECK_STR(text, "a\n# B\nx\ny\n# E\n");
    spec.content = STR("z\n");
    CHECK_EQ(text_block_edit(&spec, arena_concat(&memory, text, STR("b")), &memory, &text, &err),
             0);
    CHECK_STR(text, "a\n# B\nz\n# E\nb");
    bool found;
    struct str content;
    CHECK_EQ(text_block_find(&spec, text, &content, &found, &err), 0);
    CHECK(found);
    CHECK_STR(content, "z\n");
    spec.absent = true;
    CHECK_EQ(text_block_edit(&spec, text, &memory, &text, &err), 0);
    CHECK_STR(text, "a\nb");
    spec = (struct text_block){ .begin = STR("# B"), .end = STR("# E"), .at_start = true };
    CHECK_EQ(text_block_edit(&spec, text, &memory, &text, &err), 0);
    CHECK_STR(text, "# B\n# E\na\nb");
    CHECK_EQ(text_block_edit(&spec, STR("# B\nx\n"), &memory, &text, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "the block does not end: want the line '# E'");
    CHECK_EQ(text_block_edit(&spec, STR("# B\n# E\n# B\n# E\n"), &memory, &text, &err),
             -ERR_INVALID);
    CHECK_STR(err.msg, "the block begins twice: '# B'");
}
