/*
 * check_basic: what must always hold, as seen from outside the controllers: at the server's commits, at
 * the wire, and at the end.
 *
 * Written from the contract, not from the controllers' code: it reads the annotation with its own
 * eyes. The numbers are those of docs/architecture.md. A broken promise is noted, with what was
 * seen; the first one counts.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "format/json.h"

/* Contract: how long a lease lasts that nobody renews; less what the fastest clock of a plan gains.
 */
#define PROMISE_LEASE (SECONDS(15) - MSECONDS(50))
#define STATE_LABEL STR("cloud.sap/maintenance-state")
#define PROFILE_LABEL STR("cloud.sap/maintenance-profile")
#define DATA_ANNOTATION STR("cloud.sap/maintenance-data")

struct promise {
    char why[512]; /* empty: all kept */
    struct str lease_holder;
    usec_t lease_renewed; /* true time at which the holder's last renewal was committed */
    struct arena lease_arena;
    uint64_t node_writes; /* by controllers */
};

/* What is known of one node in the server; texts are borrowed from it. */
struct promise_node {
    struct str name;
    struct str uid;
    struct str state;
    struct str data;
    struct str profile;
};

void promise_done(struct promise *p);
bool promise_broken(const struct promise *p);
void promise_break(struct promise *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

struct promise_node promise_node_of(const struct jval *object);

/* A write to a node was committed by controller `writer`; NULL for `before` or `after`: it was not
 * there. */
void promise_on_node_write(struct promise *p, struct str writer, const struct jval *before,
                           const struct jval *after);
/* A write to the leader lease, by whomever. */
void promise_on_lease_write(struct promise *p, struct str writer, const struct jval *after,
                            usec_t now);
/* Controller `writer` puts a patch of a node on the wire. */
void promise_on_node_send(struct promise *p, struct str writer, usec_t now);

/* Whether the node carries what it should, now that nothing is in the way: I9, I10. */
void promise_at_rest(struct promise *p, const struct promise_node *node);
