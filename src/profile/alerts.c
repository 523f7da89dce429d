/*
 * Alerts: messages about what is no state of a profile: a drain that stays blocked, and a
 * MaintenanceRequest that was rejected or has expired. Which instances tell of them is said by
 * `notify` in the configuration.
 *
 * What was told, and what could not be sent yet, is kept in an annotation of the Lease, for the
 * next leader: it tells nobody twice of a drain that is still blocked, and sends what is left.
 * Without election there is no other leader, and it is kept in memory alone.
 */
#include "profile/alerts.h"

#include "base/alloc.h"
#include "kinds/keys.h"
#include "profile/alert_record.h"
#include "profile/controller_internal.h"

#define ALERT_BACKOFF_BASE SECONDS(1)
#define ALERT_BACKOFF_MAX MINUTES(5)
#define ALERT_GIVE_UP HOURS(24)  /* news of yesterday */
#define ALERT_MESSAGES_MAX 1000u /* under way or to be tried again; the oldest goes first */
#define ALERT_CONFIG_WAIT SECONDS(1)
/* A drain that the last leader told of begins anew, and is not blocked at once. When it has not
 * been for so long, and has evicted nobody, it is not blocked any more. */
#define ALERT_INHERITED_MAX HOURS(1)

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
    struct map inherited;   /* those of them of which the last leader told, and no other yet */
    usec_t inherited_until; /* monotonic */
    struct list messages;
    uint32_t message_n;
    struct loop_timer note; /* writes the record, once for many changes */
};

/* ── the record ────────────────────────────────────────────────────────────────────────────── */

static void alerts_changed(struct alerts *a)
{
    if (a->c->core->config.elect && a->c->core->leading) {
        loop_timer_pull(&a->note, loop_now(a->c->loop));
    }
}

static void alerts_on_note(void *ctx)
{
    struct alerts *a = ctx;
    struct controller *c = a->c;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    if (!lease_is_held(&c->core->lease)) {
        return; /* the next leader goes by what is there */
    }
    struct str *told = ARENA_ARRAY(&tmp, struct str, map_count(&a->told) + 1);
    struct alert_record_message *unsent =
        ARENA_ARRAY(&tmp, struct alert_record_message, a->message_n + 1);
    struct alert_record record = { .told = told, .unsent = unsent };
    usec_t now = loop_now(c->loop);
    usec_t wall = loop_wall(c->loop);
    MAP_EACH (&a->told, entry) {
        told[record.told_n++] = map_item_name(entry);
    }
    LIST_EACH (&a->messages, link) {
        const struct alert_message *m = CONTAINER_OF(link, struct alert_message, link);
        unsent[record.unsent_n++] = (struct alert_record_message){
            .instance = m->instance,
            .node = m->facts.node,
            .state = m->facts.state,
            .request = m->facts.request,
            .reason = m->facts.reason,
            .since = timestamp_to_usec(m->facts.last_transition),
            .first = wall - (now - m->began),
        };
    }
    alert_record_print(&record, &text);
    (void)lease_note(&c->core->lease, CORE_NOTE_ALERTS, buf_str(&text),
                     /* hurry= */ true); /* nobody waits for its serial */
}

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

static void alert_free(struct alert_message *message)
{
    if (message->call != NULL) {
        notify_cancel(STEAL(message->call));
    }
    list_del(&message->link);
    message->alerts->message_n--;
    alerts_changed(message->alerts);
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
    if (c->active == NULL) { /* inherited before there is a configuration */
        loop_timer_set(&message->timer, loop_now(c->loop) + ALERT_CONFIG_WAIT);
        return;
    }
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

/* `age`: since when it is being tried. */
static void alert_new(struct alerts *a, struct str instance, const struct notify_facts *facts,
                      usec_t age)
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
    message->began = loop_now(c->loop) - age;
    message->backoff = (struct backoff){ .base = ALERT_BACKOFF_BASE, .max = ALERT_BACKOFF_MAX };
    loop_timer_init(&message->timer, c->loop, alert_send, message);
    list_add(&a->messages, &message->link);
    a->message_n++;
    alerts_changed(a);
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
        alert_new(a, chain->links[i].name, &facts, 0);
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
    if (map_del(&a->inherited, node) != NULL && s.evicted > 0) {
        (void)map_del(&a->told, node); /* it went on since, and is blocked again */
    }
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
    alerts_changed(a);
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
    if (loop_now(c->loop) >= a->inherited_until) {
        map_done(&a->inherited);
        a->inherited = (struct map){ 0 };
    }
    MAP_EACH (&a->told, entry) {
        struct str node = map_item_name(entry);
        if (map_find(&scan.blocked, node) == NULL && map_find(&a->inherited, node) == NULL) {
            (void)map_del(&a->told, node); /* it goes on: when it is blocked again, that is new */
            alerts_changed(a);
        }
    }
    map_done(&scan.blocked);
    if (map_count(&a->inherited) > 0) {
        loop_timer_pull(&a->look, a->inherited_until);
    }
    if (scan.next != USEC_NEVER) {
        loop_timer_pull(&a->look, controller_monotonic(c, scan.next));
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
    loop_timer_init(&a->note, c->loop, alerts_on_note, a);
    return a;
}

static void alerts_inherit_message(struct alerts *a, const struct alert_record_message *m)
{
    usec_t age = loop_wall(a->c->loop) - m->first;
    if (a->c->config.outbound != NULL && age <= ALERT_GIVE_UP) {
        alert_new(a, m->instance,
                  &(struct notify_facts){
                      .node = m->node,
                      .state = m->state,
                      .request = m->request,
                      .reason = m->reason,
                      .last_transition = timestamp_from_usec(m->since),
                  },
                  MAX(age, (usec_t)0));
    }
}

void alerts_inherit(struct alerts *a)
{
    struct controller *c = a->c;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct alert_record record;
    struct err err = { 0 };
    if (!c->core->config.elect) {
        return;
    }
    if (alert_record_parse(lease_read_note(&c->core->lease, CORE_NOTE_ALERTS, &tmp), &tmp, &record,
                           &err) < 0) {
        log_error(c->log, "The Lease's record of alerts cannot be read; it is made anew",
                  KV_ERR(&err));
        return;
    }
    for (uint32_t i = 0; i < record.told_n; i++) {
        (void)map_put(&a->told, record.told[i], a); /* both are sets */
        (void)map_put(&a->inherited, record.told[i], a);
    }
    for (uint32_t i = 0; i < record.unsent_n; i++) {
        alerts_inherit_message(a, &record.unsent[i]);
    }
    if (record.told_n > 0) {
        a->inherited_until = loop_now(c->loop) + ALERT_INHERITED_MAX;
        loop_timer_pull(&a->look, a->inherited_until);
    }
}

uint32_t alerts_unsent(const struct alerts *a)
{
    uint32_t n = 0;
    LIST_EACH (&a->messages, link) {
        n += CONTAINER_OF(link, struct alert_message, link)->error.n > 0 ? 1 : 0;
    }
    return n;
}

void alerts_explain(const struct alerts *a, struct str node, struct arena *out,
                    struct node_report *report)
{
    struct loop *loop = a->c->loop;
    struct node_report_unsent *all =
        ARENA_ARRAY(out, struct node_report_unsent, report->unsent_n + a->message_n + 1);
    for (uint32_t i = 0; i < report->unsent_n; i++) {
        all[i] = report->unsent[i];
    }
    report->unsent = all;
    LIST_EACH (&a->messages, link) {
        const struct alert_message *m = CONTAINER_OF(link, struct alert_message, link);
        if (m->error.n == 0 || !str_eq(m->facts.node, node)) {
            continue;
        }
        all[report->unsent_n++] = (struct node_report_unsent){
            .instance = m->instance,
            .profile = m->facts.request.n > 0 ? arena_concat(out, STR("request "), m->facts.request)
                                              : STR("its drain"),
            .state = m->facts.state,
            .error = arena_str(out, buf_str(&m->error)),
            .next = m->call != NULL
                        ? USEC_NEVER
                        : loop_wall(loop) + MAX(m->timer.at - loop_now(loop), (usec_t)0),
        };
    }
}

void alerts_drop_all(struct alerts *a)
{
    while (!list_empty(&a->messages)) {
        alert_free(CONTAINER_OF(a->messages.next, struct alert_message, link));
    }
    map_done(&a->told);
    map_done(&a->inherited);
    a->told = (struct map){ 0 };
    a->inherited = (struct map){ 0 };
    loop_timer_stop(&a->look);
    loop_timer_stop(&a->note);
}

void alerts_free(struct alerts *a)
{
    alerts_drop_all(a);
    loop_timer_done(&a->look);
    loop_timer_done(&a->note);
    alloc_free(a);
}
