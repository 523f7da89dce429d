/*
 * metal3: finds the BareMetalHost of a Machine and the Machine of a host, and sends what
 * metal3_power.c decides.
 */
#include "bridge/bridge_internal.h"

/* How often the Node is read while a host waits for its drain; and for how long "drained" counts:
 * after that the Node may be in use again. */
#define DRAINED_CHECK_EVERY SECONDS(15)

/* The host that a Machine's provider id names; NULL = none, or it is not known. */
static struct store_item *metal3_find_host(const struct machine_state *ms)
{
    struct bridge *b = ms->bridge;
    struct metal3_id host = metal3_id_parse(machine_object(ms)->provider_id);
    if (host.form == METAL3_ID_NAMED) {
        return store_find(&b->hosts.store, buf_str(&ms->host));
    }
    if (host.form == METAL3_ID_UID) {
        MAP_EACH (&b->hosts.store.items, entry) {
            struct store_item *item = map_item_value(entry);
            const struct metal3_host *known = item->object;
            if (str_eq(known->uid, host.uid)) {
                return item;
            }
        }
    }
    return NULL;
}

static void metal3_on_recheck(void *ctx)
{
    struct bridge *b = ctx;
    MAP_EACH (&b->hosts.store.items, entry) {
        struct store_item *item = map_item_value(entry);
        const struct metal3_host *host = item->object;
        if (host->reboot || host->owner.p != NULL) {
            store_mark(&b->hosts.store, item);
        }
    }
    bridge_wake(b);
}

void metal3_recheck(struct bridge *b)
{
    loop_timer_pull(&b->host_recheck, loop_now(b->loop));
}

void metal3_recheck_later(struct bridge *b)
{
    if (!b->host_recheck.armed) {
        loop_timer_set(&b->host_recheck,
                       loop_now(b->loop) + backoff_next(&b->host_backoff, loop_random(b->loop)));
    }
}

/* The Machine that the host's consumerRef names. Searches all Machines: needed only if two name the
 * host by mistake, and the one in the index is not the consumer. */
static struct machine_state *metal3_find_consumer(struct bridge *b, const struct metal3_host *host)
{
    MAP_EACH (&b->machines.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        if (power_rank(item->object, host) == POWER_RANK_CONSUMER) {
            return item->extra;
        }
    }
    return NULL;
}

/* The Machine that decides about a host; NULL = none. */
static struct machine_state *metal3_find_machine(struct bridge *b, const struct store_item *item)
{
    const struct metal3_host *host = item->object;
    struct machine_state *owner = host->owner.n > 0 ? map_find(&b->by_uid, host->owner) : NULL;
    if (host->reboot && host->owner.n > 0) {
        return owner;
    }
    struct machine_state *ms = map_find(&b->by_host, item->name);
    ms = ms != NULL ? ms : map_find(&b->by_host, host->uid);
    bool other = ms != NULL && power_rank(machine_object(ms), host) < POWER_RANK_CONSUMER &&
                 host->consumer_name.n > 0;
    struct machine_state *consumer = other ? metal3_find_consumer(b, host) : NULL;
    return consumer != NULL ? consumer : ms;
}

/* Marks the Machines that name a host; if two name one host anywhere, all Machines are searched. */
static void metal3_mark_machines(struct bridge *b, struct str name, const struct metal3_host *host)
{
    struct machine_state *const known[] = {
        map_find(&b->by_host, name),
        map_find(&b->by_host, host->uid),
        host->owner.n > 0 ? map_find(&b->by_uid, host->owner) : NULL,
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i] != NULL) {
            machine_mark(known[i]);
        }
    }
    if (b->host_duplicates == 0) {
        return;
    }
    MAP_EACH (&b->machines.store.items, entry) {
        const struct store_item *machine = map_item_value(entry);
        if (power_rank(machine->object, host) != POWER_RANK_NONE) {
            machine_mark(machine->extra);
        }
    }
}

/* The Machine shows the power of its host. If the UID has changed, it is another host of the same
 * name, and Machines that named the old one by its UID have to know. */
static void metal3_on_change(void *ctx, struct store_item *item, const void *before)
{
    const struct metal3_host *was = before;
    const struct metal3_host *host = item->object;
    metal3_mark_machines(ctx, item->name, host);
    if (was != NULL && !str_eq(was->uid, host->uid)) {
        metal3_mark_machines(ctx, item->name, was);
    }
}

static void metal3_on_gone(void *ctx, struct store_item *item)
{
    metal3_mark_machines(ctx, item->name, item->object);
}

void metal3_init(struct bridge *b)
{
    bridge_init_informer(b, &b->hosts,
                         (struct informer_config){
                             .kind = &metal3_host_kind,
                             .on_change = metal3_on_change,
                             .on_gone = metal3_on_gone,
                         });
    b->host_backoff = (struct backoff){ .base = BRIDGE_FAILED_BASE, .max = BRIDGE_FAILED_MAX };
    loop_timer_init(&b->host_recheck, b->loop, metal3_on_recheck, b);
}

static void metal3_collect_facts(struct machine_state *ms, const struct metal3_host *host,
                                 struct power_facts *ret)
{
    *ret = (struct power_facts){
        .machine = machine_object(ms),
        .cluster = cluster_object(ms->cluster),
        .host = host,
        .drained = ms->cordoned && ms->drained &&
                   loop_now(ms->bridge->loop) < ms->drained_check_at + DRAINED_CHECK_EVERY,
        .not_drained_why = buf_str(&ms->not_drained_why),
    };
}

/* A Machine that does not decide about its host, or whose host does not exist, may still carry
 * KEY_POWER, which is to be removed. */
bool metal3_facts(struct machine_state *ms, struct power_facts *ret)
{
    const struct store_item *item = ms->bridge->hosts.synced ? metal3_find_host(ms) : NULL;
    bool counts = item != NULL && metal3_find_machine(ms->bridge, item) == ms;
    if (!ms->bridge->hosts.synced || (!counts && machine_object(ms)->power.p == NULL)) {
        return false;
    }
    metal3_collect_facts(ms, item == NULL ? NULL : item->object, ret);
    return true;
}

/* `ms` is NULL if no Machine decides about the host. */
static void metal3_decide(struct bridge *b, struct machine_state *ms, struct power_facts *facts,
                          struct power_verdict *ret)
{
    struct power_options options = b->config.power;
    mutate_power_facts(ms, facts, &options);
    power_decide(&options, facts, &b->tmp, ret);
    mutate_power_verdict(b, facts, ret);
}

void metal3_step_machine(struct machine_state *ms, struct meta_patch *machine)
{
    struct bridge *b = ms->bridge;
    struct power_facts facts;
    struct power_verdict verdict;
    struct store_item *host = metal3_find_host(ms);
    if (host != NULL) {
        store_mark(&b->hosts.store, host); /* metal3_step_hosts decides for it in this turn */
    }
    if (!metal3_facts(ms, &facts)) {
        return;
    }
    metal3_decide(b, ms, &facts, &verdict);
    for (uint32_t i = 0; i < verdict.machine.n && machine->n < META_PATCH_MAX; i++) {
        machine->keys[machine->n++] = verdict.machine.keys[i];
    }
}

/* The Node is read only while its host waits for the drain. */
static void metal3_check_drained(struct machine_state *ms, const struct power_facts *facts)
{
    struct bridge *b = ms->bridge;
    struct link *link = ms->cluster->link;
    usec_t now = loop_now(b->loop);
    if (!b->config.power.require_drained || facts->host->reboot || facts->machine->deleting ||
        !rules_approved(facts->machine)) {
        ms->drained_check_at = 0;
        ms->drained = false;
        buf_reset(&ms->not_drained_why);
        return;
    }
    if (ms->in_flight[IN_FLIGHT_DRAINED_CHECK] != NULL || link == NULL || !link_fresh(link) ||
        !machine_owns_node(ms)) {
        return;
    }
    if (ms->drained_check_at != 0 && now < ms->drained_check_at + DRAINED_CHECK_EVERY) {
        machine_wake_at(ms, ms->drained_check_at + DRAINED_CHECK_EVERY);
        return;
    }
    ms->drained_check_at = now;
    ms->drained = false; /* until pods have been counted again */
    drained_check_start(ms);
}

/* The Machine marks the host that it names. Another host, switched off for this Machine before, is
 * found by metal3_recheck_later. */
static void metal3_postpone(const struct machine_state *ms, const struct store_item *item)
{
    if (metal3_find_host(ms) != item) {
        metal3_recheck_later(ms->bridge);
    }
}

static void metal3_step_host(struct bridge *b, struct store_item *item)
{
    const struct metal3_host *host = item->object;
    struct machine_state *ms = metal3_find_machine(b, item);
    struct power_facts facts = { .host = host };
    struct power_verdict verdict;
    bool marked = host->reboot || host->owner.p != NULL;
    if (ms == NULL && (!marked || b->config.shard != 0 || b->config.watch_filter.n > 0)) {
        return; /* with a filter the owner may exist and not be seen */
    }
    if (ms != NULL && !cluster_is_ours(ms->cluster)) {
        return;
    }
    if (ms != NULL && ms->in_flight[IN_FLIGHT_HOST] != NULL) {
        metal3_postpone(ms, item); /* the reply marks the Machine */
        return;
    }
    if (ms != NULL) {
        metal3_collect_facts(ms, host, &facts);
        metal3_check_drained(ms, &facts);
        if (!in_flight_may_write(ms, IN_FLIGHT_HOST, item->version)) {
            metal3_postpone(ms, item);
            return;
        }
    }
    metal3_decide(b, ms, &facts, &verdict);
    if (verdict.host.n > 0) {
        in_flight_patch_host(b, ms, item, &verdict.host);
    }
}

void metal3_step_hosts(struct bridge *b)
{
    struct store_item *item;
    if (!b->hosts.synced) {
        return; /* without a complete list nobody knows which hosts are switched off */
    }
    if (!client_open(&b->client)) {
        loop_timer_pull(&b->turn, client_open_at(&b->client));
        return;
    }
    while (b->patches_in_flight < BRIDGE_IN_FLIGHT_MAX &&
           (item = store_take(&b->hosts.store)) != NULL) {
        metal3_step_host(b, item);
    }
}
