#include "format/json.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "format/json_tree.h"
#include "format/json_writer.h"
#include "tests/check.h"
#include "tests/lib/oracle.h"

TEST(json_parse_reads_a_document)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *v;
    CHECK_EQ(json_parse(STR(" {\"a\":[1,-2.5e3,\"x\\u00e9\\n\"],\"b\":{\"c\":true},\"a\":null} "),
                        0, &a, &v, &err),
             0);
    CHECK_EQ(jval_kind(v), JOBJ);
    CHECK_EQ(jval_kind(jval_get(v, STR("a"))), JNULL); /* the last one counts */
    CHECK(jval_bool(jval_at(v, "b.c"), false));
    const struct jval *list = jval_first(v);
    CHECK_EQ(list->n, 3);
    int64_t n;
    CHECK(jval_i64(jval_first(list), &n));
    CHECK_EQ(n, 1);
}

/* What a loop goes over may depend on what the loop finds out. */
TEST(json_loops_look_once_at_what_they_go_over)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *list = NULL;
    bool good = true;
    uint32_t n = 0;
    CHECK_EQ(json_parse(STR("[1, 2, 3]"), 0, &a, &list, &err), 0);
    JVAL_EACH (good ? list : NULL, item) {
        CHECK_EQ(jval_kind(item), JNUM);
        good = false;
        n++;
    }
    CHECK_EQ(n, 3);
}

TEST(json_parse_says_where_and_what)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *v;
    CHECK_EQ(json_parse(STR("{\"a\":1,\n \"b\" 2}"), 0, &a, &v, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "line 2, column 6: found '2', want ':'");
}

TEST(json_errors_name_what_was_found_and_wanted)
{
    static const char *const cases[][2] = {
        { "", "line 1, column 1: found the end, want a value" },
        { "[1,]", "line 1, column 4: found ']', want a value" },
        { "[1 2]", "line 1, column 4: found '2', want ',' or ']'" },
        { "{\"a\":1 \"b\"}", "line 1, column 8: found '\"', want ',' or '}'" },
        { "{a:1}", "line 1, column 2: found 'a', want a member name" },
        { "nul", "line 1, column 1: found 'n', want a value" },
        { "1 x", "line 1, column 3: found 'x', want nothing after the value" },
        { "-", "line 1, column 2: found the end, want a digit" },
        { "1.", "line 1, column 3: found the end, want a digit" },
        { "1e+", "line 1, column 4: found the end, want a digit" },
        { "01", "line 1, column 2: found '1', want nothing after the value" },
        { "\"a", "line 1, column 3: found the end, want the closing '\"'" },
        { "\"\\x\"", "line 1, column 3: found 'x', want one of \" \\ / b f n r t u" },
        { "\"\\", "line 1, column 3: found the end, want an escape" },
        { "\"\\u12\"", "line 1, column 4: found '1', want four hexadecimal digits" },
        { "\"\\ud800\"", "line 1, column 4: found 'd', want a surrogate pair" },
        { "\"\x01\"", "line 1, column 2: found byte 0x01, want no control character in a string" },
        { "\"\xff\"", "line 1, column 2: found byte 0xff, want valid UTF-8" },
        { "\"\\n\xff\"", "line 1, column 4: found byte 0xff, want valid UTF-8" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        const struct jval *v = NULL;
        check_case((int64_t)i);
        CHECK_EQ(json_parse(str_from(cases[i][0]), 0, &a, &v, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i][1]);
        CHECK(v == NULL);
    }
    check_case(-1);
}

TEST(json_go_mode_replaces_what_is_no_unicode)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *v;
    CHECK_EQ(json_parse(STR("\"a\xff"
                            "\xc3\xa9\\ud800\\udc00\\ud800x\""),
                        JSON_GO, &a, &v, &err),
             0);
    CHECK_STR(jval_str(v), "a\xef\xbf\xbd\xc3\xa9\xf0\x90\x80\x80\xef\xbf\xbdx");
}

/* Strings are read eight bytes at a time: what is special may stand at any place of the eight. */
TEST(json_strings_are_read_wherever_their_special_characters_stand)
{
    static const struct {
        const char *raw;
        const char *decoded; /* NULL: refused */
    } specials[] = {
        { "\\n", "\n" },    { "\\\"", "\"" }, { "\xc3\xa9", "\xc3\xa9" },
        { "\x7f", "\x7f" }, { " ", " " },     { "!", "!" },
        { "#", "#" },       { "[", "[" },     { "]", "]" },
        { "\x1f", NULL },   { "\x01", NULL }, { "\n", NULL },
        { "\x80", NULL },   { "\xff", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(specials); i++) {
        for (int before = 0; before < 20; before++) {
            for (int after = 0; after < 20; after++) {
                CLEANUP(arena_done)
                struct arena a = { 0 };
                struct err err = { 0 };
                const struct jval *v = NULL;
                struct str text = arena_printf(&a, "\"%.*s%s%.*s\"", before, "abcdefghijklmnopqrst",
                                               specials[i].raw, after, "ABCDEFGHIJKLMNOPQRST");
                /* The end of the text is the end of the memory that may be read. */
                char *exact = alloc_bytes(text.n);
                memcpy(exact, text.p, text.n);
                int r = json_parse((struct str){ exact, text.n }, 0, &a, &v, &err);
                CHECK_EQ(r, specials[i].decoded == NULL ? -ERR_INVALID : 0);
                if (r == 0) {
                    struct str want =
                        arena_printf(&a, "%.*s%s%.*s", before, "abcdefghijklmnopqrst",
                                     specials[i].decoded, after, "ABCDEFGHIJKLMNOPQRST");
                    CHECK_STR(jval_str(v), want);
                }
                alloc_free(exact);
            }
        }
    }
}

TEST(json_trailing_stops_after_the_first_value)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *v;
    CHECK_EQ(json_parse(STR("{\"a\":1}garbage"), JSON_TRAILING, &a, &v, &err), 0);
    CHECK_EQ(v->n, 1);
}

TEST(json_depth_is_limited)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *v;
    char text[JSON_DEPTH_MAX * 2 + 2];
    memset(text, '[', JSON_DEPTH_MAX + 1);
    CHECK_EQ(json_parse((struct str){ text, JSON_DEPTH_MAX + 1 }, 0, &a, &v, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "line 1, column 193: nested deeper than 192");
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    CHECK_EQ(json_parse((struct str){ text, (size_t)JSON_DEPTH_MAX * 2 }, 0, &a, &v, &err), 0);
}

TEST(jval_readers_answer_absent_for_what_is_not_there)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *v;
    int64_t whole;
    double real;
    CHECK_EQ(json_parse(STR("{\"s\":\"x\",\"n\":1.5,\"l\":[]}"), 0, &a, &v, &err), 0);
    CHECK_EQ(jval_kind(NULL), JNULL);
    CHECK(jval_get(NULL, STR("a")) == NULL);
    CHECK(jval_at(v, "s.deeper") == NULL);
    CHECK(jval_first(jval_at(v, "l")) == NULL);
    CHECK(jval_str(jval_at(v, "n")).p == NULL);
    CHECK(jval_bool(jval_at(v, "n"), true));
    CHECK(!jval_i64(jval_at(v, "n"), &whole));
    CHECK(jval_f64(jval_at(v, "n"), &real));
    CHECK(!jval_f64(jval_at(v, "s"), &real));
    CHECK_STR(jkind_name(JARR), "a list");
}

/* As many members as nobody looks through one by one. Of each name the last counts. */
TEST(jval_eq_compares_wide_objects_by_the_last_of_each_name)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf up = { 0 };
    CLEANUP(buf_done)
    struct buf down = { 0 };
    buf_add(&up, STR("{\"k5\":\"old\""));
    buf_add(&down, STR("{\"k0\":\"old\""));
    for (int i = 0; i < 200; i++) {
        buf_printf(&up, ",\"k%d\":%d", i, i);
        buf_printf(&down, ",\"k%d\":%d", 199 - i, 199 - i);
    }
    static const struct {
        const char *more;
        bool equal;
    } rows[] = { { "}", true },
                 { ",\"k7\":7.0}", true },
                 { ",\"k7\":8}", false },
                 { ",\"l\":1}", false },
                 { ",\"\":1}", false } };
    const struct jval *left = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(arena_concat(&a, buf_str(&up), STR("}")), 0, &a, &left, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_case((int64_t)i);
        const struct jval *right = NULL;
        struct str text = arena_concat(&a, buf_str(&down), str_from(rows[i].more));
        CHECK_EQ(json_parse(text, 0, &a, &right, &err), 0);
        CHECK_EQ(jval_eq(left, right), rows[i].equal);
        CHECK_EQ(jval_eq(right, left), rows[i].equal);
        CHECK_EQ(tree_eq(tree_from(&a, left), tree_from(&a, right)), rows[i].equal);
    }
    check_case(-1);
}

TEST(jval_eq_compares_values_whatever_their_order)
{
    static const struct {
        const char *left;
        const char *right;
        bool equal;
    } cases[] = {
        { "{\"a\":1,\"b\":[2]}", "{\"b\":[2],\"a\":1}", true },
        { "{\"a\":1,\"a\":2}", "{\"a\":2}", true },
        { "{\"a\":null}", "{\"b\":null}", false },
        { "[1,2]", "[1]", false },
        { "[1,2]", "[1,3]", false },
        { "1", "1.0", true },
        { "1e2", "100", true },
        { "9007199254740993", "9007199254740992", false },
        { "true", "false", false },
        { "null", "false", false },
        { "\"a\"", "\"\\u0061\"", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        const struct jval *left;
        const struct jval *right;
        check_case((int64_t)i);
        CHECK_EQ(json_parse(str_from(cases[i].left), 0, &a, &left, &err), 0);
        CHECK_EQ(json_parse(str_from(cases[i].right), 0, &a, &right, &err), 0);
        CHECK_EQ(jval_eq(left, right), cases[i].equal);
        CHECK_EQ(jval_eq(right, left), cases[i].equal);
    }
    check_case(-1);
}

static void check_with_oracle(struct str text, struct arena *a)
{
    struct err err = { 0 };
    const struct jval *root = NULL;
    int r = json_parse(text, 0, a, &root, &err);
    CHECK(r == 0 || err.msg[0] != '\0');
    if (oracle_compare_json(text, root) == ORACLE_DISAGREES) {
        check_fail(__FILE__, __LINE__, "jansson disagrees on '" STR_FMT "'", STR_ARG(text));
    }
    if (r == 0) {
        CLEANUP(buf_done)
        struct buf out = { 0 };
        struct json_writer w = json_writer_on(&out);
        const struct jval *again;
        jw_val(&w, root);
        CHECK_EQ(json_parse(buf_str(&out), 0, a, &again, &err), 0);
        CHECK(jval_eq(root, again));
    }
}

/* The input ends where it ends: the copy has no byte more for a reader to look at. */
TEST(json_survives_every_cut_and_agrees_with_jansson)
{
    static const char text[] = "{\"a\":[1,-2.5e+3,\"x\\u00e9\\n\\ud83d\\ude00\",true,false,null],"
                               "\"\xc3\xa9\":{\"c\":{}}} ";
    for (size_t n = 0; n < sizeof(text); n++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        char *copy = arena_alloc(&a, n);
        memcpy(copy, text, n);
        check_with_oracle((struct str){ .p = copy, .n = n }, &a);
    }
}

/* Documents put together from pieces, then bent: both readers take and refuse the same. */
PROPERTY(json_agrees_with_jansson)
{
    static const char *const pieces[] = {
        "{",     "}",        "[",           "]",   ",",           ":",
        "\"a\"", "\"b\\n\"", "\"\\u0041\"", "1",   "-0",          "2.5e-3",
        "true",  "false",    "null",        " ",   "\n",          "\"\\ud83d\\ude00\"",
        "0",     "\xc3\xa9", "\"",          "\\",  "\"\\ud800\"", "{\"a\":1}",
        "[1,2]", "{\"k\":",  "[",           "1e5",
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (int round = 0; round < 20; round++) {
        CLEANUP(buf_done)
        struct buf text = { 0 };
        for (uint32_t n = rng_below(rng, 14); n > 0; n--) {
            buf_add(&text, str_from(pieces[rng_below(rng, ARRAY_LEN(pieces))]));
        }
        if (text.n > 0 && rng_chance(rng, 100)) {
            text.p[rng_below(rng, (uint32_t)text.n)] = (char)rng_below(rng, 256);
        }
        check_with_oracle(buf_str(&text), &a);
        arena_reset(&a);
    }
}
