/* The table of docs/contract/requests.md, its rows about time and the world around. The names of
 * the tests begin with the row. */
#include "tests/unit/request/phase_fixture.h"

/* ── E12 … E15: time limits ────────────────────────────────────────────────────────────────── */

TEST(e12_an_approval_nobody_uses_is_taken_back)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_APPROVED);
    d.f.options.approved_s = 60;
    phase_fixture_decide(&d);
    /* First it is recorded, so that a crash does not forget why. */
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    CHECK_EQ(d.p.status.phase, MR_PHASE_APPROVED);
    CHECK_STR(d.p.status.conditions[COND_TIMED_OUT].reason, "ApprovedTimeout");
    d.m.status = d.p.status;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_PENDING);
    CHECK_EQ(d.p.status.phase, MR_PHASE_APPROVED);
    d.m.state = MR_STATE_PENDING;
    phase_fixture_decide(&d);
    check_requeued(&d);
    CHECK_EQ(d.p.status.rejections, 1);
    CHECK_STR(d.p.status.rejection_reason, "ApprovedTimeout");
    CHECK_EQ(d.p.status.queued, LATER);
    CHECK_EQ(d.p.status.conditions[COND_TIMED_OUT].status, COND_FALSE);
    check_event(&d, "MaintenanceRejected");
}

/* A clock that began with a late answer may be behind: whoever reads the time with a better one
 * must not find that more has passed than has. */
TEST(e12_a_time_limit_never_begins_early_by_a_clock_in_doubt)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_PREPARING, MR_PHASE_APPROVED };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        check_case((int64_t)i);
        d.f.clock_lag = SECONDS(16);
        d.f.options.approved_s = 60;
        d.f.options.in_progress_s = 60;
        d.f.approved_by_us = true;
        d.m.state = phases[i] == MR_PHASE_PREPARING ? MR_STATE_APPROVED : MR_STATE_IN_PROGRESS;
        phase_fixture_decide(&d);
        bool begun = d.p.status.phase == MR_PHASE_IN_PROGRESS;
        CHECK(begun || d.p.status.phase == MR_PHASE_APPROVED);
        CHECK_EQ(begun ? d.p.status.in_progress : d.p.status.approved, LATER + SECONDS(16));
        CHECK_EQ(d.p.status.deadline, LATER + SECONDS(76));
    }
    check_case(-1);
}

TEST(e12_the_actor_that_begins_at_the_last_moment_has_begun)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_APPROVED);
    d.f.options.approved_s = 60;
    phase_fixture_decide(&d);
    d.m.status = d.p.status;
    d.m.state = MR_STATE_IN_PROGRESS; /* our write of Pending would have met a conflict */
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    CHECK_EQ(d.p.status.phase, MR_PHASE_IN_PROGRESS);
    CHECK_EQ(d.p.status.rejections, 0);
    CHECK_EQ(d.p.status.conditions[COND_TIMED_OUT].status, COND_FALSE);
}

TEST(e13_close_ends_it)
{
    for (int round = 0; round < 2; round++) {
        check_case(round);
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(MR_PHASE_APPROVED);
        d.f.options.approved_s = 60;
        if (round == 0) {
            d.f.options.on_approved = ON_APPROVED_CLOSE;
        } else {
            d.f.options.max_rejections = 1;
        }
        phase_fixture_decide(&d);
        d.m.status = d.p.status;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.state, MR_STATE_COMPLETED);
        d.m.state = MR_STATE_COMPLETED;
        d.f.node_marked = true;
        phase_fixture_decide(&d);
        CHECK(d.p.undo && d.p.uncordon);
        d.f.node_marked = false;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_REJECTED);
        CHECK_EQ(d.p.status.result, MR_RESULT_REJECTED);
        CHECK_EQ(d.p.status.rejections, 1);
        check_event(&d, "MaintenanceRejected");
    }
    check_case(-1);
}

TEST(e14_work_that_takes_too_long_expires_and_keeps_its_state_and_cordon)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_IN_PROGRESS);
    d.f.options.in_progress_s = 60;
    d.f.options.drain.enabled = true;
    d.f.node_marked = true;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_EXPIRED);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT); /* R5 */
    CHECK(!d.p.undo);
    CHECK_EQ(d.p.status.conditions[COND_TIMED_OUT].status, COND_TRUE);
    check_event(&d, "MaintenanceExpired");
    d.m.status = d.p.status;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.ask, PHASE_ASK_RELEASE);
    CHECK(!d.p.undo);
    CHECK(mrequest_status_same(&d.p.status, &d.m.status));
}

TEST(e14_a_cordon_that_is_to_stay_loses_its_mark_when_work_expires)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_IN_PROGRESS);
    d.f.options.in_progress_s = 60;
    d.f.options.drain = (struct limit_drain){ .enabled = true, .uncordon_after = false };
    d.f.node_marked = true;
    phase_fixture_decide(&d);
    CHECK(d.p.undo && !d.p.uncordon);
    CHECK_EQ(d.p.status.phase, MR_PHASE_IN_PROGRESS);
}

TEST(e15_requeue_close_and_hold)
{
    static const struct {
        enum on_in_progress action;
        enum mrequest_state state;
        enum mrequest_phase phase;
    } cases[] = {
        { ON_PROGRESS_REQUEUE, MR_STATE_PENDING, MR_PHASE_PENDING },
        { ON_PROGRESS_CLOSE, MR_STATE_COMPLETED, MR_PHASE_REJECTED },
        { ON_PROGRESS_HOLD, MR_STATE_ABSENT, MR_PHASE_IN_PROGRESS },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(MR_PHASE_IN_PROGRESS);
        d.f.options.in_progress_s = 60;
        d.f.options.on_in_progress = cases[i].action;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.state, MR_STATE_ABSENT);
        CHECK_EQ(d.p.status.conditions[COND_TIMED_OUT].status, COND_TRUE);
        CHECK_EQ(d.p.event_n, cases[i].action == ON_PROGRESS_HOLD ? 1 : 0);
        d.m.status = d.p.status;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.state, cases[i].state);
        if (cases[i].action == ON_PROGRESS_HOLD) {
            CHECK(mrequest_status_same(&d.p.status, &d.m.status)); /* told once */
            CHECK_EQ(d.p.event_n, 0);
            d.m.state = MR_STATE_COMPLETED;
            phase_fixture_decide(&d);
            CHECK_EQ(d.p.status.result, MR_RESULT_SUCCEEDED);
            continue;
        }
        d.m.state = cases[i].state;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, cases[i].phase);
        CHECK_EQ(d.p.status.rejections, 1);
    }
    check_case(-1);
}

/* R7: for any limit, tolerance and time passed, nothing fires before both have gone by; and the
 * plan names the moment at which it will. */
PROPERTY(timeouts_never_fire_early)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d =
        phase_fixture_in(rng_below(rng, 2) == 0 ? MR_PHASE_APPROVED : MR_PHASE_IN_PROGRESS);
    uint32_t seconds = 1 + (uint32_t)rng_below(rng, 10000);
    d.f.tolerance = SECONDS(rng_below(rng, 30));
    d.f.options.approved_s = seconds;
    d.f.options.in_progress_s = seconds;
    usec_t due = SECONDS(seconds) + d.f.tolerance;
    d.f.elapsed = due - 1 - (usec_t)rng_below(rng, (uint32_t)SECONDS(1));
    d.f.elapsed = MAX(d.f.elapsed, 0);
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.conditions[COND_TIMED_OUT].status, COND_ABSENT);
    CHECK_EQ(d.p.next, d.f.now + (due - d.f.elapsed));
    d.f.elapsed = due;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.conditions[COND_TIMED_OUT].status, COND_TRUE);
}

TEST(timeouts_start_at_the_next_whole_second)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PREPARING);
    d.m.state = MR_STATE_APPROVED;
    d.f.approved_by_us = true;
    d.f.now = LATER + 1;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.approved, LATER + SECONDS(1));
    CHECK_EQ(phase_timer(&d.p.status), LATER + SECONDS(1));
}

TEST(timeouts_wait_until_the_limits_are_known)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_APPROVED, MR_PHASE_IN_PROGRESS };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.f.options.approved_s = 60;
        d.f.options.in_progress_s = 60;
        d.f.options_known = false;
        d.f.asked = false;
        check_nothing_to_do(&d);
        CHECK_EQ(d.p.ask, PHASE_ASK_ADOPT);
    }
}

TEST(timeouts_that_are_lengthened_are_taken_back)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_APPROVED);
    d.f.options.approved_s = 60;
    phase_fixture_decide(&d);
    d.m.status = d.p.status;
    d.f.options.approved_s = 100000;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    CHECK_EQ(d.p.status.conditions[COND_TIMED_OUT].status, COND_FALSE);
    CHECK_EQ(d.p.status.deadline, NOW + SECONDS(100000));
}

/* ── back-off ──────────────────────────────────────────────────────────────────────────────── */

TEST(backoff_puts_the_same_client_and_target_behind_all_others)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_ABSENT, MR_PHASE_PENDING };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.f.options_known = true;
        d.f.rejected = LATER - SECONDS(10);
        phase_fixture_decide(&d);
        CHECK(d.p.ask_last);
        CHECK_EQ(d.p.next, LATER + SECONDS(290));
        d.f.now = LATER + SECONDS(290);
        phase_fixture_decide(&d);
        CHECK(!d.p.ask_last);
        d.f.now = LATER;
        d.f.options.rejection_backoff_s = 0;
        phase_fixture_decide(&d);
        CHECK(!d.p.ask_last);
    }
}

/* ── E16 … E22 ─────────────────────────────────────────────────────────────────────────────── */

TEST(e16_a_target_that_is_gone)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PENDING);
    phase_fixture_wait(&d, ASK_WHY_TARGET_NOT_FOUND, "TargetNotFound");
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
    CHECK_EQ(d.p.status.conditions[COND_ACCEPTED].status, COND_FALSE);
    CHECK_STR(d.p.status.conditions[COND_ACCEPTED].reason, "TargetNotFound");
    CLEANUP(phase_fixture_done)
    struct phase_fixture e = phase_fixture_in(MR_PHASE_PREPARING);
    e.f.target_gone = true;
    phase_fixture_decide(&e);
    check_requeued(&e);
    CHECK_STR(e.p.status.reason, "TargetNotFound");
    CHECK_EQ(e.p.status.rejections, 0);
}

TEST(e16_e17_what_was_given_stays_given)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_APPROVED, MR_PHASE_IN_PROGRESS,
                                                  MR_PHASE_EXPIRED, MR_PHASE_COMPLETED,
                                                  MR_PHASE_REJECTED };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.f.target_gone = true;
        check_nothing_to_do(&d);
        d.f.target_gone = false;
        d.f.target_changed = true;
        check_nothing_to_do(&d);
    }
    /* The actor may be replacing it: the time limit still runs. */
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_APPROVED);
    d.f.target_gone = true;
    d.f.options.approved_s = 60;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.conditions[COND_TIMED_OUT].status, COND_TRUE);
}

TEST(e17_another_target_of_that_name)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PREPARING);
    d.f.target_changed = true;
    phase_fixture_decide(&d);
    check_requeued(&d);
    CHECK_STR(d.p.status.reason, "TargetReplaced");
}

TEST(e18_a_lower_limit_revokes_nothing)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_APPROVED, MR_PHASE_IN_PROGRESS };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.f.limit = 0;
        check_nothing_to_do(&d);
    }
}

TEST(e19_a_limit_that_no_longer_applies_is_dropped)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_APPROVED, MR_PHASE_IN_PROGRESS };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.f.ask.limits = NULL;
        d.f.ask.limit_n = 0;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, phases[i]);
        CHECK_EQ(d.p.status.limit_n, 0);
        CHECK_EQ(d.p.state, MR_STATE_ABSENT);
    }
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PREPARING);
    d.f.ask.limit_n = 0;
    phase_fixture_decide(&d);
    CHECK(d.p.check); /* it goes on with the others */
}

TEST(e20_a_request_that_is_being_deleted_gets_nothing_new)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PENDING);
    d.m.deleting = true;
    phase_fixture_hold(&d);
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.ask, PHASE_ASK_RELEASE);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
}

TEST(e21_after_a_restart_each_phase_goes_on)
{
    for (size_t i = 0; i < ARRAY_LEN(all_phases); i++) {
        check_case((int64_t)i);
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(all_phases[i]);
        d.f.asked = false;
        d.f.options_known = false;
        d.f.options = (struct limit_options){ .ledger_init_time = USEC_NEVER };
        d.f.ask = (struct ask_view){ .next = USEC_NEVER };
        check_nothing_to_do(&d);
        enum phase_ask ask = mrequest_phase_with_actor(all_phases[i]) ? PHASE_ASK_ADOPT
                             : all_phases[i] >= MR_PHASE_EXPIRED      ? PHASE_ASK_RELEASE
                                                                      : PHASE_ASK_RESERVE;
        CHECK_EQ(d.p.ask, ask);
    }
    check_case(-1);
}

TEST(e21_a_drain_is_resumed_at_its_step)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_draining();
    d.f.preparing = false;
    phase_fixture_decide(&d);
    CHECK(d.p.prepare);
    CHECK(mrequest_status_same(&d.p.status, &d.m.status));
}

TEST(e22_nothing_is_decided_while_the_books_cannot_be_read)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_draining();
    phase_fixture_wait(&d, ASK_WHY_NOT_COMPUTED, "NotComputed");
    phase_fixture_decide(&d);
    CHECK(!d.p.prepare && !d.p.check && !d.p.undo);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
    CHECK_EQ(d.p.state, MR_STATE_ABSENT);
}

TEST(a_cordon_that_arrives_late_is_undone)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_PENDING, MR_PHASE_COMPLETED,
                                                  MR_PHASE_REJECTED };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.f.node_marked = true;
        phase_fixture_decide(&d);
        CHECK(d.p.undo && d.p.uncordon);
        CHECK_EQ(d.p.ask, PHASE_ASK_AS_IS); /* what is held goes after that */
        d.f.node_marked = false;
        phase_fixture_decide(&d);
        CHECK(!d.p.undo);
        CHECK_EQ(d.p.ask, phases[i] == MR_PHASE_PENDING ? PHASE_ASK_RESERVE : PHASE_ASK_RELEASE);
    }
}

TEST(a_strange_state_is_left_alone)
{
    for (size_t i = 0; i < ARRAY_LEN(all_phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(all_phases[i]);
        d.m.state = MR_STATE_OTHER;
        check_nothing_to_do(&d);
        CHECK_EQ(d.p.ask, PHASE_ASK_AS_IS);
    }
}

/* ── the time to live ──────────────────────────────────────────────────────────────────────── */

TEST(a_finished_request_is_deleted_after_its_time)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_COMPLETED);
    phase_fixture_decide(&d);
    CHECK(!d.p.delete_object); /* 0 keeps it for ever */
    CHECK_EQ(d.p.next, USEC_NEVER);
    d.f.finished_ttl = HOURS(2);
    phase_fixture_decide(&d);
    CHECK(!d.p.delete_object);
    CHECK_EQ(d.p.next, NOW + HOURS(2));
    d.f.now = NOW + HOURS(2);
    phase_fixture_decide(&d);
    CHECK(d.p.delete_object);
    d.m.has_ttl = true; /* its own word counts more */
    d.m.ttl_s = 3 * 3600;
    phase_fixture_decide(&d);
    CHECK(!d.p.delete_object);
    d.m.ttl_s = 0;
    d.f.now = LATER;
    phase_fixture_decide(&d);
    CHECK(d.p.delete_object);
    d.m.deleting = true;
    phase_fixture_decide(&d);
    CHECK(!d.p.delete_object);
}

/* Whatever the object and the facts, there is an answer that keeps the invariants. */
PROPERTY(every_combination_has_an_answer)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(all_phases[rng_below(rng, MR_PHASES)]);
    d.m.state = (enum mrequest_state)rng_below(rng, 6);
    d.m.has_spec = rng_below(rng, 8) > 0;
    d.m.deleting = rng_below(rng, 8) == 0;
    d.m.status.step = (enum mrequest_step)rng_below(rng, 7);
    d.f.asked = rng_below(rng, 2) > 0;
    d.f.ask.stage = (enum ask_stage)rng_below(rng, 5);
    d.f.ask.why = (enum ask_why)rng_below(rng, 9);
    d.f.options_known = rng_below(rng, 2) > 0;
    d.f.options.approved_s = (uint32_t)rng_below(rng, 2) * 60;
    d.f.options.in_progress_s = (uint32_t)rng_below(rng, 2) * 60;
    d.f.options.drain.enabled = rng_below(rng, 2) > 0;
    d.f.options.max_rejections = (uint32_t)rng_below(rng, 3);
    d.f.options.on_in_progress = (enum on_in_progress)rng_below(rng, 4);
    d.f.releasing = rng_below(rng, 4) == 0;
    d.f.node_marked = rng_below(rng, 2) > 0;
    d.f.preparing = rng_below(rng, 2) > 0;
    d.f.preparation.step = (enum prepare_step)rng_below(rng, 6);
    d.f.preparation.rejected = rng_below(rng, 4) == 0;
    d.f.preparation.deadline = USEC_NEVER;
    d.f.check = (enum phase_check)rng_below(rng, 4);
    d.f.approved_by_us = rng_below(rng, 4) == 0;
    d.f.target_gone = rng_below(rng, 4) == 0;
    phase_fixture_decide(&d);
    enum mrequest_phase before = d.m.status.phase;
    CHECK(d.p.state != MR_STATE_APPROVED ||
          (before == MR_PHASE_PREPARING && d.f.asked && d.f.ask.stage == ASK_HELD)); /* R2 */
    bool forged = before < MR_PHASE_PREPARING ||
                  (before == MR_PHASE_PREPARING && d.m.status.step != MR_STEP_FINAL_CHECK);
    CHECK(d.m.state != MR_STATE_IN_PROGRESS || d.p.state == MR_STATE_ABSENT || forged ||
          d.f.options.on_in_progress == ON_PROGRESS_REQUEUE ||
          d.f.options.on_in_progress == ON_PROGRESS_CLOSE || before == MR_PHASE_REJECTED); /* R5 */
    CHECK(d.m.state != MR_STATE_COMPLETED || d.p.state == MR_STATE_ABSENT);                /* R6 */
    CHECK(!mrequest_phase_ended(before) || d.p.status.phase == before);
    CHECK(!(d.p.undo && d.p.prepare));
    CHECK(!d.p.undo || d.f.node_marked); /* R8 */
    /* R3: what is held is given back only by a phase that holds nothing. */
    CHECK(d.p.ask != PHASE_ASK_RELEASE || before < MR_PHASE_PREPARING ||
          before >= MR_PHASE_EXPIRED || !d.m.has_spec);
}
