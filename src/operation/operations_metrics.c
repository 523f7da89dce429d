/*
 * The Prometheus metrics of operations: how runs end, how long visits take, which windows are open,
 * and how the NodeMaintenances stand. Those of a window that is gone are zero.
 */
#include "base/metric.h"
#include "operation/reference_status.h"

static const double visit_buckets[] = { 10,   30,   60,   120,   300,   600,  1200,
                                        1800, 3600, 7200, 14400, 43200, 86400 };

static const char *const campaign_phases[] = { "Invalid",  "Suspended", "Planned", "Paused",
                                               "Complete", "Running",   "Waiting", "Degraded" };

static void gauge_clear(struct metric *family)
{
    for (struct metric_series *s = family != NULL ? family->first : NULL; s != NULL; s = s->next) {
        metric_set(s, 0);
    }
}

static void collect_campaigns(const struct operations *o, struct metric *family)
{
    gauge_clear(family);
    LIST_EACH (&o->campaigns, link) {
        const struct campaign *c = CONTAINER_OF(link, struct campaign, link);
        struct str phase = str_from(c->phase != NULL ? c->phase : "Waiting");
        metric_add(metric_series(family, &phase), 1);
    }
}

static void collect_windows(const struct operations *o, struct metric *family)
{
    gauge_clear(family);
    MAP_EACH (&o->windows.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct reference *r = item->extra;
        metric_set(metric_series(family, &item->name), r != NULL && r->outlook.open ? 1 : 0);
    }
}

static void collect_visits(const struct operations *o, struct metric *family)
{
    gauge_clear(family);
    MAP_EACH (&o->states.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct node_state *s = item->object;
        if (s->visit.phase != VISIT_NONE) {
            struct str phase = visit_phase_name(s->visit.phase);
            metric_add(metric_series(family, &phase), 1);
        }
    }
}

static void operations_metrics_collect(void *ctx)
{
    struct operations *o = ctx;
    collect_campaigns(o, o->metrics.campaigns);
    collect_windows(o, o->metrics.windows);
    collect_visits(o, o->metrics.visits);
}

void operations_metrics_init(struct operations *o)
{
    struct metrics *m = o->core->config.metrics;
    if (m == NULL) {
        return;
    }
    const struct metric_spec gauges[] = {
        { .name = "drydock_node_maintenances",
          .help = "NodeMaintenances by phase.",
          .kind = METRIC_GAUGE,
          .labels = { "phase" } },
        { .name = "drydock_visits",
          .help = "Visits of machines under way, by phase.",
          .kind = METRIC_GAUGE,
          .labels = { "phase" } },
        { .name = "drydock_window_open",
          .help = "1: the MaintenanceWindow is open.",
          .kind = METRIC_GAUGE,
          .labels = { "window" } },
    };
    o->metrics = (struct operations_metrics){
        .campaigns = metrics_family(m, &gauges[0]),
        .visits = metrics_family(m, &gauges[1]),
        .windows = metrics_family(m, &gauges[2]),
        .runs = metrics_family(m, &(struct metric_spec){ .name = "drydock_runs_total",
                                                         .help = "Ended runs by result.",
                                                         .kind = METRIC_COUNTER,
                                                         .labels = { "result" } }),
        .missed = metrics_series(m, METRIC_COUNTER, "drydock_cron_missed_total",
                                 "Ticks of cron operations that passed unserved, by machine."),
        .visit_seconds = metric_series(
            metrics_family(m,
                           &(struct metric_spec){
                               .name = "drydock_visit_seconds",
                               .help = "Time from a machine's being taken to the visit's end.",
                               .kind = METRIC_HISTOGRAM,
                               .buckets = visit_buckets,
                               .bucket_count = ARRAY_LEN(visit_buckets) }),
            NULL),
    };
    for (uint32_t i = 0; i < ARRAY_LEN(campaign_phases); i++) {
        struct str phase = str_from(campaign_phases[i]);
        metric_set(metric_series(o->metrics.campaigns, &phase), 0); /* alerts want them all */
    }
    metrics_on_collect(m, operations_metrics_collect, o);
}

void operations_metrics_done(struct operations *o)
{
    if (o->core->config.metrics != NULL) {
        metrics_off_collect(o->core->config.metrics, operations_metrics_collect, o);
    }
}

/* ── what has happened ─────────────────────────────────────────────────────────────────────── */

void operations_metrics_end(struct operations *o, const struct visit_record *v, usec_t took)
{
    for (uint32_t i = 0; i < v->run_n; i++) {
        enum visit_run_phase phase = v->runs[i].phase;
        if (phase == VISIT_RUN_SUCCEEDED || phase == VISIT_RUN_SKIPPED ||
            phase == VISIT_RUN_FAILED) {
            struct str result = visit_run_phase_name(phase);
            metric_add(metric_series(o->metrics.runs, &result), 1);
        }
    }
    if (took > 0 && !v->quiet) {
        metric_observe(o->metrics.visit_seconds, (double)took / 1e6);
    }
}

static uint32_t operation_unserved(const struct campaign *c, uint32_t operation)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->member_n; i++) {
        const struct due_answer *a = &c->members[i].due[operation];
        n += a->state == DUE_NOW || a->state == DUE_BACKOFF || a->missed ? 1 : 0;
    }
    return n;
}

/* A tick that another has replaced is missed where nobody had served it. */
void campaign_count_missed(struct campaign *c)
{
    for (uint32_t i = 0; i < MIN(c->operation_n, (uint32_t)ARRAY_LEN(c->ticks)); i++) {
        struct campaign_tick *t = &c->ticks[i];
        const struct campaign_operation *op = &c->operations[i];
        bool cron = op->spec->type == OPERATION_CRON && c->problem.n == 0;
        if (cron && t->at > 0 && op->tick > t->at) {
            metric_add(c->o->metrics.missed, t->unserved);
        }
        *t = (struct campaign_tick){ cron ? op->tick : 0, cron ? operation_unserved(c, i) : 0 };
    }
}
