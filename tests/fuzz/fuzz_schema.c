/* [schema, object]: what is pruned and defaulted once stays as it is; judging it never fails. */
#include "sandbox/apiserver/schema.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(types_done)
    struct types types;
    types_init(&types, &a);
    struct err err = { 0 };
    struct tree *input;
    if (tree_parse(text, &a, &input, &err) < 0) {
        return;
    }
    struct tree *object = tree_index(input, 1);
    if (tree_kind(tree_index(input, 0)) != JOBJ || tree_kind(object) != JOBJ) {
        return;
    }
    const struct tree *schema = types_custom_schema(&a, tree_index(input, 0));
    struct schema_paths unknown = { 0 };
    struct schema_causes causes = { 0 };
    schema_prune(&types, schema, SCHEMA_CUSTOM, &a, object, &unknown);
    struct tree *pruned = tree_clone(&a, object);
    unknown.n = 0;
    schema_prune(&types, schema, SCHEMA_CUSTOM, &a, pruned, &unknown);
    ASSERT(unknown.n == 0 && tree_eq(pruned, object));
    schema_default(&types, schema, &a, object);
    schema_validate(&types, schema, &a, object, NULL, &causes);
    uint32_t n = causes.n;
    causes.n = 0;
    schema_validate(&types, schema, &a, object, object, &causes);
    ASSERT(causes.n == 0 || n > 0); /* nothing changed: an update has no more to say */
}
