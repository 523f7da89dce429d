#include "host/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "host/loop.h"
#include "tests/check.h"

#define PATIENCE SECONDS(60) /* a deadline for a loaded machine, not a time anything takes */

/* A server, and what its handler saw and keeps. */
struct bench {
    struct loop *loop;
    struct http_server *server;
    struct inbound_exchange *kept;
    uint32_t requests;
    uint32_t closed;
    uint32_t drained;
    bool stopped;
    struct shared_bytes *document; /* what /shared answers, and /own with a copy */
};

static void bench_on_close(void *ctx)
{
    struct bench *b = ctx;
    b->closed++;
    b->kept = NULL;
}

static void bench_on_drain(void *ctx)
{
    struct bench *b = ctx;
    b->drained++;
}

static void bench_on_stopped(void *ctx)
{
    struct bench *b = ctx;
    b->stopped = true;
}

static void bench_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req)
{
    struct bench *b = ctx;
    b->requests++;
    if (str_eq(req->path, STR("/shared"))) {
        inbound_reply_shared(x, 200, STR("text/plain"), b->document);
        return;
    }
    if (str_eq(req->path, STR("/own"))) {
        inbound_reply(x, 200, STR("text/plain"), b->document->bytes);
        return;
    }
    if (str_eq(req->path, STR("/keep")) || str_eq(req->path, STR("/stream"))) {
        b->kept = x;
        x->on_close = bench_on_close;
        x->on_close_ctx = b;
        x->on_drain = bench_on_drain;
        x->on_drain_ctx = b;
        if (str_eq(req->path, STR("/stream"))) {
            inbound_start(x, 200, STR("text/event-stream"));
        }
        return;
    }
    CLEANUP(buf_done)
    struct buf out = { 0 };
    buf_printf(&out, STR_FMT " " STR_FMT " q=" STR_FMT " b=" STR_FMT " a=" STR_FMT,
               STR_ARG(req->method), STR_ARG(req->path), STR_ARG(req->query), STR_ARG(req->body),
               STR_ARG(req->header(x, "accept")));
    inbound_set_header(x, "X-Injected", STR("a\r\nX-Evil: 1"));
    inbound_set_header(x, "Warning", STR("299 - \"w\""));
    inbound_reply(x, 200, STR("text/plain"), buf_str(&out));
}

static void bench_init(struct bench *b, struct http_server_config config)
{
    struct err err = { 0 };
    *b = (struct bench){ .loop = host_loop_new() };
    if (config.listen.n == 0) {
        config.listen = STR("127.0.0.1:0");
    }
    b->server = http_server_new(b->loop, &config, bench_handle, b, &err);
    CHECK_STR(err.msg, "");
    CHECK(b->server != NULL);
}

static void bench_done(struct bench *b)
{
    http_server_free(b->server);
    host_loop_free(b->loop);
    shared_bytes_unref(b->document);
}

/* More than the buffers of a socket take. */
#define DOCUMENT_BYTES ((size_t)8 * 1024 * 1024)

static void bench_make_document(struct bench *b, size_t n)
{
    struct buf text = { 0 };
    while (text.n < n) {
        buf_add(&text, STR("0123456789abcdef"));
    }
    b->document = shared_bytes_take(&text);
}

struct client {
    int fd;
    struct buf got;
    bool ended;
};

static struct client client_open(struct bench *b)
{
    struct client c = { .fd = socket(AF_INET, SOCK_STREAM, 0) };
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(http_server_port(b->server)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    CHECK_EQ(connect(c.fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return c;
}

static void client_done(struct client *c)
{
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    c->fd = -1;
    buf_done(&c->got);
}

static void client_send(struct client *c, struct str bytes)
{
    CHECK_EQ(send(c->fd, bytes.p, bytes.n, MSG_NOSIGNAL), (ssize_t)bytes.n);
}

static void client_read(struct client *c)
{
    char bytes[65536];
    ssize_t n = 0;
    while (!c->ended && (n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
        buf_add(&c->got, (struct str){ .p = bytes, .n = (size_t)n });
    }
    if (n == 0 || (n < 0 && errno == ECONNRESET)) {
        c->ended = true;
    }
}

/* Runs the loop until the condition holds; fails the test when it never does. */
#define UNTIL(b, c, condition)                                                                     \
    do {                                                                                           \
        usec_t end_ = loop_now((b)->loop) + PATIENCE;                                              \
        for (;;) {                                                                                 \
            client_read(c);                                                                        \
            if (condition) {                                                                       \
                break;                                                                             \
            }                                                                                      \
            CHECK(loop_now((b)->loop) < end_);                                                     \
            host_loop_turn((b)->loop, MSECONDS(5));                                                \
        }                                                                                          \
    } while (0)

#define GOT(c, text) str_contains(buf_str(&(c)->got), STR(text))

TEST(http_serves_requests_on_one_connection)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    CLEANUP(client_done)
    struct client c = client_open(&b);
    client_send(&c, STR("GET /a%20b?x=1&y=%2F HTTP/1.1\r\nHost: h\r\nACCEPT: json\r\n\r\n"));
    UNTIL(&b, &c, GOT(&c, "GET /a%20b q=x=1&y=%2F b= a=json"));
    CHECK(GOT(&c, "HTTP/1.1 200 OK\r\n"));
    CHECK(GOT(&c, "Warning: 299 - \"w\"\r\n"));
    CHECK(!GOT(&c, "X-Evil"));
    buf_reset(&c.got);
    client_send(&c, STR("PATCH /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"));
    UNTIL(&b, &c, GOT(&c, "PATCH /p q= b=abc a="));
    CHECK_EQ(http_server_stats(b.server).accepted, 1);
    CHECK_EQ(b.requests, 2);
}

TEST(http_answers_each_method)
{
    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS" };
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        CLEANUP(client_done)
        struct client c = client_open(&b);
        char request[100];
        int n = snprintf(request, sizeof(request),
                         "%s /m HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nB", methods[i]);
        client_send(&c, (struct str){ .p = request, .n = (size_t)n });
        UNTIL(&b, &c, GOT(&c, "b=B"));
        CHECK(str_contains(buf_str(&c.got), str_from(methods[i])));
    }
    CLEANUP(client_done)
    struct client c = client_open(&b);
    client_send(&c, STR("HEAD /m HTTP/1.1\r\nHost: h\r\n\r\nGET /next HTTP/1.1\r\n\r\n"));
    UNTIL(&b, &c, GOT(&c, "GET /next"));
    CHECK(GOT(&c, "Content-Length: 16\r\n")); /* of what GET would have answered */
    CHECK(!GOT(&c, "HEAD /m q="));
}

TEST(http_reads_a_request_cut_at_every_byte)
{
    struct str request = STR("POST /cut?a=b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    CLEANUP(client_done)
    struct client c = client_open(&b);
    for (size_t cut = 1; cut < request.n; cut++) {
        buf_reset(&c.got);
        client_send(&c, str_sub(request, 0, cut));
        host_loop_turn(b.loop, MSECONDS(1));
        client_send(&c, str_sub(request, cut, request.n - cut));
        UNTIL(&b, &c, GOT(&c, "POST /cut q=a=b b=hello a="));
    }
    CHECK_EQ(b.requests, request.n - 1);
}

/* Asks for an answer of some `n` bytes; what came back stays in `c`. */
static void fetch_long(struct bench *b, struct client *c, const char *accept, size_t n)
{
    CLEANUP(buf_done)
    struct buf request = { 0 };
    buf_printf(&request, "POST /long HTTP/1.1\r\nContent-Length: %zu\r\n%s\r\n", n, accept);
    for (size_t i = 0; i < n; i++) {
        buf_add_char(&request, 'a');
    }
    for (struct str rest = buf_str(&request); rest.n > 0;) {
        ssize_t sent = send(c->fd, rest.p, rest.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        CHECK(sent > 0 || errno == EAGAIN);
        rest = sent > 0 ? str_sub(rest, (size_t)sent, rest.n - (size_t)sent) : rest;
        host_loop_turn(b->loop, MSECONDS(1)); /* the server is in this process, too */
    }
    UNTIL(b, c, c->ended);
}

TEST(http_packs_long_answers_for_who_accepts_it)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .gzip = true });
    CLEANUP(client_done)
    struct client packed = client_open(&b);
    fetch_long(&b, &packed, "Accept-Encoding: gzip\r\nConnection: close\r\n", 5000);
    CHECK(GOT(&packed, "Content-Encoding: gzip\r\n"));
    CHECK(GOT(&packed, "Vary: Accept-Encoding\r\n"));
    CHECK(packed.got.n < 1000);
    size_t at = str_find(buf_str(&packed.got), STR("\r\n\r\n")) + 4;
    struct str body = str_sub(buf_str(&packed.got), at, packed.got.n - at);
    unsigned char text[8192];
    z_stream z = { .next_in = (z_const Bytef *)(uintptr_t)body.p,
                   .avail_in = (uInt)body.n,
                   .next_out = text,
                   .avail_out = sizeof(text) };
    CHECK_EQ(inflateInit2(&z, 31), Z_OK);
    CHECK_EQ(inflate(&z, Z_FINISH), Z_STREAM_END);
    CHECK_EQ(z.avail_in, 0); /* Content-Length is that of the packed bytes */
    CHECK_EQ(inflateEnd(&z), Z_OK);
    struct str whole = { .p = (const char *)text, .n = sizeof(text) - z.avail_out };
    CHECK(str_starts(whole, STR("POST /long q= b=aaaaaaaa")) && str_ends(whole, STR("aa a=")));

    static const struct {
        const char *accept;
        size_t n;
    } plain[] = {
        { "Connection: close\r\n", 5000 },
        { "Accept-Encoding: gzip;q=0\r\nConnection: close\r\n", 5000 },
        { "Accept-Encoding: gzip\r\nConnection: close\r\n", 100 },
        { "Accept-Encoding: gzip\r\nConnection: close\r\n", 1500000 },
    };
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        CLEANUP(client_done)
        struct client c = client_open(&b);
        check_case((int64_t)i);
        fetch_long(&b, &c, plain[i].accept, plain[i].n);
        CHECK(!GOT(&c, "Content-Encoding"));
        CHECK(GOT(&c, "aa a="));
    }
    check_case(-1);
}

TEST(http_packs_nothing_unless_told_to)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    CLEANUP(client_done)
    struct client c = client_open(&b);
    fetch_long(&b, &c, "Accept-Encoding: gzip\r\nConnection: close\r\n", 5000);
    CHECK(GOT(&c, "aa a=") && !GOT(&c, "Vary") && !GOT(&c, "Content-Encoding"));
}

TEST(http_closes_on_what_could_be_read_in_two_ways)
{
    static const struct {
        const char *request;
        const char *status;
    } cases[] = {
        { "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
          "HTTP/1.1 411 " },
        { "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", "HTTP/1.1 400 " },
        { "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\na", "HTTP/1.1 400 " },
        { "POST / HTTP/1.1\r\nContent-Length: 1x\r\n\r\na", "HTTP/1.1 400 " },
        { "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400 " },
        { "HEAD / HTTP/1.1\r\nContent-Length: 20\r\n\r\n", "HTTP/1.1 400 " },
        { "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "HTTP/1.1 400 " },
        { "GET http://other/ HTTP/1.1\r\nTrailer: x\r\n\r\n", "HTTP/1.1 400 " },
        { "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 400 " },
        { "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1." },
        { "nonsense\r\n\r\n", "HTTP/1.1 400 " },
    };
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(client_done)
        struct client c = client_open(&b);
        client_send(&c, str_from(cases[i].request));
        UNTIL(&b, &c, c.ended);
        struct str got = buf_str(&c.got);
        if (!str_starts(got, str_from(cases[i].status)) || str_contains(got, STR(" 200 "))) {
            check_fail(__FILE__, __LINE__, "case %zu got '" STR_FMT "'", i, STR_ARG(got));
        }
    }
    CHECK_EQ(b.requests, 0);
    CHECK_EQ(http_server_stats(b.server).connections, 0);
}

TEST(http_limits_headers_and_body)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .header_bytes_max = 1024, .body_bytes_max = 64 });
    CLEANUP(buf_done)
    struct buf many = { 0 };
    buf_add(&many, STR("GET / HTTP/1.1\r\nA: "));
    for (int i = 0; i < 2000; i++) {
        buf_add_char(&many, 'a');
    }
    buf_add(&many, STR("\r\n\r\n"));
    CLEANUP(client_done)
    struct client c = client_open(&b);
    client_send(&c, buf_str(&many));
    UNTIL(&b, &c, c.ended);
    CHECK(GOT(&c, "HTTP/1.1 400 "));

    CLEANUP(client_done)
    struct client d = client_open(&b);
    client_send(&d, STR("POST / HTTP/1.1\r\nContent-Length: 65\r\n\r\nno more is needed"));
    UNTIL(&b, &d, d.ended);
    CHECK(GOT(&d, "HTTP/1.1 413 "));
    CHECK_EQ(b.requests, 0);
}

TEST(http_limits_the_time_a_request_takes_to_arrive)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .request_time_max = MSECONDS(30) });
    CLEANUP(client_done)
    struct client c = client_open(&b);
    client_send(&c, STR("GET / HTTP/1.1\r\nHos"));
    UNTIL(&b, &c, c.ended);
    CHECK_EQ(c.got.n, 0);
    CHECK_EQ(b.requests, 0);
}

TEST(http_limits_the_time_for_the_request_line_alone)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .line_time_max = MSECONDS(30) });
    CLEANUP(client_done)
    struct client reading = client_open(&b);
    client_send(&reading, STR("GET / HTTP/1.1\r\nHost: h\r\n"));
    UNTIL(&b, &reading, http_server_stats(b.server).connections == 1);
    CLEANUP(client_done)
    struct client silent = client_open(&b);
    UNTIL(&b, &silent, silent.ended);
    CLEANUP(client_done)
    struct client cut = client_open(&b);
    client_send(&cut, STR("GET / HT"));
    UNTIL(&b, &cut, cut.ended);
    client_send(&reading, STR("\r\n")); /* the line has come, so there is time for the rest */
    UNTIL(&b, &reading, GOT(&reading, "GET / "));
}

TEST(http_limits_idling_but_not_streams)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .idle_time_max = MSECONDS(30) });
    CLEANUP(client_done)
    struct client stream = client_open(&b);
    client_send(&stream, STR("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &stream, b.kept != NULL);
    CLEANUP(client_done)
    struct client c = client_open(&b);
    client_send(&c, STR("GET /x HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &c, c.ended);
    CHECK(GOT(&c, "GET /x"));
    CHECK(b.kept != NULL); /* it has been silent for longer */
    inbound_chunk(b.kept, STR("still here"));
    UNTIL(&b, &stream, GOT(&stream, "a\r\nstill here\r\n"));
}

TEST(http_makes_room_by_closing_the_longest_idle)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .connections_max = 2 });
    CLEANUP(client_done)
    struct client one = client_open(&b);
    client_send(&one, STR("GET /stream HTTP/1.1\r\n\r\n"));
    UNTIL(&b, &one, b.kept != NULL);
    CLEANUP(client_done)
    struct client two = client_open(&b);
    client_send(&two, STR("GET /2 HTTP/1.1\r\n\r\n"));
    UNTIL(&b, &two, GOT(&two, "GET /2"));
    CLEANUP(client_done)
    struct client three = client_open(&b);
    client_send(&three, STR("GET /3 HTTP/1.1\r\n\r\n"));
    UNTIL(&b, &three, GOT(&three, "GET /3"));
    UNTIL(&b, &two, two.ended);
    CHECK(!one.ended);
    CHECK_EQ(http_server_stats(b.server).connections, 2);
}

TEST(http_gives_the_place_of_a_silent_connection_to_a_new_one)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .connections_max = 3 });
    CLEANUP(client_done)
    struct client idle = client_open(&b);
    client_send(&idle, STR("GET /idle HTTP/1.1\r\n\r\n"));
    UNTIL(&b, &idle, GOT(&idle, "GET /idle"));
    CLEANUP(client_done)
    struct client silent = client_open(&b);
    UNTIL(&b, &silent, http_server_stats(b.server).connections == 2);
    CLEANUP(client_done)
    struct client cut = client_open(&b);
    client_send(&cut, STR("GET /cut HTTP"));
    UNTIL(&b, &cut, http_server_stats(b.server).connections == 3);
    struct client *const ends[] = { &silent, &cut, &idle }; /* in this order */
    struct client next[ARRAY_LEN(ends)];
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        check_case((int64_t)i);
        next[i] = client_open(&b);
        client_send(&next[i], STR("GET /stream HTTP/1.1\r\n\r\n"));
        UNTIL(&b, ends[i], ends[i]->ended && b.requests == i + 2);
        for (size_t j = i + 1; j < ARRAY_LEN(ends); j++) {
            client_read(ends[j]);
            CHECK(!ends[j]->ended);
        }
    }
    check_case(-1);
    CHECK_EQ(http_server_stats(b.server).connections, 3);
    for (size_t i = 0; i < ARRAY_LEN(next); i++) {
        client_done(&next[i]);
    }
}

TEST(http_gives_the_place_of_an_unfinished_request_to_a_new_one)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .connections_max = 1 });
    CLEANUP(client_done)
    struct client one = client_open(&b);
    client_send(&one, STR("GET /1 HTTP/1.1\r\nHost: h\r\n"));
    UNTIL(&b, &one, http_server_stats(b.server).connections == 1);
    CLEANUP(client_done)
    struct client two = client_open(&b);
    client_send(&two, STR("GET /2 HTTP/1.1\r\n\r\n"));
    UNTIL(&b, &two, GOT(&two, "GET /2"));
    UNTIL(&b, &one, one.ended);
}

/* Whoever connects and asks for nothing does not keep others out: five times as many as fit. */
TEST(http_answers_beside_a_crowd_that_is_silent)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .connections_max = 8 });
    struct client crowd[40];
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++) {
        crowd[i] = client_open(&b);
    }
    CLEANUP(client_done)
    struct client probe = client_open(&b);
    client_send(&probe, STR("GET /healthz HTTP/1.1\r\n\r\n"));
    UNTIL(&b, &probe, GOT(&probe, "GET /healthz"));
    CHECK(http_server_stats(b.server).connections <= 8);
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++) {
        client_done(&crowd[i]);
    }
}

TEST(http_waits_with_accepting_when_all_are_busy)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .connections_max = 1 });
    CLEANUP(client_done)
    struct client one = client_open(&b);
    client_send(&one, STR("GET /stream HTTP/1.1\r\n\r\n"));
    UNTIL(&b, &one, b.kept != NULL);
    CLEANUP(client_done)
    struct client two = client_open(&b);
    client_send(&two, STR("GET /2 HTTP/1.1\r\n\r\n"));
    for (int i = 0; i < 5; i++) {
        host_loop_turn(b.loop, MSECONDS(1));
    }
    CHECK_EQ(http_server_stats(b.server).accepted, 1);
    client_done(&one);
    UNTIL(&b, &two, GOT(&two, "GET /2"));
    CHECK_EQ(b.closed, 1);
}

static struct rlimit descriptors_limit(rlim_t soft)
{
    struct rlimit before;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit now = { .rlim_cur = soft, .rlim_max = before.rlim_max };
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
    return before;
}

/* Two servers on one loop, as in every daemon: the one that runs out of descriptors is found. */
TEST(http_waits_with_accepting_when_descriptors_run_out)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    struct err err = { 0 };
    const struct http_server_config config = { .listen = STR("127.0.0.1:0") };
    struct http_server *other = http_server_new(b.loop, &config, bench_handle, &b, &err);
    CHECK(other != NULL);
    struct client clients[6];
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i] = client_open(&b);
        client_send(&clients[i], STR("GET /x HTTP/1.1\r\n\r\n"));
    }
    int next = dup(STDIN_FILENO);
    CHECK(next >= 0);
    CHECK_EQ(close(next), 0);
    struct rlimit before = descriptors_limit((rlim_t)next + 2);
    for (int i = 0; i < 20; i++) {
        host_loop_turn(b.loop, MSECONDS(1));
    }
    CHECK(http_server_stats(b.server).accepted <= 2);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        UNTIL(&b, &clients[i], GOT(&clients[i], "GET /x"));
        client_done(&clients[i]);
    }
    http_server_free(other);
}

TEST(http_drops_silent_connections_when_descriptors_run_out)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .line_time_max = PATIENCE });
    struct client silent[10];
    for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
        silent[i] = client_open(&b);
    }
    CLEANUP(client_done)
    struct client probe = client_open(&b);
    client_send(&probe, STR("GET /healthz HTTP/1.1\r\n\r\n"));
    int next = dup(STDIN_FILENO);
    CHECK(next >= 0);
    CHECK_EQ(close(next), 0);
    struct rlimit before = descriptors_limit((rlim_t)next + 2);
    UNTIL(&b, &probe, GOT(&probe, "GET /healthz"));
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
        client_done(&silent[i]);
    }
}

TEST(http_leaves_descriptors_for_others)
{
    struct rlimit before = descriptors_limit(64);
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    struct client clients[40];
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i] = client_open(&b);
    }
    for (int i = 0; i < 50; i++) {
        host_loop_turn(b.loop, MSECONDS(1));
    }
    CHECK_EQ(http_server_stats(b.server).connections, 16);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        client_done(&clients[i]);
    }
    bench_done(&b);
}

TEST(http_streams_and_tells_the_end_to_both_sides)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    CLEANUP(client_done)
    struct client c = client_open(&b);
    client_send(&c, STR("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &c, GOT(&c, "Transfer-Encoding: chunked\r\n"));
    inbound_chunk(b.kept, STR("one\n"));
    inbound_chunk(b.kept, STR("two\n"));
    CHECK(inbound_backlog(b.kept) > 0);
    UNTIL(&b, &c, GOT(&c, "4\r\none\n\r\n4\r\ntwo\n\r\n") && b.drained > 0);
    CHECK_EQ(inbound_backlog(b.kept), 0);
    inbound_end(b.kept);
    UNTIL(&b, &c, GOT(&c, "0\r\n\r\n"));
    client_send(&c, STR("GET /again HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &c, GOT(&c, "GET /again"));
    CHECK_EQ(b.closed, 0); /* it ended by inbound_end */

    client_send(&c, STR("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &c, b.requests == 3 && b.kept != NULL);
    struct client gone = c;
    c.fd = -1;
    CHECK_EQ(close(gone.fd), 0);
    gone.ended = true;
    UNTIL(&b, &gone, b.closed == 1);
    CHECK(b.kept == NULL);
    CHECK_EQ(http_server_stats(b.server).connections, 0);
}

TEST(http_shows_a_slow_reader_as_backlog_and_drops_it_in_the_end)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .stall_time_max = MSECONDS(50) });
    CLEANUP(client_done)
    struct client c = client_open(&b);
    client_send(&c, STR("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &c, b.kept != NULL);
    CLEANUP(buf_done)
    struct buf big = { 0 };
    for (int i = 0; i < 1024 * 1024; i++) {
        buf_add_char(&big, 'x');
    }
    for (int i = 0; i < 12; i++) { /* more than a socket's buffers take */
        inbound_chunk(b.kept, buf_str(&big));
    }
    struct client none = { .fd = -1, .ended = true }; /* nobody reads */
    UNTIL(&b, &none, b.closed == 1);
}

/* Clients that ask for `path` and read nothing of the answer. */
static void open_readers(struct bench *b, struct client *clients, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++) {
        char request[64];
        int length = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n\r\n", path);
        uint32_t before = b->requests;
        clients[i] = client_open(b);
        client_send(&clients[i], (struct str){ .p = request, .n = (size_t)length });
        struct client none = { .fd = -1, .ended = true };
        UNTIL(b, &none, b->requests == before + 1);
    }
}

TEST(http_holds_a_document_once_for_all_who_read_it)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .stall_time_max = PATIENCE });
    bench_make_document(&b, DOCUMENT_BYTES);
    struct client clients[6];
    open_readers(&b, clients, ARRAY_LEN(clients), "/shared");
    struct http_stats stats = http_server_stats(b.server);
    CHECK(stats.held >= DOCUMENT_BYTES && stats.held < DOCUMENT_BYTES + DOCUMENT_BYTES / 2);
    CHECK_EQ(stats.dropped, 0);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        UNTIL(&b, &clients[i], clients[i].got.n > DOCUMENT_BYTES);
        CHECK(str_ends(buf_str(&clients[i].got), STR("0123456789abcdef")));
        client_done(&clients[i]);
    }
    struct client none = { .fd = -1, .ended = true };
    UNTIL(&b, &none, http_server_stats(b.server).connections == 0);
    CHECK_EQ(http_server_stats(b.server).held, 0);
    CHECK_EQ(b.document->refs, 1);
}

TEST(http_packs_a_document_once_for_all_who_accept_it)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .gzip = true });
    bench_make_document(&b, 100000);
    const struct shared_bytes *packed = NULL;
    for (int i = 0; i < 3; i++) {
        CLEANUP(client_done)
        struct client c = client_open(&b);
        client_send(&c, STR("GET /shared HTTP/1.1\r\nAccept-Encoding: gzip\r\n"
                            "Connection: close\r\n\r\n"));
        UNTIL(&b, &c, c.ended);
        CHECK(GOT(&c, "Content-Encoding: gzip"));
        CHECK(b.document->packed != NULL && (packed == NULL || b.document->packed == packed));
        packed = b.document->packed;
        CHECK(c.got.n < packed->bytes.n + 500);
    }
}

/* The slowest go first; who reads is served whatever the others do. */
TEST(http_limits_what_slow_readers_hold_together)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .held_bytes_max = 3 * DOCUMENT_BYTES,
                                                .stall_time_max = PATIENCE });
    bench_make_document(&b, DOCUMENT_BYTES);
    struct client clients[8];
    open_readers(&b, clients, ARRAY_LEN(clients), "/own");
    CHECK(http_server_stats(b.server).held <= 3 * DOCUMENT_BYTES);
    CHECK(http_server_stats(b.server).dropped >= ARRAY_LEN(clients) - 3);
    CLEANUP(client_done)
    struct client reader = client_open(&b);
    client_send(&reader, STR("GET /own HTTP/1.1\r\n\r\n"));
    UNTIL(&b, &reader, reader.got.n > DOCUMENT_BYTES);
    CHECK(http_server_stats(b.server).held <= 3 * DOCUMENT_BYTES);
    UNTIL(&b, &clients[0], clients[0].ended);
    CHECK(clients[0].got.n < DOCUMENT_BYTES);
    struct client *last = &clients[ARRAY_LEN(clients) - 1];
    UNTIL(&b, last, last->got.n > DOCUMENT_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        client_done(&clients[i]);
    }
}

TEST(http_drops_a_stream_whose_reader_holds_too_much)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .held_bytes_max = DOCUMENT_BYTES });
    bench_make_document(&b, DOCUMENT_BYTES);
    CLEANUP(client_done)
    struct client stream = client_open(&b);
    client_send(&stream, STR("GET /stream HTTP/1.1\r\n\r\n"));
    UNTIL(&b, &stream, b.kept != NULL);
    inbound_chunk_shared(b.kept, b.document);
    CHECK(inbound_backlog(b.kept) > 0);
    struct client other[1];
    struct inbound_exchange *kept = b.kept;
    open_readers(&b, other, 1, "/own");
    CHECK_EQ(http_server_stats(b.server).dropped, 1);
    if (b.closed == 0) { /* the handler has not heard of it yet, and may go on sending */
        CHECK_EQ(inbound_backlog(kept), 0);
        inbound_chunk_shared(kept, b.document);
        CHECK_EQ(inbound_backlog(kept), 0);
    }
    UNTIL(&b, &stream, stream.ended && b.closed == 1);
    client_done(&other[0]);
}

/* evhttp keeps much more of a header than its bytes. */
TEST(http_limits_what_unfinished_requests_hold_together)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .held_bytes_max = (size_t)1024 * 1024 });
    struct client clients[20];
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i] = client_open(&b);
        client_send(&clients[i], STR("GET / HTTP/1.1\r\n"));
        for (int j = 0; j < 1000; j++) {
            client_send(&clients[i], STR("a:b\r\n"));
        }
        struct client none = { .fd = -1, .ended = true };
        UNTIL(&b, &none, http_server_stats(b.server).accepted == i + 1);
    }
    UNTIL(&b, &clients[0], clients[0].ended);
    CHECK(http_server_stats(b.server).held <= (size_t)1024 * 1024);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        client_done(&clients[i]);
    }
}

TEST(http_gives_the_place_of_a_slow_reader_to_a_new_one)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .connections_max = 1, .slow_time = MSECONDS(30) });
    bench_make_document(&b, DOCUMENT_BYTES);
    struct client slow[1];
    open_readers(&b, slow, 1, "/own");
    CLEANUP(client_done)
    struct client c = client_open(&b);
    client_send(&c, STR("GET /x HTTP/1.1\r\n\r\n"));
    UNTIL(&b, &c, GOT(&c, "GET /x"));
    client_done(&slow[0]);
}

TEST(http_stop_ends_streams_and_lets_answers_finish)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    CLEANUP(client_done)
    struct client idle = client_open(&b);
    client_send(&idle, STR("GET /i HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &idle, GOT(&idle, "GET /i"));
    CLEANUP(client_done)
    struct client stream = client_open(&b);
    client_send(&stream, STR("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &stream, b.kept != NULL);
    b.kept = NULL;
    CLEANUP(client_done)
    struct client slow = client_open(&b);
    client_send(&slow, STR("GET /keep HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &slow, b.kept != NULL);
    struct inbound_exchange *kept = b.kept;

    http_server_stop(b.server, SECONDS(60), bench_on_stopped, &b);
    UNTIL(&b, &stream, stream.ended);
    CHECK(str_ends(buf_str(&stream.got), STR("0\r\n\r\n")));
    CHECK_EQ(b.closed, 1);
    UNTIL(&b, &idle, idle.ended);
    CHECK(!b.stopped);
    inbound_reply(kept, 200, STR("text/plain"), STR("late but whole"));
    UNTIL(&b, &slow, slow.ended && b.stopped);
    CHECK(GOT(&slow, "late but whole"));
    CHECK(GOT(&slow, "Connection: close\r\n"));
    CHECK_EQ(b.closed, 1);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(http_server_port(b.server)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof(to)), -1);
    CHECK_EQ(errno, ECONNREFUSED);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(b.requests, 3);
}

TEST(http_stop_drops_what_is_left_at_the_deadline)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    CLEANUP(client_done)
    struct client slow = client_open(&b);
    client_send(&slow, STR("GET /keep HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &slow, b.kept != NULL);
    http_server_stop(b.server, MSECONDS(20), bench_on_stopped, &b);
    UNTIL(&b, &slow, slow.ended && b.stopped);
    CHECK_EQ(b.closed, 1);
}

TEST(http_free_closes_kept_exchanges)
{
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    CLEANUP(client_done)
    struct client c = client_open(&b);
    client_send(&c, STR("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &c, b.kept != NULL);
    CLEANUP(client_done)
    struct client d = client_open(&b);
    bench_done(&b); /* before `d` was accepted */
    CHECK(d.fd >= 0);
    CHECK_EQ(b.closed, 1);
}

TEST(http_listens_where_it_is_told)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .listen = STR(":0") });
    CLEANUP(client_done)
    struct client c = client_open(&b); /* reaches it by IPv4 */
    client_send(&c, STR("GET /4 HTTP/1.1\r\nHost: h\r\n\r\n"));
    UNTIL(&b, &c, GOT(&c, "GET /4"));

    static const struct {
        const char *listen;
        const char *message;
    } cases[] = {
        { "8080", "address '8080': want ':8080', '127.0.0.1:8080' or '[::1]:8080'" },
        { "x:1", "address 'x:1': want ':8080', '127.0.0.1:8080' or '[::1]:8080'" },
        { ":65536", "address ':65536': want ':8080', '127.0.0.1:8080' or '[::1]:8080'" },
        { "[::1:1", "address '[::1:1': want ':8080', '127.0.0.1:8080' or '[::1]:8080'" },
        { "192.0.2.1:0", "listen on '192.0.2.1:0': Cannot assign requested address" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        struct http_server_config config = { .listen = str_from(cases[i].listen) };
        CHECK(http_server_new(b.loop, &config, bench_handle, &b, &err) == NULL);
        CHECK_STR(err.msg, cases[i].message);
    }
    char taken[32];
    (void)snprintf(taken, sizeof(taken), "127.0.0.1:%u", http_server_port(b.server));
    struct err err = { 0 };
    struct http_server_config config = { .listen = str_from(taken) };
    CHECK(http_server_new(b.loop, &config, bench_handle, &b, &err) == NULL);
    CHECK(str_contains(str_from(err.msg), STR("Address already in use")));
}
