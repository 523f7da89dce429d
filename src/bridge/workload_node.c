#include "bridge/workload_node.h"

#include "format/digest.h"
#include "kinds/keys.h"
#include "bridge/object_meta.h"
#include "drain/drain_rules.h"

/* Cut, not dropped: a name that is too long to be our Machine's still names another one. */
static struct str workload_node_text(const struct jval *annotations, struct str key)
{
    return str_sub(jval_str(jval_get(annotations, key)), 0, WORKLOAD_NODE_TEXT_MAX);
}

uint64_t workload_node_hash(struct str text)
{
    return text.p == NULL ? 0 : MAX(sha256_u64(text), (uint64_t)1);
}

static int workload_node_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                                 void **ret, struct err *err)
{
    const struct jval *metadata = jval_get(object, STR("metadata"));
    int r = meta_check_lengths(metadata, err);
    if (r < 0) {
        return err_wrap(err, "node '" STR_FMT "'",
                        STR_ARG(jval_str(jval_get(metadata, STR("name")))));
    }
    const struct jval *labels = jval_get(metadata, STR("labels"));
    const struct jval *annotations = jval_get(metadata, STR("annotations"));
    struct workload_node found = {
        .uid = meta_text(jval_get(metadata, STR("uid")), WORKLOAD_NODE_TEXT_MAX),
        .managed = meta_has(labels, KEY_STATE),
        .operational = meta_is(labels, KEY_STATE, KEY_OPERATIONAL),
        .deleting = jval_str(jval_get(metadata, STR("deletionTimestamp"))).n > 0,
        .machine_deleted = meta_is(labels, KEY_MACHINE_DELETED, KEYS_TRUE),
        .machine_maintenance = meta_is(labels, KEY_MACHINE_MAINTENANCE, KEYS_TRUE),
        .approve_deletion = meta_is(labels, KEY_APPROVE_DELETION, KEYS_TRUE),
        .approve_maintenance = meta_is(labels, KEY_APPROVE_MAINTENANCE, KEYS_TRUE),
        .deletion_request = workload_node_text(annotations, KEY_DELETION_REQUEST),
        .maintenance_request = workload_node_text(annotations, KEY_MAINTENANCE_REQUEST),
        .deletion_approved_for = workload_node_text(annotations, KEY_DELETION_APPROVED_FOR),
        .maintenance_approved_for = workload_node_text(annotations, KEY_MAINTENANCE_APPROVED_FOR),
        .machine = workload_node_text(annotations, KEY_NODE_MACHINE),
        .namespace = workload_node_text(annotations, KEY_NODE_NAMESPACE),
        .drain_rules = workload_node_hash(jval_str(jval_get(annotations, KEY_DRAIN_RULES))),
    };
    struct str *const texts[] = {
        &found.uid,
        &found.deletion_request,
        &found.maintenance_request,
        &found.deletion_approved_for,
        &found.maintenance_approved_for,
        &found.machine,
        &found.namespace,
    };
    *ret = meta_keep(out, &found, sizeof(found), texts, ARRAY_LEN(texts));
    return 0;
}

static bool workload_node_same(const void *left, const void *right)
{
    const struct workload_node *a = left;
    const struct workload_node *b = right;
    return str_eq(a->uid, b->uid) && a->managed == b->managed && a->operational == b->operational &&
           a->deleting == b->deleting && a->machine_deleted == b->machine_deleted &&
           a->machine_maintenance == b->machine_maintenance &&
           a->approve_deletion == b->approve_deletion &&
           a->approve_maintenance == b->approve_maintenance &&
           meta_same(a->deletion_request, b->deletion_request) &&
           meta_same(a->maintenance_request, b->maintenance_request) &&
           meta_same(a->deletion_approved_for, b->deletion_approved_for) &&
           meta_same(a->maintenance_approved_for, b->maintenance_approved_for) &&
           meta_same(a->machine, b->machine) && meta_same(a->namespace, b->namespace) &&
           a->drain_rules == b->drain_rules;
}

const struct store_kind workload_node_kind = {
    .name = "node",
    .project = workload_node_project,
    .same = workload_node_same,
};

bool workload_node_marked(const struct workload_node *p)
{
    return p->machine_deleted || p->machine_maintenance || p->deletion_request.p != NULL ||
           p->maintenance_request.p != NULL;
}
