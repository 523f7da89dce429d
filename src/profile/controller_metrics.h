/*
 * controller_metrics: the controller's metrics, under the names that dashboards of the original know where one
 * exists, and under drydock_ otherwise.
 */
#pragma once

#include "base/metric.h"
#include "port/api.h"
#include "profile/node_labels.h"

struct gauges {
    struct metrics *metrics; /* borrowed; NULL = nothing is counted */
    struct str server;       /* borrowed: label `host` of rest_client_requests_total */
    struct metric *requests;
    struct metric *nodes;
    struct metric *transition_failures;
    struct metric *transitions;
    struct metric *notifications;
    struct metric *profiles;
    struct metric *shuffles;
    struct metric *shuffles_per_replica;
    struct metric_series *config_valid;
    struct metric_series *config_loads;
    struct metric_series *waiting;
    struct metric_series *grants;
    struct metric_series *drains[2];     /* active, blocked */
    struct metric_series *evictions[3];  /* accepted, refused, forced */
    struct metric_series *reconciles[2]; /* by result: success, error */
    struct metric_series *reconcile_errors;
    struct metric_series *leading;
    struct metric_series *patches;
    struct metric_series *conflicts;
    struct metric_series *errors;
    struct metric_series *bad_input;
    struct metric_series *relists;
    struct metric_series *queue[3]; /* dirty, in_flight, later */
    struct metric_series *unreadable;
    struct metric_series *patch_seconds;
};

void gauges_init(struct gauges *g, struct metrics *metrics, struct str server,
                 struct str lease_name);

/* All accept NULL series, as they are without a registry. */
void gauges_count(struct metric_series *s);
void gauges_put(struct metric_series *s, double value);
void gauges_time(struct metric_series *s, usec_t took);

void gauges_request(struct gauges *g, enum api_verb verb, int status);
void gauges_reconcile(struct gauges *g, bool ok);
void gauges_failure(struct gauges *g, struct str profile);
void gauges_transition(struct gauges *g, struct str profile, struct str state);
void gauges_notified(struct gauges *g, struct str instance, bool ok);
void gauges_profile(struct gauges *g, struct str profile, struct str state, uint32_t count);
/* 0 makes the series. */
void gauges_shuffle(struct gauges *g, struct str owner, struct str profile, double count,
                    double per_replica);
/* `state` is empty for nodes without the label. */
void gauges_nodes(struct gauges *g, struct str state, uint32_t count);
