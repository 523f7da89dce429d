/*
 * visit_record: what a NodeState's status.visit keeps of a visit, so that whoever leads next can go
 * on with it, or undo it.
 *
 * A visit is the time in which a machine is under maintenance for one or more runs: one
 * MaintenanceRequest, one cordon, one drain, at most one reboot. One that disturbs nothing has only
 * its runs. The record is written before each
 * step that changes anything outside, and removed last. A record of a format or phase that this
 * version does not know is left alone, and so is its machine.
 */
#pragma once

#include "base/buf.h"
#include "format/json.h"
#include "format/json_writer.h"

#define VISIT_FORMAT 1u
#define VISIT_RUNS_MAX 32u /* the schema's */
#define VISIT_MESSAGE_MAX 256u
#define VISIT_LABELS_MAX 64u

enum visit_phase {
    VISIT_NONE,
    VISIT_CHECKING,  /* preflights run; nothing has been asked for */
    VISIT_REQUESTED, /* the request waits or is approved; nothing has been done */
    VISIT_LABELLING, /* the node gets labels, and leaves load balancers */
    VISIT_CORDONING,
    VISIT_DRAINING,
    VISIT_RUNNING,
    VISIT_REBOOTING,
    VISIT_SETTLING,
    VISIT_VERIFYING, /* the machine is back at work, and gates behind the visit are asked */
    VISIT_ENDING,    /* what is ours is undone, and the request is completed */
    VISIT_UNKNOWN,   /* of another version */
};

/* Whose the machine's cordon is. */
enum visit_cordon {
    VISIT_CORDON_NONE, /* the visit needs none */
    VISIT_CORDON_OTHERS,
    VISIT_CORDON_OURS,
};

enum visit_run_phase {
    VISIT_RUN_PENDING,
    VISIT_RUN_CHECKING, /* the Job of its preflight may exist */
    VISIT_RUN_RUNNING,  /* its Job may exist */
    VISIT_RUN_SUCCEEDED,
    VISIT_RUN_SKIPPED, /* it said that there was nothing to do */
    VISIT_RUN_FAILED,
    VISIT_RUN_NOT_RUN, /* one before it failed, or the visit ended before */
};

/* Whether a failure leaves the machine cordoned. Auto: if a payload had begun. */
enum visit_on_failure { VISIT_FAILURE_AUTO, VISIT_FAILURE_KEEP, VISIT_FAILURE_UNCORDON };

enum visit_reboot { VISIT_REBOOT_NEVER, VISIT_REBOOT_IF_REQUIRED, VISIT_REBOOT_ALWAYS };

struct visit_run {
    struct str maintenance;
    struct str maintenance_uid;
    struct str operation;
    struct str revision;
    uint32_t attempt; /* from 1 */
    usec_t tick;      /* cron: the tick that it serves, wall; 0 otherwise */
    enum visit_reboot reboot;
    bool reboot_required; /* the run, or its preflight, has found out that one is */
    bool preflight;       /* to be made before anything is asked for */
    bool bare;            /* it only reboots: there is no Job */
    bool stopping;        /* its Job is being deleted: it is to end before it is done */
    bool interrupted;     /* it was taken away through no fault of its own */
    enum visit_run_phase phase;
    usec_t since;      /* of the phase, wall */
    usec_t started;    /* wall; 0 = it has not */
    struct str reason; /* of a failure: "ExitCode", "Timeout", … */
    struct str message;
};

struct visit_drain {
    bool enabled;
    usec_t timeout; /* USEC_NEVER = none */
    usec_t grace;   /* -1: the pod's own */
    struct str pod_selector;
    bool evict_daemon_sets; /* they bar the drain otherwise; false: they stay */
    bool keep_empty_dir;    /* pods with such volumes bar the drain */
    bool keep_unmanaged;    /* pods without a controller bar the drain */
    bool proceed;           /* when the time is over: go on, with the pods that are left */
    bool force;             /* when the time is over: delete what is left */
};

/* A label of the node; `.p` of a value that is not there is NULL. */
struct visit_label {
    struct str key;
    struct str value; /* during the visit; none: it is left alone */
    struct str old;   /* before it; none: it was not there */
    struct str after; /* behind it; none: the old one */
};

struct visit_record {
    uint32_t format;
    struct str id; /* the mark of its cordon, and of its requests */
    struct str node_uid;
    bool quiet;             /* nothing is disturbed: no request, no cordon, no drain, no reboot */
    struct str request;     /* name; empty: it is not chosen yet */
    struct str request_uid; /* empty: it has not been seen yet */
    uint32_t grant;
    enum visit_phase phase;
    usec_t phase_time; /* wall */
    usec_t deadline;   /* of the phase, wall; USEC_NEVER = none */
    usec_t began;      /* wall: the machine is disturbed since, or a quiet payload runs; 0 = no */
    enum visit_cordon cordon;
    struct visit_drain drain;
    struct visit_label *labels;
    uint32_t label_n;
    usec_t leave_wait; /* how long load balancers have to notice; 0 = no time */
    usec_t min_ready;
    usec_t reboot_timeout;
    struct str boot_id;   /* when the visit began */
    struct str reboot_id; /* of the order; empty = none was given */
    bool reboot_checked;  /* whether it has helped was looked at, as far as that can be known */
    bool reboot_useless;  /* it has not: the machine still asks for one */
    bool expired;         /* the grant was lost in the middle: nothing new is begun */
    bool keep_cordon;     /* a payload has failed: the machine is not to be trusted with pods */
    enum visit_on_failure on_failure;
    struct str failure; /* of the visit itself: "DrainTimeout", "RebootTimeout", …; or empty */
    struct str message;
    struct visit_run *runs;
    uint32_t run_n;
};

/* False if there is none. Texts live in `out`. */
bool visit_record_read(const struct jval *visit, struct arena *out, struct visit_record *ret);
/* The value of "visit". */
void visit_record_print(const struct visit_record *v, struct json_writer *w);
/* Runs and texts too; for whoever keeps one. */
void visit_record_copy(const struct visit_record *v, struct arena *out, struct visit_record *ret);
bool visit_record_same(const struct visit_record *a, const struct visit_record *b);

struct str visit_phase_name(enum visit_phase phase);
struct str visit_run_phase_name(enum visit_run_phase phase);
