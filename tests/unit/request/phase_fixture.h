/*
 * phase_fixture: one request with everything known around it, for tests of what it needs next.
 */
#pragma once

#include "request/phase.h"
#include "tests/check.h"

#define NOW SECONDS(1767323045)
#define LATER (NOW + HOURS(1))

struct phase_fixture {
    struct arena a;
    struct maintenance_request m;
    struct phase_facts f;
    struct phase_plan p;
};

UNUSED static const enum mrequest_phase all_phases[] = {
    MR_PHASE_ABSENT,      MR_PHASE_PENDING, MR_PHASE_PREPARING, MR_PHASE_APPROVED,
    MR_PHASE_IN_PROGRESS, MR_PHASE_EXPIRED, MR_PHASE_COMPLETED, MR_PHASE_REJECTED,
};

/* A valid request in that phase, with the state that belongs to it and what it holds. */
static inline struct phase_fixture phase_fixture_in(enum mrequest_phase phase)
{
    static const enum mrequest_state states[MR_PHASES] = {
        [MR_PHASE_ABSENT] = MR_STATE_PENDING,          [MR_PHASE_PENDING] = MR_STATE_PENDING,
        [MR_PHASE_PREPARING] = MR_STATE_PENDING,       [MR_PHASE_APPROVED] = MR_STATE_APPROVED,
        [MR_PHASE_IN_PROGRESS] = MR_STATE_IN_PROGRESS, [MR_PHASE_EXPIRED] = MR_STATE_IN_PROGRESS,
        [MR_PHASE_COMPLETED] = MR_STATE_COMPLETED,     [MR_PHASE_REJECTED] = MR_STATE_COMPLETED,
    };
    static const struct str limits[] = { STR_INIT("node") };
    bool holds = phase == MR_PHASE_PREPARING || mrequest_phase_with_actor(phase);
    return (struct phase_fixture){
        .m = { .uid = STR("u"),
               .created = NOW - HOURS(2),
               .generation = 3,
               .has_spec = true,
               .target = STR("n1"),
               .type_text = STR("node"),
               .type_known = true,
               .type = TARGET_NODE,
               .state = states[phase],
               .status = { .phase = phase,
                           .generation = 3,
                           .step =
                               phase == MR_PHASE_PREPARING ? MR_STEP_FINAL_CHECK : MR_STEP_ABSENT,
                           .queued = phase == MR_PHASE_ABSENT ? 0 : NOW - HOURS(2),
                           .approved = mrequest_phase_with_actor(phase) ? NOW : 0,
                           .in_progress = phase == MR_PHASE_IN_PROGRESS ? NOW : 0,
                           .finished = mrequest_phase_ended(phase) ? NOW : 0,
                           .limits = holds ? limits : NULL,
                           .limit_n = holds ? 1 : 0 } },
        .f = { .now = LATER,
               .elapsed = LATER - NOW,
               .tolerance = SECONDS(5),
               .asked = holds,
               .ask = { .stage = holds ? ASK_HELD : ASK_WAITING,
                        .next = USEC_NEVER,
                        .limits = holds ? limits : NULL,
                        .limit_n = holds ? 1 : 0 },
               .options_known = holds,
               .options = { .rejection_backoff_s = 300,
                            .ledger_init_time = USEC_NEVER,
                            .drain = { .uncordon_after = true } },
               .limit = 1 },
    };
}

static inline void phase_fixture_decide(struct phase_fixture *d)
{
    phase_decide(&d->m, &d->f, &d->a, &d->p);
}

static inline void phase_fixture_done(struct phase_fixture *d)
{
    arena_done(&d->a);
}

/* What the plan would have the status say is what it says already. */
static inline void check_nothing_to_do(struct phase_fixture *d)
{
    phase_fixture_decide(d);
    CHECK_EQ(d->p.state, MR_STATE_ABSENT);
    CHECK(!d->p.undo && !d->p.prepare && !d->p.check && !d->p.delete_object);
    CHECK(d->p.status.phase == MR_PHASE_ABSENT || mrequest_status_same(&d->p.status, &d->m.status));
    CHECK_EQ(d->p.event_n, 0);
}

static inline void check_event(const struct phase_fixture *d, const char *reason)
{
    CHECK_EQ(d->p.event_n, 1);
    CHECK_STR(d->p.events[0].reason, reason);
}

/* Pending again, with nothing left of the grant, to be released after it was written. */
static inline void check_requeued(const struct phase_fixture *d)
{
    CHECK_EQ(d->p.status.phase, MR_PHASE_PENDING);
    CHECK_EQ(d->p.status.step, MR_STEP_ABSENT);
    CHECK_EQ(d->p.status.approved, 0);
    CHECK_EQ(d->p.status.in_progress, 0);
    CHECK_EQ(d->p.status.reserved, 0);
    CHECK_EQ(d->p.status.deadline, 0);
    CHECK_EQ(d->p.status.limit_n, 0);
    CHECK(d->p.ask == PHASE_ASK_AS_IS || d->p.ask == PHASE_ASK_RELEASE);
}

static inline void phase_fixture_wait(struct phase_fixture *d, enum ask_why why, const char *reason)
{
    d->f.asked = true;
    d->f.ask = (struct ask_view){ .stage = ASK_WAITING,
                                  .why = why,
                                  .reason = str_from(reason),
                                  .message = STR("limit node: 5 of 5"),
                                  .next = USEC_NEVER,
                                  .position = 4 };
}

static inline void phase_fixture_hold(struct phase_fixture *d)
{
    static const struct str limits[] = { STR_INIT("node") };
    d->f.asked = true;
    d->f.ask =
        (struct ask_view){ .stage = ASK_HELD, .limits = limits, .limit_n = 1, .next = USEC_NEVER };
    d->f.options_known = true;
}

static inline struct phase_fixture phase_fixture_draining(void)
{
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PREPARING);
    d.m.status.step = MR_STEP_DRAIN;
    d.m.status.step_time = NOW;
    d.f.options.drain.enabled = true;
    d.f.preparing = true;
    d.f.node_marked = true;
    d.f.preparation = (struct prepare_view){ .step = PREPARE_DRAIN,
                                             .step_time = NOW,
                                             .reason = STR("Draining"),
                                             .message = STR("2 pods are left"),
                                             .cordoned = true,
                                             .pods_left = 2,
                                             .deadline = USEC_NEVER };
    return d;
}
