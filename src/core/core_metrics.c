#include "core/core_metrics.h"

#include "drain/drain.h"

static const char *const verb_names[] = {
    [API_GET] = "GET",     [API_POST] = "POST",     [API_PUT] = "PUT",
    [API_PATCH] = "PATCH", [API_DELETE] = "DELETE",
};

void core_metrics_init(struct core_metrics *m, struct metrics *registry, struct str server,
                       struct str lease_name)
{
    static const struct metric_spec requests = {
        .name = "rest_client_requests_total",
        .help = "Number of HTTP requests, partitioned by status code, method, and host.",
        .kind = METRIC_COUNTER,
        .labels = { "code", "method", "host" },
    };
    static const struct metric_spec leading = {
        .name = "leader_election_master_status",
        .help = "1 while this process leads, 0 otherwise.",
        .kind = METRIC_GAUGE,
        .labels = { "name" },
    };
    static const struct metric_spec drains = {
        .name = "drydock_drains",
        .help = "Drains that run, and those of them that cannot go on.",
        .kind = METRIC_GAUGE,
        .labels = { "kind" },
    };
    static const struct metric_spec evictions = {
        .name = "drydock_evictions",
        .help = "Pods that drains evicted, were refused, or deleted by force.",
        .kind = METRIC_GAUGE,
        .labels = { "result" },
    };
    *m = (struct core_metrics){ .registry = registry, .server = server };
    m->requests = metrics_family(registry, &requests);
    client_metrics_init(&m->client, registry, server);
    m->leading = metric_series(metrics_family(registry, &leading), &lease_name);
    m->paused = metrics_series(registry, METRIC_GAUGE, "drydock_paused",
                               "1 while everything is paused: nothing new is granted.");
    m->bad_input = metrics_series(registry, METRIC_COUNTER, "drydock_bad_input_total",
                                  "Answers of the API server that could not be read.");
    m->lists = metrics_series(registry, METRIC_GAUGE, "drydock_lists",
                              "Lists of nodes that were begun; more than one means relists.");
    struct metric *f = metrics_family(registry, &drains);
    m->drains[0] = metric_series(f, (const struct str[]){ STR("active") });
    m->drains[1] = metric_series(f, (const struct str[]){ STR("blocked") });
    f = metrics_family(registry, &evictions);
    m->evictions[0] = metric_series(f, (const struct str[]){ STR("accepted") });
    m->evictions[1] = metric_series(f, (const struct str[]){ STR("refused") });
    m->evictions[2] = metric_series(f, (const struct str[]){ STR("forced") });
}

void core_metrics_request(struct core_metrics *m, enum api_verb verb, int status)
{
    char code[16];
    int n = snprintf(code, sizeof(code), "%d", status);
    ASSERT(n > 0);
    const struct str values[] = {
        status == 0 ? STR("<error>") : (struct str){ .p = code, .n = (size_t)n },
        str_from(verb_names[verb]),
        m->server,
    };
    metric_add(metric_series(m->requests, values), 1);
}

void core_metrics_drains(struct core_metrics *m, const struct drains *drains)
{
    struct drains_stats stats;
    drains_stats(drains, &stats);
    metric_set(m->drains[0], stats.active);
    metric_set(m->drains[1], stats.blocked);
    metric_set(m->evictions[0], (double)stats.evicted);
    metric_set(m->evictions[1], (double)stats.refused);
    metric_set(m->evictions[2], (double)stats.forced);
}
