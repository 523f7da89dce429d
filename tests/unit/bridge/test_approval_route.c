#include "bridge/approval_route.h"

#include "base/arena.h"
#include "kinds/keys.h"
#include "tests/check.h"

#define DELETION STR("u-1")
#define MAINTENANCE STR("u-1/3")

/* A Machine "u-1" with its Node "n1", and up to four MaintenanceRequests. */
struct fixture {
    struct machine machine;
    struct workload_node node;
    struct maintenance_request requests[4];
    const struct maintenance_request *list[4];
    struct approval_facts facts;
    struct approval_verdict verdict;
};

static void fixture_init(struct fixture *r)
{
    *r = (struct fixture){
        .machine = { .uid = STR("u-1"), .name = STR("m1"), .node = STR("n1"), .enabled = true },
        .facts = { .name = STR("n1") },
    };
}

static void fixture_add_request(struct fixture *r, struct str request, enum mrequest_state state)
{
    r->requests[r->facts.n] = (struct maintenance_request){
        .uid = STR("p"),
        .client = STR(WORKLOAD_REQUEST_CLIENT),
        .type_text = STR("node"),
        .target = STR("n1"),
        .machine_request = request,
        .state = state,
    };
    r->list[r->facts.n] = &r->requests[r->facts.n];
    r->facts.n++;
}

static void fixture_decide(struct fixture *r)
{
    r->facts.machine = &r->machine;
    r->facts.node = &r->node;
    r->facts.requests = r->list;
    approval_decide(&r->facts, &r->verdict);
}

/* What the edit wants of a label or an annotation: 's' it is set, 'r' it is removed, '-' nothing.
 */
static char wants(const struct fixture *r, bool label, struct str key)
{
    const struct meta_patch_key *k = meta_patch_find(&r->verdict.node, label, key);
    return k == NULL ? '-' : k->remove ? 'r' : 's';
}

/* ── one request ───────────────────────────────────────────────────────────────────────────── */

/* 'n' none, 'P' pending, 'A' approved, 'I' in progress. */
static const enum mrequest_state states[] = {
    ['P'] = MR_STATE_PENDING,
    ['A'] = MR_STATE_APPROVED,
    ['I'] = MR_STATE_IN_PROGRESS,
};

TEST(approval_leads_one_request_through_its_states)
{
    static const struct {
        bool asked;    /* label and annotation are on the Node */
        char request;  /* see above */
        bool approved; /* the approval of this request is on the Node */
        char act;      /* 'r' rest, 'a' ask, 'b' begin, 'e' end */
        char label;    /* see wants() */
    } rows[] = {
        { true, 'n', false, 'a', '-' },  { true, 'P', false, 'r', '-' },
        { true, 'A', false, 'b', '-' },  { true, 'I', false, 'r', 's' },
        { true, 'I', true, 'r', '-' }, /* all is well */
        { true, 'n', true, 'a', 'r' }, /* nobody holds a grant for what is approved */
        { true, 'P', true, 'r', 'r' },   { true, 'A', true, 'b', 'r' },
        { false, 'n', false, 'r', '-' }, { false, 'n', true, 'r', 'r' },
        { false, 'P', false, 'e', '-' }, { false, 'A', false, 'e', '-' },
        { false, 'I', false, 'e', '-' }, { false, 'I', true, 'r', 'r' }, /* the approval first */
    };
    static const enum approval_act acts[] = {
        ['r'] = APPROVAL_NONE,
        ['a'] = APPROVAL_CREATE,
        ['b'] = APPROVAL_START,
        ['e'] = APPROVAL_COMPLETE,
    };
    for (size_t i = 0; i < ARRAY_LEN(rows) * 2; i++) {
        bool deletion = i % 2 == 0;
        const __typeof__(rows[0]) *row = &rows[i / 2];
        struct str request = deletion ? DELETION : MAINTENANCE;
        struct fixture r;
        check_case((int64_t)i);
        fixture_init(&r);
        *(deletion ? &r.node.machine_deleted : &r.node.machine_maintenance) = row->asked;
        /* A maintenance keeps the number of its last request. */
        *(deletion ? &r.node.deletion_request : &r.node.maintenance_request) =
            row->asked || !deletion ? request : STR_NONE;
        if (row->request != 'n') {
            fixture_add_request(&r, request, states[(size_t)row->request]);
        }
        *(deletion ? &r.node.approve_deletion : &r.node.approve_maintenance) = row->approved;
        *(deletion ? &r.node.deletion_approved_for : &r.node.maintenance_approved_for) =
            row->approved ? request : STR_NONE;
        fixture_decide(&r);
        CHECK_EQ(r.verdict.act, acts[(size_t)row->act]);
        CHECK_EQ(wants(&r, true, deletion ? KEY_APPROVE_DELETION : KEY_APPROVE_MAINTENANCE),
                 row->label);
        CHECK_EQ(
            wants(&r, false, deletion ? KEY_DELETION_APPROVED_FOR : KEY_MAINTENANCE_APPROVED_FOR),
            row->label);
        CHECK_EQ(r.verdict.node.n, row->label == '-' ? 0 : 2);
        CHECK_EQ(r.verdict.needs_watch, row->asked || row->request != 'n');
        if (row->act == 'a') {
            CHECK_STR(r.verdict.request, request);
        }
    }
    check_case(-1);
}

TEST(approval_gives_the_grant_back_when_the_node_is_gone)
{
    struct fixture r;
    fixture_init(&r);
    fixture_add_request(&r, DELETION, MR_STATE_IN_PROGRESS);
    fixture_decide(&r);
    r.facts.node = NULL;
    approval_decide(&r.facts, &r.verdict);
    CHECK_EQ(r.verdict.act, APPROVAL_COMPLETE);
    CHECK_EQ(r.verdict.node.n, 0);
}

/* ── what does not count ───────────────────────────────────────────────────────────────────── */

TEST(approval_takes_no_grant_of_another_node_or_another_client)
{
    for (int i = 0; i < 4; i++) {
        struct fixture r;
        check_case(i);
        fixture_init(&r);
        r.node.machine_deleted = true;
        r.node.deletion_request = DELETION;
        fixture_add_request(&r, DELETION, MR_STATE_IN_PROGRESS);
        struct maintenance_request *p = &r.requests[0];
        p->target = i == 0 ? STR("n2") : i == 1 ? STR_NONE : p->target;
        p->machine_request = i == 2 ? STR_NONE : p->machine_request;
        p->state = i == 3 ? MR_STATE_COMPLETED : p->state;
        fixture_decide(&r);
        CHECK_EQ(r.verdict.act, APPROVAL_CREATE);
        CHECK_EQ(r.verdict.node.n, 0);
    }
    check_case(-1);
}

TEST(approval_asks_only_for_requests_of_its_own_machine)
{
    struct fixture r;
    fixture_init(&r);
    r.node.machine_deleted = true;
    r.node.deletion_request = STR("u-2");
    r.node.machine_maintenance = true;
    r.node.maintenance_request = STR("u-2/1");
    fixture_decide(&r);
    CHECK_EQ(r.verdict.act, APPROVAL_NONE);
    CHECK(!r.verdict.needs_watch);
    r.node.maintenance_request = STR("u-1");
    fixture_decide(&r);
    CHECK_EQ(r.verdict.act, APPROVAL_NONE);
}

TEST(approval_leaves_approvals_alone_that_name_nobody)
{
    struct fixture r;
    fixture_init(&r);
    r.node.approve_deletion = true;
    r.node.approve_maintenance = true;
    fixture_decide(&r);
    CHECK_EQ(r.verdict.node.n, 0);
}

/* ── several ───────────────────────────────────────────────────────────────────────────────── */

TEST(approval_needs_another_grant_for_another_request)
{
    struct fixture r;
    fixture_init(&r);
    r.node.machine_maintenance = true;
    r.node.maintenance_request = STR("u-1/4");
    fixture_add_request(&r, MAINTENANCE, MR_STATE_IN_PROGRESS);
    fixture_decide(&r);
    CHECK_EQ(r.verdict.act, APPROVAL_COMPLETE);
    CHECK_EQ(r.verdict.node.n, 0);
    r.requests[0].state = MR_STATE_COMPLETED;
    fixture_decide(&r);
    CHECK_EQ(r.verdict.act, APPROVAL_CREATE);
    CHECK_STR(r.verdict.request, "u-1/4");
}

TEST(approval_gives_up_a_maintenance_that_has_not_begun_when_the_machine_goes)
{
    static const enum mrequest_state all[] = { MR_STATE_PENDING, MR_STATE_APPROVED,
                                               MR_STATE_IN_PROGRESS };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct fixture r;
        check_case((int64_t)i);
        fixture_init(&r);
        r.machine.request = MACHINE_REQUEST_REQUESTED;
        r.machine.deleting = true;
        r.node.machine_maintenance = true;
        r.node.maintenance_request = MAINTENANCE;
        r.node.machine_deleted = true;
        r.node.deletion_request = DELETION;
        fixture_add_request(&r, MAINTENANCE, all[i]);
        fixture_decide(&r);
        CHECK_EQ(r.verdict.act, APPROVAL_COMPLETE);
        r.requests[0].state = MR_STATE_COMPLETED;
        fixture_decide(&r);
        CHECK_EQ(r.verdict.act, APPROVAL_CREATE);
        CHECK_STR(r.verdict.request, DELETION);
    }
    check_case(-1);
}

TEST(approval_lets_a_deletion_wait_for_a_maintenance_that_goes_on)
{
    struct fixture r;
    fixture_init(&r);
    r.machine.request = MACHINE_REQUEST_APPROVED;
    r.machine.deleting = true;
    r.node.machine_maintenance = true;
    r.node.maintenance_request = MAINTENANCE;
    r.node.approve_maintenance = true;
    r.node.maintenance_approved_for = MAINTENANCE;
    r.node.machine_deleted = true;
    r.node.deletion_request = DELETION;
    fixture_add_request(&r, MAINTENANCE, MR_STATE_IN_PROGRESS);
    fixture_decide(&r);
    CHECK_EQ(r.verdict.act, APPROVAL_CREATE);
    CHECK_STR(r.verdict.request, DELETION);
    CHECK_EQ(r.verdict.node.n, 0);
    fixture_add_request(&r, DELETION, MR_STATE_PENDING);
    fixture_decide(&r);
    CHECK_EQ(r.verdict.act, APPROVAL_NONE);
}

TEST(approval_keeps_the_request_that_has_come_furthest)
{
    struct fixture r;
    fixture_init(&r);
    r.node.machine_deleted = true;
    r.node.deletion_request = DELETION;
    r.node.approve_deletion = true;
    r.node.deletion_approved_for = DELETION;
    fixture_add_request(&r, DELETION, MR_STATE_PENDING);
    fixture_add_request(&r, DELETION, MR_STATE_IN_PROGRESS);
    fixture_add_request(&r, DELETION, MR_STATE_APPROVED);
    fixture_decide(&r);
    CHECK_EQ(r.verdict.act, APPROVAL_COMPLETE);
    CHECK_EQ(r.verdict.which, 0);
    CHECK_EQ(r.verdict.node.n, 0);
    r.requests[0].state = MR_STATE_COMPLETED;
    fixture_decide(&r);
    CHECK_EQ(r.verdict.act, APPROVAL_COMPLETE);
    CHECK_EQ(r.verdict.which, 2);
}

TEST(approval_ends_what_nobody_asks_for_once_the_node_is_clean)
{
    struct fixture r;
    fixture_init(&r);
    r.node.machine_deleted = true;
    r.node.deletion_request = DELETION;
    fixture_add_request(&r, DELETION, MR_STATE_IN_PROGRESS);
    fixture_decide(&r);
    r.facts.machine = NULL;
    approval_decide(&r.facts, &r.verdict);
    CHECK_EQ(r.verdict.act, APPROVAL_NONE);
    r.node.deletion_request = STR_NONE;
    approval_decide(&r.facts, &r.verdict);
    CHECK_EQ(r.verdict.act, APPROVAL_COMPLETE);
}

TEST(approval_cleans_approvals_of_a_node_that_is_nobodys)
{
    struct meta_patch edit = { 0 };
    struct workload_node node = { .approve_deletion = true, .approve_maintenance = true };
    approval_orphan_node(&node, &edit);
    CHECK_EQ(edit.n, 0);
    node.deletion_approved_for = DELETION;
    approval_orphan_node(&node, &edit);
    CHECK_EQ(edit.n, 2);
    CHECK(meta_patch_find(&edit, true, KEY_APPROVE_DELETION)->remove);
}

/* ── in any order ──────────────────────────────────────────────────────────────────────────── */

static void fixture_apply(struct fixture *r)
{
    const struct meta_patch *e = &r->verdict.node;
    for (uint32_t i = 0; i < e->n; i++) {
        const struct meta_patch_key *k = &e->keys[i];
        struct str value = k->remove ? STR_NONE : k->value;
        if (str_eq(k->key, KEY_APPROVE_DELETION)) {
            r->node.approve_deletion = !k->remove;
        } else if (str_eq(k->key, KEY_APPROVE_MAINTENANCE)) {
            r->node.approve_maintenance = !k->remove;
        } else if (str_eq(k->key, KEY_DELETION_APPROVED_FOR)) {
            r->node.deletion_approved_for = value;
        } else {
            CHECK_STR(k->key, KEY_MAINTENANCE_APPROVED_FOR);
            r->node.maintenance_approved_for = value;
        }
    }
}

static void fixture_act(struct fixture *r)
{
    switch (r->verdict.act) {
    case APPROVAL_NONE:
        break;
    case APPROVAL_CREATE:
        for (uint32_t i = 0; i < r->facts.n; i++) {
            if (r->requests[i].state == MR_STATE_COMPLETED) {
                r->requests[i].state = MR_STATE_PENDING;
                r->requests[i].machine_request = r->verdict.request;
                return;
            }
        }
        CHECK(r->facts.n < ARRAY_LEN(r->requests));
        fixture_add_request(r, r->verdict.request, MR_STATE_PENDING);
        break;
    case APPROVAL_START:
        CHECK_EQ(r->requests[r->verdict.which].state, MR_STATE_APPROVED);
        r->requests[r->verdict.which].state = MR_STATE_IN_PROGRESS;
        break;
    case APPROVAL_COMPLETE:
        CHECK(workload_request_is_open(&r->requests[r->verdict.which]));
        r->requests[r->verdict.which].state = MR_STATE_COMPLETED;
        break;
    }
}

/* Somebody asks, takes back, grants, withdraws; one grant at a time, as the limits have it. */
static void fixture_shake(struct fixture *r, struct rng *rng)
{
    switch (rng_below(rng, 6)) {
    case 0:
        r->node.machine_deleted = !r->node.machine_deleted;
        r->node.deletion_request = r->node.machine_deleted ? DELETION : STR_NONE;
        break;
    case 1:
        r->node.machine_maintenance = !r->node.machine_maintenance;
        r->node.maintenance_request = rng_below(rng, 2) == 0 ? MAINTENANCE : STR("u-1/4");
        break;
    case 2:
        r->machine.request =
            rng_below(rng, 2) == 0 ? MACHINE_REQUEST_REQUESTED : MACHINE_REQUEST_APPROVED;
        break;
    default:
        if (r->facts.n > 0) {
            struct maintenance_request *p = &r->requests[rng_below(rng, r->facts.n)];
            p->state = p->state == MR_STATE_PENDING && rng_below(rng, 4) > 0 ? MR_STATE_APPROVED
                       : rng_below(rng, 8) == 0 && p->state != MR_STATE_COMPLETED ? MR_STATE_PENDING
                                                                                  : p->state;
        }
    }
}

static bool fixture_held(const struct fixture *r, struct str request)
{
    for (uint32_t i = 0; i < r->facts.n; i++) {
        if (r->requests[i].state == MR_STATE_IN_PROGRESS &&
            str_eq(r->requests[i].machine_request, request)) {
            return true;
        }
    }
    return false;
}

/* Whatever happens: an approval is set only under a grant that is held for it, a grant is not given
 * back under an approval, and when nothing more happens all of it comes to rest. */
PROPERTY(approval_approves_only_what_is_granted_and_comes_to_rest)
{
    struct fixture r;
    fixture_init(&r);
    for (int step = 0; step < 60; step++) {
        fixture_shake(&r, rng);
        fixture_decide(&r);
        if (wants(&r, true, KEY_APPROVE_DELETION) == 's') {
            CHECK(fixture_held(&r, DELETION));
        }
        if (wants(&r, true, KEY_APPROVE_MAINTENANCE) == 's') {
            CHECK(fixture_held(&r, r.node.maintenance_request));
        }
        if (rng_below(rng, 2) == 0) {
            fixture_apply(&r);
        }
        if (rng_below(rng, 2) == 0) {
            fixture_act(&r);
        }
    }
    r.node.machine_deleted = false;
    r.node.deletion_request = STR_NONE;
    r.node.machine_maintenance = false;
    for (int step = 0; step < 12; step++) {
        fixture_decide(&r);
        fixture_apply(&r);
        fixture_act(&r);
    }
    fixture_decide(&r);
    CHECK_EQ(r.verdict.act, APPROVAL_NONE);
    CHECK_EQ(r.verdict.node.n, 0);
    CHECK(!r.verdict.needs_watch);
    CHECK(r.node.deletion_approved_for.p == NULL && r.node.maintenance_approved_for.p == NULL);
}
