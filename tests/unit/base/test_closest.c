#include "base/closest.h"

#include "tests/check.h"

TEST(closest_counts_edits_of_a_letter_and_swaps)
{
    static const struct {
        const char *a;
        const char *b;
        uint32_t distance;
    } cases[] = {
        { "", "", 0 },
        { "", "abc", 3 },
        { "hasLabel", "hasLabel", 0 },
        { "timezone", "timeZone", 0 }, /* letters of either case are the same */
        { "hasLable", "hasLabel", 1 }, /* swapped */
        { "transitons", "transitions", 1 },
        { "profile", "profiles", 1 },
        { "kitten", "sitting", 3 },
        { "abcd", "badc", 2 },
        { "abc", "xyzabc", 3 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_EQ(closest_distance(str_from(cases[i].a), str_from(cases[i].b), 99),
                 cases[i].distance);
        CHECK_EQ(closest_distance(str_from(cases[i].b), str_from(cases[i].a), 99),
                 cases[i].distance);
    }
    check_case(-1);
    CHECK_EQ(closest_distance(STR("kitten"), STR("sitting"), 2), 2); /* no farther than asked for */
}

TEST(closest_finds_what_was_meant_or_nothing)
{
    static const struct str words[] = { STR_INIT("hasLabel"), STR_INIT("hasAnnotation"),
                                        STR_INIT("wait"), STR_INIT("waitExclude") };
    CHECK_STR(closest_find(STR("hasLable"), words, ARRAY_LEN(words)), "hasLabel");
    CHECK_STR(closest_find(STR("HASLABEL"), words, ARRAY_LEN(words)), "hasLabel");
    CHECK_STR(closest_find(STR("wiat"), words, ARRAY_LEN(words)), "wait");
    CHECK_EQ(closest_find(STR("mail"), words, ARRAY_LEN(words)).n, 0);
    CHECK_EQ(closest_find(STR(""), words, ARRAY_LEN(words)).n, 0);
    CHECK_EQ(closest_find(STR("x"), words, 0).n, 0);
    char large[CLOSEST_WORD_MAX + 2];
    memset(large, 'a', sizeof(large));
    large[sizeof(large) - 1] = '\0';
    CHECK_EQ(closest_find(str_from(large), words, ARRAY_LEN(words)).n, 0);
}
