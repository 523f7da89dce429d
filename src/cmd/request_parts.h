/*
 * request_parts: what runs in a controller's process beside the profiles: the arbiter of
 * MaintenanceLimits and the requests, once their CRDs are there.
 *
 * Whether they are is asked once; where they are not, the one CRD is watched, so that installing
 * them is enough and an idle controller polls nothing.
 */
#pragma once

#include "base/log.h"
#include "base/metric.h"
#include "kube/reflector.h"
#include "ledger/arbiter.h"
#include "profile/controller.h"
#include "request/requests.h"

struct request_parts_config {
    struct loop *loop;             /* borrowed */
    struct controller *controller; /* borrowed */
    struct log *log;
    struct metrics *metrics;
    struct str namespace;         /* where target locks are */
    struct arbiter_config limits; /* its switches alone are read */
    usec_t finished_ttl;
    usec_t skew_tolerance;
    bool trust_approval;
    mutations_t mutations; /* tests only */
};

struct request_parts {
    struct request_parts_config config;
    struct reflector crd;
    struct loop_timer retry;
    struct api_call *call;
    struct arbiter *arbiter;   /* NULL: the CRDs are not there yet */
    struct requests *requests; /* the same */
    bool watching;             /* `crd` runs */
};

void request_parts_init(struct request_parts *p, const struct request_parts_config *config);
/* Like a crash. Before the controller is freed; accepts a zeroed one. */
void request_parts_done(struct request_parts *p);

/* For struct controller_config: the annotations of nodes that parts read, and what the controller
 * tells is given on. */
#define REQUEST_PARTS_ANNOTATIONS 4
extern const struct str request_parts_annotations[REQUEST_PARTS_ANNOTATIONS];
void request_parts_on_node(struct request_parts *p, const struct store_item *item,
                           const void *before, bool gone);
void request_parts_on_acting(struct request_parts *p);
