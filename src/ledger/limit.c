#include "ledger/limit.h"

const struct limit_policy *limit_match_policy(const struct limit *l, uint32_t traits)
{
    for (uint32_t i = 0; i < l->policy_n; i++) {
        if ((l->policies[i]->traits & traits) != 0) {
            return l->policies[i];
        }
    }
    return NULL;
}

uint32_t limit_nominal(const struct limit *l, uint32_t population)
{
    if (population == 0) {
        return 0;
    }
    uint64_t base = (uint64_t)l->percent * population / 100;
    return (uint32_t)MIN(MAX(base, (uint64_t)l->minimum), (uint64_t)l->max_count);
}

uint32_t limit_effective(const struct limit *l, const struct limit_counts *t)
{
    uint32_t nominal = limit_nominal(l, t->population);
    return nominal > t->unavailable ? nominal - t->unavailable : 0;
}

bool limit_allows_one_more(const struct limit *l, const struct limit_counts *t,
                           struct limit_target target)
{
    uint64_t nominal = limit_nominal(l, t->population);
    /* Somebody's entry may be there for the same target: it takes no more than it has. But above a
     * limit that was lowered nothing new begins. */
    if ((uint64_t)t->granted + (target.granted ? 0 : 1) > nominal) {
        return false;
    }
    /* Granting what is broken already makes nothing more unavailable. */
    if (target.unavailable && l->repair_unavailable) {
        return true;
    }
    bool more = !target.granted && !target.unavailable;
    uint64_t together = (uint64_t)t->granted + t->unavailable + (more ? 1 : 0);
    return together <= nominal;
}

bool limit_is_overcommitted(const struct limit *l, const struct limit_counts *t)
{
    return t->granted > 0 &&
           (uint64_t)t->granted + t->unavailable > limit_nominal(l, t->population);
}

usec_t limit_gap_end(const struct limit *l)
{
    usec_t last = l->last_grant == USEC_NEVER ? l->last_release : l->last_grant;
    if (l->gap == 0 || last == USEC_NEVER) {
        return 0;
    }
    if (l->last_release != USEC_NEVER) {
        last = MAX(last, l->last_release);
    }
    return last + l->gap + SECONDS(1);
}

void limit_merge_options(const struct limit *const *limits, uint32_t n, struct limit_options *ret)
{
    struct limit_options o = { .ledger_init_time = USEC_NEVER };
    bool drain = false;
    bool detach = false;
    for (uint32_t i = 0; i < n; i++) {
        const struct limit *l = limits[i];
        const struct limit_options *add = &l->options;
        if (l->has_drain && !drain) {
            o.drain = add->drain;
            drain = true;
        }
        if (l->has_detach && !detach) {
            o.detach = add->detach;
            detach = true;
        }
        if (add->approved_s > 0 && (o.approved_s == 0 || add->approved_s < o.approved_s)) {
            o.approved_s = add->approved_s;
            o.on_approved = add->on_approved;
        }
        if (add->in_progress_s > 0 &&
            (o.in_progress_s == 0 || add->in_progress_s < o.in_progress_s)) {
            o.in_progress_s = add->in_progress_s;
            o.on_in_progress = add->on_in_progress;
        }
        if (add->max_rejections > 0 &&
            (o.max_rejections == 0 || add->max_rejections < o.max_rejections)) {
            o.max_rejections = add->max_rejections;
        }
        o.rejection_backoff_s = MAX(o.rejection_backoff_s, add->rejection_backoff_s);
        o.safety |= add->safety;
        o.ledger_init_time = MIN(o.ledger_init_time, add->ledger_init_time);
    }
    if (n == 0) {
        o.rejection_backoff_s = LIMIT_REJECTION_BACKOFF_S;
    }
    *ret = o;
}
