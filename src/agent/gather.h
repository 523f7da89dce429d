/*
 * gather: how long an event waits before somebody looks: pure, callers pass `now`.
 *
 * What is finished (a file that was closed, renamed, removed) waits a moment, because events come
 * in crowds; all that come in this moment go together, so that a folder and what was in it are
 * looked at in the right order. A file that is still being written waits until it is quiet.
 */
#pragma once

#include "agent/watch.h"

#define GATHER_TIME MSECONDS(1)
#define GATHER_QUIET MSECONDS(200)
#define GATHER_QUIET_MAX SECONDS(2) /* some are written without an end */
#define GATHER_MOUNTS MSECONDS(200) /* a kubelet mounts many at once */

struct gather_item {
    usec_t first; /* event that waits */
    usec_t due;   /* USEC_NEVER = none waits */
};

struct gather {
    struct gather_item *items;
    uint32_t item_n;
    uint32_t *waiting; /* those that wait, in the order in which they came */
    uint32_t waiting_n;
    usec_t batch_end;
};

void gather_init(struct gather *g, uint32_t n, struct arena *out);
void gather_note(struct gather *g, uint32_t item, enum watch_news news, usec_t now);
/* What it waits for is old. */
void gather_drop(struct gather *g, uint32_t item);
/* One that is due; false when there is none. */
bool gather_take(struct gather *g, usec_t now, uint32_t *ret);
/* When the next one is due; USEC_NEVER = none waits. */
usec_t gather_next(const struct gather *g);
