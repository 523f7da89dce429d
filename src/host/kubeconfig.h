/*
 * kubeconfig: how to reach a cluster, from the files and the environment that kubectl uses.
 *
 * The order: --kubeconfig, then KUBECONFIG (a list; what the first file says of a
 * name counts), then the service account of the pod we run in, then ~/.kube/config. Every complaint
 * names the file, the line where there is one, what was found and what was wanted. Tokens, keys and
 * passwords never appear in one. Working memory is wiped; what is read lives in the caller's arena.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "host/cluster_access.h"

#define KUBECONFIG_FILES_MAX 64u /* of the list in KUBECONFIG */
#define KUBECONFIG_SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

struct kubeconfig_source {
    struct str path;                /* --kubeconfig; empty = not given */
    struct str context;             /* --kubecontext; empty = the file's current-context */
    const char *const *env;         /* "NAME=value", …, NULL; NULL = the process's own */
    struct str service_account_dir; /* empty = KUBECONFIG_SERVICE_ACCOUNT */
    bool no_files; /* a file that is named inside the configuration is an error: for fuzzing */
    /* A stranger wrote the text: what names a file or a program of this machine is an error, so are
     * anchors, aliases and merges. A server that need not prove who it is, a proxy, and a server
     * on this machine or its link (local_address.h) are errors unless they are allowed. */
    bool foreign;
    bool allow_insecure; /* with `foreign`, as the next two */
    bool allow_proxy;    /* proxy-url; that of the environment always counts */
    bool allow_local;
    struct str token; /* used instead of the context's user; empty = the context's user */
};

/* One file's content. */
struct kubeconfig_text {
    struct str path; /* for messages, and where relative names begin */
    struct str text;
};

/* Everything `ret` points to lives in `out`. */
NODISCARD
int kubeconfig_load(const struct kubeconfig_source *source, struct arena *out,
                    struct cluster_access *ret, struct err *err);

/* The same from contents in memory, the first one first. */
NODISCARD
int kubeconfig_parse(const struct kubeconfig_source *source, const struct kubeconfig_text *texts,
                     uint32_t n, struct arena *out, struct cluster_access *ret, struct err *err);
