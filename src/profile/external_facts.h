/*
 * external_facts: asks foreign systems for what checks want to know, and keeps the answers
 * (facts.h).
 *
 * Prometheus over the wire, the leases of staggers and the pods of nodes over the API. Each thing
 * is asked for once at a time, however many nodes want it, with time limits and back-off; answers
 * that changed are told as the bits of the check instances that read them (see fleet.h). What is
 * wanted is answered in any case: after some failures the answer is an error, and for as long as
 * somebody wanted it lately the asking goes on.
 *
 * The pods of a node are watched until external_facts_drop_pods, FACTS_WATCHES_MAX nodes at a time.
 * A watch that fails knows nothing until it has listed again. A node beyond that number is looked
 * at once, keeps the answer it had when its place went to another, and is watched again when a
 * place is free, or when somebody wants it live.
 */
#pragma once

#include "kube/client.h"
#include "port/outbound.h"
#include "profile/config.h"
#include "profile/facts.h"

struct external_facts;

struct external_facts_config {
    struct client *client;
    struct outbound
        *outbound; /* may be NULL: then Prometheus cannot be asked, and the checks say so */
    /* From the loop: the answers of these check instances may have changed. */
    void (*on_change)(void *ctx, uint64_t instances);
    /* The pods of that node are, and what they are to the others is summed up elsewhere (fleet.h):
     * then on_change does not tell of them. From the middle of things: only to be noted. May be
     * NULL. */
    void (*on_pods)(void *ctx, struct str node);
    void *ctx;
};

struct external_facts *external_facts_new(struct loop *loop,
                                          const struct external_facts_config *config);
void external_facts_free(struct external_facts *e); /* accepts NULL; nothing more is sent */
/* Answers of instances that are no more are forgotten; what stays the same keeps its answers, under
 * its new index. Borrowed until the call returns. */
void external_facts_configure(struct external_facts *e, const struct config *config);
const struct facts *external_facts_facts(const struct external_facts *e);

/* Asks soon, unless it is being asked already or rests after a failure. */
void external_facts_want(struct external_facts *e, const struct facts_want *want);
/* Whether the pods of the node have been wanted; and nobody wants them any more. */
bool external_facts_wants_pods(const struct external_facts *e, struct str node);
void external_facts_drop_pods(struct external_facts *e, struct str node);
void external_facts_drop_all_pods(struct external_facts *e); /* of all nodes */

/* Takes the first free lease of a stagger for a node, by compare-and-swap. From this call on the
 * facts say that the node has it, so that no other node counts on it; when that proves wrong they
 * say that it is unknown, and it is read again. `on_done` comes from the loop, once, with NULL for
 * success; -ERR_CONFLICT when somebody was faster, or the configuration was. When no answer came it
 * looks whether the write went through. */
struct stagger_take;
struct stagger_take *stagger_take(struct external_facts *e, uint32_t index, struct str node,
                                  void (*on_done)(void *ctx, const struct err *err), void *ctx);
/* Whether the lease was taken is not known; it is read again. */
void stagger_take_cancel(struct stagger_take *take);

void external_facts_check(const struct external_facts *e);
