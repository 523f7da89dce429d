#include "cmd/commands.h"
#include "cmd/parts.h"
#include "cmd/settings.h"
#include "host/file.h"
#include "host/http.h"
#include "host/kubeconfig.h"
#include "host/loop.h"
#include "host/transport.h"
#include "host/wire.h"
#include "profile/controller.h"
#include "request/install.h"
#include "web/relay.h"
#include "web/source.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define NAMESPACE_FILE STR("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
#define SCRAPE_LOOK SECONDS(1)  /* how often the last scrape is looked for, as the original */
#define SERVE_GRACE SECONDS(5)  /* for answers under way when the servers end */
#define HOSTNAME_BYTES_MAX 256u /* POSIX allows 255 */

struct controller_flags {
    struct str config;
    struct str metrics_addr;
    struct str health_addr;
    struct str pprof_addr;
    usec_t metrics_timeout;
    bool elect;
    bool esx;
    bool kubernikus;
    struct str kubecontext;
    struct str kubeconfig;
    struct str lease_namespace;
    uint32_t leader_port;
    bool install_crds;
    struct str log_format;
    bool zap_devel;
    struct str zap_encoder;
    struct str zap_log_level;
    struct str zap_stacktrace_level;
    struct str zap_time_encoding;
    struct str missing_limit;
    usec_t finished_ttl;
    usec_t skew_tolerance;
    bool trust_approval;
    bool legacy_notready;
    bool legacy_double_count;
    bool grant_missing;
};

static const struct option controller_options[] = {
    { "config", OPTION_FILE, OPTION(struct controller_flags, config), "FILE", "", NULL,
      "profiles and their plugins; read again when it changes (config/maintenance.yaml)" },
    { "metrics-addr", OPTION_TEXT, OPTION(struct controller_flags, metrics_addr), "ADDRESS",
      ":8080", NULL, "where metrics, dashboard and JSON are served; 0 disables it" },
    { "health-addr", OPTION_TEXT, OPTION(struct controller_flags, health_addr), "ADDRESS", ":8081",
      NULL, "where /healthz and /readyz are served; 0 disables it" },
    { "pprof-addr", OPTION_TEXT, OPTION(struct controller_flags, pprof_addr), "ADDRESS", "", NULL,
      "accepted and ignored: there is no Go runtime to profile" },
    { "metrics-timeout", OPTION_DURATION, OPTION(struct controller_flags, metrics_timeout),
      "DURATION", "65s", NULL, "how long to wait for one last scrape after SIGTERM" },
    { "enable-leader-election", OPTION_BOOL, OPTION(struct controller_flags, elect), NULL, "false",
      NULL, "act only while holding the Lease; needed with more than one replica" },
    { "enable-esx-maintenance", OPTION_BOOL, OPTION(struct controller_flags, esx), NULL, "false",
      NULL, "refused: not part of this version" },
    { "enable-kubernikus-maintenance", OPTION_BOOL, OPTION(struct controller_flags, kubernikus),
      NULL, "false", NULL, "refused: not part of this version" },
    { "kubecontext", OPTION_TEXT, OPTION(struct controller_flags, kubecontext), "NAME", "", NULL,
      "context of the kubeconfig; otherwise KUBECONTEXT, then the file's own choice" },
    { "kubeconfig", OPTION_FILE, OPTION(struct controller_flags, kubeconfig), "FILE", "", NULL,
      "how to reach the cluster; otherwise KUBECONFIG, the service account, ~/.kube/config" },
    { "lease-namespace", OPTION_TEXT, OPTION(struct controller_flags, lease_namespace), "NAME", "",
      NULL, "where the leader's Lease is; in a pod, its own namespace" },
    { "leader-port", OPTION_U32, OPTION(struct controller_flags, leader_port), "PORT", "0", NULL,
      "where the leader serves what other replicas show; 0 means the same port as here" },
    { "install-crds", OPTION_BOOL, OPTION(struct controller_flags, install_crds), NULL, "false",
      NULL, "create the CRDs of requests and limits, or bring them up to date" },
    { "log-format", OPTION_CHOICE, OPTION(struct controller_flags, log_format), "FORMAT", "",
      "text|json", "how log lines look; wins over --zap-encoder" },
    { "zap-devel", OPTION_BOOL, OPTION(struct controller_flags, zap_devel), NULL, "true", NULL,
      "text and debug level unless told otherwise; false: JSON and info" },
    { "zap-encoder", OPTION_CHOICE, OPTION(struct controller_flags, zap_encoder), "ENCODER", "",
      "json|console", "how log lines look" },
    { "zap-log-level", OPTION_TEXT, OPTION(struct controller_flags, zap_log_level), "LEVEL", "",
      NULL, "debug, info, error, panic, or a number: the larger the more" },
    { "zap-stacktrace-level", OPTION_CHOICE, OPTION(struct controller_flags, zap_stacktrace_level),
      "LEVEL", "", "info|error|panic", "accepted and ignored: log lines carry no stack traces" },
    { "zap-time-encoding", OPTION_CHOICE, OPTION(struct controller_flags, zap_time_encoding),
      "ENCODING", "", "epoch|millis|nanos|iso8601|rfc3339|rfc3339nano",
      "accepted and ignored: times are RFC 3339 with microseconds" },
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
};

/* One running controller and what it stands on, in the order of its making. */
struct app {
    const struct controller_flags *flags;
    struct arena *memory; /* borrowed: the call's */
    struct log log;
    struct metrics metrics;
    struct loop *loop;
    struct cluster_access access;
    struct api *api;
    struct wire *wire;
    struct str space;        /* of the Lease */
    struct client installer; /* its gate is its own: the rest does not wait for CRDs */
    struct install *install;
    struct controller *controller;
    struct parts parts;
    struct settings settings;
    struct source source;
    struct relay *relay;
    struct wire *relay_wire;
    struct web *web;
    struct http_server *web_server;
    struct http_server *health_server;
    struct loop_timer scrape; /* after SIGTERM: looks for the last one */
    usec_t serve_until;
    uint64_t scrapes; /* when SIGTERM came */
    struct metric_series *cpu;
    struct metric_series *rss;
    struct metric_series *turn_max;
    bool ending;
    int code;
};

/* ── log ───────────────────────────────────────────────────────────────────────────────────── */

static void app_write_log(void *ctx, struct str line)
{
    (void)ctx;
    size_t done = 0;
    while (done < line.n) {
        ssize_t n = write(STDERR_FILENO, line.p + done, line.n - done);
        if (n <= 0) {
            return; /* nobody reads; there is nobody to tell */
        }
        done += (size_t)n;
    }
}

static usec_t app_wall(void *ctx)
{
    return loop_wall(ctx);
}

static int app_log_level(const struct controller_flags *flags, enum log_level *ret, struct err *err)
{
    struct str level = flags->zap_log_level;
    uint32_t number;
    if (level.n == 0) {
        *ret = flags->zap_devel ? LOG_DEBUG : LOG_INFO;
    } else if (str_eq(level, STR("debug")) || (str_to_u32(level, &number) && number > 0)) {
        *ret = LOG_DEBUG;
    } else if (str_eq(level, STR("info"))) {
        *ret = LOG_INFO;
    } else if (str_eq(level, STR("error")) || str_eq(level, STR("panic"))) {
        *ret = LOG_ERROR;
    } else {
        return err_set(err, ERR_INVALID,
                       "--zap-log-level '" STR_FMT "': want debug, info, error, panic or a number "
                       "from 1",
                       STR_ARG(level));
    }
    return 0;
}

static int app_init_log(struct app *app, struct err *err)
{
    const struct controller_flags *flags = app->flags;
    bool json = flags->log_format.n > 0    ? str_eq(flags->log_format, STR("json"))
                : flags->zap_encoder.n > 0 ? str_eq(flags->zap_encoder, STR("json"))
                                           : !flags->zap_devel;
    app->log = (struct log){
        .write = app_write_log,
        .wall = app_wall,
        .wall_ctx = app->loop,
        .format = json ? LOG_JSON : LOG_TEXT,
        .name = STR("controllers.maintenance"),
    };
    return app_log_level(flags, &app->log.level, err);
}

/* ── who and where ─────────────────────────────────────────────────────────────────────────── */

static struct str app_identity(struct app *app)
{
    char host[HOSTNAME_BYTES_MAX] = { 0 };
    if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') {
        (void)snprintf(host, sizeof(host), "unknown");
    }
    uint64_t high = (loop_random(app->loop) & ~0xf000ULL) | 0x4000ULL;
    uint64_t low = (loop_random(app->loop) >> 2) | (1ULL << 63);
    return arena_printf(app->memory, "%s_%08x-%04x-%04x-%04x-%012llx", host, (unsigned)(high >> 32),
                        (unsigned)(high >> 16) & 0xffff, (unsigned)high & 0xffff,
                        (unsigned)(low >> 48), (unsigned long long)(low & 0xffffffffffffULL));
}

static int app_find_namespace(struct app *app, struct str *ret, struct err *err)
{
    struct str text;
    if (app->flags->lease_namespace.n > 0) {
        *ret = app->flags->lease_namespace;
        return 0;
    }
    if (file_read(NAMESPACE_FILE, CREDENTIAL_FILE_BYTES_MAX, app->memory, &text, err) < 0) {
        return err_wrap(err, "leader election: not in a pod, so --lease-namespace is needed");
    }
    *ret = str_trim(text);
    return ret->n > 0 ? 0
                      : err_set(err, ERR_INVALID, "leader election: " STR_FMT " is empty",
                                STR_ARG(NAMESPACE_FILE));
}

/* "https://10.0.0.1:6443/path" → "10.0.0.1:6443" */
static struct str app_server_host(struct str server)
{
    struct str host;
    struct str rest;
    if (!str_cut(server, STR("://"), &rest, &host)) {
        host = server;
    }
    (void)str_cut(host, STR("/"), &host, &rest); /* without a path it is the host already */
    return host;
}

/* ── metrics of the process ────────────────────────────────────────────────────────────────── */

static void app_collect(void *ctx)
{
    struct app *app = ctx;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        double seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
        metric_add(app->cpu, MAX(0.0, seconds - app->cpu->value));
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    struct str text;
    struct str size;
    struct str resident;
    uint64_t pages = 0;
    if (file_read(STR("/proc/self/statm"), 4096, &tmp, &text, &ignored) == 0 &&
        str_cut(text, STR(" "), &size, &resident)) {
        (void)str_cut(resident, STR(" "), &resident, &size); /* the rest is of no interest */
        if (str_to_u64(resident, &pages)) {
            metric_set(app->rss, (double)pages * (double)sysconf(_SC_PAGESIZE));
        }
    }
    metric_set(app->turn_max, (double)host_loop_stats(app->loop).turn_max / 1e6);
    host_loop_stats_reset(app->loop);
}

static void app_init_metrics(struct app *app)
{
    static const struct metric_spec cpu = {
        .name = "process_cpu_seconds_total",
        .help = "Total user and system CPU time spent in seconds.",
        .kind = METRIC_COUNTER,
    };
    static const struct metric_spec rss = {
        .name = "process_resident_memory_bytes",
        .help = "Resident memory size in bytes.",
        .kind = METRIC_GAUGE,
    };
    static const struct metric_spec start = {
        .name = "process_start_time_seconds",
        .help = "Start time of the process since unix epoch in seconds.",
        .kind = METRIC_GAUGE,
    };
    static const struct metric_spec turn_max = {
        .name = "drydock_turn_duration_seconds_max",
        .help = "The longest turn of the event loop since the last scrape.",
        .kind = METRIC_GAUGE,
    };
    metrics_init(&app->metrics);
    app->cpu = metric_series(metrics_family(&app->metrics, &cpu), NULL);
    app->rss = metric_series(metrics_family(&app->metrics, &rss), NULL);
    app->turn_max = metric_series(metrics_family(&app->metrics, &turn_max), NULL);
    metric_set(metric_series(metrics_family(&app->metrics, &start), NULL),
               (double)loop_wall(app->loop) / 1e6);
    metrics_on_collect(&app->metrics, app_collect, app);
}

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

static void app_leave(struct app *app, int code)
{
    app->code = code;
    host_loop_stop(app->loop);
}

static void app_on_web_stopped(void *ctx)
{
    app_leave(ctx, COMMAND_OK);
}

/* The lease is free by now; only the metrics' last values are still waited for. */
static void app_on_scrape_timer(void *ctx)
{
    struct app *app = ctx;
    usec_t now = loop_now(app->loop);
    bool scraped = app->web == NULL || web_scrapes(app->web) > app->scrapes;
    if (!scraped && now < app->serve_until) {
        log_debug(&app->log, "Awaiting an other metrics scrape");
        loop_timer_set(&app->scrape, MIN(now + SCRAPE_LOOK, app->serve_until));
    } else if (app->web_server != NULL) {
        http_server_stop(app->web_server, SERVE_GRACE, app_on_web_stopped, app);
    } else {
        app_leave(app, COMMAND_OK);
    }
}

static void app_on_stopped(void *ctx)
{
    struct app *app = ctx;
    loop_timer_set(&app->scrape, loop_now(app->loop));
}

static void app_on_signal(void *ctx, int signo)
{
    struct app *app = ctx;
    if (app->ending) {
        app_leave(app, COMMAND_FAILED); /* a second signal means now */
        return;
    }
    log_info(&app->log, "stopping", KV_TEXT("signal", signo == SIGTERM ? "SIGTERM" : "SIGINT"));
    app->ending = true;
    app->scrapes = app->web == NULL ? 0 : web_scrapes(app->web);
    app->serve_until = loop_now(app->loop) + app->flags->metrics_timeout;
    controller_stop(app->controller);
}

static void app_on_leading(void *ctx, bool leading)
{
    struct app *app = ctx;
    if (!leading && !app->ending) {
        app_leave(app, COMMAND_FAILED); /* as the original: its pod starts anew as a follower */
    }
}

static void app_on_node(void *ctx, const struct store_item *item, const void *before, bool gone)
{
    struct app *app = ctx;
    parts_on_node(&app->parts, item, before, gone);
}

static void app_on_acting(void *ctx)
{
    struct app *app = ctx;
    parts_on_acting(&app->parts);
}

static void app_done(struct app *app)
{
    install_free(app->install);
    http_server_free(app->web_server);
    http_server_free(app->health_server);
    web_free(app->web);
    relay_free(app->relay);
    host_wire_free(app->relay_wire);
    source_done(&app->source);
    loop_timer_done(&app->scrape);
    settings_stop(&app->settings);
    parts_done(&app->parts);
    controller_free(app->controller);
    host_wire_free(app->wire);
    transport_free(app->api);
    if (app->cpu != NULL) {
        metrics_done(&app->metrics);
    }
    host_loop_free(app->loop);
}

/* ── CRDs ──────────────────────────────────────────────────────────────────────────────────── */

static void app_on_crd_written(void *ctx, struct str name, bool created)
{
    struct app *app = ctx;
    log_info(&app->log, created ? "CRD created" : "CRD updated", KV_STR("name", name));
}

/* Whoever watches these kinds looks again by itself, so nobody waits for this. */
static void app_on_installed(void *ctx, const struct err *err)
{
    struct app *app = ctx;
    if (err == NULL) {
        log_info(&app->log, "CRDs are installed");
        return;
    }
    log_error(&app->log, "--install-crds was refused; 'drydock crds' prints them for kubectl apply",
              KV_ERR(err));
    app_leave(app, COMMAND_FAILED);
}

static void app_install(struct app *app)
{
    client_init(&app->installer, app->loop, app->api);
    app->install = install_new(&(struct install_config){
        .client = &app->installer,
        .on_done = app_on_installed,
        .on_written = app_on_crd_written,
        .ctx = app,
    });
}

/* ── the beginning ─────────────────────────────────────────────────────────────────────────── */

static int app_refuse(const struct controller_flags *flags, struct err *err)
{
    if (flags->esx || flags->kubernikus) {
        return err_set(err, ERR_INVALID, "%s: this version has no such part",
                       flags->esx ? "--enable-esx-maintenance" : "--enable-kubernikus-maintenance");
    }
    return 0;
}

static const char *app_env(void *ctx, const char *name)
{
    (void)ctx; /* there is one environment */
    return getenv(name);
}

static int app_reach(struct app *app, struct err *err)
{
    struct str context = app->flags->kubecontext;
    if (context.n == 0) {
        context = str_from(getenv("KUBECONTEXT"));
    }
    const struct kubeconfig_source source = {
        .path = app->flags->kubeconfig,
        .context = context,
    };
    int r = kubeconfig_load(&source, app->memory, &app->access, err);
    if (r < 0) {
        return r;
    }
    app->wire = host_wire_new(app->loop, &(struct host_wire_config){
                                             .env = app_env,
                                             .ca_file = str_from(getenv("SSL_CERT_FILE")),
                                         });
    app->api = transport_new(app->loop, &app->access, err);
    return app->api == NULL ? -(int)err->code : 0;
}

static bool address_is_off(struct str address)
{
    return address.n == 0 || str_eq(address, STR("0"));
}

/* A wire of its own: pods are reached without a proxy, and no slow mail server holds them up. */
static void app_relay(struct app *app)
{
    uint32_t port = app->flags->leader_port;
    app->relay_wire =
        host_wire_new(app->loop, &(struct host_wire_config){ .calls_max = RELAY_CALLS_MAX,
                                                             .connect_max = RELAY_BUDGET });
    app->relay =
        relay_new(app->loop, &(struct relay_config){
                                 .api = app->api,
                                 .wire = app->relay_wire,
                                 .lease_namespace = app->space,
                                 .lease_name = CONTROLLER_LEASE_NAME,
                                 .port = port != 0 ? port : http_server_port(app->web_server),
                             });
    web_set_relay(app->web, app->relay);
}

static int app_serve(struct app *app, struct err *err)
{
    if (!address_is_off(app->flags->metrics_addr)) {
        const struct http_config config = { .listen = app->flags->metrics_addr, .gzip = true };
        app->web = web_new(app->loop, &app->source.web, &app->metrics);
        app->web_server = http_server_new(app->loop, &config, web_handle, app->web, err);
        if (app->web_server == NULL) {
            return err_wrap(err, "--metrics-addr");
        }
        if (app->flags->elect) {
            app_relay(app);
        }
        log_info(&app->log, "serving metrics and dashboard",
                 KV_I64("port", http_server_port(app->web_server)));
    }
    if (!address_is_off(app->flags->health_addr)) {
        const struct http_config config = { .listen = app->flags->health_addr };
        app->health_server =
            http_server_new(app->loop, &config, health_handle, &app->source.health, err);
        if (app->health_server == NULL) {
            return err_wrap(err, "--health-addr");
        }
        log_info(&app->log, "serving probes", KV_I64("port", http_server_port(app->health_server)));
    }
    return 0;
}

/* "unlimited", "deny", or a percentage. */
static int app_read_missing(struct str text, struct arbiter_config *ret, struct err *err)
{
    struct str number = text;
    (void)str_cut_suffix(text, STR("%"), &number); /* may be left out */
    if (str_eq(text, STR("unlimited"))) {
        ret->missing = MISSING_UNLIMITED;
    } else if (str_eq(text, STR("deny"))) {
        ret->missing = MISSING_DENY;
    } else if (str_to_u32(number, &ret->missing_percent) && ret->missing_percent <= 100) {
        ret->missing = MISSING_PERCENT;
    } else {
        return err_set(err, ERR_INVALID,
                       "--missing-limit '" STR_FMT "': want unlimited, deny, or a percentage from "
                       "0 to 100",
                       STR_ARG(text));
    }
    return 0;
}

static int app_start_parts(struct app *app, struct err *err)
{
    const struct controller_flags *flags = app->flags;
    struct err ignored = { 0 };
    struct str space;
    struct parts_config config = {
        .loop = app->loop,
        .controller = app->controller,
        .log = &app->log,
        .metrics = &app->metrics,
        .limits = { .legacy_notready = flags->legacy_notready,
                    .legacy_double_count = flags->legacy_double_count,
                    .grant_missing = flags->grant_missing },
        .finished_ttl = flags->finished_ttl,
        .skew_tolerance = flags->skew_tolerance,
        .trust_approval = flags->trust_approval,
    };
    int r = app_read_missing(flags->missing_limit, &config.limits, err);
    if (r < 0) {
        return r;
    }
    bool known = app_find_namespace(app, &space, &ignored) == 0;
    config.space = known ? space : STR("default");
    parts_init(&app->parts, &config);
    return 0;
}

static int app_start(struct app *app, struct err *err)
{
    struct str space = STR_NONE;
    int r = app_refuse(app->flags, err);
    r = r < 0 ? r : app_init_log(app, err);
    r = r < 0 ? r : app_reach(app, err);
    if (r == 0 && app->flags->elect) {
        r = app_find_namespace(app, &space, err);
    }
    if (r < 0) {
        return r;
    }
    app->space = space;
    app_init_metrics(app);
    struct str identity = app_identity(app);
    log_info(&app->log, "starting", KV_TEXT("version", DRYDOCK_VERSION),
             KV_STR("server", app->access.server), KV_STR("identity", identity),
             KV_BOOL("election", app->flags->elect));
    if (app->flags->install_crds) {
        app_install(app);
    }
    struct str file = app->flags->config.n > 0 ? app->flags->config : SETTINGS_PATH;
    bool optional = app->flags->config.n == 0 && !settings_exist(file);
    app->controller = controller_new(app->loop, app->api, &app->log, &app->metrics,
                                     &(struct controller_config){
                                         .wire = app->wire,
                                         .wait_for_setup = !optional,
                                         .identity = identity,
                                         .lease_namespace = space,
                                         .server = app_server_host(app->access.server),
                                         .elect = app->flags->elect,
                                         .on_leading = app_on_leading,
                                         .wait_for_limits = true,
                                         .keep = parts_annotations,
                                         .keep_n = PARTS_ANNOTATIONS,
                                         .on_node = app_on_node,
                                         .on_acting = app_on_acting,
                                         .on_stopped = app_on_stopped,
                                         .ctx = app,
                                     });
    source_init(&app->source, app->controller);
    app->source.arbiter = &app->parts.arbiter;
    app->source.requests = &app->parts.requests;
    app->source.identity = identity;
    app->source.title = app->access.name.n > 0 ? app->access.name : app->access.server;
    app->settings = (struct settings){
        .controller = app->controller,
        .log = &app->log,
        .path = file,
        .optional = optional,
    };
    r = settings_start(&app->settings, app->loop, err);
    r = r < 0 ? r : app_start_parts(app, err);
    return r < 0 ? r : app_serve(app, err);
}

static int controller_run(const struct command_call *call)
{
    struct err err = { 0 };
    struct app app = { .flags = call->config, .memory = call->memory, .loop = host_loop_new() };
    loop_timer_init(&app.scrape, app.loop, app_on_scrape_timer, &app);
    int code = COMMAND_FAILED;
    if (app_start(&app, &err) < 0) {
        (void)command_fail(call, &err); /* answers COMMAND_FAILED, as it is */
    } else {
        host_loop_on_signal(app.loop, SIGTERM, app_on_signal, &app);
        host_loop_on_signal(app.loop, SIGINT, app_on_signal, &app);
        host_loop_run(app.loop);
        code = app.code;
        if (code == COMMAND_OK) {
            log_info(&app.log, "Received SIGTERM or SIGINT. See you later.");
        }
    }
    app_done(&app);
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
