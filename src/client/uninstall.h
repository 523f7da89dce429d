/*
 * uninstall: takes away what a controller has left in a cluster: the marks and cordons on Nodes,
 * the finalizers of NodeMaintenances, Jobs, Leases, and if it is asked for the CRDs with all that
 * is stored under them. For the end of an installation, when no controller runs any more.
 *
 * Nothing is touched that is not ours by its name, its label or a mark. Each change is of the
 * version that was read; a Node that changes meanwhile is read again. What was done stays done when
 * it fails half-way, and it can be run again.
 */
#pragma once

#include "client/blocking_api.h"

struct uninstall_config {
    bool apply;    /* false: it is only told what would be done */
    bool crds;     /* the CRDs go, too */
    struct str ns; /* whose Leases; empty = those of all namespaces */
    /* One change, made or to be made: "node/a: lift the cordon". */
    void (*on_change)(void *ctx, struct str text);
    void *ctx;
};

/* -ERR_BUSY while a controller leads, unless nothing is applied. */
NODISCARD
int uninstall_run(struct blocking_api *api, const struct uninstall_config *config, struct err *err);
