/*
 * prioqueue: a queue that gives the least item first; any item can leave it at any time.
 *
 * Items are embedded in their owners and know their place. Their order must not change while they
 * are inside: take out, change, put in again.
 */
#pragma once

#include "base/defs.h"

struct prio_item {
    uint32_t place; /* 0 = outside; otherwise its index and one */
};

struct prio {
    struct prio_item **items;
    uint32_t n;
    uint32_t cap;
    /* True when `a` comes before `b`. */
    bool (*before)(struct prio_item *a, struct prio_item *b);
};

void prio_init(struct prio *p, bool (*before)(struct prio_item *, struct prio_item *));
void prio_done(struct prio *p); /* the items are outside afterwards */

static inline bool prio_inside(const struct prio_item *item)
{
    return item->place != 0;
}

void prio_put(struct prio *p, struct prio_item *item);
void prio_take(struct prio *p, struct prio_item *item); /* an item that is inside */
struct prio_item *prio_first(const struct prio *p);     /* NULL when it is empty; stays inside */

void prio_check(const struct prio *p);
