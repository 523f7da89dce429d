/*
 * daemon: what controller and bridge share as processes that run until a signal ends them.
 *
 * That is the log, the connection to the cluster, the identity in the Lease, metrics about the
 * process, the two HTTP servers and the shutdown. The order of calls: daemon_init,
 * daemon_connect_cluster, then the command makes its own parts, daemon_serve…, daemon_run. At the
 * end daemon_close_servers, so that no request reaches parts that are being freed, and daemon_done
 * after the command has freed its parts.
 */
#pragma once

#include "base/log.h"
#include "base/metric.h"
#include "cmd/command.h"
#include "host/cluster_access.h"
#include "host/http_server.h"
#include "port/api.h"
#include "cmd/tls_files.h"
#include "web/allowed_hosts.h"
#include "web/health.h"
#include "web/request_auth.h"

struct daemon_flags {
    struct str metrics_addr;
    struct str health_addr;
    struct str kubecontext;
    struct str kubeconfig;
    struct str lease_namespace;
    struct str allowed_hosts;
    struct str tls_cert_file;
    struct str tls_key_file;
    struct str tls_client_ca_file;
    struct str auth;
    struct str auth_audiences;
    bool allow_core_dumps;
    struct str log_format;
    bool zap_devel;
    struct str zap_encoder;
    struct str zap_log_level;
    struct str zap_stacktrace_level;
    struct str zap_time_encoding;
    uint32_t verbosity;
};

/* Rows for the option table of a command whose flags have a struct daemon_flags `daemon`. */
/* clang-format off */
#define DAEMON_SERVER_OPTIONS(type)                                                               \
    { "health-addr", OPTION_TEXT, OPTION(type, daemon.health_addr), "ADDRESS", ":8081", NULL,     \
      "where /healthz and /readyz are served; 0 disables it" },                                   \
    { "allowed-hosts", OPTION_TEXT, OPTION(type, daemon.allowed_hosts), "NAMES", "", NULL,        \
      "more names by which browsers may reach --metrics-addr, by commas; *: any" },               \
    { "tls-cert-file", OPTION_FILE, OPTION(type, daemon.tls_cert_file), "FILE", "", NULL,         \
      "certificate of --metrics-addr, then those above it; read again when it changes" },         \
    { "tls-private-key-file", OPTION_FILE, OPTION(type, daemon.tls_key_file), "FILE", "", NULL,   \
      "its key; without these two files --metrics-addr speaks plain HTTP" },                      \
    { "tls-client-ca-file", OPTION_FILE, OPTION(type, daemon.tls_client_ca_file), "FILE", "",     \
      NULL, "who is known by a certificate of this CA needs no token with --auth=cluster" },      \
    { "auth", OPTION_CHOICE, OPTION(type, daemon.auth), "WHO", "none", "none|cluster",            \
      "who may read --metrics-addr: everybody, or whom the cluster's RBAC lets get the path" },   \
    { "auth-token-audiences", OPTION_TEXT, OPTION(type, daemon.auth_audiences), "NAMES", "",      \
      NULL, "for whom tokens must be made, by commas; otherwise for the API server" }

#define DAEMON_CLUSTER_OPTIONS(type)                                                              \
    { "kubecontext", OPTION_TEXT, OPTION(type, daemon.kubecontext), "NAME", "", NULL,             \
      "context of the kubeconfig; otherwise KUBECONTEXT, then the file's own choice",              \
      .also = "context" },                                                                         \
    { "kubeconfig", OPTION_FILE, OPTION(type, daemon.kubeconfig), "FILE", "", NULL,               \
      "how to reach the cluster; otherwise KUBECONFIG, the service account, ~/.kube/config" },     \
    { "lease-namespace", OPTION_TEXT, OPTION(type, daemon.lease_namespace), "NAME", "", NULL,     \
      "where the leader's Lease is; in a pod, its own namespace", .also = "n" },                    \
    { "allow-core-dumps", OPTION_BOOL, OPTION(type, daemon.allow_core_dumps), NULL, "false", NULL, \
      "let debuggers and core files show the memory, and the keys in it" }

#define DAEMON_LOG_OPTIONS(type)                                                                  \
    { "log-format", OPTION_CHOICE, OPTION(type, daemon.log_format), "FORMAT", "", "text|json",    \
      "how log lines look; wins over --zap-encoder" },                                             \
    { "zap-devel", OPTION_BOOL, OPTION(type, daemon.zap_devel), NULL, "true", NULL,               \
      "text and debug level unless told otherwise; false: JSON and info" },                        \
    { "zap-encoder", OPTION_CHOICE, OPTION(type, daemon.zap_encoder), "ENCODER", "",              \
      "json|console", "how log lines look" },                                                      \
    { "zap-log-level", OPTION_TEXT, OPTION(type, daemon.zap_log_level), "LEVEL", "", NULL,        \
      "debug, info, error, panic, or a number: the larger the more" },                             \
    { "zap-stacktrace-level", OPTION_CHOICE, OPTION(type, daemon.zap_stacktrace_level), "LEVEL",  \
      "", "info|error|panic", "accepted and ignored: log lines carry no stack traces" },           \
    { "zap-time-encoding", OPTION_CHOICE, OPTION(type, daemon.zap_time_encoding), "ENCODING", "", \
      "epoch|millis|nanos|iso8601|rfc3339|rfc3339nano",                                            \
      "accepted and ignored: times are RFC 3339 with microseconds" },                              \
    { "v", OPTION_U32, OPTION(type, daemon.verbosity), "N", "0", NULL,                             \
      "from 1 on the level is debug, whatever --zap-log-level says" }
/* clang-format on */

struct daemon {
    const struct daemon_flags *flags; /* borrowed */
    struct arena *memory;             /* borrowed: the call's */
    struct loop *loop;
    struct log log;
    struct cluster_access access;
    struct api *api;
    struct metrics metrics;
    struct str namespace; /* of the Lease; empty without an election */
    struct str identity;  /* "<hostname>_<uuid>" */
    struct allowed_hosts hosts;
    inbound_handler web_handler;
    void *web_ctx;
    struct tls_files tls;
    struct request_auth *auth; /* NULL = everybody may read */
    struct str *audiences;
    uint32_t audience_n;
    struct outbound *leader;            /* borrowed: the door to other replicas; NULL = none */
    struct tls_server_leaf leaf;        /* the certificate in use */
    struct tls_server_leaf leaf_before; /* other replicas may still have it */
    struct http_server *web_server;
    struct http_server *health_server;
    struct metric_series *cpu;
    struct metric_series *rss;
    struct metric_series *turn_max;
    struct metric_series *token_expiry;
    struct metric_series *certificate_expiry;
    void (*on_end)(void *ctx);
    void *ctx;
    bool typed;  /* the signal came from a terminal: somebody waits for the end */
    bool ending; /* a signal has come */
    int code;
};

void daemon_init(struct daemon *p, const struct daemon_flags *flags, struct arena *memory);
/* Opens the log under `name` and the cluster; with `elect` also finds the Lease's namespace. */
NODISCARD
int daemon_connect_cluster(struct daemon *p, struct str name, bool elect, struct err *err);
/* The namespace of the flag, or in a pod the pod's own. */
NODISCARD
int daemon_find_namespace(struct daemon *p, struct str *ret, struct err *err);

/* Serve on the addresses of the flags, unless these are off. `what` is the text of the log. */
NODISCARD
int daemon_serve_web(struct daemon *p, inbound_handler handler, void *ctx, const char *what,
                     struct err *err);
NODISCARD
int daemon_serve_health(struct daemon *p, struct health *health, struct err *err);
bool daemon_serves_web(const struct daemon *p); /* --metrics-addr is not off */
bool daemon_serves_tls(const struct daemon *p); /* and it speaks TLS */
/* Through this door other replicas are asked, which are known by having the same key. */
void daemon_set_leader_outbound(struct daemon *p, struct outbound *outbound);

/* Runs until daemon_quit and answers its exit code. `on_end` is called at the first SIGTERM or
 * SIGINT; a second one ends at once. `typed` is true once somebody has pressed Ctrl-C. */
int daemon_run(struct daemon *p, void (*on_end)(void *ctx), void *ctx);
void daemon_quit(struct daemon *p, int code);
/* Lets answers under way end, then leaves with COMMAND_OK. */
void daemon_quit_when_idle(struct daemon *p);

void daemon_close_servers(struct daemon *p); /* open requests get no answer */
void daemon_done(struct daemon *p);

/* From now on the process leaves no core file, and nobody without CAP_SYS_PTRACE reads its memory:
 * tokens and keys are in it. */
void daemon_hide_memory(void);

/* What --zap-log-level and --zap-devel say. */
NODISCARD
int daemon_log_level(const struct daemon_flags *flags, enum log_level *ret, struct err *err);

/* "10.0.0.1:6443" of "https://10.0.0.1:6443/path": the label `host` of metrics. */
struct str daemon_server_host(struct str server);
