/*
 * link: the connection to one workload cluster, from its kubeconfig Secret to a watch of its Nodes.
 *
 * Each link has its own state, timers, store and limits, and no link ever waits for another: a
 * cluster that is dead, slow or hostile costs its own link time and a bounded amount of memory.
 *
 *     IDLE → RESOLVING → LISTING → WATCHING        any failure → BACKOFF → RESOLVING
 *     RESOLVING → GRANTING → LISTING               with `manage`
 *     GRANTING, LISTING, WATCHING → RESOLVING      on 401, and when the Secret has changed
 *     any → CLOSING → IDLE                         when nobody wants it any more
 *
 * Every attempt begins with one read of the Secret, so a new certificate, address or password is
 * found without a special case. While the link watches it is *fresh*: what its store says of a
 * Node is what the cluster said a moment ago. In any other state nothing is known.
 *
 * The Secret's text is wiped when the door is made. With `manage` that door, the administrator's,
 * is used for a warrant alone (warrant.h): the text stays until the token is there, the door with
 * the token is made of both, and the administrator's is hung up. Lists, watches and requests go
 * through the token's door. Before a token ends a link that watches reads the Secret again, gets
 * another token in the same way, and moves over to its door: a new list begins there, and the link
 * stays fresh as it does after a 410. As long as that fails it goes on with the token that it has.
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
#define LINK_PAGE 500u
#define LINK_LISTING_MAX SECONDS(60)  /* a list that drips longer than that is given up */
#define LINK_GRANTING_MAX SECONDS(60) /* so long the administrator's door may be open */
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

/* Wanted from now on. `hurry`: goes before others that wait for their turn to connect. */
void link_open(struct link *l, bool urgent);
/* Not wanted any more: what is in flight may end, then all memory is given back. */
void link_close(struct link *l);
/* The Secret's metadata were seen in this version; 0 = it is gone. Another one than was read last
 * makes it read again, at once. Until it is gone, the link does not read again by itself. */
void link_on_secret(struct link *l, uint64_t version);

struct str link_uid(const struct link *l); /* of its Cluster */
enum link_state link_state(const struct link *l);
bool link_fresh(const struct link *l);
/* Since when it is wanted and not fresh, without a break (monotonic); 0 = it is fresh, or idle. */
usec_t link_unreachable_since(const struct link *l);
/* The Nodes (peer.h), as of the present connection: it is empty when a new one begins. */
struct store *link_nodes(struct link *l);
/* Its side of the connection, for a watch of something else: until on_hang_up, or until it is
 * freed. NULL = it is not fresh. */
struct client *link_client(struct link *l);

/* Sends when its turn comes, from when its timeout counts; answered once from the loop, unless it
 * is cancelled: by the cluster, or with status 0 when the link breaks, is not fresh, or has too
 * many that wait. A 401 breaks it. */
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
    usec_t listed;      /* how long its last list took, from connecting to the last Node */
    uint32_t nodes;
    uint64_t connects; /* attempts since it was made */
    uint64_t failures;
    struct str overdue; /* why its token could not be renewed yet; empty = it needs no other one */
    uint64_t renewals_failed;
};
void link_view(const struct link *l, struct link_view *ret);
const char *link_state_name(enum link_state state);

void link_check(const struct link *l);
