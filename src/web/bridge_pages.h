/*
 * bridge_pages: what a person, a script or Prometheus sees of a running bridge.
 *
 *   /                          one page of text: who leads, and which clusters cannot be watched
 *   /api/v1/explain?machine=…  one Machine, NAMESPACE%2FNAME (bridge/machine_report.h)
 *   /api/v1/links              every connection to a workload cluster
 *   /metrics                   Prometheus text
 *
 * explain is JSON; with format=text or format=wide it is the text that the command line prints.
 * With shard=own a bridge whose shard does not look after the Machine answers 404, so that whoever
 * asks one shard after the other knows where to stop.
 *
 * The pages read through `struct bridge_pages_source`, so tests need no bridge. Every answer is
 * made at once.
 */
#pragma once

#include "base/metric.h"
#include "bridge/bridge.h"
#include "port/loop.h"
#include "port/inbound.h"

#define BRIDGE_PAGES_UNHEALTHY_MAX 50u /* on the first page; /api/v1/links has all */

/* As bridge.h has them. Texts live until the loop runs. */
struct bridge_pages_source {
    void *ctx;
    bool (*explain)(void *ctx, struct str namespace, struct str name, struct arena *out,
                    struct bridge_machine_view *ret);
    void (*each_link)(void *ctx, void (*fn)(void *ctx, const struct link_view *view), void *fn_ctx);
    void (*stats)(void *ctx, struct bridge_stats *ret);
    bool (*leading)(void *ctx);
    struct str (*leader)(void *ctx);
    bool (*ready)(void *ctx, struct str *ret_why);
};

struct bridge_pages {
    struct loop *loop; /* borrowed */
    struct bridge_pages_source source;
    struct metrics *metrics; /* borrowed; may be NULL */
};

/* An inbound_handler; its context is the struct bridge_pages. */
void bridge_pages_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req);
