#include "host/curl_endpoint.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "host/transport.h"
#include "tests/check.h"
#include "tests/lib/certs.h"
#include "tests/lib/byte_server.h"

/* A server with a certificate, an authority, and what a client makes of both. */
struct story {
    struct arena memory;
    struct loop *loop;
    struct byte_server *byte_server;
    struct cert ca;
    struct cert other_ca;
    struct cert server;
    struct cert client;
    SSL_CTX *tls;
    struct cluster_access access;
    struct str host; /* header of the last request */
    int status;
    usec_t took;
    char said[512];
    bool done;
};

static void answer(void *ctx, struct byte_server_conn *conn,
                   const struct byte_server_request *request)
{
    struct story *s = ctx;
    s->host = arena_str(&s->memory, byte_server_request_header(request, STR("Host")));
    byte_server_reply(
        conn, 200, str_eq(request->path, STR("/close")) ? STR("Connection: close\r\n") : STR_NONE,
        STR("{}"));
    if (str_eq(request->path, STR("/close"))) {
        byte_server_close(conn);
    }
}

static void story_begin(struct story *s, const struct cert_spec *server, bool clients)
{
    *s = (struct story){ .loop = host_loop_new() };
    s->ca = cert_make(&s->memory, &(struct cert_spec){ .name = "ca", .authority = true }, NULL);
    s->other_ca =
        cert_make(&s->memory, &(struct cert_spec){ .name = "other", .authority = true }, NULL);
    s->server = cert_make(&s->memory, server, &s->ca);
    s->client = cert_make(&s->memory, &(struct cert_spec){ .name = "client" }, &s->ca);
    s->tls = cert_server_context(&s->server, clients ? &s->ca : NULL);
    s->byte_server = byte_server_new(s->loop, s->tls, answer, s);
    s->access.server =
        arena_printf(&s->memory, "https://127.0.0.1:%u", byte_server_port(s->byte_server));
    s->access.ca_pem = s->ca.cert_pem;
}

static void story_end(struct story *s)
{
    byte_server_free(s->byte_server);
    SSL_CTX_free(s->tls);
    cert_done(&s->ca);
    cert_done(&s->other_ca);
    cert_done(&s->server);
    cert_done(&s->client);
    host_loop_free(s->loop);
    arena_done(&s->memory);
}

static void on_reply(void *ctx, const struct api_reply *reply)
{
    struct story *s = ctx;
    s->status = reply->status;
    s->took = reply->took;
    s->done = true;
    memset(s->said, 0, sizeof(s->said));
    if (reply->err != NULL) {
        memcpy(s->said, reply->err->msg, sizeof(s->said));
    }
}

static void ask(struct story *s, struct api *api, const char *path)
{
    struct api_request request = { .path = str_from(path) };
    usec_t began = loop_now(s->loop);
    s->done = false;
    (void)api_send(api, &request, on_reply, s);
    RUN_UNTIL(s->loop, s->done);
    CHECK(s->took > 0 && s->took <= loop_now(s->loop) - began);
}

static void ask_once(struct story *s)
{
    struct err err = { 0 };
    struct api *api = transport_new(s->loop, &s->access, &err);
    CHECK_STR(err.msg, "");
    ask(s, api, "/");
    transport_free(api);
}

static const struct cert_spec good = { .name = "server", .san = "IP:127.0.0.1,DNS:api.example" };

TEST(curl_endpoint_trusts_the_given_authority)
{
    struct story s;
    story_begin(&s, &good, false);
    ask_once(&s);
    CHECK_STR(s.said, "");
    CHECK_EQ(s.status, 200);
    story_end(&s);
}

/* Names are resolved by libcurl, so only the address that it connects to tells. */
TEST(curl_endpoint_connects_to_no_local_address_that_a_name_resolves_to)
{
    struct story s;
    story_begin(&s, &good, false);
    s.access.refuse_local = true;
    static const char *const hosts[] = { "127.0.0.1", "localhost", "127.1" };
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        check_case((int64_t)i);
        s.access.server =
            arena_printf(&s.memory, "https://%s:%u", hosts[i], byte_server_port(s.byte_server));
        ask_once(&s);
        CHECK_EQ(s.status, 0);
        CHECK(str_ends(str_from(s.said), STR(" is a loopback or link-local address, which is not "
                                             "allowed here")));
        CHECK(str_contains(str_from(s.said), STR("': address ")));
    }
    check_case(-1);
    CHECK_EQ(byte_server_conns_accepted(s.byte_server), 0);
    story_end(&s);
}

/* Whoever set the proxy: libcurl would connect to the UNIX socket that the path names. */
TEST(curl_endpoint_connects_to_no_unix_socket)
{
    struct story s;
    story_begin(&s, &good, false);
    char path[] = "/tmp/endpoint-XXXXXX";
    CHECK(mkdtemp(path) != NULL);
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    (void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/s", path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
    CHECK_EQ(listen(listener, 1), 0);
    s.access.proxy_url = arena_printf(&s.memory, "socks5h://localhost%s", name.sun_path);
    ask_once(&s);
    CHECK_EQ(s.status, 0);
    CHECK(str_contains(str_from(s.said), STR("cannot connect")));
    CHECK(accept(listener, NULL, NULL) < 0);
    (void)close(listener);
    (void)unlink(name.sun_path);
    (void)rmdir(path);
    story_end(&s);
}

TEST(curl_endpoint_names_an_unknown_authority)
{
    struct story s;
    story_begin(&s, &good, false);
    s.access.ca_pem = s.other_ca.cert_pem;
    ask_once(&s);
    CHECK_EQ(s.status, 0);
    CHECK(str_contains(str_from(s.said), STR("': certificate signed by unknown authority (")));
    CHECK(str_starts(str_from(s.said), STR("server 'https://127.0.0.1:")));
    s.access.ca_pem = STR_NONE;
    s.access.insecure = true;
    ask_once(&s);
    CHECK_EQ(s.status, 200);
    story_end(&s);
}

TEST(curl_endpoint_names_an_expired_certificate)
{
    struct story s;
    story_begin(&s, &(struct cert_spec){ .name = "x", .san = "IP:127.0.0.1", .expired = true },
                false);
    ask_once(&s);
    CHECK(str_contains(str_from(s.said), STR("the certificate does not verify (certificate has "
                                             "expired)")));
    story_end(&s);
}

TEST(curl_endpoint_names_a_certificate_for_another_host)
{
    struct story s;
    story_begin(&s, &(struct cert_spec){ .name = "x", .san = "DNS:api.example" }, false);
    ask_once(&s);
    CHECK(str_contains(str_from(s.said), STR("the certificate is not for this host (")));
    CHECK(str_contains(str_from(s.said), STR("'127.0.0.1'")));
    story_end(&s);
}

TEST(curl_endpoint_verifies_tls_server_name_instead_of_the_host)
{
    struct story s;
    story_begin(&s, &(struct cert_spec){ .name = "x", .san = "DNS:api.example" }, false);
    s.access.tls_server_name = STR("api.example");
    ask_once(&s);
    CHECK_STR(s.said, "");
    CHECK_EQ(s.status, 200);
    CHECK_STR(s.host, str_sub(s.access.server, 8, SIZE_MAX));
    s.access.tls_server_name = STR("other.example");
    ask_once(&s);
    CHECK(str_contains(str_from(s.said), STR("'other.example'")));
    story_end(&s);
}

TEST(curl_endpoint_shows_a_client_certificate)
{
    struct story s;
    story_begin(&s, &good, true);
    ask_once(&s);
    CHECK_EQ(s.status, 0);
    CHECK(str_contains(str_from(s.said), STR("certificate required")));
    s.access.cert_pem = s.client.cert_pem;
    s.access.key_pem = s.client.key_pem;
    ask_once(&s);
    CHECK_STR(s.said, "");
    CHECK_EQ(s.status, 200);
    story_end(&s);
}

TEST(curl_endpoint_refuses_a_key_of_another_certificate)
{
    struct story s;
    story_begin(&s, &good, false);
    struct err err = { 0 };
    s.access.cert_pem = s.client.cert_pem;
    CHECK(transport_new(s.loop, &s.access, &err) == NULL);
    CHECK(str_contains(str_from(err.msg), STR("only one is given")));
    s.access.key_pem = s.ca.key_pem;
    CHECK(transport_new(s.loop, &s.access, &err) == NULL);
    CHECK_STR(err.msg, "credentials: the client key is not that of the certificate");
    s.access.key_pem = STR("?");
    CHECK(transport_new(s.loop, &s.access, &err) == NULL);
    CHECK_STR(err.msg, "credentials: the client key is not PEM, or has a password");
    s.access.cert_pem = STR("?");
    CHECK(transport_new(s.loop, &s.access, &err) == NULL);
    CHECK_STR(err.msg, "credentials: the client certificate is not PEM");
    story_end(&s);
}

TEST(curl_endpoint_says_that_the_server_does_not_speak_tls)
{
    struct story s;
    story_begin(&s, &good, false);
    struct byte_server *plain = byte_server_new(s.loop, NULL, answer, &s);
    s.access.server = arena_printf(&s.memory, "https://127.0.0.1:%u", byte_server_port(plain));
    struct err err = { 0 };
    struct api *api = transport_new(s.loop, &s.access, &err);
    struct api_request request = { .path = STR("/"), .timeout = MSECONDS(50) };
    (void)api_send(api, &request, on_reply, &s);
    RUN_UNTIL(s.loop, s.done); /* the peer waits for a request, the client for a greeting */
    CHECK_EQ(s.status, 0);
    transport_free(api);
    byte_server_free(plain);
    story_end(&s);
}

TEST(curl_endpoint_resumes_tls_sessions_on_new_connections)
{
    struct story s;
    story_begin(&s, &good, false);
    struct err err = { 0 };
    struct api *api = transport_new(s.loop, &s.access, &err);
    ask(&s, api, "/close");
    CHECK_EQ(s.status, 200);
    ask(&s, api, "/close");
    CHECK_EQ(s.status, 200);
    CHECK_EQ(byte_server_conns_accepted(s.byte_server), 2);
    CHECK_EQ(byte_server_sessions_reused(s.byte_server), 1);
    transport_free(api);
    story_end(&s);
}

TEST(curl_endpoint_refuses_what_is_no_server)
{
    static const char *const bad[] = { "", "ftp://x", "https://", "https://a b", "https://[::1" };
    struct loop *loop = host_loop_new();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct cluster_access access = { .server = str_from(bad[i]) };
        struct err err = { 0 };
        CHECK(transport_new(loop, &access, &err) == NULL);
        CHECK_EQ(err.code, ERR_INVALID);
        CHECK(str_contains(str_from(err.msg), STR("want https://HOST[:PORT][/PATH]")));
    }
    struct cluster_access access = { .server = STR("https://x"), .ca_pem = STR("no pem") };
    struct err err = { 0 };
    CHECK(transport_new(loop, &access, &err) == NULL);
    CHECK_STR(err.msg, "certificate-authority: holds no certificate in PEM form");
    host_loop_free(loop);
}
