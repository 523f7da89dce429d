/* The decision about a MaintenanceRequest: one function a phase. */
#include "request/phase.h"

#include "request/phase_steps.h"

#define LEDGER_INIT_WAIT SECONDS(1) /* until a new limit has its ledgerInitTime */

usec_t phase_timer(const struct mrequest_status *status)
{
    switch (status->phase) {
    case MR_PHASE_APPROVED:
        return status->approved;
    case MR_PHASE_IN_PROGRESS:
        return status->in_progress;
    default:
        return 0;
    }
}

usec_t phase_backoff_end(const struct phase_facts *f)
{
    if (f->rejected == 0 || !f->options_known) {
        return 0;
    }
    return f->rejected + SECONDS(f->options.rejection_backoff_s);
}

static const enum prepare_step prepare_steps[] = {
    [MR_STEP_ABSENT] = PREPARE_CORDON,    [MR_STEP_CORDON] = PREPARE_CORDON,
    [MR_STEP_DRAIN] = PREPARE_DRAIN,      [MR_STEP_DRAIN_GRACE] = PREPARE_DRAIN_GRACE,
    [MR_STEP_DETACH] = PREPARE_DETACH,    [MR_STEP_DETACH_GRACE] = PREPARE_DETACH_GRACE,
    [MR_STEP_FINAL_CHECK] = PREPARE_DONE,
};

enum prepare_step phase_prepare_step(enum mrequest_step step)
{
    return prepare_steps[step];
}

static enum mrequest_step status_step(enum prepare_step step)
{
    for (uint32_t i = MR_STEP_CORDON; i < ARRAY_LEN(prepare_steps); i++) {
        if (prepare_steps[i] == step) {
            return (enum mrequest_step)i;
        }
    }
    return MR_STEP_FINAL_CHECK;
}

/* ── Pending ───────────────────────────────────────────────────────────────────────────────── */

/* The request stays in the queue, and its status says why. */
static void wait_in_queue(struct phase_decision *l)
{
    const struct ask_view *ask = &l->f->ask;
    phase_wake_at(l, ask->next);
    if (ask->why == ASK_WHY_NONE || (ask->why == ASK_WHY_NOT_COMPUTED && ask->message.n == 0)) {
        return; /* the arbiter has not decided about it yet */
    }
    l->s->phase = MR_PHASE_PENDING;
    l->s->position = ask->position;
    phase_say(l, ask->reason, ask->message);
    if (ask->why == ASK_WHY_TARGET_NOT_FOUND) {
        phase_condition(l, COND_ACCEPTED, COND_FALSE, STR("TargetNotFound"), ask->message);
        l->s->reason = STR("TargetNotFound");
        return;
    }
    phase_condition(l, COND_ACCEPTED, COND_TRUE, STR("Valid"), STR("the request can be granted"));
    phase_condition(l, COND_LIMIT_AVAILABLE, COND_FALSE, ask->reason, ask->message);
}

static void decide_queue(struct phase_decision *l)
{
    const struct phase_facts *f = l->f;
    struct str reason;
    struct str problem = mrequest_invalid(l->m, &reason);
    if (l->s->queued == 0) {
        l->s->queued = phase_second_of(l->m->created > 0 ? l->m->created : f->now);
    }
    if (!phase_undone(l, /* uncordon= */ true)) {
        return; /* a cordon that came late, of a grant that is over */
    }
    /* Something is there for a grant that does not come: it is over before it began. Likewise for
     * one that the status has lost. If the status is merely old, this write conflicts. */
    uint32_t over = MAX(f->ask.must_close_grant ? f->ask.grant : 0, f->ask.newer_grant);
    if (over > l->s->grant) {
        l->s->phase = MR_PHASE_PENDING;
        l->s->grant = over;
    }
    if (l->m->deleting || f->releasing) {
        l->p->ask = PHASE_ASK_RELEASE;
        return;
    }
    if (problem.n > 0) {
        l->s->phase = MR_PHASE_PENDING;
        l->s->position = 0;
        l->p->ask = PHASE_ASK_RELEASE;
        phase_say(l, reason, problem);
        phase_condition(l, COND_ACCEPTED, COND_FALSE, reason, problem);
        return;
    }
    if (f->pause_until > f->now) {
        l->p->ask = PHASE_ASK_RELEASE;
        phase_wake_at(l, f->pause_until);
        return;
    }
    l->p->ask = PHASE_ASK_RESERVE;
    l->p->ask_state = mrequest_phase_name(MR_PHASE_PREPARING);
    usec_t backoff = phase_backoff_end(f);
    if (f->now < backoff) {
        l->p->ask_last = true;
        phase_wake_at(l, backoff);
    }
    if (phase_ask_held(f)) {
        phase_enter_preparing(l);
    } else if (f->asked && f->ask.stage == ASK_WAITING) {
        wait_in_queue(l);
    } else if (l->m->status.phase == MR_PHASE_ABSENT) {
        *l->s = l->m->status; /* there is nothing to say before the first answer */
    }
}

/* Whether Approved or InProgress of a request that we never granted is taken over (R17). False with
 * `*ret_known` false: the limits have not said yet whether they were there before the request. */
static bool foreign_is_adopted(struct phase_decision *l, bool *ret_known)
{
    const struct phase_facts *f = l->f;
    struct str ignored;
    *ret_known = true;
    if (mrequest_invalid(l->m, &ignored).n > 0) {
        return false;
    }
    if (f->trust_approval) {
        return true;
    }
    if (l->m->status.phase != MR_PHASE_ABSENT) {
        return false; /* a request of ours: what it was granted is over, or never was */
    }
    if (f->ask_adopts) {
        return true; /* judged before: it is being asked again as a fact */
    }
    *ret_known = f->asked && f->options_known &&
                 (f->ask.limit_n == 0 || f->options.ledger_init_time != USEC_NEVER);
    return *ret_known && f->ask.limit_n > 0 && l->m->created < f->options.ledger_init_time;
}

static void take_back_forged(struct phase_decision *l)
{
    l->p->state = MR_STATE_PENDING;
    phase_event(l, true, STR("ForgedApproval"),
                l->m->state == MR_STATE_APPROVED
                    ? STR("the state was set to Approved by somebody else; it is Pending again")
                    : STR("the state was set to InProgress without an approval; it is Pending "
                          "again"));
}

static void adopt_in_progress(struct phase_decision *l)
{
    phase_condition(l, COND_ACCEPTED, COND_TRUE, STR("Valid"), STR("the request can be granted"));
    phase_condition(l, COND_LIMIT_AVAILABLE, COND_TRUE, STR("Adopted"),
                    STR("work that is going on counts"));
    if (l->s->queued == 0) {
        l->s->queued = phase_second_of(l->m->created > 0 ? l->m->created : l->f->now);
    }
    phase_enter_in_progress(l, /* adopted= */ true);
}

/* Approved or InProgress, and not by us: adopted from the one before us, or taken back (R17). */
static void decide_foreign_state(struct phase_decision *l)
{
    bool approved = l->m->state == MR_STATE_APPROVED;
    bool known;
    bool adopt = foreign_is_adopted(l, &known);
    if (!known) {
        l->p->ask = PHASE_ASK_RESERVE;
        l->p->ask_state = mrequest_phase_name(MR_PHASE_PREPARING);
        phase_wake_at(l, l->f->now + LEDGER_INIT_WAIT);
        return;
    }
    if (!adopt) {
        take_back_forged(l);
        return;
    }
    l->p->ask = PHASE_ASK_ADOPT;
    l->p->ask_state = mrequest_phase_name(approved ? MR_PHASE_APPROVED : MR_PHASE_IN_PROGRESS);
    if (!approved) {
        adopt_in_progress(l);
    } else if (phase_ask_held(l->f)) {
        phase_enter_approved(l, /* adopted= */ true);
    }
}

static void decide_pending(struct phase_decision *l)
{
    switch (l->m->state) {
    case MR_STATE_ABSENT:
    case MR_STATE_PENDING:
        decide_queue(l);
        break;
    case MR_STATE_APPROVED:
    case MR_STATE_IN_PROGRESS:
        decide_foreign_state(l);
        break;
    case MR_STATE_COMPLETED:
        phase_complete(l, MR_RESULT_WITHDRAWN);
        break;
    case MR_STATE_OTHER:
        break;
    }
}

/* ── Preparing ─────────────────────────────────────────────────────────────────────────────── */

static struct phase_rollback rollback_for(enum mrequest_cond_type by, struct str reason,
                                          struct str message)
{
    return (
        struct phase_rollback){ .wanted = true, .by = by, .reason = reason, .message = message };
}

/* What makes the grant void before the actor has seen it; nothing: `wanted` is false. */
static struct phase_rollback grant_rollback(const struct phase_decision *l)
{
    const struct phase_facts *f = l->f;
    if (f->rollback.wanted) {
        return f->rollback;
    }
    bool waits = f->asked && f->ask.stage == ASK_WAITING;
    if (f->target_gone || (waits && f->ask.why == ASK_WHY_TARGET_NOT_FOUND)) {
        return rollback_for(COND_ACCEPTED, STR("TargetNotFound"), STR("the target was deleted"));
    }
    if (f->target_changed) {
        return rollback_for(COND_SAFE, STR("TargetReplaced"),
                            STR("the target was replaced by one of that name"));
    }
    if (waits && (f->ask.newer_grant > 0 ||
                  (f->ask.why != ASK_WHY_NONE && f->ask.why != ASK_WHY_NOT_COMPUTED))) {
        return rollback_for(COND_LIMIT_AVAILABLE, f->ask.reason, f->ask.message);
    }
    if (f->ask.paused.n > 0) {
        return rollback_for(COND_LIMIT_AVAILABLE, STR("Paused"), f->ask.paused);
    }
    if (f->check == PHASE_CHECK_FAILED) {
        return rollback_for(COND_SAFE, STR("CheckFailed"), f->check_error);
    }
    struct phase_rollback why = { 0 };
    if (f->preparing && f->preparation.rejected) {
        bool detach = f->preparation.step >= PREPARE_DETACH;
        why = rollback_for(COND_PREPARED, detach ? STR("DetachTimeout") : STR("DrainTimeout"),
                           f->preparation.message);
        why.rejection = true;
    }
    return why;
}

static void final_check(struct phase_decision *l)
{
    if (l->f->check == PHASE_CHECK_PASSED) {
        l->p->state = MR_STATE_APPROVED;
        l->p->approves = true;
    } else {
        l->p->check = true;
    }
}

static void continue_preparing(struct phase_decision *l)
{
    const struct prepare_view *view = &l->f->preparation;
    if (l->m->status.step == MR_STEP_FINAL_CHECK || !phase_prepares(l)) {
        if (l->m->status.step != MR_STEP_FINAL_CHECK) {
            l->s->step = MR_STEP_FINAL_CHECK;
            l->s->step_time = phase_timer_start(l);
            phase_condition(l, COND_PREPARED, COND_TRUE, STR("NotNeeded"),
                            STR("nothing is to be prepared"));
            return;
        }
        final_check(l);
        return;
    }
    l->p->prepare = true;
    if (!l->f->preparing) {
        return;
    }
    l->s->prepared = true;
    l->s->cordoned = view->cordoned;
    l->s->pods_left = view->pods_left;
    l->s->volumes_left = view->volumes_left;
    l->s->blocked = view->blocked_by;
    l->s->blocked_n = MIN(view->blocked_n, MREQUEST_BLOCKED_MAX);
    l->s->step = status_step(view->step);
    if (l->s->step != l->m->status.step) {
        l->s->step_time = phase_second_after(MAX(view->step_time, 0));
    }
    l->s->deadline = view->deadline == USEC_NEVER ? 0 : phase_second_after(view->deadline);
    if (view->step == PREPARE_DONE) {
        phase_condition(l, COND_PREPARED, COND_TRUE, STR("Prepared"), STR("the target is ready"));
        phase_say(l, STR("FinalCheck"),
                  STR("the target is ready; everything is checked once more"));
        l->s->deadline = 0;
    } else {
        struct str reason = view->reason.n > 0 ? view->reason : STR("Preparing");
        phase_condition(l, COND_PREPARED, COND_FALSE, reason, view->message);
        phase_say(l, reason, view->message);
    }
}

static void decide_preparing(struct phase_decision *l)
{
    const struct phase_facts *f = l->f;
    l->p->ask = PHASE_ASK_RESERVE;
    l->p->ask_state = mrequest_phase_name(MR_PHASE_PREPARING);
    if (l->m->state == MR_STATE_COMPLETED) {
        phase_complete(l, f->approved_by_us ? MR_RESULT_SUCCEEDED : MR_RESULT_WITHDRAWN);
        return;
    }
    if (l->m->state == MR_STATE_IN_PROGRESS) {
        /* Approved is only ever written after the status has said FinalCheck. */
        if (l->m->status.step != MR_STEP_FINAL_CHECK && !f->trust_approval) {
            l->p->prepare = f->preparing;
            take_back_forged(l);
            return;
        }
        l->p->ask = PHASE_ASK_ADOPT;
        phase_enter_in_progress(l, /* adopted= */ !phase_ask_held(f));
        return;
    }
    bool approved = l->m->state == MR_STATE_APPROVED;
    if (approved && (f->approved_by_us || f->trust_approval)) {
        l->p->ask = f->trust_approval ? PHASE_ASK_ADOPT : PHASE_ASK_RESERVE;
        phase_enter_approved(l, /* adopted= */ false);
        return;
    }
    struct phase_rollback why = grant_rollback(l);
    if (why.wanted) {
        phase_roll_back(l, &why);
        return;
    }
    if (!phase_ask_held(f)) {
        return; /* the reservations are being read, or cannot be read now */
    }
    if (!approved) {
        continue_preparing(l);
    } else if (f->check == PHASE_CHECK_PASSED) {
        phase_enter_approved(l, /* adopted= */ false);
    } else {
        l->p->check = true;
    }
}

/* ── Approved, InProgress, Expired ─────────────────────────────────────────────────────────── */

/* Whether a time limit has run out; otherwise the request is decided again then. 0 = none. */
static bool time_limit_over(struct phase_decision *l, uint32_t seconds)
{
    if (seconds == 0 || !l->f->options_known) {
        return false;
    }
    usec_t due = SECONDS(seconds) + l->f->tolerance;
    if (l->f->elapsed >= due) {
        return true;
    }
    phase_wake_at(l, l->f->now + (due - l->f->elapsed));
    return false;
}

/* The limits may have changed under a grant: what the status says of them follows. A time limit
 * that had run out and was extended has not run out any more. */
static void update_limits(struct phase_decision *l, usec_t begin, uint32_t seconds)
{
    if (phase_ask_held(l->f)) {
        phase_note_limits(l);
    }
    if (l->f->options_known) {
        l->s->deadline = seconds > 0 ? begin + SECONDS(seconds) : 0;
        if (phase_is_true(&l->m->status, COND_TIMED_OUT)) {
            phase_condition(l, COND_TIMED_OUT, COND_FALSE, STR("Extended"),
                            STR("the time limit was changed"));
        }
    }
}

static const struct phase_rollback rollback_given_back = {
    .by = COND_LIMIT_AVAILABLE,
    .reason = STR_INIT("GivenBack"),
    .message = STR_INIT("the actor has given its approval back and queues again"),
};

/* By the actor, or because a time limit has run out: the state is Pending again. */
static void return_to_pending(struct phase_decision *l, const struct phase_rollback *why)
{
    phase_requeue(l, why);
    if (!l->p->undo) {
        l->s->queued = phase_second_of(l->f->now);
        l->s->result = MR_RESULT_ABSENT;
        if (!why->rejection) {
            l->p->event_n = 0; /* the actor knows */
        }
    }
}

static void decide_approved(struct phase_decision *l)
{
    const struct phase_facts *f = l->f;
    bool close = (f->options_known && f->options.on_approved == ON_APPROVED_CLOSE) ||
                 phase_last_rejection(l);
    bool timed_out = phase_is_true(&l->m->status, COND_TIMED_OUT);
    struct phase_rollback why = rollback_given_back;
    l->p->ask = PHASE_ASK_ADOPT;
    l->p->ask_state = mrequest_phase_name(MR_PHASE_APPROVED);
    if (timed_out) {
        why = rollback_for(COND_LIMIT_AVAILABLE, STR("ApprovedTimeout"),
                           STR("the actor has not begun in time; its approval was taken back"));
        why.rejection = true;
    }
    if (l->m->state == MR_STATE_COMPLETED && timed_out && close) {
        phase_count_rejection(l, why.reason);
        phase_undo_and_end(l, MR_RESULT_REJECTED, why.reason, why.message);
    } else if (l->m->state == MR_STATE_COMPLETED) {
        phase_complete(l, MR_RESULT_SUCCEEDED);
    } else if (l->m->state == MR_STATE_IN_PROGRESS) {
        l->p->ask_state = mrequest_phase_name(MR_PHASE_IN_PROGRESS);
        phase_enter_in_progress(l, /* adopted= */ false);
    } else if (phase_state_pending(l->m->state)) {
        return_to_pending(l, &why);
    } else if (time_limit_over(l, f->options.approved_s)) {
        if (timed_out) {
            l->p->state = close ? MR_STATE_COMPLETED : MR_STATE_PENDING;
        } else {
            phase_condition(l, COND_TIMED_OUT, COND_TRUE, STR("ApprovedTimeout"),
                            STR("the actor has not begun in time"));
        }
    } else {
        update_limits(l, l->m->status.approved, f->options.approved_s);
    }
}

static void decide_expire(struct phase_decision *l)
{
    const struct limit_drain *drain = &l->f->options.drain;
    /* The limits will not be asked again, so what they say of the cordon is done now: either it
     * keeps our mark and goes with the request, or it stays for good. */
    if (drain->enabled && !drain->uncordon_after && !phase_undone(l, /* uncordon= */ false)) {
        return;
    }
    l->s->phase = MR_PHASE_EXPIRED;
    phase_say(l, STR("InProgressTimeout"),
              STR("the actor has not finished in time; its place is free for others"));
    phase_condition(l, COND_TIMED_OUT, COND_TRUE, STR("InProgressTimeout"),
                    STR("the actor has not finished in time"));
    phase_event(l, true, STR("MaintenanceExpired"), l->s->message);
}

static void decide_in_progress_timeout(struct phase_decision *l, bool timed_out)
{
    enum on_in_progress action = l->f->options.on_in_progress;
    if (action == ON_PROGRESS_RELEASE) {
        decide_expire(l);
        return;
    }
    if (!timed_out) {
        phase_condition(l, COND_TIMED_OUT, COND_TRUE, STR("InProgressTimeout"),
                        STR("the actor has not finished in time"));
        if (action == ON_PROGRESS_HOLD) {
            phase_event(l, true, STR("MaintenanceExpired"),
                        STR("the actor has not finished in time; its place is kept"));
        }
        return;
    }
    if (action != ON_PROGRESS_HOLD) {
        bool close = action == ON_PROGRESS_CLOSE || phase_last_rejection(l);
        l->p->state = close ? MR_STATE_COMPLETED : MR_STATE_PENDING;
    }
}

static void decide_in_progress(struct phase_decision *l)
{
    const struct phase_facts *f = l->f;
    struct str ignored;
    bool timed_out = phase_is_true(&l->m->status, COND_TIMED_OUT);
    bool requeues = f->options_known && f->options.on_in_progress == ON_PROGRESS_REQUEUE;
    bool closes = (f->options_known && f->options.on_in_progress == ON_PROGRESS_CLOSE) ||
                  (requeues && phase_last_rejection(l));
    struct phase_rollback why = rollback_given_back;
    bool valid = mrequest_invalid(l->m, &ignored).n == 0;
    l->p->ask = valid ? PHASE_ASK_ADOPT : PHASE_ASK_RELEASE;
    l->p->ask_state = mrequest_phase_name(MR_PHASE_IN_PROGRESS);
    if (timed_out && (requeues || closes)) {
        why = rollback_for(COND_LIMIT_AVAILABLE, STR("InProgressTimeout"),
                           STR("the actor has not finished in time"));
        why.rejection = true;
    }
    if (l->m->state == MR_STATE_COMPLETED && timed_out && closes) {
        phase_count_rejection(l, why.reason);
        phase_undo_and_end(l, MR_RESULT_REJECTED, why.reason, why.message);
    } else if (l->m->state == MR_STATE_COMPLETED) {
        phase_complete(l, MR_RESULT_SUCCEEDED);
    } else if (phase_state_pending(l->m->state)) {
        return_to_pending(l, &why);
    } else if (l->m->state == MR_STATE_IN_PROGRESS &&
               time_limit_over(l, f->options.in_progress_s)) {
        decide_in_progress_timeout(l, timed_out);
    } else {
        update_limits(l, l->m->status.in_progress, f->options.in_progress_s);
    }
}

static void decide_expired(struct phase_decision *l)
{
    l->p->ask = PHASE_ASK_RELEASE;
    if (l->m->state == MR_STATE_COMPLETED && phase_undone(l, /* uncordon= */ true)) {
        enum mrequest_result result = l->m->failed ? MR_RESULT_FAILED : MR_RESULT_SUCCEEDED;
        phase_end(l, result, mrequest_result_name(result),
                  l->m->failed ? STR("the actor has reported, late, that its work has failed")
                               : STR("the actor has reported, late, that its work is done"));
    } else if (phase_state_pending(l->m->state)) {
        return_to_pending(l, &rollback_given_back);
    }
    if (l->p->ask == PHASE_ASK_AS_IS) {
        l->p->ask = PHASE_ASK_RELEASE;
    }
}

/* ── Completed, Rejected ───────────────────────────────────────────────────────────────────── */

static void decide_ended(struct phase_decision *l)
{
    /* Another controller may have ended it while this one made a cordon: what is held stays until
     * that is gone. */
    if (!phase_undone(l, /* uncordon= */ true)) {
        return;
    }
    l->p->ask = PHASE_ASK_RELEASE;
    if (l->s->phase == MR_PHASE_REJECTED && l->m->state != MR_STATE_COMPLETED) {
        l->p->state = MR_STATE_COMPLETED;
        return;
    }
    if (l->s->finished == 0) {
        l->s->finished = phase_second_of(l->f->now);
    }
    usec_t ttl = l->m->has_ttl ? SECONDS(l->m->ttl_s) : l->f->finished_ttl;
    if (l->m->deleting || (!l->m->has_ttl && ttl == 0)) {
        return;
    }
    usec_t due = l->s->finished + ttl;
    if (l->f->now >= due && l->m->status.finished > 0) {
        l->p->delete_object = true;
    } else {
        phase_wake_at(l, due);
    }
}

void phase_decide(const struct maintenance_request *m, const struct phase_facts *f,
                  struct arena *out, struct phase_plan *ret)
{
    static void (*const deciders[MR_PHASES])(struct phase_decision * l) = {
        [MR_PHASE_ABSENT] = decide_pending,          [MR_PHASE_PENDING] = decide_pending,
        [MR_PHASE_PREPARING] = decide_preparing,     [MR_PHASE_APPROVED] = decide_approved,
        [MR_PHASE_IN_PROGRESS] = decide_in_progress, [MR_PHASE_EXPIRED] = decide_expired,
        [MR_PHASE_COMPLETED] = decide_ended,         [MR_PHASE_REJECTED] = decide_ended,
    };
    *ret = (struct phase_plan){ .status = m->status, .ask = PHASE_ASK_AS_IS, .next = USEC_NEVER };
    struct phase_decision l = { .m = m, .f = f, .out = out, .p = ret, .s = &ret->status };
    if (m->state == MR_STATE_OTHER) {
        return;
    }
    deciders[m->status.phase](&l);
    ASSERT(ret->state != MR_STATE_APPROVED || ret->approves);                    /* R2 */
    ASSERT(m->state != MR_STATE_IN_PROGRESS || ret->state != MR_STATE_APPROVED); /* R15 */
    bool had = mrequest_phase_granted(m->status.phase);
    bool has = mrequest_phase_granted(ret->status.phase);
    ASSERT(ret->status.grant >= m->status.grant); /* R2, R3: what is over stays so */
    ASSERT(had || !has || !f->grants_numbered || ret->status.grant > m->status.grant);
    ASSERT(!had || !has || ret->status.grant == m->status.grant);
    if (ret->status.phase == MR_PHASE_ABSENT) {
        return; /* nothing is said yet */
    }
    ret->status.generation = m->generation;
    for (uint32_t i = 0; i < MR_CONDITIONS; i++) {
        ret->status.conditions[i].generation =
            ret->status.conditions[i].status == COND_ABSENT ? 0 : m->generation;
    }
}
