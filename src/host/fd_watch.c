#include "host/fd_watch.h"

#include <event2/event.h>

#include "base/alloc.h"
#include "host/loop.h"

struct fd_watch {
    struct event *event;
    void (*fn)(void *ctx);
    void *ctx;
};

static void on_event(evutil_socket_t fd UNUSED, short what UNUSED, void *ctx)
{
    struct fd_watch *w = ctx;
    w->fn(w->ctx);
}

struct fd_watch *fd_watch_new(struct loop *loop, int fd, void (*fn)(void *ctx), void *ctx)
{
    struct fd_watch *w = ALLOC_NEW(struct fd_watch);
    *w = (struct fd_watch){ .fn = fn, .ctx = ctx };
    w->event = event_new(host_loop_base(loop), fd, EV_READ | EV_PERSIST, on_event, w);
    if (w->event == NULL || event_add(w->event, NULL) != 0) {
        out_of_memory(0);
    }
    return w;
}

void fd_watch_free(struct fd_watch *w)
{
    if (w != NULL) {
        event_free(w->event);
        alloc_free(w);
    }
}
