#include "tests/swarm/check_bridge_internal.h"

#include "bridge/bridge.h"
#include "format/json_tree.h"

void treaty_done(struct treaty *t)
{
    for (uint32_t i = 0; i < TREATY_CLUSTERS_MAX; i++) {
        map_done(&t->clusters[i].nodes);
    }
    map_done(&t->machines);
    map_done(&t->requests);
    arena_done(&t->memory);
}

/* ── remembering ───────────────────────────────────────────────────────────────────────────── */

struct treaty_node *treaty_node(struct treaty *t, uint32_t cluster, struct str name)
{
    struct treaty_cluster *c = &t->clusters[cluster];
    struct treaty_node *n = map_find(&c->nodes, name);
    if (n == NULL) {
        n = ARENA_NEW(&t->memory, struct treaty_node);
        (void)map_put(&c->nodes, name, n); /* it was not there */
        bool absent = apiserver_find(c->server, STR(""), STR("nodes"), STR(""), name) == NULL;
        trait_note(&n->absent, absent, t->now);
    }
    return n;
}

struct treaty_request *treaty_request(struct treaty *t, enum treaty_kind kind, struct str name)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str key = arena_concat(&tmp, kind == TREATY_DELETION ? STR("d ") : STR("m "), name);
    struct treaty_request *r = map_find(&t->requests, key);
    if (r == NULL) {
        r = ARENA_NEW(&t->memory, struct treaty_request);
        (void)map_put(&t->requests, key, r); /* it was not there */
    }
    return r;
}

struct treaty_machine *treaty_asker(struct treaty *t, struct str request)
{
    struct str uid;
    struct str number;
    (void)str_cut(request, STR("/"), &uid, &number); /* a deletion has no number */
    return map_find(&t->machines, uid);
}

struct treaty_machine *treaty_owner(struct treaty *t, uint32_t cluster, struct str node)
{
    MAP_EACH (&t->machines, item) {
        struct treaty_machine *m = map_item_value(item);
        if (!m->gone && m->cluster == cluster && str_eq(m->node, node) &&
            m->incarnation == t->clusters[cluster].incarnation) {
            return m;
        }
    }
    return NULL;
}

uint32_t treaty_pilot(const struct treaty *t, struct str agent)
{
    struct str left;
    struct str right;
    uint32_t pilot;
    uint32_t incarnation;
    if (str_cut_prefix(agent, STR("drydock-"), &agent) && str_cut(agent, STR("_"), &left, &right) &&
        str_to_u32(left, &pilot) && str_to_u32(right, &incarnation) && pilot < TREATY_PILOTS_MAX &&
        t->incarnations[pilot] == incarnation) {
        return pilot;
    }
    return TREATY_PILOTS_MAX;
}

usec_t treaty_lag(const struct treaty *t, struct str agent, uint32_t cluster)
{
    uint32_t pilot = treaty_pilot(t, agent);
    if (pilot == TREATY_PILOTS_MAX) {
        return TREATY_LONG;
    }
    usec_t ended = MAX(t->trouble[pilot][cluster], t->trouble[pilot][TREATY_HOME]);
    return ended > 0 && t->now < ended + TREATY_SETTLES ? TREATY_LONG : TREATY_LAG;
}

void treaty_on_start(struct treaty *t, uint32_t pilot, uint32_t incarnation, usec_t now)
{
    t->incarnations[pilot] = incarnation;
    t->started[pilot] = now;
}

void treaty_trouble(struct treaty *t, uint32_t pilot, uint32_t where, usec_t until)
{
    t->trouble[pilot][where] = MAX(t->trouble[pilot][where], until);
}

void treaty_astray(struct treaty *t, uint32_t cluster, bool astray, usec_t now)
{
    trait_note(&t->clusters[cluster].astray, astray, now);
}

/* ── comparing ─────────────────────────────────────────────────────────────────────────────── */

static void cut_keys(struct tree *object, const char *path, const struct str *keys, size_t n)
{
    struct tree *map = tree_at(object, path);
    for (size_t i = 0; map != NULL && i < n; i++) {
        (void)tree_del(map, keys[i]); /* absent is fine */
    }
    if (map != NULL && map->n == 0) {
        (void)tree_del_at(object, path); /* an empty map is no difference */
    }
}

static struct tree *rest_of(struct arena *tmp, const struct jval *object,
                            const struct treaty_span *span)
{
    struct tree *rest = tree_from(tmp, object);
    (void)tree_del_at(rest, "metadata.resourceVersion"); /* absent is fine */
    (void)tree_del_at(rest, "metadata.managedFields");   /* likewise */
    cut_keys(rest, "metadata.labels", span->labels, span->label_n);
    cut_keys(rest, "metadata.annotations", span->notes, span->note_n);
    return rest;
}

bool treaty_same_but(const struct jval *a, const struct jval *b, const struct treaty_span *span)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    return tree_eq(rest_of(&tmp, a, span), rest_of(&tmp, b, span));
}

/* ── commits ───────────────────────────────────────────────────────────────────────────────── */

static void on_cluster(struct treaty *t, const struct apiserver_commit *commit)
{
    if (is_bridge(commit->user_agent)) {
        promise_break(t->promise, "INV-7: " STR_FMT " writes Cluster " STR_FMT,
                      STR_ARG(commit->user_agent), STR_ARG(commit->name));
    }
    for (uint32_t i = 0; i < t->cluster_n; i++) {
        struct treaty_cluster *c = &t->clusters[i];
        if (!str_eq(c->space, commit->namespace) || !str_eq(c->name, commit->name)) {
            continue;
        }
        c->incarnation += commit->old == NULL ? 1 : 0;
        trait_note(&c->going, commit->now == NULL || is_deleting(commit->now), t->now);
        trait_note(&c->paused, commit->now != NULL && cluster_is_paused(commit->now), t->now);
    }
}

void treaty_on_commit(struct treaty *t, uint32_t where, const struct apiserver_commit *commit,
                      usec_t now)
{
    t->now = now;
    bool bridge = is_bridge(commit->user_agent);
    if (where == TREATY_HOME &&
        (str_eq(commit->plural, STR("machinedrainrules")) ||
         str_eq(commit->plural, STR("machines")) || str_eq(commit->plural, STR("clusters")))) {
        treaty_note_rules(t, commit);
    }
    if (where != TREATY_HOME && str_eq(commit->plural, STR("nodes"))) {
        t->writes += bridge ? 1 : 0;
        treaty_on_node(t, where, commit);
        treaty_note_drained(t, where);
    } else if (where != TREATY_HOME && str_eq(commit->plural, STR("pods")) && !bridge) {
        treaty_note_drained(t, where);
    } else if (where == TREATY_HOME && str_eq(commit->plural, STR("machines"))) {
        t->writes += bridge ? 1 : 0;
        treaty_on_machine(t, commit);
    } else if (where == TREATY_HOME && str_eq(commit->plural, STR("clusters"))) {
        on_cluster(t, commit);
    } else if (where == TREATY_HOME && str_eq(commit->plural, STR("baremetalhosts")) &&
               t->terms.metal3) {
        t->writes += bridge ? 1 : 0;
        treaty_on_host(t, commit);
    } else if (where == TREATY_HOME && str_eq(commit->plural, STR("leases"))) {
        if (str_eq(commit->name, BRIDGE_LEASE_NAME)) {
            promise_on_lease_write(t->promise, commit->user_agent, commit->now, now);
        }
    } else if (bridge && !str_eq(commit->plural, STR("events"))) {
        promise_break(t->promise, "INV-7: " STR_FMT " writes " STR_FMT " " STR_FMT,
                      STR_ARG(commit->user_agent), STR_ARG(commit->plural), STR_ARG(commit->name));
    }
}

/* ── the wire ──────────────────────────────────────────────────────────────────────────────── */

void treaty_on_send(struct treaty *t, struct str who, const struct api_request *request, usec_t now)
{
    bool machine = str_contains(request->path, STR("/machines/"));
    bool node = str_starts(request->path, STR("/api/v1/nodes/"));
    bool host = str_contains(request->path, STR("/baremetalhosts/"));
    if (request->verb == API_GET || (!machine && !node && !host)) {
        return;
    }
    t->now = now;
    if (t->elect) {
        promise_on_node_send(t->promise, who, now);
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *body = NULL;
    if (request->verb != API_PATCH || json_parse(request->body, 0, &tmp, &body, &ignored) < 0 ||
        text_at(body, "metadata.resourceVersion").n == 0) {
        promise_break(t->promise,
                      "INV-8: " STR_FMT " writes " STR_FMT
                      " without saying on which version it decided",
                      STR_ARG(who), STR_ARG(request->path));
    }
}
