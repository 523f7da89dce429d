/*
 * controller_metrics: the controller's metrics, under the names that dashboards of the original
 * know where one exists, and under drydock_ otherwise.
 */
#pragma once

#include "base/metric.h"
#include "profile/node_labels.h"

struct controller_metrics {
    struct metrics *registry; /* borrowed; NULL = nothing is counted */
    struct metric *nodes;
    struct metric *transition_failures;
    struct metric *transitions;
    struct metric *notifications;
    struct metric *profiles;
    struct metric *shuffles;
    struct metric *shuffles_per_replica;
    struct metric_series *config_valid;
    struct metric_series *config_loads;
    struct metric_series *config_warnings;
    struct metric_series *waiting;
    struct metric_series *grants;
    struct metric_series *reconciles[2]; /* by result: success, error */
    struct metric_series *reconcile_errors;
    struct metric_series *patches;
    struct metric_series *conflicts;
    struct metric_series *errors;
    struct metric_series *queue[3]; /* dirty, in_flight, later */
    struct metric_series *unreadable;
    struct metric_series *unsent;
    struct metric_series *patch_seconds;
};

void controller_metrics_init(struct controller_metrics *g, struct metrics *registry);

void controller_metrics_reconcile(struct controller_metrics *g, bool ok);
void controller_metrics_failure(struct controller_metrics *g, struct str profile);
void controller_metrics_transition(struct controller_metrics *g, struct str profile,
                                   struct str state);
void controller_metrics_notified(struct controller_metrics *g, struct str instance, bool ok);
void controller_metrics_profile(struct controller_metrics *g, struct str profile, struct str state,
                                uint32_t count);
/* Zeros make the series exist. */
void controller_metrics_shuffle(struct controller_metrics *g, struct str owner, struct str profile,
                                double count, double per_replica);
/* `state` is empty for nodes without the label. */
void controller_metrics_nodes(struct controller_metrics *g, struct str state, uint32_t count);
