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

static struct str world_pod_note(const struct jval *object, const char *key)
{
    return jval_str(jval_get(jval_at(object, "metadata.annotations"), str_from(key)));
}

/* Which word of the container's command it is; UINT32_MAX: none. */
static uint32_t world_command_find(const struct jval *container, struct str word)
{
    uint32_t i = 0;
    JVAL_EACH (jval_get(container, STR("command")), v) {
        if (str_eq(jval_str(v), word)) {
            return i;
        }
        i++;
    }
    return UINT32_MAX;
}

/* Scripts are not run here; but one that ends with "exit 77" ends so. */
static int64_t world_script_exit(const struct jval *object)
{
    const struct jval *container = jval_first(jval_at(object, "spec.containers"));
    JVAL_EACH (jval_get(container, STR("env")), variable) {
        struct str script = str_trim(jval_str(jval_get(variable, STR("value"))));
        size_t line = str_rfind_char(script, '\n');
        struct str last =
            line == SIZE_MAX ? script : str_sub(script, line + 1, script.n - line - 1);
        struct str number;
        int64_t code = 0;
        if (str_eq(jval_str(jval_get(variable, STR("name"))), STR("DD_SCRIPT")) &&
            str_cut_prefix(last, STR("exit "), &number) && str_to_i64(number, &code)) {
            return code;
        }
    }
    return 0;
}

static int64_t world_pod_exit(const struct world_object *t, const struct jval *object)
{
    int64_t code = 0;
    bool never = str_eq(jval_str(jval_at(object, "spec.restartPolicy")), STR("Never"));
    if (t->restarts && never) {
        return 255; /* its node went down */
    }
    return str_to_i64(world_pod_note(object, "sandbox.drydock.dev/exit"), &code)
               ? code
               : world_script_exit(object);
}

/* As drydock run-on-host leaves it: 77, nothing to do, is a success. */
static void world_pod_set_end(struct world_object *t, const struct jval *object,
                              const struct jval *container, struct tree *state)
{
    struct world *w = t->w;
    struct arena *a = &w->tmp;
    int64_t code = world_pod_exit(t, object);
    bool runner = world_command_find(container, STR("run-on-host")) != UINT32_MAX;
    bool reboot =
        str_eq(world_pod_note(object, "sandbox.drydock.dev/reboot-required"), STR("true"));
    int64_t shown = runner && code == 77 ? 0 : code;
    tree_set(a, state, STR("exitCode"), tree_i64(a, shown));
    tree_set(a, state, STR("reason"), tree_str(a, shown == 0 ? STR("Completed") : STR("Error")));
    tree_set(a, state, STR("finishedAt"), tree_str(a, world_time(w)));
    if (runner && code != 255) {
        struct str output = world_pod_note(object, "sandbox.drydock.dev/output");
        struct tree *message = tree_obj(a);
        tree_set(a, message, STR("exitCode"), tree_i64(a, code));
        tree_set(a, message, STR("rebootRequired"), tree_bool(a, reboot));
        if (output.n > 0 && code != 0) {
            tree_set(a, message, STR("output"), tree_str(a, output));
        }
        tree_set(a, state, STR("message"), tree_str(a, tree_json(a, message)));
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
            world_pod_set_end(t, object, c, state);
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

static void world_pod_finish(struct world_object *t)
{
    struct arena *a = &t->w->tmp;
    const struct jval *object = world_object_get(t);
    struct tree *status = tree_obj(a);
    const struct jval *container = jval_first(jval_at(object, "spec.containers"));
    bool runner = world_command_find(container, STR("run-on-host")) != UINT32_MAX;
    int64_t code = world_pod_exit(t, object);
    bool good = code == 0 || (runner && code == 77);
    tree_set(a, status, STR("phase"), tree_str(a, good ? STR("Succeeded") : STR("Failed")));
    world_pod_conditions(t, object, status, false, good ? "PodCompleted" : "PodFailed");
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

/* An order to reboot, carried out if the node has not rebooted since it was given. */
static bool world_pod_reboots(struct world_object *t, const struct jval *object)
{
    struct err err = { 0 };
    const struct jval *container = jval_first(jval_at(object, "spec.containers"));
    uint32_t at = world_command_find(container, STR("--expect-boot-id"));
    uint32_t i = 0;
    struct str expected = STR_NONE;
    JVAL_EACH (jval_get(container, STR("command")), word) {
        expected = i++ == at + 1 ? jval_str(word) : expected;
    }
    struct str boot = jval_str(jval_at(world_object_get(t->node), "status.nodeInfo.bootID"));
    return at != UINT32_MAX && world_command_find(container, STR("--reboot")) != UINT32_MAX &&
           str_eq(expected, boot) && world_reboot_node(t->w, t->node->name, &err) == 0;
}

/* What a healthy kubelet does next with the pod, and when. */
static void world_pod_run(struct world *w, struct world_object *t, const struct jval *object)
{
    usec_t now = loop_now(w->loop);
    usec_t run = jval_duration_at(object, "sandbox.drydock.dev/run", -1);
    bool job = t->owner != NULL && t->owner->kind == WORLD_JOB;
    bool never = str_eq(jval_str(jval_at(object, "spec.restartPolicy")), STR("Never"));
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
        if (world_pod_reboots(t, object)) {
            return; /* and does not live to see its end */
        }
        world_pod_finish(t);
    } else if (t->restarts && never && (run >= 0 || job)) {
        world_pod_finish(t);
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
