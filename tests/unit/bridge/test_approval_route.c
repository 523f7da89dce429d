#include "bridge/approval_route.h"

#include "base/arena.h"
#include "kinds/keys.h"
#include "tests/check.h"

#define DELETION STR("u-1")
#define MAINTENANCE STR("u-1/3")

/* A Machine "u-1" with its Node "n1", and up to four pleas. */
struct road {
    struct machine machine;
    struct peer node;
    struct plea pleas[4];
    const struct plea *list[4];
    struct route_facts facts;
    struct route_verdict verdict;
};

static void road_init(struct road *r)
{
    *r = (struct road){
        .machine = { .uid = STR("u-1"), .name = STR("m1"), .node = STR("n1"), .enabled = true },
        .facts = { .name = STR("n1") },
    };
}

static void road_plea(struct road *r, struct str request, enum plea_state state)
{
    r->pleas[r->facts.n] = (struct plea){
        .uid = STR("p"),
        .node = STR("n1"),
        .request = request,
        .state = state,
    };
    r->list[r->facts.n] = &r->pleas[r->facts.n];
    r->facts.n++;
}

static void road_decide(struct road *r)
{
    r->facts.machine = &r->machine;
    r->facts.node = &r->node;
    r->facts.pleas = r->list;
    route_decide(&r->facts, &r->verdict);
}

/* What the edit wants of a label or an annotation: 's' it is set, 'r' it is removed, '-' nothing.
 */
static char wants(const struct road *r, bool label, struct str key)
{
    const struct edit_key *k = edit_find(&r->verdict.node, label, key);
    return k == NULL ? '-' : k->remove ? 'r' : 's';
}

/* ── one request ───────────────────────────────────────────────────────────────────────────── */

/* 'n' none, 'P' pending, 'A' approved, 'I' in progress. */
static const enum plea_state states[] = {
    ['P'] = PLEA_PENDING,
    ['A'] = PLEA_APPROVED,
    ['I'] = PLEA_IN_PROGRESS,
};

TEST(route_leads_one_request_through_its_states)
{
    static const struct {
        bool asked;    /* label and annotation are on the Node */
        char plea;     /* see above */
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
    static const enum route_act acts[] = {
        ['r'] = ROUTE_REST,
        ['a'] = ROUTE_ASK,
        ['b'] = ROUTE_BEGIN,
        ['e'] = ROUTE_END,
    };
    for (size_t i = 0; i < ARRAY_LEN(rows) * 2; i++) {
        bool deletion = i % 2 == 0;
        const __typeof__(rows[0]) *row = &rows[i / 2];
        struct str request = deletion ? DELETION : MAINTENANCE;
        struct road r;
        check_case((int64_t)i);
        road_init(&r);
        *(deletion ? &r.node.machine_deleted : &r.node.machine_maintenance) = row->asked;
        /* A maintenance keeps the number of its last request. */
        *(deletion ? &r.node.deletion_request : &r.node.maintenance_request) =
            row->asked || !deletion ? request : STR_NONE;
        if (row->plea != 'n') {
            road_plea(&r, request, states[(size_t)row->plea]);
        }
        *(deletion ? &r.node.approve_deletion : &r.node.approve_maintenance) = row->approved;
        *(deletion ? &r.node.deletion_approved_for : &r.node.maintenance_approved_for) =
            row->approved ? request : STR_NONE;
        road_decide(&r);
        CHECK_EQ(r.verdict.act, acts[(size_t)row->act]);
        CHECK_EQ(wants(&r, true, deletion ? KEY_APPROVE_DELETION : KEY_APPROVE_MAINTENANCE),
                 row->label);
        CHECK_EQ(
            wants(&r, false, deletion ? KEY_DELETION_APPROVED_FOR : KEY_MAINTENANCE_APPROVED_FOR),
            row->label);
        CHECK_EQ(r.verdict.node.n, row->label == '-' ? 0 : 2);
        CHECK_EQ(r.verdict.busy, row->asked || row->plea != 'n');
        if (row->act == 'a') {
            CHECK_STR(r.verdict.request, request);
        }
    }
    check_case(-1);
}

TEST(route_gives_the_grant_back_when_the_node_is_gone)
{
    struct road r;
    road_init(&r);
    road_plea(&r, DELETION, PLEA_IN_PROGRESS);
    road_decide(&r);
    r.facts.node = NULL;
    route_decide(&r.facts, &r.verdict);
    CHECK_EQ(r.verdict.act, ROUTE_END);
    CHECK_EQ(r.verdict.node.n, 0);
}

/* ── what does not count ───────────────────────────────────────────────────────────────────── */

TEST(route_takes_no_grant_of_another_node_or_another_client)
{
    for (int i = 0; i < 4; i++) {
        struct road r;
        check_case(i);
        road_init(&r);
        r.node.machine_deleted = true;
        r.node.deletion_request = DELETION;
        road_plea(&r, DELETION, PLEA_IN_PROGRESS);
        struct plea *p = &r.pleas[0];
        p->node = i == 0 ? STR("n2") : i == 1 ? STR_NONE : p->node;
        p->request = i == 2 ? STR_NONE : p->request;
        p->state = i == 3 ? PLEA_COMPLETED : p->state;
        road_decide(&r);
        CHECK_EQ(r.verdict.act, ROUTE_ASK);
        CHECK_EQ(r.verdict.node.n, 0);
    }
    check_case(-1);
}

TEST(route_asks_only_for_requests_of_its_own_machine)
{
    struct road r;
    road_init(&r);
    r.node.machine_deleted = true;
    r.node.deletion_request = STR("u-2");
    r.node.machine_maintenance = true;
    r.node.maintenance_request = STR("u-2/1");
    road_decide(&r);
    CHECK_EQ(r.verdict.act, ROUTE_REST);
    CHECK(!r.verdict.busy);
    r.node.maintenance_request = STR("u-1");
    road_decide(&r);
    CHECK_EQ(r.verdict.act, ROUTE_REST);
}

TEST(route_leaves_approvals_alone_that_name_nobody)
{
    struct road r;
    road_init(&r);
    r.node.approve_deletion = true;
    r.node.approve_maintenance = true;
    road_decide(&r);
    CHECK_EQ(r.verdict.node.n, 0);
}

/* ── several ───────────────────────────────────────────────────────────────────────────────── */

TEST(route_needs_another_grant_for_another_request)
{
    struct road r;
    road_init(&r);
    r.node.machine_maintenance = true;
    r.node.maintenance_request = STR("u-1/4");
    road_plea(&r, MAINTENANCE, PLEA_IN_PROGRESS);
    road_decide(&r);
    CHECK_EQ(r.verdict.act, ROUTE_END);
    CHECK_EQ(r.verdict.node.n, 0);
    r.pleas[0].state = PLEA_COMPLETED;
    road_decide(&r);
    CHECK_EQ(r.verdict.act, ROUTE_ASK);
    CHECK_STR(r.verdict.request, "u-1/4");
}

TEST(route_gives_up_a_maintenance_that_has_not_begun_when_the_machine_goes)
{
    static const enum plea_state all[] = { PLEA_PENDING, PLEA_APPROVED, PLEA_IN_PROGRESS };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct road r;
        check_case((int64_t)i);
        road_init(&r);
        r.machine.request = MACHINE_REQUEST_REQUESTED;
        r.machine.deleting = true;
        r.node.machine_maintenance = true;
        r.node.maintenance_request = MAINTENANCE;
        r.node.machine_deleted = true;
        r.node.deletion_request = DELETION;
        road_plea(&r, MAINTENANCE, all[i]);
        road_decide(&r);
        CHECK_EQ(r.verdict.act, ROUTE_END);
        r.pleas[0].state = PLEA_COMPLETED;
        road_decide(&r);
        CHECK_EQ(r.verdict.act, ROUTE_ASK);
        CHECK_STR(r.verdict.request, DELETION);
    }
    check_case(-1);
}

TEST(route_lets_a_deletion_wait_for_a_maintenance_that_goes_on)
{
    struct road r;
    road_init(&r);
    r.machine.request = MACHINE_REQUEST_APPROVED;
    r.machine.deleting = true;
    r.node.machine_maintenance = true;
    r.node.maintenance_request = MAINTENANCE;
    r.node.approve_maintenance = true;
    r.node.maintenance_approved_for = MAINTENANCE;
    r.node.machine_deleted = true;
    r.node.deletion_request = DELETION;
    road_plea(&r, MAINTENANCE, PLEA_IN_PROGRESS);
    road_decide(&r);
    CHECK_EQ(r.verdict.act, ROUTE_ASK);
    CHECK_STR(r.verdict.request, DELETION);
    CHECK_EQ(r.verdict.node.n, 0);
    road_plea(&r, DELETION, PLEA_PENDING);
    road_decide(&r);
    CHECK_EQ(r.verdict.act, ROUTE_REST);
}

TEST(route_keeps_the_plea_that_has_come_furthest)
{
    struct road r;
    road_init(&r);
    r.node.machine_deleted = true;
    r.node.deletion_request = DELETION;
    r.node.approve_deletion = true;
    r.node.deletion_approved_for = DELETION;
    road_plea(&r, DELETION, PLEA_PENDING);
    road_plea(&r, DELETION, PLEA_IN_PROGRESS);
    road_plea(&r, DELETION, PLEA_APPROVED);
    road_decide(&r);
    CHECK_EQ(r.verdict.act, ROUTE_END);
    CHECK_EQ(r.verdict.which, 0);
    CHECK_EQ(r.verdict.node.n, 0);
    r.pleas[0].state = PLEA_COMPLETED;
    road_decide(&r);
    CHECK_EQ(r.verdict.act, ROUTE_END);
    CHECK_EQ(r.verdict.which, 2);
}

TEST(route_ends_what_nobody_asks_for_once_the_node_is_clean)
{
    struct road r;
    road_init(&r);
    r.node.machine_deleted = true;
    r.node.deletion_request = DELETION;
    road_plea(&r, DELETION, PLEA_IN_PROGRESS);
    road_decide(&r);
    r.facts.machine = NULL;
    route_decide(&r.facts, &r.verdict);
    CHECK_EQ(r.verdict.act, ROUTE_REST);
    r.node.deletion_request = STR_NONE;
    route_decide(&r.facts, &r.verdict);
    CHECK_EQ(r.verdict.act, ROUTE_END);
}

TEST(route_cleans_approvals_of_a_node_that_is_nobodys)
{
    struct edit edit = { 0 };
    struct peer node = { .approve_deletion = true, .approve_maintenance = true };
    route_stray(&node, &edit);
    CHECK_EQ(edit.n, 0);
    node.deletion_approved_for = DELETION;
    route_stray(&node, &edit);
    CHECK_EQ(edit.n, 2);
    CHECK(edit_find(&edit, true, KEY_APPROVE_DELETION)->remove);
}

/* ── in any order ──────────────────────────────────────────────────────────────────────────── */

static void road_apply(struct road *r)
{
    const struct edit *e = &r->verdict.node;
    for (uint32_t i = 0; i < e->n; i++) {
        const struct edit_key *k = &e->keys[i];
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

static void road_act(struct road *r)
{
    switch (r->verdict.act) {
    case ROUTE_REST:
        break;
    case ROUTE_ASK:
        for (uint32_t i = 0; i < r->facts.n; i++) {
            if (r->pleas[i].state == PLEA_COMPLETED) {
                r->pleas[i].state = PLEA_PENDING;
                r->pleas[i].request = r->verdict.request;
                return;
            }
        }
        CHECK(r->facts.n < ARRAY_LEN(r->pleas));
        road_plea(r, r->verdict.request, PLEA_PENDING);
        break;
    case ROUTE_BEGIN:
        CHECK_EQ(r->pleas[r->verdict.which].state, PLEA_APPROVED);
        r->pleas[r->verdict.which].state = PLEA_IN_PROGRESS;
        break;
    case ROUTE_END:
        CHECK(plea_open(&r->pleas[r->verdict.which]));
        r->pleas[r->verdict.which].state = PLEA_COMPLETED;
        break;
    }
}

/* Somebody asks, takes back, grants, withdraws; one grant at a time, as the limits have it. */
static void road_shake(struct road *r, struct rng *rng)
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
            struct plea *p = &r->pleas[rng_below(rng, r->facts.n)];
            p->state = p->state == PLEA_PENDING && rng_below(rng, 4) > 0      ? PLEA_APPROVED
                       : rng_below(rng, 8) == 0 && p->state != PLEA_COMPLETED ? PLEA_PENDING
                                                                              : p->state;
        }
    }
}

static bool road_held(const struct road *r, struct str request)
{
    for (uint32_t i = 0; i < r->facts.n; i++) {
        if (r->pleas[i].state == PLEA_IN_PROGRESS && str_eq(r->pleas[i].request, request)) {
            return true;
        }
    }
    return false;
}

/* Whatever happens: an approval is set only under a grant that is held for it, a grant is not given
 * back under an approval, and when nothing more happens all of it comes to rest. */
PROPERTY(route_approves_only_what_is_granted_and_comes_to_rest)
{
    struct road r;
    road_init(&r);
    for (int step = 0; step < 60; step++) {
        road_shake(&r, rng);
        road_decide(&r);
        if (wants(&r, true, KEY_APPROVE_DELETION) == 's') {
            CHECK(road_held(&r, DELETION));
        }
        if (wants(&r, true, KEY_APPROVE_MAINTENANCE) == 's') {
            CHECK(road_held(&r, r.node.maintenance_request));
        }
        if (rng_below(rng, 2) == 0) {
            road_apply(&r);
        }
        if (rng_below(rng, 2) == 0) {
            road_act(&r);
        }
    }
    r.node.machine_deleted = false;
    r.node.deletion_request = STR_NONE;
    r.node.machine_maintenance = false;
    for (int step = 0; step < 12; step++) {
        road_decide(&r);
        road_apply(&r);
        road_act(&r);
    }
    road_decide(&r);
    CHECK_EQ(r.verdict.act, ROUTE_REST);
    CHECK_EQ(r.verdict.node.n, 0);
    CHECK(!r.verdict.busy);
    CHECK(r.node.deletion_approved_for.p == NULL && r.node.maintenance_approved_for.p == NULL);
}
