/* drydock bridge: flags of the bridge between Cluster API and the Nodes of workload clusters, and
 * what its process is made of. */
#include "bridge/bridge.h"

#include "base/duration.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/shard.h"
#include "host/dialer.h"
#include "web/bridge_pages.h"

struct bridge_flags {
    struct daemon_flags daemon;
    bool elect;
    bool metal3;
    bool metal3_require_enabled;
    bool metal3_require_drained;
    struct str hook_mode;
    struct str approval;
    bool strict_approval;
    bool refuse_forged;
    struct str missing_node;
    usec_t unreachable_max;
    usec_t hold_max;
    usec_t skew_tolerance;
    struct str ns;
    struct str watch_filter;
    struct str shard;
    bool allow_insecure;
    bool allow_proxy;
    bool allow_local;
    struct str workload_rbac;
    bool cluster_metrics;
};

static const struct option bridge_options[] = {
    { "metrics-addr", OPTION_TEXT, OPTION(struct bridge_flags, daemon.metrics_addr), "ADDRESS",
      ":8080", NULL, "where metrics and JSON are served; 0 disables it" },
    DAEMON_SERVER_OPTIONS(struct bridge_flags),
    { "enable-leader-election", OPTION_BOOL, OPTION(struct bridge_flags, elect), NULL, "true", NULL,
      "act only while holding the Lease; false: it acts from the start, alone" },
    DAEMON_CLUSTER_OPTIONS(struct bridge_flags),
    { "namespace", OPTION_TEXT, OPTION(struct bridge_flags, ns), "NAME", "", NULL,
      "look after Machines and Clusters of this one only; otherwise of all" },
    { "watch-filter", OPTION_TEXT, OPTION(struct bridge_flags, watch_filter), "VALUE", "", NULL,
      "look after Machines only whose label cluster.x-k8s.io/watch-filter is this" },
    { "shard", OPTION_TEXT, OPTION(struct bridge_flags, shard), "I/N", "", NULL,
      "look after one of N parts of all Clusters, from 0/N to N-1/N; a Lease each" },
    { "hook-mode", OPTION_CHOICE, OPTION(struct bridge_flags, hook_mode), "MODE", "managed",
      "managed|eager", "attach the hook once the node's engine has labelled it, or at once" },
    { "workload-approval", OPTION_CHOICE, OPTION(struct bridge_flags, approval), "WHO", "engine",
      "engine|requests", "who approves: an engine, or the limits for MaintenanceRequests" },
    { "strict-legacy-approval", OPTION_BOOL, OPTION(struct bridge_flags, strict_approval), NULL,
      "false", NULL, "an approval counts whenever it is there, also one from earlier" },
    { "refuse-forged-approval", OPTION_BOOL, OPTION(struct bridge_flags, refuse_forged), NULL,
      "false", NULL, "set a maintenance that nobody approved back to requested" },
    { "on-missing-node", OPTION_CHOICE, OPTION(struct bridge_flags, missing_node), "RULE",
      "release", "release|hold", "what becomes of a deletion whose node is confirmed to be gone" },
    { "unreachable-timeout", OPTION_DURATION, OPTION(struct bridge_flags, unreachable_max),
      "DURATION", "0s", NULL,
      "let a deletion go when its cluster is out of sight that long; 0s: never" },
    { "deletion-hold", OPTION_DURATION, OPTION(struct bridge_flags, hold_max), "DURATION", "0s",
      NULL, "let a deletion go when it was held that long; 0s: never" },
    { "clock-skew-tolerance", OPTION_DURATION, OPTION(struct bridge_flags, skew_tolerance),
      "DURATION", "5s", NULL, "time limits fire that much later" },
    { "enable-metal3-maintenance", OPTION_BOOL, OPTION(struct bridge_flags, metal3), NULL, "false",
      NULL, "switch Metal3 hosts off while their Machines are in maintenance" },
    { "metal3-require-enabled", OPTION_BOOL, OPTION(struct bridge_flags, metal3_require_enabled),
      NULL, "true", NULL, "only those of enabled Machines; false: of every approved Machine" },
    { "metal3-require-drained", OPTION_BOOL, OPTION(struct bridge_flags, metal3_require_drained),
      NULL, "false", NULL, "only when the node is cordoned and drained" },
    { "allow-insecure-kubeconfig", OPTION_BOOL, OPTION(struct bridge_flags, allow_insecure), NULL,
      "false", NULL, "also reach workload clusters that do not prove who they are" },
    { "allow-kubeconfig-proxy", OPTION_BOOL, OPTION(struct bridge_flags, allow_proxy), NULL,
      "false", NULL, "also go through the proxy-url of a workload cluster's kubeconfig" },
    { "allow-local-servers", OPTION_BOOL, OPTION(struct bridge_flags, allow_local), NULL, "false",
      NULL, "also reach workload clusters at loopback and link-local addresses" },
    { "workload-rbac", OPTION_CHOICE, OPTION(struct bridge_flags, workload_rbac), "MODE",
      "kubeconfig", "kubeconfig|manage",
      "work as the kubeconfig's user, or with an account made there and its tokens" },
    { "per-cluster-metrics", OPTION_BOOL, OPTION(struct bridge_flags, cluster_metrics), NULL,
      "false", NULL, "one series for each Cluster's connection" },
    DAEMON_LOG_OPTIONS(struct bridge_flags),
};

/* One running bridge with everything it uses, in the order in which the parts are made. */
struct bridge_app {
    const struct bridge_flags *flags;
    struct shard shard;
    struct daemon daemon;
    struct dialer *dialer;
    struct bridge *bridge;
    struct bridge_pages pages;
    struct health health;
};

/* ── who asks ──────────────────────────────────────────────────────────────────────────────── */

static bool bridge_app_explain(void *ctx, struct str namespace, struct str name, struct arena *out,
                               struct bridge_machine_view *ret)
{
    return bridge_explain(ctx, namespace, name, out, ret);
}

static void bridge_app_each_link(void *ctx, void (*fn)(void *ctx, const struct link_view *view),
                                 void *fn_ctx)
{
    bridge_each_link(ctx, fn, fn_ctx);
}

static void bridge_app_stats(void *ctx, struct bridge_stats *ret)
{
    bridge_stats(ctx, ret);
}

static bool bridge_app_leading(void *ctx)
{
    return bridge_leading(ctx);
}

static struct str bridge_app_leader(void *ctx)
{
    return bridge_leader(ctx);
}

static bool bridge_app_ready(void *ctx, struct str *ret_why)
{
    return bridge_ready(ctx, ret_why);
}

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

static void bridge_app_on_stopped(void *ctx)
{
    struct bridge_app *app = ctx;
    daemon_quit_when_idle(&app->daemon);
}

static void bridge_app_on_end(void *ctx)
{
    struct bridge_app *app = ctx;
    bridge_stop(app->bridge);
}

static void bridge_app_on_leading(void *ctx, bool leading)
{
    struct bridge_app *app = ctx;
    if (!leading && !app->daemon.ending) {
        daemon_quit(&app->daemon, COMMAND_FAILED); /* its pod restarts and no longer leads */
    }
}

static void bridge_app_done(struct bridge_app *app)
{
    daemon_close_servers(&app->daemon);
    bridge_free(app->bridge);
    host_dialer_free(app->dialer);
    daemon_done(&app->daemon);
}

/* ── the beginning ─────────────────────────────────────────────────────────────────────────── */

/* What the option table cannot check. */
static int bridge_app_check(struct bridge_app *app, struct err *err)
{
    const struct bridge_flags *flags = app->flags;
    enum log_level ignored;
    struct allowed_hosts hosts;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    int r = shard_parse(flags->shard, &app->shard, err);
    r = r < 0 ? r : allowed_hosts_parse(flags->daemon.allowed_hosts, &tmp, &hosts, err);
    if (r < 0) {
        return r;
    }
    const struct {
        const char *name;
        usec_t value;
    } limits[] = {
        { "unreachable-timeout", flags->unreachable_max },
        { "deletion-hold", flags->hold_max },
        { "clock-skew-tolerance", flags->skew_tolerance },
    };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        char room[DURATION_TEXT_MAX];
        if (limits[i].value < 0) {
            struct str text = duration_print(limits[i].value * 1000, room);
            return err_set(err, ERR_INVALID, "--%s '" STR_FMT "': want a duration from 0s",
                           limits[i].name, STR_ARG(text));
        }
    }
    return daemon_log_level(&flags->daemon, &ignored, err);
}

static int bridge_app_start(struct bridge_app *app, struct err *err)
{
    const struct bridge_flags *flags = app->flags;
    struct daemon *p = &app->daemon;
    int r = daemon_connect_cluster(p, STR("controllers.bridge"), flags->elect, err);
    if (r < 0) {
        return r;
    }
    app->dialer = host_dialer_new(
        p->loop, &(struct host_dialer_config){ .allow_insecure = flags->allow_insecure,
                                               .allow_proxy = flags->allow_proxy,
                                               .allow_local = flags->allow_local });
    app->bridge =
        bridge_new(p->loop, p->api, &p->log, &p->metrics,
                   &(struct bridge_config){
                       .identity = p->identity,
                       .lease_namespace = p->namespace,
                       .namespace = flags->ns,
                       .watch_filter = flags->watch_filter,
                       .shard = app->shard.index,
                       .shards = app->shard.count,
                       .elect = flags->elect,
                       .metal3 = flags->metal3,
                       .cluster_metrics = flags->cluster_metrics,
                       .manage_rbac = str_eq(flags->workload_rbac, STR("manage")),
                       .by_requests = str_eq(flags->approval, STR("requests")),
                       .rules = { .eager = str_eq(flags->hook_mode, STR("eager")),
                                  .strict_approval = flags->strict_approval,
                                  .missing_holds = str_eq(flags->missing_node, STR("hold")),
                                  .refuse_forged = flags->refuse_forged,
                                  .unreachable_max = flags->unreachable_max,
                                  .hold_max = flags->hold_max,
                                  .skew = flags->skew_tolerance },
                       .power = { .any_machine = !flags->metal3_require_enabled,
                                  .require_drained = flags->metal3_require_drained },
                       .server = daemon_server_host(p->access.server),
                       .dialer = app->dialer,
                       .on_leading = bridge_app_on_leading,
                       .on_stopped = bridge_app_on_stopped,
                       .ctx = app,
                   });
    const struct bridge_pages_source source = {
        .ctx = app->bridge,
        .explain = bridge_app_explain,
        .each_link = bridge_app_each_link,
        .stats = bridge_app_stats,
        .leading = bridge_app_leading,
        .leader = bridge_app_leader,
        .ready = bridge_app_ready,
    };
    app->pages = (struct bridge_pages){ p->loop, source, &p->metrics };
    app->health = (struct health){ .ctx = app->bridge, .ready = bridge_app_ready };
    r = daemon_serve_web(p, bridge_pages_handle, &app->pages, "serving metrics and links", err);
    return r < 0 ? r : daemon_serve_health(p, &app->health, err);
}

static int bridge_run(const struct command_call *call)
{
    struct err err = { 0 };
    struct bridge_app app = { .flags = call->config };
    if (bridge_app_check(&app, &err) < 0) {
        (void)command_fail(call, &err); /* the exit code is that of a wrong command line */
        return COMMAND_USAGE;
    }
    daemon_init(&app.daemon, &app.flags->daemon, call->memory);
    int code = bridge_app_start(&app, &err) < 0 ? command_fail(call, &err)
                                                : daemon_run(&app.daemon, bridge_app_on_end, &app);
    bridge_app_done(&app);
    return code;
}

const struct command command_bridge = {
    .name = "bridge",
    .summary = "hold Machines of Cluster API until their nodes agree",
    .text = "Runs in a management cluster of Cluster API. It attaches a pre-drain hook to enabled "
            "Machines, tells their Nodes in the workload clusters that a deletion or a maintenance "
            "is wanted, and goes on when the maintenance engine there has approved it. With "
            "--enable-metal3-maintenance it switches hosts of approved Machines off and on again. "
            "Flags, labels, annotations and Lease are those of the "
            "runtime-extension-maintenance-controller, so either may take over from the other.\n\n"
            "Exit code 0: it was told to end. 1: the kubeconfig cannot be loaded, or it has lost "
            "its Lease. 2: the command line is wrong.",
    .options = { .options = bridge_options, .count = ARRAY_LEN(bridge_options) },
    .config_size = sizeof(struct bridge_flags),
    .run = bridge_run,
};
