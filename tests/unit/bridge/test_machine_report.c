#include "bridge/machine_report.h"

#include "base/textwrap.h"
#include "bridge/bridge.h"
#include "kinds/keys.h"
#include "tests/check.h"

#define NOW SECONDS(1794792706) /* 2026-11-16T01:31:46Z, a Monday */
#define MONOTONIC HOURS(50)

/* A Machine that is being deleted and whose Node has been asked. */
struct fixture {
    struct machine machine;
    struct cluster cluster;
    struct workload_node node;
    struct bridge_machine_view view;
    struct machine_report report;
};

static void fixture_init(struct fixture *s)
{
    *s = (struct fixture){
        .machine = { .namespace = STR("tenants"),
                     .name = STR("blue-md-0-x7k2p"),
                     .uid = STR("6f1c"),
                     .cluster = STR("blue"),
                     .node = STR("blue-worker-1"),
                     .enabled = true,
                     .deleting = true,
                     .hook = true,
                     .deleted_at = NOW - MINUTES(4),
                     .hooks_wait_since = NOW - MINUTES(4) + SECONDS(2) },
        .cluster = { .uid = STR("c1"), .provisioned = true },
        .node = { .managed = true, .machine_deleted = true, .deletion_request = STR("6f1c") },
    };
    s->view = (struct bridge_machine_view){
        .namespace = STR("tenants"),
        .name = STR("blue-md-0-x7k2p"),
        .machine = &s->machine,
        .cluster = &s->cluster,
        .ours = true,
        .linked = true,
        .link = { .namespace = STR("tenants"),
                  .cluster = STR("blue"),
                  .state = LINK_WATCHING,
                  .since = MONOTONIC - HOURS(2) - MINUTES(4),
                  .nodes = 20 },
        .sight = RULES_NODE_SEEN,
        .node = &s->node,
        .verdict = { .phase = RULES_PHASE_HOLDING,
                     .reason = "WaitingForApproval",
                     .message = STR("the engine of node blue-worker-1 has been asked; its label "
                                    "approve-deletion=true lets the deletion go on"),
                     .next = USEC_NEVER },
        .wall = NOW,
    };
}

static void fixture_look(struct fixture *s)
{
    machine_report_from(&s->view, MONOTONIC, &s->report);
    s->report.leading = true;
}

static void check_text(const struct fixture *s, bool wide, const char *want)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    machine_report_print_text(&s->report, wide, &text);
    CHECK_STR(buf_str(&text), want);
    if (!wide) {
        struct str rest = buf_str(&text);
        struct str line;
        while (rest.n > 0 && str_split_next(&rest, '\n', &line)) {
            /* Names and keys stay whole. */
            CHECK(textwrap_width(line) <= MACHINE_REPORT_COLUMNS ||
                  str_contains(line, STR("x-k8s.io/")) || str_contains(line, STR("cloud.sap/")));
        }
    }
}

TEST(machine_report_tells_what_a_held_deletion_waits_for)
{
    struct fixture s;
    fixture_init(&s);
    fixture_look(&s);
    check_text(&s, false,
               "machine tenants/blue-md-0-x7k2p: HoldingDeletion (WaitingForApproval)\n"
               "  says     the engine of node blue-worker-1 has been asked; its label\n"
               "           approve-deletion=true lets the deletion go on\n"
               "  machine  enabled, being deleted for 4m, Cluster API waits for hooks for 3m58s\n"
               "  hook     attached\n"
               "  cluster  blue: provisioned\n"
               "  link     watching for 2h4m, 20 nodes\n"
               "  node     blue-worker-1: not in service\n"
               "  asked    machine-deleted\n"
               "  answer   none\n"
               "  writes   nothing\n");
    check_text(&s, true,
               "machine tenants/blue-md-0-x7k2p: HoldingDeletion (WaitingForApproval)\n"
               "  says     the engine of node blue-worker-1 has been asked; its label "
               "approve-deletion=true lets the deletion go on\n"
               "  machine  enabled, being deleted for 4m, Cluster API waits for hooks for 3m58s\n"
               "  hook     attached\n"
               "  cluster  blue: provisioned\n"
               "  link     watching for 2h4m, 20 nodes\n"
               "  node     blue-worker-1: not in service\n"
               "  asked    machine-deleted (6f1c)\n"
               "  answer   none\n"
               "  writes   nothing\n");
}

TEST(machine_report_tells_what_would_be_written_next)
{
    struct fixture s;
    fixture_init(&s);
    s.node.approve_deletion = true;
    s.node.deletion_approved_for = STR("6f1c");
    s.view.error = STR("patch: the server has answered 500");
    s.view.verdict.phase = RULES_PHASE_LETTING_GO;
    s.view.verdict.reason = "Approved";
    s.view.verdict.message = STR("the deletion goes on");
    meta_patch_remove(&s.view.verdict.machine, false, KEY_HOOK);
    meta_patch_set(&s.view.verdict.machine, false, KEY_RELEASED, STR("Approved"));
    meta_patch_set(&s.view.verdict.node, true, KEY_MACHINE_DELETED, KEYS_TRUE);
    fixture_look(&s);
    s.report.leading = false;
    s.report.leader = STR("bridge-0_1");
    check_text(&s, false,
               "machine tenants/blue-md-0-x7k2p: LettingGo (Approved)\n"
               "  says     the deletion goes on\n"
               "  error    patch: the server has answered 500\n"
               "  replica  writes nothing, for it does not lead: bridge-0_1\n"
               "  machine  enabled, being deleted for 4m, Cluster API waits for hooks for 3m58s\n"
               "  hook     attached\n"
               "  cluster  blue: provisioned\n"
               "  link     watching for 2h4m, 20 nodes\n"
               "  node     blue-worker-1: not in service\n"
               "  asked    machine-deleted\n"
               "  answer   approve-deletion\n"
               "  writes   Machine: removes annotation\n"
               "           pre-drain.delete.hook.machine.cluster.x-k8s.io/maintenance-controller\n"
               "           Machine: sets annotation drydock.dev/hook-released=Approved\n"
               "           Node: sets label\n"
               "           "
               "runtime-extension-maintenance-controller.cloud.sap/machine-deleted=true\n");
}

TEST(machine_report_tells_what_is_wrong_with_a_cluster_that_does_not_answer)
{
    struct fixture s;
    fixture_init(&s);
    s.machine.control_plane = true;
    s.machine.updating = true;
    s.machine.hold_max = HOURS(1);
    s.view.link.state = LINK_BACKOFF;
    s.view.link.since = MONOTONIC - SECONDS(40);
    s.view.link.retry_at = MONOTONIC + SECONDS(20);
    s.view.link.trouble = STR("connect: nobody answers at 10.0.0.1:6443");
    s.view.sight = RULES_NODE_UNKNOWN;
    s.view.node = NULL;
    s.view.verdict.reason = "ClusterUnreachable";
    s.view.verdict.message = STR("its cluster is out of sight");
    s.view.verdict.next = NOW + HOURS(1);
    fixture_look(&s);
    check_text(&s, false,
               "machine tenants/blue-md-0-x7k2p: HoldingDeletion (ClusterUnreachable)\n"
               "  says     its cluster is out of sight\n"
               "  changes  in 1h (Mon 02:31:46 UTC)\n"
               "  machine  enabled, of the control plane, updated in place, being deleted for\n"
               "           4m, Cluster API waits for hooks for 3m58s\n"
               "  hook     attached, holds a deletion for 1h at most\n"
               "  cluster  blue: provisioned\n"
               "  link     backoff for 40s, tries again in 20s (Mon 01:32:06 UTC): connect:\n"
               "           nobody answers at 10.0.0.1:6443\n"
               "  node     blue-worker-1: its cluster cannot be asked at the moment\n"
               "  writes   nothing\n");
    s.view.sight = RULES_NODE_MISSED;
    fixture_look(&s);
    CHECK_STR(s.report.node.sight, "missed");
    s.view.sight = RULES_NODE_ABSENT;
    fixture_look(&s);
    CHECK_STR(s.report.node.sight, "absent");
}

TEST(machine_report_tells_which_drain_rules_apply)
{
    static const struct {
        bool known;
        uint32_t rules;
        const char *error;
        const char *line;
    } cases[] = {
        { true, 0, "", "  rules    no MachineDrainRule applies\n" },
        { true, 1, "", "  rules    1 MachineDrainRule applies\n" },
        { true, 12, "", "  rules    12 MachineDrainRules apply\n" },
        { true, 0, "MachineDrainRule 'db': spec.drain: behavior: 'Evict' is none of Drain, Skip",
          "  rules    nothing is drained: MachineDrainRule 'db': spec.drain: behavior:\n"
          "           'Evict' is none of Drain, Skip\n" },
        { false, 0, "the MachineDrainRules cannot be listed: forbidden",
          "  rules    not known: the MachineDrainRules cannot be listed: forbidden\n" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        struct fixture s;
        fixture_init(&s);
        s.view.has_request = true;
        s.view.rules_known = cases[i].known;
        s.view.rules = cases[i].rules;
        s.view.rules_error = str_from(cases[i].error);
        fixture_look(&s);
        check_text(&s, false,
                   arena_printf(&tmp,
                                "machine tenants/blue-md-0-x7k2p: HoldingDeletion "
                                "(WaitingForApproval)\n"
                                "  says     the engine of node blue-worker-1 has been asked; its "
                                "label\n"
                                "           approve-deletion=true lets the deletion go on\n"
                                "  machine  enabled, being deleted for 4m, Cluster API waits for "
                                "hooks for 3m58s\n"
                                "  hook     attached\n"
                                "  cluster  blue: provisioned\n"
                                "  link     watching for 2h4m, 20 nodes\n"
                                "  node     blue-worker-1: not in service\n"
                                "  asked    machine-deleted\n"
                                "  answer   none\n"
                                "%s"
                                "  writes   nothing\n",
                                cases[i].line)
                       .p);
    }
    check_case(-1);
}

TEST(machine_report_tells_of_a_maintenance_and_its_host)
{
    struct fixture s;
    fixture_init(&s);
    s.machine.deleting = false;
    s.machine.deleted_at = 0;
    s.machine.hooks_wait_since = 0;
    s.machine.request = MACHINE_REQUEST_REQUESTED;
    s.machine.request_templated = true;
    s.machine.approved_by_annotation = true;
    s.machine.power = STR("off");
    s.node = (struct workload_node){ .managed = true,
                                     .operational = true,
                                     .machine_maintenance = true,
                                     .approve_maintenance = true,
                                     .maintenance_request = STR("6f1c/2") };
    s.view.verdict.phase = RULES_PHASE_IN_MAINTENANCE;
    s.view.verdict.reason = "Approved";
    s.view.verdict.message = STR("work may go on");
    s.view.has_host = true;
    s.view.host = STR("metal/rack-7");
    s.view.power.reason = "SwitchedOff";
    s.view.power.message = STR("it stays off until the maintenance ends");
    meta_patch_set(&s.view.power.host, false, KEY_REBOOT, STR(""));
    fixture_look(&s);
    check_text(&s, true,
               "machine tenants/blue-md-0-x7k2p: InMaintenance (Approved)\n"
               "  says     work may go on\n"
               "  machine  enabled\n"
               "  hook     attached\n"
               "  wanted   a maintenance: requested, approved beside the label, by a template\n"
               "  cluster  blue: provisioned\n"
               "  link     watching for 2h4m, 20 nodes\n"
               "  node     blue-worker-1: in service\n"
               "  asked    machine-maintenance (6f1c/2)\n"
               "  answer   approve-maintenance\n"
               "  host     metal/rack-7: power is off, SwitchedOff: it stays off until the "
               "maintenance ends\n"
               "  writes   BareMetalHost: sets annotation "
               "reboot.metal3.io/runtime-extension-maintenance-controller=\n");
}

TEST(machine_report_tells_of_a_machine_that_nobody_looks_after)
{
    struct fixture s;
    fixture_init(&s);
    s.machine =
        (struct machine){ .namespace = STR("tenants"), .name = STR("lone"), .paused = true };
    s.view.name = STR("lone");
    s.view.ours = false;
    s.view.cluster = NULL;
    s.view.linked = false;
    s.view.sight = RULES_NODE_UNKNOWN;
    s.view.node = NULL;
    s.view.verdict.phase = RULES_PHASE_NOT_ENABLED;
    s.view.verdict.reason = "NotEnabled";
    s.view.verdict.message = STR("it has no label that enables it");
    fixture_look(&s);
    check_text(&s, false,
               "machine tenants/lone: NotEnabled (NotEnabled)\n"
               "  says     it has no label that enables it\n"
               "  replica  another shard looks after its Cluster\n"
               "  machine  not enabled, paused\n"
               "  hook     not attached\n"
               "  cluster  none is named: there is no such Cluster\n"
               "  link     none\n"
               "  node     none yet\n"
               "  writes   nothing\n");
}

TEST(machine_report_names_the_request_that_the_limits_have)
{
    struct fixture s;
    fixture_init(&s);
    s.view.request = STR("mr-0123456789abcdef-1");
    s.view.workload_request_state = STR("Pending");
    fixture_look(&s);
    CLEANUP(buf_done)
    struct buf text = { 0 };
    machine_report_print_text(&s.report, false, &text);
    CHECK(str_contains(buf_str(&text), STR("\n  limits   MaintenanceRequest "
                                           "mr-0123456789abcdef-1 is Pending\n")));
}

TEST(machine_report_json_has_everything)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct fixture s;
    fixture_init(&s);
    meta_patch_remove(&s.view.verdict.machine, false, KEY_RELEASED);
    s.view.has_request = true;
    s.view.rules_known = true;
    s.view.rules_error = STR("MachineDrainRule 'a': ?");
    s.view.request = STR("mr-1");
    s.view.workload_request_state = STR("Approved");
    s.machine.hold_max = USEC_NEVER; /* no limit is no number */
    fixture_look(&s);
    struct json_writer w = json_writer_on(&json);
    machine_report_print_json(&s.report, &w);
    CHECK_STR(
        buf_str(&json),
        "{\"now\":\"2026-11-16T01:31:46Z\",\"namespace\":\"tenants\",\"name\":\"blue-md-0-x7k2p\","
        "\"ours\":true,\"leading\":true,\"phase\":\"HoldingDeletion\",\"reason\":"
        "\"WaitingForApproval\","
        "\"message\":\"the engine of node blue-worker-1 has been asked; its label "
        "approve-deletion=true lets the deletion go on\",\"machine\":{\"enabled\":true,"
        "\"paused\":false,\"controlPlane\":false,\"updating\":false,"
        "\"deletedAt\":\"2026-11-16T01:27:46Z\",\"waitsSince\":\"2026-11-16T01:27:48Z\","
        "\"templated\":false,\"approved\":false,\"hook\":true},\"cluster\":{\"name\":\"blue\","
        "\"found\":true,\"paused\":false,\"deleting\":false,\"provisioned\":true},"
        "\"link\":{\"state\":\"watching\",\"since\":\"2026-11-15T23:27:46Z\",\"nodes\":20},"
        "\"node\":{\"name\":\"blue-worker-1\",\"sight\":\"seen\",\"managed\":true,"
        "\"operational\":false,\"deleting\":false,\"machineDeleted\":true,"
        "\"machineMaintenance\":false,\"approveDeletion\":false,\"approveMaintenance\":false,"
        "\"deletionRequest\":\"6f1c\"},\"drainRules\":{\"known\":true,\"count\":0,"
        "\"error\":\"MachineDrainRule 'a': "
        "?\"},\"maintenanceRequest\":{\"name\":\"mr-1\",\"state\":\"Approved\"},\"changes\":[{"
        "\"object\":\"Machine\","
        "\"annotation\":\"drydock.dev/hook-released\"}]}");
}
