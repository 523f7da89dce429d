/*
 * visit_steps: what a visit needs next, from its record, what is known around it and the time.
 *
 * It is asked again after everything that happens, and says each time the whole of what should be.
 * Where the record should say something else, that is written first, and nothing else is done
 * before it is on the server: so whoever leads next knows what may have been done outside, and a
 * crash between two steps loses nothing.
 *
 * *   Checking → Requested → Labelling → Cordoning → Draining → Running → Rebooting → Settling →
 * Verifying → Ending → (no record)
 *
 * Checking makes the preflights: what has nothing to do, or cannot, costs no request. A quiet visit
 * goes from there to Running and on to Ending. For all others the machine is touched only under a
 * grant: the request of the record's own UID says InProgress, with the grant's number that the
 * record has. When that is not so any more, the grant is lost. Before anything was evicted the
 * visit is undone then. Later it begins nothing new (no eviction, no payload, no reboot), keeps its
 * cordon, and asks anew.
 */
#pragma once

#include "kinds/maintenance_request.h"
#include "kinds/visit_record.h"

/* The Job of a run, or of the reboot. */
enum visit_job { VISIT_JOB_ABSENT, VISIT_JOB_ACTIVE, VISIT_JOB_SUCCEEDED, VISIT_JOB_FAILED };

enum visit_after { VISIT_AFTER_WAITS, VISIT_AFTER_PASSES, VISIT_AFTER_FAILS };

struct visit_facts {
    usec_t now; /* wall */
    /* Requests, Nodes and Jobs are all known: that one is not there is a fact. Otherwise nothing is
     * decided. */
    bool known;

    /* The request of the record's UID; while that is not known, the one of the record's name that
     * carries the visit's id. */
    bool request_there;
    bool request_foreign; /* the record's name belongs to a request of somebody else */
    struct str request_uid;
    struct str next_request; /* a name that no request has */
    enum mrequest_state request_state;
    enum mrequest_phase request_phase;
    uint32_t request_grant;
    bool request_held; /* the arbiter holds its ask, under that number */

    /* Runs that are to end as soon as they can, one bit each: their window has closed, or their
     * object is deleted, and it says so. */
    uint32_t stop;
    struct str stop_why;

    bool may_start;     /* window, waves, holds and suspension allow a visit to begin */
    struct str why_not; /* otherwise, in words */
    bool gates_asked;   /* the request is approved, and gates are being asked once more */

    bool node_there; /* of the record's UID */
    bool unschedulable;
    struct str visit_mark;    /* KEY_VISIT_CORDON; empty = none */
    struct str request_mark;  /* KEY_REQUEST_CORDON */
    struct str labels_mark;   /* KEY_VISIT_LABELS */
    bool labels_set;          /* it has all labels of the record, and our mark */
    const struct str *labels; /* its values of the record's labels, in their order */
    bool kept_mark; /* its cordon was left by an earlier visit that failed, of the same objects */
    bool ready;
    usec_t ready_since; /* wall; 0 = it is not */
    struct str boot_id;
    bool reboot_useless;       /* the last one has not helped: it asks for another all the same */
    struct str reboot_refused; /* why it must not reboot now, in words; empty = it may */

    /* Gates behind the visit. */
    bool after_gates; /* there are some */
    enum visit_after after;
    struct str after_uid; /* VISIT_AFTER_FAILS: the object whose gate it is */
    struct str after_why; /* unless it passes */
    usec_t after_next;    /* wall: when that could change by itself */

    bool drain_done;
    bool drain_began; /* something was evicted, or may have been */

    /* The run that is the record's first unfinished one, or its preflight while Checking, or the
     * reboot while Rebooting, or the probe of the run that is unproved while Settling. */
    enum visit_job job;
    bool superseded; /* what the run would do is not asked for any more; its Job, if there is one,
                      * may end */
    bool nothing_to_do; /* VISIT_JOB_SUCCEEDED: it said so */
    bool reboot_required;
    bool retry_free; /* VISIT_JOB_FAILED: through no fault of its own; the attempt does not count */
    struct str job_reason;
    struct str job_message;
};

enum visit_request_step {
    VISIT_REQUEST_KEEP,
    VISIT_REQUEST_BEGIN,    /* InProgress */
    VISIT_REQUEST_COMPLETE, /* Completed, or withdrawn while it waits */
    VISIT_REQUEST_NEW,      /* to be made under the record's name */
};

enum visit_cordon_step {
    VISIT_CORDON_KEEP,
    VISIT_CORDON_MAKE, /* with our mark, or a limit's preparation's cordon taken over */
    VISIT_CORDON_LIFT,
    VISIT_CORDON_LEAVE, /* it stays, and the mark says that a failure left it */
};

enum visit_labels_step { VISIT_LABELS_KEEP, VISIT_LABELS_SET, VISIT_LABELS_RESTORE };

struct visit_plan {
    /* To be written before anything else, if it is not the same. */
    struct visit_record record;
    bool end; /* the record goes, and the results of its runs are kept */
    enum visit_request_step request;
    struct str exit_code; /* VISIT_REQUEST_COMPLETE */
    enum visit_cordon_step cordon;
    enum visit_labels_step labels;
    bool labels_after; /* VISIT_LABELS_RESTORE: those for behind the visit, too */
    bool drain;
    int32_t run;      /* whose Job should exist; -1 = none */
    bool preflight;   /* that of its preflight */
    bool probe;       /* that which looks whether the reboot has helped */
    bool stop;        /* the Job of the open run should be deleted */
    bool reboot;      /* the reboot's Job should exist */
    struct str waits; /* for what, in words */
    usec_t next;      /* wall: when the answer could change by itself; USEC_NEVER */
};

/* The plan's texts live in `out`, or are borrowed from what was passed. */
void visit_decide(const struct visit_record *v, const struct visit_facts *f, struct arena *out,
                  struct visit_plan *ret);

/* True once something may have been done to the machine. */
bool visit_touched(const struct visit_record *v);
/* The run for whose sake the machine was rebooted, while it is not known whether that has helped;
 * -1 = none. */
int32_t visit_unproved_run(const struct visit_record *v);
/* The first run that has not ended; -1 = none. */
int32_t visit_open_run(const struct visit_record *v);
