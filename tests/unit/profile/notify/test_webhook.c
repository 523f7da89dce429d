#include "tests/check.h"
#include "tests/lib/notify_fixture.h"

TEST(webhook_sends_a_document_by_default)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, "webhook", "{url: 'https://example.org/hook'}");
    notify_fixture_deliver(&m);
    CHECK_EQ(m.sent, 1);
    const struct inbox_message *message = notify_fixture_message(&m, 0);
    CHECK_STR(message->request.method, "POST");
    CHECK_STR(message->request.url, "https://example.org/hook");
    CHECK_STR(inbox_header(message, "Content-Type"), "application/json");
    CHECK(inbox_header(message, "X-Drydock-Signature").p == NULL);
    CHECK(inbox_header(message, "webhook-signature").p == NULL);
    CHECK_STR(message->request.body,
              "{\"node\":\"node-1\",\"profile\":\"reboot\",\"state\":\"in-maintenance\","
              "\"inMaintenance\":true,\"lastTransition\":\"2026-03-02T07:55:00Z\"}");
}

/* The signature is `printf 'node node-1' | openssl dgst -sha256 -hmac s3cret`. */
TEST(webhook_signs_the_body_and_adds_headers)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, "webhook",
                        "{url: 'https://example.org', method: PUT, body: 'node {{ .Node.Name }}', "
                        "contentType: text/plain, secret: s3cret, timeout: 5s, "
                        "headers: ['Authorization: Bearer a:b', 'X-Two:2']}");
    notify_fixture_deliver(&m);
    const struct inbox_message *message = notify_fixture_message(&m, 0);
    CHECK_STR(message->request.method, "PUT");
    CHECK_STR(message->request.body, "node node-1");
    CHECK_EQ(message->request.timeout, SECONDS(5));
    CHECK_STR(inbox_header(message, "Content-Type"), "text/plain");
    CHECK_STR(inbox_header(message, "Authorization"), "Bearer a:b");
    CHECK_STR(inbox_header(message, "X-Two"), "2");
    CHECK_STR(inbox_header(message, "X-Drydock-Signature"),
              "sha256=ac1c7b6c26b6d5f384f93e9ea16f0c9fa3ec11beee819cda96eaa75ba5dd5b25");
}

/* What is signed is "<id>.<timestamp>.<body>":
 *   printf 'ID.1772438400.node node-1' | openssl dgst -sha256 -hmac s3cret -binary | base64 */
TEST(webhook_signs_its_id_and_the_time_with_the_body)
{
    static const struct {
        const char *secret;
        const char *signature;
    } cases[] = {
        { "s3cret", "v1,7y4lcwbMe2kLrFx8HiO9mBi6eNTdX/uAVSnvpOvQ2rk=" },
        { "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
          "v1,qQ57E8oSOK1yrv8bSoGxtAUuVRfnRXd8rw2VweKI/yo=" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        char config[200];
        (void)snprintf(config, sizeof(config),
                       "{url: 'https://example.org', body: 'node {{ .Node.Name }}', secret: %s}",
                       cases[i].secret);
        CLEANUP(notify_fixture_done)
        struct notify_fixture m;
        notify_fixture_init(&m, "webhook", config);
        notify_fixture_deliver(&m);
        const struct inbox_message *message = notify_fixture_message(&m, 0);
        CHECK_STR(inbox_header(message, "webhook-id"), "msg_6b23cde0f242939930ef85502135c1ce");
        CHECK_STR(inbox_header(message, "webhook-timestamp"), "1772438400");
        CHECK_STR(inbox_header(message, "webhook-signature"), cases[i].signature);
    }
    check_case(-1);
}

/* A receiver can tell a repetition by the id, and a replay by the time. */
TEST(webhook_has_one_id_for_every_try_and_another_for_the_next_message)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, "webhook", "{url: 'https://example.org', secret: s}");
    notify_fixture_deliver(&m);
    notify_fixture_run(&m, SECONDS(7));
    notify_fixture_deliver(&m); /* nothing was noted in between, as after a crash */
    m.facts.last_sent = timestamp_from_usec(SECONDS(1772438407));
    notify_fixture_deliver(&m); /* the schedule's next one about the same state */
    m.facts.profile = STR("other");
    notify_fixture_deliver(&m);
    struct str ids[4];
    for (uint32_t i = 0; i < ARRAY_LEN(ids); i++) {
        ids[i] = inbox_header(notify_fixture_message(&m, i), "webhook-id");
    }
    CHECK(str_eq(ids[0], ids[1]));
    CHECK(!str_eq(ids[1], ids[2]) && !str_eq(ids[2], ids[3]));
    const struct inbox_message *first = notify_fixture_message(&m, 0);
    const struct inbox_message *again = notify_fixture_message(&m, 1);
    CHECK_STR(inbox_header(again, "webhook-timestamp"), "1772438407");
    CHECK(!str_eq(inbox_header(first, "webhook-signature"),
                  inbox_header(again, "webhook-signature")));
    CHECK(str_eq(inbox_header(first, "X-Drydock-Signature"),
                 inbox_header(again, "X-Drydock-Signature")));
}

static void answer_as(void *ctx, const struct inbox_message *message UNUSED,
                      struct inbox_answer *answer)
{
    *answer = *(struct inbox_answer *)ctx;
}

TEST(webhook_succeeds_with_any_2xx_and_nothing_else)
{
    static const struct {
        int status;
        const char *error;
        enum err_code code;
    } cases[] = {
        { 200, "", 0 },
        { 202, "", 0 },
        { 204, "", 0 },
        { 302, "the webhook answered 302: why", ERR_DENIED },
        { 400, "the webhook answered 400: why", ERR_DENIED },
        { 503, "the webhook answered 503: why", ERR_BUSY },
        { 0, "no answer within the timeout", ERR_TIMEOUT },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(notify_fixture_done)
        struct notify_fixture m;
        notify_fixture_init(&m, "webhook", "{url: 'https://example.org', timeout: 5s}");
        struct inbox_answer answer = { .status = cases[i].status,
                                       .body = STR("why\nnot"),
                                       .retry_after = SECONDS(9) };
        m.inbox.script = answer_as;
        m.inbox.ctx = &answer;
        notify_fixture_deliver(&m);
        CHECK_EQ(m.sent, cases[i].code == 0 ? 1 : 0);
        CHECK_EQ(m.err.code, cases[i].code);
        CHECK_STR((const char *)m.err.msg, cases[i].error);
        CHECK_EQ(m.retry_after, cases[i].status >= 300 ? SECONDS(9) : 0);
    }
    check_case(-1);
}
