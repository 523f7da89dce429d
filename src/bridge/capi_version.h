/*
 * capi_version: which version of Cluster API's kinds a management cluster serves.
 *
 * v1beta2 where it is served, otherwise v1beta1. It is asked at the start and every ten minutes: an
 * upgrade of Cluster API may bring the one or take the other away.
 */
#pragma once

#include "format/json.h"
#include "kube/client.h"

#define CAPI_VERSION_EVERY MINUTES(10)
#define CAPI_VERSION_RETRY SECONDS(15) /* while there is none: somebody may be installing it */

struct capi_version {
    struct client *client; /* borrowed */
    /* Another version than before is to be used; from the loop. */
    void (*on_change)(void *ctx);
    void *ctx;
    struct api_call *call;
    struct loop_timer timer;
    struct str version; /* a constant; empty = none is known yet */
    struct err trouble; /* why none is */
};

void capi_version_init(struct capi_version *e, struct client *client, void (*on_change)(void *ctx),
                       void *ctx);
void capi_version_done(struct capi_version *e); /* accepts a zeroed one */

/* The best of what an APIGroup document lists; empty = none that is known. */
struct str capi_version_choose(const struct jval *group);
