/*
 * cluster: what decisions use of a Cluster API Cluster, v1beta1 and v1beta2 alike.
 */
#pragma once

#include "kube/store.h"

struct cluster {
    struct str uid;
    bool paused; /* spec.paused, or its annotation */
    bool deleting;
    bool provisioned;  /* its infrastructure is there: it can have a kubeconfig */
    struct str labels; /* packed (label_pack.h) */
};

/* Its ctx is not used. Items are named "namespace/name". */
extern const struct store_kind cluster_kind;
