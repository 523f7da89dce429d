#include "kinds/keys.h"
#include "bridge/rules.h"
#include "tests/check.h"
#include "tests/lib/machine_node_fixture.h"

/* A held deletion: the hook is there and the request has been delivered. */
static void held(struct machine_node_fixture *p)
{
    machine_node_init(p);
    p->machine.deleting = true;
    p->machine.deleted_at = p->facts.wall;
    CHECK_EQ(machine_node_settle(p, 1), 1);
    CHECK(p->machine.hook && p->node.machine_deleted);
    CHECK_STR(p->node.deletion_request, "u-1");
    CHECK_EQ(p->verdict.phase, RULES_PHASE_HOLDING);
}

/* The hook goes with this verdict, for this reason, and stays away whatever happens. */
static void check_released(struct machine_node_fixture *p, const char *reason)
{
    machine_node_decide(p);
    const struct rules_event_record *events = machine_node_event(p, RULES_EVENT_HOOK_RELEASED);
    CHECK(events != NULL && events->when == RULES_WITH_MACHINE);
    CHECK(meta_patch_find(&p->verdict.machine, false, KEY_HOOK)->remove);
    CHECK_STR(meta_patch_find(&p->verdict.machine, false, KEY_RELEASED)->value, reason);
    CHECK_EQ(p->verdict.phase,
             p->machine.enabled ? RULES_PHASE_LETTING_GO : RULES_PHASE_NOT_ENABLED);
    machine_node_apply(p);
    (void)machine_node_settle(p, 2);
    CHECK(!p->machine.hook);
}

static void check_kept(struct machine_node_fixture *p, const char *reason)
{
    machine_node_decide(p);
    CHECK(meta_patch_find(&p->verdict.machine, false, KEY_HOOK) == NULL);
    CHECK(meta_patch_find(&p->verdict.machine, false, KEY_RELEASED) == NULL);
    CHECK(machine_node_event(p, RULES_EVENT_HOOK_RELEASED) == NULL);
    CHECK_EQ(p->verdict.phase, RULES_PHASE_HOLDING);
    CHECK_STR(p->verdict.reason, reason);
}

/* ── the rows of the table, in their order ─────────────────────────────────────────────────── */

TEST(rules_hook_is_removed_when_the_machine_is_not_enabled)
{
    static const char *const values[] = { "runtime-extension-maintenance-controller",
                                          "runtime-extensions-maintenance-controller", "", "x" };
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        machine_node_init(&p);
        p.machine.enabled = false;
        p.machine.hook_value = str_from(values[i]);
        for (enum rules_node_sight sight = RULES_NODE_UNKNOWN; sight <= RULES_NODE_ABSENT;
             sight++) {
            p.facts.sight = sight;
            machine_node_decide(&p);
            CHECK(meta_patch_find(&p.verdict.machine, false, KEY_HOOK)->remove);
            CHECK(meta_patch_find(&p.verdict.machine, false, KEY_RELEASED) == NULL);
        }
        machine_node_done(&p);
        held(&p);
        p.machine.enabled = false;
        check_released(&p, "NotEnabled");
        p.machine.enabled = true; /* again, while it is deleted */
        (void)machine_node_settle(&p, 2);
        CHECK(!p.machine.hook);
    }
}

TEST(rules_hook_is_removed_on_a_valid_approval)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    held(&p);
    p.node.approve_deletion = true;
    p.cluster.deleting = true; /* a later row */
    check_released(&p, "Approved");
    CHECK(p.node.machine_deleted); /* the request stays for as long as it is deleted */
}

TEST(rules_hook_is_removed_when_the_cluster_goes)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    held(&p);
    p.cluster.deleting = true;
    p.facts.sight = RULES_NODE_ABSENT; /* a later row */
    check_released(&p, "ClusterDeleted");
    machine_node_done(&p);

    held(&p);
    p.gone = true;
    check_released(&p, "ClusterDeleted");
    machine_node_done(&p);

    machine_node_init(&p); /* a Machine that is not deleted keeps it */
    p.cluster.deleting = true;
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
}

TEST(rules_hook_is_removed_when_live_reads_find_no_node)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    held(&p);
    p.facts.sight = RULES_NODE_MISSED;
    check_kept(&p, "NodeMissing");
    CHECK(machine_node_unchanged(&p)); /* nothing is told before it is confirmed */
    CHECK(p.verdict.confirm_absent);
    p.facts.sight = RULES_NODE_UNKNOWN;
    check_kept(&p, "ClusterUnreachable");
    CHECK(!p.verdict.confirm_absent);
    p.facts.sight = RULES_NODE_ABSENT;
    machine_node_decide(&p);
    CHECK_EQ(machine_node_event(&p, RULES_EVENT_NODE_MISSING)->when, RULES_WITH_MACHINE);
    check_released(&p, "NodeMissing");
}

TEST(rules_hook_stays_for_a_missing_node_when_that_is_wanted)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    held(&p);
    p.options.missing_holds = true;
    p.facts.sight = RULES_NODE_ABSENT;
    check_kept(&p, "NodeMissing");
    CHECK_EQ(machine_node_event(&p, RULES_EVENT_NODE_MISSING)->when, RULES_WITH_MACHINE);
    machine_node_apply(&p);
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p) && p.verdict.event_n == 0);
}

TEST(rules_hook_stays_while_a_cluster_is_away_unless_there_is_a_limit)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    held(&p);
    p.facts.sight = RULES_NODE_UNKNOWN;
    p.facts.unreachable_for = DAYS(30);
    check_kept(&p, "ClusterUnreachable");
    p.options.unreachable_max = HOURS(2);
    p.facts.unreachable_for = HOURS(2) - 1;
    check_kept(&p, "ClusterUnreachable");
    CHECK_EQ(p.verdict.next, p.facts.wall + 1);
    p.facts.unreachable_for = HOURS(2);
    machine_node_decide(&p);
    CHECK_EQ(machine_node_event(&p, RULES_EVENT_UNREACHABLE)->when, RULES_WITH_MACHINE);
    CHECK_EQ(p.verdict.event_n, 2);
    check_released(&p, "ClusterUnreachable");
}

TEST(rules_hook_does_not_go_for_an_absence_that_is_over)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    held(&p);
    p.options.unreachable_max = HOURS(2);
    p.facts.unreachable_for = HOURS(3); /* a number left over: the Node is seen */
    check_kept(&p, "WaitingForApproval");
}

TEST(rules_hook_goes_when_its_time_is_over_and_never_early)
{
    static const struct {
        usec_t flag;
        usec_t own;
        usec_t waits; /* after the deletion */
        usec_t end;   /* after the deletion; 0 = never */
    } cases[] = {
        { 0, 0, 0, 0 },
        { HOURS(1), 0, 0, HOURS(1) },
        { 0, MINUTES(5), 0, MINUTES(5) },
        { HOURS(1), MINUTES(5), 0, MINUTES(5) },
        { HOURS(1), HOURS(9), 0, HOURS(9) },
        { HOURS(1), USEC_NEVER, 0, 0 },
        { HOURS(1), 0, MINUTES(2), HOURS(1) + MINUTES(2) },
        { USEC_NEVER - 1, 0, 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        held(&p);
        usec_t start = p.facts.wall;
        p.options.hold_max = cases[i].flag;
        p.options.skew = SECONDS(10);
        p.machine.hold_max = cases[i].own;
        p.machine.hooks_wait_since = cases[i].waits > 0 ? start + cases[i].waits : 0;
        p.facts.wall = start + DAYS(400);
        if (cases[i].end == 0) {
            check_kept(&p, "WaitingForApproval");
            CHECK_EQ(p.verdict.next, USEC_NEVER);
            continue;
        }
        usec_t end = start + cases[i].end + SECONDS(10);
        p.facts.wall = end - 1;
        check_kept(&p, "WaitingForApproval");
        CHECK_EQ(p.verdict.next, end);
        p.facts.wall = end;
        machine_node_decide(&p);
        CHECK_EQ(machine_node_event(&p, RULES_EVENT_HOLD_OVER)->when, RULES_WITH_MACHINE);
        check_released(&p, "HoldTimeOver");
    }
    check_case(-1);
}

TEST(rules_hook_has_no_time_limit_without_a_beginning)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    held(&p);
    p.machine.deleted_at = 0;
    p.machine.hold_max = SECONDS(1);
    check_kept(&p, "WaitingForApproval");
}

TEST(rules_hook_is_attached_to_what_an_engine_manages)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.hook = false;
    machine_node_decide(&p);
    CHECK_STR(meta_patch_find(&p.verdict.machine, false, KEY_HOOK)->value,
              "runtime-extension-maintenance-controller");
    CHECK_EQ(machine_node_event(&p, RULES_EVENT_HOOK_ATTACHED)->when, RULES_WITH_MACHINE);
    CHECK_EQ(machine_node_settle(&p, 1), 1);

    p.machine.hook = false; /* also while it is deleted, if it was never released */
    p.machine.deleting = true;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(p.machine.hook);
}

TEST(rules_hook_is_removed_from_what_no_engine_manages)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.node.managed = p.node.operational = false;
    machine_node_decide(&p);
    CHECK(meta_patch_find(&p.verdict.machine, false, KEY_HOOK)->remove);
    CHECK(meta_patch_find(&p.verdict.machine, false, KEY_RELEASED) == NULL);
    machine_node_apply(&p);
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    CHECK_EQ(p.verdict.phase, RULES_PHASE_OPEN);
    CHECK_STR(p.verdict.reason, "EngineAbsent");
    machine_node_done(&p);

    held(&p);
    p.node.managed = p.node.operational = false;
    check_released(&p, "EngineAbsent");
    CHECK(!p.node.machine_deleted && p.node.deletion_request.p == NULL);
}

TEST(rules_hook_is_left_as_it_is_where_nothing_is_known)
{
    static const enum rules_node_sight sights[] = { RULES_NODE_UNKNOWN, RULES_NODE_MISSED,
                                                    RULES_NODE_ABSENT };
    for (size_t i = 0; i < ARRAY_LEN(sights); i++) {
        for (int hook = 0; hook < 2; hook++) {
            CLEANUP(machine_node_done)
            struct machine_node_fixture p;
            machine_node_init(&p);
            p.facts.sight = sights[i];
            p.machine.hook = hook == 1;
            machine_node_decide(&p);
            CHECK(machine_node_unchanged(&p));
            CHECK(!p.verdict.confirm_absent); /* nothing waits for it */
            CHECK_EQ(p.verdict.phase, hook == 1 ? RULES_PHASE_PROTECTED : RULES_PHASE_OPEN);
        }
    }
}

/* ── eager, strict ─────────────────────────────────────────────────────────────────────────── */

TEST(rules_hook_is_there_before_the_node_when_it_is_eager)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.options.eager = true;
    p.machine.hook = false;
    p.machine.node = STR_NONE;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(p.machine.hook);
    CHECK_EQ(p.verdict.phase, RULES_PHASE_PROTECTED);
    p.machine.node = STR("n1");
    p.node.managed = p.node.operational = false;
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p)); /* young nodes are protected too */
    p.machine.deleting = true;
    check_kept(&p, "EngineAbsent");
    p.node.managed = true;
    check_kept(&p, "WaitingForApproval");
}

TEST(rules_hook_of_a_machine_without_a_node_holds_nothing)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.options.eager = true;
    p.machine.node = STR_NONE;
    p.machine.deleting = true;
    machine_node_decide(&p);
    CHECK_EQ(p.verdict.phase, RULES_PHASE_LETTING_GO);
    CHECK_STR(p.verdict.reason, "NoNode");
    CHECK(!p.verdict.confirm_absent);
}

TEST(rules_hook_heeds_an_approval_without_a_request_only_when_strict)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.node.approve_deletion = true;
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    p.options.strict_approval = true;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(!p.machine.hook && p.machine.released.p == NULL);
    CHECK_EQ(p.verdict.phase, RULES_PHASE_OPEN);
    CHECK_STR(p.verdict.reason, "Approved");
    p.node.approve_deletion = false;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(p.machine.hook);
}

/* ── never back (B2) ────────────────────────────────────────────────────────────────────── */

TEST(rules_hook_does_not_come_back_when_the_approval_goes)
{
    for (int strict = 0; strict < 2; strict++) {
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        held(&p);
        p.options.strict_approval = strict == 1;
        p.node.approve_deletion = true;
        check_released(&p, "Approved");
        p.node.approve_deletion = false;
        CHECK_EQ(machine_node_settle(&p, 1), 0);
        p.options.eager = true;
        CHECK_EQ(machine_node_settle(&p, 1), 0);
        CHECK(!p.machine.hook);
    }
}

TEST(rules_hook_that_somebody_puts_back_is_removed_again)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    held(&p);
    p.node.approve_deletion = true;
    check_released(&p, "Approved");
    p.node.approve_deletion = false;
    p.machine.hook = true;
    machine_node_decide(&p);
    CHECK(meta_patch_find(&p.verdict.machine, false, KEY_HOOK)->remove);
    CHECK(meta_patch_find(&p.verdict.machine, false, KEY_RELEASED) == NULL);
    CHECK_STR(p.verdict.reason, "Approved");
    CHECK_EQ(machine_node_settle(&p, 1), 1);
}

/* Somebody has taken the hook away by hand; the approval still ends the matter. */
TEST(rules_hook_does_not_come_after_an_approval_although_there_was_none)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    held(&p);
    p.machine.hook = false;
    p.node.approve_deletion = true;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK_STR(p.machine.released, "Approved");
    p.node.approve_deletion = false;
    CHECK_EQ(machine_node_settle(&p, 1), 0);
    CHECK(!p.machine.hook);
}

/* ── where limits grant requests ───────────────────────────────────────────────────────────── */

TEST(rules_hook_comes_without_an_engine_where_requests_are_routed)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.hook = false;
    p.node.managed = false;
    p.node.operational = false;
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    p.facts.routed = true;
    CHECK_EQ(machine_node_settle(&p, 3), 1);
    CHECK(p.machine.hook);
    p.machine.deleting = true;
    CHECK_EQ(machine_node_settle(&p, 3), 1);
    CHECK(p.node.machine_deleted);
    CHECK_STR(
        p.verdict.message,
        "The deletion waits until the limits of cluster 'c1' grant the MaintenanceRequest "
        "for Node 'n1'. There is no time limit; removing the label 'enabled' from the Machine "
        "lets it go.");
    p.node.approve_deletion = true;
    p.node.deletion_approved_for = p.machine.uid;
    check_released(&p, "Approved");
}

TEST(rules_keep_the_link_until_the_grant_is_given_back)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.facts.routed = true;
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    machine_node_settle(&p, 3);
    CHECK(p.machine.status.p != NULL);
    p.machine.enabled = false;
    p.facts.maybe_open = true;
    machine_node_settle(&p, 3);
    CHECK(!p.node.machine_maintenance);
    CHECK(p.machine.status.p != NULL);
    CHECK(p.verdict.keeps_link);
    p.facts.sight = RULES_NODE_ABSENT;
    machine_node_settle(&p, 3);
    CHECK(p.machine.status.p != NULL);
    p.facts.maybe_open = false;
    machine_node_settle(&p, 3);
    CHECK(p.machine.status.p == NULL);
}

TEST(rules_say_when_nothing_of_a_node_may_be_written)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    machine_node_decide(&p);
    CHECK(!p.verdict.read_only);
    p.machine.paused = true;
    machine_node_decide(&p);
    CHECK(p.verdict.read_only);
    p.machine.paused = false;
    p.cluster.paused = true;
    machine_node_decide(&p);
    CHECK(p.verdict.read_only);
    p.cluster.paused = false;
    p.node.machine = STR("m2");
    machine_node_decide(&p);
    CHECK(p.verdict.read_only);
    p.node.machine = STR("m1");
    p.gone = true;
    machine_node_decide(&p);
    CHECK(p.verdict.read_only);
}
