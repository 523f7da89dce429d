/*
 * prepare: makes a node ready for the actor of a request: cordon, drain, grace, volumes detached,
 * grace; and undoes the cordon afterwards.
 *
 * Level-triggered: begun again after a crash, it reads the node and goes on with what is missing.
 * Where a step began (for its time limit and its grace) comes from the request's status, so a new
 * leader goes on counting. Nothing is written but the node's cordon and its mark, by patches with a
 * resourceVersion; the caller keeps step and time in the request.
 */
#pragma once

#include "base/log.h"
#include "drain/cordon.h"
#include "drain/drain.h"
#include "ledger/arbiter.h"

struct preparer; /* what all preparations share: the watch of VolumeAttachments */
struct prepare;  /* of one request */

enum prepare_step {
    PREPARE_CORDON,
    PREPARE_DRAIN,
    PREPARE_DRAIN_GRACE,
    PREPARE_DETACH,
    PREPARE_DETACH_GRACE,
    PREPARE_DONE, /* the final check may come */
};

struct preparer_config {
    struct client *client;
    struct recorder *recorder;
    struct log *log;
    struct drains *drains;
    const struct store
        *nodes; /* kube/node.h; with KEY_REQUEST_CORDON, KEY_DRAIN_RULES, KEY_…_REQUEST */
    bool (*may_act)(void *ctx); /* asked before anything is sent; NULL: always */
    usec_t (*wall)(void *ctx);  /* API-server time (R16) */
    void *ctx;
    usec_t skew_tolerance; /* a time limit runs out that much later (R7) */
};

struct preparer *preparer_new(const struct preparer_config *config);
/* Like a crash. Before `drains` are freed; not from on_change. Accepts NULL. */
void preparer_free(struct preparer *p);
/* A node has changed or is gone: its preparations take a turn. */
void preparer_on_node(struct preparer *p, const struct store_item *item, bool gone);

struct prepare_spec {
    struct str uid; /* of the request: the mark's value */
    struct str request;
    struct str node;
    /* The request of a Machine that it was made for, or empty. The Node named it first, together
     * with the rules to drain it by. So where it does not, what is known of it is older than the
     * request, or that is over: nothing is sent away then. */
    struct str machine_request;
    struct limit_options options; /* drain and detach of it */
    enum prepare_step step;       /* where it was; PREPARE_CORDON at first */
    usec_t step_time;             /* wall: when that step began */
};

/* `on_change` comes from the loop when the step has changed, or what it waits for; it may free the
 * preparation. Until that is freed, at PREPARE_DONE as well, a cordon that somebody lifts is made
 * again: whoever hands the node over frees it then. */
struct prepare *prepare_new(struct preparer *p, const struct prepare_spec *spec,
                            void (*on_change)(void *ctx), void *ctx);
void prepare_free(struct prepare *q); /* stops; undoes nothing; accepts NULL */

/* Lives until the loop runs. */
struct prepare_view {
    enum prepare_step step;
    usec_t step_time;  /* wall, in whole seconds: whoever keeps it loses nothing */
    bool rejected;     /* a time limit has run out and says Reject */
    struct str reason; /* of the condition Prepared: "Cordoning", "Draining", "PDBWouldBlock", … */
    struct str message; /* in words, with numbers */
    bool cordoned;      /* by us, for this request */
    uint32_t pods_left;
    uint32_t volumes_left;
    const struct str *blocked_by; /* "pod ns/name: budget …", up to 5 */
    uint32_t blocked_n;
    usec_t deadline; /* wall, of this step; USEC_NEVER */
};
void prepare_view(const struct prepare *q, struct prepare_view *ret);

/* The way back, for a request that has ended or starts over: lifts the cordon if the node carries
 * the request's mark. `uncordon` false leaves the cordon and takes only the mark away (the operator
 * chose uncordonAfter: false). The node is read live, after whatever this controller has on its way
 * to it, and tried until it is done: `on_done` comes from the loop when the mark is not there (any
 * more) or the node is gone.
 *
 * What a controller that crashed had on its way may still arrive, after its successor has looked.
 * So this is also for whoever finds the mark of a request on a node that has ended, or that nobody
 * knows. */
struct prepare_undo;
struct prepare_undo *prepare_undo(struct preparer *p, struct str uid, struct str node,
                                  bool uncordon, void (*on_done)(void *ctx), void *ctx);
bool prepare_undo_is_done(const struct prepare_undo *u); /* false for NULL */
void prepare_undo_free(struct prepare_undo *u);          /* accepts NULL */
