/*
 * transport: the door to a cluster on a real machine, on libcurl.
 *
 * HTTP/1.1 with keep-alive; a watch owns its connection. Requests beyond `requests_max` wait in
 * order of arrival, watches beyond `watches_max` likewise. Requests with `own_connection` have a
 * queue and connections of their own, so that thousands of others hold them up no more than one.
 * Nothing is called back from inside api_send, api_watch or libcurl: what happens is noted and
 * delivered in a later turn of the loop. Handles may be cancelled at any time, also from inside a
 * callback.
 *
 * Nothing is retried here but one thing, by libcurl: a request sent over a connection that had been
 * used before, and that was closed before the first line of the answer came, is sent once more over
 * a fresh one, whatever its verb. The server closes idle connections at will, so without this every
 * quiet minute would end in an error. The price is that a server that dies right after acting sees
 * the request twice. Writes of this project bear that: patches carry a resourceVersion, creations a
 * name, evictions are idempotent.
 *
 * A peer that is gone without a word is found by TCP keepalive (30 s, then three times 15 s), by
 * TCP_USER_TIMEOUT, by each request's deadline and by each watch's silence_max.
 */
#pragma once

#include "base/limits.h"
#include "host/cluster_access.h"
#include "port/api.h"
#include "port/loop.h"

#define TRANSPORT_REQUESTS_MAX 32u /* beyond it a busy API server only queues, too */
#define TRANSPORT_OWN_MAX 2u       /* requests with own_connection: a Lease has one under way */
#define TRANSPORT_WATCHES_MAX 256u /* a drain watches one node's pods; each has a connection */
#define TRANSPORT_CONNECT_MAX SECONDS(10)
#define TRANSPORT_HEAD_BYTES_MAX                                                                   \
    ((size_t)64 *                                                                                  \
     1024) /* of an answer's headers, interim ones too; API servers send some hundred */
#define TRANSPORT_LINE_MAX                                                                         \
    (OBJECT_BYTES_MAX + (size_t)64 * 1024) /* one object and the words around it */

/* Of a transport in a group; its header says why they are small. */
#define TRANSPORT_GROUP_BUFFER 1024 /* bytes read at once; libcurl keeps it for a whole watch */

struct transport_limits {
    uint32_t requests_max; /* 0 = the default, in all of them */
    uint32_t watches_max;
    usec_t connect_max; /* name, TCP and TLS together */
    size_t reply_bytes_max;
    size_t line_bytes_max;
};

struct transport_stats {
    uint32_t queued;    /* requests that wait for their turn or for a credential */
    uint32_t in_flight; /* requests sent, or answered and not yet delivered */
    uint32_t own;       /* of those with own_connection: likewise, not counted above */
    uint32_t own_queued;
    uint32_t watches; /* open or opening */
    uint32_t watches_queued;
    uint64_t sent[API_DELETE + 1]; /* requests by verb */
    uint64_t sent_watch;
    uint64_t replies[6];  /* by class of the status: [2] = 2xx; [0] = no answer */
    uint64_t connections; /* made since the beginning */
    uint64_t bytes_received;
};

/* `access` is borrowed for as long as the transport lives. Fails on what can be seen without the
 * network: a server that is no URL, PEM that is none, a key of another certificate. */
struct api *transport_new(struct loop *loop, const struct cluster_access *access, struct err *err);

/* Transports to many clusters that are silent most of the time: bridges to workload clusters.
 *
 * They share what libcurl needs only once, and each keeps what its open watch needs and little
 * else. Every request has a connection of its own, closed behind the answer: an idle one would cost
 * as much as the watch, and one that is used again could carry another's identity, since libcurl
 * does not know whose key OpenSSL was given. The price is a handshake a request.
 *
 * A watch that rests costs some 55 to 60 KiB, nearly all of it OpenSSL's and libcurl's: buffers are
 * given back between the lines, certificates and keys after the handshake (tls_identity.h). */
struct transport_group;
struct transport_group *transport_group_new(struct loop *loop);
/* Its transports have ended before, and no callback of theirs runs. Accepts NULL. */
void transport_group_free(struct transport_group *group);

/* As transport_new, but what is needed of `access` is copied: it may be wiped at once. It names no
 * token file and no plugin, and no proxy that speaks TLS. */
struct api *transport_group_join(struct transport_group *group, const struct cluster_access *access,
                                 struct err *err);

/* What is in flight is dropped without a callback. Also from inside one. Accepts NULL. */
void transport_free(struct api *api);

void transport_set_limits(struct api *api, const struct transport_limits *limits);

struct transport_stats transport_stats(const struct api *api);
