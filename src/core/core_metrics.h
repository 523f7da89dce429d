/*
 * core_metrics: metrics of what all parts share: requests to the API server, leadership, the watch
 * of the Nodes, and drains.
 */
#pragma once

#include "base/metric.h"
#include "kube/client_metrics.h"

struct drains;

struct core_metrics {
    struct metrics *registry; /* borrowed; NULL = nothing is counted */
    struct str server;        /* borrowed: label `host` of rest_client_requests_total */
    struct metric *requests;
    struct metric_series *leading;
    struct metric_series *paused; /* everything is */
    struct metric_series *bad_input;
    struct metric_series *lists;
    struct client_metrics client;
    struct metric_series *drains[2];    /* active, blocked */
    struct metric_series *evictions[3]; /* accepted, refused, forced */
};

void core_metrics_init(struct core_metrics *m, struct metrics *registry, struct str server,
                       struct str lease_name);
void core_metrics_request(struct core_metrics *m, enum api_verb verb, int status);
void core_metrics_drains(struct core_metrics *m, const struct drains *drains);
