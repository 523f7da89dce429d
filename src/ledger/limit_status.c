/*
 * Writes the status of limits, reservations included. All that a turn has decided about one limit
 * is one write, and no second write of that limit is under way meanwhile.
 *
 * Every write carries the resourceVersion of the limit that it was decided on. That is the live
 * read of the grant protocol: when the limit has changed since, the server refuses the write, and
 * the limit is read and decided about again. The state of nodes comes from their watch. Waiting
 * until that watch reaches the version of a live read cannot work on a quiet cluster, where the
 * next bookmark may be a minute away; may_act vouches for how fresh the nodes are.
 */
#include "base/alloc.h"
#include "format/json_writer.h"
#include "ledger/arbiter_internal.h"

#include <stdlib.h>

/* After a conflict the limit is read at once, but for every fifth in a row. */
static const struct writer_rules limit_state_rules = {
    .absent = { MSECONDS(500), SECONDS(30) },
    .refused = { MSECONDS(500), SECONDS(30) },
    .failed = { MSECONDS(500), SECONDS(30) },
};

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct limit_state *limit_state_new(struct arbiter *a, struct store_item *item)
{
    struct limit_state *b = ALLOC_NEW(struct limit_state);
    b->arbiter = a;
    b->item = item;
    b->text_memory.first = 256;
    writer_init(&b->writer, a->client, &limit_state_rules);
    b->written_at = -ARBITER_WRITE_INTERVAL;
    b->inputs_unknown_since = -1;
    map_init(&b->policy_hits, loop_random(a->loop), loop_random(a->loop));
    if (item == NULL) {
        return b;
    }
    struct list *before = a->limit_states.next;
    while (before != &a->limit_states &&
           str_cmp(CONTAINER_OF(before, struct limit_state, link)->item->name, item->name) < 0) {
        before = before->next;
    }
    list_add(before, &b->link); /* in front of the first that is greater */
    return b;
}

void limit_state_free(struct limit_state *b)
{
    if (b == NULL) {
        return;
    }
    writer_cancel(&b->writer);
    list_del(&b->link);
    map_done(&b->policy_hits);
    arena_done(&b->text_memory);
    buf_done(&b->overcommit_text);
    buf_done(&b->event_text[0]);
    buf_done(&b->event_text[1]);
    alloc_free(b);
}

void limit_state_check_usable(struct limit_state *b)
{
    const struct limit *l = limit_of(b);
    arena_reset(&b->text_memory);
    b->reason = arena_str(&b->text_memory, l->reason);
    b->problem = arena_str(&b->text_memory, l->problem);
    if (l->reason.n == 0 && l->has_selector_ref) {
        const struct maintenance_selector *p = selectors_find(b->arbiter, l->selector_ref);
        if (p == NULL) {
            b->reason = STR("SelectorNotFound");
            b->problem = arena_printf(&b->text_memory, "there is no MaintenanceSelector " STR_FMT,
                                      STR_ARG(l->selector_ref));
        } else if (p->type != l->type) {
            b->reason = STR("SelectorOfOtherType");
            b->problem = arena_printf(
                &b->text_memory, "MaintenanceSelector " STR_FMT " selects objects of type " STR_FMT,
                STR_ARG(l->selector_ref), STR_ARG(target_type_name(p->type)));
        }
    }
    b->usable = b->reason.n == 0;
}

const struct reservation *limit_state_reservation(const struct limit_state *b, struct str uid)
{
    return reservations_find(&limit_of(b)->reservations, uid);
}

struct limit_counts limit_state_server_counts(const struct limit_state *b)
{
    const struct reservations *reservations = &limit_of(b)->reservations;
    struct limit_counts t = { .population = b->population,
                              .granted = reservations->targets,
                              .unavailable = map_count(&b->policy_hits) };
    MAP_EACH (&b->policy_hits, entry) {
        bool counted = reservations_has_target(reservations, map_item_name(entry));
        t.unavailable -= counted && !b->arbiter->config.legacy_double_count ? 1 : 0;
    }
    return t;
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static void limit_state_send_events(struct limit_state *b)
{
    if (b->pending_diff.limit_changed) {
        limit_event_updated(b, b->pending_diff.limit, b->population);
    }
    if (b->pending_diff.overcommit_began) {
        limit_event_overcommitted(b, buf_str(&b->overcommit_text));
    }
}

/* The reservations that the write has added are certainly ours. */
static void limit_state_mark_added(struct limit_state *b)
{
    LIST_EACH (&b->arbiter->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        struct applied_limit *applied = ask_applied_limit(k, b);
        if (applied != NULL && applied->added_by_write == b->write_count) {
            applied->added_here = true;
        }
    }
}

static void limit_state_on_reply(void *ctx, const struct api_reply *reply)
{
    struct limit_state *b = ctx;
    struct arbiter *a = b->arbiter;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    enum retry_verdict verdict =
        writer_on_reply(&b->writer, reply, &a->limits.store, b->item->name, &r);
    arbiter_run_soon(a);
    a->sweep_needed = true;
    if (verdict == RETRY_OBSERVE && ++b->conflicts % ARBITER_CONFLICTS_MAX == 0) {
        writer_back_off(&b->writer);
    }
    if (verdict == RETRY_DONE && b->writer.verb == API_PATCH) {
        limit_state_mark_added(b);
        b->conflicts = 0;
        limit_state_send_events(b);
    }
}

/* ── drafts ────────────────────────────────────────────────────────────────────────────────── */

struct reservations_draft {
    struct reservations reservations;
    bool reservations_changed;
    bool granted;
    bool released;
};

/* Whether a reservation stays, by the ask of its holder. */
static bool draft_keeps(const struct limit_state *b, const struct ask *k, uint32_t grant)
{
    if (ask_grant_is_closed(k, grant)) {
        return false;
    }
    if (!ask_grant_is_current(k, grant) || k->keep) {
        return true;
    }
    /* A limit that does not apply any more drops the reservation; but a target that is gone may
     * come back. */
    if (ask_applied_limit(k, b) == NULL && k->target_known && !k->target_missing) {
        return false;
    }
    /* An ask that is not granted any more gives its reservation back. */
    return (!k->ending && (k->granting || k->held)) || !ask_may_release(k, grant) ||
           ask_leaves_reservation(k, b);
}

static uint32_t draft_keep_existing(const struct limit_state *b, struct reservation *items,
                                    struct reservations_draft *d)
{
    const struct limit *l = limit_of(b);
    const struct arbiter *a = b->arbiter;
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->reservations.n; i++) {
        struct reservation r = l->reservations.items[i];
        const struct ask *k = ask_find_by_uid(a, r.uid);
        bool orphan = k == NULL && orphan_may_release(a, r.uid, r.grant);
        if (orphan || (k != NULL && !draft_keeps(b, k, r.grant))) {
            d->reservations_changed = true;
            d->released = d->released || orphan || k->ending || ask_grant_is_closed(k, r.grant);
            continue;
        }
        if (k != NULL && ask_grant_is_current(k, r.grant) && !str_eq(r.state, buf_str(&k->state))) {
            r.state = buf_str(&k->state);
        }
        items[n++] = r;
    }
    return n;
}

/* An ask is reserved in its limits in order of their names, so that two asks under the same two
 * limits never wait for each other. */
static bool ask_is_due(const struct ask *k, const struct limit_state *b)
{
    if (!ask_has_lock(k)) {
        return false;
    }
    for (uint32_t i = 0; i < k->applied_n; i++) {
        const struct applied_limit *applied = &k->applied[i];
        if (applied->limit == b) {
            return applied->wanted && !applied->reserved && !applied->newer_grant;
        }
        if (!applied->reserved && applied->wanted) {
            return false;
        }
    }
    return false;
}

static uint32_t draft_add_granted(struct limit_state *b, struct reservation *items, uint32_t n,
                                  struct reservations_draft *d)
{
    struct arbiter *a = b->arbiter;
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        if (!k->granting || !ask_is_due(k, b)) {
            continue;
        }
        items[n++] = (struct reservation){
            .uid = k->spec.uid,
            .name = k->spec.name,
            .target = k->target_name,
            .state = buf_str(&k->state),
            .grant = k->spec.grant,
            .granted = a->wall,
        };
        d->reservations_changed = true;
        d->granted = d->granted || (!k->spec.already_true && !k->held);
        ask_applied_limit(k, b)->added_by_write = b->write_count + 1;
    }
    return n;
}

static void draft_build(struct limit_state *b, struct reservations_draft *d, struct arena *tmp)
{
    const struct limit *l = limit_of(b);
    uint32_t most = l->reservations.n + b->to_add;
    struct reservation *items = ARENA_ARRAY(tmp, struct reservation, most + 1);
    uint32_t n = draft_keep_existing(b, items, d);
    if (b->to_add > 0) {
        n = draft_add_granted(b, items, n, d);
    }
    ASSERT(n <= most);
    reservations_index(&d->reservations, items, n, tmp);
}

static int policy_hit_cmp(const void *a, const void *b)
{
    const struct policy_hit *x = a;
    const struct policy_hit *y = b;
    return str_cmp(x->name, y->name);
}

static void draft_counts(const struct limit_state *b, const struct reservations_draft *d,
                         struct limit_status *s, struct arena *tmp)
{
    bool twice = b->arbiter->config.legacy_double_count;
    uint32_t most = map_count(&b->policy_hits);
    struct policy_hit *policy_hits = ARENA_ARRAY(tmp, struct policy_hit, most + 1);
    uint32_t n = 0;
    MAP_EACH (&b->policy_hits, entry) {
        struct str name = map_item_name(entry);
        const struct limit_policy *policy = map_item_value(entry);
        if (twice || !reservations_has_target(&d->reservations, name)) {
            policy_hits[n++] = (struct policy_hit){ name, policy->name };
        }
    }
    qsort(policy_hits, n, sizeof(*policy_hits), policy_hit_cmp);
    const struct limit_counts counts = { b->population, d->reservations.targets, n };
    s->population = counts.population;
    s->targets = counts.granted;
    s->unavailable = counts.unavailable;
    s->nominal = limit_nominal(s->limit, counts.population);
    s->allowed = limit_effective(s->limit, &counts);
    s->overcommitted = limit_is_overcommitted(s->limit, &counts);
    s->policy_hits = policy_hits;
    s->policy_hit_n = MIN(n, LIMIT_STATUS_UNAVAILABLE_MAX);
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void limit_state_send(struct limit_state *b, enum api_verb verb)
{
    struct arbiter *a = b->arbiter;
    buf_reset(&a->path);
    buf_add(&a->path, STR(MAINTENANCE_LIMITS_PATH "/"));
    client_add_segment(&a->path, b->item->name);
    if (verb == API_PATCH) {
        buf_add(&a->path, STR("/status"));
        b->write_count++;
        b->written_at = a->now;
    }
    writer_send(&b->writer,
                &(struct api_request){
                    .verb = verb,
                    .path = buf_str(&a->path),
                    .body = verb == API_PATCH ? buf_str(&a->body) : STR_NONE,
                },
                b->item->version, limit_state_on_reply, b);
}

static void limit_state_write(struct limit_state *b, struct str status)
{
    struct arbiter *a = b->arbiter;
    bool blind = mutated(a->config.client->mutations, MUTATION_BOOKS_BY_FORCE);
    buf_reset(&a->body);
    struct json_writer w = json_writer_on(&a->body);
    jw_obj(&w);
    writer_add_version(&w, blind ? 0 : b->item->version);
    jw_key(&w, STR("status"));
    jw_raw(&w, status);
    jw_obj_end(&w);
    limit_state_send(b, API_PATCH);
}

/* False while inputs are unknown for a moment, because a watch begins: the status stays as it is.
 */
static bool limit_state_inputs_known(struct limit_state *b, struct limit_status *s)
{
    struct arbiter *a = b->arbiter;
    bool known = b->usable && population_known(a, limit_of(b)->type);
    if (known || !b->usable) {
        b->inputs_unknown_since = -1;
        s->unknown = known ? STR_NONE : b->problem;
        s->computed = known;
        return true;
    }
    b->inputs_unknown_since = b->inputs_unknown_since < 0 ? a->now : b->inputs_unknown_since;
    if (a->now < b->inputs_unknown_since + ARBITER_UNKNOWN_AFTER) {
        arbiter_run_at(a, b->inputs_unknown_since + ARBITER_UNKNOWN_AFTER);
        return false;
    }
    arbiter_run_at(a,
                   a->now + ARBITER_UNKNOWN_AFTER); /* a watch that works again does not say so */
    s->unknown = STR("the objects that it counts cannot be read");
    return true;
}

static void limit_state_update(struct limit_state *b)
{
    struct arbiter *a = b->arbiter;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf status = { 0 };
    const struct limit *l = limit_of(b);
    struct reservations_draft d = { 0 };
    draft_build(b, &d, &tmp);
    struct limit_status s = {
        .limit = l,
        .reservations = &d.reservations,
        .reservations_changed = d.reservations_changed,
        .ledger_full = reservations_full(&d.reservations),
        .granted = d.granted,
        .released = d.released,
        .reason = b->reason,
        .problem = b->problem,
        .waiting = b->waiting,
        .now = a->wall,
    };
    if (l->type_known && !limit_state_inputs_known(b, &s) && !d.reservations_changed) {
        return;
    }
    if (s.computed) {
        draft_counts(b, &d, &s, &tmp);
    }
    struct limit_status_diff diff;
    limit_status_patch(&s, &tmp, &status, &diff);
    if (!diff.any) {
        return;
    }
    /* Reservations are written at once; other changes at most once in an interval. */
    if (!diff.reservations_changed && a->now < b->written_at + ARBITER_WRITE_INTERVAL) {
        arbiter_run_at(a, b->written_at + ARBITER_WRITE_INTERVAL);
        return;
    }
    b->pending_diff = diff;
    b->pending_diff.overcommit_text = STR_NONE;
    buf_reset(&b->overcommit_text);
    buf_add(&b->overcommit_text, diff.overcommit_text);
    limit_state_write(b, buf_str(&status));
}

void limit_state_step(struct limit_state *b)
{
    struct arbiter *a = b->arbiter;
    if (b->item == NULL || b->writer.call != NULL) {
        return;
    }
    usec_t at = writer_ready_at(&b->writer, b->item->version);
    if (at > a->now) {
        arbiter_run_at(a, at);
        return;
    }
    if (b->writer.must_read) {
        limit_state_send(b, API_GET);
        return;
    }
    if (a->may_act) {
        limit_state_update(b);
    }
}
