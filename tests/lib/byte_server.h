/*
 * byte_server: a server for tests, in the same process and on the same loop, that says whatever
 * bytes the test wants: well-formed, cut, slow, endless.
 */
#pragma once

#include <openssl/ssl.h>

#include "base/str.h"
#include "host/loop.h"

struct byte_server;
struct byte_server_conn; /* one connection */

struct byte_server_request {
    struct str method;
    struct str path;
    struct str head; /* all header lines */
    struct str body;
    uint32_t conn_number;   /* 1 = the first connection that was accepted */
    uint32_t conn_requests; /* this one included */
};

typedef void (*byte_server_handler)(void *ctx, struct byte_server_conn *conn,
                                    const struct byte_server_request *request);

/* `tls` is borrowed; NULL = plain. Listens on 127.0.0.1. */
struct byte_server *byte_server_new(struct loop *loop, SSL_CTX *tls, byte_server_handler handler,
                                    void *ctx);
void byte_server_free(struct byte_server *p);

uint16_t byte_server_port(const struct byte_server *p);
uint32_t byte_server_conns_accepted(const struct byte_server *p);
uint32_t byte_server_conns_open(const struct byte_server *p);      /* connections now */
uint32_t byte_server_sessions_reused(const struct byte_server *p); /* TLS sessions resumed */

void byte_server_write(struct byte_server_conn *c, struct str bytes);
void byte_server_close(struct byte_server_conn *c); /* when all is written */
/* A whole answer with Content-Length. */
void byte_server_reply(struct byte_server_conn *c, int status, struct str headers, struct str body);
/* Begins a chunked answer; then byte_server_chunk; an empty chunk ends it. */
void byte_server_stream(struct byte_server_conn *c);
void byte_server_chunk(struct byte_server_conn *c, struct str bytes);

/* The value of a header, or STR_NONE. */
struct str byte_server_request_header(const struct byte_server_request *request, struct str name);

/* A deadline for a loaded machine, not a time anything takes. */
#define RUN_TIMEOUT SECONDS(60)

/* Turns the loop until the condition holds; fails the test when it never does. */
#define RUN_UNTIL(loop, condition)                                                                 \
    do {                                                                                           \
        usec_t deadline_ = loop_now(loop) + RUN_TIMEOUT;                                           \
        while (!(condition)) {                                                                     \
            if (loop_now(loop) > deadline_) {                                                      \
                check_fail(__FILE__, __LINE__, "did not come true: %s", #condition);               \
            }                                                                                      \
            host_loop_turn((loop), MSECONDS(50));                                                  \
        }                                                                                          \
    } while (0)
