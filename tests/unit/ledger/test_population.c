/* Which limits apply to which objects: selectors, scopes, workloads, and what is not configured. */
#include "tests/unit/ledger/arbiter_fixture.h"

static void make_selector(struct court *c, const char *name, const char *spec)
{
    court_ask(c, 201, "POST", "/apis/repairman.k8s.io/v1/namespaces/default/maintenanceselectors",
              arena_printf(&c->memory,
                           "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":"
                           "\"MaintenanceSelector\",\"metadata\":{\"name\":\"%s\","
                           "\"namespace\":\"default\"},\"spec\":%s}",
                           name, spec)
                  .p);
}

static const struct jval *selector_status(struct court *c, const char *name)
{
    const struct jval *object =
        apiserver_find(c->server, STR("repairman.k8s.io"), STR("maintenanceselectors"),
                       STR("default"), str_from(name));
    CHECK(object != NULL);
    return jval_get(object, STR("status"));
}

static struct str selector_condition(struct court *c, const char *name, const char *type,
                                     const char *field)
{
    JVAL_EACH (jval_get(selector_status(c, name), STR("conditions")), item) {
        if (str_eq(jval_str(jval_get(item, STR("type"))), str_from(type))) {
            return jval_str(jval_get(item, str_from(field)));
        }
    }
    return STR_NONE;
}

/* Available, with all of its replicas, or not. */
static void make_deployment(struct court *c, const char *space, const char *name, bool available)
{
    struct str path = arena_printf(&c->memory, "/apis/apps/v1/namespaces/%s/deployments", space);
    court_ask(c, 201, "POST", path.p,
              arena_printf(&c->memory,
                           "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":"
                           "{\"name\":\"%s\",\"namespace\":\"%s\"},\"spec\":{\"replicas\":2,"
                           "\"selector\":{\"matchLabels\":{\"a\":\"%s\"}},\"template\":{"
                           "\"metadata\":{\"labels\":{\"a\":\"%s\"}},\"spec\":{\"containers\":[{"
                           "\"name\":\"a\",\"image\":\"b\"}]}}}}",
                           name, space, name, name)
                  .p);
    court_ask(c, 200, "PATCH",
              arena_printf(&c->memory, STR_FMT "/%s/status", STR_ARG(path), name).p,
              arena_printf(&c->memory,
                           "{\"status\":{\"replicas\":2,\"updatedReplicas\":2,"
                           "\"observedGeneration\":1,\"availableReplicas\":%d,\"conditions\":[{"
                           "\"type\":\"Available\",\"status\":\"%s\"}]}}",
                           available ? 2 : 1, available ? "True" : "False")
                  .p);
}

static struct ask_spec workload_spec(struct seat *s, uint32_t i, const char *space,
                                     const char *name)
{
    struct ask_spec spec = seat_spec(s, i, name);
    spec.type = TARGET_DEPLOYMENT;
    spec.space = str_from(space);
    return spec;
}

TEST(limits_shared_must_all_have_room)
{
    struct court c;
    court_begin(&c);
    for (uint32_t i = 1; i <= 6; i++) {
        court_node(&c, arena_printf(&c.memory, "n%u", i).p,
                   i <= 2 ? "{\"zone\":\"a\"}" : "{\"zone\":\"b\"}");
    }
    court_limit(&c, "node", "{\"limit\":50}");
    court_limit(&c, "zone-a",
                "{\"type\":\"node\",\"limit\":50,\"selector\":{\"matchLabels\":{\"zone\":\"a\"}}}");
    struct seat *s = court_seat(&c, 0, NULL);
    seat_ask(s, 1, "n1");
    seat_ask(s, 2, "n2"); /* its zone is full */
    seat_ask(s, 3, "n3"); /* and does not stop those of other zones */
    seat_ask(s, 4, "n4");
    seat_ask(s, 5, "n5");
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(seat_view(s, 1).limit_n, 2);
    CHECK_STR(seat_view(s, 1).limits[1], "zone-a");
    CHECK_EQ(seat_view(s, 2).why, WHY_LIMIT_REACHED);
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_HELD);
    CHECK_EQ(ask_stage(s->asks[4].ask), ASK_HELD);
    CHECK_EQ(seat_view(s, 5).why, WHY_LIMIT_REACHED);
    CHECK_EQ(court_number(&c, "zone-a", "population"), 2);
    CHECK_EQ(court_reserved(&c, "node"), 3);
    CHECK_EQ(court_reserved(&c, "zone-a"), 1);
    /* A node that moves leaves the limit that does not select it any more. */
    court_patch_node(&c, "n1", "{\"metadata\":{\"labels\":{\"zone\":\"b\"}}}");
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_reserved(&c, "zone-a"), 0);
    CHECK_EQ(court_reserved(&c, "node"), 3);
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    court_end(&c);
}

TEST(limit_exclusive_takes_its_objects_out_of_the_others)
{
    struct court c;
    court_begin(&c);
    for (uint32_t i = 1; i <= 6; i++) {
        court_node(&c, arena_printf(&c.memory, "n%u", i).p, i <= 2 ? "{\"pool\":\"gpu\"}" : NULL);
    }
    court_limit(&c, "node", "{\"limit\":25}");
    court_limit(&c, "gpu",
                "{\"type\":\"node\",\"limit\":100,\"scope\":\"Exclusive\",\"selector\":"
                "{\"matchLabels\":{\"pool\":\"gpu\"}}}");
    struct seat *s = court_seat(&c, 0, NULL);
    for (uint32_t i = 1; i <= 4; i++) {
        seat_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
    }
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_number(&c, "node", "population"), 4);
    CHECK_EQ(court_number(&c, "gpu", "population"), 2);
    CHECK_EQ(court_reserved(&c, "gpu"), 2);
    CHECK_EQ(court_reserved(&c, "node"), 1);
    CHECK_STR(seat_view(s, 1).limits[0], "gpu");
    CHECK_EQ(seat_view(s, 1).limit_n, 1);
    /* Without it its objects are everybody's again, and what is held there is entered. */
    court_delete_limit(&c, "gpu");
    court_patch_limit(&c, "node", "{\"spec\":{\"limit\":100}}");
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_number(&c, "node", "population"), 6);
    CHECK_EQ(court_reserved(&c, "node"), 4);
    court_end(&c);
}

TEST(selector_object_gives_a_limit_its_population)
{
    struct court c;
    court_begin(&c);
    for (uint32_t i = 1; i <= 30; i++) {
        court_node(&c, arena_printf(&c.memory, "n%02u", i).p, i <= 25 ? "{\"rack\":\"r1\"}" : NULL);
    }
    court_limit(&c, "rack",
                "{\"type\":\"node\",\"limit\":20,\"selectorRef\":{\"namespace\":\"default\","
                "\"name\":\"r1\"}}");
    struct seat *s = court_seat(&c, 0, NULL);
    court_run(&c, SECONDS(5));
    CHECK_STR(court_condition(&c, "rack", "Accepted", "reason"), "SelectorNotFound");
    make_selector(&c, "r1",
                  "{\"selector\":{\"matchLabels\":{\"rack\":\"r1\"}},\"names\":[\"n30\"]}");
    make_selector(&c, "old", "{\"foo\":\"bar\"}");
    court_run(&c, SECONDS(10));
    CHECK_STR(court_condition(&c, "rack", "Accepted", "status"), "True");
    CHECK_EQ(court_number(&c, "rack", "population"), 26);
    CHECK_EQ(court_number(&c, "rack", "nominal"), 5);
    int64_t matched = 0;
    CHECK(jval_i64(jval_get(selector_status(&c, "r1"), STR("matched")), &matched));
    CHECK_EQ(matched, 26);
    const struct jval *sample = jval_get(selector_status(&c, "r1"), STR("sample"));
    CHECK_EQ(sample->n, 20);
    CHECK_STR(jval_str(jval_first(sample)), "n01");
    CHECK_STR(selector_condition(&c, "r1", "Accepted", "status"), "True");
    CHECK_STR(selector_condition(&c, "r1", "InUse", "status"), "True");
    CHECK_STR(selector_condition(&c, "old", "Accepted", "reason"), "EmptySpec");
    CHECK_STR(selector_condition(&c, "old", "InUse", "status"), "False");
    /* One that it does not mean has no limit. */
    seat_ask(s, 1, "n29");
    seat_ask(s, 2, "n30");
    court_run(&c, SECONDS(5));
    CHECK_EQ(seat_view(s, 1).limit_n, 0);
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(court_reserved(&c, "rack"), 1);
    uint64_t sent = seat_sent(s, "maintenanceselectors/status", DOOR_PATCH);
    court_run(&c, MINUTES(10));
    CHECK_EQ(seat_sent(s, "maintenanceselectors/status", DOOR_PATCH), sent);
    court_end(&c);
}

TEST(limit_of_deployments_grants_one_healthy_one_beside_the_broken)
{
    struct court c;
    court_begin(&c);
    c.most = 2;
    for (uint32_t i = 1; i <= 4; i++) {
        make_deployment(&c, "default", arena_printf(&c.memory, "d%u", i).p, i != 4);
    }
    court_limit(&c, "deployment", "{\"limit\":50,\"policies\":[\"Unavailable\"]}");
    struct seat *s = court_seat(&c, 0, NULL);
    for (uint32_t i = 1; i <= 4; i++) {
        struct ask_spec spec = workload_spec(s, i, "default", arena_printf(&c.memory, "d%u", i).p);
        seat_put(s, i, &spec);
    }
    court_run(&c, SECONDS(10));
    CHECK_EQ(court_number(&c, "deployment", "population"), 4);
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(seat_view(s, 2).why, WHY_LIMIT_REACHED);
    CHECK_EQ(seat_view(s, 3).why, WHY_LIMIT_REACHED);
    CHECK_EQ(ask_stage(s->asks[4].ask), ASK_HELD);
    CHECK_EQ(court_reserved(&c, "deployment"), 2);
    court_end(&c);
}

TEST(limit_of_workloads_looks_at_the_labels_of_namespaces)
{
    struct court c;
    court_begin(&c);
    court_ask(&c, 201, "POST", "/api/v1/namespaces",
              "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"prod\","
              "\"labels\":{\"tier\":\"prod\"}}}");
    make_deployment(&c, "prod", "web", true);
    make_deployment(&c, "prod", "db", true);
    make_deployment(&c, "default", "web", true);
    court_limit(&c, "prod",
                "{\"type\":\"deployment\",\"limit\":50,\"namespaceSelector\":{\"matchLabels\":"
                "{\"tier\":\"prod\"}}}");
    struct seat *s = court_seat(&c, 0, NULL);
    struct ask_spec spec = workload_spec(s, 1, "prod", "web");
    seat_put(s, 1, &spec);
    spec = workload_spec(s, 2, "prod", "db");
    seat_put(s, 2, &spec);
    spec = workload_spec(s, 3, "default", "web");
    seat_put(s, 3, &spec);
    court_run(&c, SECONDS(10));
    CHECK_EQ(court_number(&c, "prod", "population"), 2);
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(seat_view(s, 2).why, WHY_LIMIT_REACHED);
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_HELD);
    CHECK_STR(jval_str(jval_get(jval_first(jval_get(court_status(&c, "prod"), STR("reservations"))),
                                STR("target"))),
              "prod/web");
    /* A namespace that changes changes who is counted. */
    court_ask(&c, 200, "PATCH", "/api/v1/namespaces/default",
              "{\"metadata\":{\"labels\":{\"tier\":\"prod\"}}}");
    court_run(&c, SECONDS(10));
    CHECK_EQ(court_number(&c, "prod", "population"), 3);
    court_end(&c);
}

TEST(limit_of_workloads_grants_nothing_while_they_cannot_be_read)
{
    struct court c;
    court_begin(&c);
    make_deployment(&c, "default", "web", true);
    court_limit(&c, "deployment", "{\"limit\":100}");
    struct seat *s = court_seat(&c, 0, NULL);
    court_run(&c, SECONDS(5));
    c.faults.down = true;
    door_cut(s->door);
    court_run(&c, SECONDS(5));
    struct ask_spec spec = workload_spec(s, 1, "default", "web");
    seat_put(s, 1, &spec);
    court_run(&c, SECONDS(5));
    CHECK_EQ(seat_view(s, 1).why, WHY_NOT_COMPUTED);
    c.faults.down = false;
    court_run(&c, MINUTES(2));
    arbiter_wake(s->arbiter); /* the nodes' watch works again */
    CHECK(court_reach(&c, s, 1, ASK_HELD, MINUTES(5)));
    court_end(&c);
}

TEST(arbiter_denies_what_no_limit_is_for_when_told)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 20);
    struct seat *s = court_seat(&c, 0, &(struct arbiter_config){ .missing = MISSING_DENY });
    seat_ask(s, 1, "n1");
    struct ask_spec profile = seat_spec(s, 2, "n2");
    profile.owner = ASK_PROFILE;
    profile.uid = STR("node-uid");
    profile.name = STR("profile/os");
    seat_put(s, 2, &profile);
    court_run(&c, SECONDS(5));
    CHECK_EQ(seat_view(s, 1).why, WHY_DENIED);
    CHECK_STR(seat_view(s, 1).message, "no MaintenanceLimit applies to node n1");
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD); /* profiles have limits of their own */
    seat_leave(s);
    s = court_seat(&c, 0,
                   &(struct arbiter_config){ .missing = MISSING_PERCENT, .missing_percent = 10 });
    for (uint32_t i = 1; i <= 4; i++) {
        seat_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
    }
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(seat_view(s, 2).why, WHY_TARGET_BUSY); /* the profile's */
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_HELD);
    CHECK_EQ(seat_view(s, 4).why, WHY_LIMIT_REACHED);
    court_end(&c);
}

TEST(arbiter_says_beforehand_what_would_be_held)
{
    struct court c;
    struct ask_view v;
    court_begin(&c);
    court_nodes(&c, 10);
    court_limit(&c, "node", "{\"limit\":10}");
    struct seat *s = court_seat(&c, 0, NULL);
    struct ask_spec spec = seat_spec(s, 5, "n5");
    CHECK(!arbiter_allows(s->arbiter, &spec, &c.memory, &v));
    CHECK_EQ(v.why, WHY_NOT_COMPUTED);
    court_run(&c, SECONDS(5));
    CHECK(arbiter_allows(s->arbiter, &spec, &c.memory, &v));
    seat_ask(s, 1, "n1");
    court_run(&c, SECONDS(5));
    CHECK(!arbiter_allows(s->arbiter, &spec, &c.memory, &v));
    CHECK_EQ(v.why, WHY_LIMIT_REACHED);
    CHECK_STR(v.blocker, "uid-01");
    spec = seat_spec(s, 6, "n1");
    CHECK(!arbiter_allows(s->arbiter, &spec, &c.memory, &v));
    CHECK_EQ(v.why, WHY_TARGET_BUSY);
    spec = seat_spec(s, 1, "n1");
    CHECK(arbiter_allows(s->arbiter, &spec, &c.memory, &v)); /* it is */
    court_end(&c);
}
