/*
 * api_trace: tells every request to a cluster on stderr, with its answer and the time that it took,
 * for -v. It stands between a command and the API that the command uses.
 */
#pragma once

#include "port/api.h"
#include "port/loop.h"

struct api_trace {
    struct api api;    /* what the command uses */
    struct api *inner; /* borrowed: what does the work */
    struct loop *loop; /* borrowed */
};

/* The API to use: `inner` itself when the verbosity is 0. */
struct api *api_trace_on(struct api_trace *t, struct api *inner, struct loop *loop,
                         uint32_t verbosity);
