/*
 * workload_losses: the workloads that lose pods when a node goes (R18, WorkloadLimits).
 *
 * Pods are given one by one; those that serve nobody now are passed over. Behind a pod stands a
 * StatefulSet, a DaemonSet, or a ReplicaSet, which is read from the server to find its Deployment.
 * What belongs to nobody is nobody's loss.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "drain/pod.h"
#include "ledger/arbiter.h"

struct workload_losses {
    struct arena memory;
    struct map by_owner; /* "kind/namespace/name" → struct workload_loss */
};

void losses_init(struct workload_losses *l, uint64_t key0, uint64_t key1); /* of its hash */
void losses_done(struct workload_losses *l);

/* A pod of the node; `pod` is what a drain reads of it. */
void losses_add(struct workload_losses *l, const struct jval *object, const struct drain_pod *pod);

/* The path of a ReplicaSet whose owner is to be found out; false: all are known. */
bool losses_next_replicaset(const struct workload_losses *l, struct buf *path);
/* The answer to that question: its object, NULL when there is no such ReplicaSet. */
void losses_resolve(struct workload_losses *l, const struct jval *object);

/* In order of the pods; lives in `out`, the texts in `l`. */
const struct arbiter_loss *losses_list(const struct workload_losses *l, struct arena *out,
                                       uint32_t *ret_n);
