#include "operation/visit_steps.h"

#define SETTLE_TIMEOUT MINUTES(15) /* on top of min_ready: a machine that flaps has failed */

/* Exit codes that the request is completed with; 75 is EX_TEMPFAIL of sysexits.h. */
#define EXIT_DONE STR("0")
#define EXIT_FAILED STR("1")
#define EXIT_LOST STR("75")

/* What one decision works on. */
struct visit {
    const struct visit_record *was;
    const struct visit_facts *f;
    struct arena *out;
    struct visit_record *record; /* that of the plan */
    struct visit_plan *plan;
};

bool visit_touched(const struct visit_record *v)
{
    return v->phase > VISIT_REQUESTED;
}

static void visit_enter(struct visit *v, enum visit_phase phase, usec_t timeout)
{
    v->record->phase = phase;
    v->record->phase_time = v->f->now;
    if (v->record->began == 0 && (phase == VISIT_CORDONING || phase == VISIT_RUNNING)) {
        v->record->began = v->f->now;
    }
    v->record->deadline = timeout <= 0 || timeout == USEC_NEVER ? USEC_NEVER : v->f->now + timeout;
}

static bool visit_overdue(const struct visit *v)
{
    return v->was->deadline != USEC_NEVER && v->f->now >= v->was->deadline;
}

static void visit_wait(struct visit *v, struct str what, usec_t next)
{
    v->plan->waits = what;
    v->plan->next = MIN(next, v->was->deadline);
}

/* ── runs ──────────────────────────────────────────────────────────────────────────────────── */

static bool run_is_open(const struct visit_run *run)
{
    return run->phase == VISIT_RUN_PENDING || run->phase == VISIT_RUN_CHECKING ||
           run->phase == VISIT_RUN_RUNNING;
}

int32_t visit_open_run(const struct visit_record *r)
{
    for (uint32_t i = 0; i < r->run_n; i++) {
        if (run_is_open(&r->runs[i])) {
            return (int32_t)i;
        }
    }
    return -1;
}

static void run_enter(struct visit *v, uint32_t i, enum visit_run_phase phase)
{
    v->record->runs[i].phase = phase;
    v->record->runs[i].since = v->f->now;
    if (phase == VISIT_RUN_RUNNING || phase == VISIT_RUN_CHECKING) {
        v->record->runs[i].started = v->f->now;
    }
}

static void visit_end_open_runs(struct visit *v, enum visit_run_phase phase, struct str reason,
                                struct str message)
{
    for (uint32_t i = 0; i < v->record->run_n; i++) {
        struct visit_run *run = &v->record->runs[i];
        if (run_is_open(run)) {
            run_enter(v, i, phase);
            run->reason = reason;
            run->message = message;
        }
    }
}

/* Those of the same object that come after one that failed rest on it. */
static void visit_skip_later(struct visit *v, uint32_t i)
{
    const struct visit_run *failed = &v->record->runs[i];
    for (uint32_t k = i + 1; k < v->record->run_n; k++) {
        struct visit_run *later = &v->record->runs[k];
        if (run_is_open(later) && str_eq(later->maintenance_uid, failed->maintenance_uid)) {
            run_enter(v, k, VISIT_RUN_NOT_RUN);
            later->reason = STR("EarlierFailed");
            later->message = arena_printf(v->out, "operation '" STR_FMT "' failed before it",
                                          STR_ARG(failed->operation));
        }
    }
}

static void visit_fail_run(struct visit *v, uint32_t i)
{
    struct visit_run *failed = &v->record->runs[i];
    run_enter(v, i, v->f->retry_free ? VISIT_RUN_NOT_RUN : VISIT_RUN_FAILED);
    failed->interrupted = v->f->retry_free;
    failed->reason = v->f->job_reason;
    failed->message = v->f->job_message;
    v->record->keep_cordon = v->record->keep_cordon || !v->f->retry_free;
    visit_skip_later(v, i);
}

/* ── stopping ──────────────────────────────────────────────────────────────────────────────── */

static bool run_must_stop(const struct visit *v, uint32_t i)
{
    return (v->f->stop >> i & 1u) != 0;
}

/* It is not counted as an attempt, and stays due. */
static void visit_stop_run(struct visit *v, uint32_t i)
{
    run_enter(v, i, VISIT_RUN_NOT_RUN);
    v->record->runs[i].stopping = false;
    v->record->runs[i].reason = STR("Stopped");
    v->record->runs[i].message = v->f->stop_why;
}

/* What has not begun does not begin. A machine that was only made ready goes back to work. */
static bool visit_stop_waiting(struct visit *v)
{
    bool stopped = false;
    if (v->was->phase < VISIT_LABELLING || v->was->phase > VISIT_RUNNING) {
        return false;
    }
    for (uint32_t i = 0; i < v->record->run_n; i++) {
        if (v->record->runs[i].phase == VISIT_RUN_PENDING && run_must_stop(v, i)) {
            visit_stop_run(v, i);
            stopped = true;
        }
    }
    if (stopped && v->was->phase < VISIT_RUNNING && visit_open_run(v->record) < 0) {
        visit_enter(v, VISIT_ENDING, 0);
    }
    return stopped;
}

/* True when the run has ended, or is on its way to it. The record says so before its Job goes, so
 * that whoever leads next does not make it again. */
static bool visit_stop_running(struct visit *v, uint32_t i)
{
    const struct visit_run *run = &v->was->runs[i];
    if (!run->stopping && !run_must_stop(v, i)) {
        return false;
    }
    if (!run->stopping) {
        v->record->runs[i].stopping = v->f->job != VISIT_JOB_SUCCEEDED;
        return v->f->job != VISIT_JOB_SUCCEEDED;
    }
    if (v->f->job == VISIT_JOB_SUCCEEDED) {
        v->record->runs[i].stopping = false; /* it was faster */
        return false;
    }
    if (v->f->job == VISIT_JOB_ACTIVE) {
        v->plan->stop = true;
        visit_wait(v,
                   arena_printf(v->out, "operation '" STR_FMT "' to stop", STR_ARG(run->operation)),
                   USEC_NEVER);
    } else {
        visit_stop_run(v, i);
    }
    return true;
}

/* ── reboots ───────────────────────────────────────────────────────────────────────────────── */

/* The machine has asked for it. */
static bool run_found_reboot(const struct visit_run *run)
{
    return run->phase == VISIT_RUN_SUCCEEDED && run->reboot == VISIT_REBOOT_IF_REQUIRED &&
           run->reboot_required;
}

static bool visit_wants_reboot(const struct visit_record *r, bool useless)
{
    for (uint32_t i = 0; i < r->run_n; i++) {
        const struct visit_run *run = &r->runs[i];
        bool always = run->phase == VISIT_RUN_SUCCEEDED && run->reboot == VISIT_REBOOT_ALWAYS;
        if (always || (run_found_reboot(run) && !useless)) {
            return true;
        }
    }
    return false;
}

int32_t visit_unproved_run(const struct visit_record *r)
{
    for (uint32_t i = 0; r->reboot_id.n > 0 && !r->reboot_checked && i < r->run_n; i++) {
        if (run_found_reboot(&r->runs[i])) {
            return (int32_t)i;
        }
    }
    return -1;
}

static void run_note_useless(struct visit_run *run)
{
    run->reason = STR("RebootDidNotHelp");
    run->message = STR("the machine asked for a reboot again right after one: it is not rebooted "
                       "for that until it has not asked once");
}

static bool visit_has_failed(const struct visit_record *r)
{
    bool failed = r->failure.n > 0;
    for (uint32_t i = 0; i < r->run_n; i++) {
        failed = failed || r->runs[i].phase == VISIT_RUN_FAILED;
    }
    return failed;
}

/* ── the grant ─────────────────────────────────────────────────────────────────────────────── */

static bool visit_has_grant(const struct visit *v)
{
    const struct visit_facts *f = v->f;
    return v->was->quiet ||
           (f->request_there && f->request_state == MR_STATE_IN_PROGRESS &&
            f->request_phase == MR_PHASE_IN_PROGRESS && f->request_grant == v->was->grant);
}

/* The machine is not there any more: nothing is left to undo on it. */
static bool visit_node_is_gone(const struct visit *v)
{
    return !v->f->node_there;
}

static void visit_fail(struct visit *v, const char *failure, struct str message)
{
    v->record->failure = str_from(failure);
    v->record->message = message;
    visit_end_open_runs(v, VISIT_RUN_FAILED, v->record->failure, message);
    visit_enter(v, VISIT_ENDING, 0);
}

/* Nothing was evicted yet: everything goes back to where it was, and is tried again later. */
static void visit_undo(struct visit *v)
{
    visit_end_open_runs(v, VISIT_RUN_NOT_RUN, STR("GrantLost"),
                        STR("the MaintenanceRequest ended before the work began"));
    v->record->keep_cordon = false;
    visit_enter(v, VISIT_ENDING, 0);
}

/* The name stands in the record before the request is made: so whoever finds one under it knows
 * whether it is the visit's. False while there is none. */
static bool visit_make_request(struct visit *v)
{
    if (v->was->request_uid.n > 0 || v->f->request_there) {
        return true;
    }
    if (v->was->request.n == 0 || v->f->request_foreign) {
        v->record->request = arena_str(v->out, v->f->next_request);
    } else {
        v->plan->request = VISIT_REQUEST_NEW;
    }
    return false;
}

/* The grant was lost in the middle. The old request is completed, and a new one is asked for. */
static void visit_renew(struct visit *v)
{
    const struct visit_facts *f = v->f;
    struct visit_plan *plan = v->plan;
    bool old_ended = !f->request_there || f->request_state == MR_STATE_COMPLETED ||
                     mrequest_phase_ended(f->request_phase);
    if (v->was->request_uid.n > 0 && old_ended) {
        v->record->request = STR_NONE;
        v->record->request_uid = STR_NONE;
        v->record->grant = 0;
    } else if (!visit_make_request(v)) {
        /* the next answer tells */
    } else if (f->request_state == MR_STATE_APPROVED && f->request_phase == MR_PHASE_APPROVED &&
               f->request_held) {
        plan->request = VISIT_REQUEST_BEGIN;
    } else if (f->request_state == MR_STATE_IN_PROGRESS && f->request_grant > 0 &&
               f->request_phase == MR_PHASE_IN_PROGRESS && v->was->grant == 0) {
        v->record->grant = f->request_grant;
        v->record->request_uid = arena_str(v->out, f->request_uid);
        v->record->expired = false;
    } else if (v->was->grant > 0) {
        plan->request = VISIT_REQUEST_COMPLETE;
        plan->exit_code = EXIT_LOST;
    }
    visit_wait(v, STR("a new grant: the one before ended in the middle of the visit"), USEC_NEVER);
}

/* True while it is being found out whether the reboot has helped. A machine that asks for one all
 * the same would be rebooted for ever otherwise. */
static bool visit_prove(struct visit *v)
{
    const struct visit_facts *f = v->f;
    int32_t open = visit_unproved_run(v->was);
    if (open < 0) {
        return false;
    }
    bool lost = f->job == VISIT_JOB_FAILED || visit_overdue(v) || !visit_has_grant(v) ||
                (f->job == VISIT_JOB_ABSENT && f->superseded);
    if (lost) {
        v->record->reboot_checked = true; /* what cannot be found out is no reason to act */
    } else if (f->job == VISIT_JOB_ABSENT) {
        v->plan->run = open;
        v->plan->probe = true;
    } else if (f->job == VISIT_JOB_ACTIVE) {
        visit_wait(v, STR("what the machine says after its reboot"), USEC_NEVER);
    } else {
        v->record->reboot_checked = true;
        v->record->reboot_useless = f->reboot_required || !f->nothing_to_do;
    }
    if (v->record->reboot_useless) {
        run_note_useless(&v->record->runs[open]);
        v->record->failure = v->record->runs[open].reason;
        v->record->message = v->record->runs[open].message;
    }
    return true;
}

/* ── phases ────────────────────────────────────────────────────────────────────────────────── */

static enum visit_cordon visit_choose_cordon(const struct visit *v)
{
    const struct visit_facts *f = v->f;
    bool prepared = f->request_mark.n > 0 && str_eq(f->request_mark, f->request_uid);
    bool ours = f->visit_mark.n > 0 && str_eq(f->visit_mark, v->was->id);
    if (f->unschedulable && !prepared && !ours && !f->kept_mark) {
        return VISIT_CORDON_OTHERS;
    }
    return v->was->cordon == VISIT_CORDON_NONE && !prepared ? VISIT_CORDON_NONE : VISIT_CORDON_OURS;
}

/* What the node had before stands in the record before anything is changed. */
static void visit_note_labels(struct visit *v)
{
    for (uint32_t i = 0; i < v->record->label_n; i++) {
        struct str old = v->f->labels[i];
        v->record->labels[i].old = old.p != NULL ? arena_str(v->out, old) : STR_NONE;
    }
}

static void visit_requested(struct visit *v)
{
    const struct visit_facts *f = v->f;
    struct visit_plan *plan = v->plan;
    bool gone = !f->request_there && v->was->request_uid.n > 0;
    bool ended = f->request_there &&
                 (f->request_state == MR_STATE_COMPLETED || mrequest_phase_ended(f->request_phase));
    if (gone || ended || (!f->request_there && (!f->node_there || !f->may_start))) {
        visit_end_open_runs(v, VISIT_RUN_NOT_RUN, STR("GrantLost"), f->why_not);
        plan->end = true; /* nothing was done */
        return;
    }
    if (!visit_make_request(v)) {
        return;
    }
    if (!f->node_there || (!f->may_start && f->request_state != MR_STATE_IN_PROGRESS)) {
        plan->request = VISIT_REQUEST_COMPLETE;
        plan->exit_code = EXIT_LOST;
        visit_wait(v, f->why_not, USEC_NEVER);
        return;
    }
    if (f->request_state == MR_STATE_IN_PROGRESS && f->request_phase == MR_PHASE_IN_PROGRESS &&
        f->request_held && f->request_grant > 0) {
        v->record->grant = f->request_grant;
        v->record->request_uid = arena_str(v->out, f->request_uid);
        v->record->cordon = visit_choose_cordon(v);
        v->record->boot_id = arena_str(v->out, f->boot_id);
        visit_note_labels(v);
        visit_enter(v, v->was->label_n > 0 ? VISIT_LABELLING : VISIT_CORDONING, 0);
        return;
    }
    if (f->request_state == MR_STATE_APPROVED && f->request_phase == MR_PHASE_APPROVED &&
        f->request_held) {
        if (f->gates_asked) {
            visit_wait(v, STR("gates to be asked once more"), USEC_NEVER);
        } else {
            plan->request = VISIT_REQUEST_BEGIN;
        }
        return;
    }
    visit_wait(v, STR("its MaintenanceRequest to be approved"), USEC_NEVER);
}

static bool visit_is_cordoned(const struct visit *v)
{
    return v->was->cordon != VISIT_CORDON_OURS ||
           (v->f->unschedulable && str_eq(v->f->visit_mark, v->was->id));
}

/* Somebody may have cordoned the machine by hand since the visit chose: then it is theirs, and the
 * record says so before anything else is done. */
static void visit_make_cordon(struct visit *v)
{
    if (visit_choose_cordon(v) == VISIT_CORDON_OTHERS) {
        v->record->cordon = VISIT_CORDON_OTHERS;
    } else {
        v->plan->cordon = VISIT_CORDON_MAKE;
    }
}

static void visit_labelling(struct visit *v)
{
    if (!visit_has_grant(v)) {
        visit_undo(v);
    } else if (!v->f->labels_set) {
        v->plan->labels = VISIT_LABELS_SET;
        visit_wait(v, STR("its node to get its labels"), USEC_NEVER);
    } else if (v->was->leave_wait > 0 && v->was->deadline == USEC_NEVER) {
        v->record->deadline = v->f->now + v->was->leave_wait;
    } else if (v->was->leave_wait > 0 && !visit_overdue(v)) {
        visit_wait(v, STR("load balancers to notice"), USEC_NEVER);
    } else {
        visit_enter(v, VISIT_CORDONING, 0);
    }
}

static void visit_cordoning(struct visit *v)
{
    if (!visit_has_grant(v)) {
        visit_undo(v);
    } else if (!visit_is_cordoned(v)) {
        visit_make_cordon(v);
        visit_wait(v, STR("the machine to be cordoned"), USEC_NEVER);
    } else if (v->was->drain.enabled) {
        visit_enter(v, VISIT_DRAINING, v->was->drain.timeout);
    } else {
        visit_enter(v, VISIT_RUNNING, 0);
    }
}

static void visit_draining(struct visit *v)
{
    if (!visit_has_grant(v)) {
        if (!v->f->drain_began) {
            visit_undo(v);
        } else if (!v->was->expired) {
            v->record->expired = true;
        } else {
            visit_renew(v);
        }
        return;
    }
    if (!visit_is_cordoned(v)) {
        visit_make_cordon(v); /* a machine that somebody uncordons fills again */
    } else if (v->f->drain_done) {
        visit_enter(v, VISIT_RUNNING, 0);
        return;
    }
    if (visit_overdue(v) && v->was->drain.proceed) {
        visit_enter(v, VISIT_RUNNING, 0);
        return;
    }
    if (visit_overdue(v) && !v->was->drain.force) {
        visit_fail(v, "DrainTimeout", STR("pods were left when the time of the drain was over"));
        return;
    }
    v->plan->drain = visit_is_cordoned(v);
    visit_wait(v, STR("pods to leave"), USEC_NEVER);
}

static void visit_after_runs(struct visit *v)
{
    if (v->was->quiet) {
        visit_enter(v, VISIT_ENDING, 0);
        return;
    }
    bool reboot = visit_wants_reboot(v->was, v->f->reboot_useless);
    for (uint32_t i = 0; v->f->reboot_useless && i < v->record->run_n; i++) {
        if (run_found_reboot(&v->record->runs[i])) {
            run_note_useless(&v->record->runs[i]);
        }
    }
    if (reboot && v->f->reboot_refused.n > 0) {
        v->record->failure = STR("RebootLoopGuard");
        v->record->message = v->f->reboot_refused;
        visit_enter(v, VISIT_SETTLING, v->was->min_ready + SETTLE_TIMEOUT);
    } else if (reboot && !visit_has_grant(v)) {
        visit_renew(v);
    } else if (reboot) {
        v->record->reboot_id =
            arena_printf(v->out, STR_FMT "-reboot", STR_ARG(v->was->id)); /* one a visit */
        visit_enter(v, VISIT_REBOOTING, v->was->reboot_timeout);
    } else {
        visit_enter(v, VISIT_SETTLING, v->was->min_ready + SETTLE_TIMEOUT);
    }
}

/* A preflight has found out that the run has nothing to do, or that it would fail: that costs the
 * machine nothing. */
static void visit_checked(struct visit *v, uint32_t i)
{
    struct visit_run *run = &v->record->runs[i];
    if (v->f->job == VISIT_JOB_FAILED) {
        run_enter(v, i, v->f->retry_free ? VISIT_RUN_NOT_RUN : VISIT_RUN_FAILED);
        run->interrupted = v->f->retry_free;
        run->reason = STR("Preflight");
        run->message = v->f->job_message;
        visit_skip_later(v, i);
        return;
    }
    run->preflight = false;
    run->reboot_required = v->f->reboot_required || (run->bare && !v->f->nothing_to_do);
    if (run->bare && run->reboot == VISIT_REBOOT_IF_REQUIRED && run->reboot_required &&
        v->f->reboot_useless) {
        run_enter(v, i, VISIT_RUN_SKIPPED);
        run_note_useless(run);
    } else if (v->f->nothing_to_do && !run->reboot_required) {
        run_enter(v, i, VISIT_RUN_SKIPPED);
    } else {
        run_enter(v, i, VISIT_RUN_PENDING);
    }
}

static void visit_checking(struct visit *v)
{
    const struct visit_facts *f = v->f;
    int32_t next = -1;
    for (uint32_t i = 0; i < v->was->run_n && next < 0; i++) {
        next = run_is_open(&v->was->runs[i]) && v->was->runs[i].preflight ? (int32_t)i : -1;
    }
    if (visit_open_run(v->was) < 0) {
        visit_enter(v, VISIT_ENDING, 0);
    } else if (!f->node_there || !f->may_start) {
        visit_end_open_runs(v, VISIT_RUN_NOT_RUN, STR("Stopped"), f->why_not);
        visit_enter(v, VISIT_ENDING, 0);
    } else if (next < 0) {
        visit_enter(v, v->was->quiet ? VISIT_RUNNING : VISIT_REQUESTED, 0);
    } else if (v->was->runs[next].phase == VISIT_RUN_PENDING) {
        run_enter(v, (uint32_t)next, VISIT_RUN_CHECKING);
    } else if (f->job == VISIT_JOB_ABSENT && f->superseded) {
        run_enter(v, (uint32_t)next, VISIT_RUN_NOT_RUN);
    } else if (f->job == VISIT_JOB_ABSENT) {
        v->plan->run = next;
        v->plan->preflight = true;
    } else if (f->job == VISIT_JOB_ACTIVE) {
        visit_wait(v,
                   arena_printf(v->out, "the preflight of operation '" STR_FMT "'",
                                STR_ARG(v->was->runs[next].operation)),
                   USEC_NEVER);
    } else {
        visit_checked(v, (uint32_t)next);
    }
}

static void visit_supersede(struct visit *v, uint32_t i)
{
    run_enter(v, i, VISIT_RUN_NOT_RUN);
    v->record->runs[i].reason = STR("Superseded");
    v->record->runs[i].message = STR("the operation has changed, or is not wanted any more");
}

/* A run that only reboots: what its preflight found out, or its policy, is its result. */
static void visit_end_bare_run(struct visit *v, uint32_t i)
{
    struct visit_run *run = &v->record->runs[i];
    run->reboot_required = run->reboot_required || run->reboot == VISIT_REBOOT_ALWAYS;
    run_enter(v, i, VISIT_RUN_SUCCEEDED);
}

static void visit_running(struct visit *v)
{
    const struct visit_facts *f = v->f;
    bool granted = visit_has_grant(v);
    if (!granted && !v->was->expired) {
        v->record->expired = true;
        return;
    }
    int32_t open = visit_open_run(v->was);
    if (open < 0) {
        visit_after_runs(v);
        return;
    }
    uint32_t i = (uint32_t)open;
    if (v->was->runs[i].phase == VISIT_RUN_PENDING) {
        if (f->superseded) {
            visit_supersede(v, i);
        } else if (!granted) {
            visit_renew(v);
        } else if (v->was->runs[i].bare) {
            visit_end_bare_run(v, i);
        } else {
            run_enter(v, i, VISIT_RUN_RUNNING);
        }
        return;
    }
    if (visit_stop_running(v, i)) {
        return;
    }
    switch (f->job) {
    case VISIT_JOB_ABSENT:
        if (f->superseded) {
            visit_supersede(v, i);
        } else if (granted) {
            v->plan->run = open;
        } else {
            visit_renew(v); /* its Job was never made, or is lost: that needs a grant */
        }
        break;
    case VISIT_JOB_ACTIVE:
        visit_wait(v,
                   arena_printf(v->out, "operation '" STR_FMT "' to finish",
                                STR_ARG(v->was->runs[i].operation)),
                   USEC_NEVER);
        break;
    case VISIT_JOB_SUCCEEDED:
        run_enter(v, i, f->nothing_to_do ? VISIT_RUN_SKIPPED : VISIT_RUN_SUCCEEDED);
        v->record->runs[i].reboot_required = f->reboot_required;
        break;
    case VISIT_JOB_FAILED:
        visit_fail_run(v, i);
        break;
    }
}

static void visit_rebooting(struct visit *v)
{
    const struct visit_facts *f = v->f;
    bool rebooted = f->boot_id.n > 0 && !str_eq(f->boot_id, v->was->boot_id);
    if (rebooted && f->ready) {
        visit_enter(v, VISIT_SETTLING, v->was->min_ready + SETTLE_TIMEOUT);
        return;
    }
    if (visit_overdue(v)) {
        v->record->keep_cordon = true;
        v->record->failure = STR("RebootTimeout");
        v->record->message = rebooted
                                 ? STR("the machine rebooted and did not become Ready in time")
                                 : STR("the machine did not come back with a new boot ID in time");
        visit_enter(v, VISIT_ENDING, 0);
        return;
    }
    v->plan->reboot = !rebooted && visit_has_grant(v);
    visit_wait(v,
               rebooted ? STR("the machine to be Ready after its reboot")
                        : STR("the machine to reboot"),
               USEC_NEVER);
}

static void visit_settling(struct visit *v)
{
    const struct visit_facts *f = v->f;
    usec_t settled = f->ready_since + v->was->min_ready;
    if (f->ready && f->ready_since > 0 && f->now >= settled) {
        if (visit_prove(v)) {
            return;
        }
        bool verify = f->after_gates && !visit_has_failed(v->was);
        visit_enter(v, verify ? VISIT_VERIFYING : VISIT_ENDING, 0);
        return;
    }
    if (visit_overdue(v)) {
        v->record->keep_cordon = true;
        v->record->failure = STR("NotReady");
        v->record->message = STR("the machine did not stay Ready after the work");
        visit_enter(v, VISIT_ENDING, 0);
        return;
    }
    visit_wait(v, STR("the machine to be Ready for a while"), f->ready ? settled : USEC_NEVER);
}

static bool visit_keeps_cordon(const struct visit_record *r)
{
    switch (r->on_failure) {
    case VISIT_FAILURE_KEEP:
        return visit_has_failed(r);
    case VISIT_FAILURE_UNCORDON:
        return false;
    case VISIT_FAILURE_AUTO:
        break;
    }
    return r->keep_cordon;
}

/* The visit has done something here, and the machine is back at work. */
static bool visit_has_worked(const struct visit_record *r)
{
    bool worked = false;
    for (uint32_t i = 0; i < r->run_n; i++) {
        worked = worked || r->runs[i].phase != VISIT_RUN_NOT_RUN;
    }
    return worked && !visit_keeps_cordon(r);
}

/* True while the machine has a cordon or labels of ours. */
static bool visit_give_back(struct visit *v)
{
    const struct visit_facts *f = v->f;
    bool marked = f->visit_mark.n > 0 && str_eq(f->visit_mark, v->was->id);
    if (visit_node_is_gone(v)) {
        return false;
    }
    if (v->was->cordon == VISIT_CORDON_OURS && marked) {
        v->plan->cordon = visit_keeps_cordon(v->was) ? VISIT_CORDON_LEAVE : VISIT_CORDON_LIFT;
        visit_wait(v, STR("the cordon to be lifted"), USEC_NEVER);
        return true;
    }
    if (v->was->label_n > 0 && f->labels_mark.n > 0 && str_eq(f->labels_mark, v->was->id)) {
        v->plan->labels = VISIT_LABELS_RESTORE;
        v->plan->labels_after = visit_has_worked(v->was);
        visit_wait(v, STR("the labels of its node to be restored"), USEC_NEVER);
        return true;
    }
    return false;
}

/* A gate stayed shut: what the object has done here does not count as done. */
static void visit_fail_object(struct visit *v, struct str maintenance_uid, struct str why)
{
    v->record->failure = STR("GateTimeout");
    v->record->message = arena_str(v->out, str_sub(why, 0, MIN(why.n, (size_t)VISIT_MESSAGE_MAX)));
    v->record->keep_cordon = true;
    for (uint32_t i = 0; i < v->record->run_n; i++) {
        struct visit_run *run = &v->record->runs[i];
        if (str_eq(run->maintenance_uid, maintenance_uid) && run->phase == VISIT_RUN_SUCCEEDED) {
            run_enter(v, i, VISIT_RUN_FAILED);
            run->reason = v->record->failure;
            run->message = v->record->message;
        }
    }
}

/* Pods that can run only here have to be back before anybody can say that all is well: so the
 * cordon is lifted first, and made again if a gate stays shut. */
static void visit_verifying(struct visit *v)
{
    const struct visit_facts *f = v->f;
    if (v->was->failure.n > 0) {
        if (visit_keeps_cordon(v->was) && !visit_is_cordoned(v) && visit_has_grant(v)) {
            visit_make_cordon(v);
            visit_wait(v, STR("the machine to be cordoned again"), USEC_NEVER);
        } else {
            visit_enter(v, VISIT_ENDING, 0);
        }
    } else if (visit_give_back(v)) {
        return;
    } else if (f->after == VISIT_AFTER_PASSES) {
        visit_enter(v, VISIT_ENDING, 0);
    } else if (f->after == VISIT_AFTER_FAILS) {
        visit_fail_object(v, f->after_uid, f->after_why);
    } else {
        visit_wait(v, f->after_why, f->after_next);
    }
}

static void visit_ending(struct visit *v)
{
    const struct visit_facts *f = v->f;
    struct visit_plan *plan = v->plan;
    bool gone = visit_node_is_gone(v);
    if (visit_give_back(v)) {
        return;
    }
    if (f->request_there && f->request_state != MR_STATE_COMPLETED &&
        !mrequest_phase_ended(f->request_phase)) {
        plan->request = VISIT_REQUEST_COMPLETE;
        plan->exit_code = gone ? EXIT_LOST : visit_has_failed(v->was) ? EXIT_FAILED : EXIT_DONE;
        return;
    }
    plan->end = true;
}

void visit_decide(const struct visit_record *v, const struct visit_facts *f, struct arena *out,
                  struct visit_plan *ret)
{
    struct visit visit = { .was = v, .f = f, .out = out, .plan = ret, .record = &ret->record };
    *ret = (struct visit_plan){ .record = *v, .run = -1, .next = USEC_NEVER };
    ret->record.runs = ARENA_ARRAY(out, struct visit_run, MAX(v->run_n, 1u));
    for (uint32_t i = 0; i < v->run_n; i++) {
        ret->record.runs[i] = v->runs[i];
    }
    ret->record.labels = ARENA_ARRAY(out, struct visit_label, MAX(v->label_n, 1u));
    for (uint32_t i = 0; i < v->label_n; i++) {
        ret->record.labels[i] = v->labels[i];
    }
    if (!f->known) {
        ret->waits = STR("what is known of requests, nodes and Jobs to be read again");
        return;
    }
    if (visit_touched(v) && v->phase < VISIT_ENDING && visit_node_is_gone(&visit)) {
        ret->record.failure = STR("NodeGone");
        ret->record.message = STR("the machine's Node object is gone, or is another one now");
        visit_end_open_runs(&visit, VISIT_RUN_NOT_RUN, ret->record.failure, ret->record.message);
        visit_enter(&visit, VISIT_ENDING, 0);
        return;
    }
    if (visit_stop_waiting(&visit)) {
        return;
    }
    switch (v->phase) {
    case VISIT_CHECKING:
        visit_checking(&visit);
        break;
    case VISIT_REQUESTED:
        visit_requested(&visit);
        break;
    case VISIT_LABELLING:
        visit_labelling(&visit);
        break;
    case VISIT_CORDONING:
        visit_cordoning(&visit);
        break;
    case VISIT_DRAINING:
        visit_draining(&visit);
        break;
    case VISIT_RUNNING:
        visit_running(&visit);
        break;
    case VISIT_REBOOTING:
        visit_rebooting(&visit);
        break;
    case VISIT_SETTLING:
        visit_settling(&visit);
        break;
    case VISIT_VERIFYING:
        visit_verifying(&visit);
        break;
    case VISIT_ENDING:
        visit_ending(&visit);
        break;
    case VISIT_NONE:
    case VISIT_UNKNOWN: /* of a newer version: nothing is done to that machine */
        break;
    }
}
