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

struct str node_annotation(const struct node *n, struct str key)
{
    for (uint32_t i = 0; i < n->annotation_count; i++) {
        if (str_eq(intern_str(n->annotations[i].key), key)) {
            return n->annotations[i].value;
        }
    }
    return STR_NONE;
}

struct str node_condition(const struct node *n, struct str type)
{
    for (uint32_t i = 0; i < n->condition_count; i++) {
        if (str_eq(intern_str(n->conditions[i].type), type)) {
            return intern_str(n->conditions[i].status);
        }
    }
    return STR_NONE;
}

/* How many items a list has; 0 for what is no list. */
static uint32_t node_list_count(const struct jval *list)
{
    return jval_kind(list) == JARR ? list->n : 0;
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
    uint32_t conditions = node_list_count(jval_at(object, "status.conditions"));
    uint32_t finalizers = node_list_count(jval_at(object, "metadata.finalizers"));
    if (conditions > NODE_CONDITIONS_MAX || finalizers > NODE_FINALIZERS_MAX) {
        return err_set(err, ERR_LIMIT,
                       "node '" STR_FMT "': %u conditions and %u finalizers, at most %u and %u "
                       "are read",
                       STR_ARG(name), conditions, finalizers, NODE_CONDITIONS_MAX,
                       NODE_FINALIZERS_MAX);
    }
    return 0;
}

static uint32_t node_annotation_count(const struct node_keep *keep, const struct jval *object,
                                      size_t *ret_bytes)
{
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    uint32_t n = 0;
    for (uint32_t i = 0; i < keep->annotation_count; i++) {
        const struct jval *value = jval_get(annotations, keep->annotations[i]);
        if (jval_kind(value) == JSTR) {
            *ret_bytes += jval_str(value).n + 1 + _Alignof(max_align_t);
            n++;
        }
    }
    return n;
}

/* The object's arena is one block of just the right size: 5,000 nodes leave no slack. */
static struct node *node_make(const struct node_keep *keep, const struct jval *object,
                              uint32_t labels, struct arena *out)
{
    size_t size = 0;
    uint32_t annotations = node_annotation_count(keep, object, &size);
    uint32_t conditions = node_list_count(jval_at(object, "status.conditions"));
    uint32_t finalizers = node_list_count(jval_at(object, "metadata.finalizers"));
    size += sizeof(struct node) + labels * sizeof(struct node_label) +
            annotations * sizeof(struct node_annotation) +
            conditions * sizeof(struct node_condition) + finalizers * sizeof(void *) +
            jval_str(jval_at(object, "metadata.uid")).n +
            jval_str(jval_at(object, "status.nodeInfo.bootID")).n + 2 + 7 * _Alignof(max_align_t);
    out->first = size;
    struct node *n = ARENA_NEW(out, struct node);
    n->labels = ARENA_ARRAY(out, struct node_label, labels);
    n->annotations = ARENA_ARRAY(out, struct node_annotation, annotations);
    n->conditions = ARENA_ARRAY(out, struct node_condition, conditions);
    n->finalizers = ARENA_ARRAY(out, const struct intern_text *, finalizers);
    return n;
}

static void node_fill_lists(const struct node_keep *keep, const struct jval *object, struct node *n)
{
    const struct jval *given = jval_at(object, "status.conditions");
    if (jval_kind(given) == JARR) {
        JVAL_EACH (given, condition) {
            n->conditions[n->condition_count++] = (struct node_condition){
                .type = intern_take(keep->labels, jval_str(jval_get(condition, STR("type")))),
                .status = intern_take(keep->labels, jval_str(jval_get(condition, STR("status")))),
            };
        }
    }
    given = jval_at(object, "metadata.finalizers");
    if (jval_kind(given) == JARR) {
        JVAL_EACH (given, finalizer) {
            n->finalizers[n->finalizer_count++] = intern_take(keep->labels, jval_str(finalizer));
        }
    }
}

static void node_fill_maps(const struct node_keep *keep, const struct jval *object, struct node *n,
                           struct arena *out)
{
    const struct jval *labels = jval_at(object, "metadata.labels");
    if (jval_kind(labels) == JOBJ) {
        JVAL_EACH (labels, value) {
            n->labels[n->label_count++] = (struct node_label){
                .key = intern_take(keep->labels, jval_key(value)),
                .value = intern_take(keep->labels, jval_str(value)),
            };
        }
    }
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    for (uint32_t i = 0; i < keep->annotation_count; i++) {
        const struct jval *value = jval_get(annotations, keep->annotations[i]);
        if (jval_kind(value) == JSTR) {
            n->annotations[n->annotation_count++] = (struct node_annotation){
                .key = intern_take(keep->labels, keep->annotations[i]),
                .value = arena_str(out, jval_str(value)),
            };
        }
    }
}

static usec_t node_ready_since(const struct jval *object)
{
    JVAL_EACH (jval_at(object, "status.conditions"), condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), STR("Ready"))) {
            return jval_time(jval_get(condition, STR("lastTransitionTime")), 0);
        }
    }
    return 0;
}

static void node_fill_info(const struct node_keep *keep, const struct jval *object, struct node *n,
                           struct arena *out)
{
    const struct jval *info = jval_at(object, "status.nodeInfo");
    n->boot_id = arena_str(out, jval_str(jval_get(info, STR("bootID"))));
    n->kernel = intern_take(keep->labels, jval_str(jval_get(info, STR("kernelVersion"))));
    n->os_image = intern_take(keep->labels, jval_str(jval_get(info, STR("osImage"))));
    n->arch = intern_take(keep->labels, jval_str(jval_get(info, STR("architecture"))));
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
    struct node *n = node_make(keep, object, jval_kind(labels) == JOBJ ? labels->n : 0, out);
    node_fill_maps(keep, object, n, out);
    node_fill_lists(keep, object, n);
    node_fill_info(keep, object, n, out);
    n->uid = arena_str(out, jval_str(jval_at(object, "metadata.uid")));
    n->kubelet_version =
        intern_take(keep->labels, jval_str(jval_at(object, "status.nodeInfo.kubeletVersion")));
    n->created = jval_time(jval_at(object, "metadata.creationTimestamp"), 0);
    n->ready_since = node_ready_since(object);
    n->unschedulable = jval_bool(jval_at(object, "spec.unschedulable"), false);
    n->volumes = node_list_count(jval_at(object, "status.volumesAttached"));
    n->deleting = jval_str(jval_at(object, "metadata.deletionTimestamp")).n > 0;
    n->ready = str_eq(node_condition(n, STR("Ready")), STR("True"));
    *ret = n;
    return 0;
}

/* Arrays of interned texts: equal texts are the same pointer. */
static bool node_same_texts(const void *a, uint32_t a_n, const void *b, uint32_t b_n, size_t size)
{
    return a_n == b_n && (a_n == 0 || memcmp(a, b, a_n * size) == 0);
}

static bool node_same(const void *left, const void *right)
{
    const struct node *a = left;
    const struct node *b = right;
    if (a->unschedulable != b->unschedulable || a->deleting != b->deleting ||
        a->kubelet_version != b->kubelet_version || a->annotation_count != b->annotation_count ||
        !str_eq(a->uid, b->uid)) {
        return false;
    }
    if (!node_same_texts(a->labels, a->label_count, b->labels, b->label_count,
                         sizeof(a->labels[0])) ||
        !node_same_texts(a->conditions, a->condition_count, b->conditions, b->condition_count,
                         sizeof(a->conditions[0])) ||
        !node_same_texts(a->finalizers, a->finalizer_count, b->finalizers, b->finalizer_count,
                         sizeof(a->finalizers[0]))) {
        return false;
    }
    for (uint32_t i = 0; i < a->annotation_count; i++) {
        if (a->annotations[i].key != b->annotations[i].key ||
            !str_eq(a->annotations[i].value, b->annotations[i].value)) {
            return false;
        }
    }
    return true;
}

/* Volumes come and go with pods, and a reboot shows in the kubelet's report. Whoever waits for them
 * is told; nothing else depends on them. */
static bool node_stirred(const void *left, const void *right)
{
    const struct node *a = left;
    const struct node *b = right;
    return a->volumes != b->volumes || !str_eq(a->boot_id, b->boot_id) || a->kernel != b->kernel ||
           a->os_image != b->os_image || a->arch != b->arch || a->ready_since != b->ready_since;
}

static void node_drop(void *ctx, void *object)
{
    const struct node_keep *keep = ctx;
    const struct node *n = object;
    for (uint32_t i = 0; i < n->label_count; i++) {
        intern_give(keep->labels, n->labels[i].key);
        intern_give(keep->labels, n->labels[i].value);
    }
    for (uint32_t i = 0; i < n->annotation_count; i++) {
        intern_give(keep->labels, n->annotations[i].key);
    }
    for (uint32_t i = 0; i < n->condition_count; i++) {
        intern_give(keep->labels, n->conditions[i].type);
        intern_give(keep->labels, n->conditions[i].status);
    }
    for (uint32_t i = 0; i < n->finalizer_count; i++) {
        intern_give(keep->labels, n->finalizers[i]);
    }
    intern_give(keep->labels, n->kubelet_version);
    intern_give(keep->labels, n->kernel);
    intern_give(keep->labels, n->os_image);
    intern_give(keep->labels, n->arch);
}

static struct str node_uid(const void *object)
{
    const struct node *n = object;
    return n->uid;
}

const struct store_kind node_kind = {
    .name = "node",
    .project = node_project,
    .same = node_same,
    .stirred = node_stirred,
    .uid = node_uid,
    .drop = node_drop,
};
