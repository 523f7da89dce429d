/*
 * watch: says to which resources something may have happened.
 *
 * One inotify instance serves all. Every folder of a path is watched for the next name of the path,
 * and what is at its end is watched itself. So a path is followed through renames, folders that are
 * removed and made again, and symbolic links that change their target; what is missing is waited
 * for at the nearest folder there is. After such a change the path is walked again, before anybody
 * looks at the resource: what happens after the look is an event again.
 *
 * Parameters of the kernel have inotify, too, but the kernel forgets the watch of one that nobody
 * holds open; so it is held. Mounts, swap and the host's name are told by poll(2).
 *
 * What cannot be watched (the kernel has no more watches to give, another machine's file system) is
 * known: watch_each_blind. A watch trusts nobody and needs not to: a path that leads elsewhere
 * costs one look too many.
 */
#pragma once

#include "agent/resource.h"
#include "agent/root.h"

#define WATCH_LINKS_MAX ROOT_LINKS_MAX

enum watch_news {
    WATCH_CHANGED, /* made, removed, replaced, written and closed */
    WATCH_WRITING, /* written to, and still open */
    WATCH_MOUNTED, /* the table of mounts has changed */
};

/* What a watch waits on; each has a descriptor that becomes readable. */
enum watch_source {
    WATCH_SOURCE_FILES,
    WATCH_SOURCE_MOUNTS,
    WATCH_SOURCE_SWAPS,
    WATCH_SOURCE_HOSTNAME,
    WATCH_SOURCES,
};

struct watch;

struct watch_spec {
    struct root *root; /* borrowed */
    void (*on_news)(void *ctx, uint32_t owner, enum watch_news news);
    void *ctx;
    uint32_t watches_max; /* 0 = as many as the kernel has to give */
};

/* NULL with `err` when the kernel has no inotify. */
NODISCARD
struct watch *watch_new(const struct watch_spec *spec, struct err *err);
void watch_free(struct watch *w); /* accepts NULL */

/* `owner` is what on_news tells. The path is copied. Events count from here on. */
void watch_add(struct watch *w, uint32_t owner, enum watch_kind kind, struct str path);
/* All that a resource needs, as its type's table says. */
void watch_resource(struct watch *w, uint32_t owner, const struct resource *r);

/* -1: nobody needs it. */
int watch_fd(const struct watch *w, enum watch_source source);
/* Its descriptor is readable: tells what has happened. Never waits. */
void watch_read(struct watch *w, enum watch_source source);

/* Those that cannot be watched, each as often as it has such paths; `why` is a sentence. */
void watch_each_blind(const struct watch *w, void (*fn)(void *ctx, uint32_t owner, const char *why),
                      void *ctx);
/* Tries again to watch them. */
void watch_retry(struct watch *w);
