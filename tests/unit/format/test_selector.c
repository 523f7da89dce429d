#include "format/label_syntax.h"
#include "format/selector.h"
#include "tests/vectors.h"

static int parse_case(const struct jval *one, struct arena *a, struct selector *ret,
                      struct err *err)
{
    struct str text = vectors_text(one, "selector", a);
    if (vectors_kind(one, "label")) {
        return selector_parse(text, a, ret, err);
    }
    if (vectors_kind(one, "field")) {
        return selector_parse_fields(text, a, ret, err);
    }
    CHECK(vectors_kind(one, "object"));
    const struct jval *object;
    struct err parse_err = { 0 };
    CHECK_EQ(json_parse(text, JSON_GO, a, &object, &parse_err), 0);
    return selector_from_jval(object, a, ret, err);
}

static void check_matches(const struct selector *s, const struct jval *sets,
                          const struct jval *names, struct arena *a)
{
    uint32_t matched = 0;
    JVAL_EACH (sets, set) {
        bool wanted = false;
        JVAL_EACH (names, name) {
            wanted = wanted || str_eq(jval_str(name), jval_key(set));
        }
        CHECK_EQ(selector_match_jval(s, set), wanted);
        CHECK_EQ(selector_match_tree(s, tree_from(a, set)), wanted);
        matched += wanted ? 1 : 0;
    }
    CHECK_EQ(matched, names == NULL ? 0 : names->n);
}

TEST(selector_agrees_with_kubernetes_on_every_vector)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *root = vectors_load("vectors/selector.json", &a);
    uint32_t seen = 0;
    JVAL_EACH (jval_get(root, STR("cases")), one) {
        vectors_enter(one);
        struct selector s;
        struct err err = { 0 };
        int r = parse_case(one, &a, &s, &err);
        seen++;
        CHECK_EQ(r == 0, vectors_ok(one));
        if (r < 0) {
            CHECK_STR(err.msg, jval_str(jval_get(one, STR("error"))));
            continue;
        }
        CLEANUP(buf_done)
        struct buf printed = { 0 };
        selector_print(&s, &printed);
        CHECK_STR(buf_str(&printed), jval_str(jval_get(one, STR("canonical"))));
        bool fields = vectors_kind(one, "field");
        check_matches(&s, jval_get(root, fields ? STR("field_sets") : STR("sets")),
                      jval_get(one, STR("matches")), &a);
    }
    CHECK(seen > 100);
}

static bool selects(const char *object, const char *labels)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct tree *selector;
    struct tree *set;
    struct selector s;
    CHECK_EQ(tree_parse(str_from(object), &a, &selector, &err), 0);
    CHECK_EQ(tree_parse(str_from(labels), &a, &set, &err), 0);
    CHECK_EQ(selector_from_tree(selector, &a, &s, &err), 0);
    return selector_match_tree(&s, set);
}

TEST(selector_that_is_null_matches_nothing_and_an_empty_one_everything)
{
    CHECK(!selects("null", "{\"a\":\"1\"}"));
    CHECK(!selects("null", "{}"));
    CHECK(selects("{}", "{}"));
    CHECK(selects("{\"matchLabels\":null,\"matchExpressions\":null}", "null"));
    CHECK(selects("{\"matchLabels\":{\"a\":null}}", "{\"a\":\"\"}"));
}

TEST(selector_object_of_the_wrong_shape_is_refused)
{
    static const char *const cases[][2] = {
        { "[]", "selector: found a list, want an object" },
        { "{\"matchLabels\":[]}", "matchLabels: found a list, want an object" },
        { "{\"matchLabels\":{\"a\":1}}", "matchLabels: found a number, want a string" },
        { "{\"matchExpressions\":{}}", "matchExpressions: found an object, want a list" },
        { "{\"matchExpressions\":[1]}", "matchExpressions: found a number, want an object" },
        { "{\"matchExpressions\":[{\"key\":1}]}", "key: found a number, want a string" },
        { "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[1]}]}",
          "values: found a number, want a string" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        struct tree *t;
        struct selector s;
        CHECK_EQ(tree_parse(str_from(cases[i][0]), &a, &t, &err), 0);
        CHECK_EQ(selector_from_tree(t, &a, &s, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i][1]);
    }
}

TEST(selector_fields_take_escaped_signs_and_give_them_back)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf printed = { 0 };
    struct err err = { 0 };
    struct selector s;
    CHECK_EQ(selector_parse_fields(STR("metadata.name=a\\,b\\=c\\\\d"), &a, &s, &err), 0);
    CHECK_STR(s.terms[0].values[0], "a,b=c\\d");
    selector_print(&s, &printed);
    CHECK_STR(buf_str(&printed), "metadata.name=a\\,b\\=c\\\\d");
}

TEST(label_key_check_names_every_complaint)
{
    CLEANUP(buf_done)
    struct buf why = { 0 };
    CHECK(label_key_check(STR("cloud.sap/maintenance-state"), &why));
    CHECK(!label_key_check(STR("a/b/c"), &why));
    CHECK(str_starts(buf_str(&why), STR("a qualified name must consist of")));
    buf_reset(&why);
    CHECK(!label_key_check(STR("/"), &why));
    CHECK(str_starts(buf_str(&why), STR("prefix part must be non-empty; name part must be "
                                        "non-empty; name part must consist of")));
    char name[300];
    memset(name, 'a', sizeof(name));
    buf_reset(&why);
    CHECK(!label_value_check((struct str){ name, 64 }, &why));
    CHECK_STR(buf_str(&why), "must be no more than 63 bytes");
    buf_reset(&why);
    CHECK(!label_subdomain_check((struct str){ name, 254 }, &why));
    CHECK_STR(buf_str(&why), "must be no more than 253 bytes");
    buf_reset(&why);
    CHECK(!label_subdomain_check(STR("a..b"), &why));
    CHECK(!label_subdomain_check(STR(""), &why));
    CHECK(label_subdomain_check(STR("node-1.example.com"), &why));
}

/* Terms over few names and values, so that they meet. */
static struct str random_text(struct rng *rng, struct arena *a)
{
    static const char *const pieces[] = { "a", "b",  "in", "notin", "=",  "==", "!=", "!",
                                          "(", ")",  ",",  " ",     "1",  "12", ">",  "<",
                                          "x", "\t", "a.", "k/n",   "\"", "\\", "\n", "-" };
    struct str text = STR("");
    for (uint32_t n = rng_below(rng, 12); n > 0; n--) {
        text = arena_concat(a, text, str_from(pieces[rng_below(rng, ARRAY_LEN(pieces))]));
    }
    return text;
}

/* What is printed is read back as the same selector, in both languages. */
PROPERTY(selector_print_and_parse_are_inverse)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (int round = 0; round < 20; round++) {
        bool fields = rng_chance(rng, 500);
        int (*parse)(struct str, struct arena *, struct selector *, struct err *) =
            fields ? selector_parse_fields : selector_parse;
        struct err err = { 0 };
        struct selector s;
        CLEANUP(buf_done)
        struct buf first = { 0 };
        CLEANUP(buf_done)
        struct buf second = { 0 };
        if (parse(random_text(rng, &a), &a, &s, &err) < 0) {
            CHECK(err.msg[0] != '\0');
            continue;
        }
        selector_print(&s, &first);
        CHECK_EQ(parse(buf_str(&first), &a, &s, &err), 0);
        selector_print(&s, &second);
        /* Fields are sorted by what was written: "a==2,a=1" comes to rest in the second round. */
        buf_reset(&first);
        CHECK_EQ(parse(buf_str(&second), &a, &s, &err), 0);
        selector_print(&s, &first);
        CHECK_STR(buf_str(&second), buf_str(&first));
    }
}
