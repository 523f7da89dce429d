#include "calendar/opening_hours.h"

#define SEARCH_MAX DAYS(RRULE_YEARS_MAX * 366)

static struct opening_state recurrence_at(const struct recurrence *r, usec_t at)
{
    struct interval next;
    if (!recurrence_next(r, at, &next)) {
        return (struct opening_state){ .until = USEC_NEVER };
    }
    bool open = next.start <= at;
    return (struct opening_state){ .open = open, .until = open ? next.end : next.start };
}

/* One of them is open as long as the longest; none is as long as the first to open stays away. */
static struct opening_state either(struct opening_state a, struct opening_state b)
{
    if (a.open != b.open) {
        return a.open ? a : b;
    }
    return (struct opening_state){ .open = a.open,
                                   .until =
                                       a.open ? MAX(a.until, b.until) : MIN(a.until, b.until) };
}

static struct opening_state without(struct opening_state a, struct opening_state cut)
{
    if (cut.open) {
        return (struct opening_state){ .until = cut.until };
    }
    return (struct opening_state){ .open = a.open,
                                   .until = a.open ? MIN(a.until, cut.until) : a.until };
}

static struct opening_state any_at(const struct recurrence *items, uint32_t n, usec_t at)
{
    struct opening_state state = { .until = USEC_NEVER };
    for (uint32_t i = 0; i < n; i++) {
        state = either(state, recurrence_at(&items[i], at));
    }
    return state;
}

static struct opening_state hours_at(const struct opening_hours *const *hours, uint32_t n,
                                     usec_t at)
{
    struct opening_state state = { .until = USEC_NEVER };
    for (uint32_t i = 0; i < n; i++) {
        struct opening_state open = any_at(hours[i]->open, hours[i]->open_n, at);
        struct opening_state closed = any_at(hours[i]->closed, hours[i]->closed_n, at);
        state = either(state, without(open, closed));
    }
    return state;
}

struct opening_state opening_at(const struct opening_plan *p, usec_t at)
{
    return without(hours_at(p->hours, p->hours_n, at), hours_at(p->freezes, p->freeze_n, at));
}

static uint32_t recurrences_of(const struct opening_hours *const *hours, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        count += hours[i]->open_n + hours[i]->closed_n;
    }
    return count;
}

struct opening_search opening_search_from(usec_t after)
{
    usec_t limit = after < USEC_NEVER - SEARCH_MAX ? after + SEARCH_MAX : USEC_NEVER;
    return (struct opening_search){ .at = after, .limit = limit, .start = -1 };
}

enum opening_result opening_next(const struct opening_plan *p, struct opening_search *search,
                                 struct interval *ret)
{
    uint32_t cost =
        1 + recurrences_of(p->hours, p->hours_n) + recurrences_of(p->freezes, p->freeze_n);
    for (uint32_t used = 0; used < OPENING_STEPS_MAX; used += cost) {
        if (search->at >= search->limit) {
            *ret = (struct interval){ .start = search->start, .end = USEC_NEVER };
            return search->start >= 0 ? OPENING_FOUND : OPENING_NEVER;
        }
        struct opening_state state = opening_at(p, search->at);
        if (!state.open && search->start >= 0) {
            *ret = (struct interval){ .start = search->start, .end = search->at };
            return OPENING_FOUND;
        }
        if (state.open && search->start < 0) {
            search->start = search->at;
        }
        ASSERT(state.until > search->at);
        search->at = state.until;
        search->steps += cost;
        if (search->steps > OPENING_STEPS_TOTAL_MAX) {
            return OPENING_TOO_COMPLEX;
        }
    }
    return OPENING_AGAIN;
}
