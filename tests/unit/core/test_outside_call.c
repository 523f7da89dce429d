#include "core/outside_call.h"

#include "sandbox/sim/outbound.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

struct fixture {
    struct virtual_loop *time;
    struct inbox inbox;
    struct outbound *outbound;
    struct outside_call call;
    struct inbox_answer answer;
    uint32_t replies;
    int result;
    struct err err;
};

static void respond(void *ctx, const struct inbox_message *message UNUSED,
                    struct inbox_answer *answer)
{
    const struct fixture *f = ctx;
    *answer = f->answer;
}

static void on_reply(void *ctx, const struct outbound_reply *reply)
{
    struct fixture *f = ctx;
    f->replies++;
    f->err = (struct err){ 0 };
    f->result = outside_call_judge(&f->call, reply, &f->err);
}

static void begin(struct fixture *f)
{
    *f = (struct fixture){ .time = virtual_loop_new(1, SECONDS(1767323045)) };
    inbox_init(&f->inbox);
    f->inbox.script = respond;
    f->inbox.ctx = f;
    f->outbound = sim_outbound_new(virtual_loop_root(f->time), &f->inbox, NULL);
    outside_call_init(&f->call, virtual_loop_root(f->time), f->outbound);
}

static void end(struct fixture *f)
{
    outside_call_done(&f->call);
    sim_outbound_free(f->outbound);
    inbox_done(&f->inbox);
    virtual_loop_free(f->time);
}

/* Answers what the wait is then. */
static usec_t try(struct fixture *f, const struct inbox_answer *answer)
{
    if (f->call.retry_at > virtual_loop_now(f->time)) {
        (void)virtual_loop_run(f->time, f->call.retry_at);
    }
    f->answer = *answer;
    CHECK(outside_call_ready(&f->call));
    outside_call_send(&f->call,
                      &(struct outbound_request){ .method = STR("GET"), .url = STR("https://x") },
                      on_reply, f);
    CHECK(!outside_call_ready(&f->call));
    uint32_t before = f->replies;
    while (f->replies == before) {
        (void)virtual_loop_run(f->time, virtual_loop_now(f->time) + SECONDS(1));
    }
    return MAX(f->call.retry_at - virtual_loop_now(f->time), 0);
}

TEST(outside_call_waits_longer_after_each_failure_and_not_after_a_success)
{
    struct fixture f;
    begin(&f);
    static const struct {
        struct inbox_answer answer;
        int code;
    } failures[] = {
        { { .status = 503 }, ERR_IO },     { { .status = 429 }, ERR_BUSY },
        { { .failure = ERR_IO }, ERR_IO }, { { .status = 0 }, ERR_TIMEOUT },
        { { .status = 500 }, ERR_IO },
    };
    usec_t last = 0;
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        usec_t wait = try(&f, &failures[i].answer);
        CHECK_EQ(f.result, -failures[i].code);
        CHECK(wait > last / 2);
        last = wait;
    }
    CHECK(last > SECONDS(10) && last <= OUTSIDE_RETRY_MAX);
    CHECK_EQ(f.call.failed, 5);
    CHECK_EQ(try(&f, &(struct inbox_answer){ .status = 204 }), 0);
    CHECK_EQ(f.result, 0);
    CHECK(try(&f, &(struct inbox_answer){ .status = 503 }) <= OUTSIDE_RETRY_MIN);
    end(&f);
}

TEST(outside_call_obeys_retry_after)
{
    struct fixture f;
    begin(&f);
    CHECK(try(&f, &(struct inbox_answer){ .status = 429, .retry_after = MINUTES(9) }) > MINUTES(8));
    end(&f);
}

TEST(outside_call_does_not_wait_after_an_answer_that_says_no)
{
    struct fixture f;
    begin(&f);
    static const struct {
        int status;
        int code;
    } answers[] = { { 401, ERR_DENIED },   { 403, ERR_DENIED },  { 404, ERR_NOTFOUND },
                    { 409, ERR_CONFLICT }, { 400, ERR_INVALID }, { 302, ERR_INVALID } };
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        check_case((int64_t)i);
        CHECK_EQ(
            try(&f, &(struct inbox_answer){ .status = answers[i].status, .body = STR("a secret") }),
            0);
        CHECK_EQ(f.result, -answers[i].code);
        CHECK(!str_contains(str_from(f.err.msg), STR("secret")));
    }
    check_case(-1);
    end(&f);
}
