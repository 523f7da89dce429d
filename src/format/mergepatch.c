#include "format/mergepatch.h"

/* A copy without the members that are null; elements of lists that are null stay. */
static struct tree *clone_pruned(struct arena *out, const struct tree *t)
{
    if (tree_kind(t) == JARR) {
        struct tree *copy = tree_arr(out);
        TREE_EACH (t, item) {
            tree_add(copy, clone_pruned(out, item));
        }
        return copy;
    }
    if (tree_kind(t) != JOBJ) {
        return tree_clone(out, t);
    }
    struct tree *copy = tree_obj(out);
    TREE_EACH (t, member) {
        if (member->kind != JNULL) {
            tree_set(out, copy, member->key, clone_pruned(out, member));
        }
    }
    return copy;
}

static void merge_members(struct arena *out, struct tree *doc, const struct tree *patch)
{
    TREE_EACH (patch, member) {
        struct tree *old = tree_get(doc, member->key);
        if (member->kind == JNULL) {
            (void)tree_del(doc, member->key); /* what is not there need not go */
        } else if (tree_kind(old) != JOBJ) {
            tree_set(out, doc, member->key, clone_pruned(out, member));
        } else if (member->kind != JOBJ) {
            tree_set(out, doc, member->key, tree_clone(out, member));
        } else {
            merge_members(out, old, member);
        }
    }
}

int mergepatch_apply(const struct tree *doc, const struct tree *patch, struct arena *out,
                     struct tree **ret, struct err *err)
{
    if (tree_kind(doc) == JNULL) {
        return err_set(err, ERR_INVALID, "a merge patch for null: want a document");
    }
    if (tree_kind(doc) != JOBJ || tree_kind(patch) != JOBJ) {
        *ret = clone_pruned(out, patch);
        return 0;
    }
    struct tree *result = tree_clone(out, doc);
    merge_members(out, result, patch);
    *ret = result;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct tree *left = *(const struct tree *const *)a;
    const struct tree *right = *(const struct tree *const *)b;
    return str_cmp(left->key, right->key);
}

static void add_sorted(struct arena *out, struct tree *to, struct tree **members, uint32_t n)
{
    if (n > 0) {
        qsort(members, n, sizeof(struct tree *), compare_keys);
    }
    for (uint32_t i = 0; i < n; i++) {
        tree_set(out, to, members[i]->key, members[i]);
    }
}

static struct tree *clone_sorted(struct arena *out, const struct tree *t)
{
    if (tree_kind(t) != JARR && tree_kind(t) != JOBJ) {
        return tree_clone(out, t);
    }
    struct tree **children = ARENA_ARRAY(out, struct tree *, t->n);
    uint32_t n = 0;
    TREE_EACH (t, child) {
        children[n] = clone_sorted(out, child);
        children[n++]->key = child->key;
    }
    struct tree *copy = t->kind == JOBJ ? tree_obj(out) : tree_arr(out);
    if (t->kind == JOBJ) {
        add_sorted(out, copy, children, n);
        return copy;
    }
    for (uint32_t i = 0; i < n; i++) {
        tree_add(copy, children[i]);
    }
    return copy;
}

/* What leads from `from` to `to`; an object without members when they are the same. */
static struct tree *diff(struct arena *out, const struct tree *from, const struct tree *to)
{
    uint32_t most = (from == NULL ? 0 : from->n) + (to == NULL ? 0 : to->n);
    struct tree **changes = ARENA_ARRAY(out, struct tree *, most);
    uint32_t n = 0;
    TREE_EACH (to, member) {
        const struct tree *old = tree_get(from, member->key);
        struct tree *change;
        if (old != NULL && old->kind == JOBJ && member->kind == JOBJ) {
            change = diff(out, old, member);
            if (change->n == 0) {
                continue;
            }
        } else if (old != NULL && tree_identical(old, member)) {
            continue;
        } else {
            change = clone_sorted(out, member);
        }
        change->key = member->key;
        changes[n++] = change;
    }
    TREE_EACH (from, member) {
        if (tree_get(to, member->key) == NULL) {
            struct tree *gone = tree_null(out);
            gone->key = member->key;
            changes[n++] = gone;
        }
    }
    struct tree *patch = tree_obj(out);
    add_sorted(out, patch, changes, n);
    return patch;
}

static int create_object(const struct tree *from, const struct tree *to, struct arena *out,
                         struct tree **ret, struct err *err)
{
    const struct tree *sides[] = { from, to };
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        if (tree_kind(sides[i]) != JOBJ && tree_kind(sides[i]) != JNULL) {
            return err_set(err, ERR_INVALID, "a merge patch between documents: found %s, want %s",
                           jkind_name(tree_kind(sides[i])), jkind_name(JOBJ));
        }
    }
    *ret = diff(out, from, to);
    return 0;
}

int mergepatch_create(const struct tree *from, const struct tree *to, struct arena *out,
                      struct tree **ret, struct err *err)
{
    bool from_list = tree_kind(from) == JARR;
    bool to_list = tree_kind(to) == JARR;
    if (!from_list && !to_list) {
        return create_object(from, to, out, ret, err);
    }
    if (from_list != to_list || from->n != to->n) {
        return err_set(err, ERR_INVALID,
                       "a merge patch between documents: want two objects or two lists of one "
                       "length");
    }
    struct tree *patches = tree_arr(out);
    const struct tree *other = tree_first(to);
    TREE_EACH (from, item) {
        struct tree *patch;
        int r = create_object(item, other, out, &patch, err);
        if (r < 0) {
            return r;
        }
        tree_add(patches, patch);
        other = tree_sibling(other);
    }
    *ret = patches;
    return 0;
}
