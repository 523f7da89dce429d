/*
 * Notifications about one node: what was sent is kept until the node's data annotation has it, and
 * what could not be sent is tried again on its own, with back-off.
 *
 * The profile waits for the first try of a notification, so that a state which lasts a moment only
 * is told of, but not for its success. A notification that failed is tried again for a day, also
 * when the profile has left the state that it tells of.
 */
#include "base/alloc.h"
#include "calendar/elapsed.h"
#include "kinds/keys.h"
#include "profile/controller_internal.h"

#define NODE_NOTIFY_BACKOFF_BASE SECONDS(1)
#define NODE_NOTIFY_BACKOFF_MAX MINUTES(5)
#define NODE_NOTIFY_GIVE_UP HOURS(24) /* news of yesterday */
#define NODE_NOTIFY_RETRIES_MAX 16u   /* a node; the oldest goes first */
#define NODE_NOTIFY_NOTE_MAX 900u     /* an Event's note has 1,024 bytes */

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

static void message_free(struct node_message *message)
{
    if (message->call != NULL) {
        notify_cancel(STEAL(message->call));
    }
    buf_done(&message->error);
    arena_done(&message->memory);
    alloc_free(message);
}

static struct node_message *message_new(struct managed_node *m, struct str instance,
                                        const struct notify_facts *facts)
{
    struct node_message *message = ALLOC_NEW(struct node_message);
    struct arena *memory = &message->memory;
    memory->first = 512;
    message->m = m;
    message->instance = arena_str(memory, instance);
    message->facts = *facts;
    message->facts.node = arena_str(memory, facts->node);
    message->facts.state = arena_str(memory, facts->state);
    message->facts.profile = arena_str(memory, facts->profile);
    message->facts.profile_last = arena_str(memory, facts->profile_last);
    message->began = loop_now(m->c->loop);
    message->backoff =
        (struct backoff){ .base = NODE_NOTIFY_BACKOFF_BASE, .max = NODE_NOTIFY_BACKOFF_MAX };
    return message;
}

static void node_notify_unlink(struct node_notifications *n, struct node_message *message)
{
    struct node_message **at = &n->retries;
    while (*at != NULL && *at != message) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = message->next;
    }
    message->next = NULL;
    n->first = n->first == message ? NULL : n->first;
}

static void node_notify_drop(struct node_notifications *n, struct node_message *message)
{
    node_notify_unlink(n, message);
    message_free(message);
}

/* It waits for its next try, behind those that failed before. */
static void node_notify_keep(struct managed_node *m, struct node_message *message)
{
    struct node_notifications *n = m->notifications;
    node_notify_unlink(n, message);
    uint32_t count = 0;
    struct node_message **at = &n->retries;
    while (*at != NULL) {
        at = &(*at)->next;
        count++;
    }
    *at = message;
    if (count >= NODE_NOTIFY_RETRIES_MAX) {
        log_warn(m->c->log, "Gave up a notification: too many could not be sent",
                 KV_STR("node", m->item->name), KV_STR("instance", n->retries->instance));
        node_notify_drop(n, n->retries);
    }
}

static void node_notify_keep_sent(struct managed_node *m, const struct node_message *message)
{
    struct node_notifications *n = m->notifications;
    struct engine_sent sent = {
        .instance = arena_str(&n->memory, message->instance),
        .profile = arena_str(&n->memory, message->facts.profile),
        .transition = message->facts.last_transition,
        .at = timestamp_from_usec(loop_wall(m->c->loop)),
    };
    /* A leader whose clock was ahead may have written the transition. A message that seems older
     * than what it is about would be sent again. */
    if (elapsed_order(sent.at, sent.transition) <= 0) {
        sent.at = timestamp_from_usec(timestamp_to_usec(sent.transition) + 1);
    }
    ARENA_GROW(&n->memory, n->sent, n->sent_n, n->sent_cap);
    n->sent[n->sent_n++] = sent;
}

/* ── sending ───────────────────────────────────────────────────────────────────────────────── */

/* A new failure is logged and made an Event; the same one again only counts. */
static void message_report_failure(struct node_message *message, const struct err *err, usec_t wait)
{
    struct managed_node *m = message->m;
    struct controller *c = m->c;
    if (str_eq(buf_str(&message->error), str_from(err->msg))) {
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str note =
        arena_printf(&tmp,
                     "Notification " STR_FMT " about profile " STR_FMT " in state " STR_FMT
                     " could not be sent: %s. It is tried again in %lld s",
                     STR_ARG(message->instance), STR_ARG(message->facts.profile),
                     STR_ARG(message->facts.state), err->msg, (long long)(wait / SECONDS(1)));
    log_warn(c->log, "Failed to send notification", KV_STR("node", m->item->name),
             KV_STR("instance", message->instance), KV_STR("profile", message->facts.profile),
             KV_STR("state", message->facts.state), KV_ERR(err));
    turn_record_event(c, m->item, "Warning", "NotificationFailed", "SendNotification",
                      str_sub(note, 0, MIN(note.n, (size_t)NODE_NOTIFY_NOTE_MAX)));
}

static void node_notify_on_failed(struct node_message *message, const struct err *err,
                                  usec_t retry_after)
{
    struct managed_node *m = message->m;
    struct controller *c = m->c;
    usec_t now = loop_now(c->loop);
    if (now - message->began > NODE_NOTIFY_GIVE_UP) {
        log_warn(c->log, "Gave up a notification: it could not be sent for a day",
                 KV_STR("node", m->item->name), KV_STR("instance", message->instance), KV_ERR(err));
        node_notify_drop(m->notifications, message);
        return;
    }
    usec_t wait = MAX(backoff_next(&message->backoff, loop_random(c->loop)), retry_after);
    message_report_failure(message, err, wait);
    buf_reset(&message->error);
    buf_add(&message->error, str_from(err->msg));
    message->retry_at = now + wait;
    managed_node_wake_at(m, message->retry_at);
    node_notify_keep(m, message);
}

static void node_notify_on_sent(void *ctx, const struct err *err, usec_t retry_after)
{
    struct node_message *message = ctx;
    struct managed_node *m = message->m;
    struct controller *c = m->c;
    message->call = NULL;
    controller_metrics_notified(&c->metrics, message->instance, err == NULL);
    if (err == NULL || mutated(c->core->config.mutations, MUTATION_TELL_NOBODY)) {
        log_info(c->log, "Executed notification instance", KV_STR("node", m->item->name),
                 KV_STR("instance", message->instance));
        node_notify_keep_sent(m, message);
        node_notify_drop(m->notifications, message);
    } else {
        node_notify_on_failed(message, err, retry_after);
    }
    store_mark(&c->core->nodes.store, m->item);
    controller_schedule_turn(c);
}

/* The profile that last changed its state, which may be the same. */
static struct str node_notify_last_profile(const struct engine_effect *effect)
{
    const struct engine_profile *last = NULL;
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        const struct engine_profile *e = &effect->profiles[i];
        if (last == NULL || timestamp_to_usec(e->since) > timestamp_to_usec(last->since)) {
            last = e;
        }
    }
    return last == NULL ? STR_NONE : last->name;
}

void node_notify_send(struct managed_node *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    const struct engine_profile *profile = &effect->profiles[effect->notify_profile];
    struct node_notifications *n = m->notifications;
    if (c->config.outbound == NULL || (n != NULL && n->first != NULL)) {
        return;
    }
    if (n == NULL) {
        n = ALLOC_NEW(struct node_notifications);
        m->notifications = n;
    }
    const struct notify_facts facts = {
        .node = m->item->name,
        .state = profile_state_name(profile->state),
        .profile = profile->name,
        .profile_last = node_notify_last_profile(effect),
        .in_maintenance = effect->in_maintenance,
        .log_details = str_eq(node_label(m->item->object, KEY_LOG_DETAILS), STR("true")),
        .last_transition = profile->since,
        .last_sent = effect->notify_last,
    };
    n->first = message_new(m, effect->notify->name, &facts);
    n->first->call =
        notify_send(&c->notify, effect->notify, &n->first->facts, node_notify_on_sent, n->first);
}

/* One at a time: a receiver that is back is not to be overrun. */
void node_notify_send_retries(struct managed_node *m)
{
    struct controller *c = m->c;
    usec_t now = loop_now(c->loop);
    struct node_notifications *n = m->notifications;
    struct node_message *due = NULL;
    for (struct node_message *r = n == NULL ? NULL : n->retries; r != NULL; r = r->next) {
        if (r->call != NULL) {
            return;
        }
        due = due == NULL && r->retry_at <= now ? r : due;
    }
    if (due == NULL || c->config.outbound == NULL) {
        return;
    }
    const struct config_instance *instance =
        config_find_instance(&c->active->config, PLUGIN_NOTIFY, due->instance);
    if (instance == NULL) {
        log_warn(c->log, "Gave up a notification: the configuration has it no more",
                 KV_STR("node", m->item->name), KV_STR("instance", due->instance));
        node_notify_drop(n, due);
        store_mark(&c->core->nodes.store, m->item); /* for the next one that is due */
        return;
    }
    due->call = notify_send(&c->notify, instance, &due->facts, node_notify_on_sent, due);
}

void node_notify_retry_now(struct managed_node *m)
{
    usec_t now = loop_now(m->c->loop);
    struct node_message *r = m->notifications == NULL ? NULL : m->notifications->retries;
    for (; r != NULL; r = r->next) {
        r->retry_at = now;
        backoff_reset(&r->backoff);
    }
}

usec_t node_notify_retry_at(const struct managed_node *m)
{
    usec_t at = USEC_NEVER;
    const struct node_message *r = m->notifications == NULL ? NULL : m->notifications->retries;
    for (; r != NULL; r = r->next) {
        if (r->call != NULL) {
            return USEC_NEVER; /* the others follow it */
        }
        at = MIN(at, r->retry_at);
    }
    return at;
}

/* ── what others are to know ───────────────────────────────────────────────────────────────── */

uint32_t node_notify_unsent(const struct managed_node *m)
{
    uint32_t count = 0;
    const struct node_message *r = m->notifications == NULL ? NULL : m->notifications->retries;
    for (; r != NULL; r = r->next) {
        count++;
    }
    return count;
}

void node_notify_progress(const struct managed_node *m, struct arena *out,
                          struct engine_progress *ret)
{
    const struct node_notifications *n = m->notifications;
    if (n == NULL) {
        return;
    }
    ret->sent = n->sent;
    ret->sent_n = n->sent_n;
    struct engine_send_failed *failed =
        ARENA_ARRAY(out, struct engine_send_failed, node_notify_unsent(m) + 1);
    ret->send_failed = failed;
    for (const struct node_message *r = n->retries; r != NULL; r = r->next) {
        failed[ret->send_failed_n++] = (struct engine_send_failed){
            .instance = r->instance,
            .profile = r->facts.profile,
            .transition = r->facts.last_transition,
            .error = buf_str(&r->error),
        };
    }
}

void node_notify_explain(const struct managed_node *m, struct arena *out, struct node_report *ret)
{
    struct loop *loop = m->c->loop;
    const struct node_message *r = m->notifications == NULL ? NULL : m->notifications->retries;
    ret->unsent = ARENA_ARRAY(out, struct node_report_unsent, node_notify_unsent(m) + 1);
    for (; r != NULL; r = r->next) {
        ret->unsent[ret->unsent_n++] = (struct node_report_unsent){
            .instance = r->instance,
            .profile = r->facts.profile,
            .state = r->facts.state,
            .error = buf_str(&r->error),
            .next = r->call != NULL ? USEC_NEVER
                                    : loop_wall(loop) + MAX(r->retry_at - loop_now(loop), 0),
        };
    }
}

/* ── the annotation ────────────────────────────────────────────────────────────────────────── */

void node_notify_mark_in_patch(struct managed_node *m, const struct engine_effect *effect)
{
    struct node_notifications *n = m->notifications;
    for (uint32_t i = 0; n != NULL && i < n->sent_n; i++) {
        bool notifying = false;
        for (uint32_t j = 0; j < effect->profile_n; j++) {
            const struct engine_profile *profile = &effect->profiles[j];
            notifying =
                notifying || (profile->notifying && str_eq(profile->name, n->sent[i].profile));
        }
        n->sent[i].in_patch = !notifying;
    }
}

void node_notify_on_patched(struct managed_node *m)
{
    struct node_notifications *n = m->notifications;
    uint32_t kept = 0;
    if (n == NULL) {
        return;
    }
    for (uint32_t i = 0; i < n->sent_n; i++) {
        if (!n->sent[i].in_patch) {
            n->sent[kept++] = n->sent[i];
        }
    }
    n->sent_n = kept;
    if (kept == 0 && n->first == NULL && n->retries == NULL) {
        node_notify_free(m);
    }
}

void node_notify_free(struct managed_node *m)
{
    struct node_notifications *n = m->notifications;
    if (n == NULL) {
        return;
    }
    m->notifications = NULL;
    while (n->retries != NULL) {
        node_notify_drop(n, n->retries);
    }
    if (n->first != NULL) {
        node_notify_drop(n, n->first);
    }
    arena_done(&n->memory);
    alloc_free(n);
}
