/*
 * Who may have what. Each turn walks all asks in one order and decides anew: first those that hold
 * something, then those that are taking it, then those that wait. What one is given counts for all
 * behind it. A limit that is full stops nobody whose own limits have room; under one limit nobody
 * overtakes.
 */
#include "base/alloc.h"
#include "ledger/arbiter_internal.h"

#define PARTS_MAX 256u

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

/* From the end: who comes last mostly waits last. */
void queue_put(struct ask *k)
{
    struct list *head = &k->arbiter->queue;
    list_del(&k->link);
    struct list *after = head->prev;
    while (after != head && ask_before(k, CONTAINER_OF(after, struct ask, link))) {
        after = after->prev;
    }
    list_add(after->next, &k->link);
}

/* ── which limits apply ────────────────────────────────────────────────────────────────────── */

static bool lookup_none(void *ctx UNUSED, struct str key UNUSED, struct str *ret_value UNUSED)
{
    return false;
}

struct ask *ask_claiming(const struct arbiter *a, struct str uid)
{
    struct ask *k = map_find(&a->asks, uid);
    return k != NULL && !k->spec.stands ? k : NULL;
}

struct ask_part *ask_part_of(const struct ask *k, const struct book *b)
{
    for (uint32_t i = 0; i < k->part_n; i++) {
        if (k->parts[i].book == b) {
            return &k->parts[i];
        }
    }
    return NULL;
}

void ask_notice(struct ask *k)
{
    if (k->on_change != NULL && !list_linked(&k->notice)) {
        list_add(&k->arbiter->notices, &k->notice);
    }
}

static void ask_set_parts(struct ask *k, struct book *const *books, uint32_t n)
{
    struct ask_part *parts = alloc_bytes((n + 1) * sizeof(*parts));
    bool same = n == k->part_n;
    for (uint32_t i = 0; i < n; i++) {
        const struct ask_part *old = ask_part_of(k, books[i]);
        parts[i] = (struct ask_part){
            .book = books[i],
            .adding = old != NULL ? old->adding : 0,
            .mine = old != NULL && old->mine,
        };
        same = same && k->parts[i].book == books[i];
    }
    alloc_free(k->parts);
    k->parts = parts;
    k->part_n = n;
    if (!same) {
        ask_notice(k);
    }
}

static void ask_find_parts(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    struct book *books[PARTS_MAX];
    struct member m = {
        .type = k->spec.type,
        .name = k->full,
        .space = k->spec.space,
        .plain = k->spec.target,
        .lookup = lookup_none,
    };
    k->known = population_known(a, k->spec.type);
    k->missing = !population_find(a, k->spec.type, k->full, &m);
    uint32_t n = population_books(a, &m, books, PARTS_MAX);
    if (n == 0 && a->fallback[k->spec.type] != NULL && k->spec.owner == ASK_REQUEST) {
        books[n++] = a->fallback[k->spec.type];
    }
    ask_set_parts(k, books, n);
    k->shape = k->known ? a->shape : 0;
    if (!k->known && a->may) {
        arbiter_at(a, a->now + ARBITER_QUIET); /* a watch that works again does not say so */
    }
}

/* ── which grant ───────────────────────────────────────────────────────────────────────────── */

static bool ask_counts(const struct ask *k, uint32_t grant)
{
    return k->spec.owner == ASK_REQUEST && k->spec.grant > 0 && grant > 0 &&
           !mutated(k->arbiter->config.mutations, MUTATION_STRIKE_BY_REQUEST);
}

bool ask_is_past(const struct ask *k, uint32_t grant)
{
    return ask_counts(k, grant) && grant < k->over;
}

bool ask_is_mine(const struct ask *k, uint32_t grant)
{
    return !ask_counts(k, grant) || grant == k->spec.grant;
}

bool ask_frees(const struct ask *k, uint32_t grant)
{
    return !ask_counts(k, grant) || grant < k->over;
}

static void part_look(const struct ask *k, struct ask_part *part)
{
    const struct reserve *entry = book_find(part->book, k->spec.uid);
    part->reserved = entry != NULL && ask_is_mine(k, entry->grant) && !ask_is_past(k, entry->grant);
    part->behind = entry != NULL && !part->reserved && !ask_is_past(k, entry->grant);
}

static void ask_refresh(struct ask *k)
{
    if (k->shape != k->arbiter->shape) {
        ask_find_parts(k);
    }
    for (uint32_t i = 0; i < k->part_n; i++) {
        struct ask_part *part = &k->parts[i];
        part->wanted = false;
        if (part->version != book_version(part->book)) {
            part->version = book_version(part->book);
            part_look(k, part);
            part->mine = part->mine && part->reserved;
        }
    }
}

/* ── room ──────────────────────────────────────────────────────────────────────────────────── */

/* Two controllers may both believe to lead. What is there for somebody who was never granted
 * anything here was put there by another, which knows more: it is taken away only when nothing has
 * come of it for long. When the ask has ended, the sweep finds out what it is worth. */
static bool ask_leaves(const struct ask *k)
{
    struct arbiter *a = k->arbiter;
    if (k->held || k->adopted || k->spec.adopt || k->want) {
        return false;
    }
    if (k->ending || k->waits == USEC_NEVER) {
        return true;
    }
    if (a->now >= k->waits + ARBITER_FOREIGN_WAIT) {
        return false;
    }
    arbiter_at(a, k->waits + ARBITER_FOREIGN_WAIT);
    return true;
}

bool ask_leaves_entry(const struct ask *k, const struct book *b)
{
    const struct ask_part *part = ask_part_of(k, b);
    return (part == NULL || !part->mine) && ask_leaves(k);
}

static bool ask_leaves_lock(const struct ask *k)
{
    const struct lock *l = k->lock;
    return !str_eq(buf_str(&l->made), buf_str(&l->uid)) && ask_leaves(k);
}

/* An entry that the next write strikes whatever else is decided. Its place can be given to
 * somebody else in that same write. */
static bool entry_goes(const struct book *b, const struct reserve *r)
{
    const struct ask *k = ask_claiming(b->arbiter, r->uid);
    if (k == NULL) {
        return orphan_frees(b->arbiter, r->uid, r->grant);
    }
    return ask_is_past(k, r->grant) ||
           (k->ending && ask_frees(k, r->grant) && !ask_leaves_entry(k, b));
}

static void book_begin(struct book *b)
{
    const struct limit *l = book_limit(b);
    bool twice = b->arbiter->config.legacy_double_count;
    struct str last = STR_NONE;
    b->adding = 0;
    b->kept = 0;
    b->waiting = 0;
    b->releasing = false;
    b->tally =
        (struct limit_tally){ .population = b->population, .unavailable = map_count(&b->hits) };
    for (uint32_t i = 0; i < l->books.n; i++) {
        const struct reserve *r = &l->books.items[l->books.by_target[i]];
        if (entry_goes(b, r)) {
            b->releasing = true;
            continue;
        }
        if (last.p != NULL && str_eq(last, r->target)) {
            continue;
        }
        last = r->target;
        b->tally.granted++;
        if (!twice && map_find(&b->hits, r->target) != NULL) {
            b->tally.unavailable--;
        }
    }
}

/* By an entry that stays. */
static bool book_grants(const struct book *b, struct str target)
{
    const struct reserves *books = &book_limit(b)->books;
    bool grants = false;
    for (uint32_t i = 0; reserves_has_target(books, target) && i < books->n && !grants; i++) {
        grants = str_eq(books->items[i].target, target) && !entry_goes(b, &books->items[i]);
    }
    return grants;
}

static struct limit_target part_target(const struct ask *k, const struct book *b)
{
    return (struct limit_target){
        .granted = book_grants(b, k->full),
        .unavailable = map_find(&b->hits, k->full) != NULL,
    };
}

static enum ask_why part_judge(const struct ask *k, const struct ask_part *part)
{
    const struct book *b = part->book;
    const struct limit *l = book_limit(b);
    const struct arbiter *a = b->arbiter;
    if (part->reserved) {
        return WHY_NONE;
    }
    if (part->behind) {
        return WHY_NOT_COMPUTED;
    }
    if (!b->usable || !population_known(a, l->type)) {
        return WHY_NOT_COMPUTED;
    }
    if (l->paused && !mutated(a->config.mutations, MUTATION_PAUSE_IGNORED)) {
        return WHY_PAUSED;
    }
    if (b->conflicts >= ARBITER_CONFLICTS_MAX && b->retry_at > a->now) {
        return WHY_BACKOFF;
    }
    if (l->gap > 0 && (b->adding + b->kept > 0 || b->releasing || limit_gap_end(l) > a->wall)) {
        return WHY_GAP;
    }
    if (l->books.n + b->adding + b->kept >= RESERVES_MAX ||
        !limit_has_room(l, &b->tally, part_target(k, b))) {
        return WHY_LIMIT_REACHED;
    }
    return WHY_NONE;
}

static void book_count(struct book *b, struct limit_target target)
{
    if (!target.granted) {
        b->tally.granted++;
        if (target.unavailable && !b->arbiter->config.legacy_double_count) {
            b->tally.unavailable--;
        }
    }
}

static void part_count(struct ask *k, struct ask_part *part)
{
    struct book *b = part->book;
    struct limit_target target = part_target(k, b);
    part->wanted = true;
    b->adding++;
    book_count(b, target);
    k->was_unavailable = k->was_unavailable || target.unavailable;
}

/* ── judging ───────────────────────────────────────────────────────────────────────────────── */

static enum ask_why ask_judge(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    const struct lock *l = k->lock;
    k->full_book = NULL;
    if (!a->may || !k->known) {
        return WHY_NOT_COMPUTED;
    }
    bool locks = !mutated(a->config.mutations, MUTATION_NO_LOCK);
    if (locks &&
        ((l->taker != NULL && l->taker != k) || (l->there && !lock_is_of(l, k->spec.uid)))) {
        return WHY_TARGET_BUSY;
    }
    if (locks && l->there && !ask_is_mine(k, l->grant) && !ask_is_past(k, l->grant)) {
        return WHY_NOT_COMPUTED; /* its lock is of a grant that we have not heard of */
    }
    if (k->missing && !a->config.grant_missing) {
        return WHY_TARGET_NOT_FOUND;
    }
    if (k->part_n == 0 && a->config.missing == MISSING_DENY && k->spec.owner == ASK_REQUEST) {
        return WHY_DENIED;
    }
    for (uint32_t i = 0; i < k->part_n; i++) {
        enum ask_why why = part_judge(k, &k->parts[i]);
        if (why != WHY_NONE) {
            k->full_book = k->parts[i].book;
            return why;
        }
    }
    return WHY_NONE;
}

static void ask_grant(struct ask *k)
{
    k->want = true;
    k->keep = false;
    k->waits = USEC_NEVER;
    k->why = WHY_NONE;
    k->lock->taker = k;
    for (uint32_t i = 0; i < k->part_n; i++) {
        if (!k->parts[i].reserved) {
            part_count(k, &k->parts[i]);
        }
    }
}

/* Whether an adopted one may enter a ledger above its limit. Its request, or a profile's node, must
 * have been read since that version of the ledger was known: one that another controller granted is
 * in the ledger until after it has ended, so one that is read unended after a ledger without it was
 * granted by nobody, or that ledger is old and the write fails. */
static bool part_is_forced(struct ask *k, const struct ask_part *part)
{
    if (!k->spec.adopt || k->adopted) {
        return false;
    }
    if (part->book->item == NULL || part->confirmed == part->version) {
        return true;
    }
    k->doubt = true;
    return false;
}

/* It is a fact. What it lacks it gets where there is room; the first time an adopted one gets it
 * wherever it belongs. Later nothing is forced: another controller may have released it, and this
 * one may not know yet. */
static void ask_decide_fact(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    k->want = a->may && (k->held || k->known);
    k->keep = !k->want;
    k->why = k->want ? WHY_NONE : WHY_NOT_COMPUTED;
    k->full_book = NULL;
    k->doubt = false;
    if (k->lock->taker == NULL) {
        k->lock->taker = k;
    }
    if (!k->want) {
        return;
    }
    for (uint32_t i = 0; i < k->part_n; i++) {
        struct ask_part *part = &k->parts[i];
        bool writable = part->book->item == NULL || book_limit(part->book)->governs;
        if (!part->reserved && !part->behind && writable &&
            (part_judge(k, part) == WHY_NONE || part_is_forced(k, part))) {
            part_count(k, part);
        }
    }
}

/* A gap ends by itself: the turn comes then. */
static void ask_wait_gap(const struct ask *k)
{
    struct arbiter *a = k->arbiter;
    if (k->why == WHY_GAP && k->full_book != NULL) {
        usec_t end = limit_gap_end(book_limit(k->full_book));
        if (end > a->wall) {
            arbiter_at(a, arbiter_monotonic(a, end));
        }
    }
}

static void ask_decide(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    enum ask_why why = ask_judge(k);
    if (why == WHY_NONE) {
        bool new = !k->want;
        ask_grant(k);
        if (new && k->part_n == 0) {
            tell_missing(k);
        }
        return;
    }
    k->waits = k->want || k->waits == USEC_NEVER ? a->now : k->waits;
    k->want = false;
    k->why = why;
    /* What cannot be judged is no reason to give anything back. */
    k->keep = why == WHY_NOT_COMPUTED || why == WHY_BACKOFF;
    k->was_unavailable = false;
    ask_wait_gap(k);
}

/* Nothing is written for it; what it could have is nobody else's. */
static void ask_stand(struct ask *k)
{
    k->why = ask_judge(k);
    k->offered = k->why == WHY_NONE;
    if (!k->offered) {
        ask_wait_gap(k);
        return;
    }
    k->lock->taker = k;
    for (uint32_t i = 0; i < k->part_n; i++) {
        struct book *b = k->parts[i].book;
        if (!k->parts[i].reserved) {
            b->kept++;
            book_count(b, part_target(k, b));
        }
    }
}

static bool ask_is_fact(const struct ask *k)
{
    return k->held || k->spec.adopt;
}

static void ask_count_waiting(struct ask *k)
{
    k->position = 0;
    for (uint32_t i = 0; i < k->part_n; i++) {
        struct book *b = k->parts[i].book;
        b->waiting++;
        k->position = k->full_book == b || k->position == 0 ? b->waiting : k->position;
    }
}

void queue_decide(struct arbiter *a)
{
    LIST_EACH (&a->books, link) {
        book_begin(CONTAINER_OF(link, struct book, link));
    }
    for (uint32_t i = 0; i < TARGET_TYPES; i++) {
        if (a->fallback[i] != NULL) {
            book_begin(a->fallback[i]);
        }
    }
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        k->lock->taker = NULL;
        ask_refresh(k);
        k->offered = false;
        k->lapses = false;
        k->position = 0;
        if (k->ending) {
            k->want = false;
            k->keep = false;
        }
    }
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        if (!k->ending && ask_is_fact(k)) {
            ask_decide_fact(k);
        }
    }
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        if (!k->ending && !ask_is_fact(k) && k->want) {
            ask_decide(k);
        }
    }
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        if (k->spec.stands) {
            ask_stand(k);
        } else if (!k->ending && !ask_is_fact(k) && !k->want) {
            ask_decide(k);
        }
        if (!k->ending && !ask_is_fact(k) && !k->want) {
            ask_count_waiting(k);
        }
    }
}

/* Who waits and comes first is served first: it is asked for behind all of those. The numbers are
 * the last turn's, in which they were counted; a place that they could not use is free for others.
 */
bool arbiter_allows(const struct arbiter *a, const struct ask_spec *spec, struct arena *out,
                    struct ask_view *ret)
{
    const struct ask *mine = map_find(&a->asks, spec->uid);
    if (mine != NULL) {
        ask_show(mine, out, ret);
        return mine->want || mine->held || mine->offered;
    }
    struct ask k = {
        /* Only looked at: nothing of the arbiter is changed by judging. */
        .arbiter = (struct arbiter *)(uintptr_t)a,
        .spec = *spec,
        .full = spec->type == TARGET_NODE
                    ? spec->target
                    : arena_printf(out, STR_FMT "/" STR_FMT, STR_ARG(spec->space),
                                   STR_ARG(spec->target)),
    };
    struct lock free = { 0 };
    struct str target =
        arena_printf(out, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(target_type_name(spec->type)),
                     STR_ARG(spec->space), STR_ARG(spec->target));
    k.lock = lock_find(a, target, out);
    k.lock = k.lock != NULL ? k.lock : &free;
    ask_find_parts(&k);
    for (uint32_t i = 0; i < k.part_n; i++) {
        part_look(&k, &k.parts[i]);
    }
    k.why = ask_judge(&k);
    k.stage = k.why == WHY_NONE ? ASK_HELD : ASK_WAITING;
    ask_wait_gap(&k);
    ask_show(&k, out, ret);
    alloc_free(k.parts);
    return k.why == WHY_NONE;
}

/* ── what came of it ───────────────────────────────────────────────────────────────────────── */

/* Whether what is there with that number is nothing that it has to take away. */
static bool ask_leaves_there(const struct ask *k, uint32_t grant, bool leaves)
{
    return !ask_is_past(k, grant) && (!ask_is_mine(k, grant) || leaves);
}

/* Nothing of it is in any ledger, nor on its way there. */
static bool ask_is_struck(const struct ask *k)
{
    LIST_EACH (&k->arbiter->books, link) {
        const struct book *b = CONTAINER_OF(link, struct book, link);
        const struct ask_part *part = ask_part_of(k, b);
        const struct reserve *entry = book_find(b, k->spec.uid);
        if ((entry != NULL && !ask_leaves_there(k, entry->grant, ask_leaves_entry(k, b))) ||
            (b->unsure && part != NULL) ||
            (b->call != NULL && part != NULL && part->adding == b->serial &&
             b->verb == API_PATCH)) {
            return false;
        }
    }
    return true;
}

bool ask_has_lock(const struct ask *k)
{
    const struct lock *l = k->lock;
    bool own = lock_is_of(l, k->spec.uid);
    return (own && ask_is_mine(k, l->grant) && !ask_is_past(k, l->grant)) ||
           (!own && k->spec.adopt && l->there) ||
           mutated(k->arbiter->config.mutations, MUTATION_NO_LOCK);
}

static bool ask_is_complete(const struct ask *k)
{
    if (!k->known || !ask_has_lock(k)) {
        return false;
    }
    for (uint32_t i = 0; i < k->part_n; i++) {
        const struct ask_part *part = &k->parts[i];
        if (!part->reserved && part->book->item != NULL) {
            return false;
        }
    }
    return true;
}

static enum ask_stage ask_derive(struct ask *k)
{
    const struct arbiter *a = k->arbiter;
    if (k->ending) {
        bool clean = a->limits_synced && a->locks_synced && ask_is_struck(k) &&
                     (!lock_is_of(k->lock, k->spec.uid) ||
                      ask_leaves_there(k, k->lock->grant, ask_leaves_lock(k))) &&
                     k->lock->call == NULL && !k->lock->unsure;
        return clean ? ASK_ENDED : ASK_ENDING;
    }
    if (k->held) {
        return ASK_HELD;
    }
    if (!k->want) {
        return ASK_WAITING;
    }
    return ask_is_complete(k) ? ASK_HELD : ASK_TAKING;
}

/* The lock of a grant that is over goes when no reservation of that is left. */
static void ask_drop_past(struct ask *k)
{
    LIST_EACH (&k->arbiter->books, link) {
        const struct reserve *entry = book_find(CONTAINER_OF(link, struct book, link), k->spec.uid);
        if (entry != NULL && ask_is_past(k, entry->grant)) {
            return;
        }
    }
    lock_drop(k->lock);
}

static void ask_act(struct ask *k)
{
    struct lock *l = k->lock;
    struct arbiter *a = k->arbiter;
    if (k->spec.stands) {
        return; /* what is there under its uid is not its business: the sweep looks at it */
    }
    if (k->want && k->doubt) {
        fact_confirm(k);
    }
    if (k->want && l->taker == k) {
        if (lock_is_of(l, k->spec.uid) && ask_is_past(k, l->grant)) {
            ask_drop_past(k);
        } else if (!mutated(a->config.mutations, MUTATION_NO_LOCK)) {
            lock_take(l, k);
        }
        return;
    }
    if (k->want || k->keep || !a->may) {
        return;
    }
    /* The lock goes last, and only when nothing is left under it. */
    if (lock_is_of(l, k->spec.uid) && ask_is_struck(k)) {
        if (!ask_leaves_there(k, l->grant, ask_leaves_lock(k))) {
            k->lapses = k->lapses || !ask_frees(k, l->grant);
            if (ask_frees(k, l->grant)) {
                lock_drop(l);
            }
        }
    } else if (k->ending && l->unsure) {
        lock_take(l, k); /* finds out whose it is */
    }
}

/* Who does not want any more what is there of its grant, which may still be another controller's:
 * its owner has to end the number first. */
static void book_lapse(const struct book *b)
{
    const struct limit *l = book_limit(b);
    for (uint32_t i = 0; i < l->books.n; i++) {
        const struct reserve *r = &l->books.items[i];
        struct ask *k = ask_claiming(b->arbiter, r->uid);
        if (k != NULL && (k->ending || (!k->want && !k->held && !k->keep)) &&
            ask_is_mine(k, r->grant) && !ask_frees(k, r->grant) && !ask_leaves_entry(k, b)) {
            k->lapses = true;
        }
    }
}

void queue_settle(struct arbiter *a)
{
    LIST_EACH (&a->books, link) {
        book_lapse(CONTAINER_OF(link, struct book, link));
    }
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        enum ask_stage stage = k->stage;
        ask_act(k);
        k->stage = ask_derive(k);
        if (k->stage == ASK_HELD) {
            k->held = true;
            k->adopted = true;
        }
        if (k->stage != stage || k->why != k->told || k->offered != k->told_offer ||
            k->lapses != k->told_lapses) {
            k->told_lapses = k->lapses;
            k->told = k->why;
            k->told_offer = k->offered;
            ask_notice(k);
        }
    }
}
