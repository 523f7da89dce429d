/*
 * rules: what a Machine and its Node should carry, from what is known of both.
 *
 * Pure: no I/O, no clock, nothing kept. The same facts give the same verdict, so a restart loses
 * nothing and two leaders compute the same patches (B5, B8). Everything that must be
 * remembered is an annotation (kinds/keys.h).
 *
 * A request and its approval. The request is a label on the Node, together with an annotation that
 * names it (the Machine's UID; for a maintenance a number behind it). Both are written in one
 * patch on one version of the Node, and that patch takes away an approval that is there already:
 * what is there afterwards was given for this request. An approval therefore counts if its request
 * stands beside it, and, where the engine says what it answers (…-approved-for), names this one.
 * A maintenance that was approved is noted at the Machine (KEY_GRANTED), so that a second request
 * gets another number and needs another approval (B3).
 *
 * Beside a request stand the drain rules of the Node (drain/drain_rules.h), from the very patch
 * that delivers the request until neither request is there any more: whoever drains the Node for a
 * request finds the rules with it. While the rules are not known no request is delivered, and those
 * that are there stay. Whether a request is approved does not depend on the rules (B23).
 *
 * The hook is removed only on a known fact (B1). What is not known keeps everything as it is.
 */
#pragma once

#include "bridge/cluster.h"
#include "bridge/metadata_patch.h"
#include "bridge/machine.h"
#include "bridge/workload_node.h"

#define RULES_LEFTOVER_GRACE SECONDS(60) /* a used approval is left to the engine for that long */
#define RULES_EVENTS_MAX 8u

struct rules_options {
    bool eager;             /* --hook-mode=eager: the hook is there before the Node is */
    bool strict_approval;   /* --strict-legacy-approval: an approval counts whenever it is there */
    bool missing_holds;     /* --on-missing-node=hold */
    bool refuse_forged;     /* --refuse-forged-approval */
    usec_t unreachable_max; /* --unreachable-timeout; 0 = for ever */
    usec_t hold_max;        /* --deletion-hold; 0 = for ever */
    usec_t skew;            /* time limits fire that much later, never early (B9) */
};

/* What is known of the Node that the Machine names. */
enum rules_node_sight {
    RULES_NODE_UNKNOWN, /* its cluster cannot be asked at the moment */
    RULES_NODE_SEEN,    /* there is one */
    RULES_NODE_MISSED,  /* it is not in the cluster, as far as the watch tells */
    RULES_NODE_ABSENT,  /* two live reads have said so, half a minute apart */
};

struct rules_facts {
    const struct machine *machine;
    const struct cluster *cluster; /* NULL = there is none of that name (any more) */
    enum rules_node_sight sight;
    const struct workload_node *node; /* RULES_NODE_SEEN; otherwise NULL */
    bool routed;                      /* requests go to the MaintenanceLimits of its cluster */
    bool maybe_open;                  /* a MaintenanceRequest for this Node may be open */
    /* The drain rules of its Node as the text of KEY_DRAIN_RULES, if the Machine asks for
     * something; `.p` NULL = not known, and rules_trouble says why, as a part of a sentence. */
    struct str drain_rules;
    struct str rules_trouble;
    usec_t wall;            /* by the management cluster's clock */
    usec_t unreachable_for; /* how long its cluster has not answered by now; 0 = it does */
    /* How long the Node has been seen in service without that request and with its approval. */
    usec_t deletion_leftover;
    usec_t maintenance_leftover;
    /* Machines of the same control plane, this one not counted. */
    uint32_t members;   /* all others */
    uint32_t available; /* of them: with a Node, not being deleted, not approved */
    uint32_t taken;     /* of them: approved, or being approved at this moment */
};

enum rules_event {
    RULES_EVENT_HOOK_ATTACHED,
    RULES_EVENT_HOOK_RELEASED,
    RULES_EVENT_REQUEST_DELIVERED,
    RULES_EVENT_APPROVAL_RECEIVED,
    RULES_EVENT_STALE_APPROVAL,
    RULES_EVENT_NODE_MISSING,
    RULES_EVENT_UNREACHABLE,
    RULES_EVENT_MISMATCH,
    RULES_EVENT_FORGED,
    RULES_EVENT_HOLD_OVER, /* a deletion went on because its time limit was over */
};

/* An Event at the Machine. */
struct rules_event_record {
    enum rules_event event;
    struct str note; /* a sentence */
    /* True now, or when the patch of the Machine or of the Node has succeeded. */
    enum { RULES_NOW, RULES_WITH_MACHINE, RULES_WITH_NODE } when;
};

/* For people and for KEY_STATUS; as it will be when the patches have succeeded. */
enum rules_phase {
    RULES_PHASE_NOT_ENABLED, /* not enabled */
    RULES_PHASE_PAUSED,
    RULES_PHASE_OPEN,       /* enabled, and nothing protects it yet */
    RULES_PHASE_PROTECTED,  /* the hook is there, and nothing is requested */
    RULES_PHASE_HOLDING,    /* a deletion is held */
    RULES_PHASE_LETTING_GO, /* the deletion goes on without us */
    RULES_PHASE_REQUESTED,  /* a maintenance waits for its approval */
    RULES_PHASE_IN_MAINTENANCE,
};

struct rules_verdict {
    struct meta_patch machine;
    struct meta_patch node;
    struct rules_event_record events[RULES_EVENTS_MAX];
    uint32_t event_n;
    enum rules_phase phase;
    const char *reason; /* "WaitingForApproval"; a constant */
    struct str message; /* a sentence: what it waits for, and what would help */
    usec_t next;        /* wall: when it could change by itself; USEC_NEVER */
    /* Read the Node live: a deletion, or the cleaning after a Machine that is not enabled any more,
     * waits for one that is not there. */
    bool confirm_absent;
    bool approves;   /* the Machine's patch approves a maintenance */
    bool keeps_link; /* its Node is still to be cleaned, although the Machine is not enabled */
    bool read_only;  /* nothing of its Node may be written, for whatever reason */
};

/* Texts live in `out`, or are borrowed from the facts. */
void rules_decide(const struct rules_options *options, const struct rules_facts *facts,
                  struct arena *out, struct rules_verdict *ret);

/* A Node with our marks whose Machine is gone: takes away requests and what names them, leaves
 * approvals to the engine. */
void rules_orphan_node(const struct workload_node *node, struct meta_patch *ret);

/* The Node is in service without a request, and an approval that answered one of ours is still
 * there. The caller measures how long that has been so: deletion_leftover and maintenance_leftover.
 */
bool rules_deletion_leftover(const struct machine *m, const struct workload_node *p);
bool rules_maintenance_leftover(const struct machine *m, const struct workload_node *p);

/* "HookAttached", "Warning" or "Normal"; "Protected". */
struct str rules_event_reason(enum rules_event event);
bool rules_event_warns(enum rules_event event);
struct str rules_phase_name(enum rules_phase phase);
/* Whether the machine is approved for a maintenance at this moment. */
bool rules_approved(const struct machine *m);
