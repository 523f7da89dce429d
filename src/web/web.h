/*
 * web: what a browser, a script or Prometheus sees of a running controller.
 *
 *   /                 the dashboard (its files below /static/)
 *   /api/v1/info      nodes, profiles and states, in the original's shape
 *   /api/v1/events    server-sent events: one snapshot, then what changed
 *   /metrics          Prometheus text
 *
 * It reads through `struct web_source`, so tests and the demo need no controller. Nothing runs
 * while nobody looks: with the first open event stream a timer begins to compare nodes with what
 * was sent last, with the last one it ends.
 */
#pragma once

#include "base/metric.h"
#include "port/loop.h"
#include "port/serve.h"

#define WEB_STREAMS_MAX 64u /* browsers on one replica; each costs a snapshot */
#define WEB_BACKLOG_MAX                                                                            \
    ((size_t)8 * 1024 * 1024)      /* a snapshot of 20,000 nodes; who lags more is dropped */
#define WEB_INTERVAL MSECONDS(250) /* changes within it are sent as one */
#define WEB_KEEPALIVE SECONDS(15)  /* proxies close what is silent for 30 to 60 s */

struct web_label {
    struct str key;
    struct str value;
};

struct web_node {
    struct str name;
    struct str state; /* of the maintenance label; empty = none yet */
    struct str error; /* why it is not touched; empty = nothing is wrong */
    bool ready;
    bool unschedulable;
    bool busy;      /* a write is in flight */
    usec_t updated; /* wall time of the last evaluation; 0 = unknown */
    const struct web_label *labels;
    uint32_t label_count;
};

struct web_status {
    struct str title;    /* what is shown: a cluster's name or address; may be empty */
    struct str identity; /* of this replica */
    struct str leader;   /* who leads, as far as this replica knows; empty = nobody or unknown */
    bool leading;        /* this replica does */
    bool ready;
    struct str why;  /* not ready because of this */
    uint64_t writes; /* patches sent since the start */
};

/* Texts that it hands out live until it is called again or the loop runs. */
struct web_source {
    void *ctx;
    void (*status)(void *ctx, struct web_status *ret);
    void (*each_node)(void *ctx, void (*fn)(void *fn_ctx, const struct web_node *node),
                      void *fn_ctx);
    /* Whether /api/v1/info shows a label (the configuration's dashboard.labelFilter); NULL = none,
     * as without that setting. */
    bool (*exports)(void *ctx, struct str key);
};

struct web;

/* All borrowed; `metrics` may be NULL. */
struct web *web_new(struct loop *loop, const struct web_source *source, struct metrics *metrics);
/* Ends open streams. Accepts NULL. */
void web_free(struct web *w);

/* A serve_handler; its context is the struct web. */
void web_handle(void *ctx, struct serve_exchange *x, const struct serve_request *req);

uint32_t web_streams(const struct web *w);
uint64_t web_scrapes(const struct web *w); /* hits of /metrics; a shutdown waits for one more */

/* The document of /api/v1/info. */
void web_info(const struct web_source *source, usec_t wall, struct buf *out);
