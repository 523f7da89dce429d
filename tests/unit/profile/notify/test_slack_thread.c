#include "format/json.h"
#include "tests/check.h"
#include "tests/lib/notify_fixture.h"

#define THREAD                                                                                     \
    "{token: 'xoxb-1', channel: '#ops', title: 'Updates & <more>', "                               \
    "message: 'ä {{ .Node.Name }}', leaseName: slack, leaseNamespace: default, period: 10m}"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"
#define POST_URL "https://slack.com/api/chat.postMessage"
#define TITLE "channel=%23ops&text=Updates+%26amp%3B+%26lt%3Bmore%26gt%3B&token=xoxb-1"
#define MESSAGE(thread) "channel=%23ops&text=%C3%A4+node-1&thread_ts=" thread "&token=xoxb-1"

/* Slack: each post has the next number for its name. */
struct slack {
    struct arena memory;
    uint32_t posts;
    uint32_t refuse_at; /* this post is answered by `refusal`; 0 = none */
    struct inbox_answer refusal;
};

static void on_post(void *ctx, const struct inbox_message *message UNUSED,
                    struct inbox_answer *answer)
{
    struct slack *s = ctx;
    s->posts++;
    if (s->posts == s->refuse_at) {
        *answer = s->refusal;
        return;
    }
    answer->body = arena_printf(&s->memory, "{\"ok\":true,\"ts\":\"%u.0001\"}", s->posts);
}

struct story {
    struct notify_fixture m;
    struct slack slack;
};

static void setup(struct story *s)
{
    *s = (struct story){ 0 };
    notify_fixture_init(&s->m, "slackThread", THREAD);
    s->m.inbox.script = on_post;
    s->m.inbox.ctx = &s->slack;
}

static void teardown(struct story *s)
{
    notify_fixture_done(&s->m);
    arena_done(&s->slack.memory);
}

static struct str lease_text(struct story *s, const char *path)
{
    const struct jval *lease = apiserver_find(s->m.server, STR("coordination.k8s.io"),
                                              STR("leases"), STR("default"), STR("slack"));
    return arena_str(&s->m.memory, jval_str(jval_at(lease, path)));
}

static int64_t lease_seconds(struct story *s)
{
    int64_t seconds = 0;
    const struct jval *lease = apiserver_find(s->m.server, STR("coordination.k8s.io"),
                                              STR("leases"), STR("default"), STR("slack"));
    (void)jval_i64(jval_at(lease, "spec.leaseDurationSeconds"), &seconds); /* 0 shows */
    return seconds;
}

static void check_posts(struct story *s, const char *const *bodies, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        check_case(i);
        const struct inbox_message *message = notify_fixture_message(&s->m, i);
        CHECK_STR(message->request.url, POST_URL);
        CHECK_STR(inbox_header(message, "Content-Type"), "application/x-www-form-urlencoded");
        CHECK_STR(message->request.body, bodies[i]);
    }
    check_case(-1);
    CHECK_EQ(s->m.inbox.n, n);
}

TEST(slack_thread_lives_for_its_period_from_its_start)
{
    static const char *const posts[] = {
        TITLE, MESSAGE("1.0001"), MESSAGE("1.0001"), MESSAGE("1.0001"), TITLE, MESSAGE("5.0001"),
    };
    CLEANUP(teardown)
    struct story s;
    setup(&s);
    notify_fixture_deliver(&s.m);
    check_posts(&s, posts, 2);
    CHECK_STR(lease_text(&s, "spec.holderIdentity"), "1.0001");
    CHECK_EQ(lease_seconds(&s), 600);
    struct str begun = lease_text(&s, "spec.renewTime");
    CHECK_STR(lease_text(&s, "spec.acquireTime"), begun);
    CHECK(str_starts(begun, STR("2026-03-02T08:00:00.")));
    /* Twice more inside the period: the same thread, and its end does not move. */
    notify_fixture_run(&s.m, MINUTES(5));
    notify_fixture_deliver(&s.m);
    notify_fixture_run(&s.m, MINUTES(4));
    notify_fixture_deliver(&s.m);
    check_posts(&s, posts, 4);
    CHECK_STR(lease_text(&s, "spec.renewTime"), begun);
    notify_fixture_run(&s.m, MINUTES(1));
    notify_fixture_deliver(&s.m);
    check_posts(&s, posts, 6);
    CHECK_STR(lease_text(&s, "spec.holderIdentity"), "5.0001");
    CHECK_STR(lease_text(&s, "spec.acquireTime"), begun);
    CHECK(!str_eq(lease_text(&s, "spec.renewTime"), begun));
    CHECK_EQ(s.m.sent, 4);
    CHECK_EQ(s.m.failed, 0);
}

TEST(slack_thread_is_one_for_nodes_that_change_in_one_moment)
{
    static const char *const posts[] = { TITLE, MESSAGE("1.0001"), MESSAGE("1.0001"),
                                         MESSAGE("1.0001") };
    CLEANUP(teardown)
    struct story s;
    setup(&s);
    (void)notify_fixture_send(&s.m);
    (void)notify_fixture_send(&s.m);
    (void)notify_fixture_send(&s.m);
    notify_fixture_run(&s.m, SECONDS(10));
    CHECK_EQ(s.m.sent, 3);
    check_posts(&s, posts, 4);
}

TEST(slack_thread_waits_for_nobody_who_was_cancelled)
{
    CLEANUP(teardown)
    struct story s;
    setup(&s);
    s.m.outbound_faults.partitioned = true; /* the first will be stuck */
    s.m.outbound_faults.cancel_executes = 0;
    struct notify_call *first = notify_fixture_send(&s.m);
    (void)notify_fixture_send(&s.m);
    notify_fixture_run(&s.m, SECONDS(1));
    s.m.outbound_faults.partitioned = false;
    notify_cancel(first);
    notify_fixture_run(&s.m, SECONDS(1));
    CHECK_EQ(s.m.sent, 1);
    CHECK_EQ(s.slack.posts, 2);
}

TEST(slack_thread_tells_what_slack_says_against_it)
{
    static const struct {
        struct inbox_answer answer;
        const char *error;
        usec_t retry_after;
    } cases[] = {
        { { .status = 200, .body = STR_INIT("{\"ok\":false,\"error\":\"channel_not_found\"}") },
          "channel_not_found",
          0 },
        { { .status = 429, .retry_after = SECONDS(30) },
          "slack rate limit exceeded, retry after 30s",
          SECONDS(30) },
        { { .status = 502 }, "slack server error: 502", 0 },
        { { .status = 200, .body = STR_INIT("<html>") },
          "slack answered with something else than a JSON object",
          0 },
        { { .status = 200, .body = STR_INIT("{\"ok\":true}") },
          "slack answered without 'ts', the name of the thread",
          0 },
        { { .failure = ERR_IO }, "slack: connection reset by peer", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(teardown)
        struct story s;
        setup(&s);
        s.slack.refuse_at = 1;
        s.slack.refusal = cases[i].answer;
        notify_fixture_deliver(&s.m);
        CHECK_EQ(s.m.failed, 1);
        CHECK_STR((const char *)s.m.err.msg, cases[i].error);
        CHECK_EQ(s.m.retry_after, cases[i].retry_after);
        CHECK_EQ(apiserver_count(s.m.server, STR("coordination.k8s.io"), STR("leases")), 0);
    }
    check_case(-1);
}

/* The next try goes on in the thread whose title is out, instead of opening one more. */
TEST(slack_thread_is_kept_when_only_its_message_fails)
{
    static const char *const posts[] = { TITLE, MESSAGE("1.0001"), MESSAGE("1.0001") };
    CLEANUP(teardown)
    struct story s;
    setup(&s);
    s.slack.refuse_at = 2;
    s.slack.refusal = (struct inbox_answer){ .status = 429, .retry_after = SECONDS(20) };
    notify_fixture_deliver(&s.m);
    CHECK_EQ(s.m.failed, 1);
    CHECK_EQ(s.m.retry_after, SECONDS(20));
    CHECK_STR(lease_text(&s, "spec.holderIdentity"), "1.0001");
    notify_fixture_deliver(&s.m);
    CHECK_EQ(s.m.sent, 1);
    check_posts(&s, posts, 3);
}

/* Another replica writes the lease between our look and our record. */
static void on_post_with_rival(void *ctx, const struct inbox_message *message,
                               struct inbox_answer *answer)
{
    struct story *s = ctx;
    bool first = s->slack.posts == 0;
    on_post(&s->slack, message, answer);
    if (first && apiserver_count(s->m.server, STR("coordination.k8s.io"), STR("leases")) == 0) {
        (void)notify_fixture_request(
            &s->m, "POST", LEASES, 201,
            "{\"metadata\":{\"name\":\"slack\"},\"spec\":{\"holderIdentity\":"
            "\"9.9\",\"leaseDurationSeconds\":600,"
            "\"renewTime\":\"2026-03-02T08:00:00.000000Z\"}}");
    } else if (first) {
        (void)notify_fixture_request(&s->m, "PATCH", LEASES "/slack", 200,
                                     "{\"spec\":{\"holderIdentity\":\"9.9\","
                                     "\"renewTime\":\"2026-03-02T08:00:00.000000Z\"}}");
    }
}

TEST(slack_thread_never_overwrites_a_lease_that_moved_on)
{
    for (int expired = 0; expired < 2; expired++) {
        CLEANUP(teardown)
        struct story s;
        setup(&s);
        s.m.inbox.script = on_post_with_rival;
        s.m.inbox.ctx = &s;
        if (expired == 1) {
            (void)notify_fixture_request(
                &s.m, "POST", LEASES, 201,
                "{\"metadata\":{\"name\":\"slack\"},\"spec\":{\"holderIdentity\":"
                "\"0.1\",\"leaseDurationSeconds\":600,"
                "\"renewTime\":\"2026-03-02T07:00:00.000000Z\"}}");
        }
        notify_fixture_deliver(&s.m);
        CHECK_EQ(s.m.sent, 1);
        CHECK_EQ(s.slack.posts, 2);
        CHECK_STR(lease_text(&s, "spec.holderIdentity"), "9.9");
    }
}

TEST(slack_thread_begins_anew_over_a_lease_that_lacks_fields)
{
    CLEANUP(teardown)
    struct story s;
    setup(&s);
    (void)notify_fixture_request(&s.m, "POST", LEASES, 201,
                                 "{\"metadata\":{\"name\":\"slack\"},\"spec\":{}}");
    notify_fixture_deliver(&s.m);
    CHECK_EQ(s.m.sent, 1);
    CHECK_STR(lease_text(&s, "spec.holderIdentity"), "1.0001");
}

TEST(slack_thread_wants_a_holder_of_a_lease_that_lives)
{
    CLEANUP(teardown)
    struct story s;
    setup(&s);
    (void)notify_fixture_request(
        &s.m, "POST", LEASES, 201,
        "{\"metadata\":{\"name\":\"slack\"},\"spec\":{\"leaseDurationSeconds\":600,"
        "\"renewTime\":\"2026-03-02T08:00:00.000000Z\"}}");
    notify_fixture_deliver(&s.m);
    CHECK_EQ(s.m.failed, 1);
    CHECK_STR((const char *)s.m.err.msg, "slack thread leases has no holder");
    CHECK_EQ(s.slack.posts, 0);
}

/* The server fails while the record is written; the message is not sent twice for that. */
static void on_post_then_busy(void *ctx, const struct inbox_message *message,
                              struct inbox_answer *answer)
{
    struct story *s = ctx;
    on_post(&s->slack, message, answer);
    s->m.api_faults.error_500 = s->slack.posts == 2 ? 1000 : 0;
}

TEST(slack_thread_tries_its_record_again)
{
    CLEANUP(teardown)
    struct story s;
    setup(&s);
    s.m.inbox.script = on_post_then_busy;
    s.m.inbox.ctx = &s;
    (void)notify_fixture_send(&s.m);
    notify_fixture_run(&s.m, SECONDS(1));
    CHECK_EQ(s.m.sent, 0);
    s.m.api_faults.error_500 = 0;
    notify_fixture_run(&s.m, SECONDS(5));
    CHECK_EQ(s.m.sent, 1);
    CHECK_EQ(s.slack.posts, 2);
    CHECK_STR(lease_text(&s, "spec.holderIdentity"), "1.0001");
}

TEST(slack_thread_gives_its_record_up_with_an_error)
{
    CLEANUP(teardown)
    struct story s;
    setup(&s);
    s.m.inbox.script = on_post_then_busy;
    s.m.inbox.ctx = &s;
    notify_fixture_deliver(&s.m);
    CHECK_EQ(s.m.failed, 1);
    CHECK_EQ(s.slack.posts, 2);
    CHECK(str_starts(str_from(s.m.err.msg), STR("slack thread lease 'default/slack': ")));
}
