/*
 * node_state: reads a NodeState: what the controller has noted about a machine, and what of the
 * agent's report it decides by.
 *
 * The visit is the record by which a new leader goes on where another stopped. A record in a form
 * that this version does not know is kept as unknown: nothing is done to that machine then. What
 * the agent writes is a stranger's text: it is cut to the schema's lengths, and what is not as the
 * schema has it counts as absent.
 */
#pragma once

#include "kinds/node_maintenance.h"
#include "kinds/visit_record.h"

#define NODE_STATE_FORMAT 1
#define NODE_STATE_OPERATIONS_MAX 32u /* the schema's, as those below */
#define NODE_STATE_WORD_MAX 64u       /* of a text of the agent */

enum machine_kind { MACHINE_NODE, MACHINE_EXTERNAL };
struct operation_state {
    struct str maintenance;
    struct str maintenance_uid;
    struct str operation;
    struct str revision;
    struct str phase;
    struct str reason;
    uint32_t attempt;
    usec_t tick; /* the one that was served last */
    usec_t started;
    usec_t finished;
    struct str success_revision;
    usec_t success_time;
    uint32_t interruptions; /* runs that were taken away, at the revision and tick below */
    struct str interrupted_revision;
    usec_t interrupted_tick;
    struct str job;
    struct str request;
    struct str message;
};

/* What series select by. Empty: unknown. */
struct machine_facts {
    struct str os_id;
    struct str os_version;
    struct str kernel;
    struct str kubelet;
    struct str arch;
    struct str package_manager;
};

struct agent_report {
    bool given;
    struct str version;
    struct str boot_id;
    struct str machine_id;
    struct str probe;
    struct str observed_revision;
    struct str adopted_revision;
    struct str seal_key;
    struct machine_facts facts;
    bool reboot_known; /* it says whether a reboot is required */
    bool reboot_required;
    usec_t last_report;
};

struct node_state {
    struct spec_meta meta;
    bool format_known;
    enum machine_kind kind;
    struct str machine;
    struct str machine_uid;
    struct str revision;
    uint64_t sequence;
    const struct operation_state *operations;
    uint32_t operation_n;
    struct visit_record visit; /* its phase is VISIT_NONE: there is none */
    bool has_status;           /* the object has one at all */
    usec_t rebooted;           /* when a visit last ordered a reboot; 0 = never */
    bool reboot_useless;       /* it asked for another right after it */
    struct str conditions;     /* JSON; "[]" for none */
    struct str seal_key;       /* the pinned one */
    struct agent_report agent;
    struct spec_problem problem; /* of the controller's half */
};

void node_state_read(const struct jval *object, struct arena *out, struct node_state *ret);
/* For kube/store. */
extern const struct store_kind node_state_kind;

/* NULL when nothing is noted. */
const struct operation_state *node_state_find(const struct node_state *s, struct str maintenance,
                                              struct str operation);
