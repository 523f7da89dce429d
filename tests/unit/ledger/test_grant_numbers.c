/* Each grant of a request has a number: what is over goes, and nothing else. */
#include "tests/unit/ledger/arbiter_fixture.h"

#define REQUESTS "/apis/repairman.k8s.io/v1/maintenancerequests"

static void put_entry(struct arbiter_fixture *c, const char *limit, const char *uid,
                      const char *name, const char *target, uint32_t grant)
{
    struct str number = grant > 0 ? arena_printf(&c->memory, ",\"grant\":%u", grant) : STR("");
    fixture_api(c, 200, "PATCH", arena_printf(&c->memory, FIXTURE_LIMITS "/%s/status", limit).p,
                arena_printf(&c->memory,
                             "{\"status\":{\"reservations\":[{\"requestUID\":\"%s\","
                             "\"requestName\":\"%s\",\"target\":\"%s\"" STR_FMT "}]}}",
                             uid, name, target, STR_ARG(number))
                    .p);
}

static int64_t entry_grant(struct arbiter_fixture *c, const char *limit, const char *uid)
{
    JVAL_EACH (jval_get(fixture_status(c, limit), STR("reservations")), entry) {
        if (str_eq(jval_str(jval_get(entry, STR("requestUID"))), str_from(uid))) {
            int64_t n = 0;
            (void)jval_i64(jval_get(entry, STR("grant")), &n); /* 0: it does not say */
            return n;
        }
    }
    return -1;
}

struct lock_search {
    uint32_t n;
    uint32_t grant;
    struct str holder;
};

static void read_lock(void *ctx, const struct jval *lease)
{
    struct lock_search *look = ctx;
    struct str text =
        jval_str(jval_get(jval_at(lease, "metadata.annotations"), STR("repairman.k8s.io/grant")));
    if (str_starts(jval_str(jval_at(lease, "metadata.name")), STR("target-"))) {
        look->n++;
        look->holder = jval_str(jval_at(lease, "spec.holderIdentity"));
        look->grant = 0;
        (void)str_to_u32(text, &look->grant); /* 0: it does not say */
    }
}

static struct lock_search find_lock(struct arbiter_fixture *c)
{
    struct lock_search look = { 0 };
    apiserver_each(c->server, STR("coordination.k8s.io"), STR("leases"), STR("drydock"), read_lock,
                   &look);
    return look;
}

static struct ask_spec numbered(struct fixture_controller *s, uint32_t i, const char *node,
                                uint32_t grant)
{
    struct ask_spec spec = controller_spec(s, i, node);
    spec.grant = grant;
    return spec;
}

TEST(grants_are_told_by_their_number_in_ledger_and_lock)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 2);
    fixture_limit(&c, "node", "{\"limit\":50}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    struct ask_spec spec = numbered(s, 1, "n1", 3);
    controller_ask_spec(s, 1, &spec);
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(10)));
    CHECK_EQ(entry_grant(&c, "node", "uid-01"), 3);
    CHECK_EQ(find_lock(&c).grant, 3);
    CHECK_EQ(controller_view(s, 1).grant, 3);
    controller_end(s, 1);
    fixture_run(&c, SECONDS(10));
    CHECK(s->asks[1].ask == NULL);
    CHECK_EQ(fixture_reserved(&c, "node"), 0);
    CHECK_EQ(fixture_locks(&c), 0);
    fixture_end(&c);
}

/* A controller died after its request was given back: the next grant takes nothing over from it. */
TEST(grants_take_the_place_of_one_that_is_over)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    c.most = 1;
    fixture_nodes(&c, 2);
    fixture_limit(&c, "node", "{\"limit\":50}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    struct ask_spec spec = numbered(s, 1, "n1", 1);
    controller_ask_spec(s, 1, &spec);
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(10)));
    controller_crash(s);
    s = fixture_start_controller(&c, 0, NULL);
    spec = numbered(s, 1, "n1", 2);
    controller_ask_spec(s, 1, &spec);
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(10)));
    CHECK_EQ(entry_grant(&c, "node", "uid-01"), 2);
    CHECK_EQ(find_lock(&c).n, 1);
    CHECK_EQ(find_lock(&c).grant, 2);
    /* The same ask may go on to the next number, too. */
    spec.grant = 5;
    ask_update(s->asks[1].ask, &spec);
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_WAITING);
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(10)));
    CHECK_EQ(entry_grant(&c, "node", "uid-01"), 5);
    CHECK_EQ(find_lock(&c).grant, 5);
    fixture_end(&c);
}

/* Another controller knows more than this one. */
TEST(grants_that_are_newer_than_what_is_known_are_never_touched)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 2);
    fixture_limit(&c, "node", "{\"limit\":100}");
    struct fixture_controller *two = fixture_start_controller(&c, 1, NULL);
    struct ask_spec newer = numbered(two, 1, "n1", 3);
    controller_ask_spec(two, 1, &newer);
    CHECK(fixture_run_until(&c, two, 1, ASK_HELD, SECONDS(10)));
    struct fixture_controller *one = fixture_start_controller(&c, 0, NULL);
    struct ask_spec older = numbered(one, 1, "n1", 2);
    controller_ask_spec(one, 1, &older);
    fixture_run(&c, MINUTES(20));
    CHECK_EQ(ask_stage(one->asks[1].ask), ASK_WAITING);
    CHECK_EQ(controller_view(one, 1).why, ASK_WHY_NOT_COMPUTED);
    CHECK(!controller_view(one, 1).must_close_grant);
    ask_close_grants_below(one->asks[1].ask, 3);
    ask_end(one->asks[1].ask);
    CHECK(fixture_run_until(&c, one, 1, ASK_ENDED, SECONDS(10)));
    CHECK_EQ(entry_grant(&c, "node", "uid-01"), 3);
    CHECK_EQ(find_lock(&c).grant, 3);
    CHECK_EQ(ask_stage(two->asks[1].ask), ASK_HELD);
    fixture_end(&c);
}

/* Two controllers ask for the same grant: what one of them has put there the other may have counted
 * on, so it goes only when its owner says that the number is over. */
TEST(grants_that_do_not_come_are_ended_before_they_are_struck)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 4);
    fixture_limit(&c, "a", "{\"type\":\"node\",\"limit\":100}");
    fixture_limit(&c, "b", "{\"type\":\"node\",\"limit\":0,\"minimum\":0}");
    put_entry(&c, "a", "uid-01", "mr-01", "n1", 1);
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    struct ask_spec spec = numbered(s, 1, "n1", 1);
    controller_ask_spec(s, 1, &spec);
    fixture_run(&c, MINUTES(10));
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_LIMIT_REACHED);
    CHECK(controller_view(s, 1).must_close_grant);
    CHECK_EQ(entry_grant(&c, "a", "uid-01"), 1);
    spec.grant = 2; /* the owner has written that the first one is over */
    ask_update(s->asks[1].ask, &spec);
    fixture_run(&c, SECONDS(10));
    CHECK_EQ(fixture_reserved(&c, "a"), 0);
    CHECK(!controller_view(s, 1).must_close_grant);
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_LIMIT_REACHED);
    fixture_end(&c);
}

/* It was held here, and its owner says that it has ended, but not of which grants: nothing is taken
 * away before. */
TEST(grants_end_only_when_their_owner_says_which)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 2);
    fixture_limit(&c, "node", "{\"limit\":100}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    struct ask_spec spec = numbered(s, 1, "n1", 1);
    controller_ask_spec(s, 1, &spec);
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(10)));
    ask_end(s->asks[1].ask);
    fixture_run(&c, MINUTES(20));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_ENDING);
    CHECK(controller_view(s, 1).must_close_grant);
    CHECK_EQ(entry_grant(&c, "node", "uid-01"), 1);
    CHECK_EQ(fixture_locks(&c), 1);
    ask_close_grants_below(s->asks[1].ask, 2);
    CHECK(fixture_run_until(&c, s, 1, ASK_ENDED, SECONDS(10)));
    CHECK_EQ(fixture_reserved(&c, "node"), 0);
    CHECK_EQ(fixture_locks(&c), 0);
    fixture_end(&c);
}

/* Of a version that did not count. */
TEST(grants_without_a_number_are_taken_over)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 2);
    fixture_limit(&c, "node", "{\"limit\":50}");
    put_entry(&c, "node", "uid-01", "mr-01", "n1", 0);
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    struct ask_spec spec = numbered(s, 1, "n1", 1);
    controller_ask_spec(s, 1, &spec);
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(10)));
    CHECK_EQ(fixture_reserved(&c, "node"), 1);
    CHECK_EQ(entry_grant(&c, "node", "uid-01"), 0);
    controller_end(s, 1);
    fixture_run(&c, SECONDS(10));
    CHECK_EQ(fixture_reserved(&c, "node"), 0);
    CHECK_EQ(fixture_locks(&c), 0);
    fixture_end(&c);
}

/* An entry that goes in the next write keeps no place for its target: who wants that target again,
 * and who wants the place, do not both get it (I1). */
TEST(grants_that_are_about_to_be_struck_make_room_once)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    c.most = 1;
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node", "{\"limit\":25}");
    put_entry(&c, "node", "uid-01", "mr-01", "n1", 1);
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    struct ask_spec again = numbered(s, 1, "n1", 2);
    struct ask_spec other = numbered(s, 2, "n2", 1);
    controller_ask_spec(s, 1, &again);
    controller_ask_spec(s, 2, &other);
    fixture_run(&c, SECONDS(30));
    CHECK_EQ(c.seen, 1);
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_LIMIT_REACHED);
    CHECK_EQ(entry_grant(&c, "node", "uid-01"), 2);
    fixture_end(&c);
}

static struct str make_request(struct arbiter_fixture *c, const char *name, const char *status)
{
    struct str body = fixture_api(
        c, 201, "POST", REQUESTS,
        arena_printf(&c->memory,
                     "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceRequest\","
                     "\"metadata\":{\"name\":\"%s\"},\"spec\":{\"name\":\"n1\",\"type\":\"node\"}}",
                     name)
            .p);
    fixture_api(c, 200, "PATCH", arena_printf(&c->memory, REQUESTS "/%s/status", name).p, status);
    return arena_str(&c->memory, jval_str(jval_at(fixture_json(c, body), "metadata.uid")));
}

TEST(grants_that_nobody_claims_are_swept_when_they_are_over)
{
    static const struct {
        const char *status;
        uint32_t entry; /* its grant */
        bool swept;
    } cases[] = {
        { "{\"status\":{\"phase\":\"Pending\",\"grant\":2}}", 2, true },
        { "{\"status\":{\"phase\":\"Pending\",\"grant\":2}}", 1, true },
        { "{\"status\":{\"phase\":\"Pending\",\"grant\":2}}", 3, false }, /* it may come */
        { "{\"status\":{\"phase\":\"Pending\",\"grant\":2}}", 0, false },
        { "{\"status\":{\"phase\":\"Preparing\",\"grant\":2}}", 2, false },
        { "{\"status\":{\"phase\":\"Preparing\",\"grant\":2}}", 1, true },
        { "{\"status\":{\"phase\":\"InProgress\",\"grant\":2}}", 2, false },
        { "{\"status\":{\"phase\":\"Expired\",\"grant\":2}}", 2, true },
        { "{\"status\":{\"phase\":\"Expired\",\"grant\":2}}", 3, false },
        { "{\"status\":{\"phase\":\"Expired\"}}", 0, true },
        { "{\"status\":{\"phase\":\"Completed\",\"grant\":2}}", 3, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arbiter_fixture c;
        check_case((int64_t)i);
        fixture_begin(&c);
        fixture_nodes(&c, 2);
        fixture_limit(&c, "node", "{\"limit\":100}");
        struct str uid = make_request(&c, "other", cases[i].status);
        put_entry(&c, "node", arena_printf(&c.memory, STR_FMT, STR_ARG(uid)).p, "other", "n1",
                  cases[i].entry);
        struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
        arbiter_owner_synced(s->arbiter, ASK_OF_REQUEST, true);
        fixture_run(&c, MINUTES(5));
        CHECK_EQ(fixture_reserved(&c, "node"), cases[i].swept ? 0 : 1);
        fixture_end(&c);
    }
    check_case(-1);
}
