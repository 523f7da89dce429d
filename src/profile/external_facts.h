/*
 * external_facts: asks other systems for what checks want to know, and keeps the answers (facts.h).
 *
 * Queries go to Prometheus and Kubernikus, and to the API server for the Leases of staggers and the
 * pods of nodes. A query is sent once at a time, however many nodes want its answer, with time
 * limits and back-off. Changed answers are reported as the bits of the check instances that read
 * them (see fleet.h). Every want is answered: after some failures the answer is an error, and the
 * query is retried for as long as a check wanted it lately.
 *
 * The pods of a node are watched until external_facts_drop_pods, FACTS_WATCHES_MAX nodes at a time.
 * When a watch fails, the pods are unknown until they have been listed again. The pods of a node
 * beyond that number are read once; the answer is kept when the watch is paused for another node,
 * and the node is watched again when a place is free, or when its pods are wanted live.
 */
#pragma once

#include "kube/client.h"
#include "port/files.h"
#include "port/outbound.h"
#include "profile/config.h"
#include "profile/facts.h"

struct external_facts;

struct external_facts_config {
    struct client *client;
    struct outbound
        *outbound; /* may be NULL: then Prometheus cannot be asked, and the checks say so */
    const struct files *files; /* credentials of OpenStack; may be NULL */
    /* From the loop: the answers of these check instances may have changed. */
    void (*on_change)(void *ctx, uint64_t instances);
    /* The answer about that node's pods may have changed; on_change is not called for it, because
     * the fleet sums up what other nodes read of it (fleet.h). Must not call back. May be NULL. */
    void (*on_pods)(void *ctx, struct str node);
    void *ctx;
};

struct external_facts *external_facts_new(struct loop *loop,
                                          const struct external_facts_config *config);
void external_facts_free(struct external_facts *e); /* accepts NULL; nothing more is sent */
/* Instances that are the same in the new configuration keep their answers under their new index;
 * the others are forgotten. `config` is borrowed until the call returns. */
void external_facts_configure(struct external_facts *e, const struct config *config);
/* Where the Hypervisors are watched; borrowed. NULL: nowhere. */
void external_facts_set_hypervisors(struct external_facts *e, const struct informer *hypervisors);
const struct facts *external_facts_facts(const struct external_facts *e);

/* Sends the query soon, unless it is under way or waits after a failure. */
void external_facts_want(struct external_facts *e, const struct facts_want *want);
/* The answer of this check instance has to be asked for from now on: one that is under way already
 * is not enough. */
void external_facts_ask_anew(struct external_facts *e, uint32_t index);
/* Whether the pods of the node have been wanted; and that nobody wants them any more. */
bool external_facts_wants_pods(const struct external_facts *e, struct str node);
void external_facts_drop_pods(struct external_facts *e, struct str node);
void external_facts_drop_all_pods(struct external_facts *e); /* of all nodes */

/* Takes the first free lease of a stagger for a node, by compare-and-swap. From this call on the
 * facts say that the node has it, so that no other node counts on it; when that proves wrong the
 * Lease is unknown, and is read again. `on_done` comes from the loop, once, with NULL for
 * success; -ERR_CONFLICT when another node took it first, or the configuration
 * changed. When no reply
 * came, the Lease is read to see whether it was written. */
struct stagger_take;
struct stagger_take *stagger_take(struct external_facts *e, uint32_t index, struct str node,
                                  void (*on_done)(void *ctx, const struct err *err), void *ctx);
/* Whether the lease was taken is not known; it is read again. */
void stagger_take_cancel(struct stagger_take *take);

void external_facts_check(const struct external_facts *e);
