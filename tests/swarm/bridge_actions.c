/*
 * What the plan's deeds do to Machines, Clusters, Nodes, bridges and wires.
 */
#include "kinds/keys.h"
#include "drain/drain_rules.h"
#include "tests/swarm/bridge_run.h"

/* Which one a deed means. */
struct target {
    uint32_t cluster;
    struct str name; /* of a Machine or a Node; empty: there is none */
};

static struct target pick(struct fleet *f, const struct deed *deed,
                          struct fleet_names (*list)(struct fleet *f, uint32_t cluster))
{
    struct target target = { .cluster = deed->who % f->plan->clusters, .name = STR("") };
    struct fleet_names names = list(f, target.cluster);
    if (names.n > 0) {
        target.name = names.items[deed->who / 16 % names.n];
    }
    return target;
}

static usec_t after(struct fleet *f, usec_t span)
{
    return virtual_loop_now(f->vloop) + span;
}

static void all_troubled(struct fleet *f, uint32_t where, usec_t until)
{
    for (uint32_t i = 0; i < f->plan->processes; i++) {
        treaty_trouble(&f->treaty, i, where, until);
    }
}

/* ── Machines ──────────────────────────────────────────────────────────────────────────────── */

static void patch_machine(struct fleet *f, const struct target *target, const char *map,
                          struct str key, const char *value)
{
    struct str body =
        value == NULL ? arena_printf(&f->tmp, "{\"metadata\":{\"%s\":{\"" STR_FMT "\":null}}}", map,
                                     STR_ARG(key))
                      : arena_printf(&f->tmp, "{\"metadata\":{\"%s\":{\"" STR_FMT "\":\"%s\"}}}",
                                     map, STR_ARG(key), value);
    int status = fleet_ask(f, "people", TREATY_HOME, "PATCH",
                           fleet_machine_path(f, target->cluster, target->name), body);
    ASSERT(status == 200);
}

/* Of one Machine, or of all that its cluster has. */
static void ask_for_maintenance(struct fleet *f, const struct target *target, bool all)
{
    struct fleet_names names = fleet_machines(f, target->cluster);
    for (uint32_t i = 0; i < names.n; i++) {
        const struct target one = { target->cluster, names.items[i] };
        if (all || str_eq(one.name, target->name)) {
            patch_machine(f, &one, "labels", KEY_MAINTENANCE, "requested");
        }
    }
}

static void deed_to_machine(struct fleet *f, const struct deed *deed)
{
    struct target target = pick(f, deed, fleet_machines);
    if (target.name.n == 0) {
        return;
    }
    const struct jval *machine = fleet_machine(f, target.cluster, target.name);
    bool enabled = jval_get(jval_at(machine, "metadata.labels"), KEY_ENABLED) != NULL;
    switch (deed->kind) {
    case DEED_MACHINE_DELETE:
        (void)fleet_ask(f, "people", TREATY_HOME, "DELETE",
                        fleet_machine_path(f, target.cluster, target.name), STR(""));
        break;
    case DEED_MACHINE_ENABLE:
        patch_machine(f, &target, "labels", KEY_ENABLED, enabled ? NULL : "true");
        break;
    case DEED_MACHINE_MAINTAIN:
        ask_for_maintenance(f, &target, deed->what % 4 == 0);
        break;
    case DEED_MACHINE_WITHDRAW:
        patch_machine(f, &target, "labels", KEY_MAINTENANCE, deed->what % 4 == 0 ? "no" : NULL);
        break;
    case DEED_MACHINE_FORGE:
        patch_machine(f, &target, "labels", KEY_MAINTENANCE, "approved");
        break;
    default:
        patch_machine(f, &target, "annotations", KEY_PAUSED, "");
        fleet_errand(f, ERRAND_UNPAUSE, target.cluster, target.name, after(f, deed->span));
    }
}

/* ── Clusters and their Secrets ────────────────────────────────────────────────────────────── */

/* Something that is no kubeconfig, that nobody lets in, or that leads to another cluster. */
static void spoil_secret(struct fleet *f, uint32_t cluster, uint32_t what)
{
    uint32_t other = (cluster + 1 + what / 4 % (f->plan->clusters - 1)) % f->plan->clusters;
    switch (f->astray && what / 16 % 2 == 0 ? 3 : what % 3) {
    case 0:
        fleet_write_secret(f, cluster, STR("{nothing"));
        break;
    case 1:
        fleet_write_secret(f, cluster, fleet_kubeconfig(f, cluster, 0));
        break;
    case 2:
        fleet_write_secret(f, cluster, fleet_kubeconfig(f, 77, 0));
        break;
    default:
        treaty_astray(&f->treaty, cluster, true, virtual_loop_now(f->vloop));
        fleet_write_secret(f, cluster, fleet_kubeconfig(f, other, f->clusters[other].token));
    }
}

static void deed_to_secret(struct fleet *f, const struct deed *deed, uint32_t cluster)
{
    struct fleet_cluster *c = &f->clusters[cluster];
    struct str path =
        arena_printf(&f->tmp, "/api/v1/namespaces/" STR_FMT "/secrets/" STR_FMT "-kubeconfig",
                     STR_ARG(c->space), STR_ARG(c->name));
    if (deed->kind == DEED_TOKEN) {
        apiserver_set_token(c->server, arena_printf(&f->tmp, "token-%u-%u", cluster, ++c->token));
    } else if (deed->kind == DEED_SECRET_BAD) {
        spoil_secret(f, cluster, deed->what);
    } else {
        (void)fleet_ask(f, "people", TREATY_HOME, "DELETE", path, STR("")); /* it may be gone */
    }
    all_troubled(f, cluster, after(f, deed->span));
    fleet_errand(f, ERRAND_SECRET, cluster, STR(""), after(f, deed->span));
}

static void deed_to_cluster(struct fleet *f, const struct deed *deed)
{
    uint32_t cluster = deed->who % f->plan->clusters;
    if (deed->kind == DEED_CLUSTER_NEW) {
        if (fleet_cluster(f, cluster) == NULL) {
            fleet_found(f, cluster);
        }
        return;
    }
    if (fleet_cluster(f, cluster) == NULL) {
        return;
    }
    switch (deed->kind) {
    case DEED_CLUSTER_PAUSE: {
        struct str body =
            deed->what % 2 == 0
                ? STR("{\"spec\":{\"paused\":true}}")
                : STR("{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/paused\":\"\"}}}");
        int status =
            fleet_ask(f, "people", TREATY_HOME, "PATCH", fleet_cluster_path(f, cluster), body);
        ASSERT(status == 200);
        fleet_errand(f, ERRAND_GO_ON, cluster, STR(""), after(f, deed->span));
        break;
    }
    case DEED_CLUSTER_DELETE:
        (void)fleet_ask(f, "people", TREATY_HOME, "DELETE", fleet_cluster_path(f, cluster),
                        STR("")); /* it may be on its way out */
        break;
    case DEED_MACHINE_NEW:
        if (fleet_machines(f, cluster).n < 6) {
            fleet_new_machine(f, cluster, deed->what);
        }
        break;
    default:
        deed_to_secret(f, deed, cluster);
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
static void deed_to_rule(struct fleet *f, const struct deed *deed)
{
    static const char *const names[] = { "a", "b", "c" };
    uint32_t cluster = deed->who % f->plan->clusters;
    const char *name = names[deed->who / 16 % ARRAY_LEN(names)];
    struct str path = fleet_rule_path(f, cluster, name);
    if (deed->what % 3 == 0) {
        (void)fleet_ask(f, "people", TREATY_HOME, "DELETE", path, STR(""));
        return;
    }
    const char *spec = rule_specs[deed->what / 4 % ARRAY_LEN(rule_specs)];
    struct str body =
        arena_printf(&f->tmp,
                     "{\"apiVersion\":\"cluster.x-k8s.io/" STR_FMT
                     "\",\"kind\":\"MachineDrainRule\",\"metadata\":{\"name\":\"%s\"},\"spec\":%s}",
                     STR_ARG(f->version), name, spec);
    (void)fleet_ask(f, "people", TREATY_HOME, "DELETE", path, STR(""));
    int status = fleet_ask(f, "people", TREATY_HOME, "POST", fleet_rule_path(f, cluster, ""), body);
    ASSERT(status == 201);
}

static void deed_to_label(struct fleet *f, const struct deed *deed)
{
    static const char *const values[] = { "\"x\"", "\"y\"", "null" };
    const char *value = values[deed->what / 2 % ARRAY_LEN(values)];
    struct target target = pick(f, deed, fleet_machines);
    bool machine = deed->what % 2 == 0;
    struct str key = machine ? TREATY_TIER : TREATY_ENV;
    struct str path = machine ? fleet_machine_path(f, target.cluster, target.name)
                              : fleet_cluster_path(f, target.cluster);
    if (machine && target.name.n == 0) {
        return;
    }
    /* A Cluster may be gone. */
    (void)fleet_ask(f, "people", TREATY_HOME, "PATCH", path,
                    arena_printf(&f->tmp, "{\"metadata\":{\"labels\":{\"" STR_FMT "\":%s}}}",
                                 STR_ARG(key), value));
}

/* ── Nodes ─────────────────────────────────────────────────────────────────────────────────── */

static void patch_node(struct fleet *f, const struct target *target, const char *who,
                       struct str body)
{
    int status =
        fleet_ask(f, who, target->cluster, "PATCH", fleet_node_path(f, target->name), body);
    ASSERT(status == 200);
}

static void replace_node(struct fleet *f, const struct target *target, uint32_t what)
{
    const struct jval *notes =
        jval_at(fleet_node(f, target->cluster, target->name), "metadata.annotations");
    struct str machine = arena_str(&f->tmp, jval_str(jval_get(notes, KEY_NODE_MACHINE)));
    struct str space = arena_str(&f->tmp, jval_str(jval_get(notes, KEY_NODE_SPACE)));
    struct str path = fleet_node_path(f, target->name);
    (void)fleet_ask(f, "people", target->cluster, "DELETE", path, STR("")); /* it is there */
    struct str body =
        arena_printf(&f->tmp,
                     "{\"metadata\":{\"name\":\"" STR_FMT "\",\"labels\":{%s},\"annotations\":{"
                     "\"cluster.x-k8s.io/machine\":\"" STR_FMT "\","
                     "\"cluster.x-k8s.io/cluster-namespace\":\"" STR_FMT "\"}}}",
                     STR_ARG(target->name),
                     what % 3 == 0 ? "" : "\"cloud.sap/maintenance-state\":\"operational\"",
                     STR_ARG(machine), STR_ARG(space));
    int status = fleet_ask(f, "people", target->cluster, "POST", STR("/api/v1/nodes"), body);
    ASSERT(status == 201);
}

/* The Node says that it is of another cluster's Machine, with a request and an approval of that
 * Machine's; and there is one of the name that the other cluster's has. */
static void turn_hostile(struct fleet *f, const struct target *target, uint32_t what)
{
    uint32_t victim = (target->cluster + 1 + what % (f->plan->clusters - 1)) % f->plan->clusters;
    struct fleet_names names = fleet_machines(f, victim);
    if (names.n == 0) {
        return;
    }
    struct str machine = names.items[what / 4 % names.n];
    const struct jval *object = fleet_machine(f, victim, machine);
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
        STR_ARG(machine), STR_ARG(f->clusters[victim].space), STR_ARG(uid), STR_ARG(uid));
    struct str body = arena_printf(&f->tmp, "{\"metadata\":{" STR_FMT "}}", STR_ARG(marks));
    if (what / 16 % 2 == 0 && node.n > 0 && fleet_node(f, target->cluster, node) == NULL) {
        body = arena_printf(&f->tmp, "{\"metadata\":{\"name\":\"" STR_FMT "\"," STR_FMT "}}",
                            STR_ARG(node), STR_ARG(marks));
        int status = fleet_ask(f, "people", target->cluster, "POST", STR("/api/v1/nodes"), body);
        ASSERT(status == 201);
    } else if (target->name.n > 0) {
        patch_node(f, target, "people", body);
    }
}

#define SOMEBODYS_RULES "\"[{\\\"name\\\":\\\"a\\\",\\\"behavior\\\":\\\"Skip\\\"}]\""

/* Of a Node that carries a request: what it has without one is nobody's business. */
static void change_rules(struct fleet *f, const struct target *target, uint32_t what)
{
    static const char *const values[] = { "null", "\"[]\"", "\"?\"", SOMEBODYS_RULES };
    const struct jval *labels =
        jval_at(fleet_node(f, target->cluster, target->name), "metadata.labels");
    if ((jval_get(labels, KEY_MACHINE_DELETED) == NULL &&
         jval_get(labels, KEY_MACHINE_MAINTENANCE) == NULL) ||
        jval_get(labels, TREATY_STRANGER) != NULL) {
        return;
    }
    patch_node(f, target, "people",
               arena_printf(&f->tmp, "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":%s}}}",
                            STR_ARG(DRAIN_RULES_ANNOTATION), values[what % ARRAY_LEN(values)]));
}

/* One of its cluster that carries a request, if there is any. */
static void deed_to_rules(struct fleet *f, const struct deed *deed)
{
    struct target target = { .cluster = deed->who % f->plan->clusters };
    struct fleet_names names = fleet_nodes(f, target.cluster);
    for (uint32_t i = 0; i < names.n; i++) {
        target.name = names.items[(deed->who / 16 + i) % names.n];
        change_rules(f, &target, deed->what);
    }
}

static void deed_to_peer(struct fleet *f, const struct deed *deed)
{
    struct target target = pick(f, deed, fleet_nodes);
    if (deed->kind == DEED_PEER_HOSTILE && !f->astray) {
        turn_hostile(f, &target, deed->what);
        return;
    }
    if (target.name.n == 0) {
        return;
    }
    const struct jval *node = fleet_node(f, target.cluster, target.name);
    bool managed = jval_get(jval_at(node, "metadata.labels"), KEY_STATE) != NULL;
    switch (deed->kind) {
    case DEED_PEER_DELETE:
        (void)fleet_ask(f, "people", target.cluster, "DELETE", fleet_node_path(f, target.name),
                        STR("")); /* it is there */
        break;
    case DEED_PEER_REPLACE:
        replace_node(f, &target, deed->what);
        break;
    case DEED_PEER_STATE:
        patch_node(f, &target, "people",
                   managed
                       ? STR("{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-state\":null}}}")
                       : STR("{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-state\":"
                             "\"operational\"}}}"));
        break;
    default:
        patch_node(f, &target, "people",
                   deed->what % 2 == 0 ? STR("{\"metadata\":{\"labels\":{\"" KEYS_LEGACY
                                             "approve-deletion\":\"true\"}}}")
                                       : STR("{\"metadata\":{\"labels\":{\"" KEYS_LEGACY
                                             "approve-maintenance\":\"true\"}}}"));
    }
}

/* ── bridges ───────────────────────────────────────────────────────────────────────────────── */

static void deed_to_pilot(struct fleet *f, const struct deed *deed)
{
    struct pilot *p = &f->pilots[deed->who % f->plan->processes];
    usec_t now = virtual_loop_now(f->vloop);
    if (deed->kind == DEED_CLOCK_STEP) {
        virtual_loop_step_wall(p->view, deed->span);
        return;
    }
    if (!pilot_runs(p)) {
        return;
    }
    switch (deed->kind) {
    case DEED_CRASH:
        pilot_crash(p);
        p->start_at = now + deed->span;
        break;
    case DEED_CRASH_STEP:
    case DEED_LATE:
        if (p->late_at == USEC_NEVER) {
            p->tap.write = f->plan->hosts && deed->what / 8 % 2 == 0 ? API_TAP_WRITE_BAREMETALHOST
                           : deed->what % 2 == 0                     ? API_TAP_WRITE_MACHINE
                                                                     : API_TAP_WRITE_NODE;
            p->tap.crash = deed->kind == DEED_LATE   ? API_TAP_CRASH_WRITE_LATE
                           : deed->what / 2 % 2 == 0 ? API_TAP_CRASH_WRITE_BEFORE
                                                     : API_TAP_CRASH_WRITE_AFTER;
            p->late_span = deed->span;
        }
        break;
    case DEED_STOP:
        if (!pilot_frozen(p)) {
            bridge_stop(p->bridge);
        }
        break;
    default:
        virtual_loop_freeze(p->view, true);
        p->thaw_at = now + deed->span;
        for (uint32_t i = 0; i <= TREATY_HOME; i++) {
            treaty_trouble(&f->treaty, p->index, i, p->thaw_at);
        }
    }
}

/* The write of a bridge that is gone arrives. */
static void deliver(struct fleet *f, struct pilot *p)
{
    const struct api_tap *tap = &p->tap;
    p->late_at = USEC_NEVER;
    if (tap->late_cluster > TREATY_HOME || tap->late_verb != API_PATCH) {
        return; /* nobody is there */
    }
    int status = fleet_ask(f, p->late_agent, tap->late_cluster, "PATCH", buf_str(&tap->late_path),
                           buf_str(&tap->late_body)); /* taken or refused: nobody waits */
    if (f->verbose) {
        (void)fprintf(stderr, "%12.3f s late write of %s: %d\n",
                      (double)virtual_loop_now(f->vloop) / 1e6, p->late_agent, status);
    }
}

/* ── wires ─────────────────────────────────────────────────────────────────────────────────── */

static void set_weather(struct fleet *f, uint32_t where, bool bad)
{
    for (uint32_t i = 0; i < f->plan->processes; i++) {
        struct pilot *p = &f->pilots[i];
        struct faults *faults = where == TREATY_HOME ? &p->home_faults : &p->far_faults[where];
        if (bad) {
            faults_randomize(faults);
        }
        faults->calm = !bad;
        faults->latency_max = MSECONDS(f->plan->latency);
    }
}

static void deed_to_home(struct fleet *f, const struct deed *deed)
{
    struct pilot *p = &f->pilots[deed->who % f->plan->processes];
    usec_t end = after(f, deed->span);
    switch (deed->kind) {
    case DEED_CUT:
    case DEED_STALL:
        if (deed->kind == DEED_CUT && p->upstream != NULL) {
            sim_api_disconnect(p->upstream);
        }
        p->home_faults.down = deed->kind == DEED_CUT;
        p->home_faults.partitioned = deed->kind == DEED_STALL;
        p->join_at = end;
        treaty_trouble(&f->treaty, p->index, TREATY_HOME, end);
        break;
    case DEED_WEATHER:
        set_weather(f, TREATY_HOME, true);
        f->weather_end[TREATY_HOME] = end;
        all_troubled(f, TREATY_HOME, end);
        break;
    case DEED_SERVER_DOWN:
        for (uint32_t i = 0; i < f->plan->processes; i++) {
            f->pilots[i].home_faults.down = true;
            if (f->pilots[i].upstream != NULL) {
                sim_api_disconnect(f->pilots[i].upstream);
            }
        }
        apiserver_restart(f->home);
        f->up_at = end;
        all_troubled(f, TREATY_HOME, end);
        break;
    case DEED_SERVER_RESTART:
        apiserver_restart(f->home);
        break;
    default:
        apiserver_compact(f->home);
    }
}

static void deed_to_far(struct fleet *f, const struct deed *deed)
{
    uint32_t cluster = deed->who % f->plan->clusters;
    usec_t end = after(f, deed->span);
    bool all = deed->what % 2 == 0; /* or only one bridge is cut off */
    for (uint32_t i = 0; i < f->plan->processes; i++) {
        struct pilot *p = &f->pilots[i];
        struct faults *faults = &p->far_faults[cluster];
        if (deed->kind == DEED_FAR_SLOW) {
            faults->latency_max = rng_usec(&f->rng, SECONDS(1), SECONDS(25));
            f->weather_end[cluster] = end;
            treaty_trouble(&f->treaty, i, cluster, end);
        } else if ((deed->kind == DEED_FAR_CUT || deed->kind == DEED_FAR_STALL) &&
                   (all || i == deed->what / 2 % f->plan->processes)) {
            if (deed->kind == DEED_FAR_CUT) {
                pilot_cut_far(p, cluster);
            }
            faults->down = deed->kind == DEED_FAR_CUT;
            faults->partitioned = deed->kind == DEED_FAR_STALL;
            p->far_join_at[cluster] = end;
            treaty_trouble(&f->treaty, i, cluster, end);
        }
    }
    if (deed->kind == DEED_FAR_WEATHER) {
        set_weather(f, cluster, true);
        f->weather_end[cluster] = end;
        all_troubled(f, cluster, end);
    } else if (deed->kind == DEED_FAR_RESTART) {
        apiserver_restart(f->clusters[cluster].server);
    } else if (deed->kind == DEED_FAR_COMPACT) {
        apiserver_compact(f->clusters[cluster].server);
    }
}

/* ── what is due ───────────────────────────────────────────────────────────────────────────── */

usec_t fleet_next_deed(const struct fleet *f)
{
    usec_t next = fleet_next_errand(f);
    next = MIN(next, f->up_at);
    if (f->next_deed < f->plan->n) {
        next = MIN(next, f->plan->deeds[f->next_deed].at);
    }
    for (uint32_t i = 0; i <= TREATY_HOME; i++) {
        next = MIN(next, f->weather_end[i]);
    }
    for (uint32_t i = 0; i < f->plan->processes; i++) {
        const struct pilot *p = &f->pilots[i];
        next = MIN(next, p->start_at);
        next = MIN(next, p->thaw_at);
        next = MIN(next, p->join_at);
        next = MIN(next, p->late_at);
        for (uint32_t c = 0; c < TREATY_CLUSTERS_MAX; c++) {
            next = MIN(next, p->far_join_at[c]);
        }
    }
    return next;
}

static void end_pilot_deeds(struct fleet *f, struct pilot *p, usec_t now)
{
    if (p->late_at <= now) {
        deliver(f, p);
    }
    if (p->thaw_at <= now) {
        virtual_loop_freeze(p->view, false);
        p->thaw_at = USEC_NEVER;
    }
    if (p->join_at <= now) {
        p->home_faults.down = f->up_at != USEC_NEVER;
        p->home_faults.partitioned = false;
        p->join_at = USEC_NEVER;
    }
    for (uint32_t c = 0; c < TREATY_CLUSTERS_MAX; c++) {
        if (p->far_join_at[c] <= now) {
            p->far_faults[c].down = false;
            p->far_faults[c].partitioned = false;
            p->far_join_at[c] = USEC_NEVER;
        }
    }
    if (p->start_at <= now) {
        p->start_at =
            pilot_frozen(p) ? p->thaw_at : USEC_NEVER; /* a frozen machine starts nothing */
        if (!pilot_frozen(p) && !pilot_runs(p)) {
            pilot_start(p);
        }
    }
}

static void end_deeds(struct fleet *f, usec_t now)
{
    for (uint32_t i = 0; i <= TREATY_HOME; i++) {
        if (f->weather_end[i] <= now) {
            set_weather(f, i, false);
            f->weather_end[i] = USEC_NEVER;
        }
    }
    if (f->up_at <= now) {
        f->up_at = USEC_NEVER;
        for (uint32_t i = 0; i < f->plan->processes; i++) {
            struct pilot *p = &f->pilots[i];
            p->home_faults.down = p->join_at != USEC_NEVER && !p->home_faults.partitioned;
        }
    }
    for (uint32_t i = 0; i < f->plan->processes; i++) {
        end_pilot_deeds(f, &f->pilots[i], now);
    }
}

static void do_deed(struct fleet *f, const struct deed *deed)
{
    if (deed->kind <= DEED_CLOCK_STEP || deed->kind == DEED_CRASH_STEP || deed->kind == DEED_LATE) {
        deed_to_pilot(f, deed);
    } else if (deed->kind <= DEED_COMPACT) {
        deed_to_home(f, deed);
    } else if (deed->kind == DEED_MACHINE_NEW ||
               (deed->kind >= DEED_CLUSTER_PAUSE && deed->kind <= DEED_SECRET_GONE)) {
        deed_to_cluster(f, deed);
    } else if (deed->kind <= DEED_MACHINE_PAUSE) {
        deed_to_machine(f, deed);
    } else if (deed->kind == DEED_RULE) {
        deed_to_rule(f, deed);
    } else if (deed->kind == DEED_RULE_LABEL) {
        deed_to_label(f, deed);
    } else if (deed->kind == DEED_PEER_RULES) {
        deed_to_rules(f, deed);
    } else if (deed->kind <= DEED_PEER_HOSTILE) {
        deed_to_peer(f, deed);
    } else if (deed->kind <= DEED_FAR_COMPACT) {
        deed_to_far(f, deed);
    } else {
        fleet_host_deed(f, deed);
    }
}

void fleet_do_deeds(struct fleet *f)
{
    usec_t now = virtual_loop_now(f->vloop);
    end_deeds(f, now);
    fleet_do_errands(f, now);
    while (f->next_deed < f->plan->n && f->plan->deeds[f->next_deed].at <= now) {
        const struct deed *deed = &f->plan->deeds[f->next_deed++];
        if (f->verbose) {
            (void)fprintf(stderr, "%12.3f s %s who %u what %u for %.3f s\n", (double)now / 1e6,
                          deed_name(deed->kind), deed->who, deed->what, (double)deed->span / 1e6);
        }
        do_deed(f, deed);
    }
}

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

/* What a stranger has put into a cluster is nobody's; what they wrote on a Node is only cleared
 * away where it is looked after. */
static void calm_stranger(struct fleet *f, const struct target *target, struct str owner)
{
    const struct jval *node = fleet_node(f, target->cluster, target->name);
    const struct jval *machine = owner.n > 0 ? fleet_machine(f, target->cluster, owner) : NULL;
    if (jval_get(jval_at(node, "metadata.labels"), TREATY_STRANGER) == NULL) {
        return;
    }
    if (machine == NULL) {
        (void)fleet_ask(f, "people", target->cluster, "DELETE", fleet_node_path(f, target->name),
                        STR("")); /* it is there */
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
static void calm_nodes(struct fleet *f, uint32_t cluster)
{
    struct fleet_names machines = fleet_machines(f, cluster);
    struct fleet_names nodes = fleet_nodes(f, cluster);
    for (uint32_t i = 0; i < nodes.n; i++) {
        struct target target = { cluster, nodes.items[i] };
        struct str owner = STR("");
        for (uint32_t k = 0; k < machines.n; k++) {
            const struct jval *machine = fleet_machine(f, cluster, machines.items[k]);
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
                                    STR_ARG(owner), STR_ARG(f->clusters[cluster].space)));
        }
        fleet_errand(f, ERRAND_ENGINE, cluster, target.name, after(f, SECONDS(2)));
        calm_stranger(f, &target, owner);
    }
    for (uint32_t k = 0; k < machines.n; k++) {
        fleet_errand(f, ERRAND_MACHINE, cluster, machines.items[k], after(f, SECONDS(2)));
        fleet_errand(f, ERRAND_UNPAUSE, cluster, machines.items[k], after(f, SECONDS(1)));
    }
}

static void calm_pilot(struct pilot *p, usec_t now)
{
    p->tap.crash = API_TAP_CRASH_NONE;
    p->home_faults.calm = true;
    p->thaw_at = pilot_frozen(p) ? now : USEC_NEVER;
    p->join_at = p->join_at != USEC_NEVER ? now : USEC_NEVER;
    p->start_at = pilot_runs(p) ? USEC_NEVER : now;
    for (uint32_t c = 0; c < TREATY_CLUSTERS_MAX; c++) {
        p->far_faults[c].calm = true;
        p->far_join_at[c] = p->far_join_at[c] != USEC_NEVER ? now : USEC_NEVER;
    }
}

void fleet_calm_down(struct fleet *f)
{
    usec_t now = virtual_loop_now(f->vloop);
    f->next_deed = f->plan->n;
    f->calm = true;
    f->up_at = MIN(f->up_at, now);
    for (uint32_t i = 0; i <= TREATY_HOME; i++) {
        f->weather_end[i] = MIN(f->weather_end[i], now);
    }
    for (uint32_t i = 0; i < f->plan->processes; i++) {
        calm_pilot(&f->pilots[i], now);
    }
    end_deeds(f, now);
    for (uint32_t i = 0; i < f->plan->clusters; i++) {
        fleet_errand(f, ERRAND_SECRET, i, STR(""), now);
        fleet_errand(f, ERRAND_GO_ON, i, STR(""), after(f, SECONDS(1)));
        fleet_errand(f, ERRAND_CLUSTER, i, STR(""), after(f, SECONDS(2)));
        calm_nodes(f, i);
    }
    fleet_host_calm(f);
}
