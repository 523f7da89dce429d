/*
 * api_tap: sits between a controller and its door: sees every request at the moment it is sent, and
 * can make that moment the process' last.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "port/api.h"
#include "port/outbound.h"

enum api_tap_crash {
    API_TAP_CRASH_NONE,
    API_TAP_CRASH_BEFORE, /* the next write never leaves */
    API_TAP_CRASH_AFTER,  /* the next write leaves; nobody waits for its answer */
    /* Likewise, for the next patch that takes a node into maintenance and the next note of grants:
     * the write is on its way for so long that another leads when it arrives. */
    API_TAP_CRASH_MAINTENANCE,
    API_TAP_CRASH_GRANTS,
    /* At the next write of one kind (`step`): before it leaves, when it has left, or with it on its
     * way for long. */
    API_TAP_CRASH_WRITE_BEFORE,
    API_TAP_CRASH_WRITE_AFTER,
    API_TAP_CRASH_WRITE_LATE,
};

/* The kinds of writes that a grant and its release are made of. */
enum api_tap_write {
    API_TAP_WRITE_LIMIT,
    API_TAP_WRITE_LEASE,
    API_TAP_WRITE_REQUEST,
    API_TAP_WRITE_NODE,
    API_TAP_WRITES,
    API_TAP_WRITE_MACHINE =
        API_TAP_WRITES, /* of the bridge, which has but this one, nodes and hosts */
    API_TAP_WRITE_BAREMETALHOST,
    API_TAP_WRITE_NODE_STATE, /* of visits, which have also those of grants */
    API_TAP_WRITE_JOB,
    API_TAP_WRITE_MAINTENANCE,
};

struct api_tap {
    struct api api; /* what the controller is given; first, so that it can be found back */
    struct api *upstream;
    void (*on_send)(void *ctx, const struct api_request *request);
    void *ctx;
    enum api_tap_crash crash;
    enum api_tap_write write;
    bool crashed;         /* the moment has come: the controller must not run again */
    struct buf late_path; /* of the write that is on its way for long; empty: none is */
    struct buf late_body;
    struct buf late_type; /* of the body; empty: the usual one */
    enum api_verb late_verb;
    /* One process may have several doors. Then one tap is the head: what is above, from `crash` on,
     * is kept there for all of them, and `port` says through which one the last write went. */
    struct api_tap *first; /* NULL: it is its own */
    uint32_t cluster;
    uint32_t late_cluster;
};

void api_tap_init(struct api_tap *t, struct api *upstream,
                  void (*on_send)(void *ctx, const struct api_request *request), void *ctx);

void api_tap_done(struct api_tap *t);

/* The same between a controller and third parties. Its memory lives in `arena`. */
struct outbound_tap {
    struct outbound outbound; /* first, as above */
    struct outbound *upstream;
    struct arena *arena; /* borrowed */
    void (*on_send)(void *ctx, struct str text);
    void (*on_reply)(void *ctx, struct str text, const struct outbound_reply *reply);
    void *ctx;
};

/* Sets `wire` alone; the rest is the caller's. */
void outbound_tap_init(struct outbound_tap *t);
