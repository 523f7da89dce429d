/*
 * byte_server: a server for tests, in the same process and on the same loop, that says whatever bytes the
 * test wants: well-formed, cut, slow, endless.
 */
#pragma once

#include <openssl/ssl.h>

#include "base/str.h"
#include "host/loop.h"

struct peer;
struct peer_conn; /* one connection */

struct peer_request {
    struct str method;
    struct str path;
    struct str head; /* all header lines */
    struct str body;
    uint32_t conn_number;   /* 1 = the first connection that was accepted */
    uint32_t conn_requests; /* this one included */
};

typedef void (*peer_handler)(void *ctx, struct peer_conn *conn, const struct peer_request *request);

/* `tls` is borrowed; NULL = plain. Listens on 127.0.0.1. */
struct peer *peer_new(struct loop *loop, SSL_CTX *tls, peer_handler handler, void *ctx);
void peer_free(struct peer *p);

uint16_t peer_port(const struct peer *p);
uint32_t peer_accepted(const struct peer *p);
uint32_t peer_open(const struct peer *p);   /* connections now */
uint32_t peer_reused(const struct peer *p); /* TLS sessions resumed */

void peer_write(struct peer_conn *c, struct str bytes);
void peer_close(struct peer_conn *c); /* when all is written */
/* A whole answer with Content-Length. */
void peer_reply(struct peer_conn *c, int status, struct str headers, struct str body);
/* Begins a chunked answer; then peer_chunk; an empty chunk ends it. */
void peer_stream(struct peer_conn *c);
void peer_chunk(struct peer_conn *c, struct str bytes);

/* The value of a header, or STR_NONE. */
struct str peer_header(const struct peer_request *request, struct str name);

/* A deadline for a loaded machine, not a time anything takes. */
#define RUN_PATIENCE SECONDS(60)

/* Turns the loop until the condition holds; fails the test when it never does. */
#define RUN_UNTIL(loop, condition)                                                                 \
    do {                                                                                           \
        usec_t until_ = loop_now(loop) + RUN_PATIENCE;                                             \
        while (!(condition)) {                                                                     \
            if (loop_now(loop) > until_) {                                                         \
                check_fail(__FILE__, __LINE__, "did not come true: %s", #condition);               \
            }                                                                                      \
            host_loop_turn((loop), MSECONDS(50));                                                  \
        }                                                                                          \
    } while (0)
