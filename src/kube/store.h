/*
 * store: what is known of one kind of object, by name, and which of it has changed.
 *
 * Objects that live in namespaces have names of the form "namespace/name" here.
 *
 * Of each object only a projection is kept, made by the kind's own functions in the item's own
 * arena. Three sources feed it: a list (objects that a finished list did not have are gone), the
 * watch, and the replies to our own writes. resourceVersions are compared as numbers (Kubernetes
 * 1.35 promises that they are; before, they always were), so an event that was overtaken by a reply
 * does not bring the past back. A reply never makes an item: it may come after the deletion.
 *
 * Names and namespaces that are longer than Kubernetes allows are errors.
 *
 * An item is dirty when what decisions use of it has changed; the dirty ones form a queue, so
 * nothing rescans the rest. Invariants: an item is in the map under its name, in the queue iff
 * dirty, and its version is > 0. No two items of a kind with uids have the same one.
 */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mutation.h"
#include "kinds/store_kind.h"

struct store_item {
    struct str name; /* borrowed: from the item's own end */
    uint64_t version;
    uint32_t seen;       /* the list it was last seen in */
    uint32_t shape;      /* the store's, when it was projected */
    bool watched;        /* wake at any newer version, whatever it changed; see store_await */
    bool later;          /* it was postponed since it was marked */
    struct list dirty;   /* linked = dirty */
    struct arena memory; /* of `object` */
    void *object;        /* the projection */
    void *extra;         /* the keeper's own; the store does not look at it */
    usec_t decided;      /* the keeper's own: when it last decided about it, wall time */
    char name_bytes[];
};

struct store {
    const struct store_kind *kind; /* borrowed */
    void *ctx;
    struct map items;  /* name → struct store_item */
    struct map by_uid; /* the same by uid, for kinds that have it */
    struct list dirty;
    struct list later;    /* dirty too, and postponed */
    uint32_t dirty_count; /* of both */
    uint32_t list;        /* number of the list under way, or of the last one */
    uint32_t shape;       /* counts up when projections are to hold something else */
    uint64_t version_max; /* the newest seen */
    uint64_t revision;    /* counts what came, what changed for decisions, and what went */
    uint64_t list_floor;  /* version_max when the list began */
    struct buf key;       /* of the spaced object at hand */
    size_t bytes;         /* that the items take, about */
    size_t bytes_max; /* what comes beyond it is ERR_LIMIT; 0 = no limit. For servers that are not
                       * trusted; to be set after store_init */
    MUTATIONS_FIELD;
    /* Called before an item goes for good; may be NULL. */
    void (*on_gone)(void *ctx, struct store_item *item);
    /* Called when an item is new or any of it has changed, after it has been marked (it is not when
     * it is only stirred); may be NULL.
     * `before` is the projection it had, or NULL. */
    void (*on_change)(void *ctx, struct store_item *item, const void *before);
};

void store_init(struct store *s, const struct store_kind *kind, void *ctx, uint64_t hash_key);
void store_done(struct store *s);

/* A list begins: what it does not bring will be gone when it ends. */
void store_list_begin(struct store *s);
/* True when the list was taken; false when the server's time has gone backwards (restored from a
 * backup): then everything has been forgotten and a new list is due. */
NODISCARD
bool store_list_end(struct store *s, uint64_t version);

/* What is to be kept of an object has changed: each is projected anew when it comes the next time,
 * be it in the version that is known already. A list should follow. */
void store_reshape(struct store *s);

/* From a list or a watch. `deleted`: the object as it was last. */
NODISCARD
int store_observe(struct store *s, const struct jval *object, bool deleted, struct err *err);
/* From a reply: 1 when it was taken, 0 when something newer is known or the item is gone. */
NODISCARD
int store_learn(struct store *s, const struct jval *object, struct err *err);

struct store_item *store_find(const struct store *s, struct str name);
uint32_t store_count(const struct store *s);

void store_mark(struct store *s, struct store_item *item);
/* The next version of the item marks it, even if it changes nothing that decisions use: our write
 * met a version we had not seen. */
void store_await(struct store_item *item);
/* The longest-waiting dirty item, which is clean from now on; NULL when there is none. Those that
 * were postponed come when there are no others. */
struct store_item *store_take(struct store *s);
/* One that was taken is dirty again, and behind all that are not postponed, until it is marked. */
void store_postpone(struct store *s, struct store_item *item);

void store_check(const struct store *s);

/* metadata.resourceVersion of an object, list or bookmark; 0 when it is not there or no number. */
uint64_t store_version(const struct jval *object);
