#include "format/gounquote.h"
#include "tests/check.h"

/* What strconv.UnquoteChar makes of the same escapes. */
TEST(gounquote_reads_the_escapes_of_go)
{
    static const struct {
        const char *rest;
        size_t taken;
        const char *text;
    } cases[] = {
        { "n.", 1, "\n" },  { "\\.", 1, "\\" },          { "\".", 1, "\"" },
        { "'.", 0, "" },    { "x41.", 3, "A" },          { "x4.", 0, "" },
        { "101.", 3, "A" }, { "377", 3, "\xff" },        { "400", 0, "" },
        { "18", 0, "" },    { "u00e9.", 5, "\xc3\xa9" }, { "U0001F600", 9, "\xf0\x9f\x98\x80" },
        { "ud800", 0, "" }, { "U00110000", 0, "" },      { "q", 0, "" },
        { "", 0, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf_done)
        struct buf out = { 0 };
        check_case((int64_t)i);
        CHECK_EQ(gounquote_escape(str_from(cases[i].rest), '"', &out), cases[i].taken);
        if (cases[i].taken > 0) {
            CHECK_STR(buf_str(&out), cases[i].text);
        }
    }
    check_case(-1);
}
