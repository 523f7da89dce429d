/*
 * fleet: what decisions about one node use of all the others, kept up to date change by change, so
 * that no decision walks over all nodes.
 *
 * Every check instance that looks at other nodes has a bit (its index modulo 64); fleet_changed
 * tells which of their answers may be different now. Invariants: the counts are those that a walk
 * over the store would find (fleet_check).
 */
#pragma once

#include "kube/store.h"
#include "profile/config.h"
#include "profile/data.h"

struct fleet;

/* The store's items are struct node (kube/node.h) with all labels, and the data annotation. The
 * configuration is borrowed until the next fleet_configure; nodes are counted anew then. */
struct fleet *fleet_new(const struct store *store);
void fleet_free(struct fleet *f); /* accepts NULL */
void fleet_configure(struct fleet *f, const struct config *config);

/* From store.on_change (before NULL = new) and store.on_gone. */
void fleet_on_change(struct fleet *f, const struct store_item *item, const void *before);
void fleet_on_gone(struct fleet *f, const struct store_item *item);

/* A grant counts as a node in maintenance from the moment it is recorded until the node shows it,
 * or it is struck out. Grants of nodes that are unknown count as well: they may come. */
void fleet_grant(struct fleet *f, struct str node, struct str profile);
void fleet_ungrant(struct fleet *f, struct str node);
bool fleet_is_granted(const struct fleet *f, struct str node);

/* The bits of check instances whose answer may have changed since the last call; and whether the
 * set of nodes in maintenance (or granted) has changed. */
uint64_t fleet_changed(struct fleet *f);
bool fleet_room_changed(struct fleet *f);

uint32_t fleet_count(const struct fleet *f);
uint32_t fleet_in_maintenance(const struct fleet *f); /* by the state label, or granted */
/* By the data annotation: nodes whose entry of that profile is in that state. */
uint32_t fleet_profile_count(const struct fleet *f, uint32_t profile, enum label_state state);

/* For the checks. */
bool fleet_any_label(const struct fleet *f, uint32_t index);

void fleet_check(const struct fleet *f);
