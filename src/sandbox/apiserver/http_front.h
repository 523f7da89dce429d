/*
 * http_front: serves the sandbox's API server over HTTP.
 *
 * It maps headers both ways, streams a watch no faster than its client reads, and delays an answer
 * where the real server would take time.
 */
#pragma once

#include "base/list.h"
#include "port/loop.h"
#include "port/inbound.h"

struct apiserver;

#define HTTP_FRONT_BACKLOG_MAX                                                                     \
    ((size_t)256 * 1024) /* of one watch, before its reader has to catch up                        \
                          */

struct http_front {
    struct loop *loop;        /* borrowed: real time, as sockets know no other */
    struct apiserver *server; /* borrowed */
    bool certificates;        /* clients without a certificate are anonymous */
    double speed;             /* delays of the world's clock pass that much faster; 0 = 1 */
    struct list streams;      /* open watches */
    struct list waiting;      /* answers that wait for their time */
    uint64_t requests;
};

void http_front_init(struct http_front *f, struct loop *loop, struct apiserver *server);
/* The HTTP server, which closes open connections, must have been freed before. */
void http_front_done(struct http_front *f);

/* An inbound_handler. */
void http_front_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req);
