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

int fleet_ask(struct fleet *f, const char *who, uint32_t where, const char *method, struct str path,
              struct str body)
{
    struct apiserver_request request = {
        .method = str_from(method),
        .path = path,
        .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
        .user_agent = str_from(who),
        .body = body,
    };
    struct apiserver_reply reply;
    struct apiserver *server = where == TREATY_HOME ? f->home : f->clusters[where].server;
    apiserver_handle(server, &request, &f->tmp, &reply);
    return reply.status;
}

struct str fleet_cluster_path(struct fleet *f, uint32_t cluster)
{
    const struct fleet_cluster *c = &f->clusters[cluster];
    return arena_printf(
        &f->tmp, "/apis/cluster.x-k8s.io/" STR_FMT "/namespaces/" STR_FMT "/clusters/" STR_FMT,
        STR_ARG(f->version), STR_ARG(c->space), STR_ARG(c->name));
}

struct str fleet_machine_path(struct fleet *f, uint32_t cluster, struct str name)
{
    return arena_printf(
        &f->tmp, "/apis/cluster.x-k8s.io/" STR_FMT "/namespaces/" STR_FMT "/machines/" STR_FMT,
        STR_ARG(f->version), STR_ARG(f->clusters[cluster].space), STR_ARG(name));
}

/* Of the namespace that the cluster is in; "" = the collection. */
struct str fleet_rule_path(struct fleet *f, uint32_t cluster, const char *name)
{
    return arena_printf(
        &f->tmp, "/apis/cluster.x-k8s.io/" STR_FMT "/namespaces/" STR_FMT "/machinedrainrules%s%s",
        STR_ARG(f->version), STR_ARG(f->clusters[cluster].space), name[0] != 0 ? "/" : "", name);
}

struct str fleet_node_path(struct fleet *f, struct str name)
{
    return arena_printf(&f->tmp, "/api/v1/nodes/" STR_FMT, STR_ARG(name));
}

struct str fleet_host_path(struct fleet *f, uint32_t cluster, struct str name)
{
    return arena_printf(&f->tmp,
                        "/apis/metal3.io/v1alpha1/namespaces/" STR_FMT "/baremetalhosts%s" STR_FMT,
                        STR_ARG(f->clusters[cluster].space), name.n > 0 ? "/" : "", STR_ARG(name));
}

const struct jval *fleet_machine(struct fleet *f, uint32_t cluster, struct str name)
{
    return apiserver_find(f->home, TREATY_GROUP, STR("machines"), f->clusters[cluster].space, name);
}

const struct jval *fleet_node(struct fleet *f, uint32_t cluster, struct str name)
{
    return apiserver_find(f->clusters[cluster].server, STR(""), STR("nodes"), STR(""), name);
}

const struct jval *fleet_cluster(struct fleet *f, uint32_t cluster)
{
    const struct fleet_cluster *c = &f->clusters[cluster];
    return apiserver_find(f->home, TREATY_GROUP, STR("clusters"), c->space, c->name);
}

const struct jval *fleet_host(struct fleet *f, uint32_t cluster, struct str name)
{
    return apiserver_find(f->home, TREATY_METAL3, STR("baremetalhosts"), f->clusters[cluster].space,
                          name);
}

static void names_visit(void *ctx, const struct jval *object)
{
    struct fleet_names *names = ctx;
    if (names->cluster.n > 0 &&
        !str_eq(jval_str(jval_at(object, "spec.clusterName")), names->cluster)) {
        return;
    }
    ARENA_GROW(names->out, names->items, names->n, names->cap);
    names->items[names->n++] = arena_str(names->out, jval_str(jval_at(object, "metadata.name")));
}

struct fleet_names fleet_machines(struct fleet *f, uint32_t cluster)
{
    const struct fleet_cluster *c = &f->clusters[cluster];
    struct fleet_names names = { .out = &f->tmp, .cluster = c->name };
    apiserver_each(f->home, TREATY_GROUP, STR("machines"), c->space, names_visit, &names);
    return names;
}

struct fleet_names fleet_nodes(struct fleet *f, uint32_t cluster)
{
    struct fleet_names names = { .out = &f->tmp };
    apiserver_each(f->clusters[cluster].server, STR(""), STR("nodes"), STR(""), names_visit,
                   &names);
    return names;
}

struct fleet_names fleet_hosts(struct fleet *f, uint32_t cluster)
{
    struct fleet_names names = { .out = &f->tmp };
    apiserver_each(f->home, TREATY_METAL3, STR("baremetalhosts"), f->clusters[cluster].space,
                   names_visit, &names);
    return names;
}

/* ── errands ───────────────────────────────────────────────────────────────────────────────── */

void fleet_errand(struct fleet *f, enum errand_kind kind, uint32_t cluster, struct str name,
                  usec_t at)
{
    LIST_EACH (&f->errands, link) {
        const struct errand *e = CONTAINER_OF(link, struct errand, link);
        if (e->kind == kind && e->cluster == cluster && str_eq(str_from(e->name), name)) {
            return;
        }
    }
    struct errand *e = ALLOC_NEW(struct errand);
    e->at = at;
    e->kind = kind;
    e->cluster = cluster;
    (void)snprintf(e->name, sizeof(e->name), STR_FMT, STR_ARG(name));
    list_add(&f->errands, &e->link);
}

usec_t fleet_next_errand(const struct fleet *f)
{
    usec_t next = USEC_NEVER;
    LIST_EACH (&f->errands, link) {
        next = MIN(next, CONTAINER_OF(link, struct errand, link)->at);
    }
    return next;
}

static usec_t soon(struct fleet *f, usec_t longest)
{
    return virtual_loop_now(f->vloop) + rng_usec(&f->rng, MSECONDS(10), longest);
}

void fleet_note(struct fleet *f, uint32_t where, const struct apiserver_commit *commit)
{
    bool engine = str_eq(commit->user_agent, STR("engine"));
    if (where != TREATY_HOME) {
        if (str_eq(commit->plural, STR("nodes")) && commit->now != NULL && !engine) {
            usec_t longest = f->calm || rng_chance(&f->rng, 500) ? SECONDS(3) : SECONDS(60);
            fleet_errand(f, ERRAND_ENGINE, where, commit->name, soon(f, longest));
        }
        return;
    }
    fleet_host_note(f, commit);
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    bool machine = str_eq(commit->plural, STR("machines"));
    struct str name = machine ? jval_str(jval_at(object, "spec.clusterName")) : commit->name;
    for (uint32_t i = 0; i < f->plan->clusters; i++) {
        const struct fleet_cluster *c = &f->clusters[i];
        if (!str_eq(c->space, commit->namespace) || !str_eq(c->name, name)) {
            continue;
        }
        if (machine && commit->now != NULL) {
            fleet_errand(f, ERRAND_MACHINE, i, commit->name, soon(f, SECONDS(4)));
        } else if (machine || str_eq(commit->plural, STR("clusters"))) {
            fleet_errand(f, ERRAND_CLUSTER, i, STR(""), soon(f, SECONDS(4)));
        }
    }
}

/* ── Clusters and Machines ─────────────────────────────────────────────────────────────────── */

struct str fleet_kubeconfig(struct fleet *f, uint32_t cluster, uint32_t token)
{
    return sim_clusters_kubeconfig(arena_printf(&f->tmp, PILOT_ADDRESS, cluster),
                                   arena_printf(&f->tmp, "token-%u-%u", cluster, token), &f->tmp);
}

void fleet_write_secret(struct fleet *f, uint32_t cluster, struct str kubeconfig)
{
    const struct fleet_cluster *c = &f->clusters[cluster];
    struct str value = base64_encode(&f->tmp, kubeconfig);
    struct str path =
        arena_printf(&f->tmp, "/api/v1/namespaces/" STR_FMT "/secrets", STR_ARG(c->space));
    struct str one =
        arena_printf(&f->tmp, STR_FMT "/" STR_FMT "-kubeconfig", STR_ARG(path), STR_ARG(c->name));
    struct str patch =
        arena_printf(&f->tmp, "{\"data\":{\"value\":\"" STR_FMT "\"}}", STR_ARG(value));
    if (fleet_ask(f, "capi", TREATY_HOME, "PATCH", one, patch) == 200) {
        return;
    }
    struct str body = arena_printf(
        &f->tmp,
        "{\"metadata\":{\"name\":\"" STR_FMT "-kubeconfig\"},"
        "\"type\":\"%s\",\"data\":{\"value\":\"" STR_FMT "\"}}",
        STR_ARG(c->name), cluster % 2 == 0 ? "cluster.x-k8s.io/secret" : "Opaque", STR_ARG(value));
    int status = fleet_ask(f, "capi", TREATY_HOME, "POST", path, body);
    ASSERT(status == 201);
}

void fleet_new_machine(struct fleet *f, uint32_t cluster, uint32_t what)
{
    struct fleet_cluster *c = &f->clusters[cluster];
    uint32_t number = c->machines++;
    struct str hold =
        what / 64 % 6 == 0
            ? arena_printf(&f->tmp, "\"drydock.dev/deletion-hold-seconds\":\"%u\"", 20 + what % 100)
            : STR("");
    struct str name = arena_printf(&f->tmp, STR_FMT "-m%u", STR_ARG(c->name), number);
    struct str spec = fleet_host_spec(f, name, number);
    struct str skip =
        what / 512 % 6 == 0 ? STR("\"cluster.x-k8s.io/skip-remediation\":\"mine\"") : STR("");
    struct str body = arena_printf(
        &f->tmp,
        "{\"apiVersion\":\"cluster.x-k8s.io/" STR_FMT "\",\"kind\":\"Machine\","
        "\"metadata\":{\"name\":\"" STR_FMT "\",\"finalizers\":[\"machine.cluster.x-k8s.io\"],"
        "\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"" STR_FMT "\"%s%s},"
        "\"annotations\":{" STR_FMT "%s" STR_FMT "}},"
        "\"spec\":{\"clusterName\":\"" STR_FMT "\"," STR_FMT "}}",
        STR_ARG(f->version), STR_ARG(name), STR_ARG(c->name),
        what % 5 == 0 ? "" : ",\"" KEYS_LEGACY "enabled\":\"true\"",
        what / 8 % 3 == 0 ? ",\"cluster.x-k8s.io/control-plane\":\"\"" : "", STR_ARG(hold),
        hold.n > 0 && skip.n > 0 ? "," : "", STR_ARG(skip), STR_ARG(c->name), STR_ARG(spec));
    struct str path =
        arena_printf(&f->tmp, "/apis/cluster.x-k8s.io/" STR_FMT "/namespaces/" STR_FMT "/machines",
                     STR_ARG(f->version), STR_ARG(c->space));
    int status = fleet_ask(f, "people", TREATY_HOME, "POST", path, body);
    ASSERT(status == 201);
}

void fleet_found(struct fleet *f, uint32_t cluster)
{
    struct fleet_cluster *c = &f->clusters[cluster];
    struct str path =
        arena_printf(&f->tmp, "/apis/cluster.x-k8s.io/" STR_FMT "/namespaces/" STR_FMT "/clusters",
                     STR_ARG(f->version), STR_ARG(c->space));
    struct str body = arena_printf(&f->tmp,
                                   "{\"apiVersion\":\"cluster.x-k8s.io/" STR_FMT
                                   "\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"" STR_FMT
                                   "\",\"finalizers\":[\"cluster.cluster.x-k8s.io\"]},\"spec\":{}}",
                                   STR_ARG(f->version), STR_ARG(c->name));
    int status = fleet_ask(f, "people", TREATY_HOME, "POST", path, body);
    ASSERT(status == 201);
    apiserver_set_token(c->server, arena_printf(&f->tmp, "token-%u-%u", cluster, ++c->token));
    fleet_write_secret(f, cluster, fleet_kubeconfig(f, cluster, c->token));
    struct str ready = STR("{\"status\":{\"infrastructureReady\":true,"
                           "\"initialization\":{\"infrastructureProvisioned\":true}}}");
    path = arena_concat(&f->tmp, fleet_cluster_path(f, cluster), STR("/status"));
    status = fleet_ask(f, "capi", TREATY_HOME, "PATCH", path, ready);
    ASSERT(status == 200);
    bool plane = rng_chance(&f->rng, 350); /* all of them are its control plane */
    for (uint32_t n = plane ? 3 : 1 + rng_below(&f->rng, 4); n > 0; n--) {
        fleet_new_machine(f, cluster, plane ? FLEET_MEMBER : rng_below(&f->rng, 1u << 16));
    }
}

/* ── Cluster API ───────────────────────────────────────────────────────────────────────────── */

static bool is_paused(struct fleet *f, uint32_t cluster, const struct jval *machine)
{
    const struct jval *c = fleet_cluster(f, cluster);
    return jval_get(jval_at(machine, "metadata.annotations"), KEY_PAUSED) != NULL ||
           jval_bool(jval_at(c, "spec.paused"), false) ||
           jval_get(jval_at(c, "metadata.annotations"), KEY_PAUSED) != NULL;
}

static bool is_deleting(const struct jval *object)
{
    return jval_str(jval_at(object, "metadata.deletionTimestamp")).n > 0;
}

static void set_status(struct fleet *f, uint32_t cluster, struct str machine, struct str body)
{
    struct str path =
        arena_concat(&f->tmp, fleet_machine_path(f, cluster, machine), STR("/status"));
    int status = fleet_ask(f, "capi", TREATY_HOME, "PATCH", path, body);
    ASSERT(status == 200);
}

/* Whether a Node has that name, or had it and was deleted by hand: then it is still its Machine's.
 */
static bool name_is_taken(struct fleet *f, uint32_t cluster, struct str name)
{
    struct fleet_names all = fleet_machines(f, cluster);
    bool taken = fleet_node(f, cluster, name) != NULL;
    for (uint32_t i = 0; i < all.n && !taken; i++) {
        const struct jval *machine = fleet_machine(f, cluster, all.items[i]);
        taken = str_eq(jval_str(jval_at(machine, "status.nodeRef.name")), name);
    }
    return taken;
}

/* The machine has booted: its Node is there, and the Machine knows. The names of Nodes come again,
 * as those of hosts do. */
static void capi_join(struct fleet *f, uint32_t cluster, struct str machine)
{
    const struct fleet_cluster *c = &f->clusters[cluster];
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
        STR_ARG(machine), STR_ARG(c->space));
    int status = fleet_ask(f, "capi", cluster, "POST", STR("/api/v1/nodes"), body);
    ASSERT(status == 201);
    set_status(f, cluster, machine,
               arena_printf(&f->tmp, "{\"status\":{\"nodeRef\":{\"name\":\"" STR_FMT "\"}}}",
                            STR_ARG(name)));
}

static bool is_held(const struct jval *machine)
{
    JVAL_EACH (jval_at(machine, "metadata.annotations"), note) {
        if (str_starts(jval_key(note), PRE_DRAIN)) {
            return true;
        }
    }
    return false;
}

static void capi_wait(struct fleet *f, uint32_t cluster, struct str name,
                      const struct jval *machine)
{
    if (!f->tells || jval_at(machine, "status.deletion.waitForPreDrainHookStartTime") != NULL) {
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

static void capi_delete(struct fleet *f, uint32_t cluster, struct str name,
                        const struct jval *machine)
{
    const struct jval *c = fleet_cluster(f, cluster);
    bool going = c == NULL || is_deleting(c);
    struct str node = jval_str(jval_at(machine, "status.nodeRef.name"));
    if (is_held(machine) && !going && node.n > 0) {
        capi_wait(f, cluster, name, machine);
        return;
    }
    /* Now and then it does not reach the Node in time, and leaves it. */
    if (node.n > 0 && !going && fleet_node(f, cluster, node) != NULL && !rng_chance(&f->rng, 80)) {
        int status = fleet_ask(f, "capi", cluster, "DELETE", fleet_node_path(f, node), STR(""));
        ASSERT(status == 200);
        fleet_errand(f, ERRAND_MACHINE, cluster, name, soon(f, SECONDS(2)));
        return;
    }
    fleet_host_part(f, cluster, name);
    int status = fleet_ask(f, "capi", TREATY_HOME, "PATCH", fleet_machine_path(f, cluster, name),
                           STR("{\"metadata\":{\"finalizers\":null}}"));
    ASSERT(status == 200);
}

static void capi_machine(struct fleet *f, uint32_t cluster, struct str name)
{
    const struct jval *machine = fleet_machine(f, cluster, name);
    const struct jval *c = fleet_cluster(f, cluster);
    if (machine == NULL || is_paused(f, cluster, machine)) {
        return;
    }
    if (is_deleting(machine)) {
        capi_delete(f, cluster, name, machine);
    } else if (jval_at(machine, "status.nodeRef.name") == NULL && c != NULL && !is_deleting(c)) {
        capi_join(f, cluster, name);
    }
    machine = fleet_machine(f, cluster, name);
    bool approved = str_eq(jval_str(jval_get(jval_at(machine, "metadata.labels"), KEY_MAINTENANCE)),
                           KEY_APPROVED);
    /* Members of a control plane wait for each other. */
    bool stays =
        f->stays && jval_get(jval_at(machine, "metadata.labels"), KEY_CONTROL_PLANE) == NULL;
    if (approved && f->calm && !stays) {
        fleet_errand(f, ERRAND_WITHDRAW, cluster, name, soon(f, SECONDS(20)));
    }
}

/* The last Machine is gone, and with it the cluster. */
static void capi_raze(struct fleet *f, uint32_t cluster)
{
    struct fleet_cluster *c = &f->clusters[cluster];
    struct fleet_names nodes = fleet_nodes(f, cluster);
    for (uint32_t i = 0; i < nodes.n; i++) {
        (void)fleet_ask(f, "capi", cluster, "DELETE", fleet_node_path(f, nodes.items[i]), STR(""));
    }
    apiserver_restart(c->server);
    apiserver_set_token(c->server, arena_printf(&f->tmp, "token-%u-%u", cluster, ++c->token));
    struct str secret =
        arena_printf(&f->tmp, "/api/v1/namespaces/" STR_FMT "/secrets/" STR_FMT "-kubeconfig",
                     STR_ARG(c->space), STR_ARG(c->name));
    (void)fleet_ask(f, "capi", TREATY_HOME, "DELETE", secret, STR("")); /* it may be gone */
    int status = fleet_ask(f, "capi", TREATY_HOME, "PATCH", fleet_cluster_path(f, cluster),
                           STR("{\"metadata\":{\"finalizers\":null}}"));
    ASSERT(status == 200);
}

static void capi_cluster(struct fleet *f, uint32_t cluster)
{
    const struct jval *c = fleet_cluster(f, cluster);
    struct fleet_names names = fleet_machines(f, cluster);
    for (uint32_t i = 0; i < names.n; i++) {
        fleet_errand(f, ERRAND_MACHINE, cluster, names.items[i], soon(f, SECONDS(4)));
    }
    if (c == NULL || !is_deleting(c) || is_paused(f, cluster, NULL)) {
        return;
    }
    for (uint32_t i = 0; i < names.n; i++) {
        if (!is_deleting(fleet_machine(f, cluster, names.items[i]))) {
            (void)fleet_ask(f, "capi", TREATY_HOME, "DELETE",
                            fleet_machine_path(f, cluster, names.items[i]), STR(""));
        }
    }
    if (names.n == 0) {
        capi_raze(f, cluster);
    }
}

/* ── engines ───────────────────────────────────────────────────────────────────────────────── */

struct engine_keys {
    struct str asked;
    struct str request;
    struct str approval;
    struct str answers;
};

static bool node_has(const struct jval *node, struct str label)
{
    return str_eq(jval_str(jval_get(jval_at(node, "metadata.labels"), label)), KEYS_TRUE);
}

/* Approves what is asked for, sooner or later; takes back what is not, or forgets it. */
static void engine_answer(struct fleet *f, uint32_t cluster, struct str name,
                          const struct engine_keys *keys)
{
    const struct jval *node = fleet_node(f, cluster, name);
    const struct jval *notes = jval_at(node, "metadata.annotations");
    struct str request = jval_str(jval_get(notes, keys->request));
    struct str answers = jval_str(jval_get(notes, keys->answers));
    bool asked = node_has(node, keys->asked);
    bool approved = node_has(node, keys->approval);
    bool wrong = answers.p != NULL && !str_eq(answers, request);
    struct str body = STR_NONE;
    if (asked && (!approved || (wrong && f->calm))) {
        if (!f->calm && rng_chance(&f->rng, 250)) {
            fleet_errand(f, ERRAND_ENGINE, cluster, name, soon(f, SECONDS(60)));
            return;
        }
        bool lies = !f->calm && rng_chance(&f->rng, 100);
        struct str answer =
            !f->clusters[cluster].answers
                ? STR("")
                : arena_printf(&f->tmp, ",\"annotations\":{\"" STR_FMT "\":\"" STR_FMT "%s\"}",
                               STR_ARG(keys->answers), STR_ARG(request), lies ? "0" : "");
        body = arena_printf(&f->tmp,
                            "{\"metadata\":{\"labels\":{\"" STR_FMT "\":\"true\"}" STR_FMT "}}",
                            STR_ARG(keys->approval), STR_ARG(answer));
    } else if (!asked && (approved || answers.p != NULL) && rng_chance(&f->rng, 400)) {
        body = arena_printf(&f->tmp,
                            "{\"metadata\":{\"labels\":{\"" STR_FMT "\":null},"
                            "\"annotations\":{\"" STR_FMT "\":null}}}",
                            STR_ARG(keys->approval), STR_ARG(keys->answers));
    }
    if (body.n > 0) {
        int status = fleet_ask(f, "engine", cluster, "PATCH", fleet_node_path(f, name), body);
        ASSERT(status == 200);
    }
}

static void engine_look(struct fleet *f, uint32_t cluster, struct str name)
{
    static const struct engine_keys keys[] = {
        { STR_INIT(KEYS_LEGACY "machine-deleted"), STR_INIT(KEYS_OWN "deletion-request"),
          STR_INIT(KEYS_LEGACY "approve-deletion"), STR_INIT(KEYS_OWN "deletion-approved-for") },
        { STR_INIT(KEYS_LEGACY "machine-maintenance"), STR_INIT(KEYS_OWN "maintenance-request"),
          STR_INIT(KEYS_LEGACY "approve-maintenance"),
          STR_INIT(KEYS_OWN "maintenance-approved-for") },
    };
    const struct jval *node = fleet_node(f, cluster, name);
    const struct jval *labels = jval_at(node, "metadata.labels");
    if (node == NULL || jval_get(labels, KEY_STATE) == NULL) {
        return;
    }
    bool busy = false;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        engine_answer(f, cluster, name, &keys[i]);
        busy = busy || node_has(fleet_node(f, cluster, name), keys[i].asked);
    }
    struct str state = busy ? STR("in-maintenance") : KEY_OPERATIONAL;
    node = fleet_node(f, cluster, name);
    if (!str_eq(jval_str(jval_get(jval_at(node, "metadata.labels"), KEY_STATE)), state)) {
        int status = fleet_ask(
            f, "engine", cluster, "PATCH", fleet_node_path(f, name),
            arena_printf(&f->tmp,
                         "{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-state\":\"" STR_FMT
                         "\"}}}",
                         STR_ARG(state)));
        ASSERT(status == 200);
    }
    fleet_host_drain(f, cluster, name);
}

/* ── what has been begun ends ──────────────────────────────────────────────────────────────── */

static void machine_patch(struct fleet *f, const struct errand *e, struct str body)
{
    /* It may be gone. */
    (void)fleet_ask(f, "people", TREATY_HOME, "PATCH",
                    fleet_machine_path(f, e->cluster, str_from(e->name)), body);
}

static void errand_do(struct fleet *f, const struct errand *e)
{
    struct str name = str_from(e->name);
    switch (e->kind) {
    case ERRAND_MACHINE:
        capi_machine(f, e->cluster, name);
        break;
    case ERRAND_CLUSTER:
        capi_cluster(f, e->cluster);
        break;
    case ERRAND_ENGINE:
        engine_look(f, e->cluster, name);
        break;
    case ERRAND_WITHDRAW:
        machine_patch(f, e,
                      STR("{\"metadata\":{\"labels\":{\"" KEYS_LEGACY "maintenance\":null}}}"));
        break;
    case ERRAND_UNPAUSE:
        machine_patch(f, e,
                      STR("{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/paused\":null}}}"));
        break;
    case ERRAND_GO_ON:
        /* It may be gone. */
        (void)fleet_ask(f, "people", TREATY_HOME, "PATCH", fleet_cluster_path(f, e->cluster),
                        STR("{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/paused\":null}},"
                            "\"spec\":{\"paused\":null}}"));
        break;
    case ERRAND_SECRET:
        if (fleet_cluster(f, e->cluster) != NULL) {
            fleet_write_secret(f, e->cluster,
                               fleet_kubeconfig(f, e->cluster, f->clusters[e->cluster].token));
        }
        treaty_astray(&f->treaty, e->cluster, false, virtual_loop_now(f->vloop));
        break;
    default:
        fleet_host_errand(f, e);
    }
}

void fleet_do_errands(struct fleet *f, usec_t now)
{
    struct list due;
    list_init(&due);
    LIST_EACH (&f->errands, link) {
        if (CONTAINER_OF(link, struct errand, link)->at <= now) {
            list_del(link);
            list_add(&due, link);
        }
    }
    LIST_EACH (&due, link) {
        struct errand *e = CONTAINER_OF(link, struct errand, link);
        list_del(link);
        errand_do(f, e);
        alloc_free(e);
    }
}
