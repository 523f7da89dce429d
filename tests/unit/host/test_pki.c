#include "host/pki.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "host/tls_server.h"
#include "tests/check.h"

static void ssl_ctx_done(SSL_CTX **ctx)
{
    SSL_CTX_free(*ctx);
}

static void ssl_done(SSL **ssl)
{
    SSL_free(*ssl);
}

static SSL_CTX *client_context(const struct pki *pki, bool with_certificate)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    BIO *bio = BIO_new_mem_buf(pki->ca_cert.p, (int)pki->ca_cert.n);
    X509 *ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    CHECK_EQ(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca), 1);
    X509_free(ca);
    BIO_free(bio);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (with_certificate) {
        bio = BIO_new_mem_buf(pki->client_cert.p, (int)pki->client_cert.n);
        X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
        CHECK_EQ(SSL_CTX_use_certificate(ctx, cert), 1);
        X509_free(cert);
        BIO_free(bio);
        bio = BIO_new_mem_buf(pki->client_key.p, (int)pki->client_key.n);
        EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
        CHECK_EQ(SSL_CTX_use_PrivateKey(ctx, key), 1);
        EVP_PKEY_free(key);
        BIO_free(bio);
    }
    return ctx;
}

/* Shakes hands in memory; answers what each side makes of the other. */
static bool shake(SSL_CTX *server_ctx, SSL_CTX *client_ctx, const char *name,
                  bool *ret_client_known)
{
    CLEANUP(ssl_done)
    SSL *server = SSL_new(server_ctx);
    CLEANUP(ssl_done)
    SSL *client = SSL_new(client_ctx);
    BIO *a;
    BIO *b;
    CHECK_EQ(BIO_new_bio_pair(&a, 0, &b, 0), 1);
    SSL_set_bio(server, a, a);
    SSL_set_bio(client, b, b);
    SSL_set_accept_state(server);
    SSL_set_connect_state(client);
    CHECK_EQ(SSL_set1_host(client, name), 1);
    for (int i = 0; i < 20; i++) {
        (void)SSL_do_handshake(client);
        (void)SSL_do_handshake(server);
    }
    *ret_client_known =
        SSL_get0_peer_certificate(server) != NULL && SSL_get_verify_result(server) == X509_V_OK;
    return SSL_is_init_finished(client) && SSL_is_init_finished(server);
}

TEST(pki_makes_a_server_and_a_client_that_trust_each_other)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct pki pki;
    usec_t now = SECONDS((usec_t)time(NULL));
    CHECK_EQ(pki_make(now, &a, &pki, &err), 0);
    CLEANUP(ssl_ctx_done)
    SSL_CTX *server = NULL;
    struct tls_server_files files = { .cert = pki.server_cert,
                                      .key = pki.server_key,
                                      .client_ca = pki.ca_cert };
    CHECK_EQ(tls_server_new(&files, &server, &err), 0);
    bool known;
    CLEANUP(ssl_ctx_done)
    SSL_CTX *with = client_context(&pki, true);
    CHECK(shake(server, with, "localhost", &known));
    CHECK(known);
    CLEANUP(ssl_ctx_done)
    SSL_CTX *without = client_context(&pki, false);
    CHECK(shake(server, without, "localhost", &known));
    CHECK(!known);
    CHECK(!shake(server, with, "elsewhere.example", &known));

    struct pki other;
    CHECK_EQ(pki_make(now, &a, &other, &err), 0);
    CLEANUP(ssl_ctx_done)
    SSL_CTX *stranger = client_context(&other, true);
    CHECK(!shake(server, stranger, "localhost", &known));
}

TEST(tls_server_new_says_what_is_wrong)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct pki pki;
    CHECK_EQ(pki_make(SECONDS(1000000000), &a, &pki, &err), 0);
    struct ssl_ctx_st *ctx;
    struct tls_server_files none = { .cert = STR("no certificate"), .key = pki.server_key };
    CHECK_EQ(tls_server_new(&none, &ctx, &err), -ERR_INVALID);
    CHECK(str_starts(str_from(err.msg), STR("certificate: ")));
    struct tls_server_files other = { .cert = pki.server_cert, .key = pki.client_key };
    CHECK_EQ(tls_server_new(&other, &ctx, &err), -ERR_INVALID);
    CHECK(str_starts(str_from(err.msg), STR("private key: ")));
    struct tls_server_files no_ca = { .cert = pki.server_cert,
                                      .key = pki.server_key,
                                      .client_ca = STR("x") };
    CHECK_EQ(tls_server_new(&no_ca, &ctx, &err), -ERR_INVALID);
    CHECK(str_starts(str_from(err.msg), STR("client CA: ")));
}
