/*
 * approval_route: how a request on a Node becomes a request to the limits of its cluster, and their
 * grant an approval on the Node.
 *
 * The bridge is the engine here: for each request that a Node carries it makes a plea, takes
 * the grant by InProgress, and only then sets the approval with the annotation that names the
 * request. When the request is gone, first the approval goes and then the plea is completed, so
 * an approval stands on a Node only while a grant is held for it. Each request needs a plea of
 * its own.
 *
 * Pure, as the rules: everything it knows is on the two objects, so whatever was cut off is found
 * and done again. It believes pleas of this Node alone, and asks for nothing but the requests
 * of the Machine that belongs to it.
 */
#pragma once

#include "bridge/metadata_patch.h"
#include "bridge/machine.h"
#include "bridge/workload_node.h"
#include "bridge/workload_request.h"

struct approval_facts {
    const struct machine *machine;    /* NULL: nobody's Node */
    const struct workload_node *node; /* NULL: there is none of that name */
    struct str name;                  /* of the Node */
    /* Those of other Nodes, of others than the bridge, and those that are over do not count. */
    const struct maintenance_request *const *requests;
    uint32_t n;
};

enum approval_act {
    APPROVAL_NONE,
    APPROVAL_CREATE,   /* make a plea for `request` */
    APPROVAL_START,    /* `which` becomes InProgress */
    APPROVAL_COMPLETE, /* `which` becomes Completed */
};

struct approval_verdict {
    enum approval_act act;
    uint32_t which;         /* of the pleas */
    struct str request;     /* ASK; borrowed from the facts, as texts of `node` */
    const char *reason;     /* ASK: for people; a constant */
    struct meta_patch node; /* has nothing to do with `act`: both are done */
    bool needs_watch;       /* there is a request, or a plea: somebody has to watch */
};

/* Adds to the cleaning of nobody's Node the approvals that name a request. */
void approval_orphan_node(const struct workload_node *node, struct meta_patch *ret);

void approval_decide(const struct approval_facts *facts, struct approval_verdict *ret);
