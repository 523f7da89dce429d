/*
 * prepare_internal: what the files of a preparation share.
 */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "kube/node.h"
#include "request/volume_detach.h"
#include "request/prepare.h"

#define PREPARE_BLOCKED_MAX 5u /* names that status.preparation.blockedBy has room for */

struct preparer {
    struct preparer_config config;
    struct cordons *cordons;
    struct detaches *detaches;
    struct list prepares;
    struct list undos;
};

struct prepare {
    struct preparer *preparer;
    struct list link;
    struct arena memory; /* of the spec's texts and the selector */
    struct prepare_spec spec;
    struct selector pods;
    struct err pods_err; /* the selector cannot be read */
    void (*on_change)(void *ctx);
    void *ctx;
    struct loop_timer turn;
    enum prepare_step step;
    usec_t step_time; /* wall */
    usec_t step_at;   /* the same by the monotonic clock, which alone counts from then on */
    bool rejected;
    struct cordon *action; /* under way */
    enum cordon_result cordon;
    bool cordon_differs; /* the node shows something else */
    struct drain *drain;
    struct detach *detach;
    /* What was shown last; texts in `shown`. */
    struct arena texts;
    struct prepare_view view;
    struct str blocked[PREPARE_BLOCKED_MAX];
    struct buf key;       /* of all that a change is told of */
    struct buf event_key; /* what the last DrainBlocked was about */
};

/* How long the step may take, or takes; 0: no limit, or none at all. */
usec_t prepare_step_limit(const struct prepare *q);

/* The node carries the request that this one was made for, if there is one. */
bool prepare_has_request(const struct prepare *q);

/* prepare_update_view.c */
/* Makes the view; true when it says something else than before. */
bool prepare_update_view(struct prepare *q);
/* An Event about the request. */
void prepare_send_event(const struct prepare *q, const char *type, const char *reason,
                        const char *action, struct str note);
