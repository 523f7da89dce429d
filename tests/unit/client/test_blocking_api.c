#include "client/blocking_api.h"

#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/fake_api.h"

#define DENIED -2 /* an unknown authority, a credential plugin that is not there */

/* A server that a script plays: each turn answers the oldest call with the next line of it. */
struct blocking_api_fixture {
    struct virtual_loop *time;
    struct fake_api api;
    struct blocking_api blocking_api;
    struct arena memory;
    struct err err;
    const int *answers; /* statuses, ended by -1; 0 = the connection fails, DENIED: for good */
    usec_t retry_after;
    bool leaving;
};

static void blocking_api_fixture_turn(void *ctx, usec_t until)
{
    struct blocking_api_fixture *s = ctx;
    struct fake_call *call = fake_call_first(&s->api);
    if (call != NULL && *s->answers != -1) {
        int status = *s->answers++;
        if (status == 0 || status == DENIED) {
            fake_call_fail(&s->api, call, status == 0 ? ERR_IO : ERR_DENIED);
        } else if (status == 429) {
            fake_call_reply_after(&s->api, call, status, s->retry_after);
        } else {
            fake_call_reply(&s->api, call, status, STR("{}"));
        }
        return;
    }
    (void)virtual_loop_step(s->time, until);
}

static bool blocking_api_fixture_leaving(void *ctx)
{
    const struct blocking_api_fixture *s = ctx;
    return s->leaving;
}

static void blocking_api_fixture_begin(struct blocking_api_fixture *s, const int *answers)
{
    *s = (struct blocking_api_fixture){ .time = virtual_loop_new(1, 0), .answers = answers };
    fake_api_init(&s->api);
    s->blocking_api = (struct blocking_api){
        .loop = virtual_loop_root(s->time),
        .api = &s->api.api,
        .turn = blocking_api_fixture_turn,
        .leaving = blocking_api_fixture_leaving,
        .ctx = s,
    };
}

static void blocking_api_fixture_end(struct blocking_api_fixture *s)
{
    fake_api_done(&s->api);
    virtual_loop_free(s->time);
    arena_done(&s->memory);
}

static int blocking_api_fixture_get(struct blocking_api_fixture *s, int *ret_status)
{
    struct blocking_api_reply answer = { 0 };
    int r = blocking_api_send(&s->blocking_api,
                              &(struct api_request){ .verb = API_GET, .path = STR("/x") },
                              &s->memory, &answer, &s->err);
    *ret_status = answer.status;
    return r;
}

TEST(blocking_api_asks_again_while_it_may_pass)
{
    struct blocking_api_fixture s;
    int status;
    blocking_api_fixture_begin(&s, (const int[]){ 0, 503, 500, 200, -1 });
    CHECK_EQ(blocking_api_fixture_get(&s, &status), 0);
    CHECK_EQ(status, 200);
    CHECK_EQ(s.api.sent, 4);
    blocking_api_fixture_end(&s);
}

TEST(blocking_api_gives_refusals_on_at_once)
{
    static const int statuses[] = { 400, 401, 403, 404, 409, 410, 422 };
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        check_case(statuses[i]);
        struct blocking_api_fixture s;
        int status;
        blocking_api_fixture_begin(&s, (const int[]){ statuses[i], -1 });
        CHECK_EQ(blocking_api_fixture_get(&s, &status), 0);
        CHECK_EQ(status, statuses[i]);
        CHECK_EQ(s.api.sent, 1);
        blocking_api_fixture_end(&s);
    }
    check_case(-1);
}

TEST(blocking_api_has_an_end_of_its_patience)
{
    struct blocking_api_fixture s;
    int status;
    int answers[65];
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        answers[i] = i + 1 < ARRAY_LEN(answers) ? 0 : -1;
    }
    blocking_api_fixture_begin(&s, answers);
    CHECK_EQ(blocking_api_fixture_get(&s, &status), -ERR_IO);
    CHECK(s.api.sent > 3);
    CHECK(s.api.sent < 60);
    CHECK(virtual_loop_now(s.time) <= BLOCKING_API_RETRY_TIME);
    blocking_api_fixture_end(&s);
}

TEST(blocking_api_honours_what_the_server_asks_for)
{
    struct blocking_api_fixture s;
    int status;
    blocking_api_fixture_begin(&s, (const int[]){ 429, 200, -1 });
    s.retry_after = SECONDS(9);
    CHECK_EQ(blocking_api_fixture_get(&s, &status), 0);
    CHECK_EQ(status, 200);
    CHECK(virtual_loop_now(s.time) >= SECONDS(9));
    blocking_api_fixture_end(&s);
}

TEST(blocking_api_ends_when_the_caller_leaves)
{
    struct blocking_api_fixture s;
    int status;
    blocking_api_fixture_begin(&s, (const int[]){ -1 });
    s.leaving = true;
    CHECK_EQ(blocking_api_fixture_get(&s, &status), -ERR_CANCELLED);
    CHECK_EQ(s.api.call_count, 0);
    CHECK_EQ(blocking_api_sleep(&s.blocking_api, SECONDS(1), USEC_NEVER, &s.err), -ERR_CANCELLED);
    blocking_api_fixture_end(&s);
}

/* Who sits at a terminal does not wait for what waiting does not mend. */
TEST(blocking_api_tells_a_permanent_failure_at_once_if_asked_to)
{
    struct blocking_api_fixture s;
    int status;
    blocking_api_fixture_begin(&s, (const int[]){ DENIED, 200, -1 });
    s.blocking_api.fail_fast = true;
    CHECK_EQ(blocking_api_fixture_get(&s, &status), -ERR_IO);
    CHECK_EQ(s.api.sent, 1);
    blocking_api_fixture_end(&s);
}

TEST(blocking_api_waits_for_a_server_that_it_has_reached_before)
{
    struct blocking_api_fixture s;
    int status;
    blocking_api_fixture_begin(&s, (const int[]){ 200, DENIED, 0, 200, -1 });
    s.blocking_api.fail_fast = true;
    CHECK_EQ(blocking_api_fixture_get(&s, &status), 0);
    CHECK_EQ(blocking_api_fixture_get(&s, &status), 0);
    CHECK_EQ(status, 200);
    CHECK_EQ(s.api.sent, 4);
    blocking_api_fixture_end(&s);
}

TEST(blocking_api_of_an_actor_waits_for_anything)
{
    struct blocking_api_fixture s;
    int status;
    blocking_api_fixture_begin(&s, (const int[]){ DENIED, 200, -1 });
    CHECK_EQ(blocking_api_fixture_get(&s, &status), 0);
    CHECK_EQ(s.api.sent, 2);
    blocking_api_fixture_end(&s);
}
