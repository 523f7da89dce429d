#include "kinds/keys.h"
#include "bridge/rules.h"
#include "tests/check.h"
#include "tests/lib/machine_node_fixture.h"

/* ── random facts ──────────────────────────────────────────────────────────────────────────── */

static bool coin(struct rng *rng)
{
    return rng_chance(rng, 500);
}

static struct str one_of(struct rng *rng, const struct str *texts, size_t n)
{
    return texts[rng_below(rng, (uint32_t)n)];
}

static usec_t some_time(struct rng *rng)
{
    static const usec_t times[] = { 0, 1, SECONDS(30), SECONDS(60), HOURS(1), DAYS(2), USEC_NEVER };
    return times[rng_below(rng, ARRAY_LEN(times))];
}

static void random_options(struct rng *rng, struct rules_options *o)
{
    *o = (struct rules_options){
        .eager = rng_chance(rng, 250),
        .strict_approval = rng_chance(rng, 250),
        .missing_holds = rng_chance(rng, 300),
        .refuse_forged = rng_chance(rng, 300),
        .unreachable_max = coin(rng) ? some_time(rng) : 0,
        .hold_max = coin(rng) ? some_time(rng) : 0,
        .skew = coin(rng) ? SECONDS(10) : 0,
    };
}

static void random_machine(struct rng *rng, usec_t wall, struct machine *m)
{
    static const struct str released[] = {
        { NULL, 0 }, { NULL, 0 }, STR_INIT("Approved"), STR_INIT("")
    };
    static const struct str granted[] = {
        { NULL, 0 }, STR_INIT("u-1/1"), STR_INIT("u-1/2"), STR_INIT("u-0/3"), STR_INIT("?")
    };
    static const struct str status[] = {
        { NULL, 0 },
        STR_INIT("{\"phase\":\"HoldingDeletion\",\"reason\":\"WaitingForApproval\"}"),
        STR_INIT("no")
    };
    m->enabled = rng_chance(rng, 800);
    m->node = rng_chance(rng, 900) ? STR("n1") : STR_NONE;
    m->deleting = coin(rng);
    m->deleted_at = m->deleting && coin(rng) ? wall - SECONDS(rng_below(rng, 7200)) : 0;
    m->hooks_wait_since = m->deleting && coin(rng) ? wall - SECONDS(rng_below(rng, 7200)) : 0;
    m->hold_max = rng_chance(rng, 300) ? some_time(rng) : 0;
    m->paused = rng_chance(rng, 50);
    m->control_plane = rng_chance(rng, 200);
    m->updating = rng_chance(rng, 100);
    m->request = (enum machine_request)rng_below(rng, 3);
    m->request_templated = rng_chance(rng, 200);
    m->hook = rng_chance(rng, 700);
    m->hook_value = m->hook ? KEY_HOOK_VALUE : STR_NONE;
    m->released = m->deleting ? one_of(rng, released, ARRAY_LEN(released)) : STR_NONE;
    m->granted = one_of(rng, granted, ARRAY_LEN(granted));
    m->status = one_of(rng, status, ARRAY_LEN(status));
    m->approved_by_annotation = rng_chance(rng, 150);
    m->skip = coin(rng);
    m->skip_empty = m->skip && coin(rng);
    m->skip_ours = coin(rng);
}

static void random_node(struct rng *rng, struct workload_node *n)
{
    static const struct str deletion[] = {
        { NULL, 0 }, STR_INIT("u-1"), STR_INIT("u-1"), STR_INIT("u-0"), STR_INIT("")
    };
    static const struct str maintenance[] = { { NULL, 0 },       STR_INIT("u-1/1"),
                                              STR_INIT("u-1/2"), STR_INIT("u-0/2"),
                                              STR_INIT(""),      STR_INIT("u-1/1000000000000") };
    static const struct str machine[] = { { NULL, 0 },    STR_INIT("m1"), STR_INIT("m1"),
                                          STR_INIT("m1"), STR_INIT("m1"), STR_INIT("m2") };
    n->managed = rng_chance(rng, 800);
    n->operational = n->managed && coin(rng);
    n->machine_deleted = coin(rng);
    n->machine_maintenance = coin(rng);
    n->approve_deletion = coin(rng);
    n->approve_maintenance = coin(rng);
    n->deletion_request = one_of(rng, deletion, ARRAY_LEN(deletion));
    n->maintenance_request = one_of(rng, maintenance, ARRAY_LEN(maintenance));
    n->deletion_approved_for =
        rng_chance(rng, 300) ? one_of(rng, deletion, ARRAY_LEN(deletion)) : STR_NONE;
    n->maintenance_approved_for =
        rng_chance(rng, 300) ? one_of(rng, maintenance, ARRAY_LEN(maintenance)) : STR_NONE;
    n->machine = one_of(rng, machine, ARRAY_LEN(machine));
    n->drain_rules = coin(rng) ? 0 : coin(rng) ? workload_node_hash(STR("[]")) : 7;
}

static void random_machine_node(struct rng *rng, struct machine_node_fixture *p)
{
    machine_node_init(p);
    random_options(rng, &p->options);
    random_machine(rng, p->facts.wall, &p->machine);
    random_node(rng, &p->node);
    p->gone = rng_chance(rng, 80);
    p->cluster.paused = rng_chance(rng, 50);
    p->cluster.deleting = rng_chance(rng, 150);
    p->facts.sight = coin(rng) ? RULES_NODE_SEEN : (enum rules_node_sight)rng_below(rng, 4);
    p->facts.unreachable_for =
        p->facts.sight == RULES_NODE_UNKNOWN && coin(rng) ? SECONDS(rng_below(rng, 200000)) : 0;
    p->facts.members = rng_below(rng, 5);
    p->facts.available = rng_below(rng, p->facts.members + 1);
    p->facts.taken = rng_chance(rng, 300) ? 1 : 0;
    p->leftover = SECONDS(rng_below(rng, 120));
    p->facts.drain_rules = coin(rng) ? STR("[]") : coin(rng) ? STR("[{}]") : STR_NONE;
    p->facts.rules_trouble = STR("nobody knows");
}

static bool paused(const struct machine_node_fixture *p)
{
    return p->machine.paused || (!p->gone && p->cluster.paused);
}

/* ── what always holds ─────────────────────────────────────────────────────────────────────── */

/* One of the facts on which a hook may go, each as B1 says it. */
static bool hook_may_go(const struct machine_node_fixture *p)
{
    const struct machine *m = &p->machine;
    const struct workload_node *n = &p->node;
    bool seen = p->facts.sight == RULES_NODE_SEEN && !p->gone && m->node.n > 0;
    if (!m->enabled) {
        return true;
    }
    if (seen && p->options.strict_approval && n->approve_deletion) {
        return true;
    }
    if (seen && !n->managed && !p->options.eager) {
        return true; /* the original's table */
    }
    if (!m->deleting) {
        return false;
    }
    bool approved =
        seen && n->approve_deletion && n->machine_deleted && n->deletion_request.p != NULL &&
        str_eq(n->deletion_request, STR("u-1")) &&
        (n->deletion_approved_for.p == NULL || str_eq(n->deletion_approved_for, STR("u-1")));
    bool absent = p->facts.sight == RULES_NODE_ABSENT && !p->options.missing_holds && m->node.n > 0;
    bool unreachable_for = p->facts.sight != RULES_NODE_SEEN && p->options.unreachable_max > 0 &&
                           p->facts.unreachable_for >= p->options.unreachable_max;
    usec_t limit = m->hold_max != 0 ? m->hold_max : p->options.hold_max;
    usec_t start = m->hooks_wait_since != 0 ? m->hooks_wait_since : m->deleted_at;
    bool over = limit > 0 && limit < DAYS(365) && start > 0 &&
                p->facts.wall - start >= limit + p->options.skew;
    return approved || p->gone || p->cluster.deleting || absent || unreachable_for || over ||
           m->released.p != NULL;
}

/* B1. */
PROPERTY(rules_remove_a_hook_on_a_fact_alone)
{
    for (int i = 0; i < 40; i++) {
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        random_machine_node(rng, &p);
        machine_node_decide(&p);
        const struct meta_patch_key *k = meta_patch_find(&p.verdict.machine, false, KEY_HOOK);
        if (k != NULL && k->remove) {
            CHECK(hook_may_go(&p));
            bool events_sent = meta_patch_find(&p.verdict.machine, false, KEY_RELEASED) != NULL;
            CHECK_EQ(events_sent, p.machine.deleting && p.machine.released.p == NULL);
        } else if (!paused(&p) && machine_node_event(&p, RULES_EVENT_MISMATCH) == NULL &&
                   p.machine.hook) {
            CHECK(!hook_may_go(&p)); /* and on each of them it goes */
        }
    }
}

/* B2. */
PROPERTY(rules_never_attach_a_hook_that_was_released)
{
    for (int i = 0; i < 40; i++) {
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        random_machine_node(rng, &p);
        p.machine.hook = false;
        p.machine.deleting = true;
        p.machine.released = coin(rng) ? STR("Approved") : STR("");
        machine_node_decide(&p);
        CHECK(meta_patch_find(&p.verdict.machine, false, KEY_HOOK) == NULL);
    }
}

/* B3: no maintenance is approved that its Node was not asked for, and by an answer to that. */
PROPERTY(rules_approve_only_what_was_asked_and_answered)
{
    for (int i = 0; i < 40; i++) {
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        random_machine_node(rng, &p);
        p.options.strict_approval = false;
        machine_node_decide(&p);
        const struct meta_patch_key *label =
            meta_patch_find(&p.verdict.machine, true, KEY_MAINTENANCE);
        bool approves = meta_patch_find(&p.verdict.machine, false, KEY_APPROVED_ASIDE) != NULL &&
                        !meta_patch_find(&p.verdict.machine, false, KEY_APPROVED_ASIDE)->remove;
        approves = approves || (label != NULL && str_eq(label->value, KEY_APPROVED));
        CHECK_EQ(p.verdict.approves, approves);
        if (!approves) {
            continue;
        }
        const struct workload_node *n = &p.node;
        CHECK(p.machine.enabled && !p.machine.deleting && !p.machine.updating);
        CHECK_EQ(p.machine.request, MACHINE_REQUEST_REQUESTED);
        CHECK(n->machine_maintenance && n->approve_maintenance && n->managed);
        CHECK(str_starts(n->maintenance_request, STR("u-1/")));
        CHECK(!str_eq(n->maintenance_request, p.machine.granted));
        CHECK(n->maintenance_approved_for.p == NULL ||
              str_eq(n->maintenance_approved_for, n->maintenance_request));
        CHECK_STR(meta_patch_find(&p.verdict.machine, false, KEY_GRANTED)->value,
                  n->maintenance_request);
        CHECK(!p.machine.control_plane || p.facts.taken == 0);
    }
}

static bool edits_same(const struct meta_patch *a, const struct meta_patch *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++) {
        const struct meta_patch_key *left = &a->keys[i];
        const struct meta_patch_key *right = &b->keys[i];
        same = left->label == right->label && left->remove == right->remove &&
               str_eq(left->key, right->key) && str_eq(left->value, right->value);
    }
    return same;
}

/* B5: the same facts give the same verdict, and what it wants is soon so and stays so. Every key
 * that is written on the way is checked by the model (B7). */
PROPERTY(rules_decide_the_same_twice_and_come_to_rest)
{
    for (int i = 0; i < 40; i++) {
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        random_machine_node(rng, &p);
        machine_node_decide(&p);
        const struct rules_verdict first = p.verdict;
        machine_node_decide(&p);
        CHECK(edits_same(&first.machine, &p.verdict.machine));
        CHECK(edits_same(&first.node, &p.verdict.node));
        CHECK_EQ(first.phase, p.verdict.phase);
        CHECK_STR(first.reason, p.verdict.reason);
        CHECK_STR(first.message, p.verdict.message);
        CHECK_EQ(first.event_n, p.verdict.event_n);
        CHECK_EQ(first.next, p.verdict.next);
        (void)machine_node_settle(&p, 3);
        CHECK(p.verdict.message.n > 0 && p.verdict.reason != NULL);
        CHECK(!p.verdict.approves);
        for (uint32_t k = 0; k < p.verdict.event_n; k++) {
            CHECK_EQ(p.verdict.events[k].when,
                     RULES_NOW); /* nothing is left to be told with a patch */
        }
    }
}

/* B23: nobody is asked without the rules, they are right while anybody is, and go with the last
 * request. */
PROPERTY(rules_keep_the_drain_rules_beside_requests)
{
    for (int i = 0; i < 40; i++) {
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        random_machine_node(rng, &p);
        machine_node_decide(&p);
        const struct meta_patch *e = &p.verdict.node;
        bool known = p.facts.drain_rules.p != NULL;
        const struct workload_node before = p.node;
        bool asks = machine_node_event(&p, RULES_EVENT_REQUEST_DELIVERED) != NULL;
        CHECK(!asks || known);
        machine_node_apply(&p);
        bool stands = p.node.machine_deleted || p.node.machine_maintenance;
        bool written = e->n > 0;
        if (stands && written && known) {
            CHECK_EQ(p.node.drain_rules, workload_node_hash(p.facts.drain_rules));
        } else if (!stands && written) {
            CHECK_EQ(p.node.drain_rules, 0);
        } else {
            CHECK_EQ(p.node.drain_rules, before.drain_rules);
        }
    }
}

/* What does not depend on time does not ask to be woken, and what does is woken later than now. */
PROPERTY(rules_wake_in_the_future)
{
    for (int i = 0; i < 40; i++) {
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        random_machine_node(rng, &p);
        (void)machine_node_settle(&p, 3);
        CHECK(p.verdict.next > p.facts.wall);
        CHECK(!paused(&p) || p.verdict.next == USEC_NEVER);
    }
}

/* B6. */
PROPERTY(rules_write_nothing_while_anything_is_paused)
{
    for (int i = 0; i < 40; i++) {
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        random_machine_node(rng, &p);
        p.gone = false;
        p.machine.paused = coin(rng);
        p.cluster.paused = !p.machine.paused || coin(rng);
        machine_node_decide(&p);
        CHECK(machine_node_unchanged(&p) && p.verdict.event_n == 0 && !p.verdict.confirm_absent);
    }
}

/* B17: a Machine that is not enabled comes to rest with a clean Node, if it can be reached. */
PROPERTY(rules_leave_no_request_behind_when_disabled)
{
    for (int i = 0; i < 40; i++) {
        CLEANUP(machine_node_done)
        struct machine_node_fixture p;
        random_machine_node(rng, &p);
        p.machine.enabled = false;
        p.machine.paused = p.cluster.paused = p.gone = false;
        p.node.machine = STR_NONE;
        p.machine.node = STR("n1");
        p.facts.sight = RULES_NODE_SEEN;
        bool marked = workload_node_marked(&p.node);
        bool approvals[] = { p.node.approve_deletion, p.node.approve_maintenance };
        (void)machine_node_settle(&p, 3);
        CHECK(!workload_node_marked(&p.node) && !p.machine.hook && p.machine.status.p == NULL);
        CHECK(!p.verdict.keeps_link && !p.machine.skip_ours);
        CHECK(!marked || p.node.drain_rules == 0);
        CHECK_EQ(p.node.approve_deletion, approvals[0]);
        CHECK_EQ(p.node.approve_maintenance, approvals[1]);
    }
}
