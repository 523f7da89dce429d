/*
 * bridge_metrics: the bridge's metrics.
 *
 * Counters and histograms are fed where things happen. Gauges are put together when somebody asks:
 * tally_begin, then tally_link and tally_machines for what there is, then tally_end. What is not
 * named between the two counts as 0, so a cluster that is gone needs no care. Counters of links are
 * read from the links; tally_gone takes what a link has counted before the link is freed.
 */
#pragma once

#include "base/metric.h"
#include "bridge/link.h"
#include "bridge/rules.h"

enum tally_object { TALLY_MACHINE, TALLY_NODE, TALLY_HOST, TALLY_REQUEST };
enum tally_result { TALLY_DONE, TALLY_CONFLICT, TALLY_FAILED };

#define TALLY_OBJECTS (TALLY_REQUEST + 1u)
#define TALLY_RESULTS (TALLY_FAILED + 1u)
#define TALLY_STATES (LINK_CLOSING + 1u)
#define TALLY_PHASES (RULES_IN_MAINTENANCE + 1u)

struct tally {
    struct metrics *metrics; /* borrowed; NULL = nothing is counted */
    struct metric *clusters; /* NULL = not wanted */
    struct metric_series *links[TALLY_STATES];
    struct metric_series *machines[TALLY_PHASES];
    struct metric_series *patches[TALLY_OBJECTS][TALLY_RESULTS];
    struct metric_series *connects;
    struct metric_series *failures;
    struct metric_series *renewals;
    struct metric_series *away;
    struct metric_series *listed;
    struct metric_series *hold;
    struct metric_series *stale;
    struct metric_series *mismatches;
    struct metric_series *leading;
    uint64_t gone[3]; /* connects, failures and late tokens of links that are freed, */
    uint64_t live[3]; /* and of those that were named since tally_begin */
};

/* Borrowed; `metrics` may be NULL, and then all of this does nothing. */
void tally_init(struct tally *t, struct metrics *metrics, bool per_cluster, struct str lease_name);

void tally_patch(struct tally *t, enum tally_object object, enum tally_result result);
void tally_away(struct tally *t, usec_t away); /* the link was not fresh for so long, and now is */
void tally_listed(struct tally *t, usec_t took); /* to connect and list all Nodes */
void tally_hold(struct tally *t, usec_t hold);   /* a hook held a deletion for so long */
void tally_stale(struct tally *t);               /* an approval was taken away */
void tally_mismatch(struct tally *t);
void tally_leading(struct tally *t, bool leading);
void tally_gone(struct tally *t, const struct link_view *view);

void tally_begin(struct tally *t);
void tally_link(struct tally *t, const struct link_view *view);
void tally_machines(struct tally *t, enum rules_phase phase, uint32_t count);
void tally_end(struct tally *t);
