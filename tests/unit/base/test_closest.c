#include "base/closest.h"
#include "tests/check.h"

static const struct str words[] = {
    STR_INIT("status"), STR_INIT("explain"), STR_INIT("limits"),
    STR_INIT("run"),    STR_INIT("crds"),    STR_INIT("check"),
};

TEST(closest_finds_the_word_that_was_mistyped)
{
    static const struct {
        const char *word;
        const char *want;
    } cases[] = {
        { "status", "status" },                            /* itself */
        { "stauts", "status" },                            /* neighbours swapped */
        { "sttus", "status" },                             /* a letter dropped */
        { "statuss", "status" }, { "exlpian", "explain" }, /* two swaps in seven letters */
        { "limist", "limits" },  { "crd", "crds" },
        { "rnu", "run" },        { "rx", "" }, /* no third of two letters */
        { "stxxs", "" },                       /* two edits in five letters are too many */
        { "dance", "" },         { "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_STR(closest_find(str_from(cases[i].word), words, ARRAY_LEN(words)), cases[i].want);
    }
}

TEST(closest_prefers_the_first_of_two_that_are_as_near)
{
    static const struct str both[] = { STR_INIT("cart"), STR_INIT("card") };
    CHECK_STR(closest_find(STR("carx"), both, 2), "cart");
    CHECK_STR(closest_find(STR("carx"), both, 0), "");
}

TEST(closest_gives_up_on_words_of_any_length)
{
    static const struct str one[] = { STR_INIT(
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") };
    CHECK_STR(closest_find(one[0], one, 1), "");
    CHECK_STR(closest_find(STR("a"), one, 1), "");
}
