/* The numbers of a request's grants: they only go up, and what is over stays so. */
#include "tests/unit/request/phase_fixture.h"
#include "tests/unit/request/requests_fixture.h"

static void fixture_done(struct requests_fixture *q)
{
    fixture_end(q);
}

#define ALL "{\"limit\":100}"

/* ── deciding ──────────────────────────────────────────────────────────────────────────────── */

TEST(numbers_begin_with_a_grant)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_ABSENT, MR_PHASE_PENDING };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.f.grants_numbered = true;
        d.m.status.grant = 4;
        phase_fixture_hold(&d);
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
        CHECK_EQ(d.p.status.grant, 5);
        d.f.trust_approval = true;
        d.m.state = MR_STATE_IN_PROGRESS; /* adopted */
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_IN_PROGRESS);
        CHECK_EQ(d.p.status.grant, 5);
        d.m.state = MR_STATE_APPROVED;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_APPROVED);
        CHECK_EQ(d.p.status.grant, 5);
    }
}

TEST(numbers_stay_with_a_grant_until_after_its_end)
{
    static const enum mrequest_state states[] = { MR_STATE_PENDING, MR_STATE_APPROVED,
                                                  MR_STATE_IN_PROGRESS, MR_STATE_COMPLETED };
    for (size_t i = 0; i < ARRAY_LEN(all_phases); i++) {
        for (size_t k = 0; k < ARRAY_LEN(states); k++) {
            CLEANUP(phase_fixture_done)
            struct phase_fixture d = phase_fixture_in(all_phases[i]);
            if (!mrequest_phase_granted(all_phases[i])) {
                continue;
            }
            d.f.grants_numbered = true;
            d.m.status.grant = 4;
            d.m.state = states[k];
            phase_fixture_decide(&d);
            CHECK_EQ(d.p.status.grant, 4);
        }
    }
}

TEST(numbers_are_not_kept_by_a_server_that_drops_them)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PENDING);
    phase_fixture_hold(&d);
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
    CHECK_EQ(d.p.status.grant, 0);
}

/* What is there for a grant that does not come can go when the request says that it is over. */
TEST(numbers_of_grants_that_do_not_come_are_passed_over)
{
    static const enum mrequest_phase phases[] = { MR_PHASE_ABSENT, MR_PHASE_PENDING };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(phase_fixture_done)
        struct phase_fixture d = phase_fixture_in(phases[i]);
        d.f.grants_numbered = true;
        d.m.status.grant = 4;
        phase_fixture_wait(&d, ASK_WHY_LIMIT_REACHED, "LimitReached");
        d.f.ask.grant = 5;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.grant, 4);
        d.f.ask.must_close_grant = true;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
        CHECK_EQ(d.p.status.grant, 5);
        CHECK_EQ(d.p.ask, PHASE_ASK_RESERVE);
        d.f.ask.stage = ASK_ENDING;
        d.f.releasing = true;
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
        CHECK_EQ(d.p.status.grant, 5);
        CHECK_EQ(d.p.ask, PHASE_ASK_RELEASE);
        d.m.status.grant = 5; /* it is written */
        phase_fixture_decide(&d);
        CHECK_EQ(d.p.status.grant, 5);
    }
}

/* The status has lost the number of a grant, of which the lock or a reservation still speaks. */
TEST(numbers_that_the_status_has_lost_are_passed_over)
{
    CLEANUP(phase_fixture_done)
    struct phase_fixture d = phase_fixture_in(MR_PHASE_PENDING);
    d.f.grants_numbered = true;
    phase_fixture_wait(&d, ASK_WHY_NOT_COMPUTED, "NotComputed");
    d.f.ask.grant = 1;
    d.f.ask.newer_grant = 7;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
    CHECK_EQ(d.p.status.grant, 7);
    d.m.status.phase = MR_PHASE_PREPARING; /* a lower number, and not held: nobody else will say */
    d.m.status.grant = 2;
    d.f.ask.grant = 2;
    phase_fixture_decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
    CHECK_EQ(d.p.status.grant, 2); /* the next step passes over it */
}

/* ── the whole part ────────────────────────────────────────────────────────────────────────── */

static int64_t number(struct requests_fixture *q, const char *name)
{
    int64_t n = 0;
    (void)jval_i64(jval_at(fixture_find(q, name), "status.grant"), &n); /* 0: it does not say */
    return n;
}

struct entry_search {
    struct str uid;
    int64_t grant; /* -1: there is none */
};

static void entry_visit(void *ctx, const struct jval *limit)
{
    struct entry_search *s = ctx;
    JVAL_EACH (jval_at(limit, "status.reservations"), entry) {
        if (str_eq(jval_str(jval_get(entry, STR("requestUID"))), s->uid)) {
            s->grant = 0;
            (void)jval_i64(jval_get(entry, STR("grant")), &s->grant); /* 0: it does not say */
        }
    }
}

static int64_t entry_number(struct requests_fixture *q, const char *name)
{
    struct entry_search s = { .uid = fixture_text(q, name, "metadata.uid"), .grant = -1 };
    apiserver_each(q->server, FIXTURE_GROUP, STR("maintenancelimits"), STR(""), entry_visit, &s);
    return s.grant;
}

TEST(numbers_count_the_grants_of_a_request)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", ALL);
    fixture_create_request(&q, "mr-1", "node-001", "");
    for (int64_t i = 1; i <= 3; i++) {
        fixture_run_until_phase(&q, "mr-1", "Approved");
        CHECK_EQ(number(&q, "mr-1"), i);
        CHECK_EQ(entry_number(&q, "mr-1"), i);
        CHECK_EQ(fixture_locks(&q), 1);
        if (i == 2) {
            fixture_crash(&q); /* the next one goes on with the same */
            fixture_start_controller(&q);
            fixture_run(&q, MINUTES(2));
            CHECK_EQ(number(&q, "mr-1"), i);
            CHECK_EQ(entry_number(&q, "mr-1"), i);
        }
        fixture_set_state(&q, "mr-1", i < 3 ? "Pending" : "Completed");
        fixture_run(&q, MSECONDS(300));
    }
    fixture_run_until_phase(&q, "mr-1", "Completed");
    fixture_run_until_clean(&q);
    CHECK_EQ(number(&q, "mr-1"), 3);
}

/* They travel with what is written anyway. */
TEST(numbers_cost_no_write)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", ALL);
    fixture_run(&q, SECONDS(5));
    uint64_t limits = fixture_requests_sent(&q, "maintenancelimits/status", SIM_PATCH);
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_set_state(&q, "mr-1", "InProgress");
    fixture_run_until_phase(&q, "mr-1", "InProgress");
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_phase(&q, "mr-1", "Completed");
    fixture_run_until_clean(&q);
    CHECK_EQ(fixture_requests_sent(&q, "leases", SIM_POST), 1);
    CHECK_EQ(fixture_requests_sent(&q, "leases", SIM_DELETE), 1);
    /* Preparing, Approved, InProgress, Completed; and the approval itself. */
    CHECK_EQ(fixture_requests_sent(&q, "maintenancerequests/status", SIM_PATCH), 4);
    CHECK_EQ(fixture_requests_sent(&q, "maintenancerequests", SIM_PATCH), 1);
    /* In and out, and at most one for each state that the entry shows meanwhile. */
    CHECK(fixture_requests_sent(&q, "maintenancelimits/status", SIM_PATCH) - limits <= 4);
}

TEST(numbers_are_missed_by_nobody_when_the_definitions_are_old)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { .grants_unnumbered = true };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", ALL);
    fixture_create_request(&q, "mr-1", "node-001", "");
    for (uint32_t i = 1; i <= 2; i++) {
        fixture_run_until_phase(&q, "mr-1", "Approved");
        CHECK_EQ(number(&q, "mr-1"), 0);
        CHECK_EQ(entry_number(&q, "mr-1"), 0);
        fixture_set_state(&q, "mr-1", i < 2 ? "Pending" : "Completed");
        fixture_run(&q, MSECONDS(300));
    }
    fixture_run_until_phase(&q, "mr-1", "Completed");
    fixture_run_until_clean(&q);
    uint64_t written = fixture_requests_sent(&q, "maintenancelimits/status", SIM_PATCH);
    fixture_run(&q, MINUTES(10));
    CHECK_EQ(fixture_requests_sent(&q, "maintenancelimits/status", SIM_PATCH),
             written); /* nor in circles */
}

/* An older drydock has approved it: what it had put there is taken over as it is. */
TEST(numbers_are_not_asked_of_what_an_older_version_granted)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", "{\"limit\":10}");
    fixture_create_request(&q, "mr-1", "node-001", "");
    fixture_run_until_phase(&q, "mr-1", "Approved");
    fixture_crash(&q);
    struct str uid = fixture_text(&q, "mr-1", "metadata.uid");
    (void)fixture_http(&q, 200, "PATCH",
                       "/apis/repairman.k8s.io/v1/maintenancerequests/mr-1/status",
                       "{\"status\":{\"grant\":null}}");
    (void)fixture_http(&q, 200, "PATCH", "/apis/repairman.k8s.io/v1/maintenancelimits/node/status",
                       arena_printf(&q.memory,
                                    "{\"status\":{\"reservations\":[{\"requestUID\":\"" STR_FMT
                                    "\",\"requestName\":\"mr-1\",\"target\":\"node-001\"}]}}",
                                    STR_ARG(uid))
                           .p);
    fixture_start_controller(&q);
    fixture_run(&q, MINUTES(1));
    CHECK_EQ(fixture_reservations(&q), 1);
    CHECK_EQ(fixture_locks(&q), 1);
    CHECK_STR(fixture_text(&q, "mr-1", "spec.state"), "Approved");
    fixture_set_state(&q, "mr-1", "Pending"); /* from then on it counts */
    fixture_run(&q, MSECONDS(300));
    fixture_run_until_phase(&q, "mr-1", "Approved");
    CHECK_EQ(number(&q, "mr-1"), 1);
    CHECK_EQ(entry_number(&q, "mr-1"), 1);
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_clean(&q);
}

/* Somebody has overwritten the status: the lock and the reservation are of a grant that it does not
 * know any more, and nobody else will ever say that this grant is over. */
TEST(numbers_that_were_lost_on_the_server_hold_up_nobody)
{
    CLEANUP(fixture_done)
    struct requests_fixture q = { 0 };
    fixture_begin(&q, 3, 1);
    fixture_create_limit(&q, "node", ALL);
    fixture_create_request(&q, "mr-1", "node-001", "");
    for (int64_t i = 1; i <= 2; i++) {
        fixture_run_until_phase(&q, "mr-1", "Approved");
        fixture_set_state(&q, "mr-1", "Pending");
        fixture_run(&q, MSECONDS(300));
    }
    fixture_run_until_phase(&q, "mr-1", "Approved");
    CHECK_EQ(entry_number(&q, "mr-1"), 3);
    fixture_crash(&q);
    (void)fixture_http(&q, 200, "PATCH",
                       "/apis/repairman.k8s.io/v1/maintenancerequests/mr-1/status",
                       "{\"status\":{\"grant\":null,\"phase\":\"Pending\"}}");
    fixture_set_state(&q, "mr-1", "Pending");
    fixture_start_controller(&q);
    fixture_run_until_phase(&q, "mr-1", "Approved");
    CHECK_EQ(number(&q, "mr-1"), 4); /* above all that was ever there */
    CHECK_EQ(entry_number(&q, "mr-1"), 4);
    CHECK_EQ(fixture_locks(&q), 1);
    fixture_set_state(&q, "mr-1", "Completed");
    fixture_run_until_clean(&q);
}

/* What was found out about one grant is nothing to the next: whatever was under way when the first
 * one ended, the second comes to its end. */
TEST(numbers_begin_anew_whatever_was_under_way)
{
    for (uint32_t n = 0; n < 24; n++) {
        CLEANUP(fixture_done)
        struct requests_fixture q = { 0 };
        struct err err = { 0 };
        check_case((int64_t)n);
        fixture_begin(&q, 3, 1);
        fixture_create_limit(&q, "node", ALL);
        fixture_run(&q, SECONDS(5));
        fixture_create_request(&q, "mr-1", "node-001", "");
        usec_t until = virtual_loop_now(q.v) + MINUTES(1);
        while (!str_eq(fixture_text(&q, "mr-1", "status.phase"), STR("Preparing")) &&
               virtual_loop_step(q.v, until)) {
            requests_check(q.requests);
        }
        for (uint32_t i = 0; i < n && virtual_loop_step(q.v, until); i++) {
            requests_check(q.requests);
        }
        CHECK_EQ(world_remove_node(q.world, STR("node-001"), &err), 0);
        fixture_run(&q, SECONDS(10));
        CHECK_EQ(world_add_node(q.world, STR("node-001"), &err), 0);
        fixture_run_until_phase(&q, "mr-1", "Approved");
        fixture_set_state(&q, "mr-1", "Completed");
        fixture_run_until_clean(&q);
    }
    check_case(-1);
}
