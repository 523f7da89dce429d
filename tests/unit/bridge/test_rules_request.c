#include "kinds/keys.h"
#include "bridge/rules.h"
#include "drain/drain_rules.h"
#include "tests/check.h"
#include "tests/lib/machine_node_fixture.h"

/* ── deletions ─────────────────────────────────────────────────────────────────────────────── */

TEST(rules_deletion_request_names_the_machine)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.deleting = true;
    machine_node_decide(&p);
    CHECK_STR(meta_patch_find(&p.verdict.node, true, KEY_MACHINE_DELETED)->value, "true");
    CHECK_STR(meta_patch_find(&p.verdict.node, false, KEY_DELETION_REQUEST)->value, "u-1");
    CHECK_STR(meta_patch_find(&p.verdict.node, false, KEY_DRAIN_RULES)->value, "[]");
    CHECK_EQ(p.verdict.node.n, 3);
    CHECK_EQ(machine_node_event(&p, RULES_EVENT_REQUEST_DELIVERED)->when, RULES_WITH_NODE);
}

TEST(rules_deletion_takes_away_an_approval_that_was_there_before)
{
    static const struct {
        bool label;         /* the request's, before */
        struct str request; /* and its annotation */
        struct str approved_for;
        bool stale;
    } cases[] = {
        { false, { NULL, 0 }, { NULL, 0 }, true },
        { true, { NULL, 0 }, { NULL, 0 }, true }, /* the original's request */
        { true, STR_INIT("u-0"), { NULL, 0 }, true },
        { false, STR_INIT("u-1"), { NULL, 0 }, true },
        { false, { NULL, 0 }, STR_INIT("u-0"), true },
        { false, { NULL, 0 }, STR_INIT("u-1"), false }, /* cannot be stale */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        machine_node_init(&p);
        p.machine.deleting = true;
        p.node.approve_deletion = true;
        p.node.machine_deleted = cases[i].label;
        p.node.deletion_request = cases[i].request;
        p.node.deletion_approved_for = cases[i].approved_for;
        machine_node_decide(&p);
        CHECK_EQ(machine_node_event(&p, RULES_EVENT_STALE_APPROVAL) != NULL, cases[i].stale);
        CHECK(p.machine.hook);
        machine_node_apply(&p);
        CHECK_EQ(p.node.approve_deletion, !cases[i].stale);
        CHECK_EQ(p.node.deletion_approved_for.p != NULL, !cases[i].stale);
        CHECK(p.machine.hook); /* in this pass it does not count in any case */
        (void)machine_node_settle(&p, 1);
        CHECK_EQ(p.machine.hook, cases[i].stale);
        if (cases[i].stale) {
            p.node.approve_deletion = true; /* the engine looks at it, and agrees */
            CHECK_EQ(machine_node_settle(&p, 1), 1);
            CHECK(!p.machine.hook);
        }
    }
    check_case(-1);
}

TEST(rules_deletion_does_not_heed_an_approval_that_names_another)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.deleting = true;
    (void)machine_node_settle(&p, 1);
    p.node.approve_deletion = true;
    p.node.deletion_approved_for = STR("u-0");
    (void)machine_node_settle(&p, 1);
    CHECK(p.machine.hook);
    CHECK_STR(p.verdict.reason, "ApprovalForAnother");
    CHECK(p.node.approve_deletion);
    p.node.deletion_approved_for = STR("u-1");
    (void)machine_node_settle(&p, 1);
    CHECK(!p.machine.hook);
}

/* The deletion goes on already; a request that is put back is no reason to ask anew. */
TEST(rules_deletion_leaves_the_approval_that_has_let_it_go)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.deleting = true;
    (void)machine_node_settle(&p, 1);
    p.node.approve_deletion = true;
    (void)machine_node_settle(&p, 1);
    CHECK_STR(p.machine.released, "Approved");
    p.node.machine_deleted = false;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(p.node.machine_deleted && p.node.approve_deletion);
}

TEST(rules_deletion_never_removes_an_approval_when_strict)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.options.strict_approval = true;
    p.machine.deleting = true;
    p.node.approve_deletion = true;
    p.node.deletion_approved_for = STR("u-0");
    machine_node_decide(&p);
    CHECK(meta_patch_find(&p.verdict.node, true, KEY_APPROVE_DELETION) == NULL);
    CHECK(meta_patch_find(&p.verdict.machine, false, KEY_HOOK)->remove); /* honoured at once */
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(p.node.approve_deletion && p.node.deletion_approved_for.p != NULL);
}

TEST(rules_deletion_is_not_asked_of_a_node_without_an_engine)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.options.eager = true;
    p.machine.deleting = true;
    p.node.managed = p.node.operational = false;
    machine_node_decide(&p);
    CHECK_EQ(p.verdict.node.n, 0);
    p.node.machine_deleted = true; /* the engine has gone */
    p.node.deletion_request = STR("u-1");
    (void)machine_node_settle(&p, 1);
    CHECK(!workload_node_marked(&p.node));
}

/* B16, for a hold that ended without the Node going away. */
TEST(rules_deletion_clears_a_used_approval_after_a_minute_in_service)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.node.machine_deleted = true;
    p.node.deletion_request = STR("u-0"); /* of the Machine that had this Node before */
    p.node.approve_deletion = true;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(!p.node.machine_deleted && p.node.approve_deletion);
    CHECK_STR(p.node.deletion_request, "u-0"); /* it tells that the approval was an answer */
    CHECK(rules_deletion_leftover(&p.machine, &p.node));
    p.leftover = SECONDS(10);
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    CHECK_EQ(p.verdict.next, p.facts.wall + SECONDS(50));
    p.leftover = SECONDS(60);
    p.options.strict_approval = true;
    p.machine.hook = false;
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    p.options.strict_approval = false;
    p.machine.hook = true;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(!p.node.approve_deletion && p.node.deletion_request.p == NULL);
    CHECK(!rules_deletion_leftover(&p.machine, &p.node));
}

TEST(rules_deletion_leaves_an_approval_that_answers_nothing_of_ours)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.node.approve_deletion = true;
    p.leftover = HOURS(1);
    CHECK(!rules_deletion_leftover(&p.machine, &p.node));
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    p.node.deletion_request = STR("u-1");
    p.node.operational = false;
    CHECK(!rules_deletion_leftover(&p.machine, &p.node));
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
}

/* ── maintenance: asking ───────────────────────────────────────────────────────────────────── */

TEST(rules_maintenance_goes_from_request_to_approval_and_back)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    machine_node_decide(&p);
    CHECK_EQ(machine_node_event(&p, RULES_EVENT_REQUEST_DELIVERED)->when, RULES_WITH_NODE);
    CHECK_EQ(p.verdict.phase, RULES_PHASE_REQUESTED);
    CHECK(!p.verdict.approves);
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(p.node.machine_maintenance);
    CHECK_STR(p.node.maintenance_request, "u-1/1");

    p.node.operational = false;
    p.node.approve_maintenance = true;
    machine_node_decide(&p);
    CHECK(p.verdict.approves);
    CHECK_EQ(machine_node_event(&p, RULES_EVENT_APPROVAL_RECEIVED)->when, RULES_WITH_MACHINE);
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK_EQ(p.machine.request, MACHINE_REQUEST_APPROVED);
    CHECK_STR(p.machine.granted, "u-1/1");
    CHECK(p.machine.skip_empty && p.machine.skip_ours);
    CHECK(p.node.machine_maintenance && p.node.approve_maintenance);
    CHECK_EQ(p.verdict.phase, RULES_PHASE_IN_MAINTENANCE);
    CHECK(str_contains(p.machine.status, STR("\"InMaintenance\"")));
    p.node.approve_maintenance = false; /* as the original: it stays approved */
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p) && p.verdict.event_n == 0);

    p.machine.request = MACHINE_REQUEST_NONE;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(!p.node.machine_maintenance && !p.machine.skip && !p.machine.skip_ours);
    CHECK(p.machine.status.p == NULL);
    CHECK_STR(p.node.maintenance_request, "u-1/1"); /* it carries the number */
    CHECK_EQ(p.verdict.phase, RULES_PHASE_PROTECTED);
}

/* B3: what was given for one request does not count for the next. */
TEST(rules_maintenance_needs_a_new_approval_for_every_request)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    (void)machine_node_settle(&p, 1);
    p.node.approve_maintenance = true;
    (void)machine_node_settle(&p, 1);
    CHECK_EQ(p.machine.request, MACHINE_REQUEST_APPROVED);
    for (uint32_t n = 2; n < 5; n++) {
        if (n % 2 == 0) { /* withdrawn in between, or set back at once */
            p.machine.request = MACHINE_REQUEST_NONE;
            (void)machine_node_settle(&p, 1);
        }
        p.machine.request = MACHINE_REQUEST_REQUESTED;
        machine_node_decide(&p);
        CHECK(machine_node_event(&p, RULES_EVENT_STALE_APPROVAL) != NULL && !p.verdict.approves);
        machine_node_apply(&p);
        (void)machine_node_settle(&p, 1);
        CHECK_EQ(p.machine.request, MACHINE_REQUEST_REQUESTED);
        CHECK(!p.node.approve_maintenance);
        CHECK_STR(p.node.maintenance_request, arena_printf(&p.memory, "u-1/%u", n));
        p.node.approve_maintenance = true;
        (void)machine_node_settle(&p, 1);
        CHECK_EQ(p.machine.request, MACHINE_REQUEST_APPROVED);
        CHECK_STR(p.machine.granted, p.node.maintenance_request);
    }
}

TEST(rules_maintenance_counts_on_from_what_it_finds)
{
    static const struct {
        struct str request; /* at the Node */
        struct str granted;
        const char *wanted;
    } cases[] = {
        { { NULL, 0 }, { NULL, 0 }, "u-1/1" },
        { STR_INIT("u-1/7"), { NULL, 0 }, "u-1/8" },
        { { NULL, 0 }, STR_INIT("u-1/3"), "u-1/4" }, /* the Node was made anew */
        { STR_INIT("u-1/7"), STR_INIT("u-1/9"), "u-1/10" },
        { STR_INIT("u-0/7"), STR_INIT("u-0/9"), "u-1/1" }, /* of another Machine */
        { STR_INIT("u-1"), STR_INIT("u-1/"), "u-1/1" },
        { STR_INIT("u-1/x"), STR_INIT("u-1/-1"), "u-1/1" },
        { STR_INIT(""), STR_INIT(""), "u-1/1" },
        { STR_INIT("u-1/99999999999999999999999"), STR_INIT("u-1/2"), "u-1/3" },
        { STR_INIT("u-1/18446744073709551615"), { NULL, 0 }, "u-1/1" },
        { STR_INIT("u-1/1000000000000"), { NULL, 0 }, "u-1/1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        machine_node_init(&p);
        p.machine.request = MACHINE_REQUEST_REQUESTED;
        p.machine.granted = cases[i].granted;
        p.node.maintenance_request = cases[i].request;
        CHECK_EQ(machine_node_settle(&p, 1), 1);
        CHECK_STR(p.node.maintenance_request, cases[i].wanted);
    }
    check_case(-1);
}

TEST(rules_maintenance_heeds_whom_an_approval_names)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    (void)machine_node_settle(&p, 1);
    p.node.approve_maintenance = true;
    p.node.maintenance_approved_for = STR("u-1/0");
    (void)machine_node_settle(&p, 1);
    CHECK_EQ(p.machine.request, MACHINE_REQUEST_REQUESTED);
    CHECK_STR(p.verdict.reason, "ApprovalForAnother");
    p.node.maintenance_approved_for = STR("u-1/1");
    (void)machine_node_settle(&p, 1);
    CHECK_EQ(p.machine.request, MACHINE_REQUEST_APPROVED);

    p.machine.request = MACHINE_REQUEST_REQUESTED; /* again: what names the last one goes along */
    (void)machine_node_settle(&p, 1);
    CHECK(p.node.maintenance_approved_for.p == NULL && !p.node.approve_maintenance);
}

TEST(rules_maintenance_says_why_it_waits)
{
    static const struct {
        enum rules_node_sight sight;
        bool managed;
        const char *reason;
    } cases[] = {
        { RULES_NODE_SEEN, true, "WaitingForApproval" },
        { RULES_NODE_SEEN, false, "EngineAbsent" },
        { RULES_NODE_MISSED, true, "NodeMissing" },
        { RULES_NODE_ABSENT, true, "NodeMissing" },
        { RULES_NODE_UNKNOWN, true, "ClusterUnreachable" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        machine_node_init(&p);
        p.machine.request = MACHINE_REQUEST_REQUESTED;
        p.facts.sight = cases[i].sight;
        p.node.managed = p.node.operational = cases[i].managed;
        CHECK_EQ(machine_node_settle(&p, 1), 1);
        CHECK_EQ(p.verdict.phase, RULES_PHASE_REQUESTED);
        CHECK_STR(p.verdict.reason, cases[i].reason);
        CHECK(str_contains(p.machine.status, str_from(cases[i].reason)));
        CHECK(p.verdict.message.n > 0);
    }
    check_case(-1);
}

/* ── maintenance: withheld ─────────────────────────────────────────────────────────────────── */

TEST(rules_maintenance_is_withheld_from_machines_that_are_busy)
{
    static const struct {
        bool updating;
        bool deleting;
        bool control_plane;
        uint32_t members;
        uint32_t available;
        uint32_t taken;
        const char *reason; /* NULL = it is approved */
    } cases[] = {
        { false, false, false, 0, 0, 0, NULL },
        { true, false, false, 0, 0, 0, "InPlaceUpdate" },
        { false, false, false, 2, 0, 2, NULL }, /* a worker does not count */
        { false, false, true, 0, 0, 0, NULL },  /* a control plane of one */
        { false, false, true, 2, 2, 0, NULL },
        { false, false, true, 2, 2, 1, "ControlPlaneBusy" },
        { false, false, true, 2, 1, 0, "ControlPlaneQuorum" },
        { false, false, true, 1, 1, 0, "ControlPlaneQuorum" }, /* one of two is none */
        { false, false, true, 4, 3, 0, NULL },
        { false, false, true, 4, 2, 0, "ControlPlaneQuorum" },
        { false, false, true, 3, 3, 0, NULL },
        { false, false, true, 3, 2, 0, "ControlPlaneQuorum" },
        { true, false, true, 2, 0, 1, "InPlaceUpdate" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        machine_node_init(&p);
        p.machine.request = MACHINE_REQUEST_REQUESTED;
        p.machine.updating = cases[i].updating;
        p.machine.control_plane = cases[i].control_plane;
        p.facts.members = cases[i].members;
        p.facts.available = cases[i].available;
        p.facts.taken = cases[i].taken;
        (void)machine_node_settle(&p, 1);
        p.node.approve_maintenance = true;
        machine_node_decide(&p);
        CHECK_EQ(p.verdict.approves, cases[i].reason == NULL);
        CHECK_STR(p.verdict.reason, cases[i].reason != NULL ? cases[i].reason : "Approved");
        (void)machine_node_settle(&p, 1);
        p.options.strict_approval = true; /* guards what the original does not know of, too */
        (void)machine_node_settle(&p, 1);
        CHECK_EQ(p.machine.request,
                 cases[i].reason != NULL ? MACHINE_REQUEST_REQUESTED : MACHINE_REQUEST_APPROVED);
        p.machine.updating = false;
        p.machine.control_plane = false;
        (void)machine_node_settle(&p, 1);
        CHECK_EQ(p.machine.request, MACHINE_REQUEST_APPROVED);
    }
    check_case(-1);
}

TEST(rules_maintenance_is_withheld_from_a_machine_that_is_deleted)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    p.machine.deleting = true;
    (void)machine_node_settle(&p, 1);
    CHECK(p.node.machine_maintenance && p.node.machine_deleted);
    p.node.approve_maintenance = true;
    machine_node_decide(&p);
    CHECK(!p.verdict.approves && machine_node_unchanged(&p));
    CHECK_EQ(p.verdict.phase, RULES_PHASE_HOLDING);
}

/* ── maintenance: who wrote it ─────────────────────────────────────────────────────────────── */

TEST(rules_maintenance_does_not_fight_a_template)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    p.machine.request_templated = true;
    (void)machine_node_settle(&p, 1);
    p.node.approve_maintenance = true;
    machine_node_decide(&p);
    CHECK(p.verdict.approves && machine_node_event(&p, RULES_EVENT_APPROVAL_RECEIVED) != NULL);
    CHECK(meta_patch_find(&p.verdict.machine, true, KEY_MAINTENANCE) == NULL);
    (void)machine_node_settle(&p, 1);
    CHECK_EQ(p.machine.request, MACHINE_REQUEST_REQUESTED);
    CHECK(p.machine.approved_by_annotation && rules_approved(&p.machine) && p.machine.skip_ours);
    CHECK_STR(p.machine.granted, "u-1/1");
    CHECK_EQ(p.verdict.phase, RULES_PHASE_IN_MAINTENANCE);
    p.node.approve_maintenance = false;
    CHECK_EQ(machine_node_settle(&p, 1), 0);

    p.machine.request = MACHINE_REQUEST_NONE;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(!p.machine.approved_by_annotation && !p.machine.skip);
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK_STR(p.node.maintenance_request, "u-1/2");
    CHECK(!rules_approved(&p.machine));
}

TEST(rules_maintenance_reports_an_approval_that_nobody_gave)
{
    static const struct {
        struct str granted;
        struct str request; /* at the Node */
        bool approval;      /* its label is there */
        bool forged;
    } cases[] = {
        { { NULL, 0 }, { NULL, 0 }, false, true },
        { { NULL, 0 }, STR_INIT("u-1/1"), false, true },
        { STR_INIT("u-1/1"), STR_INIT("u-1/2"), false, true },
        { STR_INIT("u-1/1"), STR_INIT("u-1/1"), false, false },
        { STR_INIT("u-1/1"), { NULL, 0 }, false, false }, /* the Node was made anew */
        { { NULL, 0 }, { NULL, 0 }, true, false },        /* taken over from the original */
        { { NULL, 0 }, STR_INIT("u-1/1"), true, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int refuse = 0; refuse < 2; refuse++) {
            check_case((int64_t)i * 2 + refuse);
            CLEANUP(machine_node_done)
            struct machine_node_fixture p;
            machine_node_init(&p);
            p.options.refuse_forged = refuse == 1;
            p.machine.request = MACHINE_REQUEST_APPROVED;
            p.machine.granted = cases[i].granted;
            p.node.machine_maintenance = true;
            p.node.maintenance_request = cases[i].request;
            p.node.approve_maintenance = cases[i].approval;
            machine_node_decide(&p);
            CHECK_EQ(machine_node_event(&p, RULES_EVENT_FORGED) != NULL, cases[i].forged);
            CHECK(meta_patch_find(&p.verdict.machine, false, KEY_GRANTED) == NULL);
            bool back = cases[i].forged && refuse == 1;
            (void)machine_node_settle(&p, 2);
            CHECK_EQ(p.machine.request,
                     back ? MACHINE_REQUEST_REQUESTED : MACHINE_REQUEST_APPROVED);
            CHECK_EQ(p.node.approve_maintenance, cases[i].approval);
            CHECK_EQ(p.machine.skip, !back);
            p.facts.sight = RULES_NODE_UNKNOWN;
            machine_node_decide(&p);
            CHECK(machine_node_event(&p, RULES_EVENT_FORGED) ==
                  NULL); /* judged only where it can be seen */
        }
    }
    check_case(-1);
}

TEST(rules_maintenance_keeps_the_request_of_a_node_made_anew)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.request = MACHINE_REQUEST_APPROVED;
    p.machine.granted = STR("u-1/5");
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(p.node.machine_maintenance);
    CHECK_STR(p.node.maintenance_request, "u-1/5");
}

TEST(rules_maintenance_that_somebody_else_approved_is_not_answered_by_what_lies_around)
{
    static const struct str requests[] = { { NULL, 0 }, STR_INIT("u-1/1") };
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        check_case((int64_t)i);
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        machine_node_init(&p);
        p.machine.request = MACHINE_REQUEST_APPROVED;
        p.node.maintenance_request = requests[i]; /* of one that was withdrawn */
        p.node.approve_maintenance = true;
        CHECK_EQ(machine_node_settle(&p, 2), 1);
        CHECK(p.node.machine_maintenance && !p.node.approve_maintenance);
        CHECK_STR(p.node.maintenance_request, "u-1/1");
        p.machine.request = MACHINE_REQUEST_REQUESTED;
        (void)machine_node_settle(&p, 2);
        CHECK(!rules_approved(&p.machine));
        p.node.approve_maintenance = true;
        CHECK_EQ(machine_node_settle(&p, 2), 1);
        CHECK(rules_approved(&p.machine));
    }
    check_case(-1);
}

/* ── maintenance: the end ──────────────────────────────────────────────────────────────────── */

TEST(rules_maintenance_clears_a_used_approval_after_a_minute_in_service)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.node.maintenance_request = STR("u-1/1");
    p.node.approve_maintenance = true;
    p.leftover = SECONDS(59);
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    CHECK_EQ(p.verdict.next, p.facts.wall + SECONDS(1));
    p.node.operational = false; /* the engine still works on it */
    p.leftover = SECONDS(60);
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p) && p.verdict.next == USEC_NEVER);
    p.node.operational = true;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(!p.node.approve_maintenance);
    CHECK_STR(p.node.maintenance_request, "u-1/1");
    p.node.approve_maintenance = true;
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    CHECK(!rules_maintenance_leftover(&p.machine, &p.node));
}

TEST(rules_maintenance_leaves_what_others_say_about_remediation)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.request = MACHINE_REQUEST_APPROVED;
    p.machine.granted = STR("u-1/1");
    p.machine.skip = true; /* somebody else's, with the same value */
    p.machine.skip_empty = true;
    (void)machine_node_settle(&p, 1);
    CHECK(!p.machine.skip_ours);
    p.machine.request = MACHINE_REQUEST_NONE;
    (void)machine_node_settle(&p, 1);
    CHECK(p.machine.skip);

    p.machine.skip_ours = true; /* ours, and somebody has written over it */
    p.machine.skip_empty = false;
    (void)machine_node_settle(&p, 1);
    CHECK(p.machine.skip && !p.machine.skip_ours);

    p.machine = (struct machine){ .uid = STR("u-1"),
                                  .node = STR("n1"),
                                  .enabled = true,
                                  .name = STR("m1"),
                                  .namespace = STR("t"),
                                  .hook = true,
                                  .request = MACHINE_REQUEST_APPROVED,
                                  .deleting = true };
    (void)machine_node_settle(&p, 1);
    CHECK(!p.machine.skip); /* what is deleted is not remediated */
}
