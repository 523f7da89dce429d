/*
 * cordon: the cordon of a node, and the mark on it that says for whom it was made.
 *
 * Every deed is a live read and then a patch on the very version that was read: no cache is asked
 * whether a cordon is ours, so nobody else's is ever lifted (R8). Deeds of one node are done one
 * after the other. A patch that is on its way is waited for even when nobody wants it any more:
 * whoever undoes it would otherwise look before it takes effect, and leave a cordon behind.
 */
#pragma once

#include "base/log.h"
#include "kube/client.h"
#include "kube/recorder.h"

struct cordons; /* all deeds of one controller */
struct cordon;  /* one */

enum cordon_action {
    CORDON_ACTION_CORDON,
    CORDON_ACTION_UNCORDON, /* where it is ours */
    CORDON_ACTION_UNMARK,   /* where it is ours: it stays, and is nobody's */
};

enum cordon_result {
    CORDON_RESULT_NONE,      /* not yet: something went wrong, and it is tried again */
    CORDON_RESULT_OURS,      /* it is there with our mark */
    CORDON_RESULT_OTHERS,    /* it was there before, and is not ours to uncordon */
    CORDON_RESULT_CLEARED,   /* nothing of ours is there */
    CORDON_RESULT_NODE_GONE, /* the node does not exist */
};

struct cordons_config {
    struct client *client;      /* borrowed */
    struct recorder *recorder;  /* borrowed; NULL: no Events */
    struct log *log;            /* may be NULL */
    bool (*may_act)(void *ctx); /* asked before anything is sent; NULL: always */
    void *ctx;
};

struct cordons *cordons_new(const struct cordons_config *config);
void cordons_free(struct cordons *cs); /* like a crash; accepts NULL */

struct cordon_spec {
    enum cordon_action action;
    struct str uid;     /* of the request: the mark's value; copied, as all texts */
    struct str request; /* its name; may be empty */
    struct str node;
};

/* It is tried until it has an end. `on_result` comes from the loop; unless it says
 * CORDON_RESULT_NONE, the handle is not valid any more then. */
struct cordon *cordon_start(struct cordons *cs, const struct cordon_spec *spec,
                            void (*on_result)(void *ctx, enum cordon_result end), void *ctx);
/* Nobody is told; a patch on its way may still take effect. Accepts NULL. */
void cordon_stop(struct cordon *c);
/* What went wrong last; empty: nothing. Lives until the loop runs. */
struct str cordon_error(const struct cordon *c);
