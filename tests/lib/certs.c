#include "tests/lib/certs.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

static void extension_add(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    ASSERT(e != NULL);
    int r = X509_add_ext(x, e, -1);
    ASSERT(r == 1);
    X509_EXTENSION_free(e);
}

static struct str bio_text(struct arena *out, BIO *bio)
{
    char *data = NULL;
    long n = BIO_get_mem_data(bio, &data);
    struct str s = arena_str(out, (struct str){ .p = data, .n = (size_t)n });
    BIO_free(bio);
    return s;
}

struct cert cert_make(struct arena *out, const struct cert_spec *spec, const struct cert *issuer)
{
    struct cert c = { 0 };
    c.key = EVP_EC_gen("P-256");
    c.x509 = X509_new();
    ASSERT(c.key != NULL && c.x509 != NULL);
    uint32_t serial = 0;
    (void)RAND_bytes((unsigned char *)&serial, sizeof(serial));
    (void)X509_set_version(c.x509, X509_VERSION_3);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(c.x509), (long)(serial >> 1) + 1);
    (void)X509_gmtime_adj(X509_getm_notBefore(c.x509), -7200);
    (void)X509_gmtime_adj(X509_getm_notAfter(c.x509), spec->expired ? -3600 : 86400);
    (void)X509_set_pubkey(c.x509, c.key);
    X509_NAME *name = X509_get_subject_name(c.x509);
    (void)X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)spec->name,
                                     -1, -1, 0);
    for (size_t i = 0; i < ARRAY_LEN(spec->organisations); i++) {
        if (spec->organisations[i] != NULL) {
            (void)X509_NAME_add_entry_by_txt(
                name, "O", MBSTRING_ASC, (const unsigned char *)spec->organisations[i], -1, -1, 0);
        }
    }
    X509 *signer = issuer != NULL ? issuer->x509 : c.x509;
    (void)X509_set_issuer_name(c.x509, X509_get_subject_name(signer));
    if (spec->authority) {
        extension_add(c.x509, signer, NID_basic_constraints, "critical,CA:TRUE");
        extension_add(c.x509, signer, NID_key_usage, "critical,keyCertSign,digitalSignature");
    }
    extension_add(c.x509, signer, NID_subject_key_identifier, "hash");
    if (spec->san != NULL) {
        extension_add(c.x509, signer, NID_subject_alt_name, spec->san);
    }
    int r = X509_sign(c.x509, issuer != NULL ? issuer->key : c.key, EVP_sha256());
    ASSERT(r > 0);
    BIO *bio = BIO_new(BIO_s_mem());
    (void)PEM_write_bio_X509(bio, c.x509);
    c.cert_pem = bio_text(out, bio);
    bio = BIO_new(BIO_s_mem());
    (void)PEM_write_bio_PrivateKey(bio, c.key, NULL, NULL, 0, NULL, NULL);
    c.key_pem = bio_text(out, bio);
    return c;
}

void cert_done(struct cert *c)
{
    X509_free(c->x509);
    EVP_PKEY_free(c->key);
    *c = (struct cert){ 0 };
}

SSL_CTX *cert_server_context(const struct cert *server, const struct cert *clients)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    ASSERT(ctx != NULL);
    int r = SSL_CTX_use_certificate(ctx, server->x509);
    ASSERT(r == 1);
    r = SSL_CTX_use_PrivateKey(ctx, server->key);
    ASSERT(r == 1);
    (void)SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"peer", 4);
    if (clients != NULL) {
        (void)X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), clients->x509);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return ctx;
}
