/*
 * phase_steps: the sentences of which phase_decide makes its answer; only phase.c includes it.
 *
 * Each writes into the plan what a request needs when it enters or leaves a phase. Pure, like all
 * that decides.
 */
#pragma once

#include "request/phase.h"

/* What one decision works on. */
struct plan_look {
    const struct mrequest *m;
    const struct phase_facts *f;
    struct arena *out;
    struct phase_plan *p;
    struct mr_status *s; /* the plan's */
};

usec_t plan_second_of(usec_t wall);
/* For what a time limit is counted from: never rounded down (INV-7). */
usec_t plan_second_after(usec_t wall);
/* When a time limit begins that begins now: by no clock earlier than it does. */
usec_t plan_begin(const struct plan_look *l);

bool plan_is(const struct mr_status *s, enum mr_condition_type type); /* it is True */
bool plan_pending(enum mr_state state);
bool plan_held(const struct phase_facts *f);
bool plan_prepares(const struct plan_look *l);    /* there is something to prepare */
bool plan_last_chance(const struct plan_look *l); /* one more rejection closes it */

void plan_look_at(struct plan_look *l, usec_t wall); /* no later than then */
void plan_say(struct plan_look *l, struct str reason, struct str message);
void plan_set(struct plan_look *l, enum mr_condition_type type, enum mr_truth truth,
              struct str reason, struct str message);
void plan_tell(struct plan_look *l, bool warning, struct str reason, struct str note);
void plan_note_limits(struct plan_look *l);
void plan_count_rejection(struct plan_look *l, struct str reason);

/* True when nothing of the preparation is on the node; otherwise asks for that, and the rest of the
 * plan waits: what was done under a grant is undone before anybody is told that it is over. */
bool plan_undone(struct plan_look *l, bool lift);

void plan_number(struct plan_look *l);          /* it has a grant from now on */
void plan_enter_preparing(struct plan_look *l); /* G4 */
void plan_enter_approved(struct plan_look *l, bool adopted);
void plan_enter_in_progress(struct plan_look *l, bool adopted);
/* Back into the queue, when nothing of the grant is left on the target. */
void plan_requeue(struct plan_look *l, const struct phase_rollback *why);
/* A preparation that cannot go on; closes the request when that was its last chance. */
void plan_roll_back(struct plan_look *l, const struct phase_rollback *why);
void plan_end(struct plan_look *l, enum mr_result result, struct str reason, struct str message);
/* The same when nothing of the preparation is left on the target. */
void plan_end_undone(struct plan_look *l, enum mr_result result, struct str reason,
                     struct str message);
void plan_finish(struct plan_look *l, enum mr_result result);
