/*
 * tls_server: a server's TLS context from PEM in memory.
 */
#pragma once

#include "base/err.h"

struct ssl_ctx_st;

struct tls_server_files {
    struct str cert; /* leaf first, then what leads to the CA */
    struct str key;
    struct str client_ca; /* empty = certificates of clients are not asked for */
};

/* TLS 1.2 and newer. A client may come without a certificate; one that it brings must verify. Freed
 * with tls_server_free. */
NODISCARD
int tls_server_new(const struct tls_server_files *files, struct ssl_ctx_st **ret, struct err *err);
void tls_server_free(struct ssl_ctx_st *ctx);

/* What others should know of a certificate. */
struct tls_server_leaf {
    usec_t not_after;             /* wall time at which it ends */
    unsigned char key_sha256[32]; /* of its public key, as pins have it (RFC 7469 §2.4) */
};

/* Reads the first certificate of the PEM. */
NODISCARD
int tls_server_read_leaf(struct str pem, struct tls_server_leaf *ret, struct err *err);

/* The last failure that OpenSSL noted, as an error. */
int tls_server_fail(struct err *err, const char *what);
