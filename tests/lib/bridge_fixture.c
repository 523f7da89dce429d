#include "tests/lib/bridge_fixture.h"

#include "base/base64.h"
#include "base/alloc.h"
#include "tests/check.h"

#define GROUP STR("cluster.x-k8s.io")

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static int strait_ask(struct apiserver *server, const char *method, struct str path,
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

static void strait_must(struct apiserver *server, const char *method, struct str path,
                        const char *body)
{
    int status = strait_ask(server, method, path, str_from(body), STR("somebody"));
    if (status != 200 && status != 201) {
        check_fail(__FILE__, __LINE__, "%s " STR_FMT ": %d", method, STR_ARG(path), status);
    }
}

void strait_home(struct strait *s, const char *method, struct str path, const char *body)
{
    strait_must(s->home, method, path, body);
}

void strait_away(struct strait *s, const char *cluster, const char *method, struct str path,
                 const char *body)
{
    strait_must(strait_find(s, cluster)->server, method, path, body);
}

void strait_restrict(struct strait *s, const char *name, const char *rules)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct apiserver_reply reply = { 0 };
    strait_away(s, name, "POST", STR("/api/v1/namespaces/default/serviceaccounts"),
                "{\"metadata\":{\"name\":\"narrow\"}}");
    strait_away(s, name, "POST", STR("/apis/rbac.authorization.k8s.io/v1/clusterroles"),
                arena_printf(&tmp, "{\"metadata\":{\"name\":\"narrow\"},\"rules\":[%s]}", rules).p);
    strait_away(s, name, "POST", STR("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
                "{\"metadata\":{\"name\":\"narrow\"},\"roleRef\":{\"apiGroup\":"
                "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"narrow\"},"
                "\"subjects\":[{\"kind\":\"ServiceAccount\",\"namespace\":\"default\",\"name\":"
                "\"narrow\"}]}");
    apiserver_handle(strait_find(s, name)->server,
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
    strait_secret(s, name, token.p);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void strait_crd(struct strait *s, const char *group, const char *version, const char *kind,
                       const char *plural)
{
    strait_home(
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

void strait_kind(struct strait *s, const char *kind, const char *plural)
{
    strait_crd(s, "cluster.x-k8s.io", s->version, kind, plural);
}

static void strait_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct strait *s = ctx;
    bool ours = str_eq(commit->plural, STR("machines")) || str_eq(commit->plural, STR("nodes")) ||
                str_eq(commit->plural, STR("baremetalhosts"));
    s->patches += ours && str_starts(commit->user_agent, STR("drydock")) ? 1 : 0;
}

static void strait_log(void *ctx, struct str line)
{
    struct strait *s = ctx;
    buf_add(&s->log, line);
}

void strait_begin(struct strait *s, const char *version)
{
    *s = (struct strait){ .version = version };
    s->time = virtual_loop_new(7, SECONDS(1767323045));
    s->loop = virtual_loop_view_new(s->time, 0);
    s->home = apiserver_new(virtual_loop_root(s->time), 7);
    faults_init(&s->faults, 8);
    sim_clusters_init(&s->book);
    s->sink = (struct log){ .write = strait_log, .ctx = s, .level = LOG_DEBUG };
    strait_kind(s, "Machine", "machines");
    strait_kind(s, "Cluster", "clusters");
    strait_kind(s, "MachineDrainRule", "machinedrainrules");
    strait_crd(s, "metal3.io", "v1alpha1", "BareMetalHost", "baremetalhosts");
    apiserver_on_commit_check(s->home, strait_on_commit, s);
}

static void strait_on_stopped(void *ctx)
{
    struct strait *s = ctx;
    s->stopped = true;
}

void strait_bridge(struct strait *s, const struct bridge_config *config)
{
    struct bridge_config c = config == NULL ? (struct bridge_config){ 0 } : *config;
    s->dialer = sim_dialer_new(s->loop, &s->book);
    s->api = sim_api_new(s->loop, s->home, &s->faults);
    sim_api_set_user_agent(s->api, STR("drydock"));
    c.identity = c.identity.n > 0 ? c.identity : STR("me");
    c.dialer = s->dialer;
    c.on_stopped = strait_on_stopped;
    c.ctx = s;
    c.rules.skew = SECONDS(5);
    s->bridge = bridge_new(s->loop, s->api, &s->sink, s->metrics, &c);
}

void strait_crash(struct strait *s)
{
    bridge_free(STEAL(s->bridge));
    if (s->api != NULL) {
        CHECK_EQ(sim_dialer_open(s->dialer), 0);
        CHECK_EQ(sim_api_in_flight(s->api), 0);
    }
    sim_dialer_free(STEAL(s->dialer));
    sim_api_free(STEAL(s->api));
}

void strait_end(struct strait *s)
{
    strait_crash(s);
    sim_clusters_done(&s->book);
    for (uint32_t i = 0; i < s->shore_n; i++) {
        faults_done(&s->shores[i]->faults);
        apiserver_free(s->shores[i]->server);
        alloc_free(s->shores[i]);
    }
    faults_done(&s->faults);
    apiserver_free(s->home);
    virtual_loop_view_free(s->loop);
    CHECK_EQ(virtual_loop_armed(s->time), 0);
    virtual_loop_free(s->time);
    buf_done(&s->log);
    arena_done(&s->memory);
}

static bool strait_step(struct strait *s, usec_t until)
{
    bool more = virtual_loop_step(s->time, until);
    if (s->bridge != NULL) {
        bridge_check(s->bridge);
    }
    return more;
}

void strait_run(struct strait *s, usec_t span)
{
    usec_t until = virtual_loop_now(s->time) + span;
    while (strait_step(s, until)) {
    }
}

bool strait_until(struct strait *s, bool (*is)(struct strait *s), usec_t span)
{
    usec_t until = virtual_loop_now(s->time) + span;
    while (!is(s)) {
        if (!strait_step(s, until)) {
            return is(s);
        }
    }
    return true;
}

/* ── clusters ──────────────────────────────────────────────────────────────────────────────── */

/* "space/name", or "default" and the name. */
static void strait_split(const char *text, struct str *ret_space, struct str *ret_name)
{
    if (!str_cut(str_from(text), STR("/"), ret_space, ret_name)) {
        *ret_space = STR("default");
        *ret_name = str_from(text);
    }
}

static struct str strait_address(struct strait *s, const char *name)
{
    struct str space;
    struct str cluster;
    strait_split(name, &space, &cluster);
    return arena_printf(&s->memory, "https://" STR_FMT "." STR_FMT, STR_ARG(cluster),
                        STR_ARG(space));
}

/* A path below the namespace of a Cluster API kind. */
static struct str strait_path(struct strait *s, const char *plural, const char *name, bool one)
{
    struct str space;
    struct str rest;
    strait_split(name, &space, &rest);
    return arena_printf(&s->memory, "/apis/cluster.x-k8s.io/%s/namespaces/" STR_FMT "/%s%s" STR_FMT,
                        s->version, STR_ARG(space), plural, one ? "/" : "",
                        STR_ARG(one ? rest : STR("")));
}

void strait_secret(struct strait *s, const char *name, const char *token)
{
    struct str space;
    struct str cluster;
    strait_split(name, &space, &cluster);
    struct str text = sim_clusters_kubeconfig(strait_address(s, name), str_from(token), &s->memory);
    struct str body = arena_printf(&s->memory,
                                   "{\"metadata\":{\"name\":\"" STR_FMT
                                   "-kubeconfig\"},\"type\":\"cluster.x-k8s.io/secret\","
                                   "\"data\":{\"value\":\"" STR_FMT "\"}}",
                                   STR_ARG(cluster), STR_ARG(base64_encode(&s->memory, text)));
    struct str path =
        arena_printf(&s->memory, "/api/v1/namespaces/" STR_FMT "/secrets", STR_ARG(space));
    struct str one = arena_printf(&s->memory, STR_FMT "/" STR_FMT "-kubeconfig", STR_ARG(path),
                                  STR_ARG(cluster));
    if (strait_ask(s->home, "PATCH", one, body, STR("somebody")) == 404) {
        strait_home(s, "POST", path, body.p);
    }
}

struct strait_shore *strait_shore(struct strait *s, const char *name)
{
    struct str space;
    struct str cluster;
    strait_split(name, &space, &cluster);
    ASSERT(s->shore_n < STRAIT_SHORES_MAX);
    struct strait_shore *shore = ALLOC_NEW(struct strait_shore);
    s->shores[s->shore_n++] = shore;
    shore->name = arena_printf(&s->memory, STR_FMT "/" STR_FMT, STR_ARG(space), STR_ARG(cluster));
    shore->server = apiserver_new(virtual_loop_root(s->time), 100 + s->shore_n);
    apiserver_set_token(shore->server, STR("t1"));
    apiserver_on_commit_check(shore->server, strait_on_commit, s);
    faults_init(&shore->faults, 200 + s->shore_n);
    shore->entry =
        sim_clusters_add(&s->book, strait_address(s, name), shore->server, &shore->faults);
    if (!str_eq(space, STR("default"))) {
        struct str body =
            arena_printf(&s->memory, "{\"metadata\":{\"name\":\"" STR_FMT "\"}}", STR_ARG(space));
        (void)strait_ask(s->home, "POST", STR("/api/v1/namespaces"), body, STR("somebody"));
    }
    strait_secret(s, name, "t1");
    bool old = strcmp(s->version, "v1beta1") == 0;
    strait_home(s, "POST", strait_path(s, "clusters", name, false),
                arena_printf(&s->memory,
                             "{\"apiVersion\":\"cluster.x-k8s.io/%s\",\"kind\":\"Cluster\","
                             "\"metadata\":{\"name\":\"" STR_FMT "\"},\"spec\":{},\"status\":%s}",
                             s->version, STR_ARG(cluster),
                             old ? "{\"infrastructureReady\":true}"
                                 : "{\"initialization\":{\"infrastructureProvisioned\":true}}")
                    .p);
    return shore;
}

struct strait_shore *strait_find(struct strait *s, const char *name)
{
    struct str space;
    struct str cluster;
    strait_split(name, &space, &cluster);
    struct str full =
        arena_printf(&s->memory, STR_FMT "/" STR_FMT, STR_ARG(space), STR_ARG(cluster));
    for (uint32_t i = 0; i < s->shore_n; i++) {
        if (str_eq(s->shores[i]->name, full)) {
            return s->shores[i];
        }
    }
    check_fail(__FILE__, __LINE__, "no cluster %s", name);
}

void strait_rule(struct strait *s, const char *name, const char *spec)
{
    struct str space;
    struct str rest;
    strait_split(name, &space, &rest);
    struct str one = strait_path(s, "machinedrainrules", name, true);
    int status = strait_ask(s->home, "DELETE", one, STR(""), STR("somebody"));
    CHECK(status == 200 || status == 404);
    if (spec != NULL) {
        strait_home(s, "POST", strait_path(s, "machinedrainrules", name, false),
                    arena_printf(&s->memory,
                                 "{\"apiVersion\":\"cluster.x-k8s.io/%s\",\"kind\":"
                                 "\"MachineDrainRule\",\"metadata\":{\"name\":\"" STR_FMT
                                 "\"},\"spec\":%s}",
                                 s->version, STR_ARG(rest), spec)
                        .p);
    }
}

/* ── Machines and Nodes ────────────────────────────────────────────────────────────────────── */

void strait_node(struct strait *s, const char *cluster, const char *name, bool managed)
{
    strait_away(s, cluster, "POST", STR("/api/v1/nodes"),
                arena_printf(&s->memory, "{\"metadata\":{\"name\":\"%s\",\"labels\":{%s}}}", name,
                             managed ? "\"cloud.sap/maintenance-state\":\"operational\"" : "")
                    .p);
}

void strait_machine(struct strait *s, const char *cluster, const char *name, const char *words)
{
    struct str space;
    struct str short_name;
    strait_split(cluster, &space, &short_name);
    struct str all = str_from(words);
    strait_node(s, cluster, name, str_contains(all, STR("managed")));
    strait_home(s, "POST", strait_path(s, "machines", cluster, false),
                arena_printf(
                    &s->memory,
                    "{\"apiVersion\":\"cluster.x-k8s.io/%s\",\"kind\":\"Machine\",\"metadata\":{"
                    "\"name\":\"%s\",\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"" STR_FMT
                    "\"%s%s},\"finalizers\":[\"machine.cluster.x-k8s.io\"]},\"spec\":{"
                    "\"clusterName\":\"" STR_FMT "\"},\"status\":{\"nodeRef\":{\"name\":\"%s\"}}}",
                    s->version, name, STR_ARG(short_name),
                    str_contains(all, STR("enabled")) ? ",\"" KEYS_LEGACY "enabled\":\"true\"" : "",
                    str_contains(all, STR("control-plane"))
                        ? ",\"cluster.x-k8s.io/control-plane\":\"\""
                        : "",
                    STR_ARG(short_name), name)
                    .p);
}

static struct str strait_patch(struct strait *s, bool label, struct str key, const char *value)
{
    return arena_printf(&s->memory, "{\"metadata\":{\"%s\":{\"" STR_FMT "\":%s%s%s}}}",
                        label ? "labels" : "annotations", STR_ARG(key), value == NULL ? "" : "\"",
                        value == NULL ? "null" : value, value == NULL ? "" : "\"");
}

void strait_label_machine(struct strait *s, const char *name, struct str key, const char *value)
{
    strait_home(s, "PATCH", strait_path(s, "machines", name, true),
                strait_patch(s, true, key, value).p);
}

void strait_note_machine(struct strait *s, const char *name, struct str key, const char *value)
{
    strait_home(s, "PATCH", strait_path(s, "machines", name, true),
                strait_patch(s, false, key, value).p);
}

static struct str strait_node_path(struct strait *s, const char *name)
{
    return arena_printf(&s->memory, "/api/v1/nodes/%s", name);
}

void strait_label_node(struct strait *s, const char *cluster, const char *name, struct str key,
                       const char *value)
{
    strait_away(s, cluster, "PATCH", strait_node_path(s, name),
                strait_patch(s, true, key, value).p);
}

void strait_note_node(struct strait *s, const char *cluster, const char *name, struct str key,
                      const char *value)
{
    strait_away(s, cluster, "PATCH", strait_node_path(s, name),
                strait_patch(s, false, key, value).p);
}

void strait_delete_machine(struct strait *s, const char *name)
{
    strait_home(s, "DELETE", strait_path(s, "machines", name, true), "");
}

void strait_delete_node(struct strait *s, const char *cluster, const char *name)
{
    strait_away(s, cluster, "DELETE", strait_node_path(s, name), "");
}

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

static struct str strait_of_machine(struct strait *s, const char *name, const char *part,
                                    struct str key)
{
    struct str space;
    struct str rest;
    strait_split(name, &space, &rest);
    const struct jval *m = apiserver_find(s->home, GROUP, STR("machines"), space, rest);
    CHECK(m != NULL);
    struct str value = jval_str(jval_get(jval_at(m, part), key));
    return value.p == NULL ? value : arena_str(&s->memory, value);
}

static struct str strait_of_node(struct strait *s, const char *cluster, const char *name,
                                 const char *part, struct str key)
{
    const struct jval *n = apiserver_find(strait_find(s, cluster)->server, STR(""), STR("nodes"),
                                          STR(""), str_from(name));
    CHECK(n != NULL);
    struct str value = jval_str(jval_get(jval_at(n, part), key));
    return value.p == NULL ? value : arena_str(&s->memory, value);
}

struct str strait_machine_label(struct strait *s, const char *name, struct str key)
{
    return strait_of_machine(s, name, "metadata.labels", key);
}

struct str strait_machine_note(struct strait *s, const char *name, struct str key)
{
    return strait_of_machine(s, name, "metadata.annotations", key);
}

struct str strait_node_label(struct strait *s, const char *cluster, const char *name,
                             struct str key)
{
    return strait_of_node(s, cluster, name, "metadata.labels", key);
}

struct str strait_node_note(struct strait *s, const char *cluster, const char *name, struct str key)
{
    return strait_of_node(s, cluster, name, "metadata.annotations", key);
}

bool strait_hooked(struct strait *s, const char *name)
{
    return strait_machine_note(s, name, KEY_HOOK).p != NULL;
}

struct strait_count {
    struct str reason;
    uint32_t n;
};

static void strait_count(void *ctx, const struct jval *event)
{
    struct strait_count *count = ctx;
    count->n += str_eq(jval_str(jval_get(event, STR("reason"))), count->reason) ? 1 : 0;
}

uint32_t strait_events(struct strait *s, const char *reason)
{
    struct strait_count count = { .reason = str_from(reason) };
    apiserver_each(s->home, STR("events.k8s.io"), STR("events"), STR(""), strait_count, &count);
    return count.n;
}
