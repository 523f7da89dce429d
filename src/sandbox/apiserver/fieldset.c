#include "sandbox/apiserver/fieldset.h"

#include "sandbox/apiserver/go_quote.h"

#define FIELDSET_SELF STR(".")

struct fieldset_ctx {
    struct types *types;
    struct arena *a;
};

enum fieldset_shape fieldset_shape(struct types *types, const struct tree *schema,
                                   const struct tree *value)
{
    const struct tree *own = types_resolve(types, schema);
    if (value->kind == JOBJ) {
        struct str type = tree_text(tree_get(own, STR("x-kubernetes-map-type")));
        return str_eq(type, STR("atomic")) ? FIELDSET_LEAF : FIELDSET_MAP;
    }
    if (value->kind != JARR) {
        return FIELDSET_LEAF;
    }
    struct str type = tree_text(tree_get(own, STR("x-kubernetes-list-type")));
    if (str_eq(type, STR("set"))) {
        return FIELDSET_SET;
    }
    return str_eq(type, STR("map")) ? FIELDSET_KEYED_LIST : FIELDSET_LEAF;
}

struct str fieldset_item_key(struct types *types, const struct tree *schema, struct arena *a,
                             const struct tree *item)
{
    const struct tree *own = types_resolve(types, schema);
    const struct tree *names = tree_get(own, STR("x-kubernetes-list-map-keys"));
    if (names == NULL) {
        return arena_concat(a, STR("v:"), tree_json(a, item));
    }
    struct tree *key = tree_obj(a);
    TREE_EACH (names, name) {
        const struct tree *value = tree_get(item, tree_text(name));
        if (value == NULL) {
            const struct tree *described =
                types_member(types, types_item(types, own), tree_text(name));
            value = tree_get(described, STR("default"));
        }
        if (value != NULL) {
            tree_set(a, key, tree_text(name), tree_clone(a, value));
        }
    }
    return arena_concat(a, STR("k:"), go_quote_value(a, key));
}

static struct str member_key(struct arena *a, struct str name)
{
    return arena_concat(a, STR("f:"), name);
}

bool fieldset_has(const struct tree *node)
{
    return node != NULL && (node->n == 0 || tree_get(node, FIELDSET_SELF) != NULL);
}

bool fieldset_empty(const struct tree *set)
{
    return set == NULL || set->n == 0;
}

static struct tree *set_node_new(struct arena *a, bool member)
{
    struct tree *node = tree_obj(a);
    if (member) {
        tree_set(a, node, FIELDSET_SELF, tree_obj(a));
    }
    return node;
}

/* A node as it is written: nothing but itself is {}, nothing at all is NULL. */
static struct tree *set_node_finish(struct tree *node, bool member)
{
    if (node->n == (member ? 1u : 0u)) {
        (void)tree_del(node, FIELDSET_SELF); /* absent when it is no member */
        return member ? node : NULL;
    }
    return node;
}

/* Structs that Go writes even when nothing is in them are never added: they were there before. */
static bool is_identity_field(struct str name)
{
    static const char *const names[] = { "metadata", "spec",           "status",      "template",
                                         "strategy", "updateStrategy", "jobTemplate", "resources" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(name, str_from(names[i]))) {
            return true;
        }
    }
    return false;
}

static bool is_reference(const struct tree *schema)
{
    return tree_get(schema, STR("allOf")) != NULL;
}

static struct tree *value_fields(struct fieldset_ctx *w, const struct tree *schema,
                                 const struct tree *value, enum fieldset_mode mode, bool member)
{
    struct arena *a = w->a;
    enum fieldset_shape shape = fieldset_shape(w->types, schema, value);
    if (shape == FIELDSET_LEAF || value->n == 0) {
        return tree_obj(a);
    }
    struct tree *node = set_node_new(a, member);
    TREE_EACH (value, child) {
        if (child->kind == JNULL) {
            continue;
        }
        struct tree *below;
        struct str key;
        if (shape == FIELDSET_MAP) {
            const struct tree *described = types_member(w->types, schema, child->key);
            bool there = is_reference(described) && is_identity_field(child->key);
            key = member_key(a, child->key);
            below = value_fields(w, described, child, mode,
                                 described == NULL || (mode == FIELDSET_ADDED && !there));
        } else {
            key = fieldset_item_key(w->types, schema, a, child);
            below = value_fields(w, types_item(w->types, schema), child, mode, /* member= */ true);
        }
        if (below != NULL) {
            tree_set(a, node, key, below);
        }
    }
    return set_node_finish(node, member);
}

/* What identifies the object, and what only the server writes. */
static void strip_identity(struct tree *set)
{
    static const char *const own[] = { "name",
                                       "namespace",
                                       "uid",
                                       "generation",
                                       "resourceVersion",
                                       "creationTimestamp",
                                       "selfLink",
                                       "managedFields",
                                       "deletionTimestamp",
                                       "clusterName",
                                       "deletionGracePeriodSeconds" };
    (void)tree_del(set, STR("f:apiVersion")); /* absent is as good, here and below */
    (void)tree_del(set, STR("f:kind"));
    struct tree *metadata = tree_get(set, STR("f:metadata"));
    TREE_EACH (metadata, child) {
        for (size_t i = 0; i < ARRAY_LEN(own); i++) {
            struct str name;
            if (str_cut_prefix(child->key, STR("f:"), &name) && str_eq(name, str_from(own[i]))) {
                (void)tree_del(metadata, child->key);
                break;
            }
        }
    }
    (void)tree_del(metadata, FIELDSET_SELF);
    if (metadata != NULL && metadata->n == 0) {
        (void)tree_del(set, STR("f:metadata"));
    }
}

struct tree *fieldset_of(struct types *types, const struct tree *schema, struct arena *a,
                         const struct tree *object, enum fieldset_mode mode)
{
    struct fieldset_ctx w = { .types = types, .a = a };
    struct tree *set = value_fields(&w, schema, object, mode, /* member= */ false);
    if (set == NULL) {
        return tree_obj(a);
    }
    strip_identity(set);
    return set;
}

struct field_changes {
    struct tree *changed;
    struct tree *removed;
};

static void compare_value(struct fieldset_ctx *w, const struct tree *schema, const struct tree *old,
                          const struct tree *now, struct field_changes *ret);

/* One element of a map or list, on either side or both. */
static void compare_child(struct fieldset_ctx *w, const struct tree *schema, struct str key,
                          const struct tree *old, const struct tree *now, struct field_changes *ret)
{
    struct str name;
    bool there =
        str_cut_prefix(key, STR("f:"), &name) && is_reference(schema) && is_identity_field(name);
    old = tree_kind(old) == JNULL ? NULL : old;
    now = tree_kind(now) == JNULL ? NULL : now;
    if (old == NULL && now == NULL) {
        return;
    }
    struct field_changes below = { 0 };
    if (old == NULL) {
        below.changed = value_fields(w, schema, now, FIELDSET_ADDED, !there);
    } else if (now == NULL) {
        below.removed = value_fields(w, schema, old, FIELDSET_ADDED, !there);
    } else {
        below = (struct field_changes){ .changed = tree_obj(w->a), .removed = tree_obj(w->a) };
        enum fieldset_shape shape = fieldset_shape(w->types, schema, now);
        if (shape == FIELDSET_LEAF || shape != fieldset_shape(w->types, schema, old)) {
            below.removed = NULL;
            below.changed = tree_eq(old, now) ? NULL : below.changed;
        } else {
            compare_value(w, schema, old, now, &below);
            below.changed = below.changed->n > 0 ? below.changed : NULL;
            below.removed = below.removed->n > 0 ? below.removed : NULL;
        }
    }
    if (below.changed != NULL) {
        tree_set(w->a, ret->changed, key, below.changed);
    }
    if (below.removed != NULL) {
        tree_set(w->a, ret->removed, key, below.removed);
    }
}

static const struct tree *item_find(struct fieldset_ctx *w, const struct tree *schema,
                                    const struct tree *list, struct str key)
{
    TREE_EACH (list, item) {
        if (str_eq(fieldset_item_key(w->types, schema, w->a, item), key)) {
            return item;
        }
    }
    return NULL;
}

static void compare_value(struct fieldset_ctx *w, const struct tree *schema, const struct tree *old,
                          const struct tree *now, struct field_changes *ret)
{
    bool map = now->kind == JOBJ;
    const struct tree *item_schema = map ? NULL : types_item(w->types, schema);
    TREE_EACH (now, child) {
        struct str key =
            map ? member_key(w->a, child->key) : fieldset_item_key(w->types, schema, w->a, child);
        const struct tree *before =
            map ? tree_get(old, child->key) : item_find(w, schema, old, key);
        compare_child(w, map ? types_member(w->types, schema, child->key) : item_schema, key,
                      before, child, ret);
    }
    TREE_EACH (old, child) {
        struct str key =
            map ? member_key(w->a, child->key) : fieldset_item_key(w->types, schema, w->a, child);
        if ((map ? tree_get(now, child->key) : item_find(w, schema, now, key)) == NULL) {
            compare_child(w, map ? types_member(w->types, schema, child->key) : item_schema, key,
                          child, NULL, ret);
        }
    }
}

void fieldset_compare(struct types *types, const struct tree *schema, struct arena *a,
                      const struct tree *old, const struct tree *now, struct tree **ret_changed,
                      struct tree **ret_removed)
{
    struct fieldset_ctx w = { .types = types, .a = a };
    struct field_changes c = { .changed = tree_obj(a), .removed = tree_obj(a) };
    compare_value(&w, schema, old, now, &c);
    strip_identity(c.changed);
    strip_identity(c.removed);
    *ret_changed = c.changed;
    *ret_removed = c.removed;
}

enum fieldset_op { FIELDSET_UNION, FIELDSET_DIFFERENCE, FIELDSET_INTERSECTION };

static bool op_keeps(enum fieldset_op op, bool x, bool y)
{
    switch (op) {
    case FIELDSET_UNION:
        return x || y;
    case FIELDSET_DIFFERENCE:
        return x && !y;
    default:
        return x && y;
    }
}

static struct tree *combine(struct arena *a, const struct tree *x, const struct tree *y,
                            enum fieldset_op op, bool root)
{
    bool member = !root && op_keeps(op, fieldset_has(x), fieldset_has(y));
    struct tree *node = set_node_new(a, member);
    TREE_EACH (x, child) {
        if (!str_eq(child->key, FIELDSET_SELF)) {
            struct tree *below = combine(a, child, tree_get(y, child->key), op, /* root= */ false);
            if (below != NULL) {
                tree_set(a, node, child->key, below);
            }
        }
    }
    TREE_EACH (op == FIELDSET_UNION ? y : NULL, child) {
        if (!str_eq(child->key, FIELDSET_SELF) && tree_get(x, child->key) == NULL) {
            tree_set(a, node, child->key, tree_clone(a, child));
        }
    }
    struct tree *done = set_node_finish(node, member);
    return done == NULL && root ? tree_obj(a) : done;
}

struct tree *fieldset_union(struct arena *a, const struct tree *x, const struct tree *y)
{
    return combine(a, x, y, FIELDSET_UNION, /* root= */ true);
}

struct tree *fieldset_difference(struct arena *a, const struct tree *x, const struct tree *y)
{
    return combine(a, x, y, FIELDSET_DIFFERENCE, /* root= */ true);
}

struct tree *fieldset_intersection(struct arena *a, const struct tree *x, const struct tree *y)
{
    return combine(a, x, y, FIELDSET_INTERSECTION, /* root= */ true);
}

static struct str element_text(struct arena *a, struct str key)
{
    struct str rest;
    struct tree *value;
    struct err err;
    if (str_cut_prefix(key, STR("v:"), &rest)) {
        return arena_printf(a, "[=" STR_FMT "]", STR_ARG(rest));
    }
    if (!str_cut_prefix(key, STR("k:"), &rest) || tree_parse(rest, a, &value, &err) < 0) {
        return arena_printf(
            a, "." STR_FMT,
            STR_ARG(str_sub(key, MIN(key.n, (size_t)2), key.n - MIN(key.n, (size_t)2))));
    }
    CLEANUP(buf_done)
    struct buf b = { 0 };
    TREE_EACH (value, part) {
        buf_printf(&b, "%s" STR_FMT "=" STR_FMT, b.n > 0 ? "," : "", STR_ARG(part->key),
                   STR_ARG(go_quote_value(a, part)));
    }
    return arena_printf(a, "[" STR_FMT "]", STR_ARG(buf_str(&b)));
}

static int key_compare(const void *left, const void *right)
{
    const struct tree *const *x = left;
    const struct tree *const *y = right;
    return str_cmp((*x)->key, (*y)->key);
}

static void paths_below(const struct tree *set, struct arena *a, struct str path,
                        void (*on_path)(void *ctx, struct str path), void *ctx)
{
    const struct tree **list = ARENA_ARRAY(a, const struct tree *, set->n + 1u);
    uint32_t n = 0;
    TREE_EACH (set, child) {
        if (!str_eq(child->key, FIELDSET_SELF)) {
            list[n++] = child;
        }
    }
    qsort(list, n, sizeof(struct tree *), key_compare);
    for (uint32_t i = 0; i < n; i++) {
        if (fieldset_has(list[i])) {
            on_path(ctx, arena_concat(a, path, element_text(a, list[i]->key)));
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        paths_below(list[i], a, arena_concat(a, path, element_text(a, list[i]->key)), on_path, ctx);
    }
}

void fieldset_paths(const struct tree *set, struct arena *a,
                    void (*on_path)(void *ctx, struct str path), void *ctx)
{
    paths_below(set, a, STR(""), on_path, ctx);
}
