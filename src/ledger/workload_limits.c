/*
 * Whether the limits of workloads bear that a node goes with its pods. Nothing is asked for and
 * nothing is kept: it is a question about what is known.
 */
#include "ledger/arbiter_internal.h"

#define BEAR_BOOKS_MAX 256u

/* A limit, and what would be away under it. */
struct bearing {
    const struct arbiter *arbiter;
    const struct book *book;
    uint32_t away;
};

static bool book_counts(const struct arbiter *a, const struct book *b, const struct member *m)
{
    struct book *books[BEAR_BOOKS_MAX];
    uint32_t n = population_books(a, m, books, BEAR_BOOKS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        if (books[i] == b) {
            return true;
        }
    }
    return false;
}

/* It is among those that are away already, whatever the node does. */
static bool book_misses(const struct book *b, const struct member *m)
{
    return (m->traits & TRAIT_UNAVAILABLE) != 0 || map_find(&b->hits, m->name) != NULL ||
           reserves_has_target(&book_limit(b)->books, m->name);
}

static void bearing_visit(void *ctx, const struct member *m)
{
    struct bearing *b = ctx;
    if (book_misses(b->book, m) && !reserves_has_target(&book_limit(b->book)->books, m->name) &&
        book_counts(b->arbiter, b->book, m)) {
        b->away++;
    }
}

/* Whether the loss makes one more workload of this limit unavailable. */
static bool loss_hurts(const struct arbiter *a, const struct book *b,
                       const struct arbiter_loss *loss)
{
    struct member m;
    if (!population_find(a, loss->type, loss->target, &m)) {
        return false; /* it is gone: nobody counts it */
    }
    const struct thing *t = m.ctx;
    return t->spare < (int64_t)loss->pods && !book_misses(b, &m) && book_counts(a, b, &m);
}

static int book_bears(const struct arbiter *a, const struct book *b,
                      const struct arbiter_loss *losses, uint32_t n, struct err *err)
{
    const struct limit *l = book_limit(b);
    const struct arbiter_loss *first = NULL;
    uint32_t more = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (losses[i].type == l->type && loss_hurts(a, b, &losses[i])) {
            first = first != NULL ? first : &losses[i];
            more++;
        }
    }
    if (first == NULL) {
        return 0;
    }
    if (!b->usable) {
        return err_set(err, ERR_BUSY, "limit " STR_FMT " cannot be computed", STR_ARG(l->name));
    }
    struct bearing sum = { .arbiter = a, .book = b, .away = l->books.targets };
    population_each(a, l->type, bearing_visit, &sum);
    uint32_t nominal = limit_nominal(l, b->population);
    if (sum.away + more > nominal) {
        return err_set(err, ERR_BUSY,
                       "limit " STR_FMT ": " STR_FMT
                       "%s would be unavailable, with %u that are; %u "
                       "may be",
                       STR_ARG(l->name), STR_ARG(first->target), more > 1 ? " and others" : "",
                       sum.away, nominal);
    }
    return 0;
}

int arbiter_bears(const struct arbiter *a, const struct arbiter_loss *losses, uint32_t n,
                  struct err *err)
{
    bool wanted[TARGET_TYPES] = { false };
    for (uint32_t i = 0; i < n; i++) {
        ASSERT(losses[i].type != TARGET_NODE);
        wanted[losses[i].type] = true;
    }
    LIST_EACH (&a->books, link) {
        const struct book *b = CONTAINER_OF(link, struct book, link);
        const struct limit *l = book_limit(b);
        if (!l->governs || !wanted[l->type]) {
            continue;
        }
        if (!population_known(a, l->type) || a->recount[l->type]) {
            return err_set(err, ERR_BUSY, "limit " STR_FMT " cannot be computed", STR_ARG(l->name));
        }
        int r = book_bears(a, b, losses, n, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}
