/*
 * operations: NodeMaintenances as a part of a controller process (core/core.h): what they say when,
 * where and what is done on machines, and carrying that out.
 *
 * Everything follows from objects, again in each turn. A NodeMaintenance is a campaign here: its
 * operations with their revisions, its window, its machines and what each of them has done, which
 * NodeStates keep. The campaign's status is a ledger: a machine gets a place in it, by
 * compare-and-swap, before anything is begun there. What is done on one machine is a visit, whose
 * record in the NodeState is written before each step (visit_steps.h decides); a visit asks for its
 * machine by a MaintenanceRequest like everybody else, and all campaigns that have work there share
 * it. What runs on machines are Jobs.
 *
 * The part sleeps until the CRD of NodeMaintenances is installed; then it watches the other kinds.
 */
#pragma once

#include "core/core.h"
#include "kinds/node_operation_template.h"
#include "kinds/node_state.h"
#include "port/outbound.h"

#define OPERATIONS_NAMESPACE STR("drydock-system")
#define OPERATIONS_JOBS_NAMESPACE STR("drydock-jobs")
#define OPERATIONS_JOBS_MAX 500u
#define OPERATIONS_UNLIMITED_VISITS 1u

struct operations;

/* Texts are copied, all else is borrowed. */
struct operations_config {
    struct str namespace;      /* of NodeStates */
    struct str jobs_namespace; /* of Jobs, and of all that they refer to */
    struct str runner_image;   /* has drydock run-on-host; empty: scripts are refused */
    struct str priority_class; /* of pods; may be empty */
    /* The bytes of a time zone's file, in `out`; NULL: only UTC is known. */
    int (*read_zone)(void *ctx, struct str name, struct arena *out, struct str *ret,
                     struct err *err);
    void *zone_ctx;
    uint32_t jobs_max;         /* Jobs of ours at once */
    uint32_t unlimited_visits; /* at once on nodes that no limit selects; 0 = any number */
    bool allow_forced_drains;
    struct outbound *outbound; /* to Prometheus and Alertmanager; NULL: they cannot be asked */
    struct str allow_urls;     /* prefixes of what gates may ask, separated by commas */
};

struct operations *operations_new(struct core *core, const struct operations_config *config);
void operations_free(struct operations *o); /* like a crash; accepts NULL */

/* Asserts what must hold between turns. */
void operations_check(const struct operations *o);
