#include "tests/lib/mail_server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/in.h>

#include "base/alloc.h"
#include "base/list.h"

struct mail_server {
    struct loop *loop;
    const struct mail_server_script *script;
    struct evconnlistener *listener;
    uint16_t port;
    struct list conns;
    uint32_t open;
    struct buf received;
};

struct mail_server_conn {
    struct list link;
    struct mail_server *server;
    struct bufferevent *bev;
    bool in_data;
    struct loop_timer byte_timer;
    struct buf pending; /* what goes out byte by byte */
};

static void conn_free(struct mail_server_conn *c)
{
    list_del(&c->link);
    c->server->open--;
    loop_timer_done(&c->byte_timer);
    buf_done(&c->pending);
    bufferevent_free(c->bev);
    alloc_free(c);
}

static void on_byte_timer(void *ctx)
{
    struct mail_server_conn *c = ctx;
    if (c->pending.n > 0) {
        (void)bufferevent_write(c->bev, c->pending.p, 1);
        buf_drop(&c->pending, 1);
        loop_timer_set(&c->byte_timer, loop_now(c->server->loop));
    }
}

/* False when that ended the connection. */
static bool conn_reply(struct mail_server_conn *c, const char *answer, const char *default_answer)
{
    struct str text = str_from(answer != NULL ? answer : default_answer);
    if (str_eq(text, STR("!"))) {
        conn_free(c);
        return false;
    }
    if (c->server->script->byte_by_byte) {
        buf_add(&c->pending, text);
        loop_timer_pull(&c->byte_timer, loop_now(c->server->loop));
    } else {
        (void)bufferevent_write(c->bev, text.p, text.n);
    }
    return true;
}

static bool conn_command(struct mail_server_conn *c, struct str line)
{
    const struct mail_server_script *s = c->server->script;
    const struct {
        struct str prefix;
        const char *answer;
        const char *default_answer;
    } commands[] = {
        { STR("EHLO "), s->ehlo, "250 peer\r\n" },
        { STR("HELO "), s->helo, "250 peer\r\n" },
        { STR("STARTTLS"), s->starttls, "454 not now\r\n" },
        { STR("AUTH "), s->auth, "235 welcome\r\n" },
        { STR("MAIL "), s->mail, "250 fine\r\n" },
        { STR("RCPT "), s->rcpt, "250 fine\r\n" },
        { STR("DATA"), s->data, "354 go ahead\r\n" },
        { STR("QUIT"), s->quit, "221 bye\r\n" },
    };
    if (c->in_data) {
        if (!str_eq(line, STR("."))) {
            return true;
        }
        c->in_data = false;
        return conn_reply(c, s->text, "250 taken\r\n");
    }
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (str_starts(line, commands[i].prefix)) {
            c->in_data = str_eq(line, STR("DATA")) &&
                         (s->data == NULL || str_starts(str_from(s->data), STR("354")));
            return conn_reply(c, commands[i].answer, commands[i].default_answer);
        }
    }
    return conn_reply(c, NULL, "500 what\r\n");
}

static void on_read(struct bufferevent *bev, void *ctx)
{
    struct mail_server_conn *c = ctx;
    struct evbuffer *in = bufferevent_get_input(bev);
    for (;;) {
        size_t n = evbuffer_get_length(in);
        struct str all = { .p = (const char *)evbuffer_pullup(in, -1), .n = n };
        size_t end = n > 0 ? str_find(all, STR("\r\n")) : SIZE_MAX;
        if (end == SIZE_MAX) {
            return;
        }
        struct str line = str_sub(all, 0, end);
        buf_add(&c->server->received, str_sub(all, 0, end + 2));
        if (!conn_command(c, line)) {
            return;
        }
        (void)evbuffer_drain(in, end + 2);
    }
}

static void on_event(struct bufferevent *bev UNUSED, short what, void *ctx)
{
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0) {
        conn_free(ctx);
    }
}

static void on_accept(struct evconnlistener *listener UNUSED, evutil_socket_t fd,
                      struct sockaddr *address UNUSED, int n UNUSED, void *ctx)
{
    struct mail_server *p = ctx;
    struct mail_server_conn *c = ALLOC_NEW(struct mail_server_conn);
    c->server = p;
    c->bev = bufferevent_socket_new(host_loop_base(p->loop), fd, BEV_OPT_CLOSE_ON_FREE);
    ASSERT(c->bev != NULL);
    loop_timer_init(&c->byte_timer, p->loop, on_byte_timer, c);
    list_add(&p->conns, &c->link);
    p->open++;
    bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
    (void)bufferevent_enable(c->bev, EV_READ | EV_WRITE);
    (void)conn_reply(c, p->script->greeting, "220 peer\r\n"); /* a closed one is gone already */
}

struct mail_server *mail_server_new(struct loop *loop, const char *address,
                                    const struct mail_server_script *script)
{
    struct mail_server *p = ALLOC_NEW(struct mail_server);
    p->loop = loop;
    p->script = script;
    list_init(&p->conns);
    struct sockaddr_in where = { .sin_family = AF_INET };
    ASSERT(inet_pton(AF_INET, address, &where.sin_addr) == 1);
    p->listener = evconnlistener_new_bind(host_loop_base(loop), on_accept, p,
                                          LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, -1,
                                          (struct sockaddr *)&where, sizeof(where));
    ASSERT(p->listener != NULL);
    socklen_t n = sizeof(where);
    int r = getsockname(evconnlistener_get_fd(p->listener), (struct sockaddr *)&where, &n);
    ASSERT(r == 0);
    p->port = ntohs(where.sin_port);
    return p;
}

void mail_server_free(struct mail_server *p)
{
    if (p == NULL) {
        return;
    }
    LIST_EACH (&p->conns, item) {
        conn_free(CONTAINER_OF(item, struct mail_server_conn, link));
    }
    evconnlistener_free(p->listener);
    buf_done(&p->received);
    alloc_free(p);
}

uint16_t mail_server_port(const struct mail_server *p)
{
    return p->port;
}

struct str mail_server_received(const struct mail_server *p)
{
    return buf_str(&p->received);
}

uint32_t mail_server_conns_open(const struct mail_server *p)
{
    return p->open;
}
