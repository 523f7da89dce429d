/*
 * list: an intrusive doubly linked list; a head is a node that holds no item.
 */
#pragma once

#include "base/defs.h"

struct list {
    struct list *next;
    struct list *prev;
};

static inline void list_init(struct list *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

/* At the end of the list. */
static inline void list_add(struct list *head, struct list *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}

/* Safe on an item that is in no list: zeroed, or removed before. */
static inline void list_del(struct list *item)
{
    if (item->next != NULL) {
        item->next->prev = item->prev;
        item->prev->next = item->next;
        item->next = NULL;
        item->prev = NULL;
    }
}

static inline bool list_linked(const struct list *item)
{
    return item->next != NULL;
}

/* Moves all items of `from` to the empty list `to`, in their order. */
static inline void list_move(struct list *to, struct list *from)
{
    list_init(to);
    while (!list_empty(from)) {
        struct list *item = from->next;
        list_del(item);
        list_add(to, item);
    }
}

/* The body may remove `item`, and nothing else. */
#define LIST_EACH(head, item)                                                                      \
    for (struct list *item = (head)->next, *item##_next_ = item->next; item != (head);             \
         item = item##_next_, item##_next_ = item->next)
