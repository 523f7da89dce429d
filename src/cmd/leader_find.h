/*
 * leader_find: finds the pods that lead, by the Leases of a cluster.
 *
 * The holder of a Lease is "<pod>_<uuid>", so the Lease names the pod that can be asked. A bridge
 * with shards has one Lease, and one leading pod, for each shard.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "format/json.h"

#define LEADERS_MAX 65u /* 64 shards, and a Lease that is left from before there were shards */

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

/* The path of the Leases in the API; `ns` empty: in all namespaces. */
void leader_lease_path(enum leader_kind kind, struct str ns, struct buf *out);
/* Finds the pods in what the API server answered to that path. Texts live in `out`. */
NODISCARD
int leader_find_pods(enum leader_kind kind, const struct jval *root, struct arena *out,
                     struct leaders *ret, struct err *err);
