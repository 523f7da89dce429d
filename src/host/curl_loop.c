#include "host/curl_loop.h"

#include <event2/event.h>

#include "base/alloc.h"
#include "base/list.h"
#include "host/loop.h"

struct curl_loop {
    struct loop *loop; /* borrowed: from whoever made the multi */
    CURLM *curl;
    struct loop_timer timer;
    struct list sockets;
    curl_loop_on_done on_done;
    curl_loop_keeps keeps; /* NULL: none */
    void *ctx;
};

struct curl_loop_socket {
    struct list link;
    struct curl_loop *multi;
    struct event *event;
    int what;
};

static void curl_loop_collect(struct curl_loop *m)
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
            curl_loop_remove(m, easy); /* this frees `msg` */
        }
        m->on_done(m->ctx, easy, result);
    }
}

static void curl_loop_act(struct curl_loop *m, curl_socket_t fd, int mask)
{
    int running;
    CURLMcode r = curl_multi_socket_action(m->curl, fd, mask, &running);
    ASSERT(r == CURLM_OK || r == CURLM_BAD_SOCKET);
    curl_loop_collect(m);
}

static void on_event(evutil_socket_t fd, short what, void *ctx)
{
    struct curl_loop_socket *s = ctx;
    struct curl_loop *m = s->multi; /* `s` may go in the call below */
    (void)loop_now(m->loop); /* the turn begins for the clock and the measure of its length */
    int mask = ((what & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
               ((what & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0);
    curl_loop_act(m, fd, mask);
}

static void on_timer(void *ctx)
{
    struct curl_loop *m = ctx;
    curl_loop_act(m, CURL_SOCKET_TIMEOUT, 0);
}

static void socket_free(struct curl_loop_socket *s)
{
    list_del(&s->link);
    event_free(s->event);
    alloc_free(s);
}

static int curl_on_socket(CURL *easy UNUSED, curl_socket_t fd, int what, void *ctx, void *known)
{
    struct curl_loop *m = ctx;
    struct curl_loop_socket *s = known;
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
        s = ALLOC_NEW(struct curl_loop_socket);
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
    struct curl_loop *m = ctx;
    if (timeout_ms < 0) {
        loop_timer_stop(&m->timer);
    } else {
        loop_timer_set(&m->timer, loop_now(m->loop) + MSECONDS(timeout_ms));
    }
    return 0;
}

struct curl_loop *curl_loop_new(struct loop *loop, curl_loop_on_done on_done, void *ctx)
{
    /* libcurl counts these: each curl_loop_new has its cleanup in curl_loop_free. */
    CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
    ASSERT(code == CURLE_OK);
    struct curl_loop *m = ALLOC_NEW(struct curl_loop);
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

void curl_loop_set_keeps(struct curl_loop *m, curl_loop_keeps keeps)
{
    m->keeps = keeps;
}

void curl_loop_free(struct curl_loop *m)
{
    if (m == NULL) {
        return;
    }
    CURLMcode r = curl_multi_cleanup(m->curl);
    ASSERT(r == CURLM_OK);
    LIST_EACH (&m->sockets, link) {
        socket_free(CONTAINER_OF(link, struct curl_loop_socket, link));
    }
    loop_timer_done(&m->timer);
    alloc_free(m);
    curl_global_cleanup();
}

void curl_loop_set_connections_max(struct curl_loop *m, uint32_t n)
{
    (void)curl_multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, (long)n); /* a number it knows */
}

void curl_loop_add(struct curl_loop *m, CURL *easy)
{
    CURLMcode r = curl_multi_add_handle(m->curl, easy);
    ASSERT(r == CURLM_OK);
}

void curl_loop_remove(struct curl_loop *m, CURL *easy)
{
    CURLMcode r = curl_multi_remove_handle(m->curl, easy);
    ASSERT(r == CURLM_OK);
}
