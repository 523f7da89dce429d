#include "web/query.h"

#include "tests/check.h"

TEST(query_param_is_decoded)
{
    static const struct {
        const char *query;
        const char *want;
    } cases[] = {
        { "", "" },
        { "machine=a", "a" },
        { "x=1&machine=a&machine=b", "a" },
        { "machine=a%2Fb", "a/b" },
        { "machine=a%2fb+c", "a/b c" },
        { "machine=a%2", "a%2" },
        { "machine=%zz%", "%zz%" },
        { "machine", "" },
        { "machines=a", "" },
        { "&&machine==", "=" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        CHECK_STR(query_param(str_from(cases[i].query), STR("machine"), &tmp), cases[i].want);
    }
}

TEST(query_format_is_json_text_or_wide)
{
    static const struct {
        const char *query;
        bool good;
        enum query_format want;
    } cases[] = {
        { "", true, QUERY_FORMAT_JSON },
        { "format=", true, QUERY_FORMAT_JSON },
        { "node=a&format=json", true, QUERY_FORMAT_JSON },
        { "format=text&node=a", true, QUERY_FORMAT_TEXT },
        { "format=w%69de", true, QUERY_FORMAT_WIDE },
        { "format=Text", false, 0 },
        { "format=yaml", false, 0 },
        { "format=text%00", false, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum query_format format = QUERY_FORMAT_JSON;
        check_case((int64_t)i);
        CHECK_EQ(query_format(str_from(cases[i].query), &format), cases[i].good);
        CHECK(!cases[i].good || format == cases[i].want);
    }
    check_case(-1);
}

TEST(query_columns_are_those_of_a_terminal)
{
    static const struct {
        const char *query;
        uint32_t columns;
    } cases[] = {
        { "", 0 },
        { "columns=120", 120 },
        { "format=text&columns=40", 40 },
        { "columns=39", 0 },
        { "columns=501", 0 },
        { "columns=-1", 0 },
        { "columns=wide", 0 },
        { "columns=", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_EQ(query_columns(str_from(cases[i].query)), cases[i].columns);
    }
}
