#include "sandbox/apiserver/http_front.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/alloc.h"
#include "sandbox/apiserver/apiserver.h"

#define HTTP_FRONT_CHUNK_BYTES                                                                     \
    ((size_t)64 * 1024) /* lines that are there together go out together */

struct http_front_stream {
    struct list link;
    struct inbound_exchange *x; /* borrowed: until on_close or inbound_end */
    struct apiserver_watch *watch;
};

struct http_front_waiting {
    struct list link;
    struct arena memory; /* holds the reply */
    struct apiserver_reply reply;
    struct inbound_exchange *x;
    struct loop_timer timer;
};

void http_front_init(struct http_front *f, struct loop *loop, struct apiserver *server)
{
    *f = (struct http_front){ .loop = loop, .server = server };
    list_init(&f->streams);
    list_init(&f->waiting);
}

void http_front_done(struct http_front *f)
{
    ASSERT(list_empty(&f->streams));
    ASSERT(list_empty(&f->waiting));
}

static void http_front_stream_free(struct http_front_stream *s)
{
    list_del(&s->link);
    apiserver_watch_close(s->watch);
    alloc_free(s);
}

static void http_front_stream_closed(void *ctx)
{
    http_front_stream_free(ctx);
}

/* Gives the peer what there is, as long as it keeps up; it is called again when more is there or
 * when the peer has read. */
static void http_front_pump(void *ctx)
{
    struct http_front_stream *s = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf chunk = { 0 };
    bool ended = false;
    struct str line;
    while (inbound_backlog(s->x) + chunk.n < HTTP_FRONT_BACKLOG_MAX &&
           apiserver_watch_next(s->watch, &tmp, &line, &ended)) {
        buf_add(&chunk, line);
        buf_add_char(&chunk, '\n');
        if (chunk.n >= HTTP_FRONT_CHUNK_BYTES) {
            inbound_chunk(s->x, buf_str(&chunk));
            buf_reset(&chunk);
            arena_reset(&tmp);
        }
    }
    if (chunk.n > 0) {
        inbound_chunk(s->x, buf_str(&chunk));
    }
    if (ended) {
        inbound_end(s->x);
        http_front_stream_free(s);
    }
}

static void http_front_stream(struct http_front *f, struct inbound_exchange *x,
                              const struct apiserver_reply *reply)
{
    struct http_front_stream *s = ALLOC_NEW(struct http_front_stream);
    s->x = x;
    s->watch = reply->watch;
    list_add(&f->streams, &s->link);
    x->on_close = http_front_stream_closed;
    x->on_close_ctx = s;
    x->on_drain = http_front_pump;
    x->on_drain_ctx = s;
    inbound_start(x, reply->status, reply->content_type);
    apiserver_watch_notify(s->watch, http_front_pump, s);
}

static void http_front_headers(struct inbound_exchange *x, const struct apiserver_reply *reply)
{
    inbound_set_header(x, "Cache-Control", STR("no-cache, private"));
    if (reply->retry_after > 0) {
        char seconds[24];
        int n = snprintf(seconds, sizeof(seconds), "%lld",
                         (long long)((reply->retry_after + 999999) / 1000000));
        inbound_set_header(x, "Retry-After", (struct str){ .p = seconds, .n = (size_t)n });
    }
    if (reply->warning.n > 0) {
        inbound_set_header(x, "Warning", reply->warning);
    }
    if (reply->allow.n > 0) {
        inbound_set_header(x, "Allow", reply->allow);
    }
    if (reply->www_authenticate.n > 0) {
        inbound_set_header(x, "Www-Authenticate", reply->www_authenticate);
    }
}

static void http_front_waiting_free(void *ctx)
{
    struct http_front_waiting *w = ctx;
    list_del(&w->link);
    loop_timer_done(&w->timer);
    arena_done(&w->memory);
    alloc_free(w);
}

static void http_front_waiting_fire(void *ctx)
{
    struct http_front_waiting *w = ctx;
    inbound_reply(w->x, w->reply.status, w->reply.content_type, w->reply.body);
    http_front_waiting_free(w);
}

static void http_front_wait(struct http_front *f, struct inbound_exchange *x, struct arena *memory,
                            const struct apiserver_reply *reply)
{
    struct http_front_waiting *w = ALLOC_NEW(struct http_front_waiting);
    w->memory = *memory;
    *memory = (struct arena){ 0 };
    w->reply = *reply;
    w->x = x;
    list_add(&f->waiting, &w->link);
    x->on_close = http_front_waiting_free;
    x->on_close_ctx = w;
    loop_timer_init(&w->timer, f->loop, http_front_waiting_fire, w);
    double speed = f->speed > 0 ? f->speed : 1;
    loop_timer_set(&w->timer, loop_now(f->loop) + (usec_t)((double)reply->delay / speed));
}

void http_front_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req)
{
    struct http_front *f = ctx;
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    f->requests++;
    struct apiserver_request request = {
        .method = req->method,
        .path = req->path,
        .accept = req->header(x, "Accept"),
        .content_type = req->header(x, "Content-Type"),
        .authorization = req->header(x, "Authorization"),
        .impersonate_user = req->header(x, "Impersonate-User"),
        .user_agent = req->header(x, "User-Agent"),
        .body = req->body,
    };
    if (req->query.n > 0) {
        request.path =
            arena_printf(&memory, STR_FMT "?" STR_FMT, STR_ARG(req->path), STR_ARG(req->query));
    }
    request.anonymous = f->certificates && req->peer.n == 0 && request.authorization.n == 0;
    struct apiserver_reply reply = { 0 };
    apiserver_handle(f->server, &request, &memory, &reply);
    http_front_headers(x, &reply);
    if (reply.watch != NULL) {
        http_front_stream(f, x, &reply);
    } else if (reply.delay > 0) {
        http_front_wait(f, x, &memory, &reply);
    } else {
        inbound_reply(x, reply.status, reply.content_type, reply.body);
    }
}
