/* world_disruption: the status of PodDisruptionBudgets, as the real controller computes it. */
#include "base/timestamp.h"
#include "sandbox/world/world_internal.h"

#define CONTROLLER "kube-controller-manager"
/* An evicted pod that still runs after this time counts as healthy again. */
#define PDB_DISRUPTED_TIMEOUT SECONDS(120)

void pdb_pod_changed(struct world *w, struct str namespace)
{
    WORLD_OBJECTS_EACH(w, WORLD_PDB, t)
    {
        if (str_eq(t->namespace, namespace)) {
            world_mark_dirty(t);
        }
    }
}

/* The object whose spec.replicas counts: a pod's controller, or its ReplicaSet's Deployment. */
static struct world_object *pdb_pod_controller(struct world_object *pod)
{
    struct world_object *owner = pod->owner;
    return owner != NULL && owner->kind == WORLD_REPLICASET && owner->owner != NULL ? owner->owner
                                                                                    : owner;
}

struct pdb_pod_count {
    uint32_t pods;
    uint32_t healthy;
    int64_t scale; /* what the pods' controllers want together */
};

/* Entries of status.disruptedPods that still count: the pod exists, is not yet deleting, and was
 * evicted a short time ago. */
static struct tree *pdb_disrupted_pods(struct world_object *t, const struct jval *object,
                                       usec_t *ret_next_wall)
{
    struct world *w = t->w;
    usec_t wall = loop_wall(w->loop);
    struct tree *kept = tree_obj(&w->tmp);
    *ret_next_wall = USEC_NEVER;
    JVAL_EACH (jval_at(object, "status.disruptedPods"), entry) {
        struct str key = arena_printf(&w->tmp, STR_FMT "/" STR_FMT, STR_ARG(t->namespace),
                                      STR_ARG(jval_key(entry)));
        struct world_object *pod = world_find(w, WORLD_POD, key);
        struct timestamp at;
        struct err err = { 0 };
        if (pod == NULL || pod->deleting || timestamp_parse(jval_str(entry), &at, &err) != 0) {
            continue;
        }
        usec_t until = timestamp_to_usec(at) + PDB_DISRUPTED_TIMEOUT;
        if (until > wall) {
            tree_set(&w->tmp, kept, jval_key(entry), tree_str(&w->tmp, jval_str(entry)));
            *ret_next_wall = MIN(*ret_next_wall, until);
        }
    }
    return kept;
}

static void pdb_count_pods(struct world_object *t, const struct selector *selector,
                           const struct tree *disrupted, struct pdb_pod_count *ret)
{
    struct world *w = t->w;
    *ret = (struct pdb_pod_count){ 0 };
    CLEANUP(map_done)
    struct map seen = { 0 };
    WORLD_OBJECTS_EACH(w, WORLD_POD, pod)
    {
        if (!str_eq(pod->namespace, t->namespace) ||
            !selector_match_jval(selector, jval_at(world_object_get(pod), "metadata.labels"))) {
            continue;
        }
        ret->pods++;
        ret->healthy +=
            pod->ready && !pod->deleting && tree_get(disrupted, pod->name) == NULL ? 1 : 0;
        struct world_object *controller = pdb_pod_controller(pod);
        if (controller != NULL && map_find(&seen, controller->uid) == NULL) {
            (void)map_put(&seen, controller->uid, controller); /* it was not there */
            ret->scale += jval_number(world_object_get(controller), "spec.replicas", 0);
        }
    }
}

static void pdb_write_status(struct world_object *t, const struct pdb_pod_count *n,
                             int64_t expected, int64_t desired, struct tree *disrupted)
{
    struct world *w = t->w;
    struct arena *a = &w->tmp;
    const struct jval *object = world_object_get(t);
    int64_t generation = jval_number(object, "metadata.generation", 1);
    int64_t allowed = expected > 0 ? MAX((int64_t)n->healthy - desired, 0) : 0;
    struct tree *status = tree_obj(a);
    tree_set(a, status, STR("currentHealthy"), tree_i64(a, n->healthy));
    tree_set(a, status, STR("desiredHealthy"), tree_i64(a, desired));
    tree_set(a, status, STR("disruptionsAllowed"), tree_i64(a, allowed));
    tree_set(a, status, STR("expectedPods"), tree_i64(a, expected));
    tree_set(a, status, STR("observedGeneration"), tree_i64(a, generation));
    struct tree *list = tree_arr(a);
    struct tree *c = world_condition(w, jval_at(object, "status.conditions"), "DisruptionAllowed",
                                     allowed > 0 ? "True" : "False",
                                     allowed > 0 ? "SufficientPods" : "InsufficientPods", "");
    tree_set(a, c, STR("observedGeneration"), tree_i64(a, generation));
    tree_add(list, c);
    tree_set(a, status, STR("conditions"), list);
    /* A merge patch removes an entry only by an explicit null. */
    JVAL_EACH (jval_at(object, "status.disruptedPods"), entry) {
        if (tree_get(disrupted, jval_key(entry)) == NULL) {
            tree_set(a, disrupted, jval_key(entry), tree_null(a));
        }
    }
    if (disrupted->n > 0) {
        tree_set(a, status, STR("disruptedPods"), disrupted);
    }
    world_object_set_status(t, CONTROLLER, status);
}

void pdb_reconcile(struct world *w, struct world_object *t, const struct jval *object)
{
    struct selector selector;
    struct err err = { 0 };
    if (selector_from_jval(jval_at(object, "spec.selector"), &w->tmp, &selector, &err) != 0) {
        return; /* the server refuses selectors that cannot be read */
    }
    usec_t next_wall;
    struct tree *disrupted = pdb_disrupted_pods(t, object, &next_wall);
    struct pdb_pod_count n;
    pdb_count_pods(t, &selector, disrupted, &n);
    const struct jval *most = jval_at(object, "spec.maxUnavailable");
    const struct jval *least = jval_at(object, "spec.minAvailable");
    int64_t expected = n.pods;
    int64_t desired = 0;
    if (most != NULL) {
        expected = n.scale;
        desired = MAX(expected - jval_int_or_percent(most, expected, true, 0), 0);
    } else if (least != NULL) {
        expected = jval_kind(least) == JSTR ? n.scale : n.pods;
        desired = jval_int_or_percent(least, expected, true, 0);
    }
    pdb_write_status(t, &n, expected, desired, disrupted);
    if (next_wall != USEC_NEVER) {
        world_mark_dirty_at(t, loop_now(w->loop) + next_wall - loop_wall(w->loop));
    }
}
