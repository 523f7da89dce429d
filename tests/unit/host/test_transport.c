#include "host/transport.h"

#include "base/arena.h"
#include "base/buf.h"
#include "tests/check.h"
#include "tests/lib/certs.h"
#include "tests/lib/byte_server.h"

#include <sys/stat.h>
#include <unistd.h>

/* What a reader saw, in order, as text: "200 body;" or "!timeout;". */
struct story {
    struct loop *loop;
    struct byte_server *byte_server;
    struct api *api;
    struct arena memory;
    struct cluster_access access;
    struct err err;
    struct buf seen;
    char last[512]; /* the last error's sentence */
    usec_t retry_after;
    usec_t date;
    uint32_t replies;
    struct api_call *to_cancel;
    struct api_watch *watch;
    bool stop_at_line;
    bool free_at_reply;
    uint32_t lines;
    bool over;
    /* the peer's side */
    struct buf asked;
    struct byte_server_conn *held[8];
    uint32_t held_n;
    uint32_t step;
};

static void story_begin(struct story *s, SSL_CTX *tls, byte_server_handler handler)
{
    *s = (struct story){ .loop = host_loop_new() };
    s->byte_server = byte_server_new(s->loop, tls, handler, s);
    s->access.server = arena_printf(&s->memory, "%s://127.0.0.1:%u", tls != NULL ? "https" : "http",
                                    byte_server_port(s->byte_server));
}

static void story_open(struct story *s)
{
    s->api = transport_new(s->loop, &s->access, &s->err);
    CHECK_STR(s->err.msg, "");
    CHECK(s->api != NULL);
}

static void story_end(struct story *s)
{
    transport_free(s->api);
    byte_server_free(s->byte_server);
    host_loop_free(s->loop);
    arena_done(&s->memory);
    buf_done(&s->seen);
    buf_done(&s->asked);
}

static void on_reply(void *ctx, const struct api_reply *reply)
{
    struct story *s = ctx;
    if (reply->err != NULL) {
        CHECK_EQ(reply->status, 0);
        buf_printf(&s->seen, "!%s;", err_code_name(reply->err->code));
        memcpy(s->last, reply->err->msg, sizeof(s->last));
    } else {
        buf_printf(&s->seen, "%d " STR_FMT ";", reply->status,
                   STR_ARG(str_sub(reply->body, 0, 60)));
    }
    s->retry_after = reply->retry_after;
    s->date = reply->date;
    s->replies++;
    if (s->free_at_reply) {
        transport_free(STEAL(s->api));
    }
}

static void on_event(void *ctx, const struct api_watch_event *event)
{
    struct story *s = ctx;
    switch (event->kind) {
    case API_WATCH_OPEN:
        buf_printf(&s->seen, "open %d;", event->status);
        break;
    case API_WATCH_LINE:
        s->lines++;
        buf_printf(&s->seen, STR_FMT ";", STR_ARG(str_sub(event->line, 0, 60)));
        if (s->stop_at_line) {
            api_watch_stop(s->api, STEAL(s->watch));
            s->over = true;
        }
        break;
    case API_WATCH_END:
        s->over = true;
        s->retry_after = event->retry_after;
        if (event->err != NULL) {
            buf_printf(&s->seen, "!%s;", err_code_name(event->err->code));
            memcpy(s->last, event->err->msg, sizeof(s->last));
        } else {
            buf_printf(&s->seen, "end %d " STR_FMT ";", event->status, STR_ARG(event->line));
        }
        break;
    }
}

static struct api_call *get(struct story *s, const char *path)
{
    const struct api_request request = { .verb = API_GET, .path = str_from(path) };
    return api_send(s->api, &request, on_reply, s);
}

static void watch(struct story *s, usec_t silence_max)
{
    struct api_watch_spec spec = { STR("/w?watch=1"), API_METADATA, silence_max };
    s->watch = api_watch(s->api, &spec, on_event, s);
}

/* Answers every request at once, with its verb and path. */
static void answer(void *ctx, struct byte_server_conn *conn,
                   const struct byte_server_request *request)
{
    struct story *s = ctx;
    buf_printf(&s->asked, STR_FMT " " STR_FMT ";", STR_ARG(request->method),
               STR_ARG(request->path));
    byte_server_reply(conn, 200, STR_NONE, request->path);
}

/* Keeps every request waiting. */
static void hold(void *ctx, struct byte_server_conn *conn,
                 const struct byte_server_request *request)
{
    struct story *s = ctx;
    buf_printf(&s->asked, STR_FMT ";", STR_ARG(request->path));
    ASSERT(s->held_n < ARRAY_LEN(s->held));
    s->held[s->held_n++] = conn;
}

TEST(transport_sends_and_keeps_the_connection)
{
    struct story s;
    story_begin(&s, NULL, answer);
    story_open(&s);
    for (uint32_t i = 0; i < 3; i++) {
        (void)get(&s, "/a");
        CHECK_EQ(s.replies, i); /* nobody is called from inside api_send */
        RUN_UNTIL(s.loop, s.replies == i + 1);
    }
    CHECK_STR(buf_str(&s.seen), "200 /a;200 /a;200 /a;");
    CHECK_EQ(byte_server_conns_accepted(s.byte_server), 1);
    struct transport_stats stats = transport_stats(s.api);
    CHECK_EQ(stats.sent[API_GET], 3);
    CHECK_EQ(stats.replies[2], 3);
    CHECK_EQ(stats.in_flight, 0);
    CHECK_EQ(stats.queued, 0);
    CHECK_EQ(stats.connections, 1);
    story_end(&s);
}

static void describe(void *ctx, struct byte_server_conn *conn,
                     const struct byte_server_request *request)
{
    struct story *s = ctx;
    buf_printf(&s->asked, STR_FMT " " STR_FMT " [" STR_FMT "] " STR_FMT ";",
               STR_ARG(request->method), STR_ARG(request->path),
               STR_ARG(byte_server_request_header(request, STR("Content-Type"))),
               STR_ARG(request->body));
    struct str accept = str_eq(request->path, STR("/p")) ? API_METADATA : API_JSON;
    CHECK_STR(byte_server_request_header(request, STR("Accept")), accept);
    CHECK_STR(byte_server_request_header(request, STR("User-Agent")), "drydock/" DRYDOCK_VERSION);
    CHECK_STR(byte_server_request_header(request, STR("Sec-Drydock-Client")), "1");
    CHECK(byte_server_request_header(request, STR("Expect")).p == NULL);
    CHECK(byte_server_request_header(request, STR("Accept-Encoding")).p == NULL);
    CHECK(byte_server_request_header(request, STR("Cookie")).p == NULL);
    byte_server_reply(conn, 200, STR("Set-Cookie: a=b\r\n"), STR("{}"));
}

TEST(transport_sends_every_verb_one_after_the_other_on_one_handle)
{
    struct story s;
    story_begin(&s, NULL, describe);
    story_open(&s);
    struct api_request requests[] = {
        { .verb = API_PATCH,
          .path = STR("/p"),
          .content_type = API_MERGE_PATCH,
          .accept = API_METADATA,
          .body = STR("{1}") },
        { .verb = API_GET, .path = STR("/g?limit=1%2F") },
        { .verb = API_POST, .path = STR("/c"), .body = STR("{2}") },
        { .verb = API_DELETE, .path = STR("/d") },
        { .verb = API_PUT, .path = STR("/u"), .body = STR("{3}") },
        { .verb = API_DELETE, .path = STR("/../d"), .body = STR("{4}") },
        { .verb = API_POST, .path = STR("/e") },
        { .verb = API_GET, .path = STR("/g") },
    };
    for (uint32_t i = 0; i < ARRAY_LEN(requests); i++) {
        (void)api_send(s.api, &requests[i], on_reply, &s);
        RUN_UNTIL(s.loop, s.replies == i + 1);
    }
    CHECK_STR(buf_str(&s.asked),
              "PATCH /p [application/merge-patch+json] {1};GET /g?limit=1%2F [] ;"
              "POST /c [application/json] {2};DELETE /d [] ;PUT /u [application/json] {3};"
              "DELETE /../d [application/json] {4};POST /e [application/json] ;GET /g [] ;");
    CHECK_EQ(byte_server_conns_accepted(s.byte_server), 1);
    story_end(&s);
}

TEST(transport_caps_what_is_in_flight_and_keeps_the_order)
{
    struct story s;
    story_begin(&s, NULL, hold);
    story_open(&s);
    transport_set_limits(s.api, &(struct transport_limits){ .requests_max = 2 });
    (void)get(&s, "/1");
    (void)get(&s, "/2");
    (void)get(&s, "/3");
    (void)get(&s, "/4");
    RUN_UNTIL(s.loop, s.held_n == 2);
    host_loop_turn(s.loop, MSECONDS(20));
    CHECK_EQ(s.held_n, 2);
    CHECK_EQ(transport_stats(s.api).in_flight, 2);
    CHECK_EQ(transport_stats(s.api).queued, 2);
    byte_server_reply(s.held[1], 200, STR_NONE, STR("x"));
    RUN_UNTIL(s.loop, s.held_n == 3);
    byte_server_reply(s.held[0], 200, STR_NONE, STR("x"));
    RUN_UNTIL(s.loop, s.held_n == 4);
    CHECK(str_ends(buf_str(&s.asked), STR("/3;/4;")));
    CHECK_EQ(byte_server_conns_accepted(s.byte_server), 2);
    story_end(&s); /* two are still in flight */
}

TEST(transport_ends_a_request_at_its_deadline_queued_or_sent)
{
    struct story s;
    story_begin(&s, NULL, hold);
    story_open(&s);
    transport_set_limits(s.api, &(struct transport_limits){ .requests_max = 1 });
    struct api_request slow = { .path = STR("/1"), .timeout = SECONDS(3) };
    struct api_request queued = { .path = STR("/2"), .timeout = SECONDS(1) };
    (void)api_send(s.api, &slow, on_reply, &s);
    (void)api_send(s.api, &queued, on_reply, &s);
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK(str_ends(str_from(s.last), STR("no answer in 1000 ms, while it waited in the queue")));
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK(str_ends(str_from(s.last), STR("no answer in 3000 ms, from the server")));
    CHECK(str_starts(str_from(s.last), STR("server 'http://127.0.0.1:")));
    CHECK_STR(buf_str(&s.seen), "!timeout;!timeout;");
    CHECK_STR(buf_str(&s.asked), "/1;");
    CHECK_EQ(transport_stats(s.api).replies[0], 2);
    CHECK_EQ(transport_stats(s.api).queued, 0);
    CHECK_EQ(transport_stats(s.api).in_flight, 0);
    story_end(&s);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    (void)fputs(text, f);
    (void)fclose(f);
}

static struct api_call *get_alone(struct story *s, const char *path)
{
    const struct api_request request = {
        .verb = API_GET,
        .path = str_from(path),
        .own_connection = true,
    };
    return api_send(s->api, &request, on_reply, s);
}

static void hold_but_renewals(void *ctx, struct byte_server_conn *conn,
                              const struct byte_server_request *request)
{
    if (str_starts(request->path, STR("/renew"))) {
        byte_server_reply(conn, 200, STR_NONE, request->path);
    } else {
        hold(ctx, conn, request);
    }
}

TEST(transport_request_with_its_own_connection_overtakes_a_full_queue)
{
    struct story s;
    story_begin(&s, NULL, hold_but_renewals);
    story_open(&s);
    transport_set_limits(s.api, &(struct transport_limits){ .requests_max = 4 });
    for (int i = 0; i < 5000; i++) {
        (void)get(&s, "/busy");
    }
    (void)get_alone(&s, "/renew/1");
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_STR(buf_str(&s.seen), "200 /renew/1;");
    RUN_UNTIL(s.loop, s.held_n == 4);
    CHECK_EQ(transport_stats(s.api).queued, 4996);
    (void)get_alone(&s, "/renew/2");
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK_EQ(transport_stats(s.api).own, 0);
    CHECK_EQ(byte_server_conns_accepted(s.byte_server), 5); /* both renewals had the same one */
    story_end(&s);
}

TEST(transport_leaves_the_own_connection_alone_when_it_is_idle)
{
    struct story s;
    story_begin(&s, NULL, answer);
    story_open(&s);
    (void)get_alone(&s, "/renew/1");
    RUN_UNTIL(s.loop, s.replies == 1);
    (void)get(&s, "/a");
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK_EQ(byte_server_conns_accepted(s.byte_server), 2);
    (void)get_alone(&s, "/renew/2");
    (void)get(&s, "/b");
    RUN_UNTIL(s.loop, s.replies == 4);
    CHECK_EQ(byte_server_conns_accepted(s.byte_server), 2);
    story_end(&s);
}

/* The plugin ends when the test lets it, after the timeout of the request. */
TEST(transport_counts_the_timeout_of_an_own_request_from_its_sending)
{
    struct story s;
    story_begin(&s, NULL, answer);
    char path[] = "/tmp/drydock-fifo-XXXXXX";
    CHECK(mkdtemp(path) != NULL);
    const char *fifo = arena_printf(&s.memory, "%s/go", path).p;
    CHECK_EQ(mkfifo(fifo, 0600), 0);
    const struct str args[] = {
        STR("-c"),
        arena_printf(&s.memory,
                     "read go <%s; echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\","
                     "\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}'",
                     fifo),
    };
    s.access.exec = (struct access_exec){
        .command = STR("/bin/sh"),
        .args = args,
        .args_n = 2,
        .api_version = STR("client.authentication.k8s.io/v1"),
    };
    story_open(&s);
    const struct api_request queued = { .path = STR("/1"), .timeout = SECONDS(1) };
    const struct api_request own = { .path = STR("/2"),
                                     .timeout = SECONDS(1),
                                     .own_connection = true };
    (void)api_send(s.api, &own, on_reply, &s);
    (void)api_send(s.api, &queued, on_reply, &s);
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_STR(buf_str(&s.seen), "!timeout;"); /* the ordinary one: it counts from the beginning */
    write_file(fifo, "go\n");
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK_STR(buf_str(&s.seen), "!timeout;200 /2;");
    (void)unlink(fifo);
    (void)rmdir(path);
    story_end(&s);
}

TEST(transport_says_that_nobody_listens)
{
    struct story s;
    story_begin(&s, NULL, answer);
    byte_server_free(STEAL(s.byte_server));
    story_open(&s);
    (void)get(&s, "/");
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_STR(buf_str(&s.seen), "!I/O;");
    CHECK(str_ends(str_from(s.last), STR(": cannot connect: Connection refused")));
    story_end(&s);
}

static void too_many(void *ctx UNUSED, struct byte_server_conn *conn,
                     const struct byte_server_request *request)
{
    if (str_eq(request->path, STR("/date"))) {
        time_t at = time(NULL) + 90;
        char line[96];
        struct tm tm;
        size_t n = strftime(line, sizeof(line), "Retry-After: %a, %d %b %Y %H:%M:%S GMT\r\n",
                            OPENSSL_gmtime(&at, &tm));
        byte_server_reply(conn, 429, (struct str){ .p = line, .n = n }, STR("{}"));
        return;
    }
    struct str dated = STR("Retry-After: 7\r\nDate: Fri, 02 Jan 2026 03:04:05 GMT\r\n");
    struct str late = STR("Retry-After: 999999\r\n");
    byte_server_reply(conn, 429, str_eq(request->path, STR("/long")) ? late : dated, STR("{}"));
}

TEST(transport_reads_retry_after_and_the_servers_time)
{
    struct story s;
    story_begin(&s, NULL, too_many);
    story_open(&s);
    (void)get(&s, "/seconds");
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_EQ(s.retry_after, SECONDS(7));
    CHECK_EQ(s.date, SECONDS(1767323045));
    (void)get(&s, "/date");
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK(s.retry_after > SECONDS(80) && s.retry_after <= SECONDS(90));
    (void)get(&s, "/long");
    RUN_UNTIL(s.loop, s.replies == 3);
    CHECK_EQ(s.retry_after, HOURS(1));
    CHECK_EQ(s.date, 0); /* it did not say */
    CHECK_STR(buf_str(&s.seen), "429 {};429 {};429 {};");
    CHECK_EQ(transport_stats(s.api).replies[4], 3);
    story_end(&s);
}

static void long_answer(void *ctx UNUSED, struct byte_server_conn *conn,
                        const struct byte_server_request *request)
{
    static char bytes[1001];
    memset(bytes, 'x', sizeof(bytes));
    byte_server_reply(
        conn, 200, STR_NONE,
        (struct str){ .p = bytes, .n = str_eq(request->path, STR("/fits")) ? 1000 : 1001 });
}

TEST(transport_refuses_an_answer_above_the_limit)
{
    struct story s;
    story_begin(&s, NULL, long_answer);
    story_open(&s);
    transport_set_limits(s.api, &(struct transport_limits){ .reply_bytes_max = 1000 });
    (void)get(&s, "/fits");
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK(str_starts(buf_str(&s.seen), STR("200 xxx")));
    (void)get(&s, "/long");
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK(str_ends(buf_str(&s.seen), STR("!limit;")));
    CHECK(str_ends(str_from(s.last), STR(": the answer is longer than 1000 bytes")));
    story_end(&s);
}

/* Answers that are none: what comes, and what is said about it. */
static const struct {
    const char *bytes;
    const char *code;
    const char *words;
} broken[] = {
    { "", "!I/O;", "closed the connection without an answer" },
    { "SSH-2.0-OpenSSH_9.2\r\n", "!protocol;", "the answer is not HTTP" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "!I/O;", "the answer broke off" },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "!I/O;",
      "the answer broke off" },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "!I/O;",
      "the answer broke off" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na", "", "" },
};

static void answer_broken(void *ctx, struct byte_server_conn *conn,
                          const struct byte_server_request *request UNUSED)
{
    struct story *s = ctx;
    byte_server_write(conn, str_from(broken[s->step].bytes));
    byte_server_close(conn);
}

TEST(transport_names_answers_that_are_none)
{
    struct story s;
    story_begin(&s, NULL, answer_broken);
    story_open(&s);
    for (s.step = 0; s.step < ARRAY_LEN(broken); s.step++) {
        buf_reset(&s.seen);
        (void)get(&s, "/");
        RUN_UNTIL(s.loop, s.replies == s.step + 1);
        if (broken[s.step].code[0] != '\0') {
            CHECK_STR(buf_str(&s.seen), broken[s.step].code);
            CHECK(str_contains(str_from(s.last), str_from(broken[s.step].words)));
        }
    }
    story_end(&s);
}

/* Takes the second request on a connection and closes without a word, as a server does that closes
 * an idle connection just when the request is under way. */
static void close_second(void *ctx, struct byte_server_conn *conn,
                         const struct byte_server_request *request)
{
    struct story *s = ctx;
    buf_printf(&s->asked, "%u:" STR_FMT ";", request->conn_number, STR_ARG(request->method));
    if (request->conn_requests == 2) {
        byte_server_close(conn);
        return;
    }
    byte_server_reply(conn, 200, STR_NONE, STR("x"));
}

TEST(transport_repeats_a_request_that_a_used_connection_swallowed)
{
    static const enum api_verb verbs[] = { API_GET, API_PATCH, API_POST };
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        struct story s;
        story_begin(&s, NULL, close_second);
        story_open(&s);
        (void)get(&s, "/");
        RUN_UNTIL(s.loop, s.replies == 1);
        struct api_request request = { .verb = verbs[i],
                                       .path = STR("/"),
                                       .body = i > 0 ? STR("{}") : STR_NONE };
        (void)api_send(s.api, &request, on_reply, &s);
        RUN_UNTIL(s.loop, s.replies == 2);
        CHECK_STR(buf_str(&s.seen), "200 x;200 x;");
        CHECK_EQ(byte_server_conns_accepted(s.byte_server), 2);
        CHECK_STR(buf_str(&s.asked), i == 0   ? "1:GET;1:GET;2:GET;"
                                     : i == 1 ? "1:GET;1:PATCH;2:PATCH;"
                                              : "1:GET;1:POST;2:POST;");
        story_end(&s);
    }
}

/* …but not when the connection was fresh, nor after the first line of an answer. */
static void close_always(void *ctx, struct byte_server_conn *conn,
                         const struct byte_server_request *request)
{
    struct story *s = ctx;
    buf_printf(&s->asked, "%u;", request->conn_number);
    if (str_eq(request->path, STR("/ok"))) {
        byte_server_reply(conn, 200, STR_NONE, STR("x"));
        return;
    }
    if (str_eq(request->path, STR("/line"))) {
        byte_server_write(conn, STR("HTTP/1.1 200 OK\r\n"));
    }
    byte_server_close(conn);
}

TEST(transport_repeats_nothing_else)
{
    struct story s;
    story_begin(&s, NULL, close_always);
    story_open(&s);
    (void)get(&s, "/fresh");
    RUN_UNTIL(s.loop, s.replies == 1);
    (void)get(&s, "/ok");
    RUN_UNTIL(s.loop, s.replies == 2);
    (void)get(&s, "/line");
    RUN_UNTIL(s.loop, s.replies == 3);
    CHECK_STR(buf_str(&s.asked), "1;2;2;");
    CHECK_STR(buf_str(&s.seen), "!I/O;200 x;!I/O;");
    CHECK(str_ends(str_from(s.last), STR(": the answer broke off in its headers")));
    story_end(&s);
}

TEST(transport_cancels_in_flight_queued_and_answered)
{
    struct story s;
    story_begin(&s, NULL, hold);
    story_open(&s);
    transport_set_limits(s.api, &(struct transport_limits){ .requests_max = 1 });
    struct api_call *first = get(&s, "/1");
    struct api_call *second = get(&s, "/2");
    (void)get(&s, "/3");
    RUN_UNTIL(s.loop, s.held_n == 1);
    api_cancel(s.api, second);
    api_cancel(s.api, first);
    RUN_UNTIL(s.loop, s.held_n == 2);
    CHECK_STR(buf_str(&s.asked), "/1;/3;");
    byte_server_reply(s.held[1], 200, STR_NONE, STR("x"));
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_EQ(transport_stats(s.api).queued, 0);
    CHECK_EQ(transport_stats(s.api).in_flight, 0);
    story_end(&s);
}

TEST(transport_may_be_freed_from_inside_a_callback)
{
    struct story s;
    story_begin(&s, NULL, answer);
    story_open(&s);
    s.free_at_reply = true;
    (void)get(&s, "/1");
    (void)get(&s, "/2");
    (void)get(&s, "/3");
    watch(&s, 0);
    RUN_UNTIL(s.loop, s.api == NULL);
    CHECK_EQ(s.replies, 1);
    story_end(&s);
}

static void refuse_unless_fresh(void *ctx, struct byte_server_conn *conn,
                                const struct byte_server_request *request)
{
    struct story *s = ctx;
    struct str token = byte_server_request_header(request, STR("Authorization"));
    buf_printf(&s->asked, STR_FMT ";", STR_ARG(token));
    byte_server_reply(conn, str_eq(token, STR("Bearer new")) ? 200 : 401, STR_NONE, STR("x"));
}

TEST(transport_reads_the_token_file_again_after_a_401)
{
    struct story s;
    story_begin(&s, NULL, refuse_unless_fresh);
    char path[] = "/tmp/drydock-token-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    (void)close(fd);
    write_file(path, "old\n");
    s.access.token_file = str_from(path);
    story_open(&s);
    (void)get(&s, "/");
    RUN_UNTIL(s.loop, s.replies == 1);
    write_file(path, "new\n");
    (void)get(&s, "/");
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK_STR(buf_str(&s.seen), "401 x;200 x;");
    CHECK_STR(buf_str(&s.asked), "Bearer old;Bearer new;");
    (void)unlink(path);
    story_end(&s);
}

TEST(transport_fails_requests_and_lives_on_when_the_token_cannot_be_read)
{
    struct story s;
    story_begin(&s, NULL, refuse_unless_fresh);
    s.access.token_file = STR("/nonexistent/token");
    story_open(&s);
    (void)get(&s, "/");
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK(str_ends(str_from(s.last),
                   STR(": token: file '/nonexistent/token': No such file or directory")));
    CHECK_EQ(byte_server_conns_accepted(s.byte_server), 0);
    CHECK_EQ(transport_stats(s.api).queued, 0);
    story_end(&s);
}

TEST(transport_speaks_basic_authentication_and_impersonates)
{
    struct story s;
    story_begin(&s, NULL, refuse_unless_fresh);
    struct str groups[] = { STR("a"), STR("b") };
    s.access.username = STR("Aladdin");
    s.access.password = STR("open sesame");
    s.access.impersonate_user = STR("jane");
    s.access.impersonate_groups = groups;
    s.access.impersonate_groups_n = 2;
    s.access.server =
        arena_printf(&s.memory, "http://127.0.0.1:%u/prefix/", byte_server_port(s.byte_server));
    story_open(&s);
    (void)get(&s, "/");
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_STR(buf_str(&s.asked), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==;");
    story_end(&s);
}

static void refuse_first(void *ctx, struct byte_server_conn *conn,
                         const struct byte_server_request *request)
{
    struct story *s = ctx;
    buf_printf(&s->asked, STR_FMT ";",
               STR_ARG(byte_server_request_header(request, STR("Authorization"))));
    byte_server_reply(conn, s->step++ == 0 ? 401 : 200, STR_NONE, STR("x"));
}

TEST(transport_holds_requests_back_while_a_plugin_runs)
{
    static const struct str args[] = {
        STR_INIT("-c"),
        STR_INIT("echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
                 "\"ExecCredential\",\"status\":{\"token\":\"'$$'\"}}'"),
    };
    struct story s;
    story_begin(&s, NULL, refuse_first);
    s.access.exec = (struct access_exec){
        .command = STR("/bin/sh"),
        .args = args,
        .args_n = 2,
        .api_version = STR("client.authentication.k8s.io/v1"),
    };
    story_open(&s);
    transport_set_limits(s.api, &(struct transport_limits){ .requests_max = 1 });
    (void)get(&s, "/");
    (void)get(&s, "/");
    (void)get(&s, "/");
    host_loop_turn(s.loop, 0);
    CHECK_EQ(transport_stats(s.api).queued, 3);
    RUN_UNTIL(s.loop, s.replies == 3);
    CHECK_STR(buf_str(&s.seen), "401 x;200 x;200 x;");
    /* One run served all: after a refusal the plugin rests before it is asked again. */
    struct str first;
    struct str second;
    struct str rest;
    (void)str_cut(buf_str(&s.asked), STR(";"), &first, &rest);
    (void)str_cut(rest, STR(";"), &second, &rest);
    CHECK(str_starts(first, STR("Bearer ")));
    CHECK_STR(first, second);
    story_end(&s);
}

/* The server's name leads nowhere: only the proxy can have answered. */
TEST(transport_goes_through_a_proxy)
{
    struct story s;
    story_begin(&s, NULL, answer);
    s.access.proxy_url = arena_str(&s.memory, s.access.server);
    s.access.server = STR("http://server.invalid:8080");
    story_open(&s);
    (void)get(&s, "/a");
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_STR(buf_str(&s.asked), "GET http://server.invalid:8080/a;");
    CHECK_STR(buf_str(&s.seen), "200 http://server.invalid:8080/a;");
    story_end(&s);
}

static void refuse_tunnel(void *ctx, struct byte_server_conn *conn,
                          const struct byte_server_request *request)
{
    struct story *s = ctx;
    buf_printf(&s->asked, STR_FMT " " STR_FMT ";", STR_ARG(request->method),
               STR_ARG(request->path));
    byte_server_reply(conn, 403, STR_NONE, STR("no"));
}

TEST(transport_says_that_the_proxy_refused_the_tunnel)
{
    struct story s;
    story_begin(&s, NULL, refuse_tunnel);
    s.access.proxy_url = arena_str(&s.memory, s.access.server);
    s.access.server = STR("https://server.invalid:6443");
    s.access.tls_server_name = STR("other.invalid");
    story_open(&s);
    (void)get(&s, "/a");
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_STR(buf_str(&s.asked), "CONNECT server.invalid:6443;");
    CHECK(str_starts(str_from(s.last), STR("server 'https://server.invalid:6443': ")));
    CHECK(str_contains(str_from(s.last), STR("403")));
    story_end(&s);
}

/* ---- watches ---- */

static void stream_script(void *ctx, struct byte_server_conn *conn,
                          const struct byte_server_request *request)
{
    struct story *s = ctx;
    CHECK_STR(byte_server_request_header(request, STR("Accept")),
              request->path.n > 1 ? API_METADATA : API_JSON);
    s->held[0] = conn;
    s->held_n = 1;
    byte_server_stream(conn);
}

TEST(transport_watch_hands_out_lines_however_they_are_cut)
{
    static const struct str text = STR_INIT("{\"a\":1}\n{\"b\":\"\xc3\xa4\"}\n\n{\"c\":[]}\n");
    for (size_t cut = 0; cut <= text.n; cut++) {
        struct story s;
        story_begin(&s, NULL, stream_script);
        story_open(&s);
        watch(&s, SECONDS(60));
        RUN_UNTIL(s.loop, s.held_n == 1 && s.seen.n > 0);
        if (cut > 0) {
            byte_server_chunk(s.held[0], str_sub(text, 0, cut));
            uint64_t before = transport_stats(s.api).bytes_received;
            RUN_UNTIL(s.loop, transport_stats(s.api).bytes_received == before + cut);
        }
        if (cut < text.n) {
            byte_server_chunk(s.held[0], str_sub(text, cut, text.n));
        }
        byte_server_chunk(s.held[0], STR_NONE);
        RUN_UNTIL(s.loop, s.over);
        CHECK_STR(buf_str(&s.seen), "open 200;{\"a\":1};{\"b\":\"\xc3\xa4\"};{\"c\":[]};end 200 ;");
        CHECK_EQ(transport_stats(s.api).watches, 0);
        story_end(&s);
    }
}

TEST(transport_watch_ends_when_it_is_silent)
{
    struct story s;
    story_begin(&s, NULL, stream_script);
    story_open(&s);
    watch(&s, SECONDS(3));
    RUN_UNTIL(s.loop, s.held_n == 1);
    usec_t start = loop_now(s.loop);
    byte_server_chunk(s.held[0], STR("{}\n"));
    RUN_UNTIL(s.loop, s.over);
    CHECK(loop_now(s.loop) - start >= SECONDS(3));
    CHECK_STR(buf_str(&s.seen), "open 200;{};!timeout;");
    CHECK(str_ends(str_from(s.last), STR(": the watch was silent for 3000 ms")));
    RUN_UNTIL(s.loop, byte_server_conns_open(s.byte_server) == 0);
    story_end(&s);
}

TEST(transport_watch_ends_when_its_headers_trickle)
{
    struct story s;
    story_begin(&s, NULL, hold);
    story_open(&s);
    watch(&s, MSECONDS(300));
    RUN_UNTIL(s.loop, s.held_n == 1);
    byte_server_write(s.held[0], STR("HTTP/1.1 200 OK\r\n"));
    usec_t next = 0;
    while (!s.over) {
        if (loop_now(s.loop) >= next) {
            byte_server_write(s.held[0], STR("a: b\r\n"));
            next = loop_now(s.loop) + MSECONDS(20);
        }
        host_loop_turn(s.loop, MSECONDS(10));
    }
    CHECK_STR(buf_str(&s.seen), "!timeout;");
    story_end(&s);
}

TEST(transport_refuses_headers_above_the_limit)
{
    static const char *const first[] = { "HTTP/1.1 200 OK\r\n", "" };
    static const char *const more[] = { "a: b\r\n", "HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n" };
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        for (int watching = 0; watching < 2; watching++) {
            check_case((int64_t)i);
            struct story s;
            CLEANUP(buf_done)
            struct buf heads = { 0 };
            buf_add(&heads, str_from(first[i]));
            while (heads.n <= TRANSPORT_HEAD_BYTES_MAX) {
                buf_add(&heads, str_from(more[i]));
            }
            story_begin(&s, NULL, hold);
            story_open(&s);
            if (watching != 0) {
                watch(&s, SECONDS(60));
            } else {
                (void)get(&s, "/x");
            }
            RUN_UNTIL(s.loop, s.held_n == 1);
            byte_server_write(s.held[0], buf_str(&heads));
            RUN_UNTIL(s.loop, s.over || s.replies > 0);
            CHECK_STR(buf_str(&s.seen), "!limit;");
            CHECK(str_ends(str_from(s.last),
                           STR(": the head of the answer is longer than 65536 bytes")));
            story_end(&s);
        }
    }
    check_case(-1);
}

TEST(transport_watch_says_when_it_is_cut_within_a_line)
{
    struct story s;
    story_begin(&s, NULL, stream_script);
    story_open(&s);
    watch(&s, 0);
    RUN_UNTIL(s.loop, s.held_n == 1);
    byte_server_chunk(s.held[0], STR("{}\n{\"half"));
    byte_server_close(s.held[0]);
    RUN_UNTIL(s.loop, s.over);
    CHECK_STR(buf_str(&s.seen), "open 200;{};!I/O;");
    story_end(&s);

    story_begin(&s, NULL, stream_script);
    story_open(&s);
    watch(&s, 0);
    RUN_UNTIL(s.loop, s.held_n == 1);
    byte_server_chunk(s.held[0], STR("{}\n{\"half"));
    byte_server_chunk(s.held[0], STR_NONE);
    RUN_UNTIL(s.loop, s.over);
    CHECK_STR(buf_str(&s.seen), "open 200;{};!protocol;");
    story_end(&s);
}

TEST(transport_watch_refuses_a_line_above_the_limit)
{
    struct story s;
    story_begin(&s, NULL, stream_script);
    story_open(&s);
    transport_set_limits(s.api, &(struct transport_limits){ .line_bytes_max = 1000 });
    watch(&s, 0);
    RUN_UNTIL(s.loop, s.held_n == 1);
    char line[1001];
    memset(line, 'x', sizeof(line));
    line[999] = '\n';
    byte_server_chunk(s.held[0], (struct str){ .p = line, .n = 1000 });
    RUN_UNTIL(s.loop, s.lines == 1);
    line[999] = 'x';
    byte_server_chunk(s.held[0], (struct str){ .p = line, .n = 1001 });
    RUN_UNTIL(s.loop, s.over);
    CHECK(str_ends(buf_str(&s.seen), STR("!limit;")));
    CHECK(str_ends(str_from(s.last), STR(": a line of the watch is longer than 1000 bytes")));
    story_end(&s);
}

/* More than the backlog in one go: the stream is paused and goes on, and nothing is lost. */
TEST(transport_watch_survives_a_flood)
{
    struct story s;
    story_begin(&s, NULL, stream_script);
    story_open(&s);
    watch(&s, SECONDS(60));
    RUN_UNTIL(s.loop, s.held_n == 1);
    CLEANUP(buf_done)
    struct buf flood = { 0 };
    uint32_t lines = 20000;
    for (uint32_t i = 0; i < lines; i++) {
        buf_printf(&flood, "{\"line\":%u,\"filler\":\"................................\"}\n", i);
    }
    CHECK(flood.n > (size_t)1024 * 1024);
    byte_server_chunk(s.held[0], buf_str(&flood));
    byte_server_chunk(s.held[0], STR_NONE);
    RUN_UNTIL(s.loop, s.over);
    CHECK_EQ(s.lines, lines);
    CHECK(str_ends(buf_str(&s.seen), STR("end 200 ;")));
    story_end(&s);
}

static void refuse_watch(void *ctx UNUSED, struct byte_server_conn *conn,
                         const struct byte_server_request *request UNUSED)
{
    byte_server_reply(conn, 410, STR("Retry-After: 3\r\n"), STR("{\"code\":410}"));
}

TEST(transport_watch_hands_out_a_refusal_with_its_body)
{
    struct story s;
    story_begin(&s, NULL, refuse_watch);
    story_open(&s);
    watch(&s, 0);
    RUN_UNTIL(s.loop, s.over);
    CHECK_STR(buf_str(&s.seen), "end 410 {\"code\":410};");
    CHECK_EQ(s.retry_after, SECONDS(3));
    story_end(&s);
}

TEST(transport_watch_may_be_stopped_from_inside_its_callback)
{
    struct story s;
    story_begin(&s, NULL, stream_script);
    story_open(&s);
    s.stop_at_line = true;
    watch(&s, 0);
    RUN_UNTIL(s.loop, s.held_n == 1);
    byte_server_chunk(s.held[0], STR("{1}\n{2}\n"));
    RUN_UNTIL(s.loop, s.over);
    RUN_UNTIL(s.loop, byte_server_conns_open(s.byte_server) == 0);
    CHECK_STR(buf_str(&s.seen), "open 200;{1};");
    CHECK_EQ(transport_stats(s.api).watches, 0);
    story_end(&s);
}

TEST(transport_watches_wait_beyond_their_cap_and_hold_up_no_request)
{
    struct story s;
    story_begin(&s, NULL, stream_script);
    story_open(&s);
    transport_set_limits(s.api, &(struct transport_limits){ .watches_max = 1, .requests_max = 1 });
    watch(&s, 0);
    struct api_watch *first = s.watch;
    RUN_UNTIL(s.loop, s.seen.n > 0);
    watch(&s, 0);
    host_loop_turn(s.loop, MSECONDS(5));
    CHECK_EQ(transport_stats(s.api).watches, 1);
    CHECK_EQ(transport_stats(s.api).watches_queued, 1);
    (void)get(&s, "/");
    RUN_UNTIL(s.loop, byte_server_conns_accepted(s.byte_server) == 2);
    api_watch_stop(s.api, first);
    RUN_UNTIL(s.loop, byte_server_conns_accepted(s.byte_server) == 3);
    CHECK_EQ(transport_stats(s.api).sent_watch, 2);
    story_end(&s);
}
