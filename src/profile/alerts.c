/*
 * Alerts: messages about what is no state of a profile: a drain that stays blocked, and a
 * MaintenanceRequest that was rejected or has expired. Which instances tell of them is said by
 * `notify` in the configuration.
 *
 * What was told is kept in memory alone: a new leader tells again of a drain that is still blocked.
 */
#include "profile/alerts.h"

#include "base/alloc.h"
#include "kinds/keys.h"
#include "profile/controller_internal.h"

#define ALERT_BACKOFF_BASE SECONDS(1)
#define ALERT_BACKOFF_MAX MINUTES(5)
#define ALERT_GIVE_UP HOURS(24)  /* news of yesterday */
#define ALERT_MESSAGES_MAX 1000u /* under way or to be tried again; the oldest goes first */

struct alert_message {
    struct list link; /* in `messages`, the oldest first */
    struct alerts *alerts;
    struct notify_call *call; /* NULL: it waits for `timer` */
    struct loop_timer timer;
    struct arena memory; /* of the texts below */
    struct str instance;
    struct notify_facts facts;
    usec_t began;     /* monotonic */
    struct buf error; /* of the last try */
    struct backoff backoff;
};

struct alerts {
    struct controller *c;   /* borrowed */
    struct loop_timer look; /* at the drains */
    struct map told;        /* names of nodes whose blocked drain was told of */
    struct list messages;
    uint32_t message_n;
};

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

static void alert_free(struct alert_message *message)
{
    if (message->call != NULL) {
        notify_cancel(STEAL(message->call));
    }
    list_del(&message->link);
    message->alerts->message_n--;
    loop_timer_done(&message->timer);
    buf_done(&message->error);
    arena_done(&message->memory);
    alloc_free(message);
}

static void alert_on_sent(void *ctx, const struct err *err, usec_t retry_after)
{
    struct alert_message *message = ctx;
    struct controller *c = message->alerts->c;
    usec_t now = loop_now(c->loop);
    message->call = NULL;
    controller_metrics_notified(&c->metrics, message->instance, err == NULL);
    if (err == NULL) {
        log_info(c->log, "Executed notification instance", KV_STR("node", message->facts.node),
                 KV_STR("instance", message->instance), KV_STR("state", message->facts.state));
        alert_free(message);
        return;
    }
    bool over = now - message->began > ALERT_GIVE_UP;
    if (over || !str_eq(buf_str(&message->error), str_from(err->msg))) {
        log_warn(c->log,
                 over ? "Gave up a notification: it could not be sent for a day"
                      : "Failed to send notification",
                 KV_STR("node", message->facts.node), KV_STR("instance", message->instance),
                 KV_STR("state", message->facts.state), KV_ERR(err));
    }
    if (over) {
        alert_free(message);
        return;
    }
    buf_reset(&message->error);
    buf_add(&message->error, str_from(err->msg));
    loop_timer_set(&message->timer,
                   now + MAX(backoff_next(&message->backoff, loop_random(c->loop)), retry_after));
}

static void alert_send(void *ctx)
{
    struct alert_message *message = ctx;
    struct controller *c = message->alerts->c;
    const struct config_instance *instance =
        config_find_instance(&c->active->config, PLUGIN_NOTIFY, message->instance);
    if (instance == NULL) {
        log_warn(c->log, "Gave up a notification: the configuration has it no more",
                 KV_STR("node", message->facts.node), KV_STR("instance", message->instance));
        alert_free(message);
        return;
    }
    message->call = notify_send(&c->notify, instance, &message->facts, alert_on_sent, message);
}

static void alert_new(struct alerts *a, struct str instance, const struct notify_facts *facts)
{
    struct controller *c = a->c;
    if (a->message_n >= ALERT_MESSAGES_MAX) {
        struct alert_message *oldest = CONTAINER_OF(a->messages.next, struct alert_message, link);
        log_warn(c->log, "Gave up a notification: too many could not be sent",
                 KV_STR("node", oldest->facts.node), KV_STR("instance", oldest->instance));
        alert_free(oldest);
    }
    struct alert_message *message = ALLOC_NEW(struct alert_message);
    struct arena *memory = &message->memory;
    memory->first = 512;
    message->alerts = a;
    message->instance = arena_str(memory, instance);
    message->facts = *facts;
    message->facts.node = arena_str(memory, facts->node);
    message->facts.state = arena_str(memory, facts->state);
    message->facts.reason = arena_str(memory, facts->reason);
    message->facts.request = arena_str(memory, facts->request);
    message->began = loop_now(c->loop);
    message->backoff = (struct backoff){ .base = ALERT_BACKOFF_BASE, .max = ALERT_BACKOFF_MAX };
    loop_timer_init(&message->timer, c->loop, alert_send, message);
    list_add(&a->messages, &message->link);
    a->message_n++;
    alert_send(message);
}

/* By every instance of the chain, each on its own. */
static void alerts_tell(struct alerts *a, enum config_alert_kind kind, struct notify_facts facts)
{
    struct controller *c = a->c;
    const struct chain *chain = &c->active->config.alerts[kind].instances;
    const struct store_item *item = store_find(&c->core->nodes.store, facts.node);
    facts.state = config_alert_name(kind);
    if (item != NULL) {
        facts.in_maintenance = str_eq(node_label(item->object, KEY_STATE),
                                      profile_state_name(PROFILE_STATE_MAINTENANCE));
        facts.log_details = str_eq(node_label(item->object, KEY_LOG_DETAILS), STR("true"));
    }
    for (uint32_t i = 0; c->config.outbound != NULL && i < chain->n; i++) {
        alert_new(a, chain->links[i].name, &facts);
    }
}

/* ── drains ────────────────────────────────────────────────────────────────────────────────── */

struct alerts_scan {
    struct alerts *a;
    usec_t wall;
    usec_t next; /* wall: when a drain will have been blocked for long enough */
    struct map blocked;
};

static void alerts_look_at(void *ctx, struct str node, const struct drain *d)
{
    struct alerts_scan *scan = ctx;
    struct alerts *a = scan->a;
    struct drain_status s;
    drain_status(d, &s);
    if (!s.blocked) {
        return;
    }
    (void)map_put(&scan->blocked, node, a); /* of two drains of a node one is enough */
    usec_t due = s.since + a->c->active->config.alerts[CONFIG_ALERT_DRAIN_BLOCKED].after;
    if (map_find(&a->told, node) != NULL) {
        return;
    }
    if (due > scan->wall) {
        scan->next = MIN(scan->next, due);
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    (void)map_put(&a->told, node, a); /* it was not there */
    alerts_tell(a, CONFIG_ALERT_DRAIN_BLOCKED,
                (struct notify_facts){
                    .node = node,
                    .reason = arena_printf(&tmp, "pod " STR_FMT "/" STR_FMT ": " STR_FMT,
                                           STR_ARG(s.namespace), STR_ARG(s.pod), STR_ARG(s.reason)),
                    .last_transition = timestamp_from_usec(s.since),
                });
}

static bool alerts_wants_drains(const struct alerts *a)
{
    const struct active_config *active = a->c->active;
    return active != NULL && active->config.alerts[CONFIG_ALERT_DRAIN_BLOCKED].instances.n > 0;
}

static void alerts_on_look(void *ctx)
{
    struct alerts *a = ctx;
    struct controller *c = a->c;
    if (!alerts_wants_drains(a)) {
        return;
    }
    struct alerts_scan scan = { .a = a, .wall = loop_wall(c->loop), .next = USEC_NEVER };
    drains_each(c->core->drains, alerts_look_at, &scan);
    MAP_EACH (&a->told, entry) {
        struct str node = map_item_name(entry);
        if (map_find(&scan.blocked, node) == NULL) {
            (void)map_del(&a->told, node); /* it goes on: when it is blocked again, that is new */
        }
    }
    map_done(&scan.blocked);
    if (scan.next != USEC_NEVER) {
        loop_timer_set(&a->look, controller_monotonic(c, scan.next));
    }
}

void alerts_on_drain(struct alerts *a)
{
    if (alerts_wants_drains(a)) {
        loop_timer_set(&a->look, loop_now(a->c->loop));
    }
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

void alerts_on_request(struct alerts *a, const struct core_request_news *news)
{
    struct controller *c = a->c;
    if (c->active == NULL) {
        return;
    }
    alerts_tell(a, news->expired ? CONFIG_ALERT_REQUEST_EXPIRED : CONFIG_ALERT_REQUEST_REJECTED,
                (struct notify_facts){
                    .node = news->node,
                    .request = news->request,
                    .reason = news->reason,
                    .last_transition = timestamp_from_usec(loop_wall(c->loop)),
                });
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct alerts *alerts_new(struct controller *c)
{
    struct alerts *a = ALLOC_NEW(struct alerts);
    a->c = c;
    list_init(&a->messages);
    loop_timer_init(&a->look, c->loop, alerts_on_look, a);
    return a;
}

void alerts_drop_all(struct alerts *a)
{
    while (!list_empty(&a->messages)) {
        alert_free(CONTAINER_OF(a->messages.next, struct alert_message, link));
    }
    map_done(&a->told);
    a->told = (struct map){ 0 };
    loop_timer_stop(&a->look);
}

void alerts_free(struct alerts *a)
{
    alerts_drop_all(a);
    loop_timer_done(&a->look);
    alloc_free(a);
}
