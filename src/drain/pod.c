#include "drain/pod.h"

#include "base/stamp.h"

#define POD_LABELS_MAX 1024u /* no sane pod has a tenth */
#define POD_WISH STR("cluster.x-k8s.io/drain")

static bool pod_condition_is_true(const struct jval *object, struct str type)
{
    JVAL_EACH (jval_at(object, "status.conditions"), condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), type)) {
            return str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"));
        }
    }
    return false;
}

static bool pod_is_daemon(const struct jval *object)
{
    JVAL_EACH (jval_at(object, "metadata.ownerReferences"), owner) {
        if (str_eq(jval_str(jval_get(owner, STR("kind"))), STR("DaemonSet"))) {
            return true;
        }
    }
    return false;
}

static bool pod_is_managed(const struct jval *object)
{
    JVAL_EACH (jval_at(object, "metadata.ownerReferences"), owner) {
        if (jval_bool(jval_get(owner, STR("controller")), false)) {
            return true;
        }
    }
    return false;
}

static bool pod_is_local(const struct jval *object)
{
    JVAL_EACH (jval_at(object, "spec.volumes"), volume) {
        if (jval_get(volume, STR("emptyDir")) != NULL) {
            return true;
        }
    }
    return false;
}

/* Cluster API, whose label it is, ignores the case of its values. */
static enum drain_pod_wish pod_wish(const struct jval *object)
{
    struct str wish = jval_str(jval_get(jval_at(object, "metadata.labels"), POD_WISH));
    return str_eq_fold(wish, STR("skip"))             ? DRAIN_WISH_SKIP
           : str_eq_fold(wish, STR("wait-completed")) ? DRAIN_WISH_COMPLETION
                                                      : DRAIN_WISH_NONE;
}

/* The claim of an ephemeral volume is named after the pod and the volume. */
static void pod_read_claims(const struct jval *object, struct arena *out, struct drain_pod *p)
{
    const struct jval *volumes = jval_at(object, "spec.volumes");
    struct str pod = jval_str(jval_at(object, "metadata.name"));
    if (jval_kind(volumes) != JARR || volumes->n == 0) {
        return;
    }
    struct str *claims = ARENA_ARRAY(out, struct str, volumes->n);
    JVAL_EACH (volumes, volume) {
        struct str claim = jval_str(jval_at(volume, "persistentVolumeClaim.claimName"));
        struct str name = jval_str(jval_get(volume, STR("name")));
        if (claim.n > 0) {
            claims[p->claim_count++] = arena_str(out, claim);
        } else if (jval_get(volume, STR("ephemeral")) != NULL) {
            claims[p->claim_count++] =
                arena_printf(out, STR_FMT "-" STR_FMT, STR_ARG(pod), STR_ARG(name));
        }
    }
    p->claims = claims;
}

bool drain_pod_is_skipped(const struct drain_pod *p)
{
    return p->daemon || p->mirror || p->wish == DRAIN_WISH_SKIP;
}

static void pod_read_labels(const struct jval *object, struct arena *out, struct drain_pod *p)
{
    const struct jval *labels = jval_at(object, "metadata.labels");
    if (jval_kind(labels) != JOBJ) {
        return;
    }
    struct drain_pod_label *kept = ARENA_ARRAY(out, struct drain_pod_label, labels->n);
    JVAL_EACH (labels, value) {
        kept[p->label_count++] = (struct drain_pod_label){
            .key = arena_str(out, jval_key(value)),
            .value = arena_str(out, jval_str(value)),
        };
    }
    p->labels = kept;
}

/* A time that cannot be read is no reason to lose the pod: it counts as long ago. */
static void pod_read_deletion(const struct jval *object, struct drain_pod *p)
{
    struct str text = jval_str(jval_at(object, "metadata.deletionTimestamp"));
    struct stamp stamp = { 0 };
    struct err ignored = { 0 };
    int64_t grace = 0;
    p->deleting = text.n > 0;
    if (p->deleting && stamp_parse(text, &stamp, &ignored) == 0) {
        p->deletion_wall = stamp_to_usec(stamp);
    }
    if (p->deleting && jval_i64(jval_at(object, "metadata.deletionGracePeriodSeconds"), &grace)) {
        p->deletion_grace = SECONDS(MIN(MAX(grace, (int64_t)0), (int64_t)INT32_MAX));
    }
}

static int pod_project(void *ctx UNUSED, const struct jval *object, struct arena *out, void **ret,
                       struct err *err)
{
    const struct jval *labels = jval_at(object, "metadata.labels");
    if (jval_kind(labels) == JOBJ && labels->n > POD_LABELS_MAX) {
        return err_set(err, ERR_LIMIT, "a pod with %u labels, at most %u are read", labels->n,
                       POD_LABELS_MAX);
    }
    struct drain_pod *p = ARENA_NEW(out, struct drain_pod);
    struct str phase = jval_str(jval_at(object, "status.phase"));
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    p->finished = str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
    p->mirror = jval_get(annotations, STR("kubernetes.io/config.mirror")) != NULL;
    p->daemon = pod_is_daemon(object);
    p->managed = pod_is_managed(object);
    p->local = pod_is_local(object);
    p->wish = pod_wish(object);
    p->uid = arena_str(out, jval_str(jval_at(object, "metadata.uid")));
    p->pending = str_eq(phase, STR("Pending"));
    p->ready = pod_condition_is_true(object, STR("Ready"));
    p->finalizer = arena_str(out, jval_str(jval_first(jval_at(object, "metadata.finalizers"))));
    pod_read_deletion(object, p);
    pod_read_labels(object, out, p);
    if (drain_pod_is_skipped(p)) {
        pod_read_claims(object, out, p);
    }
    *ret = p;
    return 0;
}

static bool pod_same(const void *left, const void *right)
{
    const struct drain_pod *a = left;
    const struct drain_pod *b = right;
    if (a->daemon != b->daemon || a->mirror != b->mirror || a->finished != b->finished ||
        a->managed != b->managed || a->pending != b->pending || a->ready != b->ready ||
        a->deleting != b->deleting || a->deletion_wall != b->deletion_wall ||
        a->deletion_grace != b->deletion_grace || a->label_count != b->label_count ||
        !str_eq(a->uid, b->uid) || !str_eq(a->finalizer, b->finalizer)) {
        return false;
    }
    for (uint32_t i = 0; i < a->label_count; i++) {
        if (!str_eq(a->labels[i].key, b->labels[i].key) ||
            !str_eq(a->labels[i].value, b->labels[i].value)) {
            return false;
        }
    }
    return true;
}

const struct store_kind drain_pod_kind = {
    .name = "pod",
    .spaced = true,
    .project = pod_project,
    .same = pod_same,
};

bool drain_pod_lookup(void *ctx, struct str key, struct str *ret_value)
{
    const struct drain_pod *p = ctx;
    for (uint32_t i = 0; i < p->label_count; i++) {
        if (str_eq(p->labels[i].key, key)) {
            *ret_value = p->labels[i].value;
            return true;
        }
    }
    return false;
}
