#include "base/alloc.h"
#include "bridge/bridge_internal.h"
#include "bridge/drain_rule.h"
#include "kinds/keys.h"
#include "bridge/workload_request.h"

#define BRIDGE_INSTANCE BRIDGE_MANAGER

void bridge_wake(struct bridge *b)
{
    loop_timer_pull(&b->turn, loop_now(b->loop));
}

bool bridge_leading(const struct bridge *b)
{
    return !b->stopping && (!b->config.elect || lease_is_held(&b->lease));
}

bool bridge_acts(const struct bridge *b)
{
    bool leads = bridge_leading(b) || mutated(b->config.mutations, MUTATION_ACT_WITHOUT_LEASE);
    return leads && b->machines.synced && b->clusters.synced;
}

struct str bridge_leader(const struct bridge *b)
{
    return b->config.elect ? lease_holder(&b->lease) : b->config.identity;
}

bool bridge_ready(const struct bridge *b, struct str *ret_why)
{
    if (b->edition.version.n == 0) {
        *ret_why = str_from(b->edition.trouble.msg);
        return false;
    }
    const struct supply *const needed[] = { &b->machines, &b->clusters, &b->hosts };
    for (size_t i = 0; i < (b->config.metal3 ? 3u : 2u); i++) {
        if (!supply_well(needed[i])) {
            *ret_why = needed[i]->failing ? str_from(needed[i]->trouble.msg)
                       : i < 2            ? STR("Machines and Clusters are being listed")
                                          : STR("BareMetalHosts are being listed");
            return false;
        }
    }
    return codex_ready(b, ret_why);
}

/* ── what is watched ───────────────────────────────────────────────────────────────────────── */

static void bridge_on_news(void *ctx)
{
    bridge_wake(ctx);
}

static void bridge_on_trouble(void *ctx, const struct err *err)
{
    struct bridge *b = ctx;
    if (bridge_logs(b)) {
        log_warn(b->log, "management cluster", KV_ERR(err));
    }
}

/* A Secret of which only the version counts. */
static int secret_project(void *ctx UNUSED, const struct jval *object UNUSED, struct arena *out,
                          void **ret, struct err *err UNUSED)
{
    *ret = arena_alloc(out, 1);
    return 0;
}

/* Any new version is a change: nothing else is known of it. */
static bool secret_same(const void *a UNUSED, const void *b UNUSED)
{
    return false;
}

static const struct store_kind secret_kind = {
    .name = "secret",
    .spaced = true,
    .project = secret_project,
    .same = secret_same,
};

static bool secret_wanted(const struct jval *object)
{
    return str_ends(jval_str(jval_at(object, "metadata.name")), STR("-kubeconfig"));
}

/* "/apis/cluster.x-k8s.io/v1beta2/machines", or below a namespace. */
static struct str bridge_path(struct bridge *b, struct str prefix, const char *plural)
{
    buf_reset(&b->path);
    buf_add(&b->path, prefix);
    if (b->config.space.n > 0) {
        buf_add(&b->path, STR("/namespaces/"));
        client_add_segment(&b->path, b->config.space);
    }
    buf_printf(&b->path, "/%s", plural);
    return buf_str(&b->path);
}

/* The kinds are served in another version than before, or for the first time. */
static void bridge_on_edition(void *ctx)
{
    struct bridge *b = ctx;
    CLEANUP(buf_done)
    struct buf prefix = { 0 };
    buf_printf(&prefix, "/apis/" EDITION_GROUP "/" STR_FMT, STR_ARG(b->edition.version));
    if (bridge_logs(b)) {
        log_info(b->log, "Cluster API", KV_STR("version", b->edition.version));
    }
    codex_start(b, bridge_path(b, buf_str(&prefix), "machinedrainrules"));
    supply_start(&b->clusters, bridge_path(b, buf_str(&prefix), "clusters"));
    supply_start(&b->machines, bridge_path(b, buf_str(&prefix), "machines"));
    if (!b->secrets.started) {
        supply_start(&b->secrets, bridge_path(b, STR("/api/v1"), "secrets"));
    }
    if (b->config.metal3 && !b->hosts.started) {
        supply_start(&b->hosts, bridge_path(b, STR("/apis/metal3.io/v1alpha1"), "baremetalhosts"));
    }
}

static void bridge_init_supplies(struct bridge *b)
{
    struct supply_config config = {
        .client = &b->client,
        .on_news = bridge_on_news,
        .on_trouble = bridge_on_trouble,
        .ctx = b,
    };
    struct supply_config machines = config;
    if (b->config.watch_filter.n > 0) {
        buf_add(&b->query, STR("&labelSelector=cluster.x-k8s.io%2Fwatch-filter%3D"));
        client_add_segment(&b->query, b->config.watch_filter);
    }
    machines.kind = &machine_kind;
    machines.query = buf_str(&b->query);
    machines.on_change = berth_on_change;
    machines.on_gone = berth_on_gone;
    supply_init(&b->machines, &machines);
    struct supply_config clusters = config;
    clusters.kind = &cluster_kind;
    clusters.on_change = yard_on_cluster;
    clusters.on_gone = yard_on_cluster_gone;
    supply_init(&b->clusters, &clusters);
    struct supply_config rules = config;
    rules.kind = &drainrule_kind;
    rules.on_change = codex_on_change;
    rules.on_gone = codex_on_gone;
    rules.on_news = codex_on_news;
    rules.on_trouble = codex_on_trouble;
    supply_init(&b->codex.supply, &rules);
    struct supply_config secrets = config;
    secrets.kind = &secret_kind;
    secrets.query = STR("&fieldSelector=type%3Dcluster.x-k8s.io%2Fsecret");
    secrets.metadata_only = true;
    secrets.wants = secret_wanted;
    secrets.on_change = yard_on_secret;
    secrets.on_gone = yard_on_secret_gone;
    supply_init(&b->secrets, &secrets);
    struct supply_config hosts = config;
    hosts.kind = &bmhost_kind;
    hosts.on_change = hosts_on_change;
    hosts.on_gone = hosts_on_gone;
    supply_init(&b->hosts, &hosts);
}

/* ── who acts ──────────────────────────────────────────────────────────────────────────────── */

static void bridge_on_leading(void *ctx, bool held)
{
    struct bridge *b = ctx;
    if (bridge_logs(b)) {
        log_info(b->log, held ? "leading" : "not leading any more");
    }
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
    if (bridge_logs(b)) {
        log_warn(b->log, "leader election", KV_ERR(err));
    }
}

/* One Lease a shard, so that each has its own leader. */
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
                   .space = b->config.lease_namespace,
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

static bool berth_before(struct prioqueue_item *a, struct prioqueue_item *b)
{
    return CONTAINER_OF(a, struct berth, later)->at < CONTAINER_OF(b, struct berth, later)->at;
}

static void bridge_copy_texts(struct bridge *b)
{
    struct bridge_config *c = &b->config;
    c->identity = arena_str(&b->memory, c->identity);
    c->lease_namespace =
        arena_str(&b->memory, c->lease_namespace.n > 0 ? c->lease_namespace : STR("default"));
    c->space = arena_str(&b->memory, c->space);
    c->watch_filter = arena_str(&b->memory, c->watch_filter);
}

static void bridge_on_collect(void *ctx);

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
    b->client.mutations = config->mutations;
    recorder_init(&b->recorder, &b->client, STR(BRIDGE_MANAGER), STR(BRIDGE_INSTANCE));
    list_init(&b->stirred);
    list_init(&b->crossings);
    struct map *const maps[] = { &b->yards, &b->pairs, &b->by_host, &b->by_uid };
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        map_init(maps[i], loop_random(loop), loop_random(loop));
    }
    prioqueue_init(&b->later, berth_before);
    b->connects = (struct ratelimit){ .rate = BRIDGE_CONNECT_RATE, .burst = BRIDGE_CONNECT_RATE };
    loop_timer_init(&b->turn, loop, bridge_turn, b);
    struct str lease = bridge_lease_name(b);
    tally_init(&b->tally, metrics, config->cluster_metrics, lease);
    if (metrics != NULL) {
        metrics_on_collect(metrics, bridge_on_collect, b);
    }
    bridge_init_supplies(b);
    hosts_init(b);
    bridge_init_lease(b, lease);
    edition_init(&b->edition, &b->client, bridge_on_edition, b);
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
    LIST_EACH (&b->crossings, link) {
        crossing_free(CONTAINER_OF(link, struct crossing, link));
    }
    edition_done(&b->edition);
    supply_done(&b->machines);
    MAP_EACH (&b->yards, entry) {
        struct yard *y = map_item_value(entry);
        yard_cut(y);
        yard_tidy(y);
    }
    codex_done(b);
    supply_done(&b->clusters);
    supply_done(&b->secrets);
    supply_done(&b->hosts);
    lease_done(&b->lease);
    recorder_done(&b->recorder);
    loop_timer_done(&b->turn);
    loop_timer_done(&b->host_review);
    struct map *const maps[] = { &b->yards, &b->pairs, &b->by_host, &b->by_uid };
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        map_done(maps[i]);
    }
    prioqueue_done(&b->later);
    buf_done(&b->path);
    buf_done(&b->body);
    buf_done(&b->key);
    buf_done(&b->query);
    arena_done(&b->tmp);
    arena_done(&b->memory);
    alloc_free(b);
}

/* ── what others see ───────────────────────────────────────────────────────────────────────── */

static void bridge_on_collect(void *ctx)
{
    struct bridge *b = ctx;
    uint32_t phases[TALLY_PHASES] = { 0 };
    tally_begin(&b->tally);
    tally_leading(&b->tally, bridge_leading(b));
    MAP_EACH (&b->yards, entry) {
        const struct yard *y = map_item_value(entry);
        if (y->link != NULL) {
            struct link_view view;
            link_view(y->link, &view);
            tally_link(&b->tally, &view);
        }
    }
    MAP_EACH (&b->machines.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct berth *at = item->extra;
        phases[at->phase] += b->acting && at->decided ? 1 : 0; /* as it was last decided */
    }
    for (uint32_t i = 0; i < TALLY_PHASES; i++) {
        tally_machines(&b->tally, (enum rules_phase)i, phases[i]);
    }
    tally_end(&b->tally);
}

void bridge_each_link(const struct bridge *b, void (*fn)(void *ctx, const struct link_view *view),
                      void *ctx)
{
    MAP_EACH (&b->yards, entry) {
        const struct yard *y = map_item_value(entry);
        if (y->link != NULL) {
            struct link_view view;
            link_view(y->link, &view);
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
    MAP_EACH (&b->yards, entry) {
        struct yard *y = map_item_value(entry);
        if (y->link != NULL && link_state(y->link) != LINK_IDLE) {
            ret->links++;
            ret->fresh += link_fresh(y->link) ? 1 : 0;
            ret->nodes += link_fresh(y->link) ? store_count(link_nodes(y->link)) : 0;
        }
    }
}

bool bridge_explain(struct bridge *b, struct str space, struct str name, struct arena *out,
                    struct bridge_report *ret)
{
    buf_reset(&b->key);
    buf_printf(&b->key, STR_FMT "/" STR_FMT, STR_ARG(space), STR_ARG(name));
    struct store_item *item = store_find(&b->machines.store, buf_str(&b->key));
    if (item == NULL) {
        return false;
    }
    struct berth *at = item->extra;
    struct rules_facts facts;
    struct power_facts power;
    struct berth_book book;
    berth_facts(at, out, &facts);
    berth_book(at, out, &book);
    *ret = (struct bridge_report){
        .space = facts.machine->space,
        .name = facts.machine->name,
        .machine = facts.machine,
        .cluster = facts.cluster,
        .ours = yard_is_ours(at->yard),
        .linked = at->yard->link != NULL,
        .sight = facts.sight,
        .node = facts.node,
        .asks = book.asked,
        .rules_known = book.known,
        .rules = book.book.n,
        .rules_error = book.known ? book.book.error : book.trouble,
        .error = str_from(at->trouble.msg),
        .wall = facts.wall,
    };
    if (ret->linked) {
        link_view(at->yard->link, &ret->link);
    }
    if (facts.node != NULL) {
        ret->node_version = store_find(link_nodes(at->yard->link), facts.machine->node)->version;
    }
    const struct store_item *plea = routing_plea(at);
    if (plea != NULL) {
        ret->plea = plea->name;
        ret->plea_state = plea_state_name(((const struct plea *)plea->object)->state);
    }
    rules_decide(&b->config.rules, &facts, out, &ret->verdict);
    if (b->config.metal3 && hosts_facts(at, &power)) {
        ret->powered = true;
        ret->host = buf_str(&at->host);
        power_decide(&b->config.power, &power, out, &ret->power);
    }
    return true;
}

void bridge_check(const struct bridge *b)
{
    uint32_t window = 0;
    store_check(&b->machines.store);
    store_check(&b->clusters.store);
    store_check(&b->codex.supply.store);
    LIST_EACH (&b->crossings, link) {
        const struct crossing *x = CONTAINER_OF(link, struct crossing, link);
        window += x->kind == CROSSING_MACHINE || x->kind == CROSSING_HOST ? 1 : 0;
        ASSERT(x->call != NULL || x->link_call != NULL);
    }
    ASSERT(window == b->window);
    uint32_t crowd = 0;
    MAP_EACH (&b->machines.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct berth *at = item->extra;
        crowd += at->host.n > 0 && !at->hosted ? 1 : 0;
    }
    ASSERT(crowd == b->crowd);
    MAP_EACH (&b->pairs, entry) {
        const struct berth *at = map_item_value(entry);
        ASSERT(at->paired);
        ASSERT(str_eq(buf_str(&at->pair), map_item_name(entry)));
    }
    MAP_EACH (&b->yards, entry) {
        const struct yard *y = map_item_value(entry);
        if (y->link != NULL) {
            link_check(y->link);
        }
    }
}
