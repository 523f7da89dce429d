/*
 * machine_state: what the bridge keeps of a Machine besides the object itself, and the indexes that
 * find a Machine by its Node, its Metal3 host and its UID.
 */
#include "base/alloc.h"
#include "bridge/bridge_internal.h"

const struct machine *machine_object(const struct machine_state *ms)
{
    return ms->item->object;
}

void machine_mark(struct machine_state *ms)
{
    store_mark(&ms->bridge->machines.store, ms->item);
    bridge_wake(ms->bridge);
}

void machine_wake_at(struct machine_state *ms, usec_t when)
{
    struct bridge *b = ms->bridge;
    if (prioqueue_inside(&ms->wake)) {
        if (ms->at <= when) {
            return;
        }
        prioqueue_take(&b->wake, &ms->wake);
    }
    ms->at = when;
    prioqueue_put(&b->wake, &ms->wake);
    loop_timer_pull(&b->turn, when);
}

struct machine_state *machine_of_node(const struct cluster_state *cs, struct str node)
{
    struct bridge *b = cs->bridge;
    buf_reset(&b->key);
    buf_printf(&b->key, STR_FMT "/" STR_FMT, STR_ARG(cs->name), STR_ARG(node));
    return map_find(&b->by_node, buf_str(&b->key));
}

struct machine_state *machine_of_request(const struct bridge *b, struct str request)
{
    struct str uid;
    struct str number;
    (void)str_cut(request, STR("/"), &uid, &number); /* that of a deletion has no number */
    return map_find(&b->by_uid, uid);
}

/* ── which Node and which host belong to a Machine ─────────────────────────────────────────── */

/* Another Machine that names the same Node; it is of the same cluster. */
static struct machine_state *machine_same_node(const struct machine_state *ms, struct str key)
{
    LIST_EACH (&ms->cluster->machines, link) {
        struct machine_state *other = CONTAINER_OF(link, struct machine_state, link);
        if (other != ms && other->node_key.n > 0 && str_eq(buf_str(&other->node_key), key)) {
            return other;
        }
    }
    return NULL;
}

/* Another Machine, of any cluster, that names the same host. */
static struct machine_state *machine_same_host(const struct machine_state *ms, struct str key)
{
    struct bridge *b = ms->bridge;
    if (b->host_duplicates == 0) {
        return NULL; /* the normal case, without a search through all Machines */
    }
    MAP_EACH (&b->machines.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        struct machine_state *other = item->extra;
        if (other != NULL && other != ms && other->host.n > 0 &&
            str_eq(buf_str(&other->host), key)) {
            return other;
        }
    }
    return NULL;
}

bool machine_owns_node(const struct machine_state *ms)
{
    return ms->node_key.n > 0 && map_find(&ms->bridge->by_node, buf_str(&ms->node_key)) == ms;
}

/* Takes a Machine out of an index. Another Machine that names the same Node or host takes over. */
static void machine_unindex(struct machine_state *ms, struct map *index, struct buf *key)
{
    struct bridge *b = ms->bridge;
    struct str place = buf_str(key);
    bool hosts = index == &b->by_host;
    if (key->n > 0 && map_find(index, place) == ms) {
        struct machine_state *next =
            hosts ? machine_same_host(ms, place) : machine_same_node(ms, place);
        (void)map_del(index, place); /* it is there */
        if (next != NULL) {
            machine_mark(next);
            (void)map_put(index, place, next); /* its place is free */
            b->host_duplicates -= hosts ? 1 : 0;
        }
    } else if (hosts && key->n > 0) {
        b->host_duplicates--;
    }
    buf_reset(key);
}

/* The first Machine that names a Node or a host has it. */
static void machine_index(struct machine_state *ms, struct map *index, const struct buf *key)
{
    if (key->n > 0 && map_find(index, buf_str(key)) == NULL) {
        (void)map_put(index, buf_str(key), ms); /* nobody was there */
    } else if (key->n > 0 && index == &ms->bridge->by_host) {
        ms->bridge->host_duplicates++;
    }
}

/* The Node is looked at in the next turn, which finds that it has no Machine any more. */
static void machine_mark_old_node(struct machine_state *ms, struct str node)
{
    struct link *link = ms->cluster->link;
    if (link == NULL || !link_fresh(link) || node.n == 0) {
        return;
    }
    struct store_item *item = store_find(link_nodes(link), node);
    if (item != NULL) {
        store_mark(link_nodes(link), item);
        cluster_mark(ms->cluster);
    }
}

static void machine_reindex(struct machine_state *ms, const struct machine *before)
{
    struct bridge *b = ms->bridge;
    const struct machine *m = machine_object(ms);
    if (before == NULL || !str_eq(before->node, m->node)) {
        if (before != NULL) {
            machine_mark_old_node(ms, before->node);
        }
        machine_unindex(ms, &b->by_node, &ms->node_key);
        if (before != NULL) {
            routing_mark_node(ms->cluster, before->node);
        }
        if (m->node.n > 0) {
            buf_printf(&ms->node_key, STR_FMT "/" STR_FMT, STR_ARG(ms->cluster->name),
                       STR_ARG(m->node));
        }
        machine_index(ms, &b->by_node, &ms->node_key);
        ms->missed_at = 0;
        ms->absent = false;
    }
    if (b->config.metal3 && (before == NULL || !str_eq(before->provider_id, m->provider_id))) {
        if (before != NULL) {
            metal3_recheck(b); /* the host before may be switched off for this Machine */
        }
        machine_unindex(ms, &b->by_host, &ms->host);
        struct metal3_id host = metal3_id_parse(m->provider_id);
        if (host.form == METAL3_ID_NAMED) {
            buf_printf(&ms->host, STR_FMT "/" STR_FMT, STR_ARG(host.namespace), STR_ARG(host.name));
        } else if (host.form == METAL3_ID_UID) {
            buf_add(&ms->host, host.uid);
        }
        machine_index(ms, &b->by_host, &ms->host);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static struct machine_state *machine_state_new(struct bridge *b, struct store_item *item)
{
    struct machine_state *ms = ALLOC_NEW(struct machine_state);
    const struct machine *m = item->object;
    ms->bridge = b;
    ms->item = item;
    for (uint32_t i = 0; i < WRITE_OBJECTS; i++) {
        in_flight_init_writer(&ms->writers[i], b, (enum in_flight_kind)i);
    }
    ms->cluster = cluster_get(b, m->namespace, m->cluster);
    list_add(&ms->cluster->machines, &ms->link);
    item->extra = ms;
    (void)map_put(&b->by_uid, m->uid, ms); /* a UID is nobody else's */
    return ms;
}

static void machine_state_free(struct machine_state *ms)
{
    struct bridge *b = ms->bridge;
    struct cluster_state *cs = ms->cluster;
    const struct machine *m = machine_object(ms);
    for (size_t i = 0; i < IN_FLIGHT_KINDS; i++) {
        if (ms->in_flight[i] != NULL) {
            ms->in_flight[i]->machine = NULL;
        }
    }
    machine_mark_old_node(ms, m->node);
    machine_unindex(ms, &b->by_node, &ms->node_key);
    routing_mark_node(cs, m->node);
    if (b->config.metal3) {
        metal3_recheck(b); /* a host may be switched off for this Machine */
    }
    machine_unindex(ms, &b->by_host, &ms->host);
    if (map_find(&b->by_uid, m->uid) == ms) {
        (void)map_del(&b->by_uid, m->uid); /* it is there */
    }
    if (prioqueue_inside(&ms->wake)) {
        prioqueue_take(&b->wake, &ms->wake);
    }
    list_del(&ms->link);
    buf_done(&ms->node_key);
    buf_done(&ms->host);
    buf_done(&ms->not_drained_why);
    ms->item->extra = NULL;
    alloc_free(ms);
    cluster_mark(cs);
}

void machine_mark_control_plane(struct machine_state *ms)
{
    LIST_EACH (&ms->cluster->machines, link) {
        struct machine_state *other = CONTAINER_OF(link, struct machine_state, link);
        const struct machine *m = machine_object(other);
        if (other != ms && m->control_plane && m->request == MACHINE_REQUEST_REQUESTED) {
            machine_mark(other);
        }
    }
}

void machine_on_change(void *ctx, struct store_item *item, const void *before)
{
    struct bridge *b = ctx;
    const struct machine *m = item->object;
    const struct machine *was = before;
    struct machine_state *ms = item->extra;
    if (ms != NULL && (!str_eq(was->cluster, m->cluster) || !str_eq(was->uid, m->uid))) {
        /* Another Machine of the same name; the deletion of the one before was not seen. Its state
         * is freed while item->object is still the old Machine, by which the indexes know it. */
        item->object = (void *)(uintptr_t)was;
        machine_state_free(ms);
        item->object = (void *)(uintptr_t)m;
        ms = NULL;
    }
    if (ms == NULL) {
        ms = machine_state_new(b, item);
        was = NULL;
    }
    machine_reindex(ms, was);
    if (m->control_plane) {
        machine_mark_control_plane(ms);
    }
    cluster_mark(ms->cluster);
}

void machine_on_gone(void *ctx UNUSED, struct store_item *item)
{
    struct machine_state *ms = item->extra;
    if (ms == NULL) {
        return;
    }
    if (machine_object(ms)->control_plane) {
        machine_mark_control_plane(ms);
    }
    machine_state_free(ms);
}
