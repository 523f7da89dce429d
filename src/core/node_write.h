/*
 * node_write: changes labels, annotations and the cordon of one Node, by compare-and-swap on the
 * version that the change was decided on.
 *
 * Level-triggered: say in each turn how the Node shall be. What it is already costs nothing; a
 * patch that is under way, a wait after a failure or a conflict mean "not yet", and `on_change`
 * comes when it is worth asking again.
 *
 * Whose a cordon is must be known before it is lifted (I4): whoever cordons here sets a mark of its
 * own in the same patch, and lifts only a cordon that has that mark.
 */
#pragma once

#include "core/core.h"
#include "kube/writer.h"

#define NODE_WRITE_EDITS_MAX 72u /* the labels of a visit, and its mark */

struct node_write_edit {
    bool annotation; /* otherwise a label */
    struct str key;
    struct str value;
    bool remove;
};

enum node_write_cordon { NODE_WRITE_CORDON_KEEP, NODE_WRITE_CORDON, NODE_WRITE_UNCORDON };

struct node_write_wish {
    struct node_write_edit edits[NODE_WRITE_EDITS_MAX];
    uint32_t n;
    enum node_write_cordon cordon;
};

/* Add to a wish; texts are borrowed until node_write_step returns. `value` .p NULL removes it. */
void node_write_label(struct node_write_wish *wish, struct str key, struct str value);
/* An annotation must be one that a part keeps (struct core_part). */
void node_write_annotation(struct node_write_wish *wish, struct str key, struct str value);

enum node_write_result {
    NODE_WRITE_DONE,    /* the Node is so */
    NODE_WRITE_PENDING, /* a request is under way */
    NODE_WRITE_WAITS,   /* something went wrong: `err`; not before `retry_at` */
};

struct node_write {
    struct core *core; /* borrowed */
    struct writer writer;
    struct buf name;
    void (*on_change)(void *ctx);
    void *ctx;
    struct err err;  /* of the last failure; code 0 = none */
    usec_t retry_at; /* with NODE_WRITE_WAITS; monotonic */
    uint64_t sent;   /* patches */
};

/* `on_change` comes from the loop. */
void node_write_init(struct node_write *w, struct core *core, struct str node,
                     void (*on_change)(void *ctx), void *ctx);
void node_write_done(struct node_write *w); /* accepts a zeroed one */
/* `item` is the Node's, from the core's store. */
enum node_write_result node_write_step(struct node_write *w, const struct store_item *item,
                                       const struct node_write_wish *wish);
bool node_write_is_busy(const struct node_write *w);
