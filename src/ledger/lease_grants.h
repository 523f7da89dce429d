/*
 * lease_grants: grants under limits that live in the configuration, recorded in an annotation of
 * the leader's Lease for as long as the node's transition is in flight.
 *
 * An entry says which node may go into maintenance, for whom, and on which version of the node the
 * one patch that takes it there is based. So the next leader can tell whether an entry still
 * counts: not when the node shows its new state; not when the node has moved on from that version,
 * because the patch can only fail then; otherwise the patch may still arrive, and the entry counts.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

#define LEASE_GRANTS_MAX 1024u /* transitions in flight; a window of patches is 32 */

struct lease_grant {
    struct str node;
    struct str owner; /* for whom */
    uint64_t version; /* of the node, that the patch is based on */
};

struct lease_grants {
    struct map entries; /* node → struct lease_grant */
    bool dirty;         /* something is to be written */
};

void lease_grants_init(struct lease_grants *l, uint64_t hash_key);
void lease_grants_done(struct lease_grants *l);

/* Adds or replaces. False when it is full. */
NODISCARD
bool lease_grants_put(struct lease_grants *l, struct str node, struct str owner, uint64_t version);
void lease_grants_remove(struct lease_grants *l, struct str node); /* may not be there */
const struct lease_grant *lease_grants_find(const struct lease_grants *l, struct str node);
uint32_t lease_grants_count(const struct lease_grants *l);
void lease_grants_clear(struct lease_grants *l);

void lease_grants_print(const struct lease_grants *l, struct buf *out);
/* Replaces everything by what the text says; empty text = nothing is granted. */
NODISCARD
int lease_grants_parse(struct lease_grants *l, struct str text, struct err *err);
