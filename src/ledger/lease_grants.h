/*
 * lease_grants: grants that limits of a configuration have given, as they are recorded in the leader's
 * Lease for as long as the transition they are for is in flight.
 *
 * An entry says which node may go into maintenance, for whom, and on which version of the node the
 * one patch that takes it there is based. So whoever leads next can tell what an entry is worth:
 * the node shows its state, or it has moved on from that version and the patch can only fail, or
 * the patch may still arrive and the entry counts.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

#define LEDGER_ANNOTATION STR("drydock.dev/grants")
#define LEDGER_ENTRIES_MAX 1024u /* transitions in flight; a window of patches is 32 */

struct ledger_entry {
    struct str node;
    struct str owner; /* the profile */
    uint64_t version; /* of the node, that the patch is based on */
};

struct ledger {
    struct map entries; /* node → struct ledger_entry */
    bool dirty;         /* something is to be written */
};

void ledger_init(struct ledger *l, uint64_t hash_key);
void ledger_done(struct ledger *l);

/* Adds or replaces. False when it is full. */
NODISCARD
bool ledger_put(struct ledger *l, struct str node, struct str owner, uint64_t version);
void ledger_strike(struct ledger *l, struct str node); /* may not be there */
const struct ledger_entry *ledger_find(const struct ledger *l, struct str node);
uint32_t ledger_count(const struct ledger *l);
void ledger_clear(struct ledger *l);

void ledger_print(const struct ledger *l, struct buf *out);
/* Replaces everything by what the text says; empty text = nothing is granted. */
NODISCARD
int ledger_parse(struct ledger *l, struct str text, struct err *err);
