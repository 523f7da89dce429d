/*
 * api_tap: sits between a controller and its door: sees every request at the moment it is sent, and
 * can make that moment the process' last.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "port/api.h"
#include "port/outbound.h"

enum tap_crash {
    TAP_CRASH_NONE,
    TAP_CRASH_BEFORE, /* the next write never leaves */
    TAP_CRASH_AFTER,  /* the next write leaves; nobody waits for its answer */
    /* Likewise, for the next patch that takes a node into maintenance and the next note of grants:
     * the write is on its way for so long that another leads when it arrives. */
    TAP_CRASH_PATCH,
    TAP_CRASH_NOTE,
    /* At the next write of one kind (`step`): before it leaves, when it has left, or with it on its
     * way for long. */
    TAP_CRASH_STEP_BEFORE,
    TAP_CRASH_STEP_AFTER,
    TAP_CRASH_STEP_LATE,
};

/* The kinds of writes that a grant and its release are made of. */
enum tap_step {
    TAP_STEP_LEDGER,
    TAP_STEP_LOCK,
    TAP_STEP_REQUEST,
    TAP_STEP_NODE,
    TAP_STEPS,
    TAP_STEP_MACHINE = TAP_STEPS, /* of the bridge, which has but this one, nodes and hosts */
    TAP_STEP_HOST,
};

struct tap {
    struct api api; /* what the controller is given; first, so that it can be found back */
    struct api *door;
    void (*on_send)(void *ctx, const struct api_request *request);
    void *ctx;
    enum tap_crash crash;
    enum tap_step step;
    bool crashed;         /* the moment has come: the controller must not run again */
    struct buf late_path; /* of the write that is on its way for long; empty: none is */
    struct buf late_body;
    enum api_verb late_verb;
    /* One process may have several doors. Then one tap is the head: what is above, from `crash` on,
     * is kept there for all of them, and `port` says through which one the last write went. */
    struct tap *head; /* NULL: it is its own */
    uint32_t port;
    uint32_t late_port;
};

void tap_init(struct tap *t, struct api *door,
              void (*on_send)(void *ctx, const struct api_request *request), void *ctx);

void tap_done(struct tap *t);

/* The same between a controller and third parties. Its memory lives in `arena`. */
struct outbound_tap {
    struct outbound outbound; /* first, as above */
    struct outbound *door;
    struct arena *arena; /* borrowed */
    void (*on_send)(void *ctx, struct str text);
    void (*on_reply)(void *ctx, struct str text, const struct outbound_reply *reply);
    void *ctx;
};

/* Sets `wire` alone; the rest is the caller's. */
void outbound_tap_init(struct outbound_tap *t);
