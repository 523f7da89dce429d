/*
 * The status of limits: read, composed, compared, written. All that a turn has decided about one
 * limit is one write, and no second one is under way meanwhile.
 *
 * Every write carries the resourceVersion of what it was decided on. That is the live read of the
 * grant protocol: a ledger that moved on since refuses the write, and then it is read and decided
 * again. What the nodes are like comes from their watch. Waiting for that watch to reach a version
 * read live cannot work on a quiet cluster, where the next bookmark may be a minute away; how fresh
 * it is, may_act answers for.
 */
#include "base/alloc.h"
#include "format/json_writer.h"
#include "ledger/arbiter_internal.h"

#include <stdlib.h>

#define BOOK_BACKOFF_BASE MSECONDS(500)
#define BOOK_BACKOFF_MAX SECONDS(30)

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct book *book_new(struct arbiter *a, struct store_item *item)
{
    struct book *b = ALLOC_NEW(struct book);
    b->arbiter = a;
    b->item = item;
    b->words.first = 256;
    b->backoff = (struct backoff){ .base = BOOK_BACKOFF_BASE, .max = BOOK_BACKOFF_MAX };
    b->written_at = -ARBITER_QUIET;
    b->unknown_at = -1;
    map_init(&b->hits, loop_random(a->loop), loop_random(a->loop));
    if (item == NULL) {
        return b;
    }
    struct list *before = a->books.next;
    while (before != &a->books &&
           str_cmp(CONTAINER_OF(before, struct book, link)->item->name, item->name) < 0) {
        before = before->next;
    }
    list_add(before, &b->link); /* in front of the first that is greater */
    return b;
}

void book_free(struct book *b)
{
    if (b == NULL) {
        return;
    }
    if (b->call != NULL) {
        api_cancel(b->arbiter->client->api, STEAL(b->call));
    }
    list_del(&b->link);
    map_done(&b->hits);
    arena_done(&b->words);
    buf_done(&b->over);
    buf_done(&b->told[0]);
    buf_done(&b->told[1]);
    alloc_free(b);
}

void book_judge(struct book *b)
{
    const struct limit *l = book_limit(b);
    arena_reset(&b->words);
    b->reason = arena_str(&b->words, l->reason);
    b->problem = arena_str(&b->words, l->problem);
    if (l->reason.n == 0 && l->refers) {
        const struct picker *p = sights_find(b->arbiter, l->reference);
        if (p == NULL) {
            b->reason = STR("SelectorNotFound");
            b->problem = arena_printf(&b->words, "there is no MaintenanceSelector " STR_FMT,
                                      STR_ARG(l->reference));
        } else if (p->type != l->type) {
            b->reason = STR("SelectorOfOtherType");
            b->problem = arena_printf(
                &b->words, "MaintenanceSelector " STR_FMT " selects objects of type " STR_FMT,
                STR_ARG(l->reference), STR_ARG(target_type_name(p->type)));
        }
    }
    b->usable = b->reason.n == 0;
}

const struct reserve *book_find(const struct book *b, struct str uid)
{
    return reserves_find(&book_limit(b)->books, uid);
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static void book_back_off(struct book *b)
{
    struct arbiter *a = b->arbiter;
    b->retry_at = MAX(loop_now(a->loop) + backoff_next(&b->backoff, loop_random(a->loop)),
                      client_open_at(a->client));
    arbiter_at(a, b->retry_at);
}

/* False when the answer cannot be read. */
static bool book_learn(struct book *b, struct str body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *object = NULL;
    return json_parse(body, JSON_GO, &tmp, &object, &ignored) == 0 &&
           store_learn(&b->arbiter->limits, object, &ignored) >= 0;
}

static void book_tell(struct book *b)
{
    if (b->sent.told) {
        tell_limits(b, b->sent.limit, b->population);
    }
    if (b->sent.over_began) {
        tell_over(b, buf_str(&b->over));
    }
}

/* What that write has added is certainly from here. */
static void book_own(struct book *b)
{
    LIST_EACH (&b->arbiter->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        struct ask_part *part = ask_part_of(k, b);
        if (part != NULL && part->adding == b->serial) {
            part->mine = true;
        }
    }
}

static void book_on_reply(void *ctx, const struct api_reply *reply)
{
    struct book *b = ctx;
    struct arbiter *a = b->arbiter;
    enum retry_verdict verdict = client_note(a->client, b->verb, reply);
    b->call = NULL;
    arbiter_soon(a);
    a->books_dirty = true;
    if (verdict == RETRY_OBSERVE) {
        /* Somebody else was faster. Five times in a row, and others go first. */
        b->unsure = true;
        if (++b->conflicts % ARBITER_CONFLICTS_MAX == 0) {
            book_back_off(b);
        }
        return;
    }
    if (verdict != RETRY_DONE || !book_learn(b, reply->body)) {
        /* Whether a write without an answer went through, only the object can tell. */
        b->unsure = true;
        book_back_off(b);
        return;
    }
    b->unsure = false;
    if (b->verb == API_PATCH) {
        book_own(b);
        b->conflicts = 0;
        backoff_reset(&b->backoff);
        book_tell(b);
    }
}

/* ── drafts ────────────────────────────────────────────────────────────────────────────────── */

struct draft {
    struct reserves books;
    bool ledger;
    bool granted;
    bool released;
};

/* Whether an entry stays, as the holder's ask says. */
static bool draft_keeps(const struct book *b, const struct ask *k, uint32_t grant)
{
    if (ask_is_past(k, grant)) {
        return false;
    }
    if (!ask_is_mine(k, grant) || k->keep) {
        return true;
    }
    /* A limit that does not apply any more lets go; a target that is gone may come back. */
    if (ask_part_of(k, b) == NULL && k->known && !k->missing) {
        return false;
    }
    /* What it had taken goes back. */
    return (!k->ending && (k->want || k->held)) || !ask_frees(k, grant) || ask_leaves_entry(k, b);
}

static uint32_t draft_old(const struct book *b, struct reserve *items, struct draft *d)
{
    const struct limit *l = book_limit(b);
    const struct arbiter *a = b->arbiter;
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->books.n; i++) {
        struct reserve r = l->books.items[i];
        const struct ask *k = ask_claiming(a, r.uid);
        bool orphan = k == NULL && orphan_frees(a, r.uid, r.grant);
        if (orphan || (k != NULL && !draft_keeps(b, k, r.grant))) {
            d->ledger = true;
            d->released = d->released || orphan || k->ending || ask_is_past(k, r.grant);
            continue;
        }
        if (k != NULL && ask_is_mine(k, r.grant) && !str_eq(r.state, buf_str(&k->state))) {
            r.state = buf_str(&k->state);
        }
        items[n++] = r;
    }
    return n;
}

/* Limits are taken in order of their names, so that two who want the same two never wait for each
 * other. */
static bool ask_is_due(const struct ask *k, const struct book *b)
{
    if (!ask_has_lock(k)) {
        return false;
    }
    for (uint32_t i = 0; i < k->part_n; i++) {
        const struct ask_part *part = &k->parts[i];
        if (part->book == b) {
            return part->wanted && !part->reserved && !part->behind;
        }
        if (!part->reserved && part->wanted) {
            return false;
        }
    }
    return false;
}

static uint32_t draft_new(struct book *b, struct reserve *items, uint32_t n, struct draft *d)
{
    struct arbiter *a = b->arbiter;
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        if (!k->want || n >= RESERVES_MAX || !ask_is_due(k, b)) {
            continue;
        }
        items[n++] = (struct reserve){
            .uid = k->spec.uid,
            .name = k->spec.name,
            .target = k->full,
            .state = buf_str(&k->state),
            .grant = k->spec.grant,
            .granted = a->wall,
        };
        d->ledger = true;
        d->granted = d->granted || (!k->spec.adopt && !k->held);
        ask_part_of(k, b)->adding = b->serial + 1;
    }
    return n;
}

static void draft_make(struct book *b, struct draft *d, struct arena *tmp)
{
    const struct limit *l = book_limit(b);
    uint32_t most = l->books.n + b->adding;
    struct reserve *items = ARENA_ARRAY(tmp, struct reserve, most + 1);
    uint32_t n = draft_old(b, items, d);
    if (b->adding > 0) {
        n = draft_new(b, items, n, d);
    }
    ASSERT(n <= most);
    reserves_index(&d->books, items, n, tmp);
}

static int hit_cmp(const void *a, const void *b)
{
    const struct statement_hit *x = a;
    const struct statement_hit *y = b;
    return str_cmp(x->name, y->name);
}

static void draft_numbers(const struct book *b, const struct draft *d, struct statement *s,
                          struct arena *tmp)
{
    bool twice = b->arbiter->config.legacy_double_count;
    uint32_t most = map_count(&b->hits);
    struct statement_hit *hits = ARENA_ARRAY(tmp, struct statement_hit, most + 1);
    uint32_t n = 0;
    MAP_EACH (&b->hits, entry) {
        struct str name = map_item_name(entry);
        const struct limit_policy *policy = map_item_value(entry);
        if (twice || !reserves_has_target(&d->books, name)) {
            hits[n++] = (struct statement_hit){ name, policy->name };
        }
    }
    qsort(hits, n, sizeof(*hits), hit_cmp);
    s->tally = (struct limit_tally){ b->population, d->books.targets, n };
    s->unavailable = n;
    s->hits = hits;
    s->hit_n = MIN(n, STATEMENT_UNAVAILABLE_MAX);
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void book_send(struct book *b, enum api_verb verb)
{
    struct arbiter *a = b->arbiter;
    buf_reset(&a->path);
    buf_add(&a->path, STR(ARBITER_LIMITS_PATH "/"));
    client_add_segment(&a->path, b->item->name);
    if (verb == API_PATCH) {
        buf_add(&a->path, STR("/status"));
        b->serial++;
        b->written_at = a->now;
    }
    b->verb = verb;
    b->call = api_send(a->client->api,
                       &(struct api_request){
                           .verb = verb,
                           .path = buf_str(&a->path),
                           .content_type = verb == API_PATCH ? API_MERGE_PATCH : STR_NONE,
                           .body = verb == API_PATCH ? buf_str(&a->body) : STR_NONE,
                       },
                       book_on_reply, b);
}

static void book_write(struct book *b, struct str status)
{
    struct arbiter *a = b->arbiter;
    char version[24];
    int n = snprintf(version, sizeof(version), "%llu", (unsigned long long)b->item->version);
    buf_reset(&a->body);
    struct json_writer w = json_writer_on(&a->body);
    jw_obj(&w);
    if (!mutated(a->config.mutations, MUTATION_BOOKS_BY_FORCE)) {
        jw_key(&w, STR("metadata"));
        jw_obj(&w);
        jw_pair(&w, "resourceVersion", (struct str){ version, (size_t)n });
        jw_obj_end(&w);
    }
    jw_key(&w, STR("status"));
    jw_raw(&w, status);
    jw_obj_end(&w);
    book_send(b, API_PATCH);
}

/* Inputs that are unknown for a moment, while a watch begins, are nothing to tell. */
static bool book_inputs(struct book *b, struct statement *s)
{
    struct arbiter *a = b->arbiter;
    bool known = b->usable && population_known(a, book_limit(b)->type);
    if (known || !b->usable) {
        b->unknown_at = -1;
        s->unknown = known ? STR_NONE : b->problem;
        s->computed = known;
        return true;
    }
    b->unknown_at = b->unknown_at < 0 ? a->now : b->unknown_at;
    if (a->now < b->unknown_at + ARBITER_UNKNOWN) {
        arbiter_at(a, b->unknown_at + ARBITER_UNKNOWN);
        return false;
    }
    arbiter_at(a, a->now + ARBITER_UNKNOWN); /* a watch that works again does not say so */
    s->unknown = STR("the objects that it counts cannot be read");
    return true;
}

static void book_compose(struct book *b)
{
    struct arbiter *a = b->arbiter;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf status = { 0 };
    const struct limit *l = book_limit(b);
    struct draft d = { 0 };
    draft_make(b, &d, &tmp);
    struct statement s = {
        .limit = l,
        .books = &d.books,
        .ledger = d.ledger,
        .granted = d.granted,
        .released = d.released,
        .reason = b->reason,
        .problem = b->problem,
        .waiting = b->waiting,
        .now = a->wall,
    };
    if (l->governs && !book_inputs(b, &s) && !d.ledger) {
        return;
    }
    if (s.computed) {
        draft_numbers(b, &d, &s, &tmp);
    }
    struct statement_diff diff;
    statement_patch(&s, &tmp, &status, &diff);
    if (!diff.any) {
        return;
    }
    /* Who holds what is written at once; the rest may wait for company. */
    if (!diff.ledger && a->now < b->written_at + ARBITER_QUIET) {
        arbiter_at(a, b->written_at + ARBITER_QUIET);
        return;
    }
    b->sent = diff;
    b->sent.over = STR_NONE;
    buf_reset(&b->over);
    buf_add(&b->over, diff.over);
    book_write(b, buf_str(&status));
}

void book_step(struct book *b)
{
    struct arbiter *a = b->arbiter;
    if (b->call != NULL || b->item == NULL) {
        return;
    }
    usec_t at = MAX(b->retry_at, client_open_at(a->client));
    if (at > a->now) {
        arbiter_at(a, at);
        return;
    }
    if (b->unsure) {
        book_send(b, API_GET);
        return;
    }
    if (a->may) {
        book_compose(b);
    }
}
