/*
 * map: from a name to a pointer. Iteration is in order of insertion, whatever the hash.
 *
 * The map copies its keys and borrows its values. Keys are hashed with SipHash under the map's own
 * key, so names chosen by a stranger cannot make it slow. A zeroed map is ready for use (its key is
 * then 0: fine where names are our own).
 */
#pragma once

#include "base/str.h"

struct map {
    struct map_item *items; /* uthash's head */
    uint64_t key[2];
};

struct map_item; /* one entry; opaque */

void map_init(struct map *m, uint64_t key0, uint64_t key1);
void map_done(struct map *m);

uint32_t map_count(const struct map *m);
void *map_find(const struct map *m, struct str name); /* NULL when absent */
/* Adds or replaces; answers the value it replaced, or NULL. `value` is not NULL. */
void *map_put(struct map *m, struct str name, void *value);
/* Answers the value that was removed, or NULL. */
void *map_del(struct map *m, struct str name);

/* Start with NULL; answers NULL at the end. The item just visited may be removed. */
struct map_item *map_next(const struct map *m, const struct map_item *item);
struct str map_item_name(const struct map_item *item);
void *map_item_value(const struct map_item *item);

/* `item` is a struct map_item *; the body may remove it, and no other. */
#define MAP_EACH(m, item)                                                                          \
    for (struct map_item *item = map_next((m), NULL), *item##_next_ = map_after((m), item);        \
         item != NULL; item = item##_next_, item##_next_ = map_after((m), item))
struct map_item *map_after(const struct map *m, const struct map_item *item);

/* SipHash-2-4 of the bytes. */
uint64_t map_hash(const uint64_t key[2], struct str bytes);
