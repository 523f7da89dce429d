/*
 * link: the connection to one workload cluster, from its kubeconfig Secret to a watch of its Nodes.
 *
 * Each link has its own state, timers, store and limits, and no link ever waits for another: a
 * cluster that is dead, slow or hostile costs its own link time and a bounded amount of memory: a
 * cluster that sends more than any real one is given up, and tried again after a long wait.
 *
 *     IDLE → RESOLVING → LISTING → WATCHING        any failure → BACKOFF → RESOLVING
 *     RESOLVING → GRANTING → LISTING               with `manage`
 *     GRANTING, LISTING, WATCHING → RESOLVING      on 401, and when the Secret has changed
 *     any → CLOSING → IDLE                         when it is not needed any more
 *
 * Every attempt begins with one read of the Secret, so a new certificate, address or password is
 * found without a special case. While the link watches it is *fresh*: what its store says of a
 * Node is what the cluster said a moment ago. In any other state nothing is known.
 *
 * The text of the kubeconfig is wiped when the connection is made. With `manage` the
 * administrator's connection is used only to get a token (workload_token.h). The text stays until
 * the token is there; the connection with the token is made of both, and the administrator's is
 * closed. Lists, watches and requests go through the token's connection. Before the token ends, a
 * link that watches reads the Secret again, gets another token in the same way, and moves over to a
 * connection with that: a new list begins, and the link stays fresh as it does after a 410. As long
 * as the renewal fails, the link goes on with the token that it has.
 */
#pragma once

#include "base/ratelimit.h"
#include "base/log.h"
#include "bridge/workload_node.h"
#include "kube/client.h"
#include "port/dialer.h"

#define LINK_CALLS_MAX 4u             /* requests in flight; others wait in the link */
#define LINK_QUEUE_MAX LINK_NODES_MAX /* that wait: one for each Node; more are refused */
#define LINK_RATE 20u                 /* requests a second, */
#define LINK_BURST 30u                /* after as many at once */
#define LINK_NODES_MAX 20000u         /* more than any cluster has; a hostile one stops here */
#define LINK_BYTES_MAX                                                                             \
    ((size_t)24 * 1024 * 1024) /* memory for Nodes: so many take some 16 MiB with the names and    \
                                  UIDs that Cluster API gives them */
#define LINK_REQUESTS_BYTES_MAX                                                                    \
    ((size_t)32 * 1024 * 1024)  /* for MaintenanceRequests: ten thousand of 3 KiB each */
#define LINK_TRAFFIC_RATE 8192u /* KiB a second: more than a thousand changes of Nodes, */
#define LINK_TRAFFIC_BURST                                                                         \
    (LINK_NODES_MAX * 16u) /* after that many: two lists with 8 KiB of metadata a Node */
#define LINK_PAGE 500u
#define LINK_LISTING_MAX SECONDS(60)  /* a list that drips longer than that is given up */
#define LINK_GRANTING_MAX SECONDS(60) /* for the administrator's connection */
#define LINK_SILENCE_MAX SECONDS(90)  /* bookmarks come every minute */
#define LINK_TROUBLE_MAX SECONDS(15)  /* a watch that cannot be opened again for so long is lost */
#define LINK_BACKOFF_BASE SECONDS(1)
#define LINK_BACKOFF_MAX MINUTES(5)
#define LINK_REREAD MINUTES(10) /* a Secret whose changes are not watched is read that often */
#define LINK_CLOSING_MAX SECONDS(30)
#define LINK_SECRET_BYTES_MAX ((size_t)512 * 1024)

enum link_state {
    LINK_IDLE,
    LINK_RESOLVING, /* reads the Secret, perhaps after waiting for its turn to connect */
    LINK_GRANTING,  /* connects as the administrator, for a token of our own */
    LINK_LISTING,   /* connects, and lists the Nodes */
    LINK_WATCHING,
    LINK_BACKOFF,
    LINK_CLOSING, /* lets what is in flight end */
};

struct link;
struct link_call;

struct link_config {
    struct client *management; /* the management cluster; borrowed, as all here */
    struct dialer *dialer;
    struct ratelimit *connects; /* all links share it */
    struct log *log;            /* may be NULL */
    struct str namespace;       /* of the Cluster; copied, as the next two */
    struct str cluster;         /* its name */
    struct str uid;
    bool manage;   /* work with an account of our own, not as whom the kubeconfig names */
    bool pods;     /* which may list pods and namespaces, too, */
    bool requests; /* and work with MaintenanceRequests */
    /* The link became fresh, is not fresh any more, or is idle again; from the loop. */
    void (*on_state)(void *ctx, struct link *l);
    /* Nodes are dirty (store_take), or some are gone; from the loop, once for many. Only while it
     * is fresh. */
    void (*on_nodes)(void *ctx, struct link *l);
    /* This Node is gone; it may have come back meanwhile. From the loop, before on_nodes, and not
     * when a connection ends: then nothing is known of any. May be NULL. */
    void (*on_gone)(void *ctx, struct link *l, struct str node);
    /* The connection ends, or is followed by another one while the link stays fresh: whoever has
     * its client lets go of it, and does nothing else. May be NULL. Not called by link_free. */
    void (*on_hang_up)(void *ctx, struct link *l);
    /* Asked at the moment a write goes out, which may be long after link_send: a process that was
     * frozen meanwhile may not act any more. False ends it as a broken link does. NULL: always. */
    bool (*may_write)(void *ctx);
    void *ctx;
};

struct link *link_new(const struct link_config *config);
void link_free(struct link *l); /* like a crash: nobody is called any more; accepts NULL */

/* Needed from now on. `urgent`: connects before other links that wait for their turn. */
void link_open(struct link *l, bool urgent);
/* Not needed any more: requests in flight may end, then all memory is given back. */
void link_close(struct link *l);
/* The watch of Secrets has shown this version; 0 = the Secret is gone. If it is another version
 * than the link has read, the link reads the Secret again at once. While the watch shows the
 * Secret, the link does not read it every LINK_REREAD. */
void link_on_secret(struct link *l, uint64_t version);

struct str link_uid(const struct link *l); /* of its Cluster */
enum link_state link_state(const struct link *l);
bool link_fresh(const struct link *l);
/* Since when it is wanted and not fresh, without a break (monotonic); 0 = it is fresh, or idle. */
usec_t link_unreachable_since(const struct link *l);
/* The Nodes (workload_node.h) of the present connection; empty when a new one begins. */
struct store *link_nodes(struct link *l);
/* The client of the connection, to watch another kind: valid until on_hang_up, or until the link is
 * freed. NULL = the link is not fresh. */
struct client *link_client(struct link *l);

/* What another watch with this client brought is more than is kept: the link ends as if its own
 * limits were exceeded. */
void link_exceed(struct link *l, const struct err *err);

/* Sends the request when its turn comes; its timeout counts from then. on_reply is called once,
 * from the loop, unless the call is cancelled: with the cluster's reply, or with status 0 when the
 * link breaks, is not fresh, or has too many requests that wait. A 401 breaks the link. */
struct link_call *link_send(struct link *l, const struct api_request *request,
                            api_on_reply on_reply, void *ctx);
void link_cancel(struct link_call *call); /* accepts NULL */

/* For people and metrics. Texts live until the loop runs. */
struct link_view {
    struct str namespace;
    struct str cluster;
    struct str uid;
    enum link_state state;
    struct str trouble; /* why it is not fresh; empty = nothing is wrong */
    usec_t since;       /* monotonic: in this state */
    usec_t retry_at;    /* monotonic; BACKOFF */
    usec_t pause_end; /* monotonic: its API server has asked for quiet until then; 0 = it has not */
    int pause_status; /* of the answer that did; 0 = there was none */
    usec_t listed;    /* how long its last list took, from connecting to the last Node */
    uint32_t nodes;
    uint64_t connects; /* attempts since it was made */
    uint64_t failures;
    uint64_t over_limit; /* of them: the cluster sent more than is taken of one */
    struct str overdue;  /* why its token could not be renewed yet; empty = it needs no other one */
    uint64_t renewals_failed;
};
void link_view(const struct link *l, struct link_view *ret);
const char *link_state_name(enum link_state state);

void link_check(const struct link *l);
