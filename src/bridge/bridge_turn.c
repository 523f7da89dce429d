#include "bridge/bridge_internal.h"
#include "kinds/keys.h"
#include "bridge/approval_route.h"

/* ── what is known ─────────────────────────────────────────────────────────────────────────── */

/* Only the Machine that its cluster's index names has a Node: two that claim one are a mistake. */
static const struct store_item *berth_node(const struct berth *at)
{
    struct link *link = at->yard->link;
    if (link == NULL || !link_fresh(link) || !at->paired) {
        return NULL;
    }
    return store_find(link_nodes(link), berth_machine(at)->node);
}

static void berth_look(struct berth *at, struct rules_facts *ret)
{
    struct link *link = at->yard->link;
    const struct store_item *node = berth_node(at);
    if (link == NULL || !link_fresh(link)) {
        ret->sight = RULES_UNKNOWN;
    } else if (node != NULL) {
        ret->sight = RULES_SEEN;
        ret->node = node->object;
        at->missed_at = 0;
        at->absent = false;
    } else {
        ret->sight = at->absent ? RULES_ABSENT : RULES_MISSED;
    }
    routing_facts(at, ret);
}

/* How long something has been so that is so now; at least a moment. */
static usec_t berth_quiet(usec_t *since, bool quiet, usec_t now)
{
    if (!quiet) {
        *since = 0;
        return 0;
    }
    if (*since == 0) {
        *since = now;
    }
    return MAX(now - *since, (usec_t)1);
}

/* Whether an approval is on the Machine, or on its way, or was and nobody knows what became of it.
 */
static bool berth_is_taken(const struct berth *at)
{
    bool unsure = at->approved_on > 0 && at->item->version <= at->approved_on &&
                  loop_now(at->bridge->loop) < at->approved_till;
    return rules_approved(berth_machine(at)) || unsure ||
           (at->to_machine != NULL && at->to_machine->approves);
}

static void berth_members(struct berth *at, struct rules_facts *ret)
{
    usec_t now = loop_now(at->bridge->loop);
    LIST_EACH (&at->yard->berths, link) {
        const struct berth *other = CONTAINER_OF(link, struct berth, link);
        const struct machine *m = berth_machine(other);
        if (other == at || !m->control_plane) {
            continue;
        }
        bool taken = berth_is_taken(other);
        if (taken && other->approved_till > now) {
            berth_later(at, other->approved_till);
        }
        ret->members++;
        ret->taken += taken ? 1 : 0;
        ret->available += !taken && !m->deleting && m->node.n > 0 && !m->unhealthy ? 1 : 0;
    }
}

void berth_facts(struct berth *at, struct arena *out, struct rules_facts *ret)
{
    struct bridge *b = at->bridge;
    struct berth_book book;
    usec_t now = loop_now(b->loop);
    const struct machine *m = berth_machine(at);
    *ret = (struct rules_facts){
        .machine = m,
        .cluster = yard_cluster(at->yard),
        .wall = server_clock_wall(&b->client.clock),
    };
    berth_look(at, ret);
    berth_book(at, out, &book);
    ret->book = book.text;
    ret->book_trouble = book.trouble;
    usec_t away = at->yard->link == NULL ? 0 : link_away_since(at->yard->link);
    ret->away = away == 0 ? 0 : MAX(now - away, (usec_t)1);
    bool seen = ret->sight == RULES_SEEN;
    ret->deletion_quiet =
        berth_quiet(&at->deletion_quiet_at, seen && rules_quiet_deletion(m, ret->node), now);
    ret->maintenance_quiet =
        berth_quiet(&at->maintenance_quiet_at, seen && rules_quiet_maintenance(m, ret->node), now);
    if (m->control_plane) {
        berth_members(at, ret);
    }
}

/* ── one Machine ───────────────────────────────────────────────────────────────────────────── */

/* News that are true now are told when they become true, and again when they were not meanwhile. */
static void berth_tell_now(struct berth *at, const struct rules_verdict *verdict)
{
    uint32_t now = 0;
    for (uint32_t i = 0; i < verdict->news_n; i++) {
        const struct rules_news *news = &verdict->news[i];
        if (news->when != RULES_NOW) {
            continue;
        }
        uint32_t bit = 1u << news->event;
        if ((at->said & bit) == 0) {
            bridge_tell(at, news->event, news->note);
        }
        now |= bit;
    }
    at->said = now;
}

static void berth_confirm(struct berth *at)
{
    usec_t due = at->missed_at == 0 ? 0 : at->missed_at + BRIDGE_ABSENT_AFTER;
    if (at->probe != NULL) {
        return;
    }
    if (loop_now(at->bridge->loop) < due) {
        berth_later(at, due);
    } else {
        crossing_probe(at);
    }
}

/* When it is to be looked at again without anything having happened. */
static void berth_plan(struct berth *at, const struct rules_verdict *verdict, usec_t wall)
{
    usec_t now = loop_now(at->bridge->loop);
    if (verdict->next != USEC_NEVER) {
        berth_later(at, now + MAX(verdict->next - wall, MSECONDS(1)));
    }
}

static bool berth_may_send(struct berth *at, const struct bridge_retry *retry,
                           const struct crossing *under_way, uint64_t version)
{
    if (under_way != NULL) {
        return false; /* its answer marks the Machine */
    }
    if (crossing_waits(retry, at->bridge->loop, version)) {
        berth_later(at, retry->at);
        return false;
    }
    return true;
}

/* A patch goes to the Machine, if there is room for it. False: there is none now. */
static bool berth_send_machine(struct berth *at, const struct rules_verdict *verdict,
                               const struct edit *edit)
{
    struct bridge *b = at->bridge;
    if (edit->n == 0 ||
        !berth_may_send(at, &at->machine_retry, at->to_machine, at->item->version)) {
        return true;
    }
    if (!client_open(&b->client)) {
        berth_later(at, client_open_at(&b->client));
        return true;
    }
    if (b->window >= BRIDGE_WINDOW) {
        return false;
    }
    crossing_to_machine(at, verdict, edit);
    return true;
}

/* What a Node is asked is on the Machine first: whoever disables the Machine while nobody looks, or
 * while the answer is on its way, leaves a word that there is something to clean. */
static bool berth_is_claimed(const struct berth *at, const struct rules_verdict *verdict)
{
    static const struct str asks[] = {
        STR_INIT(KEYS_LEGACY "machine-deleted"),
        STR_INIT(KEYS_LEGACY "machine-maintenance"),
    };
    const struct edit_key *status = edit_find(&verdict->machine, false, KEY_STATUS);
    if (berth_machine(at)->status.p != NULL || status == NULL || status->remove) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
        const struct edit_key *ask = edit_find(&verdict->node, true, asks[i]);
        if (ask != NULL && !ask->remove) {
            return false;
        }
    }
    return true;
}

/* And it is taken away last. */
static void berth_hold_claim(const struct berth *at, const struct rules_verdict *verdict,
                             struct edit *machine)
{
    if (at->to_node == NULL && verdict->node.n == 0) {
        return;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < machine->n; i++) {
        const struct edit_key *key = &machine->keys[i];
        if (!(key->remove && str_eq(key->key, KEY_STATUS))) {
            machine->keys[n++] = *key;
        }
    }
    machine->n = n;
}

static bool berth_decide(struct berth *at)
{
    struct bridge *b = at->bridge;
    struct rules_facts facts;
    struct rules_verdict verdict;
    if (!yard_is_ours(at->yard)) {
        at->keeps_link = false;
        at->decided = false;
        return true;
    }
    struct rules_options options = b->config.rules;
    berth_facts(at, &b->tmp, &facts);
    berth_flaw(at, &facts, &options);
    rules_decide(&options, &facts, &b->tmp, &verdict);
    berth_flaw_verdict(at, &verdict);
    /* What is on its way to the Node may be there to be cleaned when it arrives. */
    bool keeps_link = verdict.keeps_link || at->to_node != NULL;
    if (at->keeps_link != keeps_link) {
        at->keeps_link = keeps_link;
        yard_stir(at->yard);
    }
    at->decided = true;
    at->phase = verdict.phase;
    berth_tell_now(at, &verdict);
    berth_plan(at, &verdict, facts.wall);
    if (verdict.confirm && facts.sight == RULES_MISSED) {
        berth_confirm(at);
    }
    routing_step(at, &facts, &verdict);
    if (verdict.node.n > 0 && facts.sight == RULES_SEEN && berth_is_claimed(at, &verdict) &&
        berth_may_send(at, &at->node_retry, at->to_node, berth_node(at)->version)) {
        crossing_to_node(at, &verdict);
    }
    struct edit machine = verdict.machine;
    berth_hold_claim(at, &verdict, &machine);
    if (b->config.metal3) {
        hosts_step(at, &machine);
    }
    return berth_send_machine(at, &verdict, &machine);
}

/* ── Nodes ─────────────────────────────────────────────────────────────────────────────────── */

/* A Node that no Machine of its own cluster claims, but that names one of another. */
static void yard_compare(struct yard *y, const struct store_item *item)
{
    struct bridge *b = y->bridge;
    const struct peer *node = item->object;
    if (node->machine.n == 0 || node->space.n == 0) {
        return;
    }
    buf_reset(&b->key);
    buf_printf(&b->key, STR_FMT "/" STR_FMT, STR_ARG(node->space), STR_ARG(node->machine));
    const struct store_item *machine = store_find(&b->machines.store, buf_str(&b->key));
    const struct berth *at = machine == NULL ? NULL : machine->extra;
    if (at == NULL || at->yard == y) {
        return; /* of its own cluster: its nodeRef may still come */
    }
    bridge_tell_cluster(y, RULES_MISMATCH,
                        arena_printf(&b->tmp,
                                     "Node " STR_FMT " names Machine " STR_FMT
                                     ", which belongs to another cluster; it is ignored",
                                     STR_ARG(item->name), STR_ARG(buf_str(&b->key))));
}

/* The Machine whose request a Node carries, by the UID at its beginning. */
static const struct berth *stray_owner(const struct bridge *b, struct str request)
{
    struct str uid;
    struct str number;
    (void)str_cut(request, STR("/"), &uid, &number); /* a deletion's has no number */
    return map_find(&b->by_uid, uid);
}

/* Several Clusters may share one API server, and each link sees the Nodes of all. So a Node is left
 * alone unless it carries a request of ours whose Machine is gone, or has another Node; and where
 * some Machines are hidden by a filter, nobody can tell. */
static bool stray_is_ours(const struct yard *y, const struct store_item *item)
{
    const struct bridge *b = y->bridge;
    const struct peer *node = item->object;
    const struct str requests[] = { node->deletion_request, node->maintenance_request };
    bool ours = false;
    if (b->config.watch_filter.n > 0 ||
        (b->config.space.n > 0 && !str_eq(node->space, b->config.space))) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        if (requests[i].n == 0) {
            continue;
        }
        const struct berth *owner = stray_owner(b, requests[i]);
        if (owner != NULL && owner->yard != y) {
            return false;
        }
        ours = true;
    }
    return ours;
}

static void yard_look(struct yard *y)
{
    struct bridge *b = y->bridge;
    if (y->link == NULL || !link_fresh(y->link)) {
        return;
    }
    struct store *nodes = link_nodes(y->link);
    struct store_item *item;
    while ((item = store_take(nodes)) != NULL) {
        buf_reset(&b->key);
        buf_printf(&b->key, STR_FMT "/" STR_FMT, STR_ARG(y->name), STR_ARG(item->name));
        struct berth *at = map_find(&b->pairs, buf_str(&b->key));
        const struct cluster *cluster = yard_cluster(y);
        if (at != NULL) {
            berth_mark(at);
            continue;
        }
        yard_compare(y, item);
        routing_stir(y, item->name);
        struct edit edit = { 0 };
        rules_stray(item->object, &edit);
        if (y->routing != NULL && y->routing->state == ROUTING_SERVED) {
            route_stray(item->object, &edit);
        }
        if (edit.n > 0 && cluster != NULL && !cluster->paused && stray_is_ours(y, item)) {
            crossing_to_stray(y, item, &edit);
        }
    }
    routing_look(y);
}

/* ── the turn ──────────────────────────────────────────────────────────────────────────────── */

static void bridge_take_due(struct bridge *b)
{
    usec_t now = loop_now(b->loop);
    struct prioqueue_item *first;
    while ((first = prioqueue_first(&b->later)) != NULL) {
        struct berth *at = CONTAINER_OF(first, struct berth, later);
        if (at->at > now) {
            return;
        }
        prioqueue_take(&b->later, first);
        store_mark(&b->machines.store, at->item);
    }
}

static void bridge_take_stirred(struct bridge *b, void (*step)(struct yard *y), bool keep)
{
    struct list batch;
    list_init(&batch);
    while (!list_empty(&b->stirred)) {
        struct list *first = b->stirred.next;
        list_del(first);
        list_add(&batch, first);
    }
    while (!list_empty(&batch)) {
        struct yard *y = CONTAINER_OF(batch.next, struct yard, link_dirty);
        list_del(&y->link_dirty);
        if (keep) {
            list_add(&b->stirred, &y->link_dirty);
        }
        step(y);
    }
}

static void yard_end(struct yard *y)
{
    yard_settle(y);
    yard_tidy(y);
}

static void bridge_take_machines(struct bridge *b)
{
    struct store_item *item;
    while ((item = store_take(&b->machines.store)) != NULL) {
        arena_reset(&b->tmp);
        if (!berth_decide(item->extra)) {
            store_mark(&b->machines.store, item); /* an answer makes room and wakes the turn */
            return;
        }
    }
}

/* Everything is looked at anew, by somebody who did not act until now. */
static void bridge_begin(struct bridge *b)
{
    MAP_EACH (&b->machines.store.items, entry) {
        store_mark(&b->machines.store, map_item_value(entry));
    }
    MAP_EACH (&b->yards, entry) {
        yard_stir(map_item_value(entry));
    }
    MAP_EACH (&b->hosts.store.items, entry) {
        store_mark(&b->hosts.store, map_item_value(entry));
    }
}

/* Another one acts: it has its own links. */
static void bridge_cease(struct bridge *b)
{
    MAP_EACH (&b->yards, entry) {
        yard_cut(map_item_value(entry));
    }
}

void bridge_turn(void *ctx)
{
    struct bridge *b = ctx;
    bool acts = bridge_acts(b);
    if (acts && !b->acting) {
        bridge_begin(b);
    } else if (!acts && b->acting) {
        bridge_cease(b);
    }
    b->acting = acts;
    if (!acts) {
        return;
    }
    bridge_take_due(b);
    bridge_take_stirred(b, yard_look, /* keep= */ true);
    bridge_take_machines(b);
    if (b->config.metal3) {
        hosts_sweep(b);
    }
    bridge_take_stirred(b, yard_end, /* keep= */ false);
    arena_reset(&b->tmp);
    struct prioqueue_item *first = prioqueue_first(&b->later);
    if (first != NULL) {
        loop_timer_pull(&b->turn, CONTAINER_OF(first, struct berth, later)->at);
    }
}
