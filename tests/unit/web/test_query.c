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
