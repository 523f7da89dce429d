/* Which limits apply to which objects: selectors, scopes, workloads, and what is not configured. */
#include "tests/unit/ledger/arbiter_fixture.h"

static void make_selector(struct arbiter_fixture *c, const char *name, const char *spec)
{
    fixture_api(c, 201, "POST", "/apis/repairman.k8s.io/v1/namespaces/default/maintenanceselectors",
                arena_printf(&c->memory,
                             "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":"
                             "\"MaintenanceSelector\",\"metadata\":{\"name\":\"%s\","
                             "\"namespace\":\"default\"},\"spec\":%s}",
                             name, spec)
                    .p);
}

static const struct jval *selector_status(struct arbiter_fixture *c, const char *name)
{
    const struct jval *object =
        apiserver_find(c->server, STR("repairman.k8s.io"), STR("maintenanceselectors"),
                       STR("default"), str_from(name));
    CHECK(object != NULL);
    return jval_get(object, STR("status"));
}

static struct str selector_condition(struct arbiter_fixture *c, const char *name, const char *type,
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
static void make_deployment(struct arbiter_fixture *c, const char *namespace, const char *name,
                            bool available)
{
    struct str path =
        arena_printf(&c->memory, "/apis/apps/v1/namespaces/%s/deployments", namespace);
    fixture_api(c, 201, "POST", path.p,
                arena_printf(&c->memory,
                             "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":"
                             "{\"name\":\"%s\",\"namespace\":\"%s\"},\"spec\":{\"replicas\":2,"
                             "\"selector\":{\"matchLabels\":{\"a\":\"%s\"}},\"template\":{"
                             "\"metadata\":{\"labels\":{\"a\":\"%s\"}},\"spec\":{\"containers\":[{"
                             "\"name\":\"a\",\"image\":\"b\"}]}}}}",
                             name, namespace, name, name)
                    .p);
    fixture_api(c, 200, "PATCH",
                arena_printf(&c->memory, STR_FMT "/%s/status", STR_ARG(path), name).p,
                arena_printf(&c->memory,
                             "{\"status\":{\"replicas\":2,\"updatedReplicas\":2,"
                             "\"observedGeneration\":1,\"availableReplicas\":%d,\"conditions\":[{"
                             "\"type\":\"Available\",\"status\":\"%s\"}]}}",
                             available ? 2 : 1, available ? "True" : "False")
                    .p);
}

static struct ask_spec workload_spec(struct fixture_controller *s, uint32_t i,
                                     const char *namespace, const char *name)
{
    struct ask_spec spec = controller_spec(s, i, name);
    spec.type = TARGET_DEPLOYMENT;
    spec.namespace = str_from(namespace);
    return spec;
}

TEST(limits_shared_must_all_have_room)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    for (uint32_t i = 1; i <= 6; i++) {
        fixture_node(&c, arena_printf(&c.memory, "n%u", i).p,
                     i <= 2 ? "{\"zone\":\"a\"}" : "{\"zone\":\"b\"}");
    }
    fixture_limit(&c, "node", "{\"limit\":50}");
    fixture_limit(
        &c, "zone-a",
        "{\"type\":\"node\",\"limit\":50,\"selector\":{\"matchLabels\":{\"zone\":\"a\"}}}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    controller_ask(s, 2, "n2"); /* its zone is full */
    controller_ask(s, 3, "n3"); /* and does not stop those of other zones */
    controller_ask(s, 4, "n4");
    controller_ask(s, 5, "n5");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(controller_view(s, 1).limit_n, 2);
    CHECK_STR(controller_view(s, 1).limits[1], "zone-a");
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_LIMIT_REACHED);
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_HELD);
    CHECK_EQ(ask_stage(s->asks[4].ask), ASK_HELD);
    CHECK_EQ(controller_view(s, 5).why, ASK_WHY_LIMIT_REACHED);
    CHECK_EQ(fixture_number(&c, "zone-a", "population"), 2);
    CHECK_EQ(fixture_reserved(&c, "node"), 3);
    CHECK_EQ(fixture_reserved(&c, "zone-a"), 1);
    /* A node that moves leaves the limit that does not select it any more. */
    fixture_patch_node(&c, "n1", "{\"metadata\":{\"labels\":{\"zone\":\"b\"}}}");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_reserved(&c, "zone-a"), 0);
    CHECK_EQ(fixture_reserved(&c, "node"), 3);
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    fixture_end(&c);
}

TEST(limit_exclusive_takes_its_objects_out_of_the_others)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    for (uint32_t i = 1; i <= 6; i++) {
        fixture_node(&c, arena_printf(&c.memory, "n%u", i).p, i <= 2 ? "{\"pool\":\"gpu\"}" : NULL);
    }
    fixture_limit(&c, "node", "{\"limit\":25}");
    fixture_limit(&c, "gpu",
                  "{\"type\":\"node\",\"limit\":100,\"scope\":\"Exclusive\",\"selector\":"
                  "{\"matchLabels\":{\"pool\":\"gpu\"}}}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    for (uint32_t i = 1; i <= 4; i++) {
        controller_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
    }
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_number(&c, "node", "population"), 4);
    CHECK_EQ(fixture_number(&c, "gpu", "population"), 2);
    CHECK_EQ(fixture_reserved(&c, "gpu"), 2);
    CHECK_EQ(fixture_reserved(&c, "node"), 1);
    CHECK_STR(controller_view(s, 1).limits[0], "gpu");
    CHECK_EQ(controller_view(s, 1).limit_n, 1);
    /* Without it its objects are everybody's again, and what is held there is entered. */
    fixture_delete_limit(&c, "gpu");
    fixture_patch_limit(&c, "node", "{\"spec\":{\"limit\":100}}");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_number(&c, "node", "population"), 6);
    CHECK_EQ(fixture_reserved(&c, "node"), 4);
    fixture_end(&c);
}

#define EXCLUSIVE(priority)                                                                        \
    "{\"type\":\"node\",\"limit\":100,\"scope\":\"Exclusive\",\"selector\":{},"                    \
    "\"priority\":" priority "}"

/* Of two with the same priority the one whose name comes first. */
TEST(limit_exclusive_of_the_highest_priority_applies_alone)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node", "{\"limit\":100}");
    fixture_limit(&c, "x", EXCLUSIVE("1"));
    fixture_limit(&c, "z", EXCLUSIVE("7"));
    fixture_limit(&c, "y", EXCLUSIVE("7"));
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(controller_view(s, 1).limit_n, 1);
    CHECK_STR(controller_view(s, 1).limits[0], "y");
    fixture_end(&c);
}

TEST(selector_object_gives_a_limit_its_population)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    for (uint32_t i = 1; i <= 30; i++) {
        fixture_node(&c, arena_printf(&c.memory, "n%02u", i).p,
                     i <= 25 ? "{\"rack\":\"r1\"}" : NULL);
    }
    fixture_limit(&c, "rack",
                  "{\"type\":\"node\",\"limit\":20,\"selectorRef\":{\"namespace\":\"default\","
                  "\"name\":\"r1\"}}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    fixture_run(&c, SECONDS(5));
    CHECK_STR(fixture_condition(&c, "rack", "Accepted", "reason"), "SelectorNotFound");
    make_selector(&c, "r1",
                  "{\"selector\":{\"matchLabels\":{\"rack\":\"r1\"}},\"names\":[\"n30\"]}");
    make_selector(&c, "old", "{\"foo\":\"bar\"}");
    fixture_run(&c, SECONDS(10));
    CHECK_STR(fixture_condition(&c, "rack", "Accepted", "status"), "True");
    CHECK_EQ(fixture_number(&c, "rack", "population"), 26);
    CHECK_EQ(fixture_number(&c, "rack", "nominal"), 5);
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
    controller_ask(s, 1, "n29");
    controller_ask(s, 2, "n30");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(controller_view(s, 1).limit_n, 0);
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(fixture_reserved(&c, "rack"), 1);
    uint64_t sent = controller_sent(s, "maintenanceselectors/status", SIM_PATCH);
    fixture_run(&c, MINUTES(10));
    CHECK_EQ(controller_sent(s, "maintenanceselectors/status", SIM_PATCH), sent);
    fixture_end(&c);
}

TEST(limit_of_deployments_grants_one_healthy_one_beside_the_broken)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    c.most = 2;
    for (uint32_t i = 1; i <= 4; i++) {
        make_deployment(&c, "default", arena_printf(&c.memory, "d%u", i).p, i != 4);
    }
    fixture_limit(&c, "deployment", "{\"limit\":50,\"policies\":[\"Unavailable\"]}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    for (uint32_t i = 1; i <= 4; i++) {
        struct ask_spec spec = workload_spec(s, i, "default", arena_printf(&c.memory, "d%u", i).p);
        controller_ask_spec(s, i, &spec);
    }
    fixture_run(&c, SECONDS(10));
    CHECK_EQ(fixture_number(&c, "deployment", "population"), 4);
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_LIMIT_REACHED);
    CHECK_EQ(controller_view(s, 3).why, ASK_WHY_LIMIT_REACHED);
    CHECK_EQ(ask_stage(s->asks[4].ask), ASK_HELD);
    CHECK_EQ(fixture_reserved(&c, "deployment"), 2);
    fixture_end(&c);
}

TEST(limit_of_workloads_looks_at_the_labels_of_namespaces)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_api(&c, 201, "POST", "/api/v1/namespaces",
                "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"prod\","
                "\"labels\":{\"tier\":\"prod\"}}}");
    make_deployment(&c, "prod", "web", true);
    make_deployment(&c, "prod", "db", true);
    make_deployment(&c, "default", "web", true);
    fixture_limit(&c, "prod",
                  "{\"type\":\"deployment\",\"limit\":50,\"namespaceSelector\":{\"matchLabels\":"
                  "{\"tier\":\"prod\"}}}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    struct ask_spec spec = workload_spec(s, 1, "prod", "web");
    controller_ask_spec(s, 1, &spec);
    spec = workload_spec(s, 2, "prod", "db");
    controller_ask_spec(s, 2, &spec);
    spec = workload_spec(s, 3, "default", "web");
    controller_ask_spec(s, 3, &spec);
    fixture_run(&c, SECONDS(10));
    CHECK_EQ(fixture_number(&c, "prod", "population"), 2);
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_LIMIT_REACHED);
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_HELD);
    CHECK_STR(
        jval_str(jval_get(jval_first(jval_get(fixture_status(&c, "prod"), STR("reservations"))),
                          STR("target"))),
        "prod/web");
    /* A namespace that changes changes who is counted. */
    fixture_api(&c, 200, "PATCH", "/api/v1/namespaces/default",
                "{\"metadata\":{\"labels\":{\"tier\":\"prod\"}}}");
    fixture_run(&c, SECONDS(10));
    CHECK_EQ(fixture_number(&c, "prod", "population"), 3);
    fixture_end(&c);
}

TEST(limit_of_workloads_grants_nothing_while_they_cannot_be_read)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    make_deployment(&c, "default", "web", true);
    fixture_limit(&c, "deployment", "{\"limit\":100}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    fixture_run(&c, SECONDS(5));
    c.faults.down = true;
    sim_api_disconnect(s->door);
    fixture_run(&c, SECONDS(5));
    struct ask_spec spec = workload_spec(s, 1, "default", "web");
    controller_ask_spec(s, 1, &spec);
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_NOT_COMPUTED);
    c.faults.down = false;
    fixture_run(&c, MINUTES(2));
    arbiter_wake(s->arbiter); /* the nodes' watch works again */
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, MINUTES(5)));
    fixture_end(&c);
}

TEST(arbiter_denies_what_no_limit_is_for_when_told)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 20);
    struct fixture_controller *s =
        fixture_start_controller(&c, 0, &(struct arbiter_config){ .missing = MISSING_LIMIT_DENY });
    controller_ask(s, 1, "n1");
    struct ask_spec profile = controller_spec(s, 2, "n2");
    profile.owner = ASK_OF_TARGET;
    profile.uid = STR("node-uid");
    profile.name = STR("profile/os");
    controller_ask_spec(s, 2, &profile);
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_DENIED);
    CHECK_STR(controller_view(s, 1).message, "no MaintenanceLimit applies to node n1");
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD); /* profiles have limits of their own */
    controller_crash(s);
    s = fixture_start_controller(
        &c, 0,
        &(struct arbiter_config){ .missing = MISSING_LIMIT_PERCENT, .missing_limit_percent = 10 });
    for (uint32_t i = 1; i <= 4; i++) {
        controller_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
    }
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_TARGET_BUSY); /* the profile's */
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_HELD);
    CHECK_EQ(controller_view(s, 4).why, ASK_WHY_LIMIT_REACHED);
    fixture_end(&c);
}

TEST(arbiter_says_beforehand_what_would_be_held)
{
    struct arbiter_fixture c;
    struct ask_view v;
    fixture_begin(&c);
    fixture_nodes(&c, 10);
    fixture_limit(&c, "node", "{\"limit\":10}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    struct ask_spec spec = controller_spec(s, 5, "n5");
    CHECK(!arbiter_would_grant(s->arbiter, &spec, &c.memory, &v));
    CHECK_EQ(v.why, ASK_WHY_NOT_COMPUTED);
    fixture_run(&c, SECONDS(5));
    CHECK(arbiter_would_grant(s->arbiter, &spec, &c.memory, &v));
    controller_ask(s, 1, "n1");
    fixture_run(&c, SECONDS(5));
    CHECK(!arbiter_would_grant(s->arbiter, &spec, &c.memory, &v));
    CHECK_EQ(v.why, ASK_WHY_LIMIT_REACHED);
    CHECK_STR(v.blocker, "uid-01");
    spec = controller_spec(s, 6, "n1");
    CHECK(!arbiter_would_grant(s->arbiter, &spec, &c.memory, &v));
    CHECK_EQ(v.why, ASK_WHY_TARGET_BUSY);
    spec = controller_spec(s, 1, "n1");
    CHECK(arbiter_would_grant(s->arbiter, &spec, &c.memory, &v)); /* it is */
    fixture_end(&c);
}
