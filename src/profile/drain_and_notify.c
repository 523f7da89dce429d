/*
 * Errands: what takes time and is not the node's own patch: draining it, telling people.
 */
#include "base/duration.h"
#include "base/alloc.h"
#include "calendar/elapsed.h"
#include "profile/controller_internal.h"

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
        drain_set_rules(m->drain, node_annotation(node, DRAIN_RULES_ANNOTATION));
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
        .drain_rules = node_annotation(node, DRAIN_RULES_ANNOTATION),
    };
    log_info(c->log, "Going to evict pods from node.", KV_STR("node", m->item->name),
             KV_STR("profile", effect->profiles[effect->drain_profile].name));
    m->drain = drain_start(c->drains, &spec, errand_on_drain, m);
}

void errand_on_node(struct member *m)
{
    struct str book = node_annotation(m->item->object, DRAIN_RULES_ANNOTATION);
    if (m->drain != NULL && book.p != NULL) {
        drain_set_rules(m->drain, book);
    }
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
    struct str words =
        arena_printf(out, "draining: %u %s left", s.left, s.left == 1 ? "pod is" : "pods are");
    if (s.terminating > 0) {
        words =
            arena_printf(out, STR_FMT ", %u of them on the way out", STR_ARG(words), s.terminating);
    }
    if (s.blocked) {
        words = arena_printf(out, STR_FMT "; " STR_FMT "/" STR_FMT ": " STR_FMT, STR_ARG(words),
                             STR_ARG(s.namespace), STR_ARG(s.pod), STR_ARG(s.reason));
    }
    return words;
}

/* ── notifications ─────────────────────────────────────────────────────────────────────────── */

static void errand_keep_told(struct member *m)
{
    struct errand *e = m->errand;
    struct engine_told told = {
        .instance = arena_str(&e->memory, buf_str(&e->instance)),
        .profile = arena_str(&e->memory, buf_str(&e->profile)),
        .transition = e->since,
        .at = timestamp_from_usec(loop_wall(m->c->loop)),
    };
    /* A leader whose clock was ahead may have written the transition. A message that seems older
     * than what it is about would be sent again. */
    if (elapsed_order(told.at, told.transition) <= 0) {
        told.at = timestamp_from_usec(timestamp_to_usec(told.transition) + 1);
    }
    ARENA_GROW(&e->memory, e->told, e->told_n, e->told_cap);
    e->told[e->told_n++] = told;
}

static struct trial *errand_find_trial(const struct errand *e, struct str instance)
{
    struct trial *t = e == NULL ? NULL : e->trials;
    while (t != NULL && !str_eq(buf_str(&t->instance), instance)) {
        t = t->next;
    }
    return t;
}

static void errand_drop_trial(struct errand *e, struct trial *trial)
{
    struct trial **at = &e->trials;
    while (*at != NULL && *at != trial) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = trial->next;
        buf_done(&trial->instance);
        buf_done(&trial->error);
        alloc_free(trial);
    }
}

static void errand_note_failure(struct member *m, const struct err *err, usec_t retry_after)
{
    struct controller *c = m->c;
    struct errand *e = m->errand;
    struct trial *t = errand_find_trial(e, buf_str(&e->instance));
    if (t == NULL) {
        t = ALLOC_NEW(struct trial);
        t->backoff = (struct backoff){ .base = ERRAND_BACKOFF_BASE, .max = ERRAND_BACKOFF_MAX };
        buf_add(&t->instance, buf_str(&e->instance));
        t->next = e->trials;
        e->trials = t;
    }
    buf_reset(&t->error);
    buf_add(&t->error, str_from(err->msg));
    t->retry_at =
        loop_now(c->loop) + MAX(backoff_next(&t->backoff, loop_random(c->loop)), retry_after);
    member_wake_at(m, t->retry_at);
}

/* The one that is tried again at this moment. */
static bool errand_is_tried(const struct errand *e, const struct trial *t)
{
    return e->call != NULL && str_eq(buf_str(&e->instance), buf_str(&t->instance));
}

usec_t errand_retry_at(const struct member *m)
{
    usec_t now = loop_now(m->c->loop);
    usec_t at = USEC_NEVER;
    const struct trial *t = m->errand == NULL ? NULL : m->errand->trials;
    for (; t != NULL; t = t->next) {
        at = errand_is_tried(m->errand, t) || t->retry_at <= now ? at : MIN(at, t->retry_at);
    }
    return at;
}

void errand_progress(const struct member *m, struct arena *out, struct engine_progress *ret)
{
    const struct errand *e = m->errand;
    usec_t now = loop_now(m->c->loop);
    uint32_t n = 0;
    if (e == NULL) {
        return;
    }
    ret->told = e->told;
    ret->told_n = e->told_n;
    for (const struct trial *t = e->trials; t != NULL; t = t->next) {
        n++;
    }
    struct engine_unsent *unsent = ARENA_ARRAY(out, struct engine_unsent, n);
    ret->unsent = unsent;
    for (const struct trial *t = e->trials; t != NULL; t = t->next) {
        if (errand_is_tried(e, t) || now < t->retry_at) {
            unsent[ret->unsent_n++] = (struct engine_unsent){
                .instance = buf_str(&t->instance),
                .error = buf_str(&t->error),
            };
        }
    }
}

static void errand_on_sent(void *ctx, const struct err *err, usec_t retry_after)
{
    struct member *m = ctx;
    struct controller *c = m->c;
    struct errand *e = m->errand;
    e->call = NULL;
    gauges_notified(&c->gauges, buf_str(&e->instance), err == NULL);
    if (err == NULL || mutated(c->config.mutations, MUTATION_TELL_NOBODY)) {
        log_info(c->log, "Executed notification instance", KV_STR("node", m->item->name),
                 KV_STR("instance", buf_str(&e->instance)));
        errand_keep_told(m);
        errand_drop_trial(e, errand_find_trial(e, buf_str(&e->instance)));
    } else {
        errand_note_failure(m, err, retry_after);
    }
    store_mark(&c->store, m->item);
    controller_soon(c);
}

/* The profile that last changed its state, which may be the same. */
static struct str errand_last_profile(const struct engine_effect *effect)
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

void errand_notify(struct member *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    const struct engine_profile *profile = &effect->profiles[effect->notify_profile];
    struct errand *e = m->errand;
    if (c->config.outbound == NULL || (e != NULL && e->call != NULL)) {
        return;
    }
    if (e == NULL) {
        e = ALLOC_NEW(struct errand);
        m->errand = e;
    }
    buf_reset(&e->instance);
    buf_add(&e->instance, effect->notify->name);
    buf_reset(&e->profile);
    buf_add(&e->profile, profile->name);
    e->since = profile->since;
    const struct notify_facts facts = {
        .node = m->item->name,
        .state = label_state_name(profile->state),
        .profile = profile->name,
        .profile_last = errand_last_profile(effect),
        .in_maintenance = effect->in_maintenance,
        .log_details = str_eq(node_label(m->item->object, LABEL_LOG_DETAILS), STR("true")),
        .last_transition = profile->since,
    };
    e->call = notify_send(&c->notify, effect->notify, &facts, errand_on_sent, m);
}

void errand_mark_settling(struct member *m, const struct engine_effect *effect)
{
    struct errand *e = m->errand;
    for (uint32_t i = 0; e != NULL && i < e->told_n; i++) {
        bool telling = false;
        for (uint32_t j = 0; j < effect->profile_n; j++) {
            const struct engine_profile *profile = &effect->profiles[j];
            telling = telling || (profile->telling && str_eq(profile->name, e->told[i].profile));
        }
        e->told[i].settling = !telling;
    }
}

void errand_settle(struct member *m)
{
    struct errand *e = m->errand;
    uint32_t kept = 0;
    if (e == NULL || e->told_n == 0) {
        return;
    }
    for (uint32_t i = 0; i < e->told_n; i++) {
        if (!e->told[i].settling) {
            e->told[kept++] = e->told[i];
        }
    }
    e->told_n = kept;
    if (kept == 0 && e->call == NULL && e->trials == NULL) {
        errand_end(m);
    }
}

void errand_forget(struct member *m)
{
    struct errand *e = m->errand;
    if (e == NULL || e->call != NULL) {
        return;
    }
    while (e->trials != NULL) {
        errand_drop_trial(e, e->trials);
    }
    if (e->told_n == 0) {
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
    while (e->trials != NULL) {
        errand_drop_trial(e, e->trials);
    }
    arena_done(&e->memory);
    alloc_free(e);
}
