/*
 * cluster_state: what the bridge keeps of a Cluster: which of its Machines are known, and the link
 * to its workload cluster, which is open while a Machine needs it.
 */
#include "base/alloc.h"
#include "bridge/bridge_internal.h"
#include "format/digest.h"

#define KUBECONFIG_SUFFIX STR("-kubeconfig") /* of the Secret's name, behind the Cluster's */

const struct cluster *cluster_object(const struct cluster_state *cs)
{
    const struct store_item *item = store_find(&cs->bridge->clusters.store, cs->name);
    return item == NULL ? NULL : item->object;
}

bool cluster_is_ours(const struct cluster_state *cs)
{
    const struct bridge_config *config = &cs->bridge->config;
    if (config->shards <= 1) {
        return true;
    }
    const struct cluster *cluster = cluster_object(cs);
    if (cluster == NULL) {
        return config->shard == 0; /* one shard has to release the Machines of a deleted Cluster */
    }
    return sha256_u64(cluster->uid) % config->shards == config->shard;
}

void cluster_mark(struct cluster_state *cs)
{
    if (!list_linked(&cs->dirty)) {
        list_add(&cs->bridge->dirty_clusters, &cs->dirty);
    }
    bridge_wake(cs->bridge);
}

void cluster_mark_machines(struct cluster_state *cs)
{
    LIST_EACH (&cs->machines, link) {
        machine_mark(CONTAINER_OF(link, struct machine_state, link));
    }
    cluster_mark(cs);
}

void cluster_recheck_nodes(struct cluster_state *cs)
{
    if (cs->link == NULL || !link_fresh(cs->link)) {
        return; /* a new connection marks all Nodes */
    }
    MAP_EACH (&link_nodes(cs->link)->items, entry) {
        struct store_item *item = map_item_value(entry);
        if (workload_node_marked(item->object)) {
            store_mark(link_nodes(cs->link), item);
        }
    }
    cluster_mark(cs);
}

static void cluster_on_recheck(void *ctx)
{
    cluster_recheck_nodes(ctx);
}

void cluster_recheck_nodes_later(struct cluster_state *cs)
{
    struct loop *loop = cs->bridge->loop;
    if (!cs->recheck.armed) {
        loop_timer_set(&cs->recheck,
                       loop_now(loop) + backoff_next(&cs->backoff, loop_random(loop)));
    }
}

struct cluster_state *cluster_get(struct bridge *b, struct str namespace, struct str cluster)
{
    buf_reset(&b->key);
    buf_printf(&b->key, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(cluster));
    struct str name = buf_str(&b->key);
    struct cluster_state *cs = map_find(&b->by_cluster, name);
    if (cs != NULL) {
        return cs;
    }
    cs = alloc_bytes(sizeof(*cs) + name.n + 1);
    memcpy(cs->text, name.p, name.n);
    cs->bridge = b;
    cs->name = (struct str){ .p = cs->text, .n = name.n };
    cs->namespace = str_sub(cs->name, 0, namespace.n);
    cs->cluster = str_sub(cs->name, namespace.n + 1, cluster.n);
    list_init(&cs->machines);
    cs->backoff = (struct backoff){ .base = BRIDGE_FAILED_BASE, .max = BRIDGE_FAILED_MAX };
    loop_timer_init(&cs->recheck, b->loop, cluster_on_recheck, cs);
    (void)map_put(&b->by_cluster, cs->name, cs); /* it was not there */
    return cs;
}

void cluster_free_if_idle(struct cluster_state *cs)
{
    bool idle = cs->link == NULL || link_state(cs->link) == LINK_IDLE;
    if (!idle || !list_empty(&cs->machines)) {
        return;
    }
    cluster_disconnect(cs);
    loop_timer_done(&cs->recheck);
    list_del(&cs->dirty);
    (void)map_del(&cs->bridge->by_cluster, cs->name); /* it is there */
    alloc_free(cs);
}

/* ── Clusters and their Secrets ────────────────────────────────────────────────────────────── */

void cluster_on_change(void *ctx, struct store_item *item, const void *before UNUSED)
{
    struct bridge *b = ctx;
    struct cluster_state *cs = map_find(&b->by_cluster, item->name);
    if (cs != NULL) {
        cluster_mark_machines(cs);
        cluster_recheck_nodes(cs); /* it may have been paused */
    }
}

void cluster_on_gone(void *ctx, struct store_item *item)
{
    cluster_on_change(ctx, item, NULL);
}

/* The Cluster whose kubeconfig the Secret holds; NULL = none that is known. */
static struct cluster_state *cluster_of_secret(struct bridge *b, struct str secret)
{
    struct str name;
    return str_cut_suffix(secret, KUBECONFIG_SUFFIX, &name) ? map_find(&b->by_cluster, name) : NULL;
}

void cluster_on_secret(void *ctx, struct store_item *item, const void *before UNUSED)
{
    struct cluster_state *cs = cluster_of_secret(ctx, item->name);
    if (cs != NULL && cs->link != NULL) {
        link_on_secret(cs->link, item->version);
    }
}

void cluster_on_secret_gone(void *ctx, struct store_item *item)
{
    struct cluster_state *cs = cluster_of_secret(ctx, item->name);
    if (cs != NULL && cs->link != NULL) {
        link_on_secret(cs->link, 0);
    }
}

/* ── links ─────────────────────────────────────────────────────────────────────────────────── */

static void cluster_on_link_state(void *ctx, struct link *l)
{
    struct cluster_state *cs = ctx;
    struct bridge *b = cs->bridge;
    struct link_view view;
    if (link_fresh(l)) {
        bridge_metrics_unreachable(
            &b->series, cs->unreachable_since == 0 ? 0 : loop_now(b->loop) - cs->unreachable_since);
        cs->unreachable_since = 0;
        link_view(l, &view);
        bridge_metrics_listed(&b->series, view.listed);
    } else {
        cs->unreachable_since =
            cs->unreachable_since == 0 ? loop_now(b->loop) : cs->unreachable_since;
        /* Two live reads have to confirm the absence of a Node anew. */
        LIST_EACH (&cs->machines, link) {
            struct machine_state *ms = CONTAINER_OF(link, struct machine_state, link);
            ms->missed_at = 0;
            ms->absent = false;
        }
    }
    cluster_mark_machines(cs);
}

static void cluster_on_node_gone(void *ctx, struct link *l UNUSED, struct str name)
{
    struct cluster_state *cs = ctx;
    struct machine_state *ms = machine_of_node(cs, name);
    if (ms != NULL) {
        machine_mark(ms);
    } else {
        routing_mark_node(cs, name);
    }
}

static bool cluster_may_write(void *ctx)
{
    const struct cluster_state *cs = ctx;
    return bridge_may_act(cs->bridge);
}

static void cluster_on_hang_up(void *ctx, struct link *l UNUSED)
{
    routing_disconnect(ctx);
}

static void cluster_on_nodes(void *ctx, struct link *l UNUSED)
{
    cluster_mark(ctx);
}

static void cluster_new_link(struct cluster_state *cs, const struct cluster *cluster)
{
    struct bridge *b = cs->bridge;
    cs->link = link_new(&(struct link_config){
        .management = &b->client,
        .dialer = b->config.dialer,
        .connects = &b->connects,
        .log = b->log,
        .namespace = cs->namespace,
        .cluster = cs->cluster,
        .uid = cluster->uid,
        .manage = b->config.manage_rbac,
        .pods = b->config.metal3 && b->config.power.require_drained,
        .requests = b->config.by_requests,
        .on_state = cluster_on_link_state,
        .on_gone = cluster_on_node_gone,
        .on_nodes = cluster_on_nodes,
        .on_hang_up = cluster_on_hang_up,
        .may_write = cluster_may_write,
        .ctx = cs,
    });
    if (b->config.by_requests) {
        routing_new(cs);
    }
    buf_reset(&b->key);
    buf_add(&b->key, cs->name);
    buf_add(&b->key, KUBECONFIG_SUFFIX);
    const struct store_item *secret = store_find(&b->secrets.store, buf_str(&b->key));
    if (secret != NULL) {
        link_on_secret(cs->link, secret->version);
    }
}

void cluster_disconnect(struct cluster_state *cs)
{
    if (cs->link != NULL) {
        struct link_view view;
        link_view(cs->link, &view);
        bridge_metrics_link_gone(&cs->bridge->series, &view);
        in_flight_drop_cluster(cs);
        routing_free(cs);
        link_free(STEAL(cs->link));
    }
}

void cluster_update_link(struct cluster_state *cs)
{
    const struct cluster *cluster = cluster_object(cs);
    bool wanted = false;
    bool urgent = false;
    routing_update_watch(cs);
    LIST_EACH (&cs->machines, link) {
        const struct machine_state *ms = CONTAINER_OF(link, struct machine_state, link);
        const struct machine *m = machine_object(ms);
        wanted = wanted || m->enabled || ms->keeps_link;
        urgent = urgent || (m->enabled && m->deleting);
    }
    wanted = wanted || routing_needs_link(cs);
    wanted = wanted && cluster != NULL && cluster->provisioned && cluster_is_ours(cs);
    if (cs->link != NULL && cluster != NULL && !str_eq(link_uid(cs->link), cluster->uid)) {
        cluster_disconnect(cs); /* another Cluster of the same name */
    }
    if (wanted && cs->link == NULL) {
        cluster_new_link(cs, cluster);
    }
    if (wanted && link_state(cs->link) == LINK_IDLE) {
        cs->unreachable_since = loop_now(cs->bridge->loop); /* it was not needed before */
    }
    if (wanted) {
        link_open(cs->link, urgent);
    } else if (cs->link != NULL) {
        link_close(cs->link);
    }
}
