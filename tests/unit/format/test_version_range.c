#include "format/version_range.h"

#include "tests/check.h"

TEST(version_range_holds_versions)
{
    static const struct {
        const char *range;
        const char *text;
        bool holds;
    } cases[] = {
        { ">=12", "12", true },
        { ">=12", "11.9", false },
        { ">=12", "12.1", true },
        { ">=5.10,<7", "6.1.0-28-amd64", true },
        { ">=5.10,<7", "5.9.99", false },
        { ">=5.10 , <7", "7.0", false },
        { ">=1.29", "v1.34.2+k3s1", true },
        { "12", "12.0.0", true },
        { "=12", "12.1", false },
        { ">1.2.3", "1.2.3", false },
        { "<=1.2.3", "1.2.3", true },
        { ">=1", "", false },
        { ">=1", "unknown", false },
        { ">=1", "99999999999", false },
        { ">=22.04", "22.04.", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct version_range r;
        struct err err = { 0 };
        check_case((int64_t)i);
        CHECK_EQ(version_range_parse(str_from(cases[i].range), &r, &err), 0);
        CHECK_EQ(version_range_has(&r, str_from(cases[i].text)), cases[i].holds);
    }
    check_case(-1);
    CHECK(version_range_has(&(struct version_range){ 0 }, STR("unknown")));
}

TEST(version_range_refuses_what_is_none)
{
    static const char *const cases[] = { "",     "new",  ">=", ">=1,", "1.",
                                         "1..2", ">= 1", "~1", "1 2",  ">=1,1,1,1,1,1,1,1,1" };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct version_range r;
        struct err err = { 0 };
        check_case((int64_t)i);
        CHECK_EQ(version_range_parse(str_from(cases[i]), &r, &err), -ERR_INVALID);
    }
    check_case(-1);
}
