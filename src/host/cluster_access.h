/*
 * cluster_access: what it takes to reach one cluster: where it is, whom to trust, who we are.
 *
 * A plain value, made by kubeconfig_load or by hand in tests; its texts are NUL-terminated behind
 * their end and live in whoever's arena made them. All choices are already taken: files are read
 * (those that rotate are named instead), the proxy is decided.
 */
#pragma once

#include "base/str.h"

enum exec_interactive {
    EXEC_INTERACTIVE_NEVER,
    EXEC_INTERACTIVE_IF_AVAILABLE,
    EXEC_INTERACTIVE_ALWAYS
};

/* A credential plugin, as client.authentication.k8s.io has it. */
struct access_exec {
    struct str command; /* empty = none; a path, or a name to look for in PATH */
    const struct str *args;
    uint32_t args_n;
    const struct str *env; /* whole environment of the child, "NAME=value" */
    uint32_t env_n;
    struct str api_version; /* "client.authentication.k8s.io/v1" or …/v1beta1 */
    struct str install_hint;
    enum exec_interactive interactive;
    bool provide_cluster_info;
    struct str cluster_config; /* JSON of the cluster's exec extension; empty = none */
    usec_t time_max;           /* 0 = CREDENTIALS_EXEC_MAX */
};

struct cluster_access {
    struct str name;            /* of the context, for messages; may be empty */
    struct str server;          /* "https://10.0.0.1:6443", perhaps with a path */
    struct str tls_server_name; /* verified and sent instead of the server's host; empty = that */
    bool insecure;              /* the server's certificate is not checked */
    struct str ca_pem;          /* empty = the system's */
    struct str cert_pem;        /* client certificate with key_pem; empty = none */
    struct str key_pem;
    struct str token;
    struct str token_file; /* read again when it changes; wins over `token` */
    struct str username;
    struct str password;
    struct str impersonate_user; /* empty = nobody */
    struct str impersonate_uid;
    const struct str *impersonate_groups;
    uint32_t impersonate_groups_n;
    struct access_exec exec;
    struct str header;    /* one more, "Name: value", with every request; empty = none */
    struct str proxy_url; /* empty = none: the environment has been asked already */
    bool refuse_local;    /* connect to no address of this machine or its link, whatever names
                           * resolve to; see local_address.h */
    struct str ns;        /* the context's namespace; empty = none given */
    bool in_cluster;      /* by service account */
};
