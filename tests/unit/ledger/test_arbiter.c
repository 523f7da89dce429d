#include "ledger/arbiter.h"

#include "base/metric.h"

#include "tests/unit/ledger/arbiter_fixture.h"

/* ── status ────────────────────────────────────────────────────────────────────────────────── */

TEST(arbiter_writes_the_numbers_of_the_original)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 1);
    court_limit(&c, "node", "{\"limit\":50}");
    struct seat *s = court_seat(&c, 0, NULL);
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_number(&c, "node", "limit"), 1);
    CHECK_EQ(court_number(&c, "node", "population"), 1);
    CHECK_EQ(court_number(&c, "node", "observedGeneration"), 1);
    CHECK_STR(jval_str(jval_get(court_status(&c, "node"), STR("type"))), "node");
    CHECK_STR(court_condition(&c, "node", "Accepted", "status"), "True");
    CHECK_STR(court_condition(&c, "node", "Computed", "status"), "True");
    CHECK_STR(court_condition(&c, "node", "OverCommitted", "status"), "False");
    struct str note;
    CHECK_EQ(court_events(&c, "UpdatedLimits", &note), 1);
    CHECK_STR(note, "updated limits to 1 of 1");
    for (uint32_t i = 2; i <= 10; i++) {
        court_node(&c, arena_printf(&c.memory, "n%u", i).p, NULL);
    }
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_number(&c, "node", "limit"), 5);
    CHECK_EQ(court_number(&c, "node", "nominal"), 5);
    CHECK(arbiter_synced(s->arbiter) && arbiter_has_limits(s->arbiter, TARGET_NODE));
    CHECK(!arbiter_has_limits(s->arbiter, TARGET_DEPLOYMENT));
    court_end(&c);
}

TEST(arbiter_lists_what_its_policies_hit)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 2);
    court_limit(&c, "node", "{\"limit\":50,\"policies\":[\"NotReady\",\"Unschedulable\"]}");
    court_limit(&c, "ready", "{\"type\":\"node\",\"limit\":50,\"policies\":[\"NotReady\"]}");
    court_seat(&c, 0, NULL);
    court_patch_node(&c, "n2", "{\"spec\":{\"unschedulable\":true}}");
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_number(&c, "node", "limit"), 0);
    CHECK_EQ(court_number(&c, "node", "unavailableCount"), 1);
    CHECK_STR(jval_str(jval_at(court_status(&c, "node"), "unavailable.n2")), "Unschedulable");
    CHECK_EQ(court_number(&c, "ready", "limit"), 1);
    CHECK(jval_get(court_status(&c, "ready"), STR("unavailable")) == NULL);
    court_ready(&c, "n2", "Unknown");
    court_run(&c, SECONDS(5));
    CHECK_STR(jval_str(jval_at(court_status(&c, "node"), "unavailable.n2")), "NotReady");
    CHECK_EQ(court_number(&c, "ready", "limit"), 0);
    court_ready(&c, "n2", "True");
    court_patch_node(&c, "n2", "{\"spec\":{\"unschedulable\":null}}");
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_number(&c, "node", "limit"), 1);
    CHECK(jval_get(court_status(&c, "node"), STR("unavailable")) == NULL);
    court_end(&c);
}

TEST(arbiter_counts_unknown_readiness_as_the_original_when_told)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 2);
    court_limit(&c, "node", "{\"limit\":50,\"policies\":[\"NotReady\"]}");
    court_ready(&c, "n1", "Unknown");
    court_seat(&c, 0, &(struct arbiter_config){ .legacy_notready = true });
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_number(&c, "node", "limit"), 1);
    court_ready(&c, "n1", "False");
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_number(&c, "node", "limit"), 0);
    court_end(&c);
}

TEST(arbiter_says_what_is_wrong_with_a_limit)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 2);
    court_limit(&c, "foo", "");
    court_limit(&c, "odd", "{\"type\":\"node\",\"policies\":[\"Strange\"]}");
    court_limit(&c, "lost",
                "{\"type\":\"node\",\"selectorRef\":{\"namespace\":\"a\",\"name\":\"b\"}}");
    struct seat *s = court_seat(&c, 0, NULL);
    seat_ask(s, 1, "n1");
    court_run(&c, SECONDS(5));
    CHECK_STR(court_condition(&c, "foo", "Accepted", "reason"), "UnsupportedType");
    CHECK_EQ(court_number(&c, "foo", "limit"), -1);
    CHECK_STR(court_condition(&c, "odd", "PoliciesRecognized", "status"), "False");
    CHECK_STR(court_condition(&c, "odd", "PoliciesRecognized", "message"), "ignored: Strange");
    CHECK_STR(court_condition(&c, "odd", "Accepted", "status"), "True");
    CHECK_STR(court_condition(&c, "lost", "Accepted", "reason"), "SelectorNotFound");
    /* Whom it concerns cannot be told, so it stops everybody of its type. */
    CHECK_EQ(seat_view(s, 1).why, WHY_NOT_COMPUTED);
    CHECK_STR(seat_view(s, 1).message, "limit lost: there is no MaintenanceSelector a/b");
    court_delete_limit(&c, "lost");
    CHECK(court_reach(&c, s, 1, ASK_HELD, SECONDS(5)));
    court_end(&c);
}

TEST(arbiter_writes_nothing_when_nothing_changes)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 4);
    court_limit(&c, "node", "{\"limit\":25,\"policies\":[\"Unschedulable\"]}");
    struct seat *s = court_seat(&c, 0, NULL);
    arbiter_owner_knows(s->arbiter, ASK_REQUEST, true);
    seat_ask(s, 1, "n1");
    seat_ask(s, 2, "n2");
    court_run(&c, SECONDS(30));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_WAITING);
    uint64_t writes = c.writes;
    uint64_t patches = seat_sent(s, "maintenancelimits/status", DOOR_PATCH);
    uint64_t posts = seat_sent(s, "events", DOOR_POST);
    court_run(&c, MINUTES(10));
    CHECK_EQ(c.writes, writes);
    CHECK_EQ(seat_sent(s, "maintenancelimits/status", DOOR_PATCH), patches);
    CHECK_EQ(seat_sent(s, "events", DOOR_POST), posts);
    court_end(&c);
}

TEST(arbiter_without_the_crds_has_no_limits)
{
    struct court c;
    court_begin(&c);
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = { "limits", "requests", "selectors" };
        court_ask(&c, 200, "DELETE",
                  arena_printf(&c.memory,
                               "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
                               "maintenance%s.repairman.k8s.io",
                               names[i])
                      .p,
                  "");
    }
    court_nodes(&c, 2);
    struct seat *s = court_seat(&c, 0, NULL);
    seat_ask(s, 1, "n1");
    seat_ask(s, 2, "n2");
    seat_ask(s, 3, "n2");
    court_run(&c, SECONDS(5));
    CHECK(arbiter_synced(s->arbiter));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD);
    CHECK_EQ(seat_view(s, 3).why, WHY_TARGET_BUSY); /* a target is still locked */
    CHECK_EQ(court_locks(&c), 2);
    CHECK_EQ(court_events(&c, "NoLimitConfigured", NULL), 1);
    /* They come later, and what is held is entered. */
    court_crds(&c);
    court_limit(&c, "node", "{\"limit\":100}");
    court_run(&c, MINUTES(1));
    CHECK_EQ(court_reserved(&c, "node"), 2);
    court_end(&c);
}

/* ── granting ──────────────────────────────────────────────────────────────────────────────── */

TEST(arbiter_grants_up_to_the_limit_in_order)
{
    struct court c;
    court_begin(&c);
    c.most = 2;
    court_nodes(&c, 4);
    court_limit(&c, "node", "{\"limit\":50}");
    struct seat *s = court_seat(&c, 0, NULL);
    seat_ask(s, 3, "n3");
    seat_ask(s, 1, "n1");
    struct ask_spec late = seat_spec(s, 9, "n4");
    late.priority = 5;
    seat_put(s, 9, &late);
    seat_ask(s, 2, "n2");
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[9].ask), ASK_HELD); /* by its priority */
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    struct ask_view v = seat_view(s, 2);
    CHECK_EQ(v.stage, ASK_WAITING);
    CHECK_EQ(v.why, WHY_LIMIT_REACHED);
    CHECK_STR(v.reason, "LimitReached");
    CHECK_STR(v.message, "limit node: 2 granted and 0 unavailable of 2 allowed (50 % of 4)");
    CHECK_EQ(v.position, 1);
    CHECK_EQ(v.limit_n, 1);
    CHECK_STR(v.limits[0], "node");
    CHECK_EQ(seat_view(s, 3).position, 2);
    CHECK_EQ(court_reserved(&c, "node"), 2);
    CHECK_EQ(court_number(&c, "node", "waiting"), 2);
    CHECK_EQ(court_number(&c, "node", "granted"), 2);
    CHECK_EQ(court_locks(&c), 2);
    seat_end(s, 1);
    CHECK(court_reach(&c, s, 2, ASK_HELD, SECONDS(5)));
    court_run(&c, SECONDS(5));
    CHECK(s->asks[1].ask == NULL);
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_WAITING);
    CHECK_EQ(court_reserved(&c, "node"), 2);
    CHECK_EQ(court_locks(&c), 2);
    for (uint32_t i = 2; i <= 9; i++) {
        if (s->asks[i].ask != NULL) {
            seat_end(s, i);
        }
    }
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_reserved(&c, "node"), 0);
    CHECK_EQ(court_locks(&c), 0);
    CHECK_EQ(court_number(&c, "node", "waiting"), 0);
    CHECK_EQ(c.seen, 2);
    court_end(&c);
}

TEST(arbiter_hands_a_place_on_in_one_write)
{
    struct court c;
    court_begin(&c);
    c.most = 1;
    court_nodes(&c, 3);
    court_limit(&c, "node", "{\"limit\":10}");
    struct seat *s = court_seat(&c, 0, NULL);
    seat_ask(s, 1, "n1");
    CHECK(court_reach(&c, s, 1, ASK_HELD, SECONDS(5)));
    seat_ask(s, 2, "n2");
    court_run(&c, SECONDS(5));
    uint64_t writes = c.writes;
    seat_end(s, 1);
    CHECK(court_reach(&c, s, 2, ASK_HELD, SECONDS(5)));
    CHECK(c.writes - writes <= 2);
    court_end(&c);
}

TEST(arbiter_holds_a_target_once)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 4);
    court_limit(&c, "node", "{\"limit\":100}");
    struct seat *s = court_seat(&c, 0, NULL);
    seat_ask(s, 1, "n1");
    seat_ask(s, 2, "n1");
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    struct ask_view v = seat_view(s, 2);
    CHECK_EQ(v.why, WHY_TARGET_BUSY);
    CHECK_STR(v.message, "node n1 is held by mr-01");
    CHECK_STR(v.blocker, "uid-01");
    seat_end(s, 1);
    CHECK(court_reach(&c, s, 2, ASK_HELD, SECONDS(5)));
    CHECK_EQ(court_locks(&c), 1);
    CHECK_EQ(court_reserved(&c, "node"), 1);
    court_end(&c);
}

TEST(arbiter_repairs_the_broken_node_and_no_healthy_one_besides)
{
    struct court c;
    court_begin(&c);
    c.most = 1;
    court_nodes(&c, 10);
    court_limit(&c, "node", "{\"limit\":10,\"policies\":[\"NotReady\"]}");
    court_ready(&c, "n5", "Unknown");
    struct seat *s = court_seat(&c, 0, NULL);
    seat_ask(s, 1, "n1");
    seat_ask(s, 2, "n5");
    court_run(&c, SECONDS(5));
    CHECK_EQ(seat_view(s, 1).why, WHY_LIMIT_REACHED);
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD);
    /* Who is granted is not counted as unavailable besides. */
    CHECK_EQ(court_number(&c, "node", "unavailableCount"), 0);
    CHECK_EQ(court_number(&c, "node", "limit"), 1);
    court_end(&c);
}

TEST(arbiter_counts_the_granted_twice_when_told)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 4);
    court_limit(&c, "node",
                "{\"limit\":50,\"policies\":[\"Unschedulable\"],\"repairUnavailable\":false}");
    struct seat *s = court_seat(&c, 0, &(struct arbiter_config){ .legacy_double_count = true });
    seat_ask(s, 1, "n1");
    CHECK(court_reach(&c, s, 1, ASK_HELD, SECONDS(5)));
    court_patch_node(&c, "n1", "{\"spec\":{\"unschedulable\":true}}");
    court_run(&c, SECONDS(5));
    seat_ask(s, 2, "n2");
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_number(&c, "node", "limit"), 1);
    CHECK_EQ(seat_view(s, 2).why, WHY_LIMIT_REACHED);
    court_end(&c);
}

TEST(arbiter_asks_for_a_target_that_is_there)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 2);
    court_limit(&c, "node", "{\"limit\":100}");
    struct seat *s = court_seat(&c, 0, NULL);
    seat_ask(s, 1, "n9");
    court_run(&c, SECONDS(5));
    CHECK_EQ(seat_view(s, 1).why, WHY_TARGET_NOT_FOUND);
    CHECK(s->asks[1].changes > 0); /* it was told, though it waits as before */
    CHECK_STR(seat_view(s, 1).message, "there is no node n9");
    court_node(&c, "n9", NULL);
    CHECK(court_reach(&c, s, 1, ASK_HELD, SECONDS(5)));
    /* Gone during the work: it stays held. */
    court_ask(&c, 200, "DELETE", "/api/v1/nodes/n9", "");
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(court_reserved(&c, "node"), 1);
    seat_leave(s);
    s = court_seat(&c, 0, &(struct arbiter_config){ .grant_missing = true });
    seat_ask(s, 2, "nowhere");
    CHECK(court_reach(&c, s, 2, ASK_HELD, SECONDS(5)));
    court_end(&c);
}

TEST(arbiter_stops_granting_when_paused)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 4);
    court_limit(&c, "node", "{\"limit\":100,\"paused\":true}");
    struct seat *s = court_seat(&c, 0, NULL);
    seat_ask(s, 1, "n1");
    court_run(&c, SECONDS(5));
    CHECK_EQ(seat_view(s, 1).why, WHY_PAUSED);
    CHECK_STR(court_condition(&c, "node", "Paused", "status"), "True");
    court_patch_limit(&c, "node", "{\"spec\":{\"paused\":false}}");
    CHECK(court_reach(&c, s, 1, ASK_HELD, SECONDS(5)));
    court_patch_limit(&c, "node", "{\"spec\":{\"paused\":true}}");
    seat_ask(s, 2, "n2");
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(seat_view(s, 2).why, WHY_PAUSED);
    court_end(&c);
}

TEST(arbiter_keeps_a_gap_between_operations)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 4);
    court_limit(&c, "node", "{\"limit\":100,\"timeouts\":{\"betweenOperationsSeconds\":60}}");
    struct seat *s = court_seat(&c, 0, NULL);
    for (uint32_t i = 1; i <= 3; i++) {
        seat_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
    }
    CHECK(court_reach(&c, s, 1, ASK_HELD, SECONDS(5)));
    usec_t first = vloop_now(c.v);
    CHECK_EQ(seat_view(s, 2).why, WHY_GAP);
    CHECK(court_reach(&c, s, 2, ASK_HELD, MINUTES(2)));
    usec_t second = vloop_now(c.v);
    CHECK(second - first >= SECONDS(60) && second - first < SECONDS(65));
    CHECK(seat_view(s, 3).next > COURT_START);
    court_run(&c, SECONDS(30));
    seat_end(s, 1); /* the end of one counts, too */
    usec_t end = vloop_now(c.v);
    CHECK(court_reach(&c, s, 3, ASK_HELD, MINUTES(3)));
    CHECK(vloop_now(c.v) - end >= SECONDS(60));
    court_end(&c);
}

TEST(arbiter_reports_a_limit_lowered_below_its_holders)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 10);
    court_limit(&c, "node", "{\"limit\":30}");
    struct seat *s = court_seat(&c, 0, NULL);
    for (uint32_t i = 1; i <= 4; i++) {
        seat_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
    }
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_reserved(&c, "node"), 3);
    court_patch_limit(&c, "node", "{\"spec\":{\"limit\":20}}");
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_reserved(&c, "node"), 3); /* nobody is sent away */
    CHECK_STR(court_condition(&c, "node", "OverCommitted", "status"), "True");
    CHECK_STR(court_condition(&c, "node", "OverCommitted", "reason"), "GrantsAboveNominal");
    struct str note;
    CHECK_EQ(court_events(&c, "LimitOverCommitted", &note), 1);
    CHECK_STR(note, "3 granted and 0 unavailable of 2 allowed");
    seat_end(s, 1);
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_reserved(&c, "node"), 2);
    CHECK_EQ(seat_view(s, 4).why, WHY_LIMIT_REACHED);
    CHECK_STR(court_condition(&c, "node", "OverCommitted", "status"), "False");
    court_end(&c);
}

/* Its uid. */
static struct str make_request(struct court *c, uint32_t i, const char *state)
{
    const struct jval *object = court_json(
        c, court_ask(c, 201, "POST", "/apis/repairman.k8s.io/v1/maintenancerequests",
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
    struct court c;
    court_begin(&c);
    court_nodes(&c, 10);
    court_limit(&c, "node", "{\"limit\":10}");
    struct seat *s = court_seat(&c, 0, NULL);
    for (uint32_t i = 1; i <= 4; i++) {
        struct ask_spec spec = seat_spec(s, i, i == 3 ? "n1" : arena_printf(&c.memory, "n%u", i).p);
        spec.uid = make_request(&c, i, i == 4 ? "Completed" : "InProgress");
        spec.adopt = true;
        spec.state = STR("InProgress");
        seat_put(s, i, &spec);
    }
    court_run(&c, SECONDS(5));
    for (uint32_t i = 1; i <= 3; i++) {
        CHECK_EQ(ask_stage(s->asks[i].ask), ASK_HELD);
    }
    /* This one has ended, whatever its owner knows. */
    CHECK_EQ(ask_stage(s->asks[4].ask), ASK_TAKING);
    CHECK_EQ(court_reserved(&c, "node"), 3); /* two of them for one node, as the original did */
    CHECK_STR(court_condition(&c, "node", "OverCommitted", "status"), "True");
    CHECK(jval_get(court_status(&c, "node"), STR("ledgerInitTime")) != NULL);
    CHECK(jval_get(court_status(&c, "node"), STR("lastGrantTime")) == NULL);
    struct limit_options o;
    ask_options(s->asks[1].ask, &c.memory, &o);
    CHECK(o.ledger_init >= COURT_START && o.ledger_init < COURT_START + SECONDS(5));
    court_end(&c);
}

static bool is_away(void *ctx UNUSED, const struct jval *target)
{
    return str_eq(jval_str(jval_at(target, "metadata.labels.away")), STR("yes"));
}

/* The node of that name, as its profile knows it. */
static struct ask_spec profile_spec(struct court *c, struct seat *s, uint32_t i)
{
    struct str name = arena_printf(&c->memory, "n%u", i);
    const struct jval *node = apiserver_find(c->server, STR(""), STR("nodes"), STR(""), name);
    struct ask_spec spec = seat_spec(s, i, name.p);
    spec.owner = ASK_PROFILE;
    spec.uid = jval_str(jval_at(node, "metadata.uid"));
    spec.name = STR("profile/p");
    spec.state = STR("InMaintenance");
    spec.adopt = true;
    spec.is_fact = is_away;
    return spec;
}

/* One that was cut off may take a node for away that came back long ago. */
TEST(arbiter_reads_a_profiles_node_before_it_adopts_it_above_the_limit)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 4);
    court_limit(&c, "node", "{\"limit\":0,\"minimum\":0}");
    court_patch_node(&c, "n1", "{\"metadata\":{\"labels\":{\"away\":\"yes\"}}}");
    court_patch_node(&c, "n3", "{\"metadata\":{\"labels\":{\"away\":\"yes\"}}}");
    struct seat *s = court_seat(&c, 0, NULL);
    for (uint32_t i = 1; i <= 3; i++) {
        struct ask_spec spec = profile_spec(&c, s, i);
        spec.uid = i == 3 ? STR("another-n3") : spec.uid;
        seat_put(s, i, &spec);
    }
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[1].ask), ASK_HELD);
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_TAKING);
    CHECK_EQ(ask_stage(s->asks[3].ask), ASK_TAKING);
    CHECK_EQ(court_reserved(&c, "node"), 1);
    /* Where there is room nothing is at stake, and nothing is read. */
    court_patch_limit(&c, "node", "{\"spec\":{\"limit\":100}}");
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[2].ask), ASK_HELD);
    uint64_t reads = seat_sent(s, "nodes", DOOR_GET);
    struct ask_spec spec = profile_spec(&c, s, 4);
    seat_put(s, 4, &spec);
    court_run(&c, SECONDS(5));
    CHECK_EQ(ask_stage(s->asks[4].ask), ASK_HELD);
    CHECK_EQ(seat_sent(s, "nodes", DOOR_GET), reads);
    court_end(&c);
}

TEST(arbiter_does_nothing_until_it_may)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 2);
    court_limit(&c, "node", "{\"limit\":100}");
    struct seat *s = court_seat(&c, 0, NULL);
    s->may = false;
    uint64_t writes = c.writes;
    seat_ask(s, 1, "n1");
    court_run(&c, SECONDS(30));
    CHECK_EQ(c.writes, writes);
    CHECK_EQ(court_locks(&c), 0);
    CHECK_EQ(seat_view(s, 1).why, WHY_NOT_COMPUTED);
    s->may = true;
    arbiter_wake(s->arbiter);
    CHECK(court_reach(&c, s, 1, ASK_HELD, SECONDS(5)));
    court_end(&c);
}

TEST(arbiter_shares_one_write_among_many_grants)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 40);
    court_limit(&c, "node", "{\"limit\":100}");
    struct seat *s = court_seat(&c, 0, NULL);
    court_run(&c, SECONDS(5));
    uint64_t writes = c.writes;
    for (uint32_t i = 1; i <= 40; i++) {
        seat_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
    }
    court_run(&c, SECONDS(10));
    CHECK_EQ(court_reserved(&c, "node"), 40);
    CHECK(c.writes - writes <= 25);
    writes = c.writes;
    for (uint32_t i = 1; i <= 40; i++) {
        seat_end(s, i);
    }
    court_run(&c, SECONDS(10));
    CHECK_EQ(court_reserved(&c, "node"), 0);
    CHECK_EQ(court_locks(&c), 0);
    CHECK(c.writes - writes <= 3);
    court_end(&c);
}

/* How many wait is for people: it rides along, or is told once a second. */
TEST(arbiter_tells_how_many_wait_once_a_second)
{
    struct court c;
    court_begin(&c);
    court_nodes(&c, 60);
    court_limit(&c, "node", "{\"limit\":1}");
    struct seat *s = court_seat(&c, 0, NULL);
    seat_ask(s, 1, "n1");
    CHECK(court_reach(&c, s, 1, ASK_HELD, SECONDS(5)));
    court_run(&c, SECONDS(5));
    uint64_t writes = c.writes;
    for (uint32_t i = 2; i <= 60; i++) {
        seat_ask(s, i, arena_printf(&c.memory, "n%u", i).p);
        court_run(&c, MSECONDS(50));
    }
    court_run(&c, SECONDS(5));
    CHECK_EQ(court_number(&c, "node", "waiting"), 59);
    CHECK(c.writes - writes <= 5);
    /* Nor is a state that a holder shows a reason to hurry. */
    writes = c.writes;
    for (uint32_t i = 0; i < 20; i++) {
        struct ask_spec spec = seat_spec(s, 1, "n1");
        spec.state = i % 2 == 0 ? STR("Approved") : STR("InProgress");
        ask_update(s->asks[1].ask, &spec);
        court_run(&c, MSECONDS(50));
    }
    court_run(&c, SECONDS(5));
    CHECK(c.writes - writes <= 3);
    CHECK_STR(jval_str(jval_get(jval_first(jval_get(court_status(&c, "node"), STR("reservations"))),
                                STR("state"))),
              "InProgress");
    court_end(&c);
}

static bool show_limit(void *ctx, const struct arbiter_limit *limit)
{
    *(struct arbiter_limit *)ctx = *limit;
    return false;
}

TEST(arbiter_shows_a_limit_and_its_holders)
{
    struct court c;
    struct metrics metrics;
    struct arbiter_limit limit = { 0 };
    court_begin(&c);
    court_nodes(&c, 10);
    court_limit(&c, "node", "{\"limit\":20,\"policies\":[\"Unschedulable\"]}");
    metrics_init(&metrics);
    struct seat *s = court_seat(&c, 0, &(struct arbiter_config){ .metrics = &metrics });
    court_patch_node(&c, "n9", "{\"spec\":{\"unschedulable\":true}}");
    seat_ask(s, 1, "n1");
    seat_ask(s, 2, "n2");
    court_run(&c, SECONDS(5));
    CHECK_EQ(arbiter_limit_count(s->arbiter), 1);
    arbiter_each_limit(s->arbiter, &c.memory, show_limit, &limit);
    CHECK_STR(limit.name, "node");
    CHECK(limit.accepted && !limit.paused && !limit.over_committed);
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
    court_patch_limit(&c, "node", "{\"spec\":{\"paused\":true}}");
    court_run(&c, SECONDS(5));
    metrics_collect(&metrics);
    CHECK(metric_series(paused, &name)->value > 0.5);
    court_delete_limit(&c, "node");
    court_run(&c, SECONDS(5));
    metrics_collect(&metrics);
    CHECK(metric_series(family, &name)->value < 0.5);
    seat_leave(s);
    metrics_done(&metrics);
    court_end(&c);
}
