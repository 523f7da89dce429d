/*
 * files: the door to files that are read when they are needed, such as credentials that somebody
 * else renews.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct files {
    /* The whole content, in `out`; -ERR_LIMIT when it is longer than `max`. The error names the
     * file and shows nothing of what is in it. */
    int (*read)(void *ctx, struct str path, size_t max, struct arena *out, struct str *ret,
                struct err *err);
    void *ctx;
};
