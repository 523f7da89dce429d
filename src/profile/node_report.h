/*
 * node_report: what is shown of one node: its profiles, their transitions with every check, what
 * holds it and until when.
 *
 * Plain data and pure printers, for the web view, /api/v1/info and `drydock explain` alike.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "core/activity.h"
#include "format/json_writer.h"
#include "profile/check/check.h"
#include "profile/node_labels.h"

#define NODE_REPORT_ITEMS_MAX 4096u /* profiles, transitions, checks or labels in one list */

struct node_report_check {
    struct str name; /* the instance's */
    struct str type; /* the plugin's */
    enum check_answer answer;
    struct str info;   /* a JSON object; empty = {} */
    struct str reason; /* in words; may be empty */
    struct str error;  /* CHECK_ERROR */
    usec_t next;       /* wall time; USEC_NEVER: not before something is observed */
    /* See node_report_mark_blocking: */
    bool holds;   /* the transition would need another answer of it */
    bool negated; /* the expression has it behind '!' only: its failure is what helps */
};

struct node_report_transition {
    enum profile_state target;
    struct str expression;
    bool passed;
    bool chain_passed;
    struct str error; /* of the chain; empty = none */
    struct str held;  /* why it is held although its chain passed; empty = it is not */
    usec_t next;      /* wall time, or USEC_NEVER */
    struct node_report_check *checks; /* in order of appearance */
    uint32_t check_n;
};

struct node_report_profile {
    struct str name;
    enum profile_state state; /* when the decision began */
    enum profile_state next;  /* and after it */
    usec_t since;             /* of `state`, wall time; 0 = unknown */
    struct str error;         /* what failed; empty = nothing */
    struct str doing;         /* "draining: …"; empty = it waits for its checks */
    struct node_report_transition *transitions;
    uint32_t transition_n;
};

struct node_report_label {
    struct str key;
    struct str value;
};

/* A request for the node, or a reservation of it. */
struct node_report_claim {
    struct str who;         /* "request mr-7 of kured", "profile os" */
    bool holds;             /* it holds the node; otherwise it waits for it */
    struct str words;       /* "InProgress", or what it waits for */
    struct str until;       /* what has to happen next */
    struct str limits;      /* that concern it: "node, gpu" */
    usec_t since;           /* wall time; 0 = unknown */
    usec_t deadline;        /* wall time; USEC_NEVER = none */
    struct str at_deadline; /* what happens then; may be empty */
};

/* What a NodeMaintenance does on the node, or waits for there. */
struct node_report_operation {
    struct str maintenance;
    struct str state; /* "pending", "visited", … */
    struct str words; /* one sentence */
    usec_t next;      /* wall time; USEC_NEVER: not before something is observed */
};

/* The drain of a node, for whomever it runs. */
struct node_report_drain {
    bool running;
    bool blocked;  /* somebody should look: a pod waits longer than is usual */
    uint32_t left; /* pods that have to go */
    struct str namespace;
    struct str pod;    /* that waits longest; empty = none waits */
    struct str pdb;    /* the budget that refuses it; empty = none does */
    struct str reason; /* why the pod waits */
    usec_t since;      /* wall time: since when it does; 0 = unknown */
};

/* A notification that could not be sent yet. */
struct node_report_unsent {
    struct str instance;
    struct str profile; /* what it is about */
    struct str state;
    struct str error;
    usec_t next; /* wall time of the next try */
};

struct node_report {
    struct str node;
    struct str state; /* the state label; empty = none yet */
    struct str error; /* why the node is not touched; empty = nothing is wrong */
    bool ready;
    bool cordoned;
    bool deleting;
    usec_t updated;    /* wall time of the decision; 0 = unknown */
    usec_t now;        /* wall time of the report */
    uint32_t columns;  /* of the text; 0 = NODE_REPORT_COLUMNS */
    struct str waits;  /* "turn 3 of 12 to go into maintenance"; empty = for nothing */
    struct str drain;  /* how far the drain is; empty = none runs */
    struct str orphan; /* the profile whose cordon the node has although it does not serve the node;
                        * mostly empty */
    struct node_report_drain draining;
    struct node_report_label *labels; /* those that the configuration shows, sorted */
    uint32_t label_n;
    struct node_report_profile *profiles; /* in the label's order */
    uint32_t profile_n;
    struct node_report_unsent *unsent;
    uint32_t unsent_n;
    struct node_report_claim *claims; /* those that hold the node first */
    uint32_t claim_n;
    struct node_report_operation *operations;
    uint32_t operation_n;
    struct activity *activities; /* of integrations that concern the node */
    uint32_t activity_n;
};

/* "pass", "fail", "error", "pending". */
struct str node_report_answer_name(enum check_answer answer);

/* Finds out, for every transition, which checks are negated, and which block it if its chain does
 * not pass: those whose answer is not what the expression needs. */
void node_report_mark_blocking(struct node_report *r);

/* One element of /api/v1/info, byte for byte as the original writes it. */
void node_report_print_info(const struct node_report *r, struct json_writer *w);

/* The document of `explain -o json`: everything. Times that are unknown or never are left out. */
void node_report_print_json(const struct node_report *r, struct json_writer *w);
/* The member "draining" of a node; nothing when no drain runs. */
void node_report_print_drain(const struct node_report_drain *d, struct json_writer *w);
/* What the check's plugin said, as one JSON object; an error is among its members. */
void node_report_print_check_info(const struct node_report_check *c, struct json_writer *w);

enum report_format {
    NODE_REPORT_TEXT, /* 80 columns */
    NODE_REPORT_WIDE, /* lines without end, with the plugins' raw info */
};
#define NODE_REPORT_COLUMNS 80u

void node_report_print_text(const struct node_report *r, enum report_format form, struct buf *out);

/* Why a transition whose checks pass is not made yet: another profile is in the way, the node waits
 * for its turn or for a limit, or it is drained first. Empty: nothing holds it. */
struct str node_report_held(const struct node_report *r, const struct node_report_profile *p,
                            const struct node_report_transition *t);
/* "!blocked" for a check that is negated; what it means for its transition: a negated check that
 * fails counts as passed. */
struct str node_report_check_label(const struct node_report_check *c, struct arena *out);
enum check_answer node_report_check_meaning(const struct node_report_check *c);
/* One sentence about a cordon of ours that has no owner; empty when there is none. */
struct str node_report_orphan(const struct node_report *r, struct arena *out);

/* One sentence about a profile: what it does, what failed, or what holds it. Empty when it is
 * operational and waits for nothing. Lives in `out` or in the report. */
struct str node_report_summary(const struct node_report *r, const struct node_report_profile *p,
                               struct arena *out);
