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
            tree_append(out, copy, member->key, clone_pruned(out, member));
        }
    }
    return copy;
}

/* The place of a name among sorted members; `n` when it is not there. */
static uint32_t find_sorted(struct tree *const *members, uint32_t n, struct str key)
{
    uint32_t low = 0;
    uint32_t high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(members[middle]->key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && str_eq(members[low]->key, key) ? low : n;
}

/* Members keep their place, new ones come behind them as the patch has them. Both are sorted to be
 * found by name: looking through all for each would take too long. */
static struct tree *merge_members(struct arena *out, const struct tree *doc,
                                  const struct tree *patch)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct tree **changes = tree_members_sorted(&tmp, patch);
    struct tree **members = tree_members_sorted(&tmp, doc);
    struct tree *result = tree_obj(out);
    TREE_EACH (doc, member) {
        uint32_t at = find_sorted(changes, patch->n, member->key);
        const struct tree *change = at < patch->n ? changes[at] : NULL;
        if (change == NULL) {
            tree_append(out, result, member->key, tree_clone(out, member));
        } else if (change->kind == JOBJ && member->kind == JOBJ) {
            tree_append(out, result, member->key, merge_members(out, member, change));
        } else if (change->kind != JNULL) {
            tree_append(out, result, member->key,
                        member->kind == JOBJ ? tree_clone(out, change) : clone_pruned(out, change));
        }
    }
    TREE_EACH (patch, change) {
        if (change->kind != JNULL && find_sorted(members, doc->n, change->key) == doc->n) {
            tree_append(out, result, change->key, clone_pruned(out, change));
        }
    }
    return result;
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
    *ret = merge_members(out, doc, patch);
    return 0;
}

static struct tree *clone_sorted(struct arena *out, const struct tree *t)
{
    if (tree_kind(t) != JARR && tree_kind(t) != JOBJ) {
        return tree_clone(out, t);
    }
    if (t->kind == JARR) {
        struct tree *copy = tree_arr(out);
        TREE_EACH (t, item) {
            tree_add(copy, clone_sorted(out, item));
        }
        return copy;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct tree **members = tree_members_sorted(&tmp, t);
    struct tree *copy = tree_obj(out);
    for (uint32_t i = 0; i < t->n; i++) {
        tree_append(out, copy, members[i]->key, clone_sorted(out, members[i]));
    }
    return copy;
}

/* What leads from `from` to `to`; an object without members when they are the same. Both are walked
 * by name at the same time. */
static struct tree *diff(struct arena *out, const struct tree *from, const struct tree *to)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct tree **old = tree_members_sorted(&tmp, from);
    struct tree **new = tree_members_sorted(&tmp, to);
    uint32_t old_n = old != NULL ? from->n : 0;
    uint32_t new_n = new != NULL ? to->n : 0;
    struct tree *patch = tree_obj(out);
    uint32_t i = 0;
    uint32_t j = 0;
    while (i < old_n || j < new_n) {
        int order = i == old_n ? 1 : j == new_n ? -1 : str_cmp(old[i]->key, new[j]->key);
        struct tree *change = NULL;
        struct str key = order < 0 ? old[i]->key : new[j]->key;
        if (order < 0) {
            change = tree_null(out);
        } else if (order == 0 && old[i]->kind == JOBJ && new[j]->kind == JOBJ) {
            change = diff(out, old[i], new[j]);
            change = change->n > 0 ? change : NULL;
        } else if (order > 0 || !tree_identical(old[i], new[j])) {
            change = clone_sorted(out, new[j]);
        }
        if (change != NULL) {
            tree_append(out, patch, key, change);
        }
        i += order <= 0 ? 1 : 0;
        j += order >= 0 ? 1 : 0;
    }
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
