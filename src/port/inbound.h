/*
 * inbound: the door for requests that come to us: what an HTTP server gives to a handler, and how
 * the handler answers.
 *
 * A handler answers at once with inbound_reply, or keeps the exchange and streams (server-sent
 * events, a watch). An exchange that is streaming ends by inbound_end, or when the peer goes away:
 * then on_close is called, once, and the exchange is gone.
 */
#pragma once

#include "base/err.h"
#include "base/shared_bytes.h"

struct inbound_exchange;

struct inbound_request {
    struct str method;
    struct str path;  /* percent-encoded, without query */
    struct str query; /* without '?' */
    struct str body;
    struct str peer; /* common name of the client's verified certificate; empty = none */
    const struct str *peer_groups; /* the certificate's organisations */
    uint32_t peer_group_n;
    /* Case-insensitive; STR_NONE when absent. */
    struct str (*header)(const struct inbound_exchange *x, const char *name);
};

struct inbound_ops {
    void (*set_header)(struct inbound_exchange *x, const char *name, struct str value);
    void (*reply)(struct inbound_exchange *x, int status, struct str content_type,
                  struct shared_bytes *body);
    void (*start)(struct inbound_exchange *x, int status, struct str content_type);
    void (*chunk)(struct inbound_exchange *x, struct shared_bytes *bytes);
    void (*end)(struct inbound_exchange *x);
    size_t (*backlog)(
        const struct inbound_exchange *x); /* bytes given and not yet taken by the peer */
};

/* Implementations embed this first. */
struct inbound_exchange {
    const struct inbound_ops *ops;
    void (*on_close)(void *ctx); /* set by the handler that keeps the exchange */
    void *on_close_ctx;
    /* May be NULL: a stream's peer has taken all it was given, from the loop. */
    void (*on_drain)(void *ctx);
    void *on_drain_ctx;
};

typedef void (*inbound_handler)(void *ctx, struct inbound_exchange *x,
                                const struct inbound_request *req);

static inline void inbound_set_header(struct inbound_exchange *x, const char *name,
                                      struct str value)
{
    x->ops->set_header(x, name, value);
}

/* The whole answer; the exchange is over. One that goes to many takes no memory for each of them:
 * the exchange takes a reference of its own for as long as it sends. */
static inline void inbound_reply_shared(struct inbound_exchange *x, int status,
                                        struct str content_type, struct shared_bytes *body)
{
    x->ops->reply(x, status, content_type, body);
}

static inline void inbound_reply(struct inbound_exchange *x, int status, struct str content_type,
                                 struct str body)
{
    CLEANUP(shared_bytes_unrefp)
    struct shared_bytes *copy = shared_bytes_copy(body);
    inbound_reply_shared(x, status, content_type, copy);
}

static inline void inbound_start(struct inbound_exchange *x, int status, struct str content_type)
{
    x->ops->start(x, status, content_type);
}

static inline void inbound_chunk_shared(struct inbound_exchange *x, struct shared_bytes *bytes)
{
    x->ops->chunk(x, bytes);
}

static inline void inbound_chunk(struct inbound_exchange *x, struct str bytes)
{
    CLEANUP(shared_bytes_unrefp)
    struct shared_bytes *copy = shared_bytes_copy(bytes);
    inbound_chunk_shared(x, copy);
}

static inline void inbound_end(struct inbound_exchange *x)
{
    x->ops->end(x);
}

static inline size_t inbound_backlog(const struct inbound_exchange *x)
{
    return x->ops->backlog(x);
}
