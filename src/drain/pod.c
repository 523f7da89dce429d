#include "drain/pod.h"

#include "base/timestamp.h"
#include "format/label_pack.h"
#include "kinds/keys.h"

static bool pod_condition_is_true(const struct jval *object, struct str type)
{
    JVAL_EACH (jval_at(object, "status.conditions"), condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), type)) {
            return str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"));
        }
    }
    return false;
}

static bool pod_is_daemonset(const struct jval *object)
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

static bool pod_has_emptydir(const struct jval *object)
{
    JVAL_EACH (jval_at(object, "spec.volumes"), volume) {
        if (jval_get(volume, STR("emptyDir")) != NULL) {
            return true;
        }
    }
    return false;
}

/* As Cluster API reads its own label: neither upper and lower case nor the first hyphen counts. */
static enum drain_pod_label pod_read_drain_label(const struct jval *object)
{
    struct str drain_label = jval_str(jval_get(jval_at(object, "metadata.labels"), KEY_POD_DRAIN));
    size_t hyphen = str_find_char(drain_label, '-');
    struct str head = str_sub(drain_label, 0, hyphen);
    struct str tail =
        hyphen < drain_label.n ? str_sub(drain_label, hyphen + 1, drain_label.n) : STR_NONE;
    const struct str completion = STR("waitcompleted");
    if (str_eq_fold(drain_label, STR("skip"))) {
        return DRAIN_LABEL_SKIP;
    }
    bool waits = head.n + tail.n == completion.n &&
                 str_eq_fold(head, str_sub(completion, 0, head.n)) &&
                 str_eq_fold(tail, str_sub(completion, head.n, tail.n));
    return waits ? DRAIN_LABEL_WAIT_COMPLETED : DRAIN_LABEL_NONE;
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

/* A pod with a deletionTimestamp that cannot be read is being deleted since long ago. */
static void pod_read_deletion(const struct jval *object, struct drain_pod *p)
{
    struct str text = jval_str(jval_at(object, "metadata.deletionTimestamp"));
    struct timestamp stamp = { 0 };
    struct err ignored = { 0 };
    int64_t grace = 0;
    p->deleting = text.n > 0;
    if (p->deleting && timestamp_parse(text, &stamp, &ignored) == 0) {
        p->deletion_wall = timestamp_to_usec(stamp);
    }
    if (p->deleting && jval_i64(jval_at(object, "metadata.deletionGracePeriodSeconds"), &grace)) {
        p->deletion_grace = SECONDS(MIN(MAX(grace, (int64_t)0), (int64_t)INT32_MAX));
    }
}

static int pod_project(void *ctx UNUSED, const struct jval *object, struct arena *out, void **ret,
                       struct err *err UNUSED)
{
    struct drain_pod *p = ARENA_NEW(out, struct drain_pod);
    struct str phase = jval_str(jval_at(object, "status.phase"));
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    p->finished = str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
    p->mirror = jval_get(annotations, STR("kubernetes.io/config.mirror")) != NULL;
    p->daemonset = pod_is_daemonset(object);
    p->managed = pod_is_managed(object);
    p->has_emptydir = pod_has_emptydir(object);
    p->drain_label = pod_read_drain_label(object);
    p->labels = label_pack_keep(jval_at(object, "metadata.labels"), out);
    p->uid = arena_str(out, jval_str(jval_at(object, "metadata.uid")));
    p->pending = str_eq(phase, STR("Pending"));
    p->ready = pod_condition_is_true(object, STR("Ready"));
    p->finalizer = arena_str(out, jval_str(jval_first(jval_at(object, "metadata.finalizers"))));
    pod_read_deletion(object, p);
    pod_read_claims(object, out, p);
    *ret = p;
    return 0;
}

/* Volumes are not compared: a pod has the same ones all its life. */
static bool pod_same(const void *left, const void *right)
{
    const struct drain_pod *a = left;
    const struct drain_pod *b = right;
    if (a->daemonset != b->daemonset || a->mirror != b->mirror || a->finished != b->finished ||
        a->managed != b->managed || a->pending != b->pending || a->ready != b->ready ||
        a->deleting != b->deleting || a->deletion_wall != b->deletion_wall ||
        a->deletion_grace != b->deletion_grace || !str_eq(a->uid, b->uid) ||
        !str_eq(a->finalizer, b->finalizer)) {
        return false;
    }
    return str_eq(a->labels, b->labels);
}

const struct store_kind drain_pod_kind = {
    .name = "pod",
    .namespaced = true,
    .project = pod_project,
    .same = pod_same,
};
