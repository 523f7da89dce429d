/*
 * desired: the list of resources that a machine should be, read and ordered, and where such lists
 * come from.
 *
 * A source is asked for its text and says when it may have changed. Today it is a file
 * (desired_file.h); whatever takes its place gives the same three functions.
 */
#pragma once

#include "agent/graph.h"

struct desired {
    struct arena memory;
    struct resource_list resources;
    struct graph graph;
};

/* NULL with `err`, whose place is one of `text`, when the list cannot be followed. */
NODISCARD
struct desired *desired_new(struct str text, struct err *err);
void desired_free(struct desired *d); /* accepts NULL */

struct desired_source {
    /* For messages: where the list is. */
    struct str (*name)(void *ctx);
    NODISCARD
    int (*read)(void *ctx, struct arena *out, struct str *ret, struct err *err);
    /* `on_change` comes from the loop when a new read may give another text. Called once. */
    NODISCARD
    int (*follow)(void *ctx, void (*on_change)(void *ctx), void *change_ctx, struct err *err);
    void *ctx;
};
