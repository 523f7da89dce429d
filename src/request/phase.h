/*
 * phase: what a MaintenanceRequest needs next, from the object, what is known around it and the
 * time. This is the table of E1 to E22 in docs/contract/requests.md, as a pure function.
 *
 * It is asked again after everything that happens, and says each time the whole of what should be:
 * what the status should say, whether the state should be written, whether something should be
 * held, prepared, checked or undone. The caller compares with what is and does one thing at a time.
 * So nothing depends on having seen every event, and a crash between two steps loses nothing.
 *
 * The order of the two protocols is kept by what is asked for when:
 *   grant:   held → phase Preparing → prepared → checked → state Approved → phase Approved
 *   release: state (if it is ours to write) → undone → phase → nothing held any more
 */
#pragma once

#include "kinds/maintenance_request.h"
#include "request/prepare.h"

enum phase_check {
    PHASE_CHECK_NONE,
    PHASE_CHECK_RUNNING,
    PHASE_CHECK_PASSED, /* just now: only good for the next write */
    PHASE_CHECK_FAILED,
};

/* Why a preparation is given up; remembered until the phase is written, because the preparation or
 * check that said so may be gone by then. */
struct phase_rollback {
    bool wanted;
    bool rejection;             /* it counts: back-off, maxRejections */
    enum mrequest_cond_type by; /* whose reason it is: COND_PREPARED or COND_SAFE, … */
    struct str reason;
    struct str message;
};

struct phase_facts {
    usec_t now;       /* wall */
    usec_t clock_lag; /* that it may be behind by; what a time limit is counted from is not */
    usec_t elapsed;   /* since the phase's timer began, by the clock that does not jump (R16) */
    usec_t tolerance; /* --clock-skew-tolerance */
    usec_t finished_ttl;
    bool trust_approval; /* --trust-external-approval */

    /* The ask. */
    bool asked;
    bool ask_adopts; /* it is asked for as a fact, or will be in a moment */
    struct ask_view ask;
    bool options_known; /* the limits that apply are known, so are their options */
    struct limit_options options;
    usec_t rejected;      /* the newest rejection of this client and target, wall; 0 = none */
    bool releasing;       /* what is held belongs to a grant that is over */
    bool grants_numbered; /* the server keeps the numbers of grants */
    usec_t pause_until;   /* wall: what failed is not tried again before; 0 = at once */

    bool target_gone;    /* it was there when it was granted */
    bool target_changed; /* and is another one now, of the same name */

    /* The preparation. */
    bool preparing; /* there is one */
    struct prepare_view preparation;
    struct phase_rollback rollback;
    bool node_marked; /* the node carries the mark of this request, or may do so in a moment */

    enum phase_check check;
    struct str check_error;
    bool approved_by_us; /* the state Approved on the server is our own writing */
    uint32_t limit; /* for the legacy event: what the tightest limit allows; UINT32_MAX: none */
};

enum phase_ask {
    PHASE_ASK_RELEASE, /* what is held is given back */
    PHASE_ASK_RESERVE,
    PHASE_ASK_ADOPT, /* it is a fact already */
    PHASE_ASK_AS_IS, /* leave it as it is */
};

#define PHASE_EVENTS_MAX 3u

struct phase_event {
    bool warning;
    struct str reason;
    struct str note;
};

struct phase_plan {
    /* What the status should say. */
    struct mrequest_status status;
    /* To be written before the status; MR_STATE_ABSENT: nothing. */
    enum mrequest_state state;
    bool approves; /* that write is the commit point: only with the check that has just passed */
    enum phase_ask ask;
    bool ask_last;
    struct str ask_state;           /* shown in the reservation */
    bool prepare;                   /* a preparation should be under way, from `status.step` on */
    bool check;                     /* the double check should run */
    bool undo;                      /* the cordon should go before the status is written */
    bool uncordon;                  /* or only the mark, if not */
    bool delete_object;             /* the object has outlived its time to live */
    struct phase_rollback rollback; /* to be remembered */
    /* Sent when the status, or the state when only that is written, is on the server. */
    struct phase_event events[PHASE_EVENTS_MAX];
    uint32_t event_n;
    usec_t next; /* wall: when the answer could change by itself; USEC_NEVER */
};

/* Texts of the plan live in `out`, or are borrowed from what was passed. */
void phase_decide(const struct maintenance_request *m, const struct phase_facts *f,
                  struct arena *out, struct phase_plan *ret);

/* Whether the time limits of `status` have begun, and when: wall; 0 = none runs. */
usec_t phase_timer(const struct mrequest_status *status);
/* Wall; when the same client may ask for the same target again without standing last. */
usec_t phase_backoff_end(const struct phase_facts *f);
enum prepare_step phase_prepare_step(enum mrequest_step step);
