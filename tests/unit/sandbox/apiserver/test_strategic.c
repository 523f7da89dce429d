#include "sandbox/apiserver/strategic.h"
#include "tests/check.h"

/* Members that Go writes as null or leaves out when empty say nothing about the merge. */
static struct tree *without_schema(struct arena *a, const struct tree *t)
{
    if (t->kind == JOBJ) {
        struct tree *out = tree_obj(a);
        TREE_EACH (t, member) {
            struct tree *value = without_schema(a, member);
            bool container = value->kind == JOBJ || value->kind == JARR;
            if (value->kind != JNULL && !(container && value->n == 0)) {
                tree_set(a, out, member->key, value);
            }
        }
        return out;
    }
    if (t->kind == JARR) {
        struct tree *out = tree_arr(a);
        TREE_EACH (t, item) {
            tree_add(out, without_schema(a, item));
        }
        return out;
    }
    return tree_clone(a, t);
}

static const struct tree *schema_of(struct types *types, const struct tree *object)
{
    struct str group;
    struct str version;
    if (!str_cut(tree_text_at(object, "apiVersion"), STR("/"), &group, &version)) {
        group = STR("");
    }
    return types_builtin_kind(types, group, tree_text_at(object, "kind"));
}

TEST(strategic_merges_as_the_recorded_server_does)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(types_done)
    struct types types;
    types_init(&types, &a);
    struct err err = { 0 };
    struct tree *cases;
    CHECK_EQ(tree_parse(check_data("sandbox/strategic.json"), &a, &cases, &err), 0);
    CHECK(cases->n > 40);
    TREE_EACH (cases, c) {
        struct tree *object = tree_clone(&a, tree_get(c, STR("before")));
        const struct tree *patch = tree_get(c, STR("patch"));
        int64_t status = 0;
        CHECK(tree_number(tree_get(c, STR("status")), &status));
        int r = strategic_merge(&types, schema_of(&types, object), &a, object, patch, &err);
        int want = status == 200 ? 0 : status == 400 ? -ERR_INVALID : -ERR_PROTO;
        CHECK_EQ(r, want);
        if (r < 0) {
            CHECK_STR(err.msg, tree_text_at(c, "message"));
        } else if (!tree_eq(without_schema(&a, object),
                            without_schema(&a, tree_get(c, STR("after"))))) {
            check_fail(__FILE__, __LINE__, "patch " STR_FMT " gave\n" STR_FMT "\nnot\n" STR_FMT,
                       STR_ARG(tree_json(&a, patch)),
                       STR_ARG(tree_json(&a, without_schema(&a, object))),
                       STR_ARG(tree_json(&a, without_schema(&a, tree_get(c, STR("after"))))));
        }
    }
}

static struct str merged(struct arena *a, struct str kind, struct str object, struct str patch)
{
    CLEANUP(types_done)
    struct types types;
    types_init(&types, a);
    struct err err = { 0 };
    struct tree *o;
    struct tree *p;
    CHECK_EQ(tree_parse(object, a, &o, &err), 0);
    CHECK_EQ(tree_parse(patch, a, &p, &err), 0);
    CHECK_EQ(strategic_merge(&types, types_builtin_kind(&types, STR(""), kind), a, o, p, &err), 0);
    return tree_json(a, o);
}

TEST(strategic_merges_owner_references_by_uid)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str object =
        STR("{\"metadata\":{\"ownerReferences\":[{\"uid\":\"1\",\"name\":\"a\"}]}}");
    CHECK_STR(
        merged(&a, STR("Pod"), object,
               STR("{\"metadata\":{\"ownerReferences\":[{\"uid\":\"1\",\"name\":\"b\"},"
                   "{\"uid\":\"2\"}]}}")),
        "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"1\",\"name\":\"b\"},{\"uid\":\"2\"}]}}");
    CHECK_STR(
        merged(&a, STR("Pod"), object,
               STR("{\"metadata\":{\"ownerReferences\":[{\"$patch\":\"delete\",\"uid\":\"1\"}]"
                   "}}")),
        "{\"metadata\":{\"ownerReferences\":[]}}");
}

TEST(strategic_takes_what_is_new_without_its_directives)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CHECK_STR(
        merged(&a, STR("Pod"), STR("{}"),
               STR("{\"spec\":{\"x\":null,\"containers\":[{\"name\":\"a\",\"$patch\":\"delete\"},"
                   "{\"name\":\"b\",\"image\":null}],\"$setElementOrder/containers\":[]}}")),
        "{\"spec\":{\"containers\":[{\"name\":\"b\"}]}}");
}

/* Patching twice gives what patching once gave, whatever the patch. */
PROPERTY(strategic_is_idempotent)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(types_done)
    struct types types;
    types_init(&types, &a);
    struct err err = { 0 };
    struct tree *object = tree_obj(&a);
    const struct tree *schema = types_builtin_kind(&types, STR(""), STR("Node"));
    for (int step = 0; step < 10; step++) {
        struct tree *patch = tree_obj(&a);
        struct tree *conditions = tree_arr(&a);
        for (uint32_t type = 0; type < 5; type++) {
            if (rng_chance(rng, 500)) {
                continue;
            }
            struct tree *c = tree_obj(&a);
            tree_set(&a, c, STR("type"), tree_i64(&a, type));
            tree_set(&a, c, STR("status"), tree_i64(&a, rng_below(rng, 3)));
            if (rng_chance(rng, 300)) {
                tree_set(&a, c, STR("$patch"), tree_str(&a, STR("delete")));
            }
            tree_add(conditions, c);
        }
        tree_set_at(&a, patch, "status.conditions", conditions);
        CHECK_EQ(strategic_merge(&types, schema, &a, object, patch, &err), 0);
        struct tree *twice = tree_clone(&a, object);
        CHECK_EQ(strategic_merge(&types, schema, &a, twice, patch, &err), 0);
        CHECK(tree_eq(twice, object));
    }
}
