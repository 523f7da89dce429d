#include "host/tls_server.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "format/digest.h"

int tls_server_fail(struct err *err, const char *what)
{
    char text[200];
    unsigned long code = ERR_get_error();
    ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return err_set(err, ERR_INVALID, "%s: %s", what, code != 0 ? text : "not found");
}

static void tls_bio_done(BIO **bio)
{
    BIO_free(*bio);
}

static BIO *tls_reader(struct str pem)
{
    ASSERT(pem.n <= INT_MAX);
    BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
    if (bio == NULL) {
        out_of_memory(pem.n);
    }
    return bio;
}

/* A passphrase would be asked for on the terminal: a server has none. */
static int tls_no_passphrase(char *buffer UNUSED, int size UNUSED, int writing UNUSED,
                             void *ctx UNUSED)
{
    return 0;
}

static int tls_use_cert(SSL_CTX *ctx, struct str pem, struct err *err)
{
    CLEANUP(tls_bio_done)
    BIO *bio = tls_reader(pem);
    X509 *leaf = PEM_read_bio_X509(bio, NULL, tls_no_passphrase, NULL);
    if (leaf == NULL) {
        return tls_server_fail(err, "certificate");
    }
    int ok = SSL_CTX_use_certificate(ctx, leaf);
    X509_free(leaf);
    if (ok != 1) {
        return tls_server_fail(err, "certificate");
    }
    X509 *next;
    while ((next = PEM_read_bio_X509(bio, NULL, tls_no_passphrase, NULL)) != NULL) {
        if (SSL_CTX_add0_chain_cert(ctx, next) != 1) {
            X509_free(next);
            return tls_server_fail(err, "certificate chain");
        }
    }
    ERR_clear_error(); /* the end of the chain is noted as "no start line" */
    return 0;
}

static int tls_use_key(SSL_CTX *ctx, struct str pem, struct err *err)
{
    CLEANUP(tls_bio_done)
    BIO *bio = tls_reader(pem);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, tls_no_passphrase, NULL);
    if (key == NULL) {
        return tls_server_fail(err, "private key");
    }
    int ok = SSL_CTX_use_PrivateKey(ctx, key);
    EVP_PKEY_free(key);
    if (ok != 1 || SSL_CTX_check_private_key(ctx) != 1) {
        return tls_server_fail(err, "private key");
    }
    return 0;
}

static int tls_use_client_ca(SSL_CTX *ctx, struct str pem, struct err *err)
{
    CLEANUP(tls_bio_done)
    BIO *bio = tls_reader(pem);
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    X509 *ca;
    int n = 0;
    while ((ca = PEM_read_bio_X509(bio, NULL, tls_no_passphrase, NULL)) != NULL) {
        int ok = X509_STORE_add_cert(store, ca) == 1 && SSL_CTX_add_client_CA(ctx, ca) == 1;
        X509_free(ca);
        if (!ok) {
            return tls_server_fail(err, "client CA");
        }
        n++;
    }
    if (n == 0) {
        return tls_server_fail(err, "client CA");
    }
    ERR_clear_error();
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    return 0;
}

int tls_server_new(const struct tls_server_files *files, struct ssl_ctx_st **ret, struct err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL) {
        return tls_server_fail(err, "TLS");
    }
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION); /* fails for unknown versions only */
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS); /* 34 KiB less for one that is silent */
    static const unsigned char session[] = "drydock";
    (void)SSL_CTX_set_session_id_context(ctx, session, sizeof(session) - 1);
    int r = tls_use_cert(ctx, files->cert, err);
    if (r == 0) {
        r = tls_use_key(ctx, files->key, err);
    }
    if (r == 0 && files->client_ca.n > 0) {
        r = tls_use_client_ca(ctx, files->client_ca, err);
    }
    if (r < 0) {
        SSL_CTX_free(ctx);
        return r;
    }
    *ret = ctx;
    return 0;
}

int tls_server_read_leaf(struct str pem, struct tls_server_leaf *ret, struct err *err)
{
    CLEANUP(tls_bio_done)
    BIO *bio = tls_reader(pem);
    X509 *leaf = PEM_read_bio_X509(bio, NULL, tls_no_passphrase, NULL);
    unsigned char *key = NULL;
    struct tm end = { 0 };
    int n = leaf != NULL ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(leaf), &key) : -1;
    bool good = n > 0 && ASN1_TIME_to_tm(X509_get0_notAfter(leaf), &end) == 1;
    if (good) {
        sha256((struct str){ .p = (const char *)key, .n = (size_t)n }, ret->key_sha256);
        ret->not_after = SECONDS(timegm(&end));
    }
    OPENSSL_free(key);
    X509_free(leaf);
    return good ? 0 : tls_server_fail(err, "certificate");
}

void tls_server_free(struct ssl_ctx_st *ctx)
{
    SSL_CTX_free(ctx);
}
