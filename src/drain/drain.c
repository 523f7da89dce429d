#include "drain/drain.h"

#include "base/alloc.h"
#include "drain/drain_internal.h"

#define DRAIN_ASK_AGAIN SECONDS(1) /* whether it may act; nothing else would wake it */

static void drains_turn(void *ctx);

struct drains *drains_new(struct loop *loop, const struct drains_config *config)
{
    struct drains *ds = ALLOC_NEW(struct drains);
    ds->loop = loop;
    ds->config = *config;
    ds->shape = 1; /* no patient has been matched against it */
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

/* ── patients ──────────────────────────────────────────────────────────────────────────────── */

/* A deletion that was under way before we looked began when its times say, by the wall clock; one
 * that we saw begin began now. After that only the monotonic clock counts. */
static void patient_note_deletion(struct drain_patient *p, bool seen_before)
{
    struct loop *loop = p->drain->drains->loop;
    const struct drain_pod *pod = drain_patient_pod(p);
    if (!pod->deleting || p->deleting_at != USEC_NEVER) {
        return;
    }
    usec_t ago = loop_wall(loop) - (pod->deletion_wall - pod->deletion_grace);
    usec_t now = loop_now(loop);
    p->deleting_at = seen_before || ago < 0 ? now : now - ago;
    if (p->flight != NULL) {
        p->flight->seen_version = p->item->version;
    }
}

/* All that was known is about another pod, or about none yet. */
static void patient_reset(struct drain_patient *p)
{
    if (p->flight != NULL) {
        p->flight->seen_version = p->item->version;
        drain_flight_orphan(p->flight);
    }
    drain_patient_uncover(p);
    p->accepted = false;
    p->gone = false;
    p->killed = false;
    p->retry_at = 0;
    p->backoff = (struct backoff){ 0 };
    p->refused_at = -1;
    p->deleting_at = USEC_NEVER;
    p->try_at = 0;
    p->tries = (struct backoff){ .base = DRAIN_UNREADY_BASE, .max = DRAIN_UNREADY_MAX };
    p->wait = DRAIN_WAIT_NONE;
    p->waited = DRAIN_WAIT_NONE;
}

static struct drain_patient *patient_new(struct drain *d, struct store_item *item)
{
    struct drain_patient *p = ALLOC_NEW(struct drain_patient);
    p->drain = d;
    p->item = item;
    item->extra = p;
    patient_reset(p);
    struct list *before = d->patients.prev;
    while (before != &d->patients &&
           str_cmp(CONTAINER_OF(before, struct drain_patient, link)->item->name, item->name) > 0) {
        before = before->prev;
    }
    list_add(before->next, &p->link); /* in front of the next one */
    return p;
}

static void drain_on_pod(void *ctx, struct store_item *item, const void *before)
{
    struct drain *d = ctx;
    const struct drain_pod *was = before;
    struct drain_patient *p = item->extra;
    if (p == NULL) {
        p = patient_new(d, item);
    } else if (was != NULL && !str_eq(was->uid, drain_patient_pod(p)->uid)) {
        patient_reset(p);
        was = NULL;
    } else {
        drain_patient_uncover(p); /* its labels may be others */
    }
    patient_note_deletion(p, was != NULL && !was->deleting);
    d->stirred = d->stirred || drain_patient_pod(p)->claim_count > 0;
    drain_mark(d);
}

static void drain_on_pod_gone(void *ctx, struct store_item *item)
{
    struct drain *d = ctx;
    struct drain_patient *p = item->extra;
    if (p == NULL) {
        return;
    }
    patient_reset(p);
    d->stirred = d->stirred || drain_patient_pod(p)->claim_count > 0;
    d->worst = d->worst == p ? NULL : d->worst;
    d->view.patient = d->view.patient == p ? NULL : d->view.patient;
    list_del(&p->link);
    buf_done(&p->why);
    item->extra = NULL;
    alloc_free(p);
    drain_mark(d);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void pods_on_list(void *ctx)
{
    struct drain *d = ctx;
    store_list_begin(&d->pods);
}

static int pods_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct drain *d = ctx;
    return store_observe(&d->pods, object, deleted, err);
}

static bool pods_on_synced(void *ctx, uint64_t version)
{
    struct drain *d = ctx;
    d->synced = store_list_end(&d->pods, version);
    drain_mark(d);
    return d->synced;
}

static void pods_on_error(void *ctx UNUSED, const struct err *err UNUSED, bool bad UNUSED)
{
    /* It goes on by itself; until then what is known counts, and the server has the last word. */
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
        .looking = (spec->rules & DRAIN_LOOK) != 0,
    };
    d->spec.node = arena_str(&d->memory, spec->node);
    d->spec.node_uid = arena_str(&d->memory, spec->node_uid);
    d->spec.book = STR_NONE; /* it has a place of its own */
    d->spec.force = spec->force || mutated(ds->config.mutations, MUTATION_PAST_BUDGET);
    list_init(&d->patients);
    list_init(&d->flights);
    list_add(&ds->drains, &d->link);
    drain_set_book(d, spec->book);
    ds->stats.active++;
    drains_watch_budgets(ds);
    store_init(&d->pods, &drain_pod_kind, d, loop_random(ds->loop));
    d->pods.mutations = ds->config.mutations;
    d->pods.on_change = drain_on_pod;
    d->pods.on_gone = drain_on_pod_gone;
    buf_reset(&ds->path);
    buf_add(&ds->path, STR("&fieldSelector=spec.nodeName%3D"));
    client_add_segment(&ds->path, d->spec.node);
    const struct reflector_config config = {
        .path = STR("/api/v1/pods"),
        .query = arena_str(&d->memory, buf_str(&ds->path)),
        .on_list = pods_on_list,
        .on_object = pods_on_object,
        .on_synced = pods_on_synced,
        .on_error = pods_on_error,
        .ctx = d,
    };
    reflector_init(&d->reflector, ds->config.client, &config);
    reflector_start(&d->reflector);
    drain_mark(d);
    return d;
}

void drain_stop(struct drain *d)
{
    if (d == NULL) {
        return;
    }
    struct drains *ds = d->drains;
    LIST_EACH (&d->flights, link) {
        drain_flight_free(CONTAINER_OF(link, struct drain_flight, link));
    }
    reflector_done(&d->reflector);
    store_done(&d->pods);
    drain_drop_book(d);
    list_del(&d->link);
    ds->stats.active--;
    ds->stats.blocked -= d->view.blocked ? 1 : 0;
    if (list_empty(&ds->drains)) {
        drains_unwatch_budgets(ds);
        loop_timer_stop(&ds->turn);
    }
    buf_done(&d->told);
    buf_done(&d->reason);
    arena_done(&d->memory);
    alloc_free(d);
}

void drain_rest(struct drain *d, bool rest)
{
    if (d->resting != rest) {
        d->resting = rest;
        drain_mark(d);
    }
}

/* ── deciding ──────────────────────────────────────────────────────────────────────────────── */

void drain_patient_wait(struct drain_patient *p, enum drain_wait wait, usec_t since)
{
    if (p->waited != wait) {
        p->wait_at = since;
    }
    p->wait = wait;
    p->waited = wait;
}

static void drain_look_at(struct drain *d, usec_t at)
{
    ASSERT(at > loop_now(d->drains->loop)); /* or it would be looked at for ever */
    d->next = MIN(d->next, at);
}

/* Sends, or arranges to be called when that is possible. */
static void patient_send(struct drain_patient *p, usec_t now, enum drain_deed deed, bool exempt)
{
    struct drain *d = p->drain;
    if (d->resting) {
        return; /* it is marked when it goes on */
    }
    if (now < p->retry_at) {
        drain_look_at(d, p->retry_at);
        return;
    }
    if (!drain_may_send(d)) {
        /* A full window is opened by an answer, a closed gate by time. */
        if (!client_open(d->drains->config.client)) {
            drain_look_at(d, client_open_at(d->drains->config.client));
        }
        return;
    }
    drain_send(p, deed, exempt);
}

static void patient_step_deleting(struct drain_patient *p, usec_t now, bool may_kill)
{
    struct drain *d = p->drain;
    usec_t span = MAX(d->spec.deletion_timeout, drain_patient_pod(p)->deletion_grace);
    usec_t due = drain_after(p->deleting_at, span);
    usec_t over = drain_after(p->deleting_at, drain_patient_pod(p)->deletion_grace);
    d->left++;
    d->terminating++;
    if (now < due) {
        p->wait = DRAIN_WAIT_NONE;
        drain_look_at(d, d->unreachable ? over : due);
        return;
    }
    drain_patient_wait(p, DRAIN_WAIT_STUCK, due);
    if (p->killed) {
        usec_t patience = p->killed_at + DRAIN_BLOCKED_AFTER;
        drain_look_at(d, now < patience ? patience : USEC_NEVER);
    } else if (d->spec.force && p->flight == NULL && may_kill) {
        patient_send(p, now, DRAIN_KILL, /* exempt= */ true);
    }
}

/* Its budget holds it. */
static void patient_step_held(struct drain_patient *p, usec_t now)
{
    struct drain *d = p->drain;
    drain_patient_wait(p, p->many ? DRAIN_WAIT_MANY : DRAIN_WAIT_BUDGET, now);
    p->refused_at = p->refused_at < 0 ? now : p->refused_at;
    usec_t due = drain_after(p->refused_at, d->spec.eviction_timeout);
    if (now < due) {
        drain_look_at(d, due);
    } else if (d->spec.force) {
        patient_send(p, now, DRAIN_DELETE, /* exempt= */ true);
        return;
    }
    if (p->many) {
        return;
    }
    if (p->warden->refused_version >= p->warden->item->version && now < p->warden->retry_at) {
        drain_look_at(d, p->warden->retry_at);
    }
    if (!drain_patient_pod(p)->ready) {
        if (p->try_at == 0) {
            p->try_at = now + backoff_next(&p->tries, loop_random(d->drains->loop));
        }
        if (now < p->try_at) {
            drain_look_at(d, p->try_at);
        } else {
            patient_send(p, now, DRAIN_EVICT, /* exempt= */ true);
        }
    }
}

/* No budget is known to cover it: it goes, or one that is not known here refuses it. */
static void patient_step_free(struct drain_patient *p, usec_t now)
{
    struct drain *d = p->drain;
    bool force = false;
    if (p->refused_at >= 0) {
        usec_t due = drain_after(p->refused_at, d->spec.eviction_timeout);
        drain_patient_wait(p, DRAIN_WAIT_BUDGET, p->refused_at);
        drain_look_at(d, now < due ? due : USEC_NEVER);
        force = d->spec.force && now >= due;
    }
    patient_send(p, now, force ? DRAIN_DELETE : DRAIN_EVICT, /* exempt= */ true);
}

static void patient_step_alive(struct drain_patient *p, usec_t now)
{
    drain_patient_match(p);
    const struct drain_pod *pod = drain_patient_pod(p);
    if (p->drain->forcing) {
        patient_send(p, now, DRAIN_DELETE, /* exempt= */ true);
        return;
    }
    if (p->warden == NULL) {
        patient_step_free(p, now);
        return;
    }
    /* The server looks whether there is one budget before it looks whether the pod is ready. */
    bool exempt =
        pod->pending || (!p->many && drain_budget_exempts(drain_warden_budget(p->warden), pod));
    if (exempt && now >= p->try_at) {
        patient_send(p, now, DRAIN_EVICT, /* exempt= */ true);
    } else if (!p->many && drain_warden_open(p->warden, now)) {
        p->wait = DRAIN_WAIT_NONE;
        patient_send(p, now, DRAIN_EVICT, /* exempt= */ false);
    } else {
        patient_step_held(p, now);
    }
}

static void patient_step(struct drain_patient *p, usec_t now)
{
    struct drain *d = p->drain;
    const struct drain_pod *pod = drain_patient_pod(p);
    enum drain_wait wait = DRAIN_WAIT_NONE;
    enum drain_lot lot = drain_patient_lot(p, &wait);
    bool may_go = lot == DRAIN_GOES && !d->barred && !d->looking;
    if (lot == DRAIN_STAYS || drain_patient_is_over(p, now)) {
        p->wait = DRAIN_WAIT_NONE;
        return;
    }
    if (pod->deleting) {
        patient_step_deleting(p, now, may_go && drain_has_turn(p));
        return;
    }
    d->left++;
    /* What it was not its time for, or nobody's, says nothing about now. */
    p->wait = p->wait >= DRAIN_WAIT_COMPLETION ? DRAIN_WAIT_NONE : p->wait;
    if (d->looking || p->accepted || (lot == DRAIN_GOES && d->barred)) {
        p->wait = DRAIN_WAIT_NONE;
    } else if (lot != DRAIN_GOES) {
        drain_patient_wait(p, wait, now);
    } else if (p->flight == NULL && !drain_has_turn(p)) {
        drain_patient_wait(p, DRAIN_WAIT_ORDER, now);
    } else if (p->flight == NULL && drains_ready(d->drains)) {
        patient_step_alive(p, now);
    }
}

/* ── showing ───────────────────────────────────────────────────────────────────────────────── */

/* A budget that lets others go makes nobody wait longer than since then. */
static usec_t patient_since(const struct drain_patient *p)
{
    bool moves = p->wait == DRAIN_WAIT_BUDGET && p->warden != NULL;
    return moves ? MAX(p->wait_at, p->warden->moved_at) : p->wait_at;
}

static bool patient_timed_out(const struct drain_patient *p, usec_t now)
{
    const struct drain_spec *spec = &p->drain->spec;
    if (p->wait == DRAIN_WAIT_STUCK) {
        return !spec->force || (p->killed && now >= p->killed_at + DRAIN_BLOCKED_AFTER);
    }
    bool held = p->wait == DRAIN_WAIT_BUDGET || p->wait == DRAIN_WAIT_MANY;
    return held && !spec->force && now >= drain_after(p->refused_at, spec->eviction_timeout);
}

/* It is not that something is only slow to come. */
static bool patient_wait_is_final(const struct drain_patient *p, usec_t now)
{
    switch (p->wait) {
    case DRAIN_WAIT_MANY:
    case DRAIN_WAIT_UNMANAGED:
    case DRAIN_WAIT_LOCAL:
    case DRAIN_WAIT_DAEMON:
        return true;
    case DRAIN_WAIT_STUCK:
        return patient_timed_out(p, now);
    case DRAIN_WAIT_RULES: /* or the labels of namespaces are on their way */
        return drain_book_is_bad(p->drain) || p->drain->drains->spaces.denied;
    case DRAIN_WAIT_NONE:
    case DRAIN_WAIT_BUDGET:
    case DRAIN_WAIT_FAILED:
    case DRAIN_WAIT_COMPLETION:
    case DRAIN_WAIT_ORDER:
        break;
    }
    return false;
}

static bool patient_blocked(const struct drain_patient *p, usec_t now)
{
    if (drain_wait_is_calm(p->wait)) {
        return false;
    }
    if (patient_wait_is_final(p, now) || now >= patient_since(p) + DRAIN_BLOCKED_AFTER) {
        return true;
    }
    drain_look_at(p->drain, patient_since(p) + DRAIN_BLOCKED_AFTER);
    return false;
}

/* Who only waits for its own end says nothing while another is in trouble, and who waits for
 * others says nothing while one of them can. */
static int patient_rank(const struct drain_patient *p)
{
    return p->wait == DRAIN_WAIT_ORDER ? 1 : p->wait == DRAIN_WAIT_COMPLETION ? 2 : 3;
}

static void drain_show(struct drain *d, usec_t now)
{
    struct drain_view view = { .synced = d->synced, .done = d->synced && d->left == 0 };
    d->worst = NULL;
    LIST_EACH (&d->patients, link) {
        struct drain_patient *p = CONTAINER_OF(link, struct drain_patient, link);
        if (p->wait == DRAIN_WAIT_NONE) {
            continue;
        }
        bool late = patient_timed_out(p, now);
        usec_t since = patient_since(p);
        int rank = patient_rank(p);
        int most = d->worst != NULL ? patient_rank(d->worst) : 0;
        if ((late && !view.timed_out) || rank > most ||
            (late == view.timed_out && rank == most && since < d->worst_since)) {
            d->worst = p;
            d->worst_since = since;
            view.timed_out = late;
        }
    }
    buf_reset(&d->reason);
    if (d->worst != NULL) {
        view.wait = d->worst->wait;
        view.patient = d->worst;
        view.blocked = patient_blocked(d->worst, now);
        drain_explain(d->worst, &d->reason);
    }
    struct drains_stats *stats = &d->drains->stats;
    stats->finished += view.done && !d->view.done ? 1 : 0;
    stats->blocked -= d->view.blocked ? 1 : 0;
    stats->blocked += view.blocked ? 1 : 0;
    bool other = view.wait != d->view.wait || view.patient != d->view.patient;
    d->notify = d->notify || view.synced != d->view.synced || view.done != d->view.done ||
                view.blocked != d->view.blocked || view.timed_out != d->view.timed_out ||
                (view.blocked && other);
    bool all = (d->spec.rules & DRAIN_TELL_ALL) != 0;
    d->notify = d->notify || (all && (d->left != d->shown || d->stirred || other));
    d->shown = d->left;
    d->stirred = false;
    d->view = view;
    if (view.blocked) {
        drain_tell_blocked(d);
    }
}

static void drain_step(struct drain *d, usec_t now)
{
    d->dirty = false;
    d->next = USEC_NEVER;
    d->left = 0;
    d->terminating = 0;
    drain_find_turn(d, now);
    LIST_EACH (&d->flights, link) {
        struct drain_flight *f = CONTAINER_OF(link, struct drain_flight, link);
        if (f->call != NULL) {
            continue;
        }
        if (now >= f->settle_at) {
            drain_warden_settle(f);
        } else {
            drain_look_at(d, f->settle_at);
        }
    }
    if (d->synced) {
        LIST_EACH (&d->patients, link) {
            patient_step(CONTAINER_OF(link, struct drain_patient, link), now);
        }
    }
    if (!drains_ready(d->drains)) {
        drain_look_at(d, d->drains->blind_at);
    }
    if (d->forcing && d->book.rules.by_space && drains_await_spaces(d->drains, now)) {
        drain_look_at(d, d->drains->spaces.patience);
    }
    drain_show(d, now);
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
        /* Whoever has lost the right stops the drains in a moment; or it is renewed. */
        loop_timer_set(&ds->turn, now + DRAIN_ASK_AGAIN);
        return;
    }
    if (!drains_ready(ds) && now >= ds->blind_at) {
        ds->blind = true;
        ds->shape++;
        drains_mark_all(ds);
    }
    /* In the order of age: who asks a budget first gets it. */
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
    const struct drain_patient *p = d->worst;
    if (p != NULL) {
        ret->pod = drain_name(p->item);
        ret->wait = p->wait;
        ret->space = drain_space(p->item);
        ret->budget = p->wait == DRAIN_WAIT_BUDGET && p->warden != NULL
                          ? drain_name(p->warden->item)
                          : STR_NONE;
        ret->reason = buf_str(&d->reason);
        ret->since = loop_wall(loop) - (loop_now(loop) - d->worst_since);
    }
}

void drains_stats(const struct drains *ds, struct drains_stats *ret)
{
    *ret = ds->stats;
    ret->blind = ds->blind;
}

static void drain_check(const struct drain *d)
{
    uint32_t flying = 0;
    store_check(&d->pods);
    const struct drain_patient *last = NULL;
    LIST_EACH (&d->patients, link) {
        const struct drain_patient *p = CONTAINER_OF(link, struct drain_patient, link);
        ASSERT(p->item->extra == p);
        ASSERT(last == NULL || str_cmp(last->item->name, p->item->name) < 0);
        ASSERT((p->warden != NULL) == list_linked(&p->cover));
        ASSERT(p->flight == NULL || p->flight->patient == p);
        last = p;
    }
    LIST_EACH (&d->flights, link) {
        const struct drain_flight *f = CONTAINER_OF(link, struct drain_flight, link);
        flying += f->call != NULL ? 1 : 0;
        ASSERT(f->call != NULL || list_linked(&f->charge));
        ASSERT(f->patient == NULL || f->patient->flight == f);
        ASSERT(!list_linked(&f->charge) || f->warden != NULL);
    }
    ASSERT(flying == d->flying && flying <= DRAIN_WINDOW);
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
        readers += d->book.rules.by_space ? 1 : 0;
    }
    ASSERT(active == ds->stats.active);
    ASSERT(readers == ds->spaces.readers);
    ASSERT(ds->watching == (active > 0));
    if (!ds->watching) {
        return;
    }
    store_check(&ds->budgets);
    MAP_EACH (&ds->budgets.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct drain_warden *w = item->extra;
        uint32_t charged = 0;
        if (w == NULL) {
            continue;
        }
        ASSERT(w->item == item);
        LIST_EACH (&w->charges, link) {
            ASSERT(CONTAINER_OF(link, struct drain_flight, charge)->warden == w);
            charged++;
        }
        ASSERT(charged == w->charged);
    }
}
