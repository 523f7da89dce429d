/* world_workload: the controllers of Deployments and ReplicaSets, and what all workloads share. */
#include "sandbox/world/world_internal.h"

#define CONTROLLER "kube-controller-manager"

struct workload_count workload_count(struct world_object *owner)
{
    struct workload_count n = { 0 };
    LIST_EACH (&owner->children, item) {
        struct world_object *t = WORLD_OBJECT_OF(item, sibling);
        n.alive += !t->deleting && !t->finished;
        n.ready += !t->deleting && !t->finished && t->ready;
        n.deleting += t->deleting && !t->finished;
        n.succeeded += t->succeeded;
        n.failed += t->finished && !t->succeeded;
    }
    return n;
}

struct tree *workload_owner_reference(struct world_object *owner)
{
    struct arena *a = &owner->w->tmp;
    const struct world_kind_info *type = &world_kinds[owner->kind];
    struct tree *ref = tree_obj(a);
    tree_set(a, ref, STR("apiVersion"),
             tree_str(a, arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(type->group),
                                      STR_ARG(type->version))));
    tree_set(a, ref, STR("kind"), tree_str(a, type->kind));
    tree_set(a, ref, STR("name"), tree_str(a, owner->name));
    tree_set(a, ref, STR("uid"), tree_str(a, owner->uid));
    tree_set(a, ref, STR("controller"), tree_bool(a, true));
    tree_set(a, ref, STR("blockOwnerDeletion"), tree_bool(a, true));
    struct tree *list = tree_arr(a);
    tree_add(list, ref);
    return list;
}

struct tree *workload_new_pod(struct world_object *owner, const struct jval *object,
                              struct str name)
{
    struct arena *a = &owner->w->tmp;
    struct tree *pod = tree_from(a, jval_at(object, "spec.template"));
    if (tree_kind(pod) != JOBJ) {
        return NULL;
    }
    tree_set(a, pod, STR("apiVersion"), tree_str(a, STR("v1")));
    tree_set(a, pod, STR("kind"), tree_str(a, STR("Pod")));
    (void)tree_make_at(a, pod, "metadata");
    (void)tree_del_at(pod, "metadata.creationTimestamp"); /* the template's, and null */
    if (name.n > 0) {
        tree_set_at(a, pod, "metadata.name", tree_str(a, name));
    } else {
        tree_set_at(a, pod, "metadata.generateName",
                    tree_str(a, arena_printf(a, STR_FMT "-", STR_ARG(owner->name))));
    }
    tree_set_at(a, pod, "metadata.ownerReferences", workload_owner_reference(owner));
    return pod;
}

void workload_create_pod(struct world_object *owner, struct tree *pod)
{
    struct world *w = owner->w;
    struct str path =
        arena_printf(&w->tmp, "/api/v1/namespaces/" STR_FMT "/pods", STR_ARG(owner->namespace));
    int status = world_send(w, CONTROLLER, "POST", path, tree_json(&w->tmp, pod), NULL);
    if (status == 409) {
        /* A pod of that name is still being deleted; its end makes the owner dirty again. */
        return;
    }
}

struct str workload_template_hash(struct world *w, const struct jval *template)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    static const uint64_t key[2] = { 0, 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer writer = json_writer_on(&text);
    jw_val(&writer, template);
    uint64_t hash = map_hash(key, buf_str(&text));
    char out[10];
    for (size_t i = 0; i < sizeof(out); i++) {
        out[i] = letters[hash % (sizeof(letters) - 1)];
        hash /= sizeof(letters) - 1;
    }
    return arena_str(&w->tmp, (struct str){ out, sizeof(out) });
}

/* Which pod to delete first: not bound, then not ready, then the youngest. */
static struct world_object *replicaset_pick_pod_to_delete(struct world_object *set)
{
    struct world_object *best = NULL;
    uint32_t best_rank = 0;
    LIST_EACH (&set->children, item) {
        struct world_object *t = WORLD_OBJECT_OF(item, sibling);
        uint32_t rank = !t->bound ? 3 : !t->ready ? 2 : 1;
        if (t->kind == WORLD_POD && !t->deleting && !t->finished && rank >= best_rank) {
            best = t;
            best_rank = rank;
        }
    }
    return best;
}

void replicaset_reconcile(struct world *w, struct world_object *t, const struct jval *object)
{
    int64_t want = jval_number(object, "spec.replicas", 1);
    int64_t generation = jval_number(object, "metadata.generation", 1);
    struct workload_count n = workload_count(t);
    for (int64_t i = n.alive; i < want; i++) {
        struct tree *pod = workload_new_pod(t, world_object_get(t), STR(""));
        if (pod == NULL) {
            return;
        }
        workload_create_pod(t, pod);
    }
    for (int64_t i = want; i < n.alive; i++) {
        world_object_delete(replicaset_pick_pod_to_delete(t), CONTROLLER, -1);
    }
    n = workload_count(t);
    struct arena *a = &w->tmp;
    struct tree *status = tree_obj(a);
    tree_set(a, status, STR("replicas"), tree_i64(a, n.alive));
    tree_set(a, status, STR("fullyLabeledReplicas"),
             n.alive > 0 ? tree_i64(a, n.alive) : tree_null(a));
    tree_set(a, status, STR("readyReplicas"), n.ready > 0 ? tree_i64(a, n.ready) : tree_null(a));
    tree_set(a, status, STR("availableReplicas"),
             n.ready > 0 ? tree_i64(a, n.ready) : tree_null(a));
    tree_set(a, status, STR("observedGeneration"), tree_i64(a, generation));
    tree_set(a, status, STR("terminatingReplicas"), tree_i64(a, n.deleting));
    world_object_set_status(t, CONTROLLER, status);
}

static int64_t replicaset_spec_replicas(struct world_object *set)
{
    return jval_number(world_object_get(set), "spec.replicas", 0);
}

static void replicaset_scale(struct world_object *set, int64_t replicas)
{
    struct world *w = set->w;
    if (replicaset_spec_replicas(set) != replicas) {
        (void)world_patch(
            w, CONTROLLER, world_object_url(set, ""),
            arena_printf(&w->tmp, "{\"spec\":{\"replicas\":%lld}}", (long long)replicas));
    }
}

/* Creates the ReplicaSet of the current template with `replicas`. */
static void deployment_create_replicaset(struct world_object *t, const struct jval *object,
                                         struct str hash, int64_t replicas)
{
    struct world *w = t->w;
    struct arena *a = &w->tmp;
    struct tree *set = tree_obj(a);
    int64_t revision = 1;
    LIST_EACH (&t->children, item) {
        struct str text = jval_str(jval_get(
            jval_at(world_object_get(WORLD_OBJECT_OF(item, sibling)), "metadata.annotations"),
            STR("deployment.kubernetes.io/revision")));
        int64_t n;
        revision = str_to_i64(text, &n) ? MAX(revision, n + 1) : revision;
    }
    tree_set(a, set, STR("apiVersion"), tree_str(a, STR("apps/v1")));
    tree_set(a, set, STR("kind"), tree_str(a, STR("ReplicaSet")));
    tree_set_at(a, set, "metadata.name",
                tree_str(a, arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(t->name), STR_ARG(hash))));
    tree_set_at(a, set, "metadata.labels",
                tree_from(a, jval_at(object, "spec.template.metadata.labels")));
    struct tree *annotations = tree_make_at(a, set, "metadata.annotations");
    struct str number = arena_printf(a, "%lld", (long long)revision);
    tree_set(a, annotations, STR("deployment.kubernetes.io/revision"), tree_str(a, number));
    tree_set_at(a, set, "metadata.ownerReferences", workload_owner_reference(t));
    tree_set_at(a, set, "spec.replicas", tree_i64(a, replicas));
    tree_set_at(a, set, "spec.selector", tree_from(a, jval_at(object, "spec.selector")));
    tree_set_at(a, set, "spec.template", tree_from(a, jval_at(object, "spec.template")));
    static const char *const labels[] = { "metadata.labels", "spec.selector.matchLabels",
                                          "spec.template.metadata.labels" };
    for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
        tree_set(a, tree_make_at(a, set, labels[i]), STR("pod-template-hash"), tree_str(a, hash));
    }
    struct str path =
        arena_printf(a, "/apis/apps/v1/namespaces/" STR_FMT "/replicasets", STR_ARG(t->namespace));
    (void)world_send(w, CONTROLLER, "POST", path, tree_json(a, set), NULL);
    (void)world_patch(w, CONTROLLER, world_object_url(t, ""),
                      arena_printf(a,
                                   "{\"metadata\":{\"annotations\":{"
                                   "\"deployment.kubernetes.io/revision\":\"" STR_FMT "\"}}}",
                                   STR_ARG(number)));
}

struct deployment_rollout {
    struct world_object *current; /* the set of the current template, or NULL */
    int64_t want;
    int64_t surge;
    int64_t unavailable;
    bool recreate;
    uint32_t replicas;
    uint32_t ready;
    uint32_t deleting;
    uint32_t old_replicas;
    uint32_t old_spec;
};

static void deployment_rollout_read(struct world_object *t, const struct jval *object,
                                    struct str hash, struct deployment_rollout *ret)
{
    *ret = (struct deployment_rollout){
        .want = jval_number(object, "spec.replicas", 1),
        .recreate = str_eq(jval_str(jval_at(object, "spec.strategy.type")), STR("Recreate")),
    };
    const struct jval *rolling = jval_at(object, "spec.strategy.rollingUpdate");
    ret->surge = jval_int_or_percent(jval_at(rolling, "maxSurge"), ret->want, true, 1);
    ret->unavailable = jval_int_or_percent(jval_at(rolling, "maxUnavailable"), ret->want, false, 0);
    if (ret->surge == 0 && ret->unavailable == 0) {
        ret->unavailable = 1; /* 25% of two rounds down to 0, and the rollout would stand still */
    }
    LIST_EACH (&t->children, item) {
        struct world_object *set = WORLD_OBJECT_OF(item, sibling);
        struct workload_count n = workload_count(set);
        ret->replicas += n.alive;
        ret->ready += n.ready;
        ret->deleting += n.deleting;
        if (str_ends(set->name, hash)) {
            ret->current = set;
        } else {
            ret->old_replicas += n.alive;
            ret->old_spec += (uint32_t)replicaset_spec_replicas(set);
        }
    }
}

/* Scales old ReplicaSets down: unready pods at once, ready ones as far as maxUnavailable allows. */
static void deployment_scale_down_old(struct world_object *t, const struct deployment_rollout *r)
{
    int64_t spare = r->recreate ? INT32_MAX : (int64_t)r->ready - (r->want - r->unavailable);
    LIST_EACH (&t->children, item) {
        struct world_object *set = WORLD_OBJECT_OF(item, sibling);
        int64_t have = replicaset_spec_replicas(set);
        if (set == r->current || have == 0) {
            continue;
        }
        struct workload_count n = workload_count(set);
        int64_t unready = n.alive - n.ready;
        int64_t less = MIN(have, unready + MAX(spare, 0));
        spare -= MAX(less - unready, 0);
        replicaset_scale(set, have - less);
    }
}

static void deployment_status(struct world_object *t, const struct deployment_rollout *r)
{
    struct world *w = t->w;
    struct arena *a = &w->tmp;
    const struct jval *object = world_object_get(t);
    const struct jval *old = jval_at(object, "status.conditions");
    struct workload_count n =
        r->current != NULL ? workload_count(r->current) : (struct workload_count){ 0 };
    bool available = (int64_t)r->ready >= r->want - r->unavailable;
    bool complete = n.alive == r->want && r->old_replicas == 0 && r->ready >= n.alive;
    const struct {
        const char *name;
        int64_t value;
    } fields[] = {
        { "replicas", r->replicas },
        { "updatedReplicas", n.alive },
        { "readyReplicas", r->ready },
        { "availableReplicas", r->ready },
        { "unavailableReplicas", MAX(r->want, (int64_t)r->replicas) - r->ready },
    };
    struct tree *status = tree_obj(a);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        tree_set(a, status, str_from(fields[i].name),
                 fields[i].value > 0 ? tree_i64(a, fields[i].value) : tree_null(a));
    }
    tree_set(a, status, STR("observedGeneration"),
             tree_i64(a, jval_number(object, "metadata.generation", 1)));
    tree_set(a, status, STR("terminatingReplicas"), tree_i64(a, r->deleting));
    struct tree *list = tree_arr(a);
    tree_add(list, available
                       ? world_condition(w, old, "Available", "True", "MinimumReplicasAvailable",
                                         "Deployment has minimum availability.")
                       : world_condition(w, old, "Available", "False", "MinimumReplicasUnavailable",
                                         "Deployment does not have minimum availability."));
    struct str set = r->current != NULL ? r->current->name : STR("");
    struct str message = arena_printf(a, "ReplicaSet \"" STR_FMT "\" %s.", STR_ARG(set),
                                      complete ? "has successfully progressed" : "is progressing");
    tree_add(list,
             world_condition(w, old, "Progressing", "True",
                             complete ? "NewReplicaSetAvailable" : "ReplicaSetUpdated", message.p));
    TREE_EACH (list, c) {
        tree_set(a, c, STR("lastUpdateTime"),
                 tree_str(a, tree_text(tree_get(c, STR("lastTransitionTime")))));
    }
    tree_set(a, status, STR("conditions"), list);
    world_object_set_status(t, CONTROLLER, status);
}

void deployment_reconcile(struct world *w, struct world_object *t, const struct jval *object)
{
    struct str hash = workload_template_hash(w, jval_at(object, "spec.template"));
    struct deployment_rollout r;
    deployment_rollout_read(t, object, hash, &r);
    bool paused = jval_bool(jval_at(object, "spec.paused"), false);
    bool wait = r.recreate && r.old_replicas > 0;
    int64_t allowed = r.want + (r.recreate ? 0 : r.surge) - r.old_replicas;
    int64_t size = r.old_replicas == 0 ? r.want : MAX(MIN(r.want, allowed), 0);
    if (r.current == NULL && !paused && !wait) {
        deployment_create_replicaset(t, object, hash, size);
    } else if (r.current != NULL && !wait) {
        int64_t have = replicaset_spec_replicas(r.current);
        replicaset_scale(r.current, r.old_replicas == 0 ? r.want : MAX(have, size));
    }
    if (!paused && r.old_spec > 0 && (r.current != NULL || r.recreate)) {
        deployment_scale_down_old(t, &r);
    }
    deployment_rollout_read(t, world_object_get(t), hash, &r);
    deployment_status(t, &r);
}
