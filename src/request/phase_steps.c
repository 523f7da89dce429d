#include "request/phase_steps.h"

/* ── small words ───────────────────────────────────────────────────────────────────────────── */

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

usec_t plan_second_of(usec_t wall)
{
    return wall / SECONDS(1) * SECONDS(1);
}

/* For what a time limit is counted from: never early, so never rounded down (INV-7). */
usec_t plan_second_after(usec_t wall)
{
    return plan_second_of(wall + SECONDS(1) - 1);
}

usec_t plan_begin(const struct plan_look *l)
{
    return plan_second_after(l->f->now + l->f->doubt);
}

void plan_look_at(struct plan_look *l, usec_t wall)
{
    l->p->next = MIN(l->p->next, wall);
}

void plan_say(struct plan_look *l, struct str reason, struct str message)
{
    l->s->reason = cut_text(reason, MREQUEST_REASON_MAX);
    l->s->message = cut_text(message, MREQUEST_TEXT_MAX);
}

void plan_set(struct plan_look *l, enum mr_condition_type type, enum mr_truth truth,
              struct str reason, struct str message)
{
    mr_condition_set(l->s, type,
                     &(struct mr_condition){
                         .truth = truth,
                         .since = plan_second_of(l->f->now),
                         .reason = cut_text(reason, MREQUEST_REASON_MAX),
                         .message = cut_text(message, MREQUEST_TEXT_MAX),
                     });
}

bool plan_is(const struct mr_status *s, enum mr_condition_type type)
{
    return s->conditions[type].truth == MR_TRUE;
}

void plan_tell(struct plan_look *l, bool warning, struct str reason, struct str note)
{
    ASSERT(l->p->news_n < PHASE_NEWS_MAX);
    l->p->news[l->p->news_n++] =
        (struct phase_news){ .warning = warning, .reason = reason, .note = note };
}

bool plan_pending(enum mr_state state)
{
    return state == MR_STATE_ABSENT || state == MR_STATE_PENDING;
}

bool plan_held(const struct phase_facts *f)
{
    return f->asked && f->ask.stage == ASK_HELD;
}

/* True when nothing of the preparation is on the node; otherwise asks for that, and the rest of the
 * plan waits: what was done under a grant is undone before anybody is told that it is over. */
bool plan_undone(struct plan_look *l, bool lift)
{
    l->p->prepare = false;
    if (!l->f->marked) {
        return true;
    }
    *l->s = l->m->status;
    l->p->undo = true;
    l->p->lift = lift;
    l->p->ask = PHASE_ASK_AS_IS;
    l->p->news_n = 0;
    return false;
}

/* ── entering a phase ──────────────────────────────────────────────────────────────────────── */

/* What a grant leaves in the status goes with it. */
static void plan_clear_grant(struct plan_look *l)
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

/* A number that is over never comes back: what others still take away of it is not this one's. */
void plan_number(struct plan_look *l)
{
    if (l->f->numbered && !mr_phase_granted(l->m->status.phase)) {
        l->s->grant = l->m->status.grant + 1;
    }
}

void plan_note_limits(struct plan_look *l)
{
    if (plan_held(l->f)) {
        l->s->limits = l->f->ask.limits;
        l->s->limit_n = MIN(l->f->ask.limit_n, MREQUEST_LIMITS_MAX);
    }
}

void plan_count_rejection(struct plan_look *l, struct str reason)
{
    l->s->rejections = l->m->status.rejections + 1;
    l->s->rejection_reason = cut_text(reason, MREQUEST_REASON_MAX);
    l->s->rejection_time = plan_begin(l);
}

/* One more rejection closes it. */
bool plan_last_chance(const struct plan_look *l)
{
    uint32_t most = l->f->options_known ? l->f->options.max_rejections : 0;
    return most > 0 && l->m->status.rejections + 1 >= most;
}

void plan_end(struct plan_look *l, enum mr_result result, struct str reason, struct str message)
{
    bool rejected = result == MR_RESULT_REJECTED;
    l->s->phase = rejected ? MR_PHASE_REJECTED : MR_PHASE_COMPLETED;
    l->s->result = result;
    l->s->step = MR_STEP_ABSENT;
    l->s->step_time = 0;
    l->s->deadline = 0;
    l->s->position = 0;
    l->s->finished = plan_second_of(l->f->now);
    l->p->release = true;
    plan_say(l, reason, message);
    plan_tell(l, rejected, rejected ? STR("MaintenanceRejected") : STR("MaintenanceCompleted"),
              message);
}

/* The actor's last word, or ours. */
void plan_end_undone(struct plan_look *l, enum mr_result result, struct str reason,
                     struct str message)
{
    if (l->f->marked && !l->f->options_known) {
        /* Whether the cordon stays is for the limits to say: they have to be known. */
        l->p->ask = PHASE_ASK_ADOPT;
        return;
    }
    const struct limit_drain *drain = &l->f->options.drain;
    if (plan_undone(l, !l->f->options_known || !drain->enabled || drain->uncordon_after)) {
        plan_end(l, result, reason, message);
    }
}

void plan_finish(struct plan_look *l, enum mr_result result)
{
    if (result == MR_RESULT_SUCCEEDED && l->m->failed) {
        result = MR_RESULT_FAILED;
    }
    plan_end_undone(
        l, result, mr_result_name(result),
        result == MR_RESULT_WITHDRAWN ? STR("the request was withdrawn before it was approved")
        : result == MR_RESULT_FAILED
            ? STR("the actor has reported that its work is over, and that it has failed")
            : STR("the actor has reported that its work is done"));
}

/* Back into the queue, when nothing of the grant is left on the target. */
void plan_requeue(struct plan_look *l, const struct phase_rollback *why)
{
    if (!plan_undone(l, /* lift= */ true)) {
        return;
    }
    plan_clear_grant(l);
    l->s->phase = MR_PHASE_PENDING;
    l->s->position = 0;
    l->p->release = true;
    l->p->ask = PHASE_ASK_AS_IS;
    plan_say(l, why->reason, why->message);
    plan_set(l, why->by, MR_FALSE, why->reason, why->message);
    plan_set(l, MR_SAFE, MR_FALSE, why->reason, why->message);
    if (plan_is(l->s, MR_TIMED_OUT)) {
        plan_set(l, MR_TIMED_OUT, MR_FALSE, STR("Requeued"),
                 STR("the request is in the queue again"));
    }
    if (why->rejection) {
        plan_count_rejection(l, why->reason);
        l->s->queued = plan_second_of(l->f->now);
        plan_tell(l, true, STR("MaintenanceRejected"), why->message);
    } else {
        plan_tell(l, false, STR("MaintenanceDelayed"), why->message);
    }
}

/* A preparation that cannot go on. The state is still Pending: nobody was told anything, so the
 * phase may be written first. */
void plan_roll_back(struct plan_look *l, const struct phase_rollback *why)
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
    if (why->rejection && plan_last_chance(l)) {
        if (plan_undone(l, /* lift= */ true)) {
            plan_count_rejection(l, why->reason);
            plan_end(l, MR_RESULT_REJECTED, why->reason, why->message);
        }
        return;
    }
    plan_requeue(l, why);
}

void plan_enter_approved(struct plan_look *l, bool adopted)
{
    plan_clear_grant(l);
    plan_number(l);
    l->s->prepared = l->m->status.prepared;
    l->s->cordoned = l->m->status.cordoned;
    l->s->reserved = l->m->status.reserved > 0 ? l->m->status.reserved : plan_second_of(l->f->now);
    l->s->phase = MR_PHASE_APPROVED;
    l->s->approved = plan_begin(l);
    l->s->position = 0;
    if (l->f->options_known && l->f->options.approved_s > 0) {
        l->s->deadline = l->s->approved + SECONDS(l->f->options.approved_s);
    }
    plan_note_limits(l);
    plan_set(l, MR_ACCEPTED, MR_TRUE, STR("Valid"), STR("the request can be granted"));
    plan_set(l, MR_LIMIT_AVAILABLE, MR_TRUE, adopted ? STR("Adopted") : STR("Reserved"),
             STR("a place is reserved"));
    plan_set(l, MR_PREPARED, MR_TRUE, adopted ? STR("Adopted") : STR("Prepared"),
             STR("the target is ready"));
    plan_set(l, MR_SAFE, MR_TRUE, adopted ? STR("Adopted") : STR("Checked"),
             STR("the actor may report InProgress and begin"));
    plan_say(l, adopted ? STR("Adopted") : STR("Approved"),
             STR("approved; waits for the actor to report InProgress"));
    if (adopted) {
        plan_tell(l, false, STR("RequestAdopted"),
                  STR("adopted a request that was approved before"));
    } else {
        plan_tell(
            l, false, STR("MaintenanceApproved"),
            arena_printf(l->out, "approved maintenance request, under limits %u", l->f->limit));
    }
}

void plan_enter_in_progress(struct plan_look *l, bool adopted)
{
    plan_number(l);
    l->s->phase = MR_PHASE_IN_PROGRESS;
    l->s->step = MR_STEP_ABSENT;
    l->s->step_time = 0;
    l->s->position = 0;
    l->s->deadline = 0;
    l->s->in_progress = plan_begin(l);
    if (l->s->approved == 0) {
        l->s->approved = l->s->in_progress;
    }
    if (l->f->options_known && l->f->options.in_progress_s > 0) {
        l->s->deadline = l->s->in_progress + SECONDS(l->f->options.in_progress_s);
    }
    plan_note_limits(l);
    if (plan_is(l->s, MR_TIMED_OUT)) {
        plan_set(l, MR_TIMED_OUT, MR_FALSE, STR("Begun"), STR("the actor has begun in time"));
    }
    plan_say(l, STR("InProgress"), STR("the actor is at work"));
    if (adopted) {
        plan_tell(l, false, STR("RequestAdopted"), STR("adopted a request whose work is going on"));
    }
}

bool plan_prepares(const struct plan_look *l)
{
    return l->m->type == TARGET_NODE && !l->m->unprepared &&
           (l->f->options.drain.enabled || l->f->options.detach.enabled);
}

/* G4: the reservation is on the server, and now the request says so. */
void plan_enter_preparing(struct plan_look *l)
{
    plan_clear_grant(l);
    plan_number(l);
    l->s->phase = MR_PHASE_PREPARING;
    l->s->reserved = plan_second_of(l->f->now);
    l->s->step_time = plan_begin(l);
    l->s->position = 0;
    plan_note_limits(l);
    plan_set(l, MR_ACCEPTED, MR_TRUE, STR("Valid"), STR("the request can be granted"));
    plan_set(l, MR_LIMIT_AVAILABLE, MR_TRUE, STR("Reserved"), STR("a place is reserved"));
    if (plan_prepares(l)) {
        l->s->step = MR_STEP_CORDON;
        l->s->prepared = true;
        plan_set(l, MR_PREPARED, MR_FALSE, STR("Cordoning"), STR("the node is being cordoned"));
        plan_say(l, STR("Preparing"), STR("a place is reserved; the target is being prepared"));
    } else {
        l->s->step = MR_STEP_FINAL_CHECK;
        plan_set(l, MR_PREPARED, MR_TRUE, STR("NotNeeded"), STR("nothing is to be prepared"));
        plan_say(l, STR("FinalCheck"), STR("a place is reserved; everything is checked once more"));
    }
}
