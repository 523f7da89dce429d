#include "tests/lib/bridge_fixture.h"

#include "base/base64.h"
#include "base/alloc.h"
#include "kinds/keys.h"
#include "tests/check.h"

#define GROUP STR("cluster.x-k8s.io")

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static int bridge_fixture_ask(struct apiserver *server, const char *method, struct str path,
                              struct str body, struct str agent)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct apiserver_reply reply = { 0 };
    bool apply = strcmp(method, "APPLY") == 0;
    const struct apiserver_request request = {
        .method = apply ? STR("PATCH") : str_from(method),
        .path = path,
        .content_type = apply                          ? STR("application/apply-patch+yaml")
                        : strcmp(method, "PATCH") == 0 ? API_MERGE_PATCH
                                                       : API_JSON,
        .user_agent = agent,
        .body = body,
    };
    apiserver_handle(server, &request, &tmp, &reply);
    return reply.status;
}

static void bridge_fixture_must(struct apiserver *server, const char *method, struct str path,
                                const char *body)
{
    int status = bridge_fixture_ask(server, method, path, str_from(body), STR("somebody"));
    if (status != 200 && status != 201) {
        check_fail(__FILE__, __LINE__, "%s " STR_FMT ": %d", method, STR_ARG(path), status);
    }
}

void bridge_fixture_management(struct bridge_fixture *s, const char *method, struct str path,
                               const char *body)
{
    bridge_fixture_must(s->management, method, path, body);
}

void bridge_fixture_workload(struct bridge_fixture *s, const char *cluster, const char *method,
                             struct str path, const char *body)
{
    bridge_fixture_must(bridge_fixture_find_cluster(s, cluster)->server, method, path, body);
}

void bridge_fixture_restrict(struct bridge_fixture *s, const char *name, const char *rules)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct apiserver_reply reply = { 0 };
    bridge_fixture_workload(s, name, "POST", STR("/api/v1/namespaces/default/serviceaccounts"),
                            "{\"metadata\":{\"name\":\"narrow\"}}");
    bridge_fixture_workload(
        s, name, "POST", STR("/apis/rbac.authorization.k8s.io/v1/clusterroles"),
        arena_printf(&tmp, "{\"metadata\":{\"name\":\"narrow\"},\"rules\":[%s]}", rules).p);
    bridge_fixture_workload(
        s, name, "POST", STR("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
        "{\"metadata\":{\"name\":\"narrow\"},\"roleRef\":{\"apiGroup\":"
        "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"narrow\"},"
        "\"subjects\":[{\"kind\":\"ServiceAccount\",\"namespace\":\"default\",\"name\":"
        "\"narrow\"}]}");
    apiserver_handle(bridge_fixture_find_cluster(s, name)->server,
                     &(struct apiserver_request){
                         .method = STR("POST"),
                         .path = STR("/api/v1/namespaces/default/serviceaccounts/narrow/token"),
                         .content_type = API_JSON,
                         .body = STR("{\"spec\":{\"expirationSeconds\":86400}}"),
                     },
                     &tmp, &reply);
    CHECK_EQ(reply.status, 201);
    const struct jval *answer = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(reply.body, 0, &tmp, &answer, &err), 0);
    struct str token = arena_str(&tmp, jval_str(jval_at(answer, "status.token")));
    bridge_fixture_secret(s, name, token.p);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void bridge_fixture_crd(struct bridge_fixture *s, const char *group, const char *version,
                               const char *kind, const char *plural)
{
    bridge_fixture_management(
        s, "POST", STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        arena_printf(&s->memory,
                     "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":"
                     "\"CustomResourceDefinition\",\"metadata\":{\"name\":\"%s.%s\"},\"spec\":{"
                     "\"group\":\"%s\",\"scope\":\"Namespaced\",\"names\":{\"kind\":\"%s\","
                     "\"listKind\":\"%sList\",\"plural\":\"%s\"},\"versions\":[{\"name\":\"%s\","
                     "\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":"
                     "\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}]}}",
                     plural, group, group, kind, kind, plural, version)
            .p);
}

void bridge_fixture_kind(struct bridge_fixture *s, const char *kind, const char *plural)
{
    bridge_fixture_crd(s, "cluster.x-k8s.io", s->version, kind, plural);
}

static void bridge_fixture_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct bridge_fixture *s = ctx;
    bool ours = str_eq(commit->plural, STR("machines")) || str_eq(commit->plural, STR("nodes")) ||
                str_eq(commit->plural, STR("baremetalhosts"));
    s->patches += ours && str_starts(commit->user_agent, STR("drydock")) ? 1 : 0;
}

static void bridge_fixture_log(void *ctx, struct str line)
{
    struct bridge_fixture *s = ctx;
    buf_add(&s->log, line);
}

void bridge_fixture_begin(struct bridge_fixture *s, const char *version)
{
    *s = (struct bridge_fixture){ .version = version };
    s->time = virtual_loop_new(7, SECONDS(1767323045));
    s->loop = virtual_loop_view_new(s->time, 0);
    s->management = apiserver_new(virtual_loop_root(s->time), 7);
    faults_init(&s->faults, 8);
    sim_clusters_init(&s->book);
    s->sink = (struct log){ .write = bridge_fixture_log, .ctx = s, .level = LOG_DEBUG };
    bridge_fixture_kind(s, "Machine", "machines");
    bridge_fixture_kind(s, "Cluster", "clusters");
    bridge_fixture_kind(s, "MachineDrainRule", "machinedrainrules");
    bridge_fixture_crd(s, "metal3.io", "v1alpha1", "BareMetalHost", "baremetalhosts");
    apiserver_on_commit_check(s->management, bridge_fixture_on_commit, s);
}

static void bridge_fixture_on_stopped(void *ctx)
{
    struct bridge_fixture *s = ctx;
    s->stopped = true;
}

void bridge_fixture_bridge(struct bridge_fixture *s, const struct bridge_config *config)
{
    struct bridge_config c = config == NULL ? (struct bridge_config){ 0 } : *config;
    s->dialer = sim_dialer_new(s->loop, &s->book);
    s->api = sim_api_new(s->loop, s->management, &s->faults);
    sim_api_set_user_agent(s->api, STR("drydock"));
    c.identity = c.identity.n > 0 ? c.identity : STR("me");
    c.dialer = s->dialer;
    c.on_stopped = bridge_fixture_on_stopped;
    c.ctx = s;
    c.rules.skew = SECONDS(5);
    s->bridge = bridge_new(s->loop, s->api, &s->sink, s->metrics, &c);
}

void bridge_fixture_crash(struct bridge_fixture *s)
{
    bridge_free(STEAL(s->bridge));
    if (s->api != NULL) {
        CHECK_EQ(sim_dialer_open(s->dialer), 0);
        CHECK_EQ(sim_api_in_flight(s->api), 0);
    }
    sim_dialer_free(STEAL(s->dialer));
    sim_api_free(STEAL(s->api));
}

void bridge_fixture_end(struct bridge_fixture *s)
{
    bridge_fixture_crash(s);
    sim_clusters_done(&s->book);
    for (uint32_t i = 0; i < s->workload_n; i++) {
        faults_done(&s->workloads[i]->faults);
        apiserver_free(s->workloads[i]->server);
        alloc_free(s->workloads[i]);
    }
    faults_done(&s->faults);
    apiserver_free(s->management);
    virtual_loop_view_free(s->loop);
    CHECK_EQ(virtual_loop_armed(s->time), 0);
    virtual_loop_free(s->time);
    buf_done(&s->log);
    arena_done(&s->memory);
}

static bool bridge_fixture_step(struct bridge_fixture *s, usec_t until)
{
    bool more = virtual_loop_step(s->time, until);
    if (s->bridge != NULL) {
        bridge_check(s->bridge);
    }
    return more;
}

void bridge_fixture_run(struct bridge_fixture *s, usec_t span)
{
    usec_t until = virtual_loop_now(s->time) + span;
    while (bridge_fixture_step(s, until)) {
    }
}

bool bridge_fixture_run_until(struct bridge_fixture *s, bool (*is)(struct bridge_fixture *s),
                              usec_t span)
{
    usec_t until = virtual_loop_now(s->time) + span;
    while (!is(s)) {
        if (!bridge_fixture_step(s, until)) {
            return is(s);
        }
    }
    return true;
}

/* ── clusters ──────────────────────────────────────────────────────────────────────────────── */

/* "space/name", or "default" and the name. */
static void bridge_fixture_split(const char *text, struct str *ret_namespace, struct str *ret_name)
{
    if (!str_cut(str_from(text), STR("/"), ret_namespace, ret_name)) {
        *ret_namespace = STR("default");
        *ret_name = str_from(text);
    }
}

static struct str bridge_fixture_address(struct bridge_fixture *s, const char *name)
{
    struct str namespace;
    struct str cluster;
    bridge_fixture_split(name, &namespace, &cluster);
    return arena_printf(&s->memory, "https://" STR_FMT "." STR_FMT, STR_ARG(cluster),
                        STR_ARG(namespace));
}

/* A path below the namespace of a Cluster API kind. */
static struct str bridge_fixture_path(struct bridge_fixture *s, const char *plural,
                                      const char *name, bool one)
{
    struct str namespace;
    struct str rest;
    bridge_fixture_split(name, &namespace, &rest);
    return arena_printf(&s->memory, "/apis/cluster.x-k8s.io/%s/namespaces/" STR_FMT "/%s%s" STR_FMT,
                        s->version, STR_ARG(namespace), plural, one ? "/" : "",
                        STR_ARG(one ? rest : STR("")));
}

void bridge_fixture_secret(struct bridge_fixture *s, const char *name, const char *token)
{
    struct str namespace;
    struct str cluster;
    bridge_fixture_split(name, &namespace, &cluster);
    struct str text =
        sim_clusters_kubeconfig(bridge_fixture_address(s, name), str_from(token), &s->memory);
    struct str body = arena_printf(&s->memory,
                                   "{\"metadata\":{\"name\":\"" STR_FMT
                                   "-kubeconfig\"},\"type\":\"cluster.x-k8s.io/secret\","
                                   "\"data\":{\"value\":\"" STR_FMT "\"}}",
                                   STR_ARG(cluster), STR_ARG(base64_encode(&s->memory, text)));
    struct str path =
        arena_printf(&s->memory, "/api/v1/namespaces/" STR_FMT "/secrets", STR_ARG(namespace));
    struct str one = arena_printf(&s->memory, STR_FMT "/" STR_FMT "-kubeconfig", STR_ARG(path),
                                  STR_ARG(cluster));
    if (bridge_fixture_ask(s->management, "PATCH", one, body, STR("somebody")) == 404) {
        bridge_fixture_management(s, "POST", path, body.p);
    }
}

struct bridge_fixture_cluster *bridge_fixture_add_cluster(struct bridge_fixture *s,
                                                          const char *name)
{
    struct str namespace;
    struct str cluster;
    bridge_fixture_split(name, &namespace, &cluster);
    ASSERT(s->workload_n < BRIDGE_FIXTURE_CLUSTERS_MAX);
    struct bridge_fixture_cluster *workload = ALLOC_NEW(struct bridge_fixture_cluster);
    s->workloads[s->workload_n++] = workload;
    workload->name =
        arena_printf(&s->memory, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(cluster));
    workload->server = apiserver_new(virtual_loop_root(s->time), 100 + s->workload_n);
    apiserver_set_token(workload->server, STR("t1"));
    apiserver_on_commit_check(workload->server, bridge_fixture_on_commit, s);
    faults_init(&workload->faults, 200 + s->workload_n);
    workload->entry = sim_clusters_add(&s->book, bridge_fixture_address(s, name), workload->server,
                                       &workload->faults);
    if (!str_eq(namespace, STR("default"))) {
        struct str body = arena_printf(&s->memory, "{\"metadata\":{\"name\":\"" STR_FMT "\"}}",
                                       STR_ARG(namespace));
        (void)bridge_fixture_ask(s->management, "POST", STR("/api/v1/namespaces"), body,
                                 STR("somebody"));
    }
    bridge_fixture_secret(s, name, "t1");
    bool old = strcmp(s->version, "v1beta1") == 0;
    bridge_fixture_management(
        s, "POST", bridge_fixture_path(s, "clusters", name, false),
        arena_printf(&s->memory,
                     "{\"apiVersion\":\"cluster.x-k8s.io/%s\",\"kind\":\"Cluster\","
                     "\"metadata\":{\"name\":\"" STR_FMT "\"},\"spec\":{},\"status\":%s}",
                     s->version, STR_ARG(cluster),
                     old ? "{\"infrastructureReady\":true}"
                         : "{\"initialization\":{\"infrastructureProvisioned\":true}}")
            .p);
    return workload;
}

struct bridge_fixture_cluster *bridge_fixture_find_cluster(struct bridge_fixture *s,
                                                           const char *name)
{
    struct str namespace;
    struct str cluster;
    bridge_fixture_split(name, &namespace, &cluster);
    struct str full =
        arena_printf(&s->memory, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(cluster));
    for (uint32_t i = 0; i < s->workload_n; i++) {
        if (str_eq(s->workloads[i]->name, full)) {
            return s->workloads[i];
        }
    }
    check_fail(__FILE__, __LINE__, "no cluster %s", name);
}

void bridge_fixture_rule(struct bridge_fixture *s, const char *name, const char *spec)
{
    struct str namespace;
    struct str rest;
    bridge_fixture_split(name, &namespace, &rest);
    struct str one = bridge_fixture_path(s, "machinedrainrules", name, true);
    int status = bridge_fixture_ask(s->management, "DELETE", one, STR(""), STR("somebody"));
    CHECK(status == 200 || status == 404);
    if (spec != NULL) {
        bridge_fixture_management(
            s, "POST", bridge_fixture_path(s, "machinedrainrules", name, false),
            arena_printf(&s->memory,
                         "{\"apiVersion\":\"cluster.x-k8s.io/%s\",\"kind\":"
                         "\"MachineDrainRule\",\"metadata\":{\"name\":\"" STR_FMT
                         "\"},\"spec\":%s}",
                         s->version, STR_ARG(rest), spec)
                .p);
    }
}

/* ── Machines and Nodes ────────────────────────────────────────────────────────────────────── */

void bridge_fixture_node(struct bridge_fixture *s, const char *cluster, const char *name,
                         bool managed)
{
    bridge_fixture_workload(
        s, cluster, "POST", STR("/api/v1/nodes"),
        arena_printf(&s->memory, "{\"metadata\":{\"name\":\"%s\",\"labels\":{%s}}}", name,
                     managed ? "\"cloud.sap/maintenance-state\":\"operational\"" : "")
            .p);
}

void bridge_fixture_machine(struct bridge_fixture *s, const char *cluster, const char *name,
                            const char *words)
{
    struct str namespace;
    struct str short_name;
    bridge_fixture_split(cluster, &namespace, &short_name);
    struct str all = str_from(words);
    bridge_fixture_node(s, cluster, name, str_contains(all, STR("managed")));
    bridge_fixture_management(
        s, "POST", bridge_fixture_path(s, "machines", cluster, false),
        arena_printf(
            &s->memory,
            "{\"apiVersion\":\"cluster.x-k8s.io/%s\",\"kind\":\"Machine\",\"metadata\":{"
            "\"name\":\"%s\",\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"" STR_FMT
            "\"%s%s},\"finalizers\":[\"machine.cluster.x-k8s.io\"]},\"spec\":{"
            "\"clusterName\":\"" STR_FMT "\"},\"status\":{\"nodeRef\":{\"name\":\"%s\"}}}",
            s->version, name, STR_ARG(short_name),
            str_contains(all, STR("enabled")) ? ",\"" KEYS_LEGACY "enabled\":\"true\"" : "",
            str_contains(all, STR("control-plane")) ? ",\"cluster.x-k8s.io/control-plane\":\"\""
                                                    : "",
            STR_ARG(short_name), name)
            .p);
}

static struct str bridge_fixture_patch(struct bridge_fixture *s, bool label, struct str key,
                                       const char *value)
{
    return arena_printf(&s->memory, "{\"metadata\":{\"%s\":{\"" STR_FMT "\":%s%s%s}}}",
                        label ? "labels" : "annotations", STR_ARG(key), value == NULL ? "" : "\"",
                        value == NULL ? "null" : value, value == NULL ? "" : "\"");
}

void bridge_fixture_label_machine(struct bridge_fixture *s, const char *name, struct str key,
                                  const char *value)
{
    bridge_fixture_management(s, "PATCH", bridge_fixture_path(s, "machines", name, true),
                              bridge_fixture_patch(s, true, key, value).p);
}

void bridge_fixture_annotate_machine(struct bridge_fixture *s, const char *name, struct str key,
                                     const char *value)
{
    bridge_fixture_management(s, "PATCH", bridge_fixture_path(s, "machines", name, true),
                              bridge_fixture_patch(s, false, key, value).p);
}

static struct str bridge_fixture_node_path(struct bridge_fixture *s, const char *name)
{
    return arena_printf(&s->memory, "/api/v1/nodes/%s", name);
}

void bridge_fixture_label_node(struct bridge_fixture *s, const char *cluster, const char *name,
                               struct str key, const char *value)
{
    bridge_fixture_workload(s, cluster, "PATCH", bridge_fixture_node_path(s, name),
                            bridge_fixture_patch(s, true, key, value).p);
}

void bridge_fixture_annotate_node(struct bridge_fixture *s, const char *cluster, const char *name,
                                  struct str key, const char *value)
{
    bridge_fixture_workload(s, cluster, "PATCH", bridge_fixture_node_path(s, name),
                            bridge_fixture_patch(s, false, key, value).p);
}

void bridge_fixture_delete_machine(struct bridge_fixture *s, const char *name)
{
    bridge_fixture_management(s, "DELETE", bridge_fixture_path(s, "machines", name, true), "");
}

void bridge_fixture_delete_node(struct bridge_fixture *s, const char *cluster, const char *name)
{
    bridge_fixture_workload(s, cluster, "DELETE", bridge_fixture_node_path(s, name), "");
}

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

static struct str bridge_fixture_of_machine(struct bridge_fixture *s, const char *name,
                                            const char *part, struct str key)
{
    struct str namespace;
    struct str rest;
    bridge_fixture_split(name, &namespace, &rest);
    const struct jval *m = apiserver_find(s->management, GROUP, STR("machines"), namespace, rest);
    CHECK(m != NULL);
    struct str value = jval_str(jval_get(jval_at(m, part), key));
    return value.p == NULL ? value : arena_str(&s->memory, value);
}

static struct str bridge_fixture_of_node(struct bridge_fixture *s, const char *cluster,
                                         const char *name, const char *part, struct str key)
{
    const struct jval *n = apiserver_find(bridge_fixture_find_cluster(s, cluster)->server, STR(""),
                                          STR("nodes"), STR(""), str_from(name));
    CHECK(n != NULL);
    struct str value = jval_str(jval_get(jval_at(n, part), key));
    return value.p == NULL ? value : arena_str(&s->memory, value);
}

struct str bridge_fixture_machine_label(struct bridge_fixture *s, const char *name, struct str key)
{
    return bridge_fixture_of_machine(s, name, "metadata.labels", key);
}

struct str bridge_fixture_machine_annotation(struct bridge_fixture *s, const char *name,
                                             struct str key)
{
    return bridge_fixture_of_machine(s, name, "metadata.annotations", key);
}

struct str bridge_fixture_node_label(struct bridge_fixture *s, const char *cluster,
                                     const char *name, struct str key)
{
    return bridge_fixture_of_node(s, cluster, name, "metadata.labels", key);
}

struct str bridge_fixture_node_annotation(struct bridge_fixture *s, const char *cluster,
                                          const char *name, struct str key)
{
    return bridge_fixture_of_node(s, cluster, name, "metadata.annotations", key);
}

bool bridge_fixture_has_hook(struct bridge_fixture *s, const char *name)
{
    return bridge_fixture_machine_annotation(s, name, KEY_HOOK).p != NULL;
}

struct bridge_fixture_count {
    struct str reason;
    uint32_t n;
};

static void bridge_fixture_count(void *ctx, const struct jval *event)
{
    struct bridge_fixture_count *count = ctx;
    count->n += str_eq(jval_str(jval_get(event, STR("reason"))), count->reason) ? 1 : 0;
}

uint32_t bridge_fixture_events(struct bridge_fixture *s, const char *reason)
{
    struct bridge_fixture_count count = { .reason = str_from(reason) };
    apiserver_each(s->management, STR("events.k8s.io"), STR("events"), STR(""),
                   bridge_fixture_count, &count);
    return count.n;
}
