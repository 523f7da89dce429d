/*
 * check_drain_rules: the drain rules of nodes that are drained, and what may be sent away by them.
 *
 * A book is one of a few whose meaning stands beside its text, so that nobody's reading of it is
 * trusted. What a controller knows of a node and its pods comes by watches: a book counts for a
 * while after another has taken its place, and a pod only when it has been there for a while.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "format/json.h"
#include "sandbox/apiserver/apiserver.h"
#include "tests/swarm/check_basic.h"

#define CHECK_DRAIN_RULES_KEY STR("drydock.dev/drain-rules")
#define CHECK_DRAIN_RULES_APPS 3u /* r0, r1, r2 */
#define CHECK_DRAIN_RULES_LAG                                                                      \
    MINUTES(6) /* the longest that a controller is blind and does not know it */
#define CHECK_DRAIN_RULES_HISTORY 8u /* changes of one node's book */

struct check_drain_rules {
    struct check_basic *basic; /* borrowed */
    struct apiserver *server;  /* borrowed */
    bool on;
    struct arena memory;
    struct map nodes; /* node → struct check_drain_rules_node */
    struct map bound; /* uid of a pod → since when it is on its node */
};

uint32_t check_drain_rules_count(void);
/* Its text; STR_NONE for the first one past the last: no book. */
struct str check_drain_rules_text(uint32_t known);
/* A drain by it may never end. */
bool check_drain_rules_may_block(uint32_t known);

void check_drain_rules_done(struct check_drain_rules *r);
void check_drain_rules_on_commit(struct check_drain_rules *r, const struct apiserver_commit *commit,
                                 usec_t now);
/* `who` sends the pod away. */
void check_drain_rules_on_send(struct check_drain_rules *r, struct str writer, struct str namespace,
                               struct str pod, usec_t now);
/* The pod stays where it is, by the book that the node has. */
bool check_drain_rules_skips(const struct check_drain_rules *r, const struct jval *node,
                             const struct jval *pod);
