/*
 * bridge: start and end, leader election, the informers of the management cluster, and what metrics
 * and the explain page may see.
 */
#include "base/alloc.h"
#include "bridge/bridge_internal.h"
#include "kinds/keys.h"
#include "bridge/workload_request.h"

#define BRIDGE_INSTANCE BRIDGE_MANAGER
#define DENIALS_MAX 16u /* a few for each of the four kinds that are watched */

void bridge_wake(struct bridge *b)
{
    loop_timer_pull(&b->turn, loop_now(b->loop));
}

bool bridge_leading(const struct bridge *b)
{
    return !b->stopping && (!b->config.elect || lease_is_held(&b->lease));
}

bool kind_is_absent(usec_t *missed_at, usec_t now)
{
    *missed_at = *missed_at == 0 ? now : *missed_at;
    return now >= *missed_at + KIND_ABSENT_AFTER;
}

bool bridge_may_act(const struct bridge *b)
{
    bool leads = bridge_leading(b) || mutated(b->config.mutations, MUTATION_ACT_WITHOUT_LEASE);
    return leads && b->machines.synced && b->clusters.synced;
}

struct str bridge_leader(const struct bridge *b)
{
    return b->config.elect ? lease_holder(&b->lease) : b->config.identity;
}

bool bridge_ready(struct bridge *b, struct str *ret_why)
{
    *ret_why = STR_NONE;
    if (b->capi.version.n == 0) {
        *ret_why = str_from(b->capi.trouble.msg);
        return false;
    }
    const struct informer *const needed[] = { &b->machines, &b->clusters, &b->hosts };
    for (size_t i = 0; i < (b->config.metal3 ? 3u : 2u); i++) {
        if (!informer_healthy(needed[i])) {
            *ret_why = needed[i]->failing ? str_from(needed[i]->trouble.msg)
                       : i < 2            ? STR("Machines and Clusters are being listed")
                                          : STR("BareMetalHosts are being listed");
            return false;
        }
    }
    if (!drain_rule_watch_ready(b, ret_why)) {
        return false;
    }
    arena_reset(&b->pause_text);
    *ret_why = client_pause_text(&b->client, b->config.server, &b->pause_text);
    return true;
}

/* ── informers ─────────────────────────────────────────────────────────────────────────────── */

static void bridge_on_update(void *ctx)
{
    bridge_wake(ctx);
}

static void bridge_on_error(void *ctx, const struct err *err)
{
    struct bridge *b = ctx;
    struct str why = str_from(err->msg);
    if (err->code == ERR_DENIED) { /* until somebody gives the right: one line is enough */
        if (map_find(&b->denials, why) != NULL || map_count(&b->denials) >= DENIALS_MAX) {
            return;
        }
        (void)map_put(&b->denials, why, b); /* it was not there */
    }
    log_warn(b->log, "management cluster", KV_ERR(err));
}

/* Of a kubeconfig Secret only the version is kept. */
static int secret_project(void *ctx UNUSED, const struct jval *object UNUSED, struct arena *out,
                          void **ret, struct err *err UNUSED)
{
    *ret = arena_alloc(out, 1);
    return 0;
}

/* Every new version is a change. */
static bool secret_same(const void *a UNUSED, const void *b UNUSED)
{
    return false;
}

static const struct store_kind secret_kind = {
    .name = "secret",
    .namespaced = true,
    .project = secret_project,
    .same = secret_same,
};

static bool secret_wanted(void *ctx UNUSED, const struct jval *object)
{
    return str_ends(jval_str(jval_at(object, "metadata.name")), STR("-kubeconfig"));
}

struct str bridge_capi_prefix(struct bridge *b)
{
    return arena_printf(&b->tmp, "/apis/" CAPI_GROUP "/" STR_FMT, STR_ARG(b->capi.version));
}

struct str bridge_path(struct bridge *b, struct str prefix, struct str namespace,
                       const char *plural)
{
    buf_reset(&b->path);
    buf_add(&b->path, prefix);
    if (namespace.n > 0) {
        buf_add(&b->path, STR("/namespaces/"));
        client_add_segment(&b->path, namespace);
    }
    buf_printf(&b->path, "/%s", plural);
    return buf_str(&b->path);
}

/* The API version of Cluster API was found, or has changed: the watches begin anew. */
static void bridge_on_capi_version(void *ctx)
{
    struct bridge *b = ctx;
    struct str prefix = bridge_capi_prefix(b);
    struct str namespace = b->config.namespace;
    log_info(b->log, "Cluster API", KV_STR("version", b->capi.version));
    drain_rule_watch_start(b, bridge_path(b, prefix, namespace, "machinedrainrules"));
    informer_start(&b->clusters, bridge_path(b, prefix, namespace, "clusters"));
    informer_start(&b->machines, bridge_path(b, prefix, namespace, "machines"));
    if (!b->secrets.started) {
        informer_start(&b->secrets, bridge_path(b, STR("/api/v1"), namespace, "secrets"));
    }
    if (b->config.metal3 && !b->hosts.started) {
        informer_start(&b->hosts, bridge_path(b, METAL3_PREFIX, namespace, "baremetalhosts"));
    }
}

void bridge_init_informer(struct bridge *b, struct informer *informer,
                          struct informer_config config)
{
    config.client = &b->client;
    config.on_update = bridge_on_update;
    config.on_error = bridge_on_error;
    config.ctx = b;
    informer_init(informer, &config);
}

static void bridge_init_informers(struct bridge *b)
{
    if (b->config.watch_filter.n > 0) {
        buf_add(&b->query, STR("&labelSelector=" KEY_WATCH_FILTER_QUERY "%3D"));
        client_add_segment(&b->query, b->config.watch_filter);
    }
    bridge_init_informer(b, &b->machines,
                         (struct informer_config){
                             .kind = &machine_kind,
                             .query = buf_str(&b->query),
                             .on_change = machine_on_change,
                             .on_gone = machine_on_gone,
                         });
    bridge_init_informer(b, &b->clusters,
                         (struct informer_config){
                             .kind = &cluster_kind,
                             .on_change = cluster_on_change,
                             .on_gone = cluster_on_gone,
                         });
    drain_rule_watch_init(b);
    bridge_init_informer(b, &b->secrets,
                         (struct informer_config){
                             .kind = &secret_kind,
                             .query = STR("&fieldSelector=type%3D" CAPI_SECRET_TYPE_QUERY),
                             .metadata_only = true,
                             .wants = secret_wanted,
                             .on_change = cluster_on_secret,
                             .on_gone = cluster_on_secret_gone,
                         });
    metal3_init(b);
}

/* ── leader election
 * ──────────────────────────────────────────────────────────────────────────────── */

static void bridge_on_leading(void *ctx, bool held)
{
    struct bridge *b = ctx;
    log_info(b->log, held ? "leading" : "not leading any more");
    bridge_wake(b);
    if (b->config.on_leading != NULL) {
        b->config.on_leading(b->config.ctx, held);
    }
}

static void bridge_on_released(void *ctx)
{
    struct bridge *b = ctx;
    if (b->config.on_stopped != NULL) {
        b->config.on_stopped(b->config.ctx);
    }
}

static void bridge_on_lease_error(void *ctx, const struct err *err)
{
    struct bridge *b = ctx;
    log_warn(b->log, "leader election", KV_ERR(err));
}

/* Each shard has a Lease, and so a leader, of its own. */
static struct str bridge_lease_name(struct bridge *b)
{
    if (b->config.shards <= 1) {
        return BRIDGE_LEASE_NAME;
    }
    return arena_printf(&b->memory, STR_FMT "-shard-%u", STR_ARG(BRIDGE_LEASE_NAME),
                        b->config.shard);
}

static void bridge_init_lease(struct bridge *b, struct str name)
{
    lease_init(&b->lease, &b->client,
               &(struct lease_config){
                   .namespace = b->config.lease_namespace,
                   .name = name,
                   .identity = b->config.identity,
                   .on_change = bridge_on_leading,
                   .on_released = bridge_on_released,
                   .on_error = bridge_on_lease_error,
                   .ctx = b,
               });
    if (b->config.elect) {
        lease_start(&b->lease);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static bool machine_wakes_before(struct prioqueue_item *a, struct prioqueue_item *b)
{
    return CONTAINER_OF(a, struct machine_state, wake)->at <
           CONTAINER_OF(b, struct machine_state, wake)->at;
}

static void bridge_copy_texts(struct bridge *b)
{
    struct bridge_config *c = &b->config;
    c->identity = arena_str(&b->memory, c->identity);
    c->lease_namespace =
        arena_str(&b->memory, c->lease_namespace.n > 0 ? c->lease_namespace : STR("default"));
    c->namespace = arena_str(&b->memory, c->namespace);
    c->watch_filter = arena_str(&b->memory, c->watch_filter);
    c->server = arena_str(&b->memory, c->server);
}

static void bridge_on_collect(void *ctx);

static void bridge_on_events_denied(void *ctx, enum recorder_api api)
{
    struct bridge *b = ctx;
    bool core = api == RECORDER_API_CORE;
    log_warn(b->log, "A right is missing",
             KV_STR("right", core ? STR("create and patch events")
                                  : STR("create and patch events of the group events.k8s.io")),
             KV_STR("effect",
                    core ? STR("there are no Events") : STR("Events are written to the core API")));
}

struct bridge *bridge_new(struct loop *loop, struct api *api, struct log *log,
                          struct metrics *metrics, const struct bridge_config *config)
{
    ASSERT(config->dialer != NULL);
    ASSERT(config->shards <= 1 || config->shard < config->shards);
    struct bridge *b = ALLOC_NEW(struct bridge);
    b->config = *config;
    b->loop = loop;
    b->log = log;
    b->metrics = metrics;
    bridge_copy_texts(b);
    client_init(&b->client, loop, api);
    mutations_copy(&b->client, config);
    recorder_init(&b->recorder, &b->client, STR(BRIDGE_MANAGER), STR(BRIDGE_INSTANCE));
    recorder_on_denied(&b->recorder, bridge_on_events_denied, b);
    list_init(&b->dirty_clusters);
    list_init(&b->in_flight);
    struct map *const maps[] = { &b->by_cluster, &b->by_node, &b->by_host, &b->by_uid,
                                 &b->denials };
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        map_init(maps[i], loop_random(loop), loop_random(loop));
    }
    prioqueue_init(&b->wake, machine_wakes_before);
    b->connects = (struct ratelimit){ .rate = BRIDGE_CONNECT_RATE, .burst = BRIDGE_CONNECT_RATE };
    loop_timer_init(&b->turn, loop, bridge_turn, b);
    struct str lease = bridge_lease_name(b);
    bridge_metrics_init(&b->series, metrics, config->cluster_metrics, lease);
    client_metrics_init(&b->client_series, metrics, b->config.server);
    if (metrics != NULL) {
        metrics_on_collect(metrics, bridge_on_collect, b);
    }
    bridge_init_informers(b);
    bridge_init_lease(b, lease);
    capi_version_init(&b->capi, &b->client, bridge_on_capi_version, b);
    return b;
}

void bridge_stop(struct bridge *b)
{
    b->stopping = true;
    bridge_wake(b);
    if (b->config.elect) {
        lease_release(&b->lease);
    } else {
        bridge_on_released(b);
    }
}

void bridge_free(struct bridge *b)
{
    if (b == NULL) {
        return;
    }
    if (b->metrics != NULL) {
        metrics_off_collect(b->metrics, bridge_on_collect, b);
    }
    LIST_EACH (&b->in_flight, link) {
        in_flight_free(CONTAINER_OF(link, struct in_flight, link));
    }
    capi_version_done(&b->capi);
    informer_done(&b->machines);
    MAP_EACH (&b->by_cluster, entry) {
        struct cluster_state *cs = map_item_value(entry);
        cluster_disconnect(cs);
        cluster_free_if_idle(cs);
    }
    drain_rule_watch_done(b);
    informer_done(&b->clusters);
    informer_done(&b->secrets);
    informer_done(&b->hosts);
    lease_done(&b->lease);
    recorder_done(&b->recorder);
    loop_timer_done(&b->turn);
    loop_timer_done(&b->host_recheck);
    struct map *const maps[] = { &b->by_cluster, &b->by_node, &b->by_host, &b->by_uid,
                                 &b->denials };
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        map_done(maps[i]);
    }
    prioqueue_done(&b->wake);
    buf_done(&b->path);
    buf_done(&b->body);
    buf_done(&b->key);
    buf_done(&b->query);
    arena_done(&b->pause_text);
    arena_done(&b->tmp);
    arena_done(&b->memory);
    alloc_free(b);
}

/* ── what others see ───────────────────────────────────────────────────────────────────────── */

static void bridge_on_collect_link(void *ctx, const struct link_view *view)
{
    bridge_metrics_link(ctx, view);
}

static void bridge_on_collect(void *ctx)
{
    struct bridge *b = ctx;
    uint32_t phases[BRIDGE_METRICS_PHASES] = { 0 };
    bridge_metrics_begin(&b->series);
    client_metrics_collect(&b->client_series, &b->client);
    bridge_metrics_leading(&b->series, bridge_leading(b));
    bridge_each_link(b, bridge_on_collect_link, &b->series);
    MAP_EACH (&b->machines.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct machine_state *ms = item->extra;
        phases[ms->phase] += b->acting && ms->decided ? 1 : 0; /* as it was last decided */
    }
    for (uint32_t i = 0; i < BRIDGE_METRICS_PHASES; i++) {
        bridge_metrics_machines(&b->series, (enum rules_phase)i, phases[i]);
    }
    bridge_metrics_end(&b->series);
}

void bridge_each_link(const struct bridge *b, void (*fn)(void *ctx, const struct link_view *view),
                      void *ctx)
{
    MAP_EACH (&b->by_cluster, entry) {
        const struct cluster_state *cs = map_item_value(entry);
        if (cs->link != NULL) {
            struct link_view view;
            link_view(cs->link, &view);
            fn(ctx, &view);
        }
    }
}

void bridge_stats(const struct bridge *b, struct bridge_stats *ret)
{
    *ret = b->stats;
    ret->machines = store_count(&b->machines.store);
    ret->clusters = store_count(&b->clusters.store);
    ret->dirty = b->machines.store.dirty_count;
    MAP_EACH (&b->machines.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct machine *m = item->object;
        ret->enabled += m->enabled ? 1 : 0;
    }
    MAP_EACH (&b->by_cluster, entry) {
        struct cluster_state *cs = map_item_value(entry);
        if (cs->link != NULL && link_state(cs->link) != LINK_IDLE) {
            ret->links++;
            ret->fresh += link_fresh(cs->link) ? 1 : 0;
            ret->nodes += link_fresh(cs->link) ? store_count(link_nodes(cs->link)) : 0;
        }
    }
}

bool bridge_explain(struct bridge *b, struct str namespace, struct str name, struct arena *out,
                    struct bridge_machine_view *ret)
{
    buf_reset(&b->key);
    buf_printf(&b->key, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name));
    struct store_item *item = store_find(&b->machines.store, buf_str(&b->key));
    if (item == NULL) {
        return false;
    }
    struct machine_state *ms = item->extra;
    struct rules_facts facts;
    struct power_facts power;
    struct machine_drain_rules rules;
    machine_facts(ms, out, &facts);
    machine_drain_rules(ms, out, &rules);
    *ret = (struct bridge_machine_view){
        .namespace = facts.machine->namespace,
        .name = facts.machine->name,
        .machine = facts.machine,
        .cluster = facts.cluster,
        .ours = cluster_is_ours(ms->cluster),
        .linked = ms->cluster->link != NULL,
        .sight = facts.sight,
        .node = facts.node,
        .has_request = rules.asked,
        .rules_known = rules.known,
        .rules = rules.rules.n,
        .rules_error = rules.known ? rules.rules.error : rules.trouble,
        .error = str_from(ms->trouble.msg),
        .wall = facts.wall,
    };
    if (ret->linked) {
        link_view(ms->cluster->link, &ret->link);
    }
    if (facts.node != NULL) {
        ret->node_version = store_find(link_nodes(ms->cluster->link), facts.machine->node)->version;
    }
    const struct store_item *request = routing_request(ms);
    if (request != NULL) {
        ret->request = request->name;
        const struct maintenance_request *p = request->object;
        ret->workload_request_state = mrequest_state_name(mrequest_state_for_actor(p->state));
    }
    rules_decide(&b->config.rules, &facts, out, &ret->verdict);
    if (b->config.metal3 && metal3_facts(ms, &power)) {
        ret->has_host = true;
        ret->host = buf_str(&ms->host);
        power_decide(&b->config.power, &power, out, &ret->power);
    }
    return true;
}

void bridge_check(const struct bridge *b)
{
    uint32_t patches_in_flight = 0;
    store_check(&b->machines.store);
    store_check(&b->clusters.store);
    store_check(&b->drain_rules.informer.store);
    LIST_EACH (&b->in_flight, link) {
        const struct in_flight *f = CONTAINER_OF(link, struct in_flight, link);
        patches_in_flight += f->kind == IN_FLIGHT_MACHINE || f->kind == IN_FLIGHT_HOST ? 1 : 0;
        ASSERT(f->call != NULL || f->link_call != NULL);
    }
    ASSERT(patches_in_flight == b->patches_in_flight);
    uint32_t host_duplicates = 0;
    MAP_EACH (&b->machines.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct machine_state *ms = item->extra;
        host_duplicates +=
            ms->host.n > 0 && map_find(&b->by_host, buf_str(&ms->host)) != ms ? 1 : 0;
    }
    ASSERT(host_duplicates == b->host_duplicates);
    MAP_EACH (&b->by_node, entry) {
        const struct machine_state *ms = map_item_value(entry);
        ASSERT(str_eq(buf_str(&ms->node_key), map_item_name(entry)));
    }
    MAP_EACH (&b->by_cluster, entry) {
        const struct cluster_state *cs = map_item_value(entry);
        if (cs->link != NULL) {
            link_check(cs->link);
        }
    }
}
