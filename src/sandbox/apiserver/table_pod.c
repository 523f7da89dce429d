/* table_pod: the row of a Pod in `kubectl get pods`: ready containers, status, restarts. */
#include "base/timestamp.h"
#include "sandbox/apiserver/table_cells.h"
#include "sandbox/apiserver/table.h"

struct pod_row {
    struct cells *cells;
    const struct tree *pod;
    struct str reason;
    int64_t containers;
    int64_t ready;
    int64_t restarts;
    struct str restarted; /* RFC 3339, so it compares by time: when a container last ended */
};

static bool is_sidecar(const struct tree *pod, struct str name)
{
    TREE_EACH (tree_at(pod, "spec.initContainers"), container) {
        if (str_eq(tree_text_at(container, "name"), name)) {
            return str_eq(tree_text_at(container, "restartPolicy"), STR("Always"));
        }
    }
    return false;
}

static void pod_count_restarts(const struct tree *status, int64_t *restarts, struct str *restarted)
{
    *restarts += cells_number_at(status, "restartCount");
    struct str end = tree_text_at(status, "lastState.terminated.finishedAt");
    if (end.n > 0 && (restarted->n == 0 || str_cmp(end, *restarted) > 0)) {
        *restarted = end;
    }
}

static struct str exit_text(struct arena *a, const struct tree *terminated, const char *prefix)
{
    struct str reason = tree_text_at(terminated, "reason");
    long long signal = (long long)cells_number_at(terminated, "signal");
    if (reason.n > 0) {
        return arena_printf(a, "%s" STR_FMT, prefix, STR_ARG(reason));
    }
    if (signal != 0) {
        return arena_printf(a, "%sSignal:%lld", prefix, signal);
    }
    return arena_printf(a, "%sExitCode:%lld", prefix,
                        (long long)cells_number_at(terminated, "exitCode"));
}

/* True while an init container keeps the pod from starting; `reason` then says which. */
static bool init_reason(struct pod_row *r, int64_t *side_restarts, struct str *side_restarted)
{
    struct arena *a = r->cells->a;
    const struct tree *all = tree_at(r->pod, "spec.initContainers");
    uint32_t i = 0;
    TREE_EACH (tree_at(r->pod, "status.initContainerStatuses"), status) {
        bool side = is_sidecar(r->pod, tree_text_at(status, "name"));
        const struct tree *terminated = tree_at(status, "state.terminated");
        struct str waiting = tree_text_at(status, "state.waiting.reason");
        pod_count_restarts(status, &r->restarts, &r->restarted);
        if (side) {
            pod_count_restarts(status, side_restarts, side_restarted);
        }
        if (terminated != NULL && cells_number_at(terminated, "exitCode") == 0) {
            i++;
            continue;
        }
        if (side && tree_truth(tree_at(status, "started"), false)) {
            r->ready += tree_truth(tree_at(status, "ready"), false);
            i++;
            continue;
        }
        if (terminated != NULL) {
            r->reason = exit_text(a, terminated, "Init:");
        } else if (waiting.n > 0 && !str_eq(waiting, STR("PodInitializing"))) {
            r->reason = arena_concat(a, STR("Init:"), waiting);
        } else {
            r->reason = arena_printf(a, "Init:%u/%u", i, all != NULL ? all->n : 0);
        }
        return true;
    }
    return false;
}

static bool condition_true(const struct tree *pod, struct str type)
{
    TREE_EACH (tree_at(pod, "status.conditions"), condition) {
        if (str_eq(tree_text_at(condition, "type"), type)) {
            return str_eq(tree_text_at(condition, "status"), STR("True"));
        }
    }
    return false;
}

static void pod_container_reason(struct pod_row *r)
{
    const struct tree *list = tree_at(r->pod, "status.containerStatuses");
    bool running = false;
    for (uint32_t i = list != NULL ? list->n : 0; i > 0; i--) {
        const struct tree *status = tree_index(list, i - 1);
        const struct tree *terminated = tree_at(status, "state.terminated");
        struct str waiting = tree_text_at(status, "state.waiting.reason");
        pod_count_restarts(status, &r->restarts, &r->restarted);
        if (waiting.n > 0) {
            r->reason = waiting;
        } else if (terminated != NULL) {
            r->reason = exit_text(r->cells->a, terminated, "");
        } else if (tree_truth(tree_at(status, "ready"), false) &&
                   tree_at(status, "state.running") != NULL) {
            running = true;
            r->ready++;
        }
    }
    if (str_eq(r->reason, STR("Completed")) && running) {
        r->reason = condition_true(r->pod, STR("Ready")) ? STR("Running") : STR("NotReady");
    }
}

static void pod_phase_reason(struct pod_row *r)
{
    struct str own = tree_text_at(r->pod, "status.reason");
    r->reason = own.n > 0 ? own : tree_text_at(r->pod, "status.phase");
    TREE_EACH (tree_at(r->pod, "status.conditions"), condition) {
        if (str_eq(tree_text_at(condition, "type"), STR("PodScheduled")) &&
            str_eq(tree_text_at(condition, "reason"), STR("SchedulingGated"))) {
            r->reason = STR("SchedulingGated");
        }
    }
}

static void pod_deletion_reason(struct pod_row *r)
{
    struct str phase = tree_text_at(r->pod, "status.phase");
    if (tree_at(r->pod, "metadata.deletionTimestamp") == NULL) {
        return;
    }
    if (str_eq(tree_text_at(r->pod, "status.reason"), STR("NodeLost"))) {
        r->reason = STR("Unknown");
    } else if (!str_eq(phase, STR("Succeeded")) && !str_eq(phase, STR("Failed"))) {
        r->reason = STR("Terminating");
    }
}

static void pod_wide_cells(struct pod_row *r)
{
    struct cells *c = r->cells;
    struct str ip = tree_text_at(tree_index(tree_at(r->pod, "status.podIPs"), 0), "ip");
    cells_or(c, ip.n > 0 ? ip : tree_text_at(r->pod, "status.podIP"), "<none>");
    cells_or(c, tree_text_at(r->pod, "spec.nodeName"), "<none>");
    cells_or(c, tree_text_at(r->pod, "status.nominatedNodeName"), "<none>");
    const struct tree *gates = tree_at(r->pod, "spec.readinessGates");
    uint32_t open = 0;
    TREE_EACH (gates, gate) {
        open += condition_true(r->pod, tree_text_at(gate, "conditionType"));
    }
    cells_or(c,
             gates != NULL && gates->n > 0 ? arena_printf(c->a, "%u/%u", open, gates->n) : STR(""),
             "<none>");
}

void cells_pod(struct cells *c)
{
    struct pod_row r = { .cells = c, .pod = c->object };
    const struct tree *containers = tree_at(c->object, "spec.containers");
    r.containers = containers != NULL ? containers->n : 0;
    TREE_EACH (tree_at(c->object, "spec.initContainers"), container) {
        r.containers += str_eq(tree_text_at(container, "restartPolicy"), STR("Always"));
    }
    pod_phase_reason(&r);
    int64_t side_restarts = 0;
    struct str side_restarted = STR("");
    bool initializing = init_reason(&r, &side_restarts, &side_restarted);
    if (!initializing || condition_true(c->object, STR("Initialized"))) {
        r.restarts = side_restarts;
        r.restarted = side_restarted;
        pod_container_reason(&r);
    }
    pod_deletion_reason(&r);
    struct str restarts = arena_printf(c->a, "%lld", (long long)r.restarts);
    if (r.restarts != 0 && r.restarted.n > 0) {
        struct str ago = table_age_since(c->a, tree_str(c->a, r.restarted), c->wall);
        restarts =
            arena_printf(c->a, STR_FMT " (" STR_FMT " ago)", STR_ARG(restarts), STR_ARG(ago));
    }
    cells_name(c);
    cells_text(c, arena_printf(c->a, "%lld/%lld", (long long)r.ready, (long long)r.containers));
    cells_text(c, r.reason);
    cells_text(c, restarts);
    cells_age(c);
    pod_wide_cells(&r);
}
