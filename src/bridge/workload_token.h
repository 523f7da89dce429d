/*
 * workload_token: an account of our own in a workload cluster, and a short-lived token of it.
 *
 * The kubeconfig that Cluster API writes is an administrator's. Here it is used for four things
 * only: a ServiceAccount, a ClusterRole that may read and patch Nodes, a ClusterRoleBinding of the
 * two, and a TokenRequest. Everything else is done with the token.
 *
 *     ACCOUNT → ROLE → BINDING → TOKEN → DONE
 *
 * Each object is read first, created if it is not there, and written only if it differs; then it
 * is set to exactly what is below, so a role that somebody has widened is narrow again. Any failure
 * is reported and the step is tried again with a back-off, until the workload_token is freed: every
 * step may be repeated, and a conflict means that somebody else was faster.
 *
 * A token is handed out once and kept nowhere; the copy is wiped when on_token returns.
 */
#pragma once

#include "kube/client.h"

#define WORKLOAD_TOKEN_NAME "drydock-bridge"   /* of all three objects, and as field manager */
#define WORKLOAD_TOKEN_NAMESPACE "kube-system" /* of the account: it is in every cluster */
#define WORKLOAD_TOKEN_SECONDS 3600            /* how long a token shall live */
#define WORKLOAD_TOKEN_RENEW_PERCENT 80    /* of its life; the rest is for a cluster that is away */
#define WORKLOAD_TOKEN_SETTLE SECONDS(1)   /* until a new role has reached the authorizer */
#define WORKLOAD_TOKEN_TIMEOUT SECONDS(10) /* of a request */
#define WORKLOAD_TOKEN_BACKOFF_BASE SECONDS(1)
#define WORKLOAD_TOKEN_BACKOFF_MAX MINUTES(5)
#define WORKLOAD_TOKEN_REFUSED_MIN MINUTES(1)          /* a refusal needs a person */
#define WORKLOAD_TOKEN_BYTES_MAX ((size_t)1024 * 1024) /* of an answer: a role of somebody else */
#define WORKLOAD_TOKEN_MAX 16384u                      /* more than any server's headers may have */

struct workload_token;

struct workload_token_value {
    struct str text;   /* gone when on_token returns */
    usec_t expires_at; /* monotonic */
    usec_t renew_at;   /* monotonic: the time for another workload_token */
};

struct workload_token_config {
    struct client *client; /* the administrator's; borrowed */
    bool pods;             /* the role may list pods, and namespaces for drain rules, too */
    bool requests;         /* and make MaintenanceRequests, see and change them */
    /* From the loop. The workload_token may be freed inside. */
    void (*on_token)(void *ctx, const struct workload_token_value *token);
    /* It goes on by itself. `status`: of the answer, 0 = there was none, or it was good and could
     * not be used. With 401 the credential itself is refused. It may be freed inside, too. */
    void (*on_error)(void *ctx, const struct err *err, int status);
    /* An object was created or changed: "ClusterRole 'drydock-bridge'"; may be NULL. */
    void (*on_written)(void *ctx, struct str what);
    /* Asked at the moment a write goes out. False: it fails, with -ERR_CANCELLED. NULL: always. */
    bool (*may_write)(void *ctx);
    void *ctx;
};

/* Begins at once. */
struct workload_token *workload_token_new(const struct workload_token_config *config);
void workload_token_free(struct workload_token *w); /* nobody is called any more; accepts NULL */

void workload_token_check(const struct workload_token *w);
