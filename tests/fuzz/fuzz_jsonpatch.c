/* A document and a patch, one a line: the result is JSON, the document stays as it was. */
#include "format/jsonpatch.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct str first;
    struct str second;
    struct tree *doc;
    struct tree *patch;
    (void)str_cut(text, STR("\n"), &first, &second); /* an absent second one is no JSON */
    if (tree_parse(first, &a, &doc, &err) < 0 || tree_parse(second, &a, &patch, &err) < 0) {
        return;
    }
    struct str doc_before = tree_json(&a, doc);
    struct str patch_before = tree_json(&a, patch);
    struct tree *result = NULL;
    int r = jsonpatch_apply(doc, patch, &a, &result, &err);
    ASSERT(str_eq(tree_json(&a, doc), doc_before));
    ASSERT(str_eq(tree_json(&a, patch), patch_before));
    if (r < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    struct tree *again;
    r = tree_parse(tree_json(&a, result), &a, &again, &err);
    ASSERT(r == 0 && tree_eq(result, again));
}
