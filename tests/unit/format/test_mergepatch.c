#include "format/mergepatch.h"
#include "tests/vectors.h"

static void check_merge(const struct jval *one, struct arena *a)
{
    struct err err = { 0 };
    struct tree *doc;
    struct tree *patch;
    struct tree *result = NULL;
    int r = tree_parse(vectors_text(one, "doc", a), a, &doc, &err);
    if (r == 0) {
        r = tree_parse(vectors_text(one, "patch", a), a, &patch, &err);
    }
    if (r == 0) {
        struct str doc_before = tree_json(a, doc);
        struct str patch_before = tree_json(a, patch);
        r = mergepatch_apply(doc, patch, a, &result, &err);
        CHECK_STR(tree_json(a, doc), doc_before);
        CHECK_STR(tree_json(a, patch), patch_before);
    }
    CHECK_EQ(r == 0, vectors_ok(one));
    if (r == 0) {
        struct tree *want;
        CHECK_EQ(tree_parse(vectors_text(one, "out", a), a, &want, &err), 0);
        if (!tree_eq(result, want)) {
            CHECK_STR(tree_json(a, result), tree_json(a, want));
        }
    } else {
        CHECK(err.msg[0] != '\0');
    }
}

static void check_create(const struct jval *one, struct str original, struct arena *a)
{
    struct err err = { 0 };
    struct tree *from;
    struct tree *to;
    struct tree *patch = NULL;
    int r = tree_parse(original, a, &from, &err);
    if (r == 0) {
        r = tree_parse(vectors_text(one, "modified", a), a, &to, &err);
    }
    if (r == 0) {
        r = mergepatch_create(from, to, a, &patch, &err);
    }
    CHECK_EQ(r == 0, vectors_ok(one));
    if (r == 0) {
        CHECK_STR(tree_json(a, patch), vectors_text(one, "out", a));
    }
}

/* The fixture as the original serialises it: what a case without a difference ends with. */
static struct str node_fixture(const struct jval *cases, struct str name)
{
    JVAL_EACH (cases, one) {
        if (vectors_kind(one, "node") && str_eq(jval_str(jval_get(one, STR("node"))), name) &&
            str_eq(jval_str(jval_get(one, STR("out"))), STR("{}"))) {
            return jval_str(jval_get(one, STR("modified")));
        }
    }
    check_fail(__FILE__, __LINE__, "no case without a difference");
}

TEST(mergepatch_agrees_with_go_on_every_vector)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *cases = jval_get(vectors_load("vectors/mergepatch.json", &a), STR("cases"));
    uint32_t seen = 0;
    JVAL_EACH (cases, one) {
        vectors_enter(one);
        if (vectors_kind(one, "merge")) {
            check_merge(one, &a);
        } else if (vectors_kind(one, "create")) {
            check_create(one, vectors_text(one, "original", &a), &a);
        } else if (vectors_kind(one, "node")) {
            check_create(one, node_fixture(cases, jval_str(jval_get(one, STR("node")))), &a);
        } else {
            continue; /* test_jsonpatch.c has the rest */
        }
        seen++;
    }
    CHECK(seen > 100);
}

TEST(mergepatch_create_refuses_lists_of_other_lengths_and_scalars)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct tree *patch = NULL;
    struct tree *list = tree_arr(&a);
    tree_add(list, tree_i64(&a, 1));
    CHECK_EQ(mergepatch_create(tree_obj(&a), list, &a, &patch, &err), -ERR_INVALID);
    CHECK_EQ(mergepatch_create(list, list, &a, &patch, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "a merge patch between documents: found a number, want an object");
    CHECK(patch == NULL);
}

/* A document of few names, so that two of them meet. No null: a patch cannot say it. */
static struct tree *random_tree(struct rng *rng, struct arena *a, uint32_t depth)
{
    static const char *const names[] = { "a", "b", "c", "<d>", "" };
    switch (rng_below(rng, depth > 0 ? 6 : 3)) {
    case 0:
        return tree_i64(a, (int64_t)rng_below(rng, 3));
    case 1:
        return tree_str(a, str_from(names[rng_below(rng, ARRAY_LEN(names))]));
    case 2:
        return tree_bool(a, rng_chance(rng, 500));
    case 3: {
        struct tree *list = tree_arr(a);
        for (uint32_t n = rng_below(rng, 3); n > 0; n--) {
            tree_add(list, random_tree(rng, a, depth - 1));
        }
        return list;
    }
    default: {
        struct tree *object = tree_obj(a);
        for (uint32_t n = rng_below(rng, 4); n > 0; n--) {
            struct str name = str_from(names[rng_below(rng, ARRAY_LEN(names))]);
            tree_set(a, object, name, random_tree(rng, a, depth - 1));
        }
        return object;
    }
    }
}

/* The patch between two documents, applied to the first, gives the second. */
PROPERTY(mergepatch_create_and_apply_lead_to_the_goal)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct tree *from = tree_obj(&a);
    struct tree *to = tree_obj(&a);
    tree_set(&a, from, STR("root"), random_tree(rng, &a, 4));
    tree_set(&a, to, STR("root"), random_tree(rng, &a, 4));
    struct tree *patch;
    struct tree *result;
    CHECK_EQ(mergepatch_create(from, to, &a, &patch, &err), 0);
    CHECK_EQ(mergepatch_apply(from, patch, &a, &result, &err), 0);
    if (!tree_eq(result, to)) {
        CHECK_STR(tree_json(&a, result), tree_json(&a, to));
    }
    /* What is applied twice changes nothing more. */
    struct tree *again;
    CHECK_EQ(mergepatch_apply(result, patch, &a, &again, &err), 0);
    CHECK(tree_eq(result, again));
}
