/*
 * request_parts: what runs in a controller's process beside the profiles: the arbiter of MaintenanceLimits
 * and the requests, once their CRDs are there.
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

struct parts_config {
    struct loop *loop;             /* borrowed */
    struct controller *controller; /* borrowed */
    struct log *log;
    struct metrics *metrics;
    struct str space;             /* where target locks are */
    struct arbiter_config limits; /* its switches alone are read */
    usec_t finished_ttl;
    usec_t skew_tolerance;
    bool trust_approval;
    mutations_t mutations; /* tests only */
};

struct parts {
    struct parts_config config;
    struct reflector crd;
    struct loop_timer again;
    struct api_call *call;
    struct arbiter *arbiter;   /* NULL: the CRDs are not there yet */
    struct requests *requests; /* the same */
    bool watching;             /* `crd` runs */
};

void parts_init(struct parts *p, const struct parts_config *config);
/* Like a crash. Before the controller is freed; accepts a zeroed one. */
void parts_done(struct parts *p);

/* For struct controller_config: the annotations of nodes that parts read, and what the controller
 * tells is given on. */
#define PARTS_ANNOTATIONS 4
extern const struct str parts_annotations[PARTS_ANNOTATIONS];
void parts_on_node(struct parts *p, const struct store_item *item, const void *before, bool gone);
void parts_on_acting(struct parts *p);
