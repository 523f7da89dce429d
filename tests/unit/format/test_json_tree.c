#include "format/json_tree.h"
#include "tests/check.h"

static struct tree *read_tree(const char *json, struct arena *a)
{
    struct err err = { 0 };
    struct tree *t = NULL;
    if (tree_parse(str_from(json), a, &t, &err) < 0) {
        check_fail(__FILE__, __LINE__, "%s", err.msg);
    }
    return t;
}

TEST(tree_edits_and_prints)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct tree *t = read_tree("{\"metadata\":{\"name\":\"n\"},\"l\":[1,2]}", &a);
    tree_set_at(&a, t, "metadata.labels", tree_obj(&a));
    tree_set(&a, tree_at(t, "metadata.labels"), STR("a.b/c"), tree_str(&a, STR("<d>")));
    tree_insert(tree_get(t, STR("l")), 1, tree_bool(&a, true));
    CHECK_STR(tree_json(&a, t),
              "{\"metadata\":{\"name\":\"n\",\"labels\":{\"a.b/c\":\"\\u003cd\\u003e\"}},"
              "\"l\":[1,true,2]}");
    CHECK(tree_del_at(t, "metadata.name"));
    CHECK(!tree_del_at(t, "metadata.name"));
    CHECK(!tree_del_at(t, "nothing.name"));
    CHECK(tree_eq(t, tree_clone(&a, t)));
}

TEST(tree_readers_answer_absent_for_what_is_not_there)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct tree *t = read_tree("{\"s\":\"x\",\"n\":5,\"b\":true,\"l\":[1]}", &a);
    int64_t number = 7;
    CHECK_EQ(tree_kind(NULL), JNULL);
    CHECK(tree_get(NULL, STR("a")) == NULL);
    CHECK(tree_at(t, "s.deeper") == NULL);
    CHECK(tree_index(t, 0) == NULL);
    CHECK(tree_index(tree_at(t, "l"), 1) == NULL);
    CHECK(tree_index(tree_at(t, "l"), 0) != NULL);
    CHECK(tree_text(tree_at(t, "n")).p == NULL);
    CHECK_STR(tree_text_at(t, "s"), "x");
    CHECK(tree_truth(tree_at(t, "b"), false));
    CHECK(tree_truth(tree_at(t, "s"), true));
    CHECK(!tree_number(tree_at(t, "s"), &number));
    CHECK(tree_number(tree_at(t, "n"), &number));
    CHECK_EQ(number, 5);
    CHECK(tree_first(NULL) == NULL);
    CHECK_EQ(tree_clone(&a, NULL)->kind, JNULL);
}

TEST(tree_set_replaces_in_place)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct tree *t = read_tree("{\"a\":1,\"b\":2,\"c\":3}", &a);
    tree_set(&a, t, STR("a"), tree_null(&a));
    tree_set(&a, t, STR("b"), tree_i64(&a, -4));
    tree_set(&a, t, STR("c"), tree_arr(&a));
    struct tree *same = tree_get(t, STR("c"));
    tree_set(&a, t, STR("c"), same);
    tree_set_at(&a, t, "d", tree_str(&a, STR("")));
    tree_set_at(&a, t, "b.x.y", tree_bool(&a, false));
    CHECK_STR(tree_json(&a, t), "{\"a\":null,\"b\":{\"x\":{\"y\":false}},\"c\":[],\"d\":\"\"}");
    CHECK_EQ(t->n, 4);
}

TEST(tree_lists_take_elements_anywhere)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct tree *list = tree_arr(&a);
    tree_insert(list, 0, tree_i64(&a, 2));
    tree_insert(list, 0, tree_i64(&a, 1));
    tree_insert(list, 2, tree_i64(&a, 3));
    tree_add(list, tree_i64(&a, 4));
    CHECK_STR(tree_json(&a, list), "[1,2,3,4]");
    tree_remove(list, tree_index(list, 3));
    tree_remove(list, tree_index(list, 0));
    tree_add(list, tree_i64(&a, 5));
    CHECK_STR(tree_json(&a, list), "[2,3,5]");
    CHECK_EQ(list->n, 3);
}

TEST(tree_eq_compares_values_whatever_their_order)
{
    static const struct {
        const char *left;
        const char *right;
        bool equal;
    } cases[] = {
        { "{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true },
        { "{\"a\":1}", "{\"a\":1.0}", true },
        { "{\"a\":null}", "{\"b\":null}", false },
        { "{\"a\":null}", "{}", false },
        { "[1,2]", "[2,1]", false },
        { "[1]", "[1,2]", false },
        { "1", "\"1\"", false },
        { "true", "false", false },
        { "null", "null", true },
        { "9007199254740993", "9007199254740992", false },
        { "\"1\"", "\"1.0\"", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        check_case((int64_t)i);
        CHECK_EQ(tree_eq(read_tree(cases[i].left, &a), read_tree(cases[i].right, &a)),
                 cases[i].equal);
        CHECK_EQ(tree_eq(read_tree(cases[i].right, &a), read_tree(cases[i].left, &a)),
                 cases[i].equal);
    }
    check_case(-1);
}

TEST(tree_identical_tells_numbers_of_one_value_apart)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct tree *whole = read_tree("{\"a\":[1,null]}", &a);
    CHECK(tree_identical(whole, read_tree("{\"a\":[1,null]}", &a)));
    CHECK(tree_eq(whole, read_tree("{\"a\":[1.0,null]}", &a)));
    CHECK(!tree_identical(whole, read_tree("{\"a\":[1.0,null]}", &a)));
    CHECK(!tree_identical(whole, read_tree("{\"a\":[1]}", &a)));
    CHECK(tree_identical(NULL, NULL));
}

TEST(tree_parse_says_where_the_text_is_wrong)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct tree *t = NULL;
    CHECK_EQ(tree_parse(STR("{\"a\":}"), &a, &t, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "line 1, column 6: found '}', want a value");
    CHECK(t == NULL);
}

/* An object of many names is read in reasonable time, and of a name that comes twice the last
 * counts. */
TEST(tree_takes_objects_of_many_names)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_add_char(&text, '{');
    for (int i = 0; i < 50000; i++) {
        buf_printf(&text, "\"k%d\":%d,", i, i);
    }
    buf_add(&text, STR("\"k7\":\"last\"}"));
    struct err err = { 0 };
    struct tree *t;
    CHECK_EQ(tree_parse(buf_str(&text), &a, &t, &err), 0);
    CHECK_EQ(t->n, 50000);
    CHECK_STR(tree_text_at(t, "k7"), "last");
    CHECK_STR(tree_first(t)->key, "k0");
}

TEST(tree_view_borrows_the_text_and_copies_what_was_decoded)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct arena tape = { 0 };
    struct err err = { 0 };
    const struct jval *root;
    struct str text = STR("{\"plain\":\"as it is\",\"escaped\\u0041\":\"a\\nb\",\"n\":12,"
                          "\"l\":[\"x\",true,null],\"plain\":\"the last counts\"}");
    CHECK_EQ(json_parse(text, 0, &tape, &root, &err), 0);
    struct tree *t = tree_view(&a, root, text);
    arena_done(&tape); /* the text alone outlives the tree */
    CHECK_STR(tree_json(&a, t), "{\"plain\":\"the last counts\",\"escapedA\":\"a\\nb\",\"n\":12,"
                                "\"l\":[\"x\",true,null]}");
    struct str plain = tree_text_at(t, "plain");
    CHECK(plain.p > text.p && plain.p < text.p + text.n);
}

TEST(tree_twin_can_be_edited_without_the_other)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct tree *t = read_tree("{\"a\":{\"b\":\"c\"},\"l\":[1,2]}", &a);
    struct tree *twin = tree_twin(&a, t);
    CHECK(tree_eq(t, twin));
    CHECK(tree_text_at(t, "a.b").p == tree_text_at(twin, "a.b").p);
    tree_set_at(&a, twin, "a.b", tree_str(&a, STR("d")));
    tree_add(tree_get(twin, STR("l")), tree_i64(&a, 3));
    CHECK_STR(tree_json(&a, t), "{\"a\":{\"b\":\"c\"},\"l\":[1,2]}");
    CHECK_STR(tree_json(&a, twin), "{\"a\":{\"b\":\"d\"},\"l\":[1,2,3]}");
    CHECK_EQ(tree_kind(tree_twin(&a, NULL)), JNULL);
}
