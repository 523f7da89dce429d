#include "cmd/daemon.h"

#include "host/expiry.h"
#include "host/file.h"
#include "host/kubeconfig.h"
#include "host/loop.h"
#include "host/outbound.h"
#include "host/transport.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define NAMESPACE_FILE STR("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
#define SERVE_GRACE SECONDS(5)               /* for answers under way when the servers end */
#define DAEMON_BODY_BYTES_MAX ((size_t)4096) /* nobody reads the body of a request to us */
#define DAEMON_HEALTH_BYTES_MAX ((size_t)2 * 1024 * 1024) /* its answers are a few words */
#define DAEMON_AUDIENCES_MAX 8u /* names for one server; more are a mistake */
#define HOSTNAME_BYTES_MAX 256u /* POSIX allows 255 */

void daemon_init(struct daemon *p, const struct daemon_flags *flags, struct arena *memory)
{
    *p = (struct daemon){
        .flags = flags,
        .memory = memory,
        .loop = host_loop_new(),
        .code = COMMAND_FAILED,
    };
}

/* ── log ───────────────────────────────────────────────────────────────────────────────────── */

static void daemon_write_log(void *ctx, struct str line)
{
    (void)ctx;
    size_t done = 0;
    while (done < line.n) {
        ssize_t n = write(STDERR_FILENO, line.p + done, line.n - done);
        if (n <= 0) {
            return; /* stderr is closed, so this cannot be reported either */
        }
        done += (size_t)n;
    }
}

static usec_t daemon_wall(void *ctx)
{
    return loop_wall(ctx);
}

int daemon_log_level(const struct daemon_flags *flags, enum log_level *ret, struct err *err)
{
    struct str level = flags->zap_log_level;
    uint32_t number;
    if (flags->verbosity > 0) {
        *ret = LOG_DEBUG;
    } else if (level.n == 0) {
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

static int daemon_init_log(struct daemon *p, struct str name, struct err *err)
{
    const struct daemon_flags *flags = p->flags;
    bool json = flags->log_format.n > 0    ? str_eq(flags->log_format, STR("json"))
                : flags->zap_encoder.n > 0 ? str_eq(flags->zap_encoder, STR("json"))
                                           : !flags->zap_devel;
    p->log = (struct log){
        .write = daemon_write_log,
        .wall = daemon_wall,
        .wall_ctx = p->loop,
        .format = json ? LOG_JSON : LOG_TEXT,
        .name = name,
    };
    return daemon_log_level(flags, &p->log.level, err);
}

/* ── who and where ─────────────────────────────────────────────────────────────────────────── */

static struct str daemon_hostname(struct daemon *p)
{
    char host[HOSTNAME_BYTES_MAX] = { 0 };
    if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') {
        (void)snprintf(host, sizeof(host), "unknown");
    }
    return arena_str(p->memory, str_from(host));
}

static struct str daemon_identity(struct daemon *p)
{
    uint64_t high = (loop_random(p->loop) & ~0xf000ULL) | 0x4000ULL;
    uint64_t low = (loop_random(p->loop) >> 2) | (1ULL << 63);
    return arena_printf(p->memory, STR_FMT "_%08x-%04x-%04x-%04x-%012llx",
                        STR_ARG(daemon_hostname(p)), (unsigned)(high >> 32),
                        (unsigned)(high >> 16) & 0xffff, (unsigned)high & 0xffff,
                        (unsigned)(low >> 48), (unsigned long long)(low & 0xffffffffffffULL));
}

int daemon_find_namespace(struct daemon *p, struct str *ret, struct err *err)
{
    struct str text;
    if (p->flags->lease_namespace.n > 0) {
        *ret = p->flags->lease_namespace;
        return 0;
    }
    if (file_read(NAMESPACE_FILE, CREDENTIAL_FILE_BYTES_MAX, p->memory, &text, err) < 0) {
        return err_wrap(err, "leader election: not in a pod, so --lease-namespace is needed");
    }
    *ret = str_trim(text);
    return ret->n > 0 ? 0
                      : err_set(err, ERR_INVALID, "leader election: " STR_FMT " is empty",
                                STR_ARG(NAMESPACE_FILE));
}

static int daemon_open_cluster(struct daemon *p, struct err *err)
{
    const struct kubeconfig_source source = {
        .path = p->flags->kubeconfig,
        .context = command_kubecontext(p->flags->kubecontext),
    };
    int r = kubeconfig_load(&source, p->memory, &p->access, err);
    if (r < 0) {
        return r;
    }
    p->api = transport_new(p->loop, &p->access, err);
    return p->api == NULL ? -(int)err->code : 0;
}

/* ── metrics ───────────────────────────────────────────────────────────────────────────────── */

static void daemon_collect(void *ctx)
{
    struct daemon *p = ctx;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        double seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
        metric_add(p->cpu, MAX(0.0, seconds - p->cpu->value));
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
            metric_set(p->rss, (double)pages * (double)sysconf(_SC_PAGESIZE));
        }
    }
    metric_set(p->turn_max, (double)host_loop_stats(p->loop).turn_max / 1e6);
    host_loop_stats_reset(p->loop);
    struct expiry expiry = expiry_of_access(&p->access);
    metric_set(p->token_expiry, (double)expiry.token / 1e6);
    metric_set(p->certificate_expiry, (double)expiry.certificate / 1e6);
}

static void daemon_init_metrics(struct daemon *p)
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
    static const struct metric_spec expiry = {
        .name = "drydock_credentials_expire_timestamp_seconds",
        .help = "When the credentials for the cluster end; 0 if there are none or they do not say.",
        .kind = METRIC_GAUGE,
        .labels = { "kind" },
    };
    metrics_init(&p->metrics);
    p->cpu = metric_series(metrics_family(&p->metrics, &cpu), NULL);
    p->rss = metric_series(metrics_family(&p->metrics, &rss), NULL);
    p->turn_max = metric_series(metrics_family(&p->metrics, &turn_max), NULL);
    struct metric *ends = metrics_family(&p->metrics, &expiry);
    p->token_expiry = metric_series(ends, (const struct str[]){ STR("token") });
    p->certificate_expiry = metric_series(ends, (const struct str[]){ STR("certificate") });
    metric_set(metric_series(metrics_family(&p->metrics, &start), NULL),
               (double)loop_wall(p->loop) / 1e6);
    metrics_on_collect(&p->metrics, daemon_collect, p);
}

/* Every watch has a connection, and a bridge has a watch for each of thousands of clusters. The
 * soft limit of open files is often 1024, for the sake of programs that use select. */
static void daemon_raise_file_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* the old limit stays then */
    }
}

void daemon_hide_memory(void)
{
    const struct rlimit none = { 0 };
    int r = setrlimit(RLIMIT_CORE, &none); /* also for children, such as credential plugins */
    ASSERT(r == 0);
    r = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    ASSERT(r == 0);
}

int daemon_connect_cluster(struct daemon *p, struct str name, bool elect, struct err *err)
{
    struct str namespace = STR_NONE;
    if (!p->flags->allow_core_dumps) {
        daemon_hide_memory();
    }
    daemon_raise_file_limit();
    int r = daemon_init_log(p, name, err);
    r = r < 0 ? r : daemon_open_cluster(p, err);
    if (r == 0 && elect) {
        r = daemon_find_namespace(p, &namespace, err);
    }
    if (r < 0) {
        return r;
    }
    p->namespace = namespace;
    daemon_init_metrics(p);
    p->identity = daemon_identity(p);
    log_info(&p->log, "starting", KV_TEXT("version", DRYDOCK_VERSION),
             KV_STR("server", p->access.server), KV_STR("identity", p->identity),
             KV_BOOL("election", elect));
    return 0;
}

/* ── who asks ──────────────────────────────────────────────────────────────────────────────── */

static bool address_is_off(struct str address)
{
    return address.n == 0 || str_eq(address, STR("0"));
}

bool daemon_serves_web(const struct daemon *p)
{
    return !address_is_off(p->flags->metrics_addr);
}

static void daemon_handle_web(void *ctx, struct inbound_exchange *x,
                              const struct inbound_request *req)
{
    const struct daemon *p = ctx;
    if (!allowed_hosts_check(&p->hosts, x, req)) {
        return;
    }
    if (p->auth != NULL) {
        request_auth_handle(p->auth, x, req);
    } else {
        p->web_handler(p->web_ctx, x, req);
    }
}

static int daemon_read_allowed_hosts(struct daemon *p, struct err *err)
{
    struct err ignored = { 0 };
    struct str namespace;
    if (file_read(NAMESPACE_FILE, CREDENTIAL_FILE_BYTES_MAX, p->memory, &namespace, &ignored) ==
        0) { /* otherwise this is no pod */
        p->hosts.namespace = str_trim(namespace);
    }
    p->hosts.machine = daemon_hostname(p);
    return allowed_hosts_parse(p->flags->allowed_hosts, p->memory, &p->hosts, err);
}

bool daemon_serves_tls(const struct daemon *p)
{
    return p->flags->tls_cert_file.n > 0;
}

static void daemon_pin_leader(struct daemon *p)
{
    if (p->leader != NULL) {
        host_outbound_pin(p->leader, p->leaf.key_sha256,
                          p->leaf_before.not_after != 0 ? p->leaf_before.key_sha256
                                                        : p->leaf.key_sha256);
    }
}

void daemon_set_leader_outbound(struct daemon *p, struct outbound *outbound)
{
    p->leader = daemon_serves_tls(p) ? outbound : NULL;
    daemon_pin_leader(p);
}

static void daemon_on_certificate(void *ctx, const struct tls_server_leaf *leaf)
{
    struct daemon *p = ctx;
    p->leaf_before = p->leaf;
    p->leaf = *leaf;
    daemon_pin_leader(p);
}

static int daemon_read_audiences(struct daemon *p, struct err *err)
{
    struct str list = p->flags->auth_audiences;
    struct str piece;
    p->audiences = ARENA_ARRAY(p->memory, struct str, DAEMON_AUDIENCES_MAX);
    while (list.n > 0 && str_split_next(&list, ',', &piece)) {
        struct str name = str_trim(piece);
        if (name.n == 0 || p->audience_n == DAEMON_AUDIENCES_MAX) {
            return err_set(err, ERR_INVALID,
                           "--auth-token-audiences '" STR_FMT "': want up to %u names, by commas",
                           STR_ARG(p->flags->auth_audiences), DAEMON_AUDIENCES_MAX);
        }
        p->audiences[p->audience_n++] = name;
    }
    return 0;
}

/* TLS and who may read, as far as no server is needed for it. */
static int daemon_prepare_web(struct daemon *p, struct http_server_config *config, struct err *err)
{
    bool auth = str_eq(p->flags->auth, STR("cluster"));
    p->tls = (struct tls_files){ .cert = p->flags->tls_cert_file,
                                 .key = p->flags->tls_key_file,
                                 .client_ca = p->flags->tls_client_ca_file,
                                 .loop = p->loop,
                                 .log = &p->log,
                                 .metrics = &p->metrics,
                                 .on_use = daemon_on_certificate,
                                 .ctx = p };
    int r = tls_files_check(&p->tls, err);
    if (r == 0 && auth && !daemon_serves_tls(p)) {
        r = err_set(err, ERR_INVALID,
                    "--auth=cluster: want --tls-cert-file and --tls-private-key-file, so that "
                    "nobody reads the tokens on their way");
    }
    r = r < 0 ? r : daemon_read_allowed_hosts(p, err);
    r = r < 0 ? r : daemon_read_audiences(p, err);
    r = r < 0 ? r : tls_files_start(&p->tls, p->memory, config, err);
    if (r == 0 && auth) {
        p->auth = request_auth_new(&(struct request_auth_config){ .loop = p->loop,
                                                                  .api = p->api,
                                                                  .log = &p->log,
                                                                  .metrics = &p->metrics,
                                                                  .audiences = p->audiences,
                                                                  .audience_n = p->audience_n,
                                                                  .handler = p->web_handler,
                                                                  .ctx = p->web_ctx });
    }
    return r;
}

int daemon_serve_web(struct daemon *p, inbound_handler handler, void *ctx, const char *what,
                     struct err *err)
{
    if (!daemon_serves_web(p)) {
        return 0;
    }
    p->web_handler = handler;
    p->web_ctx = ctx;
    struct http_server_config config = { .listen = p->flags->metrics_addr,
                                         .body_bytes_max = DAEMON_BODY_BYTES_MAX,
                                         .gzip = true };
    int r = daemon_prepare_web(p, &config, err);
    if (r < 0) {
        return r;
    }
    p->web_server = http_server_new(p->loop, &config, daemon_handle_web, p, err);
    if (p->web_server == NULL) {
        return err_wrap(err, "--metrics-addr");
    }
    tls_files_serve(&p->tls, p->web_server);
    log_info(&p->log, what, KV_I64("port", http_server_port(p->web_server)),
             KV_BOOL("tls", daemon_serves_tls(p)), KV_STR("auth", p->flags->auth));
    if (p->auth == NULL) {
        log_info(&p->log,
                 "whoever reaches this port reads all that it serves; --auth=cluster asks for a "
                 "token");
    }
    return 0;
}

int daemon_serve_health(struct daemon *p, struct health *health, struct err *err)
{
    if (address_is_off(p->flags->health_addr)) {
        return 0;
    }
    const struct http_server_config config = { .listen = p->flags->health_addr,
                                               .body_bytes_max = DAEMON_BODY_BYTES_MAX,
                                               .held_bytes_max = DAEMON_HEALTH_BYTES_MAX };
    p->health_server = http_server_new(p->loop, &config, health_handle, health, err);
    if (p->health_server == NULL) {
        return err_wrap(err, "--health-addr");
    }
    log_info(&p->log, "serving probes", KV_I64("port", http_server_port(p->health_server)));
    return 0;
}

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

static void daemon_on_signal(void *ctx, int signo)
{
    struct daemon *p = ctx;
    if (p->ending) {
        daemon_quit(p, COMMAND_FAILED); /* a second signal means now */
        return;
    }
    log_info(&p->log, "stopping", KV_TEXT("signal", signo == SIGTERM ? "SIGTERM" : "SIGINT"));
    p->ending = true;
    p->typed = signo == SIGINT && isatty(STDIN_FILENO) == 1;
    p->on_end(p->ctx);
}

int daemon_run(struct daemon *p, void (*on_end)(void *ctx), void *ctx)
{
    p->on_end = on_end;
    p->ctx = ctx;
    host_loop_on_signal(p->loop, SIGTERM, daemon_on_signal, p);
    host_loop_on_signal(p->loop, SIGINT, daemon_on_signal, p);
    host_loop_run(p->loop);
    if (p->code == COMMAND_OK) {
        log_info(&p->log, "Received SIGTERM or SIGINT. See you later.");
    }
    return p->code;
}

void daemon_quit(struct daemon *p, int code)
{
    p->code = code;
    host_loop_stop(p->loop);
}

static void daemon_on_web_stopped(void *ctx)
{
    daemon_quit(ctx, COMMAND_OK);
}

void daemon_quit_when_idle(struct daemon *p)
{
    if (p->web_server != NULL) {
        http_server_stop(p->web_server, SERVE_GRACE, daemon_on_web_stopped, p);
    } else {
        daemon_quit(p, COMMAND_OK);
    }
}

void daemon_close_servers(struct daemon *p)
{
    tls_files_stop(&p->tls);
    http_server_free(p->web_server);
    http_server_free(p->health_server);
    p->web_server = NULL;
    p->health_server = NULL;
    request_auth_free(p->auth);
    p->auth = NULL;
}

void daemon_done(struct daemon *p)
{
    daemon_close_servers(p);
    transport_free(p->api);
    if (p->cpu != NULL) {
        metrics_done(&p->metrics);
    }
    host_loop_free(p->loop);
}

struct str daemon_server_host(struct str server)
{
    struct str host;
    struct str rest;
    if (!str_cut(server, STR("://"), &rest, &host)) {
        host = server;
    }
    (void)str_cut(host, STR("/"), &host, &rest); /* without a path it is the host already */
    return host;
}
