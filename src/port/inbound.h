/*
 * inbound: the inward side of the network door: what an HTTP server hands to whoever answers, and how
 * the answer goes out.
 *
 * A handler answers at once with serve_reply, or keeps the exchange and streams (server-sent
 * events, a watch). An exchange that is streaming ends by serve_end, or when the peer goes away:
 * then on_close is called, once, and the exchange is gone.
 */
#pragma once

#include "base/err.h"

struct serve_exchange;

struct serve_request {
    struct str method;
    struct str path;  /* percent-encoded, without query */
    struct str query; /* without '?' */
    struct str body;
    struct str peer; /* common name of the client's verified certificate; empty = none */
    /* Case-insensitive; STR_NONE when absent. */
    struct str (*header)(const struct serve_exchange *x, const char *name);
};

struct serve_ops {
    void (*set_header)(struct serve_exchange *x, const char *name, struct str value);
    void (*reply)(struct serve_exchange *x, int status, struct str content_type, struct str body);
    void (*start)(struct serve_exchange *x, int status, struct str content_type);
    void (*chunk)(struct serve_exchange *x, struct str bytes);
    void (*end)(struct serve_exchange *x);
    size_t (*backlog)(
        const struct serve_exchange *x); /* bytes given and not yet taken by the peer */
};

/* Implementations embed this first. */
struct serve_exchange {
    const struct serve_ops *ops;
    void (*on_close)(void *ctx); /* set by the handler that keeps the exchange */
    void *on_close_ctx;
    /* May be NULL: a stream's peer has taken all it was given, from the loop. */
    void (*on_drain)(void *ctx);
    void *on_drain_ctx;
};

typedef void (*serve_handler)(void *ctx, struct serve_exchange *x, const struct serve_request *req);

static inline void serve_set_header(struct serve_exchange *x, const char *name, struct str value)
{
    x->ops->set_header(x, name, value);
}

/* The whole answer; the exchange is over. */
static inline void serve_reply(struct serve_exchange *x, int status, struct str content_type,
                               struct str body)
{
    x->ops->reply(x, status, content_type, body);
}

static inline void serve_start(struct serve_exchange *x, int status, struct str content_type)
{
    x->ops->start(x, status, content_type);
}

static inline void serve_chunk(struct serve_exchange *x, struct str bytes)
{
    x->ops->chunk(x, bytes);
}

static inline void serve_end(struct serve_exchange *x)
{
    x->ops->end(x);
}

static inline size_t serve_backlog(const struct serve_exchange *x)
{
    return x->ops->backlog(x);
}
