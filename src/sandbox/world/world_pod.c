/* world_pod: what kubelets and the pod garbage collector do with a Pod: start, finish, stop,
 * delete. */
#include "sandbox/world/world_internal.h"

#define POD_ORPHAN_WAIT SECONDS(60) /* the real pod GC waits 40 s and checks every 20 s */
#define KUBELET "kubelet"
#define NODE_LIFECYCLE "kube-controller-manager"

static bool world_pod_condition_true(const struct jval *object, struct str type)
{
    JVAL_EACH (jval_at(object, "status.conditions"), c) {
        if (str_eq(jval_str(jval_get(c, STR("type"))), type)) {
            return str_eq(jval_str(jval_get(c, STR("status"))), STR("True"));
        }
    }
    return false;
}

static void world_pod_set_node(struct world_object *t, struct str node_name)
{
    struct world_object *node = node_name.n > 0 ? world_find(t->w, WORLD_NODE, node_name) : NULL;
    t->bound = node_name.n > 0;
    if (node == t->node) {
        return;
    }
    if (t->node != NULL) {
        t->node->pods_n--;
        list_del(&t->on_node);
    }
    t->node = node;
    t->next_at = 0;
    if (node != NULL) {
        node->pods_n++;
        list_add(&node->pods, &t->on_node);
        t->taint_at = node->evicts ? loop_now(t->w->loop) : 0;
    }
}

/* `object` NULL: the pod is gone. */
void world_pod_observe(struct world_object *t, const struct jval *old, const struct jval *object)
{
    struct world *w = t->w;
    bool deleting = jval_at(object, "metadata.deletionTimestamp") != NULL;
    struct str phase = jval_str(jval_at(object, "status.phase"));
    bool ready = world_pod_condition_true(object, STR("Ready"));
    bool labels = old == NULL || object == NULL ||
                  !jval_eq(jval_at(old, "metadata.labels"), jval_at(object, "metadata.labels"));
    if (labels || ready != t->ready || deleting != t->deleting) {
        pdb_pod_changed(w, t->namespace);
    }
    if (deleting && !t->deleting) {
        t->next_at = 0;
    }
    t->deleting = deleting;
    t->ready = ready;
    t->running = str_eq(phase, STR("Running"));
    t->succeeded = str_eq(phase, STR("Succeeded"));
    bool finished = t->succeeded || str_eq(phase, STR("Failed"));
    bool leaves = object == NULL || (finished && !t->finished);
    t->finished = finished;
    world_pod_set_node(t, jval_str(jval_at(object, "spec.nodeName")));
    if (object == NULL || t->bound) {
        list_del(&t->waiting);
    }
    if (leaves) {
        scheduler_retry_waiting(w);
    }
}

static struct tree *world_pod_containers(struct world_object *t, const struct jval *object,
                                         const char *how)
{
    struct world *w = t->w;
    struct arena *a = &w->tmp;
    bool up = strcmp(how, "running") == 0;
    struct tree *list = tree_arr(a);
    JVAL_EACH (jval_at(object, "spec.containers"), c) {
        struct str name = jval_str(jval_get(c, STR("name")));
        int64_t restarts = 0;
        JVAL_EACH (jval_at(object, "status.containerStatuses"), was) {
            if (str_eq(jval_str(jval_get(was, STR("name"))), name)) {
                restarts = jval_number(was, "restartCount", 0);
            }
        }
        struct tree *status = tree_obj(a);
        tree_set(a, status, STR("name"), tree_str(a, name));
        tree_set(a, status, STR("image"), tree_str(a, jval_str(jval_get(c, STR("image")))));
        tree_set(a, status, STR("imageID"), tree_str(a, STR("")));
        tree_set(a, status, STR("containerID"),
                 tree_str(a, arena_printf(a, "containerd://" STR_FMT, STR_ARG(t->uid))));
        tree_set(a, status, STR("ready"), tree_bool(a, up));
        tree_set(a, status, STR("started"), tree_bool(a, up));
        tree_set(a, status, STR("restartCount"), tree_i64(a, restarts + (t->restarts ? 1 : 0)));
        struct tree *state = tree_make_at(a, status, up ? "state.running" : "state.terminated");
        if (up) {
            tree_set(a, state, STR("startedAt"), tree_str(a, world_time(w)));
        } else {
            tree_set(a, state, STR("exitCode"), tree_i64(a, 0));
            tree_set(a, state, STR("reason"), tree_str(a, STR("Completed")));
            tree_set(a, state, STR("finishedAt"), tree_str(a, world_time(w)));
        }
        tree_add(list, status);
    }
    return list;
}

static void world_pod_conditions(struct world_object *t, const struct jval *object,
                                 struct tree *status, bool ready, const char *reason)
{
    struct world *w = t->w;
    const struct jval *old = jval_at(object, "status.conditions");
    const char *truth = ready ? "True" : "False";
    struct tree *list = tree_arr(&w->tmp);
    tree_add(list, world_condition(w, old, "PodReadyToStartContainers", "True", "", ""));
    tree_add(list, world_condition(w, old, "Initialized", "True", "", ""));
    tree_add(list, world_condition(w, old, "Ready", truth, reason, ""));
    tree_add(list, world_condition(w, old, "ContainersReady", truth, reason, ""));
    tree_add(list, world_condition(w, old, "PodScheduled", "True", "", ""));
    tree_set(&w->tmp, status, STR("conditions"), list);
}

static void world_pod_start(struct world_object *t)
{
    struct world *w = t->w;
    struct arena *a = &w->tmp;
    const struct jval *object = world_object_get(t);
    struct tree *status = tree_obj(a);
    struct world_object *node = t->node;
    struct str host = arena_printf(a, "10.0.%u.%u", node->number / 250, node->number % 250 + 1);
    struct str address = arena_printf(a, "10.%u.%u.%u", 64 + node->number / 250, node->number % 250,
                                      2 + rng_below(&w->rng, 250));
    bool host_network = jval_bool(jval_at(object, "spec.hostNetwork"), false);
    struct str ip = jval_str(jval_at(object, "status.podIP"));
    ip = ip.n > 0 ? ip : host_network ? host : address;
    tree_set(a, status, STR("phase"), tree_str(a, STR("Running")));
    tree_set(a, status, STR("hostIP"), tree_str(a, host));
    tree_set(a, status, STR("podIP"), tree_str(a, ip));
    tree_set_at(a, status, "podIPs", tree_arr(a));
    struct tree *one = tree_obj(a);
    tree_set(a, one, STR("ip"), tree_str(a, ip));
    tree_add(tree_get(status, STR("podIPs")), one);
    if (jval_at(object, "status.startTime") == NULL) {
        tree_set(a, status, STR("startTime"), tree_str(a, world_time(w)));
    }
    world_pod_conditions(t, object, status, true, "");
    tree_set(a, status, STR("containerStatuses"), world_pod_containers(t, object, "running"));
    t->restarts = false;
    t->next_at = 0;
    world_object_set_status(t, KUBELET, status);
}

static void world_pod_succeed(struct world_object *t)
{
    struct arena *a = &t->w->tmp;
    const struct jval *object = world_object_get(t);
    struct tree *status = tree_obj(a);
    tree_set(a, status, STR("phase"), tree_str(a, STR("Succeeded")));
    world_pod_conditions(t, object, status, false, "PodCompleted");
    tree_set(a, status, STR("containerStatuses"), world_pod_containers(t, object, "terminated"));
    t->next_at = 0;
    world_object_set_status(t, KUBELET, status);
}

static void world_pod_unready(struct world_object *t)
{
    struct arena *a = &t->w->tmp;
    const struct jval *object = world_object_get(t);
    struct tree *status = tree_obj(a);
    world_pod_conditions(t, object, status, false, "NodeNotReady");
    world_object_set_status(t, NODE_LIFECYCLE, status);
}

/* When the pod's toleration of a NoExecute taint ends; USEC_NEVER: never. */
static usec_t world_pod_evict_at(struct world_object *t, const struct jval *object)
{
    const struct jval *node = t->node != NULL && t->node->evicts ? world_object_get(t->node) : NULL;
    const struct jval *tolerations = jval_at(object, "spec.tolerations");
    usec_t at = USEC_NEVER;
    JVAL_EACH (jval_at(node, "spec.taints"), taint) {
        int64_t seconds = -1;
        if (!str_eq(jval_str(jval_get(taint, STR("effect"))), STR("NoExecute"))) {
            continue;
        }
        if (!scheduler_tolerates(tolerations, taint, &seconds)) {
            return t->taint_at;
        }
        if (seconds >= 0) {
            at = MIN(at, t->taint_at + SECONDS(seconds));
        }
    }
    return at;
}

/* What a healthy kubelet does next with the pod, and when. */
static void world_pod_run(struct world *w, struct world_object *t, const struct jval *object)
{
    usec_t now = loop_now(w->loop);
    usec_t run = jval_duration_at(object, "sandbox.drydock.dev/run", -1);
    bool job = t->owner != NULL && t->owner->kind == WORLD_JOB;
    if (t->deleting) {
        if (t->next_at == 0) {
            int64_t grace = jval_number(object, "metadata.deletionGracePeriodSeconds", 30);
            usec_t stop = jval_duration_at(object, "sandbox.drydock.dev/stop", w->config.stop);
            t->next_at = now + MIN(stop, SECONDS(grace));
        }
    } else if (t->finished) {
        return;
    } else if (!t->running || !t->ready || t->restarts) {
        if (t->next_at == 0) {
            t->next_at = now + rng_usec(&w->rng, w->config.start_min, w->config.start_max);
        }
    } else if (run >= 0 || job) {
        if (t->next_at == 0) {
            t->next_at = now + (run >= 0 ? run : w->config.run);
        }
    } else {
        return;
    }
    if (now < t->next_at) {
        world_mark_dirty_at(t, t->next_at);
    } else if (t->deleting) {
        world_object_delete(t, KUBELET, 0);
    } else if (t->running && t->ready && !t->restarts) {
        world_pod_succeed(t);
    } else {
        world_pod_start(t);
    }
}

void world_pod_reconcile(struct world *w, struct world_object *t, const struct jval *object)
{
    usec_t now = loop_now(w->loop);
    if (!t->bound) {
        if (!t->deleting && !t->finished) {
            scheduler_place_pod(w, t);
        }
        return;
    }
    if (t->node == NULL) {
        /* The pod is bound to a node that does not exist. */
        t->next_at = t->next_at == 0 ? now + POD_ORPHAN_WAIT : t->next_at;
        if (now >= t->next_at) {
            world_object_delete(t, NODE_LIFECYCLE, 0);
        } else {
            world_mark_dirty_at(t, t->next_at);
        }
        return;
    }
    usec_t evict_at = t->deleting || t->finished ? USEC_NEVER : world_pod_evict_at(t, object);
    if (now >= evict_at) {
        world_object_delete(t, NODE_LIFECYCLE, -1);
        return;
    }
    if (evict_at != USEC_NEVER) {
        world_mark_dirty_at(t, evict_at);
    }
    if (t->node->reachable) {
        world_pod_run(w, t, object);
    } else if (t->ready && (!t->node->machine_up || t->node->unknown_at == 0)) {
        world_pod_unready(t);
    }
}
