#include "format/json_tree.h"

#include "base/map.h"

#define TREE_MEMBERS_SCANNED 64u /* objects of more members are rare, and may be an attack */

static struct tree *tree_new(struct arena *a, enum jkind kind)
{
    struct tree *t = ARENA_NEW(a, struct tree);
    t->kind = kind;
    return t;
}

int tree_parse(struct str json, struct arena *a, struct tree **ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root;
    int r = json_parse(json, 0, &tmp, &root, err);
    if (r < 0) {
        return r;
    }
    *ret = tree_from(a, root);
    return 0;
}

static void tree_link(struct tree *parent, struct tree *child)
{
    child->next = NULL;
    if (parent->last == NULL) {
        parent->first = child;
    } else {
        parent->last->next = child;
    }
    parent->last = child;
    parent->n++;
}

/* `s`, or a copy of it where it is not in what outlives the tree. */
static struct str tree_keep(struct arena *a, struct str s, struct str text)
{
    uintptr_t from = (uintptr_t)text.p;
    uintptr_t at = (uintptr_t)s.p;
    bool within = text.n > 0 && at >= from && at <= from + text.n;
    return within ? s : arena_str(a, s);
}

/* Takes the place of `old` among the siblings. */
static void tree_replace(struct tree *parent, struct tree *old, struct tree *value)
{
    value->next = old->next;
    if (parent->first == old) {
        parent->first = value;
    } else {
        struct tree *before = parent->first;
        while (before->next != old) {
            before = before->next;
        }
        before->next = value;
    }
    if (parent->last == old) {
        parent->last = value;
    }
}

/* Adds or replaces; `key` stays where it is. */
static void tree_put(struct tree *obj, struct tree *value, struct str key)
{
    struct tree *old = tree_get(obj, key);
    if (old != NULL) {
        value->key = old->key;
        tree_replace(obj, old, value);
        return;
    }
    value->key = key;
    tree_link(obj, value);
}

/* Of a name that comes twice the last value counts, in the first one's place. A map finds the
 * place where looking through all members would take too long. */
static void tree_view_members(struct arena *a, struct tree *t, const struct jval *v,
                              struct str text)
{
    if (v->n <= TREE_MEMBERS_SCANNED) {
        JVAL_EACH (v, member) {
            tree_put(t, tree_view(a, member, text), tree_keep(a, jval_key(member), text));
        }
        return;
    }
    CLEANUP(map_done)
    struct map last = { 0 };
    JVAL_EACH (v, member) {
        (void)map_put(&last, jval_key(member), (void *)(uintptr_t)member); /* replaces are wanted */
    }
    MAP_EACH (&last, item) {
        struct tree *child = tree_view(a, map_item_value(item), text);
        child->key = arena_str(a, map_item_name(item));
        tree_link(t, child);
    }
}

struct tree *tree_from(struct arena *a, const struct jval *v)
{
    return tree_view(a, v, STR_NONE);
}

struct tree *tree_view(struct arena *a, const struct jval *v, struct str text)
{
    struct tree *t = tree_new(a, jval_kind(v));
    switch (t->kind) {
    case JNULL:
        break;
    case JBOOL:
        t->truth = jval_bool(v, false);
        break;
    case JNUM:
    case JSTR:
        t->text = tree_keep(a, (struct str){ .p = v->p, .n = v->n }, text);
        break;
    case JARR:
        JVAL_EACH (v, item) {
            tree_link(t, tree_view(a, item, text));
        }
        break;
    case JOBJ:
        tree_view_members(a, t, v, text);
        break;
    }
    return t;
}

static struct tree *tree_copy(struct arena *a, const struct tree *t, bool share)
{
    struct tree *copy = tree_new(a, tree_kind(t));
    if (t == NULL) {
        return copy;
    }
    copy->truth = t->truth;
    if (t->kind == JSTR || t->kind == JNUM) {
        copy->text = share ? t->text : arena_str(a, t->text);
    }
    TREE_EACH (t, child) {
        struct tree *child_copy = tree_copy(a, child, share);
        child_copy->key = child->key.p == NULL || share ? child->key : arena_str(a, child->key);
        tree_link(copy, child_copy);
    }
    return copy;
}

struct tree *tree_clone(struct arena *a, const struct tree *t)
{
    return tree_copy(a, t, /* share= */ false);
}

struct tree *tree_twin(struct arena *a, const struct tree *t)
{
    return tree_copy(a, t, /* share= */ true);
}

struct tree *tree_obj(struct arena *a)
{
    return tree_new(a, JOBJ);
}

struct tree *tree_arr(struct arena *a)
{
    return tree_new(a, JARR);
}

struct tree *tree_str(struct arena *a, struct str s)
{
    struct tree *t = tree_new(a, JSTR);
    t->text = arena_str(a, s);
    return t;
}

struct tree *tree_i64(struct arena *a, int64_t n)
{
    struct tree *t = tree_new(a, JNUM);
    t->text = arena_printf(a, "%lld", (long long)n);
    return t;
}

struct tree *tree_bool(struct arena *a, bool b)
{
    struct tree *t = tree_new(a, JBOOL);
    t->truth = b;
    return t;
}

struct tree *tree_null(struct arena *a)
{
    return tree_new(a, JNULL);
}

enum jkind tree_kind(const struct tree *t)
{
    return t == NULL ? JNULL : t->kind;
}

struct tree *tree_get(const struct tree *t, struct str key)
{
    if (tree_kind(t) != JOBJ) {
        return NULL;
    }
    TREE_EACH (t, member) {
        if (str_eq(member->key, key)) {
            return member;
        }
    }
    return NULL;
}

struct tree *tree_at(const struct tree *t, const char *path)
{
    struct str rest = str_from(path);
    struct str name;
    struct tree *found = NULL;
    while (str_split_next(&rest, '.', &name)) {
        found = tree_get(t, name);
        if (found == NULL) {
            return NULL;
        }
        t = found;
    }
    return found;
}

struct tree *tree_index(const struct tree *t, uint32_t i)
{
    if (tree_kind(t) != JARR) {
        return NULL;
    }
    TREE_EACH (t, item) {
        if (i-- == 0) {
            return item;
        }
    }
    return NULL;
}

struct str tree_text(const struct tree *t)
{
    return tree_kind(t) == JSTR ? t->text : STR_NONE;
}

struct str tree_text_at(const struct tree *t, const char *path)
{
    return tree_text(tree_at(t, path));
}

bool tree_truth(const struct tree *t, bool otherwise)
{
    return tree_kind(t) == JBOOL ? t->truth : otherwise;
}

bool tree_number(const struct tree *t, int64_t *ret)
{
    return tree_kind(t) == JNUM && str_to_i64(t->text, ret);
}

static bool tree_number_eq(const struct tree *a, const struct tree *b)
{
    int64_t ia;
    int64_t ib;
    if (tree_number(a, &ia) && tree_number(b, &ib)) {
        return ia == ib; /* as doubles, neighbours above 2^53 are the same */
    }
    double fa;
    double fb;
    return str_to_f64(a->text, &fa) && str_to_f64(b->text, &fb) && fa == fb;
}

static bool tree_compare(const struct tree *a, const struct tree *b, bool by_text);

static int tree_compare_keys(const void *a, const void *b)
{
    const struct tree *left = *(const struct tree *const *)a;
    const struct tree *right = *(const struct tree *const *)b;
    return str_cmp(left->key, right->key);
}

struct tree **tree_members_sorted(struct arena *a, const struct tree *obj)
{
    if (tree_kind(obj) != JOBJ || obj->n == 0) {
        return NULL;
    }
    struct tree **members = ARENA_ARRAY(a, struct tree *, obj->n);
    uint32_t n = 0;
    TREE_EACH (obj, member) {
        members[n++] = member;
    }
    qsort(members, n, sizeof(struct tree *), tree_compare_keys);
    return members;
}

/* Two objects of as many members, more than are looked through one by one. */
static bool tree_compare_wide(const struct tree *a, const struct tree *b, bool by_text)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct tree **as = tree_members_sorted(&tmp, a);
    struct tree **bs = tree_members_sorted(&tmp, b);
    bool same = true;
    for (uint32_t i = 0; i < a->n && same; i++) {
        same = str_eq(as[i]->key, bs[i]->key) && tree_compare(as[i], bs[i], by_text);
    }
    return same;
}

static bool tree_compare(const struct tree *a, const struct tree *b, bool by_text)
{
    if (tree_kind(a) != tree_kind(b)) {
        return false;
    }
    if (a == NULL || b == NULL || a->kind == JNULL) {
        return true;
    }
    if (a->kind != JARR && a->kind != JOBJ) {
        return str_eq(a->text, b->text) ? a->truth == b->truth
                                        : a->kind == JNUM && !by_text && tree_number_eq(a, b);
    }
    if (a->n != b->n) {
        return false;
    }
    if (a->kind == JOBJ && a->n > TREE_MEMBERS_SCANNED) {
        return tree_compare_wide(a, b, by_text);
    }
    const struct tree *other = b->first;
    TREE_EACH (a, child) {
        const struct tree *match = a->kind == JOBJ ? tree_get(b, child->key) : other;
        /* A member that is null on one side and absent on the other differs. */
        if (match == NULL || !tree_compare(child, match, by_text)) {
            return false;
        }
        other = other->next;
    }
    return true;
}

bool tree_eq(const struct tree *a, const struct tree *b)
{
    return tree_compare(a, b, /* by_text= */ false);
}

bool tree_identical(const struct tree *a, const struct tree *b)
{
    return tree_compare(a, b, /* by_text= */ true);
}

struct tree *tree_first(const struct tree *parent)
{
    return parent == NULL ? NULL : parent->first;
}

struct tree *tree_sibling(const struct tree *t)
{
    return t == NULL ? NULL : t->next;
}

void tree_set(struct arena *a, struct tree *obj, struct str key, struct tree *value)
{
    ASSERT(obj->kind == JOBJ && value != NULL);
    struct tree *old = tree_get(obj, key);
    if (old == value) {
        return;
    }
    if (old != NULL) {
        value->key = old->key;
        tree_replace(obj, old, value);
        return;
    }
    tree_append(a, obj, key, value);
}

void tree_append(struct arena *a, struct tree *obj, struct str key, struct tree *value)
{
    value->key = arena_str(a, key);
    tree_link(obj, value);
}

struct tree *tree_make_at(struct arena *a, struct tree *obj, const char *path)
{
    struct str rest = str_from(path);
    struct str name;
    while (str_split_next(&rest, '.', &name)) {
        struct tree *next = tree_get(obj, name);
        if (tree_kind(next) != JOBJ) {
            next = tree_obj(a);
            tree_set(a, obj, name, next);
        }
        obj = next;
    }
    return obj;
}

void tree_set_at(struct arena *a, struct tree *obj, const char *path, struct tree *value)
{
    struct str whole = str_from(path);
    size_t dot = str_rfind_char(whole, '.');
    if (dot == SIZE_MAX) {
        tree_set(a, obj, whole, value);
        return;
    }
    struct str parent = arena_str(a, str_sub(whole, 0, dot));
    tree_set(a, tree_make_at(a, obj, parent.p), str_sub(whole, dot + 1, whole.n), value);
}

void tree_remove(struct tree *parent, struct tree *value)
{
    struct tree *before = NULL;
    TREE_EACH (parent, child) {
        if (child != value) {
            before = child;
            continue;
        }
        if (before == NULL) {
            parent->first = child->next;
        } else {
            before->next = child->next;
        }
        if (parent->last == child) {
            parent->last = before;
        }
        parent->n--;
        return;
    }
    ASSERT(false);
}

bool tree_del(struct tree *obj, struct str key)
{
    struct tree *member = tree_get(obj, key);
    if (member == NULL) {
        return false;
    }
    tree_remove(obj, member);
    return true;
}

bool tree_del_at(struct tree *obj, const char *path)
{
    struct str rest = str_from(path);
    struct str name;
    while (str_split_next(&rest, '.', &name)) {
        if (rest.p == NULL) {
            return tree_del(obj, name);
        }
        obj = tree_get(obj, name);
    }
    return false;
}

void tree_add(struct tree *arr, struct tree *value)
{
    ASSERT(arr->kind == JARR);
    tree_link(arr, value);
}

void tree_insert(struct tree *arr, uint32_t i, struct tree *value)
{
    ASSERT(arr->kind == JARR && i <= arr->n);
    if (i == arr->n) {
        tree_link(arr, value);
        return;
    }
    struct tree **place = &arr->first;
    while (i-- > 0) {
        place = &(*place)->next;
    }
    value->next = *place;
    *place = value;
    arr->n++;
}

void tree_write(const struct tree *t, struct json_writer *w)
{
    switch (tree_kind(t)) {
    case JNULL:
        jw_null(w);
        break;
    case JBOOL:
        jw_bool(w, t->truth);
        break;
    case JNUM:
        jw_raw(w, t->text);
        break;
    case JSTR:
        jw_str(w, t->text);
        break;
    case JARR:
        jw_arr(w);
        TREE_EACH (t, item) {
            tree_write(item, w);
        }
        jw_arr_end(w);
        break;
    case JOBJ:
        jw_obj(w);
        TREE_EACH (t, member) {
            jw_key(w, member->key);
            tree_write(member, w);
        }
        jw_obj_end(w);
        break;
    }
}

void tree_print(const struct tree *t, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    tree_write(t, &w);
}

struct str tree_json(struct arena *a, const struct tree *t)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    tree_print(t, &out);
    ASSERT(!out.full);
    return arena_str(a, buf_str(&out));
}
