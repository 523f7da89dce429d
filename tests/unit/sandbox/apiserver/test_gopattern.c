#include "sandbox/apiserver/gopattern.h"
#include "tests/check.h"

TEST(gopattern_matches_as_go_does)
{
    static const struct {
        const char *pattern;
        const char *text;
        enum gopattern_answer answer;
    } cases[] = {
        { "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "1h30m", GOPATTERN_MATCHES },
        { "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "", GOPATTERN_MATCHES },
        { "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "1d", GOPATTERN_DIFFERS },
        { "^(100|[1-9]?[0-9])%$", "25%", GOPATTERN_MATCHES },
        { "^(100|[1-9]?[0-9])%$", "101%", GOPATTERN_DIFFERS },
        { "^\\d+(?:\\.\\d+)?$", "1.5", GOPATTERN_MATCHES },
        { "^\\d+(?:\\.\\d+)?$", "1.", GOPATTERN_DIFFERS },
        { "^[\\w\\-.]+$", "a-b.c", GOPATTERN_MATCHES },
        { "^[\\w\\-.]+$", "a\\b", GOPATTERN_DIFFERS },
        { "^[[:alpha:]]+$", "abc", GOPATTERN_MATCHES },
        { "a.*?b", "xxaxbx", GOPATTERN_MATCHES },
        { "(?i)^abc$", "ABC", GOPATTERN_MATCHES },
        { "^a{2,3}$", "aaaa", GOPATTERN_DIFFERS },
        { "^a$", "a\nb", GOPATTERN_DIFFERS },
        { "^\\S+\\s\\D$", "x y", GOPATTERN_MATCHES },
        { "\\p{Greek}", "x", GOPATTERN_UNKNOWN },
        { "(?P<x>a)", "a", GOPATTERN_UNKNOWN },
        { "((a{1000}){1000}){1000}", "a", GOPATTERN_UNKNOWN },
        { "((((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+", "a", GOPATTERN_UNKNOWN },
        { "^a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+$", "abcdefghijklmnop", GOPATTERN_MATCHES },
        { "a++", "a", GOPATTERN_UNKNOWN },
        { "[a", "a", GOPATTERN_UNKNOWN },
        { "a{", "a", GOPATTERN_UNKNOWN },
        { "\\", "a", GOPATTERN_UNKNOWN },
        { "(", "a", GOPATTERN_UNKNOWN },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum gopattern_answer got =
            gopattern_match(str_from(cases[i].pattern), str_from(cases[i].text));
        if (got != cases[i].answer) {
            check_fail(__FILE__, __LINE__, "'%s' on '%s': %d", cases[i].pattern, cases[i].text,
                       (int)got);
        }
    }
}

TEST(goformat_knows_what_schemas_use)
{
    CHECK(goformat_match(STR("date-time"), STR("2020-01-01T00:00:00Z")));
    CHECK(!goformat_match(STR("date-time"), STR("2020-01-01")));
    CHECK(goformat_match(STR("date"), STR("2020-02-29")));
    CHECK(!goformat_match(STR("date"), STR("2021-02-29")));
    CHECK(goformat_match(STR("byte"), STR("eHg=")));
    CHECK(!goformat_match(STR("byte"), STR("eHg")));
    CHECK(goformat_match(STR("uuid"), STR("00000000-0000-0000-0000-00000000000A")));
    CHECK(goformat_match(STR("ipv4"), STR("10.0.0.255")));
    CHECK(!goformat_match(STR("ipv4"), STR("10.0.0.256")));
    CHECK(!goformat_match(STR("ipv4"), STR("10.0.0.2.")));
    CHECK(goformat_match(STR("nobody-knows"), STR("x")));
}
