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
#define REBOOT STR("reboot.metal3.io") /* done once, and taken away by the operator */
#define REBOOT_KEYED STR("reboot.metal3.io/")
#define DETACHED STR("baremetalhost.metal3.io/detached")

static usec_t soon(struct fleet *f, usec_t longest)
{
    return virtual_loop_now(f->vloop) + rng_usec(&f->iron, MSECONDS(10), longest);
}

static usec_t after(struct fleet *f, usec_t span)
{
    return virtual_loop_now(f->vloop) + span;
}

/* ── the beginning ─────────────────────────────────────────────────────────────────────────── */

void fleet_host_draw(struct fleet *f)
{
    rng_init(&f->iron, f->plan->seed ^ 0x7ae19b55ULL);
    if (!f->plan->hosts) {
        return;
    }
    struct treaty_terms *terms = &f->treaty.terms;
    terms->metal3 = true;
    terms->any_machine = rng_chance(&f->iron, 150);
    terms->drained = rng_chance(&f->iron, 300);
    f->drains = terms->drained;
    f->base.metal3 = true;
    f->base.power.any_machine = terms->any_machine;
    f->base.power.require_drained = terms->drained;
}

static void serve_kind(struct fleet *f)
{
    if (!f->plan->hosts || f->served) {
        return;
    }
    f->served = true;
    fleet_install(f, &(struct fleet_kind){ TREATY_METAL3, STR("v1alpha1"), "BareMetalHost",
                                           "baremetalhosts" });
    for (uint32_t i = 0; i < f->plan->clusters; i++) {
        if (f->clusters[i].server == NULL) {
            continue; /* it is still to come */
        }
        struct fleet_names names = fleet_machines(f, i);
        for (uint32_t k = 0; k < names.n; k++) {
            fleet_errand(f, ERRAND_ADOPT, i, names.items[k], soon(f, SECONDS(4)));
        }
    }
}

void fleet_host_begin(struct fleet *f)
{
    if (f->plan->hosts && rng_chance(&f->iron, 250)) {
        fleet_errand(f, ERRAND_KIND, 0, STR(""), soon(f, MINUTES(3)));
    } else {
        serve_kind(f);
    }
}

struct str fleet_host_spec(struct fleet *f, struct str machine, uint32_t number)
{
    if (!f->plan->hosts || rng_chance(&f->iron, 100)) {
        return arena_printf(&f->tmp, "\"providerID\":\"lab://%u\"", number);
    }
    return arena_printf(&f->tmp,
                        "\"infrastructureRef\":{\"apiGroup\":\"infrastructure.cluster.x-k8s.io\","
                        "\"kind\":\"Metal3Machine\",\"name\":\"" STR_FMT INFRA_SUFFIX "\"}",
                        STR_ARG(machine));
}

/* ── reading and writing ───────────────────────────────────────────────────────────────────── */

static void host_patch(struct fleet *f, const char *who, uint32_t cluster, struct str host,
                       struct str body)
{
    int status = fleet_ask(f, who, TREATY_HOME, "PATCH", fleet_host_path(f, cluster, host), body);
    ASSERT(status == 200);
}

static void host_set(struct fleet *f, uint32_t cluster, struct str host, const char *state, bool on)
{
    struct str path = arena_concat(&f->tmp, fleet_host_path(f, cluster, host), STR("/status"));
    int status = fleet_ask(f, "metal3", TREATY_HOME, "PATCH", path,
                           arena_printf(&f->tmp,
                                        "{\"status\":{\"provisioning\":{\"state\":\"%s\"},"
                                        "\"poweredOn\":%s}}",
                                        state, on ? "true" : "false"));
    ASSERT(status == 200);
}

/* `value` is JSON. */
static void host_annotate(struct fleet *f, uint32_t cluster, struct str host, struct str key,
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

static struct str consumer_of(const struct jval *host)
{
    return jval_str(jval_at(host, "spec.consumerRef.name"));
}

/* The Machine that a host is of, whether it is there or not; empty: none. */
static struct str machine_of(const struct jval *host)
{
    struct str machine = STR("");
    (void)str_cut_suffix(consumer_of(host), STR(INFRA_SUFFIX), &machine); /* nobody's has none */
    return machine;
}

/* ── the provider ──────────────────────────────────────────────────────────────────────────── */

static void consume(struct fleet *f, uint32_t cluster, struct str host, struct str machine)
{
    struct str space = rng_chance(&f->iron, 700)
                           ? arena_printf(&f->tmp, ",\"namespace\":\"" STR_FMT "\"",
                                          STR_ARG(f->clusters[cluster].space))
                           : STR("");
    host_patch(f, "metal3", cluster, host,
               arena_printf(&f->tmp,
                            "{\"spec\":{\"consumerRef\":{\"kind\":\"Metal3Machine\",\"name\":"
                            "\"" STR_FMT INFRA_SUFFIX "\"" STR_FMT "}}}",
                            STR_ARG(machine), STR_ARG(space)));
    host_set(f, cluster, host, rng_chance(&f->iron, 500) ? "provisioned" : "provisioning", true);
}

static void release(struct fleet *f, uint32_t cluster, struct str host)
{
    host_patch(f, "metal3", cluster, host, STR("{\"spec\":{\"consumerRef\":null}}"));
}

static struct str new_host(struct fleet *f, uint32_t cluster, struct str name)
{
    struct str body =
        arena_printf(&f->tmp,
                     "{\"apiVersion\":\"metal3.io/v1alpha1\",\"kind\":\"BareMetalHost\","
                     "\"metadata\":{\"name\":\"" STR_FMT "\"},\"spec\":{\"online\":true}}",
                     STR_ARG(name));
    int status =
        fleet_ask(f, "people", TREATY_HOME, "POST", fleet_host_path(f, cluster, STR("")), body);
    ASSERT(status == 201);
    host_set(f, cluster, name, "available", false);
    return name;
}

/* One that nobody has, or a new one. */
static struct str find_host(struct fleet *f, uint32_t cluster)
{
    struct fleet_names names = fleet_hosts(f, cluster);
    for (uint32_t i = 0; i < names.n; i++) {
        const struct jval *host = fleet_host(f, cluster, names.items[i]);
        if (consumer_of(host).n == 0 &&
            str_eq(jval_str(jval_at(host, "status.provisioning.state")), STR("available"))) {
            return names.items[i];
        }
    }
    return new_host(f, cluster, arena_printf(&f->tmp, "h%u", f->host_n++));
}

/* Provider ids are of the new form or of the old one. */
static void name_host(struct fleet *f, uint32_t cluster, struct str machine, struct str host)
{
    const struct fleet_cluster *c = &f->clusters[cluster];
    struct str uid = jval_str(jval_at(fleet_host(f, cluster, host), "metadata.uid"));
    struct str id = rng_chance(&f->iron, 300)
                        ? arena_printf(&f->tmp, STR_FMT, STR_ARG(uid))
                        : arena_printf(&f->tmp, STR_FMT "/" STR_FMT "/" STR_FMT INFRA_SUFFIX,
                                       STR_ARG(c->space), STR_ARG(host), STR_ARG(machine));
    int status = fleet_ask(
        f, "capi", TREATY_HOME, "PATCH", fleet_machine_path(f, cluster, machine),
        arena_printf(&f->tmp, "{\"spec\":{\"providerID\":\"metal3://" STR_FMT "\"}}", STR_ARG(id)));
    ASSERT(status == 200);
}

static bool needs_host(const struct jval *machine)
{
    return machine != NULL && jval_str(jval_at(machine, "spec.infrastructureRef.name")).n > 0 &&
           jval_str(jval_at(machine, "spec.providerID")).n == 0 &&
           jval_str(jval_at(machine, "metadata.deletionTimestamp")).n == 0;
}

static void adopt(struct fleet *f, uint32_t cluster, struct str machine)
{
    if (!f->served || !needs_host(fleet_machine(f, cluster, machine))) {
        return;
    }
    struct str host = find_host(f, cluster);
    consume(f, cluster, host, machine);
    name_host(f, cluster, machine, host);
}

/* Those whose Machine is not there any more are nobody's. */
static void free_host(struct fleet *f, uint32_t cluster, struct str name)
{
    const struct jval *host = fleet_host(f, cluster, name);
    struct str machine = machine_of(host);
    if (machine.n > 0 && fleet_machine(f, cluster, machine) == NULL) {
        release(f, cluster, name);
    }
}

void fleet_host_part(struct fleet *f, uint32_t cluster, struct str machine)
{
    struct fleet_names names = fleet_hosts(f, cluster);
    for (uint32_t i = 0; i < names.n; i++) {
        if (!str_eq(machine_of(fleet_host(f, cluster, names.items[i])), machine)) {
            continue;
        }
        if (rng_chance(&f->iron, 600)) {
            release(f, cluster, names.items[i]);
        } else {
            fleet_errand(f, ERRAND_FREE, cluster, names.items[i], soon(f, SECONDS(60)));
        }
    }
}

/* ── the operator ──────────────────────────────────────────────────────────────────────────── */

/* A host that is given back is wiped, and no wish to reboot it outlives that. */
static void wipe(struct fleet *f, uint32_t cluster, struct str name, const struct jval *host)
{
    CLEANUP(buf_done)
    struct buf keys = { 0 };
    JVAL_EACH (jval_at(host, "metadata.annotations"), note) {
        if (str_starts(jval_key(note), REBOOT)) {
            buf_printf(&keys, "%s\"" STR_FMT "\":null", keys.n > 0 ? "," : "",
                       STR_ARG(jval_key(note)));
        }
    }
    if (keys.n > 0 && rng_chance(&f->iron, 500)) {
        host_patch(f, "metal3", cluster, name,
                   arena_printf(&f->tmp, "{\"metadata\":{\"annotations\":{" STR_FMT "}}}",
                                STR_ARG(buf_str(&keys))));
    }
    host_set(f, cluster, name, "available", false);
}

static bool is_kept_off(const struct jval *host)
{
    JVAL_EACH (jval_at(host, "metadata.annotations"), note) {
        if (str_starts(jval_key(note), REBOOT_KEYED)) {
            return true;
        }
    }
    return false;
}

static void operate(struct fleet *f, uint32_t cluster, struct str name)
{
    const struct jval *host = fleet_host(f, cluster, name);
    if (host == NULL || host_has(host, KEY_HOST_PAUSED) || host_has(host, DETACHED)) {
        return;
    }
    struct str state = jval_str(jval_at(host, "status.provisioning.state"));
    bool used = consumer_of(host).n > 0;
    bool on = jval_bool(jval_at(host, "status.poweredOn"), false);
    bool provisioned = str_eq(state, STR("provisioned"));
    if (host_has(host, REBOOT)) {
        host_annotate(f, cluster, name, REBOOT, STR("null"));
    } else if (!used && str_eq(state, STR("deprovisioning"))) {
        wipe(f, cluster, name, host);
    } else if (!used && !str_eq(state, STR("available"))) {
        host_set(f, cluster, name, "deprovisioning", false);
    } else if (used && str_eq(state, STR("provisioning"))) {
        host_set(f, cluster, name, "provisioned", true);
    } else if (provisioned && on == is_kept_off(host)) {
        host_set(f, cluster, name, "provisioned", !on);
    }
}

void fleet_host_note(struct fleet *f, const struct apiserver_commit *commit)
{
    bool host = str_eq(commit->plural, STR("baremetalhosts"));
    bool machine = f->plan->hosts && str_eq(commit->plural, STR("machines"));
    if (commit->now == NULL || !(host || machine)) {
        return;
    }
    struct str name = jval_str(jval_at(commit->now, "spec.clusterName"));
    for (uint32_t i = 0; i < f->plan->clusters; i++) {
        const struct fleet_cluster *c = &f->clusters[i];
        if (!str_eq(c->space, commit->namespace)) {
            continue;
        }
        if (host) {
            usec_t longest = f->calm || rng_chance(&f->iron, 700) ? SECONDS(3) : SECONDS(40);
            fleet_errand(f, ERRAND_HOST, i, commit->name, soon(f, longest));
            return; /* one for a namespace is enough */
        }
        if (str_eq(c->name, name) && needs_host(commit->now)) {
            fleet_errand(f, ERRAND_ADOPT, i, commit->name, soon(f, SECONDS(8)));
        }
    }
}

/* ── engines ───────────────────────────────────────────────────────────────────────────────── */

struct pods {
    struct fleet *f;
    struct str node;
    struct str first;
    uint32_t n;
};

static void pods_visit(void *ctx, const struct jval *pod)
{
    struct pods *pods = ctx;
    if (!str_eq(jval_str(jval_at(pod, "spec.nodeName")), pods->node)) {
        return;
    }
    if (pods->n++ == 0) {
        pods->first = arena_str(&pods->f->tmp, jval_str(jval_at(pod, "metadata.name")));
    }
}

static void add_pod(struct fleet *f, uint32_t cluster, struct str node)
{
    struct str body = arena_printf(
        &f->tmp,
        "{\"metadata\":{\"generateName\":\"p-\",\"labels\":{\"app\":\"%s\"}},\"spec\":{"
        "\"nodeName\":\"" STR_FMT "\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
        rng_chance(&f->iron, 300) ? "db" : "web", STR_ARG(node));
    int status =
        fleet_ask(f, "people", cluster, "POST", STR("/api/v1/namespaces/default/pods"), body);
    ASSERT(status == 201);
}

static void set_cordon(struct fleet *f, uint32_t cluster, struct str node, bool cordoned)
{
    int status = fleet_ask(f, "drainer", cluster, "PATCH", fleet_node_path(f, node),
                           cordoned ? STR("{\"spec\":{\"unschedulable\":true}}")
                                    : STR("{\"spec\":{\"unschedulable\":null}}"));
    ASSERT(status == 200);
}

void fleet_host_drain(struct fleet *f, uint32_t cluster, struct str name)
{
    const struct jval *node = fleet_node(f, cluster, name);
    if (!f->drains || node == NULL) {
        return;
    }
    const struct jval *labels = jval_at(node, "metadata.labels");
    bool wanted = str_eq(jval_str(jval_get(labels, KEY_MACHINE_MAINTENANCE)), KEYS_TRUE) &&
                  str_eq(jval_str(jval_get(labels, KEY_APPROVE_MAINTENANCE)), KEYS_TRUE);
    struct pods pods = { .f = f, .node = name };
    apiserver_each(f->clusters[cluster].server, STR(""), STR("pods"), STR(""), pods_visit, &pods);
    if (jval_bool(jval_at(node, "spec.unschedulable"), false) != wanted) {
        set_cordon(f, cluster, name, wanted);
    } else if (wanted && pods.n > 0) {
        struct str path = arena_printf(
            &f->tmp, "/api/v1/namespaces/default/pods/" STR_FMT "?gracePeriodSeconds=0",
            STR_ARG(pods.first));
        int status = fleet_ask(f, "drainer", cluster, "DELETE", path, STR(""));
        ASSERT(status == 200);
        fleet_errand(f, ERRAND_ENGINE, cluster, name, soon(f, SECONDS(5)));
    } else if (!wanted && pods.n == 0) {
        add_pod(f, cluster, name);
    }
}

/* ── what people do ────────────────────────────────────────────────────────────────────────── */

/* One that the namespace has, perhaps another one than this. */
static uint32_t neighbour(const struct fleet *f, uint32_t cluster, uint32_t what)
{
    uint32_t i = (cluster + what / 8) % f->plan->clusters;
    return str_eq(f->clusters[i].space, f->clusters[cluster].space) ? i : cluster;
}

/* Another Machine comes and gets it; the one before is deleted, or stays and names it still. */
static void give_away(struct fleet *f, uint32_t cluster, struct str host, uint32_t what)
{
    struct fleet_cluster *c = &f->clusters[cluster];
    struct str before = arena_str(&f->tmp, machine_of(fleet_host(f, cluster, host)));
    if (what / 4 % 2 == 0 && before.n > 0) {
        /* It may be on its way out, or gone. */
        (void)fleet_ask(f, "people", TREATY_HOME, "DELETE", fleet_machine_path(f, cluster, before),
                        STR(""));
    }
    struct str machine = arena_printf(&f->tmp, STR_FMT "-m%u", STR_ARG(c->name), c->machines);
    fleet_new_machine(f, cluster, 512u + (what & 511u));
    if (needs_host(fleet_machine(f, cluster, machine))) {
        consume(f, cluster, host, machine);
        name_host(f, cluster, machine, host);
    }
}

static void deed_give(struct fleet *f, const struct deed *deed, uint32_t cluster, struct str host)
{
    uint32_t to = neighbour(f, cluster, deed->what);
    if (deed->what % 2 == 0 && fleet_cluster(f, to) != NULL && fleet_machines(f, to).n < 6) {
        give_away(f, to, host, deed->what);
    } else {
        release(f, cluster, host);
        fleet_errand(f, ERRAND_BACK, cluster, host, after(f, deed->span));
    }
}

/* The Machine that names a host by its name; empty: none. */
static struct str namer_of(struct fleet *f, uint32_t cluster, struct str host)
{
    struct fleet_names names = fleet_machines(f, cluster);
    struct str id = arena_printf(&f->tmp, "metal3://" STR_FMT "/" STR_FMT "/",
                                 STR_ARG(f->clusters[cluster].space), STR_ARG(host));
    struct str found = STR("");
    for (uint32_t i = 0; i < names.n; i++) {
        const struct jval *machine = fleet_machine(f, cluster, names.items[i]);
        if (str_starts(jval_str(jval_at(machine, "spec.providerID")), id)) {
            found = names.items[i];
        }
    }
    return found;
}

/* A host that was deleted, or taken from its Machine, is there again for whoever names it. */
static void bring_back(struct fleet *f, uint32_t cluster, struct str host)
{
    struct str machine = namer_of(f, cluster, host);
    if (fleet_host(f, cluster, host) == NULL) {
        (void)new_host(f, cluster, host); /* its name is as it was */
    }
    if (machine.n > 0 && consumer_of(fleet_host(f, cluster, host)).n == 0) {
        consume(f, cluster, host, machine);
    }
}

static void deed_forge(struct fleet *f, uint32_t cluster, struct str host, uint32_t what)
{
    struct fleet_names names = fleet_machines(f, cluster);
    struct str owner = STR("null");
    if (what / 2 % 3 == 1) {
        owner = STR("\"nobody\"");
    } else if (what / 2 % 3 == 2 && names.n > 0) {
        const struct jval *machine = fleet_machine(f, cluster, names.items[what / 8 % names.n]);
        owner = arena_printf(&f->tmp, "\"" STR_FMT "\"",
                             STR_ARG(jval_str(jval_at(machine, "metadata.uid"))));
    }
    host_patch(f, "people", cluster, host,
               arena_printf(&f->tmp,
                            "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":\"\",\"" STR_FMT
                            "\":" STR_FMT "}}}",
                            STR_ARG(KEY_REBOOT), STR_ARG(KEY_REBOOT_OWNER), STR_ARG(owner)));
}

static void deed_strip(struct fleet *f, uint32_t cluster, struct str host, uint32_t what)
{
    if (what / 2 % 3 != 1) {
        host_annotate(f, cluster, host, KEY_REBOOT, STR("null"));
    }
    if (what / 2 % 3 != 0) {
        host_annotate(f, cluster, host, KEY_REBOOT_OWNER, STR("null"));
    }
}

/* Others keep hosts off, too, or reboot them once. */
static void deed_note(struct fleet *f, uint32_t cluster, struct str host, uint32_t what)
{
    static const struct str keys[] = {
        STR_INIT("reboot.metal3.io"),
        STR_INIT("reboot.metal3.io/somebody"),
        STR_INIT("reboot.metal3.io/runtime-extension-maintenance-controller-2"),
        STR_INIT("example.com/reboot-owner"),
    };
    struct str key = keys[what / 2 % ARRAY_LEN(keys)];
    bool is = host_has(fleet_host(f, cluster, host), key);
    host_annotate(f, cluster, host, key, is ? STR("null") : STR("\"{\\\"mode\\\":\\\"hard\\\"}\""));
}

static void deed_mode(struct fleet *f, uint32_t cluster, struct str host, uint32_t what)
{
    struct str machine = machine_of(fleet_host(f, cluster, host));
    struct str body = arena_printf(&f->tmp, "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":%s}}}",
                                   STR_ARG(KEY_POWER_MODE), what % 3 == 0 ? "null" : "\"hard\"");
    if (machine.n > 0) {
        /* It may be gone. */
        (void)fleet_ask(f, "people", TREATY_HOME, "PATCH", fleet_machine_path(f, cluster, machine),
                        body);
    }
}

static void deed_pod(struct fleet *f, uint32_t cluster, const struct deed *deed)
{
    struct fleet_names names = fleet_nodes(f, cluster);
    if (!f->drains || names.n == 0) {
        return;
    }
    struct str node = names.items[deed->who / 16 % names.n];
    bool cordoned = jval_bool(jval_at(fleet_node(f, cluster, node), "spec.unschedulable"), false);
    if (deed->what % 2 == 0) {
        add_pod(f, cluster, node);
        fleet_errand(f, ERRAND_ENGINE, cluster, node, after(f, deed->span));
    } else {
        set_cordon(f, cluster, node, !cordoned);
    }
}

/* Mostly one that is switched off, if there is any. */
static struct str pick_host(struct fleet *f, uint32_t cluster, const struct deed *deed)
{
    struct fleet_names names = fleet_hosts(f, cluster);
    for (uint32_t i = 0; i < names.n && deed->who / 4096 % 4 > 0; i++) {
        struct str name = names.items[(deed->who / 16 + i) % names.n];
        if (host_has(fleet_host(f, cluster, name), KEY_REBOOT)) {
            return name;
        }
    }
    return names.n == 0 ? STR("") : names.items[deed->who / 16 % names.n];
}

void fleet_host_deed(struct fleet *f, const struct deed *deed)
{
    uint32_t cluster = deed->who % f->plan->clusters;
    struct str host = pick_host(f, cluster, deed);
    if (deed->kind == DEED_HOST_POD) {
        deed_pod(f, cluster, deed);
        return;
    }
    if (host.n == 0) {
        return;
    }
    switch (deed->kind) {
    case DEED_HOST_GIVE:
        deed_give(f, deed, cluster, host);
        break;
    case DEED_HOST_DELETE:
        (void)fleet_ask(f, "people", TREATY_HOME, "DELETE", fleet_host_path(f, cluster, host),
                        STR("")); /* it is there */
        fleet_errand(f, ERRAND_BACK, cluster, host, after(f, deed->span));
        break;
    case DEED_HOST_STATE:
        host_set(f, cluster, host, deed->what % 2 == 0 ? "preparing" : "deprovisioning", true);
        fleet_errand(f, ERRAND_WELL, cluster, host, after(f, deed->span));
        break;
    case DEED_HOST_NOTE:
        deed_note(f, cluster, host, deed->what);
        break;
    case DEED_HOST_STRIP:
        deed_strip(f, cluster, host, deed->what);
        break;
    case DEED_HOST_FORGE:
        deed_forge(f, cluster, host, deed->what);
        break;
    case DEED_HOST_MODE:
        deed_mode(f, cluster, host, deed->what);
        break;
    default:
        host_annotate(f, cluster, host, deed->kind == DEED_HOST_PAUSE ? KEY_HOST_PAUSED : DETACHED,
                      STR("\"\""));
        fleet_errand(f, ERRAND_WELL, cluster, host, after(f, deed->span));
    }
}

/* ── what has been begun ends ──────────────────────────────────────────────────────────────── */

static void make_well(struct fleet *f, uint32_t cluster, struct str name)
{
    const struct jval *host = fleet_host(f, cluster, name);
    if (host == NULL) {
        return;
    }
    bool used = consumer_of(host).n > 0;
    bool on = jval_bool(jval_at(host, "status.poweredOn"), false);
    if (host_has(host, KEY_HOST_PAUSED) || host_has(host, DETACHED)) {
        host_patch(f, "people", cluster, name,
                   STR("{\"metadata\":{\"annotations\":{\"baremetalhost.metal3.io/paused\":null,"
                       "\"baremetalhost.metal3.io/detached\":null}}}"));
    }
    if (used) {
        host_set(f, cluster, name, "provisioned", on);
    }
}

void fleet_host_errand(struct fleet *f, const struct errand *e)
{
    struct str name = str_from(e->name);
    switch (e->kind) {
    case ERRAND_ADOPT:
        adopt(f, e->cluster, name);
        break;
    case ERRAND_FREE:
        free_host(f, e->cluster, name);
        break;
    case ERRAND_HOST:
        operate(f, e->cluster, name);
        break;
    case ERRAND_WELL:
        make_well(f, e->cluster, name);
        break;
    case ERRAND_BACK:
        bring_back(f, e->cluster, name);
        break;
    default:
        serve_kind(f);
    }
}

void fleet_host_calm(struct fleet *f)
{
    serve_kind(f);
    for (uint32_t i = 0; i < f->plan->clusters; i++) {
        struct fleet_names names = fleet_hosts(f, i);
        for (uint32_t k = 0; k < names.n; k++) {
            fleet_errand(f, ERRAND_FREE, i, names.items[k], after(f, SECONDS(2)));
            fleet_errand(f, ERRAND_WELL, i, names.items[k], after(f, SECONDS(3)));
        }
    }
}
