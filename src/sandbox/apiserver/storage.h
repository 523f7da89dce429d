/*
 * storage: the stored objects, their resourceVersions, and the latest changes.
 *
 * Every committed write takes the next resourceVersion, whatever it touches. Each store keeps its
 * objects ordered by key, as etcd lists them, and a ring of its latest changes: watches read it,
 * lists at an older version are computed back from it. A version that has left the ring is
 * compacted: a request for it gets 410.
 */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "sandbox/apiserver/object.h"

#define STORAGE_HISTORY_MAX                                                                        \
    4096u                        /* changes a store remembers; a client that is further behind     \
                                    lists again */
#define STORAGE_STORES_MAX 1024u /* definitions may come and go; their numbers are not reused */

struct storage_change {
    struct object *old; /* NULL: created */
    struct object *now; /* what it became; for a deletion its last state under the last version */
    bool deleted;
};

struct object_store {
    struct object **items; /* ordered by key */
    uint32_t n;
    uint32_t cap;
    struct storage_change *ring;
    uint32_t ring_cap;  /* a power of two */
    uint64_t first;     /* number of the oldest change in the ring */
    uint64_t end;       /* number of the next change */
    uint64_t compacted; /* changes up to this version are forgotten */
    struct list watches;
};

typedef void (*storage_on_change)(void *ctx, const struct storage_change *change);

struct storage {
    uint64_t rv; /* of the latest write */
    struct object_store *stores[STORAGE_STORES_MAX];
    struct map owners; /* uid of an owner → struct map of its dependents' places */
    storage_on_change on_change;
    void *ctx;
};

void storage_init(struct storage *st, uint64_t rv, storage_on_change on_change, void *ctx);
void storage_done(struct storage *st);

/* Made when first asked for. */
struct object_store *storage_get_store(struct storage *st, uint32_t store);

struct object *storage_find(struct storage *st, uint32_t store, struct str namespace,
                            struct str name);
/* Index of the first object whose key is not before `key`. */
uint32_t object_store_lower(const struct object_store *s, struct str key);

/* Commits: `now` has storage_next_rv()'s version; the storage takes its reference. */
uint64_t storage_next_rv(const struct storage *st);
void storage_put(struct storage *st, struct object *now);
/* `last` is the object's final state under storage_next_rv(); the storage takes its reference. */
void storage_delete(struct storage *st, struct object *last);

/* The change with that number, first <= number < end. */
const struct storage_change *object_store_change(const struct object_store *s, uint64_t number);
/* Number of the first change after version `rv`. */
uint64_t object_store_first_after(const struct object_store *s, uint64_t rv);

/* The store's objects as they were at `rv` (compacted <= rv), ordered; borrowed: from the storage,
 * until the next write. */
struct object **object_store_at(const struct object_store *s, uint64_t rv, struct arena *tmp,
                                uint32_t *ret_n);

/* Forgets all changes up to now. */
void storage_compact(struct storage *st);

/* Objects that name `uid` as an owner, in order of their coming. Restart from NULL after a write.
 */
const struct map *storage_dependents(const struct storage *st, struct str uid);
/* The object at a place that storage_dependents gave. */
struct object *storage_at_location(struct storage *st, struct str location);

void storage_check(const struct storage *st);
