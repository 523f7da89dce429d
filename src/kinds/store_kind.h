/*
 * store_kind: how a store (kube/store.h) reads and compares the objects of one kind.
 *
 * The table stands below the store so that a kind brings its own, and knows nothing of watches.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "format/json.h"

struct store_kind {
    const char *name; /* "node", for messages */
    bool namespaced;  /* lives in namespaces: the store's items are named "namespace/name" */
    /* Reads what decisions use of an object into `out`, its projection. The store has checked that
     * the object has a name and a resourceVersion. */
    int (*project)(void *ctx, const struct jval *object, struct arena *out, void **ret,
                   struct err *err);
    /* True when no decision can tell one projection from the other. */
    bool (*same)(const void *a, const void *b);
    /* True when the store's on_change is to hear of the difference, although it is no reason to
     * decide anew; asked only for projections that are the same. May be NULL. */
    bool (*stirred)(const void *a, const void *b);
    /* The object's uid, for kinds by whose uids decisions are kept: then an object without one, or
     * with that of another item, is not taken. May be NULL. */
    struct str (*uid)(const void *object);
    /* Gives back what the projection holds outside its arena; may be NULL. */
    void (*drop)(void *ctx, void *object);
};
