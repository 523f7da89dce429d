#include "operation/visit_steps.h"

#include "tests/check.h"

/* A world as small as a visit needs it: one request, one machine, one Job at a time. What a plan
 * says is carried out by world_act; what others do is written into `f`. */
struct world {
    struct arena memory;
    struct visit_record record;
    struct visit_facts f;
    struct visit_plan plan;
    bool there; /* the record */
    uint32_t reboots;
    uint32_t jobs;
    uint32_t requests;
    bool evicting; /* a drain has been at work */
};

static void world_done(struct world *w)
{
    arena_done(&w->memory);
}

static void world_init(struct world *w)
{
    *w = (struct world){
        .there = true,
        .requests = 1,
        .record = { .format = VISIT_FORMAT,
                    .id = STR("req-1"),
                    .node_uid = STR("node-uid"),
                    .request = STR("mr-1"),
                    .request_uid = STR("req-1"),
                    .phase = VISIT_REQUESTED,
                    .deadline = USEC_NEVER,
                    .cordon = VISIT_CORDON_OURS,
                    .drain = { .enabled = true, .timeout = MINUTES(10), .grace = -1 },
                    .min_ready = SECONDS(60),
                    .reboot_timeout = MINUTES(20),
                    .run_n = 2 },
        .f = { .now = HOURS(1),
               .known = true,
               .request_there = true,
               .request_uid = STR("req-1"),
               .next_request = STR("mr-next"),
               .request_state = MR_STATE_PENDING,
               .request_phase = MR_PHASE_PENDING,
               .may_start = true,
               .node_there = true,
               .ready = true,
               .ready_since = SECONDS(1),
               .boot_id = STR("boot-1") },
    };
    w->record.runs = ARENA_ARRAY(&w->memory, struct visit_run, 2);
    for (uint32_t i = 0; i < 2; i++) {
        w->record.runs[i] = (struct visit_run){
            .maintenance = STR("patches"),
            .maintenance_uid = STR("ndm-1"),
            .operation = i == 0 ? STR("upgrade") : STR("clean"),
            .revision = STR("r1"),
            .attempt = 1,
            .reboot = i == 0 ? VISIT_REBOOT_IF_REQUIRED : VISIT_REBOOT_NEVER,
        };
    }
}

static void world_begin_request(struct world *w)
{
    CHECK_EQ(w->f.request_state, MR_STATE_APPROVED);
    CHECK(w->f.request_held);
    w->f.request_state = MR_STATE_IN_PROGRESS;
    w->f.request_phase = MR_PHASE_IN_PROGRESS;
}

static void world_new_request(struct world *w)
{
    w->requests++;
    CHECK_STR(w->record.request, "mr-next");
    w->f.request_uid = arena_printf(&w->memory, "req-%u", w->requests);
    w->f.request_there = true;
    w->f.request_state = MR_STATE_PENDING;
    w->f.request_phase = MR_PHASE_PENDING;
    w->f.request_held = false;
    w->f.request_grant = 0;
}

static void world_cordon(struct world *w, enum visit_cordon_step step)
{
    if (step == VISIT_CORDON_MAKE) {
        w->f.unschedulable = true;
        w->f.visit_mark = w->record.id;
        w->f.request_mark = STR_NONE;
    } else if (step != VISIT_CORDON_KEEP) {
        CHECK_STR(w->f.visit_mark, w->record.id);
        w->f.unschedulable = step == VISIT_CORDON_LEAVE;
        w->f.visit_mark = STR_NONE;
    }
}

static bool world_granted(const struct world *w)
{
    return w->f.request_there && w->f.request_state == MR_STATE_IN_PROGRESS &&
           w->f.request_phase == MR_PHASE_IN_PROGRESS;
}

/* One decision, and what it says. True when something was done. */
static bool world_act(struct world *w)
{
    visit_decide(&w->record, &w->f, &w->memory, &w->plan);
    const struct visit_plan *p = &w->plan;
    if (p->end) {
        w->there = false;
        return false;
    }
    if (!visit_record_same(&p->record, &w->record)) {
        w->record = p->record;
        if (w->record.request.n == 0) { /* the old one is none of the visit's any more */
            w->f.request_there = false;
            w->f.request_uid = STR_NONE;
        }
        return true;
    }
    bool acts = p->drain || p->run >= 0 || p->reboot || p->cordon == VISIT_CORDON_MAKE;
    CHECK(!acts || world_granted(w)); /* nothing is begun without a grant */
    w->evicting = w->evicting || p->drain;
    w->f.drain_began = w->evicting;
    w->jobs += p->run >= 0 ? 1 : 0;
    if (p->run >= 0 || p->reboot) {
        w->f.job = VISIT_JOB_ACTIVE;
    }
    world_cordon(w, p->cordon);
    if (p->request == VISIT_REQUEST_BEGIN) {
        world_begin_request(w);
    } else if (p->request == VISIT_REQUEST_COMPLETE) {
        w->f.request_state = MR_STATE_COMPLETED;
        w->f.request_phase = MR_PHASE_COMPLETED;
    } else if (p->request == VISIT_REQUEST_NEW) {
        world_new_request(w);
    }
    return p->run >= 0 || p->cordon != VISIT_CORDON_KEEP || p->request != VISIT_REQUEST_KEEP;
}

static void world_settle(struct world *w)
{
    for (uint32_t i = 0; i < 50 && w->there && world_act(w); i++) {
    }
}

static void world_approve(struct world *w)
{
    w->f.request_state = MR_STATE_APPROVED;
    w->f.request_phase = MR_PHASE_APPROVED;
    w->f.request_held = true;
    w->f.request_grant = 1;
    world_settle(w);
}

static void world_drained(struct world *w)
{
    w->f.drain_done = true;
    world_settle(w);
}

static void world_finish_job(struct world *w, enum visit_job end)
{
    w->f.job = end;
    CHECK(world_act(w)); /* the result is in the record before the next Job is looked at */
    w->f.job = VISIT_JOB_ABSENT;
    world_settle(w);
}

TEST(visit_goes_through_all_its_steps)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    world_settle(&w);
    CHECK_EQ(w.record.phase, VISIT_REQUESTED);
    CHECK(!w.f.unschedulable);
    world_approve(&w);
    CHECK_EQ(w.record.phase, VISIT_DRAINING);
    CHECK_STR(w.f.visit_mark, "req-1");
    CHECK(w.plan.drain);
    CHECK_EQ(w.plan.next, w.record.deadline);
    world_drained(&w);
    CHECK_EQ(w.record.phase, VISIT_RUNNING);
    CHECK_EQ(w.record.runs[0].phase, VISIT_RUN_RUNNING);
    CHECK_EQ(w.record.runs[1].phase, VISIT_RUN_PENDING);
    w.f.reboot_required = true;
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    w.f.reboot_required = false;
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    CHECK_EQ(w.jobs, 2);
    CHECK_EQ(w.record.phase, VISIT_REBOOTING);
    CHECK(w.plan.reboot);
    w.f.boot_id = STR("boot-2");
    w.f.ready = false;
    world_settle(&w);
    CHECK_EQ(w.record.phase, VISIT_REBOOTING);
    CHECK(!w.plan.reboot);
    w.f.ready = true;
    w.f.ready_since = w.f.now;
    world_settle(&w);
    CHECK_EQ(w.record.phase, VISIT_SETTLING);
    CHECK_EQ(w.plan.next, w.f.now + SECONDS(60));
    CHECK(w.f.unschedulable);
    w.f.now = w.plan.next;
    w.f.job = VISIT_JOB_ABSENT;
    world_settle(&w);
    CHECK_EQ(w.jobs, 3); /* the last one looks whether the reboot has helped */
    CHECK(w.there);
    w.f.nothing_to_do = true;
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    CHECK(!w.there);
    CHECK(!w.f.unschedulable);
    CHECK_EQ(w.f.request_state, MR_STATE_COMPLETED);
    CHECK_STR(w.plan.record.failure, "");
    CHECK(!w.plan.record.reboot_useless);
}

/* A machine that was drained, has run both and has rebooted, as the first of them wanted. */
static void world_rebooted(struct world *w)
{
    world_init(w);
    world_approve(w);
    world_drained(w);
    w->f.reboot_required = true;
    world_finish_job(w, VISIT_JOB_SUCCEEDED);
    w->f.reboot_required = false;
    world_finish_job(w, VISIT_JOB_SUCCEEDED);
    w->f.boot_id = STR("boot-2");
    w->f.job = VISIT_JOB_ABSENT;
    world_settle(w);
    CHECK_EQ(w->record.phase, VISIT_SETTLING);
}

TEST(visit_says_when_a_reboot_has_not_helped)
{
    CLEANUP(world_done)
    struct world w;
    world_rebooted(&w);
    w.f.reboot_required = true; /* still */
    w.f.nothing_to_do = true;
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    CHECK(!w.there);
    CHECK(w.plan.record.reboot_useless);
    CHECK_STR(w.plan.record.failure, "RebootDidNotHelp");
    CHECK_STR(w.plan.record.runs[0].reason, "RebootDidNotHelp");
    CHECK_EQ(w.plan.record.runs[0].phase, VISIT_RUN_SUCCEEDED);
}

TEST(visit_that_cannot_find_out_whether_a_reboot_has_helped_ends_well)
{
    CLEANUP(world_done)
    struct world w;
    world_rebooted(&w);
    world_finish_job(&w, VISIT_JOB_FAILED);
    CHECK(!w.there);
    CHECK(w.plan.record.reboot_checked);
    CHECK(!w.plan.record.reboot_useless);
    CHECK_STR(w.plan.record.failure, "");
}

TEST(visit_does_not_reboot_again_for_what_a_reboot_has_not_helped)
{
    for (uint32_t always = 0; always < 2; always++) {
        CLEANUP(world_done)
        struct world w;
        world_init(&w);
        check_case(always);
        w.record.runs[0].reboot = always ? VISIT_REBOOT_ALWAYS : VISIT_REBOOT_IF_REQUIRED;
        w.f.reboot_useless = true;
        world_approve(&w);
        world_drained(&w);
        w.f.reboot_required = true;
        world_finish_job(&w, VISIT_JOB_SUCCEEDED);
        world_finish_job(&w, VISIT_JOB_SUCCEEDED);
        CHECK_EQ(w.there && w.plan.reboot, always == 1);
        if (always == 0) {
            CHECK_STR(w.plan.record.runs[0].reason, "RebootDidNotHelp");
        }
    }
    check_case(-1);
}

TEST(visit_stops_what_runs_when_it_is_told_to)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    world_settle(&w);
    world_approve(&w);
    world_settle(&w);
    w.f.drain_done = true;
    world_settle(&w);
    CHECK_EQ(w.record.phase, VISIT_RUNNING);
    CHECK_EQ(w.f.job, VISIT_JOB_ACTIVE);
    CHECK(!w.plan.stop);
    w.f.stop = 3;
    w.f.stop_why = STR("the window has closed");
    world_settle(&w);
    CHECK(w.plan.stop); /* written down first, then done */
    CHECK(w.record.runs[0].stopping);
    CHECK_EQ(w.record.runs[1].phase, VISIT_RUN_NOT_RUN);
    w.f.job = VISIT_JOB_ABSENT;
    world_settle(&w);
    CHECK(!w.there);
    CHECK_EQ(w.plan.record.runs[0].phase, VISIT_RUN_NOT_RUN);
    CHECK_STR(w.plan.record.runs[0].reason, "Stopped");
    CHECK(!w.f.unschedulable);
    CHECK_EQ(w.reboots, 0);
}

TEST(visit_lets_a_run_succeed_that_was_faster_than_its_stop)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    world_settle(&w);
    world_approve(&w);
    world_settle(&w);
    w.f.drain_done = true;
    world_settle(&w);
    w.f.stop = 3;
    world_settle(&w);
    CHECK(w.record.runs[0].stopping);
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    world_settle(&w);
    CHECK(!w.there);
    CHECK_EQ(w.plan.record.runs[0].phase, VISIT_RUN_SUCCEEDED);
    CHECK_EQ(w.plan.record.runs[1].phase, VISIT_RUN_NOT_RUN);
}

TEST(visit_that_is_told_to_stop_while_it_drains_gives_the_machine_back)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    world_settle(&w);
    world_approve(&w);
    world_settle(&w);
    CHECK_EQ(w.record.phase, VISIT_DRAINING);
    w.f.stop = 3;
    world_settle(&w);
    CHECK(!w.there);
    CHECK_EQ(w.jobs, 0);
    CHECK(!w.f.unschedulable);
}

TEST(visit_does_nothing_while_what_is_around_it_is_not_known)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    world_approve(&w);
    world_drained(&w);
    w.f.known = false;
    w.f.request_there = false; /* because it has not been listed yet */
    w.f.node_there = false;
    CHECK(!world_act(&w));
    CHECK(w.there);
    CHECK_EQ(w.record.phase, VISIT_RUNNING);
}

TEST(visit_withdraws_what_must_not_start_any_more)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    w.f.may_start = false;
    w.f.why_not = STR("the window has closed");
    world_settle(&w);
    CHECK_EQ(w.f.request_state, MR_STATE_COMPLETED);
    CHECK(!w.there);
    CHECK(!w.f.unschedulable);
}

TEST(visit_believes_no_state_that_the_controller_has_not_granted)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    w.f.request_state = MR_STATE_APPROVED; /* by somebody else's hand */
    world_settle(&w);
    CHECK_EQ(w.f.request_state, MR_STATE_APPROVED);
    w.f.request_state = MR_STATE_IN_PROGRESS;
    w.f.request_phase = MR_PHASE_PREPARING;
    w.f.request_held = true;
    w.f.request_grant = 1;
    world_settle(&w);
    CHECK_EQ(w.record.phase, VISIT_REQUESTED);
    CHECK(!w.f.unschedulable);
}

TEST(visit_leaves_the_cordon_of_others)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    w.f.unschedulable = true;
    world_approve(&w);
    CHECK_EQ(w.record.cordon, VISIT_CORDON_OTHERS);
    world_drained(&w);
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    CHECK(!w.there);
    CHECK(w.f.unschedulable);
}

TEST(visit_leaves_a_cordon_that_comes_before_its_own)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    w.record.grant = 1;
    w.record.phase = VISIT_CORDONING;
    w.f.request_state = MR_STATE_IN_PROGRESS;
    w.f.request_phase = MR_PHASE_IN_PROGRESS;
    w.f.request_grant = 1;
    w.f.unschedulable = true; /* by hand, and without a mark */
    world_settle(&w);
    CHECK_EQ(w.record.cordon, VISIT_CORDON_OTHERS);
    CHECK_EQ(w.record.phase, VISIT_DRAINING);
    world_drained(&w);
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    CHECK(!w.there);
    CHECK(w.f.unschedulable);
}

TEST(visit_takes_the_cordon_of_a_preparation_over)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    w.f.unschedulable = true;
    w.f.request_mark = STR("req-1");
    world_approve(&w);
    CHECK_EQ(w.record.cordon, VISIT_CORDON_OURS);
    CHECK_STR(w.f.visit_mark, "req-1");
    CHECK_STR(w.f.request_mark, "");
}

TEST(visit_that_cannot_drain_fails_and_lifts_its_cordon)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    world_approve(&w);
    w.f.now = w.record.deadline;
    world_settle(&w);
    CHECK(!w.there);
    CHECK_STR(w.plan.record.failure, "DrainTimeout");
    CHECK_EQ(w.plan.record.runs[0].phase, VISIT_RUN_FAILED);
    CHECK(!w.f.unschedulable);
}

TEST(visit_keeps_a_machine_cordoned_whose_run_failed)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    world_approve(&w);
    world_drained(&w);
    w.f.job_reason = STR("ExitCode");
    world_finish_job(&w, VISIT_JOB_FAILED);
    CHECK(!w.there);
    CHECK_EQ(w.plan.record.runs[0].phase, VISIT_RUN_FAILED);
    CHECK_EQ(w.plan.record.runs[1].phase, VISIT_RUN_NOT_RUN);
    CHECK_STR(w.plan.record.runs[1].message, "operation 'upgrade' failed before it");
    CHECK_EQ(w.jobs, 1);
    CHECK(w.f.unschedulable);
    CHECK_STR(w.f.visit_mark, "");
}

TEST(visit_goes_on_with_the_runs_of_others_after_a_failure)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    w.record.runs[1].maintenance_uid = STR("ndm-2");
    world_approve(&w);
    world_drained(&w);
    world_finish_job(&w, VISIT_JOB_FAILED);
    CHECK(w.there);
    CHECK_EQ(w.record.runs[1].phase, VISIT_RUN_RUNNING);
}

TEST(visit_is_undone_when_its_grant_is_lost_before_the_drain)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    world_approve(&w);
    w.evicting = false;
    w.f.drain_began = false;
    w.f.request_phase = MR_PHASE_EXPIRED;
    world_settle(&w);
    CHECK(!w.there);
    CHECK(!w.f.unschedulable);
    CHECK_EQ(w.plan.record.runs[0].phase, VISIT_RUN_NOT_RUN);
    CHECK_EQ(w.jobs, 0);
}

TEST(visit_asks_anew_when_its_grant_is_lost_in_the_middle)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    world_approve(&w);
    world_drained(&w);
    w.f.request_phase = MR_PHASE_EXPIRED;
    w.f.reboot_required = true;
    world_settle(&w); /* the payload may end */
    CHECK(w.record.expired);
    CHECK_EQ(w.record.phase, VISIT_RUNNING);
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    CHECK_EQ(w.jobs, 1); /* the second one needs a grant */
    CHECK_EQ(w.requests, 2);
    CHECK(w.f.unschedulable);
    world_approve(&w);
    CHECK(!w.record.expired);
    CHECK_EQ(w.jobs, 2);
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    CHECK_EQ(w.record.phase, VISIT_REBOOTING);
}

TEST(visit_never_reboots_without_a_grant_nor_against_the_guard)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    w.record.runs[0].reboot = VISIT_REBOOT_ALWAYS;
    world_approve(&w);
    world_drained(&w);
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    w.f.reboot_refused = STR("it rebooted 10 minutes ago, and minInterval is 1h");
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    CHECK(!w.there);
    CHECK_STR(w.plan.record.failure, "RebootLoopGuard");
    CHECK_STR(w.f.boot_id, "boot-1");
}

TEST(visit_keeps_a_machine_that_does_not_come_back)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    w.record.runs[0].reboot = VISIT_REBOOT_ALWAYS;
    world_approve(&w);
    world_drained(&w);
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    world_finish_job(&w, VISIT_JOB_SUCCEEDED);
    w.f.ready = false;
    w.f.now = w.record.deadline;
    world_settle(&w);
    CHECK(!w.there);
    CHECK_STR(w.plan.record.failure, "RebootTimeout");
    CHECK(w.f.unschedulable);
}

TEST(visit_ends_when_its_machine_is_gone)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    world_approve(&w);
    world_drained(&w);
    w.f.node_there = false;
    world_settle(&w);
    CHECK(!w.there);
    CHECK_EQ(w.plan.record.runs[0].phase, VISIT_RUN_NOT_RUN);
    CHECK_EQ(w.f.request_state, MR_STATE_COMPLETED);
}

TEST(visit_leaves_alone_what_another_version_began)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    w.record.phase = VISIT_UNKNOWN;
    visit_decide(&w.record, &w.f, &w.memory, &w.plan);
    CHECK(!w.plan.end);
    CHECK_EQ(w.plan.cordon, VISIT_CORDON_KEEP);
    CHECK_EQ(w.plan.request, VISIT_REQUEST_KEEP);
}

/* ── whatever happens ──────────────────────────────────────────────────────────────────────── */

static void world_disturb(struct world *w, struct rng *rng)
{
    struct visit_facts *f = &w->f;
    switch (rng_below(rng, 9)) {
    case 0:
        if (f->request_state == MR_STATE_PENDING) {
            world_approve(w);
        }
        break;
    case 1:
        f->drain_done = true;
        break;
    case 2:
        if (f->job == VISIT_JOB_ACTIVE && w->record.phase == VISIT_RUNNING) {
            f->reboot_required = rng_below(rng, 2) == 0;
            world_finish_job(w, rng_below(rng, 3) == 0 ? VISIT_JOB_FAILED : VISIT_JOB_SUCCEEDED);
        }
        break;
    case 3:
        if (w->plan.reboot) {
            f->boot_id = STR("boot-2");
            w->reboots++;
        }
        break;
    case 4:
        f->ready = !f->ready;
        f->ready_since = f->ready ? f->now : 0;
        break;
    case 5:
        f->request_phase =
            f->request_state == MR_STATE_IN_PROGRESS ? MR_PHASE_EXPIRED : f->request_phase;
        break;
    case 6:
        f->may_start = rng_below(rng, 4) > 0;
        break;
    case 7:
        f->unschedulable = false; /* somebody uncordons it */
        break;
    default:
        f->now += MINUTES(rng_below(rng, 5));
    }
}

PROPERTY(visit_ends_and_leaves_nothing_behind)
{
    CLEANUP(world_done)
    struct world w;
    world_init(&w);
    for (uint32_t i = 0; i < 60 && w.there; i++) {
        world_disturb(&w, rng);
        world_settle(&w);
    }
    for (uint32_t i = 0; i < 60 && w.there; i++) { /* now all goes well */
        w.f.ready = true;
        w.f.ready_since = SECONDS(1);
        w.f.drain_done = true;
        w.f.may_start = true;
        if (w.f.request_state == MR_STATE_PENDING) {
            world_approve(&w);
        }
        if (w.f.job == VISIT_JOB_ACTIVE && w.record.phase == VISIT_RUNNING) {
            world_finish_job(&w, VISIT_JOB_SUCCEEDED);
        }
        if (w.plan.reboot && w.there) {
            w.f.boot_id = STR("boot-2");
            w.reboots++;
        }
        w.f.now += MINUTES(1);
        world_settle(&w);
    }
    CHECK(!w.there);
    CHECK(w.reboots <= 1);
    CHECK_STR(w.f.visit_mark, "");
    CHECK(!w.f.unschedulable || w.plan.record.keep_cordon);
    CHECK(w.f.request_state == MR_STATE_COMPLETED);
}
