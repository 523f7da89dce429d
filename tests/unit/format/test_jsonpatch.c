#include "format/jsonpatch.h"
#include "tests/vectors.h"

static int apply(struct str doc_text, struct str patch_text, struct arena *a, struct tree **ret,
                 struct err *err)
{
    struct tree *doc;
    struct tree *patch;
    int r = tree_parse(doc_text, a, &doc, err);
    if (r == 0) {
        r = tree_parse(patch_text, a, &patch, err);
    }
    if (r == 0) {
        struct str before = tree_json(a, doc);
        r = jsonpatch_apply(doc, patch, a, ret, err);
        CHECK_STR(tree_json(a, doc), before);
    }
    return r;
}

TEST(jsonpatch_agrees_with_go_on_every_vector)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *cases = jval_get(vectors_load("vectors/mergepatch.json", &a), STR("cases"));
    uint32_t seen = 0;
    JVAL_EACH (cases, one) {
        if (!vectors_kind(one, "json6902")) {
            continue;
        }
        vectors_enter(one);
        seen++;
        struct err err = { 0 };
        struct tree *result = NULL;
        int r =
            apply(vectors_text(one, "doc", &a), vectors_text(one, "patch", &a), &a, &result, &err);
        CHECK_EQ(r == 0, vectors_ok(one));
        if (r == 0) {
            struct tree *want;
            CHECK_EQ(tree_parse(vectors_text(one, "out", &a), &a, &want, &err), 0);
            if (!tree_eq(result, want)) {
                CHECK_STR(tree_json(&a, result), tree_json(&a, want));
            }
        } else if (str_eq(vectors_text(one, "class", &a), STR("decode"))) {
            CHECK_EQ(err.code, ERR_INVALID);
        }
    }
    CHECK(seen > 30);
}

/* As evanphx/json-patch v5.9.11 answers; `result` NULL: it refuses. */
TEST(jsonpatch_treats_empty_documents_as_go_does)
{
    static const struct {
        const char *doc; /* "": no document at all */
        const char *patch;
        const char *result;
    } cases[] = {
        { "", "[]", "" },
        { "", "[{\"op\":\"add\",\"path\":\"\",\"value\":{\"a\":1}}]", "" },
        { "", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]", "" },
        { "", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "" },
        { "", "[{\"op\":\"test\",\"path\":\"\",\"value\":{}}]", "" },
        { "", "[{\"op\":\"mend\",\"path\":\"/a\"}]", NULL },
        { "null", "[]", NULL },
        { "null", "[{\"op\":\"add\",\"path\":\"\",\"value\":{\"a\":1}}]", "{\"a\":1}" },
        { "null", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"a\":1}}]", "{\"a\":1}" },
        { "null", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]", NULL },
        { "null", "[{\"op\":\"test\",\"path\":\"\",\"value\":null}]", NULL },
        { "null", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/a\"}]", NULL },
        { "{}", "[{\"op\":\"add\",\"path\":\"/-\",\"value\":1}]", "{\"-\":1}" },
        { "{}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/a\"}]", "{\"a\":{}}" },
        { "{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", "{}" },
        { "[]", "[{\"op\":\"add\",\"path\":\"/-\",\"value\":1}]", "[1]" },
        { "[]", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        struct tree *doc = NULL;
        struct tree *patch;
        struct tree *result = NULL;
        check_case((int64_t)i);
        if (cases[i].doc[0] != '\0') {
            CHECK_EQ(tree_parse(str_from(cases[i].doc), &a, &doc, &err), 0);
        }
        CHECK_EQ(tree_parse(str_from(cases[i].patch), &a, &patch, &err), 0);
        CHECK_EQ(jsonpatch_apply(doc, patch, &a, &result, &err) == 0, cases[i].result != NULL);
        if (cases[i].result != NULL) {
            CHECK_STR(result == NULL ? STR("") : tree_json(&a, result), cases[i].result);
        }
    }
    check_case(-1);
}

TEST(jsonpatch_says_which_operation_failed_and_why)
{
    static const struct {
        const char *doc;
        const char *patch;
        enum err_code code;
        const char *message;
    } cases[] = {
        { "{}", "{\"op\":\"remove\"}", ERR_INVALID,
          "a JSON patch: found an object, want a list of operations" },
        { "{}", "[1]", ERR_INVALID, "operation 1: found a number, want an object" },
        { "{}", "[{\"op\":\"mend\",\"path\":\"/a\"}]", ERR_INVALID,
          "operation 1: 'op': found 'mend', want add, remove, replace, move, copy or test" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", ERR_INVALID,
          "operation 1: 'value': found nothing, want the value to add" },
        { "{}", "[{\"op\":\"move\",\"path\":\"/a\",\"from\":1}]", ERR_INVALID,
          "operation 1: 'from': found a number, want a string" },
        { "{\"a\":1}",
          "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1},{\"op\":\"remove\",\"path\":"
          "\"/b\"}]",
          ERR_NOTFOUND, "operation 2: path '/b': nothing is there" },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", ERR_CONFLICT,
          "operation 1: path '/a': another value is there" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":2}]", ERR_NOTFOUND,
          "operation 1: path '/a/b': leads into what is no object and no list" },
        { "{\"a\":[]}", "[{\"op\":\"add\",\"path\":\"/a/x\",\"value\":2}]", ERR_NOTFOUND,
          "operation 1: path '/a/x': want an index into the list, or '-'" },
        { "{\"a\":[]}", "[{\"op\":\"add\",\"path\":\"/a/+-1\",\"value\":2}]", ERR_NOTFOUND,
          "operation 1: path '/a/+-1': want an index into the list, or '-'" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/a/b/c\",\"value\":2}]", ERR_NOTFOUND,
          "operation 1: path '/a/b/c': nothing is there" },
        { "{}", "[{\"op\":\"copy\",\"path\":\"/a\",\"from\":\"/b\"}]", ERR_NOTFOUND,
          "operation 1: from '/b': nothing is there" },
        { "{}", "[{\"op\":\"copy\",\"path\":\"/a\",\"from\":\"b\"}]", ERR_NOTFOUND,
          "operation 1: from 'b': want a path that begins with '/'" },
        { "{}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":1}]", ERR_NOTFOUND,
          "operation 1: path '': found a number, want an object or a list" },
        { "{}", "[{\"op\":\"move\",\"path\":\"/a\",\"from\":\"\"}]", ERR_NOTFOUND,
          "operation 1: from '': the whole document cannot be taken away" },
        { "7", "[]", ERR_NOTFOUND, "the document: found a number, want an object or a list" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        struct tree *result = NULL;
        check_case((int64_t)i);
        CHECK_EQ(apply(str_from(cases[i].doc), str_from(cases[i].patch), &a, &result, &err),
                 -(int)cases[i].code);
        CHECK_STR(err.msg, cases[i].message);
        CHECK(result == NULL);
    }
    check_case(-1);
}

TEST(jsonpatch_reaches_into_names_with_slashes_and_lists)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct tree *result;
    CHECK_EQ(apply(STR("{\"a/b\":{\"~\":[1,2,3]}}"),
                   STR("[{\"op\":\"replace\",\"path\":\"/a~1b/~0/1\",\"value\":{\"x\":9}},"
                       "{\"op\":\"copy\",\"from\":\"/a~1b/~0/1\",\"path\":\"/y\"},"
                       "{\"op\":\"move\",\"from\":\"/a~1b/~0/0\",\"path\":\"/a~1b/~0/-\"},"
                       "{\"op\":\"add\",\"path\":\"\",\"value\":{\"z\":[]}},"
                       "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/z/0\"},"
                       "{\"op\":\"test\",\"path\":\"\",\"value\":{\"z\":[{\"z\":[]}]}}]"),
                   &a, &result, &err),
             0);
    CHECK_STR(tree_json(&a, result), "{\"z\":[{\"z\":[]}]}");
}

TEST(jsonpatch_that_copies_a_document_into_itself_meets_the_limit)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf patch = { 0 };
    buf_add(&patch, STR("["));
    for (int i = 0; i < 60; i++) {
        buf_printf(&patch, "%s{\"op\":\"copy\",\"from\":\"\",\"path\":\"/k%d\"}", i > 0 ? "," : "",
                   i);
    }
    buf_add(&patch, STR("]"));
    struct tree *result = NULL;
    CHECK_EQ(apply(STR("{\"a\":\"some text\"}"), buf_str(&patch), &a, &result, &err), -ERR_LIMIT);
}

TEST(jsonpatch_that_nests_ever_deeper_meets_the_limit)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf patch = { 0 };
    buf_add(&patch, STR("["));
    for (int i = 0; i < 300; i++) {
        buf_printf(&patch, "%s{\"op\":\"add\",\"path\":\"", i > 0 ? "," : "");
        for (int depth = 0; depth <= i; depth++) {
            buf_add(&patch, STR("/a"));
        }
        buf_add(&patch, STR("\",\"value\":{}}"));
    }
    buf_add(&patch, STR("]"));
    struct tree *result = NULL;
    CHECK_EQ(apply(STR("{}"), buf_str(&patch), &a, &result, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "operation 192: nested deeper than 192");
}

TEST(jsonpatch_of_too_many_operations_meets_the_limit)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct tree *patch = tree_arr(&a);
    for (uint32_t i = 0; i <= JSONPATCH_OPS_MAX; i++) {
        tree_add(patch, tree_obj(&a));
    }
    struct tree *result = NULL;
    CHECK_EQ(jsonpatch_apply(tree_obj(&a), patch, &a, &result, &err), -ERR_LIMIT);
}
