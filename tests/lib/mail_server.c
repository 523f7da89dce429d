#include "tests/lib/mail_server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/in.h>

#include "base/alloc.h"
#include "base/list.h"

struct mailpeer {
    struct loop *loop;
    const struct mailpeer_script *script;
    struct evconnlistener *listener;
    uint16_t port;
    struct list conns;
    uint32_t open;
    struct buf heard;
};

struct mailconn {
    struct list link;
    struct mailpeer *peer;
    struct bufferevent *bev;
    bool in_text;
    struct loop_timer crumb;
    struct buf todo; /* what goes out byte by byte */
};

static void conn_free(struct mailconn *c)
{
    list_del(&c->link);
    c->peer->open--;
    loop_timer_done(&c->crumb);
    buf_done(&c->todo);
    bufferevent_free(c->bev);
    alloc_free(c);
}

static void on_crumb(void *ctx)
{
    struct mailconn *c = ctx;
    if (c->todo.n > 0) {
        (void)bufferevent_write(c->bev, c->todo.p, 1);
        buf_drop(&c->todo, 1);
        loop_timer_set(&c->crumb, loop_now(c->peer->loop));
    }
}

/* False when that ended the connection. */
static bool conn_say(struct mailconn *c, const char *answer, const char *consent)
{
    struct str text = str_from(answer != NULL ? answer : consent);
    if (str_eq(text, STR("!"))) {
        conn_free(c);
        return false;
    }
    if (c->peer->script->crumbs) {
        buf_add(&c->todo, text);
        loop_timer_pull(&c->crumb, loop_now(c->peer->loop));
    } else {
        (void)bufferevent_write(c->bev, text.p, text.n);
    }
    return true;
}

static bool conn_command(struct mailconn *c, struct str line)
{
    const struct mailpeer_script *s = c->peer->script;
    const struct {
        struct str prefix;
        const char *answer;
        const char *consent;
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
    if (c->in_text) {
        if (!str_eq(line, STR("."))) {
            return true;
        }
        c->in_text = false;
        return conn_say(c, s->text, "250 taken\r\n");
    }
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (str_starts(line, commands[i].prefix)) {
            c->in_text = str_eq(line, STR("DATA")) &&
                         (s->data == NULL || str_starts(str_from(s->data), STR("354")));
            return conn_say(c, commands[i].answer, commands[i].consent);
        }
    }
    return conn_say(c, NULL, "500 what\r\n");
}

static void on_read(struct bufferevent *bev, void *ctx)
{
    struct mailconn *c = ctx;
    struct evbuffer *in = bufferevent_get_input(bev);
    for (;;) {
        size_t n = evbuffer_get_length(in);
        struct str all = { .p = (const char *)evbuffer_pullup(in, -1), .n = n };
        size_t end = n > 0 ? str_find(all, STR("\r\n")) : SIZE_MAX;
        if (end == SIZE_MAX) {
            return;
        }
        struct str line = str_sub(all, 0, end);
        buf_add(&c->peer->heard, str_sub(all, 0, end + 2));
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
    struct mailpeer *p = ctx;
    struct mailconn *c = ALLOC_NEW(struct mailconn);
    c->peer = p;
    c->bev = bufferevent_socket_new(host_loop_base(p->loop), fd, BEV_OPT_CLOSE_ON_FREE);
    ASSERT(c->bev != NULL);
    loop_timer_init(&c->crumb, p->loop, on_crumb, c);
    list_add(&p->conns, &c->link);
    p->open++;
    bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
    (void)bufferevent_enable(c->bev, EV_READ | EV_WRITE);
    (void)conn_say(c, p->script->greeting, "220 peer\r\n"); /* a closed one is gone already */
}

struct mailpeer *mailpeer_new(struct loop *loop, const char *address,
                              const struct mailpeer_script *script)
{
    struct mailpeer *p = ALLOC_NEW(struct mailpeer);
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

void mailpeer_free(struct mailpeer *p)
{
    if (p == NULL) {
        return;
    }
    LIST_EACH (&p->conns, item) {
        conn_free(CONTAINER_OF(item, struct mailconn, link));
    }
    evconnlistener_free(p->listener);
    buf_done(&p->heard);
    alloc_free(p);
}

uint16_t mailpeer_port(const struct mailpeer *p)
{
    return p->port;
}

struct str mailpeer_heard(const struct mailpeer *p)
{
    return buf_str(&p->heard);
}

uint32_t mailpeer_open(const struct mailpeer *p)
{
    return p->open;
}
