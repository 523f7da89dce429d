#include "tests/unit/client/client_fixture.h"

static bool ask(struct scene *s, const char *node, struct record *ret)
{
    bool created = false;
    const struct record_ask wanted = {
        .target = { .type = STR("node"), .name = str_from(node) },
        .reason = STR("new kernel"),
        .priority = 7,
        .unprepared = true,
    };
    CHECK_EQ(actor_ask(&s->actor, &wanted, &s->memory, ret, &created, &s->err), 0);
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
    struct scene s;
    bool enabled = true;
    scene_begin(&s, "tester");
    CHECK_EQ(actor_enabled(&s.actor, STR("node"), &enabled, &s.err), 0);
    CHECK(!enabled);
    struct record *all;
    uint32_t n;
    CHECK_EQ(actor_list(&s.actor, &s.memory, &all, &n, &s.err), -ERR_NOTFOUND);
    CHECK_STR(s.err.msg, "the cluster has no MaintenanceRequests: 'drydock crds' prints what is to "
                         "be installed");
    scene_install(&s);
    CHECK_EQ(actor_enabled(&s.actor, STR("node"), &enabled, &s.err), 0);
    CHECK(enabled);
    CHECK_EQ(actor_enabled(&s.actor, STR("Node"), &enabled, &s.err), 0);
    CHECK(!enabled);
    scene_end(&s);
}

TEST(actor_asks_once_for_a_target)
{
    struct scene s;
    struct record first;
    struct record second;
    scene_begin(&s, "tester");
    scene_install(&s);
    CHECK(ask(&s, "n1", &first));
    CHECK_STR(first.client, "tester");
    CHECK_EQ(first.state, RECORD_PENDING);
    CHECK(str_starts(first.name, STR("mr-")));
    CHECK(str_ends(first.name, STR("-1")));
    const struct jval *spec = jval_get(scene_request(&s), STR("spec"));
    CHECK_STR(jval_str(jval_get(spec, STR("reason"))), "new kernel");
    CHECK_STR(jval_str(jval_get(spec, STR("preparation"))), "None");
    int64_t priority = 0;
    CHECK(jval_i64(jval_get(spec, STR("priority")), &priority));
    CHECK_EQ(priority, 7);
    CHECK(!ask(&s, "N1", &second)); /* any case, as the original */
    CHECK_STR(second.name, first.name);
    CHECK(ask(&s, "n2", &second));
    CHECK(!str_eq(second.name, first.name));
    scene_end(&s);
}

TEST(actor_asks_anew_after_the_end)
{
    struct scene s;
    struct record r;
    scene_begin(&s, "tester");
    scene_install(&s);
    CHECK(ask(&s, "n1", &r));
    CHECK_EQ(actor_withdraw(&s.actor, r.name, &s.err), 0);
    CHECK_STR(scene_state(&s), "Completed");
    struct record again;
    CHECK(ask(&s, "n1", &again));
    CHECK(str_ends(again.name, STR("-2")));
    scene_end(&s);
}

/* Somebody has taken the label away, so that the list does not show what has the name. */
TEST(actor_goes_past_a_name_that_is_taken)
{
    struct scene s;
    struct record r;
    scene_begin(&s, "tester");
    scene_install(&s);
    CHECK(ask(&s, "n1", &r));
    scene_write(&s, "{\"metadata\":{\"labels\":null}}", false);
    struct record again;
    CHECK(ask(&s, "n1", &again));
    CHECK(str_ends(again.name, STR("-2")));
    scene_end(&s);
}

TEST(actor_asks_only_for_nodes_that_exist)
{
    struct scene s;
    struct record r;
    bool created;
    const struct record_ask missing = { .target = NODE("n9") };
    const struct record_ask empty = { .target = NODE("") };
    scene_begin(&s, "tester");
    scene_install(&s);
    CHECK_EQ(actor_ask(&s.actor, &missing, &s.memory, &r, &created, &s.err), -ERR_INVALID);
    CHECK_STR(s.err.msg, "invalid node name in 2 node list");
    CHECK_EQ(actor_ask(&s.actor, &empty, &s.memory, &r, &created, &s.err), -ERR_INVALID);
    CHECK_STR(s.err.msg, "invalid node name in 2 node list");
    CHECK_EQ(apiserver_count(s.server, STR("repairman.k8s.io"), STR("maintenancerequests")), 0);
    scene_end(&s);
}

/* The words of the original, state by state. */
TEST(actor_update_follows_the_four_steps)
{
    struct scene s;
    struct record r;
    const struct record_target node = NODE("n1");
    scene_begin(&s, "tester");
    scene_install(&s);
    CHECK_EQ(actor_update(&s.actor, &node, RECORD_APPROVED, &s.err), -ERR_INVALID);
    CHECK_STR(s.err.msg, "cannot set state as approved");
    CHECK_EQ(actor_update(&s.actor, &node, RECORD_IN_PROGRESS, &s.err), -ERR_NOTFOUND);
    CHECK_STR(s.err.msg, "request must exist before state can be updated");
    CHECK(ask(&s, "n1", &r));
    CHECK_EQ(actor_update(&s.actor, &node, RECORD_IN_PROGRESS, &s.err), -ACTOR_REFUSED);
    CHECK_STR(s.err.msg, "request is not yet approved");
    scene_approve(&s);
    CHECK_EQ(actor_update(&s.actor, &node, RECORD_IN_PROGRESS, &s.err), 0);
    CHECK_STR(scene_state(&s), "InProgress");
    /* The node is replaced meanwhile; that is no reason to keep the slot. */
    CHECK_EQ(scene_http(&s, "DELETE", STR("/api/v1/nodes/n1"), STR_NONE), 200);
    CHECK_EQ(actor_update(&s.actor, &node, RECORD_COMPLETED, &s.err), 0);
    CHECK_STR(scene_state(&s), "Completed");
    CHECK_EQ(actor_update(&s.actor, &node, RECORD_COMPLETED, &s.err), -ERR_NOTFOUND);
    CHECK_STR(s.err.msg, "request must exist before state can be updated");
    scene_end(&s);
}

/* An object without spec.state, as old actors could make it. */
TEST(actor_takes_no_state_for_pending)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    struct record r;
    CHECK_EQ(json_parse(STR("{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},"
                            "\"spec\":{\"name\":\"n1\",\"type\":\"node\"}}"),
                        0, &tmp, &object, &err),
             0);
    CHECK_EQ(record_read(object, &tmp, &r, &err), 0);
    CHECK_EQ(r.state, RECORD_PENDING);
}

static void story_of_a_wait(struct scene *s)
{
    if (s->moves == 1) {
        scene_write(s, "{\"status\":{\"phase\":\"Pending\",\"reason\":\"LimitReached\"}}", true);
        scene_later(s, MINUTES(20), story_of_a_wait); /* several watches later */
    } else {
        scene_approve(s);
    }
}

TEST(actor_waits_by_a_watch)
{
    struct scene s;
    struct record r;
    scene_begin(&s, "tester");
    scene_install(&s);
    CHECK(ask(&s, "n1", &r));
    scene_later(&s, SECONDS(5), story_of_a_wait);
    uint64_t sent = sim_api_sent(s.door);
    CHECK_EQ(actor_wait(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), 0);
    CHECK_EQ(r.state, RECORD_APPROVED);
    CHECK_STR(s.last, "LimitReached");
    /* Twenty minutes: a watch and a look every five, not one every second. */
    CHECK(sim_api_sent(s.door) - sent < 30);
    scene_end(&s);
}

static void hand_closes(struct scene *s)
{
    scene_write(s, "{\"spec\":{\"state\":\"Completed\"}}", false);
}

static void hand_deletes(struct scene *s)
{
    struct str name = jval_str(jval_at(scene_request(s), "metadata.name"));
    CHECK_EQ(
        scene_http(s, "DELETE",
                   arena_printf(&s->memory, MAINTENANCE_REQUESTS_PATH "/" STR_FMT, STR_ARG(name)),
                   STR_NONE),
        200);
}

static void hand_leaves(struct scene *s)
{
    s->leaving = true;
}

TEST(actor_wait_ends_when_it_cannot_be_approved_any_more)
{
    static const struct {
        void (*move)(struct scene *s);
        int code;
        const char *words;
    } cases[] = {
        { hand_closes, -ACTOR_REFUSED, "was closed before its approval" },
        { hand_deletes, -ACTOR_REFUSED, "was deleted" },
        { hand_leaves, -ERR_CANCELLED, "interrupted" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct scene s;
        struct record r;
        scene_begin(&s, "tester");
        scene_install(&s);
        CHECK(ask(&s, "n1", &r));
        scene_later(&s, SECONDS(5), cases[i].move);
        CHECK_EQ(actor_wait(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), cases[i].code);
        CHECK(str_contains(str_from(s.err.msg), str_from(cases[i].words)));
        scene_end(&s);
    }
    check_case(-1);
}

TEST(actor_wait_keeps_its_time_limit)
{
    struct scene s;
    struct record r;
    scene_begin(&s, "tester");
    scene_install(&s);
    CHECK(ask(&s, "n1", &r));
    usec_t until = loop_now(s.talk.loop) + MINUTES(10);
    CHECK_EQ(actor_wait(&s.actor, until, &s.memory, &r, &s.err), -ERR_TIMEOUT);
    CHECK(loop_now(s.talk.loop) >= until);
    CHECK(loop_now(s.talk.loop) < until + SECONDS(10));
    scene_end(&s);
}

TEST(actor_begins_when_in_progress_is_acknowledged)
{
    struct scene s;
    struct record r;
    scene_begin(&s, "tester");
    scene_install(&s);
    CHECK(ask(&s, "n1", &r));
    scene_later(&s, SECONDS(5), scene_approve);
    CHECK_EQ(actor_begin(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), 0);
    CHECK_EQ(r.state, RECORD_IN_PROGRESS);
    CHECK_STR(scene_state(&s), "InProgress");
    CHECK_STR(jval_str(jval_get(jval_at(scene_request(&s), "metadata.annotations"),
                                STR(RECORD_RUN_ANNOTATION))),
              r.run);
    /* A second program of that name must not believe that it was given the node. */
    struct record other = r;
    CHECK_EQ(actor_begin(&s.actor, USEC_NEVER, &s.memory, &other, &s.err), -ACTOR_REFUSED);
    CHECK_EQ(other.state, RECORD_IN_PROGRESS);
    scene_end(&s);
}

/* Approved, and withdrawn while the actor's write is on its way; approved again later. */
static void story_of_a_withdrawn_approval(struct scene *s)
{
    if (s->moves % 2 == 1) {
        scene_approve(s);
        /* The watch tells it, a look confirms it, the write leaves: in between comes this. */
        scene_later(s, s->moves == 1 ? MSECONDS(1) : MINUTES(1), story_of_a_withdrawn_approval);
    } else if (str_eq(scene_state(s), STR("Approved"))) {
        scene_write(s, "{\"spec\":{\"state\":\"Pending\"}}", false);
        scene_later(s, MINUTES(1), story_of_a_withdrawn_approval);
    }
}

TEST(actor_begin_waits_again_when_the_approval_is_withdrawn)
{
    struct scene s;
    struct record r;
    scene_begin(&s, "tester");
    scene_install(&s);
    CHECK(ask(&s, "n1", &r));
    scene_later(&s, SECONDS(5), story_of_a_withdrawn_approval);
    CHECK_EQ(actor_begin(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), 0);
    CHECK_EQ(s.moves, 3);
    CHECK_STR(scene_state(&s), "InProgress");
    scene_end(&s);
}

static void story_of_a_restart(struct scene *s)
{
    if (s->moves == 1) {
        apiserver_restart(s->server);
        apiserver_compact(s->server);
        scene_later(s, MINUTES(1), story_of_a_restart);
    } else {
        scene_approve(s);
    }
}

TEST(actor_wait_survives_a_restart_of_the_server)
{
    struct scene s;
    struct record r;
    scene_begin(&s, "tester");
    scene_install(&s);
    CHECK(ask(&s, "n1", &r));
    scene_later(&s, SECONDS(5), story_of_a_restart);
    CHECK_EQ(actor_wait(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), 0);
    scene_end(&s);
}

static void story_of_a_cut(struct scene *s)
{
    if (s->moves == 1) {
        scene_approve(s);
        scene_later(s, s->cut, story_of_a_cut);
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
        struct scene s;
        struct record r;
        scene_begin(&s, "tester");
        scene_install(&s);
        CHECK(ask(&s, "n1", &r));
        s.cut = i * MSECONDS(1) / 2;
        scene_later(&s, SECONDS(5), story_of_a_cut);
        CHECK_EQ(actor_begin(&s.actor, USEC_NEVER, &s.memory, &r, &s.err), 0);
        CHECK_STR(jval_str(jval_get(jval_at(scene_request(&s), "metadata.annotations"),
                                    STR(RECORD_RUN_ANNOTATION))),
                  r.run);
        CHECK_STR(scene_state(&s), "InProgress");
        scene_later(&s, s.cut, story_of_a_cut);
        CHECK_EQ(actor_complete(&s.actor, r.name, STR("0"), &s.err), 0);
        CHECK_STR(scene_state(&s), "Completed");
        loop_timer_stop(&s.hand);
        scene_end(&s);
    }
    check_case(-1);
}

TEST(actor_completes_and_withdraws_by_name)
{
    struct scene s;
    struct record r;
    scene_begin(&s, "tester");
    scene_install(&s);
    CHECK(ask(&s, "n1", &r));
    CHECK_EQ(actor_complete(&s.actor, r.name, STR("0"), &s.err), -ACTOR_REFUSED);
    CHECK_STR(s.err.msg, "request is not yet approved");
    scene_approve(&s);
    scene_write(&s, "{\"spec\":{\"state\":\"InProgress\"}}", false);
    CHECK_EQ(actor_withdraw(&s.actor, r.name, &s.err), -ACTOR_REFUSED);
    CHECK_STR(s.err.msg, "request is in progress: complete it instead");
    CHECK_EQ(actor_complete(&s.actor, r.name, STR("3"), &s.err), 0);
    CHECK_STR(jval_str(jval_get(jval_at(scene_request(&s), "metadata.annotations"),
                                STR(RECORD_EXIT_ANNOTATION))),
              "3");
    CHECK_EQ(actor_complete(&s.actor, r.name, STR("3"), &s.err), -ACTOR_REFUSED);
    CHECK_STR(s.err.msg, "request is already completed");
    CHECK_EQ(actor_complete(&s.actor, STR("none"), STR("3"), &s.err), -ERR_NOTFOUND);
    CHECK_STR(s.err.msg, "request 'none' does not exist");
    scene_end(&s);
}
