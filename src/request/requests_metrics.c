#include "base/metric.h"
#include "request/requests_internal.h"

#include <stdlib.h>

static const double wait_buckets[] = { 0.1, 0.5,  1,    5,     10,    30,   60,
                                       300, 1800, 3600, 14400, 43200, 86400 };

static void account_collect(void *ctx)
{
    struct requests *r = ctx;
    uint32_t counts[MR_PHASES] = { 0 };
    LIST_EACH (&r->claims, link) {
        const struct claim *c = CONTAINER_OF(link, struct claim, link);
        const struct mrequest *m = c->item->object;
        counts[m->status.phase]++;
    }
    counts[MR_PHASE_PENDING] += counts[MR_PHASE_ABSENT];
    for (uint32_t i = MR_PHASE_PENDING; i < MR_PHASES; i++) {
        struct str phase = mr_phase_name((enum mr_phase)i);
        metric_set(metric_series(r->gauges.phases, &phase), counts[i]);
    }
}

static struct metric_series *account_counter(struct metrics *m, const char *name, const char *help)
{
    return metric_series(
        metrics_family(m,
                       &(struct metric_spec){ .name = name, .help = help, .kind = METRIC_COUNTER }),
        NULL);
}

static struct metric_series *account_histogram(struct metrics *m, const char *name,
                                               const char *help)
{
    return metric_series(
        metrics_family(m, &(struct metric_spec){ .name = name,
                                                 .help = help,
                                                 .kind = METRIC_HISTOGRAM,
                                                 .buckets = wait_buckets,
                                                 .bucket_count = ARRAY_LEN(wait_buckets) }),
        NULL);
}

void account_init(struct requests *r)
{
    struct metrics *m = r->config.metrics;
    if (m == NULL) {
        return;
    }
    r->gauges = (struct requests_gauges){
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
        .approvals =
            account_counter(m, "drydock_request_approvals_total", "Requests that became Approved."),
        .expired = account_counter(m, "drydock_request_expirations_total",
                                   "Requests whose work took longer than its limit."),
        .forged = account_counter(m, "drydock_request_forged_total",
                                  "Approvals of somebody else that were taken back."),
        .adopted = account_counter(m, "drydock_request_adoptions_total",
                                   "Requests that were taken over as they were."),
        .conflicts = account_counter(m, "drydock_request_conflicts_total",
                                     "Writes of requests that met a newer version."),
        .errors =
            account_counter(m, "drydock_request_errors_total", "Writes of requests that failed."),
        .waits = account_histogram(m, "drydock_request_wait_seconds",
                                   "Time from queueing to a reserved place."),
        .preparations = account_histogram(m, "drydock_request_preparation_seconds",
                                          "Time from a reserved place to the approval."),
    };
    metrics_on_collect(m, account_collect, r);
}

void account_done(struct requests *r)
{
    if (r->config.metrics != NULL) {
        metrics_off_collect(r->config.metrics, account_collect, r);
    }
}

void account_count(struct metric_series *s)
{
    if (s != NULL) {
        metric_add(s, 1);
    }
}

static void account_observe(struct metric_series *s, usec_t span)
{
    metric_observe(s, (double)MAX(span, 0) / 1e6);
}

void account_note(struct requests *r, const struct mrequest *before, const struct mrequest *now)
{
    const struct mr_status *old = &before->status;
    const struct mr_status *s = &now->status;
    if (r->config.metrics == NULL) {
        return;
    }
    if (s->rejections > old->rejections) {
        account_count(metric_series(r->gauges.rejections, &s->rejection_reason));
    }
    if (s->phase == old->phase) {
        return;
    }
    if (s->phase == MR_PHASE_PREPARING && s->queued > 0) {
        account_observe(r->gauges.waits, s->reserved - s->queued);
    }
    if (s->phase == MR_PHASE_APPROVED) {
        account_count(r->gauges.approvals);
        account_observe(r->gauges.preparations, s->approved - s->reserved);
    }
    if (s->phase == MR_PHASE_EXPIRED) {
        account_count(r->gauges.expired);
    }
    if (mr_phase_ended(s->phase)) {
        struct str result = mr_result_name(s->result);
        account_count(metric_series(r->gauges.ends, &result));
    }
}

/* ── the tightest limit ────────────────────────────────────────────────────────────────────── */

struct tightest {
    const struct ask_view *view;
    uint32_t limit;
};

static bool tightest_visit(void *ctx, const struct arbiter_limit *limit)
{
    struct tightest *t = ctx;
    for (uint32_t i = 0; i < t->view->limit_n; i++) {
        if (str_eq(t->view->limits[i], limit->name)) {
            t->limit = MIN(t->limit, limit->limit);
        }
    }
    return true;
}

uint32_t account_limit(const struct requests *r, const struct ask_view *view)
{
    struct tightest t = { .view = view, .limit = UINT32_MAX };
    if (view->limit_n > 0) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        arbiter_each_limit(r->config.arbiter, &tmp, tightest_visit, &t);
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
    return store_count(&r->store);
}

static bool account_queued(const struct claim *c)
{
    const struct mrequest *m = c->item->object;
    return m->status.phase <= MR_PHASE_PENDING && c->ask != NULL;
}

/* Those in the queue as the arbiter serves them, then the others by name. */
static int account_order(const void *left, const void *right)
{
    const struct claim *a = *(const struct claim *const *)left;
    const struct claim *b = *(const struct claim *const *)right;
    bool queued = account_queued(a);
    if (queued != account_queued(b)) {
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

static void account_view(const struct claim *c, struct requests_view *ret)
{
    const struct mrequest *m = c->item->object;
    const struct mr_status *s = &m->status;
    *ret = (struct requests_view){
        .name = c->name,
        .uid = c->uid,
        .client = m->client,
        .type = m->type,
        .space = m->space,
        .target = m->target,
        .state =
            m->state == MR_STATE_ABSENT ? mr_state_name(MR_STATE_PENDING) : mr_state_name(m->state),
        .phase = mr_phase_name(s->phase == MR_PHASE_ABSENT ? MR_PHASE_PENDING : s->phase),
        .step = mr_step_name(s->step),
        .reason = s->reason,
        .message = s->message,
        .position = s->position,
        .priority = m->priority,
        .waits = s->phase <= MR_PHASE_PENDING && m->state <= MR_STATE_PENDING,
        .last = !account_queued(c) || c->asked.last,
        .ended = mr_phase_ended(s->phase),
        .since = mr_status_since(s) > 0 ? mr_status_since(s) : m->created,
        .deadline = s->deadline > 0 ? s->deadline : USEC_NEVER,
        .next = USEC_NEVER,
        .limits = s->limits,
        .limit_n = s->limit_n,
    };
    if (!account_queued(c)) {
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
    const struct claim **claims = ARENA_ARRAY(out, const struct claim *, store_count(&r->store));
    LIST_EACH (&r->claims, link) {
        claims[n++] = CONTAINER_OF(link, struct claim, link);
    }
    if (n > 0) {
        qsort(claims, n, sizeof(claims[0]), account_order);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct requests_view view;
        account_view(claims[i], &view);
        if (!fn(ctx, &view)) {
            return;
        }
    }
}
