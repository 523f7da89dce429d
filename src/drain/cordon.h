/*
 * cordon: makes and lifts the cordon of a node, and keeps the mark on it that says whose it is.
 *
 * Every change begins with a live read of the node, and is a patch of the very version that was
 * read: no cache is asked whether a cordon is ours, so nobody else's is ever lifted (I4, R8).
 * Changes of one node are made one after the other. A patch that has been sent is waited for even
 * when nobody wants it any more: whoever undoes it would otherwise read the node before the patch
 * takes effect, and leave a cordon behind.
 */
#pragma once

#include "base/log.h"
#include "kube/client.h"
#include "kube/recorder.h"

/* The one rule about lifting: a cordon is its owner's only if the mark, one of the annotations
 * KEY_…_CORDON of kinds/keys.h, names the owner. A cordon without a mark was made by hand. */
bool cordon_is_ours(struct str mark, struct str owner);

struct cordons; /* the changes of one controller that are under way */
struct cordon;  /* one of them */

enum cordon_action {
    CORDON_ACTION_CORDON,
    CORDON_ACTION_UNCORDON, /* if the cordon is ours */
    CORDON_ACTION_UNMARK,   /* if the cordon is ours: it stays, without its mark */
    CORDON_ACTION_KEEP,     /* if the cordon is ours: it stays, under the mark of `kept` */
};

enum cordon_result {
    CORDON_RESULT_NONE,      /* not yet: something went wrong, and is tried again */
    CORDON_RESULT_OURS,      /* the node is cordoned, with our mark */
    CORDON_RESULT_OTHERS,    /* the node was cordoned before: not ours to uncordon */
    CORDON_RESULT_CLEARED,   /* the node has no cordon with our mark */
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
    struct str mark;    /* the annotation, KEY_…_CORDON; a constant */
    struct str uid;     /* the mark's value: of the request, or of whoever else; copied, as all
                         * texts but constants */
    struct str request; /* for people: what it is done for; may be empty */
    struct str node;
    /* CORDON_ACTION_CORDON: a cordon with the mark of that request becomes ours, in one patch;
     * empty = none does. */
    struct str take_over;
    /* CORDON_ACTION_CORDON: the same for a cordon under that mark of KEY_KEPT_CORDON.
     * CORDON_ACTION_KEEP: the mark that it gets. */
    struct str kept;
};

/* The change is tried until it has a result. `on_result` comes from the loop; unless it says
 * CORDON_RESULT_NONE, the handle is not valid any more then. */
struct cordon *cordon_start(struct cordons *cs, const struct cordon_spec *spec,
                            void (*on_result)(void *ctx, enum cordon_result end), void *ctx);
/* on_result comes no more; a patch that has been sent may still take effect. Accepts NULL. */
void cordon_stop(struct cordon *c);
/* What went wrong last; empty: nothing. Lives until the loop runs. */
struct str cordon_error(const struct cordon *c);
