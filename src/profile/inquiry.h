/*
 * inquiry: asks foreign systems for what checks want to know, and keeps the answers (facts.h).
 *
 * Prometheus over the wire, the leases of staggers and the pods of nodes over the API. Each thing
 * is asked for once at a time, however many nodes want it, with time limits and back-off; answers
 * that changed are told as the bits of the check instances that read them (see fleet.h).
 */
#pragma once

#include "kube/client.h"
#include "port/wire.h"
#include "profile/config.h"
#include "profile/facts.h"

struct inquiry;

struct inquiry_config {
    struct client *client;
    struct wire *wire; /* may be NULL: then Prometheus cannot be asked, and the checks say so */
    /* From the loop: the answers of these check instances may have changed. */
    void (*on_change)(void *ctx, uint64_t instances);
    void *ctx;
};

struct inquiry *inquiry_new(struct loop *loop, const struct inquiry_config *config);
void inquiry_free(struct inquiry *q); /* accepts NULL; nothing more is sent */
/* Answers of instances that are no more are forgotten. Borrowed until the next call. */
void inquiry_configure(struct inquiry *q, const struct config *config);
const struct facts *inquiry_facts(const struct inquiry *q);

void inquiry_want(struct inquiry *q, const struct facts_want *want);

/* Takes the free lease of a stagger for a node, by compare-and-swap: -ERR_CONFLICT when somebody
 * was faster, and then the leases are read again. `on_done` comes from the loop, once. */
struct inquiry_take;
struct inquiry_take *inquiry_take(struct inquiry *q, uint32_t index, struct str node,
                                  void (*on_done)(void *ctx, const struct err *err), void *ctx);
void inquiry_take_cancel(struct inquiry_take *take);
