/*
 * exchange_fixture: an HTTP exchange that remembers the answer, and a request to a handler.
 */
#pragma once

#include "base/buf.h"
#include "port/inbound.h"
#include "tests/check.h"

/* An exchange that remembers what was said. */
struct fake_exchange {
    struct inbound_exchange door;
    int status;
    struct buf headers;
    struct buf body;
    bool streaming;
    bool ended;
    size_t backlog;
    const struct shared_bytes *shared; /* what came last; to compare, it may be gone */
};

static inline struct fake_exchange *fake_exchange_of(const struct inbound_exchange *x)
{
    return CONTAINER_OF((struct inbound_exchange *)(uintptr_t)x, struct fake_exchange, door);
}

static inline void fake_exchange_header(struct inbound_exchange *x, const char *name,
                                        struct str value)
{
    buf_printf(&fake_exchange_of(x)->headers, "%s: " STR_FMT "\n", name, STR_ARG(value));
}

static inline void fake_exchange_reply(struct inbound_exchange *x, int status, struct str type,
                                       struct shared_bytes *body)
{
    fake_exchange_header(x, "Content-Type", type);
    fake_exchange_of(x)->status = status;
    buf_add(&fake_exchange_of(x)->body, body->bytes);
    fake_exchange_of(x)->shared = body;
    fake_exchange_of(x)->ended = true;
}

static inline void fake_exchange_start(struct inbound_exchange *x, int status, struct str type)
{
    fake_exchange_header(x, "Content-Type", type);
    fake_exchange_of(x)->status = status;
    fake_exchange_of(x)->streaming = true;
}

static inline void fake_exchange_chunk(struct inbound_exchange *x, struct shared_bytes *bytes)
{
    CHECK(!fake_exchange_of(x)->ended);
    buf_add(&fake_exchange_of(x)->body, bytes->bytes);
    fake_exchange_of(x)->shared = bytes;
}

static inline void fake_exchange_end(struct inbound_exchange *x)
{
    fake_exchange_of(x)->ended = true;
}

static inline size_t fake_exchange_backlog(const struct inbound_exchange *x)
{
    return fake_exchange_of(x)->backlog;
}

static inline struct str fake_exchange_no_header(const struct inbound_exchange *x UNUSED,
                                                 const char *name UNUSED)
{
    return STR_NONE;
}

static const struct inbound_ops fake_exchange_ops = {
    .set_header = fake_exchange_header,
    .reply = fake_exchange_reply,
    .start = fake_exchange_start,
    .chunk = fake_exchange_chunk,
    .end = fake_exchange_end,
    .backlog = fake_exchange_backlog,
};

static inline void fake_exchange_done(struct fake_exchange *f)
{
    buf_done(&f->headers);
    buf_done(&f->body);
}

static inline void send_request(inbound_handler handler, void *ctx, struct fake_exchange *f,
                                const char *method, const char *path)
{
    f->door = (struct inbound_exchange){ .ops = &fake_exchange_ops };
    struct inbound_request req = { .method = str_from(method), .header = fake_exchange_no_header };
    (void)str_cut(str_from(path), STR("?"), &req.path, &req.query);
    handler(ctx, &f->door, &req);
}
