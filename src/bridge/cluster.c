#include "bridge/cluster.h"

#include "kinds/keys.h"
#include "bridge/object_meta.h"
#include "format/label_pack.h"

#define CLUSTER_TEXT_MAX 256u /* of its UID; longer is none */

static int cluster_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                           void **ret, struct err *err UNUSED)
{
    const struct jval *metadata = jval_get(object, STR("metadata"));
    const struct jval *status = jval_get(object, STR("status"));
    struct cluster found = {
        .uid = meta_text(jval_get(metadata, STR("uid")), CLUSTER_TEXT_MAX),
        .paused = jval_bool(jval_at(object, "spec.paused"), false) ||
                  meta_has(jval_get(metadata, STR("annotations")), KEY_PAUSED),
        .deleting = jval_str(jval_get(metadata, STR("deletionTimestamp"))).n > 0,
        /* v1beta2 and v1beta1. */
        .provisioned =
            jval_bool(jval_at(status, "initialization.infrastructureProvisioned"), false) ||
            jval_bool(jval_get(status, STR("infrastructureReady")), false),
    };
    CLEANUP(buf_done)
    struct buf labels = { 0 };
    label_pack(jval_get(metadata, STR("labels")), &labels);
    found.labels = buf_str(&labels);
    struct str *const texts[] = { &found.uid, &found.labels };
    *ret = meta_keep(out, &found, sizeof(found), texts, ARRAY_LEN(texts));
    return 0;
}

static bool cluster_same(const void *left, const void *right)
{
    const struct cluster *a = left;
    const struct cluster *b = right;
    return str_eq(a->uid, b->uid) && a->paused == b->paused && a->deleting == b->deleting &&
           a->provisioned == b->provisioned && str_eq(a->labels, b->labels);
}

const struct store_kind cluster_kind = {
    .name = "cluster",
    .namespaced = true,
    .project = cluster_project,
    .same = cluster_same,
};
