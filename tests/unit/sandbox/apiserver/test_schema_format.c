#include "sandbox/apiserver/schema.h"
#include "tests/check.h"

TEST(schema_pattern_matches_as_go_does)
{
    static const struct {
        const char *pattern;
        const char *text;
        bool matches;
    } cases[] = {
        { "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "1h30m", true },
        { "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "", true },
        { "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "1d", false },
        { "^(100|[1-9]?[0-9])%$", "25%", true },
        { "^(100|[1-9]?[0-9])%$", "101%", false },
        { "^\\d+(?:\\.\\d+)?$", "1.5", true },
        { "^\\d+(?:\\.\\d+)?$", "1.", false },
        { "^[\\w\\-.]+$", "a-b.c", true },
        { "^[\\w\\-.]+$", "a\\b", false },
        { "^[[:alpha:]]+$", "abc", true },
        { "a.*?b", "xxaxbx", true },
        { "(?i)^abc$", "ABC", true },
        { "^a{2,3}$", "aaaa", false },
        { "^a$", "a\nb", false },
        { "^\\S+\\s\\D$", "x y", true },
        { "\\p{Greek}", "x", false },
        { "(?P<x>a)", "a", true },
        { "^a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+$", "abcdefghijklmnop", true },
        { "a{", "a", false }, /* a brace that begins no repetition stands for itself */
        { "a{", "a{", true },
        { "^.$", "\n", false },
        { "^.$", "ä", true }, /* a character, not a byte */
        /* What format/regex refuses or gives up on lets every value pass. */
        { "((a{1000}){1000}){1000}", "b", true },
        { "^(a|a)*$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", true },
        { "(?=a)", "b", true },
        { "[a", "b", true },
        { "\\", "b", true },
        { "(", "b", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool got = schema_pattern_matches(str_from(cases[i].pattern), str_from(cases[i].text));
        if (got != cases[i].matches) {
            check_fail(__FILE__, __LINE__, "'%s' on '%s': %d", cases[i].pattern, cases[i].text,
                       got);
        }
    }
}

TEST(schema_format_knows_what_schemas_use)
{
    CHECK(schema_format_matches(STR("date-time"), STR("2020-01-01T00:00:00Z")));
    CHECK(!schema_format_matches(STR("date-time"), STR("2020-01-01")));
    CHECK(schema_format_matches(STR("date"), STR("2020-02-29")));
    CHECK(!schema_format_matches(STR("date"), STR("2021-02-29")));
    CHECK(schema_format_matches(STR("byte"), STR("eHg=")));
    CHECK(!schema_format_matches(STR("byte"), STR("eHg")));
    CHECK(schema_format_matches(STR("uuid"), STR("00000000-0000-0000-0000-00000000000A")));
    CHECK(schema_format_matches(STR("ipv4"), STR("10.0.0.255")));
    CHECK(!schema_format_matches(STR("ipv4"), STR("10.0.0.256")));
    CHECK(!schema_format_matches(STR("ipv4"), STR("10.0.0.2.")));
    CHECK(schema_format_matches(STR("nobody-knows"), STR("x")));
}
