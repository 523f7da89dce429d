#include "format/gofloat.h"

#include <math.h>

#include "tests/check.h"

TEST(gofloat_reads_what_strconv_reads)
{
    static const struct {
        const char *text;
        bool ok;
        double value;
    } cases[] = {
        { "1_000", true, 1000 },     { "010", true, 10 },
        { ".5", true, 0.5 },         { "5.", true, 5 },
        { "+1", true, 1 },           { "-1e3", true, -1000 },
        { "1e1_0", true, 1e10 },     { "1e-400", true, 0 },
        { "0x1p4", true, 16 },       { "0x_1.8P+1", true, 3 },
        { "0_1", true, 1 },          { "1_0.5", true, 10.5 },
        { "inf", true, HUGE_VAL },   { "+Infinity", true, HUGE_VAL },
        { "-Inf", true, -HUGE_VAL }, { "1e400", false, 0 },
        { "+nan", false, 0 },        { "-NaN", false, 0 },
        { "1_", false, 0 },          { "_1", false, 0 },
        { "1__0", false, 0 },        { "1_.5", false, 0 },
        { "1._5", false, 0 },        { "1e_5", false, 0 },
        { "0x10", false, 0 },        { "0b1", false, 0 },
        { ".", false, 0 },           { "1e", false, 0 },
        { "1e+", false, 0 },         { "", false, 0 },
        { "-", false, 0 },           { " 1", false, 0 },
        { "1 ", false, 0 },          { "0x", false, 0 },
        { "0xp1", false, 0 },        { "1p3", false, 0 },
        { "1.2.3", false, 0 },       { "in", false, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double value = 77;
        check_case((int64_t)i);
        CHECK_EQ(gofloat_parse(str_from(cases[i].text), &value), cases[i].ok);
        CHECK(value == (cases[i].ok ? cases[i].value : 77));
    }
    check_case(-1);
    double nan = 0;
    CHECK(gofloat_parse(STR("nAn"), &nan));
    CHECK(isnan(nan));
}

TEST(gofloat_prints_what_fmt_prints)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        { 0, "0" },
        { -0.0, "-0" },
        { 1, "1" },
        { -0.5, "-0.5" },
        { 123456, "123456" },
        { 1000000, "1e+06" },
        { 1234567, "1.234567e+06" },
        { 123456.789, "123456.789" },
        { 0.0001, "0.0001" },
        { 0.00012345, "0.00012345" },
        { 0.00001, "1e-05" },
        { 123456789.125, "1.23456789125e+08" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 1e300, "1e+300" },
        { NAN, "NaN" },
        { HUGE_VAL, "+Inf" },
        { -HUGE_VAL, "-Inf" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[GOFLOAT_TEXT_MAX];
        check_case((int64_t)i);
        CHECK_STR(gofloat_print(cases[i].value, out), cases[i].text);
    }
    check_case(-1);
}

PROPERTY(gofloat_print_and_parse_are_inverse)
{
    union {
        uint64_t bits;
        double value;
    } number = { .bits = rng_next(rng) };
    char out[GOFLOAT_TEXT_MAX];
    double back = 0;
    CHECK(gofloat_parse(gofloat_print(number.value, out), &back));
    CHECK(back == number.value || isnan(number.value));
}
