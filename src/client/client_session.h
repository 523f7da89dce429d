/*
 * client_session: what a blocking client needs on a real machine: a loop, a cluster and the
 * blocking API on both.
 */
#pragma once

#include "client/blocking_api.h"
#include "host/cluster_access.h"

struct client_session {
    struct arena memory;
    struct loop *loop;
    struct cluster_access access;
    struct api *api;
    struct blocking_api blocking_api;
    bool (*leaving)(void *ctx); /* the caller may set it; see blocking_api.h */
    void *ctx;
};

/* Empty texts: as kubectl finds them. What it points to must not move afterwards. */
NODISCARD
int client_session_init(struct client_session *r, struct str kubeconfig, struct str context,
                        struct err *err);
void client_session_done(struct client_session *r); /* accepts one that was never made */
