/*
 * request_cli: what the commands share that speak of MaintenanceRequests: flags, exit codes, words.
 *
 * They do what any actor does, with the same code (client/actor.h). Results go to stdout, what
 * happens meanwhile to stderr.
 */
#pragma once

#include "client/actor.h"
#include "client/client_session.h"
#include "cmd/command.h"

/* Beside those of command.h; scripts rely on them. */
enum asker_exit {
    ASKER_TIMED_OUT = 3, /* --timeout has passed */
    ASKER_REFUSED = 4,   /* the request's state does not allow it, or it was closed */
};

struct asker_flags {
    struct str kubeconfig;
    struct str kubecontext;
    struct str client;
    struct str type;
    struct str ns;
    struct str output;
    usec_t time_max; /* 0 = none */
};

#define ASKER_CLUSTER_OPTIONS(T)                                                                   \
    { "kubeconfig",                                                                                \
      OPTION_FILE,                                                                                 \
      OPTION(T, asker.kubeconfig),                                                                 \
      "FILE",                                                                                      \
      "",                                                                                          \
      NULL,                                                                                        \
      "how to reach the cluster; otherwise KUBECONFIG, the service account, ~/.kube/config" },     \
    {                                                                                              \
        "kubecontext", OPTION_TEXT, OPTION(T, asker.kubecontext), "NAME", "", NULL,                \
            "context of the kubeconfig; otherwise KUBECONTEXT, then the file's own choice"         \
    }
#define ASKER_TARGET_OPTIONS(T)                                                                    \
    { "type",                                                                                      \
      OPTION_CHOICE,                                                                               \
      OPTION(T, asker.type),                                                                       \
      "TYPE",                                                                                      \
      "node",                                                                                      \
      "node|deployment|daemonset|statefulset",                                                     \
      "what is to be disturbed" },                                                                 \
        { "namespace",                                                                             \
          OPTION_TEXT,                                                                             \
          OPTION(T, asker.ns),                                                                     \
          "NAME",                                                                                  \
          "",                                                                                      \
          NULL,                                                                                    \
          "of the target; needed for all types but node" },                                        \
    {                                                                                              \
        "client", OPTION_TEXT, OPTION(T, asker.client), "NAME", "drydock", NULL,                   \
            "who asks; each client has one request a target"                                       \
    }

struct asker {
    const struct command_call *call;
    const struct asker_flags *flags;
    struct reach reach;
    struct actor actor;
    struct arena memory;
};

/* Checks the flags and opens the cluster; answers COMMAND_OK, or the exit code after a complaint.
 * asker_close in any case. */
int asker_open(struct asker *a, const struct command_call *call, const struct asker_flags *flags);
void asker_close(struct asker *a);

/* Complains; answers the exit code that fits. */
int asker_fail(const struct asker *a, const struct err *err);
/* "drydock run: text", in lines of 80 columns, to stderr. */
void asker_say(const struct asker *a, struct str text);

struct record_target asker_target(const struct asker *a, struct str name);
/* When --timeout is over, from now. */
usec_t asker_until(const struct asker *a);

/* The live request that an argument means: its own name, or its target's when that is enough to
 * tell; then the client's own comes first. */
NODISCARD
int asker_resolve(struct asker *a, struct str argument, struct record *ret, struct err *err);

/* "maintenancerequest.repairman.k8s.io/NAME verb", or the object as it is now. */
int asker_show(struct asker *a, struct str name, const char *verb);
