/*
 * Whether the limits of workloads would still hold if a node went with its pods. Answered from what
 * is known: nothing is read, reserved or remembered.
 */
#include "ledger/arbiter_internal.h"

#define WORKLOAD_LIMITS_MAX 256u

/* A limit, and how many workloads are unavailable under it. */
struct limit_losses {
    const struct arbiter *arbiter;
    const struct limit_state *limit;
    uint32_t unavailable;
};

static bool limit_state_counts(const struct arbiter *a, const struct limit_state *b,
                               const struct counted_object *m)
{
    struct limit_state *limits[WORKLOAD_LIMITS_MAX];
    uint32_t n = population_limits(a, m, limits, WORKLOAD_LIMITS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        if (limits[i] == b) {
            return true;
        }
    }
    return false;
}

/* The workload is unavailable or reserved already, whatever happens to the node. */
static bool limit_state_lacks(const struct limit_state *b, const struct counted_object *m)
{
    return (m->traits & TRAIT_UNAVAILABLE) != 0 || map_find(&b->policy_hits, m->name) != NULL ||
           reservations_has_target(&limit_of(b)->reservations, m->name);
}

static void limit_losses_visit(void *ctx, const struct counted_object *m)
{
    struct limit_losses *b = ctx;
    if (limit_state_lacks(b->limit, m) &&
        !reservations_has_target(&limit_of(b->limit)->reservations, m->name) &&
        limit_state_counts(b->arbiter, b->limit, m)) {
        b->unavailable++;
    }
}

/* Whether the loss makes one more workload of this limit unavailable. */
static bool loss_makes_unavailable(const struct arbiter *a, const struct limit_state *b,
                                   const struct arbiter_loss *loss)
{
    struct counted_object m;
    if (!population_find(a, loss->type, loss->target, &m)) {
        return false; /* the workload is gone: no limit counts it */
    }
    const struct workload *t = m.ctx;
    return t->spare_pods < (int64_t)loss->pods && !limit_state_lacks(b, &m) &&
           limit_state_counts(a, b, &m);
}

static int limit_state_check_losses(const struct arbiter *a, const struct limit_state *b,
                                    const struct arbiter_loss *losses, uint32_t n, struct err *err)
{
    const struct limit *l = limit_of(b);
    const struct arbiter_loss *first = NULL;
    uint32_t more = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (losses[i].type == l->type && loss_makes_unavailable(a, b, &losses[i])) {
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
    struct limit_losses sum = { .arbiter = a, .limit = b, .unavailable = l->reservations.targets };
    population_each(a, l->type, limit_losses_visit, &sum);
    uint32_t nominal = limit_nominal(l, b->population);
    if (sum.unavailable + more > nominal) {
        return err_set(err, ERR_BUSY,
                       "limit " STR_FMT ": " STR_FMT
                       "%s would be unavailable, with %u that are; %u "
                       "may be",
                       STR_ARG(l->name), STR_ARG(first->target), more > 1 ? " and others" : "",
                       sum.unavailable, nominal);
    }
    return 0;
}

int arbiter_check_losses(const struct arbiter *a, const struct arbiter_loss *losses, uint32_t n,
                         struct err *err)
{
    bool wanted[TARGET_TYPES] = { false };
    for (uint32_t i = 0; i < n; i++) {
        ASSERT(losses[i].type != TARGET_NODE);
        wanted[losses[i].type] = true;
    }
    LIST_EACH (&a->limit_states, link) {
        const struct limit_state *b = CONTAINER_OF(link, struct limit_state, link);
        const struct limit *l = limit_of(b);
        if (!l->type_known || !wanted[l->type]) {
            continue;
        }
        if (!population_known(a, l->type) || a->recount[l->type]) {
            return err_set(err, ERR_BUSY, "limit " STR_FMT " cannot be computed", STR_ARG(l->name));
        }
        int r = limit_state_check_losses(a, b, losses, n, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}
