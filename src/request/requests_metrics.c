/*
 * The Prometheus metrics of MaintenanceRequests: how many are in which phase, how they end, and how
 * long they wait and are prepared.
 */
#include "base/metric.h"
#include "request/requests_internal.h"

static const double seconds_buckets[] = { 0.1, 0.5,  1,    5,     10,    30,   60,
                                          300, 1800, 3600, 14400, 43200, 86400 };

static void requests_metrics_collect(void *ctx)
{
    struct requests *r = ctx;
    uint32_t counts[MR_PHASES] = { 0 };
    LIST_EACH (&r->tracked, link) {
        const struct tracked_request *c = CONTAINER_OF(link, struct tracked_request, link);
        const struct maintenance_request *m = c->item->object;
        counts[m->status.phase]++;
    }
    counts[MR_PHASE_PENDING] += counts[MR_PHASE_ABSENT];
    for (uint32_t i = MR_PHASE_PENDING; i < MR_PHASES; i++) {
        struct str phase = mrequest_phase_name((enum mrequest_phase)i);
        metric_set(metric_series(r->metrics.phases, &phase), counts[i]);
    }
}

static struct metric_series *requests_metrics_histogram(struct metrics *m, const char *name,
                                                        const char *help)
{
    return metric_series(
        metrics_family(m, &(struct metric_spec){ .name = name,
                                                 .help = help,
                                                 .kind = METRIC_HISTOGRAM,
                                                 .buckets = seconds_buckets,
                                                 .bucket_count = ARRAY_LEN(seconds_buckets) }),
        NULL);
}

void requests_metrics_init(struct requests *r)
{
    struct metrics *m = r->config.metrics;
    if (m == NULL) {
        return;
    }
    r->metrics = (struct requests_metrics){
        .phases = metrics_family(m, &(struct metric_spec){ .name = "drydock_requests",
                                                           .help = "MaintenanceRequests by phase.",
                                                           .kind = METRIC_GAUGE,
                                                           .labels = { "phase" } }),
        .rejections =
            metrics_family(m, &(struct metric_spec){ .name = "drydock_request_rejections_total",
                                                     .help = "Rejections of requests by reason.",
                                                     .kind = METRIC_COUNTER,
                                                     .labels = { "reason" } }),
        .ends = metrics_family(m, &(struct metric_spec){ .name = "drydock_request_ends_total",
                                                         .help = "Ended requests by result.",
                                                         .kind = METRIC_COUNTER,
                                                         .labels = { "result" } }),
        .approvals = metrics_series(m, METRIC_COUNTER, "drydock_request_approvals_total",
                                    "Requests that became Approved."),
        .expired = metrics_series(m, METRIC_COUNTER, "drydock_request_expirations_total",
                                  "Requests whose work took longer than its limit."),
        .forged = metrics_series(m, METRIC_COUNTER, "drydock_request_forged_total",
                                 "Approvals of somebody else that were taken back."),
        .adopted = metrics_series(m, METRIC_COUNTER, "drydock_request_adoptions_total",
                                  "Requests that were taken over as they were."),
        .conflicts = metrics_series(m, METRIC_COUNTER, "drydock_request_conflicts_total",
                                    "Writes of requests that met a newer version."),
        .errors = metrics_series(m, METRIC_COUNTER, "drydock_request_errors_total",
                                 "Writes of requests that failed."),
        .waits = requests_metrics_histogram(m, "drydock_request_wait_seconds",
                                            "Time from queueing to a reserved place."),
        .preparations = requests_metrics_histogram(m, "drydock_request_preparation_seconds",
                                                   "Time from a reserved place to the approval."),
    };
    metrics_on_collect(m, requests_metrics_collect, r);
}

void requests_metrics_done(struct requests *r)
{
    if (r->config.metrics != NULL) {
        metrics_off_collect(r->config.metrics, requests_metrics_collect, r);
    }
}

static void requests_metrics_observe(struct metric_series *s, usec_t span)
{
    metric_observe(s, (double)MAX(span, 0) / 1e6);
}

void requests_metrics_note(struct requests *r, const struct maintenance_request *before,
                           const struct maintenance_request *now)
{
    const struct mrequest_status *old = &before->status;
    const struct mrequest_status *s = &now->status;
    if (r->config.metrics == NULL) {
        return;
    }
    if (s->rejections > old->rejections) {
        metric_add(metric_series(r->metrics.rejections, &s->rejection_reason), 1);
    }
    if (s->phase == old->phase) {
        return;
    }
    if (s->phase == MR_PHASE_PREPARING && s->queued > 0) {
        requests_metrics_observe(r->metrics.waits, s->reserved - s->queued);
    }
    if (s->phase == MR_PHASE_APPROVED) {
        metric_add(r->metrics.approvals, 1);
        requests_metrics_observe(r->metrics.preparations, s->approved - s->reserved);
    }
    if (s->phase == MR_PHASE_EXPIRED) {
        metric_add(r->metrics.expired, 1);
    }
    if (mrequest_phase_ended(s->phase)) {
        struct str result = mrequest_result_name(s->result);
        metric_add(metric_series(r->metrics.ends, &result), 1);
    }
}
