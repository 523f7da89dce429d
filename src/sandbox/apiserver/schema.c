#include "sandbox/apiserver/schema.h"

#include "sandbox/apiserver/go_quote.h"

static struct str path_member(struct arena *a, struct str path, struct str key)
{
    return arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(path), path.n > 0 ? "." : "",
                        STR_ARG(key));
}

static struct str path_item(struct arena *a, struct str path, uint32_t i)
{
    return arena_printf(a, STR_FMT "[%u]", STR_ARG(path), i);
}

/* Where the pruning is, as a chain on the stack: it is printed only for what is unknown. */
struct prune_path {
    const struct prune_path *up;
    struct str key; /* "" = an element */
    uint32_t i;
};

struct prune {
    struct types *types;
    struct arena *a;
    unsigned flags;
    struct schema_paths *unknown;
};

static struct str prune_path_print(struct arena *a, const struct prune_path *path)
{
    if (path == NULL) {
        return STR("");
    }
    struct str above = prune_path_print(a, path->up);
    return path->key.p != NULL ? path_member(a, above, path->key) : path_item(a, above, path->i);
}

static void unknown_add(struct prune *p, const struct prune_path *path)
{
    struct schema_paths *u = p->unknown;
    ARENA_GROW(p->a, u->items, u->n, u->cap);
    u->items[u->n++] = prune_path_print(p->a, path);
}

/* Go keeps numbers as int64 or float64: 1.0 and 1e3 come back as 1 and 1000. */
static void number_normalise(struct arena *a, struct tree *number)
{
    int64_t whole;
    double f;
    if (str_to_i64(number->text, &whole) || !str_to_f64(number->text, &f)) {
        return;
    }
    CLEANUP(buf_done)
    struct buf b = { 0 };
    struct json_writer w = json_writer_on(&b);
    struct err err;
    if (jw_f64(&w, f, &err) == 0) {
        number->text = arena_str(a, buf_str(&b));
    }
}

static void schema_prune_value(struct prune *p, const struct tree *schema, struct tree *value,
                               const struct prune_path *path)
{
    if (value->kind == JNUM && (p->flags & SCHEMA_CUSTOM) != 0) {
        number_normalise(p->a, value);
    }
    if (value->kind == JARR) {
        struct prune_path at = { .up = path };
        TREE_EACH (value, item) {
            schema_prune_value(p, types_item(p->types, schema), item, &at);
            at.i++;
        }
    }
    if (value->kind != JOBJ) {
        return;
    }
    bool keeps = schema == NULL || types_keeps_unknown(p->types, schema);
    TREE_EACH (value, member) {
        struct prune_path at = { .up = path, .key = member->key };
        const struct tree *below = types_member(p->types, schema, member->key);
        if (below == NULL && !keeps) {
            unknown_add(p, &at);
            (void)tree_del(value, member->key);
        } else {
            schema_prune_value(p, below, member, &at);
        }
    }
}

static int path_compare(const void *left, const void *right)
{
    return str_cmp(*(const struct str *)left, *(const struct str *)right);
}

void schema_prune(struct types *types, const struct tree *schema, unsigned flags, struct arena *a,
                  struct tree *object, struct schema_paths *ret_unknown)
{
    struct prune p = { .types = types, .a = a, .flags = flags, .unknown = ret_unknown };
    schema_prune_value(&p, schema, object, NULL);
    if ((flags & SCHEMA_CUSTOM) != 0 && ret_unknown->n > 1) {
        qsort(ret_unknown->items, ret_unknown->n, sizeof(ret_unknown->items[0]), path_compare);
    }
}

struct str schema_unknown_text(struct arena *out, const struct schema_paths *unknown)
{
    CLEANUP(buf_done)
    struct buf b = { 0 };
    for (uint32_t i = 0; i < unknown->n; i++) {
        buf_printf(&b, "%sunknown field \"" STR_FMT "\"", i > 0 ? ", " : "",
                   STR_ARG(unknown->items[i]));
    }
    return arena_str(out, buf_str(&b));
}

static bool is_true(const struct tree *schema, struct str name)
{
    return tree_truth(tree_get(schema, name), false);
}

static bool has_type(const struct tree *schema)
{
    return tree_get(schema, STR("type")) != NULL ||
           is_true(schema, STR("x-kubernetes-int-or-string"));
}

static void schema_drop_nulls(struct types *types, const struct tree *schema, struct tree *value)
{
    if (schema == NULL) {
        return;
    }
    if (value->kind == JARR) {
        TREE_EACH (value, item) {
            schema_drop_nulls(types, types_item(types, schema), item);
        }
        return;
    }
    TREE_EACH (value, member) {
        const struct tree *below = types_member(types, schema, member->key);
        if (member->kind == JNULL && has_type(below) && !is_true(below, STR("nullable"))) {
            (void)tree_del(value, member->key);
        } else if (value->kind == JOBJ) {
            schema_drop_nulls(types, below, member);
        }
    }
}

static void schema_add_defaults(struct types *types, const struct tree *schema, struct arena *a,
                                struct tree *value)
{
    if (schema == NULL || tree_get(schema, STR("allOf")) != NULL) {
        return; /* object metadata has no defaults */
    }
    if (value->kind == JARR) {
        TREE_EACH (value, item) {
            schema_add_defaults(types, types_item(types, schema), a, item);
        }
    }
    if (value->kind != JOBJ) {
        return;
    }
    TREE_EACH (tree_get(schema, STR("properties")), property) {
        const struct tree *given = tree_get(property, STR("default"));
        if (given != NULL && tree_get(value, property->key) == NULL) {
            tree_set(a, value, property->key, tree_clone(a, given));
        }
    }
    TREE_EACH (value, member) {
        schema_add_defaults(types, types_member(types, schema, member->key), a, member);
    }
}

void schema_default(struct types *types, const struct tree *schema, struct arena *a,
                    struct tree *object)
{
    schema_drop_nulls(types, schema, object);
    schema_add_defaults(types, schema, a, object);
}
