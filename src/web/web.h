/*
 * web: what a browser, a script or Prometheus sees of a running controller.
 *
 *   /                          the dashboard (its files below /static/)
 *   /api/v1/info               nodes, profiles and checks, in the original's shape
 *   /api/v1/status             the fleet in one document (profile/fleet_report.h)
 *   /api/v1/limits             limits, who holds them, who waits (request/limits_report.h)
 *   /api/v1/explain?node=NAME  one node with all its checks (profile/node_report.h)
 *   /api/v1/explain?request=NAME, ?limit=NAME   what /api/v1/limits tells about one
 *   /api/v1/operations         NodeMaintenances and windows (operation/operations_report.h)
 *   /api/v1/explain?nodemaintenance=NAME        the same of one
 *   /api/v1/events             server-sent events: one snapshot, then what changed
 *   /api/v1/events?node=NAME   the same for explain: the document, again whenever it changes
 *   /metrics                   Prometheus text
 *
 * status, limits, operations and explain are JSON; with format=text or format=wide they are the
 * text that the command line prints.
 *
 * The pages read through `struct web_source`, so tests and the demo need no controller. While an
 * event stream is open, a timer compares the nodes with what was sent last; without one nothing
 * runs. A replica that does not lead and has a leader_proxy answers info, status, limits,
 * operations and explain with what the leader says.
 */
#pragma once

#include "base/metric.h"
#include "operation/operations_report.h"
#include "port/loop.h"
#include "port/inbound.h"
#include "profile/node_report.h"
#include "request/limits_report.h"

#define WEB_STREAMS_MAX 64u /* browsers on one replica; each costs a snapshot */
#define WEB_BACKLOG_MAX                                                                            \
    ((size_t)8 * 1024 * 1024)        /* a snapshot of 20,000 nodes; who lags more is dropped */
#define WEB_INTERVAL MSECONDS(250)   /* changes within it are sent as one */
#define WEB_KEEPALIVE SECONDS(15)    /* proxies close what is silent for 30 to 60 s */
#define WEB_EXPLAIN_EVERY SECONDS(1) /* seconds count down in its texts; nobody reads faster */

struct web_label {
    struct str key;
    struct str value;
};

struct web_profile {
    struct str name;
    struct str state;
    usec_t since; /* wall time; 0 = unknown */
};

struct web_node {
    struct str name;
    uint64_t version; /* changes whenever another member may have changed */
    struct str state; /* of the maintenance label; empty = none yet */
    struct str error; /* why it is not touched; empty = nothing is wrong */
    bool ready;
    bool unschedulable;
    struct node_report_drain draining; /* whoever drains it */
    const struct web_label *labels;
    uint32_t label_count;
    const struct web_profile *profiles; /* in the label's order */
    uint32_t profile_count;
};

struct web_status {
    struct str title;    /* what is shown: a cluster's name or address; may be empty */
    struct str identity; /* of this replica */
    struct str leader;   /* who leads, as far as this replica knows; empty = nobody or unknown */
    bool leading;        /* this replica does */
    bool ready;
    struct str why;    /* not ready because of this */
    struct str pause;  /* why no requests are sent now; empty = they are sent */
    struct str paused; /* why nothing new is granted: people said so; mostly empty */
    struct str denied; /* a right that is missing, and what is not done without it; mostly empty */
    uint64_t writes;   /* patches sent since the start */
    struct str config_file;
    struct str config_error;    /* why the file is not in force; empty = it is */
    struct str config_warnings; /* about the one in force, one a line; empty = none */
    usec_t config_loaded;       /* wall time; 0 = unknown */
    const struct str *profiles; /* those that are configured */
    uint32_t profile_count;
    const struct activity *integrations; /* those that run */
    uint32_t integration_count;
};

/* `wants` comes first, because making a struct web_node costs more than seeing that it is not
 * needed. */
struct web_visit {
    /* Whether `fn` is to be called for this one; NULL = always. */
    bool (*wants)(void *ctx, struct str name, uint64_t version);
    void (*fn)(void *ctx, const struct web_node *node);
    void *ctx;
};

/* Texts that it hands out live until it is called again or the loop runs. */
struct web_source {
    void *ctx;
    /* The nodes' civil time, where it is not that of web_new's loop; borrowed, NULL = it is. */
    struct loop *clock;
    void (*status)(void *ctx, struct web_status *ret);
    void (*each_node)(void *ctx, const struct web_visit *visit);
    /* All there is to say about a node; it lives in `out`. False: no such node. */
    bool (*report)(void *ctx, struct str node, struct arena *out, struct node_report *ret);
    /* Limits and requests as they are now, with those that have ended if wanted. False: the cluster
     * knows none. NULL: likewise. */
    bool (*limits_report)(void *ctx, bool ended, struct arena *out, struct limits_report *ret);
    /* Changes whenever the answer of `limits_report` may have changed; 0 = the cluster knows no
     * limits. Set together with `limits_report`. */
    uint64_t (*limits_report_version)(void *ctx);
    /* NodeMaintenances as they are now. False: the cluster has none installed. NULL: likewise. */
    bool (*operations_report)(void *ctx, struct arena *out, struct operations_report *ret);
    /* Changes whenever the answer of `operations_report` may have changed; 0 = they are not
     * installed. Set together with `operations_report`. */
    uint64_t (*operations_version)(void *ctx);
};

/* The time of a report, in whole seconds: JSON has no parts of them, and text counts as a reader of
 * the JSON would. */
static inline usec_t web_source_wall(const struct web_source *source, struct loop *loop)
{
    usec_t wall = loop_wall(source->clock != NULL ? source->clock : loop);
    return wall - wall % SECONDS(1);
}

struct leader_proxy; /* web/leader_proxy.h */
struct web;

/* All borrowed; `metrics` may be NULL. */
struct web *web_new(struct loop *loop, const struct web_source *source, struct metrics *metrics);
/* Borrowed; NULL = this replica answers by itself, even if it does not lead. */
void web_set_leader_proxy(struct web *w, struct leader_proxy *proxy);
/* Ends open streams. Accepts NULL. */
void web_free(struct web *w);

/* An inbound_handler; its context is the struct web. */
void web_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req);

uint32_t web_streams(const struct web *w);
uint64_t web_scrapes(const struct web *w); /* hits of /metrics; a shutdown waits for one more */
