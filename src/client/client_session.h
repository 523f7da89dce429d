/*
 * client_session: the doors of a real machine for one blocking client: a loop, a cluster, a talk.
 */
#pragma once

#include "client/blocking_api.h"
#include "host/cluster_access.h"

struct reach {
    struct arena memory;
    struct loop *loop;
    struct cluster_access access;
    struct api *api;
    struct talk talk;
    bool (*leaving)(void *ctx); /* the caller may set it; see talk.h */
    void *ctx;
};

/* Empty texts: as kubectl finds them. What it points to must not move afterwards. */
NODISCARD
int reach_init(struct reach *r, struct str kubeconfig, struct str context, struct err *err);
void reach_done(struct reach *r); /* accepts one that was never made */
