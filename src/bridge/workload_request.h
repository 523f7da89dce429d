/*
 * workload_request: a MaintenanceRequest in a workload cluster by which the bridge asks the limits
 * there.
 *
 * It is one that an actor of the name WORKLOAD_REQUEST_CLIENT would make for a node, with an
 * annotation that says for which request of ours (keys.h) it was made. Its name is reqname.h's, as
 * that of every actor.
 */
#pragma once

#include "base/buf.h"
#include "kinds/request_name.h"
#include "kube/store.h"

#define WORKLOAD_REQUEST_CLIENT "cluster-api-bridge"
/* Behind MAINTENANCE_REQUESTS_PATH: those of our client. */
#define WORKLOAD_REQUEST_QUERY                                                                     \
    "&labelSelector=maintenancerequests.repairman.k8s.io%2Fclientname%3D" WORKLOAD_REQUEST_CLIENT
#define WORKLOAD_REQUEST_TEXT_MAX 512u /* of a name or a request; no longer one is ours */

enum workload_request_state {
    WORKLOAD_REQUEST_PENDING,
    WORKLOAD_REQUEST_APPROVED,
    WORKLOAD_REQUEST_IN_PROGRESS,
    WORKLOAD_REQUEST_COMPLETED,
};

struct workload_request {
    struct str uid;
    struct str node;    /* that it is for; empty = it is for something else */
    struct str request; /* KEY_ROUTED; empty = it is not the bridge's */
    enum workload_request_state state;
};

/* Its ctx is not used. */
extern const struct store_kind workload_request_kind;

struct str workload_request_state_name(enum workload_request_state state); /* "InProgress" */
/* It is the bridge's, and not over. */
bool workload_request_is_open(const struct workload_request *p);

struct workload_request_spec {
    struct str name;
    struct str node;
    struct str request;
    struct str reason; /* for people */
};
/* The object to create. */
void workload_request_print_new(const struct workload_request_spec *ask, struct buf *out);
/* The merge patch to another state, on this version and no other. `version` 0 writes none. */
void workload_request_print_state(const struct workload_request *p, uint64_t version,
                                  enum workload_request_state state, struct buf *out);
