/*
 * informer: all objects of one kind, known and kept up to date: a reflector and its store.
 */
#pragma once

#include "kube/reflector.h"
#include "kube/store.h"

struct informer_config {
    struct client *client; /* borrowed, as all here */
    const struct store_kind *kind;
    struct str query;   /* "&labelSelector=…", or empty */
    bool metadata_only; /* the kind's projection needs nothing else */
    size_t bytes_max;   /* as the store's; 0 = no limit */
    bool optional; /* its CRD may not be installed: then there are no objects, which is known */
    /* Whether an object is kept at all; NULL = every one. */
    bool (*wants)(void *ctx, const struct jval *object);
    /* As the store's; may be NULL. */
    void (*on_change)(void *ctx, struct store_item *item, const void *before);
    void (*on_gone)(void *ctx, struct store_item *item);
    /* An object came, all are known, or what failed works again: time for a turn. May be NULL. */
    void (*on_update)(void *ctx);
    /* A list begins: until on_synced, objects may be missing. May be NULL. */
    void (*on_list)(void *ctx);
    /* Called instead of on_update for the two special cases, where they are wanted. */
    void (*on_synced)(void *ctx); /* a whole list has been taken */
    void (*on_recovered)(void *ctx);
    /* The server's versions went backwards (it was restored from a backup): everything has been
     * forgotten and is read again. May be NULL. */
    void (*on_reset)(void *ctx, uint64_t version);
    /* Something failed; it goes on by itself. May be NULL. */
    void (*on_error)(void *ctx, const struct err *err);
    void *ctx;
};

struct informer {
    struct informer_config config;
    struct reflector reflector;
    struct store store;
    struct buf path;
    bool started;
    bool synced; /* the store has what the last whole list had, and what came since */
    bool absent; /* optional, and not installed */
    bool failing;
    bool unreadable;    /* while failing: the server's answer could not be read */
    struct err trouble; /* while failing */
};

void informer_init(struct informer *s, const struct informer_config *config);
void informer_done(struct informer *s); /* accepts a zeroed one */

/* Begins, or begins anew at another path: what is not found there is gone. */
void informer_start(struct informer *s, struct str path);
/* Lists everything again, now; until that is done `synced` is false. */
void informer_relist(struct informer *s);
/* True when all objects are known and the watch does not fail. */
bool informer_healthy(const struct informer *s);
