/*
 * prepare_internal: what the files of a preparation share.
 *
 *   prepare.c       the steps: cordon, drain, grace, volumes, grace; and the undo
 *   prepare_view.c  what a preparation reports: status, messages and Events
 */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "kube/node.h"
#include "request/volume_detach.h"
#include "request/prepare.h"

#define PREPARE_BLOCKED_MAX 5u /* entries of status.preparation.blockedBy, at most */

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
    struct cordon *action; /* the cordon that is being made */
    enum cordon_result cordon;
    bool cordon_differs; /* the node shows something else than `cordon` */
    struct drain *drain;
    struct detach *detach;
    /* What was reported last, and the memory of its texts. */
    struct arena texts;
    struct prepare_view view;
    struct str blocked[PREPARE_BLOCKED_MAX];
    struct buf key;       /* everything whose change is reported, as one text */
    struct buf event_key; /* pod and cause of the last Event DrainBlocked */
};

/* The time limit of the step, or the length of a grace; 0: none. */
usec_t prepare_step_limit(const struct prepare *q);

/* The node carries the request of the Machine that this request was made for, if there is one. */
bool prepare_has_request(const struct prepare *q);

/* Makes the view; true when it says something else than before. */
bool prepare_update_view(struct prepare *q);
/* An Event about the request. */
void prepare_send_event(const struct prepare *q, const char *type, const char *reason,
                        const char *action, struct str note);
