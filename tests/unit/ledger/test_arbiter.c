#include "ledger/arbiter.h"

#include "base/metric.h"

#include "tests/unit/ledger/arbiter_fixture.h"

/* ── status ────────────────────────────────────────────────────────────────────────────────── */

TEST(arbiter_writes_the_numbers_of_the_original)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 1);
    fixture_limit(&c, "node", "{\"limit\":50}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_number(&c, "node", "limit"), 1);
    CHECK_EQ(fixture_number(&c, "node", "population"), 1);
    CHECK_EQ(fixture_number(&c, "node", "observedGeneration"), 1);
    CHECK_STR(jval_str(jval_get(fixture_status(&c, "node"), STR("type"))), "node");
    CHECK_STR(fixture_condition(&c, "node", "Accepted", "status"), "True");
    CHECK_STR(fixture_condition(&c, "node", "Computed", "status"), "True");
    CHECK_STR(fixture_condition(&c, "node", "OverCommitted", "status"), "False");
    struct str note;
    CHECK_EQ(fixture_events(&c, "UpdatedLimits", &note), 1);
    CHECK_STR(note, "updated limits to 1 of 1");
    for (uint32_t i = 2; i <= 10; i++) {
        fixture_node(&c, arena_printf(&c.memory, "n%u", i).p, NULL);
    }
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_number(&c, "node", "limit"), 5);
    CHECK_EQ(fixture_number(&c, "node", "nominal"), 5);
    CHECK(arbiter_synced(s->arbiter) && arbiter_has_limits(s->arbiter, TARGET_NODE));
    CHECK(!arbiter_has_limits(s->arbiter, TARGET_DEPLOYMENT));
    fixture_end(&c);
}

TEST(arbiter_lists_what_its_policies_hit)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 2);
    fixture_limit(&c, "node", "{\"limit\":50,\"policies\":[\"NotReady\",\"Unschedulable\"]}");
    fixture_limit(&c, "ready", "{\"type\":\"node\",\"limit\":50,\"policies\":[\"NotReady\"]}");
    fixture_start_controller(&c, 0, NULL);
    fixture_patch_node(&c, "n2", "{\"spec\":{\"unschedulable\":true}}");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_number(&c, "node", "limit"), 0);
    CHECK_EQ(fixture_number(&c, "node", "unavailableCount"), 1);
    CHECK_STR(jval_str(jval_at(fixture_status(&c, "node"), "unavailable.n2")), "Unschedulable");
    CHECK_EQ(fixture_number(&c, "ready", "limit"), 1);
    CHECK(jval_get(fixture_status(&c, "ready"), STR("unavailable")) == NULL);
    fixture_ready(&c, "n2", "Unknown");
    fixture_run(&c, SECONDS(5));
    CHECK_STR(jval_str(jval_at(fixture_status(&c, "node"), "unavailable.n2")), "NotReady");
    CHECK_EQ(fixture_number(&c, "ready", "limit"), 0);
    fixture_ready(&c, "n2", "True");
    fixture_patch_node(&c, "n2", "{\"spec\":{\"unschedulable\":null}}");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_number(&c, "node", "limit"), 1);
    CHECK(jval_get(fixture_status(&c, "node"), STR("unavailable")) == NULL);
    fixture_end(&c);
}

TEST(arbiter_counts_unknown_readiness_as_the_original_when_told)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 2);
    fixture_limit(&c, "node", "{\"limit\":50,\"policies\":[\"NotReady\"]}");
    fixture_ready(&c, "n1", "Unknown");
    fixture_start_controller(&c, 0, &(struct arbiter_config){ .legacy_notready = true });
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_number(&c, "node", "limit"), 1);
    fixture_ready(&c, "n1", "False");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_number(&c, "node", "limit"), 0);
    fixture_end(&c);
}

TEST(arbiter_says_what_is_wrong_with_a_limit)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 2);
    fixture_limit(&c, "foo", "");
    fixture_limit(&c, "odd", "{\"type\":\"node\",\"policies\":[\"Strange\"]}");
    fixture_limit(&c, "lost",
                  "{\"type\":\"node\",\"selectorRef\":{\"namespace\":\"a\",\"name\":\"b\"}}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    fixture_run(&c, SECONDS(5));
    CHECK_STR(fixture_condition(&c, "foo", "Accepted", "reason"), "UnsupportedType");
    CHECK_EQ(fixture_number(&c, "foo", "limit"), -1);
    CHECK_STR(fixture_condition(&c, "odd", "PoliciesRecognized", "status"), "False");
    CHECK_STR(fixture_condition(&c, "odd", "PoliciesRecognized", "message"), "ignored: Strange");
    CHECK_STR(fixture_condition(&c, "odd", "Accepted", "status"), "True");
    CHECK_STR(fixture_condition(&c, "lost", "Accepted", "reason"), "SelectorNotFound");
    /* Whom it concerns cannot be told, so it stops everybody of its type. */
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_NOT_COMPUTED);
    CHECK_STR(controller_view(s, 1).message, "limit lost: there is no MaintenanceSelector a/b");
    fixture_delete_limit(&c, "lost");
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(5)));
    fixture_end(&c);
}

TEST(arbiter_writes_nothing_when_nothing_changes)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node", "{\"limit\":25,\"policies\":[\"Unschedulable\"]}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    arbiter_owner_synced(s->arbiter, ASK_OF_REQUEST, true);
    controller_ask(s, 1, "n1");
    controller_ask(s, 2, "n2");
    fixture_run(&c, SECONDS(30));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_WAITING);
    uint64_t writes = c.writes;
    uint64_t patches = controller_sent(s, "maintenancelimits/status", SIM_PATCH);
    uint64_t posts = controller_sent(s, "events", SIM_POST);
    fixture_run(&c, MINUTES(10));
    CHECK_EQ(c.writes, writes);
    CHECK_EQ(controller_sent(s, "maintenancelimits/status", SIM_PATCH), patches);
    CHECK_EQ(controller_sent(s, "events", SIM_POST), posts);
    fixture_end(&c);
}

TEST(arbiter_without_the_crds_has_no_limits)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = { "limits", "requests", "selectors" };
        fixture_api(&c, 200, "DELETE",
                    arena_printf(&c.memory,
                                 "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
                                 "maintenance%s.repairman.k8s.io",
                                 names[i])
                        .p,
                    "");
    }
    fixture_nodes(&c, 2);
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    controller_ask(s, 2, "n2");
    controller_ask(s, 3, "n2");
    fixture_run(&c, SECONDS(5));
    CHECK(arbiter_synced(s->arbiter));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD);
    CHECK_EQ(controller_view(s, 3).why, ASK_WHY_TARGET_BUSY); /* a target is still locked */
    CHECK_EQ(fixture_locks(&c), 2);
    CHECK_EQ(fixture_events(&c, "NoLimitConfigured", NULL), 1);
    /* They come later, and what is held is entered. */
    fixture_crds(&c);
    fixture_limit(&c, "node", "{\"limit\":100}");
    fixture_run(&c, MINUTES(1));
    CHECK_EQ(fixture_reserved(&c, "node"), 2);
    fixture_end(&c);
}

/* ── granting ──────────────────────────────────────────────────────────────────────────────── */

TEST(arbiter_grants_up_to_the_limit_in_order)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    c.most = 2;
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node", "{\"limit\":50}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 3, "n3");
    controller_ask(s, 1, "n1");
    struct ask_spec late = controller_spec(s, 9, "n4");
    late.priority = 5;
    controller_ask_spec(s, 9, &late);
    controller_ask(s, 2, "n2");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[9].ask), ASK_HELD); /* by its priority */
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    struct ask_view v = controller_view(s, 2);
    CHECK_EQ(v.stage, ASK_WAITING);
    CHECK_EQ(v.why, ASK_WHY_LIMIT_REACHED);
    CHECK_STR(v.reason, "LimitReached");
    CHECK_STR(v.message, "limit node: 2 granted and 0 unavailable of 2 allowed (50 % of 4)");
    CHECK_EQ(v.position, 1);
    CHECK_EQ(v.limit_n, 1);
    CHECK_STR(v.limits[0], "node");
    CHECK_EQ(controller_view(s, 3).position, 2);
    CHECK_EQ(fixture_reserved(&c, "node"), 2);
    CHECK_EQ(fixture_number(&c, "node", "waiting"), 2);
    CHECK_EQ(fixture_number(&c, "node", "granted"), 2);
    CHECK_EQ(fixture_locks(&c), 2);
    controller_end(s, 1);
    CHECK(fixture_run_until(&c, s, 2, ASK_HELD, SECONDS(5)));
    fixture_run(&c, SECONDS(5));
    CHECK(s->asks[1].ask == NULL);
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_WAITING);
    CHECK_EQ(fixture_reserved(&c, "node"), 2);
    CHECK_EQ(fixture_locks(&c), 2);
    for (uint32_t i = 2; i <= 9; i++) {
        if (s->asks[i].ask != NULL) {
            controller_end(s, i);
        }
    }
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_reserved(&c, "node"), 0);
    CHECK_EQ(fixture_locks(&c), 0);
    CHECK_EQ(fixture_number(&c, "node", "waiting"), 0);
    CHECK_EQ(c.seen, 2);
    fixture_end(&c);
}

TEST(arbiter_hands_a_place_on_in_one_write)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    c.most = 1;
    fixture_nodes(&c, 3);
    fixture_limit(&c, "node", "{\"limit\":10}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(5)));
    controller_ask(s, 2, "n2");
    fixture_run(&c, SECONDS(5));
    uint64_t writes = c.writes;
    controller_end(s, 1);
    CHECK(fixture_run_until(&c, s, 2, ASK_HELD, SECONDS(5)));
    CHECK(c.writes - writes <= 2);
    fixture_end(&c);
}

TEST(arbiter_holds_a_target_once)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node", "{\"limit\":100}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    controller_ask(s, 2, "n1");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    struct ask_view v = controller_view(s, 2);
    CHECK_EQ(v.why, ASK_WHY_TARGET_BUSY);
    CHECK_STR(v.message, "node n1 is held by mr-01");
    CHECK_STR(v.blocker, "uid-01");
    controller_end(s, 1);
    CHECK(fixture_run_until(&c, s, 2, ASK_HELD, SECONDS(5)));
    CHECK_EQ(fixture_locks(&c), 1);
    CHECK_EQ(fixture_reserved(&c, "node"), 1);
    fixture_end(&c);
}

TEST(arbiter_repairs_the_broken_node_and_no_healthy_one_besides)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    c.most = 1;
    fixture_nodes(&c, 10);
    fixture_limit(&c, "node", "{\"limit\":10,\"policies\":[\"NotReady\"]}");
    fixture_ready(&c, "n5", "Unknown");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    controller_ask(s, 2, "n5");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_LIMIT_REACHED);
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD);
    /* Who is granted is not counted as unavailable besides. */
    CHECK_EQ(fixture_number(&c, "node", "unavailableCount"), 0);
    CHECK_EQ(fixture_number(&c, "node", "limit"), 1);
    fixture_end(&c);
}

TEST(arbiter_counts_the_granted_twice_when_told)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node",
                  "{\"limit\":50,\"policies\":[\"Unschedulable\"],\"repairUnavailable\":false}");
    struct fixture_controller *s =
        fixture_start_controller(&c, 0, &(struct arbiter_config){ .legacy_double_count = true });
    controller_ask(s, 1, "n1");
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(5)));
    fixture_patch_node(&c, "n1", "{\"spec\":{\"unschedulable\":true}}");
    fixture_run(&c, SECONDS(5));
    controller_ask(s, 2, "n2");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_number(&c, "node", "limit"), 1);
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_LIMIT_REACHED);
    fixture_end(&c);
}

TEST(arbiter_asks_for_a_target_that_is_there)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 2);
    fixture_limit(&c, "node", "{\"limit\":100}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n9");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_TARGET_NOT_FOUND);
    CHECK(s->asks[1].changes > 0); /* it was told, though it waits as before */
    CHECK_STR(controller_view(s, 1).message, "there is no node n9");
    fixture_node(&c, "n9", NULL);
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(5)));
    /* Gone during the work: it stays held. */
    fixture_api(&c, 200, "DELETE", "/api/v1/nodes/n9", "");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(fixture_reserved(&c, "node"), 1);
    controller_crash(s);
    s = fixture_start_controller(&c, 0, &(struct arbiter_config){ .grant_missing = true });
    controller_ask(s, 2, "nowhere");
    CHECK(fixture_run_until(&c, s, 2, ASK_HELD, SECONDS(5)));
    fixture_end(&c);
}

TEST(arbiter_stops_granting_when_paused)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node", "{\"limit\":100,\"paused\":true}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_PAUSED);
    CHECK_STR(fixture_condition(&c, "node", "Paused", "status"), "True");
    fixture_patch_limit(&c, "node", "{\"spec\":{\"paused\":false}}");
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(5)));
    fixture_patch_limit(&c, "node", "{\"spec\":{\"paused\":true}}");
    controller_ask(s, 2, "n2");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_PAUSED);
    fixture_end(&c);
}

TEST(arbiter_keeps_a_gap_between_operations)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node", "{\"limit\":100,\"timeouts\":{\"betweenOperationsSeconds\":60}}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    for (uint32_t i = 1; i <= 3; i++) {
        controller_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
    }
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(5)));
    usec_t first = virtual_loop_now(c.v);
    CHECK_EQ(controller_view(s, 2).why, ASK_WHY_GAP);
    CHECK(fixture_run_until(&c, s, 2, ASK_HELD, MINUTES(2)));
    usec_t second = virtual_loop_now(c.v);
    CHECK(second - first >= SECONDS(60) && second - first < SECONDS(65));
    CHECK(controller_view(s, 3).next > FIXTURE_START);
    fixture_run(&c, SECONDS(30));
    controller_end(s, 1); /* the end of one counts, too */
    usec_t end = virtual_loop_now(c.v);
    CHECK(fixture_run_until(&c, s, 3, ASK_HELD, MINUTES(3)));
    CHECK(virtual_loop_now(c.v) - end >= SECONDS(60));
    fixture_end(&c);
}

TEST(arbiter_reports_a_limit_lowered_below_its_holders)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 10);
    fixture_limit(&c, "node", "{\"limit\":30}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    for (uint32_t i = 1; i <= 4; i++) {
        controller_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
    }
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_reserved(&c, "node"), 3);
    fixture_patch_limit(&c, "node", "{\"spec\":{\"limit\":20}}");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_reserved(&c, "node"), 3); /* nobody is sent away */
    CHECK_STR(fixture_condition(&c, "node", "OverCommitted", "status"), "True");
    CHECK_STR(fixture_condition(&c, "node", "OverCommitted", "reason"), "GrantsAboveNominal");
    struct str note;
    CHECK_EQ(fixture_events(&c, "LimitOverCommitted", &note), 1);
    CHECK_STR(note, "3 granted and 0 unavailable of 2 allowed");
    controller_end(s, 1);
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_reserved(&c, "node"), 2);
    CHECK_EQ(controller_view(s, 4).why, ASK_WHY_LIMIT_REACHED);
    CHECK_STR(fixture_condition(&c, "node", "OverCommitted", "status"), "False");
    fixture_end(&c);
}

/* Its uid. */
static struct str make_request(struct arbiter_fixture *c, uint32_t i, const char *state)
{
    const struct jval *object = fixture_json(
        c, fixture_api(c, 201, "POST", "/apis/repairman.k8s.io/v1/maintenancerequests",
                       arena_printf(&c->memory,
                                    "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":"
                                    "\"MaintenanceRequest\",\"metadata\":{\"name\":\"mr-%02u\"},"
                                    "\"spec\":{\"name\":\"n%u\",\"type\":\"node\","
                                    "\"state\":\"%s\"}}",
                                    i, i, state)
                           .p));
    return jval_str(jval_at(object, "metadata.uid"));
}

TEST(arbiter_adopts_facts_above_the_limit)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 10);
    fixture_limit(&c, "node", "{\"limit\":10}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    for (uint32_t i = 1; i <= 4; i++) {
        struct ask_spec spec =
            controller_spec(s, i, i == 3 ? "n1" : arena_printf(&c.memory, "n%u", i).p);
        spec.uid = make_request(&c, i, i == 4 ? "Completed" : "InProgress");
        spec.already_true = true;
        spec.state = STR("InProgress");
        controller_ask_spec(s, i, &spec);
    }
    fixture_run(&c, SECONDS(5));
    for (uint32_t i = 1; i <= 3; i++) {
        CHECK_EQ(ask_stage(s->asks[i].ask), ASK_HELD);
    }
    /* This one has ended, whatever its owner knows. */
    CHECK_EQ(ask_stage(s->asks[4].ask), ASK_TAKING);
    CHECK_EQ(fixture_reserved(&c, "node"), 3); /* two of them for one node, as the original did */
    CHECK_STR(fixture_condition(&c, "node", "OverCommitted", "status"), "True");
    CHECK(jval_get(fixture_status(&c, "node"), STR("ledgerInitTime")) != NULL);
    CHECK(jval_get(fixture_status(&c, "node"), STR("lastGrantTime")) == NULL);
    struct limit_options o;
    ask_options(s->asks[1].ask, &c.memory, &o);
    CHECK(o.ledger_init_time >= FIXTURE_START && o.ledger_init_time < FIXTURE_START + SECONDS(5));
    fixture_end(&c);
}

static bool is_away(void *ctx UNUSED, const struct jval *target)
{
    return str_eq(jval_str(jval_at(target, "metadata.labels.away")), STR("yes"));
}

/* The node of that name, as its profile knows it. */
static struct ask_spec profile_spec(struct arbiter_fixture *c, struct fixture_controller *s,
                                    uint32_t i)
{
    struct str name = arena_printf(&c->memory, "n%u", i);
    const struct jval *node = apiserver_find(c->server, STR(""), STR("nodes"), STR(""), name);
    struct ask_spec spec = controller_spec(s, i, name.p);
    spec.owner = ASK_OF_TARGET;
    spec.uid = jval_str(jval_at(node, "metadata.uid"));
    spec.name = STR("profile/p");
    spec.state = STR("InMaintenance");
    spec.already_true = true;
    spec.confirm = is_away;
    return spec;
}

/* One that was cut off may take a node for away that came back long ago. */
TEST(arbiter_reads_a_profiles_node_before_it_adopts_it_above_the_limit)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 4);
    fixture_limit(&c, "node", "{\"limit\":0,\"minimum\":0}");
    fixture_patch_node(&c, "n1", "{\"metadata\":{\"labels\":{\"away\":\"yes\"}}}");
    fixture_patch_node(&c, "n3", "{\"metadata\":{\"labels\":{\"away\":\"yes\"}}}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    for (uint32_t i = 1; i <= 3; i++) {
        struct ask_spec spec = profile_spec(&c, s, i);
        spec.uid = i == 3 ? STR("another-n3") : spec.uid;
        controller_ask_spec(s, i, &spec);
    }
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_TAKING);
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_TAKING);
    CHECK_EQ(fixture_reserved(&c, "node"), 1);
    /* Where there is room nothing is at stake, and nothing is read. */
    fixture_patch_limit(&c, "node", "{\"spec\":{\"limit\":100}}");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD);
    uint64_t reads = controller_sent(s, "nodes", SIM_GET);
    struct ask_spec spec = profile_spec(&c, s, 4);
    controller_ask_spec(s, 4, &spec);
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[4].ask), ASK_HELD);
    CHECK_EQ(controller_sent(s, "nodes", SIM_GET), reads);
    fixture_end(&c);
}

TEST(arbiter_does_nothing_until_it_may)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 2);
    fixture_limit(&c, "node", "{\"limit\":100}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    s->may_act = false;
    uint64_t writes = c.writes;
    controller_ask(s, 1, "n1");
    fixture_run(&c, SECONDS(30));
    CHECK_EQ(c.writes, writes);
    CHECK_EQ(fixture_locks(&c), 0);
    CHECK_EQ(controller_view(s, 1).why, ASK_WHY_NOT_COMPUTED);
    s->may_act = true;
    arbiter_wake(s->arbiter);
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(5)));
    fixture_end(&c);
}

TEST(arbiter_shares_one_write_among_many_grants)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 40);
    fixture_limit(&c, "node", "{\"limit\":100}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    fixture_run(&c, SECONDS(5));
    uint64_t writes = c.writes;
    for (uint32_t i = 1; i <= 40; i++) {
        controller_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
    }
    fixture_run(&c, SECONDS(10));
    CHECK_EQ(fixture_reserved(&c, "node"), 40);
    CHECK(c.writes - writes <= 25);
    writes = c.writes;
    for (uint32_t i = 1; i <= 40; i++) {
        controller_end(s, i);
    }
    fixture_run(&c, SECONDS(10));
    CHECK_EQ(fixture_reserved(&c, "node"), 0);
    CHECK_EQ(fixture_locks(&c), 0);
    CHECK(c.writes - writes <= 3);
    fixture_end(&c);
}

/* How many wait is for people: it rides along, or is told once a second. */
TEST(arbiter_tells_how_many_wait_once_a_second)
{
    struct arbiter_fixture c;
    fixture_begin(&c);
    fixture_nodes(&c, 60);
    fixture_limit(&c, "node", "{\"limit\":1}");
    struct fixture_controller *s = fixture_start_controller(&c, 0, NULL);
    controller_ask(s, 1, "n1");
    CHECK(fixture_run_until(&c, s, 1, ASK_HELD, SECONDS(5)));
    fixture_run(&c, SECONDS(5));
    uint64_t writes = c.writes;
    for (uint32_t i = 2; i <= 60; i++) {
        controller_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
        fixture_run(&c, MSECONDS(50));
    }
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(fixture_number(&c, "node", "waiting"), 59);
    CHECK(c.writes - writes <= 5);
    /* Nor is a state that a holder shows a reason to hurry. */
    writes = c.writes;
    for (uint32_t i = 0; i < 20; i++) {
        struct ask_spec spec = controller_spec(s, 1, "n1");
        spec.state = i % 2 == 0 ? STR("Approved") : STR("InProgress");
        ask_update(s->asks[1].ask, &spec);
        fixture_run(&c, MSECONDS(50));
    }
    fixture_run(&c, SECONDS(5));
    CHECK(c.writes - writes <= 3);
    CHECK_STR(
        jval_str(jval_get(jval_first(jval_get(fixture_status(&c, "node"), STR("reservations"))),
                          STR("state"))),
        "InProgress");
    fixture_end(&c);
}

static bool show_limit(void *ctx, const struct arbiter_limit *limit)
{
    *(struct arbiter_limit *)ctx = *limit;
    return false;
}

TEST(arbiter_shows_a_limit_and_its_holders)
{
    struct arbiter_fixture c;
    struct metrics metrics;
    struct arbiter_limit limit = { 0 };
    fixture_begin(&c);
    fixture_nodes(&c, 10);
    fixture_limit(&c, "node", "{\"limit\":20,\"policies\":[\"Unschedulable\"]}");
    metrics_init(&metrics);
    struct fixture_controller *s =
        fixture_start_controller(&c, 0, &(struct arbiter_config){ .metrics = &metrics });
    fixture_patch_node(&c, "n9", "{\"spec\":{\"unschedulable\":true}}");
    controller_ask(s, 1, "n1");
    controller_ask(s, 2, "n2");
    fixture_run(&c, SECONDS(5));
    CHECK_EQ(arbiter_limit_count(s->arbiter), 1);
    arbiter_each_limit(s->arbiter, &c.memory, show_limit, &limit);
    CHECK_STR(limit.name, "node");
    CHECK(limit.accepted && !limit.paused && !limit.overcommitted);
    CHECK_EQ(limit.percent, 20);
    CHECK_EQ(limit.population, 10);
    CHECK_EQ(limit.nominal, 2);
    CHECK_EQ(limit.unavailable, 1);
    CHECK_EQ(limit.granted, 1);
    CHECK_EQ(limit.waiting, 1);
    CHECK_EQ(limit.limit, 1);
    CHECK_STR(limit.holders[0].name, "mr-01");
    CHECK_STR(limit.holders[0].target, "n1");
    CHECK_STR(limit.holders[0].state, "Preparing");
    metrics_collect(&metrics);
    struct str name = STR("node");
    struct metric *family = metrics_find(&metrics, STR("drydock_limit_waiting"));
    CHECK(family != NULL && metric_series(family, &name)->value > 0.5);
    struct metric *paused = metrics_find(&metrics, STR("drydock_limit_paused"));
    CHECK(metric_series(paused, &name)->value < 0.5);
    fixture_patch_limit(&c, "node", "{\"spec\":{\"paused\":true}}");
    fixture_run(&c, SECONDS(5));
    metrics_collect(&metrics);
    CHECK(metric_series(paused, &name)->value > 0.5);
    fixture_delete_limit(&c, "node");
    fixture_run(&c, SECONDS(5));
    metrics_collect(&metrics);
    CHECK(metric_series(family, &name)->value < 0.5);
    controller_crash(s);
    metrics_done(&metrics);
    fixture_end(&c);
}
