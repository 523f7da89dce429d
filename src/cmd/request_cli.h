/*
 * request_cli: what the commands about MaintenanceRequests share: flags, exit codes and messages.
 *
 * These commands do what any actor does, with the same code (client/actor.h). Results go to stdout,
 * what happens meanwhile to stderr.
 */
#pragma once

#include "client/actor.h"
#include "client/client_session.h"
#include "cmd/api_trace.h"
#include "cmd/command.h"

/* Beside those of command.h; scripts rely on them. */
enum request_cli_exit {
    REQUEST_CLI_TIMED_OUT = 3, /* --timeout has passed */
    REQUEST_CLI_REFUSED = 4,   /* the request's state does not allow it, or it was closed */
};

struct request_cli_flags {
    struct str kubeconfig;
    struct str kubecontext;
    struct str client;
    struct str type;
    struct str ns;
    struct str output;
    usec_t time_max; /* 0 = none */
    uint32_t verbosity;
};

/* Rows for the option table of a command whose flags have a struct request_cli_flags `cli`. */
/* clang-format off */
#define REQUEST_CLI_CLUSTER_OPTIONS(T)                                                             \
    { "kubeconfig", OPTION_FILE, OPTION(T, cli.kubeconfig), "FILE", "", NULL,                      \
      "how to reach the cluster; otherwise KUBECONFIG, the service account, ~/.kube/config" },     \
    { "context", OPTION_TEXT, OPTION(T, cli.kubecontext), "NAME", "", NULL,                        \
      "context of the kubeconfig; otherwise KUBECONTEXT, then the file's own choice",              \
      .also = "kubecontext" },                                                                     \
    { "v", OPTION_U32, OPTION(T, cli.verbosity), "N", "0", NULL,                                   \
      "from 1 on every request to the cluster is told, with its answer" }

#define REQUEST_CLI_TARGET_OPTIONS(T)                                                              \
    { "type", OPTION_CHOICE, OPTION(T, cli.type), "TYPE", "node",                                  \
      "node|deployment|daemonset|statefulset", "what is to be disturbed" },                        \
    { "n", OPTION_TEXT, OPTION(T, cli.ns), "NAME", "", NULL,                                       \
      "of the target; needed for all types but node", .also = "namespace" },                       \
    { "client", OPTION_TEXT, OPTION(T, cli.client), "NAME", "drydock", NULL,                       \
      "who asks; each client has one request a target" }

#define REQUEST_CLI_OUTPUT_OPTION(T)                                                               \
    { "o", OPTION_CHOICE, OPTION(T, cli.output), "FORM", "text", "text|name|json|yaml",            \
      "a line, the name alone, or the request itself", .also = "output" }
/* clang-format on */

struct request_cli {
    const struct command_call *call;
    const struct request_cli_flags *flags;
    struct client_session session;
    struct api_trace trace;
    struct actor actor;
    struct arena memory;
};

/* Checks the flags and opens the cluster; answers COMMAND_OK, or the exit code after a complaint.
 * request_cli_close in any case. */
int request_cli_open(struct request_cli *a, const struct command_call *call,
                     const struct request_cli_flags *flags);
void request_cli_close(struct request_cli *a);

/* Complains; answers the exit code that fits. */
int request_cli_fail(const struct request_cli *a, const struct err *err);
/* "drydock run: text", in lines of 80 columns, to stderr. */
void request_cli_note(const struct request_cli *a, struct str text);

struct request_target request_cli_target(const struct request_cli *a, struct str name);
/* When --timeout is over, from now. */
usec_t request_cli_deadline(const struct request_cli *a);

/* The live request that an argument means: its own name, or its target's when that is enough to
 * tell; then the client's own comes first. */
NODISCARD
int request_cli_resolve(struct request_cli *a, struct str argument, struct maintenance_request *ret,
                        struct err *err);

/* "maintenancerequest.repairman.k8s.io/NAME verb", or the object as it is now. */
int request_cli_print(struct request_cli *a, struct str name, const char *verb);
