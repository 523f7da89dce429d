#include "sandbox/apiserver/apply.h"

#include "sandbox/apiserver/fieldset.h"

#define MANAGED_FIELDS "metadata.managedFields"

static struct tree *merge_value(const struct apply_request *q, struct arena *a,
                                const struct tree *schema, const struct tree *live,
                                const struct tree *given);

static struct tree *merge_map(const struct apply_request *q, struct arena *a,
                              const struct tree *schema, const struct tree *live,
                              const struct tree *given)
{
    struct tree *out = tree_clone(a, live);
    TREE_EACH (given, member) {
        if (member->kind != JNULL) {
            tree_set(a, out, member->key,
                     merge_value(q, a, types_member(q->types, schema, member->key),
                                 tree_get(live, member->key), member));
        }
    }
    return out;
}

static const struct tree *apply_same_item(const struct apply_request *q, struct arena *a,
                                          const struct tree *schema, const struct tree *list,
                                          const struct tree *item)
{
    struct str key = fieldset_item_key(q->types, schema, a, item);
    TREE_EACH (list, candidate) {
        if (str_eq(fieldset_item_key(q->types, schema, a, candidate), key)) {
            return candidate;
        }
    }
    return NULL;
}

/* The order of the configuration wins for its own elements; the others keep their places. */
static struct tree *merge_list(const struct apply_request *q, struct arena *a,
                               const struct tree *schema, const struct tree *live,
                               const struct tree *given)
{
    struct tree *out = tree_arr(a);
    const struct tree *left = tree_first(live);
    const struct tree *right = tree_first(given);
    while (left != NULL || right != NULL) {
        if (left != NULL && apply_same_item(q, a, schema, given, left) == NULL) {
            tree_add(out, tree_clone(a, left));
            left = tree_sibling(left);
        } else if (right != NULL) {
            if (apply_same_item(q, a, schema, out, right) == NULL) {
                tree_add(out, merge_value(q, a, types_item(q->types, schema),
                                          apply_same_item(q, a, schema, live, right), right));
            }
            bool aligned = left != NULL && str_eq(fieldset_item_key(q->types, schema, a, left),
                                                  fieldset_item_key(q->types, schema, a, right));
            left = aligned ? tree_sibling(left) : left;
            right = tree_sibling(right);
        } else {
            left = tree_sibling(left); /* already placed, in the configuration's order */
        }
    }
    return out;
}

static struct tree *merge_value(const struct apply_request *q, struct arena *a,
                                const struct tree *schema, const struct tree *live,
                                const struct tree *given)
{
    enum fieldset_shape shape = fieldset_shape(q->types, schema, given);
    if (live == NULL || shape == FIELDSET_LEAF || live->kind != given->kind) {
        return tree_clone(a, given);
    }
    return shape == FIELDSET_MAP ? merge_map(q, a, schema, live, given)
                                 : merge_list(q, a, schema, live, given);
}

/* Takes out of `value` what is in `gone`, unless `kept` has something at the same place. */
static void drop_fields(const struct apply_request *q, struct arena *a, const struct tree *schema,
                        struct tree *value, const struct tree *gone, const struct tree *kept)
{
    enum fieldset_shape shape = fieldset_shape(q->types, schema, value);
    if (shape == FIELDSET_LEAF) {
        return;
    }
    TREE_EACH (value, child) {
        struct str key = shape == FIELDSET_MAP ? arena_concat(a, STR("f:"), child->key)
                                               : fieldset_item_key(q->types, schema, a, child);
        const struct tree *node = tree_get(gone, key);
        const struct tree *keeper = tree_get(kept, key);
        if (node == NULL) {
            continue;
        }
        bool drop = fieldset_has(node) && keeper == NULL;
        if (!drop) {
            const struct tree *below = shape == FIELDSET_MAP
                                           ? types_member(q->types, schema, child->key)
                                           : types_item(q->types, schema);
            uint32_t before = child->n;
            drop_fields(q, a, below, child, node, keeper);
            drop = before > 0 && child->n == 0 && !fieldset_has(keeper);
        }
        if (drop && shape == FIELDSET_MAP) {
            (void)tree_del(value, child->key);
        } else if (drop) {
            tree_remove(value, child);
        }
    }
}

static bool entry_is(const struct tree *entry, const struct apply_request *q, struct str operation)
{
    return str_eq(tree_text_at(entry, "manager"), q->manager) &&
           str_eq(tree_text_at(entry, "operation"), operation) &&
           str_eq(tree_text_at(entry, "subresource"), q->subresource) &&
           (str_eq(operation, STR("Apply")) ||
            str_eq(tree_text_at(entry, "apiVersion"), q->api_version));
}

static struct tree *entry_new(struct arena *a, const struct apply_request *q, struct str manager,
                              struct str operation, struct tree *set)
{
    struct tree *entry = tree_obj(a);
    tree_set(a, entry, STR("manager"), tree_str(a, manager));
    tree_set(a, entry, STR("operation"), tree_str(a, operation));
    tree_set(a, entry, STR("apiVersion"), tree_str(a, q->api_version));
    tree_set(a, entry, STR("time"), tree_str(a, q->time));
    tree_set(a, entry, STR("fieldsType"), tree_str(a, STR("FieldsV1")));
    tree_set(a, entry, STR("fieldsV1"), set);
    return entry;
}

static int entry_compare(const void *left, const void *right)
{
    static const char *const order[] = { "operation", "time", "manager", "apiVersion",
                                         "subresource" };
    const struct tree *x = *(const struct tree *const *)left;
    const struct tree *y = *(const struct tree *const *)right;
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        int c = str_cmp(tree_text_at(x, order[i]), tree_text_at(y, order[i]));
        if (c != 0) {
            return c;
        }
    }
    return 0;
}

/* Puts the entries that still own something in their order into the object. */
static void managed_entries_write(struct arena *a, struct tree *object, const struct tree *entries)
{
    const struct tree **list = ARENA_ARRAY(a, const struct tree *, entries->n + 1u);
    uint32_t n = 0;
    TREE_EACH (entries, entry) {
        if (!fieldset_empty(tree_get(entry, STR("fieldsV1")))) {
            list[n++] = entry;
        }
    }
    qsort(list, n, sizeof(struct tree *), entry_compare);
    struct tree *out = tree_arr(a);
    for (uint32_t i = 0; i < n; i++) {
        tree_add(out, tree_clone(a, list[i]));
    }
    if (n > 0) {
        tree_set_at(a, object, MANAGED_FIELDS, out);
    } else {
        (void)tree_del_at(object, MANAGED_FIELDS); /* absent is as good */
    }
}

/* The recorded owners; on the first apply, existing fields belong to whoever made the object. */
static struct tree *managed_entries_read(const struct apply_request *q, struct arena *a,
                                         const struct tree *live)
{
    const struct tree *recorded = tree_at(live, MANAGED_FIELDS);
    if (tree_kind(recorded) == JARR && recorded->n > 0) {
        return tree_clone(a, recorded);
    }
    struct tree *entries = tree_arr(a);
    if (live != NULL) {
        struct tree *set = fieldset_of(q->types, q->schema, a, live, FIELDSET_ADDED);
        if (q->has_status) {
            (void)tree_del(set, STR("f:status")); /* who wrote the status is not known */
        }
        struct str creator = q->creator.n > 0 ? q->creator : STR("before-first-apply");
        tree_add(entries, entry_new(a, q, creator, STR("Update"), set));
    }
    return entries;
}

struct apply_conflicts {
    struct arena *a;
    struct schema_causes *causes;
    struct buf lines;
    struct str manager; /* of the entry being listed, as messages name it */
};

static void apply_conflict_add(void *ctx, struct str path)
{
    struct apply_conflicts *c = ctx;
    schema_cause_add(c->causes, c->a, "FieldManagerConflict", path,
                     arena_concat(c->a, STR("conflict with "), c->manager));
    buf_printf(&c->lines, "\n- " STR_FMT, STR_ARG(path));
}

static struct str entry_manager_text(struct arena *a, const struct tree *entry)
{
    struct str text = arena_printf(a, "\"" STR_FMT "\"", STR_ARG(tree_text_at(entry, "manager")));
    struct str subresource = tree_text_at(entry, "subresource");
    if (subresource.n > 0) {
        text = arena_printf(a, STR_FMT " with subresource \"" STR_FMT "\"", STR_ARG(text),
                            STR_ARG(subresource));
    }
    if (str_eq(tree_text_at(entry, "operation"), STR("Update"))) {
        text = arena_printf(a, STR_FMT " using " STR_FMT, STR_ARG(text),
                            STR_ARG(tree_text_at(entry, "apiVersion")));
    }
    return text;
}

/* Lists what `changed` takes from others; 0 when there is nothing. */
static int apply_find_conflicts(const struct apply_request *q, struct arena *a,
                                const struct tree *entries, const struct tree *changed,
                                struct schema_causes *ret_causes, struct str *ret_message)
{
    struct apply_conflicts c = { .a = a, .causes = ret_causes };
    TREE_EACH (entries, entry) {
        struct tree *both = fieldset_intersection(a, tree_get(entry, STR("fieldsV1")), changed);
        if (entry_is(entry, q, STR("Apply")) || fieldset_empty(both)) {
            continue;
        }
        c.manager = entry_manager_text(a, entry);
        buf_printf(&c.lines, "%sconflicts with " STR_FMT ":", c.lines.n > 0 ? "\n" : "",
                   STR_ARG(c.manager));
        fieldset_paths(both, a, apply_conflict_add, &c);
    }
    if (ret_causes->n == 1) {
        *ret_message = arena_printf(a, "Apply failed with 1 conflict: " STR_FMT ": " STR_FMT,
                                    STR_ARG(ret_causes->items[0].message),
                                    STR_ARG(ret_causes->items[0].field));
    } else if (ret_causes->n > 1) {
        *ret_message = arena_printf(a, "Apply failed with %u conflicts: " STR_FMT, ret_causes->n,
                                    STR_ARG(buf_str(&c.lines)));
    }
    buf_done(&c.lines);
    return ret_causes->n > 0 ? -ERR_CONFLICT : 0;
}

/* The part of a configuration that this URL may set: all but the status, or the status alone. */
static struct tree *apply_scope(const struct apply_request *q, struct arena *a,
                                const struct tree *configuration)
{
    struct tree *part = tree_clone(a, configuration);
    if (q->subresource.n == 0) {
        if (q->has_status) {
            (void)tree_del(part, STR("status")); /* absent is as good */
        }
        return part;
    }
    TREE_EACH (part, member) {
        bool stays = str_eq(member->key, STR("apiVersion")) || str_eq(member->key, STR("kind")) ||
                     str_eq(member->key, q->subresource);
        if (!stays) {
            (void)tree_del(part, member->key);
        }
    }
    return part;
}

static int apply_check_unknown(const struct apply_request *q, struct arena *a,
                               const struct tree *configuration, struct err *err)
{
    struct schema_paths unknown = { 0 };
    schema_prune(q->types, q->schema, 0, a, tree_clone(a, configuration), &unknown);
    if (unknown.n == 0) {
        return 0;
    }
    bool core = str_find_char(q->api_version, '/') == SIZE_MAX;
    return err_set(err, ERR_PROTO,
                   "failed to create typed patch object (" STR_FMT "/" STR_FMT "; %s" STR_FMT
                   ", Kind=" STR_FMT "): ." STR_FMT ": field not declared in schema",
                   STR_ARG(tree_text_at(configuration, "metadata.namespace")),
                   STR_ARG(tree_text_at(configuration, "metadata.name")), core ? "/" : "",
                   STR_ARG(q->api_version), STR_ARG(tree_text_at(configuration, "kind")),
                   STR_ARG(unknown.items[0]));
}

/* All fields that must stay: those of other entries and those the applier now owns. */
static struct tree *apply_kept_fields(const struct apply_request *q, struct arena *a,
                                      const struct tree *entries, const struct tree *set)
{
    struct tree *kept = tree_clone(a, set);
    TREE_EACH (entries, entry) {
        if (!entry_is(entry, q, STR("Apply"))) {
            kept = fieldset_union(a, kept, tree_get(entry, STR("fieldsV1")));
        }
    }
    return kept;
}

static void managed_entries_update(const struct apply_request *q, struct arena *a,
                                   struct tree *entries, struct tree *set, const struct tree *lost)
{
    bool found = false;
    TREE_EACH (entries, entry) {
        const struct tree *owned = tree_get(entry, STR("fieldsV1"));
        if (!entry_is(entry, q, STR("Apply"))) {
            tree_set(a, entry, STR("fieldsV1"), fieldset_difference(a, owned, lost));
            continue;
        }
        found = true;
        if (!tree_eq(owned, set)) { /* applying the same again leaves the time as it was */
            tree_set(a, entry, STR("time"), tree_str(a, q->time));
            tree_set(a, entry, STR("apiVersion"), tree_str(a, q->api_version));
        }
        tree_set(a, entry, STR("fieldsV1"), tree_clone(a, set));
    }
    if (!found) {
        struct tree *entry = entry_new(a, q, q->manager, STR("Apply"), set);
        if (q->subresource.n > 0) {
            tree_set(a, entry, STR("subresource"), tree_str(a, q->subresource));
        }
        tree_add(entries, entry);
    }
}

int apply_merge(const struct apply_request *q, struct arena *a, const struct tree *live,
                const struct tree *configuration, struct tree **ret,
                struct schema_causes *ret_causes, struct str *ret_message, struct err *err)
{
    if (tree_kind(configuration) != JOBJ) {
        return err_set(err, ERR_INVALID, "error decoding YAML: an object is expected");
    }
    const struct tree *managed = tree_at(configuration, MANAGED_FIELDS);
    if (tree_kind(managed) != JNULL) {
        return err_set(err, ERR_INVALID, "metadata.managedFields must be nil");
    }
    int r = apply_check_unknown(q, a, configuration, err);
    if (r < 0) {
        return r;
    }
    struct tree *part = apply_scope(q, a, configuration);
    struct tree *set = fieldset_of(q->types, q->schema, a, part, FIELDSET_APPLIED);
    struct tree *entries = managed_entries_read(q, a, live);
    struct tree *last = tree_obj(a);
    TREE_EACH (entries, entry) {
        if (entry_is(entry, q, STR("Apply"))) {
            last = tree_clone(a, tree_get(entry, STR("fieldsV1")));
        }
    }
    struct tree *object = live == NULL ? part : merge_value(q, a, q->schema, live, part);
    struct tree *kept = apply_kept_fields(q, a, entries, set);
    drop_fields(q, a, q->schema, object, fieldset_difference(a, last, kept), kept);

    struct tree *changed;
    struct tree *removed;
    const struct tree *before = live != NULL ? live : tree_obj(a);
    fieldset_compare(q->types, q->schema, a, before, object, &changed, &removed);
    r = q->force ? 0 : apply_find_conflicts(q, a, entries, changed, ret_causes, ret_message);
    if (r < 0) {
        return err_set(err, ERR_CONFLICT, "apply conflicts with %u fields", ret_causes->n);
    }
    managed_entries_update(q, a, entries, set, fieldset_union(a, changed, removed));
    managed_entries_write(a, object, entries);
    *ret = object;
    return 0;
}

void apply_track(const struct apply_request *q, struct arena *a, const struct tree *old,
                 struct tree *now)
{
    const struct tree *given = tree_at(now, MANAGED_FIELDS);
    const struct tree *recorded = tree_at(old, MANAGED_FIELDS);
    bool reset = tree_kind(given) == JARR && given->n == 1 && tree_first(given)->n == 0;
    if (tree_kind(recorded) != JARR || recorded->n == 0 || reset) {
        (void)tree_del_at(now, MANAGED_FIELDS); /* absent is as good */
        return;
    }
    bool edited = tree_kind(given) == JARR && given->n > 0; /* kubectl moves ownership by hand */
    struct tree *entries = tree_clone(a, edited ? given : recorded);
    struct tree *changed;
    struct tree *removed;
    fieldset_compare(q->types, q->schema, a, old, now, &changed, &removed);
    struct tree *lost = fieldset_union(a, changed, removed);
    struct tree *mine = NULL;
    TREE_EACH (entries, entry) {
        const struct tree *owned = tree_get(entry, STR("fieldsV1"));
        struct tree *rest = fieldset_difference(a, owned, lost);
        if (entry_is(entry, q, STR("Update"))) {
            mine = entry;
            rest = fieldset_union(a, fieldset_difference(a, owned, removed), changed);
            if (!tree_eq(rest, owned)) {
                tree_set(a, entry, STR("time"), tree_str(a, q->time));
            }
        }
        tree_set(a, entry, STR("fieldsV1"), rest);
    }
    if (mine == NULL && !fieldset_empty(changed)) {
        struct tree *entry = entry_new(a, q, q->manager, STR("Update"), changed);
        if (q->subresource.n > 0) {
            tree_set(a, entry, STR("subresource"), tree_str(a, q->subresource));
        }
        tree_add(entries, entry);
    }
    managed_entries_write(a, now, entries);
}
