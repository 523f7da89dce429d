#include "base/prioqueue.h"

#include "base/alloc.h"

void prioqueue_init(struct prioqueue *p,
                    bool (*before)(struct prioqueue_item *, struct prioqueue_item *))
{
    *p = (struct prioqueue){ .before = before };
}

void prioqueue_done(struct prioqueue *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        p->items[i]->place = 0;
    }
    alloc_free(p->items);
    p->items = NULL;
    p->n = 0;
    p->cap = 0;
}

static void prio_set(struct prioqueue *p, uint32_t i, struct prioqueue_item *item)
{
    p->items[i] = item;
    item->place = i + 1;
}

static void prioqueue_rise(struct prioqueue *p, uint32_t i)
{
    struct prioqueue_item *item = p->items[i];
    while (i > 0 && p->before(item, p->items[(i - 1) / 2])) {
        prio_set(p, i, p->items[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    prio_set(p, i, item);
}

static void prioqueue_sink(struct prioqueue *p, uint32_t i)
{
    struct prioqueue_item *item = p->items[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= p->n) {
            break;
        }
        if (child + 1 < p->n && p->before(p->items[child + 1], p->items[child])) {
            child++;
        }
        if (!p->before(p->items[child], item)) {
            break;
        }
        prio_set(p, i, p->items[child]);
        i = child;
    }
    prio_set(p, i, item);
}

void prioqueue_put(struct prioqueue *p, struct prioqueue_item *item)
{
    ASSERT(!prioqueue_inside(item));
    if (p->n == p->cap) {
        p->cap = p->cap == 0 ? 16 : p->cap * 2;
        struct prioqueue_item **grown = alloc_bytes(p->cap * sizeof(struct prioqueue_item *));
        for (uint32_t i = 0; i < p->n; i++) {
            grown[i] = p->items[i];
        }
        alloc_free(p->items);
        p->items = grown;
    }
    p->items[p->n++] = item;
    prioqueue_rise(p, p->n - 1);
}

void prioqueue_take(struct prioqueue *p, struct prioqueue_item *item)
{
    uint32_t i = item->place - 1;
    ASSERT(prioqueue_inside(item) && i < p->n && p->items[i] == item);
    struct prioqueue_item *last = p->items[--p->n];
    item->place = 0;
    if (last != item) {
        prio_set(p, i, last);
        prioqueue_rise(p, i);
        prioqueue_sink(p, last->place - 1);
    }
}

struct prioqueue_item *prioqueue_first(const struct prioqueue *p)
{
    return p->n > 0 ? p->items[0] : NULL;
}

void prioqueue_check(const struct prioqueue *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        ASSERT(p->items[i]->place == i + 1);
        ASSERT(i == 0 || !p->before(p->items[i], p->items[(i - 1) / 2]));
    }
}
