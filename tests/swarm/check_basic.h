/*
 * check_basic: what must always hold, as seen from outside the controllers: at the server's
 * commits, at the wire, and at the end.
 *
 * Written from docs/contract/, which has the numbers, not from the controllers' code: these checks
 * have their own reader of the annotation. The first broken promise is kept, with what was seen.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "format/json.h"

/* How long a lease lasts that nobody renews, less what the fastest clock of a scenario gains. */
#define CHECK_BASIC_LEASE_DURATION (SECONDS(15) - MSECONDS(50))
#define STATE_LABEL STR("cloud.sap/maintenance-state")
#define PROFILE_LABEL STR("cloud.sap/maintenance-profile")
#define NODE_DATA_ANNOTATION STR("cloud.sap/maintenance-data")

struct check_basic {
    char violation[512]; /* empty: all kept */
    struct str lease_holder;
    usec_t lease_renewed; /* true time at which the holder's last renewal was committed */
    struct arena lease_arena;
    uint64_t node_writes; /* by controllers */
};

/* What is known of one node in the server; texts are borrowed from it. */
struct check_basic_node {
    struct str name;
    struct str uid;
    struct str state;
    struct str data;
    struct str profile;
};

void check_basic_done(struct check_basic *p);
bool check_violated(const struct check_basic *p);
void check_violation(struct check_basic *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

struct check_basic_node check_basic_node_read(const struct jval *object);

/* A write to a node was committed by controller `writer`; NULL for `before` or `after`: it was not
 * there. */
void check_basic_on_node_write(struct check_basic *p, struct str writer, const struct jval *before,
                               const struct jval *after);
/* A write to the leader lease, by whomever. */
void check_basic_on_lease_write(struct check_basic *p, struct str writer, const struct jval *after,
                                usec_t now);
/* Controller `writer` puts a patch of a node on the wire. */
void check_basic_on_node_send(struct check_basic *p, struct str writer, usec_t now);

/* Whether the node carries what it should, now that nothing is in the way: I9, I10. */
void check_basic_at_end(struct check_basic *p, const struct check_basic_node *node);
