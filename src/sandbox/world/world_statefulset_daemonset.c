/* world_statefulset_daemonset: the controllers of StatefulSets and DaemonSets, whose pods have a
 * fixed name or a fixed node. */
#include "sandbox/world/world_internal.h"

#define CONTROLLER "kube-controller-manager"
#define REVISION_LABEL STR("controller-revision-hash")

static struct str world_set_pod_revision(struct world_object *pod)
{
    return jval_str(jval_get(jval_at(world_object_get(pod), "metadata.labels"), REVISION_LABEL));
}

/* A new pod of the set, or NULL when the template is not an object. */
static struct tree *world_set_new_pod(struct world_object *t, struct str name, struct str revision)
{
    struct arena *a = &t->w->tmp;
    struct tree *pod = workload_new_pod(t, world_object_get(t), name);
    if (pod != NULL) {
        tree_set(a, tree_make_at(a, pod, "metadata.labels"), REVISION_LABEL, tree_str(a, revision));
    }
    return pod;
}

static struct world_object *statefulset_pod(struct world_object *t, int64_t ordinal)
{
    struct str key = arena_printf(&t->w->tmp, STR_FMT "/" STR_FMT "-%lld", STR_ARG(t->namespace),
                                  STR_ARG(t->name), (long long)ordinal);
    return world_find(t->w, WORLD_POD, key);
}

static void statefulset_create(struct world_object *t, int64_t ordinal, struct str revision)
{
    struct arena *a = &t->w->tmp;
    struct str name = arena_printf(a, STR_FMT "-%lld", STR_ARG(t->name), (long long)ordinal);
    struct tree *pod = world_set_new_pod(t, name, revision);
    if (pod == NULL) {
        return;
    }
    struct tree *labels = tree_make_at(a, pod, "metadata.labels");
    tree_set(a, labels, STR("apps.kubernetes.io/pod-index"),
             tree_str(a, arena_printf(a, "%lld", (long long)ordinal)));
    tree_set(a, labels, STR("statefulset.kubernetes.io/pod-name"), tree_str(a, name));
    tree_set_at(a, pod, "spec.hostname", tree_str(a, name));
    struct str service = jval_str(jval_at(world_object_get(t), "spec.serviceName"));
    if (service.n > 0) {
        tree_set_at(a, pod, "spec.subdomain", tree_str(a, service));
    }
    workload_create_pod(t, pod);
}

/* One step: creates missing pods from the lowest ordinal, then deletes surplus pods and pods of an
 * old revision from the highest; an ordered set waits for each pod. */
static void statefulset_step(struct world_object *t, int64_t want, struct str revision,
                             bool ordered, bool roll)
{
    for (int64_t i = 0; i < want; i++) {
        struct world_object *pod = statefulset_pod(t, i);
        if (pod != NULL && pod->finished && !pod->deleting) {
            world_object_delete(pod, CONTROLLER, -1);
        } else if (pod == NULL) {
            statefulset_create(t, i, revision);
            pod = statefulset_pod(t, i);
        }
        if (ordered && (pod == NULL || !pod->ready || pod->deleting)) {
            return;
        }
    }
    struct world_object *last = NULL;
    int64_t last_ordinal = want - 1;
    LIST_EACH (&t->children, item) {
        struct world_object *pod = WORLD_OBJECT_OF(item, sibling);
        struct str tail = str_sub(pod->name, MIN(t->name.n + 1, pod->name.n), pod->name.n);
        int64_t ordinal;
        if (str_to_i64(tail, &ordinal) && ordinal > last_ordinal) {
            last = pod;
            last_ordinal = ordinal;
        }
    }
    if (last != NULL) {
        if (!last->deleting) {
            world_object_delete(last, CONTROLLER, -1);
        }
        return;
    }
    for (int64_t i = want - 1; roll && i >= 0; i--) {
        struct world_object *pod = statefulset_pod(t, i);
        if (pod == NULL || pod->deleting || !pod->ready) {
            return;
        }
        if (!str_eq(world_set_pod_revision(pod), revision)) {
            world_object_delete(pod, CONTROLLER, -1);
            return;
        }
    }
}

static void statefulset_status(struct world_object *t, struct str revision)
{
    struct arena *a = &t->w->tmp;
    const struct jval *object = world_object_get(t);
    uint32_t replicas = 0;
    uint32_t ready = 0;
    uint32_t updated = 0;
    LIST_EACH (&t->children, item) {
        struct world_object *pod = WORLD_OBJECT_OF(item, sibling);
        replicas++;
        ready += pod->ready;
        updated += !pod->deleting && str_eq(world_set_pod_revision(pod), revision);
    }
    struct str current = jval_str(jval_at(object, "status.currentRevision"));
    current = updated == replicas || current.n == 0 ? revision : current;
    struct tree *status = tree_obj(a);
    tree_set(a, status, STR("observedGeneration"),
             tree_i64(a, jval_number(object, "metadata.generation", 1)));
    tree_set(a, status, STR("replicas"), tree_i64(a, replicas));
    tree_set(a, status, STR("readyReplicas"), ready > 0 ? tree_i64(a, ready) : tree_null(a));
    tree_set(a, status, STR("availableReplicas"), tree_i64(a, ready));
    tree_set(a, status, STR("currentReplicas"),
             tree_i64(a, str_eq(current, revision) ? updated : replicas - updated));
    tree_set(a, status, STR("updatedReplicas"), tree_i64(a, updated));
    tree_set(a, status, STR("currentRevision"), tree_str(a, current));
    tree_set(a, status, STR("updateRevision"), tree_str(a, revision));
    tree_set(a, status, STR("collisionCount"), tree_i64(a, 0));
    world_object_set_status(t, CONTROLLER, status);
}

void statefulset_reconcile(struct world *w, struct world_object *t, const struct jval *object)
{
    struct str hash = workload_template_hash(w, jval_at(object, "spec.template"));
    struct str revision =
        arena_printf(&w->tmp, STR_FMT "-" STR_FMT, STR_ARG(t->name), STR_ARG(hash));
    bool ordered = !str_eq(jval_str(jval_at(object, "spec.podManagementPolicy")), STR("Parallel"));
    bool roll = !str_eq(jval_str(jval_at(object, "spec.updateStrategy.type")), STR("OnDelete"));
    statefulset_step(t, jval_number(object, "spec.replicas", 1), revision, ordered, roll);
    statefulset_status(t, revision);
}

/* Tolerations of every DaemonSet pod, so that it stays on nodes that other pods leave. */
static const struct {
    const char *key, *effect;
} daemonset_tolerations[] = {
    { "node.kubernetes.io/not-ready", "NoExecute" },
    { "node.kubernetes.io/unreachable", "NoExecute" },
    { "node.kubernetes.io/disk-pressure", "NoSchedule" },
    { "node.kubernetes.io/memory-pressure", "NoSchedule" },
    { "node.kubernetes.io/pid-pressure", "NoSchedule" },
    { "node.kubernetes.io/unschedulable", "NoSchedule" },
};

static void daemonset_add_tolerations(struct world_object *t, struct tree *pod)
{
    struct arena *a = &t->w->tmp;
    struct tree *list = tree_at(pod, "spec.tolerations");
    if (tree_kind(list) != JARR) {
        list = tree_arr(a);
        tree_set_at(a, pod, "spec.tolerations", list);
    }
    for (size_t i = 0; i < ARRAY_LEN(daemonset_tolerations); i++) {
        struct tree *toleration = tree_obj(a);
        tree_set(a, toleration, STR("key"), tree_str(a, str_from(daemonset_tolerations[i].key)));
        tree_set(a, toleration, STR("operator"), tree_str(a, STR("Exists")));
        tree_set(a, toleration, STR("effect"),
                 tree_str(a, str_from(daemonset_tolerations[i].effect)));
        tree_add(list, toleration);
    }
}

static void daemonset_create(struct world_object *t, struct world_object *node, struct str revision)
{
    struct arena *a = &t->w->tmp;
    struct tree *pod = world_set_new_pod(t, STR(""), revision);
    if (pod == NULL) {
        return;
    }
    struct tree *affinity;
    struct err err = { 0 };
    struct str text =
        arena_printf(a,
                     "{\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":"
                     "\"metadata.name\",\"operator\":\"In\",\"values\":[\"" STR_FMT "\"]}]}]}",
                     STR_ARG(node->name));
    if (tree_parse(text, a, &affinity, &err) != 0) {
        return; /* node names need no quoting, so this does not happen */
    }
    tree_set_at(a, pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
                affinity);
    daemonset_add_tolerations(t, pod);
    workload_create_pod(t, pod);
}

/* Whether the set wants a pod on the node: its selector matches and no other taint forbids it. */
static bool daemonset_runs_on(const struct jval *object, const struct jval *node)
{
    const struct jval *labels = jval_at(node, "metadata.labels");
    JVAL_EACH (jval_at(object, "spec.template.spec.nodeSelector"), want) {
        if (!str_eq(jval_str(jval_get(labels, jval_key(want))), jval_str(want))) {
            return false;
        }
    }
    JVAL_EACH (jval_at(node, "spec.taints"), taint) {
        struct str key = jval_str(jval_get(taint, STR("key")));
        int64_t seconds = -1;
        if (!str_starts(key, STR("node.kubernetes.io/")) &&
            !str_eq(jval_str(jval_get(taint, STR("effect"))), STR("PreferNoSchedule")) &&
            !scheduler_tolerates(jval_at(object, "spec.template.spec.tolerations"), taint,
                                 &seconds)) {
            return false;
        }
    }
    return true;
}

/* The set's pod on that node, bound to it or pinned to it by affinity. */
static struct world_object *daemonset_pod(struct world_object *t, struct world_object *node)
{
    LIST_EACH (&t->children, item) {
        struct world_object *pod = WORLD_OBJECT_OF(item, sibling);
        if (pod->node == node && !pod->finished) {
            return pod;
        }
        if (!pod->bound) {
            const struct jval *terms =
                jval_at(world_object_get(pod), "spec.affinity.nodeAffinity."
                                               "requiredDuringSchedulingIgnoredDuringExecution."
                                               "nodeSelectorTerms");
            const struct jval *field = jval_first(jval_at(jval_first(terms), "matchFields"));
            if (str_eq(jval_str(jval_first(jval_at(field, "values"))), node->name)) {
                return pod;
            }
        }
    }
    return NULL;
}

void daemonset_reconcile(struct world *w, struct world_object *t, const struct jval *object)
{
    struct str hash = workload_template_hash(w, jval_at(object, "spec.template"));
    uint32_t desired = 0;
    uint32_t current = 0;
    uint32_t ready = 0;
    uint32_t updated = 0;
    bool rolling = false;
    bool roll = !str_eq(jval_str(jval_at(object, "spec.updateStrategy.type")), STR("OnDelete"));
    WORLD_OBJECTS_EACH(w, WORLD_NODE, node)
    {
        struct world_object *pod = daemonset_pod(t, node);
        bool wanted = daemonset_runs_on(world_object_get(t), world_object_get(node));
        desired += wanted;
        if (pod == NULL && wanted) {
            daemonset_create(t, node, hash);
        } else if (pod != NULL && !wanted && !pod->deleting) {
            world_object_delete(pod, CONTROLLER, -1);
        } else if (pod != NULL && wanted) {
            bool fresh = str_eq(world_set_pod_revision(pod), hash);
            current++;
            ready += pod->ready;
            updated += fresh;
            rolling |= pod->deleting || !pod->ready;
            if (!fresh && roll && !rolling) {
                rolling = true; /* one at a time, as maxUnavailable is by default */
                world_object_delete(pod, CONTROLLER, -1);
            }
        }
    }
    struct arena *a = &w->tmp;
    struct tree *status = tree_obj(a);
    tree_set(a, status, STR("currentNumberScheduled"), tree_i64(a, current));
    tree_set(a, status, STR("numberMisscheduled"), tree_i64(a, 0));
    tree_set(a, status, STR("desiredNumberScheduled"), tree_i64(a, desired));
    tree_set(a, status, STR("numberReady"), tree_i64(a, ready));
    tree_set(a, status, STR("observedGeneration"),
             tree_i64(a, jval_number(world_object_get(t), "metadata.generation", 1)));
    tree_set(a, status, STR("updatedNumberScheduled"),
             updated > 0 ? tree_i64(a, updated) : tree_null(a));
    tree_set(a, status, STR("numberAvailable"), ready > 0 ? tree_i64(a, ready) : tree_null(a));
    tree_set(a, status, STR("numberUnavailable"),
             desired > ready ? tree_i64(a, desired - ready) : tree_null(a));
    world_object_set_status(t, CONTROLLER, status);
}
