#include "kinds/keys.h"
#include "bridge/rules.h"
#include "drain/drain_rules.h"
#include "tests/check.h"
#include "tests/lib/machine_node_fixture.h"

#define OTHER STR("[{\"name\":\"a\",\"behavior\":\"Skip\"}]")

/* ── the table ─────────────────────────────────────────────────────────────────────────────── */

enum asked { NOTHING, DELETION, MAINTENANCE, BOTH };
enum found { NO_BOOK, RIGHT, WRONG };
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

static void stand(struct pair *p, enum asked which)
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

static void want(struct pair *p, enum asked which)
{
    p->machine.deleting = which == DELETION || which == BOTH;
    p->machine.request =
        which == MAINTENANCE || which == BOTH ? MACHINE_REQUEST_REQUESTED : MACHINE_REQUEST_NONE;
}

static void check_outcome(const struct pair *p, const struct book_case *c)
{
    const struct edit *e = &p->verdict.node;
    const struct edit_key *book = edit_find(e, false, DRAIN_RULES_ANNOTATION);
    bool delivers = pair_news(p, RULES_REQUEST_DELIVERED) != NULL;
    CHECK_EQ(delivers, c->outcome == DELIVER);
    switch (c->outcome) {
    case REST:
        CHECK_EQ(e->n, 0);
        break;
    case DELIVER:
        /* One that stands right beside the other request is not written again. */
        CHECK_EQ(book != NULL, c->found != RIGHT);
        CHECK(book == NULL || (!book->remove && str_eq(book->value, STR("[]"))));
        break;
    case CORRECT:
        CHECK_EQ(e->n, 1);
        CHECK_STR(book->value, "[]");
        CHECK_EQ(p->verdict.news_n, 0);
        break;
    case CLEAN:
        CHECK(e->n > 0);
        CHECK_EQ(book != NULL, c->found != NO_BOOK);
        CHECK(book == NULL || book->remove);
        break;
    }
}

TEST(rules_book_goes_with_the_requests)
{
    static const struct book_case cases[] = {
        /* delivered with it */
        { DELETION, true, NOTHING, NO_BOOK, DELIVER },
        { MAINTENANCE, true, NOTHING, NO_BOOK, DELIVER },
        { BOTH, true, NOTHING, NO_BOOK, DELIVER },
        { DELETION, true, NOTHING, WRONG, DELIVER },
        { DELETION, true, NOTHING, RIGHT, DELIVER },
        { BOTH, true, MAINTENANCE, RIGHT, DELIVER },
        /* not known: nobody is asked, and what stands is left alone */
        { DELETION, false, NOTHING, NO_BOOK, REST },
        { MAINTENANCE, false, NOTHING, NO_BOOK, REST },
        { BOTH, false, NOTHING, WRONG, REST },
        { DELETION, false, DELETION, WRONG, REST },
        { DELETION, false, DELETION, NO_BOOK, REST },
        { MAINTENANCE, false, MAINTENANCE, WRONG, REST },
        { BOTH, false, MAINTENANCE, RIGHT, REST },
        /* kept right: rules that changed, tampering, an older bridge's request */
        { DELETION, true, DELETION, RIGHT, REST },
        { DELETION, true, DELETION, WRONG, CORRECT },
        { DELETION, true, DELETION, NO_BOOK, CORRECT },
        { MAINTENANCE, true, MAINTENANCE, RIGHT, REST },
        { MAINTENANCE, true, MAINTENANCE, WRONG, CORRECT },
        { MAINTENANCE, true, MAINTENANCE, NO_BOOK, CORRECT },
        { BOTH, true, BOTH, WRONG, CORRECT },
        /* withdrawn */
        { NOTHING, false, DELETION, WRONG, CLEAN },
        { NOTHING, false, DELETION, NO_BOOK, CLEAN },
        { NOTHING, false, MAINTENANCE, RIGHT, CLEAN },
        { NOTHING, false, BOTH, RIGHT, CLEAN },
        { NOTHING, false, NOTHING, RIGHT, REST },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(pair_done)
        struct pair p;
        pair_init(&p);
        want(&p, cases[i].wanted);
        stand(&p, cases[i].standing);
        p.facts.book = cases[i].known ? STR("[]") : STR_NONE;
        p.facts.book_trouble = STR("nobody knows");
        p.node.book = cases[i].found == NO_BOOK ? 0
                      : cases[i].found == RIGHT ? peer_book(STR("[]"))
                                                : peer_book(OTHER);
        pair_decide(&p);
        check_outcome(&p, &cases[i]);
    }
    check_case(-1);
}

/* ── stories ───────────────────────────────────────────────────────────────────────────────── */

TEST(rules_book_that_is_not_known_holds_the_request_and_says_why)
{
    CLEANUP(pair_done)
    struct pair p;
    pair_init(&p);
    p.facts.book = STR_NONE;
    p.facts.book_trouble = STR("the MachineDrainRules cannot be listed: 403");
    p.machine.deleting = true;
    (void)pair_settle(&p, 1);
    CHECK(!p.node.machine_deleted && p.node.book == 0 && p.machine.hook);
    CHECK_STR(p.verdict.reason, "DrainRulesUnknown");
    CHECK_STR(p.verdict.message,
              "The deletion is held, and Node 'n1' of cluster 'c1' is not asked yet: the "
              "MachineDrainRules cannot be listed: 403. There is no time limit; removing the label "
              "'enabled' from the Machine lets it go.");
    p.facts.book = OTHER;
    (void)pair_settle(&p, 1);
    CHECK(p.node.machine_deleted);
    CHECK_EQ(p.node.book, peer_book(OTHER));
    CHECK_STR(p.verdict.reason, "WaitingForApproval");
    p.facts.book = STR_NONE; /* and once it has been asked, that is no reason any more */
    pair_decide(&p);
    CHECK(pair_still(&p));
    CHECK_STR(p.verdict.reason, "WaitingForApproval");
}

TEST(rules_book_that_is_not_known_holds_a_maintenance_and_says_why)
{
    CLEANUP(pair_done)
    struct pair p;
    pair_init(&p);
    p.facts.book = STR_NONE;
    p.facts.book_trouble = STR("the MachineDrainRules are being listed");
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    (void)pair_settle(&p, 1);
    CHECK(!p.node.machine_maintenance);
    CHECK_STR(p.verdict.reason, "DrainRulesUnknown");
    CHECK_STR(p.verdict.message,
              "The maintenance waits, and Node 'n1' of cluster 'c1' is not asked "
              "yet: the MachineDrainRules are being listed.");
}

/* Approvals do not wait for the rules: of a deletion, of a maintenance, and what was approved
 * before it was asked in the strict mode. */
TEST(rules_book_is_no_matter_for_approvals)
{
    CLEANUP(pair_done)
    struct pair p;
    pair_init(&p);
    p.facts.book = STR_NONE;
    p.machine.deleting = true;
    stand(&p, DELETION);
    p.node.approve_deletion = true;
    (void)pair_settle(&p, 2);
    CHECK(!p.machine.hook);
    pair_done(&p);

    pair_init(&p);
    p.facts.book = STR_NONE;
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    stand(&p, MAINTENANCE);
    p.node.approve_maintenance = true;
    (void)pair_settle(&p, 2);
    CHECK_EQ(p.machine.request, MACHINE_REQUEST_APPROVED);
    pair_done(&p);

    pair_init(&p);
    p.options.strict_approval = true;
    p.facts.book = STR_NONE;
    p.machine.request = MACHINE_REQUEST_REQUESTED;
    p.node.approve_maintenance = true;
    (void)pair_settle(&p, 2);
    CHECK_EQ(p.machine.request, MACHINE_REQUEST_APPROVED);
    CHECK_STR(p.machine.granted, "u-1/1");
    CHECK(!p.node.machine_maintenance);
    p.facts.book = STR("[]");
    (void)pair_settle(&p, 1);
    CHECK(p.node.machine_maintenance && p.node.book != 0);
    CHECK_STR(p.node.maintenance_request, "u-1/1");
}

TEST(rules_book_goes_from_a_machine_that_is_not_enabled)
{
    CLEANUP(pair_done)
    struct pair p;
    pair_init(&p);
    p.machine.enabled = false;
    p.machine.deleting = true;
    p.node.book = 7; /* nothing tells that it is ours */
    pair_decide(&p);
    CHECK_EQ(p.verdict.node.n, 0);
    p.machine.status = STR("{}"); /* but now something does */
    (void)pair_settle(&p, 2);
    CHECK_EQ(p.node.book, 0);
    CHECK(p.machine.status.p == NULL);

    stand(&p, BOTH);
    p.node.book = 7;
    (void)pair_settle(&p, 2);
    CHECK(!peer_marked(&p.node) && p.node.book == 0);
}

/* The number of the last maintenance stays at the Node: whatever took its label away, the book
 * beside it goes. */
TEST(rules_book_does_not_outlive_a_label_that_others_took_away)
{
    CLEANUP(pair_done)
    struct pair p;
    pair_init(&p);
    p.node.maintenance_request = STR("u-1/1");
    p.node.book = peer_book(STR("[]"));
    CHECK_EQ(pair_settle(&p, 1), 1);
    CHECK_EQ(p.node.book, 0);
    CHECK_STR(p.node.maintenance_request, "u-1/1");
}

TEST(rules_book_is_left_alone_while_anything_is_paused)
{
    CLEANUP(pair_done)
    struct pair p;
    pair_init(&p);
    p.machine.deleting = true;
    stand(&p, DELETION);
    p.node.book = 7;
    p.cluster.paused = true;
    pair_decide(&p);
    CHECK(pair_still(&p));
    p.cluster.paused = false;
    p.node.machine = STR("m2"); /* it says that it is another's */
    pair_decide(&p);
    CHECK_EQ(p.verdict.node.n, 0);
}
