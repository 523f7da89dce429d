#include "drain/drain.h"

#include "base/alloc.h"
#include "drain/drain_internal.h"

#define DRAIN_MAY_ACT_RETRY SECONDS(1) /* whether it may act; nothing else would wake it */

static void drains_turn(void *ctx);

struct drains *drains_new(struct loop *loop, const struct drains_config *config)
{
    struct drains *ds = ALLOC_NEW(struct drains);
    ds->loop = loop;
    ds->config = *config;
    ds->pdb_changes = 1; /* no pod has been matched with its budget */
    list_init(&ds->drains);
    loop_timer_init(&ds->turn, loop, drains_turn, ds);
    return ds;
}

void drains_free(struct drains *ds)
{
    if (ds == NULL) {
        return;
    }
    while (!list_empty(&ds->drains)) {
        drain_stop(CONTAINER_OF(ds->drains.next, struct drain, link));
    }
    loop_timer_done(&ds->turn);
    buf_done(&ds->path);
    buf_done(&ds->body);
    alloc_free(ds);
}

void drain_mark(struct drain *d)
{
    d->dirty = true;
    loop_timer_pull(&d->drains->turn, loop_now(d->drains->loop));
}

void drains_mark_all(struct drains *ds)
{
    LIST_EACH (&ds->drains, link) {
        drain_mark(CONTAINER_OF(link, struct drain, link));
    }
}

/* ── pods ──────────────────────────────────────────────────────────────────────────────────── */

/* A deletion that was under way before we looked began when the pod's deletionTimestamp says, by
 * the wall clock; one that we saw begin began now. After that only the monotonic clock counts. */
static void pod_state_note_deletion(struct drain_pod_state *p, bool seen_before)
{
    struct loop *loop = p->drain->drains->loop;
    const struct drain_pod *pod = drain_pod_of(p);
    if (!pod->deleting || p->deleting_at != USEC_NEVER) {
        return;
    }
    usec_t ago = loop_wall(loop) - (pod->deletion_wall - pod->deletion_grace);
    usec_t now = loop_now(loop);
    p->deleting_at = seen_before || ago < 0 ? now : now - ago;
    if (p->eviction != NULL) {
        p->eviction->seen_version = p->item->version;
    }
}

/* The pod is new, or has gone, or another has taken its name: nothing is known of it. */
static void pod_state_reset(struct drain_pod_state *p)
{
    if (p->eviction != NULL) {
        p->eviction->seen_version = p->item->version;
        eviction_forget_pod(p->eviction);
    }
    drain_pod_forget_pdb(p);
    p->accepted = false;
    p->gone = false;
    p->force_deleted_at = -1;
    p->retry_at = 0;
    p->backoff = (struct backoff){ 0 };
    p->refused_at = -1;
    p->deleting_at = USEC_NEVER;
    p->unready_retry_at = 0;
    p->unready_backoff = (struct backoff){ .base = DRAIN_UNREADY_BASE, .max = DRAIN_UNREADY_MAX };
    p->wait = DRAIN_WAIT_NONE;
    p->last_wait = DRAIN_WAIT_NONE;
}

static struct drain_pod_state *pod_state_new(struct drain *d, struct store_item *item)
{
    struct drain_pod_state *p = ALLOC_NEW(struct drain_pod_state);
    p->drain = d;
    p->item = item;
    item->extra = p;
    pod_state_reset(p);
    struct list *before = d->pod_states.prev;
    while (before != &d->pod_states &&
           str_cmp(CONTAINER_OF(before, struct drain_pod_state, link)->item->name, item->name) >
               0) {
        before = before->prev;
    }
    list_add(before->next, &p->link); /* in front of the next one */
    return p;
}

static void drain_on_pod(void *ctx, struct store_item *item, const void *before)
{
    struct drain *d = ctx;
    const struct drain_pod *was = before;
    struct drain_pod_state *p = item->extra;
    if (p == NULL) {
        p = pod_state_new(d, item);
    } else if (was != NULL && !str_eq(was->uid, drain_pod_of(p)->uid)) {
        pod_state_reset(p);
        was = NULL;
    } else {
        drain_pod_forget_pdb(p); /* its labels may be others */
    }
    pod_state_note_deletion(p, was != NULL && !was->deleting);
    d->volumes_changed = d->volumes_changed || drain_pod_of(p)->claim_count > 0;
    drain_mark(d);
}

static void drain_on_pod_gone(void *ctx, struct store_item *item)
{
    struct drain *d = ctx;
    struct drain_pod_state *p = item->extra;
    if (p == NULL) {
        return;
    }
    pod_state_reset(p);
    d->volumes_changed = d->volumes_changed || drain_pod_of(p)->claim_count > 0;
    d->view.pod_state = d->view.pod_state == p ? NULL : d->view.pod_state;
    list_del(&p->link);
    buf_done(&p->server_message);
    item->extra = NULL;
    alloc_free(p);
    drain_mark(d);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void drain_on_synced(void *ctx)
{
    drain_mark(ctx);
}

static void drain_on_reset(void *ctx, uint64_t version UNUSED)
{
    drain_mark(ctx);
}

struct drain *drain_start(struct drains *ds, const struct drain_spec *spec,
                          void (*on_change)(void *ctx), void *ctx)
{
    ASSERT(spec->node.n > 0 && spec->eviction_timeout >= 0 && spec->deletion_timeout >= 0);
    struct drain *d = ALLOC_NEW(struct drain);
    *d = (struct drain){
        .drains = ds,
        .spec = *spec,
        .memory = { .first = 256 },
        .on_change = on_change,
        .ctx = ctx,
        .next = USEC_NEVER,
        .rests_since = ds->paused ? loop_now(ds->loop) : -1,
        .observing = (spec->flags & DRAIN_OBSERVE_ONLY) != 0,
    };
    d->spec.node = arena_str(&d->memory, spec->node);
    d->spec.node_uid = arena_str(&d->memory, spec->node_uid);
    d->spec.drain_rules = STR_NONE; /* drain_set_rules keeps the text */
    d->spec.force = spec->force || mutated(ds->config.client->mutations, MUTATION_PAST_BUDGET);
    list_init(&d->pod_states);
    list_init(&d->evictions);
    list_add(&ds->drains, &d->link);
    drain_set_rules(d, spec->drain_rules);
    ds->stats.active++;
    drains_watch_pdbs(ds);
    buf_reset(&ds->path);
    buf_add(&ds->path, STR("&fieldSelector=spec.nodeName%3D"));
    client_add_segment(&ds->path, d->spec.node);
    /* While the watch fails the last known pods count, and the server has the last word. */
    const struct informer_config config = {
        .client = ds->config.client,
        .kind = &drain_pod_kind,
        .query = arena_str(&d->memory, buf_str(&ds->path)),
        .on_change = drain_on_pod,
        .on_gone = drain_on_pod_gone,
        .on_synced = drain_on_synced,
        .on_reset = drain_on_reset,
        .ctx = d,
    };
    informer_init(&d->pods, &config);
    informer_start(&d->pods, STR("/api/v1/pods"));
    drain_mark(d);
    return d;
}

void drain_stop(struct drain *d)
{
    if (d == NULL) {
        return;
    }
    struct drains *ds = d->drains;
    LIST_EACH (&d->evictions, link) {
        eviction_free(CONTAINER_OF(link, struct eviction, link));
    }
    informer_done(&d->pods);
    drain_drop_rules(d);
    list_del(&d->link);
    ds->stats.active--;
    ds->stats.blocked -= d->view.blocked ? 1 : 0;
    if (list_empty(&ds->drains)) {
        drains_unwatch_pdbs(ds);
        loop_timer_stop(&ds->turn);
    }
    if (d->view.blocked) {
        drains_tell_blocked(ds);
    }
    buf_done(&d->event_key);
    map_done(&d->denials);
    buf_done(&d->reason);
    arena_done(&d->memory);
    alloc_free(d);
}

/* The time that budgets may refuse a pod does not go by while the drain rests: what was not asked
 * for was not refused, and nobody finds pods deleted by force when a long pause ends. */
static void drain_note_rest(struct drain *d)
{
    bool rests = d->paused || d->drains->paused;
    usec_t now = loop_now(d->drains->loop);
    if (rests == (d->rests_since >= 0)) {
        return;
    }
    LIST_EACH (&d->pod_states, link) {
        struct drain_pod_state *p = CONTAINER_OF(link, struct drain_pod_state, link);
        if (!rests && p->refused_at >= 0) {
            p->refused_at += now - MAX(p->refused_at, d->rests_since);
        }
    }
    d->rests_since = rests ? now : -1;
}

void drain_pause(struct drain *d, bool rest)
{
    if (d->paused != rest) {
        d->paused = rest;
        drain_note_rest(d);
        drain_mark(d);
    }
}

void drains_pause(struct drains *ds, bool rest)
{
    if (ds->paused != rest) {
        ds->paused = rest;
        LIST_EACH (&ds->drains, link) {
            drain_note_rest(CONTAINER_OF(link, struct drain, link));
        }
        drains_mark_all(ds);
    }
}

void drain_force(struct drain *d)
{
    if (!d->forcing) {
        d->forcing = true;
        d->spec.force = true;
        d->spec.eviction_timeout = 0;
        d->spec.deletion_timeout = DRAIN_FORCE_TIMEOUT;
        drain_mark(d);
    }
}

void drain_observe_only(struct drain *d)
{
    if (!d->observing) {
        d->observing = true;
        drain_mark(d);
    }
}

void drain_set_unreachable(struct drain *d, bool unreachable)
{
    if (d->unreachable != unreachable) {
        d->unreachable = unreachable;
        drain_mark(d);
    }
}

/* ── deciding ──────────────────────────────────────────────────────────────────────────────── */

void drain_pod_wait(struct drain_pod_state *p, enum drain_wait wait, usec_t since)
{
    if (p->last_wait != wait) {
        p->wait_since = since;
    }
    p->wait = wait;
    p->last_wait = wait;
}

static void drain_wake_at(struct drain *d, usec_t at)
{
    ASSERT(at > loop_now(d->drains->loop)); /* or steps would follow each other for ever */
    d->next = MIN(d->next, at);
}

/* Sends, or arranges to be called when that is possible. */
static void pod_state_send(struct drain_pod_state *p, usec_t now, enum drain_verb verb, bool exempt)
{
    struct drain *d = p->drain;
    if (d->paused || d->drains->paused) {
        return; /* drain_pause and drains_pause mark the drain when it goes on */
    }
    if (now < p->retry_at) {
        drain_wake_at(d, p->retry_at);
        return;
    }
    if (!evict_may_send(d)) {
        /* Too many requests in flight: an answer marks the drain. A closed client opens by time. */
        if (!client_open(d->drains->config.client)) {
            drain_wake_at(d, client_open_at(d->drains->config.client));
        }
        return;
    }
    evict_send(p, verb, exempt);
}

/* When budgets have refused the pod for too long. */
static usec_t pod_state_refused_until(const struct drain_pod_state *p)
{
    const struct drain *d = p->drain;
    usec_t due = drain_after(p->refused_at, d->spec.eviction_timeout);
    return d->rests_since >= 0 && due > d->rests_since ? USEC_NEVER : due;
}

static void pod_state_step_deleting(struct drain_pod_state *p, usec_t now, bool may_force)
{
    struct drain *d = p->drain;
    usec_t span = MAX(d->spec.deletion_timeout, drain_pod_of(p)->deletion_grace);
    usec_t due = drain_after(p->deleting_at, span);
    usec_t over = drain_after(p->deleting_at, drain_pod_of(p)->deletion_grace);
    d->left++;
    d->terminating++;
    if (now < due) {
        p->wait = DRAIN_WAIT_NONE;
        drain_wake_at(d, d->unreachable ? over : due);
        return;
    }
    drain_pod_wait(p, DRAIN_WAIT_STUCK, due);
    if (p->force_deleted_at >= 0) {
        usec_t deadline = p->force_deleted_at + DRAIN_BLOCKED_AFTER;
        drain_wake_at(d, now < deadline ? deadline : USEC_NEVER);
    } else if (d->spec.force && p->eviction == NULL && may_force) {
        pod_state_send(p, now, DRAIN_VERB_FORCE_DELETE, /* exempt= */ true);
    }
}

/* The pod's budget does not let it go, or it has several. */
static void pod_state_step_held(struct drain_pod_state *p, usec_t now)
{
    struct drain *d = p->drain;
    drain_pod_wait(p, p->many_pdbs ? DRAIN_WAIT_MANY_PDBS : DRAIN_WAIT_PDB, now);
    p->refused_at = p->refused_at < 0 ? now : p->refused_at;
    usec_t due = pod_state_refused_until(p);
    if (now < due) {
        drain_wake_at(d, due);
    } else if (d->spec.force) {
        pod_state_send(p, now, DRAIN_VERB_DELETE, /* exempt= */ true);
        return;
    }
    if (p->many_pdbs) {
        return;
    }
    if (p->pdb->refused_version >= p->pdb->item->version && now < p->pdb->retry_at) {
        drain_wake_at(d, p->pdb->retry_at);
    }
    if (!drain_pod_of(p)->ready) {
        if (p->unready_retry_at == 0) {
            p->unready_retry_at =
                now + backoff_next(&p->unready_backoff, loop_random(d->drains->loop));
        }
        if (now < p->unready_retry_at) {
            drain_wake_at(d, p->unready_retry_at);
        } else {
            pod_state_send(p, now, DRAIN_VERB_EVICT, /* exempt= */ true);
        }
    }
}

/* No budget is known to cover the pod: it goes, or a budget that is not known here refuses it. */
static void pod_state_step_without_pdb(struct drain_pod_state *p, usec_t now)
{
    struct drain *d = p->drain;
    bool force = false;
    if (p->refused_at >= 0) {
        usec_t due = pod_state_refused_until(p);
        drain_pod_wait(p, DRAIN_WAIT_PDB, p->refused_at);
        drain_wake_at(d, now < due ? due : USEC_NEVER);
        force = d->spec.force && now >= due;
    }
    pod_state_send(p, now, force ? DRAIN_VERB_DELETE : DRAIN_VERB_EVICT, /* exempt= */ true);
}

static void pod_state_step_running(struct drain_pod_state *p, usec_t now)
{
    drain_pod_match_pdb(p);
    const struct drain_pod *pod = drain_pod_of(p);
    if (p->drain->forcing) {
        pod_state_send(p, now, DRAIN_VERB_DELETE, /* exempt= */ true);
        return;
    }
    if (p->pdb == NULL) {
        pod_state_step_without_pdb(p, now);
        return;
    }
    /* The server looks whether there is one budget before it looks whether the pod is ready. */
    bool exempt = pod->pending || (!p->many_pdbs && pdb_exempts(pdb_of(p->pdb), pod));
    if (exempt && now >= p->unready_retry_at) {
        pod_state_send(p, now, DRAIN_VERB_EVICT, /* exempt= */ true);
    } else if (!p->many_pdbs && pdb_state_allows(p->pdb, now)) {
        /* What failed is shown until the server accepts it. */
        p->wait = p->wait == DRAIN_WAIT_FAILED ? p->wait : DRAIN_WAIT_NONE;
        pod_state_send(p, now, DRAIN_VERB_EVICT, /* exempt= */ false);
    } else {
        pod_state_step_held(p, now);
    }
}

static void pod_state_step(struct drain_pod_state *p, usec_t now)
{
    struct drain *d = p->drain;
    const struct drain_pod *pod = drain_pod_of(p);
    struct pod_verdict v = drain_pod_verdict(p);
    bool may_go = v.fate == POD_FATE_GOES && !d->forbidden && !d->observing;
    if (v.fate == POD_FATE_STAYS || drain_pod_is_gone(p, now)) {
        p->wait = DRAIN_WAIT_NONE;
        return;
    }
    if (pod->deleting) {
        pod_state_step_deleting(p, now, may_go && drain_pod_has_turn(p, &v));
        return;
    }
    d->left++;
    /* The policy decides anew about these waits below. */
    p->wait = p->wait >= DRAIN_WAIT_COMPLETION ? DRAIN_WAIT_NONE : p->wait;
    if (d->observing || p->accepted || (v.fate == POD_FATE_GOES && d->forbidden)) {
        p->wait = DRAIN_WAIT_NONE;
    } else if (v.fate != POD_FATE_GOES) {
        drain_pod_wait(p, v.wait, now);
    } else if (p->eviction == NULL && !drain_pod_has_turn(p, &v)) {
        drain_pod_wait(p, DRAIN_WAIT_ORDER, now);
    } else if (p->eviction == NULL && drains_pdbs_ready(d->drains)) {
        pod_state_step_running(p, now);
    }
}

/* ── showing ───────────────────────────────────────────────────────────────────────────────── */

/* A pod waits for its budget since the budget last let another pod go, at most. */
static usec_t pod_state_since(const struct drain_pod_state *p)
{
    bool moves = p->wait == DRAIN_WAIT_PDB && p->pdb != NULL;
    return moves ? MAX(p->wait_since, p->pdb->evicted_at) : p->wait_since;
}

static bool pod_state_timed_out(const struct drain_pod_state *p, usec_t now)
{
    const struct drain_spec *spec = &p->drain->spec;
    if (p->wait == DRAIN_WAIT_STUCK) {
        return !spec->force ||
               (p->force_deleted_at >= 0 && now >= p->force_deleted_at + DRAIN_BLOCKED_AFTER);
    }
    bool held = p->wait == DRAIN_WAIT_PDB || p->wait == DRAIN_WAIT_MANY_PDBS;
    return held && !spec->force && now >= pod_state_refused_until(p);
}

/* Nothing that is under way will end the wait. */
static bool pod_state_wait_is_final(const struct drain_pod_state *p, usec_t now)
{
    switch (p->wait) {
    case DRAIN_WAIT_MANY_PDBS:
    case DRAIN_WAIT_UNMANAGED:
    case DRAIN_WAIT_EMPTYDIR:
    case DRAIN_WAIT_DAEMONSET:
        return true;
    case DRAIN_WAIT_STUCK:
        return pod_state_timed_out(p, now);
    case DRAIN_WAIT_FAILED:
        return p->denied;
    case DRAIN_WAIT_RULES: /* the labels of namespaces may still come */
        return drain_rules_unusable(p->drain) || p->drain->drains->namespaces.denied;
    case DRAIN_WAIT_NONE:
    case DRAIN_WAIT_PDB:
    case DRAIN_WAIT_COMPLETION:
    case DRAIN_WAIT_ORDER:
        break;
    }
    return false;
}

/* The wait ends in the course of things: nobody has to see to it. */
static bool wait_is_expected(enum drain_wait wait)
{
    return wait == DRAIN_WAIT_COMPLETION || wait == DRAIN_WAIT_ORDER;
}

static bool pod_state_blocked(const struct drain_pod_state *p, usec_t now)
{
    if (wait_is_expected(p->wait)) {
        return false;
    }
    if (pod_state_wait_is_final(p, now) || now >= pod_state_since(p) + DRAIN_BLOCKED_AFTER) {
        return true;
    }
    drain_wake_at(p->drain, pod_state_since(p) + DRAIN_BLOCKED_AFTER);
    return false;
}

/* Which wait is shown first: trouble, then a pod that is waited for until it completes, then a pod
 * whose order has not come. */
static int pod_state_rank(const struct drain_pod_state *p)
{
    return p->wait == DRAIN_WAIT_ORDER ? 1 : p->wait == DRAIN_WAIT_COMPLETION ? 2 : 3;
}

static void drain_update_view(struct drain *d, usec_t now)
{
    bool synced = d->pods.synced;
    struct drain_view view = { .synced = synced, .done = synced && d->left == 0 };
    LIST_EACH (&d->pod_states, link) {
        const struct drain_pod_state *p = CONTAINER_OF(link, struct drain_pod_state, link);
        if (p->wait == DRAIN_WAIT_NONE) {
            continue;
        }
        bool late = pod_state_timed_out(p, now);
        usec_t since = pod_state_since(p);
        int rank = pod_state_rank(p);
        int most = view.pod_state != NULL ? pod_state_rank(view.pod_state) : 0;
        if ((late && !view.timed_out) || rank > most ||
            (late == view.timed_out && rank == most && since < d->longest_since)) {
            view.pod_state = p;
            d->longest_since = since;
            view.timed_out = late;
        }
    }
    buf_reset(&d->reason);
    if (view.pod_state != NULL) {
        view.wait = view.pod_state->wait;
        view.blocked = pod_state_blocked(view.pod_state, now);
        drain_explain(view.pod_state, &d->reason);
    }
    struct drains_stats *stats = &d->drains->stats;
    stats->finished += view.done && !d->view.done ? 1 : 0;
    stats->blocked -= d->view.blocked ? 1 : 0;
    stats->blocked += view.blocked ? 1 : 0;
    bool other = view.wait != d->view.wait || view.pod_state != d->view.pod_state;
    d->notify = d->notify || view.synced != d->view.synced || view.done != d->view.done ||
                view.blocked != d->view.blocked || view.timed_out != d->view.timed_out ||
                (view.blocked && other);
    bool all = (d->spec.flags & DRAIN_NOTIFY_ALL) != 0;
    d->notify = d->notify || (all && (d->left != d->notified_left || d->volumes_changed || other));
    d->notified_left = d->left;
    d->volumes_changed = false;
    bool told = view.blocked == d->view.blocked;
    d->view = view;
    if (!told) {
        drains_tell_blocked(d->drains);
    }
    if (view.blocked) {
        drain_event_blocked(d);
    }
}

static void drain_step(struct drain *d, usec_t now)
{
    d->dirty = false;
    d->next = USEC_NEVER;
    d->left = 0;
    d->terminating = 0;
    drain_update_order(d, now);
    LIST_EACH (&d->evictions, link) {
        struct eviction *f = CONTAINER_OF(link, struct eviction, link);
        if (f->call != NULL) {
            continue;
        }
        if (now >= f->settle_at) {
            eviction_settle(f);
        } else {
            drain_wake_at(d, f->settle_at);
        }
    }
    if (d->pods.synced) {
        LIST_EACH (&d->pod_states, link) {
            pod_state_step(CONTAINER_OF(link, struct drain_pod_state, link), now);
        }
    }
    if (!drains_pdbs_ready(d->drains)) {
        drain_wake_at(d, d->drains->pdbs_deadline);
    }
    if (d->forcing && d->drain_rules.rules.by_namespace &&
        drains_await_namespaces(d->drains, now)) {
        drain_wake_at(d, d->drains->namespaces.deadline);
    }
    drain_update_view(d, now);
}

/* Callbacks may start and stop drains, so the list is walked from its head after each. */
static void drains_notify(struct drains *ds)
{
    for (struct list *link = ds->drains.next; link != &ds->drains;) {
        struct drain *d = CONTAINER_OF(link, struct drain, link);
        link = link->next;
        if (d->notify) {
            d->notify = false;
            d->on_change(d->ctx);
            link = ds->drains.next;
        }
    }
}

static void drains_turn(void *ctx)
{
    struct drains *ds = ctx;
    usec_t now = loop_now(ds->loop);
    if (ds->config.may_act != NULL && !ds->config.may_act(ds->config.ctx)) {
        /* A controller that has lost its lease stops the drains in a moment; or it renews it. */
        loop_timer_set(&ds->turn, now + DRAIN_MAY_ACT_RETRY);
        return;
    }
    if (!drains_pdbs_ready(ds) && now >= ds->pdbs_deadline) {
        ds->pdbs_unwatched = true;
        ds->pdb_changes++;
        drains_mark_all(ds);
    }
    /* The oldest drain first: the first to ask a budget gets its disruption. */
    LIST_EACH (&ds->drains, link) {
        struct drain *d = CONTAINER_OF(link, struct drain, link);
        if (d->dirty || now >= d->next) {
            drain_step(d, now);
        }
    }
    usec_t next = USEC_NEVER;
    LIST_EACH (&ds->drains, link) {
        const struct drain *d = CONTAINER_OF(link, struct drain, link);
        next = MIN(next, d->dirty ? now : d->next);
    }
    if (next == USEC_NEVER) {
        loop_timer_stop(&ds->turn);
    } else {
        loop_timer_set(&ds->turn, next);
    }
    drains_notify(ds);
}

bool drain_is_done(const struct drain *d)
{
    return d->view.done;
}

void drain_status(const struct drain *d, struct drain_status *ret)
{
    struct loop *loop = d->drains->loop;
    *ret = (struct drain_status){
        .synced = d->view.synced,
        .left = d->left,
        .terminating = d->terminating,
        .evicted = d->evicted,
        .refused = d->refused,
        .forced = d->forced,
        .blocked = d->view.blocked,
        .timed_out = d->view.timed_out,
    };
    const struct drain_pod_state *p = d->view.pod_state;
    if (p != NULL) {
        ret->pod = drain_name(p->item);
        ret->wait = p->wait;
        ret->namespace = drain_namespace(p->item);
        ret->pdb =
            p->wait == DRAIN_WAIT_PDB && p->pdb != NULL ? drain_name(p->pdb->item) : STR_NONE;
        ret->reason = buf_str(&d->reason);
        ret->since = loop_wall(loop) - (loop_now(loop) - d->longest_since);
    }
}

void drains_each(const struct drains *ds,
                 void (*fn)(void *ctx, struct str node, const struct drain *d), void *ctx)
{
    LIST_EACH (&ds->drains, link) {
        const struct drain *d = CONTAINER_OF(link, struct drain, link);
        if (!d->view.done) {
            fn(ctx, d->spec.node, d);
        }
    }
}

void drains_stats(const struct drains *ds, struct drains_stats *ret)
{
    *ret = ds->stats;
    ret->pdbs_unwatched = ds->pdbs_unwatched;
}

uint32_t drain_waiting_pods(const struct drain *d, struct arena *out, struct drain_waiting_pod *ret,
                            uint32_t max)
{
    CLEANUP(buf_done)
    struct buf reason = { 0 };
    uint32_t n = 0;
    for (int expected = 0; expected <= 1; expected++) {
        LIST_EACH (&d->pod_states, link) {
            const struct drain_pod_state *p = CONTAINER_OF(link, struct drain_pod_state, link);
            if (p->wait == DRAIN_WAIT_NONE || wait_is_expected(p->wait) != (expected == 1) ||
                n++ >= max) {
                continue;
            }
            buf_reset(&reason);
            drain_explain(p, &reason);
            ret[n - 1] = (struct drain_waiting_pod){
                .namespace = arena_str(out, drain_namespace(p->item)),
                .pod = arena_str(out, drain_name(p->item)),
                .wait = p->wait,
                .reason = arena_str(out, buf_str(&reason)),
            };
        }
    }
    return n;
}

void drain_each_volume_claim(const struct drain *d,
                             void (*fn)(void *ctx, struct str namespace, struct str claim),
                             void *ctx)
{
    LIST_EACH (&d->pod_states, link) {
        const struct drain_pod_state *p = CONTAINER_OF(link, struct drain_pod_state, link);
        const struct drain_pod *pod = drain_pod_of(p);
        bool stay = pod->claim_count > 0 && drain_pod_verdict(p).keeps_volumes;
        for (uint32_t i = 0; stay && i < pod->claim_count; i++) {
            fn(ctx, drain_namespace(p->item), pod->claims[i]);
        }
    }
}

static void drain_check(const struct drain *d)
{
    uint32_t in_flight = 0;
    store_check(&d->pods.store);
    const struct drain_pod_state *last = NULL;
    LIST_EACH (&d->pod_states, link) {
        const struct drain_pod_state *p = CONTAINER_OF(link, struct drain_pod_state, link);
        ASSERT(p->item->extra == p);
        ASSERT(last == NULL || str_cmp(last->item->name, p->item->name) < 0);
        ASSERT((p->pdb != NULL) == list_linked(&p->pdb_link));
        ASSERT(p->eviction == NULL || p->eviction->pod_state == p);
        last = p;
    }
    LIST_EACH (&d->evictions, link) {
        const struct eviction *f = CONTAINER_OF(link, struct eviction, link);
        in_flight += f->call != NULL ? 1 : 0;
        ASSERT(f->call != NULL || list_linked(&f->unsettled_link));
        ASSERT(f->pod_state == NULL || f->pod_state->eviction == f);
        ASSERT(!list_linked(&f->unsettled_link) || f->pdb != NULL);
    }
    ASSERT(in_flight == d->in_flight && in_flight <= DRAIN_IN_FLIGHT_MAX);
    /* Whatever is to be done is done in a turn, and a turn is due. */
    ASSERT(!d->dirty || d->drains->turn.armed);
    ASSERT(d->next == USEC_NEVER || d->drains->turn.armed);
}

void drains_check(const struct drains *ds)
{
    uint32_t active = 0;
    uint32_t readers = 0;
    LIST_EACH (&ds->drains, link) {
        const struct drain *d = CONTAINER_OF(link, struct drain, link);
        drain_check(d);
        active++;
        readers += d->drain_rules.rules.by_namespace ? 1 : 0;
    }
    ASSERT(active == ds->stats.active);
    ASSERT(readers == ds->namespaces.readers);
    ASSERT(ds->watching == (active > 0));
    if (!ds->watching) {
        return;
    }
    store_check(&ds->pdbs.store);
    MAP_EACH (&ds->pdbs.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct pdb_state *w = item->extra;
        uint32_t unsettled_n = 0;
        if (w == NULL) {
            continue;
        }
        ASSERT(w->item == item);
        LIST_EACH (&w->unsettled, link) {
            ASSERT(CONTAINER_OF(link, struct eviction, unsettled_link)->pdb == w);
            unsettled_n++;
        }
        ASSERT(unsettled_n == w->unsettled_n);
    }
}
