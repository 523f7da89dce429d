#include "tests/unit/client/client_fixture.h"

#include "kinds/keys.h"

static bool request_node(struct actor_fixture *s, const char *node, struct maintenance_request *ret)
{
    bool created = false;
    const struct mrequest_new wanted = {
        .target = { .type = STR("node"), .name = str_from(node) },
        .reason = STR("new kernel"),
        .priority = 7,
        .unprepared = true,
    };
    CHECK_EQ(actor_request(&s->actor, &wanted, &s->memory, ret, &created, &s->err), 0);
    return created;
}

TEST(actor_needs_a_name)
{
    struct actor a;
    struct err err = { 0 };
    CHECK_EQ(actor_init(&a, NULL, STR_NONE, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "client name required");
    CHECK_EQ(actor_init(&a, NULL, STR("no such/label"), &err), -ERR_INVALID);
    CHECK(str_starts(str_from(err.msg), STR("client name 'no such/label' cannot be a label: ")));
}

TEST(actor_knows_whether_requests_are_served)
{
    struct actor_fixture s;
    bool enabled = true;
    actor_fixture_begin(&s, "tester");
    CHECK_EQ(actor_enabled(&s.actor, STR("node"), &enabled, &s.err), 0);
    CHECK(!enabled);
    struct maintenance_request *all;
    uint32_t n;
    CHECK_EQ(actor_list(&s.actor, &s.memory, &all, &n, &s.err), -ERR_NOTFOUND);
    CHECK_STR(s.err.msg, "the cluster has no MaintenanceRequests: 'drydock crds' prints what is to "
                         "be installed");
    actor_fixture_install(&s);
    CHECK_EQ(actor_enabled(&s.actor, STR("node"), &enabled, &s.err), 0);
    CHECK(enabled);
    CHECK_EQ(actor_enabled(&s.actor, STR("Node"), &enabled, &s.err), 0);
    CHECK(!enabled);
    actor_fixture_end(&s);
}

TEST(actor_asks_once_for_a_target)
{
    struct actor_fixture s;
    struct maintenance_request first;
    struct maintenance_request second;
    actor_fixture_begin(&s, "tester");
    actor_fixture_install(&s);
    CHECK(request_node(&s, "n1", &first));
    CHECK_STR(first.client, "tester");
    CHECK_EQ(first.state, MR_STATE_PENDING);
    CHECK(str_starts(first.name, STR("mr-")));
    CHECK(str_ends(first.name, STR("-1")));
    const struct jval *spec = jval_get(actor_fixture_request(&s), STR("spec"));
    CHECK_STR(jval_str(jval_get(spec, STR("reason"))), "new kernel");
    CHECK_STR(jval_str(jval_get(spec, STR("preparation"))), "None");
    int64_t priority = 0;
    CHECK(jval_i64(jval_get(spec, STR("priority")), &priority));
    CHECK_EQ(priority, 7);
    CHECK(!request_node(&s, "N1", &second)); /* any case, as the original */
    CHECK_STR(second.name, first.name);
    CHECK(request_node(&s, "n2", &second));
    CHECK(!str_eq(second.name, first.name));
    actor_fixture_end(&s);
}

TEST(actor_asks_anew_after_the_end)
{
    struct actor_fixture s;
    struct maintenance_request r;
    actor_fixture_begin(&s, "tester");
    actor_fixture_install(&s);
    CHECK(request_node(&s, "n1", &r));
    CHECK_EQ(actor_withdraw(&s.actor, r.name, &s.err), 0);
    CHECK_STR(actor_fixture_state(&s), "Completed");
    CHECK_STR(jval_str(jval_get(jval_at(actor_fixture_request(&s), "metadata.annotations"),
                                KEY_WITHDRAWN)),
              "true");
    struct maintenance_request again;
    CHECK(request_node(&s, "n1", &again));
    CHECK(str_ends(again.name, STR("-2")));
    actor_fixture_end(&s);
}

/* Somebody has taken the label away, so that the list does not show what has the name. */
TEST(actor_goes_past_a_name_that_is_taken)
{
    struct actor_fixture s;
    struct maintenance_request r;
    actor_fixture_begin(&s, "tester");
    actor_fixture_install(&s);
    CHECK(request_node(&s, "n1", &r));
    actor_fixture_write(&s, "{\"metadata\":{\"labels\":null}}", false);
    struct maintenance_request again;
    CHECK(request_node(&s, "n1", &again));
    CHECK(str_ends(again.name, STR("-2")));
    actor_fixture_end(&s);
}

TEST(actor_asks_only_for_nodes_that_exist)
{
    struct actor_fixture s;
    struct maintenance_request r;
    bool created;
    const struct mrequest_new missing = { .target = NODE("n9") };
    const struct mrequest_new empty = { .target = NODE("") };
    actor_fixture_begin(&s, "tester");
    actor_fixture_install(&s);
    CHECK_EQ(actor_request(&s.actor, &missing, &s.memory, &r, &created, &s.err), -ERR_INVALID);
    CHECK_STR(s.err.msg, "invalid node name in 2 node list");
    CHECK_EQ(actor_request(&s.actor, &empty, &s.memory, &r, &created, &s.err), -ERR_INVALID);
    CHECK_STR(s.err.msg, "invalid node name in 2 node list");
    CHECK_EQ(apiserver_count(s.server, STR("repairman.k8s.io"), STR("maintenancerequests")), 0);
    actor_fixture_end(&s);
}

/* The words of the original, state by state. */
TEST(actor_update_follows_the_four_steps)
{
    struct actor_fixture s;
    struct maintenance_request r;
    const struct request_target node = NODE("n1");
    actor_fixture_begin(&s, "tester");
    actor_fixture_install(&s);
    CHECK_EQ(actor_update(&s.actor, &node, MR_STATE_APPROVED, &s.err), -ERR_INVALID);
    CHECK_STR(s.err.msg, "cannot set state as approved");
    CHECK_EQ(actor_update(&s.actor, &node, MR_STATE_IN_PROGRESS, &s.err), -ERR_NOTFOUND);
    CHECK_STR(s.err.msg, "request must exist before state can be updated");
    CHECK(request_node(&s, "n1", &r));
    CHECK_EQ(actor_update(&s.actor, &node, MR_STATE_IN_PROGRESS, &s.err), -ACTOR_REFUSED);
    CHECK_STR(s.err.msg, "request is not yet approved");
    actor_fixture_approve(&s);
    CHECK_EQ(actor_update(&s.actor, &node, MR_STATE_IN_PROGRESS, &s.err), 0);
    CHECK_STR(actor_fixture_state(&s), "InProgress");
    /* The node is replaced meanwhile; that is no reason to keep the slot. */
    CHECK_EQ(actor_fixture_http(&s, "DELETE", STR("/api/v1/nodes/n1"), STR_NONE), 200);
    CHECK_EQ(actor_update(&s.actor, &node, MR_STATE_COMPLETED, &s.err), 0);
    CHECK_STR(actor_fixture_state(&s), "Completed");
    CHECK_EQ(actor_update(&s.actor, &node, MR_STATE_COMPLETED, &s.err), -ERR_NOTFOUND);
    CHECK_STR(s.err.msg, "request must exist before state can be updated");
    actor_fixture_end(&s);
}

/* An object without spec.state, as old actors could make it. */
TEST(actor_takes_no_state_for_pending)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    struct maintenance_request r;
    CHECK_EQ(json_parse(STR("{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},"
                            "\"spec\":{\"name\":\"n1\",\"type\":\"node\"}}"),
                        0, &tmp, &object, &err),
             0);
    CHECK_EQ(mrequest_read_for_actor(object, &tmp, &r, &err), 0);
    CHECK_EQ(r.state, MR_STATE_PENDING);
}

static void write_approval_later(struct actor_fixture *s)
{
    if (s->writes == 1) {
        actor_fixture_write(s, "{\"status\":{\"phase\":\"Pending\",\"reason\":\"LimitReached\"}}",
                            true);
        actor_fixture_write_after(s, MINUTES(20), write_approval_later); /* several watches later */
    } else {
        actor_fixture_approve(s);
    }
}

TEST(actor_waits_by_a_watch)
{
    struct actor_fixture s;
    struct maintenance_request r;
    actor_fixture_begin(&s, "tester");
    actor_fixture_install(&s);
    CHECK(request_node(&s, "n1", &r));
    actor_fixture_write_after(&s, SECONDS(5), write_approval_later);
    uint64_t sent = sim_api_sent(s.door);
    CHECK_EQ(actor_wait(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), 0);
    CHECK_EQ(r.state, MR_STATE_APPROVED);
    CHECK_STR(s.last, "LimitReached");
    /* Twenty minutes: a watch and a look every five, not one every second. */
    CHECK(sim_api_sent(s.door) - sent < 30);
    actor_fixture_end(&s);
}

static void write_completed(struct actor_fixture *s)
{
    actor_fixture_write(s, "{\"spec\":{\"state\":\"Completed\"}}", false);
}

static void write_deletion(struct actor_fixture *s)
{
    struct str name = jval_str(jval_at(actor_fixture_request(s), "metadata.name"));
    CHECK_EQ(actor_fixture_http(
                 s, "DELETE",
                 arena_printf(&s->memory, MAINTENANCE_REQUESTS_PATH "/" STR_FMT, STR_ARG(name)),
                 STR_NONE),
             200);
}

static void write_leaving(struct actor_fixture *s)
{
    s->leaving = true;
}

TEST(actor_wait_ends_when_it_cannot_be_approved_any_more)
{
    static const struct {
        void (*write)(struct actor_fixture *s);
        int code;
        const char *words;
    } cases[] = {
        { write_completed, -ACTOR_REFUSED, "was closed before its approval" },
        { write_deletion, -ACTOR_REFUSED, "was deleted" },
        { write_leaving, -ERR_CANCELLED, "interrupted" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct actor_fixture s;
        struct maintenance_request r;
        actor_fixture_begin(&s, "tester");
        actor_fixture_install(&s);
        CHECK(request_node(&s, "n1", &r));
        actor_fixture_write_after(&s, SECONDS(5), cases[i].write);
        CHECK_EQ(actor_wait(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), cases[i].code);
        CHECK(str_contains(str_from(s.err.msg), str_from(cases[i].words)));
        actor_fixture_end(&s);
    }
    check_case(-1);
}

TEST(actor_wait_keeps_its_time_limit)
{
    struct actor_fixture s;
    struct maintenance_request r;
    actor_fixture_begin(&s, "tester");
    actor_fixture_install(&s);
    CHECK(request_node(&s, "n1", &r));
    usec_t until = loop_now(s.blocking_api.loop) + MINUTES(10);
    CHECK_EQ(actor_wait(&s.actor, until, &s.memory, &r, &s.err), -ERR_TIMEOUT);
    CHECK(loop_now(s.blocking_api.loop) >= until);
    CHECK(loop_now(s.blocking_api.loop) < until + SECONDS(10));
    actor_fixture_end(&s);
}

TEST(actor_begins_when_in_progress_is_acknowledged)
{
    struct actor_fixture s;
    struct maintenance_request r;
    actor_fixture_begin(&s, "tester");
    actor_fixture_install(&s);
    CHECK(request_node(&s, "n1", &r));
    actor_fixture_write_after(&s, SECONDS(5), actor_fixture_approve);
    CHECK_EQ(actor_begin(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), 0);
    CHECK_EQ(r.state, MR_STATE_IN_PROGRESS);
    CHECK_STR(actor_fixture_state(&s), "InProgress");
    CHECK_STR(
        jval_str(jval_get(jval_at(actor_fixture_request(&s), "metadata.annotations"), KEY_RUN)),
        r.run);
    /* A second program of that name must not believe that it was given the node. */
    struct maintenance_request other = r;
    CHECK_EQ(actor_begin(&s.actor, USEC_NEVER, &s.memory, &other, &s.err), -ACTOR_REFUSED);
    CHECK_EQ(other.state, MR_STATE_IN_PROGRESS);
    actor_fixture_end(&s);
}

/* Approved, and withdrawn while the actor's write is on its way; approved again later. */
static void write_withdrawn_approval(struct actor_fixture *s)
{
    if (s->writes % 2 == 1) {
        actor_fixture_approve(s);
        /* The watch tells it, a look confirms it, the write leaves: in between comes this. */
        actor_fixture_write_after(s, s->writes == 1 ? MSECONDS(1) : MINUTES(1),
                                  write_withdrawn_approval);
    } else if (str_eq(actor_fixture_state(s), STR("Approved"))) {
        actor_fixture_write(s, "{\"spec\":{\"state\":\"Pending\"}}", false);
        actor_fixture_write_after(s, MINUTES(1), write_withdrawn_approval);
    }
}

TEST(actor_begin_waits_again_when_the_approval_is_withdrawn)
{
    struct actor_fixture s;
    struct maintenance_request r;
    actor_fixture_begin(&s, "tester");
    actor_fixture_install(&s);
    CHECK(request_node(&s, "n1", &r));
    actor_fixture_write_after(&s, SECONDS(5), write_withdrawn_approval);
    CHECK_EQ(actor_begin(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), 0);
    CHECK_EQ(s.writes, 3);
    CHECK_STR(actor_fixture_state(&s), "InProgress");
    actor_fixture_end(&s);
}

static void write_across_restart(struct actor_fixture *s)
{
    if (s->writes == 1) {
        apiserver_restart(s->server);
        apiserver_compact(s->server);
        actor_fixture_write_after(s, MINUTES(1), write_across_restart);
    } else {
        actor_fixture_approve(s);
    }
}

TEST(actor_wait_survives_a_restart_of_the_server)
{
    struct actor_fixture s;
    struct maintenance_request r;
    actor_fixture_begin(&s, "tester");
    actor_fixture_install(&s);
    CHECK(request_node(&s, "n1", &r));
    actor_fixture_write_after(&s, SECONDS(5), write_across_restart);
    CHECK_EQ(actor_wait(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), 0);
    actor_fixture_end(&s);
}

static void write_across_lost_reply(struct actor_fixture *s)
{
    if (s->writes == 1) {
        actor_fixture_approve(s);
        actor_fixture_write_after(s, s->cut, write_across_lost_reply);
    } else {
        sim_api_disconnect(s->door);
    }
}

/* Every connection breaks at some instant between the approval and the end: whether a write was
 * executed before its answer was lost must not matter, neither to begin nor to complete. */
TEST(actor_knows_its_own_writes_when_answers_are_lost)
{
    for (int64_t i = 0; i < 40; i++) {
        check_case(i);
        struct actor_fixture s;
        struct maintenance_request r;
        actor_fixture_begin(&s, "tester");
        actor_fixture_install(&s);
        CHECK(request_node(&s, "n1", &r));
        s.cut = i * MSECONDS(1) / 2;
        actor_fixture_write_after(&s, SECONDS(5), write_across_lost_reply);
        CHECK_EQ(actor_begin(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), 0);
        CHECK_STR(
            jval_str(jval_get(jval_at(actor_fixture_request(&s), "metadata.annotations"), KEY_RUN)),
            r.run);
        CHECK_STR(actor_fixture_state(&s), "InProgress");
        actor_fixture_write_after(&s, s.cut, write_across_lost_reply);
        CHECK_EQ(actor_complete(&s.actor, r.name, STR("0"), &s.err), 0);
        CHECK_STR(actor_fixture_state(&s), "Completed");
        loop_timer_stop(&s.other_writer);
        actor_fixture_end(&s);
    }
    check_case(-1);
}

TEST(actor_completes_and_withdraws_by_name)
{
    struct actor_fixture s;
    struct maintenance_request r;
    actor_fixture_begin(&s, "tester");
    actor_fixture_install(&s);
    CHECK(request_node(&s, "n1", &r));
    CHECK_EQ(actor_complete(&s.actor, r.name, STR("0"), &s.err), -ACTOR_REFUSED);
    CHECK_STR(s.err.msg, "request is not yet approved");
    actor_fixture_approve(&s);
    actor_fixture_write(&s, "{\"spec\":{\"state\":\"InProgress\"}}", false);
    CHECK_EQ(actor_withdraw(&s.actor, r.name, &s.err), -ACTOR_REFUSED);
    CHECK_STR(s.err.msg, "request is in progress: complete it instead");
    CHECK_EQ(actor_complete(&s.actor, r.name, STR("3"), &s.err), 0);
    CHECK_STR(jval_str(jval_get(jval_at(actor_fixture_request(&s), "metadata.annotations"),
                                KEY_EXIT_CODE)),
              "3");
    CHECK_EQ(actor_complete(&s.actor, r.name, STR("3"), &s.err), -ACTOR_REFUSED);
    CHECK_STR(s.err.msg, "request is already completed");
    CHECK_EQ(actor_complete(&s.actor, STR("none"), STR("3"), &s.err), -ERR_NOTFOUND);
    CHECK_STR(s.err.msg, "request 'none' does not exist");
    actor_fixture_end(&s);
}
