/* Two documents, one a line: the patch between them leads from the first to the second. */
#include "format/mergepatch.h"
#include "tests/fuzz/target.h"

static bool has_null_member(const struct tree *t)
{
    TREE_EACH (t, child) {
        if ((t->kind == JOBJ && child->kind == JNULL) || has_null_member(child)) {
            return true;
        }
    }
    return false;
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct str first;
    struct str second;
    struct tree *from;
    struct tree *to;
    (void)str_cut(text, STR("\n"), &first, &second); /* an absent second one is no JSON */
    if (tree_parse(first, &a, &from, &err) < 0 || tree_parse(second, &a, &to, &err) < 0) {
        return;
    }
    struct tree *result;
    if (mergepatch_apply(from, to, &a, &result, &err) == 0) {
        struct str json = tree_json(&a, result);
        struct tree *again;
        int r = tree_parse(json, &a, &again, &err);
        ASSERT(r == 0 && tree_eq(result, again));
        ASSERT(from->kind != JOBJ || to->kind != JOBJ || result->kind == JOBJ);
    }
    struct tree *patch;
    if (from->kind == JOBJ && to->kind == JOBJ && !has_null_member(to)) {
        int r = mergepatch_create(from, to, &a, &patch, &err);
        ASSERT(r == 0);
        r = mergepatch_apply(from, patch, &a, &result, &err);
        ASSERT(r == 0 && tree_eq(result, to));
    }
}
