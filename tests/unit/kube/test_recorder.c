#include "kube/recorder.h"

#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/fake_api.h"

/* 2026-01-02T03:04:05Z, 0x1886caf21c963200 ns */
#define WALL SECONDS(1767323045)

struct story {
    struct virtual_loop *time;
    struct fake_api api;
    struct client client;
    struct recorder r;
    struct arena a;
};

static void begin(struct story *s)
{
    *s = (struct story){ .time = virtual_loop_new(1, WALL) };
    fake_api_init(&s->api);
    client_init(&s->client, virtual_loop_root(s->time), &s->api.api);
    recorder_init(&s->r, &s->client, STR("maintenance"), STR("maintenance-host"));
}

static void end(struct story *s)
{
    recorder_check(&s->r);
    recorder_done(&s->r);
    fake_api_done(&s->api);
    CHECK_EQ(virtual_loop_armed(s->time), 0);
    virtual_loop_free(s->time);
    arena_done(&s->a);
}

static void run(struct story *s, usec_t span)
{
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + span);
    recorder_check(&s->r);
}

static void add(struct story *s, const char *node, const char *note)
{
    const struct recorder_event event = {
        .type = STR("Normal"),
        .reason = STR("ChangedMaintenanceState"),
        .action = STR("ChangeMaintenanceState"),
        .note = str_from(note),
        .regarding = { .kind = STR("Node"),
                       .api_version = STR("v1"),
                       .name = str_from(node),
                       .uid = STR("u1"),
                       .version = STR("7") },
    };
    recorder_add(&s->r, &event);
}

static struct fake_call *call(struct story *s)
{
    struct fake_call *c = fake_call_first(&s->api);
    CHECK(c != NULL);
    return c;
}

TEST(recorder_writes_the_event_as_the_original_does)
{
    struct story s;
    begin(&s);
    add(&s, "n1", "The node is now in the operational state caused by profile default");
    run(&s, 0);
    CHECK_EQ(call(&s)->verb, API_POST);
    CHECK_STR(call(&s)->path, "/apis/events.k8s.io/v1/namespaces/default/events");
    CHECK_STR(call(&s)->body,
              "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{"
              "\"name\":\"n1.1886caf21c963200\",\"namespace\":\"default\"},"
              "\"eventTime\":\"2026-01-02T03:04:05.000000Z\","
              "\"reportingController\":\"maintenance\","
              "\"reportingInstance\":\"maintenance-host\",\"action\":\"ChangeMaintenanceState\","
              "\"reason\":\"ChangedMaintenanceState\",\"regarding\":{\"kind\":\"Node\","
              "\"name\":\"n1\",\"uid\":\"u1\",\"apiVersion\":\"v1\",\"resourceVersion\":\"7\"},"
              "\"note\":\"The node is now in the operational state caused by profile default\","
              "\"type\":\"Normal\"}");
    end(&s);
}

TEST(recorder_makes_repeats_a_series)
{
    struct story s;
    begin(&s);
    add(&s, "n1", "a");
    run(&s, 0);
    fake_call_reply(&s.api, call(&s), 201, STR("{}"));
    run(&s, SECONDS(5));
    add(&s, "n1", "b");
    run(&s, 0);
    CHECK_EQ(call(&s)->verb, API_PATCH);
    CHECK_STR(call(&s)->content_type, "application/strategic-merge-patch+json");
    CHECK(str_starts(call(&s)->path, STR("/apis/events.k8s.io/v1/namespaces/default/events/n1.")));
    CHECK_STR(call(&s)->body,
              "{\"series\":{\"count\":2,\"lastObservedTime\":\"2026-01-02T03:04:10.000000Z\"}}");
    fake_call_reply(&s.api, call(&s), 200, STR("{}"));
    for (int i = 0; i < 50; i++) {
        add(&s, "n1", "c");
    }
    run(&s, MINUTES(5));
    CHECK_EQ(s.api.call_count, 0); /* they only count */
    run(&s, MINUTES(2));           /* silence ends the series and writes the count */
    CHECK(str_starts(call(&s)->body, STR("{\"series\":{\"count\":52,")));
    fake_call_reply(&s.api, call(&s), 200, STR("{}"));
    run(&s, MINUTES(20));
    CHECK_EQ(s.r.stats.remembered, 0);
    CHECK_EQ(virtual_loop_armed(s.time), 0); /* nothing remembered, nothing to wait for */
    end(&s);
}

TEST(recorder_writes_a_long_series_now_and_then)
{
    struct story s;
    begin(&s);
    int patches = 0;
    for (int minute = 0; minute < 120; minute++) {
        add(&s, "n1", "a");
        run(&s, MINUTES(1));
        while (s.api.call_count > 0) {
            patches += call(&s)->verb == API_PATCH ? 1 : 0;
            fake_call_reply(&s.api, call(&s), 200, STR("{}"));
            run(&s, 0);
        }
    }
    CHECK(patches >= 3 && patches <= 6); /* the second, and every half hour */
    end(&s);
}

TEST(recorder_patches_what_was_repeated_during_its_creation)
{
    struct story s;
    begin(&s);
    add(&s, "n1", "a");
    run(&s, 0);
    add(&s, "n1", "a");
    fake_call_reply(&s.api, call(&s), 201, STR("{}"));
    run(&s, 0);
    CHECK_EQ(call(&s)->verb, API_PATCH);
    /* The event has expired on the server: it is created again. */
    fake_call_reply(&s.api, call(&s), 404, STR("{}"));
    run(&s, 0);
    CHECK_EQ(call(&s)->verb, API_POST);
    end(&s);
}

static void note_denied(void *ctx, enum recorder_api api)
{
    uint32_t *counts = ctx;
    counts[api]++;
}

#define DENIED(group, verb)                                                                        \
    STR("{\"kind\":\"Status\",\"message\":\"events" group                                          \
        " is forbidden: User \\\"u\\\" cannot " verb " resource \\\"events\\\" in API group\"}")

TEST(recorder_takes_the_core_api_where_the_other_is_denied)
{
    struct story s;
    uint32_t denied[RECORDER_APIS] = { 0 };
    begin(&s);
    recorder_on_denied(&s.r, note_denied, denied);
    add(&s, "n1", "a");
    run(&s, 0);
    fake_call_reply(&s.api, call(&s), 403, DENIED(".events.k8s.io", "create"));
    run(&s, 0);
    CHECK_STR(call(&s)->path, "/api/v1/namespaces/default/events");
    CHECK_STR(call(&s)->body,
              "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{"
              "\"name\":\"n1.1886caf21c963200\",\"namespace\":\"default\"},"
              "\"firstTimestamp\":\"2026-01-02T03:04:05Z\","
              "\"lastTimestamp\":\"2026-01-02T03:04:05Z\",\"count\":1,"
              "\"reportingComponent\":\"maintenance\",\"reportingInstance\":\"maintenance-host\","
              "\"source\":{\"component\":\"maintenance\"},\"action\":\"ChangeMaintenanceState\","
              "\"reason\":\"ChangedMaintenanceState\",\"involvedObject\":{\"kind\":\"Node\","
              "\"name\":\"n1\",\"uid\":\"u1\",\"apiVersion\":\"v1\",\"resourceVersion\":\"7\"},"
              "\"message\":\"a\",\"type\":\"Normal\"}");
    fake_call_reply(&s.api, call(&s), 201, STR("{}"));
    run(&s, SECONDS(5));
    add(&s, "n1", "b");
    run(&s, 0);
    CHECK_STR(call(&s)->path, "/api/v1/namespaces/default/events/n1.1886caf21c963200");
    CHECK_STR(call(&s)->body, "{\"count\":2,\"lastTimestamp\":\"2026-01-02T03:04:10Z\"}");
    fake_call_reply(&s.api, call(&s), 200, STR("{}"));
    add(&s, "n2", "a");
    run(&s, 0);
    CHECK_STR(call(&s)->path, "/api/v1/namespaces/default/events"); /* it remembers */
    CHECK_EQ(denied[RECORDER_API_EVENTS], 1);
    CHECK_EQ(denied[RECORDER_API_CORE], 0);
    end(&s);
}

TEST(recorder_tells_once_that_nobody_lets_it_write)
{
    struct story s;
    uint32_t denied[RECORDER_APIS] = { 0 };
    begin(&s);
    recorder_on_denied(&s.r, note_denied, denied);
    for (int i = 0; i < 3; i++) {
        add(&s, i == 0 ? "n1" : i == 1 ? "n2" : "n3", "a");
        run(&s, 0);
        fake_call_reply(&s.api, call(&s), 403, DENIED("", "create"));
        run(&s, 0);
        fake_call_reply(&s.api, call(&s), 403, DENIED("", "create"));
        run(&s, 0);
        CHECK_EQ(s.api.call_count, 0);
        CHECK_EQ(s.r.stats.rejected, (uint64_t)i + 1);
    }
    CHECK_EQ(denied[RECORDER_API_EVENTS], 1);
    CHECK_EQ(denied[RECORDER_API_CORE], 1);
    add(&s, "n4", "a");
    run(&s, 0);
    fake_call_reply(&s.api, call(&s), 201, STR("{}")); /* somebody has given the right */
    run(&s, 0);
    CHECK_EQ(s.r.stats.created, 1);
    end(&s);
}

TEST(recorder_takes_a_namespace_that_ends_for_no_missing_right)
{
    struct story s;
    begin(&s);
    add(&s, "n1", "a");
    run(&s, 0);
    fake_call_reply(
        &s.api, call(&s), 403,
        STR("{\"kind\":\"Status\",\"message\":\"events \\\"n1\\\" is forbidden: unable to "
            "create new content in namespace x because it is being terminated\"}"));
    run(&s, 0);
    CHECK_EQ(s.api.call_count, 0);
    CHECK_EQ(s.r.stats.rejected, 1);
    CHECK_EQ(s.r.api, RECORDER_API_EVENTS);
    end(&s);
}

TEST(recorder_waits_for_a_server_out_of_reach_and_gives_up_in_the_end)
{
    struct story s;
    begin(&s);
    add(&s, "n1", "a");
    add(&s, "n2", "a");
    usec_t start = virtual_loop_now(s.time);
    for (int i = 0; i < 12; i++) {
        run(&s, i == 0 ? 0 : SECONDS(13));
        CHECK(str_contains(call(&s)->body, STR("\"name\":\"n1\"")));
        fake_call_fail(&s.api, call(&s), ERR_IO);
    }
    CHECK(virtual_loop_now(s.time) - start >= SECONDS(110));
    CHECK_EQ(s.r.stats.lost, 1);
    run(&s, SECONDS(13));
    CHECK(str_contains(call(&s)->body, STR("\"name\":\"n2\"")));
    fake_call_reply(&s.api, call(&s), 403, STR("{}")); /* no permission: not tried again */
    run(&s, MINUTES(1));
    CHECK_EQ(s.r.stats.rejected, 1);
    CHECK_EQ(s.r.stats.remembered, 0);
    end(&s);
}

TEST(recorder_drops_what_its_queue_cannot_hold)
{
    struct story s;
    begin(&s);
    for (unsigned i = 0; i < RECORDER_QUEUE_MAX + 7; i++) {
        add(&s, arena_printf(&s.a, "n%u", i).p, "a");
    }
    CHECK_EQ(s.r.stats.queued, RECORDER_QUEUE_MAX);
    CHECK_EQ(s.r.stats.dropped, 7);
    end(&s);
}

TEST(recorder_keeps_to_its_rate)
{
    struct story s;
    begin(&s);
    for (unsigned i = 0; i < 400; i++) {
        add(&s, arena_printf(&s.a, "n%u", i).p, "a");
    }
    usec_t until = virtual_loop_now(s.time) + SECONDS(5);
    while (virtual_loop_now(s.time) < until) {
        if (s.api.call_count > 0) {
            fake_call_reply(&s.api, call(&s), 201, STR("{}"));
        }
        (void)virtual_loop_step(s.time, until);
    }
    CHECK(s.api.sent >= 198 && s.api.sent <= 202); /* 100 at once, then 20 a second */
    end(&s);
}

TEST(recorder_lets_urgent_writes_go_first)
{
    struct story s;
    begin(&s);
    s.client.urgent = 1;
    add(&s, "n1", "a");
    run(&s, SECONDS(3));
    CHECK_EQ(s.api.call_count, 0);
    s.client.urgent = 0;
    run(&s, RECORDER_YIELD);
    CHECK_EQ(call(&s)->verb, API_POST);
    /* It says when it happened, not when it was told. */
    CHECK(str_contains(call(&s)->body, STR("\"eventTime\":\"2026-01-02T03:04:05.000000Z\"")));
    fake_call_reply(&s.api, call(&s), 201, STR("{}"));
    end(&s);
}

TEST(recorder_lets_nobody_go_first_for_ever)
{
    struct story s;
    begin(&s);
    s.client.urgent = 1;
    add(&s, "n1", "a");
    run(&s, SECONDS(6));
    add(&s, "n2", "a");
    run(&s, RECORDER_YIELD_MAX - SECONDS(6) - 1);
    CHECK_EQ(s.api.call_count, 0);
    run(&s, 1);
    CHECK(str_contains(call(&s)->body, STR("\"name\":\"n1\"")));
    fake_call_reply(&s.api, call(&s), 201, STR("{}"));
    run(&s, SECONDS(6) - 1);
    CHECK_EQ(s.api.call_count, 0); /* the other has waited less */
    run(&s, 1);
    CHECK(str_contains(call(&s)->body, STR("\"name\":\"n2\"")));
    fake_call_reply(&s.api, call(&s), 201, STR("{}"));
    end(&s);
}

TEST(recorder_lets_nobody_go_first_when_its_queue_fills_up)
{
    struct story s;
    begin(&s);
    s.client.urgent = 1;
    for (unsigned i = 0; i < RECORDER_YIELD_QUEUED - 1; i++) {
        add(&s, arena_printf(&s.a, "n%u", i).p, "a");
    }
    run(&s, SECONDS(1));
    CHECK_EQ(s.api.call_count, 0);
    add(&s, "last", "a");
    run(&s, RECORDER_YIELD);
    CHECK_EQ(call(&s)->verb, API_POST);
    fake_call_reply(&s.api, call(&s), 201, STR("{}"));
    end(&s);
}

TEST(recorder_finds_a_name_for_any_object)
{
    struct story s;
    begin(&s);
    add(&s, "Not_A.Name", "a");
    run(&s, 0);
    CHECK(!str_contains(call(&s)->body, STR("\"name\":\"Not_A.Name.")));
    CHECK(str_contains(call(&s)->body, STR("\"name\":\"Not_A.Name\"")));
    end(&s);
}
