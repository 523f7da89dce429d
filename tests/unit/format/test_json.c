#include "format/json.h"
#include "format/jsplit.h"
#include "format/tree.h"
#include "tests/check.h"

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

TEST(json_parse_says_where_and_what)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *v;
    CHECK_EQ(json_parse(STR("{\"a\":1,\n \"b\" 2}"), 0, &a, &v, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "line 2, column 6: found '2', want ':'");
}

TEST(tree_edits_and_prints)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct tree *t;
    CHECK_EQ(tree_parse(STR("{\"metadata\":{\"name\":\"n\"},\"l\":[1,2]}"), &a, &t, &err), 0);
    tree_set_at(&a, t, "metadata.labels", tree_obj(&a));
    tree_set(&a, tree_at(t, "metadata.labels"), STR("a.b/c"), tree_str(&a, STR("<d>")));
    tree_insert(tree_get(t, STR("l")), 1, tree_bool(&a, true));
    CHECK_STR(tree_json(&a, t),
              "{\"metadata\":{\"name\":\"n\",\"labels\":{\"a.b/c\":\"\\u003cd\\u003e\"}},"
              "\"l\":[1,true,2]}");
    CHECK(tree_del_at(t, "metadata.name"));
    CHECK(tree_eq(t, tree_clone(&a, t)));
}

TEST(jsplit_yields_each_item_and_the_metadata)
{
    struct jsplit s;
    struct err err = { 0 };
    struct str item;
    jsplit_init(
        &s,
        STR("{\"kind\":\"L\",\"items\":[{\"a\":\"}]\"}, {\"b\":[]}],\"metadata\":{\"x\":1}}\n"));
    CHECK_EQ(jsplit_next(&s, &item, &err), 1);
    CHECK_STR(item, "{\"a\":\"}]\"}");
    CHECK_EQ(jsplit_next(&s, &item, &err), 1);
    CHECK_STR(item, "{\"b\":[]}");
    CHECK_EQ(jsplit_next(&s, &item, &err), 0);
    CHECK_STR(s.metadata, "{\"x\":1}");
}
