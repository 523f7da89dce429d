/*
 * capi_version: which version of Cluster API's kinds a management cluster serves.
 *
 * v1beta2 where it is served, otherwise v1beta1. It is asked at the start and every ten minutes: an
 * upgrade of Cluster API may bring the one or take the other away.
 */
#pragma once

#include "format/json.h"
#include "kube/client.h"

#define EDITION_GROUP "cluster.x-k8s.io"
#define EDITION_EVERY MINUTES(10)
#define EDITION_RETRY SECONDS(15) /* while there is none: somebody may be installing it */

struct edition {
    struct client *client; /* borrowed */
    /* Another version than before is to be used; from the loop. */
    void (*on_change)(void *ctx);
    void *ctx;
    struct api_call *call;
    struct loop_timer timer;
    struct str version; /* a constant; empty = none is known yet */
    struct err trouble; /* why none is */
};

void edition_init(struct edition *e, struct client *client, void (*on_change)(void *ctx),
                  void *ctx);
void edition_done(struct edition *e); /* accepts a zeroed one */

/* The best of what an APIGroup document lists; empty = none that is known. */
struct str edition_choose(const struct jval *group);
