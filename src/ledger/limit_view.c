/*
 * What others may see: why an ask waits and which options apply to it; the numbers of a limit.
 */
#include "base/timestamp.h"
#include "ledger/arbiter_internal.h"

static const struct str ask_why_names[] = {
    [ASK_WHY_NONE] = STR_INIT(""),
    [ASK_WHY_LIMIT_REACHED] = STR_INIT("LimitReached"),
    [ASK_WHY_TARGET_BUSY] = STR_INIT("TargetBusy"),
    [ASK_WHY_PAUSED] = STR_INIT("Paused"),
    [ASK_WHY_ALL_PAUSED] = STR_INIT("AllPaused"),
    [ASK_WHY_GAP] = STR_INIT("Gap"),
    [ASK_WHY_NOT_COMPUTED] = STR_INIT("NotComputed"),
    [ASK_WHY_BACKOFF] = STR_INIT("Backoff"),
    [ASK_WHY_TARGET_NOT_FOUND] = STR_INIT("TargetNotFound"),
    [ASK_WHY_DENIED] = STR_INIT("NoLimitConfigured"),
    [ASK_WHY_LEDGER_FULL] = STR_INIT("LedgerFull"),
};

static struct str ask_type_name(const struct ask *k)
{
    return target_type_name(k->spec.type);
}

/* The holder of the target: named in its Lease, or an ask that is about to create one. */
static struct str busy_name(const struct ask *k)
{
    const struct target_lock *l = k->lock;
    if (l->exists) {
        return l->holder_name.n > 0 ? buf_str(&l->holder_name) : buf_str(&l->holder);
    }
    return l->taker != NULL && l->taker != k ? l->taker->spec.name : STR_NONE;
}

static struct str busy_uid(const struct ask *k)
{
    const struct target_lock *l = k->lock;
    if (l->exists) {
        return buf_str(&l->holder);
    }
    return l->taker != NULL && l->taker != k ? l->taker->spec.uid : STR_NONE;
}

static struct str oldest_holder(const struct limit *l)
{
    const struct reservation *oldest = NULL;
    for (uint32_t i = 0; i < l->reservations.n; i++) {
        if (oldest == NULL || l->reservations.items[i].granted < oldest->granted) {
            oldest = &l->reservations.items[i];
        }
    }
    return oldest != NULL ? oldest->uid : STR_NONE;
}

static struct str limit_reached_text(const struct limit_state *b, struct arena *out)
{
    const struct limit *l = limit_of(b);
    const struct limit_counts *t = &b->counts;
    return arena_printf(out,
                        "limit " STR_FMT ": %u granted and %u unavailable of %u allowed (%u %% of "
                        "%u)",
                        STR_ARG(l->name), t->granted, t->unavailable,
                        limit_nominal(l, t->population), l->percent, t->population);
}

static struct str gap_text(const struct limit *l, struct arena *out)
{
    char text[TIMESTAMP_TEXT_MAX];
    usec_t end = limit_gap_end(l);
    if (end == 0) {
        return arena_printf(out, "limit " STR_FMT ": another operation begins or ends",
                            STR_ARG(l->name));
    }
    return arena_printf(out, "limit " STR_FMT ": nothing is granted before " STR_FMT,
                        STR_ARG(l->name), STR_ARG(timestamp_print_seconds(end, text)));
}

/* The highest number above the one that is asked for which the server has for the ask's uid. */
static uint32_t newer_grant(const struct ask *k)
{
    const struct target_lock *l = k->lock;
    uint32_t newest = 0;
    if (l->exists && target_lock_is_held_by(l, k->spec.uid) && !ask_grant_is_current(k, l->grant)) {
        newest = l->grant;
    }
    for (uint32_t i = 0; i < k->applied_n; i++) {
        const struct reservation *entry = limit_state_reservation(k->applied[i].limit, k->spec.uid);
        if (entry != NULL && !ask_grant_is_current(k, entry->grant)) {
            newest = MAX(newest, entry->grant);
        }
    }
    return newest > k->spec.grant ? newest : 0;
}

static struct str not_computed_text(const struct ask *k, struct arena *out)
{
    const struct arbiter *a = k->arbiter;
    const struct limit_state *b = k->blocking_limit;
    if (a->may_act && newer_grant(k) > 0) {
        return arena_printf(out,
                            "something is held for grant %u of this request, which its status "
                            "does not know",
                            newer_grant(k));
    }
    if (b != NULL && !b->usable) {
        return arena_printf(out, "limit " STR_FMT ": " STR_FMT, STR_ARG(limit_of(b)->name),
                            STR_ARG(b->problem));
    }
    if (a->may_act) {
        return arena_printf(out, "objects of type " STR_FMT " cannot be read",
                            STR_ARG(ask_type_name(k)));
    }
    return STR("this controller does not lead, or does not know the cluster yet");
}

static struct str ask_why_text(const struct ask *k, struct arena *out)
{
    const struct limit_state *b = k->blocking_limit;
    struct str name = b != NULL ? limit_of(b)->name : STR_NONE;
    switch (k->why) {
    case ASK_WHY_NONE:
        break;
    case ASK_WHY_LIMIT_REACHED:
        return b != NULL ? limit_reached_text(b, out) : STR_NONE;
    case ASK_WHY_TARGET_BUSY:
        return arena_printf(out, STR_FMT " " STR_FMT " is held by " STR_FMT,
                            STR_ARG(ask_type_name(k)), STR_ARG(k->target_name),
                            STR_ARG(busy_name(k)));
    case ASK_WHY_PAUSED:
        return arena_printf(out, "limit " STR_FMT " is paused", STR_ARG(name));
    case ASK_WHY_ALL_PAUSED:
        return arena_str(out, arbiter_paused(k->arbiter));
    case ASK_WHY_GAP:
        return b != NULL ? gap_text(limit_of(b), out) : STR_NONE;
    case ASK_WHY_NOT_COMPUTED:
        return not_computed_text(k, out);
    case ASK_WHY_BACKOFF:
        return arena_printf(out, "limit " STR_FMT " is written by somebody else all the time",
                            STR_ARG(name));
    case ASK_WHY_TARGET_NOT_FOUND:
        return arena_printf(out, "there is no " STR_FMT " " STR_FMT, STR_ARG(ask_type_name(k)),
                            STR_ARG(k->target_name));
    case ASK_WHY_DENIED:
        return arena_printf(out, "no MaintenanceLimit applies to " STR_FMT " " STR_FMT,
                            STR_ARG(ask_type_name(k)), STR_ARG(k->target_name));
    case ASK_WHY_LEDGER_FULL:
        return arena_printf(out,
                            "limit " STR_FMT ": no more reservations fit into the object; divide "
                            "what it selects among several limits",
                            STR_ARG(name));
    }
    return STR_NONE;
}

static void ask_view_limits(const struct ask *k, struct arena *out, struct ask_view *v)
{
    struct str *names = ARENA_ARRAY(out, struct str, k->applied_n + 1);
    for (uint32_t i = 0; i < k->applied_n; i++) {
        const struct applied_limit *applied = &k->applied[i];
        if (applied->limit->item != NULL && (k->stage != ASK_HELD || applied->reserved)) {
            names[v->limit_n++] = arena_str(out, limit_of(applied->limit)->name);
        }
    }
    v->limits = names;
}

/* The limit under which the ask is held and that is paused; NULL: none is. */
static const struct limit *paused_limit(const struct ask *k)
{
    for (uint32_t i = 0; i < k->applied_n; i++) {
        const struct limit_state *b = k->applied[i].limit;
        if (k->applied[i].reserved && b->item != NULL && limit_of(b)->paused) {
            return limit_of(b);
        }
    }
    return NULL;
}

bool ask_is_paused(const struct ask *k)
{
    return k->stage == ASK_HELD && (arbiter_paused(k->arbiter).n > 0 || paused_limit(k) != NULL);
}

static struct str paused_text(const struct ask *k, struct arena *out)
{
    if (!ask_is_paused(k)) {
        return STR_NONE;
    }
    struct str all = arbiter_paused(k->arbiter);
    return all.n > 0
               ? arena_str(out, all)
               : arena_printf(out, "limit " STR_FMT " is paused", STR_ARG(paused_limit(k)->name));
}

void ask_fill_view(const struct ask *k, struct arena *out, struct ask_view *ret)
{
    bool waits = k->stage == ASK_WAITING;
    struct ask_view v = {
        .stage = k->stage,
        .next = USEC_NEVER,
        .grant = k->spec.grant,
        .must_close_grant = k->must_close_grant,
        .newer_grant = newer_grant(k),
        .paused = paused_text(k, out),
    };
    ask_view_limits(k, out, &v);
    if (waits) {
        v.why = k->why;
        v.reason = ask_why_names[k->why];
        v.message = ask_why_text(k, out);
        v.position = k->position;
        if (k->why == ASK_WHY_GAP && k->blocking_limit != NULL) {
            usec_t end = limit_gap_end(limit_of(k->blocking_limit));
            /* When the gap is over the ask waits for a write that is under way; its answer makes a
             * turn. */
            v.next = end > k->arbiter->wall ? end : USEC_NEVER;
        }
        if (k->blocking_limit != NULL && k->blocking_limit->item != NULL) {
            v.limit = arena_str(out, limit_of(k->blocking_limit)->name);
        }
        if (k->why == ASK_WHY_TARGET_BUSY) {
            v.blocker = arena_str(out, busy_uid(k));
        } else if (k->blocking_limit != NULL) {
            v.blocker = arena_str(out, oldest_holder(limit_of(k->blocking_limit)));
        }
    }
    *ret = v;
}

void ask_view(const struct ask *k, struct ask_view *ret)
{
    ask_fill_view(k, &k->arbiter->views, ret);
}

void ask_options(const struct ask *k, struct arena *out, struct limit_options *ret)
{
    const struct limit **limits = ARENA_ARRAY(out, const struct limit *, k->applied_n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->applied_n; i++) {
        if (k->applied[i].limit->item != NULL) {
            limits[n++] = limit_of(k->applied[i].limit);
        }
    }
    limit_merge_options(limits, n, ret);
    struct limit_detach *d = &ret->detach;
    ret->drain.pod_selector = arena_str(out, ret->drain.pod_selector);
    struct str *drivers = ARENA_ARRAY(out, struct str, d->ignore_n + 1);
    for (uint32_t i = 0; i < d->ignore_n; i++) {
        drivers[i] = arena_str(out, d->ignore_drivers[i]);
    }
    d->ignore_drivers = drivers;
}

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

uint64_t arbiter_turn_count(const struct arbiter *a)
{
    return a->turns;
}

uint32_t arbiter_limit_count(const struct arbiter *a)
{
    return store_count(&a->limits.store);
}

bool arbiter_has_limits(const struct arbiter *a, enum target_type type)
{
    LIST_EACH (&a->limit_states, link) {
        const struct limit *l = limit_of(CONTAINER_OF(link, struct limit_state, link));
        if (l->type_known && l->type == type) {
            return true;
        }
    }
    return false;
}

static void limit_view_fill(const struct limit_state *b, struct arena *out,
                            struct arbiter_limit *ret)
{
    const struct limit *l = limit_of(b);
    struct arbiter_holder *holders = ARENA_ARRAY(out, struct arbiter_holder, l->reservations.n + 1);
    struct limit_counts t = limit_state_server_counts(b);
    for (uint32_t i = 0; i < l->reservations.n; i++) {
        const struct reservation *r = &l->reservations.items[i];
        holders[i] = (struct arbiter_holder){
            .uid = r->uid,
            .name = r->name,
            .target = r->target,
            .state = r->state,
            .since = r->granted,
        };
    }
    *ret = (struct arbiter_limit){
        .name = l->name,
        .type = l->type,
        .accepted = b->reason.n == 0,
        .problem = b->problem,
        .selects = limit_selects_text(l, out),
        .exclusive = l->exclusive,
        .percent = l->percent,
        .minimum = l->minimum,
        .max_count = l->max_count,
        .population = t.population,
        .nominal = limit_nominal(l, t.population),
        .unavailable = t.unavailable,
        .granted = l->reservations.n,
        .waiting = b->waiting,
        .limit = limit_effective(l, &t),
        .gap_end = limit_gap_end(l),
        .paused = l->paused,
        .overcommitted = limit_is_overcommitted(l, &t),
        .ledger_bytes = (uint32_t)MIN(l->reservations.bytes, (uint64_t)UINT32_MAX),
        .ledger_full = reservations_full(&l->reservations),
        .holders = holders,
    };
}

void arbiter_each_limit(const struct arbiter *a, struct arena *out,
                        bool (*fn)(void *ctx, const struct arbiter_limit *limit), void *ctx)
{
    LIST_EACH (&a->limit_states, link) {
        struct arbiter_limit view;
        limit_view_fill(CONTAINER_OF(link, struct limit_state, link), out, &view);
        if (!fn(ctx, &view)) {
            return;
        }
    }
}
