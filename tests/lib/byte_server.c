#include "tests/lib/byte_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/listener.h>
#include <netinet/in.h>

#include "base/alloc.h"
#include "base/list.h"

struct byte_server {
    struct loop *loop;
    SSL_CTX *tls;
    struct evconnlistener *listener;
    uint16_t port;
    uint32_t accepted;
    uint32_t open;
    uint32_t reused;
    struct list conns;
    byte_server_handler handler;
    void *ctx;
};

struct byte_server_conn {
    struct list link;
    struct byte_server *server;
    struct bufferevent *bev;
    uint32_t number;
    uint32_t requests;
    bool closing;
    bool gone;
    bool in_handler;
};

static void conn_free(struct byte_server_conn *c)
{
    if (c->in_handler) {
        c->gone = true;
        return;
    }
    list_del(&c->link);
    c->server->open--;
    bufferevent_free(c->bev);
    alloc_free(c);
}

/* One request out of the input; false when it is not there in full. */
static bool conn_read_request(struct byte_server_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t n = evbuffer_get_length(in);
    if (n == 0 || c->closing) {
        return false;
    }
    struct str all = { .p = (const char *)evbuffer_pullup(in, -1), .n = n };
    size_t end = str_find(all, STR("\r\n\r\n"));
    if (end == SIZE_MAX) {
        return false;
    }
    struct byte_server_request request = { .head = str_sub(all, 0, end + 2) };
    struct str line;
    struct str rest;
    struct str version;
    (void)str_cut(request.head, STR("\r\n"), &line, &rest);
    (void)str_cut(line, STR(" "), &request.method, &rest);
    (void)str_cut(rest, STR(" "), &request.path, &version);
    uint32_t length = 0;
    (void)str_to_u32(byte_server_request_header(&request, STR("Content-Length")), &length);
    if (n < end + 4 + length) {
        return false;
    }
    request.body = str_sub(all, end + 4, length);
    request.conn_number = c->number;
    request.conn_requests = ++c->requests;
    c->in_handler = true;
    c->server->handler(c->server->ctx, c, &request);
    c->in_handler = false;
    (void)evbuffer_drain(in, end + 4 + length);
    return true;
}

static void on_read(struct bufferevent *bev UNUSED, void *ctx)
{
    struct byte_server_conn *c = ctx;
    while (!c->gone && conn_read_request(c)) {
    }
    if (c->gone) {
        conn_free(c);
    }
}

static void on_written(struct bufferevent *bev, void *ctx)
{
    struct byte_server_conn *c = ctx;
    if (c->closing && evbuffer_get_length(bufferevent_get_output(bev)) == 0) {
        conn_free(c);
    }
}

static void on_event(struct bufferevent *bev, short what, void *ctx)
{
    struct byte_server_conn *c = ctx;
    if ((what & BEV_EVENT_CONNECTED) != 0) {
        SSL *ssl = bufferevent_openssl_get_ssl(bev);
        c->server->reused += ssl != NULL && SSL_session_reused(ssl) ? 1 : 0;
        return;
    }
    conn_free(c);
}

static void on_accept(struct evconnlistener *listener UNUSED, evutil_socket_t fd,
                      struct sockaddr *address UNUSED, int n UNUSED, void *ctx)
{
    struct byte_server *p = ctx;
    struct byte_server_conn *c = ALLOC_NEW(struct byte_server_conn);
    c->server = p;
    c->number = ++p->accepted;
    p->open++;
    list_add(&p->conns, &c->link);
    struct event_base *base = host_loop_base(p->loop);
    c->bev = p->tls == NULL
                 ? bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE)
                 : bufferevent_openssl_socket_new(base, fd, SSL_new(p->tls),
                                                  BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    ASSERT(c->bev != NULL);
    bufferevent_setcb(c->bev, on_read, on_written, on_event, c);
    int r = bufferevent_enable(c->bev, EV_READ | EV_WRITE);
    ASSERT(r == 0);
}

struct byte_server *byte_server_new(struct loop *loop, SSL_CTX *tls, byte_server_handler handler,
                                    void *ctx)
{
    struct byte_server *p = ALLOC_NEW(struct byte_server);
    p->loop = loop;
    p->tls = tls;
    p->handler = handler;
    p->ctx = ctx;
    list_init(&p->conns);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    p->listener = evconnlistener_new_bind(
        host_loop_base(loop), on_accept, p, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 64,
        (struct sockaddr *)(void *)&address, (int)sizeof(address));
    ASSERT(p->listener != NULL);
    socklen_t size = sizeof(address);
    int r =
        getsockname(evconnlistener_get_fd(p->listener), (struct sockaddr *)(void *)&address, &size);
    ASSERT(r == 0);
    p->port = ntohs(address.sin_port);
    return p;
}

void byte_server_free(struct byte_server *p)
{
    if (p == NULL) {
        return;
    }
    LIST_EACH (&p->conns, link) {
        conn_free(CONTAINER_OF(link, struct byte_server_conn, link));
    }
    evconnlistener_free(p->listener);
    alloc_free(p);
}

uint16_t byte_server_port(const struct byte_server *p)
{
    return p->port;
}

uint32_t byte_server_conns_accepted(const struct byte_server *p)
{
    return p->accepted;
}

uint32_t byte_server_conns_open(const struct byte_server *p)
{
    return p->open;
}

uint32_t byte_server_sessions_reused(const struct byte_server *p)
{
    return p->reused;
}

void byte_server_write(struct byte_server_conn *c, struct str bytes)
{
    int r = bufferevent_write(c->bev, bytes.p, bytes.n);
    ASSERT(r == 0);
}

void byte_server_close(struct byte_server_conn *c)
{
    c->closing = true;
    if (evbuffer_get_length(bufferevent_get_output(c->bev)) == 0) {
        conn_free(c);
    }
}

void byte_server_reply(struct byte_server_conn *c, int status, struct str headers, struct str body)
{
    (void)evbuffer_add_printf(bufferevent_get_output(c->bev),
                              "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n" STR_FMT "\r\n", status,
                              body.n, STR_ARG(headers));
    if (body.n > 0) {
        byte_server_write(c, body);
    }
}

void byte_server_stream(struct byte_server_conn *c)
{
    byte_server_write(c, STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
}

void byte_server_chunk(struct byte_server_conn *c, struct str bytes)
{
    (void)evbuffer_add_printf(bufferevent_get_output(c->bev), "%zx\r\n", bytes.n);
    if (bytes.n > 0) {
        byte_server_write(c, bytes);
    }
    byte_server_write(c, STR("\r\n"));
}

struct str byte_server_request_header(const struct byte_server_request *request, struct str name)
{
    struct str rest = request->head;
    struct str line;
    while (str_cut(rest, STR("\r\n"), &line, &rest)) {
        struct str key;
        struct str value;
        if (str_cut(line, STR(":"), &key, &value) && str_eq_fold(key, name)) {
            return str_trim(value);
        }
    }
    return STR_NONE;
}
