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

#define NODE_STATE_FORMAT 1
#define VISIT_FORMAT 1
#define NODE_STATE_OPERATIONS_MAX 32u /* the schema's, as those below */
#define VISIT_JOINED_MAX 32u
#define VISIT_SILENCES_MAX 8u
#define VISIT_TAINTS_MAX 16u
#define NODE_STATE_WORD_MAX 64u /* of a text of the agent */

enum machine_kind { MACHINE_NODE, MACHINE_EXTERNAL };
enum visit_cordon { VISIT_CORDON_NONE, VISIT_CORDON_OTHERS, VISIT_CORDON_OURS };

enum visit_state {
    VISIT_NONE,
    VISIT_KNOWN,
    VISIT_UNKNOWN, /* another version's: hands off */
};

struct visit_part {
    struct str maintenance_uid;
    struct str maintenance;
    struct str operation;
    struct str revision;
    struct str phase;
};

struct visit_record {
    enum visit_state state;
    struct str id;
    struct str node_uid;
    struct str request_name;
    struct str request_uid;
    uint64_t grant;
    struct str profile;
    struct str phase;
    usec_t phase_time;
    usec_t deadline;
    const struct visit_part *parts;
    uint32_t part_n;
    enum visit_cordon cordon;
    struct str drain_json;  /* the options that count; empty: none yet */
    struct str labels_json; /* what is put back; "{}" for nothing */
    struct str annotations_json;
    struct spec_texts taints;
    struct spec_texts silences;
    struct str boot_id;
    struct str reboot_id;
    usec_t reboot_ordered;
    bool expired;
};

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
    struct visit_record visit;
    struct str seal_key; /* the pinned one */
    struct agent_report agent;
    struct spec_problem problem; /* of the controller's half */
};

void node_state_read(const struct jval *object, struct arena *out, struct node_state *ret);
/* For kube/store. */
extern const struct store_kind node_state_kind;

/* NULL when nothing is noted. */
const struct operation_state *node_state_find(const struct node_state *s, struct str maintenance,
                                              struct str operation);
