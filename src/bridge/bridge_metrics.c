#include "bridge/bridge_metrics.h"

#define MINUTE 60.0
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* A connection is back at once, after a restart of its server, or when somebody has repaired it. */
static const double away_buckets[] = { 0.1,        0.5,         1,    5,        15,  MINUTE,
                                       5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, DAY, 7 * DAY };

/* An engine that only drains needs minutes; one that waits for its window, days. */
static const double hold_buckets[] = { 1,           10,          MINUTE,  5 * MINUTE,
                                       15 * MINUTE, 30 * MINUTE, HOUR,    4 * HOUR,
                                       12 * HOUR,   DAY,         3 * DAY, 7 * DAY };

/* One page of Nodes takes a moment; the longest list that is waited for, a minute. */
static const double list_buckets[] = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,  0.5,
                                       1,     2.5,  5,     10,   30,  MINUTE };

static const char *const object_names[] = { "machine", "node", "host", "request" };
static const char *const result_names[] = { "done", "conflict", "failed" };
_Static_assert(ARRAY_LEN(object_names) == WRITE_OBJECTS, "each object has a name");
_Static_assert(ARRAY_LEN(result_names) == WRITE_RESULTS, "each result has a name");

static struct metric_series *new_counter(struct bridge_metrics *t, const char *name,
                                         const char *help)
{
    const struct metric_spec spec = { .name = name, .help = help, .kind = METRIC_COUNTER };
    return metric_series(metrics_family(t->metrics, &spec), NULL);
}

static void bridge_metrics_init_links(struct bridge_metrics *t, bool per_cluster)
{
    static const struct metric_spec links = {
        .name = "drydock_bridge_links",
        .help = "Connections to workload clusters, by state.",
        .kind = METRIC_GAUGE,
        .labels = { "state" },
    };
    static const struct metric_spec clusters = {
        .name = "drydock_bridge_cluster_link_state",
        .help = "1 for the state in which the connection to a cluster is.",
        .kind = METRIC_GAUGE,
        .labels = { "namespace", "cluster", "state" },
    };
    static const struct metric_spec away = {
        .name = "drydock_bridge_away_seconds",
        .help = "How long a cluster was out of sight before it was seen again.",
        .kind = METRIC_HISTOGRAM,
        .buckets = away_buckets,
        .bucket_count = ARRAY_LEN(away_buckets),
    };
    static const struct metric_spec listed = {
        .name = "drydock_bridge_list_seconds",
        .help = "How long it took to connect to a cluster and to list its Nodes.",
        .kind = METRIC_HISTOGRAM,
        .buckets = list_buckets,
        .bucket_count = ARRAY_LEN(list_buckets),
    };
    struct metric *f = metrics_family(t->metrics, &links);
    for (uint32_t i = 0; i < BRIDGE_METRICS_STATES; i++) {
        struct str name = str_from(link_state_name((enum link_state)i));
        t->links[i] = metric_series(f, &name);
    }
    t->links_paused =
        metrics_series(t->metrics, METRIC_GAUGE, "drydock_bridge_links_paused",
                       "Workload clusters whose API server has asked for quiet, or is silent.");
    t->clusters = per_cluster ? metrics_family(t->metrics, &clusters) : NULL;
    t->connects = new_counter(t, "drydock_bridge_connects_total",
                              "Attempts to connect to a workload cluster.");
    t->failures = new_counter(t, "drydock_bridge_connect_failures_total",
                              "Connections to a workload cluster that failed or broke.");
    t->over_limit = new_counter(t, "drydock_bridge_connections_over_limit_total",
                                "Connections that were closed because the cluster sent too much.");
    t->renewals = new_counter(t, "drydock_bridge_token_renewal_failures_total",
                              "Tokens of workload clusters that could not be renewed in time.");
    t->away = metric_series(metrics_family(t->metrics, &away), NULL);
    t->listed = metric_series(metrics_family(t->metrics, &listed), NULL);
}

static void bridge_metrics_init_machines(struct bridge_metrics *t)
{
    static const struct metric_spec machines = {
        .name = "drydock_bridge_machines",
        .help = "Machines, by phase.",
        .kind = METRIC_GAUGE,
        .labels = { "phase" },
    };
    static const struct metric_spec hold = {
        .name = "drydock_bridge_hook_hold_seconds",
        .help = "How long a hook held the deletion of a Machine.",
        .kind = METRIC_HISTOGRAM,
        .buckets = hold_buckets,
        .bucket_count = ARRAY_LEN(hold_buckets),
    };
    static const struct metric_spec patches = {
        .name = "drydock_bridge_patches_total",
        .help = "Writes that were answered, by object and result.",
        .kind = METRIC_COUNTER,
        .labels = { "object", "result" },
    };
    struct metric *f = metrics_family(t->metrics, &machines);
    for (uint32_t i = 0; i < BRIDGE_METRICS_PHASES; i++) {
        struct str name = rules_phase_name((enum rules_phase)i);
        t->machines[i] = metric_series(f, &name);
    }
    f = metrics_family(t->metrics, &patches);
    for (uint32_t o = 0; o < WRITE_OBJECTS; o++) {
        for (uint32_t r = 0; r < WRITE_RESULTS; r++) {
            const struct str values[] = { str_from(object_names[o]), str_from(result_names[r]) };
            t->patches[o][r] = metric_series(f, values);
        }
    }
    t->hold = metric_series(metrics_family(t->metrics, &hold), NULL);
    t->stale = new_counter(t, "drydock_bridge_stale_approvals_total",
                           "Approvals that were there before their request, and were taken away.");
    t->mismatches = new_counter(t, "drydock_bridge_pairing_mismatches_total",
                                "Nodes that name another Machine than the one that names them.");
}

void bridge_metrics_init(struct bridge_metrics *t, struct metrics *metrics, bool per_cluster,
                         struct str lease_name)
{
    static const struct metric_spec leading = {
        .name = "leader_election_master_status",
        .help = "1 while this process leads, 0 otherwise.",
        .kind = METRIC_GAUGE,
        .labels = { "name" },
    };
    *t = (struct bridge_metrics){ .metrics = metrics };
    if (metrics != NULL) {
        t->leading = metric_series(metrics_family(metrics, &leading), &lease_name);
        bridge_metrics_init_links(t, per_cluster);
        bridge_metrics_init_machines(t);
    }
}

static void bridge_metrics_count(struct metric_series *s)
{
    if (s != NULL) {
        metric_add(s, 1);
    }
}

void bridge_metrics_patch(struct bridge_metrics *t, enum write_object object,
                          enum write_result result)
{
    ASSERT((uint32_t)object < WRITE_OBJECTS);
    ASSERT((uint32_t)result < WRITE_RESULTS);
    bridge_metrics_count(t->patches[object][result]);
}

void bridge_metrics_unreachable(struct bridge_metrics *t, usec_t away)
{
    if (t->metrics != NULL) {
        metric_observe(t->away, (double)away / 1e6);
    }
}

void bridge_metrics_listed(struct bridge_metrics *t, usec_t took)
{
    if (t->metrics != NULL) {
        metric_observe(t->listed, (double)took / 1e6);
    }
}

void bridge_metrics_hold(struct bridge_metrics *t, usec_t hold)
{
    if (t->metrics != NULL) {
        metric_observe(t->hold, (double)hold / 1e6);
    }
}

void bridge_metrics_stale(struct bridge_metrics *t)
{
    bridge_metrics_count(t->stale);
}

void bridge_metrics_mismatch(struct bridge_metrics *t)
{
    bridge_metrics_count(t->mismatches);
}

void bridge_metrics_leading(struct bridge_metrics *t, bool leading)
{
    if (t->metrics != NULL) {
        metric_set(t->leading, leading ? 1 : 0);
    }
}

static void bridge_link_counts_add(struct bridge_link_counts *sum, const struct link_view *view)
{
    sum->connects += view->connects;
    sum->failures += view->failures;
    sum->over_limit += view->over_limit;
    sum->renewals_failed += view->renewals_failed;
}

void bridge_metrics_link_gone(struct bridge_metrics *t, const struct link_view *view)
{
    bridge_link_counts_add(&t->gone, view);
}

void bridge_metrics_begin(struct bridge_metrics *t)
{
    t->live = (struct bridge_link_counts){ 0 };
    if (t->metrics == NULL) {
        return;
    }
    metric_set(t->links_paused, 0);
    for (uint32_t i = 0; i < BRIDGE_METRICS_STATES; i++) {
        metric_set(t->links[i], 0);
    }
    for (uint32_t i = 0; i < BRIDGE_METRICS_PHASES; i++) {
        metric_set(t->machines[i], 0);
    }
    for (struct metric_series *s = t->clusters == NULL ? NULL : t->clusters->first; s != NULL;
         s = s->next) {
        metric_set(s, 0);
    }
}

void bridge_metrics_link(struct bridge_metrics *t, const struct link_view *view)
{
    bridge_link_counts_add(&t->live, view);
    if (t->metrics == NULL) {
        return;
    }
    metric_add(t->links[view->state], 1);
    metric_add(t->links_paused, view->pause_end > 0 ? 1 : 0);
    if (t->clusters != NULL) {
        const struct str values[] = { view->namespace, view->cluster,
                                      str_from(link_state_name(view->state)) };
        metric_add(metric_series(t->clusters, values), 1);
    }
}

void bridge_metrics_machines(struct bridge_metrics *t, enum rules_phase phase, uint32_t count)
{
    if (t->metrics != NULL) {
        metric_set(t->machines[phase], count);
    }
}

/* A counter only grows: a link that was neither named nor taken over must not make it fall. */
static void bridge_metrics_raise_to(struct metric_series *s, uint64_t total)
{
    metric_add(s, MAX(0.0, (double)total - s->value));
}

void bridge_metrics_end(struct bridge_metrics *t)
{
    if (t->metrics != NULL) {
        bridge_metrics_raise_to(t->connects, t->gone.connects + t->live.connects);
        bridge_metrics_raise_to(t->failures, t->gone.failures + t->live.failures);
        bridge_metrics_raise_to(t->over_limit, t->gone.over_limit + t->live.over_limit);
        bridge_metrics_raise_to(t->renewals, t->gone.renewals_failed + t->live.renewals_failed);
    }
}
