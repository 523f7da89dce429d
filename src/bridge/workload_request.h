/*
 * workload_request: a MaintenanceRequest in a workload cluster by which the bridge asks the limits
 * there.
 *
 * It is one that an actor of the name PLEA_CLIENT would make for a node, with an annotation
 * that says for which request of ours (keys.h) it was made. Its name is reqname.h's, as that of
 * every actor.
 */
#pragma once

#include "base/buf.h"
#include "kinds/request_name.h"
#include "kube/store.h"

#define PLEA_CLIENT "cluster-api-bridge"
/* Behind MAINTENANCE_REQUESTS_PATH: those of our client. */
#define PLEA_QUERY "&labelSelector=maintenancerequests.repairman.k8s.io%2Fclientname%3D" PLEA_CLIENT
#define PLEA_TEXT_MAX 512u /* of a name or a request; no longer one is ours */

enum plea_state {
    PLEA_PENDING,
    PLEA_APPROVED,
    PLEA_IN_PROGRESS,
    PLEA_COMPLETED,
};

struct plea {
    struct str uid;
    struct str node;    /* that it is for; empty = it is for something else */
    struct str request; /* KEY_ROUTED; empty = it is not the bridge's */
    enum plea_state state;
};

/* Its ctx is not used. */
extern const struct store_kind plea_kind;

struct str plea_state_name(enum plea_state state); /* "InProgress" */
/* It is the bridge's, and not over. */
bool plea_open(const struct plea *p);

struct plea_ask {
    struct str name;
    struct str node;
    struct str request;
    struct str reason; /* for people */
};
/* The object to create. */
void plea_print_new(const struct plea_ask *ask, struct buf *out);
/* The merge patch to another state, on this version and no other. `version` 0 writes none. */
void plea_print_state(const struct plea *p, uint64_t version, enum plea_state state,
                      struct buf *out);
