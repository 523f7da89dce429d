/*
 * Metal3 in the clusters: its provider, which finds hosts for Machines and gives them back, its
 * operator, which switches them off and on, engines that drain Nodes before, and what people do to
 * hosts.
 *
 * A Machine's infrastructure object is only a name, which hosts refer to: bridges do not read it.
 */
#include "kinds/keys.h"
#include "tests/swarm/bridge_run.h"

#define INFRA_SUFFIX "-iron"
#define REBOOT_ONCE STR("reboot.metal3.io") /* done once, and taken away by the operator */
#define REBOOT_KEYED STR("reboot.metal3.io/")
#define DETACHED STR("baremetalhost.metal3.io/detached")

static usec_t random_time(struct bridge_run *f, usec_t longest)
{
    return virtual_loop_now(f->vloop) + rng_usec(&f->metal3_rng, MSECONDS(10), longest);
}

static usec_t time_in(struct bridge_run *f, usec_t duration)
{
    return virtual_loop_now(f->vloop) + duration;
}

/* ── the beginning ─────────────────────────────────────────────────────────────────────────── */

void bridge_metal3_draw(struct bridge_run *f)
{
    rng_init(&f->metal3_rng, f->scenario->seed ^ 0x7ae19b55ULL);
    if (!f->scenario->hosts) {
        return;
    }
    struct check_bridge_options *options = &f->check.options;
    options->metal3 = true;
    options->any_machine = rng_chance(&f->metal3_rng, 150);
    options->drained = rng_chance(&f->metal3_rng, 300);
    f->drains = options->drained;
    f->base.metal3 = true;
    f->base.power.any_machine = options->any_machine;
    f->base.power.require_drained = options->drained;
}

static void install_host_crd(struct bridge_run *f)
{
    if (!f->scenario->hosts || f->crd_installed) {
        return;
    }
    f->crd_installed = true;
    bridge_run_install_crd(f, &(struct bridge_run_crd){ CHECK_METAL3_GROUP, STR("v1alpha1"),
                                                        "BareMetalHost", "baremetalhosts" });
    for (uint32_t i = 0; i < f->scenario->clusters; i++) {
        if (f->clusters[i].server == NULL) {
            continue; /* it is still to come */
        }
        struct bridge_run_names names = bridge_run_machines(f, i);
        for (uint32_t k = 0; k < names.n; k++) {
            bridge_run_schedule(f, FOLLOWUP_HOST_ASSIGN, i, names.items[k],
                                random_time(f, SECONDS(4)));
        }
    }
}

void bridge_metal3_install(struct bridge_run *f)
{
    if (f->scenario->hosts && rng_chance(&f->metal3_rng, 250)) {
        bridge_run_schedule(f, FOLLOWUP_HOST_CRD, 0, STR(""), random_time(f, MINUTES(3)));
    } else {
        install_host_crd(f);
    }
}

struct str bridge_metal3_machine_spec(struct bridge_run *f, struct str machine, uint32_t number)
{
    if (!f->scenario->hosts || rng_chance(&f->metal3_rng, 100)) {
        return arena_printf(&f->tmp, "\"providerID\":\"lab://%u\"", number);
    }
    return arena_printf(&f->tmp,
                        "\"infrastructureRef\":{\"apiGroup\":\"infrastructure.cluster.x-k8s.io\","
                        "\"kind\":\"Metal3Machine\",\"name\":\"" STR_FMT INFRA_SUFFIX "\"}",
                        STR_ARG(machine));
}

/* ── reading and writing ───────────────────────────────────────────────────────────────────── */

static void host_patch(struct bridge_run *f, const char *who, uint32_t cluster, struct str host,
                       struct str body)
{
    int status = bridge_run_request(f, who, MANAGEMENT_CLUSTER, "PATCH",
                                    bridge_run_host_path(f, cluster, host), body);
    ASSERT(status == 200);
}

static void host_set_status(struct bridge_run *f, uint32_t cluster, struct str host,
                            const char *state, bool on)
{
    struct str path = arena_concat(&f->tmp, bridge_run_host_path(f, cluster, host), STR("/status"));
    int status = bridge_run_request(f, "metal3", MANAGEMENT_CLUSTER, "PATCH", path,
                                    arena_printf(&f->tmp,
                                                 "{\"status\":{\"provisioning\":{\"state\":\"%s\"},"
                                                 "\"poweredOn\":%s}}",
                                                 state, on ? "true" : "false"));
    ASSERT(status == 200);
}

/* `value` is JSON. */
static void host_annotate(struct bridge_run *f, uint32_t cluster, struct str host, struct str key,
                          struct str value)
{
    host_patch(f, "people", cluster, host,
               arena_printf(&f->tmp,
                            "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":" STR_FMT "}}}",
                            STR_ARG(key), STR_ARG(value)));
}

static bool host_has(const struct jval *host, struct str key)
{
    return jval_get(jval_at(host, "metadata.annotations"), key) != NULL;
}

static struct str host_consumer(const struct jval *host)
{
    return jval_str(jval_at(host, "spec.consumerRef.name"));
}

/* The Machine that a host is of, whether it is there or not; empty: none. */
static struct str host_machine(const struct jval *host)
{
    struct str machine = STR("");
    (void)str_cut_suffix(host_consumer(host), STR(INFRA_SUFFIX), &machine); /* nobody's has none */
    return machine;
}

/* ── the provider ──────────────────────────────────────────────────────────────────────────── */

static void assign_host(struct bridge_run *f, uint32_t cluster, struct str host, struct str machine)
{
    struct str namespace = rng_chance(&f->metal3_rng, 700)
                               ? arena_printf(&f->tmp, ",\"namespace\":\"" STR_FMT "\"",
                                              STR_ARG(f->clusters[cluster].namespace))
                               : STR("");
    host_patch(f, "metal3", cluster, host,
               arena_printf(&f->tmp,
                            "{\"spec\":{\"consumerRef\":{\"kind\":\"Metal3Machine\",\"name\":"
                            "\"" STR_FMT INFRA_SUFFIX "\"" STR_FMT "}}}",
                            STR_ARG(machine), STR_ARG(namespace)));
    host_set_status(f, cluster, host,
                    rng_chance(&f->metal3_rng, 500) ? "provisioned" : "provisioning", true);
}

static void release_host(struct bridge_run *f, uint32_t cluster, struct str host)
{
    host_patch(f, "metal3", cluster, host, STR("{\"spec\":{\"consumerRef\":null}}"));
}

static struct str new_host(struct bridge_run *f, uint32_t cluster, struct str name)
{
    struct str body =
        arena_printf(&f->tmp,
                     "{\"apiVersion\":\"metal3.io/v1alpha1\",\"kind\":\"BareMetalHost\","
                     "\"metadata\":{\"name\":\"" STR_FMT "\"},\"spec\":{\"online\":true}}",
                     STR_ARG(name));
    int status = bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "POST",
                                    bridge_run_host_path(f, cluster, STR("")), body);
    ASSERT(status == 201);
    host_set_status(f, cluster, name, "available", false);
    return name;
}

/* One that nobody has, or a new one. */
static struct str find_free_host(struct bridge_run *f, uint32_t cluster)
{
    struct bridge_run_names names = bridge_run_hosts(f, cluster);
    for (uint32_t i = 0; i < names.n; i++) {
        const struct jval *host = bridge_run_host(f, cluster, names.items[i]);
        if (host_consumer(host).n == 0 &&
            str_eq(jval_str(jval_at(host, "status.provisioning.state")), STR("available"))) {
            return names.items[i];
        }
    }
    return new_host(f, cluster, arena_printf(&f->tmp, "h%u", f->host_n++));
}

/* Provider ids are of the new form or of the old one. */
static void set_provider_id(struct bridge_run *f, uint32_t cluster, struct str machine,
                            struct str host)
{
    const struct bridge_run_cluster *c = &f->clusters[cluster];
    struct str uid = jval_str(jval_at(bridge_run_host(f, cluster, host), "metadata.uid"));
    struct str id = rng_chance(&f->metal3_rng, 300)
                        ? arena_printf(&f->tmp, STR_FMT, STR_ARG(uid))
                        : arena_printf(&f->tmp, STR_FMT "/" STR_FMT "/" STR_FMT INFRA_SUFFIX,
                                       STR_ARG(c->namespace), STR_ARG(host), STR_ARG(machine));
    int status = bridge_run_request(
        f, "capi", MANAGEMENT_CLUSTER, "PATCH", bridge_run_machine_path(f, cluster, machine),
        arena_printf(&f->tmp, "{\"spec\":{\"providerID\":\"metal3://" STR_FMT "\"}}", STR_ARG(id)));
    ASSERT(status == 200);
}

static bool needs_host(const struct jval *machine)
{
    return machine != NULL && jval_str(jval_at(machine, "spec.infrastructureRef.name")).n > 0 &&
           jval_str(jval_at(machine, "spec.providerID")).n == 0 &&
           jval_str(jval_at(machine, "metadata.deletionTimestamp")).n == 0;
}

static void assign_any_host(struct bridge_run *f, uint32_t cluster, struct str machine)
{
    if (!f->crd_installed || !needs_host(bridge_run_machine(f, cluster, machine))) {
        return;
    }
    struct str host = find_free_host(f, cluster);
    assign_host(f, cluster, host, machine);
    set_provider_id(f, cluster, machine, host);
}

/* Those whose Machine is not there any more are nobody's. */
static void release_orphan_host(struct bridge_run *f, uint32_t cluster, struct str name)
{
    const struct jval *host = bridge_run_host(f, cluster, name);
    struct str machine = host_machine(host);
    if (machine.n > 0 && bridge_run_machine(f, cluster, machine) == NULL) {
        release_host(f, cluster, name);
    }
}

void bridge_metal3_on_machine_gone(struct bridge_run *f, uint32_t cluster, struct str machine)
{
    struct bridge_run_names names = bridge_run_hosts(f, cluster);
    for (uint32_t i = 0; i < names.n; i++) {
        if (!str_eq(host_machine(bridge_run_host(f, cluster, names.items[i])), machine)) {
            continue;
        }
        if (rng_chance(&f->metal3_rng, 600)) {
            release_host(f, cluster, names.items[i]);
        } else {
            bridge_run_schedule(f, FOLLOWUP_HOST_RELEASE, cluster, names.items[i],
                                random_time(f, SECONDS(60)));
        }
    }
}

/* ── the operator ──────────────────────────────────────────────────────────────────────────── */

/* A host that is given back is wiped, and no wish to reboot it outlives that. */
static void deprovision_host(struct bridge_run *f, uint32_t cluster, struct str name,
                             const struct jval *host)
{
    CLEANUP(buf_done)
    struct buf keys = { 0 };
    JVAL_EACH (jval_at(host, "metadata.annotations"), annotation) {
        if (str_starts(jval_key(annotation), REBOOT_ONCE)) {
            buf_printf(&keys, "%s\"" STR_FMT "\":null", keys.n > 0 ? "," : "",
                       STR_ARG(jval_key(annotation)));
        }
    }
    if (keys.n > 0 && rng_chance(&f->metal3_rng, 500)) {
        host_patch(f, "metal3", cluster, name,
                   arena_printf(&f->tmp, "{\"metadata\":{\"annotations\":{" STR_FMT "}}}",
                                STR_ARG(buf_str(&keys))));
    }
    host_set_status(f, cluster, name, "available", false);
}

static bool is_kept_off(const struct jval *host)
{
    JVAL_EACH (jval_at(host, "metadata.annotations"), annotation) {
        if (str_starts(jval_key(annotation), REBOOT_KEYED)) {
            return true;
        }
    }
    return false;
}

static void operator_reconcile(struct bridge_run *f, uint32_t cluster, struct str name)
{
    const struct jval *host = bridge_run_host(f, cluster, name);
    if (host == NULL || host_has(host, KEY_HOST_PAUSED) || host_has(host, DETACHED)) {
        return;
    }
    struct str state = jval_str(jval_at(host, "status.provisioning.state"));
    bool used = host_consumer(host).n > 0;
    bool on = jval_bool(jval_at(host, "status.poweredOn"), false);
    bool provisioned = str_eq(state, STR("provisioned"));
    if (host_has(host, REBOOT_ONCE)) {
        host_annotate(f, cluster, name, REBOOT_ONCE, STR("null"));
    } else if (!used && str_eq(state, STR("deprovisioning"))) {
        deprovision_host(f, cluster, name, host);
    } else if (!used && !str_eq(state, STR("available"))) {
        host_set_status(f, cluster, name, "deprovisioning", false);
    } else if (used && str_eq(state, STR("provisioning"))) {
        host_set_status(f, cluster, name, "provisioned", true);
    } else if (provisioned && on == is_kept_off(host)) {
        host_set_status(f, cluster, name, "provisioned", !on);
    }
}

void bridge_metal3_on_commit(struct bridge_run *f, const struct apiserver_commit *commit)
{
    bool host = str_eq(commit->plural, STR("baremetalhosts"));
    bool machine = f->scenario->hosts && str_eq(commit->plural, STR("machines"));
    if (commit->now == NULL || !(host || machine)) {
        return;
    }
    struct str name = jval_str(jval_at(commit->now, "spec.clusterName"));
    for (uint32_t i = 0; i < f->scenario->clusters; i++) {
        const struct bridge_run_cluster *c = &f->clusters[i];
        if (!str_eq(c->namespace, commit->namespace)) {
            continue;
        }
        if (host) {
            usec_t longest = f->calm || rng_chance(&f->metal3_rng, 700) ? SECONDS(3) : SECONDS(40);
            bridge_run_schedule(f, FOLLOWUP_HOST, i, commit->name, random_time(f, longest));
            return; /* one for a namespace is enough */
        }
        if (str_eq(c->name, name) && needs_host(commit->now)) {
            bridge_run_schedule(f, FOLLOWUP_HOST_ASSIGN, i, commit->name,
                                random_time(f, SECONDS(8)));
        }
    }
}

/* ── engines ───────────────────────────────────────────────────────────────────────────────── */

struct node_pods {
    struct bridge_run *f;
    struct str node;
    struct str first;
    uint32_t n;
};

static void node_pods_visit(void *ctx, const struct jval *pod)
{
    struct node_pods *pods = ctx;
    if (!str_eq(jval_str(jval_at(pod, "spec.nodeName")), pods->node)) {
        return;
    }
    if (pods->n++ == 0) {
        pods->first = arena_str(&pods->f->tmp, jval_str(jval_at(pod, "metadata.name")));
    }
}

static void add_pod(struct bridge_run *f, uint32_t cluster, struct str node)
{
    struct str body = arena_printf(
        &f->tmp,
        "{\"metadata\":{\"generateName\":\"p-\",\"labels\":{\"app\":\"%s\"}},\"spec\":{"
        "\"nodeName\":\"" STR_FMT "\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
        rng_chance(&f->metal3_rng, 300) ? "db" : "web", STR_ARG(node));
    int status = bridge_run_request(f, "people", cluster, "POST",
                                    STR("/api/v1/namespaces/default/pods"), body);
    ASSERT(status == 201);
}

static void set_cordon(struct bridge_run *f, uint32_t cluster, struct str node, bool cordoned)
{
    int status = bridge_run_request(f, "drainer", cluster, "PATCH", bridge_run_node_path(f, node),
                                    cordoned ? STR("{\"spec\":{\"unschedulable\":true}}")
                                             : STR("{\"spec\":{\"unschedulable\":null}}"));
    ASSERT(status == 200);
}

void bridge_metal3_drain_node(struct bridge_run *f, uint32_t cluster, struct str name)
{
    const struct jval *node = bridge_run_node(f, cluster, name);
    if (!f->drains || node == NULL) {
        return;
    }
    const struct jval *labels = jval_at(node, "metadata.labels");
    bool wanted = str_eq(jval_str(jval_get(labels, KEY_MACHINE_MAINTENANCE)), KEYS_TRUE) &&
                  str_eq(jval_str(jval_get(labels, KEY_APPROVE_MAINTENANCE)), KEYS_TRUE);
    struct node_pods pods = { .f = f, .node = name };
    apiserver_each(f->clusters[cluster].server, STR(""), STR("pods"), STR(""), node_pods_visit,
                   &pods);
    if (jval_bool(jval_at(node, "spec.unschedulable"), false) != wanted) {
        set_cordon(f, cluster, name, wanted);
    } else if (wanted && pods.n > 0) {
        struct str path = arena_printf(
            &f->tmp, "/api/v1/namespaces/default/pods/" STR_FMT "?gracePeriodSeconds=0",
            STR_ARG(pods.first));
        int status = bridge_run_request(f, "drainer", cluster, "DELETE", path, STR(""));
        ASSERT(status == 200);
        bridge_run_schedule(f, FOLLOWUP_ENGINE, cluster, name, random_time(f, SECONDS(5)));
    } else if (!wanted && pods.n == 0) {
        add_pod(f, cluster, name);
    }
}

/* ── what people do ────────────────────────────────────────────────────────────────────────── */

/* One that the namespace has, perhaps another one than this. */
static uint32_t cluster_in_namespace(const struct bridge_run *f, uint32_t cluster, uint32_t variant)
{
    uint32_t i = (cluster + variant / 8) % f->scenario->clusters;
    return str_eq(f->clusters[i].namespace, f->clusters[cluster].namespace) ? i : cluster;
}

/* Another Machine comes and gets it; the one before is deleted, or stays and names it still. */
static void reassign_host(struct bridge_run *f, uint32_t cluster, struct str host, uint32_t variant)
{
    struct bridge_run_cluster *c = &f->clusters[cluster];
    struct str before = arena_str(&f->tmp, host_machine(bridge_run_host(f, cluster, host)));
    if (variant / 4 % 2 == 0 && before.n > 0) {
        /* It may be on its way out, or gone. */
        (void)bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "DELETE",
                                 bridge_run_machine_path(f, cluster, before), STR(""));
    }
    struct str machine = arena_printf(&f->tmp, STR_FMT "-m%u", STR_ARG(c->name), c->machines);
    bridge_run_new_machine(f, cluster, 512u + (variant & 511u));
    if (needs_host(bridge_run_machine(f, cluster, machine))) {
        assign_host(f, cluster, host, machine);
        set_provider_id(f, cluster, machine, host);
    }
}

static void action_reassign(struct bridge_run *f, const struct action *action, uint32_t cluster,
                            struct str host)
{
    uint32_t to = cluster_in_namespace(f, cluster, action->variant);
    if (action->variant % 2 == 0 && bridge_run_cluster(f, to) != NULL &&
        bridge_run_machines(f, to).n < 6) {
        reassign_host(f, to, host, action->variant);
    } else {
        release_host(f, cluster, host);
        bridge_run_schedule(f, FOLLOWUP_HOST_RECREATE, cluster, host, time_in(f, action->duration));
    }
}

/* The Machine that names a host by its name; empty: none. */
static struct str machine_naming_host(struct bridge_run *f, uint32_t cluster, struct str host)
{
    struct bridge_run_names names = bridge_run_machines(f, cluster);
    struct str id = arena_printf(&f->tmp, "metal3://" STR_FMT "/" STR_FMT "/",
                                 STR_ARG(f->clusters[cluster].namespace), STR_ARG(host));
    struct str found = STR("");
    for (uint32_t i = 0; i < names.n; i++) {
        const struct jval *machine = bridge_run_machine(f, cluster, names.items[i]);
        if (str_starts(jval_str(jval_at(machine, "spec.providerID")), id)) {
            found = names.items[i];
        }
    }
    return found;
}

/* A host that was deleted, or taken from its Machine, is there again for whoever names it. */
static void recreate_host(struct bridge_run *f, uint32_t cluster, struct str host)
{
    struct str machine = machine_naming_host(f, cluster, host);
    if (bridge_run_host(f, cluster, host) == NULL) {
        (void)new_host(f, cluster, host); /* its name is as it was */
    }
    if (machine.n > 0 && host_consumer(bridge_run_host(f, cluster, host)).n == 0) {
        assign_host(f, cluster, host, machine);
    }
}

static void action_forge(struct bridge_run *f, uint32_t cluster, struct str host, uint32_t variant)
{
    struct bridge_run_names names = bridge_run_machines(f, cluster);
    struct str owner = STR("null");
    if (variant / 2 % 3 == 1) {
        owner = STR("\"nobody\"");
    } else if (variant / 2 % 3 == 2 && names.n > 0) {
        const struct jval *machine =
            bridge_run_machine(f, cluster, names.items[variant / 8 % names.n]);
        owner = arena_printf(&f->tmp, "\"" STR_FMT "\"",
                             STR_ARG(jval_str(jval_at(machine, "metadata.uid"))));
    }
    host_patch(f, "people", cluster, host,
               arena_printf(&f->tmp,
                            "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":\"\",\"" STR_FMT
                            "\":" STR_FMT "}}}",
                            STR_ARG(KEY_REBOOT), STR_ARG(KEY_REBOOT_OWNER), STR_ARG(owner)));
}

static void action_strip(struct bridge_run *f, uint32_t cluster, struct str host, uint32_t variant)
{
    if (variant / 2 % 3 != 1) {
        host_annotate(f, cluster, host, KEY_REBOOT, STR("null"));
    }
    if (variant / 2 % 3 != 0) {
        host_annotate(f, cluster, host, KEY_REBOOT_OWNER, STR("null"));
    }
}

/* Others keep hosts off, too, or reboot them once. */
static void action_annotate(struct bridge_run *f, uint32_t cluster, struct str host,
                            uint32_t variant)
{
    static const struct str keys[] = {
        STR_INIT("reboot.metal3.io"),
        STR_INIT("reboot.metal3.io/somebody"),
        STR_INIT("reboot.metal3.io/runtime-extension-maintenance-controller-2"),
        STR_INIT("example.com/reboot-owner"),
    };
    struct str key = keys[variant / 2 % ARRAY_LEN(keys)];
    bool is = host_has(bridge_run_host(f, cluster, host), key);
    host_annotate(f, cluster, host, key, is ? STR("null") : STR("\"{\\\"mode\\\":\\\"hard\\\"}\""));
}

static void action_power_mode(struct bridge_run *f, uint32_t cluster, struct str host,
                              uint32_t variant)
{
    struct str machine = host_machine(bridge_run_host(f, cluster, host));
    struct str body = arena_printf(&f->tmp, "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":%s}}}",
                                   STR_ARG(KEY_POWER_MODE), variant % 3 == 0 ? "null" : "\"hard\"");
    if (machine.n > 0) {
        /* It may be gone. */
        (void)bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "PATCH",
                                 bridge_run_machine_path(f, cluster, machine), body);
    }
}

static void action_pod(struct bridge_run *f, uint32_t cluster, const struct action *action)
{
    struct bridge_run_names names = bridge_run_nodes(f, cluster);
    if (!f->drains || names.n == 0) {
        return;
    }
    struct str node = names.items[action->pick / 16 % names.n];
    bool cordoned =
        jval_bool(jval_at(bridge_run_node(f, cluster, node), "spec.unschedulable"), false);
    if (action->variant % 2 == 0) {
        add_pod(f, cluster, node);
        bridge_run_schedule(f, FOLLOWUP_ENGINE, cluster, node, time_in(f, action->duration));
    } else {
        set_cordon(f, cluster, node, !cordoned);
    }
}

/* Mostly one that is switched off, if there is any. */
static struct str pick_host(struct bridge_run *f, uint32_t cluster, const struct action *action)
{
    struct bridge_run_names names = bridge_run_hosts(f, cluster);
    for (uint32_t i = 0; i < names.n && action->pick / 4096 % 4 > 0; i++) {
        struct str name = names.items[(action->pick / 16 + i) % names.n];
        if (host_has(bridge_run_host(f, cluster, name), KEY_REBOOT)) {
            return name;
        }
    }
    return names.n == 0 ? STR("") : names.items[action->pick / 16 % names.n];
}

void bridge_metal3_action(struct bridge_run *f, const struct action *action)
{
    uint32_t cluster = action->pick % f->scenario->clusters;
    struct str host = pick_host(f, cluster, action);
    if (action->kind == ACTION_HOST_POD) {
        action_pod(f, cluster, action);
        return;
    }
    if (host.n == 0) {
        return;
    }
    switch (action->kind) {
    case ACTION_HOST_REASSIGN:
        action_reassign(f, action, cluster, host);
        break;
    case ACTION_HOST_DELETE:
        (void)bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "DELETE",
                                 bridge_run_host_path(f, cluster, host), STR("")); /* it is there */
        bridge_run_schedule(f, FOLLOWUP_HOST_RECREATE, cluster, host, time_in(f, action->duration));
        break;
    case ACTION_HOST_STATE:
        host_set_status(f, cluster, host, action->variant % 2 == 0 ? "preparing" : "deprovisioning",
                        true);
        bridge_run_schedule(f, FOLLOWUP_HOST_RESTORE, cluster, host, time_in(f, action->duration));
        break;
    case ACTION_HOST_ANNOTATE:
        action_annotate(f, cluster, host, action->variant);
        break;
    case ACTION_HOST_STRIP:
        action_strip(f, cluster, host, action->variant);
        break;
    case ACTION_HOST_FORGE:
        action_forge(f, cluster, host, action->variant);
        break;
    case ACTION_HOST_POWER_MODE:
        action_power_mode(f, cluster, host, action->variant);
        break;
    default:
        host_annotate(f, cluster, host,
                      action->kind == ACTION_HOST_PAUSE ? KEY_HOST_PAUSED : DETACHED, STR("\"\""));
        bridge_run_schedule(f, FOLLOWUP_HOST_RESTORE, cluster, host, time_in(f, action->duration));
    }
}

/* ── what has been begun ends ──────────────────────────────────────────────────────────────── */

static void restore_host(struct bridge_run *f, uint32_t cluster, struct str name)
{
    const struct jval *host = bridge_run_host(f, cluster, name);
    if (host == NULL) {
        return;
    }
    bool used = host_consumer(host).n > 0;
    bool on = jval_bool(jval_at(host, "status.poweredOn"), false);
    if (host_has(host, KEY_HOST_PAUSED) || host_has(host, DETACHED)) {
        host_patch(f, "people", cluster, name,
                   STR("{\"metadata\":{\"annotations\":{\"baremetalhost.metal3.io/paused\":null,"
                       "\"baremetalhost.metal3.io/detached\":null}}}"));
    }
    if (used) {
        host_set_status(f, cluster, name, "provisioned", on);
    }
}

void bridge_metal3_followup(struct bridge_run *f, const struct followup *e)
{
    struct str name = str_from(e->name);
    switch (e->kind) {
    case FOLLOWUP_HOST_ASSIGN:
        assign_any_host(f, e->cluster, name);
        break;
    case FOLLOWUP_HOST_RELEASE:
        release_orphan_host(f, e->cluster, name);
        break;
    case FOLLOWUP_HOST:
        operator_reconcile(f, e->cluster, name);
        break;
    case FOLLOWUP_HOST_RESTORE:
        restore_host(f, e->cluster, name);
        break;
    case FOLLOWUP_HOST_RECREATE:
        recreate_host(f, e->cluster, name);
        break;
    default:
        install_host_crd(f);
    }
}

void bridge_metal3_recover(struct bridge_run *f)
{
    install_host_crd(f);
    for (uint32_t i = 0; i < f->scenario->clusters; i++) {
        struct bridge_run_names names = bridge_run_hosts(f, i);
        for (uint32_t k = 0; k < names.n; k++) {
            bridge_run_schedule(f, FOLLOWUP_HOST_RELEASE, i, names.items[k],
                                time_in(f, SECONDS(2)));
            bridge_run_schedule(f, FOLLOWUP_HOST_RESTORE, i, names.items[k],
                                time_in(f, SECONDS(3)));
        }
    }
}
