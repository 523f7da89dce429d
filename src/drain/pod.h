/*
 * pod: what a drain uses of a Pod.
 */
#pragma once

#include "kube/store.h"

struct drain_pod_label {
    struct str key;
    struct str value;
};

struct drain_pod {
    struct str uid;
    const struct drain_pod_label *labels; /* for the budgets' selectors */
    uint32_t label_count;
    bool stays;   /* of a DaemonSet, a mirror pod, or finished: neither evicted nor waited for */
    bool pending; /* its containers have not started: no budget protects it */
    bool ready;
    bool deleting;
    usec_t deletion_wall;  /* deletionTimestamp: the request's time and the grace */
    usec_t deletion_grace; /* deletionGracePeriodSeconds */
    struct str finalizer;  /* the first; empty: none */
};

extern const struct store_kind drain_pod_kind;

/* A selector_lookup over the labels; ctx is a const struct drain_pod. */
bool drain_pod_lookup(void *ctx, struct str key, struct str *ret_value);
