/*
 * http_server: an HTTP/1.1 server on libevent's evhttp, behind port/inbound.h.
 *
 * Everything a stranger could hold is limited: bytes of headers and body, connections, the time a
 * request may take to arrive, the time a connection may idle, the time a peer may refuse to read.
 * When all connections are in use, a new one takes the place of one that asks for nothing: first of
 * one that has not sent a whole request line, then of one between requests, then of one whose
 * request is still arriving, then of one that has not taken its answer for some seconds. Without
 * such a one, new ones wait in the kernel.
 *
 * What all connections hold together is limited, too: documents that are being sent, each counted
 * once however many peers it goes to, and requests. Above the limit the connections that have been
 * busy for longest are dropped, but never the one that is being served at that moment.
 *
 * With TLS a handshake counts as the beginning of a request line: it must be over in the same few
 * seconds, and it yields first.
 *
 * Request bodies come with a length: chunked ones and trailers are refused, and whatever could be
 * read in two ways (two lengths, a length with a sign, a body where none belongs) closes the
 * connection. Paths stay percent-encoded.
 */
#pragma once

#include "base/limits.h"
#include "host/tls_server.h"
#include "port/loop.h"
#include "port/inbound.h"

#define HTTP_HEADER_BYTES_MAX ((size_t)64 * 1024) /* a bearer token of 8 KiB, eight times */
#define HTTP_BODY_BYTES_MAX REQUEST_BYTES_MAX
#define HTTP_CONNECTIONS_MAX 512u /* and at most a quarter of the process' descriptors */
#define HTTP_REQUEST_TIME_MAX                                                                      \
    SECONDS(32)                            /* the original's; a slow sender holds no slot for ever \
                                            */
#define HTTP_LINE_TIME_MAX SECONDS(5)      /* who connects has something to ask */
#define HTTP_IDLE_TIME_MAX SECONDS(90)     /* the original's; longer than a scrape interval */
#define HTTP_GZIP_BYTES_MIN ((size_t)1024) /* less fits into one packet anyway */
#define HTTP_GZIP_BYTES_MAX                                                                        \
    ((size_t)1024 * 1024) /* packing takes 10 ms for so much, and all others wait meanwhile */
#define HTTP_SLOW_TIME SECONDS(5)       /* who has not taken an answer by then yields to others */
#define HTTP_STALL_TIME_MAX SECONDS(10) /* a peer that reads nothing for so long is gone */
/* What requests and answers of all connections take together. With it a controller of 5,000 nodes
 * stays below 64 MiB, and the largest document of 20,000 nodes fits. */
#define HTTP_HELD_BYTES_MAX ((size_t)24 * 1024 * 1024)

struct http_server_config {
    struct str listen;        /* ":8080", "127.0.0.1:0", "[::1]:0"; port 0 takes a free one */
    struct str tls_cert;      /* PEM, leaf first; empty = plain HTTP */
    struct str tls_key;       /* PEM */
    struct str tls_client_ca; /* PEM; empty = certificates of clients are not asked for */
    size_t header_bytes_max;  /* each of these: 0 = the default above */
    size_t body_bytes_max;
    size_t held_bytes_max;
    uint32_t connections_max;
    usec_t line_time_max; /* for the request line, from the first byte or the accept on */
    usec_t request_time_max;
    usec_t idle_time_max;
    usec_t slow_time;
    usec_t stall_time_max;
    bool gzip; /* whole answers of some length are packed for who accepts that; streams are not */
};

struct http_stats {
    uint32_t connections;
    uint64_t accepted;
    uint64_t requests; /* that reached the handler */
    uint64_t refused;  /* that were odd, or over a limit which this module checks */
    uint64_t dropped;  /* connections that were too slow while others needed the memory */
    size_t held;       /* bytes of requests and answers, as they count against held_bytes_max */
};

struct http_server;

/* Listens at once. The handler is called from the loop. NULL with `err` where it cannot. */
NODISCARD
struct http_server *http_server_new(struct loop *loop, const struct http_server_config *config,
                                    inbound_handler handler, void *ctx, struct err *err);

/* For a server that speaks TLS: connections from now on get this certificate. After a failure the
 * one before stays. */
NODISCARD
int http_server_set_tls(struct http_server *s, const struct tls_server_files *files,
                        struct err *err);

uint16_t http_server_port(const struct http_server *s);
struct http_stats http_server_stats(const struct http_server *s);

/* Accepts no more, ends streams in order (after their on_close), lets answers under way finish for
 * at most `grace`; then calls `on_stopped` from the loop, once. */
void http_server_stop(struct http_server *s, usec_t grace, void (*on_stopped)(void *ctx),
                      void *ctx);

/* Closes all connections now; exchanges that handlers keep get their on_close. Accepts NULL. Not
 * from within a handler. */
void http_server_free(struct http_server *s);
