/*
 * core_metrics: metrics of what all parts share: requests to the API server, leadership, the watch
 * of the Nodes, and drains.
 */
#pragma once

#include "base/metric.h"
#include "port/api.h"

#define CORE_METRICS_PAUSES 4 /* answers after which nothing is sent for a while */

struct drains;
struct client_pause; /* kube/client.h */

struct core_metrics {
    struct metrics *registry; /* borrowed; NULL = nothing is counted */
    struct str server;        /* borrowed: label `host` of rest_client_requests_total */
    struct metric *requests;
    struct metric_series *leading;
    struct metric_series *bad_input;
    struct metric_series *lists;
    struct metric_series *pause_since[CORE_METRICS_PAUSES];
    struct metric_series *pause_until[CORE_METRICS_PAUSES];
    struct metric_series *drains[2];    /* active, blocked */
    struct metric_series *evictions[3]; /* accepted, refused, forced */
};

void core_metrics_init(struct core_metrics *m, struct metrics *registry, struct str server,
                       struct str lease_name);
void core_metrics_request(struct core_metrics *m, enum api_verb verb, int status);
/* NULL: there is none. */
void core_metrics_pause(struct core_metrics *m, const struct client_pause *pause);
void core_metrics_drains(struct core_metrics *m, const struct drains *drains);
