#include "kinds/keys.h"
#include "bridge/rules.h"
#include "drain/drain_rules.h"
#include "tests/check.h"
#include "tests/lib/machine_node_fixture.h"

#define OTHER STR("[{\"name\":\"a\",\"behavior\":\"Skip\"}]")

/* ── the table ─────────────────────────────────────────────────────────────────────────────── */

enum asked { NOTHING, DELETION, MAINTENANCE, BOTH };
enum found { NO_RULES, RIGHT, WRONG };
enum outcome {
    REST,    /* nothing is written */
    DELIVER, /* the request, and the book with it */
    CORRECT, /* the book alone */
    CLEAN,   /* the requests go, and the book with them */
};

struct book_case {
    enum asked wanted;
    bool known;
    enum asked standing; /* at the Node */
    enum found found;
    enum outcome outcome;
};

static void stand(struct machine_node_fixture *p, enum asked which)
{
    if (which == DELETION || which == BOTH) {
        p->node.machine_deleted = true;
        p->node.deletion_request = STR("u-1");
    }
    if (which == MAINTENANCE || which == BOTH) {
        p->node.machine_maintenance = true;
        p->node.maintenance_request = STR("u-1/1");
    }
}

static void want(struct machine_node_fixture *p, enum asked which)
{
    p->machine.deleting = which == DELETION || which == BOTH;
    p->machine.request =
        which == MAINTENANCE || which == BOTH ? MACHINE_REQUEST_REQUESTED : MACHINE_REQUEST_NONE;
}

static void check_outcome(const struct machine_node_fixture *p, const struct book_case *c)
{
    const struct meta_patch *e = &p->verdict.node;
    const struct meta_patch_key *drain_rules = meta_patch_find(e, false, KEY_DRAIN_RULES);
    bool delivers = machine_node_event(p, RULES_EVENT_REQUEST_DELIVERED) != NULL;
    CHECK_EQ(delivers, c->outcome == DELIVER);
    switch (c->outcome) {
    case REST:
        CHECK_EQ(e->n, 0);
        break;
    case DELIVER:
        /* One that stands right beside the other request is not written again. */
        CHECK_EQ(drain_rules != NULL, c->found != RIGHT);
        CHECK(drain_rules == NULL ||
              (!drain_rules->remove && str_eq(drain_rules->value, STR("[]"))));
        break;
    case CORRECT:
        CHECK_EQ(e->n, 1);
        CHECK_STR(drain_rules->value, "[]");
        CHECK_EQ(p->verdict.event_n, 0);
        break;
    case CLEAN:
        CHECK(e->n > 0);
        CHECK_EQ(drain_rules != NULL, c->found != NO_RULES);
        CHECK(drain_rules == NULL || drain_rules->remove);
        break;
    }
}

TEST(rules_drain_rules_goes_with_the_requests)
{
    static const struct book_case cases[] = {
        /* delivered with it */
        { DELETION, true, NOTHING, NO_RULES, DELIVER },
        { MAINTENANCE, true, NOTHING, NO_RULES, DELIVER },
        { BOTH, true, NOTHING, NO_RULES, DELIVER },
        { DELETION, true, NOTHING, WRONG, DELIVER },
        { DELETION, true, NOTHING, RIGHT, DELIVER },
        { BOTH, true, MAINTENANCE, RIGHT, DELIVER },
        /* not known: nobody is asked, and what stands is left alone */
        { DELETION, false, NOTHING, NO_RULES, REST },
        { MAINTENANCE, false, NOTHING, NO_RULES, REST },
        { BOTH, false, NOTHING, WRONG, REST },
        { DELETION, false, DELETION, WRONG, REST },
        { DELETION, false, DELETION, NO_RULES, REST },
        { MAINTENANCE, false, MAINTENANCE, WRONG, REST },
        { BOTH, false, MAINTENANCE, RIGHT, REST },
        /* kept right: rules that changed, tampering, an older bridge's request */
        { DELETION, true, DELETION, RIGHT, REST },
        { DELETION, true, DELETION, WRONG, CORRECT },
        { DELETION, true, DELETION, NO_RULES, CORRECT },
        { MAINTENANCE, true, MAINTENANCE, RIGHT, REST },
        { MAINTENANCE, true, MAINTENANCE, WRONG, CORRECT },
        { MAINTENANCE, true, MAINTENANCE, NO_RULES, CORRECT },
        { BOTH, true, BOTH, WRONG, CORRECT },
        /* withdrawn */
        { NOTHING, false, DELETION, WRONG, CLEAN },
        { NOTHING, false, DELETION, NO_RULES, CLEAN },
        { NOTHING, false, MAINTENANCE, RIGHT, CLEAN },
        { NOTHING, false, BOTH, RIGHT, CLEAN },
        { NOTHING, false, NOTHING, RIGHT, REST },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        machine_node_init(&p);
        want(&p, cases[i].wanted);
        stand(&p, cases[i].standing);
        p.facts.drain_rules = cases[i].known ? STR("[]") : STR_NONE;
        p.facts.rules_trouble = STR("nobody knows");
        p.node.drain_rules = cases[i].found == NO_RULES ? 0
                             : cases[i].found == RIGHT  ? workload_node_hash(STR("[]"))
                                                        : workload_node_hash(OTHER);
        machine_node_decide(&p);
        check_outcome(&p, &cases[i]);
    }
    check_case(-1);
}

/* ── stories ───────────────────────────────────────────────────────────────────────────────── */

TEST(rules_drain_rules_that_is_not_known_holds_the_request_and_says_why)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.facts.drain_rules = STR_NONE;
    p.facts.rules_trouble = STR("the MachineDrainRules cannot be listed: 403");
    p.machine.deleting = true;
    (void)machine_node_settle(&p, 1);
    CHECK(!p.node.machine_deleted && p.node.drain_rules == 0 && p.machine.hook);
    CHECK_STR(p.verdict.reason, "DrainRulesUnknown");
    CHECK_STR(p.verdict.message,
              "The deletion is held, and Node 'n1' of cluster 'c1' is not asked yet: the "
              "MachineDrainRules cannot be listed: 403. There is no time limit; removing the label "
              "'enabled' from the Machine lets it go.");
    p.facts.drain_rules = OTHER;
    (void)machine_node_settle(&p, 1);
    CHECK(p.node.machine_deleted);
    CHECK_EQ(p.node.drain_rules, workload_node_hash(OTHER));
    CHECK_STR(p.verdict.reason, "WaitingForApproval");
    p.facts.drain_rules = STR_NONE; /* and once it has been asked, that is no reason any more */
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    CHECK_STR(p.verdict.reason, "WaitingForApproval");
}

TEST(rules_drain_rules_that_is_not_known_holds_a_maintenance_and_says_why)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.facts.drain_rules = STR_NONE;
    p.facts.rules_trouble = STR("the MachineDrainRules are being listed");
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    (void)machine_node_settle(&p, 1);
    CHECK(!p.node.machine_maintenance);
    CHECK_STR(p.verdict.reason, "DrainRulesUnknown");
    CHECK_STR(p.verdict.message,
              "The maintenance waits, and Node 'n1' of cluster 'c1' is not asked "
              "yet: the MachineDrainRules are being listed.");
}

/* Approvals do not wait for the rules: of a deletion, of a maintenance, and what was approved
 * before it was asked in the strict mode. */
TEST(rules_drain_rules_is_no_matter_for_approvals)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.facts.drain_rules = STR_NONE;
    p.machine.deleting = true;
    stand(&p, DELETION);
    p.node.approve_deletion = true;
    (void)machine_node_settle(&p, 2);
    CHECK(!p.machine.hook);
    machine_node_done(&p);

    machine_node_init(&p);
    p.facts.drain_rules = STR_NONE;
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    stand(&p, MAINTENANCE);
    p.node.approve_maintenance = true;
    (void)machine_node_settle(&p, 2);
    CHECK_EQ(p.machine.request, MACHINE_REQUEST_APPROVED);
    machine_node_done(&p);

    machine_node_init(&p);
    p.options.strict_approval = true;
    p.facts.drain_rules = STR_NONE;
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    p.node.approve_maintenance = true;
    (void)machine_node_settle(&p, 2);
    CHECK_EQ(p.machine.request, MACHINE_REQUEST_APPROVED);
    CHECK_STR(p.machine.granted, "u-1/1");
    CHECK(!p.node.machine_maintenance);
    p.facts.drain_rules = STR("[]");
    (void)machine_node_settle(&p, 1);
    CHECK(p.node.machine_maintenance && p.node.drain_rules != 0);
    CHECK_STR(p.node.maintenance_request, "u-1/1");
}

TEST(rules_drain_rules_goes_from_a_machine_that_is_not_enabled)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.enabled = false;
    p.machine.deleting = true;
    p.node.drain_rules = 7; /* nothing tells that it is ours */
    machine_node_decide(&p);
    CHECK_EQ(p.verdict.node.n, 0);
    p.machine.status = STR("{}"); /* but now something does */
    (void)machine_node_settle(&p, 2);
    CHECK_EQ(p.node.drain_rules, 0);
    CHECK(p.machine.status.p == NULL);

    stand(&p, BOTH);
    p.node.drain_rules = 7;
    (void)machine_node_settle(&p, 2);
    CHECK(!workload_node_marked(&p.node) && p.node.drain_rules == 0);
}

/* The number of the last maintenance stays at the Node: whatever took its label away, the book
 * beside it goes. */
TEST(rules_drain_rules_does_not_outlive_a_label_that_others_took_away)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.node.maintenance_request = STR("u-1/1");
    p.node.drain_rules = workload_node_hash(STR("[]"));
    CHECK_EQ(machine_node_settle(&p, 1), 1);
    CHECK_EQ(p.node.drain_rules, 0);
    CHECK_STR(p.node.maintenance_request, "u-1/1");
}

TEST(rules_drain_rules_is_left_alone_while_anything_is_paused)
{
    CLEANUP(machine_node_done)
    struct machine_node_fixture p;
    machine_node_init(&p);
    p.machine.deleting = true;
    stand(&p, DELETION);
    p.node.drain_rules = 7;
    p.cluster.paused = true;
    machine_node_decide(&p);
    CHECK(machine_node_unchanged(&p));
    p.cluster.paused = false;
    p.node.machine = STR("m2"); /* it says that it is another's */
    machine_node_decide(&p);
    CHECK_EQ(p.verdict.node.n, 0);
}
