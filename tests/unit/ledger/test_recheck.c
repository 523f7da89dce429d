/* The double check before an approval. */
#include "tests/unit/ledger/arbiter_fixture.h"

static void check_now(struct arbiter_fixture *c, struct fixture_controller *s, uint32_t i,
                      const char *uid)
{
    s->asks[i].checked = false;
    ask_recheck(s->asks[i].ask, str_from(uid), controller_on_checked, &s->asks[i]);
    usec_t until = virtual_loop_now(c->v) + SECONDS(60);
    while (!s->asks[i].checked && virtual_loop_step(c->v, until)) {
        fixture_check(c);
    }
    CHECK(s->asks[i].checked);
}

static struct str uid_of(struct arbiter_fixture *c, const char *node)
{
    const struct jval *object =
        apiserver_find(c->server, STR(""), STR("nodes"), STR(""), str_from(node));
    return arena_str(&c->memory, jval_str(jval_at(object, "metadata.uid")));
}

static struct fixture_controller *held(struct arbiter_fixture *c)
{
    fixture_begin(c);
    fixture_nodes(c, 10);
    fixture_limit(c, "node", "{\"limit\":20,\"policies\":[\"NotReady\"]}");
    struct fixture_controller *s = fixture_start_controller(c, 0, NULL);
    controller_ask(s, 1, "n1");
    CHECK(fixture_run_until(c, s, 1, ASK_HELD, SECONDS(5)));
    return s;
}

TEST(recheck_check_passes_when_nothing_has_changed)
{
    struct arbiter_fixture c;
    struct fixture_controller *s = held(&c);
    uint64_t lists = controller_sent(s, "maintenancelimits", SIM_LIST);
    check_now(&c, s, 1, uid_of(&c, "n1").p);
    CHECK_EQ(s->asks[1].check.code, 0);
    CHECK_EQ(controller_sent(s, "maintenancelimits", SIM_LIST), lists + 1);
    fixture_end(&c);
}

TEST(recheck_check_sees_what_the_watch_has_not_brought)
{
    static const struct {
        const char *method;
        const char *path;
        const char *body;
        int status;
        const char *message;
    } cases[] = {
        { "PATCH", FIXTURE_LIMITS "/node", "{\"spec\":{\"paused\":true}}", 200,
          "limit node is paused" },
        { "PATCH", FIXTURE_LIMITS "/node", "{\"spec\":{\"limit\":0,\"minimum\":0}}", 200,
          "limit node: 1 granted and 0 unavailable of 0 allowed" },
        { "PATCH", FIXTURE_LIMITS "/node/status", "{\"status\":{\"reservations\":null}}", 200,
          "limit node: the reservation is not there" },
        { "POST", FIXTURE_LIMITS,
          "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceLimit\",\"metadata\":"
          "{\"name\":\"more\"},\"spec\":{\"type\":\"node\",\"minimum\":0}}",
          201, "limit more: the reservation is not there" },
        { "DELETE", "/api/v1/nodes/n1", "", 200, "node n1 is gone" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arbiter_fixture c;
        check_case((int64_t)i);
        struct fixture_controller *s = held(&c);
        struct str uid = uid_of(&c, "n1");
        /* Watches stand still; only the answers to requests come. */
        c.faults.watch_stall = 1000;
        c.faults.watch_stall_max = MINUTES(10);
        fixture_api(&c, cases[i].status, cases[i].method, cases[i].path, cases[i].body);
        check_now(&c, s, 1, uid.p);
        CHECK_STR(s->asks[1].check.msg, cases[i].message);
        CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
        c.faults.watch_stall = 0;
        fixture_end(&c);
    }
    check_case(-1);
}

TEST(recheck_check_knows_a_target_that_was_replaced)
{
    struct arbiter_fixture c;
    struct fixture_controller *s = held(&c);
    struct str uid = uid_of(&c, "n1");
    fixture_api(&c, 200, "DELETE", "/api/v1/nodes/n1", "");
    fixture_node(&c, "n1", NULL);
    check_now(&c, s, 1, uid.p);
    CHECK_STR(s->asks[1].check.msg, "node n1 is another one than it was");
    fixture_end(&c);
}

TEST(recheck_check_counts_what_became_unavailable_meanwhile)
{
    struct arbiter_fixture c;
    struct fixture_controller *s = held(&c);
    fixture_ready(&c, "n2", "False");
    fixture_ready(&c, "n3", "False");
    fixture_run(&c, SECONDS(5));
    check_now(&c, s, 1, "");
    CHECK_STR(s->asks[1].check.msg, "limit node: 1 granted and 2 unavailable of 2 allowed");
    /* A repair was granted although others are broken. */
    controller_ask(s, 2, "n2");
    CHECK(fixture_run_until(&c, s, 2, ASK_HELD, SECONDS(5)));
    check_now(&c, s, 2, "");
    CHECK_EQ(s->asks[2].check.code, 0);
    fixture_end(&c);
}

TEST(recheck_check_waits_for_a_server_out_of_reach)
{
    struct arbiter_fixture c;
    struct fixture_controller *s = held(&c);
    c.faults.down = true;
    ask_recheck(s->asks[1].ask, STR(""), controller_on_checked, &s->asks[1]);
    fixture_run(&c, SECONDS(20));
    CHECK(!s->asks[1].checked);
    c.faults.down = false;
    fixture_run(&c, MINUTES(1));
    CHECK(s->asks[1].checked);
    CHECK_EQ(s->asks[1].check.code, 0);
    /* It ends with its ask. */
    s->asks[1].checked = false;
    ask_recheck(s->asks[1].ask, STR(""), controller_on_checked, &s->asks[1]);
    controller_end(s, 1);
    fixture_run(&c, SECONDS(5));
    CHECK(s->asks[1].ask == NULL && !s->asks[1].checked);
    fixture_end(&c);
}
