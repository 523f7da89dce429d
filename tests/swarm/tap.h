/*
 * tap: sits between a controller and its door: sees every request at the moment it is sent, and can
 * make that moment the process' last.
 */
#pragma once

#include "port/api.h"

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
