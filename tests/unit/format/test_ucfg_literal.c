#include "format/ucfg_literal.h"
#include "tests/check.h"

TEST(ucfg_literal_reads_quotes_lists_and_mappings)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct ucfg_value v;
    CHECK_EQ(ucfg_literal_parse(STR(" \"a\\x41\\u00e9\\101\\t\\\"\" "), true, &a, &v, &err), 0);
    CHECK_STR(v.text, "aA\xc3\xa9"
                      "A\t\"");
    CHECK_EQ(ucfg_literal_parse(STR("{'k': [1, -2], \"l\": {m: t}}"), true, &a, &v, &err), 0);
    CHECK_EQ(v.member_n, 2);
    CHECK_STR(v.members[0].name, "k");
    CHECK_EQ(v.members[0].value->item_n, 2);
    CHECK_EQ(v.members[0].value->items[1]->integer, -2);
    CHECK(v.members[1].value->members[0].value->truth);
    CHECK_EQ(ucfg_literal_parse(STR("[a,]"), true, &a, &v, &err), 0);
    CHECK_EQ(v.item_n, 1);
    CHECK_EQ(ucfg_literal_parse(STR("  "), true, &a, &v, &err), 0);
    CHECK_EQ(v.kind, UCFG_VALUE_STR);
}

TEST(ucfg_literal_refuses_what_does_not_end_or_fit)
{
    static const char *const cases[] = {
        "\"a",      "'a",        "[a",          "[a}",
        "{a",       "{a: b",     "{a: b]",      "{:b}",
        "\"a\"b",   "\"\\q\"",   "\"\\ud800\"", "\"\\u12\"",
        "\"\\x4\"", "\"\\400\"", "\"a\nb\"",    "\"\\U00110000\"",
        ",",        "a,,b",
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        struct ucfg_value v;
        check_case((int64_t)i);
        CHECK_EQ(ucfg_literal_parse(str_from(cases[i]), true, &a, &v, &err), -ERR_INVALID);
        CHECK(err.msg[0] != '\0');
    }
    check_case(-1);
}

TEST(ucfg_literal_bounds_its_depth)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct ucfg_value v;
    char text[2 * UCFG_LITERAL_DEPTH_MAX + 2];
    for (uint32_t depth = UCFG_LITERAL_DEPTH_MAX; depth <= UCFG_LITERAL_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        struct str s = { .p = text, .n = 2 * (size_t)depth };
        CHECK_EQ(ucfg_literal_parse(s, true, &a, &v, &err),
                 depth > UCFG_LITERAL_DEPTH_MAX ? -ERR_LIMIT : 0);
    }
}

TEST(ucfg_literal_integers_are_those_of_go)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t value;
    } cases[] = {
        { "0", true, 0 },
        { "-0", true, 0 },
        { "0x_1f", true, 31 },
        { "0_7", true, 7 },
        { "1__0", false, 0 },
        { "1_", false, 0 },
        { "_1", false, 0 },
        { "0x", false, 0 },
        { "08", false, 0 },
        { "+12", true, 12 },
        { "-0b11", true, -3 },
        { "", false, 0 },
        { "-", false, 0 },
        { "0O17", true, 15 },
        { "1a", false, 0 },
        { "-9223372036854775808", true, INT64_MIN },
        { "-9223372036854775809", false, 0 },
        { "18446744073709551616", false, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ucfg_value v = { .kind = UCFG_VALUE_NULL };
        check_case((int64_t)i);
        CHECK_EQ(ucfg_value_read_integer(str_from(cases[i].text), &v), cases[i].ok);
        CHECK_EQ(v.kind == UCFG_VALUE_INT ? v.integer : (int64_t)v.natural, cases[i].value);
    }
    check_case(-1);
}
