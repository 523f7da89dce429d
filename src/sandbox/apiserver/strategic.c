#include "sandbox/apiserver/strategic.h"

#include "sandbox/apiserver/go_quote.h"

#define DIRECTIVE_PATCH STR("$patch")
#define DIRECTIVE_RETAIN_KEYS STR("$retainKeys")
#define DIRECTIVE_DELETE STR("$deleteFromPrimitiveList/")
#define DIRECTIVE_ORDER STR("$setElementOrder/")

struct strategic_ctx {
    struct types *types;
    struct arena *a;
    struct err *err;
};

struct items {
    struct tree **list;
    uint32_t n;
};

static bool is_directive(struct str key)
{
    return str_eq(key, DIRECTIVE_PATCH) || str_eq(key, DIRECTIVE_RETAIN_KEYS) ||
           str_starts(key, DIRECTIVE_DELETE) || str_starts(key, DIRECTIVE_ORDER);
}

static void tree_clear(struct tree *t)
{
    t->first = NULL;
    t->last = NULL;
    t->n = 0;
}

/* A patch's value as it is stored where nothing was before: no nulls, no directives. */
static struct tree *patch_without_directives(struct arena *a, const struct tree *patch)
{
    if (patch->kind == JOBJ) {
        struct tree *out = tree_obj(a);
        TREE_EACH (patch, member) {
            if (member->kind != JNULL && !is_directive(member->key)) {
                tree_set(a, out, member->key, patch_without_directives(a, member));
            }
        }
        return out;
    }
    if (patch->kind == JARR) {
        struct tree *out = tree_arr(a);
        TREE_EACH (patch, item) {
            if (tree_get(item, DIRECTIVE_PATCH) == NULL) {
                tree_add(out, patch_without_directives(a, item));
            }
        }
        return out;
    }
    return tree_clone(a, patch);
}

static bool same_element(const struct tree *left, const struct tree *right, struct str key)
{
    if (key.n == 0) {
        return tree_eq(left, right);
    }
    const struct tree *a = tree_get(left, key);
    return a != NULL && tree_eq(a, tree_get(right, key));
}

static uint32_t element_index(const struct tree *list, const struct tree *element, struct str key)
{
    uint32_t i = 0;
    TREE_EACH (list, item) {
        if (same_element(item, element, key)) {
            return i;
        }
        i++;
    }
    return UINT32_MAX;
}

/* The elements of `merged` that `order` names, in that order; then, in `*ret_rest`, the others. */
static struct items pick_items(struct strategic_ctx *m, const struct tree *merged,
                               const struct tree *order, struct str key, struct items *ret_rest)
{
    struct items named = { .list = ARENA_ARRAY(m->a, struct tree *, merged->n + 1u) };
    struct items rest = { .list = ARENA_ARRAY(m->a, struct tree *, merged->n + 1u) };
    bool *taken = ARENA_ARRAY(m->a, bool, merged->n + 1u);
    TREE_EACH (order, wanted) {
        uint32_t i = 0;
        TREE_EACH (merged, item) {
            if (!taken[i] && same_element(item, wanted, key)) {
                taken[i] = true;
                named.list[named.n++] = item;
            }
            i++;
        }
    }
    uint32_t i = 0;
    TREE_EACH (merged, item) {
        if (!taken[i++]) {
            rest.list[rest.n++] = item;
        }
    }
    *ret_rest = rest;
    return named;
}

/* Puts `merged` into the order the patch asks for, weaving in what only the server has. */
static void sort_items(struct strategic_ctx *m, struct tree *merged, const struct tree *order,
                       const struct tree *before, struct str key)
{
    struct items rest;
    struct items named = pick_items(m, merged, order, key, &rest);
    tree_clear(merged);
    uint32_t i = 0;
    uint32_t j = 0;
    while (i < rest.n || j < named.n) {
        bool take_rest = j >= named.n;
        if (i < rest.n && j < named.n) {
            uint32_t left = element_index(before, rest.list[i], key);
            uint32_t right = element_index(before, named.list[j], key);
            take_rest = left != UINT32_MAX && right != UINT32_MAX && left < right;
        }
        tree_add(merged, take_rest ? rest.list[i++] : named.list[j++]);
    }
}

static int merge_object(struct strategic_ctx *m, const struct tree *schema, struct tree *into,
                        const struct tree *patch);

static int merge_elements(struct strategic_ctx *m, const struct tree *schema, struct tree *into,
                          const struct tree *patch, struct str key)
{
    const struct tree *item_schema = types_item(m->types, schema);
    TREE_EACH (patch, item) {
        if (item->kind != JOBJ) {
            return err_set(m->err, ERR_PROTO, "list element types are not identical");
        }
        struct str directive = tree_text(tree_get(item, DIRECTIVE_PATCH));
        if (str_eq(directive, STR("replace"))) {
            continue; /* the caller has emptied the list */
        }
        if (tree_get(item, key) == NULL) {
            return err_set(m->err, ERR_PROTO,
                           "map: " STR_FMT " does not contain declared merge key: " STR_FMT,
                           STR_ARG(go_print(m->a, item)), STR_ARG(key));
        }
        bool found = false;
        TREE_EACH (into, old) {
            if (!same_element(old, item, key)) {
                continue;
            }
            if (str_eq(directive, STR("delete"))) {
                tree_remove(into, old);
                continue;
            }
            found = true;
            int r = merge_object(m, item_schema, old, item);
            if (r < 0) {
                return r;
            }
            break;
        }
        if (!found && directive.n == 0) {
            tree_add(into, patch_without_directives(m->a, item));
        }
    }
    return 0;
}

static bool patch_replaces_list(const struct tree *patch)
{
    TREE_EACH (patch, item) {
        if (str_eq(tree_text(tree_get(item, DIRECTIVE_PATCH)), STR("replace"))) {
            return true;
        }
    }
    return false;
}

/* `order` is what $setElementOrder says, or NULL. */
static int merge_list(struct strategic_ctx *m, const struct tree *schema, struct tree *into,
                      const struct tree *patch, const struct tree *order)
{
    struct str key = tree_text(tree_get(schema, STR("x-kubernetes-patch-merge-key")));
    struct tree *before = tree_clone(m->a, into);
    if (key.n > 0) {
        if (patch_replaces_list(patch)) {
            tree_clear(into);
        }
        int r = merge_elements(m, schema, into, patch, key);
        if (r < 0) {
            return r;
        }
    } else {
        TREE_EACH (patch, item) {
            if (element_index(into, item, key) == UINT32_MAX) {
                tree_add(into, tree_clone(m->a, item));
            }
        }
    }
    sort_items(m, into, order != NULL ? order : patch, before, key);
    return 0;
}

static bool schema_merges_list(const struct tree *schema)
{
    struct str strategies = tree_text(tree_get(schema, STR("x-kubernetes-patch-strategy")));
    struct str one;
    while (strategies.n > 0 && str_split_next(&strategies, ',', &one)) {
        if (str_eq(one, STR("merge"))) {
            return true;
        }
    }
    return false;
}

static bool list_contains_text(const struct tree *list, struct str text)
{
    TREE_EACH (list, item) {
        if (str_eq(tree_text(item), text)) {
            return true;
        }
    }
    return false;
}

static int retain_keys(struct strategic_ctx *m, struct tree *into, const struct tree *patch)
{
    const struct tree *keys = tree_get(patch, DIRECTIVE_RETAIN_KEYS);
    if (keys == NULL) {
        return 0;
    }
    TREE_EACH (patch, member) {
        if (member->kind != JNULL && !is_directive(member->key) &&
            !list_contains_text(keys, member->key)) {
            return err_set(m->err, ERR_INVALID, "invalid patch format of retainKeys");
        }
    }
    if (keys->kind != JARR) {
        return err_set(m->err, ERR_INVALID, "invalid patch format of retainKeys");
    }
    TREE_EACH (into, member) {
        if (!list_contains_text(keys, member->key)) {
            (void)tree_del(into, member->key);
        }
    }
    return 0;
}

static int merge_member(struct strategic_ctx *m, const struct tree *schema, struct tree *into,
                        const struct tree *member, const struct tree *order)
{
    struct tree *old = tree_get(into, member->key);
    if (member->kind == JNULL) {
        (void)tree_del(into, member->key);
        return 0;
    }
    if (old == NULL || old->kind != member->kind) {
        tree_set(m->a, into, member->key, patch_without_directives(m->a, member));
        return 0;
    }
    if (member->kind == JOBJ) {
        return merge_object(m, schema, old, member);
    }
    if (member->kind == JARR && schema_merges_list(schema)) {
        return merge_list(m, schema, old, member, order);
    }
    struct tree *value = tree_clone(m->a, member);
    if (member->kind == JARR) {
        tree_clear(value); /* an atomic list keeps each element, whatever directive it carries */
        TREE_EACH (member, item) {
            tree_add(value, patch_without_directives(m->a, item));
        }
    }
    tree_set(m->a, into, member->key, value);
    return 0;
}

static void delete_primitives(struct tree *into, struct str name, const struct tree *values)
{
    struct tree *list = tree_get(into, name);
    TREE_EACH (list, item) {
        if (element_index(values, item, STR_NONE) != UINT32_MAX) {
            tree_remove(list, item);
        }
    }
}

/* An order without a list of its own moves what is there. */
static void apply_order(struct strategic_ctx *m, const struct tree *schema, struct tree *into,
                        struct str name, const struct tree *order)
{
    struct tree *list = tree_get(into, name);
    if (list == NULL || list->kind != JARR) {
        return;
    }
    struct str key = tree_text(tree_get(schema, STR("x-kubernetes-patch-merge-key")));
    sort_items(m, list, order, tree_clone(m->a, list), key);
}

static int merge_object(struct strategic_ctx *m, const struct tree *schema, struct tree *into,
                        const struct tree *patch)
{
    const struct tree *directive = tree_get(patch, DIRECTIVE_PATCH);
    if (directive != NULL) {
        struct str text = tree_text(directive);
        bool replace = str_eq(text, STR("replace"));
        if (!replace && !str_eq(text, STR("delete"))) {
            return err_set(m->err, ERR_PROTO, "unknown patch type: " STR_FMT " in map: " STR_FMT,
                           STR_ARG(go_print(m->a, directive)), STR_ARG(go_print(m->a, patch)));
        }
        tree_clear(into);
        TREE_EACH (replace ? patch_without_directives(m->a, patch) : NULL, member) {
            tree_set(m->a, into, member->key, member);
        }
        return 0;
    }
    int r = retain_keys(m, into, patch);
    if (r < 0) {
        return r;
    }
    TREE_EACH (patch, member) {
        struct str name;
        if (str_cut_prefix(member->key, DIRECTIVE_DELETE, &name)) {
            delete_primitives(into, name, member);
        } else if (str_cut_prefix(member->key, DIRECTIVE_ORDER, &name)) {
            if (tree_get(patch, name) == NULL) {
                apply_order(m, types_member(m->types, schema, name), into, name, member);
            }
        } else if (!is_directive(member->key)) {
            struct str order = arena_concat(m->a, DIRECTIVE_ORDER, member->key);
            r = merge_member(m, types_member(m->types, schema, member->key), into, member,
                             tree_get(patch, order));
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

int strategic_merge(struct types *types, const struct tree *schema, struct arena *a,
                    struct tree *object, const struct tree *patch, struct err *err)
{
    ASSERT(object->kind == JOBJ);
    if (patch->kind != JOBJ) {
        return err_set(err, ERR_INVALID, "a strategic merge patch must be an object");
    }
    struct strategic_ctx m = { .types = types, .a = a, .err = err };
    return merge_object(&m, schema, object, patch);
}
