/* A limit's reservations stay small enough for one object of the API server. */
#include "tests/unit/ledger/arbiter_fixture.h"

#define ETCD_BYTES_MAX (1536u * 1024u) /* etcd takes no larger one */

/* The status of a limit that others have filled with the longest reservations there can be. */
static void fill(struct arbiter_fixture *c, const char *limit, uint32_t n)
{
    CLEANUP(buf_done)
    struct buf body = { 0 };
    char name[254] = { 0 };
    char target[318] = { 0 };
    memset(name, 'a', 253);
    memset(target, 'b', 317);
    buf_add(&body, STR("{\"status\":{\"reservations\":["));
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(&body,
                   "%s{\"requestUID\":\"%036u\",\"requestName\":\"%s\",\"target\":\"%s\","
                   "\"state\":\"Approved\",\"grant\":1,"
                   "\"grantedTime\":\"2026-01-02T03:04:05Z\"}",
                   i > 0 ? "," : "", i, name, target);
    }
    buf_add(&body, STR("]}}"));
    fixture_api(c, 200, "PATCH", arena_printf(&c->memory, FIXTURE_LIMITS "/%s/status", limit).p,
                arena_str(&c->memory, buf_str(&body)).p);
}

static size_t object_bytes(struct arbiter_fixture *c, const char *limit)
{
    return fixture_api(c, 200, "GET", arena_printf(&c->memory, FIXTURE_LIMITS "/%s", limit).p, "")
        .n;
}

/* As many as fit, but for `free` of them. */
static uint32_t longest_that_fit(uint32_t free)
{
    return RESERVATIONS_BYTES_MAX / (RESERVATION_BYTES_LONGEST - 32 + 8) - free;
}

TEST(arbiter_neither_grants_nor_adopts_what_does_not_fit_into_the_object)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 3);
    fixture_limit(&c, "node", "{\"limit\":100,\"minimum\":5000}");
    fill(&c, "node", longest_that_fit(0));
    uint32_t before = fixture_reserved(&c, "node");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    struct ask_spec fact = controller_spec(s, 2, "n2");
    fact.already_true = true;
    fact.state = STR("InProgress");
    controller_ask_spec(s, 2, &fact);
    fixture_run(&c, SECONDS(30));
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_LEDGER_FULL);
    CHECK_STR(controller_view(s, 1).reason, "LedgerFull");
    CHECK(ask_stage(s->asks[2].ask) != ASK_HELD);
    CHECK_EQ(fixture_reserved(&c, "node"), before);
    CHECK_STR(fixture_condition(&c, "node", "LedgerFull", "status"), "True");
    CHECK(object_bytes(&c, "node") < ETCD_BYTES_MAX);
    /* With space again, both get theirs, what goes on first. */
    fill(&c, "node", longest_that_fit(1));
    CHECK(fixture_run_until(&c, s, 2, ASK_HELD, SECONDS(30)));
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(30)));
    CHECK_EQ(fixture_reserved(&c, "node"), before + 1);
    CHECK_STR(fixture_condition(&c, "node", "LedgerFull", "status"), "True");
    CHECK(object_bytes(&c, "node") < ETCD_BYTES_MAX);
    fill(&c, "node", 1);
    fixture_run(&c, SECONDS(30));
    CHECK_STR(fixture_condition(&c, "node", "LedgerFull", "status"), "False");
    fixture_end(&c);
}

TEST(arbiter_says_nothing_of_the_size_of_a_ledger_that_is_small)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 2);
    fixture_limit(&c, "node", "{\"limit\":100}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(10)));
    CHECK_STR(fixture_condition(&c, "node", "LedgerFull", "status"), "");
    fixture_end(&c);
}
