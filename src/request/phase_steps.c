/* What phase.c makes its decisions from: entering and leaving phases, conditions, Events. */
#include "request/phase_steps.h"

/* ── small helpers ─────────────────────────────────────────────────────────────────────────── */

/* A text of at most `most` bytes, cut between characters: the schema refuses longer ones. */
static struct str cut_text(struct str text, size_t most)
{
    if (text.n <= most) {
        return text;
    }
    size_t n = most;
    while (n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80) {
        n--;
    }
    return str_sub(text, 0, n);
}

usec_t phase_second_of(usec_t wall)
{
    return wall / SECONDS(1) * SECONDS(1);
}

usec_t phase_second_after(usec_t wall)
{
    return phase_second_of(wall + SECONDS(1) - 1);
}

usec_t phase_timer_start(const struct phase_decision *l)
{
    return phase_second_after(l->f->now + l->f->clock_lag);
}

void phase_wake_at(struct phase_decision *l, usec_t wall)
{
    l->p->next = MIN(l->p->next, wall);
}

void phase_say(struct phase_decision *l, struct str reason, struct str message)
{
    l->s->reason = cut_text(reason, MREQUEST_REASON_MAX);
    l->s->message = cut_text(message, MREQUEST_TEXT_MAX);
}

void phase_condition(struct phase_decision *l, enum mrequest_cond_type type,
                     enum mrequest_cond_status status, struct str reason, struct str message)
{
    mrequest_condition_set(l->s, type,
                           &(struct mrequest_condition){
                               .status = status,
                               .since = phase_second_of(l->f->now),
                               .reason = cut_text(reason, MREQUEST_REASON_MAX),
                               .message = cut_text(message, MREQUEST_TEXT_MAX),
                           });
}

bool phase_is_true(const struct mrequest_status *s, enum mrequest_cond_type type)
{
    return s->conditions[type].status == COND_TRUE;
}

void phase_event(struct phase_decision *l, bool warning, struct str reason, struct str note)
{
    ASSERT(l->p->event_n < PHASE_EVENTS_MAX);
    l->p->events[l->p->event_n++] =
        (struct phase_event){ .warning = warning, .reason = reason, .note = note };
}

bool phase_state_pending(enum mrequest_state state)
{
    return state == MR_STATE_ABSENT || state == MR_STATE_PENDING;
}

bool phase_ask_held(const struct phase_facts *f)
{
    return f->asked && f->ask.stage == ASK_HELD;
}

bool phase_undone(struct phase_decision *l, bool uncordon)
{
    l->p->prepare = false;
    if (!l->f->node_marked) {
        return true;
    }
    *l->s = l->m->status;
    l->p->undo = true;
    l->p->uncordon = uncordon;
    l->p->ask = PHASE_ASK_AS_IS;
    l->p->event_n = 0;
    return false;
}

/* ── entering a phase ──────────────────────────────────────────────────────────────────────── */

/* What a grant leaves in the status goes with it. */
static void phase_clear_grant(struct phase_decision *l)
{
    l->s->step = MR_STEP_ABSENT;
    l->s->step_time = 0;
    l->s->reserved = 0;
    l->s->approved = 0;
    l->s->in_progress = 0;
    l->s->deadline = 0;
    l->s->limits = NULL;
    l->s->limit_n = 0;
    l->s->prepared = false;
    l->s->cordoned = false;
    l->s->pods_left = 0;
    l->s->volumes_left = 0;
    l->s->blocked = NULL;
    l->s->blocked_n = 0;
}

/* A number is used once, so what another controller still removes of an older grant does not touch
 * this one. */
void phase_number_grant(struct phase_decision *l)
{
    if (l->f->grants_numbered && !mrequest_phase_granted(l->m->status.phase)) {
        l->s->grant = l->m->status.grant + 1;
    }
}

void phase_note_limits(struct phase_decision *l)
{
    if (phase_ask_held(l->f)) {
        l->s->limits = l->f->ask.limits;
        l->s->limit_n = MIN(l->f->ask.limit_n, MREQUEST_LIMITS_MAX);
    }
}

void phase_count_rejection(struct phase_decision *l, struct str reason)
{
    l->s->rejections = l->m->status.rejections + 1;
    l->s->rejection_reason = cut_text(reason, MREQUEST_REASON_MAX);
    l->s->rejection_time = phase_timer_start(l);
}

bool phase_last_rejection(const struct phase_decision *l)
{
    uint32_t most = l->f->options_known ? l->f->options.max_rejections : 0;
    return most > 0 && l->m->status.rejections + 1 >= most;
}

void phase_end(struct phase_decision *l, enum mrequest_result result, struct str reason,
               struct str message)
{
    bool rejected = result == MR_RESULT_REJECTED;
    l->s->phase = rejected ? MR_PHASE_REJECTED : MR_PHASE_COMPLETED;
    l->s->result = result;
    l->s->step = MR_STEP_ABSENT;
    l->s->step_time = 0;
    l->s->deadline = 0;
    l->s->position = 0;
    l->s->finished = phase_second_of(l->f->now);
    phase_say(l, reason, message);
    phase_event(l, rejected, rejected ? STR("MaintenanceRejected") : STR("MaintenanceCompleted"),
                message);
}

void phase_undo_and_end(struct phase_decision *l, enum mrequest_result result, struct str reason,
                        struct str message)
{
    if (l->f->node_marked && !l->f->options_known) {
        /* Whether the cordon stays is for the limits to say: they have to be known. */
        l->p->ask = PHASE_ASK_ADOPT;
        return;
    }
    const struct limit_drain *drain = &l->f->options.drain;
    if (phase_undone(l, !l->f->options_known || !drain->enabled || drain->uncordon_after)) {
        phase_end(l, result, reason, message);
    }
}

void phase_complete(struct phase_decision *l, enum mrequest_result result)
{
    if (result == MR_RESULT_SUCCEEDED && l->m->failed) {
        result = MR_RESULT_FAILED;
    } else if (result == MR_RESULT_SUCCEEDED && l->m->withdrawn &&
               l->m->status.phase != MR_PHASE_IN_PROGRESS) {
        result = MR_RESULT_WITHDRAWN;
    }
    phase_undo_and_end(
        l, result, mrequest_result_name(result),
        result == MR_RESULT_WITHDRAWN ? STR("the request was withdrawn before its work began")
        : result == MR_RESULT_FAILED
            ? STR("the actor has reported that its work is over, and that it has failed")
            : STR("the actor has reported that its work is done"));
}

void phase_requeue(struct phase_decision *l, const struct phase_rollback *why)
{
    if (!phase_undone(l, /* uncordon= */ true)) {
        return;
    }
    phase_clear_grant(l);
    l->s->phase = MR_PHASE_PENDING;
    l->s->position = 0;
    l->p->ask = PHASE_ASK_AS_IS;
    phase_say(l, why->reason, why->message);
    phase_condition(l, why->by, COND_FALSE, why->reason, why->message);
    phase_condition(l, COND_SAFE, COND_FALSE, why->reason, why->message);
    if (phase_is_true(l->s, COND_TIMED_OUT)) {
        phase_condition(l, COND_TIMED_OUT, COND_FALSE, STR("Requeued"),
                        STR("the request is in the queue again"));
    }
    if (why->rejection) {
        phase_count_rejection(l, why->reason);
        l->s->queued = phase_second_of(l->f->now);
        phase_event(l, true, STR("MaintenanceRejected"), why->message);
    } else {
        phase_event(l, false, STR("MaintenanceDelayed"), why->message);
    }
}

/* The state is still Pending, so the actor has not been promised anything: the phase may be written
 * first. */
void phase_roll_back(struct phase_decision *l, const struct phase_rollback *why)
{
    l->p->rollback = *why;
    l->p->rollback.wanted = true;
    l->p->check = false;
    if (l->m->state == MR_STATE_APPROVED) {
        l->p->state = MR_STATE_PENDING;
        l->p->prepare = false;
        *l->s = l->m->status;
        return;
    }
    if (why->rejection && phase_last_rejection(l)) {
        if (phase_undone(l, /* uncordon= */ true)) {
            phase_count_rejection(l, why->reason);
            phase_end(l, MR_RESULT_REJECTED, why->reason, why->message);
        }
        return;
    }
    phase_requeue(l, why);
}

void phase_enter_approved(struct phase_decision *l, bool adopted)
{
    phase_clear_grant(l);
    phase_number_grant(l);
    l->s->prepared = l->m->status.prepared;
    l->s->cordoned = l->m->status.cordoned;
    l->s->reserved = l->m->status.reserved > 0 ? l->m->status.reserved : phase_second_of(l->f->now);
    l->s->phase = MR_PHASE_APPROVED;
    l->s->approved = phase_timer_start(l);
    l->s->position = 0;
    if (l->f->options_known && l->f->options.approved_s > 0) {
        l->s->deadline = l->s->approved + SECONDS(l->f->options.approved_s);
    }
    phase_note_limits(l);
    phase_condition(l, COND_ACCEPTED, COND_TRUE, STR("Valid"), STR("the request can be granted"));
    phase_condition(l, COND_LIMIT_AVAILABLE, COND_TRUE, adopted ? STR("Adopted") : STR("Reserved"),
                    STR("a place is reserved"));
    phase_condition(l, COND_PREPARED, COND_TRUE, adopted ? STR("Adopted") : STR("Prepared"),
                    STR("the target is ready"));
    phase_condition(l, COND_SAFE, COND_TRUE, adopted ? STR("Adopted") : STR("Checked"),
                    STR("the actor may report InProgress and begin"));
    phase_say(l, adopted ? STR("Adopted") : STR("Approved"),
              STR("approved; waits for the actor to report InProgress"));
    if (adopted) {
        phase_event(l, false, STR("RequestAdopted"),
                    STR("adopted a request that was approved before"));
    } else {
        phase_event(l, false, STR("MaintenanceApproved"),
                    l->f->limit == UINT32_MAX
                        ? STR("approved maintenance request, no limit applies")
                        : arena_printf(l->out, "approved maintenance request, under limits %u",
                                       l->f->limit));
    }
}

void phase_enter_in_progress(struct phase_decision *l, bool adopted)
{
    phase_number_grant(l);
    l->s->phase = MR_PHASE_IN_PROGRESS;
    l->s->step = MR_STEP_ABSENT;
    l->s->step_time = 0;
    l->s->position = 0;
    l->s->deadline = 0;
    l->s->in_progress = phase_timer_start(l);
    if (l->s->approved == 0) {
        l->s->approved = l->s->in_progress;
    }
    if (l->f->options_known && l->f->options.in_progress_s > 0) {
        l->s->deadline = l->s->in_progress + SECONDS(l->f->options.in_progress_s);
    }
    phase_note_limits(l);
    if (phase_is_true(l->s, COND_TIMED_OUT)) {
        phase_condition(l, COND_TIMED_OUT, COND_FALSE, STR("Begun"),
                        STR("the actor has begun in time"));
    }
    phase_say(l, STR("InProgress"), STR("the actor is at work"));
    if (adopted) {
        phase_event(l, false, STR("RequestAdopted"),
                    STR("adopted a request whose work is going on"));
    }
}

bool phase_prepares(const struct phase_decision *l)
{
    return l->m->type == TARGET_NODE && !l->m->unprepared &&
           (l->f->options.drain.enabled || l->f->options.detach.enabled);
}

/* The reservation is on the server, and now the request says so (R2). */
void phase_enter_preparing(struct phase_decision *l)
{
    phase_clear_grant(l);
    phase_number_grant(l);
    l->s->phase = MR_PHASE_PREPARING;
    l->s->reserved = phase_second_of(l->f->now);
    l->s->step_time = phase_timer_start(l);
    l->s->position = 0;
    phase_note_limits(l);
    phase_condition(l, COND_ACCEPTED, COND_TRUE, STR("Valid"), STR("the request can be granted"));
    phase_condition(l, COND_LIMIT_AVAILABLE, COND_TRUE, STR("Reserved"),
                    STR("a place is reserved"));
    if (phase_prepares(l)) {
        l->s->step = MR_STEP_CORDON;
        l->s->prepared = true;
        phase_condition(l, COND_PREPARED, COND_FALSE, STR("Cordoning"),
                        STR("the node is being cordoned"));
        phase_say(l, STR("Preparing"), STR("a place is reserved; the target is being prepared"));
    } else {
        l->s->step = MR_STEP_FINAL_CHECK;
        phase_condition(l, COND_PREPARED, COND_TRUE, STR("NotNeeded"),
                        STR("nothing is to be prepared"));
        phase_say(l, STR("FinalCheck"),
                  STR("a place is reserved; everything is checked once more"));
    }
}
