/* Who only stands in the line: nothing is taken for it, and nobody behind it is served before it.
 */
#include "tests/unit/ledger/arbiter_fixture.h"

static struct ask_spec standing(struct fixture_controller *s, uint32_t i, const char *node)
{
    struct ask_spec spec = controller_spec(s, i, node);
    spec.owner = ASK_OF_TARGET;
    spec.queue_only = true;
    return spec;
}

/* What its owner does when it is told: it asks for good, under the same uid and age. */
static void take_up(struct fixture_controller *s, uint32_t i, const char *node)
{
    struct ask_spec spec = controller_spec(s, i, node);
    spec.owner = ASK_OF_TARGET;
    ask_free(STEAL(s->asks[i].ask));
    controller_ask_spec(s, i, &spec);
}

TEST(queue_serves_whoever_came_first_whoever_it_is)
{
    struct arbiter_fixture c;
    struct ask_view v;
    fixture_begin(&c);
    c.most = 1;
    fixture_nodes(&c, 10);
    fixture_limit(&c, "node", "{\"limit\":10}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    struct ask_spec second = standing(s, 2, "n2");
    struct ask_spec fourth = standing(s, 4, "n4");
    controller_ask_spec(s, 2, &second);
    controller_ask(s, 3, "n3");
    controller_ask_spec(s, 4, &fourth);
    controller_ask(s, 5, "n5");
    fixture_run(&c, SECONDS(5));
    for (uint32_t i = 2; i <= 5; i++) {
        CHECK_EQ(controller_view(s, i).why, ASK_WHY_LIMIT_REACHED);
        CHECK_EQ(controller_view(s, i).position, i - 1);
    }
    CHECK_EQ(fixture_number(&c, "node", "waiting"), 4);

    uint32_t changes = s->asks[2].changes;
    controller_end(s, 1);
    fixture_run(&c, SECONDS(5));
    CHECK(s->asks[2].changes > changes); /* it is told */
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_NONE);
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_WAITING);
    CHECK_EQ(fixture_reserved(&c, "node") + fixture_locks(&c), 0);
    CHECK_EQ(controller_view(s, 3).why, ASK_WHY_LIMIT_REACHED); /* the place is kept */
    CHECK(arbiter_would_grant(s->arbiter, &second, &c.memory, &v));
    CHECK(!arbiter_would_grant(s->arbiter, &fourth, &c.memory, &v));
    struct ask_spec stranger = controller_spec(s, 9, "n9");
    CHECK(!arbiter_would_grant(s->arbiter, &stranger, &c.memory, &v));
    take_up(s, 2, "n2");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD);

    controller_end(s, 2);
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_HELD);
    CHECK_EQ(controller_view(s, 4).why, ASK_WHY_LIMIT_REACHED);
    controller_end(s, 3);
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(controller_view(s, 4).why, ASK_WHY_NONE);
    CHECK_EQ(controller_view(s, 5).why, ASK_WHY_LIMIT_REACHED);
    /* Whoever leaves the line leaves its place to the next. */
    ask_free(STEAL(s->asks[4].ask));
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[5].ask), ASK_HELD);
    fixture_end(&c);
}

TEST(queue_keeps_the_target_too)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node", "{\"limit\":100}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    struct ask_spec first = standing(s, 1, "n1");
    controller_ask_spec(s, 1, &first);
    controller_ask(s, 2, "n1");
    controller_ask(s, 3, "n2");
    fixture_run(&c, SECONDS(5));
    CHECK(s->asks[1].changes > 0);
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_NONE);
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_TARGET_BUSY);
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_HELD);
    ask_free(STEAL(s->asks[1].ask));
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD);
    fixture_end(&c);
}

/* One a gap, also among those for whom a place is kept. */
TEST(queue_keeps_one_place_a_gap)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node", "{\"limit\":100,\"timeouts\":{\"betweenOperationsSeconds\":60}}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    struct ask_spec first = standing(s, 1, "n1");
    struct ask_spec second = standing(s, 2, "n2");
    controller_ask_spec(s, 1, &first);
    controller_ask_spec(s, 2, &second);
    controller_ask(s, 3, "n3");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_NONE);
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_GAP);
    CHECK_EQ(controller_view(s, 3).why, ASK_WHY_GAP);
    take_up(s, 1, "n1");
    fixture_run(&c, SECONDS(30));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_GAP);
    fixture_run(&c, SECONDS(60));
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_NONE);
    CHECK_EQ(controller_view(s, 3).why, ASK_WHY_GAP);
    fixture_end(&c);
}

/* What a crash left in the books is swept although somebody of that uid stands in the line. */
TEST(queue_claims_nothing_that_is_in_the_books)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node", "{\"limit\":25}");
    fixture_api(&c, 200, "PATCH", "/apis/repairman.k8s.io/v1/maintenancelimits/node/status",
                "{\"status\":{\"reservations\":[{\"requestUID\":\"uid-01\",\"requestName\":"
                "\"profile/os\",\"target\":\"n1\"}]}}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    struct ask_spec first = standing(s, 1, "n1");
    controller_ask_spec(s, 1, &first);
    arbiter_owner_synced(s->arbiter, ASK_OF_TARGET, true);
    arbiter_owner_synced(s->arbiter, ASK_OF_REQUEST, true);
    fixture_run(&c, MINUTES(2));
    CHECK_EQ(fixture_reserved(&c, "node"), 0);
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_NONE);
    fixture_end(&c);
}
