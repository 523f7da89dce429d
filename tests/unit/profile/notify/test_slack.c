#include "tests/check.h"
#include "tests/lib/notify_fixture.h"

#define SLACK                                                                                      \
    "{hook: 'https://hooks.slack.com/x', channel: '#ops', "                                        \
    "message: '<{{ .Node.Name }}> & \"{{ .Profile }}\"'}"

TEST(slack_posts_text_and_channel_as_go_writes_json)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, "slack", SLACK);
    notify_fixture_deliver(&m);
    CHECK_EQ(m.sent, 1);
    const struct inbox_message *message = notify_fixture_message(&m, 0);
    CHECK_STR(message->request.method, "POST");
    CHECK_STR(message->request.url, "https://hooks.slack.com/x");
    CHECK_STR(inbox_header(message, "Content-Type"), "application/json");
    CHECK_STR(message->request.body, "{\"text\":\"\\u003cnode-1\\u003e \\u0026 \\\"reboot\\\"\","
                                     "\"channel\":\"#ops\"}");
}

static void answer_as(void *ctx, const struct inbox_message *message UNUSED,
                      struct inbox_answer *answer)
{
    *answer = *(struct inbox_answer *)ctx;
}

/* The status is no part of it: a hook speaks by its body. */
TEST(slack_succeeds_when_the_body_is_ok_and_only_then)
{
    static const struct {
        struct inbox_answer answer;
        const char *error; /* NULL: sent */
    } cases[] = {
        { { .status = 200, .body = STR_INIT("ok") }, NULL },
        { { .status = 500, .body = STR_INIT("ok") }, NULL },
        { { .status = 200, .body = STR_INIT("ok\n") },
          "slack webhook response is not ok: it answered 200: ok" },
        { { .status = 404, .body = STR_INIT("channel_not_found") },
          "slack webhook response is not ok: it answered 404: channel_not_found" },
        { { .status = 200 }, "slack webhook response is not ok: it answered 200" },
        { { .failure = ERR_IO }, "slack: connection reset by peer" },
        { { .status = 0 }, "slack: no answer within the timeout" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(notify_fixture_done)
        struct notify_fixture m;
        notify_fixture_init(&m, "slack", SLACK);
        struct inbox_answer answer = cases[i].answer;
        m.inbox.script = answer_as;
        m.inbox.ctx = &answer;
        notify_fixture_deliver(&m);
        CHECK_EQ(m.sent, cases[i].error == NULL ? 1 : 0);
        CHECK_STR((const char *)m.err.msg, cases[i].error != NULL ? cases[i].error : "");
    }
    check_case(-1);
}

TEST(slack_passes_on_how_long_it_shall_be_left_alone)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, "slack", SLACK);
    struct inbox_answer answer = { .status = 429, .retry_after = SECONDS(30) };
    m.inbox.script = answer_as;
    m.inbox.ctx = &answer;
    notify_fixture_deliver(&m);
    CHECK_EQ(m.failed, 1);
    CHECK_EQ(m.err.code, ERR_BUSY);
    CHECK_EQ(m.retry_after, SECONDS(30));
    answer.retry_after = DAYS(3);
    notify_fixture_deliver(&m);
    CHECK_EQ(m.retry_after, HOURS(1));
}
