/*
 * machine_report: what is shown of one Machine: what it waits for and what would help, both sides
 * of the bridge, and what would be written next.
 *
 * Plain data and pure printers, for the bridge's page and `drydock explain machine` alike.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "bridge/workload_node.h"
#include "format/json_writer.h"

struct bridge_machine_view; /* bridge/bridge.h */

#define MACHINE_REPORT_CHANGES_MAX 64u /* four patches: Machine (rules, power), Node and host */
#define MACHINE_REPORT_COLUMNS 80u

struct machine_report_change {
    struct str object; /* "Machine", "Node", "BareMetalHost" */
    struct str key;
    struct str value;
    bool label; /* otherwise an annotation */
    bool remove;
};

struct machine_report_machine {
    bool enabled;
    bool paused;
    bool control_plane;
    bool updating;
    usec_t deleted_at;       /* wall; 0 = it is not being deleted */
    usec_t hooks_wait_since; /* wall: Cluster API waits for hooks; 0 = unknown */
    usec_t hold_max;         /* its own; 0 = none */
    struct str request;      /* the label's value, where it is one; empty = nobody asks */
    bool templated;
    bool approved; /* for a maintenance, by the label or beside it */
    bool hook;
    struct str released; /* why the hook was taken away; empty = it was not */
    struct str power;    /* "on", "off"; empty = it does not say */
};

struct machine_report_cluster {
    struct str name; /* of the Machine's spec */
    bool found;
    bool paused;
    bool deleting;
    bool provisioned;
};

struct machine_report_link {
    struct str state; /* as link.h names it; empty = there is none */
    usec_t since;     /* wall */
    usec_t retry_at;  /* wall; USEC_NEVER = it does not wait */
    struct str trouble;
    uint32_t nodes;
};

struct machine_report_node {
    struct str name;             /* empty = the Machine has none yet */
    struct str sight;            /* "seen", "missed", "absent", "unknown" */
    struct workload_node object; /* if it is seen; without uid, machine and drain_rules */
};

/* MachineDrainRules, where something is to be asked of the Node. */
struct machine_report_rules {
    bool asked;
    bool known;
    uint32_t n;       /* that apply */
    struct str error; /* why they cannot be used, or are not known; empty = they can */
};

struct machine_report {
    usec_t now;       /* wall */
    uint32_t columns; /* of the text; 0 = MACHINE_REPORT_COLUMNS */
    struct str namespace;
    struct str name;
    bool ours;    /* not another shard's */
    bool leading; /* whoever tells this does; set by the caller, as the next one */
    struct str leader;
    struct str phase;
    struct str reason;
    struct str message;
    usec_t next;      /* wall; USEC_NEVER */
    struct str error; /* of the last patch */
    struct machine_report_machine machine;
    struct machine_report_cluster cluster;
    struct machine_report_link link;
    struct machine_report_node node;
    struct machine_report_rules rules;
    struct str request; /* a MaintenanceRequest of the workload cluster; empty = there is none */
    struct str workload_request_state;
    struct str host; /* "namespace/name"; empty = Metal3 has nothing to do with it */
    struct str power_reason;
    struct str power_message;
    struct machine_report_change changes[MACHINE_REPORT_CHANGES_MAX];
    uint32_t change_n;
};

/* `now` is monotonic, as the link's times are. Texts are borrowed from the report. */
void machine_report_from(const struct bridge_machine_view *report, usec_t now,
                         struct machine_report *ret);

/* Times that are unknown or never are left out, and so is what there is not. */
void machine_report_print_json(const struct machine_report *p, struct json_writer *w);
/* 80 columns; wide: lines without end, with what names requests. */
void machine_report_print_text(const struct machine_report *p, bool wide, struct buf *out);
