#include "host/http_server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/list.h"
#include "format/gzip.h"
#include "host/address.h"
#include "host/http_documents.h"
#include "host/loop.h"
#include "host/tls_server.h"

#define HTTP_ACCEPT_PAUSE                                                                          \
    MSECONDS(100) /* out of descriptors: let some close before trying again                        \
                   */
#define HTTP_YIELD_AGE                                                                             \
    MSECONDS(10) /* the loop has read by then what came right behind a connection */
#define HTTP_REQUEST_COST                                                                          \
    32u /* bytes of memory for one of a request: evhttp keeps a header line of                     \
         * four bytes in 130 */
/* What the kernel keeps for a peer that does not read: its memory is counted like ours in a pod,
 * but nobody shares it, and nobody limits the sum. */
#define HTTP_UNSENT_BYTES_MAX (64 * 1024)
#define HTTP_PEER_BYTES_MAX 256 /* of a name in a certificate; X.520 allows 64 characters */
#define HTTP_PEER_GROUPS_MAX 32u

/* In the order in which they yield to new connections. */
enum http_state {
    HTTP_LINE,      /* its request line is awaited: nothing has come yet, or a part of it */
    HTTP_IDLE,      /* between requests */
    HTTP_READING,   /* the rest of a request is on its way */
    HTTP_ANSWERING, /* it is with the handler, or the answer is being sent */
};

struct http_conn {
    struct list link; /* of the server; the one used last is at the end */
    struct http_server *server;
    struct bufferevent *bev;         /* borrowed: evhttp frees it */
    struct evhttp_connection *evcon; /* borrowed; NULL until attached */
    enum http_state state;
    usec_t since; /* when it came into its state, or when its answer began to wait for the peer */
    size_t request_bytes;    /* that came, until the answer is out */
    bool doomed;             /* it is dropped in the next turn; nothing is sent any more */
    struct loop_timer timer; /* ends reading and idling */
    struct http_exchange *x; /* with the handler; NULL otherwise */
};

struct http_exchange {
    struct inbound_exchange door; /* first: the door is the exchange */
    struct http_conn *conn;
    struct evhttp_request *req;
    bool streaming;
    struct loop_timer drained;
    struct arena memory; /* of the peer's names */
};

struct http_server {
    struct loop *loop;
    struct http_server_config config; /* without its texts */
    inbound_handler handler;
    void *ctx;
    struct evhttp *http;
    struct evhttp_bound_socket *bound; /* borrowed: evhttp frees it, and the listener with it */
    struct evconnlistener *listener;   /* borrowed; NULL once nobody listens any more */
    struct event *marker;              /* leads from libevent's callbacks to the server */
    struct ssl_ctx_st *tls;
    uint16_t port;
    struct list conns;
    struct http_documents documents;
    size_t request_bytes; /* of all connections */
    struct loop_timer doom;
    bool paused;
    struct loop_timer resume;
    bool stopping;
    bool stopped;
    struct loop_timer stop_timer;
    void (*on_stopped)(void *ctx);
    void *on_stopped_ctx;
    struct http_stats stats;
};

static struct http_exchange *http_exchange_of(const struct inbound_exchange *x)
{
    return CONTAINER_OF((struct inbound_exchange *)(uintptr_t)x, struct http_exchange, door);
}

static void http_exchange_free(struct http_exchange *x)
{
    loop_timer_done(&x->drained);
    arena_done(&x->memory);
    alloc_free(x);
}

/* Drops the connection, wherever it is; the rest happens in http_on_close. */
static void http_conn_drop(void *ctx)
{
    struct http_conn *conn = ctx;
    evhttp_connection_free(conn->evcon);
}

static size_t http_output_bytes(const struct http_conn *conn)
{
    return evbuffer_get_length(bufferevent_get_output(conn->bev));
}

static bool http_is_slow(const struct http_conn *conn)
{
    return http_output_bytes(conn) > 0 &&
           loop_now(conn->server->loop) - conn->since >= conn->server->config.slow_time;
}

/* The connection that yields to a new one; NULL: all of them have work to do. One that was accepted
 * in this turn has no evcon and cannot be dropped yet. */
static struct http_conn *http_who_yields(const struct http_server *s)
{
    struct http_conn *first = NULL;
    LIST_EACH (&s->conns, item) {
        struct http_conn *conn = CONTAINER_OF(item, struct http_conn, link);
        bool may = conn->evcon != NULL && (conn->state != HTTP_ANSWERING || http_is_slow(conn));
        if (may && (first == NULL || conn->state < first->state)) {
            first = conn; /* of those in one state, the one used least recently comes first */
        }
    }
    return first;
}

/* Accepts while there is a place. What was accepted a moment ago may just not have been read yet,
 * so it yields a little later. */
static void http_listen_update(struct http_server *s)
{
    if (s->listener == NULL) {
        return;
    }
    bool wanted = !s->stopping && !s->paused;
    if (wanted && s->stats.connections >= s->config.connections_max) {
        const struct http_conn *conn = http_who_yields(s);
        usec_t now = loop_now(s->loop);
        usec_t at = conn == NULL ? now + s->config.slow_time : conn->since + HTTP_YIELD_AGE;
        wanted = at <= now;
        if (!wanted) {
            loop_timer_pull(&s->resume, at);
        }
    }
    if (wanted) {
        (void)evconnlistener_enable(s->listener); /* fails only when epoll does */
    } else {
        (void)evconnlistener_disable(s->listener);
    }
}

/* ── what connections hold ─────────────────────────────────────────────────────────────────── */

static size_t http_held(const struct http_server *s)
{
    return s->documents.bytes + s->request_bytes * HTTP_REQUEST_COST;
}

static void http_set_request_bytes(struct http_conn *conn, size_t n)
{
    conn->server->request_bytes += n - conn->request_bytes;
    conn->request_bytes = n;
}

/* At once, although libevent frees the buffer itself only in a later turn. */
static void http_discard_output(struct http_conn *conn)
{
    struct evbuffer *output = bufferevent_get_output(conn->bev);
    (void)evbuffer_unfreeze(output, 1); /* its beginning is the bufferevent's, which is over */
    (void)evbuffer_drain(output, evbuffer_get_length(output));
    (void)evbuffer_freeze(output, 1);
}

/* A connection with the handler is dropped in a turn of its own: its handler may be just sending to
 * many. */
static void http_conn_doom(struct http_conn *conn)
{
    struct http_server *s = conn->server;
    s->stats.dropped++;
    if (conn->state != HTTP_ANSWERING) {
        http_conn_drop(conn);
        return;
    }
    conn->doomed = true;
    http_set_request_bytes(conn, 0);
    (void)bufferevent_disable(conn->bev, EV_READ | EV_WRITE);
    http_discard_output(conn);
    loop_timer_set(&s->doom, loop_now(s->loop));
}

static void http_drop_doomed(void *ctx)
{
    struct http_server *s = ctx;
    LIST_EACH (&s->conns, item) {
        struct http_conn *conn = CONTAINER_OF(item, struct http_conn, link);
        if (conn->doomed) {
            http_conn_drop(conn);
        }
    }
}

/* The connection that has been busy for longest; a stream whose peer keeps up is not. */
static struct http_conn *http_slowest(const struct http_server *s, const struct http_conn *spared)
{
    struct http_conn *slowest = NULL;
    LIST_EACH (&s->conns, item) {
        struct http_conn *conn = CONTAINER_OF(item, struct http_conn, link);
        if (conn == spared || conn->evcon == NULL || conn->doomed) {
            continue;
        }
        bool busy =
            conn->state == HTTP_ANSWERING ? http_output_bytes(conn) > 0 : conn->request_bytes > 0;
        if (busy && (slowest == NULL || conn->since < slowest->since)) {
            slowest = conn;
        }
    }
    return slowest;
}

static void http_limit_held(struct http_server *s, const struct http_conn *spared)
{
    while (http_held(s) > s->config.held_bytes_max) {
        struct http_conn *slowest = http_slowest(s, spared);
        if (slowest == NULL) {
            return; /* what is left serves who keeps up */
        }
        http_conn_doom(slowest);
    }
}

static void http_conn_enter(struct http_conn *conn, enum http_state state)
{
    struct http_server *s = conn->server;
    const usec_t limits[] = { [HTTP_LINE] = s->config.line_time_max,
                              [HTTP_IDLE] = s->config.idle_time_max,
                              [HTTP_READING] = s->config.request_time_max };
    conn->state = state;
    conn->since = loop_now(s->loop);
    http_listen_update(s);
    if (state == HTTP_ANSWERING) {
        loop_timer_stop(&conn->timer);
    } else {
        loop_timer_set(&conn->timer, conn->since + limits[state]);
    }
}

static void http_stop_check(struct http_server *s)
{
    if (s->stopping && !s->stopped && s->stats.connections == 0) {
        loop_timer_set(&s->stop_timer, loop_now(s->loop));
    }
}

/* evhttp is about to free the connection: the peer has gone, or we dropped it. */
static void http_on_close(struct evhttp_connection *evcon UNUSED, void *ctx)
{
    struct http_conn *conn = ctx;
    struct http_server *s = conn->server;
    struct http_exchange *x = STEAL(conn->x);
    http_discard_output(conn);
    http_set_request_bytes(conn, 0);
    list_del(&conn->link);
    loop_timer_done(&conn->timer);
    s->stats.connections--;
    if (x != NULL) {
        if (x->door.on_close != NULL) {
            x->door.on_close(x->door.on_close_ctx);
        }
        /* After a failure evhttp leaves a request that was with the user to the user. */
        if (evhttp_request_get_connection(x->req) == NULL) {
            evhttp_request_free(x->req);
        }
        http_exchange_free(x);
    }
    alloc_free(conn);
    http_listen_update(s);
    http_stop_check(s);
}

static void http_on_input(struct evbuffer *buffer UNUSED, const struct evbuffer_cb_info *info,
                          void *ctx)
{
    struct http_conn *conn = ctx;
    if (info->n_added > 0 && !conn->doomed) {
        http_set_request_bytes(conn, conn->request_bytes + info->n_added);
        http_limit_held(conn->server, conn);
    }
    if (conn->state == HTTP_IDLE && info->n_added > 0) {
        http_conn_enter(conn, HTTP_LINE);
    } else if (conn->state == HTTP_LINE && info->n_deleted > 0) {
        http_conn_enter(conn, HTTP_READING); /* evhttp takes whole lines, and has taken the first */
    }
}

/* A new connection came in while all were in use. */
static void http_make_room(struct http_server *s)
{
    if (s->stats.connections > s->config.connections_max) {
        struct http_conn *conn = http_who_yields(s);
        if (conn != NULL) {
            http_conn_drop(conn);
        }
    }
    http_listen_update(s);
}

/*
 * evhttp tells of a connection only with its first request, but time and number are limited from
 * the first byte on. It hands itself to the bufferevent as the callbacks' argument, and there we
 * find it. This runs right after the accept, before anything can have been read.
 */
static void http_attach(evutil_socket_t none UNUSED, short what UNUSED, void *ctx)
{
    struct http_conn *conn = ctx;
    struct http_server *s = conn->server;
    if (s == NULL) {
        alloc_free(conn); /* the server has gone within the same turn */
        return;
    }
    void *arg = NULL;
    bufferevent_getcb(conn->bev, NULL, NULL, NULL, &arg);
    ASSERT(arg != NULL);
    conn->evcon = arg;
    ASSERT(evhttp_connection_get_bufferevent(conn->evcon) == conn->bev);
    evhttp_connection_set_closecb(conn->evcon, http_on_close, conn);

    int on = 1;
    int unsent = HTTP_UNSENT_BYTES_MAX;
    evutil_socket_t fd = bufferevent_getfd(conn->bev);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    struct timeval stall = { .tv_sec = (time_t)(s->config.stall_time_max / 1000000),
                             .tv_usec = (suseconds_t)(s->config.stall_time_max % 1000000) };
    (void)bufferevent_set_timeouts(conn->bev, NULL, &stall);
    /* What is sent while an answer is under way waits in the socket, not in our memory. */
    bufferevent_setwatermark(conn->bev, EV_READ, 0,
                             s->config.body_bytes_max + s->config.header_bytes_max);
    (void)evbuffer_add_cb(bufferevent_get_input(conn->bev), http_on_input, conn);
    http_conn_enter(conn, HTTP_LINE);
}

static struct bufferevent *http_on_accept(struct event_base *base, void *ctx)
{
    struct http_server *s = ctx;
    struct bufferevent *bev;
    if (s->tls == NULL) {
        bev = bufferevent_socket_new(base, -1, 0);
    } else {
        SSL *ssl = SSL_new(s->tls);
        if (ssl == NULL) {
            out_of_memory(sizeof(struct http_conn));
        }
        bev = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                             BEV_OPT_CLOSE_ON_FREE);
    }
    if (bev == NULL) {
        out_of_memory(sizeof(struct http_conn));
    }
    if (s->tls != NULL) {
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    }
    struct http_conn *conn = ALLOC_NEW(struct http_conn);
    conn->server = s;
    conn->bev = bev;
    loop_timer_init(&conn->timer, s->loop, http_conn_drop, conn);
    list_add(&s->conns, &conn->link);
    s->stats.connections++;
    s->stats.accepted++;
    http_make_room(s);
    int r = event_base_once(base, -1, EV_TIMEOUT, http_attach, conn, NULL);
    ASSERT(r == 0);
    return bev;
}

/* Never due: the event is there to be found by http_find_server. */
static void http_on_marker(evutil_socket_t fd UNUSED, short what UNUSED, void *ctx UNUSED)
{
}

struct http_search {
    const struct evhttp *http;
    struct http_server *found;
};

static int http_find_server(const struct event_base *base UNUSED, const struct event *event,
                            void *ctx)
{
    struct http_search *search = ctx;
    struct http_server *s = event_get_callback_arg(event);
    if (event_get_callback(event) != http_on_marker || s->http != search->http) {
        return 0;
    }
    search->found = s;
    return 1;
}

/* A listener has one context for all its callbacks, and evhttp makes that its own: `ctx` is the
 * struct evhttp, from which nothing leads to the server but a search. */
static void http_on_accept_error(struct evconnlistener *listener, void *ctx)
{
    struct http_search search = { .http = ctx };
    (void)event_base_foreach_event(evconnlistener_get_base(listener), http_find_server, &search);
    struct http_server *s = search.found;
    ASSERT(s != NULL);
    s->paused = true;
    http_listen_update(s);
    /* Whoever would yield when all places are taken yields to the want of descriptors, too. */
    usec_t now = loop_now(s->loop);
    struct http_conn *conn = http_who_yields(s);
    bool yields = conn != NULL && now - conn->since >= HTTP_YIELD_AGE;
    if (yields) {
        http_conn_drop(conn);
    }
    loop_timer_set(&s->resume, now + (yields ? HTTP_YIELD_AGE : HTTP_ACCEPT_PAUSE));
}

static void http_resume(void *ctx)
{
    struct http_server *s = ctx;
    s->paused = false;
    http_listen_update(s);
}

static struct str http_header(const struct inbound_exchange *door, const char *name)
{
    struct http_exchange *x = http_exchange_of(door);
    return str_from(evhttp_find_header(evhttp_request_get_input_headers(x->req), name));
}

static const struct {
    enum evhttp_cmd_type type;
    const char *name;
} http_methods[] = {
    { EVHTTP_REQ_GET, "GET" },       { EVHTTP_REQ_POST, "POST" },
    { EVHTTP_REQ_PUT, "PUT" },       { EVHTTP_REQ_PATCH, "PATCH" },
    { EVHTTP_REQ_DELETE, "DELETE" }, { EVHTTP_REQ_OPTIONS, "OPTIONS" },
    { EVHTTP_REQ_HEAD, "HEAD" },
};

static struct str http_method(struct evhttp_request *req)
{
    for (size_t i = 0; i < ARRAY_LEN(http_methods); i++) {
        if (http_methods[i].type == evhttp_request_get_command(req)) {
            return str_from(http_methods[i].name);
        }
    }
    return STR_NONE;
}

struct http_refusal {
    int status;
    const char *why;
};

/* What a proxy in front could read in another way than evhttp does: RFC 9112, 6.3 and 11.2. */
static struct http_refusal http_odd(struct evhttp_request *req)
{
    struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
    uint32_t lengths = 0;
    uint32_t hosts = 0;
    uint64_t length = 0;
    for (struct evkeyval *h = headers->tqh_first; h != NULL; h = h->next.tqe_next) {
        struct str key = str_from(h->key);
        if (str_eq_fold(key, STR("Transfer-Encoding"))) {
            return (struct http_refusal){ 411, "a request body needs a Content-Length" };
        }
        if (str_eq_fold(key, STR("Trailer"))) {
            return (struct http_refusal){ 400, "trailers are not accepted" };
        }
        if (str_eq_fold(key, STR("Host"))) {
            hosts++;
        }
        if (str_eq_fold(key, STR("Content-Length"))) {
            lengths++;
            if (!str_to_u64(str_from(h->value), &length)) {
                return (struct http_refusal){ 400, "Content-Length is no number" };
            }
        }
    }
    if (lengths > 1 || hosts > 1) {
        return (struct http_refusal){ 400, "a header that counts is there twice" };
    }
    if (length > 0 && evhttp_request_get_command(req) == EVHTTP_REQ_HEAD) {
        return (struct http_refusal){ 400, "a HEAD request has no body" };
    }
    const char *uri = evhttp_request_get_uri(req);
    if (uri == NULL || uri[0] != '/') {
        return (struct http_refusal){ 400, "the request target is no path" };
    }
    return (struct http_refusal){ 0, NULL };
}

static void http_refuse(struct http_conn *conn, struct evhttp_request *req,
                        struct http_refusal refusal)
{
    conn->server->stats.refused++;
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    (void)evhttp_add_header(headers, "Connection", "close");
    (void)evhttp_add_header(headers, "Content-Type", "text/plain; charset=utf-8");
    struct evbuffer *body = evbuffer_new();
    if (body == NULL) {
        out_of_memory(0);
    }
    (void)evbuffer_add_printf(body, "%s\n", refusal.why);
    evhttp_send_reply(req, refusal.status, NULL, body);
    evbuffer_free(body);
}

static struct http_conn *http_find(struct http_server *s, struct evhttp_connection *evcon)
{
    for (struct list *item = s->conns.prev; item != &s->conns; item = item->prev) {
        struct http_conn *conn = CONTAINER_OF(item, struct http_conn, link);
        if (conn->evcon == evcon) {
            list_del(&conn->link);
            list_add(&s->conns, &conn->link);
            return conn;
        }
    }
    return NULL;
}

/* The answer has gone out in full. */
static void http_on_complete(struct evhttp_request *req UNUSED, void *ctx)
{
    struct http_conn *conn = ctx;
    http_set_request_bytes(conn, evbuffer_get_length(bufferevent_get_input(conn->bev)));
    http_conn_enter(conn, HTTP_IDLE);
}

/* The names of one sort in a certificate's subject. One that is too long or cut by a NUL is left
 * out: a part of a name is somebody else's. */
static uint32_t http_peer_names(X509 *cert, int sort, struct arena *out, struct str *ret)
{
    X509_NAME *subject = X509_get_subject_name(cert);
    uint32_t n = 0;
    int at = -1;
    while ((at = X509_NAME_get_index_by_NID(subject, sort, at)) >= 0 && n < HTTP_PEER_GROUPS_MAX) {
        unsigned char *text = NULL;
        int length =
            ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
        if (length > 0 && length <= HTTP_PEER_BYTES_MAX &&
            memchr(text, '\0', (size_t)length) == NULL) {
            ret[n] = arena_str(out, (struct str){ .p = (const char *)text, .n = (size_t)length });
            n++;
        }
        OPENSSL_free(text);
    }
    return n;
}

static void http_read_peer(struct http_exchange *x, struct inbound_request *ret)
{
    SSL *ssl = x->conn->server->tls != NULL ? bufferevent_openssl_get_ssl(x->conn->bev) : NULL;
    X509 *cert = ssl != NULL ? SSL_get0_peer_certificate(ssl) : NULL;
    if (cert == NULL || SSL_get_verify_result(ssl) != X509_V_OK) {
        return;
    }
    struct str names[HTTP_PEER_GROUPS_MAX];
    uint32_t n = http_peer_names(cert, NID_commonName, &x->memory, names);
    if (n == 0) {
        return;
    }
    ret->peer = names[n - 1]; /* Go's crypto/x509 takes the last one, too */
    struct str *groups = ARENA_ARRAY(&x->memory, struct str, HTTP_PEER_GROUPS_MAX);
    ret->peer_group_n = http_peer_names(cert, NID_organizationName, &x->memory, groups);
    ret->peer_groups = groups;
}

static const struct inbound_ops http_ops;

static void http_drained(void *ctx)
{
    struct http_exchange *x = ctx;
    if (x->door.on_drain != NULL) {
        x->door.on_drain(x->door.on_drain_ctx);
    }
}

static void http_on_request(struct evhttp_request *req, void *ctx)
{
    struct http_server *s = ctx;
    struct http_conn *conn = http_find(s, evhttp_request_get_connection(req));
    ASSERT(conn != NULL);
    http_conn_enter(conn, HTTP_ANSWERING);
    evhttp_request_set_on_complete_cb(req, http_on_complete, conn);
    struct http_refusal odd = http_odd(req);
    if (odd.status != 0) {
        http_refuse(conn, req, odd);
        return;
    }
    struct http_exchange *x = ALLOC_NEW(struct http_exchange);
    x->door.ops = &http_ops;
    x->conn = conn;
    x->req = req;
    loop_timer_init(&x->drained, s->loop, http_drained, x);
    conn->x = x;
    s->stats.requests++;

    struct evbuffer *input = evhttp_request_get_input_buffer(req);
    size_t n = evbuffer_get_length(input);
    struct str target = str_from(evhttp_request_get_uri(req));
    struct inbound_request request = {
        .method = http_method(req),
        .body = { .p = n > 0 ? (const char *)evbuffer_pullup(input, -1) : "", .n = n },
        .header = http_header,
    };
    http_read_peer(x, &request);
    struct str fragment;
    (void)str_cut(target, STR("#"), &target, &fragment);
    (void)str_cut(target, STR("?"), &request.path, &request.query);
    s->handler(s->ctx, &x->door, &request);
}

static void http_set_header(struct inbound_exchange *door, const char *name, struct str value)
{
    struct http_exchange *x = http_exchange_of(door);
    char small[512];
    char *text = value.n < sizeof(small) ? small : alloc_bytes(value.n + 1);
    memcpy(text, value.p, value.n);
    text[value.n] = '\0';
    /* Refuses line breaks, so a value from outside cannot become a second header. */
    (void)evhttp_add_header(evhttp_request_get_output_headers(x->req), name, text);
    if (text != small) {
        alloc_free(text);
    }
}

static void http_set_type(struct http_exchange *x, struct str content_type)
{
    if (content_type.n > 0) {
        http_set_header(&x->door, "Content-Type", content_type);
    }
    if (x->conn->server->stopping) {
        http_set_header(&x->door, "Connection", STR("close"));
    }
}

/* What is sent: the body, or where it is accepted and shorter, the same packed. A body that goes to
 * many is packed once. */
static struct shared_bytes *http_pack(struct http_exchange *x, int status,
                                      struct shared_bytes *body)
{
    bool fits = body->bytes.n >= HTTP_GZIP_BYTES_MIN && body->bytes.n <= HTTP_GZIP_BYTES_MAX;
    if (!x->conn->server->config.gzip || !fits || status != 200 ||
        evhttp_request_get_command(x->req) == EVHTTP_REQ_HEAD ||
        evhttp_find_header(evhttp_request_get_output_headers(x->req), "Content-Encoding") != NULL) {
        return body;
    }
    /* A cache must not give the packed one to somebody who did not ask for it, nor the reverse. */
    http_set_header(&x->door, "Vary", STR("Accept-Encoding"));
    if (!gzip_is_accepted(http_header(&x->door, "Accept-Encoding"))) {
        return body;
    }
    if (body->packed == NULL) {
        struct buf packed = { 0 };
        gzip_pack(body->bytes, &packed);
        ASSERT(!packed.full); /* it is hardly longer than the body, whatever that is */
        body->packed = shared_bytes_take(&packed);
    }
    if (body->packed->bytes.n >= body->bytes.n) {
        return body; /* pictures and the like are packed already */
    }
    http_set_header(&x->door, "Content-Encoding", STR("gzip"));
    return body->packed;
}

static struct evbuffer *http_buffer(struct http_server *s, struct shared_bytes *bytes)
{
    struct evbuffer *buffer = evbuffer_new();
    if (buffer == NULL) {
        out_of_memory(0);
    }
    if (bytes != NULL) {
        http_documents_add(&s->documents, buffer, bytes);
    }
    return buffer;
}

/* Something is about to be sent. */
static void http_note_output(struct http_conn *conn)
{
    if (http_output_bytes(conn) == 0) {
        conn->since = loop_now(conn->server->loop);
    }
}

static void http_reply(struct inbound_exchange *door, int status, struct str content_type,
                       struct shared_bytes *body)
{
    struct http_exchange *x = http_exchange_of(door);
    struct http_conn *conn = x->conn;
    struct evhttp_request *req = x->req;
    bool head = evhttp_request_get_command(req) == EVHTTP_REQ_HEAD;
    ASSERT(!x->streaming);
    http_set_type(x, content_type);
    if (head) {
        char length[24];
        int n = snprintf(length, sizeof(length), "%zu", body->bytes.n);
        http_set_header(door, "Content-Length", (struct str){ .p = length, .n = (size_t)n });
    } else if (!conn->doomed) {
        body = http_pack(x, status, body);
    }
    conn->x = NULL;
    http_exchange_free(x);
    if (conn->doomed) {
        return;
    }
    struct evbuffer *bytes = http_buffer(conn->server, head ? NULL : body);
    http_note_output(conn);
    evhttp_send_reply(req, status, NULL, bytes);
    evbuffer_free(bytes);
    http_limit_held(conn->server, conn);
}

static void http_start(struct inbound_exchange *door, int status, struct str content_type)
{
    struct http_exchange *x = http_exchange_of(door);
    ASSERT(!x->streaming);
    http_set_type(x, content_type);
    x->streaming = true;
    evhttp_send_reply_start(x->req, status, NULL);
}

static void http_on_drain(struct evhttp_connection *evcon UNUSED, void *ctx)
{
    struct http_exchange *x = ctx;
    loop_timer_set(&x->drained, loop_now(x->conn->server->loop));
}

static void http_chunk(struct inbound_exchange *door, struct shared_bytes *bytes)
{
    struct http_exchange *x = http_exchange_of(door);
    struct http_conn *conn = x->conn;
    ASSERT(x->streaming);
    if (conn->doomed) {
        return; /* on_close tells the handler */
    }
    struct evbuffer *chunk = http_buffer(conn->server, bytes);
    http_note_output(conn);
    evhttp_send_reply_chunk_with_cb(x->req, chunk, http_on_drain, x);
    evbuffer_free(chunk);
    http_limit_held(conn->server, conn);
}

static void http_end(struct inbound_exchange *door)
{
    struct http_exchange *x = http_exchange_of(door);
    ASSERT(x->streaming);
    struct evhttp_request *req = x->req;
    struct http_conn *conn = x->conn;
    conn->x = NULL;
    http_exchange_free(x);
    if (!conn->doomed) {
        evhttp_send_reply_end(req);
    }
}

static size_t http_backlog(const struct inbound_exchange *door)
{
    return http_output_bytes(http_exchange_of(door)->conn);
}

static const struct inbound_ops http_ops = {
    .set_header = http_set_header,
    .reply = http_reply,
    .start = http_start,
    .chunk = http_chunk,
    .end = http_end,
    .backlog = http_backlog,
};

/* Visitors of one port get at most a quarter of the process' descriptors: the Lease, the watches
 * and the health port must find theirs whatever visitors do. */
static uint32_t http_connections_max(void)
{
    struct rlimit limit = { 0 };
    int r = getrlimit(RLIMIT_NOFILE, &limit);
    ASSERT(r == 0);
    return (uint32_t)MIN((rlim_t)HTTP_CONNECTIONS_MAX, MAX(limit.rlim_cur / 4, (rlim_t)1));
}

static void http_defaults(struct http_server_config *c)
{
    c->header_bytes_max = c->header_bytes_max > 0 ? c->header_bytes_max : HTTP_HEADER_BYTES_MAX;
    c->body_bytes_max = c->body_bytes_max > 0 ? c->body_bytes_max : HTTP_BODY_BYTES_MAX;
    if (c->connections_max == 0) {
        c->connections_max = http_connections_max();
    }
    c->held_bytes_max = c->held_bytes_max > 0 ? c->held_bytes_max : HTTP_HELD_BYTES_MAX;
    c->line_time_max = c->line_time_max > 0 ? c->line_time_max : HTTP_LINE_TIME_MAX;
    c->request_time_max = c->request_time_max > 0 ? c->request_time_max : HTTP_REQUEST_TIME_MAX;
    c->idle_time_max = c->idle_time_max > 0 ? c->idle_time_max : HTTP_IDLE_TIME_MAX;
    c->slow_time = c->slow_time > 0 ? c->slow_time : HTTP_SLOW_TIME;
    c->stall_time_max = c->stall_time_max > 0 ? c->stall_time_max : HTTP_STALL_TIME_MAX;
}

static int http_listen(struct http_server *s, struct str listen, struct err *err)
{
    struct address a;
    int r = address_parse(listen, &a, err);
    if (r < 0) {
        return r;
    }
    unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;
    struct event_base *base = host_loop_base(s->loop);
    s->listener = evconnlistener_new_bind(base, NULL, NULL, flags, SOMAXCONN,
                                          (struct sockaddr *)&a.storage, (int)a.length);
    if (s->listener == NULL && a.any && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
        /* A kernel without IPv6: all interfaces are those of IPv4. */
        struct sockaddr_in v4 = { .sin_family = AF_INET,
                                  .sin_port = ((struct sockaddr_in6 *)&a.storage)->sin6_port };
        s->listener = evconnlistener_new_bind(base, NULL, NULL, flags, SOMAXCONN,
                                              (struct sockaddr *)&v4, sizeof(v4));
    }
    if (s->listener == NULL) {
        return err_set_os(err, errno, "listen on '" STR_FMT "'", STR_ARG(listen));
    }
    struct sockaddr_storage bound = { 0 };
    socklen_t length = sizeof(bound);
    r = getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&bound, &length);
    ASSERT(r == 0);
    struct sockaddr_in6 v6 = { 0 };
    struct sockaddr_in v4 = { 0 };
    memcpy(&v6, &bound, sizeof(v6));
    memcpy(&v4, &bound, sizeof(v4));
    s->port = ntohs(bound.ss_family == AF_INET6 ? v6.sin6_port : v4.sin_port);
    s->bound = evhttp_bind_listener(s->http, s->listener);
    if (s->bound == NULL) {
        out_of_memory(0);
    }
    const struct timeval year = { .tv_sec = DAYS(365) / SECONDS(1) };
    s->marker = event_new(base, -1, EV_PERSIST, http_on_marker, s);
    if (s->marker == NULL || event_add(s->marker, &year) < 0) {
        out_of_memory(0);
    }
    evconnlistener_set_error_cb(s->listener, http_on_accept_error);
    return 0;
}

static void http_stop_done(void *ctx);

struct http_server *http_server_new(struct loop *loop, const struct http_server_config *config,
                                    inbound_handler handler, void *ctx, struct err *err)
{
    struct http_server *s = ALLOC_NEW(struct http_server);
    *s = (struct http_server){ .loop = loop, .config = *config, .handler = handler, .ctx = ctx };
    list_init(&s->conns);
    http_documents_init(&s->documents);
    loop_timer_init(&s->doom, loop, http_drop_doomed, s);
    loop_timer_init(&s->resume, loop, http_resume, s);
    loop_timer_init(&s->stop_timer, loop, http_stop_done, s);
    http_defaults(&s->config);
    int r = 0;
    if (config->tls_cert.n > 0) {
        struct tls_server_files files = { .cert = config->tls_cert,
                                          .key = config->tls_key,
                                          .client_ca = config->tls_client_ca };
        r = tls_server_new(&files, &s->tls, err);
    }
    if (r == 0) {
        s->http = evhttp_new(host_loop_base(loop));
        if (s->http == NULL) {
            out_of_memory(sizeof(*s));
        }
        uint16_t methods = 0;
        for (size_t i = 0; i < ARRAY_LEN(http_methods); i++) {
            methods |= (uint16_t)http_methods[i].type;
        }
        evhttp_set_allowed_methods(s->http, methods);
        evhttp_set_max_headers_size(s->http, (ev_ssize_t)s->config.header_bytes_max);
        evhttp_set_max_body_size(s->http, (ev_ssize_t)s->config.body_bytes_max);
        evhttp_set_default_content_type(s->http, NULL);
        evhttp_set_bevcb(s->http, http_on_accept, s);
        evhttp_set_gencb(s->http, http_on_request, s);
        r = http_listen(s, config->listen, err);
    }
    if (r < 0) {
        http_server_free(s);
        return NULL;
    }
    s->config.listen = STR_NONE; /* the texts are the caller's */
    s->config.tls_cert = s->config.tls_key = s->config.tls_client_ca = STR_NONE;
    return s;
}

int http_server_set_tls(struct http_server *s, const struct tls_server_files *files,
                        struct err *err)
{
    ASSERT(s->tls != NULL);
    struct ssl_ctx_st *fresh = NULL;
    int r = tls_server_new(files, &fresh, err);
    if (r == 0) {
        tls_server_free(s->tls); /* connections that use it hold a reference */
        s->tls = fresh;
    }
    return r;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

struct http_stats http_server_stats(const struct http_server *s)
{
    struct http_stats stats = s->stats;
    stats.held = http_held(s);
    return stats;
}

static void http_stop_done(void *ctx)
{
    struct http_server *s = ctx;
    LIST_EACH (&s->conns, item) {
        struct http_conn *conn = CONTAINER_OF(item, struct http_conn, link);
        if (conn->evcon != NULL) { /* otherwise it was accepted in this turn and is on its way */
            http_conn_drop(conn);
        }
    }
    if (!s->stopped) {
        s->stopped = true;
        loop_timer_stop(&s->stop_timer);
        s->on_stopped(s->on_stopped_ctx);
    }
}

/* Whoever keeps the stream hears that it is over; the peer sees its proper end. */
static void http_end_stream(struct http_exchange *x)
{
    if (x->door.on_close != NULL) {
        x->door.on_close(x->door.on_close_ctx);
    }
    (void)evhttp_add_header(evhttp_request_get_output_headers(x->req), "Connection", "close");
    http_end(&x->door);
}

void http_server_stop(struct http_server *s, usec_t grace, void (*on_stopped)(void *ctx), void *ctx)
{
    ASSERT(!s->stopping);
    s->stopping = true;
    s->on_stopped = on_stopped;
    s->on_stopped_ctx = ctx;
    s->listener = NULL;
    evhttp_del_accept_socket(s->http, s->bound); /* from now on the kernel refuses */
    loop_timer_set(&s->stop_timer, loop_now(s->loop) + grace);
    LIST_EACH (&s->conns, item) {
        struct http_conn *conn = CONTAINER_OF(item, struct http_conn, link);
        if (conn->x != NULL && conn->x->streaming) {
            http_end_stream(conn->x);
        } else if (conn->state == HTTP_IDLE) {
            http_conn_drop(conn);
        }
    }
    http_stop_check(s);
}

void http_server_free(struct http_server *s)
{
    if (s == NULL) {
        return;
    }
    s->stopping = true;
    s->stopped = true; /* on_stopped is not called any more */
    LIST_EACH (&s->conns, item) {
        struct http_conn *conn = CONTAINER_OF(item, struct http_conn, link);
        if (conn->evcon == NULL) { /* http_attach is about to run; it frees it */
            list_del(&conn->link);
            loop_timer_done(&conn->timer);
            conn->server = NULL;
        }
    }
    s->listener = NULL;
    if (s->marker != NULL) {
        event_free(s->marker);
    }
    if (s->http != NULL) {
        evhttp_free(s->http);
    }
    ASSERT(list_empty(&s->conns));
    http_documents_done(&s->documents);
    tls_server_free(s->tls);
    loop_timer_done(&s->doom);
    loop_timer_done(&s->resume);
    loop_timer_done(&s->stop_timer);
    alloc_free(s);
}
