#include "format/jsonpatch.h"

enum op_kind { OP_ADD, OP_REMOVE, OP_REPLACE, OP_MOVE, OP_COPY, OP_TEST };

static const struct {
    struct str name;
    enum op_kind kind;
    bool needs_value;
    bool needs_from;
} ops[] = {
    { STR_INIT("add"), OP_ADD, true, false },    { STR_INIT("remove"), OP_REMOVE, false, false },
    { STR_INIT("test"), OP_TEST, false, false }, { STR_INIT("replace"), OP_REPLACE, true, false },
    { STR_INIT("move"), OP_MOVE, false, true },  { STR_INIT("copy"), OP_COPY, false, true },
};

struct patcher {
    struct arena *out;
    struct tree *root;
    size_t copied; /* bytes made by `copy` */
    struct err *err;
};

struct op {
    enum op_kind kind;
    struct str path;
    struct str from;
    const struct tree *value; /* NULL: none was given */
};

/* Where a path leads: the container, and the name or index in it. The root has no container. */
struct place {
    struct tree *parent;
    struct str name;
    struct tree *found; /* NULL when nothing is there */
};

static int op_text(const struct tree *t, const char *name, struct str *ret, struct err *err)
{
    const struct tree *member = tree_at(t, name);
    if (tree_kind(member) != JSTR) {
        return err_set(err, ERR_INVALID, "'%s': found %s, want a string", name,
                       member == NULL ? "nothing" : jkind_name(member->kind));
    }
    *ret = member->text;
    return 0;
}

static int op_read(const struct tree *t, struct op *ret, struct err *err)
{
    if (tree_kind(t) != JOBJ) {
        return err_set(err, ERR_INVALID, "found %s, want an object", jkind_name(tree_kind(t)));
    }
    struct str name = STR_NONE;
    int r = op_text(t, "op", &name, err);
    if (r < 0) {
        return r;
    }
    size_t i = 0;
    while (i < ARRAY_LEN(ops) && !str_eq(ops[i].name, name)) {
        i++;
    }
    if (i == ARRAY_LEN(ops)) {
        return err_set(err, ERR_INVALID,
                       "'op': found '" STR_FMT "', want add, remove, replace, move, copy or test",
                       STR_ARG(name));
    }
    struct op op = { .kind = ops[i].kind, .value = tree_at(t, "value") };
    if (ops[i].needs_value && op.value == NULL) {
        return err_set(err, ERR_INVALID, "'value': found nothing, want the value to %s",
                       ops[i].name.p);
    }
    r = ops[i].needs_from ? op_text(t, "from", &op.from, err) : 0;
    if (r == 0) {
        r = op_text(t, "path", &op.path, err);
    }
    if (r == 0) {
        *ret = op;
    }
    return r;
}

/* "~1" is '/', "~0" is '~'; another '~' stands for itself. */
static struct str pointer_decode(struct arena *a, struct str part)
{
    char *text = arena_alloc(a, part.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < part.n; i++) {
        char c = part.p[i];
        if (c == '~' && i + 1 < part.n && (part.p[i + 1] == '0' || part.p[i + 1] == '1')) {
            c = part.p[++i] == '0' ? '~' : '/';
        }
        text[n++] = c;
    }
    return (struct str){ .p = text, .n = n };
}

/* The index in a list of `n`, from the end when it is negative. */
static bool index_read(struct str name, uint32_t n, uint32_t *ret)
{
    struct str digits;
    int64_t i;
    if (str_cut_prefix(name, STR("+"), &digits) && str_starts(digits, STR("-"))) {
        return false;
    }
    if (!str_to_i64(digits, &i) || i >= (int64_t)n || i < -(int64_t)n) {
        return false;
    }
    *ret = (uint32_t)(i < 0 ? i + (int64_t)n : i);
    return true;
}

static struct tree *child_find(struct tree *parent, struct str name)
{
    uint32_t i;
    if (tree_kind(parent) == JARR) {
        return index_read(name, parent->n, &i) ? tree_index(parent, i) : NULL;
    }
    return tree_get(parent, name);
}

static int path_fail(struct patcher *p, const char *what, struct str path, const char *why)
{
    return err_set(p->err, ERR_NOTFOUND, "%s '" STR_FMT "': %s", what, STR_ARG(path), why);
}

static int path_find(struct patcher *p, const char *what, struct str path, struct place *ret)
{
    struct place place = { .found = p->root };
    if (path.n > 0 && path.p[0] != '/') {
        return path_fail(p, what, path, "want a path that begins with '/'");
    }
    struct str rest = path.n > 0 ? str_sub(path, 1, path.n - 1) : STR_NONE;
    struct str part;
    while (str_split_next(&rest, '/', &part)) {
        if (tree_kind(place.found) != JOBJ && tree_kind(place.found) != JARR) {
            return path_fail(p, what, path,
                             place.found == NULL ? "nothing is there"
                                                 : "leads into what is no object and no list");
        }
        place.parent = place.found;
        place.name = pointer_decode(p->out, part);
        place.found = child_find(place.parent, place.name);
    }
    *ret = place;
    return 0;
}

static int root_set(struct patcher *p, struct tree *value)
{
    if (value->kind != JOBJ && value->kind != JARR) {
        return err_set(p->err, ERR_NOTFOUND, "path '': found %s, want an object or a list",
                       jkind_name(value->kind));
    }
    p->root = value;
    return 0;
}

static int place_add(struct patcher *p, struct str path, struct tree *value)
{
    struct place place;
    int r = path_find(p, "path", path, &place);
    if (r < 0) {
        return r;
    }
    if (place.parent == NULL) {
        return root_set(p, value);
    }
    if (place.parent->kind == JOBJ) {
        tree_set(p->out, place.parent, place.name, value);
        return 0;
    }
    uint32_t i = place.parent->n;
    if (!str_eq(place.name, STR("-")) && !index_read(place.name, place.parent->n + 1, &i)) {
        return path_fail(p, "path", path, "want an index into the list, or '-'");
    }
    tree_insert(place.parent, i, value);
    return 0;
}

/* Takes what is there out of its container. */
static int place_take(struct patcher *p, const char *what, struct str path, struct tree **ret)
{
    struct place place;
    int r = path_find(p, what, path, &place);
    if (r < 0) {
        return r;
    }
    if (place.parent == NULL) {
        return path_fail(p, what, path, "the whole document cannot be taken away");
    }
    if (place.found == NULL) {
        return path_fail(p, what, path, "nothing is there");
    }
    tree_remove(place.parent, place.found);
    *ret = place.found;
    return 0;
}

static int op_replace(struct patcher *p, const struct op *op)
{
    struct place place;
    int r = path_find(p, "path", op->path, &place);
    if (r < 0) {
        return r;
    }
    struct tree *value = tree_clone(p->out, op->value);
    if (place.parent == NULL) {
        return root_set(p, value);
    }
    if (place.found == NULL) {
        return path_fail(p, "path", op->path, "nothing is there");
    }
    if (place.parent->kind == JOBJ) {
        tree_set(p->out, place.parent, place.name, value);
        return 0;
    }
    uint32_t i = 0;
    (void)index_read(place.name, place.parent->n, &i); /* it has just led to `found` */
    tree_remove(place.parent, place.found);
    tree_insert(place.parent, i, value);
    return 0;
}

static size_t tree_bytes(const struct tree *t)
{
    size_t n = sizeof(*t) + t->text.n + t->key.n;
    TREE_EACH (t, child) {
        n += tree_bytes(child);
    }
    return n;
}

/* A document that is copied into itself doubles: ten operations make it a thousand times as large.
 */
static int op_copy(struct patcher *p, const struct op *op)
{
    struct place place;
    int r = path_find(p, "from", op->from, &place);
    if (r < 0) {
        return r;
    }
    if (place.found == NULL) {
        return path_fail(p, "from", op->from, "nothing is there");
    }
    p->copied += tree_bytes(place.found);
    if (p->copied > OBJECT_BYTES_MAX) {
        return err_set(p->err, ERR_LIMIT, "copies of more than %zu bytes", OBJECT_BYTES_MAX);
    }
    return place_add(p, op->path, tree_clone(p->out, place.found));
}

static int op_test(struct patcher *p, const struct op *op)
{
    struct place place;
    int r = path_find(p, "path", op->path, &place);
    if (r < 0) {
        return r;
    }
    /* Where an object has nothing there is null; a list has no such place. */
    if (place.found == NULL && tree_kind(place.parent) == JARR) {
        return path_fail(p, "path", op->path, "nothing is there");
    }
    if (!tree_identical(place.found, op->value)) {
        return err_set(p->err, ERR_CONFLICT, "path '" STR_FMT "': another value is there",
                       STR_ARG(op->path));
    }
    return 0;
}

static int op_apply(struct patcher *p, const struct op *op)
{
    struct tree *taken = NULL;
    int r = 0;
    switch (op->kind) {
    case OP_ADD:
        return place_add(p, op->path, tree_clone(p->out, op->value));
    case OP_REMOVE:
        return place_take(p, "path", op->path, &taken);
    case OP_REPLACE:
        return op_replace(p, op);
    case OP_MOVE:
        r = place_take(p, "from", op->from, &taken);
        return r < 0 ? r : place_add(p, op->path, taken);
    case OP_COPY:
        return op_copy(p, op);
    case OP_TEST:
        return op_test(p, op);
    }
    return r;
}

static uint32_t tree_depth(const struct tree *t)
{
    uint32_t deepest = 0;
    if (t->kind != JOBJ && t->kind != JARR) {
        return 0;
    }
    TREE_EACH (t, child) {
        deepest = MAX(deepest, tree_depth(child));
    }
    return deepest + 1;
}

/* Each operation is checked before the first is applied, as the API server does. */
static int patch_read(const struct tree *patch, struct arena *tmp, struct op **ret, struct err *err)
{
    if (tree_kind(patch) != JARR && tree_kind(patch) != JNULL) {
        return err_set(err, ERR_INVALID, "a JSON patch: found %s, want a list of operations",
                       jkind_name(tree_kind(patch)));
    }
    uint32_t n = patch == NULL ? 0 : patch->n;
    if (n > JSONPATCH_OPS_MAX) {
        return err_set(err, ERR_LIMIT, "a JSON patch of %u operations: want at most %u", n,
                       JSONPATCH_OPS_MAX);
    }
    struct op *list = ARENA_ARRAY(tmp, struct op, n);
    uint32_t i = 0;
    TREE_EACH (patch, item) {
        if (op_read(item, &list[i++], err) < 0) {
            return err_wrap(err, "operation %u", i);
        }
    }
    *ret = list;
    return 0;
}

int jsonpatch_apply(const struct tree *doc, const struct tree *patch, struct arena *out,
                    struct tree **ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct op *list = NULL;
    int r = patch_read(patch, &tmp, &list, err);
    if (r < 0) {
        return r;
    }
    if (doc == NULL) {
        *ret = NULL;
        return 0;
    }
    if (tree_kind(doc) != JOBJ && tree_kind(doc) != JARR && tree_kind(doc) != JNULL) {
        return err_set(err, ERR_NOTFOUND, "the document: found %s, want an object or a list",
                       jkind_name(tree_kind(doc)));
    }
    struct patcher p = { .out = out, .root = tree_clone(out, doc), .err = err };
    uint32_t n = patch == NULL ? 0 : patch->n;
    for (uint32_t i = 0; i < n; i++) {
        r = op_apply(&p, &list[i]);
        /* `move` and `copy` can nest deeper with every step, and everyone recurses over trees. */
        if (r == 0 && tree_depth(p.root) > JSON_DEPTH_MAX) {
            r = err_set(err, ERR_LIMIT, "nested deeper than %u", JSON_DEPTH_MAX);
        }
        if (r < 0) {
            return err_wrap(err, "operation %u", i + 1);
        }
    }
    if (p.root->kind == JNULL) {
        return err_set(err, ERR_NOTFOUND,
                       "the patched document: found null, want an object or a list");
    }
    *ret = p.root;
    return 0;
}
