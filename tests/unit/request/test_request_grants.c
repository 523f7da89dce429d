/* The numbers of a request's grants: they only go up, and what is over stays so. */
#include "tests/unit/request/phase_fixture.h"
#include "tests/unit/request/requests_fixture.h"

static void quay_done(struct quay *q)
{
    quay_end(q);
}

#define ALL "{\"limit\":100}"

/* ── deciding ──────────────────────────────────────────────────────────────────────────────── */

TEST(numbers_begin_with_a_grant)
{
    static const enum mr_phase phases[] = { MR_PHASE_ABSENT, MR_PHASE_PENDING };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(desk_done)
        struct desk d = desk_of(phases[i]);
        d.f.numbered = true;
        d.m.status.grant = 4;
        hold(&d);
        decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
        CHECK_EQ(d.p.status.grant, 5);
        d.m.state = MR_STATE_IN_PROGRESS; /* adopted */
        decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_IN_PROGRESS);
        CHECK_EQ(d.p.status.grant, 5);
        d.f.trust = true;
        d.m.state = MR_STATE_APPROVED;
        decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_APPROVED);
        CHECK_EQ(d.p.status.grant, 5);
    }
}

TEST(numbers_stay_with_a_grant_until_after_its_end)
{
    static const enum mr_state states[] = { MR_STATE_PENDING, MR_STATE_APPROVED,
                                            MR_STATE_IN_PROGRESS, MR_STATE_COMPLETED };
    for (size_t i = 0; i < ARRAY_LEN(all_phases); i++) {
        for (size_t k = 0; k < ARRAY_LEN(states); k++) {
            CLEANUP(desk_done)
            struct desk d = desk_of(all_phases[i]);
            if (!mr_phase_granted(all_phases[i])) {
                continue;
            }
            d.f.numbered = true;
            d.m.status.grant = 4;
            d.m.state = states[k];
            decide(&d);
            CHECK_EQ(d.p.status.grant, 4);
        }
    }
}

TEST(numbers_are_not_kept_by_a_server_that_drops_them)
{
    CLEANUP(desk_done)
    struct desk d = desk_of(MR_PHASE_PENDING);
    hold(&d);
    decide(&d);
    CHECK_EQ(d.p.status.phase, MR_PHASE_PREPARING);
    CHECK_EQ(d.p.status.grant, 0);
}

/* What is there for a grant that does not come can go when the request says that it is over. */
TEST(numbers_of_grants_that_do_not_come_are_passed_over)
{
    static const enum mr_phase phases[] = { MR_PHASE_ABSENT, MR_PHASE_PENDING };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        CLEANUP(desk_done)
        struct desk d = desk_of(phases[i]);
        d.f.numbered = true;
        d.m.status.grant = 4;
        wait_for(&d, ASK_WHY_LIMIT_REACHED, "LimitReached");
        d.f.ask.grant = 5;
        decide(&d);
        CHECK_EQ(d.p.status.grant, 4);
        d.f.ask.must_close_grant = true;
        decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
        CHECK_EQ(d.p.status.grant, 5);
        CHECK_EQ(d.p.ask, PHASE_ASK_ROOM);
        d.f.ask.stage = ASK_ENDING;
        d.f.releasing = true;
        decide(&d);
        CHECK_EQ(d.p.status.phase, MR_PHASE_PENDING);
        CHECK_EQ(d.p.status.grant, 5);
        CHECK_EQ(d.p.ask, PHASE_ASK_NOTHING);
        d.m.status.grant = 5; /* it is written */
        decide(&d);
        CHECK_EQ(d.p.status.grant, 5);
    }
}

/* ── the whole part ────────────────────────────────────────────────────────────────────────── */

static int64_t number(struct quay *q, const char *name)
{
    int64_t n = 0;
    (void)jval_i64(jval_at(quay_find(q, name), "status.grant"), &n); /* 0: it does not say */
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

static int64_t entry_number(struct quay *q, const char *name)
{
    struct entry_search s = { .uid = quay_text(q, name, "metadata.uid"), .grant = -1 };
    apiserver_each(q->server, QUAY_GROUP, STR("maintenancelimits"), STR(""), entry_visit, &s);
    return s.grant;
}

TEST(numbers_count_the_grants_of_a_request)
{
    CLEANUP(quay_done)
    struct quay q = { 0 };
    quay_begin(&q, 3, 1);
    quay_limit(&q, "node", ALL);
    quay_request(&q, "mr-1", "node-001", "");
    for (int64_t i = 1; i <= 3; i++) {
        quay_until_phase(&q, "mr-1", "Approved");
        CHECK_EQ(number(&q, "mr-1"), i);
        CHECK_EQ(entry_number(&q, "mr-1"), i);
        CHECK_EQ(quay_locks(&q), 1);
        if (i == 2) {
            quay_crash(&q); /* the next one goes on with the same */
            quay_open(&q);
            quay_run(&q, MINUTES(2));
            CHECK_EQ(number(&q, "mr-1"), i);
            CHECK_EQ(entry_number(&q, "mr-1"), i);
        }
        quay_state(&q, "mr-1", i < 3 ? "Pending" : "Completed");
        quay_run(&q, MSECONDS(300));
    }
    quay_until_phase(&q, "mr-1", "Completed");
    quay_until_clean(&q);
    CHECK_EQ(number(&q, "mr-1"), 3);
}

/* They travel with what is written anyway. */
TEST(numbers_cost_no_write)
{
    CLEANUP(quay_done)
    struct quay q = { 0 };
    quay_begin(&q, 3, 1);
    quay_limit(&q, "node", ALL);
    quay_run(&q, SECONDS(5));
    uint64_t limits = quay_sent(&q, "maintenancelimits/status", SIM_PATCH);
    quay_request(&q, "mr-1", "node-001", "");
    quay_until_phase(&q, "mr-1", "Approved");
    quay_state(&q, "mr-1", "InProgress");
    quay_until_phase(&q, "mr-1", "InProgress");
    quay_state(&q, "mr-1", "Completed");
    quay_until_phase(&q, "mr-1", "Completed");
    quay_until_clean(&q);
    CHECK_EQ(quay_sent(&q, "leases", SIM_POST), 1);
    CHECK_EQ(quay_sent(&q, "leases", SIM_DELETE), 1);
    /* Preparing, Approved, InProgress, Completed; and the approval itself. */
    CHECK_EQ(quay_sent(&q, "maintenancerequests/status", SIM_PATCH), 4);
    CHECK_EQ(quay_sent(&q, "maintenancerequests", SIM_PATCH), 1);
    /* In and out, and at most one for each state that the entry shows meanwhile. */
    CHECK(quay_sent(&q, "maintenancelimits/status", SIM_PATCH) - limits <= 4);
}

TEST(numbers_are_missed_by_nobody_when_the_definitions_are_old)
{
    CLEANUP(quay_done)
    struct quay q = { .uncounted = true };
    quay_begin(&q, 3, 1);
    quay_limit(&q, "node", ALL);
    quay_request(&q, "mr-1", "node-001", "");
    for (uint32_t i = 1; i <= 2; i++) {
        quay_until_phase(&q, "mr-1", "Approved");
        CHECK_EQ(number(&q, "mr-1"), 0);
        CHECK_EQ(entry_number(&q, "mr-1"), 0);
        quay_state(&q, "mr-1", i < 2 ? "Pending" : "Completed");
        quay_run(&q, MSECONDS(300));
    }
    quay_until_phase(&q, "mr-1", "Completed");
    quay_until_clean(&q);
    uint64_t written = quay_sent(&q, "maintenancelimits/status", SIM_PATCH);
    quay_run(&q, MINUTES(10));
    CHECK_EQ(quay_sent(&q, "maintenancelimits/status", SIM_PATCH), written); /* nor in circles */
}

/* An older drydock has approved it: what it had put there is taken over as it is. */
TEST(numbers_are_not_asked_of_what_an_older_version_granted)
{
    CLEANUP(quay_done)
    struct quay q = { 0 };
    quay_begin(&q, 3, 1);
    quay_limit(&q, "node", "{\"limit\":10}");
    quay_request(&q, "mr-1", "node-001", "");
    quay_until_phase(&q, "mr-1", "Approved");
    quay_crash(&q);
    struct str uid = quay_text(&q, "mr-1", "metadata.uid");
    (void)quay_ask(&q, 200, "PATCH", "/apis/repairman.k8s.io/v1/maintenancerequests/mr-1/status",
                   "{\"status\":{\"grant\":null}}");
    (void)quay_ask(&q, 200, "PATCH", "/apis/repairman.k8s.io/v1/maintenancelimits/node/status",
                   arena_printf(&q.memory,
                                "{\"status\":{\"reservations\":[{\"requestUID\":\"" STR_FMT
                                "\",\"requestName\":\"mr-1\",\"target\":\"node-001\"}]}}",
                                STR_ARG(uid))
                       .p);
    quay_open(&q);
    quay_run(&q, MINUTES(1));
    CHECK_EQ(quay_reservations(&q), 1);
    CHECK_EQ(quay_locks(&q), 1);
    CHECK_STR(quay_text(&q, "mr-1", "spec.state"), "Approved");
    quay_state(&q, "mr-1", "Pending"); /* from then on it counts */
    quay_run(&q, MSECONDS(300));
    quay_until_phase(&q, "mr-1", "Approved");
    CHECK_EQ(number(&q, "mr-1"), 1);
    CHECK_EQ(entry_number(&q, "mr-1"), 1);
    quay_state(&q, "mr-1", "Completed");
    quay_until_clean(&q);
}

/* What was found out about one grant is nothing to the next: whatever was under way when the first
 * one ended, the second comes to its end. */
TEST(numbers_begin_anew_whatever_was_under_way)
{
    for (uint32_t n = 0; n < 24; n++) {
        CLEANUP(quay_done)
        struct quay q = { 0 };
        struct err err = { 0 };
        check_case((int64_t)n);
        quay_begin(&q, 3, 1);
        quay_limit(&q, "node", ALL);
        quay_run(&q, SECONDS(5));
        quay_request(&q, "mr-1", "node-001", "");
        usec_t until = virtual_loop_now(q.v) + MINUTES(1);
        while (!str_eq(quay_text(&q, "mr-1", "status.phase"), STR("Preparing")) &&
               virtual_loop_step(q.v, until)) {
            requests_check(q.requests);
        }
        for (uint32_t i = 0; i < n && virtual_loop_step(q.v, until); i++) {
            requests_check(q.requests);
        }
        CHECK_EQ(world_remove_node(q.world, STR("node-001"), &err), 0);
        quay_run(&q, SECONDS(10));
        CHECK_EQ(world_add_node(q.world, STR("node-001"), &err), 0);
        quay_until_phase(&q, "mr-1", "Approved");
        quay_state(&q, "mr-1", "Completed");
        quay_until_clean(&q);
    }
    check_case(-1);
}
