#include "bridge/bridge_internal.h"

/* While a host waits for its Node to be drained; and how long that counts when it could not be
 * switched off at once: the Node may be in use again. */
#define SURVEY_EVERY SECONDS(15)

struct store_item *hosts_find(const struct berth *at)
{
    struct bridge *b = at->bridge;
    struct power_host host = power_host_of(berth_machine(at)->provider);
    if (host.form == POWER_NAMED) {
        return store_find(&b->hosts.store, buf_str(&at->host));
    }
    if (host.form == POWER_UID) {
        MAP_EACH (&b->hosts.store.items, entry) {
            struct store_item *item = map_item_value(entry);
            const struct bmhost *known = item->object;
            if (str_eq(known->uid, host.uid)) {
                return item;
            }
        }
    }
    return NULL;
}

static void hosts_on_review(void *ctx)
{
    struct bridge *b = ctx;
    MAP_EACH (&b->hosts.store.items, entry) {
        struct store_item *item = map_item_value(entry);
        const struct bmhost *host = item->object;
        if (host->reboot || host->owner.p != NULL) {
            store_mark(&b->hosts.store, item);
        }
    }
    bridge_wake(b);
}

void hosts_init(struct bridge *b)
{
    b->host_backoff = (struct backoff){ .base = BRIDGE_FAILED_BASE, .max = BRIDGE_FAILED_MAX };
    loop_timer_init(&b->host_review, b->loop, hosts_on_review, b);
}

void hosts_review(struct bridge *b)
{
    loop_timer_pull(&b->host_review, loop_now(b->loop));
}

void hosts_review_later(struct bridge *b)
{
    if (!b->host_review.armed) {
        loop_timer_set(&b->host_review,
                       loop_now(b->loop) + backoff_next(&b->host_backoff, loop_random(b->loop)));
    }
}

void hosts_mark(struct berth *at)
{
    struct store_item *item = at->bridge->config.metal3 ? hosts_find(at) : NULL;
    if (item != NULL) {
        store_mark(&at->bridge->hosts.store, item);
    }
}

/* A Machine that the host itself names as its consumer, where the first who names the host is not
 * that one: two name it by mistake, so this is not done often. */
static struct berth *hosts_consumer(struct bridge *b, const struct bmhost *host)
{
    MAP_EACH (&b->machines.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        if (power_claim(item->object, host) == POWER_CLAIM_CONSUMER) {
            return item->extra;
        }
    }
    return NULL;
}

/* The Machine whose verdict counts for a host; NULL = none. */
static struct berth *hosts_berth(struct bridge *b, const struct store_item *item)
{
    const struct bmhost *host = item->object;
    struct berth *owner = host->owner.n > 0 ? map_find(&b->by_uid, host->owner) : NULL;
    if (host->reboot && host->owner.n > 0) {
        return owner;
    }
    struct berth *at = map_find(&b->by_host, item->name);
    at = at != NULL ? at : map_find(&b->by_host, host->uid);
    bool other = at != NULL && power_claim(berth_machine(at), host) < POWER_CLAIM_CONSUMER &&
                 host->consumer_name.n > 0;
    struct berth *consumer = other ? hosts_consumer(b, host) : NULL;
    return consumer != NULL ? consumer : at;
}

/* Whoever names it looks at it again; where two name one, all of them are asked. */
static void hosts_stir(struct bridge *b, struct str name, const struct bmhost *host)
{
    struct berth *const known[] = {
        map_find(&b->by_host, name),
        map_find(&b->by_host, host->uid),
        host->owner.n > 0 ? map_find(&b->by_uid, host->owner) : NULL,
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i] != NULL) {
            berth_mark(known[i]);
        }
    }
    if (b->crowd == 0) {
        return;
    }
    MAP_EACH (&b->machines.store.items, entry) {
        const struct store_item *machine = map_item_value(entry);
        if (power_claim(machine->object, host) != POWER_CLAIM_NONE) {
            berth_mark(machine->extra);
        }
    }
}

/* What it says of its power goes to its Machine. Another one of the same name, whose deletion was
 * not seen, is not the one that a UID named. */
void hosts_on_change(void *ctx, struct store_item *item, const void *before)
{
    const struct bmhost *was = before;
    const struct bmhost *host = item->object;
    hosts_stir(ctx, item->name, host);
    if (was != NULL && !str_eq(was->uid, host->uid)) {
        hosts_stir(ctx, item->name, was);
    }
}

/* And is not true any more of a host that is not there. */
void hosts_on_gone(void *ctx, struct store_item *item)
{
    hosts_stir(ctx, item->name, item->object);
}

static void hosts_look(struct berth *at, const struct bmhost *host, struct power_facts *ret)
{
    *ret = (struct power_facts){
        .machine = berth_machine(at),
        .cluster = yard_cluster(at->yard),
        .host = host,
        .drained = at->cordoned && at->drained &&
                   loop_now(at->bridge->loop) < at->surveyed_at + SURVEY_EVERY,
        .undrained = buf_str(&at->undrained),
    };
}

/* A Machine whose verdict does not count, or whose host is not there, may still have to take back
 * what it says of one. */
bool hosts_facts(struct berth *at, struct power_facts *ret)
{
    const struct store_item *item = at->bridge->hosts.synced ? hosts_find(at) : NULL;
    bool counts = item != NULL && hosts_berth(at->bridge, item) == at;
    if (!at->bridge->hosts.synced || (!counts && berth_machine(at)->power.p == NULL)) {
        return false;
    }
    hosts_look(at, item == NULL ? NULL : item->object, ret);
    return true;
}

/* `at` is NULL where no Machine has a say. */
static void hosts_decide(struct bridge *b, struct berth *at, struct power_facts *facts,
                         struct power_verdict *ret)
{
    struct power_options options = b->config.power;
    hosts_flaw(at, facts, &options);
    power_decide(&options, facts, &b->tmp, ret);
    hosts_flaw_verdict(b, facts, ret);
}

void hosts_step(struct berth *at, struct edit *machine)
{
    struct bridge *b = at->bridge;
    struct power_facts facts;
    struct power_verdict verdict;
    hosts_mark(at); /* the sweep at the end of the turn sees to the host */
    if (!hosts_facts(at, &facts)) {
        return;
    }
    hosts_decide(b, at, &facts, &verdict);
    for (uint32_t i = 0; i < verdict.machine.n && machine->n < EDIT_MAX; i++) {
        machine->keys[machine->n++] = verdict.machine.keys[i];
    }
}

/* Whether the Node is drained is looked at only while a host waits for that. */
static void hosts_survey(struct berth *at, const struct power_facts *facts)
{
    struct bridge *b = at->bridge;
    struct link *link = at->yard->link;
    usec_t now = loop_now(b->loop);
    if (!b->config.power.require_drained || facts->host->reboot || facts->machine->deleting ||
        !rules_approved(facts->machine)) {
        at->surveyed_at = 0;
        at->drained = false;
        buf_reset(&at->undrained);
        return;
    }
    if (at->survey != NULL || link == NULL || !link_fresh(link) || !at->paired) {
        return;
    }
    if (at->surveyed_at != 0 && now < at->surveyed_at + SURVEY_EVERY) {
        berth_later(at, at->surveyed_at + SURVEY_EVERY);
        return;
    }
    at->surveyed_at = now;
    at->drained = false; /* until pods have been counted again */
    crossing_survey(at);
}

/* Its Machine looks again at the host that it names; at another one it has switched off nobody
 * would. */
static void hosts_postpone(const struct berth *at, const struct store_item *item)
{
    if (hosts_find(at) != item) {
        hosts_review_later(at->bridge);
    }
}

static void hosts_settle(struct bridge *b, struct store_item *item)
{
    const struct bmhost *host = item->object;
    struct berth *at = hosts_berth(b, item);
    struct power_facts facts = { .host = host };
    struct power_verdict verdict;
    bool marked = host->reboot || host->owner.p != NULL;
    if (at == NULL && (!marked || b->config.shard != 0 || b->config.watch_filter.n > 0)) {
        return; /* a filter may hide the Machine that it is switched off for */
    }
    if (at != NULL && !yard_is_ours(at->yard)) {
        return;
    }
    if (at != NULL && at->to_host != NULL) {
        hosts_postpone(at, item); /* an answer marks it again */
        return;
    }
    if (at != NULL) {
        hosts_look(at, host, &facts);
        hosts_survey(at, &facts);
        if (crossing_waits(&at->host_retry, b->loop, item->version)) {
            berth_later(at, at->host_retry.at);
            hosts_postpone(at, item);
            return;
        }
    }
    hosts_decide(b, at, &facts, &verdict);
    if (verdict.host.n > 0) {
        crossing_to_host(b, at, item, &verdict.host);
    }
}

void hosts_sweep(struct bridge *b)
{
    struct store_item *item;
    if (!b->hosts.synced) {
        return; /* without its kind, or its list, nobody knows what is switched off */
    }
    if (!client_open(&b->client)) {
        loop_timer_pull(&b->turn, client_open_at(&b->client));
        return;
    }
    while (b->window < BRIDGE_WINDOW && (item = store_take(&b->hosts.store)) != NULL) {
        hosts_settle(b, item);
    }
}
