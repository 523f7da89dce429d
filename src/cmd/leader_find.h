/*
 * leader_find: who leads, as the Leases of a cluster tell it.
 *
 * A Lease is held by "<pod>_<uuid>", so it names the pod that can be asked. Where the work is
 * divided there is a Lease for each shard, and as many pods.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "format/json.h"

#define LEADERS_MAX 65u /* 64 shards, and the Lease of the time before there were any */

enum leader_kind {
    LEADER_CONTROLLER,
    LEADER_BRIDGE, /* may have shards: Leases "<name>-shard-<i>" */
};

struct leaders {
    struct str ns;
    struct str pods[LEADERS_MAX]; /* in the order of the Leases */
    uint32_t n;                   /* at least one */
};

/* "controller", "bridge". */
const char *leader_kind_name(enum leader_kind kind);

/* Where the Leases are read; `ns` empty: of all namespaces. */
void leader_lease_path(enum leader_kind kind, struct str ns, struct buf *out);
/* From what was read there. Texts live in `out`. */
NODISCARD
int leader_find_pods(enum leader_kind kind, const struct jval *root, struct arena *out,
                     struct leaders *ret, struct err *err);
