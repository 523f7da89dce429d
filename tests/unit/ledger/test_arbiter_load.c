/* A thousand asks for a hundred nodes under a limit of five percent: court.h looks at the ledger
 * after every write. */
#define FIXTURE_ASKS 1001u
#include "tests/unit/ledger/arbiter_fixture.h"

#define CROWD_NODES 100u
#define CROWD_ROUNDS 4000u

static void ask_for_all(struct fixture_controller *s)
{
    for (uint32_t i = 1; i < FIXTURE_ASKS; i++) {
        controller_ask(s, i, arena_printf(&s->fixture->memory, "n%u", 1 + i % CROWD_NODES).p);
    }
    arbiter_owner_synced(s->arbiter, ASK_OF_REQUEST, true);
}

/* Whoever holds a node is through with it at once, and everybody knows; answers how many are left.
 */
static uint32_t end_those_that_hold(struct arbiter_fixture *c, uint32_t controllers, uint32_t round)
{
    uint32_t left = 0;
    for (uint32_t i = 1; i < FIXTURE_ASKS; i++) {
        bool held = false;
        for (uint32_t k = 0; k < controllers; k++) {
            struct ask *ask = c->controllers[k].asks[i].ask;
            held = held || (ask != NULL && ask_stage(ask) == ASK_HELD);
            left += ask != NULL ? 1 : 0;
        }
        for (uint32_t k = 0; held && k < controllers; k++) {
            struct fixture_controller *s = &c->controllers[(k + round) % controllers];
            if (s->asks[i].ask != NULL && ask_stage(s->asks[i].ask) != ASK_ENDING) {
                controller_end(s, i);
            }
        }
    }
    return left;
}

static void serve_a_thousand(uint32_t controllers)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    c.most = 5;
    fixture_nodes(&c, CROWD_NODES);
    fixture_limit(&c, "node", "{\"limit\":5}");
    for (uint32_t k = 0; k < controllers; k++) {
        ask_for_all(fixture_start_controller(&c, k, NULL));
    }
    uint32_t left = 1;
    for (uint32_t round = 0; left > 0 && round < CROWD_ROUNDS; round++) {
        (void)virtual_loop_run(c.v, virtual_loop_now(c.v) + MSECONDS(250));
        left = end_those_that_hold(&c, controllers, round);
    }
    CHECK_EQ(left, 0);
    CHECK_EQ(c.seen, 5);
    CHECK_EQ(fixture_reserved(&c, "node"), 0);
    CHECK_EQ(fixture_locks(&c), 0);
    fixture_check(&c);
    fixture_end(&c);
}

TEST(arbiter_serves_a_thousand_without_ever_exceeding_the_limit)
{
    serve_a_thousand(1);
}

TEST(arbiters_serve_a_thousand_without_ever_exceeding_the_limit)
{
    serve_a_thousand(2);
}
