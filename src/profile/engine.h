/*
 * engine: decides what is to be done about a node, from the node itself, the configuration, the
 * other nodes, the facts and the time.
 *
 * Pure: no I/O, no clock, nothing kept. The same function decides in production, in the simulator
 * and in `explain`. It never waits: what takes time (a drain, a notification, a grant) is named
 * in the result, and the engine is called again when that is done.
 *
 * Of a node's profiles one at most is in maintenance, or on its way there. Each profile makes at
 * most one transition a decision, and a profile that fails holds up no other.
 */
#pragma once

#include "base/mutation.h"
#include "profile/check/check.h"
#include "profile/node_data.h"

/* A notification that was sent. The annotation keeps only the time of an instance's last one; which
 * profile it was about, and that others are to follow, is known only here. */
struct engine_sent {
    struct str instance;
    struct str profile;
    struct timestamp transition; /* of the profile, as it was then */
    struct timestamp at;         /* later than `transition`, whatever the clocks say */
    bool in_patch;               /* for the controller: the patch under way writes it */
};

/* A notification that was tried and could not be sent. It is tried again, whatever the profile does
 * meanwhile. */
struct engine_send_failed {
    struct str instance;
    struct str profile;
    struct timestamp transition; /* of the profile, as it was then */
    struct str error;
};

/* What the controller has under way with the node; zero = nothing. */
struct engine_progress {
    struct str granted; /* the profile that holds the grant; empty = none */
    bool confirming;    /* … and foreign systems are being asked again: nothing is done yet */
    bool drained;       /* the drain that was asked for is done */
    /* Whether the change of another object with this key (engine_effect.alter_key) has been made,
     * and why it could not be; NULL: none ever was. */
    bool (*altered)(const void *ctx, struct str key);
    const void *altered_ctx;
    struct str alter_error;
    struct str drain; /* explain: how far the drain is, in words; empty = none runs */
    /* What was sent and is not in the annotation yet. */
    const struct engine_sent *sent;
    uint32_t sent_n;
    const struct engine_send_failed *send_failed;
    uint32_t send_failed_n;
};

struct engine_input {
    const struct config *config;
    struct str name;
    const struct node *node;
    const struct fleet *fleet;
    const struct facts *facts;
    usec_t wall;
    struct engine_progress progress;
    bool explain;
    MUTATIONS_FIELD;
};

struct engine_check {
    struct str name; /* the instance's */
    const struct plugin *plugin;
    struct check_verdict verdict;
};

struct engine_transition {
    enum profile_state target;
    struct str expression;
    struct engine_check *checks; /* each instance once, in order of appearance */
    uint32_t check_n;
    bool chain_passed;
    bool passed;      /* and nothing else holds it back */
    struct str error; /* of the chain; empty = none */
    struct str held;  /* why it is held although its chain passed; empty = it is not */
    usec_t next;      /* wall time at which a check could change by itself */
};

/* Why a notification is not due, in the schedule's words. */
struct engine_notify_skip {
    struct str instance;
    const char *reason; /* NULL: none */
    const char *note;   /* logged before the reason, due or not; mostly NULL */
    bool due;           /* only the note is to be logged */
    bool loud;          /* logged even without the label that asks for details */
};

#define ENGINE_RAN_MAX                                                                             \
    3u /* chains of a profile in one decision: enter, transition, enter the next */

struct engine_profile {
    struct str name;
    const struct config_profile *profile;
    enum profile_state state; /* when the decision began */
    enum profile_state next;  /* and after it */
    struct timestamp since;   /* of `state` */
    struct engine_transition *transitions;
    uint32_t transition_n;
    struct str error;  /* what failed; empty = nothing */
    struct str failed; /* "Failed to enter state in-maintenance": where it did, for the event */
    bool notifying;    /* it has entered its state, and some notifications are not sent yet */
    struct engine_notify_skip *notify_skips;
    uint32_t notify_skip_n;
    const struct chain *ran[ENGINE_RAN_MAX]; /* trigger chains that have come to their end */
    uint32_t ran_n;
    struct str doing; /* explain: "draining: …", "sending …"; empty = it waits for its checks */
};

enum engine_need {
    ENGINE_NEED_GRANT = 1 << 0,  /* asks to go into maintenance: `grant_profile` */
    ENGINE_NEED_DRAIN = 1 << 1,  /* a drain is to run, or to stay done; a patch comes first */
    ENGINE_NEED_NOTIFY = 1 << 2, /* `notify` is due */
    ENGINE_NEED_ALTER = 1 << 3,  /* the node's Hypervisor is to be changed as `alter` says */
};

struct engine_effect {
    struct node_edit edit; /* with all edits, state label and data annotation among them */
    uint32_t needs;        /* of enum engine_need */
    /* ENGINE_NEED_GRANT: the profile that asks, and the transition it would make. */
    uint32_t grant_profile;
    uint32_t grant_transition;
    /* ENGINE_NEED_DRAIN */
    const struct config_instance *drain;
    uint32_t drain_profile;
    /* ENGINE_NEED_ALTER */
    const struct config_instance *alter;
    struct str alter_key; /* names this step of this profile: it is done once */
    /* ENGINE_NEED_NOTIFY */
    const struct config_instance *notify;
    uint32_t notify_profile;
    struct timestamp notify_last; /* when this instance last told something of this node */
    bool keeps_grant; /* the profile that holds the grant is still on its way, or arrives now */
    bool enters;      /* it arrives now: the grant may go once the patch is through */
    uint32_t enters_profile; /* … and by which transition */
    uint32_t enters_transition;
    bool aborted;      /* all that its profiles had under way is given up */
    struct str lifted; /* the profile whose cordon is lifted because nobody else would; mostly empty
                        */
    bool entered; /* a profile has come into maintenance and its enter chain is done: shuffles are
                   * counted */
    uint32_t entered_profile;
    usec_t again_at;      /* wall time; USEC_NEVER: not before something is observed */
    uint64_t depends;     /* bits of the check instances that were run, see fleet.h */
    uint64_t waits_group; /* not 0: the group of maxMaintenance that has no place for it */
    uint32_t waits_check; /* the check instance of that group */
    usec_t waits_since;   /* wall time: since when the profile is in its state */
    bool any_group;       /* it depends on groups in another way: decide at every change */
    struct facts_want *wants;
    uint32_t want_n;
    bool reads_pods;                 /* a check read the pods of the node itself */
    struct engine_profile *profiles; /* in the label's order */
    uint32_t profile_n;
    bool in_maintenance; /* one of them is, when the decision began */
};

/* Everything of the result lives in `out` or in what went in. An error means that the node is not
 * touched: its annotation cannot be read. */
NODISCARD
int engine_decide(const struct engine_input *in, struct arena *out, struct engine_effect *ret,
                  struct err *err);
