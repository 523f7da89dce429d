#include "kube/writer.h"

#include "kube/node.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/fake_api.h"

static const struct writer_rules rules = {
    .conflict = { MSECONDS(100), SECONDS(1) },
    .refused = { SECONDS(10), MINUTES(5) },
    .failed = { MSECONDS(500), SECONDS(30) },
    .urgent = true,
};

/* The keeper of one Node. */
struct keeper {
    struct node_keep keep; /* first: the store's context */
    struct virtual_loop *time;
    struct loop *loop;
    struct fake_api api;
    struct client client;
    struct intern labels;
    struct store store;
    struct writer writer;
    int replies;
    enum retry_verdict verdict;
    bool has_object;
    bool unreadable;
    struct err err;
};

static void keeper_observe(struct keeper *k, uint64_t version)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    struct str text = arena_printf(
        &tmp, "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u\",\"resourceVersion\":\"%llu\"}}",
        (unsigned long long)version);
    CHECK_EQ(json_parse(text, 0, &tmp, &object, &err), 0);
    CHECK_EQ(store_observe(&k->store, object, false, &err), 0);
}

static void keeper_begin(struct keeper *k)
{
    *k = (struct keeper){ .time = virtual_loop_new(7, SECONDS(1767323045)) };
    k->loop = virtual_loop_view_new(k->time, 0);
    k->keep.labels = &k->labels;
    intern_init(&k->labels, 3, 4);
    store_init(&k->store, &node_kind, k, 9);
    fake_api_init(&k->api);
    client_init(&k->client, k->loop, &k->api.api);
    writer_init(&k->writer, &k->client, &rules);
    keeper_observe(k, 5);
    CHECK(store_take(&k->store) != NULL);
}

static void keeper_end(struct keeper *k)
{
    writer_cancel(&k->writer);
    CHECK_EQ(k->client.urgent, 0);
    CHECK_EQ(k->api.call_count, 0);
    fake_api_done(&k->api);
    store_done(&k->store);
    intern_done(&k->labels);
    virtual_loop_view_free(k->loop);
    virtual_loop_free(k->time);
}

static void keeper_on_reply(void *ctx, const struct api_reply *reply)
{
    struct keeper *k = ctx;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    k->verdict = writer_on_reply(&k->writer, reply, &k->store, STR("n1"), &r);
    k->replies++;
    k->has_object = r.object != NULL;
    k->unreadable = r.unreadable;
    k->err = r.err;
}

static uint64_t keeper_version(const struct keeper *k)
{
    return store_find(&k->store, STR("n1"))->version;
}

static void keeper_send(struct keeper *k, enum api_verb verb)
{
    const struct api_request request = { .verb = verb, .path = STR("/n1"), .body = STR("{}") };
    writer_send(&k->writer, &request, keeper_version(k), keeper_on_reply, k);
    CHECK_EQ(k->client.urgent, 1);
}

/* Sends and is answered; the wait that follows. */
static usec_t keeper_try(struct keeper *k, enum api_verb verb, int status, const char *body)
{
    keeper_send(k, verb);
    fake_call_reply(&k->api, fake_call_first(&k->api), status, str_from(body));
    CHECK_EQ(k->client.urgent, 0);
    CHECK(k->writer.call == NULL);
    return writer_retry_at(&k->writer, keeper_version(k)) - loop_now(k->loop);
}

#define NODE_6 "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u\",\"resourceVersion\":\"6\"}}"

TEST(writer_sends_a_merge_patch_and_learns_what_the_server_made_of_it)
{
    struct keeper k;
    keeper_begin(&k);
    keeper_send(&k, API_PATCH);
    struct fake_call *call = fake_call_first(&k.api);
    CHECK_STR(call->content_type, API_MERGE_PATCH);
    CHECK_STR(call->path, STR("/n1"));
    fake_call_reply(&k.api, call, 200, STR(NODE_6));
    CHECK_EQ(k.verdict, RETRY_DONE);
    CHECK(k.has_object);
    CHECK_EQ(keeper_version(&k), 6);
    CHECK(!writer_must_read(&k.writer, 6));
    CHECK(writer_ready_at(&k.writer, 6) <= loop_now(k.loop));
    keeper_end(&k);
}

TEST(writer_waits_after_a_conflict_until_a_newer_version_comes)
{
    struct keeper k;
    keeper_begin(&k);
    usec_t wait = keeper_try(&k, API_PATCH, 409, "{\"message\":\"conflict\"}");
    CHECK_EQ(k.verdict, RETRY_OBSERVE);
    CHECK(wait >= MSECONDS(50) && wait <= MSECONDS(100));
    CHECK(writer_must_read(&k.writer, 5));
    CHECK(!writer_must_read(&k.writer, 6));
    CHECK_EQ(writer_retry_at(&k.writer, 6), 0);
    /* The newer version marks the object, although nothing of it has changed. */
    CHECK(store_take(&k.store) == NULL);
    keeper_observe(&k, 6);
    CHECK(store_take(&k.store) != NULL);
    /* A write of the newer version needs no read. */
    keeper_send(&k, API_PATCH);
    CHECK(!writer_must_read(&k.writer, 6));
    keeper_end(&k);
}

TEST(writer_marks_an_object_whose_newer_version_came_before_the_conflict)
{
    struct keeper k;
    keeper_begin(&k);
    keeper_send(&k, API_PATCH);
    keeper_observe(&k, 6);
    CHECK(store_take(&k.store) == NULL);
    fake_call_reply(&k.api, fake_call_first(&k.api), 409, STR("{}"));
    CHECK(store_take(&k.store) != NULL);
    CHECK_EQ(writer_retry_at(&k.writer, keeper_version(&k)), 0);
    keeper_end(&k);
}

TEST(writer_waits_longer_for_what_the_server_refuses)
{
    static const int statuses[] = { 403, 422 };
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct keeper k;
        check_case(statuses[i]);
        keeper_begin(&k);
        usec_t wait = keeper_try(&k, API_PATCH, statuses[i], "{\"message\":\"no\"}");
        CHECK_EQ(k.verdict, RETRY_REFUSED);
        CHECK(wait >= SECONDS(5) && wait <= SECONDS(10));
        CHECK(str_ends(str_from(k.err.msg), STR(": no")));
        /* The next failure is of another sort, and begins with a short wait. */
        wait = keeper_try(&k, API_PATCH, 500, "");
        CHECK(wait >= MSECONDS(250) && wait <= MSECONDS(500));
        keeper_end(&k);
    }
}

TEST(writer_obeys_retry_after_for_its_own_object_alone)
{
    struct keeper k;
    keeper_begin(&k);
    keeper_send(&k, API_PATCH);
    fake_call_reply_with(
        &k.api, fake_call_first(&k.api),
        &(struct api_reply){ .status = 429,
                             .body = STR("{\"kind\":\"Status\",\"details\":{\"name\":\"n1\"}}"),
                             .retry_after = SECONDS(20) });
    CHECK_EQ(k.verdict, RETRY_LATER);
    CHECK_EQ(writer_ready_at(&k.writer, 5) - loop_now(k.loop), SECONDS(20));
    CHECK(client_open(&k.client)); /* others go on */
    keeper_end(&k);
}

TEST(writer_reads_before_it_writes_again_after_a_failure)
{
    struct keeper k;
    keeper_begin(&k);
    keeper_send(&k, API_PATCH);
    fake_call_fail(&k.api, fake_call_first(&k.api), ERR_TIMEOUT);
    CHECK_EQ(k.verdict, RETRY_QUIET);
    CHECK(writer_must_read(&k.writer, 5));
    CHECK(writer_retry_at(&k.writer, 6) > loop_now(k.loop)); /* whatever version comes */
    CHECK(writer_ready_at(&k.writer, 5) >= client_open_at(&k.client));
    (void)keeper_try(&k, API_GET, 500, "");
    CHECK(writer_must_read(&k.writer, 5));
    (void)keeper_try(&k, API_GET, 200, NODE_6);
    CHECK(!writer_must_read(&k.writer, 6));
    keeper_end(&k);
}

TEST(writer_waits_grow_until_a_write_succeeds)
{
    struct keeper k;
    keeper_begin(&k);
    usec_t full = MSECONDS(500);
    for (int i = 0; i < 10; i++) {
        usec_t wait = keeper_try(&k, API_PATCH, 500, "");
        CHECK(wait >= full / 2 && wait <= full);
        full = MIN(full * 2, SECONDS(30));
        (void)keeper_try(&k, API_GET, 200, NODE_6); /* proves nothing about writes */
    }
    (void)keeper_try(&k, API_PATCH, 200, NODE_6);
    CHECK(keeper_try(&k, API_PATCH, 500, "") <= MSECONDS(500));
    keeper_end(&k);
}

TEST(writer_does_not_wait_where_its_rules_have_no_wait)
{
    struct keeper k;
    keeper_begin(&k);
    CHECK(keeper_try(&k, API_PATCH, 404, "{}") <= 0);
    CHECK_EQ(k.verdict, RETRY_ABSENT);
    writer_back_off(&k.writer);
    CHECK(writer_retry_at(&k.writer, 5) >= loop_now(k.loop) + MSECONDS(250));
    keeper_end(&k);
}

TEST(writer_takes_an_answer_that_it_cannot_read_for_a_failure)
{
    static const char *const bodies[] = { "{", "{}", "{\"metadata\":{\"name\":\"n1\"}}" };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct keeper k;
        check_case((int64_t)i);
        keeper_begin(&k);
        usec_t wait = keeper_try(&k, API_PATCH, 200, bodies[i]);
        CHECK_EQ(k.verdict, RETRY_LATER);
        CHECK(k.unreadable && !k.has_object);
        CHECK(str_starts(str_from(k.err.msg), STR("the answer cannot be read: ")));
        CHECK(wait >= MSECONDS(250));
        CHECK(writer_must_read(&k.writer, 5));
        keeper_end(&k);
    }
}

TEST(writer_learns_nothing_from_the_answer_to_a_deletion)
{
    struct keeper k;
    keeper_begin(&k);
    (void)keeper_try(&k, API_DELETE, 200, "{\"kind\":\"Status\"}");
    CHECK_EQ(k.verdict, RETRY_DONE);
    CHECK(!k.has_object && !k.unreadable);
    CHECK_EQ(keeper_version(&k), 5);
    keeper_end(&k);
}

TEST(writer_cancel_ends_what_is_in_flight)
{
    struct keeper k;
    keeper_begin(&k);
    keeper_send(&k, API_PATCH);
    writer_cancel(&k.writer);
    CHECK(k.writer.call == NULL);
    CHECK_EQ(k.client.urgent, 0);
    CHECK_EQ(k.replies, 0);
    keeper_end(&k);
}

TEST(writer_prints_the_version_that_a_request_was_decided_on)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    writer_print_delete(STR("u"), 7, &out);
    CHECK_STR(buf_str(&out),
              STR("{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":"
                  "{\"resourceVersion\":\"7\",\"uid\":\"u\"}}"));
    writer_print_delete(STR("u"), 0, &out);
    CHECK_STR(buf_str(&out), STR("{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                                 "\"preconditions\":{\"uid\":\"u\"}}"));
    buf_reset(&out);
    struct json_writer w = json_writer_on(&out);
    jw_obj(&w);
    writer_add_version(&w, 7);
    jw_obj_end(&w);
    CHECK_STR(buf_str(&out), STR("{\"metadata\":{\"resourceVersion\":\"7\"}}"));
    buf_reset(&out);
    w = json_writer_on(&out);
    jw_obj(&w);
    writer_add_version(&w, 0);
    jw_obj_end(&w);
    CHECK_STR(buf_str(&out), STR("{}"));
}
