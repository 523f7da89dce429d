/*
 * integration_node: what providers that take nodes away keep of each of them, and the wiring that
 * is the same for all: which nodes are to be looked at, the writer of the Node, its place under the
 * limits, its drain, and what it tells people.
 *
 * A provider embeds a struct integration_nodes in its own state and a struct integration_node in
 * what it keeps of a node.
 */
#pragma once

#include "core/node_reservation.h"
#include "core/node_write.h"
#include "integration/integration.h"

struct integration_nodes {
    struct integration *in;
    struct map by_name; /* name → struct integration_node */
    struct list dirty;
};

struct integration_node {
    struct integration_nodes *all;
    struct list dirty; /* linked: it is looked at in the next turn */
    struct node_write write;
    struct node_reservation reservation;
    bool reserved;       /* it has its place under the limits */
    bool waits;          /* it wants it, and has it not */
    struct drain *drain; /* NULL: there is none */
    usec_t drain_grace;  /* of `drain` */
    struct activity_note note;
    struct str name; /* borrowed: from name_bytes */
    struct buf name_bytes;
};

void integration_nodes_init(struct integration_nodes *all, struct integration *in);
void integration_nodes_done(struct integration_nodes *all); /* all nodes are gone */
struct integration_node *integration_nodes_find(const struct integration_nodes *all,
                                                struct str name); /* NULL: there is none */
/* Each that is to be looked at, with its Node; one that is marked meanwhile waits for the next
 * turn. */
void integration_nodes_turn(struct integration_nodes *all,
                            void (*step)(struct integration_node *n,
                                         const struct store_item *item));
/* The limits have changed: who waits for them looks again. */
void integration_nodes_on_limits(struct integration_nodes *all);
bool integration_nodes_activity(const struct integration_nodes *all, struct str name,
                                struct activity *ret);
/* Writes are in flight. */
bool integration_nodes_are_busy(const struct integration_nodes *all);

/* It is among `all` from now on. */
void integration_node_init(struct integration_node *n, struct integration_nodes *all,
                           struct str name);
void integration_node_done(struct integration_node *n);
/* It is looked at in the next turn, or in the one of that time, or in one before. */
void integration_node_mark(struct integration_node *n);
void integration_node_again_at(struct integration_node *n, usec_t at);
/* The same as integration_node_mark, as a callback. */
void integration_node_on_change(void *ctx);

/* The Node must have its place under the limits, or keep it; see node_reservation_take. */
bool integration_node_reserve(struct integration_node *n, const struct store_item *item,
                              const struct node_reservation_spec *spec, struct str *ret_why);
void integration_node_unreserve(struct integration_node *n, const struct store_item *item);

struct integration_drain {
    usec_t eviction_timeout;
    usec_t deletion_timeout;
    bool force;
    usec_t grace; /* for every pod; < 0: the pod's own */
    uint32_t flags;
};
/* Its pods are to go, by the drain rules that the Node has now. */
void integration_node_drain(struct integration_node *n, const struct store_item *item,
                            const struct integration_drain *spec);
void integration_node_stop_drain(struct integration_node *n); /* if there is one */
