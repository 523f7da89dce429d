#include "operation/revision.h"

#include "tests/check.h"

static void canonical(const char *text, struct buf *out)
{
    struct arena a = { 0 };
    const struct jval *v = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(str_from(text), 0, &a, &v, &err), 0);
    CHECK_EQ(revision_canonical(v, out, &err), 0);
    arena_done(&a);
}

TEST(revision_has_one_form_of_json)
{
    static const struct {
        const char *text;
        const char *form;
    } cases[] = {
        { " { \"b\" : 1 , \"a\" : [ true , null ] } ", "{\"a\":[true,null],\"b\":1}" },
        { "{\"a\":1,\"a\":2}", "{\"a\":2}" },
        { "\"<&>\\u0001\\n\\u00e4\\/\\\"\"", "\"<&>\\u0001\\n\xc3\xa4/\\\"\"" },
        { "9007199254740993", "9007199254740993" },
        { "1.50", "1.5" },
        { "1e2", "100" },
        { "[]", "[]" },
        { "{}", "{}" },
        /* The order of RFC 8785: U+1F600 is written as surrogates and comes before U+FB33. */
        { "{\"\\ufb33\":1,\"\\ud83d\\ude00\":2,\"\\u20ac\":3,\"1\":4,\"\":5}",
          "{\"\":5,\"1\":4,\"\xe2\x82\xac\":3,\"\xf0\x9f\x98\x80\":2,\"\xef\xac\xb3\":1}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = { 0 };
        check_case((int64_t)i);
        canonical(cases[i].text, &out);
        CHECK_STR(buf_str(&out), cases[i].form);
        buf_done(&out);
    }
    check_case(-1);
}

static struct str revision(struct arena *a, const struct revision_input *in)
{
    struct str r = STR_NONE;
    struct err err = { 0 };
    CHECK_EQ(revision_of(in, a, &r, &err), 0);
    CHECK_EQ(r.n, REVISION_HEX);
    return r;
}

TEST(revision_changes_with_what_is_done_and_with_nothing_else)
{
    struct arena a = { 0 };
    const struct node_operation plain = { .name = STR("a"), .track_references = true };
    struct str hash = STR("abc");
    const struct revision_input in = { .operation = &plain,
                                       .payload_json = STR("{\"script\":\"x\",\"shell\":\"s\"}"),
                                       .references = &hash,
                                       .reference_n = 1 };
    struct str first = revision(&a, &in);
    struct revision_input other = in;
    other.payload_json = STR("{ \"shell\":\"s\", \"script\":\"x\" }");
    CHECK_STR(revision(&a, &other), first);
    other.payload_json = STR("{\"script\":\"y\",\"shell\":\"s\"}");
    CHECK(!str_eq(revision(&a, &other), first));
    other = in;
    other.version = STR("2");
    CHECK(!str_eq(revision(&a, &other), first));
    other = in;
    other.reference_n = 0;
    CHECK(!str_eq(revision(&a, &other), first));
    struct node_operation changed = plain;
    other = in;
    other.operation = &changed;
    changed.timeout = HOURS(1);
    CHECK_STR(revision(&a, &other), first);
    changed.nonce = STR("2");
    CHECK(!str_eq(revision(&a, &other), first));
    changed = plain;
    changed.reboot.policy = REBOOT_ALWAYS;
    CHECK(!str_eq(revision(&a, &other), first));
    changed = plain;
    changed.type = OPERATION_REALTIME;
    CHECK(!str_eq(revision(&a, &other), first));
    arena_done(&a);
}

TEST(revision_by_nonce_is_not_changed_by_a_comment)
{
    struct arena a = { 0 };
    struct node_operation o = { .name = STR("a"), .rerun_on_nonce = true };
    struct revision_input in = { .operation = &o, .payload_json = STR("{\"script\":\"x\"}") };
    struct str first = revision(&a, &in);
    in.payload_json = STR("{\"script\":\"# comment\\nx\"}");
    CHECK_STR(revision(&a, &in), first);
    o.nonce = STR("1");
    CHECK(!str_eq(revision(&a, &in), first));
    arena_done(&a);
}
