#include "kube/lease.h"

#include "format/json_tree.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/fake_api.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

/* A server that keeps one Lease and answers at once; or not at all, or with trouble. */
struct server {
    struct fake_api api;
    struct arena a;
    struct str lease; /* empty = none */
    unsigned version;
    bool deaf;  /* answers nothing */
    int status; /* answers that to everything; 0 = as it should */
};

struct replica {
    struct loop *loop;
    struct client client;
    struct lease lease;
    bool held;
    int changes;
    int released;
    int errors;
};

struct world {
    struct virtual_loop *time;
    struct server server;
    struct replica replicas[2];
    usec_t overlap; /* both held it */
};

static const struct jval *server_spec(struct world *w, const char *field)
{
    struct err err = { 0 };
    const struct jval *root = NULL;
    CHECK_EQ(json_parse(w->server.lease, 0, &w->server.a, &root, &err), 0);
    return jval_get(jval_get(root, STR("spec")), str_from(field));
}

/* The object with the next resourceVersion in it. */
static void server_store(struct server *s, struct str body)
{
    struct err err = { 0 };
    struct tree *root = NULL;
    CHECK_EQ(tree_parse(body, &s->a, &root, &err), 0);
    tree_set_at(&s->a, root, "metadata.resourceVersion",
                tree_str(&s->a, arena_printf(&s->a, "%u", ++s->version)));
    s->lease = tree_json(&s->a, root);
}

static void server_answer(struct server *s)
{
    struct fake_call *call = fake_call_first(&s->api);
    struct err err = { 0 };
    const struct jval *body = NULL;
    if (s->status != 0) {
        fake_call_reply(&s->api, call, s->status, STR("{\"message\":\"no\"}"));
        return;
    }
    if (call->verb == API_GET) {
        fake_call_reply(&s->api, call, s->lease.n > 0 ? 200 : 404, s->lease);
        return;
    }
    CHECK_EQ(json_parse(call->body, 0, &s->a, &body, &err), 0);
    struct str version = jval_str(jval_at(body, "metadata.resourceVersion"));
    struct str now = arena_printf(&s->a, "%u", s->version);
    if (call->verb == API_POST ? s->lease.n > 0 : version.n > 0 && !str_eq(version, now)) {
        fake_call_reply(&s->api, call, 409, STR("{\"message\":\"conflict\"}"));
        return;
    }
    server_store(s, arena_str(&s->a, call->body));
    fake_call_reply(&s->api, call, 200, s->lease);
}

static void on_change(void *ctx, bool held)
{
    struct replica *r = ctx;
    CHECK(r->held != held);
    r->held = held;
    r->changes++;
}

static void on_released(void *ctx)
{
    struct replica *r = ctx;
    r->released++;
}

static void on_error(void *ctx, const struct err *err)
{
    struct replica *r = ctx;
    CHECK(str_starts(str_from(err->msg), STR("lease ns/name: ")));
    r->errors++;
}

static void replica_begin(struct world *w, struct replica *r, const char *identity, usec_t skew,
                          mutations_t mutations)
{
    *r = (struct replica){ .loop = virtual_loop_view_new(w->time, skew) };
    client_init(&r->client, r->loop, &w->server.api.api);
    r->client.mutations = mutations;
    lease_init(&r->lease, &r->client,
               &(struct lease_config){
                   .namespace = STR("ns"),
                   .name = STR("name"),
                   .identity = str_from(identity),
                   .on_change = on_change,
                   .on_released = on_released,
                   .on_error = on_error,
                   .ctx = r,
               });
    lease_start(&r->lease);
}

static void replica_end(struct replica *r)
{
    if (r->loop != NULL) {
        lease_done(&r->lease);
        virtual_loop_view_free(r->loop);
        r->loop = NULL;
    }
}

static void world_begin(struct world *w)
{
    *w = (struct world){ .time = virtual_loop_new(3, WALL) };
    fake_api_init(&w->server.api);
}

static void world_end(struct world *w)
{
    replica_end(&w->replicas[0]);
    replica_end(&w->replicas[1]);
    fake_api_done(&w->server.api);
    arena_done(&w->server.a);
    virtual_loop_free(w->time);
}

static bool holds(const struct replica *r)
{
    return r->loop != NULL && lease_is_held(&r->lease);
}

/* Steps of at most 100 ms, so that overlaps are seen. */
static void world_run(struct world *w, usec_t span)
{
    usec_t until = virtual_loop_now(w->time) + span;
    while (virtual_loop_now(w->time) < until) {
        while (!w->server.deaf && w->server.api.call_count > 0) {
            server_answer(&w->server);
        }
        usec_t before = virtual_loop_now(w->time);
        bool both = holds(&w->replicas[0]) && holds(&w->replicas[1]);
        (void)virtual_loop_step(w->time, MIN(until, before + MSECONDS(100)));
        w->overlap += both ? virtual_loop_now(w->time) - before : 0;
        for (int i = 0; i < 2; i++) {
            if (w->replicas[i].loop != NULL) {
                lease_check(&w->replicas[i].lease);
            }
        }
    }
}

TEST(lease_is_made_as_the_original_makes_it)
{
    struct world w;
    world_begin(&w);
    replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
    struct fake_call *get = fake_call_first(&w.server.api);
    CHECK_STR(get->path, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/name");
    CHECK_EQ(get->timeout, SECONDS(5));
    server_answer(&w.server);
    struct fake_call *post = fake_call_first(&w.server.api);
    CHECK_EQ(post->verb, API_POST);
    CHECK_STR(post->path, "/apis/coordination.k8s.io/v1/namespaces/ns/leases");
    CHECK_STR(post->body, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                          "\"metadata\":{\"name\":\"name\",\"namespace\":\"ns\"},"
                          "\"spec\":{\"holderIdentity\":\"host_1\",\"leaseDurationSeconds\":15,"
                          "\"acquireTime\":\"2026-01-02T03:04:05.000000Z\","
                          "\"renewTime\":\"2026-01-02T03:04:05.000000Z\",\"leaseTransitions\":0}}");
    server_answer(&w.server);
    CHECK(w.replicas[0].held && lease_is_held(&w.replicas[0].lease));
    world_run(&w, SECONDS(12)); /* renewed at 5 and 10 s, by PUT alone */
    CHECK_EQ(w.server.version, 3);
    CHECK_EQ(w.server.api.sent, 4);
    CHECK_STR(jval_str(server_spec(&w, "acquireTime")), "2026-01-02T03:04:05.000000Z");
    CHECK_STR(jval_str(server_spec(&w, "renewTime")), "2026-01-02T03:04:15.000000Z");
    world_end(&w);
}

TEST(lease_holder_stops_before_others_may_begin)
{
    struct world w;
    world_begin(&w);
    replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
    world_run(&w, SECONDS(7));
    CHECK(holds(&w.replicas[0]));
    replica_begin(&w, &w.replicas[1], "host_2", 0, 0);
    world_run(&w, SECONDS(1));
    w.server.deaf = true;
    world_run(&w, SECONDS(6)); /* last renewal at 5 s: 10 s later it ends */
    CHECK(holds(&w.replicas[0]));
    world_run(&w, SECONDS(2));
    CHECK(!holds(&w.replicas[0]));
    CHECK(!w.replicas[0].held);
    w.server.deaf = false;
    world_run(&w, MINUTES(1));
    CHECK_EQ(w.overlap, 0);
    CHECK(holds(&w.replicas[0]) || holds(&w.replicas[1]));
    world_end(&w);
}

TEST(lease_of_a_dead_holder_is_taken_after_its_time)
{
    struct world w;
    world_begin(&w);
    replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
    replica_begin(&w, &w.replicas[1], "host_2", 0, 0);
    world_run(&w, SECONDS(20));
    CHECK(holds(&w.replicas[0]));
    replica_end(&w.replicas[0]);
    usec_t died = virtual_loop_now(w.time);
    while (!holds(&w.replicas[1])) {
        world_run(&w, MSECONDS(100));
    }
    CHECK(virtual_loop_now(w.time) - died >= SECONDS(10));
    CHECK(virtual_loop_now(w.time) - died <= SECONDS(27)); /* 15 s, and up to 11 s between looks */
    CHECK_STR(jval_str(server_spec(&w, "holderIdentity")), "host_2");
    int64_t transitions = 0;
    CHECK(jval_i64(server_spec(&w, "leaseTransitions"), &transitions));
    CHECK_EQ(transitions, 1);
    world_end(&w);
}

/* Whenever it died, nobody sleeps beyond the end of what was last seen of it. */
TEST(lease_of_a_dead_holder_is_tried_for_when_it_runs_out)
{
    for (int i = 0; i < 20; i++) {
        struct world w;
        world_begin(&w);
        replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
        replica_begin(&w, &w.replicas[1], "host_2", 0, 0);
        world_run(&w, SECONDS(20) + i * MSECONDS(700));
        CHECK(holds(&w.replicas[0]));
        replica_end(&w.replicas[0]);
        usec_t seen = 0;
        while (!holds(&w.replicas[1])) {
            seen = w.replicas[1].lease.observed_at;
            world_run(&w, MSECONDS(100));
        }
        CHECK(virtual_loop_now(w.time) - seen >= SECONDS(15));
        CHECK(virtual_loop_now(w.time) - seen <= SECONDS(16));
        world_end(&w);
    }
}

TEST(lease_is_indifferent_to_wall_clocks)
{
    static const usec_t skews[] = { -HOURS(3), -SECONDS(20), SECONDS(20), HOURS(3) };
    for (size_t i = 0; i < ARRAY_LEN(skews); i++) {
        struct world w;
        world_begin(&w);
        replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
        world_run(&w, SECONDS(1));
        replica_begin(&w, &w.replicas[1], "host_2", skews[i], 0);
        world_run(&w, MINUTES(5));
        CHECK(holds(&w.replicas[0]) && !holds(&w.replicas[1]));
        CHECK_EQ(w.replicas[1].changes, 0);
        CHECK_EQ(w.overlap, 0);
        world_end(&w);
    }
}

TEST(lease_by_wall_clock_is_a_mutation_that_shows)
{
    struct world w;
    world_begin(&w);
    replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
    world_run(&w, SECONDS(1));
    replica_begin(&w, &w.replicas[1], "host_2", HOURS(3),
                  MUTATION_BIT(MUTATION_LEASE_BY_WALL_CLOCK));
    world_run(&w, SECONDS(30));
    CHECK(w.overlap > 0);
    world_end(&w);
}

TEST(lease_of_a_frozen_process_is_not_held_when_it_wakes)
{
    struct world w;
    world_begin(&w);
    replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
    replica_begin(&w, &w.replicas[1], "host_2", 0, 0);
    world_run(&w, SECONDS(8));
    CHECK(holds(&w.replicas[0]));
    virtual_loop_freeze(w.replicas[0].loop, true);
    world_run(&w, SECONDS(40));
    CHECK(holds(&w.replicas[1]));
    CHECK(!holds(&w.replicas[0])); /* the clock says so before any timer has run */
    virtual_loop_freeze(w.replicas[0].loop, false);
    CHECK(!holds(&w.replicas[0]));
    world_run(&w, MINUTES(1));
    CHECK(holds(&w.replicas[1]) && !w.replicas[0].held);
    CHECK_EQ(w.overlap, 0);
    world_end(&w);
}

TEST(lease_is_given_back_in_order)
{
    struct world w;
    world_begin(&w);
    replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
    replica_begin(&w, &w.replicas[1], "host_2", 0, 0);
    world_run(&w, SECONDS(8));
    lease_release(&w.replicas[0].lease);
    CHECK(!holds(&w.replicas[0]) && !w.replicas[0].held);
    world_run(&w, MSECONDS(200));
    CHECK_EQ(w.replicas[0].released, 1);
    CHECK_STR(jval_str(server_spec(&w, "holderIdentity")), "");
    int64_t duration = 0;
    CHECK(jval_i64(server_spec(&w, "leaseDurationSeconds"), &duration));
    CHECK_EQ(duration, 1);
    world_run(&w, SECONDS(12)); /* at its next look */
    CHECK(holds(&w.replicas[1]));
    CHECK_EQ(w.overlap, 0);
    world_end(&w);
}

TEST(lease_of_another_is_not_given_back)
{
    for (int mutation = 0; mutation < 2; mutation++) {
        struct world w;
        world_begin(&w);
        replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
        world_run(&w, SECONDS(1));
        replica_begin(&w, &w.replicas[1], "host_2", 0,
                      mutation == 1 ? MUTATION_BIT(MUTATION_RELEASE_OTHERS) : 0);
        world_run(&w, SECONDS(1));
        unsigned sent = w.server.api.sent;
        lease_release(&w.replicas[1].lease);
        world_run(&w, MSECONDS(300));
        CHECK_EQ(w.replicas[1].released, 1);
        CHECK_STR(jval_str(server_spec(&w, "holderIdentity")), mutation == 1 ? "" : "host_1");
        CHECK_EQ(w.server.api.sent - sent > 0, mutation == 1);
        world_end(&w);
    }
}

TEST(lease_release_ends_although_nobody_answers)
{
    struct world w;
    world_begin(&w);
    replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
    world_run(&w, SECONDS(1));
    w.server.deaf = true;
    lease_release(&w.replicas[0].lease);
    world_run(&w, SECONDS(4));
    CHECK_EQ(w.replicas[0].released, 0);
    world_run(&w, SECONDS(2));
    CHECK_EQ(w.replicas[0].released, 1);
    world_end(&w);
}

TEST(lease_keeps_what_others_wrote_into_it)
{
    struct world w;
    world_begin(&w);
    server_store(&w.server,
                 STR("{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
                     "\"name\":\"name\",\"namespace\":\"ns\",\"annotations\":{\"grants\":\"7\"}},"
                     "\"spec\":{\"strategy\":\"x\",\"leaseTransitions\":41}}"));
    replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
    world_run(&w, SECONDS(6));
    CHECK(holds(&w.replicas[0]));
    CHECK(str_contains(w.server.lease, STR("\"annotations\":{\"grants\":\"7\"}")));
    CHECK_STR(jval_str(server_spec(&w, "strategy")), "x");
    int64_t transitions = 0;
    CHECK(jval_i64(server_spec(&w, "leaseTransitions"), &transitions));
    CHECK_EQ(transitions, 42);
    /* Somebody adds a grant between two renewals: the conflict is answered by looking again. */
    server_store(
        &w.server,
        arena_concat(&w.server.a,
                     str_sub(w.server.lease, 0, str_find(w.server.lease, STR("\"grants\":\"7\""))),
                     arena_concat(&w.server.a, STR("\"grants\":\"8\""),
                                  str_sub(w.server.lease,
                                          str_find(w.server.lease, STR("\"grants\":\"7\"")) + 12,
                                          SIZE_MAX))));
    world_run(&w, SECONDS(6));
    CHECK(holds(&w.replicas[0]));
    CHECK_EQ(w.replicas[0].lease.conflicts, 1);
    CHECK(str_contains(w.server.lease, STR("\"grants\":\"8\"")));
    world_end(&w);
}

TEST(lease_holder_that_sees_another_name_stops_at_once)
{
    struct world w;
    world_begin(&w);
    replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
    world_run(&w, SECONDS(1));
    server_store(&w.server, STR("{\"metadata\":{\"name\":\"name\"},\"spec\":{"
                                "\"holderIdentity\":\"thief\",\"leaseDurationSeconds\":15}}"));
    world_run(&w, SECONDS(5));
    CHECK(!holds(&w.replicas[0]));
    CHECK_STR(lease_holder(&w.replicas[0].lease), "thief");
    world_end(&w);
}

TEST(lease_survives_answers_that_make_no_sense)
{
    static const int statuses[] = { 500, 403, 429, 200 };
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct world w;
        world_begin(&w);
        w.server.status = statuses[i]; /* a 200 with a body that is no Lease */
        replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
        world_run(&w, MINUTES(1));
        CHECK(!holds(&w.replicas[0]));
        CHECK(w.replicas[0].errors >= 5 && w.replicas[0].errors <= 13);
        w.server.status = 0;
        world_run(&w, SECONDS(12));
        CHECK(holds(&w.replicas[0]));
        world_end(&w);
    }
}

/* Servers that go deaf and fail, processes that freeze, clocks that drift: never two at once. */
PROPERTY(lease_is_never_held_twice)
{
    struct world w;
    world_begin(&w);
    replica_begin(&w, &w.replicas[0], "host_1", 0, 0);
    replica_begin(&w, &w.replicas[1], "host_2", rng_usec(rng, -HOURS(1), HOURS(1)), 0);
    virtual_loop_set_drift(w.replicas[0].loop, (int32_t)rng_below(rng, 100000) - 50000);
    virtual_loop_set_drift(w.replicas[1].loop, (int32_t)rng_below(rng, 100000) - 50000);
    for (int step = 0; step < 20; step++) {
        struct loop *loop = w.replicas[rng_below(rng, 2)].loop;
        w.server.deaf = rng_chance(rng, 250);
        w.server.status = rng_chance(rng, 150) ? 500 : 0;
        virtual_loop_freeze(loop, rng_chance(rng, 300));
        virtual_loop_step_wall(loop, rng_usec(rng, -SECONDS(30), SECONDS(30)));
        world_run(&w, rng_usec(rng, 0, SECONDS(20)));
    }
    CHECK_EQ(w.overlap, 0);
    w.server.deaf = false;
    w.server.status = 0;
    virtual_loop_freeze(w.replicas[0].loop, false);
    virtual_loop_freeze(w.replicas[1].loop, false);
    world_run(&w, MINUTES(1));
    CHECK(holds(&w.replicas[0]) || holds(&w.replicas[1])); /* I9: work progresses */
    CHECK_EQ(w.overlap, 0);
    world_end(&w);
}
