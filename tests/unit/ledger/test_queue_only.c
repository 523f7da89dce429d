/* Who only stands in the line: nothing is taken for it, and nobody behind it is served before it.
 */
#include "tests/unit/ledger/arbiter_fixture.h"

static struct ask_spec standing(struct seat *s, uint32_t i, const char *node)
{
    struct ask_spec spec = seat_spec(s, i, node);
    spec.owner = ASK_PROFILE;
    spec.stands = true;
    return spec;
}

/* What its owner does when it is told: it asks for good, under the same uid and age. */
static void take_up(struct seat *s, uint32_t i, const char *node)
{
    struct ask_spec spec = seat_spec(s, i, node);
    spec.owner = ASK_PROFILE;
    ask_free(STEAL(s->asks[i].ask));
    seat_put(s, i, &spec);
}

TEST(line_serves_whoever_came_first_whoever_it_is)
{
    struct court c;
    struct ask_view v;
    court_begin(&c);
    c.most = 1;
    court_nodes(&c, 10);
    court_limit(&c, "node", "{\"limit\":10}");
    struct seat *s = court_seat(&c, 0, NULL);
    seat_ask(s, 1, "n1");
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    struct ask_spec second = standing(s, 2, "n2");
    struct ask_spec fourth = standing(s, 4, "n4");
    seat_put(s, 2, &second);
    seat_ask(s, 3, "n3");
    seat_put(s, 4, &fourth);
    seat_ask(s, 5, "n5");
    court_run(&c, SECONDS(5));
    for (uint32_t i = 2; i <= 5; i++) {
        CHECK_EQ(seat_view(s, i).why, WHY_LIMIT_REACHED);
        CHECK_EQ(seat_view(s, i).position, i - 1);
    }
    CHECK_EQ(court_number(&c, "node", "waiting"), 4);

    uint32_t changes = s->asks[2].changes;
    seat_end(s, 1);
    court_run(&c, SECONDS(5));
    CHECK(s->asks[2].changes > changes); /* it is told */
    CHECK_EQ(seat_view(s, 2).why, WHY_NONE);
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_WAITING);
    CHECK_EQ(court_reserved(&c, "node") + court_locks(&c), 0);
    CHECK_EQ(seat_view(s, 3).why, WHY_LIMIT_REACHED); /* the place is kept */
    CHECK(arbiter_allows(s->arbiter, &second, &c.memory, &v));
    CHECK(!arbiter_allows(s->arbiter, &fourth, &c.memory, &v));
    struct ask_spec stranger = seat_spec(s, 9, "n9");
    CHECK(!arbiter_allows(s->arbiter, &stranger, &c.memory, &v));
    take_up(s, 2, "n2");
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD);

    seat_end(s, 2);
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_HELD);
    CHECK_EQ(seat_view(s, 4).why, WHY_LIMIT_REACHED);
    seat_end(s, 3);
    court_run(&c, SECONDS(5));
    CHECK_EQ(seat_view(s, 4).why, WHY_NONE);
    CHECK_EQ(seat_view(s, 5).why, WHY_LIMIT_REACHED);
    /* Whoever leaves the line leaves its place to the next. */
    ask_free(STEAL(s->asks[4].ask));
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[5].ask), ASK_HELD);
    court_end(&c);
}

TEST(line_keeps_the_target_too)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 4);
    court_limit(&c, "node", "{\"limit\":100}");
    struct seat *s = court_seat(&c, 0, NULL);
    struct ask_spec first = standing(s, 1, "n1");
    seat_put(s, 1, &first);
    seat_ask(s, 2, "n1");
    seat_ask(s, 3, "n2");
    court_run(&c, SECONDS(5));
    CHECK(s->asks[1].changes > 0);
    CHECK_EQ(seat_view(s, 1).why, WHY_NONE);
    CHECK_EQ(seat_view(s, 2).why, WHY_TARGET_BUSY);
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_HELD);
    ask_free(STEAL(s->asks[1].ask));
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD);
    court_end(&c);
}

/* One a gap, also among those for whom a place is kept. */
TEST(line_keeps_one_place_a_gap)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 4);
    court_limit(&c, "node", "{\"limit\":100,\"timeouts\":{\"betweenOperationsSeconds\":60}}");
    struct seat *s = court_seat(&c, 0, NULL);
    struct ask_spec first = standing(s, 1, "n1");
    struct ask_spec second = standing(s, 2, "n2");
    seat_put(s, 1, &first);
    seat_put(s, 2, &second);
    seat_ask(s, 3, "n3");
    court_run(&c, SECONDS(5));
    CHECK_EQ(seat_view(s, 1).why, WHY_NONE);
    CHECK_EQ(seat_view(s, 2).why, WHY_GAP);
    CHECK_EQ(seat_view(s, 3).why, WHY_GAP);
    take_up(s, 1, "n1");
    court_run(&c, SECONDS(30));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(seat_view(s, 2).why, WHY_GAP);
    court_run(&c, SECONDS(60));
    CHECK_EQ(seat_view(s, 2).why, WHY_NONE);
    CHECK_EQ(seat_view(s, 3).why, WHY_GAP);
    court_end(&c);
}

/* What a crash left in the books is swept although somebody of that uid stands in the line. */
TEST(line_claims_nothing_that_is_in_the_books)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 4);
    court_limit(&c, "node", "{\"limit\":25}");
    court_ask(&c, 200, "PATCH", "/apis/repairman.k8s.io/v1/maintenancelimits/node/status",
              "{\"status\":{\"reservations\":[{\"requestUID\":\"uid-01\",\"requestName\":"
              "\"profile/os\",\"target\":\"n1\"}]}}");
    struct seat *s = court_seat(&c, 0, NULL);
    struct ask_spec first = standing(s, 1, "n1");
    seat_put(s, 1, &first);
    arbiter_owner_knows(s->arbiter, ASK_PROFILE, true);
    arbiter_owner_knows(s->arbiter, ASK_REQUEST, true);
    court_run(&c, MINUTES(2));
    CHECK_EQ(court_reserved(&c, "node"), 0);
    CHECK_EQ(seat_view(s, 1).why, WHY_NONE);
    court_end(&c);
}
