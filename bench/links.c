/*
 * links: what an idle connection to a workload cluster costs in memory.
 *
 *     links KUBECONFIG [COUNT]
 *
 * Dials the cluster COUNT times (100), opens a watch of its Nodes' metadata each time, waits until
 * all lists are there and nothing moves any more, and prints what the heap has grown by, a link.
 * The first link is not counted: it pays for what all share.
 */
#include "host/dialer.h"

#include <malloc.h>
#include <stdio.h>

#include "base/arena.h"
#include "host/file.h"
#include "host/loop.h"

#define LINKS_MAX 10000u
#define LINKS_DEFAULT 100u
#define QUIET MSECONDS(500)
#define PATIENCE SECONDS(30)

struct bench {
    uint32_t synced; /* links whose list is complete */
    bool failed;
};

static void on_event(void *ctx, const struct api_watch_event *event)
{
    struct bench *b = ctx;
    if (event->kind == API_WATCH_END) {
        (void)fprintf(stderr, "links: the watch ended with %d: %s\n", event->status,
                      event->err != NULL ? event->err->msg : "");
        b->failed = true;
    }
    b->synced += str_contains(event->line, STR("k8s.io/initial-events-end")) ? 1 : 0;
}

static size_t heap_used(void)
{
    (void)malloc_trim(0); /* whether anything was trimmed does not matter */
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* One more link; false when it does not come to rest. */
static bool open_link(struct bench *b, struct loop *loop, struct dialer *dialer, struct str text)
{
    static const struct api_watch_spec spec = {
        .path = STR_INIT("/api/v1/nodes?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
                         "&sendInitialEvents=true&timeoutSeconds=590&watch=1"),
        .accept = STR_INIT("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
    };
    struct err err = { 0 };
    struct api *api =
        dialer_open(dialer, &(struct dialer_spec){ STR("bench"), text, STR_NONE }, &err);
    if (api == NULL) {
        (void)fprintf(stderr, "links: %s\n", err.msg);
        return false;
    }
    uint32_t before = b->synced;
    usec_t until = loop_now(loop) + PATIENCE;
    (void)api_watch(api, &spec, on_event, b); /* it lasts until the process ends */
    while (b->synced == before && !b->failed && loop_now(loop) < until) {
        host_loop_turn(loop, MSECONDS(50));
    }
    return b->synced > before;
}

int main(int argc, char **argv)
{
    struct arena memory = { 0 };
    struct str text = STR_NONE;
    struct err err = { 0 };
    uint32_t count = LINKS_DEFAULT;
    if (argc < 2 ||
        (argc > 2 && (!str_to_u32(str_from(argv[2]), &count) || count < 1 || count > LINKS_MAX))) {
        (void)fprintf(stderr, "usage: links KUBECONFIG [COUNT]\n");
        return 2;
    }
    if (file_read(str_from(argv[1]), DIALER_KUBECONFIG_BYTES_MAX, &memory, &text, &err) < 0) {
        (void)fprintf(stderr, "links: %s\n", err.msg);
        return 1;
    }
    struct loop *loop = host_loop_new();
    struct dialer *dialer = host_dialer_new(loop, &(struct host_dialer_config){ 0 });
    struct bench b = { 0 };
    size_t first = 0;
    for (uint32_t i = 0; i <= count; i++) {
        if (!open_link(&b, loop, dialer, text)) {
            return 1;
        }
        first = i == 0 ? heap_used() : first;
    }
    for (usec_t until = loop_now(loop) + QUIET; loop_now(loop) < until;) {
        host_loop_turn(loop, MSECONDS(50));
    }
    size_t last = heap_used();
    (void)printf("%u links, %.1f KiB each\n", count, (double)(last - first) / (double)count / 1024);
    return 0; /* the process takes the links with it */
}
