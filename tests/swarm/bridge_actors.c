/*
 * Who lives in the clusters: Cluster API's Machine controller, the maintenance engines, and people
 * who end what they have begun.
 */
#include "base/base64.h"
#include "base/alloc.h"
#include "base/timestamp.h"
#include "kinds/keys.h"
#include "tests/swarm/bridge_run.h"

#define PRE_DRAIN STR("pre-drain.delete.hook.machine.cluster.x-k8s.io/")

/* ── asking ────────────────────────────────────────────────────────────────────────────────── */

int bridge_run_request(struct bridge_run *f, const char *who, uint32_t where, const char *method,
                       struct str path, struct str body)
{
    struct apiserver_request request = {
        .method = str_from(method),
        .path = path,
        .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
        .user_agent = str_from(who),
        .body = body,
    };
    struct apiserver_reply reply;
    struct apiserver *server =
        where == MANAGEMENT_CLUSTER ? f->management : f->clusters[where].server;
    apiserver_handle(server, &request, &f->tmp, &reply);
    return reply.status;
}

struct str bridge_run_cluster_path(struct bridge_run *f, uint32_t cluster)
{
    const struct bridge_run_cluster *c = &f->clusters[cluster];
    return arena_printf(
        &f->tmp, "/apis/cluster.x-k8s.io/" STR_FMT "/namespaces/" STR_FMT "/clusters/" STR_FMT,
        STR_ARG(f->version), STR_ARG(c->namespace), STR_ARG(c->name));
}

struct str bridge_run_machine_path(struct bridge_run *f, uint32_t cluster, struct str name)
{
    return arena_printf(
        &f->tmp, "/apis/cluster.x-k8s.io/" STR_FMT "/namespaces/" STR_FMT "/machines/" STR_FMT,
        STR_ARG(f->version), STR_ARG(f->clusters[cluster].namespace), STR_ARG(name));
}

/* Of the namespace that the cluster is in; "" = the collection. */
struct str bridge_run_rule_path(struct bridge_run *f, uint32_t cluster, const char *name)
{
    return arena_printf(
        &f->tmp, "/apis/cluster.x-k8s.io/" STR_FMT "/namespaces/" STR_FMT "/machinedrainrules%s%s",
        STR_ARG(f->version), STR_ARG(f->clusters[cluster].namespace), name[0] != 0 ? "/" : "",
        name);
}

struct str bridge_run_node_path(struct bridge_run *f, struct str name)
{
    return arena_printf(&f->tmp, "/api/v1/nodes/" STR_FMT, STR_ARG(name));
}

struct str bridge_run_host_path(struct bridge_run *f, uint32_t cluster, struct str name)
{
    return arena_printf(
        &f->tmp, "/apis/metal3.io/v1alpha1/namespaces/" STR_FMT "/baremetalhosts%s" STR_FMT,
        STR_ARG(f->clusters[cluster].namespace), name.n > 0 ? "/" : "", STR_ARG(name));
}

const struct jval *bridge_run_machine(struct bridge_run *f, uint32_t cluster, struct str name)
{
    return apiserver_find(f->management, CHECK_CAPI_GROUP, STR("machines"),
                          f->clusters[cluster].namespace, name);
}

const struct jval *bridge_run_node(struct bridge_run *f, uint32_t cluster, struct str name)
{
    return apiserver_find(f->clusters[cluster].server, STR(""), STR("nodes"), STR(""), name);
}

const struct jval *bridge_run_cluster(struct bridge_run *f, uint32_t cluster)
{
    const struct bridge_run_cluster *c = &f->clusters[cluster];
    return apiserver_find(f->management, CHECK_CAPI_GROUP, STR("clusters"), c->namespace, c->name);
}

const struct jval *bridge_run_host(struct bridge_run *f, uint32_t cluster, struct str name)
{
    return apiserver_find(f->management, CHECK_METAL3_GROUP, STR("baremetalhosts"),
                          f->clusters[cluster].namespace, name);
}

static void bridge_run_names_visit(void *ctx, const struct jval *object)
{
    struct bridge_run_names *names = ctx;
    if (names->cluster.n > 0 &&
        !str_eq(jval_str(jval_at(object, "spec.clusterName")), names->cluster)) {
        return;
    }
    ARENA_GROW(names->out, names->items, names->n, names->cap);
    names->items[names->n++] = arena_str(names->out, jval_str(jval_at(object, "metadata.name")));
}

struct bridge_run_names bridge_run_machines(struct bridge_run *f, uint32_t cluster)
{
    const struct bridge_run_cluster *c = &f->clusters[cluster];
    struct bridge_run_names names = { .out = &f->tmp, .cluster = c->name };
    apiserver_each(f->management, CHECK_CAPI_GROUP, STR("machines"), c->namespace,
                   bridge_run_names_visit, &names);
    return names;
}

struct bridge_run_names bridge_run_nodes(struct bridge_run *f, uint32_t cluster)
{
    struct bridge_run_names names = { .out = &f->tmp };
    apiserver_each(f->clusters[cluster].server, STR(""), STR("nodes"), STR(""),
                   bridge_run_names_visit, &names);
    return names;
}

struct bridge_run_names bridge_run_hosts(struct bridge_run *f, uint32_t cluster)
{
    struct bridge_run_names names = { .out = &f->tmp };
    apiserver_each(f->management, CHECK_METAL3_GROUP, STR("baremetalhosts"),
                   f->clusters[cluster].namespace, bridge_run_names_visit, &names);
    return names;
}

/* ── errands ───────────────────────────────────────────────────────────────────────────────── */

void bridge_run_schedule(struct bridge_run *f, enum followup_kind kind, uint32_t cluster,
                         struct str name, usec_t at)
{
    LIST_EACH (&f->followups, link) {
        const struct followup *e = CONTAINER_OF(link, struct followup, link);
        if (e->kind == kind && e->cluster == cluster && str_eq(str_from(e->name), name)) {
            return;
        }
    }
    struct followup *e = ALLOC_NEW(struct followup);
    e->at = at;
    e->kind = kind;
    e->cluster = cluster;
    (void)snprintf(e->name, sizeof(e->name), STR_FMT, STR_ARG(name));
    list_add(&f->followups, &e->link);
}

usec_t bridge_run_next_followup(const struct bridge_run *f)
{
    usec_t next = USEC_NEVER;
    LIST_EACH (&f->followups, link) {
        next = MIN(next, CONTAINER_OF(link, struct followup, link)->at);
    }
    return next;
}

static usec_t random_time(struct bridge_run *f, usec_t longest)
{
    return virtual_loop_now(f->vloop) + rng_usec(&f->rng, MSECONDS(10), longest);
}

void bridge_run_schedule_followups(struct bridge_run *f, uint32_t where,
                                   const struct apiserver_commit *commit)
{
    bool engine = str_eq(commit->user_agent, STR("engine"));
    if (where != MANAGEMENT_CLUSTER) {
        if (str_eq(commit->plural, STR("nodes")) && commit->now != NULL && !engine) {
            usec_t longest = f->calm || rng_chance(&f->rng, 500) ? SECONDS(3) : SECONDS(60);
            bridge_run_schedule(f, FOLLOWUP_ENGINE, where, commit->name, random_time(f, longest));
        }
        return;
    }
    bridge_metal3_on_commit(f, commit);
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    bool machine = str_eq(commit->plural, STR("machines"));
    struct str name = machine ? jval_str(jval_at(object, "spec.clusterName")) : commit->name;
    for (uint32_t i = 0; i < f->scenario->clusters; i++) {
        const struct bridge_run_cluster *c = &f->clusters[i];
        if (!str_eq(c->namespace, commit->namespace) || !str_eq(c->name, name)) {
            continue;
        }
        if (machine && commit->now != NULL) {
            bridge_run_schedule(f, FOLLOWUP_MACHINE, i, commit->name, random_time(f, SECONDS(4)));
        } else if (machine || str_eq(commit->plural, STR("clusters"))) {
            bridge_run_schedule(f, FOLLOWUP_CLUSTER, i, STR(""), random_time(f, SECONDS(4)));
        }
    }
}

/* ── Clusters and Machines ─────────────────────────────────────────────────────────────────── */

struct str bridge_run_kubeconfig(struct bridge_run *f, uint32_t cluster, uint32_t token)
{
    return sim_clusters_kubeconfig(arena_printf(&f->tmp, BRIDGE_PROCESS_SERVER_URL, cluster),
                                   arena_printf(&f->tmp, "token-%u-%u", cluster, token), &f->tmp);
}

void bridge_run_write_secret(struct bridge_run *f, uint32_t cluster, struct str kubeconfig)
{
    const struct bridge_run_cluster *c = &f->clusters[cluster];
    struct str value = base64_encode(&f->tmp, kubeconfig);
    struct str path =
        arena_printf(&f->tmp, "/api/v1/namespaces/" STR_FMT "/secrets", STR_ARG(c->namespace));
    struct str one =
        arena_printf(&f->tmp, STR_FMT "/" STR_FMT "-kubeconfig", STR_ARG(path), STR_ARG(c->name));
    struct str patch =
        arena_printf(&f->tmp, "{\"data\":{\"value\":\"" STR_FMT "\"}}", STR_ARG(value));
    if (bridge_run_request(f, "capi", MANAGEMENT_CLUSTER, "PATCH", one, patch) == 200) {
        return;
    }
    struct str body = arena_printf(
        &f->tmp,
        "{\"metadata\":{\"name\":\"" STR_FMT "-kubeconfig\"},"
        "\"type\":\"%s\",\"data\":{\"value\":\"" STR_FMT "\"}}",
        STR_ARG(c->name), cluster % 2 == 0 ? "cluster.x-k8s.io/secret" : "Opaque", STR_ARG(value));
    int status = bridge_run_request(f, "capi", MANAGEMENT_CLUSTER, "POST", path, body);
    ASSERT(status == 201);
}

void bridge_run_new_machine(struct bridge_run *f, uint32_t cluster, uint32_t variant)
{
    struct bridge_run_cluster *c = &f->clusters[cluster];
    uint32_t number = c->machines++;
    struct str hold = variant / 64 % 6 == 0
                          ? arena_printf(&f->tmp, "\"drydock.dev/deletion-hold-seconds\":\"%u\"",
                                         20 + variant % 100)
                          : STR("");
    struct str name = arena_printf(&f->tmp, STR_FMT "-m%u", STR_ARG(c->name), number);
    struct str spec = bridge_metal3_machine_spec(f, name, number);
    struct str skip =
        variant / 512 % 6 == 0 ? STR("\"cluster.x-k8s.io/skip-remediation\":\"mine\"") : STR("");
    struct str body = arena_printf(
        &f->tmp,
        "{\"apiVersion\":\"cluster.x-k8s.io/" STR_FMT "\",\"kind\":\"Machine\","
        "\"metadata\":{\"name\":\"" STR_FMT "\",\"finalizers\":[\"machine.cluster.x-k8s.io\"],"
        "\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"" STR_FMT "\"%s%s},"
        "\"annotations\":{" STR_FMT "%s" STR_FMT "}},"
        "\"spec\":{\"clusterName\":\"" STR_FMT "\"," STR_FMT "}}",
        STR_ARG(f->version), STR_ARG(name), STR_ARG(c->name),
        variant % 5 == 0 ? "" : ",\"" KEYS_LEGACY "enabled\":\"true\"",
        variant / 8 % 3 == 0 ? ",\"cluster.x-k8s.io/control-plane\":\"\"" : "", STR_ARG(hold),
        hold.n > 0 && skip.n > 0 ? "," : "", STR_ARG(skip), STR_ARG(c->name), STR_ARG(spec));
    struct str path =
        arena_printf(&f->tmp, "/apis/cluster.x-k8s.io/" STR_FMT "/namespaces/" STR_FMT "/machines",
                     STR_ARG(f->version), STR_ARG(c->namespace));
    int status = bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "POST", path, body);
    ASSERT(status == 201);
}

void bridge_run_create_cluster(struct bridge_run *f, uint32_t cluster)
{
    struct bridge_run_cluster *c = &f->clusters[cluster];
    struct str path =
        arena_printf(&f->tmp, "/apis/cluster.x-k8s.io/" STR_FMT "/namespaces/" STR_FMT "/clusters",
                     STR_ARG(f->version), STR_ARG(c->namespace));
    struct str body = arena_printf(&f->tmp,
                                   "{\"apiVersion\":\"cluster.x-k8s.io/" STR_FMT
                                   "\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"" STR_FMT
                                   "\",\"finalizers\":[\"cluster.cluster.x-k8s.io\"]},\"spec\":{}}",
                                   STR_ARG(f->version), STR_ARG(c->name));
    int status = bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "POST", path, body);
    ASSERT(status == 201);
    apiserver_set_token(c->server, arena_printf(&f->tmp, "token-%u-%u", cluster, ++c->token));
    bridge_run_write_secret(f, cluster, bridge_run_kubeconfig(f, cluster, c->token));
    struct str ready = STR("{\"status\":{\"infrastructureReady\":true,"
                           "\"initialization\":{\"infrastructureProvisioned\":true}}}");
    path = arena_concat(&f->tmp, bridge_run_cluster_path(f, cluster), STR("/status"));
    status = bridge_run_request(f, "capi", MANAGEMENT_CLUSTER, "PATCH", path, ready);
    ASSERT(status == 200);
    bool all_control_plane = rng_chance(&f->rng, 350); /* all of them are its control plane */
    for (uint32_t n = all_control_plane ? 3 : 1 + rng_below(&f->rng, 4); n > 0; n--) {
        bridge_run_new_machine(f, cluster,
                               all_control_plane ? BRIDGE_RUN_CONTROL_PLANE
                                                 : rng_below(&f->rng, 1u << 16));
    }
}

/* ── Cluster API ───────────────────────────────────────────────────────────────────────────── */

static bool is_paused(struct bridge_run *f, uint32_t cluster, const struct jval *machine)
{
    const struct jval *c = bridge_run_cluster(f, cluster);
    return jval_get(jval_at(machine, "metadata.annotations"), KEY_PAUSED) != NULL ||
           jval_bool(jval_at(c, "spec.paused"), false) ||
           jval_get(jval_at(c, "metadata.annotations"), KEY_PAUSED) != NULL;
}

static bool is_deleting(const struct jval *object)
{
    return jval_str(jval_at(object, "metadata.deletionTimestamp")).n > 0;
}

static void set_status(struct bridge_run *f, uint32_t cluster, struct str machine, struct str body)
{
    struct str path =
        arena_concat(&f->tmp, bridge_run_machine_path(f, cluster, machine), STR("/status"));
    int status = bridge_run_request(f, "capi", MANAGEMENT_CLUSTER, "PATCH", path, body);
    ASSERT(status == 200);
}

/* Whether a Node has that name, or had it and was deleted by hand: then it is still its Machine's.
 */
static bool name_is_taken(struct bridge_run *f, uint32_t cluster, struct str name)
{
    struct bridge_run_names all = bridge_run_machines(f, cluster);
    bool taken = bridge_run_node(f, cluster, name) != NULL;
    for (uint32_t i = 0; i < all.n && !taken; i++) {
        const struct jval *machine = bridge_run_machine(f, cluster, all.items[i]);
        taken = str_eq(jval_str(jval_at(machine, "status.nodeRef.name")), name);
    }
    return taken;
}

/* The machine has booted: its Node is there, and the Machine knows. The names of Nodes come again,
 * as those of hosts do. */
static void capi_add_node(struct bridge_run *f, uint32_t cluster, struct str machine)
{
    const struct bridge_run_cluster *c = &f->clusters[cluster];
    struct str name = STR("n0");
    for (uint32_t i = 1; name_is_taken(f, cluster, name); i++) {
        name = arena_printf(&f->tmp, "n%u", i);
    }
    struct str body = arena_printf(
        &f->tmp,
        "{\"metadata\":{\"name\":\"" STR_FMT "\",\"labels\":{%s},\"annotations\":{"
        "\"cluster.x-k8s.io/machine\":\"" STR_FMT "\","
        "\"cluster.x-k8s.io/cluster-namespace\":\"" STR_FMT "\"}}}",
        STR_ARG(name),
        rng_chance(&f->rng, 800) ? "\"cloud.sap/maintenance-state\":\"operational\"" : "",
        STR_ARG(machine), STR_ARG(c->namespace));
    int status = bridge_run_request(f, "capi", cluster, "POST", STR("/api/v1/nodes"), body);
    ASSERT(status == 201);
    set_status(f, cluster, machine,
               arena_printf(&f->tmp, "{\"status\":{\"nodeRef\":{\"name\":\"" STR_FMT "\"}}}",
                            STR_ARG(name)));
}

static bool has_pre_drain_hook(const struct jval *machine)
{
    JVAL_EACH (jval_at(machine, "metadata.annotations"), annotation) {
        if (str_starts(jval_key(annotation), PRE_DRAIN)) {
            return true;
        }
    }
    return false;
}

static void capi_set_wait_time(struct bridge_run *f, uint32_t cluster, struct str name,
                               const struct jval *machine)
{
    if (!f->sets_wait_time ||
        jval_at(machine, "status.deletion.waitForPreDrainHookStartTime") != NULL) {
        return;
    }
    char text[TIMESTAMP_TEXT_MAX];
    struct str now = timestamp_print_seconds(loop_wall(virtual_loop_root(f->vloop)), text);
    set_status(f, cluster, name,
               arena_printf(&f->tmp,
                            "{\"status\":{\"deletion\":{\"waitForPreDrainHookStartTime\":\"" STR_FMT
                            "\"}}}",
                            STR_ARG(now)));
}

static void capi_delete(struct bridge_run *f, uint32_t cluster, struct str name,
                        const struct jval *machine)
{
    const struct jval *c = bridge_run_cluster(f, cluster);
    bool deleting = c == NULL || is_deleting(c);
    struct str node = jval_str(jval_at(machine, "status.nodeRef.name"));
    if (has_pre_drain_hook(machine) && !deleting && node.n > 0) {
        capi_set_wait_time(f, cluster, name, machine);
        return;
    }
    /* Now and then it does not reach the Node in time, and leaves it. */
    if (node.n > 0 && !deleting && bridge_run_node(f, cluster, node) != NULL &&
        !rng_chance(&f->rng, 80)) {
        int status = bridge_run_request(f, "capi", cluster, "DELETE", bridge_run_node_path(f, node),
                                        STR(""));
        ASSERT(status == 200);
        bridge_run_schedule(f, FOLLOWUP_MACHINE, cluster, name, random_time(f, SECONDS(2)));
        return;
    }
    bridge_metal3_on_machine_gone(f, cluster, name);
    int status = bridge_run_request(f, "capi", MANAGEMENT_CLUSTER, "PATCH",
                                    bridge_run_machine_path(f, cluster, name),
                                    STR("{\"metadata\":{\"finalizers\":null}}"));
    ASSERT(status == 200);
}

static void capi_reconcile_machine(struct bridge_run *f, uint32_t cluster, struct str name)
{
    const struct jval *machine = bridge_run_machine(f, cluster, name);
    const struct jval *c = bridge_run_cluster(f, cluster);
    if (machine == NULL || is_paused(f, cluster, machine)) {
        return;
    }
    if (is_deleting(machine)) {
        capi_delete(f, cluster, name, machine);
    } else if (jval_at(machine, "status.nodeRef.name") == NULL && c != NULL && !is_deleting(c)) {
        capi_add_node(f, cluster, name);
    }
    machine = bridge_run_machine(f, cluster, name);
    bool approved = str_eq(jval_str(jval_get(jval_at(machine, "metadata.labels"), KEY_MAINTENANCE)),
                           KEY_APPROVED);
    /* Members of a control plane wait for each other. */
    bool keeps_maintenance = f->keeps_maintenance && jval_get(jval_at(machine, "metadata.labels"),
                                                              KEY_CONTROL_PLANE) == NULL;
    if (approved && f->calm && !keeps_maintenance) {
        bridge_run_schedule(f, FOLLOWUP_WITHDRAW, cluster, name, random_time(f, SECONDS(20)));
    }
}

/* The last Machine is gone, and with it the cluster. */
static void capi_remove_cluster(struct bridge_run *f, uint32_t cluster)
{
    struct bridge_run_cluster *c = &f->clusters[cluster];
    struct bridge_run_names nodes = bridge_run_nodes(f, cluster);
    for (uint32_t i = 0; i < nodes.n; i++) {
        (void)bridge_run_request(f, "capi", cluster, "DELETE",
                                 bridge_run_node_path(f, nodes.items[i]), STR(""));
    }
    apiserver_restart(c->server);
    apiserver_set_token(c->server, arena_printf(&f->tmp, "token-%u-%u", cluster, ++c->token));
    struct str secret =
        arena_printf(&f->tmp, "/api/v1/namespaces/" STR_FMT "/secrets/" STR_FMT "-kubeconfig",
                     STR_ARG(c->namespace), STR_ARG(c->name));
    (void)bridge_run_request(f, "capi", MANAGEMENT_CLUSTER, "DELETE", secret,
                             STR("")); /* it may be gone */
    int status = bridge_run_request(f, "capi", MANAGEMENT_CLUSTER, "PATCH",
                                    bridge_run_cluster_path(f, cluster),
                                    STR("{\"metadata\":{\"finalizers\":null}}"));
    ASSERT(status == 200);
}

static void capi_reconcile_cluster(struct bridge_run *f, uint32_t cluster)
{
    const struct jval *c = bridge_run_cluster(f, cluster);
    struct bridge_run_names names = bridge_run_machines(f, cluster);
    for (uint32_t i = 0; i < names.n; i++) {
        bridge_run_schedule(f, FOLLOWUP_MACHINE, cluster, names.items[i],
                            random_time(f, SECONDS(4)));
    }
    if (c == NULL || !is_deleting(c) || is_paused(f, cluster, NULL)) {
        return;
    }
    for (uint32_t i = 0; i < names.n; i++) {
        if (!is_deleting(bridge_run_machine(f, cluster, names.items[i]))) {
            (void)bridge_run_request(f, "capi", MANAGEMENT_CLUSTER, "DELETE",
                                     bridge_run_machine_path(f, cluster, names.items[i]), STR(""));
        }
    }
    if (names.n == 0) {
        capi_remove_cluster(f, cluster);
    }
}

/* ── engines ───────────────────────────────────────────────────────────────────────────────── */

struct engine_keys {
    struct str requested;
    struct str request;
    struct str approval;
    struct str approved_for;
};

static bool node_has(const struct jval *node, struct str label)
{
    return str_eq(jval_str(jval_get(jval_at(node, "metadata.labels"), label)), KEYS_TRUE);
}

/* Approves what is asked for, sooner or later; takes back what is not, or forgets it. */
static void engine_approve(struct bridge_run *f, uint32_t cluster, struct str name,
                           const struct engine_keys *keys)
{
    const struct jval *node = bridge_run_node(f, cluster, name);
    const struct jval *annotations = jval_at(node, "metadata.annotations");
    struct str request = jval_str(jval_get(annotations, keys->request));
    struct str approved_for = jval_str(jval_get(annotations, keys->approved_for));
    bool requested = node_has(node, keys->requested);
    bool approved = node_has(node, keys->approval);
    bool mismatch = approved_for.p != NULL && !str_eq(approved_for, request);
    struct str body = STR_NONE;
    if (requested && (!approved || (mismatch && f->calm))) {
        if (!f->calm && rng_chance(&f->rng, 250)) {
            bridge_run_schedule(f, FOLLOWUP_ENGINE, cluster, name, random_time(f, SECONDS(60)));
            return;
        }
        bool is_wrong = !f->calm && rng_chance(&f->rng, 100);
        struct str approved_for_json =
            !f->clusters[cluster].approved_for
                ? STR("")
                : arena_printf(&f->tmp, ",\"annotations\":{\"" STR_FMT "\":\"" STR_FMT "%s\"}",
                               STR_ARG(keys->approved_for), STR_ARG(request), is_wrong ? "0" : "");
        body = arena_printf(&f->tmp,
                            "{\"metadata\":{\"labels\":{\"" STR_FMT "\":\"true\"}" STR_FMT "}}",
                            STR_ARG(keys->approval), STR_ARG(approved_for_json));
    } else if (!requested && (approved || approved_for.p != NULL) && rng_chance(&f->rng, 400)) {
        body = arena_printf(&f->tmp,
                            "{\"metadata\":{\"labels\":{\"" STR_FMT "\":null},"
                            "\"annotations\":{\"" STR_FMT "\":null}}}",
                            STR_ARG(keys->approval), STR_ARG(keys->approved_for));
    }
    if (body.n > 0) {
        int status =
            bridge_run_request(f, "engine", cluster, "PATCH", bridge_run_node_path(f, name), body);
        ASSERT(status == 200);
    }
}

static void engine_reconcile(struct bridge_run *f, uint32_t cluster, struct str name)
{
    static const struct engine_keys keys[] = {
        { STR_INIT(KEYS_LEGACY "machine-deleted"), STR_INIT(KEYS_OWN "deletion-request"),
          STR_INIT(KEYS_LEGACY "approve-deletion"), STR_INIT(KEYS_OWN "deletion-approved-for") },
        { STR_INIT(KEYS_LEGACY "machine-maintenance"), STR_INIT(KEYS_OWN "maintenance-request"),
          STR_INIT(KEYS_LEGACY "approve-maintenance"),
          STR_INIT(KEYS_OWN "maintenance-approved-for") },
    };
    const struct jval *node = bridge_run_node(f, cluster, name);
    const struct jval *labels = jval_at(node, "metadata.labels");
    if (node == NULL || jval_get(labels, KEY_STATE) == NULL) {
        return;
    }
    bool busy = false;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        engine_approve(f, cluster, name, &keys[i]);
        busy = busy || node_has(bridge_run_node(f, cluster, name), keys[i].requested);
    }
    struct str state = busy ? STR("in-maintenance") : KEY_OPERATIONAL;
    node = bridge_run_node(f, cluster, name);
    if (!str_eq(jval_str(jval_get(jval_at(node, "metadata.labels"), KEY_STATE)), state)) {
        int status = bridge_run_request(
            f, "engine", cluster, "PATCH", bridge_run_node_path(f, name),
            arena_printf(&f->tmp,
                         "{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-state\":\"" STR_FMT
                         "\"}}}",
                         STR_ARG(state)));
        ASSERT(status == 200);
    }
    bridge_metal3_drain_node(f, cluster, name);
}

/* ── what has been begun ends ──────────────────────────────────────────────────────────────── */

static void machine_patch(struct bridge_run *f, const struct followup *e, struct str body)
{
    /* It may be gone. */
    (void)bridge_run_request(f, "people", MANAGEMENT_CLUSTER, "PATCH",
                             bridge_run_machine_path(f, e->cluster, str_from(e->name)), body);
}

static void followup_do(struct bridge_run *f, const struct followup *e)
{
    struct str name = str_from(e->name);
    switch (e->kind) {
    case FOLLOWUP_MACHINE:
        capi_reconcile_machine(f, e->cluster, name);
        break;
    case FOLLOWUP_CLUSTER:
        capi_reconcile_cluster(f, e->cluster);
        break;
    case FOLLOWUP_ENGINE:
        engine_reconcile(f, e->cluster, name);
        break;
    case FOLLOWUP_WITHDRAW:
        machine_patch(f, e,
                      STR("{\"metadata\":{\"labels\":{\"" KEYS_LEGACY "maintenance\":null}}}"));
        break;
    case FOLLOWUP_MACHINE_UNPAUSE:
        machine_patch(f, e,
                      STR("{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/paused\":null}}}"));
        break;
    case FOLLOWUP_CLUSTER_UNPAUSE:
        /* It may be gone. */
        (void)bridge_run_request(
            f, "people", MANAGEMENT_CLUSTER, "PATCH", bridge_run_cluster_path(f, e->cluster),
            STR("{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/paused\":null}},"
                "\"spec\":{\"paused\":null}}"));
        break;
    case FOLLOWUP_SECRET_RESTORE:
        if (bridge_run_cluster(f, e->cluster) != NULL) {
            bridge_run_write_secret(
                f, e->cluster, bridge_run_kubeconfig(f, e->cluster, f->clusters[e->cluster].token));
        }
        check_bridge_on_wrong_secret(&f->check, e->cluster, false, virtual_loop_now(f->vloop));
        break;
    default:
        bridge_metal3_followup(f, e);
    }
}

void bridge_run_followups_due(struct bridge_run *f, usec_t now)
{
    struct list due;
    list_init(&due);
    LIST_EACH (&f->followups, link) {
        if (CONTAINER_OF(link, struct followup, link)->at <= now) {
            list_del(link);
            list_add(&due, link);
        }
    }
    LIST_EACH (&due, link) {
        struct followup *e = CONTAINER_OF(link, struct followup, link);
        list_del(link);
        followup_do(f, e);
        alloc_free(e);
    }
}
