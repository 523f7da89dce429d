/*
 * prioqueue: a queue that gives the least item first; any item can leave it at any time.
 *
 * Items are embedded in their owners and know their place. Their order must not change while they
 * are inside: take out, change, put in again.
 */
#pragma once

#include "base/defs.h"

struct prioqueue_item {
    uint32_t place; /* 0 = outside; otherwise its index and one */
};

struct prioqueue {
    struct prioqueue_item **items;
    uint32_t n;
    uint32_t cap;
    /* True when `a` comes before `b`. */
    bool (*before)(struct prioqueue_item *a, struct prioqueue_item *b);
};

void prioqueue_init(struct prioqueue *p,
                    bool (*before)(struct prioqueue_item *, struct prioqueue_item *));
void prioqueue_done(struct prioqueue *p); /* the items are outside afterwards */

static inline bool prioqueue_inside(const struct prioqueue_item *item)
{
    return item->place != 0;
}

void prioqueue_put(struct prioqueue *p, struct prioqueue_item *item);
void prioqueue_take(struct prioqueue *p, struct prioqueue_item *item); /* an item that is inside */
struct prioqueue_item *
prioqueue_first(const struct prioqueue *p); /* NULL when it is empty; stays inside */

void prioqueue_check(const struct prioqueue *p);
