/* drydock controller: flags of the controller, and what its process is made of. */
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/config_file.h"
#include "cmd/integration_files.h"
#include "host/outbound.h"
#include "kinds/keys.h"
#include "profile/controller.h"
#include "cmd/config_env.h"
#include "core/crd_install.h"
#include "operation/operations.h"
#include "request/requests_part.h"
#include "web/leader_proxy.h"
#include "web/controller_source.h"

#include <stdlib.h>
#include <string.h>

#define INTEGRATION_CALLS_MAX 32u     /* of all vCenters and clouds together */
#define SCRAPE_CHECK_EVERY SECONDS(1) /* after SIGTERM, for one more scrape; as the original */

struct controller_flags {
    struct daemon_flags daemon;
    struct str config;
    struct str pprof_addr;
    usec_t metrics_timeout;
    bool elect;
    bool esx;
    struct str esx_config;
    bool kubernikus;
    struct str kubernikus_config;
    uint32_t leader_port;
    bool install_crds;
    struct str missing_limit;
    usec_t finished_ttl;
    usec_t skew_tolerance;
    bool trust_approval;
    bool legacy_notready;
    bool legacy_double_count;
    bool grant_missing;
    struct str system_namespace;
    struct str jobs_namespace;
    struct str runner_image;
    struct str job_priority_class;
    uint32_t jobs_max;
    uint32_t unlimited_visits;
    bool allow_forced_drains;
    struct str allow_url;
};

static const struct option controller_options[] = {
    { "config", OPTION_FILE, OPTION(struct controller_flags, config), "FILE", "", NULL,
      "profiles and their plugins; read again when it changes (config/maintenance.yaml)" },
    { "metrics-addr", OPTION_TEXT, OPTION(struct controller_flags, daemon.metrics_addr), "ADDRESS",
      ":8080", NULL, "where metrics, dashboard and JSON are served; 0 disables it" },
    DAEMON_SERVER_OPTIONS(struct controller_flags),
    { "pprof-addr", OPTION_TEXT, OPTION(struct controller_flags, pprof_addr), "ADDRESS", "", NULL,
      "accepted and ignored: there is no Go runtime to profile" },
    { "metrics-timeout", OPTION_DURATION, OPTION(struct controller_flags, metrics_timeout),
      "DURATION", "65s", NULL, "how long to wait for one last scrape after SIGTERM" },
    { "enable-leader-election", OPTION_BOOL, OPTION(struct controller_flags, elect), NULL, "false",
      NULL, "act only while holding the Lease; needed with more than one replica" },
    { "enable-esx-maintenance", OPTION_BOOL, OPTION(struct controller_flags, esx), NULL, "false",
      NULL, "shut nodes down when their ESX host goes into maintenance mode, and bring them back" },
    { "esx-config", OPTION_FILE, OPTION(struct controller_flags, esx_config), "FILE",
      "config/esx.yaml", NULL, "of ESX; read again when it changes" },
    { "enable-kubernikus-maintenance", OPTION_BOOL, OPTION(struct controller_flags, kubernikus),
      NULL, "false", NULL,
      "mark nodes whose kubelet has another version, delete those with cloud.sap/delete-node" },
    { "kubernikus-config", OPTION_FILE, OPTION(struct controller_flags, kubernikus_config), "FILE",
      "config/kubernikus.yaml", NULL, "of Kubernikus; read again when it changes" },
    DAEMON_CLUSTER_OPTIONS(struct controller_flags),
    { "leader-port", OPTION_U32, OPTION(struct controller_flags, leader_port), "PORT", "0", NULL,
      "where the leader serves what other replicas show; 0 means the same port as here" },
    { "install-crds", OPTION_BOOL, OPTION(struct controller_flags, install_crds), NULL, "false",
      NULL, "create the CRDs of requests and limits, or bring them up to date" },
    DAEMON_LOG_OPTIONS(struct controller_flags),
    { "missing-limit", OPTION_TEXT, OPTION(struct controller_flags, missing_limit), "RULE",
      "unlimited", NULL,
      "for requests that no MaintenanceLimit concerns: unlimited, deny, or a percentage" },
    { "finished-ttl", OPTION_DURATION, OPTION(struct controller_flags, finished_ttl), "DURATION",
      "168h", NULL, "finished MaintenanceRequests are deleted after that; 0s keeps them" },
    { "clock-skew-tolerance", OPTION_DURATION, OPTION(struct controller_flags, skew_tolerance),
      "DURATION", "5s", NULL, "time limits of requests fire that much later" },
    { "trust-external-approval", OPTION_BOOL, OPTION(struct controller_flags, trust_approval), NULL,
      "false", NULL, "accept requests that somebody else has approved" },
    { "legacy-notready", OPTION_BOOL, OPTION(struct controller_flags, legacy_notready), NULL,
      "false", NULL, "policy NotReady: a node whose readiness is unknown counts as available" },
    { "legacy-double-count", OPTION_BOOL, OPTION(struct controller_flags, legacy_double_count),
      NULL, "false", NULL, "limits: a node that holds a grant may count as unavailable too" },
    { "grant-missing-targets", OPTION_BOOL, OPTION(struct controller_flags, grant_missing), NULL,
      "false", NULL, "approve requests for objects that do not exist" },
    { "system-namespace", OPTION_TEXT, OPTION(struct controller_flags, system_namespace), "NAME",
      "drydock-system", NULL, "operations: where NodeStates are" },
    { "jobs-namespace", OPTION_TEXT, OPTION(struct controller_flags, jobs_namespace), "NAME",
      "drydock-jobs", NULL, "operations: where Jobs run, and what they refer to is" },
    { "runner-image", OPTION_TEXT, OPTION(struct controller_flags, runner_image), "IMAGE", "", NULL,
      "operations: this program's own image, which runs scripts on machines" },
    { "job-priority-class", OPTION_TEXT, OPTION(struct controller_flags, job_priority_class),
      "NAME", "", NULL, "operations: the PriorityClass of Jobs' pods" },
    { "jobs-max", OPTION_U32, OPTION(struct controller_flags, jobs_max), "N", "500", NULL,
      "operations: how many Jobs may be there at once" },
    { "unlimited-visits", OPTION_U32, OPTION(struct controller_flags, unlimited_visits), "N", "1",
      NULL,
      "operations: visits at once on nodes that no MaintenanceLimit selects; 0 is any number" },
    { "allow-forced-drains", OPTION_BOOL, OPTION(struct controller_flags, allow_forced_drains),
      NULL, "false", NULL,
      "operations: accept drains that go on, or delete pods, when their time is over" },
    { "allow-url", OPTION_TEXT, OPTION(struct controller_flags, allow_url), "PREFIX[,PREFIX]", "",
      NULL, "operations: addresses that gates may ask, such as http://prometheus.monitoring:9090" },
};

/* One running controller with everything it uses, in the order in which the parts are made. */
struct controller_app {
    const struct controller_flags *flags;
    struct daemon daemon;
    struct outbound *outbound;
    struct outbound *integration_outbound;
    struct client installer; /* only for CRDs: other requests do not wait for these */
    struct crd_install *install;
    struct core *core;
    struct controller *controller;
    struct requests_part requests;
    struct operations *operations;
    struct config_file config_file;
    struct integrations integrations;
    struct integration_files integration_files;
    struct controller_source source;
    struct leader_proxy *proxy;
    struct outbound *leader_proxy_outbound;
    struct web *web;
    struct loop_timer scrape; /* after SIGTERM: waits for one more scrape */
    usec_t serve_until;
    uint64_t scrapes; /* how many there had been when SIGTERM came */
};

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

/* The Lease has been released; the process only stays until Prometheus has read the last values. */
static void controller_app_on_scrape_timer(void *ctx)
{
    struct controller_app *app = ctx;
    usec_t now = loop_now(app->daemon.loop);
    bool scraped = app->web == NULL || web_scrapes(app->web) > app->scrapes;
    if (!scraped && now < app->serve_until) {
        log_debug(&app->daemon.log, "Awaiting an other metrics scrape");
        loop_timer_set(&app->scrape, MIN(now + SCRAPE_CHECK_EVERY, app->serve_until));
    } else {
        daemon_quit_when_idle(&app->daemon);
    }
}

static void controller_app_on_stopped(void *ctx)
{
    struct controller_app *app = ctx;
    loop_timer_set(&app->scrape, loop_now(app->daemon.loop));
}

static void controller_app_on_end(void *ctx)
{
    struct controller_app *app = ctx;
    /* Nobody waits for the last values of a controller that has never known its nodes, and whoever
     * has pressed Ctrl-C waits for the end. */
    bool wait = !app->daemon.typed && app->core->nodes_known;
    app->scrapes = app->web == NULL ? 0 : web_scrapes(app->web);
    app->serve_until = loop_now(app->daemon.loop) + (wait ? app->flags->metrics_timeout : 0);
    core_stop(app->core);
}

static void controller_app_on_leading(void *ctx, bool leading)
{
    struct controller_app *app = ctx;
    if (!leading && !app->daemon.ending) {
        /* As the original: the pod restarts and no longer leads. */
        daemon_quit(&app->daemon, COMMAND_FAILED);
    }
}

static void controller_app_done(struct controller_app *app)
{
    crd_install_free(app->install);
    daemon_close_servers(&app->daemon);
    web_free(app->web);
    leader_proxy_free(app->proxy);
    host_outbound_free(app->leader_proxy_outbound);
    controller_source_done(&app->source);
    loop_timer_done(&app->scrape);
    config_file_stop(&app->config_file);
    integration_files_stop(&app->integration_files);
    integrations_done(&app->integrations);
    operations_free(app->operations);
    requests_part_done(&app->requests);
    controller_free(app->controller);
    core_free(app->core);
    host_outbound_free(app->integration_outbound);
    host_outbound_free(app->outbound);
    daemon_done(&app->daemon);
}

/* ── CRDs ──────────────────────────────────────────────────────────────────────────────────── */

static void controller_app_on_crd_written(void *ctx, struct str name, bool created)
{
    struct controller_app *app = ctx;
    log_info(&app->daemon.log, created ? "CRD created" : "CRD updated", KV_STR("name", name));
}

/* The parts that watch these kinds find the CRDs by themselves, so nothing waits for this. */
static void controller_app_on_installed(void *ctx, const struct err *err)
{
    struct controller_app *app = ctx;
    if (err == NULL) {
        log_info(&app->daemon.log, "CRDs are installed");
        return;
    }
    log_error(&app->daemon.log,
              "--install-crds was refused; 'drydock crds' prints them for kubectl apply",
              KV_ERR(err));
    daemon_quit(&app->daemon, COMMAND_FAILED);
}

static void controller_app_install(struct controller_app *app)
{
    client_init(&app->installer, app->daemon.loop, app->daemon.api);
    app->install = crd_install_new(&(struct crd_install_config){
        .client = &app->installer,
        .on_done = controller_app_on_installed,
        .on_written = controller_app_on_crd_written,
        .ctx = app,
    });
}

/* ── the beginning ─────────────────────────────────────────────────────────────────────────── */

static const char *controller_app_env(void *ctx, const char *name)
{
    (void)ctx; /* there is one environment */
    return getenv(name);
}

static void controller_app_open_outbound(struct controller_app *app)
{
    app->outbound =
        host_outbound_new(app->daemon.loop, &(struct host_outbound_config){
                                                .env = controller_app_env,
                                                .ca_file = str_from(getenv("SSL_CERT_FILE")),
                                            });
}

/* The leader is asked through an outbound door of its own: without the HTTP proxy of the
 * environment, and never behind a slow mail server. */
static void controller_app_start_leader_proxy(struct controller_app *app)
{
    uint32_t port = app->flags->leader_port;
    app->leader_proxy_outbound = host_outbound_new(
        app->daemon.loop, &(struct host_outbound_config){ .calls_max = LEADER_PROXY_FETCHES_MAX,
                                                          .connect_max = LEADER_PROXY_TIMEOUT });
    daemon_set_leader_outbound(&app->daemon, app->leader_proxy_outbound);
    app->proxy = leader_proxy_new(
        app->daemon.loop, &(struct leader_proxy_config){
                              .api = app->daemon.api,
                              .outbound = app->leader_proxy_outbound,
                              .lease_namespace = app->daemon.namespace,
                              .lease_name = CORE_LEASE_NAME,
                              .port = port != 0 ? port : http_server_port(app->daemon.web_server),
                              .tls = daemon_serves_tls(&app->daemon),
                              .auth = app->daemon.auth != NULL,
                          });
    web_set_leader_proxy(app->web, app->proxy);
}

static int controller_app_serve(struct controller_app *app, struct err *err)
{
    struct daemon *p = &app->daemon;
    if (daemon_serves_web(p)) {
        app->web = web_new(p->loop, &app->source.web, &p->metrics);
    }
    int r = daemon_serve_web(p, web_handle, app->web, "serving metrics and dashboard", err);
    if (r == 0 && app->web != NULL && app->flags->elect) {
        controller_app_start_leader_proxy(app);
    }
    return r < 0 ? r : daemon_serve_health(p, &app->source.health, err);
}

/* "unlimited", "deny", or a percentage. */
static int controller_app_read_missing(struct str text, struct arbiter_config *ret, struct err *err)
{
    struct str number = text;
    (void)str_cut_suffix(text, STR("%"), &number); /* may be left out */
    if (str_eq(text, STR("unlimited"))) {
        ret->missing = MISSING_LIMIT_UNLIMITED;
    } else if (str_eq(text, STR("deny"))) {
        ret->missing = MISSING_LIMIT_DENY;
    } else if (str_to_u32(number, &ret->missing_limit_percent) &&
               ret->missing_limit_percent <= 100) {
        ret->missing = MISSING_LIMIT_PERCENT;
    } else {
        return err_set(err, ERR_INVALID,
                       "--missing-limit '" STR_FMT "': want unlimited, deny, or a percentage from "
                       "0 to 100",
                       STR_ARG(text));
    }
    return 0;
}

static int controller_app_open_core(struct controller_app *app, struct err *err)
{
    const struct controller_flags *flags = app->flags;
    struct daemon *p = &app->daemon;
    struct err ignored = { 0 };
    struct core_config config = {
        .loop = p->loop,
        .api = p->api,
        .log = &p->log,
        .metrics = &p->metrics,
        .identity = p->identity,
        .lease_namespace = p->namespace,
        .server = daemon_server_host(p->access.server),
        .elect = flags->elect,
        .use_limits = true,
        .limits = { .namespace = STR("default"),
                    .legacy_notready = flags->legacy_notready,
                    .legacy_double_count = flags->legacy_double_count,
                    .grant_missing = flags->grant_missing },
        .on_leading = controller_app_on_leading,
        .on_stopped = controller_app_on_stopped,
        .ctx = app,
    };
    struct str namespace;
    if (daemon_find_namespace(p, &namespace, &ignored) == 0) {
        config.lease_namespace = namespace;
        config.limits.namespace = namespace;
    }
    int r = controller_app_read_missing(flags->missing_limit, &config.limits, err);
    if (r == 0) {
        app->core = core_new(&config);
    }
    return r;
}

/* The flags of each provider; a new one has its line here. */
struct controller_app_provider {
    const char *name;
    bool enabled;
    struct str file;
};

static int controller_app_start_integrations(struct controller_app *app, struct err *err)
{
    const struct controller_flags *flags = app->flags;
    const struct controller_app_provider providers[] = {
        { "esx", flags->esx, flags->esx_config },
        { "kubernikus", flags->kubernikus, flags->kubernikus_config },
    };
    /* A door of its own: no notification waits behind a slow vCenter. */
    app->integration_outbound =
        host_outbound_new(app->daemon.loop, &(struct host_outbound_config){
                                                .env = controller_app_env,
                                                .ca_file = str_from(getenv("SSL_CERT_FILE")),
                                                .calls_max = INTEGRATION_CALLS_MAX,
                                            });
    struct integrations_config config = {
        .outbound = app->integration_outbound,
        .files = &integration_files_host,
    };
    struct str paths[INTEGRATIONS_MAX] = { 0 };
    for (uint32_t i = 0; i < integration_provider_n; i++) {
        for (size_t k = 0; k < ARRAY_LEN(providers); k++) {
            if (strcmp(integration_providers[i]->name, providers[k].name) == 0) {
                config.enabled[i] = providers[k].enabled;
                paths[i] = providers[k].file;
            }
        }
    }
    integrations_init(&app->integrations, app->core, &config);
    return integration_files_start(&app->integration_files, &app->integrations, paths,
                                   app->daemon.loop, err);
}

static void controller_app_open_operations(struct controller_app *app)
{
    const struct controller_flags *flags = app->flags;
    struct ucfg_env env = config_env_of(&config_env_host);
    app->operations =
        operations_new(app->core, &(struct operations_config){
                                      .namespace = flags->system_namespace,
                                      .jobs_namespace = flags->jobs_namespace,
                                      .runner_image = flags->runner_image,
                                      .priority_class = flags->job_priority_class,
                                      .read_zone = env.zone,
                                      .zone_ctx = env.ctx,
                                      .jobs_max = flags->jobs_max,
                                      .unlimited_visits = flags->unlimited_visits,
                                      .allow_forced_drains = flags->allow_forced_drains,
                                      .outbound = app->outbound,
                                      .allow_urls = flags->allow_url,
                                  });
}

static int controller_app_start_parts(struct controller_app *app, struct err *err)
{
    const struct controller_flags *flags = app->flags;
    struct daemon *p = &app->daemon;
    struct str file = flags->config.n > 0 ? flags->config : CONFIG_FILE_PATH;
    bool optional = flags->config.n == 0 && !config_file_exists(file);
    app->controller = controller_new(app->core, &(struct controller_config){
                                                    .outbound = app->outbound,
                                                    .files = &integration_files_host,
                                                    .wait_for_config = !optional,
                                                });
    requests_part_init(&app->requests, app->core,
                       &(struct requests_config){
                           .finished_ttl = flags->finished_ttl,
                           .skew_tolerance = flags->skew_tolerance,
                           .trust_approval = flags->trust_approval,
                       });
    int r = controller_app_start_integrations(app, err);
    if (r < 0) {
        return r;
    }
    controller_app_open_operations(app);
    core_start(app->core);
    controller_source_init(&app->source, app->controller);
    app->source.requests = &app->requests.requests;
    app->source.integrations = &app->integrations;
    app->source.operations = &app->operations;
    app->source.identity = p->identity;
    app->source.title = p->access.name.n > 0 ? p->access.name : p->access.server;
    app->config_file = (struct config_file){
        .controller = app->controller,
        .log = &p->log,
        .path = file,
        .optional = optional,
    };
    return config_file_start(&app->config_file, p->loop, err);
}

static int controller_app_start(struct controller_app *app, struct err *err)
{
    int r = daemon_connect_cluster(&app->daemon, STR("controllers.maintenance"), app->flags->elect,
                                   err);
    if (r < 0) {
        return r;
    }
    controller_app_open_outbound(app);
    if (app->flags->install_crds) {
        controller_app_install(app);
    }
    r = controller_app_open_core(app, err);
    r = r < 0 ? r : controller_app_start_parts(app, err);
    return r < 0 ? r : controller_app_serve(app, err);
}

static int controller_run(const struct command_call *call)
{
    struct err err = { 0 };
    struct controller_app app = { .flags = call->config };
    daemon_init(&app.daemon, &app.flags->daemon, call->memory);
    loop_timer_init(&app.scrape, app.daemon.loop, controller_app_on_scrape_timer, &app);
    int code = controller_app_start(&app, &err) < 0
                   ? command_fail(call, &err)
                   : daemon_run(&app.daemon, controller_app_on_end, &app);
    controller_app_done(&app);
    return code;
}

const struct command command_controller = {
    .name = "controller",
    .summary = "keep the maintenance state of every node",
    .text = "Watches the nodes of one cluster and keeps for each the label "
            "cloud.sap/maintenance-state and the annotation cloud.sap/maintenance-data. Flags, "
            "lease and annotation are those of the maintenance-controller, so either may take "
            "over from the other.",
    .options = { .options = controller_options, .count = ARRAY_LEN(controller_options) },
    .config_size = sizeof(struct controller_flags),
    .run = controller_run,
};
