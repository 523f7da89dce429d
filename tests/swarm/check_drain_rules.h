/*
 * check_drain_rules: the rulebooks of nodes that are drained, and what may be sent away by them.
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

#define RULES_KEY STR("drydock.dev/drain-rules")
#define RULES_APPS 3u        /* r0, r1, r2 */
#define RULES_LAG MINUTES(6) /* the longest that a controller is blind and does not know it */
#define RULES_HISTORY 8u     /* changes of one node's book */

struct rules {
    struct promise *promise;  /* borrowed */
    struct apiserver *server; /* borrowed */
    bool on;
    struct arena memory;
    struct map nodes; /* node → struct rules_node */
    struct map bound; /* uid of a pod → since when it is on its node */
};

uint32_t rules_count(void);
/* Its text; STR_NONE for the first one past the last: no book. */
struct str rules_text(uint32_t book);
/* A drain by it may never end. */
bool rules_blocks(uint32_t book);

void rules_done(struct rules *r);
void rules_on_commit(struct rules *r, const struct apiserver_commit *commit, usec_t now);
/* `who` sends the pod away. */
void rules_on_send(struct rules *r, struct str who, struct str space, struct str pod, usec_t now);
/* The pod stays where it is, by the book that the node has. */
bool rules_skips(const struct rules *r, const struct jval *node, const struct jval *pod);
