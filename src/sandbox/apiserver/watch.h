/*
 * watch: a stream of changes. The functions for its reader are in apiserver.h.
 *
 * A watch is a position in its store's ring of changes. It holds references to the objects of the
 * initial list and otherwise nothing: a line is cut from the text the objects share when the reader
 * asks for it.
 */
#pragma once

#include "sandbox/apiserver/apiserver_internal.h"

#define WATCH_BOOKMARK_EVERY SECONDS(60) /* as the real server, about once a minute */
#define WATCH_TIMEOUT_MIN SECONDS(1800)  /* without timeoutSeconds: 30 to 60 minutes */

struct apiserver_watch {
    struct apiserver *s;
    struct list in_store;
    struct list in_ready;
    uint32_t store;
    const struct kind *kind;
    struct list_filter filter;
    enum reply_form form;
    struct str include_object;
    bool table_columns_sent;
    struct object **initial; /* shown first, ordered */
    uint32_t initial_n;
    uint32_t initial_at;
    bool initial_end; /* the bookmark that ends them is owed */
    uint64_t initial_rv;
    uint64_t next; /* number of the next change to look at */
    bool bookmarks;
    bool bookmark_due;
    usec_t bookmark_at;
    usec_t end_at;
    struct str error; /* line to send before the end */
    bool ended;
    struct loop_timer timer;
    struct arena arena;
    void (*on_ready)(void *ctx);
    void *on_ready_ctx;
};
