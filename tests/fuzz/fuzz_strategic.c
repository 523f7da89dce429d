/*
 * [kind, object, patch]: a strategic merge patch and a configuration to apply. What a merge takes
 * it can print; a configuration applied twice changes nothing the second time.
 */
#include "sandbox/apiserver/apply.h"
#include "sandbox/apiserver/strategic.h"
#include "tests/fuzz/target.h"

static void check_apply(struct types *types, const struct tree *schema, struct arena *a,
                        const struct tree *live, const struct tree *configuration)
{
    struct apply_request q = { .types = types,
                               .schema = schema,
                               .api_version = STR("v1"),
                               .manager = STR("m"),
                               .time = STR("2020-01-01T00:00:00Z"),
                               .force = true };
    struct schema_causes causes = { 0 };
    struct str message;
    struct err err = { 0 };
    struct tree *once;
    struct tree *twice;
    if (apply_merge(&q, a, live, configuration, &once, &causes, &message, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    q.force = false;
    int r = apply_merge(&q, a, once, configuration, &twice, &causes, &message, &err);
    ASSERT(r == 0);
    r = apply_merge(&q, a, twice, configuration, &once, &causes, &message, &err);
    ASSERT(r == 0);
    ASSERT(tree_eq(once, twice));
}

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
    const struct tree *schema =
        types_builtin_kind(&types, STR(""), tree_text(tree_index(input, 0)));
    const struct tree *object = tree_index(input, 1);
    const struct tree *patch = tree_index(input, 2);
    if (tree_kind(object) != JOBJ || patch == NULL) {
        return;
    }
    struct tree *merged = tree_clone(&a, object);
    if (strategic_merge(&types, schema, &a, merged, patch, &err) == 0) {
        struct tree *again;
        int r = tree_parse(tree_json(&a, merged), &a, &again, &err);
        ASSERT(r == 0 && tree_eq(merged, again));
    } else {
        ASSERT(err.msg[0] != '\0');
    }
    check_apply(&types, schema, &a, object, patch);
}
