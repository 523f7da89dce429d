/*
 * leader_proxy: lets a replica that does not lead answer with what the leader says.
 *
 * The holder of the Lease, "<pod>_<uuid>", is the leader. Its address is that of the pod of this
 * name. A pod in the host's network has the host name of its node; then the node's address is used.
 * The port is the one that this replica serves on, unless another is configured: replicas have the
 * same flags. A request is given up after a second. Errors are {"error":"…"} with status 502 or
 * 503. Whoever may read here need not be allowed to read there, so the leader sees the token of the
 * request and decides itself. A request that another replica has passed on is never passed on
 * again.
 */
#pragma once

#include "port/api.h"
#include "port/loop.h"
#include "port/inbound.h"
#include "port/outbound.h"
#include "web/query.h"

#define LEADER_PROXY_TIMEOUT SECONDS(1)
#define LEADER_PROXY_REPLY_MAX ((size_t)64 * 1024 * 1024) /* /api/v1/info of 20,000 nodes */
#define LEADER_PROXY_HEADER "X-Drydock-Relayed"
#define LEADER_PROXY_CALLS_MAX 64u /* at a time; browsers and scripts of one replica */
#define LEADER_PROXY_FETCHES_MAX                                                                   \
    8u /* of them with the leader; each may hold a document that is then shared with nobody */

struct leader_proxy_config {
    struct api *api;           /* borrowed */
    struct outbound *outbound; /* borrowed */
    struct str lease_namespace;
    struct str lease_name;
    uint32_t port; /* where the leader serves */
    bool tls;      /* it speaks TLS; `outbound` knows how to recognise it */
    bool auth;     /* it wants to know who asks: the request's token goes along */
};

struct leader_proxy;

/* The texts are copied. */
struct leader_proxy *leader_proxy_new(struct loop *loop, const struct leader_proxy_config *config);
/* Cancels what is under way: open requests get no answer. Accepts NULL. */
void leader_proxy_free(struct leader_proxy *r);

/* Takes the exchange and answers it. `format` is what the leader answers to this request. */
void leader_proxy_start(struct leader_proxy *r, struct inbound_exchange *x,
                        const struct inbound_request *req, enum query_format format);
