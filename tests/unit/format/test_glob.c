#include "format/glob.h"

#include "tests/check.h"

TEST(glob_matches_whole_names)
{
    static const struct {
        const char *pattern;
        const char *text;
        bool matches;
    } cases[] = {
        { "worker-*", "worker-1", true },
        { "worker-*", "worker-", true },
        { "worker-*", "worker", false },
        { "worker", "worker-1", false },
        { "*", "", true },
        { "*", "any/thing", true },
        { "edge-[0-9]*", "edge-7b", true },
        { "edge-[0-9]*", "edge-b", false },
        { "n?", "n1", true },
        { "n?", "n", false },
        { "[!a]", "b", true },
        { "[!a]", "a", false },
        { "[]]", "]", true },
        { "[a-]", "-", true },
        { "a*b*c", "aXbXbc", true },
        { "a*b*c", "aXbX", false },
        { "**a", "bba", true },
        { "", "", false },
        { "[a", "a", false },
        { "*a*a*a*a*a*a*a*a", "aaaaaaa", false },
        { "*a*a*a*a*a*a*a*a", "aaaaaaaa", true },
        { "*a*a*a*a*a*a*a*a*", "aaaaaaaa", false }, /* nine stars */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_EQ(glob_match(str_from(cases[i].pattern), str_from(cases[i].text)), cases[i].matches);
    }
    check_case(-1);
}

TEST(glob_says_what_is_wrong_with_a_pattern)
{
    struct err err = { 0 };
    CHECK_EQ(glob_check(STR("a*[b-c]?"), &err), 0);
    CHECK_EQ(glob_check(STR(""), &err), -ERR_INVALID);
    CHECK_STR(err.msg, "a pattern of 1 to 253 letters");
    CHECK_EQ(glob_check(STR("a["), &err), -ERR_INVALID);
    CHECK_STR(err.msg, "a pattern whose brackets are closed");
    CHECK_EQ(glob_check(STR("*********"), &err), -ERR_INVALID);
    CHECK_STR(err.msg, "a pattern of at most 8 stars");
}

/* As the definition says it, by trying everything. */
static bool slow_match(struct str pattern, struct str text)
{
    if (pattern.n == 0) {
        return text.n == 0;
    }
    struct str rest = str_sub(pattern, 1, pattern.n - 1);
    if (pattern.p[0] == '*') {
        for (size_t i = 0; i <= text.n; i++) {
            if (slow_match(rest, str_sub(text, i, text.n - i))) {
                return true;
            }
        }
        return false;
    }
    return text.n > 0 && (pattern.p[0] == '?' || pattern.p[0] == text.p[0]) &&
           slow_match(rest, str_sub(text, 1, text.n - 1));
}

PROPERTY(glob_agrees_with_trying_everything)
{
    char pattern[6];
    char text[8];
    struct str p = { .p = pattern, .n = 1 + rng_below(rng, sizeof(pattern)) };
    struct str t = { .p = text, .n = rng_below(rng, sizeof(text) + 1) };
    for (size_t i = 0; i < p.n; i++) {
        pattern[i] = "ab*?"[rng_below(rng, 4)];
    }
    for (size_t i = 0; i < t.n; i++) {
        text[i] = "ab"[rng_below(rng, 2)];
    }
    CHECK_EQ(glob_match(p, t), slow_match(p, t));
}
