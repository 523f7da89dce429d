/*
 * What the scenario's actions do to Machines, Clusters, Nodes, bridges and wires.
 */
#include "kinds/keys.h"
#include "drain/drain_rules.h"
#include "tests/swarm/bridge_run.h"

/* Which one an action means. */
struct action_target {
    uint32_t cluster;
    struct str name; /* of a Machine or a Node; empty: there is none */
};

static struct action_target pick_target(struct bridge_run *f, const struct action *action,
                                        struct bridge_run_names (*list_names)(struct bridge_run *f,
                                                                              uint32_t cluster))
{
    struct action_target target = { .cluster = action->pick % f->scenario->clusters,
                                    .name = STR("") };
    struct bridge_run_names names = list_names(f, target.cluster);
    if (names.n > 0) {
        target.name = names.items[action->pick / 16 % names.n];
    }
    return target;
}

static usec_t time_in(struct bridge_run *f, usec_t duration)
{
    return virtual_loop_now(f->vloop) + duration;
}

static void all_on_outage(struct bridge_run *f, uint32_t where, usec_t until)
{
    for (uint32_t i = 0; i < f->scenario->processes; i++) {
        check_bridge_on_outage(&f->check, i, where, until);
    }
}

/* ── Machines ──────────────────────────────────────────────────────────────────────────────── */

static void patch_machine(struct bridge_run *f, const struct action_target *target, const char *map,
                          struct str key, const char *value)
{
    struct str body =
        value == NULL ? arena_printf(&f->tmp, "{\"metadata\":{\"%s\":{\"" STR_FMT "\":null}}}", map,
                                     STR_ARG(key))
                      : arena_printf(&f->tmp, "{\"metadata\":{\"%s\":{\"" STR_FMT "\":\"%s\"}}}",
                                     map, STR_ARG(key), value);
    int status =
        bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "PATCH",
                           bridge_run_machine_path(f, target->cluster, target->name), body);
    ASSERT(status == 200);
}

/* Of one Machine, or of all that its cluster has. */
static void ask_for_maintenance(struct bridge_run *f, const struct action_target *target, bool all)
{
    struct bridge_run_names names = bridge_run_machines(f, target->cluster);
    for (uint32_t i = 0; i < names.n; i++) {
        const struct action_target one = { target->cluster, names.items[i] };
        if (all || str_eq(one.name, target->name)) {
            patch_machine(f, &one, "labels", KEY_MAINTENANCE, "requested");
        }
    }
}

static void action_on_machine(struct bridge_run *f, const struct action *action)
{
    struct action_target target = pick_target(f, action, bridge_run_machines);
    if (target.name.n == 0) {
        return;
    }
    const struct jval *machine = bridge_run_machine(f, target.cluster, target.name);
    bool enabled = jval_get(jval_at(machine, "metadata.labels"), KEY_ENABLED) != NULL;
    switch (action->kind) {
    case ACTION_MACHINE_DELETE:
        (void)bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "DELETE",
                                 bridge_run_machine_path(f, target.cluster, target.name), STR(""));
        break;
    case ACTION_MACHINE_ENABLE:
        patch_machine(f, &target, "labels", KEY_ENABLED, enabled ? NULL : "true");
        break;
    case ACTION_MACHINE_MAINTAIN:
        ask_for_maintenance(f, &target, action->variant % 4 == 0);
        break;
    case ACTION_MACHINE_WITHDRAW:
        patch_machine(f, &target, "labels", KEY_MAINTENANCE,
                      action->variant % 4 == 0 ? "no" : NULL);
        break;
    case ACTION_MACHINE_FORGE:
        patch_machine(f, &target, "labels", KEY_MAINTENANCE, "approved");
        break;
    default:
        patch_machine(f, &target, "annotations", KEY_PAUSED, "");
        bridge_run_schedule(f, FOLLOWUP_MACHINE_UNPAUSE, target.cluster, target.name,
                            time_in(f, action->duration));
    }
}

/* ── Clusters and their Secrets ────────────────────────────────────────────────────────────── */

/* Something that is no kubeconfig, that nobody lets in, or that leads to another cluster. */
static void write_bad_secret(struct bridge_run *f, uint32_t cluster, uint32_t variant)
{
    uint32_t other =
        (cluster + 1 + variant / 4 % (f->scenario->clusters - 1)) % f->scenario->clusters;
    switch (f->wrong_secret && variant / 16 % 2 == 0 ? 3 : variant % 3) {
    case 0:
        bridge_run_write_secret(f, cluster, STR("{nothing"));
        break;
    case 1:
        bridge_run_write_secret(f, cluster, bridge_run_kubeconfig(f, cluster, 0));
        break;
    case 2:
        bridge_run_write_secret(f, cluster, bridge_run_kubeconfig(f, 77, 0));
        break;
    default:
        check_bridge_on_wrong_secret(&f->check, cluster, true, virtual_loop_now(f->vloop));
        bridge_run_write_secret(f, cluster,
                                bridge_run_kubeconfig(f, other, f->clusters[other].token));
    }
}

static void action_on_secret(struct bridge_run *f, const struct action *action, uint32_t cluster)
{
    struct bridge_run_cluster *c = &f->clusters[cluster];
    struct str path =
        arena_printf(&f->tmp, "/api/v1/namespaces/" STR_FMT "/secrets/" STR_FMT "-kubeconfig",
                     STR_ARG(c->namespace), STR_ARG(c->name));
    if (action->kind == ACTION_TOKEN_ROTATE) {
        apiserver_set_token(c->server, arena_printf(&f->tmp, "token-%u-%u", cluster, ++c->token));
    } else if (action->kind == ACTION_SECRET_BAD) {
        write_bad_secret(f, cluster, action->variant);
    } else {
        (void)bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "DELETE", path,
                                 STR("")); /* it may be gone */
    }
    all_on_outage(f, cluster, time_in(f, action->duration));
    bridge_run_schedule(f, FOLLOWUP_SECRET_RESTORE, cluster, STR(""), time_in(f, action->duration));
}

static void action_on_cluster(struct bridge_run *f, const struct action *action)
{
    uint32_t cluster = action->pick % f->scenario->clusters;
    if (action->kind == ACTION_CLUSTER_NEW) {
        if (bridge_run_cluster(f, cluster) == NULL) {
            bridge_run_create_cluster(f, cluster);
        }
        return;
    }
    if (bridge_run_cluster(f, cluster) == NULL) {
        return;
    }
    switch (action->kind) {
    case ACTION_CLUSTER_PAUSE: {
        struct str body =
            action->variant % 2 == 0
                ? STR("{\"spec\":{\"paused\":true}}")
                : STR("{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/paused\":\"\"}}}");
        int status = bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "PATCH",
                                        bridge_run_cluster_path(f, cluster), body);
        ASSERT(status == 200);
        bridge_run_schedule(f, FOLLOWUP_CLUSTER_UNPAUSE, cluster, STR(""),
                            time_in(f, action->duration));
        break;
    }
    case ACTION_CLUSTER_DELETE:
        (void)bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "DELETE",
                                 bridge_run_cluster_path(f, cluster),
                                 STR("")); /* it may be on its way out */
        break;
    case ACTION_MACHINE_NEW:
        if (bridge_run_machines(f, cluster).n < 6) {
            bridge_run_new_machine(f, cluster, action->variant);
        }
        break;
    default:
        action_on_secret(f, action, cluster);
    }
}

/* ── drain rules ───────────────────────────────────────────────────────────────────────────── */

#define SELECT(key, value) "{\"matchLabels\":{\"example.com/" key "\":\"" value "\"}}"

/* Some that mean all Machines, some that mean some, and one that nobody can read. */
static const char *const rule_specs[] = {
    "{\"drain\":{\"behavior\":\"Skip\"}}",
    "{\"drain\":{\"behavior\":\"Drain\",\"order\":3}}",
    "{\"drain\":{\"behavior\":\"Drain\",\"order\":-1}}",
    "{\"drain\":{\"behavior\":\"WaitCompleted\"},\"pods\":[{\"selector\":{\"matchLabels\":{\"app\":"
    "\"db\"}}}]}",
    "{\"drain\":{\"behavior\":\"Skip\"},\"machines\":[{\"selector\":" SELECT("tier", "x") "}]}",
    "{\"drain\":{\"behavior\":\"Drain\",\"order\":2},\"machines\":[{\"clusterSelector\":" SELECT(
        "env", "x") "}]}",
    "{\"drain\":{\"behavior\":\"Skip\"},\"machines\":[{\"selector\":" SELECT(
        "tier", "y") ",\"clusterSelector\":" SELECT("env",
                                                    "y") "},{\"selector\":" SELECT("tier",
                                                                                   "x") "}]}",
    "{\"drain\":{\"behavior\":\"Evict\"}}",
};

/* It was there or it was not: both are fine. */
static void action_on_drain_rule(struct bridge_run *f, const struct action *action)
{
    static const char *const names[] = { "a", "b", "c" };
    uint32_t cluster = action->pick % f->scenario->clusters;
    const char *name = names[action->pick / 16 % ARRAY_LEN(names)];
    struct str path = bridge_run_rule_path(f, cluster, name);
    if (action->variant % 3 == 0) {
        (void)bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "DELETE", path, STR(""));
        return;
    }
    const char *spec = rule_specs[action->variant / 4 % ARRAY_LEN(rule_specs)];
    struct str body =
        arena_printf(&f->tmp,
                     "{\"apiVersion\":\"cluster.x-k8s.io/" STR_FMT
                     "\",\"kind\":\"MachineDrainRule\",\"metadata\":{\"name\":\"%s\"},\"spec\":%s}",
                     STR_ARG(f->version), name, spec);
    (void)bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "DELETE", path, STR(""));
    int status = bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "POST",
                                    bridge_run_rule_path(f, cluster, ""), body);
    ASSERT(status == 201);
}

static void action_on_rule_label(struct bridge_run *f, const struct action *action)
{
    static const char *const values[] = { "\"x\"", "\"y\"", "null" };
    const char *value = values[action->variant / 2 % ARRAY_LEN(values)];
    struct action_target target = pick_target(f, action, bridge_run_machines);
    bool machine = action->variant % 2 == 0;
    struct str key = machine ? CHECK_BRIDGE_TIER_LABEL : CHECK_BRIDGE_ENV_LABEL;
    struct str path = machine ? bridge_run_machine_path(f, target.cluster, target.name)
                              : bridge_run_cluster_path(f, target.cluster);
    if (machine && target.name.n == 0) {
        return;
    }
    /* A Cluster may be gone. */
    (void)bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "PATCH", path,
                             arena_printf(&f->tmp,
                                          "{\"metadata\":{\"labels\":{\"" STR_FMT "\":%s}}}",
                                          STR_ARG(key), value));
}

/* ── Nodes ─────────────────────────────────────────────────────────────────────────────────── */

static void patch_node(struct bridge_run *f, const struct action_target *target, const char *who,
                       struct str body)
{
    int status = bridge_run_request(f, who, target->cluster, "PATCH",
                                    bridge_run_node_path(f, target->name), body);
    ASSERT(status == 200);
}

static void replace_node(struct bridge_run *f, const struct action_target *target, uint32_t variant)
{
    const struct jval *notes =
        jval_at(bridge_run_node(f, target->cluster, target->name), "metadata.annotations");
    struct str machine = arena_str(&f->tmp, jval_str(jval_get(notes, KEY_NODE_MACHINE)));
    struct str namespace = arena_str(&f->tmp, jval_str(jval_get(notes, KEY_NODE_NAMESPACE)));
    struct str path = bridge_run_node_path(f, target->name);
    (void)bridge_run_request(f, "people", target->cluster, "DELETE", path,
                             STR("")); /* it is there */
    struct str body =
        arena_printf(&f->tmp,
                     "{\"metadata\":{\"name\":\"" STR_FMT "\",\"labels\":{%s},\"annotations\":{"
                     "\"cluster.x-k8s.io/machine\":\"" STR_FMT "\","
                     "\"cluster.x-k8s.io/cluster-namespace\":\"" STR_FMT "\"}}}",
                     STR_ARG(target->name),
                     variant % 3 == 0 ? "" : "\"cloud.sap/maintenance-state\":\"operational\"",
                     STR_ARG(machine), STR_ARG(namespace));
    int status =
        bridge_run_request(f, "people", target->cluster, "POST", STR("/api/v1/nodes"), body);
    ASSERT(status == 201);
}

/* The Node says that it is of another cluster's Machine, with a request and an approval of that
 * Machine's; and there is one of the name that the other cluster's has. */
static void forge_node_owner(struct bridge_run *f, const struct action_target *target,
                             uint32_t variant)
{
    uint32_t victim =
        (target->cluster + 1 + variant % (f->scenario->clusters - 1)) % f->scenario->clusters;
    struct bridge_run_names names = bridge_run_machines(f, victim);
    if (names.n == 0) {
        return;
    }
    struct str machine = names.items[variant / 4 % names.n];
    const struct jval *object = bridge_run_machine(f, victim, machine);
    struct str uid = arena_str(&f->tmp, jval_str(jval_at(object, "metadata.uid")));
    struct str node = arena_str(&f->tmp, jval_str(jval_at(object, "status.nodeRef.name")));
    struct str marks = arena_printf(
        &f->tmp,
        "\"labels\":{\"cloud.sap/maintenance-state\":\"operational\",\"example.com/"
        "stranger\":\"true\"%s},\"annotations\":{"
        "\"cluster.x-k8s.io/machine\":\"" STR_FMT "\","
        "\"cluster.x-k8s.io/cluster-namespace\":\"" STR_FMT "\","
        "\"" KEYS_OWN "deletion-request\":\"" STR_FMT "\","
        "\"" KEYS_OWN "maintenance-request\":\"" STR_FMT "/1\"}",
        ",\"" KEYS_LEGACY "machine-deleted\":\"true\",\"" KEYS_LEGACY "approve-deletion\":\"true\","
        "\"" KEYS_LEGACY "machine-maintenance\":\"true\","
        "\"" KEYS_LEGACY "approve-maintenance\":\"true\"",
        STR_ARG(machine), STR_ARG(f->clusters[victim].namespace), STR_ARG(uid), STR_ARG(uid));
    struct str body = arena_printf(&f->tmp, "{\"metadata\":{" STR_FMT "}}", STR_ARG(marks));
    if (variant / 16 % 2 == 0 && node.n > 0 && bridge_run_node(f, target->cluster, node) == NULL) {
        body = arena_printf(&f->tmp, "{\"metadata\":{\"name\":\"" STR_FMT "\"," STR_FMT "}}",
                            STR_ARG(node), STR_ARG(marks));
        int status =
            bridge_run_request(f, "people", target->cluster, "POST", STR("/api/v1/nodes"), body);
        ASSERT(status == 201);
    } else if (target->name.n > 0) {
        patch_node(f, target, "people", body);
    }
}

#define OTHER_RULES "\"[{\\\"name\\\":\\\"a\\\",\\\"behavior\\\":\\\"Skip\\\"}]\""

/* Of a Node that carries a request: what it has without one is nobody's business. */
static void change_node_rules(struct bridge_run *f, const struct action_target *target,
                              uint32_t variant)
{
    static const char *const values[] = { "null", "\"[]\"", "\"?\"", OTHER_RULES };
    const struct jval *labels =
        jval_at(bridge_run_node(f, target->cluster, target->name), "metadata.labels");
    if ((jval_get(labels, KEY_MACHINE_DELETED) == NULL &&
         jval_get(labels, KEY_MACHINE_MAINTENANCE) == NULL) ||
        jval_get(labels, CHECK_BRIDGE_FORGED_LABEL) != NULL) {
        return;
    }
    patch_node(f, target, "people",
               arena_printf(&f->tmp, "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":%s}}}",
                            STR_ARG(KEY_DRAIN_RULES), values[variant % ARRAY_LEN(values)]));
}

/* One of its cluster that carries a request, if there is any. */
static void action_on_node_rules(struct bridge_run *f, const struct action *action)
{
    struct action_target target = { .cluster = action->pick % f->scenario->clusters };
    struct bridge_run_names names = bridge_run_nodes(f, target.cluster);
    for (uint32_t i = 0; i < names.n; i++) {
        target.name = names.items[(action->pick / 16 + i) % names.n];
        change_node_rules(f, &target, action->variant);
    }
}

static void action_on_workload_node(struct bridge_run *f, const struct action *action)
{
    struct action_target target = pick_target(f, action, bridge_run_nodes);
    if (action->kind == ACTION_WORKLOAD_NODE_FORGE && !f->wrong_secret) {
        forge_node_owner(f, &target, action->variant);
        return;
    }
    if (target.name.n == 0) {
        return;
    }
    const struct jval *node = bridge_run_node(f, target.cluster, target.name);
    bool managed = jval_get(jval_at(node, "metadata.labels"), KEY_STATE) != NULL;
    switch (action->kind) {
    case ACTION_WORKLOAD_NODE_DELETE:
        (void)bridge_run_request(f, "people", target.cluster, "DELETE",
                                 bridge_run_node_path(f, target.name), STR("")); /* it is there */
        break;
    case ACTION_WORKLOAD_NODE_REPLACE:
        replace_node(f, &target, action->variant);
        break;
    case ACTION_WORKLOAD_NODE_STATE:
        patch_node(f, &target, "people",
                   managed
                       ? STR("{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-state\":null}}}")
                       : STR("{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-state\":"
                             "\"operational\"}}}"));
        break;
    default:
        patch_node(f, &target, "people",
                   action->variant % 2 == 0 ? STR("{\"metadata\":{\"labels\":{\"" KEYS_LEGACY
                                                  "approve-deletion\":\"true\"}}}")
                                            : STR("{\"metadata\":{\"labels\":{\"" KEYS_LEGACY
                                                  "approve-maintenance\":\"true\"}}}"));
    }
}

/* ── bridges ───────────────────────────────────────────────────────────────────────────────── */

static void action_on_process(struct bridge_run *f, const struct action *action)
{
    struct bridge_process *p = &f->processes[action->pick % f->scenario->processes];
    usec_t now = virtual_loop_now(f->vloop);
    if (action->kind == ACTION_CLOCK_STEP) {
        virtual_loop_step_wall(p->view, action->duration);
        return;
    }
    if (!bridge_process_runs(p)) {
        return;
    }
    switch (action->kind) {
    case ACTION_CRASH:
        bridge_process_crash(p);
        p->start_at = now + action->duration;
        break;
    case ACTION_CRASH_AT_WRITE:
    case ACTION_LATE_WRITE:
        if (p->late_at == USEC_NEVER) {
            p->tap.write = f->scenario->hosts && action->variant / 8 % 2 == 0
                               ? API_TAP_WRITE_BAREMETALHOST
                           : action->variant % 2 == 0 ? API_TAP_WRITE_MACHINE
                                                      : API_TAP_WRITE_NODE;
            p->tap.crash = action->kind == ACTION_LATE_WRITE ? API_TAP_CRASH_WRITE_LATE
                           : action->variant / 2 % 2 == 0    ? API_TAP_CRASH_WRITE_BEFORE
                                                             : API_TAP_CRASH_WRITE_AFTER;
            p->late_duration = action->duration;
        }
        break;
    case ACTION_STOP:
        if (!bridge_process_frozen(p)) {
            bridge_stop(p->bridge);
        }
        break;
    default:
        virtual_loop_freeze(p->view, true);
        p->unfreeze_at = now + action->duration;
        for (uint32_t i = 0; i <= MANAGEMENT_CLUSTER; i++) {
            check_bridge_on_outage(&f->check, p->index, i, p->unfreeze_at);
        }
    }
}

/* The write of a bridge that is gone arrives. */
static void deliver_late_write(struct bridge_run *f, struct bridge_process *p)
{
    const struct api_tap *tap = &p->tap;
    p->late_at = USEC_NEVER;
    if (tap->late_cluster > MANAGEMENT_CLUSTER || tap->late_verb != API_PATCH) {
        return; /* nobody is there */
    }
    int status =
        bridge_run_request(f, p->late_agent, tap->late_cluster, "PATCH", buf_str(&tap->late_path),
                           buf_str(&tap->late_body)); /* taken or refused: nobody waits */
    if (f->verbose) {
        (void)fprintf(stderr, "%12.3f s late write of %s: %d\n",
                      (double)virtual_loop_now(f->vloop) / 1e6, p->late_agent, status);
    }
}

/* ── wires ─────────────────────────────────────────────────────────────────────────────────── */

static void set_faults(struct bridge_run *f, uint32_t where, bool faulty)
{
    for (uint32_t i = 0; i < f->scenario->processes; i++) {
        struct bridge_process *p = &f->processes[i];
        struct faults *faults =
            where == MANAGEMENT_CLUSTER ? &p->management_faults : &p->workload_faults[where];
        if (faulty) {
            faults_randomize(faults);
        }
        faults->calm = !faulty;
        faults->latency_max = MSECONDS(f->scenario->latency);
    }
}

static void action_on_management(struct bridge_run *f, const struct action *action)
{
    struct bridge_process *p = &f->processes[action->pick % f->scenario->processes];
    usec_t end = time_in(f, action->duration);
    switch (action->kind) {
    case ACTION_DISCONNECT:
    case ACTION_STALL:
        if (action->kind == ACTION_DISCONNECT && p->upstream != NULL) {
            sim_api_disconnect(p->upstream);
        }
        p->management_faults.down = action->kind == ACTION_DISCONNECT;
        p->management_faults.partitioned = action->kind == ACTION_STALL;
        p->reconnect_at = end;
        check_bridge_on_outage(&f->check, p->index, MANAGEMENT_CLUSTER, end);
        break;
    case ACTION_FAULTS:
        set_faults(f, MANAGEMENT_CLUSTER, true);
        f->faults_end[MANAGEMENT_CLUSTER] = end;
        all_on_outage(f, MANAGEMENT_CLUSTER, end);
        break;
    case ACTION_SERVER_DOWN:
        for (uint32_t i = 0; i < f->scenario->processes; i++) {
            f->processes[i].management_faults.down = true;
            if (f->processes[i].upstream != NULL) {
                sim_api_disconnect(f->processes[i].upstream);
            }
        }
        apiserver_restart(f->management);
        f->server_up_at = end;
        all_on_outage(f, MANAGEMENT_CLUSTER, end);
        break;
    case ACTION_SERVER_RESTART:
        apiserver_restart(f->management);
        break;
    default:
        apiserver_compact(f->management);
    }
}

static void action_on_workload(struct bridge_run *f, const struct action *action)
{
    uint32_t cluster = action->pick % f->scenario->clusters;
    usec_t end = time_in(f, action->duration);
    bool all = action->variant % 2 == 0; /* or only one bridge is cut off */
    for (uint32_t i = 0; i < f->scenario->processes; i++) {
        struct bridge_process *p = &f->processes[i];
        struct faults *faults = &p->workload_faults[cluster];
        if (action->kind == ACTION_WORKLOAD_SLOW) {
            faults->latency_max = rng_usec(&f->rng, SECONDS(1), SECONDS(25));
            f->faults_end[cluster] = end;
            check_bridge_on_outage(&f->check, i, cluster, end);
        } else if ((action->kind == ACTION_WORKLOAD_DISCONNECT ||
                    action->kind == ACTION_WORKLOAD_STALL) &&
                   (all || i == action->variant / 2 % f->scenario->processes)) {
            if (action->kind == ACTION_WORKLOAD_DISCONNECT) {
                bridge_process_disconnect(p, cluster);
            }
            faults->down = action->kind == ACTION_WORKLOAD_DISCONNECT;
            faults->partitioned = action->kind == ACTION_WORKLOAD_STALL;
            p->workload_reconnect_at[cluster] = end;
            check_bridge_on_outage(&f->check, i, cluster, end);
        }
    }
    if (action->kind == ACTION_WORKLOAD_FAULTS) {
        set_faults(f, cluster, true);
        f->faults_end[cluster] = end;
        all_on_outage(f, cluster, end);
    } else if (action->kind == ACTION_WORKLOAD_RESTART) {
        apiserver_restart(f->clusters[cluster].server);
    } else if (action->kind == ACTION_WORKLOAD_COMPACT) {
        apiserver_compact(f->clusters[cluster].server);
    }
}

/* ── what is due ───────────────────────────────────────────────────────────────────────────── */

usec_t bridge_run_next_action(const struct bridge_run *f)
{
    usec_t next = bridge_run_next_followup(f);
    next = MIN(next, f->server_up_at);
    if (f->next_action < f->scenario->n) {
        next = MIN(next, f->scenario->actions[f->next_action].at);
    }
    for (uint32_t i = 0; i <= MANAGEMENT_CLUSTER; i++) {
        next = MIN(next, f->faults_end[i]);
    }
    for (uint32_t i = 0; i < f->scenario->processes; i++) {
        const struct bridge_process *p = &f->processes[i];
        next = MIN(next, p->start_at);
        next = MIN(next, p->unfreeze_at);
        next = MIN(next, p->reconnect_at);
        next = MIN(next, p->late_at);
        for (uint32_t c = 0; c < CHECK_BRIDGE_CLUSTERS_MAX; c++) {
            next = MIN(next, p->workload_reconnect_at[c]);
        }
    }
    return next;
}

static void end_process_actions(struct bridge_run *f, struct bridge_process *p, usec_t now)
{
    if (p->late_at <= now) {
        deliver_late_write(f, p);
    }
    if (p->unfreeze_at <= now) {
        virtual_loop_freeze(p->view, false);
        p->unfreeze_at = USEC_NEVER;
    }
    if (p->reconnect_at <= now) {
        p->management_faults.down = f->server_up_at != USEC_NEVER;
        p->management_faults.partitioned = false;
        p->reconnect_at = USEC_NEVER;
    }
    for (uint32_t c = 0; c < CHECK_BRIDGE_CLUSTERS_MAX; c++) {
        if (p->workload_reconnect_at[c] <= now) {
            p->workload_faults[c].down = false;
            p->workload_faults[c].partitioned = false;
            p->workload_reconnect_at[c] = USEC_NEVER;
        }
    }
    if (p->start_at <= now) {
        p->start_at = bridge_process_frozen(p) ? p->unfreeze_at
                                               : USEC_NEVER; /* a frozen machine starts nothing */
        if (!bridge_process_frozen(p) && !bridge_process_runs(p)) {
            bridge_process_start(p);
        }
    }
}

static void end_actions(struct bridge_run *f, usec_t now)
{
    for (uint32_t i = 0; i <= MANAGEMENT_CLUSTER; i++) {
        if (f->faults_end[i] <= now) {
            set_faults(f, i, false);
            f->faults_end[i] = USEC_NEVER;
        }
    }
    if (f->server_up_at <= now) {
        f->server_up_at = USEC_NEVER;
        for (uint32_t i = 0; i < f->scenario->processes; i++) {
            struct bridge_process *p = &f->processes[i];
            p->management_faults.down =
                p->reconnect_at != USEC_NEVER && !p->management_faults.partitioned;
        }
    }
    for (uint32_t i = 0; i < f->scenario->processes; i++) {
        end_process_actions(f, &f->processes[i], now);
    }
}

static void do_action(struct bridge_run *f, const struct action *action)
{
    if (action->kind <= ACTION_CLOCK_STEP || action->kind == ACTION_CRASH_AT_WRITE ||
        action->kind == ACTION_LATE_WRITE) {
        action_on_process(f, action);
    } else if (action->kind <= ACTION_COMPACT) {
        action_on_management(f, action);
    } else if (action->kind == ACTION_MACHINE_NEW ||
               (action->kind >= ACTION_CLUSTER_PAUSE && action->kind <= ACTION_SECRET_DELETE)) {
        action_on_cluster(f, action);
    } else if (action->kind <= ACTION_MACHINE_PAUSE) {
        action_on_machine(f, action);
    } else if (action->kind == ACTION_DRAIN_RULE) {
        action_on_drain_rule(f, action);
    } else if (action->kind == ACTION_DRAIN_RULE_LABEL) {
        action_on_rule_label(f, action);
    } else if (action->kind == ACTION_WORKLOAD_NODE_RULES) {
        action_on_node_rules(f, action);
    } else if (action->kind <= ACTION_WORKLOAD_NODE_FORGE) {
        action_on_workload_node(f, action);
    } else if (action->kind <= ACTION_WORKLOAD_COMPACT) {
        action_on_workload(f, action);
    } else {
        bridge_metal3_action(f, action);
    }
}

void bridge_run_actions_due(struct bridge_run *f)
{
    usec_t now = virtual_loop_now(f->vloop);
    end_actions(f, now);
    bridge_run_followups_due(f, now);
    while (f->next_action < f->scenario->n && f->scenario->actions[f->next_action].at <= now) {
        const struct action *action = &f->scenario->actions[f->next_action++];
        if (f->verbose) {
            (void)fprintf(stderr, "%12.3f s %s who %u what %u for %.3f s\n", (double)now / 1e6,
                          action_name(action->kind), action->pick, action->variant,
                          (double)action->duration / 1e6);
        }
        do_action(f, action);
    }
}

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

/* What a stranger has put into a cluster is nobody's; what they wrote on a Node is only cleared
 * away where it is looked after. */
static void remove_forged(struct bridge_run *f, const struct action_target *target,
                          struct str owner)
{
    const struct jval *node = bridge_run_node(f, target->cluster, target->name);
    const struct jval *machine = owner.n > 0 ? bridge_run_machine(f, target->cluster, owner) : NULL;
    if (jval_get(jval_at(node, "metadata.labels"), CHECK_BRIDGE_FORGED_LABEL) == NULL) {
        return;
    }
    if (machine == NULL) {
        (void)bridge_run_request(f, "people", target->cluster, "DELETE",
                                 bridge_run_node_path(f, target->name), STR("")); /* it is there */
    } else if (jval_get(jval_at(machine, "metadata.labels"), KEY_ENABLED) == NULL) {
        patch_node(f, target, "people",
                   STR("{\"metadata\":{\"labels\":{\"" KEYS_LEGACY "machine-deleted\":null,"
                       "\"" KEYS_LEGACY "machine-maintenance\":null},\"annotations\":{"
                       "\"" KEYS_OWN "deletion-request\":null,"
                       "\"" KEYS_OWN "maintenance-request\":null,"
                       "\"" KEYS_OWN "drain-rules\":null}}}"));
    }
}

/* Each Node says whose it is, as Cluster API writes it, and has an engine again. */
static void restore_nodes(struct bridge_run *f, uint32_t cluster)
{
    struct bridge_run_names machines = bridge_run_machines(f, cluster);
    struct bridge_run_names nodes = bridge_run_nodes(f, cluster);
    for (uint32_t i = 0; i < nodes.n; i++) {
        struct action_target target = { cluster, nodes.items[i] };
        struct str owner = STR("");
        for (uint32_t k = 0; k < machines.n; k++) {
            const struct jval *machine = bridge_run_machine(f, cluster, machines.items[k]);
            if (str_eq(jval_str(jval_at(machine, "status.nodeRef.name")), target.name)) {
                owner = machines.items[k];
            }
        }
        if (owner.n > 0) {
            patch_node(f, &target, "capi",
                       arena_printf(&f->tmp,
                                    "{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-state\":"
                                    "\"operational\"},\"annotations\":{"
                                    "\"cluster.x-k8s.io/machine\":\"" STR_FMT "\","
                                    "\"cluster.x-k8s.io/cluster-namespace\":\"" STR_FMT "\"}}}",
                                    STR_ARG(owner), STR_ARG(f->clusters[cluster].namespace)));
        }
        bridge_run_schedule(f, FOLLOWUP_ENGINE, cluster, target.name, time_in(f, SECONDS(2)));
        remove_forged(f, &target, owner);
    }
    for (uint32_t k = 0; k < machines.n; k++) {
        bridge_run_schedule(f, FOLLOWUP_MACHINE, cluster, machines.items[k],
                            time_in(f, SECONDS(2)));
        bridge_run_schedule(f, FOLLOWUP_MACHINE_UNPAUSE, cluster, machines.items[k],
                            time_in(f, SECONDS(1)));
    }
}

static void restore_process(struct bridge_process *p, usec_t now)
{
    p->tap.crash = API_TAP_CRASH_NONE;
    p->management_faults.calm = true;
    p->unfreeze_at = bridge_process_frozen(p) ? now : USEC_NEVER;
    p->reconnect_at = p->reconnect_at != USEC_NEVER ? now : USEC_NEVER;
    p->start_at = bridge_process_runs(p) ? USEC_NEVER : now;
    for (uint32_t c = 0; c < CHECK_BRIDGE_CLUSTERS_MAX; c++) {
        p->workload_faults[c].calm = true;
        p->workload_reconnect_at[c] = p->workload_reconnect_at[c] != USEC_NEVER ? now : USEC_NEVER;
    }
}

void bridge_run_recover(struct bridge_run *f)
{
    usec_t now = virtual_loop_now(f->vloop);
    f->next_action = f->scenario->n;
    f->calm = true;
    f->server_up_at = MIN(f->server_up_at, now);
    for (uint32_t i = 0; i <= MANAGEMENT_CLUSTER; i++) {
        f->faults_end[i] = MIN(f->faults_end[i], now);
    }
    for (uint32_t i = 0; i < f->scenario->processes; i++) {
        restore_process(&f->processes[i], now);
    }
    end_actions(f, now);
    for (uint32_t i = 0; i < f->scenario->clusters; i++) {
        bridge_run_schedule(f, FOLLOWUP_SECRET_RESTORE, i, STR(""), now);
        bridge_run_schedule(f, FOLLOWUP_CLUSTER_UNPAUSE, i, STR(""), time_in(f, SECONDS(1)));
        bridge_run_schedule(f, FOLLOWUP_CLUSTER, i, STR(""), time_in(f, SECONDS(2)));
        restore_nodes(f, i);
    }
    bridge_metal3_recover(f);
}
