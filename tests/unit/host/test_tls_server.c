#include "host/tls_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "format/digest.h"
#include "host/http_server.h"
#include "host/loop.h"
#include "tests/check.h"
#include "tests/lib/certs.h"

#define PATIENCE SECONDS(60) /* a deadline for a loaded machine, not a time anything takes */

/* A server that answers with who asks. */
struct bench {
    struct loop *loop;
    struct http_server *server;
    struct arena memory;
    struct cert ca;
    struct cert one;
    struct cert two;
    struct cert visitor;
    struct cert stranger;
};

static void bench_handle(void *ctx UNUSED, struct inbound_exchange *x,
                         const struct inbound_request *req)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    buf_printf(&out, "peer=" STR_FMT, STR_ARG(req->peer));
    for (uint32_t i = 0; i < req->peer_group_n; i++) {
        buf_printf(&out, " group=" STR_FMT, STR_ARG(req->peer_groups[i]));
    }
    buf_add(&out, STR(" end"));
    inbound_reply(x, 200, STR("text/plain"), buf_str(&out));
}

static void bench_init(struct bench *b, struct http_server_config config)
{
    struct err err = { 0 };
    *b = (struct bench){ .loop = host_loop_new() };
    b->ca = cert_make(&b->memory, &(struct cert_spec){ .name = "ca", .authority = true }, NULL);
    b->one = cert_make(&b->memory, &(struct cert_spec){ .name = "one", .san = "DNS:one" }, &b->ca);
    b->two = cert_make(&b->memory, &(struct cert_spec){ .name = "two", .san = "DNS:two" }, &b->ca);
    b->visitor = cert_make(
        &b->memory,
        &(struct cert_spec){ .name = "grafana", .organisations = { "watchers", "others" } },
        &b->ca);
    b->stranger = cert_make(&b->memory, &(struct cert_spec){ .name = "stranger" }, NULL);
    config.listen = STR("127.0.0.1:0");
    config.tls_cert = b->one.cert_pem;
    config.tls_key = b->one.key_pem;
    config.tls_client_ca = b->ca.cert_pem;
    b->server = http_server_new(b->loop, &config, bench_handle, b, &err);
    CHECK_STR(err.msg, "");
    CHECK(b->server != NULL);
}

static void bench_done(struct bench *b)
{
    http_server_free(b->server);
    host_loop_free(b->loop);
    struct cert *const certs[] = { &b->ca, &b->one, &b->two, &b->visitor, &b->stranger };
    for (size_t i = 0; i < ARRAY_LEN(certs); i++) {
        cert_done(certs[i]);
    }
    arena_done(&b->memory);
}

struct client {
    int fd;
    SSL_CTX *ctx;
    SSL *ssl;
    struct buf got;
    bool ended; /* by the server, or because the handshake failed */
};

static int connect_to(const struct bench *b)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(http_server_port(b->server)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    CHECK_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static struct client client_open(const struct bench *b, const struct cert *own)
{
    struct client c = { .fd = connect_to(b), .ctx = SSL_CTX_new(TLS_client_method()) };
    if (own != NULL) {
        CHECK_EQ(SSL_CTX_use_certificate(c.ctx, own->x509), 1);
        CHECK_EQ(SSL_CTX_use_PrivateKey(c.ctx, own->key), 1);
    }
    c.ssl = SSL_new(c.ctx);
    CHECK_EQ(SSL_set_fd(c.ssl, c.fd), 1);
    SSL_set_connect_state(c.ssl);
    return c;
}

static void client_done(struct client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    (void)close(c->fd);
    buf_done(&c->got);
}

/* One step of whatever is next; true: it is done. */
static bool client_is_over(struct client *c, int r)
{
    int error = SSL_get_error(c->ssl, r);
    if (r <= 0 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
        c->ended = true;
    }
    ERR_clear_error();
    return r > 0 || c->ended;
}

/* Runs the loop until the condition holds; fails the test when it never does. */
#define UNTIL(b, condition)                                                                        \
    do {                                                                                           \
        usec_t end_ = loop_now((b)->loop) + PATIENCE;                                              \
        while (!(condition)) {                                                                     \
            CHECK(loop_now((b)->loop) < end_);                                                     \
            host_loop_turn((b)->loop, MSECONDS(5));                                                \
        }                                                                                          \
    } while (0)

static bool client_read(struct client *c, const char *wanted)
{
    char bytes[4096];
    int n = SSL_read(c->ssl, bytes, sizeof(bytes));
    if (n > 0) {
        buf_add(&c->got, (struct str){ .p = bytes, .n = (size_t)n });
    } else {
        (void)client_is_over(c, n);
    }
    return c->ended || str_contains(buf_str(&c->got), str_from(wanted));
}

/* Asks once; what is not answered ends the client. */
static void client_ask(struct bench *b, struct client *c)
{
    static const char get[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    buf_reset(&c->got);
    UNTIL(b, client_is_over(c, SSL_do_handshake(c->ssl)));
    if (!c->ended) {
        UNTIL(b, client_is_over(c, SSL_write(c->ssl, get, sizeof(get) - 1)));
    }
    if (!c->ended) {
        UNTIL(b, client_read(c, " end"));
    }
}

static struct str client_server_name(const struct client *c, struct arena *out)
{
    char name[64] = "";
    (void)X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(c->ssl)),
                                    NID_commonName, name, sizeof(name));
    return arena_str(out, str_from(name));
}

TEST(tls_tells_names_and_organisations_of_those_it_trusts)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    const struct {
        const struct cert *own;
        const char *answer; /* NULL = the handshake fails */
    } cases[] = {
        { NULL, "peer= end" },
        { &b.visitor, "peer=grafana group=watchers group=others end" },
        { &b.stranger, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(client_done)
        struct client c = client_open(&b, cases[i].own);
        client_ask(&b, &c);
        CHECK_EQ(c.ended, cases[i].answer == NULL);
        if (cases[i].answer != NULL) {
            CHECK(str_contains(buf_str(&c.got), str_from(cases[i].answer)));
        }
    }
}

TEST(tls_serves_a_new_certificate_to_new_connections_alone)
{
    CLEANUP(bench_done)
    struct bench b;
    struct err err = { 0 };
    bench_init(&b, (struct http_server_config){ 0 });
    CLEANUP(client_done)
    struct client before = client_open(&b, NULL);
    client_ask(&b, &before);
    CHECK_STR(client_server_name(&before, &b.memory), "one");
    const struct tls_server_files files = { .cert = b.two.cert_pem, .key = b.two.key_pem };
    CHECK_EQ(http_server_set_tls(b.server, &files, &err), 0);
    CLEANUP(client_done)
    struct client after = client_open(&b, NULL);
    client_ask(&b, &after);
    CHECK_STR(client_server_name(&after, &b.memory), "two");
    client_ask(&b, &before); /* goes on */
    CHECK(!before.ended);
}

TEST(tls_keeps_its_certificate_when_the_new_one_is_of_no_use)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    const struct {
        struct str cert;
        struct str key;
        const char *message; /* its beginning */
    } cases[] = {
        { b.two.cert_pem, b.one.key_pem, "private key: " },
        { STR("no PEM"), b.one.key_pem, "certificate: " },
        { str_sub(b.two.cert_pem, 0, b.two.cert_pem.n / 2), b.two.key_pem, "certificate: " },
        { b.two.cert_pem, STR(""), "private key: " },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct err err = { 0 };
        const struct tls_server_files files = { .cert = cases[i].cert, .key = cases[i].key };
        CHECK_EQ(http_server_set_tls(b.server, &files, &err), -ERR_INVALID);
        CHECK(str_starts(str_from(err.msg), str_from(cases[i].message)));
        CLEANUP(client_done)
        struct client c = client_open(&b, NULL);
        client_ask(&b, &c);
        CHECK(!c.ended);
        CHECK_STR(client_server_name(&c, &b.memory), "one");
    }
}

/* Handshakes that are not begun, cut short, or no handshakes at all: five times as many as fit. */
TEST(tls_answers_beside_a_crowd_of_unfinished_handshakes)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .connections_max = 8 });
    /* The head of a record with a ClientHello, and a byte of it. */
    static const unsigned char begun[] = { 0x16, 3, 1, 2, 0, 1 };
    int crowd[40];
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++) {
        crowd[i] = connect_to(&b);
        if (i % 2 == 0) {
            CHECK_EQ(send(crowd[i], begun, sizeof(begun), MSG_NOSIGNAL), (ssize_t)sizeof(begun));
        }
    }
    CLEANUP(client_done)
    struct client c = client_open(&b, NULL);
    client_ask(&b, &c);
    CHECK(!c.ended);
    CHECK(http_server_stats(b.server).connections <= 8);
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++) {
        (void)close(crowd[i]);
    }
}

TEST(tls_limits_the_time_of_a_handshake)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ .line_time_max = MSECONDS(50) });
    static const char plain[] = "GET / HTTP/1.1\r\n\r\n";
    static const unsigned char begun[] = { 0x16, 3, 1, 2, 0, 1 };
    int silent = connect_to(&b);
    int slow = connect_to(&b);
    int wrong = connect_to(&b);
    CHECK_EQ(send(slow, begun, sizeof(begun), MSG_NOSIGNAL), (ssize_t)sizeof(begun));
    CHECK_EQ(send(wrong, plain, sizeof(plain) - 1, MSG_NOSIGNAL), (ssize_t)sizeof(plain) - 1);
    UNTIL(&b, http_server_stats(b.server).accepted == 3);
    UNTIL(&b, http_server_stats(b.server).connections == 0);
    CHECK_EQ(http_server_stats(b.server).requests, 0);
    (void)close(silent);
    (void)close(slow);
    (void)close(wrong);
}

TEST(tls_reads_when_a_certificate_ends_and_its_key)
{
    CLEANUP(bench_done)
    struct bench b;
    bench_init(&b, (struct http_server_config){ 0 });
    struct err err = { 0 };
    struct tls_server_leaf one = { 0 };
    struct tls_server_leaf two = { 0 };
    struct str chain = arena_concat(&b.memory, b.one.cert_pem, b.ca.cert_pem);
    CHECK_EQ(tls_server_read_leaf(chain, &one, &err), 0);
    CHECK_EQ(tls_server_read_leaf(b.two.cert_pem, &two, &err), 0);
    usec_t left = one.not_after - loop_wall(b.loop);
    CHECK(left > HOURS(23) && left <= HOURS(24));
    unsigned char *der = NULL;
    int n = i2d_PUBKEY(b.one.key, &der);
    unsigned char hash[SHA256_BYTES];
    sha256((struct str){ .p = (const char *)der, .n = (size_t)n }, hash);
    OPENSSL_free(der);
    CHECK(memcmp(one.key_sha256, hash, sizeof(hash)) == 0);
    CHECK(memcmp(two.key_sha256, hash, sizeof(hash)) != 0);
    CHECK_EQ(tls_server_read_leaf(b.one.key_pem, &one, &err), -ERR_INVALID);
    CHECK_EQ(tls_server_read_leaf(STR(""), &one, &err), -ERR_INVALID);
}
