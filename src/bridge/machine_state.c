#include "base/alloc.h"
#include "base/sha256.h"
#include "bridge/bridge_internal.h"
#include "kinds/keys.h"

#define KUBECONFIG_SUFFIX STR("-kubeconfig") /* of the Secret's name, behind the Cluster's */

const struct machine *berth_machine(const struct berth *at)
{
    return at->item->object;
}

void berth_mark(struct berth *at)
{
    store_mark(&at->bridge->machines.store, at->item);
    bridge_wake(at->bridge);
}

void berth_later(struct berth *at, usec_t when)
{
    struct bridge *b = at->bridge;
    if (prioqueue_inside(&at->later)) {
        if (at->at <= when) {
            return;
        }
        prioqueue_take(&b->later, &at->later);
    }
    at->at = when;
    prioqueue_put(&b->later, &at->later);
    loop_timer_pull(&b->turn, when);
}

/* ── yards ─────────────────────────────────────────────────────────────────────────────────── */

const struct cluster *yard_cluster(const struct yard *y)
{
    const struct store_item *item = store_find(&y->bridge->clusters.store, y->name);
    return item == NULL ? NULL : item->object;
}

bool yard_is_ours(const struct yard *y)
{
    const struct bridge_config *config = &y->bridge->config;
    if (config->shards <= 1) {
        return true;
    }
    const struct cluster *cluster = yard_cluster(y);
    if (cluster == NULL) {
        return config->shard == 0; /* somebody has to see to what a Cluster left behind */
    }
    unsigned char hash[SHA256_BYTES];
    uint64_t number = 0;
    sha256(cluster->uid, hash);
    for (size_t i = 0; i < sizeof(number); i++) {
        number = number << 8 | hash[i];
    }
    return number % config->shards == config->shard;
}

void yard_stir(struct yard *y)
{
    if (!list_linked(&y->link_dirty)) {
        list_add(&y->bridge->stirred, &y->link_dirty);
    }
    bridge_wake(y->bridge);
}

void yard_mark_all(struct yard *y)
{
    LIST_EACH (&y->berths, link) {
        berth_mark(CONTAINER_OF(link, struct berth, link));
    }
    yard_stir(y);
}

void yard_review(struct yard *y)
{
    if (y->link == NULL || !link_fresh(y->link)) {
        return; /* a new connection brings all of them */
    }
    MAP_EACH (&link_nodes(y->link)->items, entry) {
        struct store_item *item = map_item_value(entry);
        if (peer_marked(item->object)) {
            store_mark(link_nodes(y->link), item);
        }
    }
    yard_stir(y);
}

static void yard_on_review(void *ctx)
{
    yard_review(ctx);
}

void yard_review_later(struct yard *y)
{
    struct loop *loop = y->bridge->loop;
    if (!y->review.armed) {
        loop_timer_set(&y->review, loop_now(loop) + backoff_next(&y->backoff, loop_random(loop)));
    }
}

static struct yard *yard_get(struct bridge *b, struct str space, struct str cluster)
{
    buf_reset(&b->key);
    buf_printf(&b->key, STR_FMT "/" STR_FMT, STR_ARG(space), STR_ARG(cluster));
    struct str name = buf_str(&b->key);
    struct yard *y = map_find(&b->yards, name);
    if (y != NULL) {
        return y;
    }
    y = alloc_bytes(sizeof(*y) + name.n + 1);
    memcpy(y->text, name.p, name.n);
    y->bridge = b;
    y->name = (struct str){ .p = y->text, .n = name.n };
    y->space = str_sub(y->name, 0, space.n);
    y->cluster = str_sub(y->name, space.n + 1, cluster.n);
    list_init(&y->berths);
    y->backoff = (struct backoff){ .base = BRIDGE_FAILED_BASE, .max = BRIDGE_FAILED_MAX };
    loop_timer_init(&y->review, b->loop, yard_on_review, y);
    (void)map_put(&b->yards, y->name, y); /* it was not there */
    return y;
}

void yard_tidy(struct yard *y)
{
    bool idle = y->link == NULL || link_state(y->link) == LINK_IDLE;
    if (!idle || !list_empty(&y->berths)) {
        return;
    }
    yard_cut(y);
    loop_timer_done(&y->review);
    list_del(&y->link_dirty);
    (void)map_del(&y->bridge->yards, y->name); /* it is there */
    alloc_free(y);
}

/* ── which Node and which host belong to a Machine ─────────────────────────────────────────── */

/* Another one that names the same Node: of the same cluster, since each has its own. */
static struct berth *berth_next_at_node(const struct berth *at, struct str key)
{
    LIST_EACH (&at->yard->berths, link) {
        struct berth *other = CONTAINER_OF(link, struct berth, link);
        if (other != at && other->pair.n > 0 && str_eq(buf_str(&other->pair), key)) {
            return other;
        }
    }
    return NULL;
}

/* Another one that names the same host, of whatever cluster. */
static struct berth *berth_next_at_host(const struct berth *at, struct str key)
{
    struct bridge *b = at->bridge;
    if (b->crowd == 0) {
        return NULL; /* as it should be, and then nobody is looked for among all of them */
    }
    MAP_EACH (&b->machines.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        struct berth *other = item->extra;
        if (other != NULL && other != at && other->host.n > 0 &&
            str_eq(buf_str(&other->host), key)) {
            return other;
        }
    }
    return NULL;
}

/* Takes a berth out of an index; another one that was kept out of its place gets it. */
static void berth_leave(struct berth *at, struct map *index, struct buf *key, bool *in)
{
    struct bridge *b = at->bridge;
    bool hosts = index == &b->by_host;
    if (*in) {
        struct str place = buf_str(key);
        struct berth *next = hosts ? berth_next_at_host(at, place) : berth_next_at_node(at, place);
        (void)map_del(index, place); /* it is there */
        *in = false;
        if (next != NULL) {
            berth_mark(next);
            *(hosts ? &next->hosted : &next->paired) = true;
            (void)map_put(index, place, next); /* its place is free */
            b->crowd -= hosts ? 1 : 0;
        }
    } else if (hosts && key->n > 0) {
        b->crowd--;
    }
    buf_reset(key);
}

static void berth_enter(struct berth *at, struct map *index, struct buf *key, bool *in)
{
    if (key->n > 0 && map_find(index, buf_str(key)) == NULL) {
        (void)map_put(index, buf_str(key), at); /* nobody was there */
        *in = true;
    } else if (key->n > 0 && index == &at->bridge->by_host) {
        at->bridge->crowd++;
    }
}

/* The Node's next look finds that it has no Machine any more. */
static void berth_orphan_node(struct berth *at, struct str node)
{
    struct link *link = at->yard->link;
    if (link == NULL || !link_fresh(link) || node.n == 0) {
        return;
    }
    struct store_item *item = store_find(link_nodes(link), node);
    if (item != NULL) {
        store_mark(link_nodes(link), item);
        yard_stir(at->yard);
    }
}

static void berth_index(struct berth *at, const struct machine *before)
{
    struct bridge *b = at->bridge;
    const struct machine *m = berth_machine(at);
    if (before == NULL || !str_eq(before->node, m->node)) {
        if (before != NULL) {
            berth_orphan_node(at, before->node);
        }
        berth_leave(at, &b->pairs, &at->pair, &at->paired);
        if (before != NULL) {
            routing_stir(at->yard, before->node);
        }
        if (m->node.n > 0) {
            buf_printf(&at->pair, STR_FMT "/" STR_FMT, STR_ARG(at->yard->name), STR_ARG(m->node));
        }
        berth_enter(at, &b->pairs, &at->pair, &at->paired);
        at->missed_at = 0;
        at->absent = false;
    }
    if (b->config.metal3 && (before == NULL || !str_eq(before->provider, m->provider))) {
        if (before != NULL) {
            hosts_review(b); /* perhaps the one before is switched off for this Machine */
        }
        berth_leave(at, &b->by_host, &at->host, &at->hosted);
        struct power_host host = power_host_of(m->provider);
        if (host.form == POWER_NAMED) {
            buf_printf(&at->host, STR_FMT "/" STR_FMT, STR_ARG(host.space), STR_ARG(host.name));
        } else if (host.form == POWER_UID) {
            buf_add(&at->host, host.uid);
        }
        berth_enter(at, &b->by_host, &at->host, &at->hosted);
    }
}

/* ── berths ────────────────────────────────────────────────────────────────────────────────── */

static struct berth *berth_new(struct bridge *b, struct store_item *item)
{
    struct berth *at = ALLOC_NEW(struct berth);
    const struct machine *m = item->object;
    at->bridge = b;
    at->item = item;
    at->yard = yard_get(b, m->space, m->cluster);
    list_add(&at->yard->berths, &at->link);
    item->extra = at;
    (void)map_put(&b->by_uid, m->uid, at); /* a UID is nobody else's */
    return at;
}

static void berth_free(struct berth *at)
{
    struct bridge *b = at->bridge;
    struct yard *y = at->yard;
    const struct machine *m = berth_machine(at);
    struct crossing *const ways[] = { at->to_machine, at->to_node, at->to_host,
                                      at->probe,      at->survey,  at->to_plea };
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        if (ways[i] != NULL) {
            ways[i]->berth = NULL;
        }
    }
    berth_orphan_node(at, m->node);
    berth_leave(at, &b->pairs, &at->pair, &at->paired);
    routing_stir(y, m->node);
    if (b->config.metal3) {
        hosts_review(b); /* perhaps one is switched off, for nobody now */
    }
    berth_leave(at, &b->by_host, &at->host, &at->hosted);
    if (map_find(&b->by_uid, m->uid) == at) {
        (void)map_del(&b->by_uid, m->uid); /* it is there */
    }
    if (prioqueue_inside(&at->later)) {
        prioqueue_take(&b->later, &at->later);
    }
    list_del(&at->link);
    buf_done(&at->pair);
    buf_done(&at->host);
    buf_done(&at->undrained);
    at->item->extra = NULL;
    alloc_free(at);
    yard_stir(y);
}

void berth_stir_members(struct berth *at)
{
    LIST_EACH (&at->yard->berths, link) {
        struct berth *other = CONTAINER_OF(link, struct berth, link);
        const struct machine *m = berth_machine(other);
        if (other != at && m->control_plane && m->request == MACHINE_REQUEST_REQUESTED) {
            berth_mark(other);
        }
    }
}

void berth_on_change(void *ctx, struct store_item *item, const void *before)
{
    struct bridge *b = ctx;
    const struct machine *m = item->object;
    const struct machine *was = before;
    struct berth *at = item->extra;
    if (at != NULL && (!str_eq(was->cluster, m->cluster) || !str_eq(was->uid, m->uid))) {
        /* Another Machine under the same name, whose deletion was not seen. What is left of the one
         * before is forgotten while it is still what the berth knows. */
        item->object = (void *)(uintptr_t)was;
        berth_free(at);
        item->object = (void *)(uintptr_t)m;
        at = NULL;
    }
    if (at == NULL) {
        at = berth_new(b, item);
        was = NULL;
    }
    berth_index(at, was);
    if (m->control_plane) {
        berth_stir_members(at);
    }
    yard_stir(at->yard);
}

void berth_on_gone(void *ctx UNUSED, struct store_item *item)
{
    struct berth *at = item->extra;
    if (at == NULL) {
        return;
    }
    if (berth_machine(at)->control_plane) {
        berth_stir_members(at);
    }
    berth_free(at);
}

/* ── Clusters and their Secrets ────────────────────────────────────────────────────────────── */

void yard_on_cluster(void *ctx, struct store_item *item, const void *before UNUSED)
{
    struct bridge *b = ctx;
    struct yard *y = map_find(&b->yards, item->name);
    if (y != NULL) {
        yard_mark_all(y);
        yard_review(y); /* it may have been paused */
    }
}

void yard_on_cluster_gone(void *ctx, struct store_item *item)
{
    yard_on_cluster(ctx, item, NULL);
}

/* The yard that a Secret's kubeconfig leads to; NULL = none. */
static struct yard *yard_of_secret(struct bridge *b, struct str secret)
{
    struct str name;
    return str_cut_suffix(secret, KUBECONFIG_SUFFIX, &name) ? map_find(&b->yards, name) : NULL;
}

void yard_on_secret(void *ctx, struct store_item *item, const void *before UNUSED)
{
    struct yard *y = yard_of_secret(ctx, item->name);
    if (y != NULL && y->link != NULL) {
        link_on_secret(y->link, item->version);
    }
}

void yard_on_secret_gone(void *ctx, struct store_item *item)
{
    struct yard *y = yard_of_secret(ctx, item->name);
    if (y != NULL && y->link != NULL) {
        link_on_secret(y->link, 0);
    }
}

/* ── links ─────────────────────────────────────────────────────────────────────────────────── */

static void yard_on_state(void *ctx, struct link *l)
{
    struct yard *y = ctx;
    struct bridge *b = y->bridge;
    struct link_view view;
    if (link_fresh(l)) {
        tally_away(&b->tally, y->away_since == 0 ? 0 : loop_now(b->loop) - y->away_since);
        y->away_since = 0;
        link_view(l, &view);
        tally_listed(&b->tally, view.listed);
    } else {
        y->away_since = y->away_since == 0 ? loop_now(b->loop) : y->away_since;
        /* What two reads were to confirm is open again. */
        LIST_EACH (&y->berths, link) {
            struct berth *at = CONTAINER_OF(link, struct berth, link);
            at->missed_at = 0;
            at->absent = false;
        }
    }
    yard_mark_all(y);
}

static void yard_on_node_gone(void *ctx, struct link *l UNUSED, struct str name)
{
    struct yard *y = ctx;
    struct bridge *b = y->bridge;
    buf_reset(&b->key);
    buf_printf(&b->key, STR_FMT "/" STR_FMT, STR_ARG(y->name), STR_ARG(name));
    struct berth *at = map_find(&b->pairs, buf_str(&b->key));
    if (at != NULL) {
        berth_mark(at);
    } else {
        routing_stir(y, name);
    }
}

static bool yard_may_write(void *ctx)
{
    const struct yard *y = ctx;
    return bridge_acts(y->bridge);
}

static void yard_on_hang_up(void *ctx, struct link *l UNUSED)
{
    routing_hang_up(ctx);
}

static void yard_on_nodes(void *ctx, struct link *l UNUSED)
{
    yard_stir(ctx);
}

static void yard_link(struct yard *y, const struct cluster *cluster)
{
    struct bridge *b = y->bridge;
    y->link = link_new(&(struct link_config){
        .home = &b->client,
        .dialer = b->config.dialer,
        .connects = &b->connects,
        .log = b->log,
        .space = y->space,
        .cluster = y->cluster,
        .uid = cluster->uid,
        .manage = b->config.manage_rbac,
        .pods = b->config.metal3 && b->config.power.require_drained,
        .requests = b->config.by_requests,
        .on_state = yard_on_state,
        .on_gone = yard_on_node_gone,
        .on_nodes = yard_on_nodes,
        .on_hang_up = yard_on_hang_up,
        .may_write = yard_may_write,
        .ctx = y,
    });
    if (b->config.by_requests) {
        routing_begin(y);
    }
    (void)snprintf(y->uid, sizeof(y->uid), STR_FMT, STR_ARG(cluster->uid));
    buf_reset(&b->key);
    buf_add(&b->key, y->name);
    buf_add(&b->key, KUBECONFIG_SUFFIX);
    const struct store_item *secret = store_find(&b->secrets.store, buf_str(&b->key));
    if (secret != NULL) {
        link_on_secret(y->link, secret->version);
    }
}

void yard_cut(struct yard *y)
{
    if (y->link != NULL) {
        struct link_view view;
        link_view(y->link, &view);
        tally_gone(&y->bridge->tally, &view);
        crossing_drop_yard(y);
        routing_free(y);
        link_free(STEAL(y->link));
    }
}

void yard_settle(struct yard *y)
{
    const struct cluster *cluster = yard_cluster(y);
    bool wanted = false;
    bool hurry = false;
    routing_settle(y);
    LIST_EACH (&y->berths, link) {
        const struct berth *at = CONTAINER_OF(link, struct berth, link);
        const struct machine *m = berth_machine(at);
        wanted = wanted || m->enabled || at->keeps_link;
        hurry = hurry || (m->enabled && m->deleting);
    }
    wanted = wanted || routing_owes(y);
    wanted = wanted && cluster != NULL && cluster->provisioned && yard_is_ours(y);
    if (y->link != NULL && cluster != NULL && !str_eq(str_from(y->uid), cluster->uid)) {
        yard_cut(y); /* another Cluster of the same name: nothing that was known is true of it */
    }
    if (wanted && y->link == NULL) {
        yard_link(y, cluster);
    }
    if (wanted && link_state(y->link) == LINK_IDLE) {
        y->away_since = loop_now(y->bridge->loop); /* nobody missed it until now */
    }
    if (wanted) {
        link_open(y->link, hurry);
    } else if (y->link != NULL) {
        link_close(y->link);
    }
}
