/* The table of docs/contract/requests.md, cell by cell. The names of the tests begin with the row.
 */
#include "tests/unit/request/phase_fixture.h"

/* ── E1, E2 ────────────────────────────────────────────────────────────────────────────────── */

TEST(e1_a_new_request_asks_and_says_nothing_before_the_answer)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_ABSENT);
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.ask, PHASE_ASK_RESERVE);
    CHECK(!d.p.ask_last);
    CHECK_EQ(d.p.status.phase, MR_PHASE_ABSENT);
    d.f.asked = true;
    d.f.ask.stage = ASK_TAKING;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_ABSENT);
}

TEST(e1_pending_becomes_preparing_when_it_is_held)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_ABSENT, MR_PHASE_PENDING };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        phase_fixture_hold(&d);
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
        CHECK_EQ(d.p.status.step, MR_STEP_FINAL_CHECK); /* nothing is to be prepared */
        CHECK_EQ(d.p.status.reserved, LATER);
        CHECK_EQ(d.p.status.limit_n, 1);
        CHECK_EQ(d.p.status.queued, NOW - HOURS(2));
        CHECK_EQ(d.p.state, MR_STATE_ABSENT);
        CHECK(!d.p.check && !d.p.prepare); /* not before that is on the server */
        CHECK_EQ(d.p.status.conditions[COND_LIMIT_AVAILABLE].status, COND_TRUE);
        CHECK_EQ(d.p.status.conditions[COND_LIMIT_AVAILABLE].generation, 3);
    }
}

TEST(e1_a_drain_begins_with_the_cordon)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PENDING);
    phase_fixture_hold(&d);
    d.f.options.drain.enabled = true;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.step, MR_STEP_CORDON);
    CHECK_EQ(d.p.status.conditions[COND_PREPARED].status, COND_FALSE);
    d.m.unprepared = true; /* an actor that drains itself */
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.step, MR_STEP_FINAL_CHECK);
}

TEST(e1_e2_room_or_none_is_nothing_to_all_later_phases)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_APPROVED, MR_PHASE_IN_PROGRESS,
                                                  MR_PHASE_EXPIRED, MR_PHASE_COMPLETED,
                                                  MR_PHASE_REJECTED };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        check_nothing_to_do(&d);
        phase_fixture_wait(&d, ASK_WHY_LIMIT_REACHED, "LimitReached");
        d.f.options_known = false;
        check_nothing_to_do(&d);
    }
}

TEST(e2_pending_says_what_it_waits_for)
{
    static const struct {
        enum ask_why why;
        const char *reason;
    } cases[] = {
        { ASK_WHY_LIMIT_REACHED, "LimitReached" },
        { ASK_WHY_TARGET_BUSY, "TargetBusy" },
        { ASK_WHY_PAUSED, "Paused" },
        { ASK_WHY_GAP, "Gap" },
        { ASK_WHY_NOT_COMPUTED, "NotComputed" },
        { ASK_WHY_BACKOFF, "Backoff" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(MR_PHASE_ABSENT);
        phase_fixture_wait(&d, cases[i].why, cases[i].reason);
        d.f.ask.next = LATER + 7;
        phase_fixture_decide(&d);
        const struct mrequest_condition *c = &d.p.status.conditions[COND_LIMIT_AVAILABLE];
        CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
        CHECK_STR(d.p.status.reason, cases[i].reason);
        CHECK_EQ(d.p.status.position, 4);
        CHECK_EQ(c->status, COND_FALSE);
        CHECK_STR(c->reason, cases[i].reason);
        CHECK_STR(c->message, "limit node: 5 of 5");
        CHECK_EQ(d.p.status.conditions[COND_ACCEPTED].status, COND_TRUE);
        CHECK_EQ(d.p.next, LATER + 7);
        CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    }
    check_case(-1);
}

TEST(e2_a_preparation_whose_reservation_was_lost_rolls_back)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PREPARING);
    phase_fixture_wait(&d, ASK_WHY_LIMIT_REACHED, "LimitReached");
    phase_fixture_decide(&d);
    check_requeued(&d);
    check_event(&d, "MaintenanceDelayed");
    CHECK(d.p.rollback.wanted);
    CHECK_EQ(d.p.status.rejections, 0);
}

TEST(g1_an_invalid_request_asks_for_nothing_and_says_why)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_ABSENT);
    d.m.type_known = false;
    d.m.type_text = STR("pod");
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.ask, PHASE_ASK_RELEASE);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
    CHECK_EQ(d.p.status.conditions[COND_ACCEPTED].status, COND_FALSE);
    CHECK_STR(d.p.status.conditions[COND_ACCEPTED].reason, "UnsupportedType");
    d.m.has_spec = false;
    d.m.type_text = STR_NONE;
    d.m.state = MR_STATE_ABSENT;
    phase_fixture_decide(&d);
    CHECK_STR(d.p.status.reason, "InvalidSpec");
}

/* ── E3 … E7 ───────────────────────────────────────────────────────────────────────────────── */

TEST(e3_each_step_that_is_done_leads_to_the_next)
{
    static const struct {
        enum prepare_step from;
        enum mrequest_step to;
    } cases[] = {
        { PREPARE_CORDON, MR_STEP_CORDON },
        { PREPARE_DRAIN, MR_STEP_DRAIN },
        { PREPARE_DRAIN_GRACE, MR_STEP_DRAIN_GRACE },
        { PREPARE_DETACH, MR_STEP_DETACH },
        { PREPARE_DETACH_GRACE, MR_STEP_DETACH_GRACE },
        { PREPARE_DONE, MR_STEP_FINAL_CHECK },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_draining();
        d.f.preparation.step = cases[i].from;
        d.f.preparation.step_time = NOW + SECONDS(9);
        phase_fixture_decide(&d);
        CHECK(d.p.prepare);
        CHECK(!d.p.check);
        CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
        CHECK_EQ(d.p.status.step, cases[i].to);
        CHECK_EQ(d.p.status.step_time, cases[i].to == MR_STEP_DRAIN ? NOW : NOW + SECONDS(9));
        CHECK_EQ(phase_prepare_step(cases[i].to), cases[i].from);
        CHECK(d.p.status.cordoned);
        CHECK_EQ(d.p.status.pods_left, 2);
        bool done = cases[i].from == PREPARE_DONE;
        CHECK_EQ(d.p.status.conditions[COND_PREPARED].status, done ? COND_TRUE : COND_FALSE);
    }
    check_case(-1);
}

TEST(e3_the_final_check_runs_when_its_step_is_on_the_server)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PREPARING);
    phase_fixture_decide(&d);
    CHECK(d.p.check);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
}

TEST(e4_a_check_that_has_passed_approves)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PREPARING);
    d.f.check = PHASE_CHECK_PASSED;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_APPROVED);
    CHECK(d.p.approves);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING); /* the state is written first */
    d.m.state = MR_STATE_APPROVED;
    d.f.check = PHASE_CHECK_NONE;
    d.f.approved_by_us = true;
    d.f.options.approved_s = 60;
    d.f.limit = 5;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    CHECK_EQ(d.p.status.phase, MR_PHASE_APPROVED);
    CHECK_EQ(d.p.status.approved, LATER);
    CHECK_EQ(d.p.status.deadline, LATER + SECONDS(60));
    CHECK_EQ(d.p.status.conditions[COND_SAFE].status, COND_TRUE);
    check_event(&d, "MaintenanceApproved");
    CHECK_STR(d.p.events[0].note, "approved maintenance request, under limits 5");
}

TEST(e5_a_check_that_failed_rolls_back_after_the_cordon_is_gone)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PREPARING);
    d.f.check = PHASE_CHECK_FAILED;
    d.f.check_error = STR("limit 'node' is paused");
    d.f.node_marked = true;
    phase_fixture_decide(&d);
    CHECK(d.p.undo && d.p.uncordon);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
    CHECK_EQ(d.p.ask, PHASE_ASK_AS_IS); /* nothing is released yet */
    CHECK(d.p.rollback.wanted);
    d.f.rollback = d.p.rollback;
    d.f.check = PHASE_CHECK_NONE;
    d.f.node_marked = false;
    phase_fixture_decide(&d);
    check_requeued(&d);
    check_event(&d, "MaintenanceDelayed");
    CHECK_STR(d.p.events[0].note, "limit 'node' is paused");
    CHECK_EQ(d.p.status.queued, NOW - HOURS(2)); /* it keeps its place */
    CHECK_EQ(d.p.status.rejections, 0);
    CHECK_EQ(d.p.status.conditions[COND_SAFE].status, COND_FALSE);
}

TEST(e5_what_was_rolled_back_is_released_before_it_asks_again)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PENDING);
    phase_fixture_hold(&d);
    d.f.releasing = true;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.ask, PHASE_ASK_RELEASE);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
    d.f.releasing = false;
    d.f.asked = false;
    d.f.pause_until = LATER + SECONDS(10);
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.ask, PHASE_ASK_RELEASE);
    CHECK_EQ(d.p.next, LATER + SECONDS(10));
    d.f.pause_until = LATER;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.ask, PHASE_ASK_RESERVE);
}

TEST(e6_a_preparation_that_takes_too_long_is_rejected)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_draining();
    d.f.preparation.rejected = true;
    phase_fixture_decide(&d);
    CHECK(d.p.undo && d.p.uncordon && !d.p.prepare);
    d.f.rollback = d.p.rollback;
    d.f.preparing = false;
    d.f.node_marked = false;
    phase_fixture_decide(&d);
    check_requeued(&d);
    check_event(&d, "MaintenanceRejected");
    CHECK_EQ(d.p.status.rejections, 1);
    CHECK_STR(d.p.status.rejection_reason, "DrainTimeout");
    CHECK_EQ(d.p.status.rejection_time, LATER);
    CHECK_STR(d.p.status.conditions[COND_PREPARED].reason, "DrainTimeout");
    CHECK_EQ(d.p.status.queued, LATER);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
}

TEST(e6_volumes_that_stay_are_named_as_such)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_draining();
    d.f.preparation.rejected = true;
    d.f.preparation.step = PREPARE_DETACH;
    d.f.node_marked = false;
    phase_fixture_decide(&d);
    CHECK_STR(d.p.status.rejection_reason, "DetachTimeout");
}

TEST(e6_the_last_rejection_allowed_closes_the_request)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_draining();
    d.f.preparation.rejected = true;
    d.f.node_marked = false;
    d.f.options.max_rejections = 3;
    d.m.status.rejections = 1;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
    d.m.status.rejections = 2;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_REJECTED);
    CHECK_EQ(d.p.status.result, MR_RESULT_REJECTED);
    CHECK_EQ(d.p.status.rejections, 3);
    CHECK_EQ(d.p.status.finished, LATER);
    check_event(&d, "MaintenanceRejected");
    /* The state follows: nobody could have begun. */
    d.m.status = d.p.status;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_COMPLETED);
}

TEST(e7_a_time_limit_that_proceeds_is_just_the_next_step)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_draining();
    d.f.preparation.step = PREPARE_DETACH;
    d.f.preparation.pods_left = 2;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.step, MR_STEP_DETACH);
    CHECK_EQ(d.p.status.rejections, 0);
    CHECK(d.p.prepare);
}

/* ── E8, E9, E10 ───────────────────────────────────────────────────────────────────────────── */

TEST(e8_the_actor_begins)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_APPROVED);
    d.m.state = MR_STATE_IN_PROGRESS;
    d.f.options.in_progress_s = 600;
    d.f.node_marked = true;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_IN_PROGRESS);
    CHECK_EQ(d.p.status.in_progress, LATER);
    CHECK_EQ(d.p.status.approved, NOW);
    CHECK_EQ(d.p.status.deadline, LATER + SECONDS(600));
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    CHECK(!d.p.undo);
}

TEST(e8_in_progress_and_expired_stay)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_IN_PROGRESS, MR_PHASE_EXPIRED };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        check_nothing_to_do(&d);
    }
}

TEST(e8_an_actor_that_was_faster_than_our_record_is_at_work)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PREPARING);
    d.m.state = MR_STATE_IN_PROGRESS;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_IN_PROGRESS);
    CHECK_EQ(d.p.status.approved, LATER);
    CHECK_EQ(d.p.event_n, 0);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
}

TEST(e9_completed_from_each_phase)
{
    static const struct {
        enum mrequest_phase from;
        enum mrequest_result result;
    } cases[] = {
        { MR_PHASE_ABSENT, MR_RESULT_WITHDRAWN },      { MR_PHASE_PENDING, MR_RESULT_WITHDRAWN },
        { MR_PHASE_PREPARING, MR_RESULT_WITHDRAWN },   { MR_PHASE_APPROVED, MR_RESULT_SUCCEEDED },
        { MR_PHASE_IN_PROGRESS, MR_RESULT_SUCCEEDED }, { MR_PHASE_EXPIRED, MR_RESULT_SUCCEEDED },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(cases[i].from);
        d.m.state = MR_STATE_COMPLETED;
        d.f.node_marked = cases[i].from >= MR_PHASE_PREPARING;
        d.f.options_known = true;
        phase_fixture_decide(&d);
        if (d.f.node_marked) {
            CHECK(d.p.undo && d.p.uncordon);
            CHECK_EQ(d.p.status.phase, cases[i].from); /* uncordoned first (R3) */
            CHECK_EQ(d.p.event_n, 0);
            d.f.node_marked = false;
            phase_fixture_decide(&d);
        }
        CHECK_EQ(d.p.status.phase, MR_PHASE_COMPLETED);
        CHECK_EQ(d.p.status.result, cases[i].result);
        CHECK_EQ(d.p.status.finished, LATER);
        CHECK_EQ(d.p.state, MR_STATE_ABSENT);
        check_event(&d, "MaintenanceCompleted");
    }
    check_case(-1);
}

/* Where the actor says so; what was given up before it began cannot have failed. */
TEST(e9_work_that_has_failed_ends_as_failed)
{
    static const struct {
        enum mrequest_phase from;
        enum mrequest_result result;
    } cases[] = {
        { MR_PHASE_PENDING, MR_RESULT_WITHDRAWN }, { MR_PHASE_PREPARING, MR_RESULT_WITHDRAWN },
        { MR_PHASE_APPROVED, MR_RESULT_FAILED },   { MR_PHASE_IN_PROGRESS, MR_RESULT_FAILED },
        { MR_PHASE_EXPIRED, MR_RESULT_FAILED },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(cases[i].from);
        d.m.state = MR_STATE_COMPLETED;
        d.m.failed = true;
        d.f.options_known = true;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_COMPLETED);
        CHECK_EQ(d.p.status.result, cases[i].result);
        CHECK_STR(d.p.status.reason, mrequest_result_name(cases[i].result).p);
    }
    check_case(-1);
}

TEST(e9_what_was_withdrawn_after_its_approval_did_not_succeed)
{
    static const struct {
        enum mrequest_phase from;
        enum mrequest_result result;
    } cases[] = {
        { MR_PHASE_PENDING, MR_RESULT_WITHDRAWN },
        { MR_PHASE_PREPARING, MR_RESULT_WITHDRAWN },
        { MR_PHASE_APPROVED, MR_RESULT_WITHDRAWN },
        { MR_PHASE_IN_PROGRESS, MR_RESULT_SUCCEEDED }, /* there was work */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(cases[i].from);
        d.m.state = MR_STATE_COMPLETED;
        d.m.withdrawn = true;
        d.f.approved_by_us = true;
        d.f.options_known = true;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_COMPLETED);
        CHECK_EQ(d.p.status.result, cases[i].result);
    }
    check_case(-1);
}

TEST(e9_a_cordon_that_is_to_stay_stays)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_IN_PROGRESS);
    d.m.state = MR_STATE_COMPLETED;
    d.f.node_marked = true;
    d.f.options.drain = (struct limit_drain){ .enabled = true, .uncordon_after = false };
    phase_fixture_decide(&d);
    CHECK(d.p.undo && !d.p.uncordon);
    /* Before the limits are known nobody can tell. */
    d.f.options_known = false;
    phase_fixture_decide(&d);
    CHECK(!d.p.undo);
    CHECK_EQ(d.p.status.phase, MR_PHASE_IN_PROGRESS);
    CHECK_EQ(d.p.ask, PHASE_ASK_ADOPT);
}

TEST(e9_completed_is_terminal)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_COMPLETED, MR_PHASE_REJECTED };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        check_nothing_to_do(&d);
        CHECK_EQ(d.p.ask, PHASE_ASK_RELEASE);
    }
}

TEST(e10_the_actor_gives_it_back)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_APPROVED, MR_PHASE_IN_PROGRESS,
                                                  MR_PHASE_EXPIRED };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        check_case((int64_t)i);
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.m.state = MR_STATE_PENDING;
        d.f.node_marked = true;
        phase_fixture_decide(&d);
        CHECK(d.p.undo && d.p.uncordon);
        CHECK_EQ(d.p.status.phase, phases[i]);
        d.f.node_marked = false;
        phase_fixture_decide(&d);
        check_requeued(&d);
        CHECK_EQ(d.p.status.queued, LATER);
        CHECK_EQ(d.p.status.rejections, 0);
        CHECK_EQ(d.p.event_n, 0);
    }
    check_case(-1);
}

TEST(e10_pending_is_nothing_new_to_pending_and_preparing)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PENDING);
    check_nothing_to_do(&d);
    CLEANUP(phase_fixture_done)
    struct phase_fixture e = phase_fixture_in(MR_PHASE_PREPARING);
    phase_fixture_decide(&e);
    CHECK(mrequest_status_same(&e.p.status, &e.m.status));
    CHECK_EQ(e.p.ask, PHASE_ASK_RESERVE);
}

/* ── E11 and R17 ───────────────────────────────────────────────────────────────────────────── */

TEST(e11_a_forged_approval_is_taken_back)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PENDING);
    d.m.state = MR_STATE_APPROVED;
    d.m.created = 0; /* as old as may be: it was seen before, so it is no legacy */
    d.f.options.ledger_init_time = LATER;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_PENDING);
    check_event(&d, "ForgedApproval");
    CHECK(d.p.events[0].warning);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
}

TEST(e11_one_created_as_approved_waits_for_the_limits_and_is_forged)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_ABSENT);
    d.m.state = MR_STATE_APPROVED;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    CHECK_EQ(d.p.ask, PHASE_ASK_RESERVE);
    phase_fixture_hold(&d);
    phase_fixture_decide(&d); /* the limit does not say yet since when it is kept */
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    CHECK_EQ(d.p.next, LATER + SECONDS(1));
    d.f.options.ledger_init_time = d.m.created;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_PENDING);
    check_event(&d, "ForgedApproval");
    d.f.ask.limit_n = 0; /* without any limit there is nothing to take over from */
    d.f.options.ledger_init_time = USEC_NEVER;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_PENDING);
}

TEST(e11_one_approved_before_us_is_adopted)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_ABSENT);
    d.m.state = MR_STATE_APPROVED;
    phase_fixture_wait(&d, ASK_WHY_LIMIT_REACHED, "LimitReached");
    d.f.ask.limit_n = 1;
    d.f.options_known = true;
    d.f.options.ledger_init_time = d.m.created + SECONDS(1);
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.ask, PHASE_ASK_ADOPT);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    CHECK_EQ(d.p.status.phase, MR_PHASE_ABSENT);
    /* While it is asked for anew, what was judged stays judged. */
    d.f.ask.stage = ASK_ENDING;
    d.f.options_known = false;
    d.f.ask_adopts = true;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.ask, PHASE_ASK_ADOPT);
    phase_fixture_hold(&d);
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_APPROVED);
    CHECK_EQ(d.p.status.approved, LATER); /* its time begins now */
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    check_event(&d, "RequestAdopted");
}

TEST(e11_trust_adopts_every_approval)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_ABSENT, MR_PHASE_PENDING };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.m.state = MR_STATE_APPROVED;
        d.f.trust_approval = true;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.ask, PHASE_ASK_ADOPT);
        CHECK_EQ(d.p.state, MR_STATE_ABSENT);
        phase_fixture_hold(&d);
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_APPROVED);
    }
}

TEST(e11_an_invalid_request_is_never_adopted_as_approved)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_ABSENT);
    d.m.state = MR_STATE_APPROVED;
    d.m.target = STR_NONE;
    d.f.trust_approval = true;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_PENDING);
}

TEST(e11_work_that_was_never_granted_is_forged)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_ABSENT); /* created as InProgress */
    d.m.state = MR_STATE_IN_PROGRESS;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    CHECK_EQ(d.p.ask, PHASE_ASK_RESERVE);
    CHECK_EQ(d.p.status.phase, MR_PHASE_ABSENT);
    phase_fixture_hold(&d);
    d.f.options.ledger_init_time = d.m.created;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_PENDING);
    CHECK_EQ(d.p.status.phase, MR_PHASE_ABSENT);
    check_event(&d, "ForgedApproval");
    CHECK(d.p.events[0].warning);
    CLEANUP(phase_fixture_done)
    struct phase_fixture e = phase_fixture_in(MR_PHASE_PENDING); /* written over Pending */
    e.m.state = MR_STATE_IN_PROGRESS;
    e.f.options.ledger_init_time = LATER;
    e.f.ask_adopts = true; /* the ask of a grant that is over is still being ended */
    e.m.status.grant = 1;
    phase_fixture_decide(&e);
    CHECK_EQ(e.p.state, MR_STATE_PENDING);
    CHECK_EQ(e.p.status.phase, MR_PHASE_PENDING);
    check_event(&e, "ForgedApproval");
}

TEST(e11_work_during_the_preparation_is_forged_before_its_end)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_draining();
    d.m.state = MR_STATE_IN_PROGRESS;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_PENDING);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
    CHECK_EQ(d.p.ask, PHASE_ASK_RESERVE);
    CHECK(d.p.prepare);
    check_event(&d, "ForgedApproval");
    /* The actor may begin before the status says Approved. */
    d.m.status.step = MR_STEP_FINAL_CHECK;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    CHECK_EQ(d.p.status.phase, MR_PHASE_IN_PROGRESS);
}

TEST(e11_work_that_began_before_us_is_adopted)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_ABSENT);
    d.m.state = MR_STATE_IN_PROGRESS;
    phase_fixture_wait(&d, ASK_WHY_LIMIT_REACHED, "LimitReached");
    d.f.ask.limit_n = 1;
    d.f.options_known = true;
    d.f.options.ledger_init_time = d.m.created + SECONDS(1);
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.ask, PHASE_ASK_ADOPT);
    CHECK_EQ(d.p.status.phase, MR_PHASE_IN_PROGRESS);
    CHECK_EQ(d.p.status.in_progress, LATER);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    check_event(&d, "RequestAdopted");
}

TEST(e11_trust_adopts_work_that_goes_on)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_ABSENT, MR_PHASE_PENDING };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.m.state = MR_STATE_IN_PROGRESS;
        d.f.trust_approval = true;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.ask, PHASE_ASK_ADOPT);
        CHECK_EQ(d.p.status.phase, MR_PHASE_IN_PROGRESS);
        CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    }
}

TEST(e11_an_approval_during_the_preparation_is_checked_now)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PREPARING);
    d.m.state = MR_STATE_APPROVED;
    phase_fixture_decide(&d);
    CHECK(d.p.check);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
    d.f.check = PHASE_CHECK_PASSED;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_APPROVED);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    d.f.check = PHASE_CHECK_FAILED;
    phase_fixture_decide(&d); /* the state is taken back before anything else */
    CHECK_EQ(d.p.state, MR_STATE_PENDING);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
    CHECK(d.p.rollback.wanted);
    CHECK(!d.p.undo);
    d.f.rollback = d.p.rollback;
    d.m.state = MR_STATE_PENDING;
    phase_fixture_decide(&d);
    check_requeued(&d);
}

TEST(e11_approved_is_nothing_new_to_later_phases)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_APPROVED, MR_PHASE_IN_PROGRESS,
                                                  MR_PHASE_EXPIRED, MR_PHASE_COMPLETED };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        check_case((int64_t)i);
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.m.state = MR_STATE_APPROVED;
        check_nothing_to_do(&d);
    }
    check_case(-1);
}
