#include "kube/node.h"

struct str node_label(const struct node *n, struct str key)
{
    for (uint32_t i = 0; i < n->label_count; i++) {
        if (str_eq(intern_str(n->labels[i].key), key)) {
            return intern_str(n->labels[i].value);
        }
    }
    return STR_NONE;
}

static bool node_is_ready(const struct jval *object)
{
    const struct jval *conditions = jval_at(object, "status.conditions");
    JVAL_EACH (conditions, condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), STR("Ready"))) {
            return str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"));
        }
    }
    return false;
}

/* All that can be wrong, before anything is taken that would have to be given back. */
static int node_validate(const struct node_keep *keep, const struct jval *object, struct err *err)
{
    struct str name = str_sub(jval_str(jval_at(object, "metadata.name")), 0, 64);
    const struct jval *labels = jval_at(object, "metadata.labels");
    if (jval_kind(labels) == JOBJ && labels->n > NODE_LABELS_MAX) {
        return err_set(err, ERR_LIMIT, "node '" STR_FMT "': %u labels, at most %u are read",
                       STR_ARG(name), labels->n, NODE_LABELS_MAX);
    }
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    for (uint32_t i = 0; i < keep->annotation_count; i++) {
        struct str value = jval_str(jval_get(annotations, keep->annotations[i]));
        if (value.n > NODE_ANNOTATION_BYTES_MAX) {
            return err_set(
                err, ERR_LIMIT,
                "node '" STR_FMT "': annotation '" STR_FMT "' has %zu bytes, at most %zu are read",
                STR_ARG(name), STR_ARG(keep->annotations[i]), value.n, NODE_ANNOTATION_BYTES_MAX);
        }
    }
    return 0;
}

/* The object's arena is one block of just the right size: 5,000 nodes leave no slack. */
static size_t node_size(const struct node_keep *keep, const struct jval *object, uint32_t labels)
{
    size_t align = _Alignof(max_align_t);
    size_t size = sizeof(struct node) + labels * sizeof(struct node_label) +
                  jval_str(jval_at(object, "metadata.uid")).n + 1 + 3 * align;
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    for (uint32_t i = 0; i < keep->annotation_count; i++) {
        size += jval_str(jval_get(annotations, keep->annotations[i])).n + 1 + align;
    }
    return size;
}

static int node_project(void *ctx, const struct jval *object, struct arena *out, void **ret,
                        struct err *err)
{
    const struct node_keep *keep = ctx;
    ASSERT(keep->annotation_count <= NODE_ANNOTATIONS_MAX);
    int r = node_validate(keep, object, err);
    if (r < 0) {
        return r;
    }
    const struct jval *labels = jval_at(object, "metadata.labels");
    labels = jval_kind(labels) == JOBJ ? labels : NULL;
    uint32_t label_count = labels == NULL ? 0 : labels->n;
    out->first = node_size(keep, object, label_count);
    struct node *n = ARENA_NEW(out, struct node);
    struct node_label *kept = ARENA_ARRAY(out, struct node_label, label_count);
    n->labels = kept;
    JVAL_EACH (labels, value) {
        kept[n->label_count++] = (struct node_label){
            .key = intern_take(keep->labels, jval_key(value)),
            .value = intern_take(keep->labels, jval_str(value)),
        };
    }
    n->uid = arena_str(out, jval_str(jval_at(object, "metadata.uid")));
    n->unschedulable = jval_bool(jval_at(object, "spec.unschedulable"), false);
    n->deleting = jval_str(jval_at(object, "metadata.deletionTimestamp")).n > 0;
    n->ready = node_is_ready(object);
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    for (uint32_t i = 0; i < keep->annotation_count; i++) {
        const struct jval *value = jval_get(annotations, keep->annotations[i]);
        if (jval_kind(value) == JSTR) {
            n->annotations[i] = arena_str(out, jval_str(value));
        }
    }
    *ret = n;
    return 0;
}

static bool node_same(const void *left, const void *right)
{
    const struct node *a = left;
    const struct node *b = right;
    if (a->label_count != b->label_count || a->unschedulable != b->unschedulable ||
        a->ready != b->ready || a->deleting != b->deleting || !str_eq(a->uid, b->uid)) {
        return false;
    }
    /* Interned: equal texts are the same pointer. */
    if (a->label_count > 0 &&
        memcmp(a->labels, b->labels, a->label_count * sizeof(a->labels[0])) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < NODE_ANNOTATIONS_MAX; i++) {
        struct str was = a->annotations[i];
        struct str is = b->annotations[i];
        /* Absent and empty are two things. */
        if ((was.p == NULL) != (is.p == NULL) || (was.p != NULL && !str_eq(was, is))) {
            return false;
        }
    }
    return true;
}

static void node_drop(void *ctx, void *object)
{
    const struct node_keep *keep = ctx;
    const struct node *n = object;
    for (uint32_t i = 0; i < n->label_count; i++) {
        intern_give(keep->labels, n->labels[i].key);
        intern_give(keep->labels, n->labels[i].value);
    }
}

const struct store_kind node_kind = {
    .name = "node",
    .project = node_project,
    .same = node_same,
    .drop = node_drop,
};
