#include "host/curl_loop.h"

#include <event2/event.h>

#include "base/alloc.h"
#include "base/list.h"
#include "host/loop.h"

struct multi {
    struct loop *loop; /* borrowed: from whoever made the multi */
    CURLM *curl;
    struct loop_timer timer;
    struct list sockets;
    multi_on_done on_done;
    multi_keeps keeps; /* NULL: none */
    void *ctx;
};

struct multi_socket {
    struct list link;
    struct multi *multi;
    struct event *event;
    int what;
};

static void multi_collect(struct multi *m)
{
    int left;
    CURLMsg *msg;
    while ((msg = curl_multi_info_read(m->curl, &left)) != NULL) {
        if (msg->msg != CURLMSG_DONE) {
            continue;
        }
        CURL *easy = msg->easy_handle;
        CURLcode result = msg->data.result;
        if (m->keeps == NULL || !m->keeps(m->ctx, easy, result)) {
            multi_remove(m, easy); /* `msg` is gone with it */
        }
        m->on_done(m->ctx, easy, result);
    }
}

static void multi_act(struct multi *m, curl_socket_t fd, int mask)
{
    int running;
    CURLMcode r = curl_multi_socket_action(m->curl, fd, mask, &running);
    ASSERT(r == CURLM_OK || r == CURLM_BAD_SOCKET);
    multi_collect(m);
}

static void on_event(evutil_socket_t fd, short what, void *ctx)
{
    struct multi_socket *s = ctx;
    struct multi *m = s->multi; /* `s` may go in the call below */
    (void)loop_now(m->loop);    /* the turn begins for the clock and the measure of its length */
    int mask = ((what & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
               ((what & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0);
    multi_act(m, fd, mask);
}

static void on_timer(void *ctx)
{
    struct multi *m = ctx;
    multi_act(m, CURL_SOCKET_TIMEOUT, 0);
}

static void socket_free(struct multi_socket *s)
{
    list_del(&s->link);
    event_free(s->event);
    alloc_free(s);
}

static int curl_on_socket(CURL *easy UNUSED, curl_socket_t fd, int what, void *ctx, void *known)
{
    struct multi *m = ctx;
    struct multi_socket *s = known;
    if (what == CURL_POLL_REMOVE) {
        if (s != NULL) {
            socket_free(s);
        }
        return 0;
    }
    if (s != NULL && s->what == what) {
        return 0;
    }
    if (s == NULL) {
        s = ALLOC_NEW(struct multi_socket);
        s->multi = m;
        list_add(&m->sockets, &s->link);
        CURLMcode r = curl_multi_assign(m->curl, fd, s);
        ASSERT(r == CURLM_OK);
    } else {
        event_free(s->event);
    }
    s->what = what;
    short events = (short)(EV_PERSIST | ((what & CURL_POLL_IN) != 0 ? EV_READ : 0) |
                           ((what & CURL_POLL_OUT) != 0 ? EV_WRITE : 0));
    s->event = event_new(host_loop_base(m->loop), fd, events, on_event, s);
    ASSERT(s->event != NULL);
    int r = event_add(s->event, NULL);
    ASSERT(r == 0);
    return 0;
}

static int curl_on_timer(CURLM *curl UNUSED, long timeout_ms, void *ctx)
{
    struct multi *m = ctx;
    if (timeout_ms < 0) {
        loop_timer_stop(&m->timer);
    } else {
        loop_timer_set(&m->timer, loop_now(m->loop) + MSECONDS(timeout_ms));
    }
    return 0;
}

struct multi *multi_new(struct loop *loop, multi_on_done on_done, void *ctx)
{
    /* libcurl counts these: each multi_new has its cleanup in multi_free. */
    CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
    ASSERT(code == CURLE_OK);
    struct multi *m = ALLOC_NEW(struct multi);
    m->loop = loop;
    m->on_done = on_done;
    m->ctx = ctx;
    list_init(&m->sockets);
    loop_timer_init(&m->timer, loop, on_timer, m);
    m->curl = curl_multi_init();
    if (m->curl == NULL) {
        out_of_memory(sizeof(*m));
    }
    (void)curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, curl_on_socket);
    (void)curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m);
    (void)curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, curl_on_timer);
    (void)curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m);
    (void)curl_multi_setopt(m->curl, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    return m;
}

void multi_set_keeps(struct multi *m, multi_keeps keeps)
{
    m->keeps = keeps;
}

void multi_free(struct multi *m)
{
    if (m == NULL) {
        return;
    }
    CURLMcode r = curl_multi_cleanup(m->curl);
    ASSERT(r == CURLM_OK);
    LIST_EACH (&m->sockets, link) {
        socket_free(CONTAINER_OF(link, struct multi_socket, link));
    }
    loop_timer_done(&m->timer);
    alloc_free(m);
    curl_global_cleanup();
}

void multi_set_connections_max(struct multi *m, uint32_t n)
{
    (void)curl_multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, (long)n); /* a number it knows */
}

void multi_add(struct multi *m, CURL *easy)
{
    CURLMcode r = curl_multi_add_handle(m->curl, easy);
    ASSERT(r == CURLM_OK);
}

void multi_remove(struct multi *m, CURL *easy)
{
    CURLMcode r = curl_multi_remove_handle(m->curl, easy);
    ASSERT(r == CURLM_OK);
}
