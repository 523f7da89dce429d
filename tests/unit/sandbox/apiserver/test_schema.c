#include "sandbox/apiserver/schema.h"
#include "tests/check.h"

struct fixture {
    struct arena a;
    struct types types;
    struct err err;
};

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){ 0 };
    types_init(&f->types, &f->a);
}

static void fixture_done(struct fixture *f)
{
    types_done(&f->types);
    arena_done(&f->a);
}

static struct tree *parsed(struct fixture *f, struct str json)
{
    struct tree *t = NULL;
    CHECK_EQ(tree_parse(json, &f->a, &t, &f->err), 0);
    return t;
}

static struct str warning(struct fixture *f, const struct schema_paths *unknown)
{
    CLEANUP(buf_done)
    struct buf b = { 0 };
    for (uint32_t i = 0; i < unknown->n; i++) {
        buf_printf(&b, "%s299 - \"unknown field \\\"" STR_FMT "\\\"\"", i > 0 ? ", " : "",
                   STR_ARG(unknown->items[i]));
    }
    return arena_str(&f->a, buf_str(&b));
}

/* The order in which the real server gives several causes is random. */
static bool has_cause(const struct tree *causes, const struct schema_cause *cause)
{
    TREE_EACH (causes, c) {
        if (str_eq(tree_text_at(c, "reason"), cause->reason) &&
            str_eq(tree_text_at(c, "field"), cause->field) &&
            str_eq(tree_text_at(c, "message"), cause->message)) {
            return true;
        }
    }
    return false;
}

static void play(struct fixture *f, const struct tree *schema, const struct tree *run)
{
    struct tree *object = tree_clone(&f->a, tree_get(run, STR("in")));
    struct str text = tree_json(&f->a, object);
    struct schema_paths unknown = { 0 };
    struct schema_causes causes = { 0 };
    schema_prune(&f->types, schema, SCHEMA_CUSTOM, &f->a, object, &unknown);
    schema_default(&f->types, schema, &f->a, object);
    schema_validate(&f->types, schema, &f->a, object, NULL, &causes);
    const struct tree *out = tree_get(run, STR("out"));
    if (out != NULL) {
        if (causes.n > 0) {
            check_fail(__FILE__, __LINE__, STR_FMT ": " STR_FMT ": " STR_FMT, STR_ARG(text),
                       STR_ARG(causes.items[0].field), STR_ARG(causes.items[0].message));
        }
        CHECK_STR(warning(f, &unknown), tree_text_at(run, "warning"));
        if (!tree_eq(object, out)) {
            check_fail(__FILE__, __LINE__, STR_FMT " became " STR_FMT, STR_ARG(text),
                       STR_ARG(tree_json(&f->a, object)));
        }
        return;
    }
    const struct tree *wanted = tree_get(run, STR("causes"));
    for (uint32_t i = 0; i < causes.n; i++) {
        if (!has_cause(wanted, &causes.items[i])) {
            check_fail(__FILE__, __LINE__, STR_FMT ": " STR_FMT " " STR_FMT ": " STR_FMT,
                       STR_ARG(text), STR_ARG(causes.items[i].reason),
                       STR_ARG(causes.items[i].field), STR_ARG(causes.items[i].message));
        }
    }
    if (causes.n != wanted->n) {
        check_fail(__FILE__, __LINE__, STR_FMT ": %u causes, want %u", STR_ARG(text), causes.n,
                   wanted->n);
    }
}

TEST(schema_judges_as_the_recorded_server_does)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    struct tree *cases = parsed(&f, check_data("sandbox/schema.json"));
    CHECK(cases->n >= 13);
    TREE_EACH (cases, c) {
        struct tree *schema = types_custom_schema(&f.a, tree_get(c, STR("schema")));
        TREE_EACH (tree_get(c, STR("runs")), run) {
            play(&f, schema, run);
        }
    }
}

TEST(schema_lets_pass_what_an_update_leaves_as_it_was)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    struct tree *schema = types_custom_schema(
        &f.a, parsed(&f, STR("{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
                             "\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":1},"
                             "\"b\":{\"type\":\"string\",\"maxLength\":1}}}}}")));
    struct tree *old = parsed(&f, STR("{\"spec\":{\"a\":\"long\"}}"));
    struct schema_causes causes = { 0 };
    schema_validate(&f.types, schema, &f.a,
                    parsed(&f, STR("{\"spec\":{\"a\":\"long\",\"b\":\"x\"}}")), old, &causes);
    CHECK_EQ(causes.n, 0);
    schema_validate(&f.types, schema, &f.a,
                    parsed(&f, STR("{\"spec\":{\"a\":\"longer\",\"b\":\"xx\"}}")), old, &causes);
    CHECK_EQ(causes.n, 2);
}

TEST(schema_finds_unknown_fields_of_built_ins_in_their_order)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    struct tree *pod =
        parsed(&f, STR("{\"spec\":{\"zz\":1,\"containers\":[{\"name\":\"a\",\"bogus\":1}],"
                       "\"nodeSelector\":{\"any\":\"x\"}},\"aa\":{\"b\":1}}"));
    struct schema_paths unknown = { 0 };
    schema_prune(&f.types, types_builtin_kind(&f.types, STR(""), STR("Pod")), 0, &f.a, pod,
                 &unknown);
    CHECK_STR(schema_unknown_text(&f.a, &unknown),
              "unknown field \"spec.zz\", unknown field \"spec.containers[0].bogus\", "
              "unknown field \"aa\"");
    CHECK_STR(tree_json(&f.a, pod), "{\"spec\":{\"containers\":[{\"name\":\"a\"}],"
                                    "\"nodeSelector\":{\"any\":\"x\"}}}");
}

/* Whatever is pruned and defaulted once stays as it is when it comes back. */
PROPERTY(schema_default_is_idempotent)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    struct tree *schema = types_custom_schema(
        &f.a, parsed(&f, STR("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\","
                             "\"default\":\"x\"},\"b\":{\"type\":\"object\",\"default\":{},"
                             "\"properties\":{\"c\":{\"type\":\"integer\",\"default\":1},"
                             "\"d\":{\"type\":\"string\",\"nullable\":true}}}}}")));
    struct tree *object = tree_obj(&f.a);
    static const char *const paths[] = { "a", "b", "b.c", "b.d", "b.e", "z" };
    for (uint32_t i = rng_below(rng, 5); i > 0; i--) {
        const char *path = paths[rng_below(rng, ARRAY_LEN(paths))];
        struct tree *value = rng_chance(rng, 300) ? tree_null(&f.a) : tree_i64(&f.a, 3);
        tree_set_at(&f.a, object, path, rng_chance(rng, 300) ? tree_obj(&f.a) : value);
    }
    struct schema_paths unknown = { 0 };
    schema_prune(&f.types, schema, SCHEMA_CUSTOM, &f.a, object, &unknown);
    schema_default(&f.types, schema, &f.a, object);
    struct tree *again = tree_clone(&f.a, object);
    unknown.n = 0;
    schema_prune(&f.types, schema, SCHEMA_CUSTOM, &f.a, again, &unknown);
    schema_default(&f.types, schema, &f.a, again);
    CHECK(tree_eq(object, again));
    CHECK_EQ(unknown.n, 0);
}
