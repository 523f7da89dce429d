/*
 * tls_identity: whom a TLS client trusts and who it is, for many connections, in as few bytes as
 * can be.
 *
 * libcurl takes PEM, parses it anew for each connection and keeps what it made for as long as that.
 * Some 15 KiB of every idle connection would be certificates and keys that no connection needs any
 * more once it stands. So they are kept in their binary form, parsed when a handshake asks for
 * them, and dropped after it. The PEM can be wiped as soon as the identity is made. The binary form
 * of the key is wiped with the identity and not earlier, because a new connection may need it at
 * any time.
 */
#pragma once

#include <openssl/ssl.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/cluster_access.h"

struct tls_identity {
    struct arena memory;
    const struct str *trusted; /* certificates of authorities */
    uint32_t trusted_n;        /* 0 = the system's */
    const struct str *certs;   /* the client's own first, then what leads to its authority */
    uint32_t certs_n;          /* 0 = it shows none */
    struct str key;
};

NODISCARD
int tls_identity_init(struct tls_identity *id, const struct cluster_access *access,
                      struct err *err);
void tls_identity_done(struct tls_identity *id);

/* Makes the connections of a context ask the identity, which outlives them. */
void tls_identity_use(struct tls_identity *id, SSL_CTX *ctx);
/* Drops what a connection that stands does not need: buffers, certificate and key. It takes them
 * again when it must. */
void tls_identity_rest(SSL *ssl);
