/*
 * approval_route: how a request on a Node becomes a request to the limits of its cluster, and their
 * grant an approval on the Node.
 *
 * The bridge is the maintenance engine here. For each request that a Node carries it creates a
 * MaintenanceRequest. When the limits approve that, the bridge sets it InProgress, and only then
 * sets the approval on the Node, with the annotation that names the request. When the request is
 * gone from the Node, first the approval goes and then the MaintenanceRequest is completed. So an
 * approval stands on a Node only while a grant is held for it. Each request needs a
 * MaintenanceRequest of its own.
 *
 * Pure, as the rules: everything is decided from the Node and its MaintenanceRequests, so a step
 * that was cut off is found and done again. Only MaintenanceRequests of this Node count, and only
 * requests of the Machine that the Node belongs to are asked for.
 */
#pragma once

#include "bridge/metadata_patch.h"
#include "bridge/machine.h"
#include "bridge/workload_node.h"
#include "bridge/workload_request.h"

struct approval_facts {
    const struct machine *machine;    /* NULL: no Machine has the Node */
    const struct workload_node *node; /* NULL: there is none of that name */
    struct str name;                  /* of the Node */
    /* MaintenanceRequests; those of other Nodes or clients and those that are over do not count. */
    const struct maintenance_request *const *requests;
    uint32_t n;
};

enum approval_act {
    APPROVAL_NONE,
    APPROVAL_CREATE,   /* create a MaintenanceRequest for `request` */
    APPROVAL_START,    /* requests[which] becomes InProgress */
    APPROVAL_COMPLETE, /* requests[which] becomes Completed */
};

struct approval_verdict {
    enum approval_act act;
    uint32_t which;         /* START, COMPLETE */
    struct str request;     /* CREATE; borrowed from the facts, as texts of `node` */
    const char *reason;     /* CREATE: for people; a constant */
    struct meta_patch node; /* beside `act`: both are done */
    bool needs_watch;       /* the Node has a request, or a MaintenanceRequest is open */
};

/* Adds to the patch that cleans a Node without a Machine the approvals that name a request. */
void approval_orphan_node(const struct workload_node *node, struct meta_patch *ret);

void approval_decide(const struct approval_facts *facts, struct approval_verdict *ret);
