/*
 * leader_proxy: lets a replica that does not lead answer with what the leader says.
 *
 * The leader is who holds the Lease, "<pod>_<uuid>". Its address is that of the pod of this name,
 * or, for pods in the host's network, whose host name is the node's, that of the node. The port is
 * the one that this replica serves on, unless another is configured: replicas have the same flags.
 * One second is all a request gets. What goes wrong is said as {"error":"…"} with status 502 or
 * 503. A request that was relayed already is never relayed again.
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

struct leader_proxy_config {
    struct api *api;           /* borrowed */
    struct outbound *outbound; /* borrowed */
    struct str lease_namespace;
    struct str lease_name;
    uint32_t port; /* where the leader serves */
};

struct leader_proxy;

/* The texts are copied. */
struct leader_proxy *leader_proxy_new(struct loop *loop, const struct leader_proxy_config *config);
/* Cancels what is under way: nobody is answered any more. Accepts NULL. */
void leader_proxy_free(struct leader_proxy *r);

/* Takes the exchange and answers it. `format` is what the leader answers to this request. */
void leader_proxy_start(struct leader_proxy *r, struct inbound_exchange *x,
                        const struct inbound_request *req, enum query_format format);
