#include "base/metric.h"
#include "request/requests_internal.h"

#include <stdlib.h>

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

/* ── the tightest limit ────────────────────────────────────────────────────────────────────── */

struct tightest_limit {
    const struct ask_view *view;
    uint32_t limit;
};

static bool tightest_limit_visit(void *ctx, const struct arbiter_limit *limit)
{
    struct tightest_limit *t = ctx;
    for (uint32_t i = 0; i < t->view->limit_n; i++) {
        if (str_eq(t->view->limits[i], limit->name)) {
            t->limit = MIN(t->limit, limit->limit);
        }
    }
    return true;
}

uint32_t requests_tightest_limit(const struct requests *r, const struct ask_view *view)
{
    struct tightest_limit t = { .view = view, .limit = UINT32_MAX };
    if (view->limit_n > 0) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        arbiter_each_limit(r->config.arbiter, &tmp, tightest_limit_visit, &t);
    }
    return t.limit;
}

/* ── for people ────────────────────────────────────────────────────────────────────────────── */

uint64_t requests_turns(const struct requests *r)
{
    return r->turns;
}

uint32_t requests_count(const struct requests *r)
{
    return store_count(&r->objects.store);
}

static bool tracked_is_queued(const struct tracked_request *c)
{
    const struct maintenance_request *m = c->item->object;
    return m->status.phase <= MR_PHASE_PENDING && c->ask != NULL;
}

/* Those in the queue as the arbiter serves them, then the others by name. */
static int tracked_order(const void *left, const void *right)
{
    const struct tracked_request *a = *(const struct tracked_request *const *)left;
    const struct tracked_request *b = *(const struct tracked_request *const *)right;
    bool queued = tracked_is_queued(a);
    if (queued != tracked_is_queued(b)) {
        return queued ? -1 : 1;
    }
    if (queued && a->asked.last != b->asked.last) {
        return a->asked.last ? 1 : -1;
    }
    if (queued && a->asked.priority != b->asked.priority) {
        return a->asked.priority > b->asked.priority ? -1 : 1;
    }
    if (queued && a->asked.since != b->asked.since) {
        return a->asked.since < b->asked.since ? -1 : 1;
    }
    return queued ? str_cmp(a->uid, b->uid) : str_cmp(a->name, b->name);
}

static void tracked_view(const struct tracked_request *c, struct requests_view *ret)
{
    const struct maintenance_request *m = c->item->object;
    const struct mrequest_status *s = &m->status;
    *ret = (struct requests_view){
        .name = c->name,
        .uid = c->uid,
        .client = m->client,
        .type = m->type,
        .namespace = m->namespace,
        .target = m->target,
        .state = m->state == MR_STATE_ABSENT ? mrequest_state_name(MR_STATE_PENDING)
                                             : mrequest_state_name(m->state),
        .phase = mrequest_phase_name(s->phase == MR_PHASE_ABSENT ? MR_PHASE_PENDING : s->phase),
        .step = mrequest_step_name(s->step),
        .reason = s->reason,
        .message = s->message,
        .position = s->position,
        .priority = m->priority,
        .waits = s->phase <= MR_PHASE_PENDING && m->state <= MR_STATE_PENDING,
        .last = !tracked_is_queued(c) || c->asked.last,
        .ended = mrequest_phase_ended(s->phase),
        .since = mrequest_status_since(s) > 0 ? mrequest_status_since(s) : m->created,
        .deadline = s->deadline > 0 ? s->deadline : USEC_NEVER,
        .next = USEC_NEVER,
        .limits = s->limits,
        .limit_n = s->limit_n,
    };
    if (!tracked_is_queued(c)) {
        return;
    }
    /* Of those that wait, what the arbiter says now is newer than what was written. */
    struct ask_view view;
    ask_view(c->ask, &view);
    if (view.stage == ASK_WAITING && view.message.n > 0) {
        ret->reason = view.reason;
        ret->message = view.message;
        ret->position = view.position;
        ret->next = view.next;
        ret->limits = view.limits;
        ret->limit_n = view.limit_n;
        ret->limit = view.limit;
        ret->blocker = view.blocker;
    }
}

void requests_each(const struct requests *r, struct arena *out,
                   bool (*fn)(void *ctx, const struct requests_view *view), void *ctx)
{
    uint32_t n = 0;
    const struct tracked_request **tracked =
        ARENA_ARRAY(out, const struct tracked_request *, store_count(&r->objects.store));
    LIST_EACH (&r->tracked, link) {
        tracked[n++] = CONTAINER_OF(link, struct tracked_request, link);
    }
    if (n > 0) {
        qsort(tracked, n, sizeof(tracked[0]), tracked_order);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct requests_view view;
        tracked_view(tracked[i], &view);
        if (!fn(ctx, &view)) {
            return;
        }
    }
}
