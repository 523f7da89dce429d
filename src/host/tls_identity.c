#include "host/tls_identity.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#define IDENTITY_CERTS_MAX 64u /* of an authority's bundle or a chain; clusters have one or two */

static void bio_done(BIO **bio)
{
    (void)BIO_free(*bio); /* a memory BIO has nothing to flush */
}

static void x509_done(X509 **x)
{
    X509_free(*x);
}

static void pkey_done(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

static void stack_done(STACK_OF(X509) * *stack)
{
    sk_X509_pop_free(*stack, X509_free);
}

static BIO *bio_on(struct str text)
{
    BIO *bio = BIO_new_mem_buf(text.p, (int)text.n);
    if (bio == NULL) {
        out_of_memory(text.n);
    }
    return bio;
}

static int no_password(char *buf UNUSED, int size UNUSED, int writing UNUSED, void *ctx UNUSED)
{
    return -1; /* never ask at a terminal */
}

/* ── from PEM to binary ────────────────────────────────────────────────────────────────────── */

static struct str tls_identity_keep_cert(struct tls_identity *id, X509 *cert)
{
    int n = i2d_X509(cert, NULL);
    ASSERT(n > 0); /* it was read a moment ago */
    unsigned char *bytes = arena_alloc(&id->memory, (size_t)n);
    unsigned char *at = bytes;
    (void)i2d_X509(cert, &at);
    return (struct str){ .p = (const char *)bytes, .n = (size_t)n };
}

/* All certificates of a PEM text; `what` begins the message. */
static int tls_identity_keep_certs(struct tls_identity *id, struct str pem, const char *what,
                                   const struct str **ret, uint32_t *ret_n, struct err *err)
{
    CLEANUP(bio_done)
    BIO *bio = bio_on(pem);
    struct str found[IDENTITY_CERTS_MAX];
    uint32_t n = 0;
    for (;;) {
        CLEANUP(x509_done)
        X509 *cert = PEM_read_bio_X509(bio, NULL, no_password, NULL);
        if (cert == NULL || n == ARRAY_LEN(found)) {
            break;
        }
        found[n++] = tls_identity_keep_cert(id, cert);
    }
    /* The end of the text is told as a line that does not begin another one. */
    bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    if (!ended || n == 0) {
        return err_set(err, ERR_INVALID, "%s: want 1 to %u certificates in PEM form", what,
                       IDENTITY_CERTS_MAX);
    }
    struct str *kept = ARENA_ARRAY(&id->memory, struct str, n);
    memcpy(kept, found, n * sizeof(found[0]));
    *ret = kept;
    *ret_n = n;
    return 0;
}

static int tls_identity_keep_key(struct tls_identity *id, struct str pem, struct err *err)
{
    CLEANUP(bio_done)
    BIO *bio = bio_on(pem);
    CLEANUP(pkey_done)
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    int n = key != NULL ? i2d_PrivateKey(key, NULL) : 0;
    ERR_clear_error();
    if (n <= 0) {
        return err_set(err, ERR_INVALID, "client-key: is not PEM, or has a password");
    }
    unsigned char *bytes = arena_alloc(&id->memory, (size_t)n);
    unsigned char *at = bytes;
    (void)i2d_PrivateKey(key, &at);
    id->key = (struct str){ .p = (const char *)bytes, .n = (size_t)n };
    return 0;
}

int tls_identity_init(struct tls_identity *id, const struct cluster_access *access, struct err *err)
{
    /* The text of a certificate is four thirds of its bytes and more: all fits the first block. */
    size_t size = 64 + (access->ca_pem.n + access->cert_pem.n + access->key_pem.n) * 3 / 4;
    *id = (struct tls_identity){ .memory = { .first = size } };
    int r = 0;
    if (access->ca_pem.n > 0) {
        r = tls_identity_keep_certs(id, access->ca_pem, "certificate-authority", &id->trusted,
                                    &id->trusted_n, err);
    }
    if (r == 0 && access->cert_pem.n > 0) {
        r = tls_identity_keep_certs(id, access->cert_pem, "client-certificate", &id->certs,
                                    &id->certs_n, err);
        r = r < 0 ? r : tls_identity_keep_key(id, access->key_pem, err);
    }
    if (r < 0) {
        tls_identity_done(id);
    }
    return r;
}

void tls_identity_done(struct tls_identity *id)
{
    arena_wipe(&id->memory);
    *id = (struct tls_identity){ 0 };
}

/* ── from binary to a connection ───────────────────────────────────────────────────────────── */

/* NULL when one cannot be read, which was read before. */
static STACK_OF(X509) * tls_identity_stack(const struct str *certs, uint32_t n)
{
    STACK_OF(X509) *stack = sk_X509_new_null();
    if (stack == NULL) {
        out_of_memory(sizeof(*certs));
    }
    for (uint32_t i = 0; i < n; i++) {
        const unsigned char *at = (const unsigned char *)certs[i].p;
        X509 *cert = d2i_X509(NULL, &at, (long)certs[i].n);
        if (cert == NULL || sk_X509_push(stack, cert) <= 0) {
            X509_free(cert);
            sk_X509_pop_free(stack, X509_free);
            return NULL;
        }
    }
    return stack;
}

/* Verifies a server's certificate in OpenSSL's place, by our authorities. */
static int tls_identity_on_verify(X509_STORE_CTX *store, void *ctx)
{
    const struct tls_identity *id = ctx;
    CLEANUP(stack_done)
    STACK_OF(X509) *trusted = tls_identity_stack(id->trusted, id->trusted_n);
    if (trusted == NULL) {
        X509_STORE_CTX_set_error(store, X509_V_ERR_OUT_OF_MEM);
        return 0;
    }
    X509_STORE_CTX_set0_trusted_stack(store, trusted);
    /* As libcurl and Go have it: an authority that is trusted need not be a root. */
    X509_STORE_CTX_set_flags(store, X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN);
    int good = X509_verify_cert(store);
    if (good != 1) {
        /* libcurl reads the oldest of OpenSSL's complaints. A signature by another key of the same
         * name leaves its own behind before the one that tells of the certificate, and clusters do
         * call their authorities by the same name. */
        ERR_clear_error();
    }
    X509_STORE_CTX_set0_trusted_stack(store, NULL);
    X509_STORE_CTX_set0_verified_chain(store, NULL); /* the connection would keep it */
    return good;
}

/* The server asks for a certificate: 1, or 0 and the handshake fails. */
static int tls_identity_on_asked(SSL *ssl, void *ctx)
{
    const struct tls_identity *id = ctx;
    CLEANUP(stack_done)
    STACK_OF(X509) *chain = tls_identity_stack(id->certs, id->certs_n);
    const unsigned char *at = (const unsigned char *)id->key.p;
    CLEANUP(pkey_done)
    EVP_PKEY *key = d2i_AutoPrivateKey(NULL, &at, (long)id->key.n);
    if (chain == NULL || key == NULL) {
        return 0;
    }
    CLEANUP(x509_done)
    X509 *cert = sk_X509_shift(chain);
    return SSL_use_cert_and_key(ssl, cert, key, chain, /* override= */ 1) == 1 ? 1 : 0;
}

void tls_identity_use(struct tls_identity *id, SSL_CTX *ctx)
{
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    if (id->trusted_n > 0) {
        /* Not by a store of the context's, which some versions of libcurl replace by one that they
         * share between connections. */
        SSL_CTX_set_cert_verify_callback(ctx, tls_identity_on_verify, id);
    }
    if (id->certs_n > 0) {
        SSL_CTX_set_cert_cb(ctx, tls_identity_on_asked, id);
    }
}

void tls_identity_rest(SSL *ssl)
{
    SSL_certs_clear(ssl);
    /* The tickets that follow a handshake make OpenSSL allocate its buffer for writing once more,
     * and only the next write would release it. Refused while there is something in the buffers. */
    (void)SSL_free_buffers(ssl);
}
