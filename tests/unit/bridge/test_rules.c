#include "bridge/rules.h"

#include "kinds/keys.h"
#include "tests/check.h"
#include "tests/lib/machine_node_fixture.h"

/* ── the original's table ──────────────────────────────────────────────────────────────────── */

/* One row of the original's propagation function: what is there, and what was there before of what
 * it decides about. */
struct table_row {
    bool enabled;
    bool state;
    bool deleted;
    bool approve_deletion;
    bool approve_maintenance;
    const char *maintenance; /* NULL = no label */
    bool hook;
    bool machine_deleted;
    bool machine_maintenance;
};

#define LEGACY "runtime-extension-maintenance-controller.cloud.sap/"

static const char *member(struct arena *a, bool there, const char *key, const char *value)
{
    return there ? arena_printf(a, "\"%s\":\"%s\",", key, value).p : "";
}

static const void *table_read(struct arena *a, const struct store_kind *kind, struct str text)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    void *ret = NULL;
    CHECK_EQ(json_parse(text, 0, a, &object, &err), 0);
    CHECK_EQ(kind->project(NULL, object, a, &ret, &err), 0);
    return ret;
}

static void table_make(struct machine_node_fixture *p, const struct table_row *row)
{
    struct arena *a = &p->memory;
    p->machine = *(const struct machine *)table_read(
        a, &machine_kind,
        arena_printf(
            a,
            "{\"metadata\":{\"namespace\":\"t\",\"name\":\"m1\",\"uid\":\"u-1\",%s\"labels\":{%s%s"
            "\"x\":\"y\"},\"annotations\":{%s\"x\":\"y\"}},\"spec\":{\"clusterName\":\"c1\"},"
            "\"status\":{\"nodeRef\":{\"name\":\"n1\"}}}",
            member(a, row->deleted, "deletionTimestamp", "2026-03-01T10:00:00Z"),
            member(a, row->enabled, LEGACY "enabled", "true"),
            member(a, row->maintenance != NULL, LEGACY "maintenance", row->maintenance),
            member(a, row->hook,
                   "pre-drain.delete.hook.machine.cluster.x-k8s.io/maintenance-controller",
                   "runtime-extension-maintenance-controller")));
    p->node = *(const struct workload_node *)table_read(
        a, &workload_node_kind,
        arena_printf(
            a,
            "{\"metadata\":{\"name\":\"n1\",\"uid\":\"n-1\",\"labels\":{%s%s%s%s%s\"x\":\"y\"}}}",
            member(a, row->state, "cloud.sap/maintenance-state", "in-maintenance"),
            member(a, row->approve_deletion, LEGACY "approve-deletion", "true"),
            member(a, row->approve_maintenance, LEGACY "approve-maintenance", "true"),
            member(a, row->machine_deleted, LEGACY "machine-deleted", "true"),
            member(a, row->machine_maintenance, LEGACY "machine-maintenance", "true")));
}

/* Written from the original's table (B10), not from the code. */
static void table_check(const struct machine_node_fixture *p, const struct table_row *row)
{
    bool both = row->enabled && row->state;
    bool requested = row->maintenance != NULL && strcmp(row->maintenance, "requested") == 0;
    bool approved = row->maintenance != NULL && strcmp(row->maintenance, "approved") == 0;
    CHECK_EQ(p->machine.hook, both && !row->approve_deletion);
    CHECK_EQ(p->node.machine_deleted, both && row->deleted);
    CHECK_EQ(p->node.machine_maintenance, both && (requested || approved));
    enum machine_request wanted = approved    ? MACHINE_REQUEST_APPROVED
                                  : requested ? MACHINE_REQUEST_REQUESTED
                                              : MACHINE_REQUEST_NONE;
    if (both && requested && row->approve_maintenance) {
        wanted = MACHINE_REQUEST_APPROVED;
    }
    CHECK_EQ(p->machine.request, wanted);
    CHECK_EQ(p->node.approve_deletion, row->approve_deletion);
    CHECK_EQ(p->node.approve_maintenance, row->approve_maintenance);
    CHECK_EQ(p->node.managed, row->state);
}

/* All 128 combinations of the six inputs, each from all eight states of the outputs. */
TEST(rules_follow_the_originals_table_when_they_are_strict)
{
    static const char *const values[] = { NULL, "requested", "approved", "anything" };
    uint32_t rows = 0;
    for (uint32_t bits = 0; bits < 256; bits++) {
        for (size_t value = 0; value < ARRAY_LEN(values); value++) {
            const struct table_row row = {
                .enabled = (bits & 1) != 0,
                .state = (bits & 2) != 0,
                .deleted = (bits & 4) != 0,
                .approve_deletion = (bits & 8) != 0,
                .approve_maintenance = (bits & 16) != 0,
                .maintenance = values[value],
                .hook = (bits & 32) != 0,
                .machine_deleted = (bits & 64) != 0,
                .machine_maintenance = (bits & 128) != 0,
            };
            check_case((int64_t)bits * 4 + (int64_t)value);
            CLEANUP(machine_node_done)
            struct machine_node_fixture p;
            machine_node_init(&p);
            p.options.strict_approval = true;
            table_make(&p, &row);
            machine_node_decide(&p);
            machine_node_apply(&p);
            table_check(&p, &row);
            CHECK_EQ(machine_node_settle(&p, 1), 0); /* and that was all */
            rows++;
        }
    }
    check_case(-1);
    CHECK_EQ(rows, 128 * 8);
}

TEST(rules_do_nothing_without_the_name_of_a_node)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.node = STR_NONE;
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    p.machine.status = STR("{\"phase\":\"MaintenanceRequested\",\"reason\":\"NoNode\"}");
    for (int hook = 0; hook < 2; hook++) {
        p.machine.hook = hook == 1;
        machine_node_decide(&p);
        CHECK(machine_node_unchanged(&p));
        CHECK_EQ(p.verdict.phase, RULES_PHASE_REQUESTED);
        CHECK_STR(p.verdict.reason, "NoNode");
    }
}

/* ── paused, mismatched, gone ──────────────────────────────────────────────────────────────── */

TEST(rules_never_write_what_is_paused)
{
    for (int who = 0; who < 2; who++) {
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        machine_node_init(&p);
        p.machine.paused = who == 0;
        p.cluster.paused = who == 1;
        p.machine.enabled = false;
        p.machine.deleting = true;
        p.node.machine_deleted = true;
        machine_node_decide(&p);
        CHECK(machine_node_unchanged(&p));
        CHECK_EQ(p.verdict.event_n, 0);
        CHECK_EQ(p.verdict.phase, RULES_PHASE_PAUSED);
        CHECK_STR(p.verdict.reason, who == 0 ? "MachinePaused" : "ClusterPaused");
        CHECK(p.verdict.keeps_link); /* it is cleaned when the pause ends */
        CHECK(!p.verdict.confirm_absent);
        CHECK_EQ(p.verdict.next, USEC_NEVER);
        p.facts.sight = RULES_NODE_MISSED;
        p.machine.enabled = true;
        machine_node_decide(&p);
        CHECK(!p.verdict.confirm_absent);
    }
}

TEST(rules_leave_a_node_alone_that_names_another_machine)
{
    static const struct {
        struct str machine;
        struct str namespace;
        bool matches;
    } cases[] = {
        { STR_INIT("m1"), STR_INIT("t"), true },   { { NULL, 0 }, { NULL, 0 }, true },
        { { NULL, 0 }, STR_INIT("t"), true },      { STR_INIT("m1"), { NULL, 0 }, true },
        { STR_INIT("m2"), STR_INIT("t"), false },  { STR_INIT("m1"), STR_INIT("u"), false },
        { { NULL, 0 }, STR_INIT("other"), false }, { STR_INIT("m10"), { NULL, 0 }, false },
        { STR_INIT(""), { NULL, 0 }, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        machine_node_init(&p);
        p.machine.deleting = true;
        p.machine.request = MACHINE_REQUEST_REQUESTED;
        p.node.machine = cases[i].machine;
        p.node.namespace = cases[i].namespace;
        machine_node_decide(&p);
        CHECK_EQ(!machine_node_unchanged(&p), cases[i].matches);
        CHECK_EQ(machine_node_event(&p, RULES_EVENT_MISMATCH) == NULL, cases[i].matches);
        if (!cases[i].matches) {
            CHECK_EQ(machine_node_event(&p, RULES_EVENT_MISMATCH)->when, RULES_NOW);
            CHECK_STR(p.verdict.reason, "PairingMismatch");
            CHECK_EQ(p.verdict.phase, RULES_PHASE_HOLDING);
        }
    }
    check_case(-1);
}

TEST(rules_keep_all_as_it_is_while_there_is_no_cluster)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.gone = true;
    p.options.eager = true;
    p.machine.hook = false;
    p.machine.request = MACHINE_REQUEST_APPROVED;
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    CHECK_EQ(p.verdict.phase, RULES_PHASE_IN_MAINTENANCE);
    p.machine.request = MACHINE_REQUEST_NONE;
    machine_node_decide(&p);
    CHECK_EQ(p.verdict.phase, RULES_PHASE_OPEN);
    CHECK_STR(p.verdict.reason, "ClusterMissing");

    p.machine.hook = true; /* what is not enabled has no hook, whatever else is known */
    p.machine.enabled = false;
    p.machine.status = STR("{}");
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(!p.machine.hook && p.machine.status.p == NULL);
    CHECK(!p.verdict.keeps_link);
}

/* ── not enabled ───────────────────────────────────────────────────────────────────────────── */

TEST(rules_clean_the_node_of_a_machine_that_is_disabled)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.request = MACHINE_REQUEST_APPROVED;
    p.machine.granted = STR("u-1/4");
    p.node.machine_maintenance = true;
    p.node.maintenance_request = STR("u-1/4");
    p.node.approve_maintenance = true;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(p.machine.skip && p.machine.skip_ours && p.machine.status.p != NULL);
    CHECK(!p.verdict.keeps_link);

    p.machine.enabled = false;
    p.facts.sight = RULES_NODE_UNKNOWN; /* the link is not there */
    machine_node_decide(&p);
    CHECK(p.verdict.keeps_link);
    CHECK(meta_patch_find(&p.verdict.machine, false, KEY_STATUS) == NULL);
    machine_node_apply(&p);
    CHECK(!p.machine.hook && !p.machine.skip && !p.machine.skip_ours);
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p) && p.verdict.keeps_link);

    p.facts.sight = RULES_NODE_SEEN;
    machine_node_decide(&p);
    CHECK(p.verdict.keeps_link);
    CHECK(meta_patch_find(&p.verdict.machine, false, KEY_STATUS) == NULL);
    machine_node_apply(&p);
    CHECK(!p.node.machine_maintenance && p.node.maintenance_request.p == NULL);
    CHECK(p.node.approve_maintenance); /* the engine's */
    machine_node_decide(&p);
    machine_node_apply(&p);
    CHECK(p.machine.status.p == NULL);
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p) && !p.verdict.keeps_link);
    CHECK_EQ(p.verdict.phase, RULES_PHASE_NOT_ENABLED);
    CHECK_EQ(p.machine.request, MACHINE_REQUEST_APPROVED); /* as the original */
}

TEST(rules_ask_for_a_live_read_before_they_give_a_disabled_machines_node_up)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.enabled = false;
    p.machine.hook = false;
    p.machine.status = STR("{\"phase\":\"HoldingDeletion\"}");
    p.facts.sight = RULES_NODE_MISSED;
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p) && p.verdict.keeps_link && p.verdict.confirm_absent);
    p.facts.sight = RULES_NODE_ABSENT;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK(p.machine.status.p == NULL && !p.verdict.keeps_link && !p.verdict.confirm_absent);
}

TEST(rules_say_nothing_about_machines_that_were_never_enabled)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.enabled = false;
    p.machine.hook = false;
    p.machine.deleting = true;
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    p.node.approve_deletion = true;
    p.node.approve_maintenance = true;
    for (enum rules_node_sight sight = RULES_NODE_UNKNOWN; sight <= RULES_NODE_ABSENT; sight++) {
        p.facts.sight = sight;
        machine_node_decide(&p);
        CHECK(machine_node_unchanged(&p) && p.verdict.event_n == 0 && !p.verdict.keeps_link);
        CHECK(!p.verdict.confirm_absent && p.verdict.next == USEC_NEVER);
    }
}

TEST(rules_orphan_node_takes_requests_away_and_leaves_approvals)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.node.machine_deleted = true;
    p.node.deletion_request = STR("u-9");
    p.node.machine_maintenance = true;
    p.node.maintenance_request = STR("u-9/2");
    p.node.approve_deletion = true;
    p.node.deletion_approved_for = STR("u-9");
    p.node.drain_rules = 7;
    rules_orphan_node(&p.node, &p.verdict.node);
    CHECK_EQ(p.verdict.node.n, 5);
    machine_node_apply(&p);
    CHECK(!workload_node_marked(&p.node) && p.node.drain_rules == 0);
    CHECK(p.node.approve_deletion && p.node.deletion_approved_for.p != NULL);
    p.node.drain_rules = 7; /* alone it tells nothing of us */
    rules_orphan_node(&p.node, &p.verdict.node);
    CHECK_EQ(p.verdict.node.n, 0);
}

/* ── KEY_STATUS ────────────────────────────────────────────────────────────────────────────── */

TEST(rules_status_is_written_once_for_each_change)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    CHECK_EQ(p.verdict.phase, RULES_PHASE_PROTECTED);

    p.machine.deleting = true;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK_STR(p.machine.status, "{\"phase\":\"HoldingDeletion\",\"reason\":\"WaitingForApproval\","
                                "\"since\":\"2026-03-01T10:13:20Z\"}");
    p.facts.wall += HOURS(1);
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p)); /* `since` does not run along */

    p.node.approve_deletion = true;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK_STR(p.machine.status, "{\"phase\":\"LettingGo\",\"reason\":\"Approved\",\"since\":\"2026-"
                                "03-01T11:13:20Z\"}");
    p.machine.released = STR("Whatever");
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p)); /* that it goes has been said */
    CHECK_STR(p.verdict.reason, "Released");
}

TEST(rules_status_of_another_hand_is_written_anew_or_removed)
{
    static const char *const odd[] = { "", "x", "[]", "{\"phase\":7}",
                                       "{\"phase\":\"InMaintenance\"}" };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        check_case((int64_t)i);
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        machine_node_init(&p);
        p.machine.status = str_from(odd[i]);
        CHECK_EQ(machine_node_settle(&p, 1), 1);
        CHECK(p.machine.status.p == NULL);
        p.machine.status = str_from(odd[i]);
        p.machine.request = MACHINE_REQUEST_REQUESTED;
        CHECK_EQ(machine_node_settle(&p, 1), 1);
        CHECK(str_contains(p.machine.status, STR("\"MaintenanceRequested\"")));
    }
    check_case(-1);
}

/* After a restart no link is there for a moment; that is no reason to write to every Machine. */
TEST(rules_status_does_not_change_for_a_short_silence)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.deleting = true;
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    p.facts.sight = RULES_NODE_UNKNOWN;
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    CHECK_STR(p.verdict.reason, "ClusterUnreachable");
    CHECK_EQ(p.verdict.next, p.facts.wall + SECONDS(60));
    p.facts.unreachable_for = SECONDS(20);
    machine_node_decide(&p);
    CHECK_EQ(p.verdict.next, p.facts.wall + SECONDS(40));
    p.facts.unreachable_for = SECONDS(60);
    machine_node_decide(&p);
    CHECK(meta_patch_find(&p.verdict.machine, false, KEY_STATUS) != NULL);
    CHECK_EQ(machine_node_event(&p, RULES_EVENT_UNREACHABLE)->when, RULES_WITH_MACHINE);
    machine_node_apply(&p);
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p) && p.verdict.event_n == 0);
    CHECK_EQ(p.verdict.next, USEC_NEVER);
    CHECK(p.machine.hook);
}

/* ── words ─────────────────────────────────────────────────────────────────────────────────── */

TEST(rules_have_a_name_for_every_event_and_phase)
{
    for (enum rules_event e = RULES_EVENT_HOOK_ATTACHED; e <= RULES_EVENT_HOLD_OVER; e++) {
        CHECK(rules_event_reason(e).n > 0);
    }
    for (enum rules_phase p = RULES_PHASE_NOT_ENABLED; p <= RULES_PHASE_IN_MAINTENANCE; p++) {
        CHECK(rules_phase_name(p).n > 0);
    }
    CHECK_STR(rules_event_reason(RULES_EVENT_HOOK_ATTACHED), "HookAttached");
    CHECK_STR(rules_event_reason(RULES_EVENT_STALE_APPROVAL), "StaleApprovalRemoved");
    CHECK(!rules_event_warns(RULES_EVENT_HOOK_RELEASED));
    CHECK(rules_event_warns(RULES_EVENT_HOLD_OVER) && rules_event_warns(RULES_EVENT_FORGED));
    CHECK_STR(rules_phase_name(RULES_PHASE_HOLDING), "HoldingDeletion");
    CHECK_STR(rules_phase_name(RULES_PHASE_PROTECTED), "Protected");
}

TEST(rules_say_what_a_held_deletion_waits_for)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.deleting = true;
    p.machine.deleted_at = p.facts.wall;
    machine_node_decide(&p);
    CHECK_STR(
        p.verdict.message,
        "The deletion waits until the maintenance engine sets the label approve-deletion at "
        "Node 'n1' of cluster 'c1'. There is no time limit; removing the label 'enabled' from "
        "the Machine lets it go.");
    p.machine.hold_max = HOURS(1);
    p.facts.sight = RULES_NODE_UNKNOWN;
    machine_node_decide(&p);
    CHECK_STR(p.verdict.message,
              "The deletion is held while cluster 'c1' cannot be asked about Node "
              "'n1'. It goes on at 2026-03-01T11:13:20Z in any case.");
}
