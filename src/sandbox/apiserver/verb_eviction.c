/* verb_eviction: the pods/eviction and pods/binding subresources. Evictions spend what
 * PodDisruptionBudgets allow. */
#include "sandbox/apiserver/apiserver_internal.h"

/* Budgets whose selector matches the pod: how many there are, and the first. */
static struct object *eviction_find_pdb(struct request_ctx *c, const struct object *pod,
                                        uint32_t *ret_n)
{
    const struct object_store *store = storage_get_store(&c->s->storage, c->s->pdbs->store);
    struct object *found = NULL;
    *ret_n = 0;
    for (uint32_t i = 0; i < store->n; i++) {
        struct object *pdb = store->items[i];
        struct selector selector;
        struct err err = { 0 };
        if (!str_eq(pdb->namespace, pod->namespace) ||
            selector_from_jval(jval_at(pdb->root, "spec.selector"), c->a, &selector, &err) < 0 ||
            !selector_match_jval(&selector, jval_get(pod->metadata, STR("labels")))) {
            continue;
        }
        if ((*ret_n)++ == 0) {
            found = pdb;
        }
    }
    return found;
}

static bool eviction_pod_ready(const struct object *pod)
{
    JVAL_EACH (jval_at(pod->root, "status.conditions"), condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), STR("Ready"))) {
            return str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"));
        }
    }
    return false;
}

/* Pods that are pending, finished or deleting are evicted whatever the budget says. */
static bool eviction_ignores_pdb(const struct object *pod)
{
    struct str phase = jval_str(jval_at(pod->root, "status.phase"));
    return str_eq(phase, STR("Pending")) || str_eq(phase, STR("Succeeded")) ||
           str_eq(phase, STR("Failed")) ||
           jval_get(pod->metadata, STR("deletionTimestamp")) != NULL;
}

static struct status *eviction_blocked(struct request_ctx *c, struct str why,
                                       uint32_t retry_seconds)
{
    struct status *s =
        status_new(c->a, 429, "TooManyRequests",
                   STR("Cannot evict pod as it would violate the pod's disruption budget."));
    struct status_cause *cause = ARENA_NEW(c->a, struct status_cause);
    cause->reason = STR("DisruptionBudget");
    cause->message = why;
    s->first_cause = cause;
    s->last_cause = cause;
    s->retry_after_seconds = retry_seconds;
    return s;
}

static int64_t eviction_pdb_number(const struct object *pdb, const char *path)
{
    int64_t n = 0;
    (void)jval_i64(jval_at(pdb->root, path), &n); /* else 0 */
    return n;
}

/* The condition the real server sets when it has spent the last disruption. */
static void eviction_condition(struct request_ctx *c, struct tree *obj, int64_t generation)
{
    struct arena *a = c->a;
    struct tree *list = tree_at(obj, "status.conditions");
    if (tree_kind(list) != JARR) {
        list = tree_arr(a);
        tree_set_at(a, obj, "status.conditions", list);
    }
    struct tree *condition = NULL;
    TREE_EACH (list, item) {
        if (str_eq(tree_text_at(item, "type"), STR("DisruptionAllowed"))) {
            condition = item;
        }
    }
    if (condition == NULL) {
        condition = tree_obj(a);
        tree_set(a, condition, STR("type"), tree_str(a, STR("DisruptionAllowed")));
        tree_add(list, condition);
    }
    bool changed = !str_eq(tree_text_at(condition, "status"), STR("False"));
    tree_set(a, condition, STR("status"), tree_str(a, STR("False")));
    tree_set(a, condition, STR("observedGeneration"), tree_i64(a, generation));
    if (changed) {
        tree_set(a, condition, STR("lastTransitionTime"), tree_str(a, apiserver_time(c->s, a)));
    }
    tree_set(a, condition, STR("reason"), tree_str(a, STR("InsufficientPods")));
    tree_set(a, condition, STR("message"), tree_str(a, STR("")));
}

static void eviction_use_pdb(struct request_ctx *c, const struct object *pdb, struct str pod)
{
    struct arena *a = c->a;
    struct tree *obj = object_tree(pdb, a);
    int64_t allowed = eviction_pdb_number(pdb, "status.disruptionsAllowed") - 1;
    tree_set_at(a, obj, "status.disruptionsAllowed", tree_i64(a, allowed));
    if (allowed == 0) {
        eviction_condition(c, obj, eviction_pdb_number(pdb, "metadata.generation"));
    }
    tree_set(a, tree_make_at(a, obj, "status.disruptedPods"), pod,
             tree_str(a, apiserver_time(c->s, a)));
    apiserver_store_object(c->s, pdb->store, obj, STR("kube-apiserver"), a);
}

/* NULL: the eviction is allowed; the budget has counted a disruption where it had to. */
static struct status *eviction_check_pdb(struct request_ctx *c, const struct object *pod,
                                         bool dry_run)
{
    uint32_t n;
    struct object *pdb = eviction_find_pdb(c, pod, &n);
    if (n > 1) {
        return status_internal(c->a, STR("This pod has more than one PodDisruptionBudget, which "
                                         "the eviction subresource does not support."));
    }
    if (pdb == NULL) {
        return NULL;
    }
    int64_t healthy = eviction_pdb_number(pdb, "status.currentHealthy");
    int64_t desired = eviction_pdb_number(pdb, "status.desiredHealthy");
    bool always =
        str_eq(jval_str(jval_at(pdb->root, "spec.unhealthyPodEvictionPolicy")), STR("AlwaysAllow"));
    if (!eviction_pod_ready(pod) && (always || (healthy >= desired && desired > 0))) {
        return NULL;
    }
    if (eviction_pdb_number(pdb, "status.observedGeneration") <
        eviction_pdb_number(pdb, "metadata.generation")) {
        return eviction_blocked(c,
                                arena_printf(c->a,
                                             "The disruption budget " STR_FMT
                                             " is still being processed by the server.",
                                             STR_ARG(pdb->name)),
                                10);
    }
    if (eviction_pdb_number(pdb, "status.disruptionsAllowed") <= 0) {
        return eviction_blocked(c,
                                arena_printf(c->a,
                                             "The disruption budget " STR_FMT
                                             " needs %lld healthy pods and has %lld currently",
                                             STR_ARG(pdb->name), (long long)desired,
                                             (long long)healthy),
                                0);
    }
    if (!dry_run) {
        eviction_use_pdb(c, pdb, pod->name);
    }
    return NULL;
}

static struct tree *eviction_pod_condition(struct request_ctx *c)
{
    struct arena *a = c->a;
    struct tree *condition = tree_obj(a);
    tree_set(a, condition, STR("type"), tree_str(a, STR("DisruptionTarget")));
    tree_set(a, condition, STR("status"), tree_str(a, STR("True")));
    tree_set(a, condition, STR("lastProbeTime"), tree_null(a));
    tree_set(a, condition, STR("lastTransitionTime"), tree_str(a, apiserver_time(c->s, a)));
    tree_set(a, condition, STR("reason"), tree_str(a, STR("EvictionByEvictionAPI")));
    tree_set(a, condition, STR("message"), tree_str(a, STR("Eviction API: evicting")));
    return condition;
}

/* Sets the condition DisruptionTarget, then deletes the pod: two writes, as on the real server. */
static struct status *eviction_delete_pod(struct request_ctx *c, struct object *pod,
                                          struct delete_options *options)
{
    struct status *status = delete_preconditions(c, pod, options);
    if (status != NULL) {
        return status;
    }
    if (options->dry_run) {
        return NULL;
    }
    if (jval_get(pod->metadata, STR("deletionTimestamp")) == NULL) {
        struct tree *obj = object_tree(pod, c->a);
        struct tree *list = tree_at(obj, "status.conditions");
        if (tree_kind(list) != JARR) {
            list = tree_arr(c->a);
            tree_set_at(c->a, obj, "status.conditions", list);
        }
        TREE_EACH (list, condition) {
            if (str_eq(tree_text_at(condition, "type"), STR("DisruptionTarget"))) {
                tree_remove(list, condition);
            }
        }
        tree_add(list, eviction_pod_condition(c));
        apiserver_store_object(c->s, pod->store, obj, STR("kube-apiserver"), c->a);
        pod = request_find_object(c);
        ASSERT(pod != NULL);
    }
    options->uid = STR("");
    options->resource_version = STR(""); /* it was checked before the condition was written */
    struct object *now;
    bool gone;
    status = delete_object(c, pod, options, &now, &gone);
    if (status == NULL) {
        object_unref(now);
    }
    return status;
}

static void eviction_success(struct request_ctx *c)
{
    struct tree *t = status_success(c->a, c->kind, STR(""), STR(""));
    tree_set(c->a, t, STR("code"), tree_i64(c->a, 201));
    reply_tree(c, 201, t);
}

struct status *verb_evict(struct request_ctx *c)
{
    struct tree *body;
    struct status *status = decode_body(c, STR("Eviction"), &body);
    if (status != NULL) {
        return status;
    }
    status = write_check_namespace(c, c->route.name);
    if (status != NULL) {
        return status;
    }
    if (!str_eq(tree_text_at(body, "metadata.name"), c->route.name)) {
        return status_bad_request(c->a, "name in URL does not match name in Eviction object");
    }
    struct delete_options options;
    status = delete_options_read(c, tree_get(body, STR("deleteOptions")), &options);
    if (status != NULL) {
        return status;
    }
    struct object *pod = request_find_object(c);
    if (pod == NULL) {
        return status_not_found(c->a, c->kind, c->route.name);
    }
    if (!eviction_ignores_pdb(pod)) {
        status = eviction_check_pdb(c, pod, options.dry_run);
        if (status != NULL) {
            return status;
        }
    }
    status = eviction_delete_pod(c, pod, &options);
    if (status == NULL) {
        eviction_success(c);
    }
    return status;
}

/* pods/binding: the scheduler assigns the pod to a node. */
struct status *verb_bind(struct request_ctx *c)
{
    struct arena *a = c->a;
    struct tree *body;
    struct status *status = decode_body(c, STR("Binding"), &body);
    if (status != NULL) {
        return status;
    }
    struct object *pod = request_find_object(c);
    if (pod == NULL) {
        return status_not_found(a, c->kind, c->route.name);
    }
    struct str node = tree_text_at(body, "target.name");
    struct str bound = jval_str(jval_at(pod->root, "spec.nodeName"));
    if (bound.n > 0 || jval_get(pod->metadata, STR("deletionTimestamp")) != NULL) {
        return status_conflict(
            a, c->kind, pod->name,
            bound.n == 0
                ? arena_printf(a, "pod " STR_FMT " is being deleted, cannot be assigned to a host",
                               STR_ARG(pod->name))
                : arena_printf(a, "pod " STR_FMT " is already assigned to node \"" STR_FMT "\"",
                               STR_ARG(pod->name), STR_ARG(bound)));
    }
    struct tree *obj = object_tree(pod, a);
    tree_set_at(a, obj, "spec.nodeName", tree_str(a, node));
    struct tree *list = tree_at(obj, "status.conditions");
    if (tree_kind(list) != JARR) {
        list = tree_arr(a);
        tree_set_at(a, obj, "status.conditions", list);
    }
    TREE_EACH (list, condition) {
        if (str_eq(tree_text_at(condition, "type"), STR("PodScheduled"))) {
            tree_remove(list, condition);
        }
    }
    struct tree *condition = tree_obj(a);
    tree_set(a, condition, STR("type"), tree_str(a, STR("PodScheduled")));
    tree_set(a, condition, STR("status"), tree_str(a, STR("True")));
    tree_set(a, condition, STR("lastProbeTime"), tree_null(a));
    tree_set(a, condition, STR("lastTransitionTime"), tree_str(a, apiserver_time(c->s, a)));
    tree_add(list, condition);
    if (!c->dry_run) {
        apiserver_store_object(c->s, pod->store, obj, c->manager, a);
    }
    eviction_success(c);
    return NULL;
}
