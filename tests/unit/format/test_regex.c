#include "format/regex.h"
#include "tests/check.h"

TEST(regex_matches_anywhere_as_go_does)
{
    static const struct {
        const char *pattern;
        const char *text;
        bool matches;
    } cases[] = {
        { "", "", true },
        { "", "abc", true },
        { "a.c", "xabcx", true },
        { "^a.c$", "xabcx", false },
        { "a$", "a\n", false },
        { "^\u00e4.$", "\u00e4\u00f6", true },
        { "(?i)ABC", "abc", true },
        { "(?P<x>a)(?<y>b)(?:c)", "abc", true },
        { "\\d+", "\u0661", false },
        { "\\pL", "\u00e4", true },
        { "[]a]", "]", true },
        { "[^]a(?=]", "]", false },
        { "\\(\\*", "(*", true },
        { "x*", "\xff", true },
        { "^.$", "\xff", false },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        struct regex *regex = NULL;
        bool matches = false;
        check_case((int64_t)i);
        CHECK_EQ(regex_compile(str_from(cases[i].pattern), &a, &regex, &err), 0);
        CHECK_EQ(regex_match(regex, str_from(cases[i].text), &a, &matches, &err), 0);
        CHECK_EQ(matches, cases[i].matches);
    }
    check_case(-1);
}

TEST(regex_refuses_what_re2_does_not_have)
{
    static const char *const patterns[] = {
        "a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b", "(a)\\1", "(?>a)", "(?R)", "(*FAIL)",
        "\\Ka",   "(?#c)",  "(?P=x)",  "(",       "a{2,1}", "[",     "*",
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        struct err err = { 0 };
        struct regex *regex = NULL;
        check_case((int64_t)i);
        CHECK_EQ(regex_compile(str_from(patterns[i]), &a, &regex, &err), -ERR_INVALID);
        CHECK(regex == NULL);
        CHECK(str_starts(str_from(err.msg), STR("regular expression '")));
    }
    check_case(-1);
}

TEST(regex_has_limits)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct regex *regex = NULL;
    bool matches = true;
    char *long_pattern = arena_alloc(&a, REGEX_BYTES_MAX + 1);
    memset(long_pattern, 'a', REGEX_BYTES_MAX + 1);
    struct str pattern = { .p = long_pattern, .n = REGEX_BYTES_MAX + 1 };
    CHECK_EQ(regex_compile(pattern, &a, &regex, &err), -ERR_LIMIT);
    CHECK_EQ(regex_compile(STR("^(a+)+$"), &a, &regex, &err), 0);
    struct str text = STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
    CHECK_EQ(regex_match(regex, text, &a, &matches, &err), -ERR_LIMIT);
    CHECK(matches); /* untouched */
}
