/* Requests over a link, against a cluster that is played by hand. */
#include "tests/check.h"
#include "tests/lib/fake_dialer.h"
#include "tests/lib/link_fixture.h"

#define CALLS 100

struct fixture {
    struct link_world w;
    struct fake_dialer dialer;
    struct link_cluster *east;
    struct link_call *calls[CALLS];
    int answers;
    int status;         /* of the last answer */
    enum err_code code; /* of the last one that was none */
    char why[512];
    bool free_it;    /* at the next answer */
    bool send_again; /* likewise */
    bool close_it;
    struct link_call *cancel; /* likewise */
};

/* The list of Nodes, as a stream: just its end. */
static void sync_it(struct fixture *b)
{
    struct fake_watch *watch = fake_watch_first(&b->dialer.api);
    CHECK(watch != NULL);
    fake_watch_line(
        watch, STR("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\","
                   "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}"));
    CHECK(link_world_until(&b->w, b->east, LINK_WATCHING, 0));
}

static void begin(struct fixture *b)
{
    *b = (struct fixture){ 0 };
    link_world_begin(&b->w, 1);
    fake_dialer_init(&b->dialer);
    b->w.instead = &b->dialer.dialer;
    b->east = link_cluster_new(&b->w, "east");
    link_open(b->east->link, /* hurry= */ false);
    CHECK(link_world_until(&b->w, b->east, LINK_LISTING, SECONDS(1)));
    sync_it(b);
}

static void end(struct fixture *b)
{
    link_world_end(&b->w);
    CHECK(!b->dialer.open);
}

static void on_reply(void *ctx, const struct api_reply *reply);

static struct link_call *send_one(struct fixture *b)
{
    const struct api_request request = {
        .verb = API_PATCH,
        .path = STR("/api/v1/nodes/a"),
        .content_type = API_MERGE_PATCH,
        .body = STR("{}"),
        .timeout = SECONDS(7),
    };
    return link_send(b->east->link, &request, on_reply, b);
}

static void on_reply(void *ctx, const struct api_reply *reply)
{
    struct fixture *b = ctx;
    b->answers++;
    b->status = reply->status;
    b->code = reply->err != NULL ? reply->err->code : 0;
    (void)snprintf(b->why, sizeof(b->why), "%s", reply->err != NULL ? reply->err->msg : "");
    if (b->send_again) {
        (void)send_one(b);
    }
    if (b->cancel != NULL) {
        link_cancel(STEAL(b->cancel));
    }
    if (b->close_it) {
        link_close(b->east->link);
    }
    if (b->free_it) {
        b->free_it = false;
        link_free(STEAL(b->east->link));
    }
}

static void send_many(struct fixture *b, int n)
{
    for (int i = 0; i < n; i++) {
        b->calls[i] = send_one(b);
    }
}

static void answer(struct fixture *b, int status)
{
    struct fake_call *call = fake_call_first(&b->dialer.api);
    CHECK(call != NULL);
    fake_call_reply(&b->dialer.api, call, status, STR("{}"));
}

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

TEST(link_send_sends_from_the_loop_what_it_was_given)
{
    struct fixture b;
    begin(&b);
    (void)send_one(&b);
    CHECK_EQ(b.dialer.api.call_count, 0);
    link_world_run(&b.w, 0);
    struct fake_call *call = fake_call_first(&b.dialer.api);
    CHECK(call != NULL);
    CHECK_EQ(call->verb, API_PATCH);
    CHECK_STR(call->path, "/api/v1/nodes/a");
    CHECK_STR(call->content_type, API_MERGE_PATCH);
    CHECK_STR(call->body, "{}");
    CHECK_EQ(call->timeout, SECONDS(7));
    answer(&b, 409);
    CHECK_EQ(b.answers, 1);
    CHECK_EQ(b.status, 409);
    CHECK(link_fresh(b.east->link));
    end(&b);
}

/* It led when it asked, and was frozen before the loop came to send it. */
TEST(link_send_writes_nothing_for_who_may_not_write_any_more)
{
    struct fixture b;
    begin(&b);
    (void)send_one(&b); /* on_reply has it */
    b.east->locked = true;
    link_world_run(&b.w, SECONDS(1));
    CHECK(fake_call_first(&b.dialer.api) == NULL);
    CHECK_EQ(b.answers, 1);
    CHECK_EQ(b.status, 0);
    CHECK_EQ(b.code, ERR_CANCELLED);
    (void)link_send(b.east->link, &(struct api_request){ .path = STR("/api/v1/nodes/a") }, on_reply,
                    &b); /* reading does no harm */
    link_world_run(&b.w, SECONDS(1));
    CHECK(fake_call_first(&b.dialer.api) != NULL);
    end(&b);
}

TEST(link_send_has_four_in_flight_and_keeps_the_rate)
{
    struct fixture b;
    begin(&b);
    send_many(&b, CALLS);
    link_world_run(&b.w, 0);
    usec_t began = virtual_loop_now(b.w.time);
    usec_t burst_at = 0;
    usec_t sent_at = 0;
    while (b.answers < CALLS) {
        CHECK(virtual_loop_now(b.w.time) < began + SECONDS(10));
        CHECK(b.dialer.api.call_count <= LINK_CALLS_MAX);
        if (b.dialer.api.call_count == 0) {
            link_world_run(&b.w, MSECONDS(10));
        } else {
            sent_at = virtual_loop_now(b.w.time);
            answer(&b, 200);
            link_world_run(&b.w, 0);
        }
        burst_at = b.answers <= (int)LINK_BURST ? sent_at : burst_at;
    }
    CHECK_EQ(burst_at, began);
    usec_t least = SECONDS(CALLS - LINK_BURST) / LINK_RATE;
    CHECK(virtual_loop_now(b.w.time) - began >= least);
    CHECK(virtual_loop_now(b.w.time) - began <= least + SECONDS(1));
    end(&b);
}

TEST(link_send_keeps_the_order)
{
    struct fixture b;
    begin(&b);
    for (int i = 0; i < 20; i++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "/%d", i);
        (void)link_send(b.east->link, &(struct api_request){ .path = str_from(path) }, on_reply,
                        &b);
    }
    for (int i = 0; i < 20; i++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "/%d", i);
        link_world_run(&b.w, 0);
        CHECK_STR(fake_call_first(&b.dialer.api)->path, path);
        answer(&b, 200);
    }
    end(&b);
}

TEST(link_send_is_quiet_when_the_cluster_asks_for_it)
{
    struct fixture b;
    begin(&b);
    send_many(&b, 2);
    link_world_run(&b.w, 0);
    fake_call_reply_after(&b.dialer.api, fake_call_first(&b.dialer.api), 429, SECONDS(10));
    (void)send_one(&b);
    link_world_run(&b.w, SECONDS(9));
    CHECK_EQ(b.dialer.api.sent, 2);
    link_world_run(&b.w, SECONDS(4));
    CHECK_EQ(b.dialer.api.sent, 3);
    end(&b);
}

TEST(link_send_refuses_more_than_ever_wait)
{
    struct fixture b;
    begin(&b);
    for (uint32_t i = 0; i < LINK_QUEUE_MAX; i++) {
        (void)send_one(&b);
    }
    CHECK_EQ(b.answers, 0);
    (void)send_one(&b);
    link_world_run(&b.w, 0);
    CHECK_EQ(b.answers, 1);
    CHECK_EQ(b.code, ERR_LIMIT);
    CHECK_STR(b.why, "more than 20000 requests wait for cluster 'default/east'");
    end(&b);
}

/* ── cancelling ────────────────────────────────────────────────────────────────────────────── */

TEST(link_cancel_works_in_flight_and_before)
{
    struct fixture b;
    begin(&b);
    send_many(&b, 6);
    link_world_run(&b.w, 0);
    CHECK_EQ(b.dialer.api.call_count, 4);
    link_cancel(b.calls[5]); /* waits */
    link_cancel(b.calls[0]); /* flies */
    link_cancel(NULL);
    CHECK_EQ(b.dialer.api.call_count, 3);
    link_world_run(&b.w, 0);
    CHECK_EQ(b.dialer.api.call_count, 4);
    CHECK_EQ(b.dialer.api.sent, 5);
    while (b.dialer.api.call_count > 0) {
        answer(&b, 200);
    }
    CHECK_EQ(b.answers, 4);
    end(&b);
}

/* ── breaking ──────────────────────────────────────────────────────────────────────────────── */

TEST(link_that_breaks_answers_all_that_wait_from_the_loop)
{
    struct fixture b;
    begin(&b);
    send_many(&b, 10);
    link_world_run(&b.w, 0);
    link_on_secret(b.east->link, 77);
    CHECK_EQ(b.answers, 0);
    link_world_run(&b.w, 0);
    CHECK_EQ(link_state(b.east->link), LINK_RESOLVING);
    CHECK_EQ(b.answers, 10);
    CHECK_EQ(b.status, 0);
    CHECK_EQ(b.code, ERR_CANCELLED);
    CHECK_STR(b.why, "no connection to cluster 'default/east'");
    end(&b);
}

TEST(link_send_over_a_link_that_is_not_fresh_is_answered_from_the_loop)
{
    struct fixture b;
    begin(&b);
    link_close(b.east->link);
    link_world_run(&b.w, 0);
    (void)send_one(&b);
    CHECK_EQ(b.answers, 0);
    link_world_run(&b.w, 0);
    CHECK_EQ(b.answers, 1);
    CHECK_EQ(b.code, ERR_CANCELLED);
    struct link_call *call = send_one(&b);
    link_cancel(call);
    link_world_run(&b.w, SECONDS(1));
    CHECK_EQ(b.answers, 1);
    end(&b);
}

TEST(link_send_again_from_the_answer_of_a_broken_link_does_not_hang_the_loop)
{
    struct fixture b;
    begin(&b);
    send_many(&b, 5);
    b.send_again = true;
    link_on_secret(b.east->link, 77);
    for (int i = 0; i < 100; i++) {
        (void)virtual_loop_step(b.w.time, virtual_loop_now(b.w.time));
        link_check(b.east->link);
    }
    CHECK(b.answers >= 5);
    CHECK(b.answers <= 500); /* five a turn */
    b.send_again = false;
    link_world_run(&b.w, SECONDS(1));
    end(&b);
}

TEST(link_may_cancel_others_from_the_answer_of_a_broken_link)
{
    struct fixture b;
    begin(&b);
    send_many(&b, 3);
    link_world_run(&b.w, 0);
    b.cancel = b.calls[1];
    link_on_secret(b.east->link, 77);
    link_world_run(&b.w, 0);
    CHECK_EQ(b.answers, 2);
    end(&b);
}

TEST(link_may_be_freed_from_an_answer)
{
    for (int broken = 0; broken < 2; broken++) {
        struct fixture b;
        begin(&b);
        send_many(&b, 10);
        link_world_run(&b.w, 0);
        b.free_it = true;
        if (broken != 0) {
            link_on_secret(b.east->link, 77);
            link_world_run(&b.w, 0);
        } else {
            answer(&b, 200);
        }
        CHECK(b.east->link == NULL);
        CHECK_EQ(b.answers, 1);
        CHECK(!b.dialer.open);
        end(&b);
    }
}

TEST(link_breaks_on_a_401_and_its_caller_gets_it)
{
    struct fixture b;
    begin(&b);
    link_world_run(&b.w, MINUTES(1));
    send_many(&b, 6);
    link_world_run(&b.w, 0);
    answer(&b, 401);
    CHECK_EQ(b.answers, 1);
    CHECK_EQ(b.status, 401);
    CHECK(!link_fresh(b.east->link)); /* at once */
    link_world_run(&b.w, 0);
    CHECK_EQ(link_state(b.east->link), LINK_RESOLVING);
    CHECK_EQ(b.answers, 6);
    CHECK_STR(b.why, "no connection to cluster 'default/east': the server answered 401: {}");
    CHECK(link_world_until(&b.w, b.east, LINK_LISTING, SECONDS(1)));
    sync_it(&b);
    (void)send_one(&b); /* B26: without waiting for anything else */
    link_world_run(&b.w, 0);
    answer(&b, 200);
    CHECK_EQ(b.answers, 7);
    CHECK_EQ(b.status, 200);
    end(&b);
}

/* ── closing ───────────────────────────────────────────────────────────────────────────────── */

TEST(link_closing_lets_what_was_sent_end)
{
    struct fixture b;
    begin(&b);
    send_many(&b, 6);
    link_close(b.east->link);
    link_world_run(&b.w, SECONDS(1));
    CHECK_EQ(link_state(b.east->link), LINK_CLOSING);
    CHECK_EQ(b.dialer.api.call_count, 4);
    CHECK_EQ(b.dialer.api.watch_count, 0);
    CHECK(!link_fresh(b.east->link));
    while (b.dialer.open) {
        answer(&b, b.answers == 3 ? 401 : 200); /* which changes nothing any more */
        link_world_run(&b.w, 0);
    }
    CHECK_EQ(b.answers, 6);
    CHECK_EQ(link_state(b.east->link), LINK_IDLE);
    CHECK_EQ(b.east->idle, 1);
    end(&b);
}

TEST(link_closing_does_not_wait_for_ever)
{
    struct fixture b;
    begin(&b);
    send_many(&b, 6);
    link_world_run(&b.w, 0);
    link_close(b.east->link);
    link_world_run(&b.w, LINK_CLOSING_MAX - 1);
    CHECK_EQ(link_state(b.east->link), LINK_CLOSING);
    link_world_run(&b.w, 1);
    CHECK_EQ(link_state(b.east->link), LINK_IDLE);
    CHECK_EQ(b.answers, 6);
    CHECK_EQ(b.code, ERR_CANCELLED);
    CHECK(!b.dialer.open);
    end(&b);
}

TEST(link_closing_ends_when_the_last_is_cancelled)
{
    struct fixture b;
    begin(&b);
    b.calls[0] = send_one(&b);
    link_world_run(&b.w, 0);
    link_close(b.east->link);
    link_world_run(&b.w, 0);
    CHECK_EQ(link_state(b.east->link), LINK_CLOSING);
    link_cancel(b.calls[0]);
    link_world_run(&b.w, 0);
    CHECK_EQ(link_state(b.east->link), LINK_IDLE);
    end(&b);
}

TEST(link_closing_may_be_opened_again)
{
    struct fixture b;
    begin(&b);
    (void)send_one(&b);
    link_world_run(&b.w, 0);
    link_close(b.east->link);
    link_world_run(&b.w, SECONDS(1));
    CHECK_EQ(link_state(b.east->link), LINK_CLOSING);
    link_open(b.east->link, /* hurry= */ true);
    link_world_run(&b.w, SECONDS(1));
    CHECK_EQ(link_state(b.east->link), LINK_CLOSING); /* the answer is still waited for */
    CHECK_EQ(link_unreachable_since(b.east->link), virtual_loop_now(b.w.time) - SECONDS(1));
    answer(&b, 200);
    link_world_run(&b.w, 0);
    CHECK_EQ(link_state(b.east->link), LINK_RESOLVING);
    CHECK(link_world_until(&b.w, b.east, LINK_LISTING, SECONDS(1)));
    sync_it(&b);
    CHECK_EQ(b.dialer.dial_count, 2);
    end(&b);
}

TEST(link_may_be_closed_from_an_answer)
{
    struct fixture b;
    begin(&b);
    b.close_it = true;
    send_many(&b, 2);
    link_world_run(&b.w, 0);
    answer(&b, 200);
    link_world_run(&b.w, 0);
    CHECK_EQ(link_state(b.east->link), LINK_CLOSING);
    answer(&b, 200);
    link_world_run(&b.w, 0);
    CHECK_EQ(link_state(b.east->link), LINK_IDLE);
    end(&b);
}
