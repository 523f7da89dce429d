/*
 * workload_request: which MaintenanceRequests of a workload cluster are the bridge's own: by them
 * the bridge asks the limits there.
 *
 * The bridge asks as any actor does, under the name WORKLOAD_REQUEST_CLIENT and for a node;
 * KEY_BRIDGE_REQUEST says for which request of a Machine. Reading and writing is that of
 * kinds/maintenance_request.h.
 */
#pragma once

#include "kinds/maintenance_request.h"

#define WORKLOAD_REQUEST_CLIENT "cluster-api-bridge"
/* Behind MAINTENANCE_REQUESTS_PATH: those of our client. */
#define WORKLOAD_REQUEST_QUERY "&labelSelector=" KEY_CLIENT_QUERY "%3D" WORKLOAD_REQUEST_CLIENT

/* Its projection is a struct maintenance_request. Only what the bridge decides by is compared. */
extern const struct store_kind workload_request_kind;

/* The node that the request is for; empty = it is for something else. */
struct str workload_request_node(const struct maintenance_request *m);
/* The request is the bridge's, and not Completed. */
bool workload_request_is_open(const struct maintenance_request *m);
