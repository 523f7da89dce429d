/*
 * node_reservation: a part's place for a Node under the MaintenanceLimits.
 *
 * A Node is reserved once, under its uid, whichever part disturbs it. Who finds it reserved by
 * another part is covered by that reservation; and whoever has it keeps it for as long as any part
 * disturbs the Node (core_is_disturbed), so that the Node is counted without a gap. A part says
 * what it disturbs in its core_part_ops, and what it says must follow from the Node object: a
 * controller that has just started asks the same question.
 *
 * Level-triggered: say in each turn whether the place is needed.
 */
#pragma once

#include "core/core.h"

struct jval; /* format/json.h */

struct node_reservation {
    struct core *core; /* borrowed */
    struct ask *ask;   /* NULL: there is none, or another part has it */
    bool told_true;    /* `ask` says that the Node is being disturbed already */
    usec_t since;      /* wall: when it was first wanted; 0 = it is not */
    void (*on_change)(void *ctx);
    bool (*confirm)(void *ctx, const struct jval *node); /* of `ask` */
    void *ctx;
};

struct node_reservation_spec {
    struct str name;   /* "esx/host-1": who asks, for people; it contains a '/' */
    bool already_true; /* the Node is being disturbed already: it is not waited for */
    /* Whether that is so of a Node that was read just now; with the ctx of the reservation. */
    bool (*confirm)(void *ctx, const struct jval *node);
};

/* `on_change` comes from the loop when it is worth asking again. It also is after each turn of the
 * arbiter (core_part_ops.on_arbiter_turn), where another part's reservation may have come. */
void node_reservation_init(struct node_reservation *r, struct core *core,
                           void (*on_change)(void *ctx), void *ctx);
/* The place is needed. True: it is held, or there are no limits. Otherwise `*ret_why` says what it
 * waits for, until the loop runs. */
bool node_reservation_take(struct node_reservation *r, const struct store_item *item,
                           const struct node_reservation_spec *spec, struct str *ret_why);
/* It is not needed by this part: it goes back, unless another part disturbs the Node. */
void node_reservation_give(struct node_reservation *r, const struct core_part *part,
                           const struct store_item *item);
/* Forgets it, as after a crash. Accepts a zeroed one. */
void node_reservation_done(struct node_reservation *r);
