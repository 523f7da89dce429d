/*
 * pod: the projection of a Pod that drains, safety checks and drained checks decide by.
 */
#pragma once

#include "kube/store.h"

/* The label cluster.x-k8s.io/drain. */
enum drain_pod_label {
    DRAIN_LABEL_NONE,
    DRAIN_LABEL_SKIP,
    DRAIN_LABEL_WAIT_COMPLETED, /* the pod is waited for and never evicted */
};

struct drain_pod {
    struct str uid;
    struct str labels; /* as format/label_pack.h packs them */
    bool daemonset;    /* of a DaemonSet */
    bool mirror;       /* of a static pod: the kubelet runs it from a file of the node */
    bool finished;     /* Succeeded or Failed: nothing of it runs */
    bool managed;      /* a controller would make it again */
    bool has_emptydir;
    enum drain_pod_label drain_label;
    const struct str *claims; /* PersistentVolumeClaims */
    uint32_t claim_count;
    bool pending; /* its containers have not started: no budget protects it */
    bool ready;
    bool deleting;
    usec_t deletion_wall;  /* deletionTimestamp: the request's time and the grace */
    usec_t deletion_grace; /* deletionGracePeriodSeconds */
    struct str finalizer;  /* the first; empty: none */
};

extern const struct store_kind drain_pod_kind;
