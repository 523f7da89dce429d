/*
 * certs: certificates for tests, made on the spot.
 */
#pragma once

#include <openssl/ssl.h>

#include "base/arena.h"

struct cert {
    struct str cert_pem;
    struct str key_pem;
    X509 *x509;
    EVP_PKEY *key;
};

struct cert_spec {
    const char *name;             /* common name */
    const char *organisations[2]; /* NULL = none */
    const char *san;              /* OpenSSL's form: "DNS:a,IP:127.0.0.1"; NULL = none */
    bool authority;
    bool expired;
};

/* Signed by `issuer`, or by itself when that is NULL. */
struct cert cert_make(struct arena *out, const struct cert_spec *spec, const struct cert *issuer);
void cert_done(struct cert *c);

/* A server's context; with `clients` it demands certificates of that authority. */
SSL_CTX *cert_server_context(const struct cert *server, const struct cert *clients);
