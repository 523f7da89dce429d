/* world_scheduler: binds Pods to Nodes: taints, node selectors, affinity and spreading. */
#include "sandbox/world/world_internal.h"

#define SCHEDULER "kube-scheduler"
#define SCHEDULER_PODS_MAX 110u /* of one node, as the kubelet's maxPods */

bool scheduler_tolerates(const struct jval *tolerations, const struct jval *taint,
                         int64_t *ret_seconds)
{
    struct str key = jval_str(jval_get(taint, STR("key")));
    struct str value = jval_str(jval_get(taint, STR("value")));
    struct str effect = jval_str(jval_get(taint, STR("effect")));
    bool tolerates = false;
    JVAL_EACH (tolerations, t) {
        struct str its_key = jval_str(jval_get(t, STR("key")));
        struct str its_effect = jval_str(jval_get(t, STR("effect")));
        bool exists = str_eq(jval_str(jval_get(t, STR("operator"))), STR("Exists"));
        if ((its_effect.n > 0 && !str_eq(its_effect, effect)) ||
            (its_key.n > 0 ? !str_eq(its_key, key) : !exists) ||
            (!exists && !str_eq(jval_str(jval_get(t, STR("value"))), value))) {
            continue;
        }
        tolerates = true;
        int64_t seconds = jval_number(t, "tolerationSeconds", -1);
        /* Of several tolerations, the one with the shortest tolerationSeconds counts. */
        if (seconds >= 0 && (*ret_seconds < 0 || seconds < *ret_seconds)) {
            *ret_seconds = seconds;
        }
    }
    return tolerates;
}

/* The name that node affinity pins the pod to, as a DaemonSet's does; or none. */
static struct str scheduler_pinned_node(const struct jval *pod)
{
    const struct jval *terms = jval_at(pod, "spec.affinity.nodeAffinity."
                                            "requiredDuringSchedulingIgnoredDuringExecution."
                                            "nodeSelectorTerms");
    const struct jval *field = jval_first(jval_at(jval_first(terms), "matchFields"));
    return jval_str(jval_first(jval_at(field, "values")));
}

static bool scheduler_selector_fits(const struct jval *pod, const struct jval *node)
{
    const struct jval *labels = jval_at(node, "metadata.labels");
    JVAL_EACH (jval_at(pod, "spec.nodeSelector"), want) {
        if (!str_eq(jval_str(jval_get(labels, jval_key(want))), jval_str(want))) {
            return false;
        }
    }
    return true;
}

/* Required anti-affinity by host: no pod there that one of the selectors matches. */
static bool scheduler_anti_affinity_fits(struct world *w, struct world_object *pod,
                                         const struct jval *object, struct world_object *node)
{
    const struct jval *terms = jval_at(object, "spec.affinity.podAntiAffinity."
                                               "requiredDuringSchedulingIgnoredDuringExecution");
    JVAL_EACH (terms, term) {
        struct selector selector;
        struct err err = { 0 };
        if (!str_eq(jval_str(jval_at(term, "topologyKey")), STR("kubernetes.io/hostname")) ||
            selector_from_jval(jval_at(term, "labelSelector"), &w->tmp, &selector, &err) != 0) {
            continue; /* other topology keys are not modelled and count as satisfied */
        }
        LIST_EACH (&node->pods, item) {
            struct world_object *other = WORLD_OBJECT_OF(item, on_node);
            if (!other->finished && str_eq(other->namespace, pod->namespace) &&
                selector_match_jval(&selector,
                                    jval_at(world_object_get(other), "metadata.labels"))) {
                return false;
            }
        }
    }
    return true;
}

static bool scheduler_fits(struct world *w, struct world_object *pod, const struct jval *object,
                           struct world_object *node)
{
    const struct jval *node_object = world_object_get(node);
    const struct jval *tolerations = jval_at(object, "spec.tolerations");
    if (node->pods_n >= SCHEDULER_PODS_MAX || !scheduler_selector_fits(object, node_object)) {
        return false;
    }
    JVAL_EACH (jval_at(node_object, "spec.taints"), taint) {
        int64_t seconds = -1;
        if (!str_eq(jval_str(jval_get(taint, STR("effect"))), STR("PreferNoSchedule")) &&
            !scheduler_tolerates(tolerations, taint, &seconds)) {
            return false;
        }
    }
    return scheduler_anti_affinity_fits(w, pod, object, node);
}

static void scheduler_mark_unschedulable(struct world *w, struct world_object *t,
                                         const struct jval *object)
{
    struct str message =
        arena_printf(&w->tmp, "0/%u nodes are available.", map_count(&w->objects[WORLD_NODE]));
    struct tree *status = tree_obj(&w->tmp);
    struct tree *list = tree_arr(&w->tmp);
    tree_add(list, world_condition(w, jval_at(object, "status.conditions"), "PodScheduled", "False",
                                   "Unschedulable", message.p));
    tree_set(&w->tmp, status, STR("conditions"), list);
    if (!list_linked(&t->waiting)) {
        list_add(&w->waiting, &t->waiting);
    }
    world_object_set_status(t, SCHEDULER, status);
}

static void scheduler_bind(struct world *w, struct world_object *t, struct world_object *node)
{
    struct str body = arena_printf(&w->tmp,
                                   "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{"
                                   "\"name\":\"" STR_FMT "\"},\"target\":{\"apiVersion\":\"v1\","
                                   "\"kind\":\"Node\",\"name\":\"" STR_FMT "\"}}",
                                   STR_ARG(t->name), STR_ARG(node->name));
    (void)world_send(w, SCHEDULER, "POST", world_object_url(t, "/binding"), body, NULL);
}

void scheduler_place_pod(struct world *w, struct world_object *t)
{
    const struct jval *object = world_object_get(t);
    struct str pinned = scheduler_pinned_node(object);
    if (pinned.n > 0) {
        struct world_object *node = world_find(w, WORLD_NODE, pinned);
        if (node != NULL && scheduler_fits(w, t, object, node)) {
            scheduler_bind(w, t, node);
        } else {
            scheduler_mark_unschedulable(w, t, object);
        }
        return;
    }
    WORLD_OBJECTS_EACH(w, WORLD_NODE, node)
    {
        node->score = node->pods_n;
    }
    if (t->owner != NULL) {
        LIST_EACH (&t->owner->children, item) {
            struct world_object *other = WORLD_OBJECT_OF(item, sibling);
            if (other->node != NULL && !other->finished) {
                other->node->score +=
                    1000; /* away from pods of the same owner first, then to the emptiest node */
            }
        }
    }
    struct world_object *best = NULL;
    WORLD_OBJECTS_EACH(w, WORLD_NODE, node)
    {
        if ((best == NULL || node->score < best->score) && node->schedulable &&
            scheduler_fits(w, t, object, node)) {
            best = node;
        }
    }
    if (best != NULL) {
        scheduler_bind(w, t, best);
    } else {
        scheduler_mark_unschedulable(w, t, object);
    }
}

void scheduler_retry_waiting(struct world *w)
{
    LIST_EACH (&w->waiting, item) {
        world_mark_dirty(WORLD_OBJECT_OF(item, waiting));
    }
}
