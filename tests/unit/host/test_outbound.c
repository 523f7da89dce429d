#include "host/outbound.h"

#include "base/buf.h"
#include "host/file.h"
#include "tests/check.h"
#include "tests/lib/certs.h"
#include "tests/lib/byte_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What a reader saw, in order, as text: "200 body;" or "!timeout;". */
struct story {
    struct loop *loop;
    struct byte_server *byte_server;
    struct outbound *outbound;
    struct arena memory;
    struct buf seen;
    char last[512]; /* the last error's sentence */
    usec_t retry_after;
    char header[64]; /* the one that was asked for */
    uint32_t replies;
    bool free_at_reply;
    /* the peer's side */
    struct buf asked;
    const char *headers;
    int status;
    struct byte_server_conn *held[8];
    uint32_t held_n;
};

static void story_begin(struct story *s, SSL_CTX *tls, byte_server_handler handler)
{
    *s = (struct story){ .loop = host_loop_new(), .status = 200 };
    s->byte_server = byte_server_new(s->loop, tls, handler, s);
}

static void story_open(struct story *s, const struct host_outbound_config *config)
{
    s->outbound = host_outbound_new(s->loop, config);
}

static void story_end(struct story *s)
{
    host_outbound_free(s->outbound);
    byte_server_free(s->byte_server);
    host_loop_free(s->loop);
    arena_done(&s->memory);
    buf_done(&s->seen);
    buf_done(&s->asked);
}

static void on_reply(void *ctx, const struct outbound_reply *reply)
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
    (void)snprintf(s->header, sizeof(s->header), STR_FMT, STR_ARG(reply->header));
    s->replies++;
    if (s->free_at_reply) {
        host_outbound_free(STEAL(s->outbound));
    }
}

static struct str url(struct story *s, const char *scheme, const char *path)
{
    return arena_printf(&s->memory, "%s://127.0.0.1:%u%s", scheme, byte_server_port(s->byte_server),
                        path);
}

static struct outbound_call *post(struct story *s, struct str address, const char *body)
{
    struct outbound_header headers[] = { { STR("Content-Type"), STR("text/plain") },
                                         { STR("X-Empty"), STR("") } };
    struct outbound_request request = { .method = STR("POST"),
                                        .url = address,
                                        .headers = headers,
                                        .header_n = 2,
                                        .body = str_from(body) };
    return outbound_http(s->outbound, &request, on_reply, s);
}

/* Answers with the story's status and headers; the body is what was asked. */
static void answer(void *ctx, struct byte_server_conn *conn,
                   const struct byte_server_request *request)
{
    struct story *s = ctx;
    buf_printf(&s->asked, STR_FMT " " STR_FMT " " STR_FMT " '" STR_FMT "' " STR_FMT ";",
               STR_ARG(request->method), STR_ARG(request->path),
               STR_ARG(byte_server_request_header(request, STR("Content-Type"))),
               STR_ARG(byte_server_request_header(request, STR("X-Empty"))),
               STR_ARG(request->body));
    byte_server_reply(conn, s->status, str_from(s->headers), STR("ok"));
}

static void hold(void *ctx, struct byte_server_conn *conn,
                 const struct byte_server_request *request UNUSED)
{
    struct story *s = ctx;
    ASSERT(s->held_n < ARRAY_LEN(s->held));
    s->held[s->held_n++] = conn;
}

TEST(outbound_sends_method_headers_and_body)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, NULL, answer);
    story_open(&s, &(struct host_outbound_config){ 0 });
    (void)post(&s, url(&s, "http", "/a/../b?c=d"), "hello");
    CHECK_EQ(s.replies, 0);
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_STR(buf_str(&s.asked), "POST /a/../b?c=d text/plain '' hello;");
    CHECK_STR(buf_str(&s.seen), "200 ok;");
    CHECK_EQ(host_outbound_in_flight(s.outbound), 0);
    struct outbound_request request = { .method = STR("DELETE"), .url = url(&s, "http", "/x") };
    buf_reset(&s.asked);
    (void)outbound_http(s.outbound, &request, on_reply, &s);
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK_STR(buf_str(&s.asked), "DELETE /x  '' ;");
    CHECK_EQ(byte_server_conns_accepted(s.byte_server), 1); /* the connection is kept */
}

TEST(outbound_gives_every_status_and_follows_nothing)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, NULL, answer);
    story_open(&s, &(struct host_outbound_config){ 0 });
    s.status = 302;
    s.headers = "Location: /elsewhere\r\n";
    (void)post(&s, url(&s, "http", "/"), "x");
    RUN_UNTIL(s.loop, s.replies == 1);
    s.status = 429;
    s.headers = "Retry-After: 17\r\n";
    (void)post(&s, url(&s, "http", "/"), "x");
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK_EQ(s.retry_after, SECONDS(17));
    s.headers = "Retry-After: 999999\r\n";
    (void)post(&s, url(&s, "http", "/"), "x");
    RUN_UNTIL(s.loop, s.replies == 3);
    CHECK_EQ(s.retry_after, HOURS(1));
    CHECK_STR(buf_str(&s.seen), "302 ok;429 ok;429 ok;");
}

/* A URL is often a secret: what is wrong is told without it. */
TEST(outbound_gives_the_header_that_is_wanted)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, NULL, answer);
    story_open(&s, &(struct host_outbound_config){ 0 });
    struct outbound_request request = { .method = STR("GET"), .url = url(&s, "http", "/") };
    s.headers = "x-subject-token:  first \r\nX-Subject-Token: second\r\n";
    (void)outbound_http(s.outbound, &request, on_reply, &s);
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_STR(s.header, "");
    request.reply_header = STR("X-Subject-Token");
    (void)outbound_http(s.outbound, &request, on_reply, &s);
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK_STR(s.header, "first");
    s.headers = "";
    (void)outbound_http(s.outbound, &request, on_reply, &s);
    RUN_UNTIL(s.loop, s.replies == 3);
    CHECK_STR(s.header, "");
}

TEST(outbound_refuses_what_cannot_be_sent)
{
    static const struct {
        struct str url;
        struct str method;
        struct outbound_header header;
        const char *error;
    } cases[] = {
        { STR_INIT("ftp://host/secret"),
          STR_INIT("POST"),
          { STR_INIT("A"), STR_INIT("b") },
          "server '…': the address is no URL of http or https" },
        { STR_INIT("secret"),
          STR_INIT("POST"),
          { STR_INIT("A"), STR_INIT("b") },
          "server '…': the address is no URL of http or https" },
        { STR_INIT("http://h/secret\0x"),
          STR_INIT("POST"),
          { STR_INIT("A"), STR_INIT("b") },
          "server '…': the address is no URL of http or https" },
        { STR_INIT("http://h/secret"),
          STR_INIT("POST X"),
          { STR_INIT("A"), STR_INIT("b") },
          "server 'http://h': the method of the request is none" },
        { STR_INIT("http://h/secret"),
          STR_INIT(""),
          { STR_INIT("A"), STR_INIT("b") },
          "server 'http://h': the method of the request is none" },
        { STR_INIT("http://h:81/secret"),
          STR_INIT("POST"),
          { STR_INIT("A:"), STR_INIT("b") },
          "server 'http://h:81': header 1 of the request is none" },
        { STR_INIT("http://h/secret"),
          STR_INIT("POST"),
          { STR_INIT("A"), STR_INIT("b\r\nC: d") },
          "server 'http://h': header 1 of the request is none" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(story_end)
        struct story s;
        story_begin(&s, NULL, answer);
        story_open(&s, &(struct host_outbound_config){ 0 });
        struct outbound_request request = { .method = cases[i].method,
                                            .url = cases[i].url,
                                            .headers = &cases[i].header,
                                            .header_n = 1 };
        (void)outbound_http(s.outbound, &request, on_reply, &s);
        CHECK_EQ(s.replies, 0);
        RUN_UNTIL(s.loop, s.replies == 1);
        CHECK_STR(buf_str(&s.seen), "!invalid;");
        CHECK_STR((const char *)s.last, cases[i].error);
    }
    check_case(-1);
}

TEST(outbound_ends_a_request_at_its_deadline_queued_or_sent)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, NULL, hold);
    story_open(&s, &(struct host_outbound_config){ .calls_max = 1 });
    struct outbound_request request = { .method = STR("GET"),
                                        .url = url(&s, "http", "/secret"),
                                        .timeout = SECONDS(3) };
    (void)outbound_http(s.outbound, &request, on_reply, &s);
    request.timeout = SECONDS(1);
    (void)outbound_http(s.outbound, &request, on_reply, &s);
    CHECK_EQ(host_outbound_queued(s.outbound), 2);
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK(str_contains(str_from(s.last), STR("while it waited in the queue")));
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK(str_ends(str_from(s.last), STR(": no answer in 3000 ms, from the server")));
    CHECK(!str_contains(str_from(s.last), STR("secret")));
    CHECK_STR(buf_str(&s.seen), "!timeout;!timeout;");
    CHECK_EQ(s.held_n, 1);
}

TEST(outbound_caps_what_is_in_flight_and_keeps_the_order)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, NULL, hold);
    story_open(&s, &(struct host_outbound_config){ .calls_max = 2 });
    for (int i = 0; i < 5; i++) {
        (void)post(&s, url(&s, "http", "/"), "x");
    }
    RUN_UNTIL(s.loop, s.held_n == 2);
    CHECK_EQ(host_outbound_in_flight(s.outbound), 2);
    CHECK_EQ(host_outbound_queued(s.outbound), 3);
    for (uint32_t i = 0; i < 5; i++) {
        RUN_UNTIL(s.loop, s.held_n > i);
        byte_server_reply(s.held[i], 200, STR_NONE, arena_printf(&s.memory, "%u", i));
        RUN_UNTIL(s.loop, s.replies == i + 1);
    }
    CHECK_STR(buf_str(&s.seen), "200 0;200 1;200 2;200 3;200 4;");
}

static void long_answer(void *ctx UNUSED, struct byte_server_conn *conn,
                        const struct byte_server_request *request UNUSED)
{
    byte_server_stream(conn);
    for (int i = 0; i < 100; i++) {
        byte_server_chunk(conn,
                          STR("a hundred bytes are not so many that a server would mind, but some "
                              "readers do, and say so beforehand"));
    }
    byte_server_chunk(conn, STR(""));
}

TEST(outbound_refuses_an_answer_above_the_limit)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, NULL, long_answer);
    story_open(&s, &(struct host_outbound_config){ 0 });
    struct outbound_request request = { .method = STR("GET"),
                                        .url = url(&s, "http", "/"),
                                        .reply_max = 1000 };
    (void)outbound_http(s.outbound, &request, on_reply, &s);
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_STR(buf_str(&s.seen), "!limit;");
}

static void cut_answer(void *ctx UNUSED, struct byte_server_conn *conn,
                       const struct byte_server_request *request UNUSED)
{
    byte_server_write(conn, STR("HTTP/1.1 200 OK\r\nContent-Le"));
    byte_server_close(conn);
}

TEST(outbound_says_when_an_answer_breaks_off_and_when_nobody_listens)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, NULL, cut_answer);
    story_open(&s, &(struct host_outbound_config){ 0 });
    (void)post(&s, url(&s, "http", "/"), "x");
    RUN_UNTIL(s.loop, s.replies == 1);
    struct str gone = url(&s, "http", "/secret");
    struct str name = url(&s, "http", "");
    byte_server_free(STEAL(s.byte_server));
    (void)post(&s, gone, "x");
    RUN_UNTIL(s.loop, s.replies == 2);
    CHECK_STR(buf_str(&s.seen), "!I/O;!I/O;");
    CHECK_STR((const char *)s.last,
              arena_printf(&s.memory, "server '" STR_FMT "': cannot connect: Connection refused",
                           STR_ARG(name)));
}

TEST(outbound_cancels_in_flight_queued_and_answered)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, NULL, hold);
    story_open(&s, &(struct host_outbound_config){ .calls_max = 1 });
    struct outbound_call *first = post(&s, url(&s, "http", "/"), "x");
    struct outbound_call *second = post(&s, url(&s, "http", "/"), "x");
    RUN_UNTIL(s.loop, s.held_n == 1);
    outbound_cancel(s.outbound, second);
    outbound_cancel(s.outbound, first);
    (void)post(&s, url(&s, "http", "/"), "x");
    RUN_UNTIL(s.loop, s.held_n == 2);
    byte_server_reply(s.held[1], 200, STR_NONE, STR("third"));
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_STR(buf_str(&s.seen), "200 third;");
    struct outbound_request wrong = { .method = STR("GET"), .url = STR("nothing") };
    outbound_cancel(s.outbound, outbound_http(s.outbound, &wrong, on_reply, &s));
    host_loop_turn(s.loop, MSECONDS(1));
    CHECK_EQ(s.replies, 1);
    CHECK_EQ(host_outbound_in_flight(s.outbound), 0);
    CHECK_EQ(host_outbound_queued(s.outbound), 0);
}

TEST(outbound_may_be_freed_from_inside_a_callback)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, NULL, answer);
    story_open(&s, &(struct host_outbound_config){ 0 });
    s.free_at_reply = true;
    for (int i = 0; i < 4; i++) {
        (void)post(&s, url(&s, "http", "/"), "x");
    }
    RUN_UNTIL(s.loop, s.replies == 1);
    host_loop_turn(s.loop, MSECONDS(10));
    CHECK_EQ(s.replies, 1);
}

static const char *env_of(void *ctx, const char *name)
{
    struct story *s = ctx;
    bool proxy = str_eq(str_from(name), STR("HTTP_PROXY"));
    return proxy ? url(s, "http", "").p : NULL;
}

TEST(outbound_goes_through_the_proxy_of_the_environment)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, NULL, answer);
    story_open(&s, &(struct host_outbound_config){ .env = env_of, .env_ctx = &s });
    (void)post(&s, STR("http://hooks.example/x"), "y");
    RUN_UNTIL(s.loop, s.replies == 1);
    CHECK_STR(buf_str(&s.asked), "POST http://hooks.example/x text/plain '' y;");
}

/* A certificate of an authority that only `ca_file` knows, and one for another name. */
TEST(outbound_verifies_the_server)
{
    static const struct {
        const char *san;
        bool trusted;
        const char *seen;
        const char *error;
    } cases[] = {
        { "IP:127.0.0.1", true, "200 ok;", NULL },
        { "IP:127.0.0.1", false, "!denied;", "certificate signed by unknown authority" },
        { "DNS:other.example", true, "!denied;", "the certificate is not for this host" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        CLEANUP(cert_done)
        struct cert authority =
            cert_make(&a, &(struct cert_spec){ .name = "authority", .authority = true }, NULL);
        CLEANUP(cert_done)
        struct cert server =
            cert_make(&a, &(struct cert_spec){ .name = "server", .san = cases[i].san }, &authority);
        char path[] = "/tmp/drydock-wire-XXXXXX";
        int fd = mkstemp(path);
        CHECK(fd >= 0);
        CHECK_EQ(write(fd, authority.cert_pem.p, authority.cert_pem.n), authority.cert_pem.n);
        (void)close(fd);
        SSL_CTX *tls = cert_server_context(&server, NULL);
        {
            CLEANUP(story_end)
            struct story s;
            story_begin(&s, tls, answer);
            story_open(&s, &(struct host_outbound_config){
                               .ca_file = cases[i].trusted ? str_from(path) : STR_NONE });
            (void)post(&s, url(&s, "https", "/"), "x");
            RUN_UNTIL(s.loop, s.replies == 1);
            CHECK_STR(buf_str(&s.seen), cases[i].seen);
            CHECK(cases[i].error == NULL ||
                  str_contains(str_from(s.last), str_from(cases[i].error)));
            /* Who asks for it is not told the difference, and nobody else profits. */
            (void)outbound_http(s.outbound,
                                &(struct outbound_request){ .method = STR("GET"),
                                                            .url = url(&s, "https", "/"),
                                                            .insecure = true },
                                on_reply, &s);
            RUN_UNTIL(s.loop, s.replies == 2);
            (void)post(&s, url(&s, "https", "/"), "x");
            RUN_UNTIL(s.loop, s.replies == 3);
            CHECK_STR(buf_str(&s.seen),
                      arena_printf(&a, "%s200 ok;%s", cases[i].seen, cases[i].seen));
        }
        SSL_CTX_free(tls);
        (void)unlink(path);
    }
    check_case(-1);
}
