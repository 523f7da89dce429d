/*
 * bridge_metrics: the bridge's metrics.
 *
 * Counters and histograms are fed where things happen. Gauges are put together when somebody asks:
 * bridge_metrics_begin, then bridge_metrics_link and bridge_metrics_machines for what there is,
 * then bridge_metrics_end. What is not named between the two counts as 0, so a cluster that is gone
 * needs no care. Counters of links are read from the links; bridge_metrics_link_gone takes what a
 * link has counted before the link is freed.
 */
#pragma once

#include "base/metric.h"
#include "bridge/link.h"
#include "bridge/rules.h"

enum write_object { WRITE_MACHINE, WRITE_NODE, WRITE_HOST, WRITE_REQUEST };
enum write_result { WRITE_DONE, WRITE_CONFLICT, WRITE_FAILED };

#define WRITE_OBJECTS (WRITE_REQUEST + 1u)
#define WRITE_RESULTS (WRITE_FAILED + 1u)
#define BRIDGE_METRICS_STATES (LINK_CLOSING + 1u)
#define BRIDGE_METRICS_PHASES (RULES_PHASE_IN_MAINTENANCE + 1u)

struct bridge_link_counts {
    uint64_t connects;
    uint64_t failures;
    uint64_t over_limit;
    uint64_t renewals_failed;
};

struct bridge_metrics {
    struct metrics *metrics; /* borrowed; NULL = nothing is counted */
    struct metric *clusters; /* NULL = not wanted */
    struct metric_series *links[BRIDGE_METRICS_STATES];
    struct metric_series *links_paused;
    struct metric_series *machines[BRIDGE_METRICS_PHASES];
    struct metric_series *patches[WRITE_OBJECTS][WRITE_RESULTS];
    struct metric_series *connects;
    struct metric_series *failures;
    struct metric_series *renewals;
    struct metric_series *over_limit;
    struct metric_series *away;
    struct metric_series *listed;
    struct metric_series *hold;
    struct metric_series *stale;
    struct metric_series *mismatches;
    struct metric_series *leading;
    struct bridge_link_counts gone; /* of links that are freed, */
    struct bridge_link_counts live; /* and of those that were named since bridge_metrics_begin */
};

/* Borrowed; `metrics` may be NULL, and then all of this does nothing. */
void bridge_metrics_init(struct bridge_metrics *t, struct metrics *metrics, bool per_cluster,
                         struct str lease_name);

void bridge_metrics_patch(struct bridge_metrics *t, enum write_object object,
                          enum write_result result);
void bridge_metrics_unreachable(struct bridge_metrics *t,
                                usec_t away); /* the link was not fresh for so long, and now is */
void bridge_metrics_listed(struct bridge_metrics *t,
                           usec_t took); /* to connect and list all Nodes */
void bridge_metrics_hold(struct bridge_metrics *t,
                         usec_t hold);               /* a hook held a deletion for so long */
void bridge_metrics_stale(struct bridge_metrics *t); /* an approval was taken away */
void bridge_metrics_mismatch(struct bridge_metrics *t);
void bridge_metrics_leading(struct bridge_metrics *t, bool leading);
void bridge_metrics_link_gone(struct bridge_metrics *t, const struct link_view *view);

void bridge_metrics_begin(struct bridge_metrics *t);
void bridge_metrics_link(struct bridge_metrics *t, const struct link_view *view);
void bridge_metrics_machines(struct bridge_metrics *t, enum rules_phase phase, uint32_t count);
void bridge_metrics_end(struct bridge_metrics *t);
