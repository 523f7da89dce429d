/*
 * realtime: keeps a machine what a list of resources says, until it is told to stop.
 *
 *     news of a watch → gathered for a moment → check → apply → check again
 *
 * Only what something has happened to is looked at, and nothing wakes up when nothing happens.
 * Everything is looked at when the agent starts, when events were lost, and every `audit`; what
 * cannot be watched is looked at every REALTIME_POLL. A new list is adopted when it is good as a
 * whole; until then the old one stays in force. Watches stand before the first look.
 */
#pragma once

#include "agent/converge.h"
#include "agent/desired.h"
#include "agent/gather.h"
#include "base/log.h"

#define REALTIME_AUDIT HOURS(6)
#define REALTIME_POLL MINUTES(1)

struct realtime_spec {
    struct loop *loop; /* borrowed, as all below */
    struct root *root;
    struct desired_source source;
    struct engine_rules rules;
    struct converge_runner runner;
    struct units units;
    struct str state_dir;
    struct log *log;
    usec_t audit;         /* 0 = never */
    uint32_t watches_max; /* 0 = as many as there are */
    /* Waits for descriptors: `fn` is called from the loop when `fd` can be read. NULL: the caller
     * calls realtime_read itself. */
    void *(*listen)(void *ctx, int fd, void (*fn)(void *ctx), void *fn_ctx);
    void (*unlisten)(void *ctx, void *listener);
    void (*on_stopped)(void *ctx);
    void *ctx;
};

struct realtime;

/* NULL with `err` when there is no list to begin with. */
NODISCARD
struct realtime *realtime_new(const struct realtime_spec *spec, struct err *err);
void realtime_free(struct realtime *r); /* accepts NULL */

/* The work under way comes to its end, and on_stopped follows. */
void realtime_stop(struct realtime *r);

/* Takes in what watches have to tell. */
void realtime_read(struct realtime *r);

/* For reports and tests: the list in force. */
const struct converge *realtime_converge(const struct realtime *r);
