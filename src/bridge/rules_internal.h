/*
 * rules_internal: what the files of the rules share: one case, from its facts to its verdict.
 */
#pragma once

#include "bridge/rules.h"

/* For that long KEY_STATUS keeps its reason while the cluster cannot be reached: after a restart
 * the links are still connecting. */
#define RULES_UNREACHABLE_GRACE SECONDS(60)

enum rules_why {
    RULES_WHY_RELEASED, /* KEY_RELEASED says something else */
    RULES_WHY_NOT_ENABLED,
    RULES_WHY_MACHINE_PAUSED,
    RULES_WHY_CLUSTER_PAUSED,
    RULES_WHY_MISMATCH,
    RULES_WHY_CLUSTER_MISSING,
    RULES_WHY_NO_NODE,
    RULES_WHY_UNREACHABLE,
    RULES_WHY_NODE_MISSING,
    RULES_WHY_ENGINE_ABSENT,
    RULES_WHY_RULES_UNKNOWN, /* the Node is not asked before they are */
    RULES_WHY_WAITING,
    RULES_WHY_ANOTHER, /* an approval that names another request */
    RULES_WHY_UPDATE,
    RULES_WHY_BEING_DELETED,
    RULES_WHY_BUSY,
    RULES_WHY_QUORUM,
    RULES_WHY_APPROVED,
    RULES_WHY_CLUSTER_DELETED,
    RULES_WHY_HOLD_OVER,
    RULES_WHY_IDLE,
    RULES_WHY_MAX,
};

struct rules_case {
    const struct rules_options *options;
    const struct rules_facts *facts;
    const struct machine *machine;
    const struct cluster *cluster;
    const struct workload_node *node; /* NULL = it is not seen */
    bool managed;                     /* it is seen, and an engine or limits can approve */
    enum rules_node_sight sight; /* without a Cluster, or a name to look for, nothing is known */
    bool mismatch;               /* the Node says that it is another Machine's */
    struct arena *out;
    struct rules_verdict *verdict;
    /* From here on: as it will be when the patches have succeeded. */
    bool hook;
    bool not_held;                /* a deletion is not held, */
    enum rules_why not_held_why;  /* for this reason */
    enum machine_request request; /* without one that was forged */
    bool approved;                /* for a maintenance */
    bool forged;                  /* the label says so, and neither bridge nor Node approved it */
    bool withheld;                /* an approval is there and is not passed on, */
    enum rules_why withheld_why;  /* for this reason */
    /* The Node is not asked yet, because the drain rules are not known. */
    bool deletion_unsent;
    bool maintenance_unsent;
};

struct str rules_why_name(enum rules_why why);
/* Of a name that rules_why_name gave; RULES_WHY_RELEASED for any other. */
enum rules_why rules_why_find(struct str name);

void rules_event(struct rules_case *c, enum rules_event event, struct str note, uint32_t when);
/* The verdict could change by itself at that time, or so much later than now. */
void rules_wake(struct rules_case *c, usec_t wall);
void rules_wake_in(struct rules_case *c, usec_t rest);

/* rules_request.c: what the Node carries, and whether a maintenance is approved. */
void rules_deletion(struct rules_case *c);
void rules_maintenance(struct rules_case *c);
/* The drain rules beside the requests; after both, because it depends on what will be there. */
void rules_drain_rules(struct rules_case *c);
/* An approval of this deletion. */
bool rules_deletion_approved(const struct rules_case *c);

/* rules_hook.c */
void rules_hook(struct rules_case *c);
/* Why the hook goes, as a part of a sentence. */
struct str rules_why_text(const struct rules_case *c, enum rules_why why);
/* When the hold ends by its limit; USEC_NEVER = it does not. */
usec_t rules_hold_end(const struct rules_case *c);

/* rules_phase.c: phase, reason and message, and what KEY_STATUS says of them. */
void rules_phase(struct rules_case *c);
void rules_status(struct rules_case *c);
