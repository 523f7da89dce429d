/*
 * Notifications about one node: one is sent at a time, what was sent is kept until the node's data
 * annotation has it, and what could not be sent is tried again later.
 */
#include "base/alloc.h"
#include "calendar/elapsed.h"
#include "kinds/keys.h"
#include "profile/controller_internal.h"

#define NODE_NOTIFY_BACKOFF_BASE SECONDS(1)
#define NODE_NOTIFY_BACKOFF_MAX MINUTES(5)

static void node_notify_keep_sent(struct managed_node *m)
{
    struct node_notifications *n = m->notifications;
    struct engine_sent sent = {
        .instance = arena_str(&n->memory, buf_str(&n->instance)),
        .profile = arena_str(&n->memory, buf_str(&n->profile)),
        .transition = n->since,
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

static struct send_retry *node_notify_find_retry(const struct node_notifications *n,
                                                 struct str instance)
{
    struct send_retry *r = n == NULL ? NULL : n->retries;
    while (r != NULL && !str_eq(buf_str(&r->instance), instance)) {
        r = r->next;
    }
    return r;
}

static void node_notify_drop_retry(struct node_notifications *n, struct send_retry *retry)
{
    struct send_retry **at = &n->retries;
    while (*at != NULL && *at != retry) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = retry->next;
        buf_done(&retry->instance);
        buf_done(&retry->error);
        alloc_free(retry);
    }
}

static void node_notify_note_failure(struct managed_node *m, const struct err *err,
                                     usec_t retry_after)
{
    struct controller *c = m->c;
    struct node_notifications *n = m->notifications;
    struct send_retry *r = node_notify_find_retry(n, buf_str(&n->instance));
    if (r == NULL) {
        r = ALLOC_NEW(struct send_retry);
        r->backoff =
            (struct backoff){ .base = NODE_NOTIFY_BACKOFF_BASE, .max = NODE_NOTIFY_BACKOFF_MAX };
        buf_add(&r->instance, buf_str(&n->instance));
        r->next = n->retries;
        n->retries = r;
    }
    buf_reset(&r->error);
    buf_add(&r->error, str_from(err->msg));
    r->retry_at =
        loop_now(c->loop) + MAX(backoff_next(&r->backoff, loop_random(c->loop)), retry_after);
    managed_node_wake_at(m, r->retry_at);
}

/* The one that is tried again at this moment. */
static bool node_notify_is_sending(const struct node_notifications *n, const struct send_retry *r)
{
    return n->call != NULL && str_eq(buf_str(&n->instance), buf_str(&r->instance));
}

usec_t node_notify_retry_at(const struct managed_node *m)
{
    usec_t now = loop_now(m->c->loop);
    usec_t at = USEC_NEVER;
    const struct send_retry *r = m->notifications == NULL ? NULL : m->notifications->retries;
    for (; r != NULL; r = r->next) {
        at = node_notify_is_sending(m->notifications, r) || r->retry_at <= now
                 ? at
                 : MIN(at, r->retry_at);
    }
    return at;
}

void node_notify_progress(const struct managed_node *m, struct arena *out,
                          struct engine_progress *ret)
{
    const struct node_notifications *n = m->notifications;
    usec_t now = loop_now(m->c->loop);
    uint32_t retry_n = 0;
    if (n == NULL) {
        return;
    }
    ret->sent = n->sent;
    ret->sent_n = n->sent_n;
    for (const struct send_retry *r = n->retries; r != NULL; r = r->next) {
        retry_n++;
    }
    struct engine_send_failed *send_failed = ARENA_ARRAY(out, struct engine_send_failed, retry_n);
    ret->send_failed = send_failed;
    for (const struct send_retry *r = n->retries; r != NULL; r = r->next) {
        if (node_notify_is_sending(n, r) || now < r->retry_at) {
            send_failed[ret->send_failed_n++] = (struct engine_send_failed){
                .instance = buf_str(&r->instance),
                .error = buf_str(&r->error),
            };
        }
    }
}

static void node_notify_on_sent(void *ctx, const struct err *err, usec_t retry_after)
{
    struct managed_node *m = ctx;
    struct controller *c = m->c;
    struct node_notifications *n = m->notifications;
    n->call = NULL;
    controller_metrics_notified(&c->metrics, buf_str(&n->instance), err == NULL);
    if (err == NULL || mutated(c->core->config.mutations, MUTATION_TELL_NOBODY)) {
        log_info(c->log, "Executed notification instance", KV_STR("node", m->item->name),
                 KV_STR("instance", buf_str(&n->instance)));
        node_notify_keep_sent(m);
        node_notify_drop_retry(n, node_notify_find_retry(n, buf_str(&n->instance)));
    } else {
        node_notify_note_failure(m, err, retry_after);
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
    if (c->config.outbound == NULL || (n != NULL && n->call != NULL)) {
        return;
    }
    if (n == NULL) {
        n = ALLOC_NEW(struct node_notifications);
        m->notifications = n;
    }
    buf_reset(&n->instance);
    buf_add(&n->instance, effect->notify->name);
    buf_reset(&n->profile);
    buf_add(&n->profile, profile->name);
    n->since = profile->since;
    const struct notify_facts facts = {
        .node = m->item->name,
        .state = profile_state_name(profile->state),
        .profile = profile->name,
        .profile_last = node_notify_last_profile(effect),
        .in_maintenance = effect->in_maintenance,
        .log_details = str_eq(node_label(m->item->object, KEY_LOG_DETAILS), STR("true")),
        .last_transition = profile->since,
    };
    n->call = notify_send(&c->notify, effect->notify, &facts, node_notify_on_sent, m);
}

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
    if (n == NULL || n->sent_n == 0) {
        return;
    }
    for (uint32_t i = 0; i < n->sent_n; i++) {
        if (!n->sent[i].in_patch) {
            n->sent[kept++] = n->sent[i];
        }
    }
    n->sent_n = kept;
    if (kept == 0 && n->call == NULL && n->retries == NULL) {
        node_notify_free(m);
    }
}

void node_notify_drop_retries(struct managed_node *m)
{
    struct node_notifications *n = m->notifications;
    if (n == NULL || n->call != NULL) {
        return;
    }
    while (n->retries != NULL) {
        node_notify_drop_retry(n, n->retries);
    }
    if (n->sent_n == 0) {
        node_notify_free(m);
    }
}

void node_notify_free(struct managed_node *m)
{
    struct node_notifications *n = m->notifications;
    if (n == NULL) {
        return;
    }
    if (n->call != NULL) {
        notify_cancel(STEAL(n->call));
    }
    m->notifications = NULL;
    buf_done(&n->instance);
    buf_done(&n->profile);
    while (n->retries != NULL) {
        node_notify_drop_retry(n, n->retries);
    }
    arena_done(&n->memory);
    alloc_free(n);
}
