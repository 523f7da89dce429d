/*
 * What people are told: why an ask waits, what a limit's numbers are.
 */
#include "base/timestamp.h"
#include "ledger/arbiter_internal.h"

static const struct str why_names[] = {
    [WHY_NONE] = STR_INIT(""),
    [WHY_LIMIT_REACHED] = STR_INIT("LimitReached"),
    [WHY_TARGET_BUSY] = STR_INIT("TargetBusy"),
    [WHY_PAUSED] = STR_INIT("Paused"),
    [WHY_GAP] = STR_INIT("Gap"),
    [WHY_NOT_COMPUTED] = STR_INIT("NotComputed"),
    [WHY_BACKOFF] = STR_INIT("Backoff"),
    [WHY_TARGET_NOT_FOUND] = STR_INIT("TargetNotFound"),
    [WHY_DENIED] = STR_INIT("NoLimitConfigured"),
};

static struct str type_of(const struct ask *k)
{
    return target_type_name(k->spec.type);
}

/* Who has the target: an ask that takes it, or whoever is named in the Lease. */
static struct str busy_name(const struct ask *k)
{
    const struct lock *l = k->lock;
    if (l->there) {
        return l->holder_name.n > 0 ? buf_str(&l->holder_name) : buf_str(&l->holder);
    }
    return l->taker != NULL && l->taker != k ? l->taker->spec.name : STR_NONE;
}

static struct str busy_uid(const struct ask *k)
{
    const struct lock *l = k->lock;
    if (l->there) {
        return buf_str(&l->holder);
    }
    return l->taker != NULL && l->taker != k ? l->taker->spec.uid : STR_NONE;
}

static struct str oldest_holder(const struct limit *l)
{
    const struct reserve *oldest = NULL;
    for (uint32_t i = 0; i < l->books.n; i++) {
        if (oldest == NULL || l->books.items[i].granted < oldest->granted) {
            oldest = &l->books.items[i];
        }
    }
    return oldest != NULL ? oldest->uid : STR_NONE;
}

static struct str limit_words(const struct book *b, struct arena *out)
{
    const struct limit *l = book_limit(b);
    const struct limit_tally *t = &b->tally;
    return arena_printf(out,
                        "limit " STR_FMT ": %u granted and %u unavailable of %u allowed (%u %% of "
                        "%u)",
                        STR_ARG(l->name), t->granted, t->unavailable,
                        limit_nominal(l, t->population), l->percent, t->population);
}

static struct str gap_words(const struct limit *l, struct arena *out)
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

static struct str unknown_words(const struct ask *k, struct arena *out)
{
    const struct arbiter *a = k->arbiter;
    const struct book *b = k->full_book;
    if (b != NULL && !b->usable) {
        return arena_printf(out, "limit " STR_FMT ": " STR_FMT, STR_ARG(book_limit(b)->name),
                            STR_ARG(b->problem));
    }
    if (a->may) {
        return arena_printf(out, "objects of type " STR_FMT " cannot be read", STR_ARG(type_of(k)));
    }
    return STR("this controller does not lead, or does not know the cluster yet");
}

static struct str why_words(const struct ask *k, struct arena *out)
{
    const struct book *b = k->full_book;
    struct str name = b != NULL ? book_limit(b)->name : STR_NONE;
    switch (k->why) {
    case WHY_NONE:
        break;
    case WHY_LIMIT_REACHED:
        return b != NULL ? limit_words(b, out) : STR_NONE;
    case WHY_TARGET_BUSY:
        return arena_printf(out, STR_FMT " " STR_FMT " is held by " STR_FMT, STR_ARG(type_of(k)),
                            STR_ARG(k->full), STR_ARG(busy_name(k)));
    case WHY_PAUSED:
        return arena_printf(out, "limit " STR_FMT " is paused", STR_ARG(name));
    case WHY_GAP:
        return b != NULL ? gap_words(book_limit(b), out) : STR_NONE;
    case WHY_NOT_COMPUTED:
        return unknown_words(k, out);
    case WHY_BACKOFF:
        return arena_printf(out, "limit " STR_FMT " is written by somebody else all the time",
                            STR_ARG(name));
    case WHY_TARGET_NOT_FOUND:
        return arena_printf(out, "there is no " STR_FMT " " STR_FMT, STR_ARG(type_of(k)),
                            STR_ARG(k->full));
    case WHY_DENIED:
        return arena_printf(out, "no MaintenanceLimit applies to " STR_FMT " " STR_FMT,
                            STR_ARG(type_of(k)), STR_ARG(k->full));
    }
    return STR_NONE;
}

static void view_limits(const struct ask *k, struct arena *out, struct ask_view *v)
{
    struct str *names = ARENA_ARRAY(out, struct str, k->part_n + 1);
    for (uint32_t i = 0; i < k->part_n; i++) {
        const struct ask_part *part = &k->parts[i];
        if (part->book->item != NULL && (k->stage != ASK_HELD || part->reserved)) {
            names[v->limit_n++] = arena_str(out, book_limit(part->book)->name);
        }
    }
    v->limits = names;
}

void ask_show(const struct ask *k, struct arena *out, struct ask_view *ret)
{
    bool waits = k->stage == ASK_WAITING;
    struct ask_view v = {
        .stage = k->stage,
        .next = USEC_NEVER,
        .grant = k->spec.grant,
        .lapses = k->lapses,
    };
    view_limits(k, out, &v);
    if (waits) {
        v.why = k->why;
        v.reason = why_names[k->why];
        v.message = why_words(k, out);
        v.position = k->position;
        if (k->why == WHY_GAP && k->full_book != NULL) {
            usec_t end = limit_gap_end(book_limit(k->full_book));
            /* One that is over ends with a write that is under way, which says so itself. */
            v.next = end > k->arbiter->wall ? end : USEC_NEVER;
        }
        if (k->full_book != NULL && k->full_book->item != NULL) {
            v.limit = arena_str(out, book_limit(k->full_book)->name);
        }
        if (k->why == WHY_TARGET_BUSY) {
            v.blocker = arena_str(out, busy_uid(k));
        } else if (k->full_book != NULL) {
            v.blocker = arena_str(out, oldest_holder(book_limit(k->full_book)));
        }
    }
    *ret = v;
}

void ask_view(const struct ask *k, struct ask_view *ret)
{
    ask_show(k, &k->arbiter->views, ret);
}

void ask_options(const struct ask *k, struct arena *out, struct limit_options *ret)
{
    const struct limit **limits = ARENA_ARRAY(out, const struct limit *, k->part_n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->part_n; i++) {
        if (k->parts[i].book->item != NULL) {
            limits[n++] = book_limit(k->parts[i].book);
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

uint64_t arbiter_turns(const struct arbiter *a)
{
    return a->turns;
}

uint32_t arbiter_limit_count(const struct arbiter *a)
{
    return store_count(&a->limits);
}

bool arbiter_has_limits(const struct arbiter *a, enum target_type type)
{
    LIST_EACH (&a->books, link) {
        const struct limit *l = book_limit(CONTAINER_OF(link, struct book, link));
        if (l->governs && l->type == type) {
            return true;
        }
    }
    return false;
}

static void show_book(const struct book *b, struct arena *out, struct arbiter_limit *ret)
{
    const struct limit *l = book_limit(b);
    struct arbiter_holder *holders = ARENA_ARRAY(out, struct arbiter_holder, l->books.n + 1);
    struct limit_tally t = { .population = b->population,
                             .granted = l->books.targets,
                             .unavailable = map_count(&b->hits) };
    for (uint32_t i = 0; i < l->books.n; i++) {
        const struct reserve *r = &l->books.items[i];
        holders[i] = (struct arbiter_holder){
            .uid = r->uid,
            .name = r->name,
            .target = r->target,
            .state = r->state,
            .since = r->granted,
        };
    }
    MAP_EACH (&b->hits, entry) {
        bool counted = reserves_has_target(&l->books, map_item_name(entry));
        t.unavailable -= counted && !b->arbiter->config.legacy_double_count ? 1 : 0;
    }
    *ret = (struct arbiter_limit){
        .name = l->name,
        .type = l->type,
        .accepted = b->reason.n == 0,
        .problem = b->problem,
        .selects = limit_selects(l, out),
        .exclusive = l->exclusive,
        .percent = l->percent,
        .minimum = l->minimum,
        .most = l->most,
        .population = t.population,
        .nominal = limit_nominal(l, t.population),
        .unavailable = t.unavailable,
        .granted = l->books.n,
        .waiting = b->waiting,
        .limit = limit_count(l, &t),
        .gap_end = limit_gap_end(l),
        .paused = l->paused,
        .over_committed = limit_is_over(l, &t),
        .holders = holders,
    };
}

void arbiter_each_limit(const struct arbiter *a, struct arena *out,
                        bool (*fn)(void *ctx, const struct arbiter_limit *limit), void *ctx)
{
    LIST_EACH (&a->books, link) {
        struct arbiter_limit view;
        show_book(CONTAINER_OF(link, struct book, link), out, &view);
        if (!fn(ctx, &view)) {
            return;
        }
    }
}
