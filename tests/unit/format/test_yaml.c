#include "base/limits.h"
#include "format/json_writer.h"
#include "format/json_tree.h"
#include "format/yaml.h"
#include "tests/check.h"

/* The first document, written as JSON. */
static struct str as_json(const char *text, struct arena *a)
{
    struct err err = { 0 };
    struct ydoc doc;
    if (ydoc_parse(str_from(text), a, &doc, &err) < 0) {
        return arena_printf(a, "error: %s", err.msg);
    }
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct json_writer w = json_writer_on(&out);
    jw_val(&w, doc.root);
    return arena_str(a, buf_str(&out));
}

static void check_table(const char *const cases[][2], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        check_case((int64_t)i);
        CHECK_STR(as_json(cases[i][0], &a), cases[i][1]);
    }
    check_case(-1);
}

TEST(yaml_scalars_mean_what_yaml_v2_makes_of_them)
{
    static const char *const cases[][2] = {
        { "[y, Y, yes, on, On, TRUE, true]", "[true,true,true,true,true,true,true]" },
        { "[n, no, Off, OFF, False, N]", "[false,false,false,false,false,false]" },
        { "[yES, tRUE, oN, nO]", "[\"yES\",\"tRUE\",\"oN\",\"nO\"]" },
        { "[~, null, Null, NULL, ]", "[null,null,null,null]" },
        { "[nULL, '', \"~\"]", "[\"nULL\",\"\",\"~\"]" },
        { "[1, -1, +1, 0, -0, 007, 0x1F, 0X1f, 0o17, 0b101, -0x10, -0b11]",
          "[1,-1,1,0,0,7,31,31,15,5,-16,-3]" },
        { "[1_000, 0x_ff, 1_0.5, _1]", "[1000,255,10.5,\"_1\"]" },
        { "[08, 0x, 0b2, 0o8, 1a, --1, +-1]",
          "[8.0,\"0x\",\"0b2\",\"0o8\",\"1a\",\"--1\",\"+-1\"]" },
        { "[9223372036854775807, -9223372036854775808, 18446744073709551615]",
          "[9223372036854775807,-9223372036854775808,18446744073709551615]" },
        { "[18446744073709551616, -9223372036854775809, +9223372036854775808]",
          "[18446744073709552000.0,-9223372036854776000.0,9223372036854776000.0]" },
        { "[1.5, -1.5, .5, 5., 1e3, 1E-3, 1.0, +1.5, 1.e+2, -.5]",
          "[1.5,-1.5,0.5,5.0,1e3,1E-3,1.0,1.5,100.0,-0.5]" },
        { "[1e, e1, ., -, +, .e1, 1.2.3, 1e400]",
          "[\"1e\",\"e1\",\".\",\"-\",\"+\",\".e1\",\"1.2.3\",\"1e400\"]" },
        { "[.inf, -.Inf, +.INF, .nan]", "[\"+Inf\",\"-Inf\",\"+Inf\",\"NaN\"]" },
        { "[2026-01-02, 2026-01-02T03:04:05Z, 12:30:45]",
          "[\"2026-01-02\",\"2026-01-02T03:04:05Z\",\"12:30:45\"]" },
        { "['1', \"true\", 'null']", "[\"1\",\"true\",\"null\"]" },
        { "a: |\n  1\n  2\nb: >-\n  x\n  y\n", "{\"a\":\"1\\n2\\n\",\"b\":\"x y\"}" },
        { "[!!str 5, !!int \"5\", !!bool \"yes\", !!float 5, !!null ~, ! 5]",
          "[\"5\",5,true,5,null,\"5\"]" },
        { "[!!binary aGVsbG8=, !mine 5, !!timestamp 2026-01-02, !!float .inf]",
          "[\"hello\",\"5\",\"2026-01-02\",\"+Inf\"]" },
    };
    check_table(cases, ARRAY_LEN(cases));
}

TEST(yaml_structures_become_objects_and_lists)
{
    static const char *const cases[][2] = {
        { "", "null" },
        { "# only a comment\n", "null" },
        { "---\n", "null" },
        { "hello", "\"hello\"" },
        { "a: 1\nb:\n- x\n- {c: [d]}\n", "{\"a\":1,\"b\":[\"x\",{\"c\":[\"d\"]}]}" },
        { "{\"a\": [1, 2.5, null, true], \"b\": {}}", "{\"a\":[1,2.5,null,true],\"b\":{}}" },
        { "yes: 1\n2: two\n1.5: x\n", "{\"true\":1,\"2\":\"two\",\"1.5\":\"x\"}" },
        { "a:\nb: \n", "{\"a\":null,\"b\":null}" },
        { "a: &x {b: 1}\nc: *x\nd: [*x, *x]\n",
          "{\"a\":{\"b\":1},\"c\":{\"b\":1},\"d\":[{\"b\":1},{\"b\":1}]}" },
        { "a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}" },
        { "&k key: 1\nb: *k\n*k : 3\n",
          "error: line 3, column 1: key 'key' is here again, it is in line 1" },
        { "base: &b {a: 1, b: 2}\nv:\n  <<: *b\n  a: x\n",
          "{\"base\":{\"a\":1,\"b\":2},\"v\":{\"a\":\"x\",\"b\":2}}" },
        { "v:\n  a: x\n  <<: {a: 1, b: 2}\n  c: &n 3\nw: *n\n",
          "{\"v\":{\"a\":\"x\",\"c\":3,\"b\":2},\"w\":3}" },
        { "v: {<<: [{a: 1}, {a: 2, b: 3}]}\n", "{\"v\":{\"a\":1,\"b\":3}}" },
        { "v: {\"<<\": 1}\n", "{\"v\":{\"\\u003c\\u003c\":1}}" },
        { "\xef\xbb\xbf"
          "a: \xc3\xa9\n",
          "{\"a\":\"\xc3\xa9\"}" },
        { "a: 1\n---\nb: [\n", "{\"a\":1}" },
    };
    check_table(cases, ARRAY_LEN(cases));
}

TEST(yaml_errors_say_where_and_what)
{
    static const char *const cases[][2] = {
        { "a: 1\nb: 2\na: 3\n", "error: line 3, column 1: key 'a' is here again, it is in line 1" },
        { "a:\n  x: 1\n  y: 2\n  x: 3\n",
          "error: line 4, column 3: key 'x' is here again, it is in line 2" },
        { "[a]: x\n", "error: line 1, column 1: found a list, want a name" },
        { "{a: 1}: x\n", "error: line 1, column 1: found an object, want a name" },
        { "~: x\n", "error: line 1, column 1: found null, want a name" },
        { "a: &x [1]\n*x : 2\n", "error: line 2, column 1: found a list, want a name" },
        { "a: *nowhere\n",
          "error: line 1, column 4: found alias 'nowhere', want one whose anchor stands before" },
        { "a: &x [*x]\n", "error: line 1, column 8: alias 'x' stands inside its own anchor" },
        { "v: {<<: 1}\n", "error: line 1, column 9: '<<': want a mapping or a list of mappings" },
        { "v: {<<: [1]}\n", "error: line 1, column 9: '<<': want a mapping or a list of mappings" },
        { "v: {<<: &g {a: 1}}\nw: *g\n",
          "error: line 2, column 4: found alias 'g', want one whose anchor stands before" },
        { "v: !!int x\n", "error: line 1, column 4: found 'x', want what its tag !!int says" },
        { "v: !!null x\n", "error: line 1, column 4: found 'x', want what its tag !!null says" },
        { "v: !!binary '%'\n",
          "error: line 1, column 4: found '%', want what its tag !!binary says" },
        { "a: [1, 2\nb: 3\n",
          "error: line 2, column 2: did not find expected ',' or ']' while parsing a flow sequence "
          "that begins in line 1" },
        { "a: \tb: c\n",
          "error: line 1, column 6: mapping values are not allowed in this context" },
        { "a: \x01\n", "error: byte 3: control characters are not allowed" },
        { "a: \xff\n", "error: byte 3: invalid leading UTF-8 octet" },
        { "%FOO\n---\n%BAR", NULL },
    };
    check_table(cases, ARRAY_LEN(cases) - 1);
}

TEST(yaml_knows_the_place_of_every_value)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct ydoc doc;
    CHECK_EQ(ydoc_parse(STR("a: 1\nb:\n  - x\n  - yes: &n {c: d}\nz: *n\n"), &a, &doc, &err), 0);
    struct pos pos = ydoc_pos(&doc, jval_get(doc.root, STR("a")));
    CHECK_EQ(pos.line, 1);
    CHECK_EQ(pos.column, 4);
    const struct jval *list = jval_get(doc.root, STR("b"));
    CHECK_EQ(ydoc_pos(&doc, list).line, 3);
    const struct jval *second = jval_next(list, jval_first(list));
    const struct jval *yes = jval_get(second, STR("true"));
    CHECK_EQ(ydoc_key_pos(&doc, yes).line, 4);
    CHECK_EQ(ydoc_key_pos(&doc, yes).column, 5);
    CHECK_EQ(ydoc_key_kind(&doc, yes), JBOOL);
    CHECK_EQ(ydoc_key_kind(&doc, jval_get(yes, STR("c"))), JSTR);
    CHECK_EQ(ydoc_pos(&doc, jval_at(doc.root, "z")).line, 5);
    CHECK_EQ(ydoc_pos(&doc, jval_at(doc.root, "z.c")).line, 4);
    CHECK_EQ(ydoc_pos(&doc, NULL).line, 0);
    CHECK_EQ(ydoc_key_pos(&doc, NULL).line, 0);
}

TEST(yaml_reads_every_document_of_a_stream)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct ydoc *docs;
    uint32_t n = 7;
    CHECK_EQ(ydoc_parse_all(STR("a: &x 1\n---\n- 2\n...\n---\n---\nlast"), &a, &docs, &n, &err), 0);
    CHECK_EQ(n, 4);
    CHECK_EQ(jval_kind(docs[1].root), JARR);
    CHECK_EQ(ydoc_pos(&docs[1], docs[1].root).line, 3);
    CHECK_EQ(jval_kind(docs[2].root), JNULL);
    CHECK_STR(jval_str(docs[3].root), "last");
    CHECK_EQ(ydoc_parse_all(STR(""), &a, &docs, &n, &err), 0);
    CHECK_EQ(n, 0);
    /* An anchor ends with its document. */
    CHECK_EQ(ydoc_parse_all(STR("a: &x 1\n---\nb: *x\n"), &a, &docs, &n, &err), -ERR_INVALID);
}

TEST(yaml_alias_bombs_meet_the_limit)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_add(&text, STR("a0: &a0 [x, x, x, x, x, x, x, x, x]\n"));
    for (int i = 1; i < 20; i++) {
        buf_printf(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 9; k++) {
            buf_printf(&text, "%s*a%d", k > 0 ? "," : "", i - 1);
        }
        buf_add(&text, STR("]\n"));
    }
    struct ydoc doc;
    CHECK_EQ(ydoc_parse(buf_str(&text), &a, &doc, &err), -ERR_LIMIT);
    CHECK(a.total < (size_t)64 * 1024 * 1024);
}

/* Each "<<" walks all anchors: half a megabyte of both took 8 s. */
TEST(yaml_merge_bombs_meet_the_limit)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct err err = { 0 };
    struct ydoc doc;
    buf_add(&text, STR("base: &b {k: v}\n"));
    for (int i = 0; i < 5000; i++) {
        buf_printf(&text, "n%d: &a%d {<<: *b}\n", i, i);
    }
    CHECK_EQ(ydoc_parse(buf_str(&text), &a, &doc, &err), -ERR_LIMIT);
    CHECK(str_contains(str_from(err.msg), STR("'<<': merges take more than 1000000 steps")));
}

TEST(yaml_of_strangers_has_no_anchors_aliases_and_merges)
{
    static const struct {
        const char *text;
        const char *msg;
    } cases[] = {
        { "a: &x 1", "line 1, column 4: found anchor 'x', want a text without anchors, aliases and "
                     "merges" },
        { "a: &x [1]", "line 1, column 4: found anchor 'x', want a text without anchors, aliases "
                       "and merges" },
        { "b: {}\na: &x {}", "line 2, column 4: found anchor 'x', want a text without anchors, "
                             "aliases and merges" },
        { "a: *x", "line 1, column 4: found alias 'x', want a text without anchors, aliases and "
                   "merges" },
        { "a: {<<: {b: 1}}", "line 1, column 5: found merge '<<', want a text without anchors, "
                             "aliases and merges" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        struct ydoc doc;
        check_case((int64_t)i);
        CHECK_EQ(ydoc_parse_plain(str_from(cases[i].text), &a, &doc, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].msg);
    }
    check_case(-1);
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct ydoc doc;
    CHECK_EQ(ydoc_parse_plain(STR("a: {b: '<<'}"), &a, &doc, &err), 0);
}

TEST(yaml_depth_is_limited_with_and_without_aliases)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (uint32_t i = 0; i <= YAML_DEPTH_MAX; i++) {
        buf_add_char(&text, '[');
    }
    struct err err = { 0 };
    struct ydoc doc;
    CHECK_EQ(ydoc_parse(buf_str(&text), &a, &doc, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "line 1, column 101: nested deeper than 100");
    buf_reset(&text);
    buf_add(&text, STR("a0: &a0 []\n"));
    for (int i = 1; i < 150; i++) {
        buf_printf(&text, "a%d: &a%d [*a%d]\n", i, i, i - 1);
    }
    CHECK_EQ(ydoc_parse(buf_str(&text), &a, &doc, &err), -ERR_LIMIT);
    CHECK_EQ(err.pos.line, 100);
}

/* JSON is YAML: what the one reader reads of the other's language is the same. */
PROPERTY(yaml_reads_json_as_json)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    static const char *const pieces[] = { "{",    "}",           "[", "]",      ",",
                                          ":",    "\"a\"",       "1", "-2.5e3", "true",
                                          "null", "\"\\u00e9\"", " ", "\"b\"" };
    struct str text = STR("");
    for (uint32_t n = rng_below(rng, 20); n > 0; n--) {
        text = arena_concat(&a, text, str_from(pieces[rng_below(rng, ARRAY_LEN(pieces))]));
    }
    const struct jval *v;
    struct ydoc doc;
    if (json_parse(text, 0, &a, &v, &err) == 0 && ydoc_parse(text, &a, &doc, &err) == 0) {
        CHECK(jval_eq(v, doc.root));
    }
}

/* Whatever the bytes, there is an answer, and no input is read past its end. */
PROPERTY(yaml_survives_every_cut)
{
    static const char text[] = "a: &x {b: [1, 'two', \"\\u0033\"], <<: {c: d}}\n"
                               "e: |\n  text\n---\nf: *x\n? g\n: !!int 5\n";
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t n = 0; n < sizeof(text); n++) {
        struct err err = { 0 };
        struct ydoc *docs;
        uint32_t count;
        char *copy = arena_alloc(&a, n + 1);
        memcpy(copy, text, n);
        if (n > 0 && rng_chance(rng, 200)) {
            copy[rng_below(rng, (uint32_t)n)] = (char)rng_below(rng, 256);
        }
        struct str cut = { .p = copy, .n = n };
        if (ydoc_parse_all(cut, &a, &docs, &count, &err) < 0) {
            CHECK(err.msg[0] != '\0');
        }
        arena_reset(&a);
    }
}
