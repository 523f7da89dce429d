#include "agent/gather.h"

void gather_init(struct gather *g, uint32_t n, struct arena *out)
{
    *g = (struct gather){ .items = ARENA_ARRAY(out, struct gather_item, n),
                          .item_n = n,
                          .waiting = ARENA_ARRAY(out, uint32_t, n),
                          .batch_end = USEC_NEVER };
    for (uint32_t i = 0; i < n; i++) {
        g->items[i].due = USEC_NEVER;
    }
}

void gather_note(struct gather *g, uint32_t item, enum watch_news news, usec_t now)
{
    ASSERT(item < g->item_n);
    struct gather_item *x = &g->items[item];
    bool waits = x->due != USEC_NEVER;
    if (!waits) {
        x->first = now;
        g->waiting[g->waiting_n++] = item;
    }
    switch (news) {
    case WATCH_CHANGED:
        if (g->batch_end == USEC_NEVER) {
            g->batch_end = now + GATHER_TIME;
        }
        x->due = MIN(x->due, g->batch_end);
        return;
    case WATCH_WRITING:
        /* Only what is being written is put off: something finished that waits is not. */
        if (!waits || x->due > g->batch_end || g->batch_end == USEC_NEVER) {
            x->due = MIN(now + GATHER_QUIET, x->first + GATHER_QUIET_MAX);
        }
        return;
    default:
        x->due = MIN(x->due, now + GATHER_MOUNTS);
        return;
    }
}

static void leave(struct gather *g, uint32_t place)
{
    g->items[g->waiting[place]].due = USEC_NEVER;
    g->waiting_n--;
    for (uint32_t i = place; i < g->waiting_n; i++) {
        g->waiting[i] = g->waiting[i + 1];
    }
}

void gather_drop(struct gather *g, uint32_t item)
{
    for (uint32_t i = 0; i < g->waiting_n; i++) {
        if (g->waiting[i] == item) {
            leave(g, i);
            return;
        }
    }
}

bool gather_take(struct gather *g, usec_t now, uint32_t *ret)
{
    if (now >= g->batch_end) {
        g->batch_end = USEC_NEVER;
    }
    for (uint32_t i = 0; i < g->waiting_n; i++) {
        if (g->items[g->waiting[i]].due <= now) {
            *ret = g->waiting[i];
            leave(g, i);
            return true;
        }
    }
    return false;
}

usec_t gather_next(const struct gather *g)
{
    usec_t when = USEC_NEVER;
    for (uint32_t i = 0; i < g->waiting_n; i++) {
        when = MIN(when, g->items[g->waiting[i]].due);
    }
    return when;
}
