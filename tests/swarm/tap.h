/*
 * tap: sits between a controller and its door: sees every request at the moment it is sent, and can
 * make that moment the process' last.
 */
#pragma once

#include "base/arena.h"
#include "port/api.h"
#include "port/wire.h"

enum tap_crash {
    TAP_CRASH_NONE,
    TAP_CRASH_BEFORE, /* the next write never leaves */
    TAP_CRASH_AFTER,  /* the next write leaves; nobody waits for its answer */
};

struct tap {
    struct api api; /* what the controller is given; first, so that it can be found back */
    struct api *door;
    void (*on_send)(void *ctx, const struct api_request *request);
    void *ctx;
    enum tap_crash crash;
    bool crashed; /* the moment has come: the controller must not run again */
};

void tap_init(struct tap *t, struct api *door,
              void (*on_send)(void *ctx, const struct api_request *request), void *ctx);

/* The same between a controller and third parties. Its memory lives in `arena`. */
struct wire_tap {
    struct wire wire; /* first, as above */
    struct wire *door;
    struct arena *arena; /* borrowed */
    void (*on_send)(void *ctx, struct str text);
    void (*on_reply)(void *ctx, struct str text, const struct wire_reply *reply);
    void *ctx;
};

/* Sets `wire` alone; the rest is the caller's. */
void wire_tap_init(struct wire_tap *t);
