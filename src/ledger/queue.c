/*
 * Which asks are granted. Each turn walks the queue and decides anew: first about asks that are
 * held, then those that are being taken, then those that wait. A grant counts at once for the asks
 * behind it. A full limit stops only the asks that it applies to; under one limit no ask overtakes
 * another.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "ledger/arbiter_internal.h"

#define APPLIED_MAX 256u

/* ── order ─────────────────────────────────────────────────────────────────────────────────── */

static bool ask_before(const struct ask *a, const struct ask *b)
{
    if (a->spec.last != b->spec.last) {
        return b->spec.last;
    }
    if (a->spec.priority != b->spec.priority) {
        return a->spec.priority > b->spec.priority;
    }
    if (a->spec.since != b->spec.since) {
        return a->spec.since < b->spec.since;
    }
    return str_cmp(a->spec.uid, b->spec.uid) < 0;
}

static int ask_order(const void *a, const void *b)
{
    const struct ask *const *x = a;
    const struct ask *const *y = b;
    return ask_before(*x, *y) ? -1 : ask_before(*y, *x);
}

/* A new ask mostly belongs to the end. One that does not is put into its place by the next turn,
 * together with all others: at a start there may be tens of thousands of them. */
void queue_insert(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    list_del(&k->link);
    struct list *last = a->queue.prev;
    if (last != &a->queue && ask_before(k, CONTAINER_OF(last, struct ask, link))) {
        a->queue_unsorted = true;
    }
    list_add(&a->queue, &k->link);
}

static void queue_sort(struct arbiter *a)
{
    if (!a->queue_unsorted) {
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    uint32_t count = map_count(&a->asks);
    struct ask **asks = ARENA_ARRAY(&tmp, struct ask *, count);
    uint32_t n = 0;
    LIST_EACH (&a->queue, link) {
        ASSERT(n < count);
        asks[n++] = CONTAINER_OF(link, struct ask, link);
        list_del(link);
    }
    qsort(asks, n, sizeof(asks[0]), ask_order);
    for (uint32_t i = 0; i < n; i++) {
        list_add(&a->queue, &asks[i]->link);
    }
    a->queue_unsorted = false;
}

/* ── which limits apply ────────────────────────────────────────────────────────────────────── */

static bool lookup_none(void *ctx UNUSED, struct str key UNUSED, struct str *ret_value UNUSED)
{
    return false;
}

struct ask *ask_find_by_uid(const struct arbiter *a, struct str uid)
{
    struct ask *k = map_find(&a->asks, uid);
    return k != NULL && !k->spec.queue_only ? k : NULL;
}

bool arbiter_holds(const struct arbiter *a, struct str uid, uint32_t grant)
{
    const struct ask *k = ask_find_by_uid(a, uid);
    return k != NULL && ask_stage(k) == ASK_HELD && k->spec.grant == grant;
}

struct applied_limit *ask_applied_limit(const struct ask *k, const struct limit_state *b)
{
    for (uint32_t i = 0; i < k->applied_n; i++) {
        if (k->applied[i].limit == b) {
            return &k->applied[i];
        }
    }
    return NULL;
}

void ask_notify_owner(struct ask *k)
{
    if (k->on_change != NULL && !list_linked(&k->notify_link)) {
        list_add(&k->arbiter->notify_list, &k->notify_link);
    }
}

static void ask_set_applied(struct ask *k, struct limit_state *const *limits, uint32_t n)
{
    struct applied_limit *applied = alloc_bytes((n + 1) * sizeof(*applied));
    bool same = n == k->applied_n;
    for (uint32_t i = 0; i < n; i++) {
        const struct applied_limit *old = ask_applied_limit(k, limits[i]);
        applied[i] = (struct applied_limit){
            .limit = limits[i],
            .added_by_write = old != NULL ? old->added_by_write : 0,
            .added_here = old != NULL && old->added_here,
        };
        same = same && k->applied[i].limit == limits[i];
    }
    alloc_free(k->applied);
    k->applied = applied;
    k->applied_n = n;
    if (!same) {
        ask_notify_owner(k);
    }
}

static void ask_find_applied(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    struct limit_state *limits[APPLIED_MAX];
    struct counted_object m = {
        .type = k->spec.type,
        .name = k->target_name,
        .namespace = k->spec.namespace,
        .bare_name = k->spec.target,
        .lookup = lookup_none,
    };
    k->target_known = population_known(a, k->spec.type);
    k->target_missing = !population_find(a, k->spec.type, k->target_name, &m);
    uint32_t n = population_limits(a, &m, limits, APPLIED_MAX);
    if (n == 0 && a->fallback[k->spec.type] != NULL && k->spec.owner == ASK_OF_REQUEST) {
        limits[n++] = a->fallback[k->spec.type];
    }
    ask_set_applied(k, limits, n);
    k->limits_version = k->target_known ? a->limits_version : 0;
    if (!k->target_known && a->may_act) {
        arbiter_run_at(a, a->now +
                              ARBITER_WRITE_INTERVAL); /* no event tells that a watch works again */
    }
}

/* ── which grant ───────────────────────────────────────────────────────────────────────────── */

static bool ask_compares_grants(const struct ask *k, uint32_t grant)
{
    return k->spec.owner == ASK_OF_REQUEST && k->spec.grant > 0 && grant > 0 &&
           !mutated(k->arbiter->config.client->mutations, MUTATION_STRIKE_BY_REQUEST);
}

bool ask_grant_is_closed(const struct ask *k, uint32_t grant)
{
    return ask_compares_grants(k, grant) && grant < k->closed_below;
}

bool ask_grant_is_current(const struct ask *k, uint32_t grant)
{
    return !ask_compares_grants(k, grant) || grant == k->spec.grant;
}

bool ask_may_release(const struct ask *k, uint32_t grant)
{
    return !ask_compares_grants(k, grant) || grant < k->closed_below;
}

static void applied_refresh(const struct ask *k, struct applied_limit *applied)
{
    const struct reservation *entry = limit_state_reservation(applied->limit, k->spec.uid);
    applied->reserved = entry != NULL && ask_grant_is_current(k, entry->grant) &&
                        !ask_grant_is_closed(k, entry->grant);
    applied->newer_grant =
        entry != NULL && !applied->reserved && !ask_grant_is_closed(k, entry->grant);
}

static void ask_refresh(struct ask *k)
{
    if (k->limits_version != k->arbiter->limits_version) {
        ask_find_applied(k);
    }
    for (uint32_t i = 0; i < k->applied_n; i++) {
        struct applied_limit *applied = &k->applied[i];
        applied->wanted = false;
        if (applied->version != limit_state_version(applied->limit)) {
            applied->version = limit_state_version(applied->limit);
            applied_refresh(k, applied);
            applied->added_here = applied->added_here && applied->reserved;
        }
    }
}

/* ── capacity ──────────────────────────────────────────────────────────────────────────────── */

/* Two controllers may both believe to lead. A reservation or lock for an ask that was never granted
 * here was written by another controller, which knows more: it is removed only when nothing has
 * come of it for long. When the ask has ended, the sweep finds out whether it is still needed. */
static bool ask_leaves_to_other(const struct ask *k)
{
    struct arbiter *a = k->arbiter;
    if (k->held || k->adopted || k->spec.already_true || k->granting) {
        return false;
    }
    if (k->ending || k->waiting_since == USEC_NEVER) {
        return true;
    }
    if (a->now >= k->waiting_since + ARBITER_FOREIGN_WAIT) {
        return false;
    }
    arbiter_run_at(a, k->waiting_since + ARBITER_FOREIGN_WAIT);
    return true;
}

bool ask_leaves_reservation(const struct ask *k, const struct limit_state *b)
{
    const struct applied_limit *applied = ask_applied_limit(k, b);
    return (applied == NULL || !applied->added_here) && ask_leaves_to_other(k);
}

static bool ask_leaves_lock(const struct ask *k)
{
    const struct target_lock *l = k->lock;
    return !str_eq(buf_str(&l->created_uid), buf_str(&l->uid)) && ask_leaves_to_other(k);
}

/* The next write removes the reservation, whatever else is decided. Its place can be given to
 * another ask in the same write. */
static bool reservation_is_ending(const struct limit_state *b, const struct reservation *r)
{
    const struct ask *k = ask_find_by_uid(b->arbiter, r->uid);
    if (k == NULL) {
        return orphan_may_release(b->arbiter, r->uid, r->grant);
    }
    return ask_grant_is_closed(k, r->grant) ||
           (k->ending && ask_may_release(k, r->grant) && !ask_leaves_reservation(k, b));
}

static void limit_state_begin_turn(struct limit_state *b)
{
    const struct limit *l = limit_of(b);
    bool twice = b->arbiter->config.legacy_double_count;
    struct str last = STR_NONE;
    b->to_add = 0;
    b->kept_for_queue = 0;
    b->bytes_claimed = 0;
    b->waiting = 0;
    b->releasing = false;
    b->counts = (struct limit_counts){ .population = b->population,
                                       .unavailable = map_count(&b->policy_hits) };
    for (uint32_t i = 0; i < l->reservations.n; i++) {
        const struct reservation *r = &l->reservations.items[l->reservations.by_target[i]];
        if (reservation_is_ending(b, r)) {
            b->releasing = true;
            continue;
        }
        if (last.p != NULL && str_eq(last, r->target)) {
            continue;
        }
        last = r->target;
        b->counts.granted++;
        if (!twice && map_find(&b->policy_hits, r->target) != NULL) {
            b->counts.unavailable--;
        }
    }
}

/* The target has a reservation that stays. */
static bool limit_state_grants(const struct limit_state *b, struct str target)
{
    const struct reservations *entries = &limit_of(b)->reservations;
    bool grants = false;
    for (uint32_t i = 0; reservations_has_target(entries, target) && i < entries->n && !grants;
         i++) {
        grants = str_eq(entries->items[i].target, target) &&
                 !reservation_is_ending(b, &entries->items[i]);
    }
    return grants;
}

static struct limit_target applied_target(const struct ask *k, const struct limit_state *b)
{
    return (struct limit_target){
        .granted = limit_state_grants(b, k->target_name),
        .unavailable = map_find(&b->policy_hits, k->target_name) != NULL,
    };
}

static uint64_t ask_bytes(const struct ask *k)
{
    return reservation_bytes(&(struct reservation){ .uid = k->spec.uid,
                                                    .name = k->spec.name,
                                                    .target = k->target_name,
                                                    .state = buf_str(&k->state) });
}

/* What is being removed may still be there when the reservation is added. */
static bool ask_fits(const struct ask *k, const struct limit_state *b)
{
    const struct reservations *r = &limit_of(b)->reservations;
    return reservations_fit((uint64_t)r->n + b->to_add + b->kept_for_queue,
                            r->bytes + b->bytes_claimed, ask_bytes(k));
}

static enum ask_why applied_evaluate(const struct ask *k, const struct applied_limit *applied)
{
    const struct limit_state *b = applied->limit;
    const struct limit *l = limit_of(b);
    const struct arbiter *a = b->arbiter;
    if (applied->reserved) {
        return ASK_WHY_NONE;
    }
    if (applied->newer_grant) {
        return ASK_WHY_NOT_COMPUTED;
    }
    if (!b->usable || !population_known(a, l->type)) {
        return ASK_WHY_NOT_COMPUTED;
    }
    if (l->paused && !mutated(a->config.client->mutations, MUTATION_PAUSE_IGNORED)) {
        return ASK_WHY_PAUSED;
    }
    if (b->conflicts >= ARBITER_CONFLICTS_MAX && b->writer.retry_at > a->now) {
        return ASK_WHY_BACKOFF;
    }
    if (l->gap > 0 &&
        (b->to_add + b->kept_for_queue > 0 || b->releasing || limit_gap_end(l) > a->wall)) {
        return ASK_WHY_GAP;
    }
    if (!limit_allows_one_more(l, &b->counts, applied_target(k, b))) {
        return ASK_WHY_LIMIT_REACHED;
    }
    return ask_fits(k, b) ? ASK_WHY_NONE : ASK_WHY_LEDGER_FULL;
}

static void limit_state_count_grant(struct limit_state *b, struct limit_target target)
{
    if (!target.granted) {
        b->counts.granted++;
        if (target.unavailable && !b->arbiter->config.legacy_double_count) {
            b->counts.unavailable--;
        }
    }
}

static void applied_count(struct ask *k, struct applied_limit *applied)
{
    struct limit_state *b = applied->limit;
    struct limit_target target = applied_target(k, b);
    applied->wanted = true;
    b->to_add++;
    b->bytes_claimed += ask_bytes(k);
    limit_state_count_grant(b, target);
    k->was_unavailable = k->was_unavailable || target.unavailable;
}

/* ── deciding ──────────────────────────────────────────────────────────────────────────────── */

static enum ask_why ask_evaluate(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    const struct target_lock *l = k->lock;
    k->blocking_limit = NULL;
    if (!a->may_act || !k->target_known) {
        return ASK_WHY_NOT_COMPUTED;
    }
    if (arbiter_paused(a).n > 0) {
        return ASK_WHY_ALL_PAUSED;
    }
    bool locks = !mutated(a->config.client->mutations, MUTATION_NO_LOCK);
    if (locks && ((l->taker != NULL && l->taker != k) ||
                  (l->exists && !target_lock_is_held_by(l, k->spec.uid)))) {
        return ASK_WHY_TARGET_BUSY;
    }
    if (locks && l->exists && !ask_grant_is_current(k, l->grant) &&
        !ask_grant_is_closed(k, l->grant)) {
        return ASK_WHY_NOT_COMPUTED; /* the lock is of a grant that we have not heard of */
    }
    if (k->target_missing && !a->config.grant_missing) {
        return ASK_WHY_TARGET_NOT_FOUND;
    }
    if (k->applied_n == 0 && a->config.missing == MISSING_LIMIT_DENY &&
        k->spec.owner == ASK_OF_REQUEST) {
        return ASK_WHY_DENIED;
    }
    for (uint32_t i = 0; i < k->applied_n; i++) {
        enum ask_why why = applied_evaluate(k, &k->applied[i]);
        if (why != ASK_WHY_NONE) {
            k->blocking_limit = k->applied[i].limit;
            return why;
        }
    }
    return ASK_WHY_NONE;
}

static void ask_grant(struct ask *k)
{
    k->granting = true;
    k->keep = false;
    k->waiting_since = USEC_NEVER;
    k->why = ASK_WHY_NONE;
    k->lock->taker = k;
    for (uint32_t i = 0; i < k->applied_n; i++) {
        if (!k->applied[i].reserved) {
            applied_count(k, &k->applied[i]);
        }
    }
}

/* Whether an ask that is already_true may be reserved above a limit. Its request, or its target,
 * must have been read after we saw the present version of the limit. A grant of another controller
 * is reserved until after its request has ended. So if the limit has no reservation and the request
 * is then read as not ended, no controller has granted it; or our version of the limit is old, and
 * the write fails. */
static bool applied_is_forced(struct ask *k, const struct applied_limit *applied)
{
    if (!k->spec.already_true || k->adopted || !ask_fits(k, applied->limit)) {
        return false;
    }
    if (applied->limit->item == NULL || applied->confirmed == applied->version) {
        return true;
    }
    k->must_confirm = true;
    return false;
}

/* The target is being disturbed already. Missing reservations are added where the limits allow it;
 * until the ask has been held once, above the limits as well. Later nothing is forced: another
 * controller may have released the grant, and we may not know it yet. */
static void ask_decide_already_true(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    k->granting = a->may_act && (k->held || k->target_known);
    k->keep = !k->granting;
    k->why = k->granting ? ASK_WHY_NONE : ASK_WHY_NOT_COMPUTED;
    k->blocking_limit = NULL;
    k->must_confirm = false;
    if (k->lock->taker == NULL) {
        k->lock->taker = k;
    }
    if (!k->granting) {
        return;
    }
    for (uint32_t i = 0; i < k->applied_n; i++) {
        struct applied_limit *applied = &k->applied[i];
        bool writable = applied->limit->item == NULL || limit_of(applied->limit)->type_known;
        if (!applied->reserved && !applied->newer_grant && writable &&
            (applied_evaluate(k, applied) == ASK_WHY_NONE || applied_is_forced(k, applied))) {
            applied_count(k, applied);
        }
    }
}

/* A gap ends by itself: a turn is due then. */
static void ask_wait_gap(const struct ask *k)
{
    struct arbiter *a = k->arbiter;
    if (k->why == ASK_WHY_GAP && k->blocking_limit != NULL) {
        usec_t end = limit_gap_end(limit_of(k->blocking_limit));
        if (end > a->wall) {
            arbiter_run_at(a, arbiter_monotonic(a, end));
        }
    }
}

static void ask_decide(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    enum ask_why why = ask_evaluate(k);
    if (why == ASK_WHY_NONE) {
        bool new = !k->granting;
        ask_grant(k);
        if (new && k->applied_n == 0) {
            limit_event_missing(k);
        }
        return;
    }
    k->waiting_since = k->granting || k->waiting_since == USEC_NEVER ? a->now : k->waiting_since;
    k->granting = false;
    k->why = why;
    /* Nothing is given back because it cannot be decided about. */
    k->keep = why == ASK_WHY_NOT_COMPUTED || why == ASK_WHY_BACKOFF;
    k->was_unavailable = false;
    ask_wait_gap(k);
}

/* Nothing is written for the ask; its share is kept from the asks behind it. */
static void ask_decide_queue_only(struct ask *k)
{
    k->why = ask_evaluate(k);
    k->offered = k->why == ASK_WHY_NONE;
    if (!k->offered) {
        ask_wait_gap(k);
        return;
    }
    k->lock->taker = k;
    for (uint32_t i = 0; i < k->applied_n; i++) {
        struct limit_state *b = k->applied[i].limit;
        if (!k->applied[i].reserved) {
            b->kept_for_queue++;
            b->bytes_claimed += ask_bytes(k);
            limit_state_count_grant(b, applied_target(k, b));
        }
    }
}

static bool ask_is_already_true(const struct ask *k)
{
    return k->held || k->spec.already_true;
}

static void ask_count_waiting(struct ask *k)
{
    k->position = 0;
    for (uint32_t i = 0; i < k->applied_n; i++) {
        struct limit_state *b = k->applied[i].limit;
        b->waiting++;
        k->position = k->blocking_limit == b || k->position == 0 ? b->waiting : k->position;
    }
}

void queue_decide(struct arbiter *a)
{
    queue_sort(a);
    LIST_EACH (&a->limit_states, link) {
        limit_state_begin_turn(CONTAINER_OF(link, struct limit_state, link));
    }
    for (uint32_t i = 0; i < TARGET_TYPES; i++) {
        if (a->fallback[i] != NULL) {
            limit_state_begin_turn(a->fallback[i]);
        }
    }
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        k->lock->taker = NULL;
        ask_refresh(k);
        k->offered = false;
        k->must_close_grant = false;
        k->position = 0;
        if (k->ending) {
            k->granting = false;
            k->keep = false;
        }
    }
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        if (!k->ending && ask_is_already_true(k)) {
            ask_decide_already_true(k);
        }
    }
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        if (!k->ending && !ask_is_already_true(k) && k->granting) {
            ask_decide(k);
        }
    }
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        if (k->spec.queue_only) {
            ask_decide_queue_only(k);
        } else if (!k->ending && !ask_is_already_true(k) && !k->granting) {
            ask_decide(k);
        }
        if (!k->ending && !ask_is_already_true(k) && !k->granting) {
            ask_count_waiting(k);
        }
    }
}

/* Decided as if the ask stood at the end of the queue. The counts are those of the last turn: a
 * share that an ask in the queue could not use is free. */
bool arbiter_would_grant(const struct arbiter *a, const struct ask_spec *spec, struct arena *out,
                         struct ask_view *ret)
{
    const struct ask *mine = map_find(&a->asks, spec->uid);
    if (mine != NULL) {
        ask_fill_view(mine, out, ret);
        return mine->granting || mine->held || mine->offered;
    }
    struct ask k = {
        /* Not const, but deciding changes nothing of the arbiter. */
        .arbiter = (struct arbiter *)(uintptr_t)a,
        .spec = *spec,
        .target_name = spec->type == TARGET_NODE
                           ? spec->target
                           : arena_printf(out, STR_FMT "/" STR_FMT, STR_ARG(spec->namespace),
                                          STR_ARG(spec->target)),
    };
    struct target_lock free = { 0 };
    struct str target =
        arena_printf(out, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(target_type_name(spec->type)),
                     STR_ARG(spec->namespace), STR_ARG(spec->target));
    k.lock = target_lock_find(a, target, out);
    k.lock = k.lock != NULL ? k.lock : &free;
    ask_find_applied(&k);
    for (uint32_t i = 0; i < k.applied_n; i++) {
        applied_refresh(&k, &k.applied[i]);
    }
    k.why = ask_evaluate(&k);
    k.stage = k.why == ASK_WHY_NONE ? ASK_HELD : ASK_WAITING;
    ask_wait_gap(&k);
    ask_fill_view(&k, out, ret);
    alloc_free(k.applied);
    return k.why == ASK_WHY_NONE;
}

/* ── locks and stages ──────────────────────────────────────────────────────────────────────── */

/* Whether a reservation or lock with that grant number is not for the ask to remove. */
static bool ask_may_leave_grant(const struct ask *k, uint32_t grant, bool leaves)
{
    return !ask_grant_is_closed(k, grant) && (!ask_grant_is_current(k, grant) || leaves);
}

/* No limit has a reservation of the ask that it has to remove, nor is one being written. */
static bool ask_is_released(const struct ask *k)
{
    LIST_EACH (&k->arbiter->limit_states, link) {
        const struct limit_state *b = CONTAINER_OF(link, struct limit_state, link);
        const struct applied_limit *applied = ask_applied_limit(k, b);
        const struct reservation *entry = limit_state_reservation(b, k->spec.uid);
        if ((entry != NULL &&
             !ask_may_leave_grant(k, entry->grant, ask_leaves_reservation(k, b))) ||
            (b->writer.must_read && applied != NULL) ||
            (b->writer.call != NULL && applied != NULL &&
             applied->added_by_write == b->write_count && b->writer.verb == API_PATCH)) {
            return false;
        }
    }
    return true;
}

bool ask_has_lock(const struct ask *k)
{
    const struct target_lock *l = k->lock;
    bool own = target_lock_is_held_by(l, k->spec.uid);
    return (own && ask_grant_is_current(k, l->grant) && !ask_grant_is_closed(k, l->grant)) ||
           (!own && k->spec.already_true && l->exists) ||
           mutated(k->arbiter->config.client->mutations, MUTATION_NO_LOCK);
}

static bool ask_is_complete(const struct ask *k)
{
    if (!k->target_known || !ask_has_lock(k)) {
        return false;
    }
    for (uint32_t i = 0; i < k->applied_n; i++) {
        const struct applied_limit *applied = &k->applied[i];
        if (!applied->reserved && applied->limit->item != NULL) {
            return false;
        }
    }
    return true;
}

static enum ask_stage ask_compute_stage(struct ask *k)
{
    const struct arbiter *a = k->arbiter;
    if (k->ending) {
        bool clean = a->limits.synced && a->target_locks_synced && ask_is_released(k) &&
                     (!target_lock_is_held_by(k->lock, k->spec.uid) ||
                      ask_may_leave_grant(k, k->lock->grant, ask_leaves_lock(k))) &&
                     k->lock->writer.call == NULL && !k->lock->writer.must_read;
        return clean ? ASK_ENDED : ASK_ENDING;
    }
    if (k->held) {
        return ASK_HELD;
    }
    if (!k->granting) {
        return ASK_WAITING;
    }
    return ask_is_complete(k) ? ASK_HELD : ASK_TAKING;
}

/* The lock of a grant that is over is released when no reservation of that grant is left. */
static void ask_release_closed_lock(struct ask *k)
{
    LIST_EACH (&k->arbiter->limit_states, link) {
        const struct reservation *entry =
            limit_state_reservation(CONTAINER_OF(link, struct limit_state, link), k->spec.uid);
        if (entry != NULL && ask_grant_is_closed(k, entry->grant)) {
            return;
        }
    }
    target_lock_release(k->lock);
}

static void ask_send(struct ask *k)
{
    struct target_lock *l = k->lock;
    struct arbiter *a = k->arbiter;
    if (k->spec.queue_only) {
        return; /* reservations under its uid are for the sweep to look at */
    }
    if (k->granting && k->must_confirm) {
        ask_confirm(k);
    }
    if (k->granting && l->taker == k) {
        if (target_lock_is_held_by(l, k->spec.uid) && ask_grant_is_closed(k, l->grant)) {
            ask_release_closed_lock(k);
        } else if (!mutated(a->config.client->mutations, MUTATION_NO_LOCK)) {
            target_lock_take(l, k);
        }
        return;
    }
    if (k->granting || k->keep || !a->may_act) {
        return;
    }
    /* The lock is released last, when no reservation is left. */
    if (target_lock_is_held_by(l, k->spec.uid) && ask_is_released(k)) {
        if (!ask_may_leave_grant(k, l->grant, ask_leaves_lock(k))) {
            k->must_close_grant = k->must_close_grant || !ask_may_release(k, l->grant);
            if (ask_may_release(k, l->grant)) {
                target_lock_release(l);
            }
        }
    } else if (k->ending && l->writer.must_read) {
        target_lock_take(l, k); /* reads whose the lock is */
    }
}

/* Finds asks that do not want their reservation any more, while another controller may still rely
 * on it: their owner has to close the grant number first. */
static void limit_state_find_unclosed(const struct limit_state *b)
{
    const struct limit *l = limit_of(b);
    for (uint32_t i = 0; i < l->reservations.n; i++) {
        const struct reservation *r = &l->reservations.items[i];
        struct ask *k = ask_find_by_uid(b->arbiter, r->uid);
        if (k != NULL && (k->ending || (!k->granting && !k->held && !k->keep)) &&
            ask_grant_is_current(k, r->grant) && !ask_may_release(k, r->grant) &&
            !ask_leaves_reservation(k, b)) {
            k->must_close_grant = true;
        }
    }
}

void queue_settle(struct arbiter *a)
{
    LIST_EACH (&a->limit_states, link) {
        limit_state_find_unclosed(CONTAINER_OF(link, struct limit_state, link));
    }
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        enum ask_stage stage = k->stage;
        ask_send(k);
        k->stage = ask_compute_stage(k);
        if (k->stage == ASK_HELD) {
            k->held = true;
            k->adopted = true;
        }
        bool paused = ask_is_paused(k);
        if (k->stage != stage || k->why != k->notified_why || k->offered != k->notified_offered ||
            k->must_close_grant != k->notified_must_close || paused != k->notified_paused) {
            k->notified_paused = paused;
            k->notified_must_close = k->must_close_grant;
            k->notified_why = k->why;
            k->notified_offered = k->offered;
            ask_notify_owner(k);
        }
    }
}
