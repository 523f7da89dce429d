/*
 * approval_routing: watches and writes the bridge's MaintenanceRequests in a workload cluster, as
 * approval_route.c decides. Each write is decided again from what the watch shows.
 */
#include "base/alloc.h"
#include "bridge/bridge_internal.h"
#include "bridge/approval_route.h"
#include "kinds/keys.h"

/* ── what is watched ───────────────────────────────────────────────────────────────────────── */

static void routing_on_timer(void *ctx)
{
    struct approval_routing *r = ctx;
    cluster_mark(r->cluster);
    if (!r->open) {
        return;
    }
    MAP_EACH (&r->informer.store.items, entry) {
        store_mark(&r->informer.store, map_item_value(entry)); /* one may have to be tried again */
    }
}

static void routing_on_update(void *ctx)
{
    struct approval_routing *r = ctx;
    cluster_mark(r->cluster);
}

static void routing_on_error(void *ctx, const struct err *err)
{
    struct approval_routing *r = ctx;
    struct bridge *b = r->cluster->bridge;
    r->kind_missing = r->kind_missing || r->informer.reflector.status == 404;
    if (!r->warned && r->state != ROUTING_ABSENT) {
        log_warn(b->log, "maintenance requests of a workload cluster",
                 KV_STR("cluster", r->cluster->name), KV_ERR(err));
    }
    r->warned = true;
    if (err->code == ERR_LIMIT) {
        link_exceed(r->cluster->link, err);
    }
    cluster_mark(r->cluster);
}

static void routing_on_gone(void *ctx, struct store_item *item)
{
    struct approval_routing *r = ctx;
    const struct maintenance_request *p = item->object;
    struct machine_state *ms = machine_of_node(r->cluster, workload_request_node(p));
    if (ms != NULL) {
        machine_mark(ms);
    }
}

static void routing_open(struct approval_routing *r)
{
    informer_init(&r->informer, &(struct informer_config){
                                    .client = link_client(r->cluster->link),
                                    .kind = &workload_request_kind,
                                    .query = STR(WORKLOAD_REQUEST_QUERY),
                                    .bytes_max = LINK_REQUESTS_BYTES_MAX,
                                    .on_gone = routing_on_gone,
                                    .on_update = routing_on_update,
                                    .on_error = routing_on_error,
                                    .ctx = r,
                                });
    r->open = true;
    r->machines_marked = false;
    r->kind_missing = false;
    r->awaited = 0;
    informer_start(&r->informer, STR(MAINTENANCE_REQUESTS_PATH));
}

static void routing_close(struct approval_routing *r)
{
    if (r->open) {
        r->informer.store.on_gone = NULL;
        informer_done(&r->informer);
        r->informer = (struct informer){ 0 };
        r->open = false;
        r->machines_marked = false;
    }
}

void routing_new(struct cluster_state *cs)
{
    struct approval_routing *r = ALLOC_NEW(struct approval_routing);
    r->cluster = cs;
    in_flight_init_writer(&r->writer, cs->bridge, IN_FLIGHT_REQUEST);
    loop_timer_init(&r->timer, cs->bridge->loop, routing_on_timer, r);
    cs->routing = r;
}

void routing_free(struct cluster_state *cs)
{
    struct approval_routing *r = STEAL(cs->routing);
    if (r != NULL) {
        routing_close(r);
        loop_timer_done(&r->timer);
        alloc_free(r);
    }
}

void routing_disconnect(struct cluster_state *cs)
{
    struct approval_routing *r = cs->routing;
    if (r != NULL) {
        routing_close(r);
        cluster_mark(cs);
    }
    if (r != NULL && !link_fresh(cs->link)) { /* otherwise another connection follows at once */
        r->state = ROUTING_UNKNOWN;
        r->missed_at = 0;
        r->warned = false;
    }
}

/* ── what is known ─────────────────────────────────────────────────────────────────────────── */

/* All MaintenanceRequests of the bridge in that cluster are known. */
static bool routing_complete(const struct approval_routing *r)
{
    return r->open && r->informer.synced;
}

/* The watch may not have brought what was written. */
static bool routing_lags(const struct approval_routing *r)
{
    return r->in_flight > 0 || r->unsure_until > loop_now(r->cluster->bridge->loop) ||
           (r->open && r->informer.store.version_max < r->awaited);
}

static bool routing_any_open(const struct approval_routing *r, struct str node)
{
    MAP_EACH (&r->informer.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct maintenance_request *p = item->object;
        if (workload_request_is_open(p) && (node.n == 0 || str_eq(p->target, node))) {
            return true;
        }
    }
    return false;
}

void routing_facts(const struct machine_state *ms, struct rules_facts *ret)
{
    const struct approval_routing *r = ms->cluster->routing;
    const struct machine *m = machine_object(ms);
    if (r == NULL) {
        return;
    }
    ret->routed = r->state == ROUTING_SERVED;
    if (m->node.n > 0) {
        ret->maybe_open = r->state == ROUTING_UNKNOWN || routing_lags(r) ||
                          (routing_complete(r) ? routing_any_open(r, m->node) : r->maybe_open);
    }
    /* Whether the limits manage the Node is not known. Without a state label the Node would look as
     * if nobody managed it, and the hook would go (B1); so the Node counts as unknown. */
    if (m->enabled && r->state == ROUTING_UNKNOWN && ret->sight == RULES_NODE_SEEN &&
        !ret->node->managed) {
        ret->sight = RULES_NODE_UNKNOWN;
        ret->node = NULL;
    }
}

bool routing_needs_link(const struct cluster_state *cs)
{
    return cs->routing != NULL && cs->routing->maybe_open;
}

void routing_mark_node(struct cluster_state *cs, struct str node)
{
    struct approval_routing *r = cs->routing;
    if (r == NULL || !r->open || node.n == 0) {
        return;
    }
    MAP_EACH (&r->informer.store.items, entry) {
        struct store_item *item = map_item_value(entry);
        const struct maintenance_request *p = item->object;
        if (workload_request_is_open(p) && str_eq(p->target, node)) {
            store_mark(&r->informer.store, item);
        }
    }
    cluster_mark(cs);
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

void routing_on_write(const struct in_flight *f, const struct api_reply *reply,
                      enum retry_verdict verdict, const struct jval *object)
{
    struct approval_routing *r = f->cluster->routing;
    bool creates = f->version == 0;
    r->in_flight--;
    if (reply->status == 0) {
        r->maybe_open = true;
        r->unsure_until = loop_now(f->bridge->loop) + ROUTING_UNSURE;
    }
    if (creates && verdict == RETRY_DONE) {
        /* No other one is created until the watch has brought this one. */
        r->awaited = MAX(r->awaited, store_version(object));
    }
    if (creates && f->machine != NULL && verdict == RETRY_DONE) {
        f->machine->request_name_skip = 0;
    } else if (creates && f->machine != NULL && verdict == RETRY_OBSERVE) {
        f->machine->request_name_skip++; /* the name is taken, unless the watch shows it is ours */
    }
}

static void routing_write(struct in_flight *f, enum api_verb verb)
{
    f->cluster->routing->in_flight++;
    in_flight_write(f, verb);
}

static void routing_create(struct machine_state *ms, const struct approval_verdict *verdict)
{
    struct bridge *b = ms->bridge;
    struct mrequest_new new = {
        .client = STR(WORKLOAD_REQUEST_CLIENT),
        .target = { .type = STR("node"), .name = machine_object(ms)->node },
        .reason = str_from(verdict->reason),
        .bridge_request = verdict->request,
    };
    struct str stem = request_name_stem(new.client, &new.target, &b->tmp);
    uint32_t highest = 0;
    MAP_EACH (&ms->cluster->routing->informer.store.items, entry) {
        highest = MAX(highest, request_name_number(map_item_name(entry), stem));
    }
    uint32_t number = highest < UINT32_MAX / 2 ? highest + 1 + ms->request_name_skip : 1;
    new.name = arena_printf(&b->tmp, STR_FMT "%u", STR_ARG(stem), number);
    buf_reset(&b->path);
    buf_add(&b->path, STR(MAINTENANCE_REQUESTS_PATH));
    buf_reset(&b->body);
    mrequest_print_new(&new, &b->body);
    routing_write(in_flight_new(b, IN_FLIGHT_REQUEST, ms, ms->cluster, new.name), API_POST);
}

static void routing_set_state(struct cluster_state *cs, struct machine_state *ms,
                              const struct store_item *item, enum mrequest_state state)
{
    struct bridge *b = cs->bridge;
    struct in_flight *f = in_flight_new(b, IN_FLIGHT_REQUEST, ms, cs, item->name);
    f->version = item->version;
    buf_reset(&b->path);
    buf_add(&b->path, STR(MAINTENANCE_REQUESTS_PATH "/"));
    client_add_segment(&b->path, item->name);
    buf_reset(&b->body);
    const struct maintenance_request *p = item->object;
    uint64_t version = in_flight_patch_version(f);
    const struct mrequest_change change = {
        .version =
            version == 0 ? STR_NONE : arena_printf(&b->tmp, "%llu", (unsigned long long)version),
        .uid = p->uid,
        .state = state,
    };
    mrequest_print_change(&change, &b->body);
    routing_write(f, API_PATCH);
}

/* ── deciding ──────────────────────────────────────────────────────────────────────────────── */

/* The open MaintenanceRequests of one Node. */
struct routing_requests {
    const struct maintenance_request **requests;
    struct store_item **items;
    uint32_t n;
};

static void routing_collect(const struct approval_routing *r, struct str node, struct arena *tmp,
                            struct routing_requests *ret)
{
    uint32_t cap = 0;
    uint32_t items_cap = 0;
    *ret = (struct routing_requests){ 0 };
    MAP_EACH (&r->informer.store.items, entry) {
        struct store_item *item = map_item_value(entry);
        const struct maintenance_request *p = item->object;
        if (workload_request_is_open(p) && str_eq(p->target, node)) {
            ARENA_GROW(tmp, ret->requests, ret->n, cap);
            ARENA_GROW(tmp, ret->items, ret->n, items_cap);
            ret->requests[ret->n] = p;
            ret->items[ret->n++] = item;
        }
    }
}

/* Several Clusters may share one API server: the Machine may belong to another Cluster. */
static bool routing_is_foreign(const struct cluster_state *cs, const struct maintenance_request *p)
{
    const struct machine_state *owner = machine_of_request(cs->bridge, p->machine_request);
    return owner != NULL && owner->cluster != cs;
}

/* Completes a MaintenanceRequest whose Machine is gone, once the Node does not carry the request.
 */
static void routing_end_orphan(struct cluster_state *cs, struct store_item *item)
{
    struct bridge *b = cs->bridge;
    struct approval_routing *r = cs->routing;
    const struct maintenance_request *p = item->object;
    const struct cluster *cluster = cluster_object(cs);
    const struct store_item *node = store_find(link_nodes(cs->link), p->target);
    if (cluster == NULL || cluster->paused || !bridge_may_act(b) || routing_is_foreign(cs, p)) {
        return;
    }
    const struct approval_facts facts = {
        .node = node == NULL ? NULL : node->object,
        .name = p->target,
        .requests = &p,
        .n = 1,
    };
    struct approval_verdict verdict;
    approval_decide(&facts, &verdict);
    if (verdict.act != APPROVAL_COMPLETE || in_flight_exists(cs, IN_FLIGHT_REQUEST, item->name)) {
        return;
    }
    if (loop_now(b->loop) < r->writer.retry_at) {
        return; /* routing_on_timer marks it again */
    }
    routing_set_state(cs, NULL, item, MR_STATE_COMPLETED);
}

static void routing_mark_changed(struct cluster_state *cs)
{
    struct store_item *item;
    while ((item = store_take(&cs->routing->informer.store)) != NULL) {
        const struct maintenance_request *p = item->object;
        struct str node = workload_request_node(p);
        if (node.n == 0) {
            continue;
        }
        struct machine_state *ms = machine_of_node(cs, node);
        if (ms != NULL) {
            machine_mark(ms);
        } else if (workload_request_is_open(p)) {
            routing_end_orphan(cs, item);
        }
    }
}

static void routing_on_kind_missing(struct approval_routing *r)
{
    struct bridge *b = r->cluster->bridge;
    usec_t now = loop_now(b->loop);
    r->kind_missing = false;
    if (!kind_is_absent(&r->missed_at, now) && r->state != ROUTING_ABSENT) {
        return;
    }
    routing_close(r);
    r->state = ROUTING_ABSENT;
    r->maybe_open = false;
    r->recheck_at = now + ROUTING_RECHECK;
    cluster_mark_machines(r->cluster);
}

void routing_check(struct cluster_state *cs)
{
    struct approval_routing *r = cs->routing;
    if (r == NULL || !r->open) {
        return;
    }
    if (r->kind_missing) {
        routing_on_kind_missing(r);
    }
    if (!routing_complete(r)) {
        return;
    }
    if (!r->machines_marked) {
        r->machines_marked = true;
        r->state = ROUTING_SERVED;
        r->missed_at = 0;
        r->warned = false;
        cluster_mark_machines(cs);
        cluster_recheck_nodes(cs); /* approvals on Nodes without a Machine are ours to remove */
    }
    routing_mark_changed(cs);
}

static void routing_send(struct machine_state *ms, const struct approval_verdict *verdict,
                         const struct routing_requests *found)
{
    if (verdict->act == APPROVAL_NONE || !bridge_may_act(ms->bridge) ||
        !in_flight_may_write(ms, IN_FLIGHT_REQUEST, 0)) {
        return;
    }
    if (verdict->act == APPROVAL_CREATE) {
        routing_create(ms, verdict);
    } else {
        ASSERT(found->items != NULL);
        ASSERT(verdict->which < found->n);
        routing_set_state(ms->cluster, ms, found->items[verdict->which],
                          verdict->act == APPROVAL_START ? MR_STATE_IN_PROGRESS
                                                         : MR_STATE_COMPLETED);
    }
}

void routing_step(struct machine_state *ms, const struct rules_facts *facts,
                  struct rules_verdict *verdict)
{
    struct approval_routing *r = ms->cluster->routing;
    bool known = facts->sight != RULES_NODE_UNKNOWN;
    if (r == NULL || !machine_owns_node(ms) || verdict->read_only || !known ||
        r->state != ROUTING_SERVED) {
        return; /* needs_routing stays: a MaintenanceRequest may be open */
    }
    struct routing_requests found = { 0 };
    struct approval_verdict route;
    bool complete = routing_complete(r);
    if (complete) {
        routing_collect(r, facts->machine->node, &ms->bridge->tmp, &found);
    }
    const struct approval_facts known_facts = {
        .machine = facts->machine,
        .node = facts->node,
        .name = facts->machine->node,
        .requests = found.requests,
        .n = found.n,
    };
    approval_decide(&known_facts, &route);
    bool needs_routing =
        route.needs_watch || route.node.n > 0 || ms->in_flight[IN_FLIGHT_REQUEST] != NULL;
    if (needs_routing != ms->needs_routing) {
        ms->needs_routing = needs_routing;
        cluster_mark(ms->cluster);
    }
    if (!complete || verdict->node.n > 0) {
        return; /* the patch of the rules goes first; its reply marks the Machine again */
    }
    if (route.act != APPROVAL_CREATE || !routing_lags(r)) {
        routing_send(ms, &route, &found);
    }
    verdict->node = route.node;
}

const struct store_item *routing_request(const struct machine_state *ms)
{
    const struct approval_routing *r = ms->cluster->routing;
    const struct machine *m = machine_object(ms);
    if (r == NULL || !r->open || m->node.n == 0) {
        return NULL;
    }
    MAP_EACH (&r->informer.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct maintenance_request *p = item->object;
        if (workload_request_is_open(p) && str_eq(p->target, m->node) &&
            machine_of_request(ms->bridge, p->machine_request) == ms) {
            return item;
        }
    }
    return NULL;
}

/* One timer for three times; it is set anew after each turn. */
static void routing_set_timer(struct approval_routing *r, usec_t now)
{
    const usec_t times[] = { r->unsure_until, r->writer.retry_at,
                             r->state == ROUTING_ABSENT && !r->open ? r->recheck_at : 0 };
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        if (times[i] > now) {
            loop_timer_pull(&r->timer, times[i]);
        }
    }
}

void routing_update_watch(struct cluster_state *cs)
{
    struct approval_routing *r = cs->routing;
    usec_t now = loop_now(cs->bridge->loop);
    if (r == NULL || cs->link == NULL || !link_fresh(cs->link)) {
        return;
    }
    bool wanted =
        r->state == ROUTING_UNKNOWN || (r->state == ROUTING_ABSENT && now >= r->recheck_at);
    bool open_now = false; /* a MaintenanceRequest is open, or may be */
    if (r->state != ROUTING_ABSENT) {
        open_now = routing_lags(r) ||
                   (routing_complete(r) ? routing_any_open(r, STR_NONE) : r->maybe_open);
        LIST_EACH (&cs->machines, link) {
            wanted = wanted || CONTAINER_OF(link, struct machine_state, link)->needs_routing;
        }
    }
    if (r->open && r->state == ROUTING_ABSENT) {
        wanted = true; /* until the server has answered */
    }
    if (open_now != r->maybe_open && routing_complete(r)) {
        r->maybe_open = open_now;
        cluster_mark_machines(cs); /* a Machine that is not enabled any more may wait for it */
    }
    if ((wanted || open_now) && !r->open) {
        routing_open(r);
    } else if (!wanted && !open_now && routing_complete(r)) {
        routing_close(r);
    }
    routing_set_timer(r, now);
}
