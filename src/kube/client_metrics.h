/*
 * client_metrics: since when and until when a client sends no requests, because the API server
 * asked for it or does not answer.
 */
#pragma once

#include "base/metric.h"
#include "kube/client.h"

#define CLIENT_METRICS_ANSWERS 4u /* after which nothing is sent for a while; see retry.c */

struct client_metrics {
    struct metric_series *since[CLIENT_METRICS_ANSWERS];
    struct metric_series *until[CLIENT_METRICS_ANSWERS];
};

/* `metrics` may be NULL: then nothing is measured. `server` is the label `host`. */
void client_metrics_init(struct client_metrics *m, struct metrics *metrics, struct str server);
/* Once before each page of metrics. */
void client_metrics_collect(struct client_metrics *m, const struct client *client);
