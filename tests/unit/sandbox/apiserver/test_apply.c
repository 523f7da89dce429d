#include "sandbox/apiserver/apply.h"
#include "sandbox/apiserver/fieldset.h"
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

/* Without the times, which the recording left out, and with the owners in one order. */
static struct tree *comparable(struct fixture *f, const struct tree *object)
{
    struct tree *out = tree_clone(&f->a, object);
    struct tree *sorted = tree_obj(&f->a);
    (void)tree_del_at(out, "metadata.namespace"); /* a configuration need not name it */
    TREE_EACH (tree_at(out, "metadata.managedFields"), entry) {
        (void)tree_del(entry, STR("time"));
        struct str name = arena_printf(
            &f->a, STR_FMT " " STR_FMT " " STR_FMT, STR_ARG(tree_text_at(entry, "manager")),
            STR_ARG(tree_text_at(entry, "operation")), STR_ARG(tree_text_at(entry, "subresource")));
        tree_set(&f->a, sorted, name, tree_clone(&f->a, entry));
    }
    tree_set_at(&f->a, out, "metadata.managedFields", sorted);
    return out;
}

/* Defaults of built-ins are the server's business: what it added says nothing here. */
static struct tree *undefaulted(struct fixture *f, const struct tree *got, const struct tree *want)
{
    if (got->kind == JOBJ && want->kind == JOBJ) {
        struct tree *out = tree_obj(&f->a);
        TREE_EACH (want, member) {
            const struct tree *own = tree_get(got, member->key);
            if (own != NULL) {
                tree_set(&f->a, out, member->key, undefaulted(f, own, member));
            }
        }
        return out;
    }
    if (got->kind == JARR && want->kind == JARR && got->n == want->n) {
        struct tree *out = tree_arr(&f->a);
        const struct tree *own = tree_first(got);
        TREE_EACH (want, item) {
            tree_add(out, undefaulted(f, own, item));
            own = tree_sibling(own);
        }
        return out;
    }
    return tree_clone(&f->a, want);
}

static void check_same(struct fixture *f, const struct tree *got, const struct tree *want)
{
    struct tree *x = comparable(f, got);
    struct tree *y = comparable(f, want);
    bool defaults = str_eq(tree_text_at(want, "kind"), STR("Deployment"));
    if (!tree_eq(x, defaults ? undefaulted(f, x, y) : y) ||
        !tree_eq(tree_at(x, "metadata.managedFields"), tree_at(y, "metadata.managedFields"))) {
        check_fail(__FILE__, __LINE__, "got\n" STR_FMT "\nwant\n" STR_FMT,
                   STR_ARG(tree_json(&f->a, x)), STR_ARG(tree_json(&f->a, y)));
    }
}

static void check_conflict(const struct tree *run, const struct schema_causes *causes,
                           struct str message)
{
    const struct tree *wanted = tree_at(run, "details.causes");
    CHECK_STR(message, tree_text_at(run, "message"));
    CHECK_EQ(causes->n, wanted->n);
    for (uint32_t i = 0; i < causes->n; i++) {
        CHECK_STR(causes->items[i].field, tree_text_at(tree_index(wanted, i), "field"));
        CHECK_STR(causes->items[i].message, tree_text_at(tree_index(wanted, i), "message"));
        CHECK_STR(causes->items[i].reason, tree_text_at(tree_index(wanted, i), "reason"));
    }
}

static void merge_json(struct fixture *f, struct tree *into, const struct tree *patch)
{
    TREE_EACH (patch, member) {
        struct tree *old = tree_get(into, member->key);
        if (member->kind == JNULL) {
            (void)tree_del(into, member->key);
        } else if (member->kind == JOBJ && tree_kind(old) == JOBJ) {
            merge_json(f, old, member);
        } else {
            tree_set(&f->a, into, member->key, tree_clone(&f->a, member));
        }
    }
}

static void play(struct fixture *f, const struct tree *custom, const struct tree *run)
{
    const struct tree *body = tree_get(run, STR("body"));
    const struct tree *before = tree_get(run, STR("before"));
    const struct tree *after = tree_get(run, STR("after"));
    const struct tree *named = before != NULL ? before : body;
    struct str api_version = tree_text_at(named, "apiVersion");
    struct str group;
    struct str version;
    if (!str_cut(api_version, STR("/"), &group, &version)) {
        group = STR("");
    }
    struct apply_request q = {
        .types = &f->types,
        .schema = tree_kind(custom) == JOBJ
                      ? types_custom_schema(&f->a, custom)
                      : types_builtin_kind(&f->types, group, tree_text_at(named, "kind")),
        .api_version = api_version,
        .manager = tree_text_at(run, "manager"),
        .subresource = tree_text_at(run, "subresource"),
        .has_status = !str_eq(tree_text_at(named, "kind"), STR("ConfigMap")),
        .force = tree_truth(tree_get(run, STR("force")), false),
        .time = STR("2020-01-01T00:00:00Z"),
    };
    if (!str_starts(tree_text_at(run, "type"), STR("application/apply"))) {
        struct tree *now = tree_clone(&f->a, before);
        merge_json(f, now, body);
        apply_track(&q, &f->a, before, now);
        check_same(f, now, after);
        return;
    }
    struct tree *object = NULL;
    struct schema_causes causes = { 0 };
    struct str message = STR("");
    int r = apply_merge(&q, &f->a, before, body, &object, &causes, &message, &f->err);
    if (after != NULL) {
        CHECK_STR(message, "");
        CHECK_EQ(r, 0);
        if (tree_kind(custom) == JOBJ) {
            schema_default(&f->types, q.schema, &f->a, object);
        }
        check_same(f, object, after);
    } else {
        CHECK_EQ(r, -ERR_CONFLICT);
        check_conflict(run, &causes, message);
    }
}

TEST(apply_tells_the_recorded_stories)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    struct tree *stories = parsed(&f, check_data("sandbox/apply.json"));
    CHECK(stories->n >= 8);
    TREE_EACH (stories, story) {
        if (str_eq(tree_text_at(story, "case"), STR("refused"))) {
            continue;
        }
        TREE_EACH (tree_get(story, STR("runs")), run) {
            play(&f, tree_get(story, STR("schema")), run);
        }
    }
}

static int applied(struct fixture *f, const char *live, const char *configuration,
                   struct str creator, struct tree **ret, struct str *ret_message)
{
    struct apply_request q = {
        .types = &f->types,
        .schema = types_builtin_kind(&f->types, STR(""), STR("ConfigMap")),
        .api_version = STR("v1"),
        .manager = STR("m"),
        .time = STR("2020-01-01T00:00:00Z"),
        .creator = creator,
    };
    struct schema_causes causes = { 0 };
    return apply_merge(&q, &f->a, live != NULL ? parsed(f, str_from(live)) : NULL,
                       parsed(f, str_from(configuration)), ret, &causes, ret_message, &f->err);
}

TEST(apply_gives_what_was_there_to_its_maker)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    struct tree *object = NULL;
    struct str message = STR("");
    CHECK_EQ(applied(&f, "{\"data\":{\"k\":\"v\"}}", "{\"data\":{\"k\":\"w\"}}", STR("writer"),
                     &object, &message),
             -ERR_CONFLICT);
    CHECK_STR(message, "Apply failed with 1 conflict: conflict with \"writer\" using v1: .data.k");
    CHECK_EQ(applied(&f, "{\"data\":{\"k\":\"v\"}}", "{\"data\":{\"l\":\"w\"}}", STR(""), &object,
                     &message),
             0);
    const struct tree *managed = tree_at(object, "metadata.managedFields");
    CHECK_EQ(managed->n, 2);
    CHECK_STR(tree_text_at(tree_index(managed, 1), "manager"), "before-first-apply");
    CHECK_STR(tree_json(&f.a, tree_get(tree_index(managed, 1), STR("fieldsV1"))),
              "{\"f:data\":{\".\":{},\"f:k\":{}}}");
}

TEST(apply_refuses_what_it_cannot_own)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    struct tree *object = NULL;
    struct str message = STR("");
    CHECK_EQ(applied(&f, NULL,
                     "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"r1\"},\"bogus\":1}", STR(""),
                     &object, &message),
             -ERR_PROTO);
    CHECK_STR(f.err.msg, "failed to create typed patch object (/r1; /v1, Kind=ConfigMap): .bogus: "
                         "field not declared in schema");
    CHECK_EQ(
        applied(&f, NULL, "{\"metadata\":{\"managedFields\":[{}]}}", STR(""), &object, &message),
        -ERR_INVALID);
    CHECK_STR(f.err.msg, "metadata.managedFields must be nil");
    CHECK_EQ(applied(&f, NULL, "[]", STR(""), &object, &message), -ERR_INVALID);
}

TEST(apply_tracks_nothing_where_it_was_never_used)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f);
    struct apply_request q = { .types = &f.types,
                               .schema = types_builtin_kind(&f.types, STR(""), STR("ConfigMap")) };
    struct tree *now = parsed(&f, STR("{\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":\"1\"}}"));
    apply_track(&q, &f.a, parsed(&f, STR("{\"metadata\":{\"name\":\"x\"}}")), now);
    CHECK_STR(tree_json(&f.a, now), "{\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":\"1\"}}");
}

static struct tree *random_set(struct arena *a, struct rng *rng, uint32_t depth)
{
    struct tree *set = tree_obj(a);
    for (uint32_t i = 0; i < 3; i++) {
        if (rng_chance(rng, 500)) {
            struct tree *below = depth > 0 ? random_set(a, rng, depth - 1) : tree_obj(a);
            if (below->n > 0 && rng_chance(rng, 400)) {
                tree_set(a, below, STR("."), tree_obj(a));
            }
            tree_set(a, set, arena_printf(a, "f:%u", i), below);
        }
    }
    return set;
}

/* x = (x − y) ∪ (x ∩ y), and the two parts share nothing. */
PROPERTY(fieldset_parts_make_the_whole)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct tree *x = random_set(&a, rng, 2);
    struct tree *y = random_set(&a, rng, 2);
    struct tree *rest = fieldset_difference(&a, x, y);
    struct tree *both = fieldset_intersection(&a, x, y);
    CHECK(tree_eq(fieldset_union(&a, rest, both), x));
    CHECK(fieldset_empty(fieldset_intersection(&a, rest, both)));
    CHECK(tree_eq(both, fieldset_intersection(&a, y, x)));
    CHECK(tree_eq(fieldset_union(&a, x, y), fieldset_union(&a, y, x)));
}
