/*
 * phase_steps: the steps of which phase_decide makes its plan; only phase.c includes it.
 *
 * Each writes into the plan what a request needs when it enters or leaves a phase. Pure, like all
 * that decides.
 */
#pragma once

#include "request/phase.h"

/* What one decision works on. */
struct phase_decision {
    const struct maintenance_request *m;
    const struct phase_facts *f;
    struct arena *out;
    struct phase_plan *p;
    struct mrequest_status *s; /* the plan's */
};

usec_t phase_second_of(usec_t wall);
/* For what a time limit is counted from: never rounded down (R7). */
usec_t phase_second_after(usec_t wall);
/* When a time limit begins that begins now: by no clock earlier than it does. */
usec_t phase_timer_start(const struct phase_decision *l);

bool phase_is_true(const struct mrequest_status *s,
                   enum mrequest_cond_type type); /* the condition is True */
bool phase_state_pending(enum mrequest_state state);
bool phase_ask_held(const struct phase_facts *f);
bool phase_prepares(const struct phase_decision *l);       /* there is something to prepare */
bool phase_last_rejection(const struct phase_decision *l); /* one more rejection closes it */

void phase_wake_at(struct phase_decision *l, usec_t wall); /* no later than then */
void phase_say(struct phase_decision *l, struct str reason, struct str message);
void phase_condition(struct phase_decision *l, enum mrequest_cond_type type,
                     enum mrequest_cond_status status, struct str reason, struct str message);
void phase_event(struct phase_decision *l, bool warning, struct str reason, struct str note);
void phase_note_limits(struct phase_decision *l);
void phase_count_rejection(struct phase_decision *l, struct str reason);

/* True when nothing of the preparation is on the node; otherwise asks for that, and the rest of the
 * plan waits: what was done under a grant is undone before the status says that it is over. */
bool phase_undone(struct phase_decision *l, bool uncordon);

void phase_number_grant(struct phase_decision *l);    /* it has a grant from now on */
void phase_enter_preparing(struct phase_decision *l); /* R2 */
void phase_enter_approved(struct phase_decision *l, bool adopted);
void phase_enter_in_progress(struct phase_decision *l, bool adopted);
/* Back into the queue, when nothing of the grant is left on the target. */
void phase_requeue(struct phase_decision *l, const struct phase_rollback *why);
/* A preparation that cannot go on; closes the request when that was its last chance. */
void phase_roll_back(struct phase_decision *l, const struct phase_rollback *why);
void phase_end(struct phase_decision *l, enum mrequest_result result, struct str reason,
               struct str message);
/* The same when nothing of the preparation is left on the target. */
void phase_undo_and_end(struct phase_decision *l, enum mrequest_result result, struct str reason,
                        struct str message);
void phase_complete(struct phase_decision *l, enum mrequest_result result);
