/* Registers the metrics of the profiles' controller and counts for them. */
#include "profile/controller_metrics.h"

/* 1 ms … 10 s: a patch takes some milliseconds, a struggling server seconds. */
static const double seconds_buckets[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                          0.25,  0.5,    1,     2.5,  5,     10 };

static void controller_metrics_init_original(struct controller_metrics *g, struct metrics *m)
{
    static const struct metric_spec reconciles = {
        .name = "controller_runtime_reconcile_total",
        .help = "Decisions about a node, by result.",
        .kind = METRIC_COUNTER,
        .labels = { "controller", "result" },
    };
    static const struct metric_spec reconcile_errors = {
        .name = "controller_runtime_reconcile_errors_total",
        .help = "Decisions about a node that failed.",
        .kind = METRIC_COUNTER,
        .labels = { "controller" },
    };
    static const struct metric_spec transition_failures = {
        .name = "maintenance_controller_transition_failure_count",
        .help = "Failed attempts to apply a profile.",
        .kind = METRIC_COUNTER,
        .labels = { "profile" },
    };
    static const struct metric_spec shuffles = {
        .name = "maintenance_controller_pod_shuffle_count",
        .help = "Pods on nodes that came into maintenance, by their owner and the profile.",
        .kind = METRIC_COUNTER,
        .labels = { "owner", "profile" },
    };
    static const struct metric_spec shuffles_per_replica = {
        .name = "maintenance_controller_pod_shuffles_per_replica",
        .help = "The same as a share of the owner's replicas.",
        .kind = METRIC_COUNTER,
        .labels = { "owner", "profile" },
    };
    g->shuffles = metrics_family(m, &shuffles);
    g->shuffles_per_replica = metrics_family(m, &shuffles_per_replica);
    g->reconciles[0] = metric_series(metrics_family(m, &reconciles),
                                     (const struct str[]){ STR("node"), STR("success") });
    g->reconciles[1] = metric_series(metrics_family(m, &reconciles),
                                     (const struct str[]){ STR("node"), STR("error") });
    g->reconcile_errors =
        metric_series(metrics_family(m, &reconcile_errors), (const struct str[]){ STR("node") });
    g->transition_failures = metrics_family(m, &transition_failures);
}

static void controller_metrics_init_drydock(struct controller_metrics *g, struct metrics *m)
{
    static const struct metric_spec nodes = {
        .name = "drydock_nodes",
        .help = "Nodes, by the state their label shows.",
        .kind = METRIC_GAUGE,
        .labels = { "state" },
    };
    static const struct metric_spec queue = {
        .name = "drydock_queue_nodes",
        .help = "Nodes that wait for a decision, for an answer, or after a failure.",
        .kind = METRIC_GAUGE,
        .labels = { "kind" },
    };
    static const struct metric_spec patch_seconds = {
        .name = "drydock_patch_duration_seconds",
        .help = "From sending a patch to its answer.",
        .kind = METRIC_HISTOGRAM,
        .buckets = seconds_buckets,
        .bucket_count = ARRAY_LEN(seconds_buckets),
    };
    g->nodes = metrics_family(m, &nodes);
    struct metric *f = metrics_family(m, &queue);
    g->queue[0] = metric_series(f, (const struct str[]){ STR("dirty") });
    g->queue[1] = metric_series(f, (const struct str[]){ STR("in_flight") });
    g->queue[2] = metric_series(f, (const struct str[]){ STR("later") });
    g->patch_seconds = metric_series(metrics_family(m, &patch_seconds), NULL);
    g->patches =
        metrics_series(m, METRIC_COUNTER, "drydock_patches_total", "Node patches that were sent.");
    g->conflicts = metrics_series(m, METRIC_COUNTER, "drydock_patch_conflicts_total",
                                  "Node patches that met a newer node (409).");
    g->errors = metrics_series(m, METRIC_COUNTER, "drydock_patch_errors_total",
                               "Node patches that failed otherwise.");
    g->unreadable = metrics_series(m, METRIC_GAUGE, "drydock_nodes_unreadable",
                                   "Nodes that are not touched because their data cannot be read.");
}

static void controller_metrics_init_profiles(struct controller_metrics *g, struct metrics *m)
{
    static const struct metric_spec transitions = {
        .name = "drydock_transitions_total",
        .help = "Transitions that were written, by profile and the state they lead to.",
        .kind = METRIC_COUNTER,
        .labels = { "profile", "state" },
    };
    static const struct metric_spec notifications = {
        .name = "drydock_notifications_total",
        .help = "Attempts to send a notification, by instance and result.",
        .kind = METRIC_COUNTER,
        .labels = { "instance", "result" },
    };
    static const struct metric_spec profiles = {
        .name = "drydock_profile_nodes",
        .help = "Nodes, by profile and the state of that profile.",
        .kind = METRIC_GAUGE,
        .labels = { "profile", "state" },
    };
    g->transitions = metrics_family(m, &transitions);
    g->notifications = metrics_family(m, &notifications);
    g->profiles = metrics_family(m, &profiles);
    g->config_warnings = metrics_series(m, METRIC_GAUGE, "drydock_config_warnings",
                                        "Warnings about the configuration in force.");
    g->unsent = metrics_series(m, METRIC_GAUGE, "drydock_notifications_unsent",
                               "Notifications that could not be sent and are tried again.");
    g->config_valid = metrics_series(m, METRIC_GAUGE, "drydock_config_valid",
                                     "1 when the newest configuration is in force, 0 when an "
                                     "earlier one had to stay.");
    g->config_loads = metrics_series(m, METRIC_COUNTER, "drydock_config_loads_total",
                                     "Configurations that came into force.");
    g->waiting = metrics_series(m, METRIC_GAUGE, "drydock_nodes_waiting",
                                "Nodes that wait for their turn to go into maintenance.");
    g->grants = metrics_series(m, METRIC_GAUGE, "drydock_grants",
                               "Grants that are on their way into maintenance.");
}

void controller_metrics_init(struct controller_metrics *g, struct metrics *registry)
{
    *g = (struct controller_metrics){ .registry = registry };
    controller_metrics_init_original(g, registry);
    controller_metrics_init_drydock(g, registry);
    controller_metrics_init_profiles(g, registry);
}

void controller_metrics_reconcile(struct controller_metrics *g, bool ok)
{
    metric_add(g->reconciles[ok ? 0 : 1], 1);
    if (!ok) {
        metric_add(g->reconcile_errors, 1);
    }
}

void controller_metrics_nodes(struct controller_metrics *g, struct str state, uint32_t count)
{
    metric_set(metric_series(g->nodes, &state), count);
}

void controller_metrics_failure(struct controller_metrics *g, struct str profile)
{
    metric_add(metric_series(g->transition_failures, &profile), 1);
}

void controller_metrics_transition(struct controller_metrics *g, struct str profile,
                                   struct str state)
{
    metric_add(metric_series(g->transitions, (const struct str[]){ profile, state }), 1);
}

void controller_metrics_notified(struct controller_metrics *g, struct str instance, bool ok)
{
    const struct str values[] = { instance, ok ? STR("sent") : STR("failed") };
    metric_add(metric_series(g->notifications, values), 1);
}

void controller_metrics_profile(struct controller_metrics *g, struct str profile, struct str state,
                                uint32_t count)
{
    metric_set(metric_series(g->profiles, (const struct str[]){ profile, state }), count);
}

void controller_metrics_shuffle(struct controller_metrics *g, struct str owner, struct str profile,
                                double count, double per_replica)
{
    const struct str values[] = { owner, profile };
    metric_add(metric_series(g->shuffles, values), count);
    metric_add(metric_series(g->shuffles_per_replica, values), per_replica);
}
