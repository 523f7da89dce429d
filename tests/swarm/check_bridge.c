#include "tests/swarm/check_bridge_internal.h"

#include "bridge/bridge.h"
#include "format/json_tree.h"
#include "kinds/keys.h"

void check_bridge_done(struct check_bridge *t)
{
    for (uint32_t i = 0; i < CHECK_BRIDGE_CLUSTERS_MAX; i++) {
        map_done(&t->clusters[i].nodes);
    }
    map_done(&t->machines);
    map_done(&t->requests);
    arena_done(&t->memory);
}

/* ── remembering ───────────────────────────────────────────────────────────────────────────── */

struct check_bridge_node *check_bridge_node(struct check_bridge *t, uint32_t cluster,
                                            struct str name)
{
    struct check_bridge_cluster *c = &t->clusters[cluster];
    struct check_bridge_node *n = map_find(&c->nodes, name);
    if (n == NULL) {
        n = ARENA_NEW(&t->memory, struct check_bridge_node);
        (void)map_put(&c->nodes, name, n); /* it was not there */
        bool absent = apiserver_find(c->server, STR(""), STR("nodes"), STR(""), name) == NULL;
        timed_flag_set(&n->absent, absent, t->now);
    }
    return n;
}

struct check_bridge_request *check_bridge_request(struct check_bridge *t,
                                                  enum check_bridge_kind kind, struct str name)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str key =
        arena_concat(&tmp, kind == CHECK_BRIDGE_DELETION ? STR("d ") : STR("m "), name);
    struct check_bridge_request *r = map_find(&t->requests, key);
    if (r == NULL) {
        r = ARENA_NEW(&t->memory, struct check_bridge_request);
        (void)map_put(&t->requests, key, r); /* it was not there */
    }
    return r;
}

struct check_bridge_machine *check_bridge_requester(struct check_bridge *t, struct str request)
{
    struct str uid;
    struct str number;
    (void)str_cut(request, STR("/"), &uid, &number); /* a deletion has no number */
    return map_find(&t->machines, uid);
}

struct check_bridge_machine *check_bridge_node_owner(struct check_bridge *t, uint32_t cluster,
                                                     struct str node)
{
    MAP_EACH (&t->machines, item) {
        struct check_bridge_machine *m = map_item_value(item);
        if (!m->gone && m->cluster == cluster && str_eq(m->node, node) &&
            m->incarnation == t->clusters[cluster].incarnation) {
            return m;
        }
    }
    return NULL;
}

uint32_t check_bridge_writer(const struct check_bridge *t, struct str agent)
{
    struct str index_text;
    struct str incarnation_text;
    uint32_t process;
    uint32_t incarnation;
    if (str_cut_prefix(agent, STR("drydock-"), &agent) &&
        str_cut(agent, STR("_"), &index_text, &incarnation_text) &&
        str_to_u32(index_text, &process) && str_to_u32(incarnation_text, &incarnation) &&
        process < CHECK_BRIDGE_PROCESSES_MAX && t->incarnations[process] == incarnation) {
        return process;
    }
    return CHECK_BRIDGE_PROCESSES_MAX;
}

usec_t check_bridge_lag(const struct check_bridge *t, struct str agent, uint32_t cluster)
{
    uint32_t process = check_bridge_writer(t, agent);
    if (process == CHECK_BRIDGE_PROCESSES_MAX) {
        return CHECK_BRIDGE_LAG_MAX;
    }
    usec_t outage_end =
        MAX(t->outage_end[process][cluster], t->outage_end[process][MANAGEMENT_CLUSTER]);
    return outage_end > 0 && t->now < outage_end + CHECK_BRIDGE_RECONNECT_MAX ? CHECK_BRIDGE_LAG_MAX
                                                                              : CHECK_BRIDGE_LAG;
}

void check_bridge_on_start(struct check_bridge *t, uint32_t process, uint32_t incarnation,
                           usec_t now)
{
    t->incarnations[process] = incarnation;
    t->started[process] = now;
}

void check_bridge_on_outage(struct check_bridge *t, uint32_t process, uint32_t where, usec_t until)
{
    t->outage_end[process][where] = MAX(t->outage_end[process][where], until);
}

void check_bridge_on_wrong_secret(struct check_bridge *t, uint32_t cluster, bool wrong_secret,
                                  usec_t now)
{
    timed_flag_set(&t->clusters[cluster].wrong_secret, wrong_secret, now);
}

/* ── comparing ─────────────────────────────────────────────────────────────────────────────── */

static void remove_keys(struct tree *object, const char *path, const struct str *keys, size_t n)
{
    struct tree *map = tree_at(object, path);
    for (size_t i = 0; map != NULL && i < n; i++) {
        (void)tree_del(map, keys[i]); /* absent is fine */
    }
    if (map != NULL && map->n == 0) {
        (void)tree_del_at(object, path); /* an empty map is no difference */
    }
}

static struct tree *without_keys(struct arena *tmp, const struct jval *object,
                                 const struct check_bridge_allowed *span)
{
    struct tree *tree = tree_from(tmp, object);
    (void)tree_del_at(tree, "metadata.resourceVersion"); /* absent is fine */
    (void)tree_del_at(tree, "metadata.managedFields");   /* likewise */
    remove_keys(tree, "metadata.labels", span->labels, span->label_n);
    remove_keys(tree, "metadata.annotations", span->annotations, span->annotation_n);
    return tree;
}

bool check_bridge_only_changed(const struct jval *a, const struct jval *b,
                               const struct check_bridge_allowed *span)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    return tree_eq(without_keys(&tmp, a, span), without_keys(&tmp, b, span));
}

/* ── commits ───────────────────────────────────────────────────────────────────────────────── */

static void on_cluster(struct check_bridge *t, const struct apiserver_commit *commit)
{
    if (is_bridge(commit->user_agent)) {
        check_violation(t->basic, "B7: " STR_FMT " writes Cluster " STR_FMT,
                        STR_ARG(commit->user_agent), STR_ARG(commit->name));
    }
    for (uint32_t i = 0; i < t->cluster_n; i++) {
        struct check_bridge_cluster *c = &t->clusters[i];
        if (!str_eq(c->namespace, commit->namespace) || !str_eq(c->name, commit->name)) {
            continue;
        }
        c->incarnation += commit->old == NULL ? 1 : 0;
        timed_flag_set(&c->deleting, commit->now == NULL || is_deleting(commit->now), t->now);
        timed_flag_set(&c->paused, commit->now != NULL && cluster_is_paused(commit->now), t->now);
    }
}

void check_bridge_on_commit(struct check_bridge *t, uint32_t where,
                            const struct apiserver_commit *commit, usec_t now)
{
    t->now = now;
    bool bridge = is_bridge(commit->user_agent);
    if (where == MANAGEMENT_CLUSTER &&
        (str_eq(commit->plural, STR("machinedrainrules")) ||
         str_eq(commit->plural, STR("machines")) || str_eq(commit->plural, STR("clusters")))) {
        check_bridge_on_drain_rules(t, commit);
    }
    if (where != MANAGEMENT_CLUSTER && str_eq(commit->plural, STR("nodes"))) {
        t->writes += bridge ? 1 : 0;
        check_bridge_on_node(t, where, commit);
        check_bridge_update_drained(t, where);
    } else if (where != MANAGEMENT_CLUSTER && str_eq(commit->plural, STR("pods")) && !bridge) {
        check_bridge_update_drained(t, where);
    } else if (where == MANAGEMENT_CLUSTER && str_eq(commit->plural, STR("machines"))) {
        t->writes += bridge ? 1 : 0;
        check_bridge_on_machine(t, commit);
    } else if (where == MANAGEMENT_CLUSTER && str_eq(commit->plural, STR("clusters"))) {
        on_cluster(t, commit);
    } else if (where == MANAGEMENT_CLUSTER && str_eq(commit->plural, STR("baremetalhosts")) &&
               t->options.metal3) {
        t->writes += bridge ? 1 : 0;
        check_bridge_on_host(t, commit);
    } else if (where == MANAGEMENT_CLUSTER && str_eq(commit->plural, STR("leases"))) {
        if (str_eq(commit->name, BRIDGE_LEASE_NAME)) {
            check_basic_on_lease_write(t->basic, commit->user_agent, commit->now, now);
        }
    } else if (bridge && !str_eq(commit->plural, STR("events"))) {
        check_violation(t->basic, "B7: " STR_FMT " writes " STR_FMT " " STR_FMT,
                        STR_ARG(commit->user_agent), STR_ARG(commit->plural),
                        STR_ARG(commit->name));
    }
}

/* ── the wire ──────────────────────────────────────────────────────────────────────────────── */

void check_bridge_on_send(struct check_bridge *t, struct str who, const struct api_request *request,
                          usec_t now)
{
    bool machine = str_contains(request->path, STR("/machines/"));
    bool node = str_starts(request->path, STR("/api/v1/nodes/"));
    bool host = str_contains(request->path, STR("/baremetalhosts/"));
    if (request->verb == API_GET || (!machine && !node && !host)) {
        return;
    }
    t->now = now;
    if (t->elect) {
        check_basic_on_node_send(t->basic, who, now);
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *body = NULL;
    if (request->verb != API_PATCH || json_parse(request->body, 0, &tmp, &body, &ignored) < 0 ||
        text_at(body, "metadata.resourceVersion").n == 0) {
        check_violation(t->basic,
                        "B8: " STR_FMT " writes " STR_FMT
                        " without saying on which version it decided",
                        STR_ARG(who), STR_ARG(request->path));
    }
}
