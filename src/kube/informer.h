/*
 * informer: all objects of one kind of the management cluster, watched: a reflector and its store.
 */
#pragma once

#include "kube/reflector.h"
#include "kube/store.h"

struct supply_config {
    struct client *client; /* borrowed, as all here */
    const struct store_kind *kind;
    struct str query;   /* "&labelSelector=…", or empty */
    bool metadata_only; /* the kind's projection needs nothing else */
    /* Whether an object is kept at all; NULL = every one. */
    bool (*wants)(const struct jval *object);
    /* As the store's; may be NULL. */
    void (*on_change)(void *ctx, struct store_item *item, const void *before);
    void (*on_gone)(void *ctx, struct store_item *item);
    /* Something came, or is known completely: time for a turn. */
    void (*on_news)(void *ctx);
    /* Something failed; it goes on by itself. */
    void (*on_trouble)(void *ctx, const struct err *err);
    void *ctx;
};

struct supply {
    struct supply_config config;
    struct reflector reflector;
    struct store store;
    struct buf path;
    bool started;
    bool synced; /* the store has what the last whole list had, and what came since */
    bool failing;
    struct err trouble; /* while failing */
};

void supply_init(struct supply *s, const struct supply_config *config);
void supply_done(struct supply *s); /* accepts a zeroed one */

/* Begins, or begins anew at another path: what is not found there is gone. */
void supply_start(struct supply *s, struct str path);
/* True when all objects are known and the watch does not fail. */
bool supply_well(const struct supply *s);
