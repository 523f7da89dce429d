#include "sandbox/sim/outbound.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

struct fixture {
    struct virtual_loop *time;
    struct faults faults;
    struct inbox inbox;
    struct outbound *outbound;
    /* The last reply, and how many came. */
    uint32_t replies;
    int status;
    struct err err;
    char body[64];
    usec_t retry_after;
    usec_t at;
};

static void fixture_init(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){ 0 };
    f->time = virtual_loop_new(seed, 0);
    faults_init(&f->faults, seed);
    inbox_init(&f->inbox);
    f->outbound = sim_outbound_new(virtual_loop_root(f->time), &f->inbox, &f->faults);
}

static void fixture_done(struct fixture *f)
{
    sim_outbound_free(f->outbound);
    faults_done(&f->faults);
    inbox_done(&f->inbox);
    virtual_loop_free(f->time);
}

static void on_reply(void *ctx, const struct outbound_reply *reply)
{
    struct fixture *f = ctx;
    f->replies++;
    f->status = reply->status;
    f->err = reply->err != NULL ? *reply->err : (struct err){ 0 };
    CHECK_EQ(reply->err == NULL, reply->status != 0);
    CHECK(reply->body.n < sizeof(f->body));
    memcpy(f->body, reply->body.n > 0 ? reply->body.p : "", reply->body.n);
    f->body[reply->body.n] = '\0';
    f->retry_after = reply->retry_after;
    f->at = virtual_loop_now(f->time);
}

static struct outbound_call *post(struct fixture *f, const char *url)
{
    struct outbound_header headers[] = { { STR("Content-Type"), STR("text/plain") } };
    struct outbound_request request = { .method = STR("POST"),
                                        .url = str_from(url),
                                        .headers = headers,
                                        .header_n = ARRAY_LEN(headers),
                                        .body = STR("hello") };
    return outbound_http(f->outbound, &request, on_reply, f);
}

static struct outbound_call *mail(struct fixture *f)
{
    struct str to[] = { STR("b@c"), STR("d@e") };
    struct outbound_mail mail = {
        .address = STR("host:25"),
        .from = STR("a@b"),
        .to = to,
        .to_n = 2,
        .payload = STR("Subject: s\r\n\r\nhello"),
    };
    return outbound_mail(f->outbound, &mail, on_reply, f);
}

TEST(outbound_keeps_what_arrives_and_answers_that_all_is_well)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f, 1);
    (void)post(&f, "https://example.org/a");
    CHECK_EQ(f.replies, 0); /* never from inside */
    (void)virtual_loop_run(f.time, SECONDS(1));
    CHECK_EQ(f.replies, 1);
    CHECK_EQ(f.status, 200);
    CHECK_STR((const char *)f.body, "ok");
    (void)mail(&f);
    (void)virtual_loop_run(f.time, SECONDS(2));
    CHECK_EQ(f.replies, 2);
    CHECK_EQ(f.status, 250);
    CHECK_EQ(f.inbox.n, 2);
    const struct inbox_message *first = inbox_at(&f.inbox, 0);
    CHECK_STR(first->request.url, "https://example.org/a");
    CHECK_STR(first->request.body, "hello");
    CHECK_STR(inbox_header(first, "content-type"), "text/plain");
    CHECK(inbox_header(first, "Accept").p == NULL);
    const struct inbox_message *second = inbox_at(&f.inbox, 1);
    CHECK(second->is_mail);
    CHECK_STR(second->mail.to[1], "d@e");
    CHECK_EQ(second->status, 250);
    CHECK(inbox_at(&f.inbox, 2) == NULL);
    CHECK_EQ(sim_outbound_in_flight(f.outbound), 0);
}

static void on_script(void *ctx, const struct inbox_message *message, struct inbox_answer *answer)
{
    *answer = *(struct inbox_answer *)ctx;
    CHECK_STR(message->request.method, "POST");
}

TEST(outbound_answers_as_the_script_says)
{
    static const struct {
        struct inbox_answer answer;
        int status;
        enum err_code code;
        usec_t at_least;
    } cases[] = {
        { { .status = 429, .body = STR_INIT("slow down"), .retry_after = SECONDS(7) }, 429, 0, 0 },
        { { .status = 200, .delay = SECONDS(5) }, 200, 0, SECONDS(5) },
        { { .status = 200, .delay = MINUTES(5) }, 0, ERR_TIMEOUT, OUTBOUND_TIMEOUT },
        { { .status = 0 }, 0, ERR_TIMEOUT, OUTBOUND_TIMEOUT },
        { { .failure = ERR_IO }, 0, ERR_IO, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(fixture_done)
        struct fixture f;
        fixture_init(&f, 1);
        struct inbox_answer answer = cases[i].answer;
        f.inbox.script = on_script;
        f.inbox.ctx = &answer;
        (void)post(&f, "https://example.org");
        (void)virtual_loop_run(f.time, MINUTES(10));
        CHECK_EQ(f.replies, 1);
        CHECK_EQ(f.status, cases[i].status);
        CHECK_EQ(f.err.code, cases[i].code);
        CHECK_EQ(f.retry_after, cases[i].code == 0 ? answer.retry_after : 0);
        CHECK(f.at >= cases[i].at_least);
        CHECK(f.at <= OUTBOUND_TIMEOUT);
        CHECK_EQ(f.inbox.arrived, 1);
    }
    check_case(-1);
}

TEST(outbound_is_refused_when_the_world_is_down_and_silent_when_it_is_parted)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f, 1);
    f.faults.down = true;
    (void)mail(&f);
    (void)virtual_loop_run(f.time, SECONDS(1));
    CHECK_EQ(f.err.code, ERR_IO);
    f.faults.down = false;
    f.faults.partitioned = true;
    (void)mail(&f);
    (void)virtual_loop_run(f.time, MINUTES(1));
    CHECK_EQ(f.err.code, ERR_TIMEOUT);
    CHECK_EQ(f.replies, 2);
    CHECK_EQ(f.inbox.arrived, 0);
}

TEST(outbound_mail_meets_errors_with_codes_of_smtp)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f, 1);
    f.faults.error_429 = 1000;
    (void)mail(&f);
    (void)virtual_loop_run(f.time, SECONDS(1));
    CHECK_EQ(f.status, 451);
    CHECK_EQ(f.inbox.arrived, 0);
}

TEST(outbound_cancelled_calls_nobody_and_may_still_arrive)
{
    for (uint32_t chance = 0; chance <= 1000; chance += 1000) {
        CLEANUP(fixture_done)
        struct fixture f;
        fixture_init(&f, 1);
        f.faults.cancel_executes = chance;
        outbound_cancel(f.outbound, post(&f, "https://example.org"));
        CHECK_EQ(sim_outbound_in_flight(f.outbound), 0);
        (void)virtual_loop_run(f.time, MINUTES(1));
        CHECK_EQ(f.replies, 0);
        CHECK_EQ(f.inbox.arrived, chance == 1000 ? 1 : 0);
    }
}

TEST(outbound_lets_the_inbox_outlive_a_crash_of_its_client)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f, 1);
    f.faults.cancel_executes = 1000;
    (void)post(&f, "https://example.org");
    sim_outbound_free(STEAL(f.outbound));
    (void)virtual_loop_run(f.time, MINUTES(1));
    CHECK_EQ(f.inbox.arrived, 1);
    CHECK_EQ(f.replies, 0);
}

TEST(outbound_keeps_the_newest_messages_only)
{
    CLEANUP(fixture_done)
    struct fixture f;
    fixture_init(&f, 1);
    for (uint32_t i = 0; i < INBOX_MESSAGES_MAX + 2; i++) {
        (void)post(&f, i < 2 ? "http://old" : "http://new");
        (void)virtual_loop_run(f.time, virtual_loop_now(f.time) + SECONDS(1));
    }
    CHECK_EQ(f.inbox.n, INBOX_MESSAGES_MAX);
    CHECK_EQ(f.inbox.arrived, INBOX_MESSAGES_MAX + 2);
    CHECK_STR(inbox_at(&f.inbox, 0)->request.url, "http://new");
}

/* Whatever happens on the way, there is one reply, in time; and the run is the seed's. */
PROPERTY(outbound_answers_every_call_once)
{
    uint64_t seed = rng_next(rng);
    uint64_t seen[2];
    for (size_t run = 0; run < 2; run++) {
        CLEANUP(fixture_done)
        struct fixture f;
        fixture_init(&f, seed);
        faults_randomize(&f.faults);
        for (uint32_t i = 0; i < 20; i++) {
            (void)(i % 2 == 0 ? post(&f, "http://a") : mail(&f));
        }
        (void)virtual_loop_run(f.time, OUTBOUND_TIMEOUT);
        CHECK_EQ(f.replies, 20);
        CHECK_EQ(sim_outbound_in_flight(f.outbound), 0);
        seen[run] = f.inbox.arrived * 1000003 + (uint64_t)f.at;
    }
    CHECK_EQ(seen[0], seen[1]);
}
