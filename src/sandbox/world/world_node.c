/* world_node: the machine and the kubelet of each Node, the node lifecycle controller (readiness,
 * taints), and what a new Namespace gets. */
#include "base/timestamp.h"
#include "sandbox/world/world_internal.h"

#define NODE_LEASE_EVERY SECONDS(10)
#define NODE_STATUS_EVERY MINUTES(5)
#define NODE_REBOOT "sandbox.drydock.dev/reboot"
#define KUBELET "kubelet"
#define NODE_LIFECYCLE "kube-controller-manager"

enum ready_status { READY_TRUE, READY_FALSE, READY_UNKNOWN };

static enum ready_status world_node_ready(const struct jval *object)
{
    JVAL_EACH (jval_at(object, "status.conditions"), c) {
        if (str_eq(jval_str(jval_get(c, STR("type"))), STR("Ready"))) {
            struct str status = jval_str(jval_get(c, STR("status")));
            return str_eq(status, STR("True"))    ? READY_TRUE
                   : str_eq(status, STR("False")) ? READY_FALSE
                                                  : READY_UNKNOWN;
        }
    }
    return READY_FALSE;
}

/* What the scheduler and the pods read of a node. */
void world_node_observe(struct world_object *t, const struct jval *object)
{
    bool schedulable = world_node_ready(object) == READY_TRUE &&
                       !jval_bool(jval_at(object, "spec.unschedulable"), false);
    bool evicts = false;
    JVAL_EACH (jval_at(object, "spec.taints"), taint) {
        evicts |= str_eq(jval_str(jval_get(taint, STR("effect"))), STR("NoExecute"));
    }
    bool better = schedulable && !t->schedulable;
    bool evicts_changed = evicts != t->evicts;
    t->schedulable = schedulable;
    t->evicts = evicts;
    if (evicts_changed) {
        LIST_EACH (&t->pods, item) {
            struct world_object *pod = WORLD_OBJECT_OF(item, on_node);
            pod->taint_at = evicts ? loop_now(t->w->loop) : 0;
            world_mark_dirty(pod);
        }
    }
    if (better || !list_empty(&t->w->waiting)) {
        scheduler_retry_waiting(t->w);
    }
}

void world_node_gone(struct world_object *t)
{
    LIST_EACH (&t->pods, item) {
        struct world_object *pod = WORLD_OBJECT_OF(item, on_node);
        list_del(item);
        pod->node = NULL;
        pod->next_at = 0;
        world_mark_dirty(pod);
    }
    t->pods_n = 0;
    WORLD_OBJECTS_EACH(t->w, WORLD_DAEMONSET, set)
    {
        world_mark_dirty(set);
    }
}

static void world_node_print_conditions(struct world *w, struct buf *b, enum ready_status ready,
                                        const struct jval *old)
{
    static const struct {
        const char *type, *reason, *message;
    } pressure[] = {
        { "MemoryPressure", "KubeletHasSufficientMemory",
          "kubelet has sufficient memory available" },
        { "DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure" },
        { "PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available" },
    };
    static const struct {
        const char *status, *reason, *message;
    } states[] = {
        [READY_TRUE] = { "True", "KubeletReady", "kubelet is posting ready status" },
        [READY_FALSE] = { "False", "KubeletNotReady", "container runtime is down" },
        [READY_UNKNOWN] = { "Unknown", "NodeStatusUnknown",
                            "Kubelet stopped posting node status." },
    };
    struct tree *list = tree_arr(&w->tmp);
    for (size_t i = 0; i < ARRAY_LEN(pressure); i++) {
        bool known = ready != READY_UNKNOWN;
        tree_add(list,
                 world_condition(w, old, pressure[i].type, known ? "False" : "Unknown",
                                 known ? pressure[i].reason : states[READY_UNKNOWN].reason,
                                 known ? pressure[i].message : states[READY_UNKNOWN].message));
    }
    tree_add(list, world_condition(w, old, "Ready", states[ready].status, states[ready].reason,
                                   states[ready].message));
    TREE_EACH (list, c) {
        /* An Unknown condition keeps the time of the last heartbeat. */
        if (ready != READY_UNKNOWN) {
            tree_set(&w->tmp, c, STR("lastHeartbeatTime"), tree_str(&w->tmp, world_time(w)));
        } else {
            JVAL_EACH (old, was) {
                struct str at = jval_str(jval_get(was, STR("lastHeartbeatTime")));
                if (at.n > 0 && str_eq(jval_str(jval_get(was, STR("type"))),
                                       tree_text(tree_get(c, STR("type"))))) {
                    tree_set(&w->tmp, c, STR("lastHeartbeatTime"), tree_str(&w->tmp, at));
                }
            }
        }
    }
    tree_print(list, b);
}

static void world_node_print_status(struct world_object *t, struct buf *b, enum ready_status ready,
                                    const struct jval *old)
{
    struct world *w = t->w;
    buf_add(b, STR("{\"conditions\":"));
    world_node_print_conditions(w, b, ready, old);
    buf_add(b, STR(",\"capacity\":"));
    buf_printf(b, "{\"cpu\":\"8\",\"ephemeral-storage\":\"101430960Ki\",\"hugepages-2Mi\":\"0\","
                  "\"memory\":\"32780308Ki\",\"pods\":\"110\"}");
    buf_printf(b, ",\"allocatable\":{\"cpu\":\"7910m\",\"ephemeral-storage\":\"93478772582\","
                  "\"hugepages-2Mi\":\"0\",\"memory\":\"29613076Ki\",\"pods\":\"110\"}");
    buf_printf(b,
               ",\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.%u.%u\"},"
               "{\"type\":\"Hostname\",\"address\":\"" STR_FMT "\"}]",
               t->number / 250, t->number % 250 + 1, STR_ARG(t->name));
    buf_printf(b, ",\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":10250}}");
    buf_printf(b,
               ",\"nodeInfo\":{\"machineID\":\"%032x\",\"systemUUID\":\"%08x-0000-4000-8000-"
               "000000000000\",\"bootID\":\"%08x-0000-4000-8000-%012x\",\"kernelVersion\":"
               "\"6.1.0-30-amd64\",\"osImage\":\"Debian GNU/Linux 12 (bookworm)\","
               "\"containerRuntimeVersion\":\"containerd://2.1.4\",\"kubeletVersion\":\"v1.35.4\","
               "\"kubeProxyVersion\":\"\",\"operatingSystem\":\"linux\",\"architecture\":"
               "\"amd64\"}}",
               t->number + 1, t->number + 1, t->number + 1, t->boots);
}

static void world_node_post_status(struct world_object *t, const char *who, enum ready_status ready)
{
    struct world *w = t->w;
    const struct jval *object = world_object_get(t);
    if (object == NULL) {
        return;
    }
    CLEANUP(buf_done)
    struct buf b = { 0 };
    buf_add(&b, STR("{\"status\":"));
    world_node_print_status(t, &b, ready, jval_at(object, "status.conditions"));
    buf_add(&b, STR("}"));
    (void)world_patch(w, who, world_object_url(t, "/status"), buf_str(&b));
    t->heartbeat_status_at = loop_now(w->loop) + NODE_STATUS_EVERY;
}

static void world_node_print_taint(struct buf *b, struct world *w, const char *key,
                                   const char *effect)
{
    buf_printf(b, "%s{\"key\":\"%s\",\"effect\":\"%s\"", b->p[b->n - 1] == '[' ? "" : ",", key,
               effect);
    if (strcmp(effect, "NoExecute") == 0) {
        buf_printf(b, ",\"timeAdded\":\"" STR_FMT "\"", STR_ARG(world_time(w)));
    }
    buf_add_char(b, '}');
}

/* The taints that follow from the node's state; other taints are left alone. */
static void world_node_update_taints(struct world_object *t)
{
    static const struct {
        const char *key, *effect;
        int when; /* enum world_node_ready; -1: cordoned */
    } ours[] = {
        { "node.kubernetes.io/unschedulable", "NoSchedule", -1 },
        { "node.kubernetes.io/not-ready", "NoSchedule", READY_FALSE },
        { "node.kubernetes.io/unreachable", "NoSchedule", READY_UNKNOWN },
        { "node.kubernetes.io/not-ready", "NoExecute", READY_FALSE },
        { "node.kubernetes.io/unreachable", "NoExecute", READY_UNKNOWN },
    };
    struct world *w = t->w;
    const struct jval *object = world_object_get(t);
    if (object == NULL) {
        return;
    }
    int ready = (int)world_node_ready(object);
    bool cordoned = jval_bool(jval_at(object, "spec.unschedulable"), false);
    const struct jval *taints = jval_at(object, "spec.taints");
    bool have[ARRAY_LEN(ours)] = { false };
    CLEANUP(buf_done)
    struct buf b = { 0 };
    CLEANUP(buf_done)
    struct buf kept = { 0 };
    struct json_writer writer = json_writer_on(&kept);
    jw_arr(&writer);
    bool changed = false;
    JVAL_EACH (taints, taint) {
        size_t i = 0;
        while (i < ARRAY_LEN(ours) &&
               !(str_eq(jval_str(jval_get(taint, STR("key"))), str_from(ours[i].key)) &&
                 str_eq(jval_str(jval_get(taint, STR("effect"))), str_from(ours[i].effect)))) {
            i++;
        }
        bool wanted =
            i == ARRAY_LEN(ours) || (ours[i].when == -1 ? cordoned : ours[i].when == ready);
        if (i < ARRAY_LEN(ours)) {
            have[i] = true;
        }
        if (wanted) {
            jw_val(&writer, taint);
        }
        changed |= !wanted;
    }
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        if (!have[i] && (ours[i].when == -1 ? cordoned : ours[i].when == ready)) {
            world_node_print_taint(&kept, w, ours[i].key, ours[i].effect);
            changed = true;
        }
    }
    if (changed) {
        buf_add_char(&kept, ']');
        bool none = kept.n == 2;
        buf_printf(&b, "{\"spec\":{\"taints\":" STR_FMT "}}",
                   STR_ARG(none ? STR("null") : buf_str(&kept)));
        (void)world_patch(w, NODE_LIFECYCLE, world_object_url(t, ""), buf_str(&b));
    }
}

/* Pods of a node whose kubelet is silent are not ready, even if they still run. */
static void world_node_pods_unready(struct world_object *t)
{
    LIST_EACH (&t->pods, item) {
        world_mark_dirty(WORLD_OBJECT_OF(item, on_node));
    }
}

static void world_node_booted(struct world_object *t)
{
    struct world *w = t->w;
    t->machine_up = true;
    t->reachable = true;
    t->up_at = 0;
    t->unknown_at = 0;
    world_node_post_status(t, KUBELET, READY_TRUE);
    if (t->rebooting) {
        t->rebooting = false;
        (void)world_patch(w, KUBELET, world_object_url(t, ""),
                          STR("{\"metadata\":{\"annotations\":{\"" NODE_REBOOT "\":null}}}"));
    }
    world_node_pods_unready(t); /* they restart after the boot */
}

static void world_node_shut_down(struct world_object *t, usec_t back_after)
{
    struct world *w = t->w;
    t->machine_up = false;
    t->reachable = false;
    t->up_at = loop_now(w->loop) + back_after;
    LIST_EACH (&t->pods, item) {
        struct world_object *pod = WORLD_OBJECT_OF(item, on_node);
        pod->restarts = pod->running;
        pod->next_at = 0;
    }
    loop_timer_stop(&t->heartbeat);
    world_mark_dirty(t);
}

static void world_node_set_heartbeat(struct world_object *t)
{
    struct world *w = t->w;
    enum world_heartbeats mode = w->config.heartbeats;
    if (mode == WORLD_HEARTBEATS_NONE || !t->reachable || t->heartbeat.armed) {
        return;
    }
    usec_t every = mode == WORLD_HEARTBEATS_STATUS ? NODE_STATUS_EVERY : NODE_LEASE_EVERY;
    /* Heartbeats of different kubelets are spread over the interval. */
    loop_timer_set(&t->heartbeat, loop_now(w->loop) + rng_usec(&w->rng, every / 2, every));
}

static void world_node_renew_lease(struct world_object *t)
{
    struct world *w = t->w;
    char text[TIMESTAMP_TEXT_MAX];
    struct str now = timestamp_print_micro(loop_wall(w->loop), text);
    struct str path = arena_printf(&w->tmp,
                                   "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
                                   "/" STR_FMT,
                                   STR_ARG(t->name));
    struct str body =
        arena_printf(&w->tmp, "{\"spec\":{\"renewTime\":\"" STR_FMT "\"}}", STR_ARG(now));
    if (world_patch(w, KUBELET, path, body) != 404) {
        return;
    }
    body = arena_printf(
        &w->tmp,
        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":"
        "{\"name\":\"" STR_FMT "\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
        "\"kind\":\"Node\",\"name\":\"" STR_FMT "\",\"uid\":\"" STR_FMT "\"}]},"
        "\"spec\":{\"holderIdentity\":\"" STR_FMT "\",\"leaseDurationSeconds\":40,"
        "\"renewTime\":\"" STR_FMT "\"}}",
        STR_ARG(t->name), STR_ARG(t->name), STR_ARG(t->uid), STR_ARG(t->name), STR_ARG(now));
    (void)world_send(w, KUBELET, "POST",
                     STR("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"), body,
                     NULL);
}

static void world_node_heartbeat(void *ctx)
{
    struct world_object *t = ctx;
    struct world *w = t->w;
    if (t->gone || !t->reachable) {
        return;
    }
    enum world_heartbeats mode = w->config.heartbeats;
    if (mode == WORLD_HEARTBEATS_LEASE || mode == WORLD_HEARTBEATS_BOTH) {
        world_node_renew_lease(t);
    }
    if (mode != WORLD_HEARTBEATS_LEASE && loop_now(w->loop) >= t->heartbeat_status_at) {
        world_node_post_status(t, KUBELET, READY_TRUE);
    }
    usec_t every = mode == WORLD_HEARTBEATS_STATUS ? NODE_STATUS_EVERY : NODE_LEASE_EVERY;
    loop_timer_set(&t->heartbeat, loop_now(w->loop) + every);
    arena_reset(&w->tmp);
}

/* The machine behind a new Node object is switched on. */
static void world_node_power_on(struct world_object *t, uint32_t number)
{
    struct world *w = t->w;
    t->number = number;
    loop_timer_init(&t->heartbeat, w->loop, world_node_heartbeat, t);
    if (w->config.boot == 0) {
        world_node_booted(t);
    } else {
        world_node_post_status(t, KUBELET, READY_FALSE);
        world_node_shut_down(t, w->config.boot);
    }
    WORLD_OBJECTS_EACH(w, WORLD_DAEMONSET, set)
    {
        world_mark_dirty(set);
    }
}

void world_node_reconcile(struct world *w, struct world_object *t, const struct jval *object)
{
    usec_t now = loop_now(w->loop);
    if (t->heartbeat.loop == NULL) {
        /* A client created the Node: a machine is simulated for it, as kwok does. */
        world_node_power_on(t, w->numbers++);
        object = world_object_get(t);
    }
    bool asked = jval_get(jval_at(object, "metadata.annotations"), STR(NODE_REBOOT)) != NULL;
    if (asked && !t->rebooting && t->machine_up) {
        t->rebooting = true;
        t->boots++;
        world_node_shut_down(t, w->config.reboot);
        world_node_post_status(t, KUBELET, READY_FALSE);
        world_node_pods_unready(t);
    } else if (t->up_at != 0 && now >= t->up_at) {
        world_node_booted(t);
    } else if (t->unknown_at != 0 && now >= t->unknown_at) {
        t->unknown_at = 0;
        if (!t->reachable) {
            world_node_post_status(t, NODE_LIFECYCLE, READY_UNKNOWN);
            world_node_pods_unready(t);
        }
    }
    world_node_update_taints(t);
    world_node_set_heartbeat(t);
    if (t->up_at != 0) {
        world_mark_dirty_at(t, t->up_at);
    }
    if (t->unknown_at != 0) {
        world_mark_dirty_at(t, t->unknown_at);
    }
}

static struct str world_node_json(struct world *w, struct str name, uint32_t number)
{
    char zone = (char)('a' + number % w->config.zones);
    return arena_printf(
        &w->tmp,
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"" STR_FMT "\","
        "\"labels\":{\"beta.kubernetes.io/arch\":\"amd64\",\"beta.kubernetes.io/os\":\"linux\","
        "\"kubernetes.io/arch\":\"amd64\",\"kubernetes.io/hostname\":\"" STR_FMT "\","
        "\"kubernetes.io/os\":\"linux\",\"node.kubernetes.io/instance-type\":\"m1.large\","
        "\"topology.kubernetes.io/region\":\"sandbox\","
        "\"topology.kubernetes.io/zone\":\"sandbox-%c\"},"
        "\"annotations\":{\"node.alpha.kubernetes.io/ttl\":\"0\","
        "\"volumes.kubernetes.io/controller-managed-attach-detach\":\"true\"}},"
        "\"spec\":{\"podCIDR\":\"10.%u.%u.0/24\",\"podCIDRs\":[\"10.%u.%u.0/24\"],"
        "\"providerID\":\"sandbox:///" STR_FMT "\"}}",
        STR_ARG(name), STR_ARG(name), zone, 64 + number / 250, number % 250, 64 + number / 250,
        number % 250, STR_ARG(name));
}

int world_add_node(struct world *w, struct str name, struct err *err)
{
    uint32_t number = w->numbers++;
    if (name.n == 0) {
        name = arena_printf(&w->tmp, "node-%03u", number + 1);
    }
    struct str answer;
    int status = world_send(w, KUBELET, "POST", STR("/api/v1/nodes"),
                            world_node_json(w, name, number), &answer);
    if (status != 201) {
        return err_set(err, status == 409 ? ERR_CONFLICT : ERR_INVALID,
                       "add node '" STR_FMT "': " STR_FMT, STR_ARG(name), STR_ARG(answer));
    }
    struct world_object *t = world_find(w, WORLD_NODE, name);
    ASSERT(t != NULL);
    world_node_power_on(t, number);
    return 0;
}

static int world_node_find(struct world *w, struct str name, struct world_object **ret,
                           struct err *err)
{
    struct world_object *t = world_find(w, WORLD_NODE, name);
    if (t == NULL) {
        return err_set(err, ERR_NOTFOUND, "there is no node '" STR_FMT "'", STR_ARG(name));
    }
    *ret = t;
    return 0;
}

int world_remove_node(struct world *w, struct str name, struct err *err)
{
    struct world_object *t;
    int r = world_node_find(w, name, &t, err);
    if (r == 0) {
        world_object_delete(t, NODE_LIFECYCLE, -1);
        arena_reset(&w->tmp);
    }
    return r;
}

int world_reboot_node(struct world *w, struct str name, struct err *err)
{
    struct world_object *t;
    int r = world_node_find(w, name, &t, err);
    if (r == 0) {
        (void)world_patch(w, KUBELET, world_object_url(t, ""),
                          STR("{\"metadata\":{\"annotations\":{\"" NODE_REBOOT "\":\"\"}}}"));
        arena_reset(&w->tmp);
    }
    return r;
}

int world_fail_node(struct world *w, struct str name, struct err *err)
{
    struct world_object *t;
    int r = world_node_find(w, name, &t, err);
    if (r == 0 && t->reachable) {
        t->reachable = false;
        t->unknown_at = loop_now(w->loop) + w->config.unknown;
        loop_timer_stop(&t->heartbeat);
        world_mark_dirty(t);
    }
    return r;
}

int world_recover_node(struct world *w, struct str name, struct err *err)
{
    struct world_object *t;
    int r = world_node_find(w, name, &t, err);
    if (r == 0 && t->machine_up && !t->reachable) {
        world_node_booted(t);
        world_mark_dirty(t);
        arena_reset(&w->tmp);
    }
    return r;
}

void namespace_reconcile(struct world *w, struct world_object *t, const struct jval *object UNUSED)
{
    if (apiserver_find(w->server, STR(""), STR("serviceaccounts"), t->name, STR("default")) ==
        NULL) {
        (void)world_send(w, NODE_LIFECYCLE, "POST", world_object_url(t, "/serviceaccounts"),
                         STR("{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"metadata\":"
                             "{\"name\":\"default\"}}"),
                         NULL);
    }
    if (apiserver_find(w->server, STR(""), STR("configmaps"), t->name, STR("kube-root-ca.crt")) ==
        NULL) {
        (void)world_send(
            w, NODE_LIFECYCLE, "POST", world_object_url(t, "/configmaps"),
            STR("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                "\"kube-root-ca.crt\",\"annotations\":{\"kubernetes.io/description\":"
                "\"Contains a CA bundle that can be used to verify the kube-apiserver "
                "when using internal endpoints such as the internal service IP or "
                "kubernetes.default.svc. No other usage is guaranteed across "
                "distributions of Kubernetes clusters.\"}},\"data\":{\"ca.crt\":\"\"}}"),
            NULL);
    }
}
