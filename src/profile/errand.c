/*
 * Errands: what takes time and is not the node's own patch: draining it, telling people.
 */
#include "base/duration.h"
#include "base/heap.h"
#include "profile/controller_room.h"

#define ERRAND_BACKOFF_BASE SECONDS(1)
#define ERRAND_BACKOFF_MAX MINUTES(5)

/* ── drains ────────────────────────────────────────────────────────────────────────────────── */

static void errand_on_drain(void *ctx)
{
    struct member *m = ctx;
    struct controller *c = m->c;
    if (drain_is_done(m->drain)) {
        log_info(c->log, "the node is drained", KV_STR("node", m->item->name));
    }
    store_mark(&c->store, m->item);
    controller_soon(c);
}

void errand_drain(struct member *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    const struct node *node = m->item->object;
    if (m->drain != NULL) {
        return;
    }
    const struct config_instance *instance = effect->drain;
    const struct drain_spec spec = {
        .node = m->item->name,
        .node_uid = node->uid,
        .eviction_timeout =
            plugin_get(instance->plugin, instance->values, "evictionTimeout")->number / 1000,
        .deletion_timeout =
            plugin_get(instance->plugin, instance->values, "deletionTimeout")->number / 1000,
        .force = plugin_get(instance->plugin, instance->values, "forceEviction")->truth,
        .grace = -1,
    };
    log_info(c->log, "Going to evict pods from node.", KV_STR("node", m->item->name),
             KV_STR("profile", effect->profiles[effect->drain_profile].name));
    m->drain = drain_start(c->drains, &spec, errand_on_drain, m);
}

void errand_stop_drain(struct member *m)
{
    if (m->drain != NULL) {
        drain_stop(STEAL(m->drain));
    }
}

struct str errand_drain_words(const struct member *m, struct arena *out)
{
    struct drain_status s;
    drain_status(m->drain, &s);
    if (drain_is_done(m->drain)) {
        return STR("the node is drained");
    }
    if (!s.synced) {
        return STR("draining: the node's pods are not known yet");
    }
    struct str words = arena_printf(out, "draining: %u pods are left, %u of them on their way out",
                                    s.left, s.terminating);
    if (s.blocked) {
        words = arena_printf(out, STR_FMT "; " STR_FMT "/" STR_FMT ": " STR_FMT, STR_ARG(words),
                             STR_ARG(s.space), STR_ARG(s.pod), STR_ARG(s.reason));
    }
    return words;
}

/* ── notifications ─────────────────────────────────────────────────────────────────────────── */

static void errand_on_sent(void *ctx, const struct err *err, usec_t retry_after)
{
    struct member *m = ctx;
    struct controller *c = m->c;
    struct errand *e = m->errand;
    usec_t now = loop_now(c->loop);
    e->call = NULL;
    gauges_notified(&c->gauges, buf_str(&e->instance), err == NULL);
    buf_reset(&e->error);
    if (err == NULL) {
        log_info(c->log, "Executed notification instance", KV_STR("node", m->item->name),
                 KV_STR("instance", buf_str(&e->instance)));
        e->sent = true;
        e->sent_at = stamp_from_usec(loop_wall(c->loop));
        backoff_reset(&e->backoff);
    } else {
        usec_t wait = backoff_next(&e->backoff, loop_random(c->loop));
        buf_add(&e->error, str_from(err->msg));
        e->retry_at = now + MAX(wait, retry_after);
        member_wake_at(m, e->retry_at);
    }
    store_mark(&c->store, m->item);
    controller_soon(c);
}

void errand_notify(struct member *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    const struct engine_profile *profile = &effect->profiles[effect->notify_profile];
    struct errand *e = m->errand;
    if (c->config.wire == NULL || (e != NULL && (e->call != NULL || e->sent))) {
        return;
    }
    if (e == NULL) {
        e = HEAP_NEW(struct errand);
        e->backoff = (struct backoff){ .base = ERRAND_BACKOFF_BASE, .max = ERRAND_BACKOFF_MAX };
        m->errand = e;
    }
    buf_reset(&e->instance);
    buf_add(&e->instance, effect->notify->name);
    buf_reset(&e->profile);
    buf_add(&e->profile, profile->name);
    const struct notify_facts facts = {
        .node = m->item->name,
        .state = label_state_name(profile->state),
        .profile = profile->name,
        .in_maintenance = effect->in_maintenance,
        .log_details = str_eq(node_label(m->item->object, LABEL_LOG_DETAILS), STR("true")),
        .last_transition = profile->since,
    };
    e->call = notify_send(&c->notify, effect->notify, &facts, errand_on_sent, m);
}

void errand_settle(struct member *m)
{
    if (m->errand != NULL && m->errand->sent) {
        m->errand->sent = false;
        errand_end(m);
    }
}

void errand_end(struct member *m)
{
    struct errand *e = m->errand;
    if (e == NULL) {
        return;
    }
    if (e->call != NULL) {
        notify_cancel(STEAL(e->call));
    }
    m->errand = NULL;
    buf_done(&e->instance);
    buf_done(&e->profile);
    buf_done(&e->error);
    heap_free(e);
}
