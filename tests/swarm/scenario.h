/*
 * scenario: what happens in one simulated run: a world, and a list of deeds on a time line, all from
 * one seed.
 *
 * A plan is data, so a failing one can be shrunk: deeds are left out one by one while it still
 * fails, and the ones that are left are named in the line that reproduces it. A deed that makes no
 * sense when its time comes (its node is gone) does nothing.
 */
#pragma once

#include "base/err.h"
#include "tests/swarm/random_config.h"

#define PLAN_DEEDS_MAX 96u    /* more only make a failure harder to read */
#define PLAN_PROCESSES_MAX 3u /* two that fight over a lease, and one to come between them */

enum deed_kind {
    /* to nodes */
    DEED_NODE_ADD,
    DEED_NODE_REMOVE,
    DEED_NODE_REPLACE, /* removed and at once there again, with another uid */
    DEED_NODE_REBOOT,
    DEED_NODE_TOUCH,  /* a label that is none of our business changes */
    DEED_STATE_ERASE, /* the state label is gone */
    DEED_STATE_FORGE, /* the state label says something that is not so */
    DEED_DATA_ERASE,
    DEED_DATA_BREAK,  /* the data annotation cannot be read any more */
    DEED_PROFILE_SET, /* the profile label changes */
    /* to controllers */
    DEED_CRASH,
    DEED_CRASH_BEFORE, /* at its next effect: the request never leaves */
    DEED_CRASH_AFTER,  /* at its next effect: the request leaves, its answer is never seen */
    DEED_START,
    DEED_STOP,       /* in order: the lease is given back */
    DEED_FREEZE,     /* for `span`, as SIGSTOP and SIGCONT do */
    DEED_CLOCK_STEP, /* civil time jumps by `span` */
    /* to the wire and the server */
    DEED_CUT,         /* its connections break, and none comes up for `span` */
    DEED_STALL,       /* its watches stay open and deliver nothing for `span` */
    DEED_WEATHER,     /* fault rates of `what` severity for `span` */
    DEED_SERVER_DOWN, /* for `span` */
    DEED_SERVER_RESTART,
    DEED_COMPACT,
    /* to nodes that are served by a configuration */
    DEED_NEED, /* a profile's need for maintenance appears */
    DEED_DONE, /* and is gone */
    DEED_APPROVE,
    DEED_REVOKE,   /* the approval is taken back */
    DEED_CORDON,   /* by hand */
    DEED_UNCORDON, /* likewise */
    DEED_GO,       /* a label for which the whole fleet waits comes, or goes */
    DEED_VERSION,  /* another version on a node */
    /* to the configuration and to third parties */
    DEED_CONFIG_OTHER,  /* another valid one */
    DEED_CONFIG_BROKEN, /* one that cannot be read */
    DEED_LATE,          /* a controller's last write arrives when another leads, `span` later */
    DEED_DEAF,          /* third parties refuse, or are silent, for `span` */
    DEED_HOLD,          /* budgets let no pod go for `span` */
    /* to requests and limits */
    DEED_ASK,            /* an actor asks for a node */
    DEED_REQUEST_DELETE, /* by somebody else than its actor */
    DEED_LIMIT_PAUSE,    /* for `span` */
    DEED_LIMIT_LOWER,    /* to nothing, for `span` */
    DEED_LIMIT_ADD,
    DEED_LIMIT_DELETE,
    DEED_RELABEL,    /* a node is selected by other limits */
    DEED_CRASH_STEP, /* at the next write of one kind: before it leaves, or after */
    /* to Machines and Clusters */
    DEED_MACHINE_NEW,
    DEED_MACHINE_DELETE,
    DEED_MACHINE_ENABLE,   /* or disable */
    DEED_MACHINE_MAINTAIN, /* a maintenance is asked for, */
    DEED_MACHINE_WITHDRAW, /* not any more, */
    DEED_MACHINE_FORGE,    /* or approved by somebody who has no say */
    DEED_MACHINE_PAUSE,    /* for `span` */
    DEED_CLUSTER_PAUSE,    /* for `span` */
    DEED_CLUSTER_DELETE,
    DEED_CLUSTER_NEW, /* one that was deleted comes again, as another */
    DEED_TOKEN,       /* the old one stops working; the Secret knows after `span` */
    DEED_SECRET_BAD,  /* for `span` */
    DEED_SECRET_GONE, /* for `span` */
    DEED_RULE,        /* a drain rule comes, changes, or goes */
    DEED_RULE_LABEL,  /* a label changes that they select by */
    /* to the Nodes of workload clusters */
    DEED_PEER_DELETE,  /* by hand */
    DEED_PEER_REPLACE, /* it is there again at once, with another uid */
    DEED_PEER_STATE,   /* the engine's label goes, or comes */
    DEED_PEER_EAGER,   /* the engine approves what nobody has asked for */
    DEED_PEER_RULES,   /* somebody changes the drain rules of a Node that has been asked */
    DEED_PEER_HOSTILE, /* a Node says that it is another cluster's */
    /* to the wire between bridges and one workload cluster */
    DEED_FAR_CUT,
    DEED_FAR_STALL,
    DEED_FAR_WEATHER,
    DEED_FAR_SLOW,
    DEED_FAR_RESTART,
    DEED_FAR_COMPACT,
    /* to Metal3 hosts */
    DEED_HOST_GIVE,   /* it is taken from its Machine, and given to another one or back */
    DEED_HOST_DELETE, /* it is there again after `span`, with another uid */
    DEED_HOST_STATE,  /* it is not provisioned for `span` */
    DEED_HOST_NOTE,   /* somebody else keeps it off, or does not any more */
    DEED_HOST_STRIP,  /* somebody takes away what we have written */
    DEED_HOST_FORGE,  /* or writes it */
    DEED_HOST_PAUSE,  /* for `span` */
    DEED_HOST_DETACH, /* Metal3 does not look at it for `span` */
    DEED_HOST_MODE,   /* a Machine's power is to be cut, or not */
    DEED_HOST_POD,    /* a Node that is or is not drained changes that */
    DEED_KINDS,
};

struct deed {
    usec_t at;
    usec_t span;
    enum deed_kind kind;
    uint32_t who;  /* which node or controller, modulo how many there are */
    uint32_t what; /* the deed's own choice */
};

enum story {
    STORY_STORM,
    STORY_CHURN,
    STORY_ELECTION,
    STORY_WIRE,
    STORY_QUIET,
    STORY_SERVICE,  /* nodes are served by a configuration, whatever happens */
    STORY_RELAY,    /* likewise, under tight limits, from leader to leader */
    STORY_DRAIN,    /* likewise, with pods behind budgets */
    STORY_REQUESTS, /* actors ask for nodes under limits */
    STORY_BRIDGE,   /* Machines and the Nodes of workload clusters */
    STORIES,
};

struct plan {
    uint64_t seed;
    enum story story;
    uint32_t nodes;
    uint32_t processes;
    bool elect;       /* false only with one process, or where all are to believe that they lead */
    usec_t wild;      /* deeds happen until then, faults end */
    usec_t calm;      /* then everything must come right within that */
    usec_t still;     /* and nothing may be written for that long */
    uint32_t latency; /* base latency of the wire, milliseconds */
    int32_t drift[PLAN_PROCESSES_MAX]; /* parts per million */
    usec_t skew[PLAN_PROCESSES_MAX];
    struct deed deeds[PLAN_DEEDS_MAX];
    uint32_t n;
    /* Stories with a configuration. */
    struct blueprint_wish wish;
    /* The bridge's. */
    uint32_t clusters;
    bool hosts; /* with Metal3 */
};

/* Whether the story has a configuration. */
bool story_serves(enum story story);
/* Whether it is about requests and limits. */
bool story_asks(enum story story);
/* Whether it is about Machines: then fleet.h runs it, not trial.c itself. */
bool story_bridges(enum story story);

/* `story` may be STORIES: the seed chooses. */
void plan_make(struct plan *p, uint64_t seed, enum story story);

/* Keeps only the deeds named: "0,4,7"; "" keeps none. */
NODISCARD
int plan_keep(struct plan *p, struct str indices, struct err *err);

const char *story_name(enum story story);
bool story_find(struct str name, enum story *ret);
const char *deed_name(enum deed_kind kind);
