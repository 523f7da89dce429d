/*
 * Metrics of limits. The series of a limit that is gone are zero.
 */
#include "base/metric.h"
#include "ledger/arbiter_internal.h"

static const struct {
    const char *name;
    const char *help;
} limit_gauges[] = {
    { "drydock_limit_nominal", "Objects that a limit lets be disturbed at once." },
    { "drydock_limit_granted", "Reservations in a limit's ledger." },
    { "drydock_limit_unavailable", "Objects that a limit counts as unavailable, not granted." },
    { "drydock_limit_waiting", "Asks that wait for a limit." },
    { "drydock_limit_population", "Objects that a limit governs." },
    { "drydock_limit_paused", "1: the limit grants nothing new because it is paused." },
    { "drydock_limit_overcommitted", "1: more is disturbed than the limit allows." },
    { "drydock_limit_problem", "1: the limit grants nothing because it cannot be evaluated." },
    { "drydock_limit_ledger_bytes", "Bytes that a limit's reservations take in its object." },
    { "drydock_limit_ledger_full", "1: no more reservations fit into the limit's object." },
};

static struct metric *limit_metrics_family(struct metrics *m, size_t i)
{
    return metrics_family(m, &(struct metric_spec){ .name = limit_gauges[i].name,
                                                    .help = limit_gauges[i].help,
                                                    .kind = METRIC_GAUGE,
                                                    .labels = { "limit" } });
}

static bool limit_metrics_limit(void *ctx, const struct arbiter_limit *limit)
{
    struct metrics *m = ctx;
    const uint32_t values[] = {
        limit->nominal,      limit->granted,     limit->unavailable,   limit->waiting,
        limit->population,   limit->paused,      limit->overcommitted, limit->problem.n > 0,
        limit->ledger_bytes, limit->ledger_full,
    };
    _Static_assert(ARRAY_LEN(values) == ARRAY_LEN(limit_gauges), "one value each");
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        metric_set(metric_series(limit_metrics_family(m, i), &limit->name), values[i]);
    }
    return true;
}

static void limit_metrics_collect(void *ctx)
{
    struct arbiter *a = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(limit_gauges); i++) {
        struct metric *family = limit_metrics_family(a->config.metrics, i);
        for (struct metric_series *s = family->first; s != NULL; s = s->next) {
            metric_set(s, 0);
        }
    }
    arbiter_each_limit(a, &tmp, limit_metrics_limit, a->config.metrics);
}

void limit_metrics_start(struct arbiter *a)
{
    if (a->config.metrics != NULL) {
        metrics_on_collect(a->config.metrics, limit_metrics_collect, a);
    }
}

void limit_metrics_stop(struct arbiter *a)
{
    if (a->config.metrics != NULL) {
        metrics_off_collect(a->config.metrics, limit_metrics_collect, a);
    }
}
