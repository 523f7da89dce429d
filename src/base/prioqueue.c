#include "base/prioqueue.h"

#include "base/alloc.h"

void prio_init(struct prio *p, bool (*before)(struct prio_item *, struct prio_item *))
{
    *p = (struct prio){ .before = before };
}

void prio_done(struct prio *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        p->items[i]->place = 0;
    }
    heap_free(p->items);
    p->items = NULL;
    p->n = 0;
    p->cap = 0;
}

static void prio_set(struct prio *p, uint32_t i, struct prio_item *item)
{
    p->items[i] = item;
    item->place = i + 1;
}

static void prio_rise(struct prio *p, uint32_t i)
{
    struct prio_item *item = p->items[i];
    while (i > 0 && p->before(item, p->items[(i - 1) / 2])) {
        prio_set(p, i, p->items[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    prio_set(p, i, item);
}

static void prio_sink(struct prio *p, uint32_t i)
{
    struct prio_item *item = p->items[i];
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

void prio_put(struct prio *p, struct prio_item *item)
{
    ASSERT(!prio_inside(item));
    if (p->n == p->cap) {
        p->cap = p->cap == 0 ? 16 : p->cap * 2;
        struct prio_item **grown = heap_alloc(p->cap * sizeof(struct prio_item *));
        for (uint32_t i = 0; i < p->n; i++) {
            grown[i] = p->items[i];
        }
        heap_free(p->items);
        p->items = grown;
    }
    p->items[p->n++] = item;
    prio_rise(p, p->n - 1);
}

void prio_take(struct prio *p, struct prio_item *item)
{
    uint32_t i = item->place - 1;
    ASSERT(prio_inside(item) && i < p->n && p->items[i] == item);
    struct prio_item *last = p->items[--p->n];
    item->place = 0;
    if (last != item) {
        prio_set(p, i, last);
        prio_rise(p, i);
        prio_sink(p, last->place - 1);
    }
}

struct prio_item *prio_first(const struct prio *p)
{
    return p->n > 0 ? p->items[0] : NULL;
}

void prio_check(const struct prio *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        ASSERT(p->items[i]->place == i + 1);
        ASSERT(i == 0 || !p->before(p->items[i], p->items[(i - 1) / 2]));
    }
}
