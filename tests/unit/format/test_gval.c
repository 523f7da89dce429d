#include "format/gval.h"

#include <math.h>

#include "base/buf.h"
#include "format/gofloat.h"
#include "tests/vectors.h"

/* Reads and evaluates; 0 and the answer, or what failed. */
static int run(struct str text, double value, struct arena *a, bool *ret, struct err *err)
{
    struct gval e;
    int r = gval_parse(text, a, &e, err);
    return r == 0 ? gval_eval(&e, value, a, ret, err) : r;
}

TEST(gval_agrees_with_the_original_on_every_vector)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *cases = jval_get(vectors_load("vectors/promexpr.json", &a), STR("cases"));
    uint32_t seen = 0;
    JVAL_EACH (cases, one) {
        struct err err = { 0 };
        double value = 0;
        bool passed = false;
        vectors_enter(one);
        CHECK(gofloat_parse(vectors_text(one, "value", &a), &value));
        int r = run(vectors_text(one, "expr", &a), value, &a, &passed, &err);
        CHECK_EQ(r == 0, vectors_ok(one));
        struct str why;
        if (r == 0) {
            CHECK_EQ(passed, jval_bool(jval_get(one, STR("passed")), false));
        } else if (str_cut_prefix(vectors_text(one, "error", &a),
                                  STR("failed to evaluate prometheus expression: "), &why) &&
                   !str_contains(why, STR("map["))) {
            CHECK_STR(err.msg, why);
        }
        seen++;
    }
    check_case(-1);
    CHECK(seen > 170);
}

/* Answers of the library itself (gval v1.2.4), beyond the recorded cases. */
TEST(gval_holds_as_gval_says)
{
    static const struct {
        const char *text;
        double value;
        bool passed;
    } cases[] = {
        { "!~value == 0", 0, true },
        { "\"1\" + \"2\" == 12", 0, true },
        { "1 + \"2\" == 3", 0, true },
        { "1 + \"a\" == \"1a\"", 0, true },
        { "true + 1 == \"true1\"", 0, true },
        { "1000000 + \"a\" == \"1e+06a\"", 0, true },
        { "\"true\" == true", 0, true },
        { "\"a\" == \"a\"", 0, true },
        { "\"a\" != \"b\"", 0, true },
        { "[1,2] == [1,2]", 0, true },
        { "[1,2] == [1,3]", 0, false },
        { "[1,2] == [1]", 0, false },
        { "[1,,2,] == [1 2]", 0, true },
        { "[value] + \"x\" == \"[5]x\"", 5, true },
        { "[] + \"x\" == \"[]x\"", 5, true },
        { "[1,\"a\"] + \"x\" == \"[1 a]x\"", 5, true },
        { "\"1\" in [1]", 0, false },
        { "\"a\" in [1, \"a\"]", 0, true },
        { "[] ? true : false", 0, true },
        { "\"\" ? true : false", 0, false },
        { "-value ? true : false", 0, false },
        { "'' ?? true", 0, true },
        { "value ? value ? 1", 0, false },
        { "\"\" ?? true", 0, true },
        { "date(\"2026-01-02\") ? true : false", 0, true },
        { "value =~ \"^1\\\\.5$\"", 1.5, true },
        { "value !~ \"^1\\\\.5$\"", 1.5, false },
        { "\"15\" =~ value", 5, true },
        { "\"x\" !~ value", 5, true },
        { "1 << 64 == 0", 0, true },
        { "1 << -1 == 0", 0, true },
        { "-1 >> 99 == -1", 0, true },
        { "8 >> 99 == 0", 0, true },
        { "-8 >> 1 == -4", 0, true },
        { "value | 0", HUGE_VAL, true },
        { "5 & value == 4", 6, true },
        { "0x1p4 == 16", 0, true },
        { ".5 == 0.5", 0, true },
        { "value in [1 .0.5]", 0.5, true },
        { "`a\\n` == \"a\\\\n\"", 0, true },
        { "\"\\x41\\u00e4\\U0001F600\\101\\t\" == \"A\u00e4\U0001F600A\t\"", 0, true },
        { "'\\'' == \"'\"", 0, true },
        { "'\u00e4' == \"\u00e4\"", 0, true },
        { "value /* all */ == 1 /* open", 1, true },
        { "1in [1]", 0, true },
        { "true || value.x(1, 2)", 0, true },
        { "true || date()", 0, true },
        { "value >= 1 && \"b\" >= \"a\" && \"b\" > \"a\" && \"a\" <= \"b\"", 1, true },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        bool passed = false;
        check_case((int64_t)i);
        if (run(str_from(cases[i].text), cases[i].value, &a, &passed, &err) < 0) {
            check_fail(__FILE__, __LINE__, "%s: %s", cases[i].text, err.msg);
        }
        CHECK_EQ(passed, cases[i].passed);
    }
    check_case(-1);
}

TEST(gval_reads_dates_as_iso_8601_and_rfc_3339_have_them)
{
    static const struct {
        const char *text;
        const char *same; /* NULL: refused */
    } cases[] = {
        { "2026-01-02", "2026-01-02T00:00:00Z" },
        { "2026-01-02 03:04", "2026-01-02T03:04:00Z" },
        { "2026-01-02 03:04:05", "2026-01-02T03:04:05Z" },
        { "2026-01-02 03:04:05.25", "2026-01-02T03:04:05.25Z" },
        { "2026-01-02 03:04:05+01:00", "2026-01-02T02:04:05Z" },
        { "2026-01-02T03Z", "2026-01-02T03:00:00Z" },
        { "2026-01-02T03-0130", "2026-01-02T04:30:00Z" },
        { "2026-01-02T03:04+0100", "2026-01-02T02:04:00Z" },
        { "2026-01-02T03:04:05+0100", "2026-01-02T02:04:05Z" },
        { "2026-01-02T03:04:05.5+01:00", "2026-01-02T02:04:05.5Z" },
        { "2026-01-02T03:04:05", NULL },
        { "2026-01-02 03", NULL },
        { "2026-01-02 03:04Z", NULL },
        { "2026-01-02 03:04:05+0100", NULL },
        { "2026-01-02T03:04+01:00", NULL },
        { "2026-01-02T03.5Z", NULL },
        { "2026-13-02", NULL },
        { "2026-01-02x03:04", NULL },
        { "2026-01-02T03:04:05.1234567890123456789012345678901234567890123456789Z", NULL },
        { "Z", NULL },
        { "", NULL },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        bool passed = false;
        check_case((int64_t)i);
        const char *same = cases[i].same != NULL ? cases[i].same : "2026-01-02";
        struct str text = arena_printf(&a, "date(\"%s\") == date(\"%s\")", cases[i].text, same);
        CHECK_EQ(run(text, 0, &a, &passed, &err) == 0, cases[i].same != NULL);
        CHECK_EQ(passed, cases[i].same != NULL);
    }
    check_case(-1);
    bool passed = false;
    struct err err = { 0 };
    struct str text = STR("date(\"2026-01-02T00:00:00+01:00\") <= date(\"2026-01-01T23:00:00.5Z\") "
                          "&& date(\"2026-01-02\") + \"\" == \"2026-01-02 00:00:00 +0000 UTC\"");
    CHECK_EQ(run(text, 0, &a, &passed, &err), 0);
    CHECK(passed);
}

TEST(gval_errors_say_what_was_found_where_and_what_is_wanted)
{
    static const struct {
        const char *text;
        uint32_t line;
        uint32_t column;
        const char *msg;
    } cases[] = {
        { "", 1, 1, "found the end: want a value, a prefix operator or '('" },
        { "value ==", 1, 9, "found the end: want a value, a prefix operator or '('" },
        { "value = 1", 1, 7, "found '=': want an operator or the end" },
        { "value\n  1", 2, 3, "found '1': want an operator or the end" },
        { "(value", 1, 7, "found the end: want an operator or ')'" },
        { "(value 1)", 1, 8, "found '1': want an operator or ')'" },
        { "[value", 1, 7, "found the end: want a value, a prefix operator or '('" },
        { "value[1", 1, 8, "found the end: want an operator or ']'" },
        { "value.1", 1, 6, "found '.1': want an operator or the end" },
        { "value. 1", 1, 8, "found '1': want a name" },
        { "date(1", 1, 7, "found the end: want an operator, ',' or ')'" },
        { "date(1,)", 1, 8, "found ')': want a value, a prefix operator or '('" },
        { "value ? 1 2", 1, 11, "found '2': want an operator or ':'" },
        { "(value ? 1)", 1, 11, "found ')': want an operator or ':'" },
        { "0x10", 1, 1, "found '0x10': want a decimal number that fits 64 bits" },
        { "1 + 0b1", 1, 5, "found '0b1': want a decimal number that fits 64 bits" },
        { "1e+", 1, 1, "found '1e+': want a decimal number that fits 64 bits" },
        { "'ab'", 1, 1, "found 'ab': want at most one character between single quotes" },
        { "1 == \"a", 1, 6, "found a text without its closing \"" },
        { "\"\\q\"", 1, 1, "found \"\\q\": want a text with Go's escapes" },
        { "\"\\'\"", 1, 1, "found \"\\'\": want a text with Go's escapes" },
        { "\"\\x4\"", 1, 1, "found \"\\x4\": want a text with Go's escapes" },
        { "\"\\ud800\"", 1, 1, "found \"\\ud800\": want a text with Go's escapes" },
        { "\"\\400\"", 1, 1, "found \"\\400\": want a text with Go's escapes" },
        { "\"\\8\"", 1, 1, "found \"\\8\": want a text with Go's escapes" },
        { "\"\\u00zz\"", 1, 1, "found \"\\u00zz\": want a text with Go's escapes" },
        { "\"a\nb\"", 1, 1, "found \"a\nb\": want a text with Go's escapes" },
        { "\"x\" && true", 1, 5, "invalid operation (string) && (bool)" },
        { "true || (1 - \"x\")", 1, 12, "invalid operation (float64) - (string)" },
        { "-\"x\"", 1, 1, "unexpected x(string) expected number" },
        { "!\"x\"", 1, 1, "unexpected x(string) expected bool" },
        { "1 in 2", 1, 3, "expected type []interface{} for in operator but got float64" },
        { "{}", 1, 1, "found '{': want a value, a prefix operator or '('" },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        struct gval e = { 0 };
        check_case((int64_t)i);
        CHECK_EQ(gval_parse(str_from(cases[i].text), &a, &e, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].msg);
        CHECK_EQ(err.pos.line, cases[i].line);
        CHECK_EQ(err.pos.column, cases[i].column);
        CHECK(e.root == NULL); /* untouched */
    }
    check_case(-1);
}

TEST(gval_evaluation_fails_with_the_words_of_the_original)
{
    static const struct {
        const char *text;
        const char *msg;
    } cases[] = {
        { "unknown", "unknown parameter unknown" },
        { "unknown.x[1]", "unknown parameter unknown" },
        { "value.x.y", "unknown parameter value.x" },
        { "value[1].y", "unknown parameter value.1" },
        { "value[value]", "unknown parameter value[…]" },
        { "value()", "could not call 'value' type float64" },
        { "value.f()", "could not call function: unknown parameter value.f" },
        { "f(1)", "could not call function: unknown parameter f" },
        { "date", "date() expects exactly one string argument" },
        { "date(1)", "date() expects exactly one string argument" },
        { "date(\"2026-01-02\", 1)", "date() expects exactly one string argument" },
        { "date(unknown)", "unknown parameter unknown" },
        { "date(\"2026-01-02\")",
          "expected bool but got 2026-01-02 00:00:00 +0000 UTC (time.Time)" },
        { "[unknown]", "unknown parameter unknown" },
        { "-[value]", "unexpected [0]([]interface {}) expected number" },
        { "~unknown", "unknown parameter unknown" },
        { "unknown ? 1 : 2", "unknown parameter unknown" },
        { "unknown =~ \"a\"", "unknown parameter unknown" },
        { "\"a\" =~ unknown", "unknown parameter unknown" },
        { "value && unknown", "unknown parameter unknown" },
        { "[value] - 1", "invalid operation ([]interface {}) - (float64)" },
        { "value in value", "expected type []interface{} for in operator but got float64" },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        struct gval e;
        bool passed = true;
        check_case((int64_t)i);
        CHECK_EQ(gval_parse(str_from(cases[i].text), &a, &e, &err), 0);
        CHECK_EQ(gval_eval(&e, 0, &a, &passed, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].msg);
        CHECK(passed); /* untouched */
    }
    check_case(-1);
}

static struct str repeat(const char *part, uint32_t times, const char *end, struct arena *a)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (uint32_t i = 0; i < times; i++) {
        buf_add(&text, str_from(part));
    }
    buf_add(&text, str_from(end));
    return arena_str(a, buf_str(&text));
}

TEST(gval_has_limits_and_names_them)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct gval e;
    bool passed = false;
    static const char *const deep[] = { "!", "(", "[", "date(", "value[", "1?", "1?1:" };
    for (size_t i = 0; i < ARRAY_LEN(deep); i++) {
        check_case((int64_t)i);
        CHECK_EQ(gval_parse(repeat(deep[i], 70, "1", &a), &a, &e, &err), -ERR_LIMIT);
        CHECK_STR(err.msg, "an expression nests at most 64 deep");
    }
    check_case(-1);
    uint32_t operands = GVAL_WORDS_MAX / 2; /* an operator or the end behind each */
    CHECK_EQ(run(repeat("value+", operands - 1, "1", &a), 1, &a, &passed, &err), 0);
    CHECK(passed);
    CHECK_EQ(run(repeat("value+", operands, "1", &a), 1, &a, &passed, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "an expression has at most 1024 words and signs");
    CHECK_EQ(run(repeat(" ", GVAL_BYTES_MAX, "1", &a), 1, &a, &passed, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "an expression has at most 4096 bytes");
}

/* A random expression of numbers and, beside it, its value by direct recursion. */
static double invent(struct rng *rng, uint32_t depth, double value, struct buf *out)
{
    static const char *const signs[] = { "+", "-", "*", "<", "==", ">=" };
    uint32_t pick = depth == 0 ? 0 : rng_below(rng, 4);
    if (pick == 0) {
        uint32_t number = rng_below(rng, 4);
        if (number == 3) {
            buf_add(out, STR("value"));
        } else {
            buf_printf(out, "%u", number);
        }
        return number == 3 ? value : number;
    }
    if (pick == 1) {
        buf_add(out, STR("-("));
        double inner = -invent(rng, depth - 1, value, out);
        buf_add_char(out, ')');
        return inner;
    }
    uint32_t which = rng_below(rng, ARRAY_LEN(signs));
    buf_add_char(out, '(');
    double left = invent(rng, depth - 1, value, out);
    buf_printf(out, ") %s (", signs[which]);
    double right = invent(rng, depth - 1, value, out);
    buf_add_char(out, ')');
    /* A comparison is made a number again, so that it can go on. */
    switch (which) {
    case 0:
        return left + right;
    case 1:
        return left - right;
    case 2:
        return left * right;
    default:
        buf_add(out, STR(" ? 1 : 0"));
        return which == 3 ? left < right : which == 4 ? left == right : left >= right;
    }
}

PROPERTY(gval_calculates_what_c_calculates)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct err err = { 0 };
    double value = (double)rng_below(rng, 7) - 3;
    double want = invent(rng, 1 + rng_below(rng, 4), value, &text);
    struct str whole = arena_printf(&a, "(" STR_FMT ") == %.17g", STR_ARG(buf_str(&text)), want);
    bool passed = false;
    if (run(whole, value, &a, &passed, &err) < 0) {
        check_fail(__FILE__, __LINE__, STR_FMT ": %s", STR_ARG(whole), err.msg);
    }
    CHECK(passed);
}
