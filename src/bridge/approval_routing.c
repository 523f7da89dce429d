#include "base/alloc.h"
#include "bridge/bridge_internal.h"
#include "bridge/approval_route.h"

/* ── what is watched ───────────────────────────────────────────────────────────────────────── */

/* The Machine that has this Node; NULL = none. */
static struct berth *routing_berth(const struct yard *y, struct str node)
{
    struct bridge *b = y->bridge;
    buf_reset(&b->key);
    buf_printf(&b->key, STR_FMT "/" STR_FMT, STR_ARG(y->name), STR_ARG(node));
    return map_find(&b->pairs, buf_str(&b->key));
}

static void routing_on_timer(void *ctx)
{
    struct routing *r = ctx;
    yard_stir(r->yard);
    if (!r->open) {
        return;
    }
    MAP_EACH (&r->supply.store.items, entry) {
        store_mark(&r->supply.store, map_item_value(entry)); /* some may wait to be tried again */
    }
}

static void routing_on_news(void *ctx)
{
    struct routing *r = ctx;
    yard_stir(r->yard);
}

static void routing_on_trouble(void *ctx, const struct err *err)
{
    struct routing *r = ctx;
    struct bridge *b = r->yard->bridge;
    r->missed = r->missed || r->supply.reflector.status == 404;
    if (bridge_logs(b) && !r->warned && r->state != ROUTING_ABSENT) {
        log_warn(b->log, "maintenance requests of a workload cluster",
                 KV_STR("cluster", r->yard->name), KV_ERR(err));
    }
    r->warned = true;
    yard_stir(r->yard);
}

static void routing_on_gone(void *ctx, struct store_item *item)
{
    struct routing *r = ctx;
    const struct plea *p = item->object;
    struct berth *at = routing_berth(r->yard, p->node);
    if (at != NULL) {
        berth_mark(at);
    }
}

static void routing_open(struct routing *r)
{
    supply_init(&r->supply, &(struct supply_config){
                                .client = link_client(r->yard->link),
                                .kind = &plea_kind,
                                .query = STR(PLEA_QUERY),
                                .on_gone = routing_on_gone,
                                .on_news = routing_on_news,
                                .on_trouble = routing_on_trouble,
                                .ctx = r,
                            });
    r->open = true;
    r->told = false;
    r->missed = false;
    r->awaited = 0;
    supply_start(&r->supply, STR(MAINTENANCE_REQUESTS_PATH));
}

static void routing_close(struct routing *r)
{
    if (r->open) {
        r->supply.store.on_gone = NULL;
        supply_done(&r->supply);
        r->supply = (struct supply){ 0 };
        r->open = false;
        r->told = false;
    }
}

void routing_begin(struct yard *y)
{
    struct routing *r = ALLOC_NEW(struct routing);
    r->yard = y;
    loop_timer_init(&r->timer, y->bridge->loop, routing_on_timer, r);
    y->routing = r;
}

void routing_free(struct yard *y)
{
    struct routing *r = STEAL(y->routing);
    if (r != NULL) {
        routing_close(r);
        loop_timer_done(&r->timer);
        alloc_free(r);
    }
}

void routing_hang_up(struct yard *y)
{
    struct routing *r = y->routing;
    if (r != NULL) {
        routing_close(r);
        yard_stir(y);
    }
    if (r != NULL && !link_fresh(y->link)) { /* otherwise another connection follows at once */
        r->state = ROUTING_UNKNOWN;
        r->missed_at = 0;
        r->warned = false;
    }
}

/* ── what is known ─────────────────────────────────────────────────────────────────────────── */

/* All pleas that there are, are known. */
static bool routing_complete(const struct routing *r)
{
    return r->open && r->supply.synced;
}

/* Something that was written may not be known yet. */
static bool routing_behind(const struct routing *r)
{
    return r->in_flight > 0 || r->unsure_until > loop_now(r->yard->bridge->loop) ||
           (r->open && r->supply.store.version_max < r->awaited);
}

static bool routing_any(const struct routing *r, struct str node)
{
    MAP_EACH (&r->supply.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct plea *p = item->object;
        if (plea_open(p) && (node.n == 0 || str_eq(p->node, node))) {
            return true;
        }
    }
    return false;
}

void routing_facts(const struct berth *at, struct rules_facts *ret)
{
    const struct routing *r = at->yard->routing;
    const struct machine *m = berth_machine(at);
    if (r == NULL) {
        return;
    }
    ret->routed = r->state == ROUTING_SERVED;
    if (m->node.n > 0) {
        ret->owed = r->state == ROUTING_UNKNOWN || routing_behind(r) ||
                    (routing_complete(r) ? routing_any(r, m->node) : r->owes);
    }
    /* Whether anybody is there to approve is not known: that must not look like nobody (INV-1). */
    if (m->enabled && r->state == ROUTING_UNKNOWN && ret->sight == RULES_SEEN &&
        !ret->node->managed) {
        ret->sight = RULES_UNKNOWN;
        ret->node = NULL;
    }
}

bool routing_owes(const struct yard *y)
{
    return y->routing != NULL && y->routing->owes;
}

void routing_stir(struct yard *y, struct str node)
{
    struct routing *r = y->routing;
    if (r == NULL || !r->open || node.n == 0) {
        return;
    }
    MAP_EACH (&r->supply.store.items, entry) {
        struct store_item *item = map_item_value(entry);
        const struct plea *p = item->object;
        if (plea_open(p) && str_eq(p->node, node)) {
            store_mark(&r->supply.store, item);
        }
    }
    yard_stir(y);
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void plea_failed(struct crossing *x, const struct api_reply *reply,
                        enum retry_verdict verdict)
{
    struct bridge *b = x->bridge;
    struct routing *r = x->yard->routing;
    struct bridge_retry *retry = x->berth == NULL ? &r->retry : &x->berth->plea_retry;
    struct err err = { 0 };
    client_explain(reply->status, reply->body, reply->err, &err);
    crossing_retry_after(retry, b->loop, verdict);
    if (x->berth != NULL) {
        x->berth->trouble = err;
        berth_later(x->berth, retry->at);
    }
    if (bridge_logs(b) && reply->status != 0) {
        log_warn(b->log, "maintenance request", KV_STR("object", x->name), KV_ERR(&err));
    }
}

/* The watch brings what was made; until then nothing more is made. */
static void plea_made(struct routing *r, const struct api_reply *reply)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *object = crossing_read(reply, &tmp);
    if (object != NULL) {
        r->awaited = MAX(r->awaited, store_version(object));
    }
}

static void plea_taken(struct crossing *x, const struct api_reply *reply)
{
    struct routing *r = x->yard->routing;
    struct bridge_retry *retry = x->berth == NULL ? &r->retry : &x->berth->plea_retry;
    backoff_reset(&retry->backoff);
    retry->at = 0;
    if (x->berth != NULL) {
        x->berth->trouble = (struct err){ 0 };
    }
    if (x->version == 0) {
        plea_made(r, reply);
        if (x->berth != NULL) {
            x->berth->plea_skip = 0;
        }
    } else if (r->open) {
        crossing_learn(&r->supply.store, reply);
    }
}

static void crossing_on_plea(void *ctx, const struct api_reply *reply)
{
    struct crossing *x = ctx;
    struct bridge *b = x->bridge;
    struct routing *r = x->yard->routing;
    enum retry_verdict verdict = retry_judge(reply);
    x->link_call = NULL;
    r->in_flight--;
    crossing_count(x, verdict);
    if (reply->status == 0) {
        r->owes = true;
        r->unsure_until = loop_now(b->loop) + ROUTING_UNSURE;
    }
    if (verdict == RETRY_DONE) {
        plea_taken(x, reply);
    } else if (verdict == RETRY_OBSERVE && x->version > 0) {
        if (r->open) {
            crossing_conflict(x, &r->supply.store);
        }
    } else if (verdict != RETRY_ABSENT || x->version == 0) {
        if (verdict == RETRY_OBSERVE && x->berth != NULL) {
            x->berth->plea_skip++; /* unless it is ours, and the watch shows it by then */
        }
        plea_failed(x, reply, verdict);
    }
    if (x->berth != NULL) {
        berth_mark(x->berth);
    }
    yard_stir(x->yard);
    crossing_free(x);
}

static void plea_send(struct yard *y, struct crossing *x, enum api_verb verb)
{
    struct bridge *b = y->bridge;
    x->yard = y;
    const struct api_request request = {
        .verb = verb,
        .path = buf_str(&b->path),
        .content_type = verb == API_POST ? API_JSON : API_MERGE_PATCH,
        .body = buf_str(&b->body),
    };
    y->routing->in_flight++;
    x->link_call = link_send(y->link, &request, crossing_on_plea, x);
}

static void plea_ask(struct berth *at, const struct route_verdict *verdict)
{
    struct bridge *b = at->bridge;
    struct str node = berth_machine(at)->node;
    const struct request_name of = { STR(PLEA_CLIENT), STR("node"), STR_NONE, node };
    struct str stem = request_name_stem(&of, &b->tmp);
    uint32_t highest = 0;
    MAP_EACH (&at->yard->routing->supply.store.items, entry) {
        highest = MAX(highest, request_name_number(map_item_name(entry), stem));
    }
    uint32_t number = highest < UINT32_MAX / 2 ? highest + 1 + at->plea_skip : 1;
    const struct plea_ask ask = {
        .name = arena_printf(&b->tmp, STR_FMT "%u", STR_ARG(stem), number),
        .node = node,
        .request = verdict->request,
        .reason = str_from(verdict->reason),
    };
    buf_reset(&b->path);
    buf_add(&b->path, STR(MAINTENANCE_REQUESTS_PATH "?fieldManager=" BRIDGE_MANAGER));
    buf_reset(&b->body);
    plea_print_new(&ask, &b->body);
    plea_send(at->yard, crossing_new(b, CROSSING_PLEA, at, ask.name), API_POST);
}

static void plea_change(struct yard *y, struct berth *at, const struct store_item *item,
                        enum plea_state state)
{
    struct bridge *b = y->bridge;
    struct crossing *x = crossing_new(b, CROSSING_PLEA, at, item->name);
    x->version = item->version;
    bool blind = mutated(b->config.mutations, MUTATION_SKIP_RV);
    buf_reset(&b->path);
    buf_add(&b->path, STR(MAINTENANCE_REQUESTS_PATH "/"));
    client_add_segment(&b->path, item->name);
    buf_add(&b->path, STR("?fieldManager=" BRIDGE_MANAGER));
    buf_reset(&b->body);
    plea_print_state(item->object, blind ? 0 : item->version, state, &b->body);
    plea_send(y, x, API_PATCH);
}

/* ── deciding ──────────────────────────────────────────────────────────────────────────────── */

/* The pleas of one Node, and whose they are. */
struct routing_sheaf {
    const struct plea **pleas;
    struct store_item **items;
    uint32_t n;
};

static void routing_gather(const struct routing *r, struct str node, struct arena *tmp,
                           struct routing_sheaf *ret)
{
    uint32_t cap = 0;
    uint32_t items_cap = 0;
    *ret = (struct routing_sheaf){ 0 };
    MAP_EACH (&r->supply.store.items, entry) {
        struct store_item *item = map_item_value(entry);
        const struct plea *p = item->object;
        if (plea_open(p) && str_eq(p->node, node)) {
            ARENA_GROW(tmp, ret->pleas, ret->n, cap);
            ARENA_GROW(tmp, ret->items, ret->n, items_cap);
            ret->pleas[ret->n] = p;
            ret->items[ret->n++] = item;
        }
    }
}

/* Several Clusters may share one API server: what another one's Machine asks is its affair. */
static bool routing_is_foreign(const struct yard *y, const struct plea *p)
{
    struct str uid;
    struct str number;
    (void)str_cut(p->request, STR("/"), &uid, &number); /* a deletion's has no number */
    const struct berth *owner = map_find(&y->bridge->by_uid, uid);
    return owner != NULL && owner->yard != y;
}

static bool routing_is_under_way(const struct yard *y, struct str name)
{
    LIST_EACH (&y->bridge->crossings, link) {
        const struct crossing *x = CONTAINER_OF(link, struct crossing, link);
        if (x->kind == CROSSING_PLEA && x->yard == y && str_eq(x->name, name)) {
            return true;
        }
    }
    return false;
}

/* A plea whose Machine is gone: it ends when its Node does not carry the request any more. */
static void routing_orphan(struct yard *y, struct store_item *item)
{
    struct bridge *b = y->bridge;
    struct routing *r = y->routing;
    const struct plea *p = item->object;
    const struct cluster *cluster = yard_cluster(y);
    const struct store_item *node = store_find(link_nodes(y->link), p->node);
    if (cluster == NULL || cluster->paused || !bridge_acts(b) || routing_is_foreign(y, p)) {
        return;
    }
    const struct route_facts facts = {
        .node = node == NULL ? NULL : node->object,
        .name = p->node,
        .pleas = &p,
        .n = 1,
    };
    struct route_verdict verdict;
    route_decide(&facts, &verdict);
    if (verdict.act != ROUTE_END || routing_is_under_way(y, item->name)) {
        return;
    }
    if (loop_now(b->loop) < r->retry.at) {
        return; /* the timer comes back to it */
    }
    plea_change(y, NULL, item, PLEA_COMPLETED);
}

static void routing_sort(struct yard *y)
{
    struct store_item *item;
    while ((item = store_take(&y->routing->supply.store)) != NULL) {
        const struct plea *p = item->object;
        if (p->node.n == 0) {
            continue;
        }
        struct berth *at = routing_berth(y, p->node);
        if (at != NULL) {
            berth_mark(at);
        } else if (plea_open(p)) {
            routing_orphan(y, item);
        }
    }
}

/* The server has said that there is no such kind. Once may be a server that has just begun. */
static void routing_miss(struct routing *r)
{
    struct bridge *b = r->yard->bridge;
    usec_t now = loop_now(b->loop);
    r->missed = false;
    r->missed_at = r->missed_at == 0 ? now : r->missed_at;
    if (r->state != ROUTING_ABSENT && now < r->missed_at + ROUTING_ABSENT_AFTER) {
        return;
    }
    routing_close(r);
    r->state = ROUTING_ABSENT;
    r->owes = false;
    r->look_at = now + ROUTING_LOOK_AGAIN;
    yard_mark_all(r->yard);
}

void routing_look(struct yard *y)
{
    struct routing *r = y->routing;
    if (r == NULL || !r->open) {
        return;
    }
    if (r->missed) {
        routing_miss(r);
    }
    if (!routing_complete(r)) {
        return;
    }
    if (!r->told) {
        r->told = true;
        r->state = ROUTING_SERVED;
        r->missed_at = 0;
        r->warned = false;
        yard_mark_all(y);
        yard_review(y); /* what is left on Nodes without a Machine was not known to be ours */
    }
    routing_sort(y);
}

static void routing_act(struct berth *at, const struct route_verdict *verdict,
                        const struct routing_sheaf *sheaf)
{
    struct bridge *b = at->bridge;
    if (verdict->act == ROUTE_REST || at->to_plea != NULL || !bridge_acts(b)) {
        return;
    }
    if (loop_now(b->loop) < at->plea_retry.at) {
        berth_later(at, at->plea_retry.at);
        return;
    }
    if (verdict->act == ROUTE_ASK) {
        plea_ask(at, verdict);
    } else {
        ASSERT(sheaf->items != NULL);
        ASSERT(verdict->which < sheaf->n);
        plea_change(at->yard, at, sheaf->items[verdict->which],
                    verdict->act == ROUTE_BEGIN ? PLEA_IN_PROGRESS : PLEA_COMPLETED);
    }
}

void routing_step(struct berth *at, const struct rules_facts *facts, struct rules_verdict *verdict)
{
    struct routing *r = at->yard->routing;
    bool known = facts->sight != RULES_UNKNOWN;
    if (r == NULL || !at->paired || verdict->aloof || !known || r->state != ROUTING_SERVED) {
        return; /* `routes` stays: what was under way may be still */
    }
    struct routing_sheaf sheaf = { 0 };
    struct route_verdict route;
    bool complete = routing_complete(r);
    if (complete) {
        routing_gather(r, facts->machine->node, &at->bridge->tmp, &sheaf);
    }
    const struct route_facts known_facts = {
        .machine = facts->machine,
        .node = facts->node,
        .name = facts->machine->node,
        .pleas = sheaf.pleas,
        .n = sheaf.n,
    };
    route_decide(&known_facts, &route);
    bool routes = route.busy || route.node.n > 0 || at->to_plea != NULL;
    if (routes != at->routes) {
        at->routes = routes;
        yard_stir(at->yard);
    }
    if (!complete || verdict->node.n > 0) {
        return; /* what the rules write comes first, and is looked at again */
    }
    if (route.act != ROUTE_ASK || !routing_behind(r)) {
        routing_act(at, &route, &sheaf);
    }
    verdict->node = route.node;
}

const struct store_item *routing_plea(const struct berth *at)
{
    const struct routing *r = at->yard->routing;
    const struct machine *m = berth_machine(at);
    if (r == NULL || !r->open || m->node.n == 0) {
        return NULL;
    }
    MAP_EACH (&r->supply.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct plea *p = item->object;
        struct str uid;
        struct str number;
        (void)str_cut(p->request, STR("/"), &uid, &number); /* a deletion's has no number */
        if (plea_open(p) && str_eq(p->node, m->node) && str_eq(uid, m->uid)) {
            return item;
        }
    }
    return NULL;
}

/* The timer knows one time: each look sets the next. */
static void routing_plan(struct routing *r, usec_t now)
{
    const usec_t times[] = { r->unsure_until, r->retry.at,
                             r->state == ROUTING_ABSENT && !r->open ? r->look_at : 0 };
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        if (times[i] > now) {
            loop_timer_pull(&r->timer, times[i]);
        }
    }
}

void routing_settle(struct yard *y)
{
    struct routing *r = y->routing;
    usec_t now = loop_now(y->bridge->loop);
    if (r == NULL || y->link == NULL || !link_fresh(y->link)) {
        return;
    }
    bool wanted = r->state == ROUTING_UNKNOWN || (r->state == ROUTING_ABSENT && now >= r->look_at);
    bool rests = false; /* an open one is known, or there may be one */
    if (r->state != ROUTING_ABSENT) {
        rests = routing_behind(r) || (routing_complete(r) ? routing_any(r, STR_NONE) : r->owes);
        LIST_EACH (&y->berths, link) {
            wanted = wanted || CONTAINER_OF(link, struct berth, link)->routes;
        }
    }
    if (r->open && r->state == ROUTING_ABSENT) {
        wanted = true; /* until it has answered */
    }
    if (rests != r->owes && routing_complete(r)) {
        r->owes = rests;
        yard_mark_all(y); /* a Machine that is not enabled any more may wait for that */
    }
    if ((wanted || rests) && !r->open) {
        routing_open(r);
    } else if (!wanted && !rests && routing_complete(r)) {
        routing_close(r);
    }
    routing_plan(r, now);
}
