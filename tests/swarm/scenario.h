/*
 * scenario: what happens in one simulated run: a world, and a list of actions on a time line, all
 * from one seed.
 *
 * A scenario is data, so a failing one can be shrunk: actions are left out one by one while it
 * still fails, and the ones that are left are named in the line that reproduces it. An action that
 * makes no sense when its time comes (its node is gone) does nothing.
 */
#pragma once

#include "base/err.h"
#include "tests/swarm/random_config.h"

#define SCENARIO_ACTIONS_MAX 96u  /* more only make a failure harder to read */
#define SCENARIO_PROCESSES_MAX 3u /* two that fight over a lease, and one to come between them */

enum action_kind {
    /* to nodes */
    ACTION_NODE_ADD,
    ACTION_NODE_REMOVE,
    ACTION_NODE_REPLACE, /* removed and at once there again, with another uid */
    ACTION_NODE_REBOOT,
    ACTION_NODE_TOUCH,  /* a label that is none of our business changes */
    ACTION_STATE_ERASE, /* the state label is gone */
    ACTION_STATE_FORGE, /* the state label says something that is not so */
    ACTION_DATA_ERASE,
    ACTION_DATA_BREAK,  /* the data annotation cannot be read any more */
    ACTION_PROFILE_SET, /* the profile label changes */
    /* to controllers */
    ACTION_CRASH,
    ACTION_CRASH_BEFORE, /* at its next effect: the request never leaves */
    ACTION_CRASH_AFTER,  /* at its next effect: the request leaves, its answer is never seen */
    ACTION_START,
    ACTION_STOP,       /* in order: the lease is given back */
    ACTION_FREEZE,     /* for `span`, as SIGSTOP and SIGCONT do */
    ACTION_CLOCK_STEP, /* civil time jumps by `span` */
    /* to the wire and the server */
    ACTION_DISCONNECT,  /* its connections break, and none comes up for `span` */
    ACTION_STALL,       /* its watches stay open and deliver nothing for `span` */
    ACTION_FAULTS,      /* fault rates of `what` severity for `span` */
    ACTION_SERVER_DOWN, /* for `span` */
    ACTION_SERVER_RESTART,
    ACTION_COMPACT,
    /* to nodes that are served by a configuration */
    ACTION_NEED,      /* a profile's need for maintenance appears */
    ACTION_NEED_DONE, /* and is gone */
    ACTION_APPROVE,
    ACTION_UNAPPROVE, /* the approval is taken back */
    ACTION_CORDON,    /* by hand */
    ACTION_UNCORDON,  /* likewise */
    ACTION_GO_LABEL,  /* a label for which the whole fleet waits comes, or goes */
    ACTION_VERSION,   /* another version on a node */
    /* to the configuration and to third parties */
    ACTION_CONFIG_CHANGE, /* another valid one */
    ACTION_CONFIG_BREAK,  /* one that cannot be read */
    ACTION_LATE_WRITE,    /* a controller's last write arrives when another leads, `span` later */
    ACTION_NOTIFY_FAIL,   /* third parties refuse, or are silent, for `span` */
    ACTION_PDB_BLOCK,     /* budgets let no pod go for `span` */
    ACTION_PROFILE_DROP,  /* a profile goes from the label of a node, whatever it does */
    ACTION_ABORT,         /* somebody gives up what the profiles of a node have under way */
    ACTION_PROMETHEUS_NO, /* Prometheus changes its mind, and back again after `span` */
    ACTION_PAUSE_ALL,     /* somebody pauses everything, for `span` */
    /* to requests and limits */
    ACTION_REQUEST_CREATE, /* an actor asks for a node */
    ACTION_REQUEST_DELETE, /* by somebody else than its actor */
    ACTION_LIMIT_PAUSE,    /* for `span` */
    ACTION_LIMIT_LOWER,    /* to nothing, for `span` */
    ACTION_LIMIT_ADD,
    ACTION_LIMIT_DELETE,
    ACTION_NODE_RELABEL,   /* a node is selected by other limits */
    ACTION_CRASH_AT_WRITE, /* at the next write of one kind: before it leaves, or after */
    /* to Machines and Clusters */
    ACTION_MACHINE_NEW,
    ACTION_MACHINE_DELETE,
    ACTION_MACHINE_ENABLE,   /* or disable */
    ACTION_MACHINE_MAINTAIN, /* a maintenance is asked for, */
    ACTION_MACHINE_WITHDRAW, /* not any more, */
    ACTION_MACHINE_FORGE,    /* or approved by somebody who has no say */
    ACTION_MACHINE_PAUSE,    /* for `span` */
    ACTION_CLUSTER_PAUSE,    /* for `span` */
    ACTION_CLUSTER_DELETE,
    ACTION_CLUSTER_NEW,      /* one that was deleted comes again, as another */
    ACTION_TOKEN_ROTATE,     /* the old one stops working; the Secret knows after `span` */
    ACTION_SECRET_BAD,       /* for `span` */
    ACTION_SECRET_DELETE,    /* for `span` */
    ACTION_DRAIN_RULE,       /* a drain rule comes, changes, or goes */
    ACTION_DRAIN_RULE_LABEL, /* a label changes that they select by */
    /* to the Nodes of workload clusters */
    ACTION_WORKLOAD_NODE_DELETE,  /* by hand */
    ACTION_WORKLOAD_NODE_REPLACE, /* it is there again at once, with another uid */
    ACTION_WORKLOAD_NODE_STATE,   /* the engine's label goes, or comes */
    ACTION_WORKLOAD_NODE_APPROVE, /* the engine approves what nobody has asked for */
    ACTION_WORKLOAD_NODE_RULES, /* somebody changes the drain rules of a Node that has been asked */
    ACTION_WORKLOAD_NODE_FORGE, /* a Node says that it is another cluster's */
    /* to the wire between bridges and one workload cluster */
    ACTION_WORKLOAD_DISCONNECT,
    ACTION_WORKLOAD_STALL,
    ACTION_WORKLOAD_FAULTS,
    ACTION_WORKLOAD_SLOW,
    ACTION_WORKLOAD_RESTART,
    ACTION_WORKLOAD_COMPACT,
    /* to Metal3 hosts */
    ACTION_HOST_REASSIGN,   /* it is taken from its Machine, and given to another one or back */
    ACTION_HOST_DELETE,     /* it is there again after `span`, with another uid */
    ACTION_HOST_STATE,      /* it is not provisioned for `span` */
    ACTION_HOST_ANNOTATE,   /* somebody else keeps it off, or does not any more */
    ACTION_HOST_STRIP,      /* somebody takes away what we have written */
    ACTION_HOST_FORGE,      /* or writes it */
    ACTION_HOST_PAUSE,      /* for `span` */
    ACTION_HOST_DETACH,     /* Metal3 does not look at it for `span` */
    ACTION_HOST_POWER_MODE, /* a Machine's power is to be cut, or not */
    ACTION_HOST_POD,        /* a Node that is or is not drained changes that */
    /* to ESX hosts and their nodes */
    ACTION_ESX_HOST, /* it goes into maintenance mode, or is back */
    ACTION_ESX_APPROVE,
    ACTION_ESX_UNAPPROVE,
    ACTION_ESX_MOVE,         /* a machine runs on another host, which its node may not say */
    ACTION_ESX_SESSION,      /* the vCenter forgets who is logged in */
    ACTION_ESX_VCENTER_DOWN, /* for `span` */
    /* to NodeMaintenances */
    ACTION_MAINTENANCE_CHANGE,  /* it has something else to do */
    ACTION_MAINTENANCE_SUSPEND, /* for `span` */
    ACTION_MAINTENANCE_DELETE,  /* it is made again after `span` */
    ACTION_COUNT,
};

struct action {
    usec_t at;
    usec_t duration;
    enum action_kind kind;
    uint32_t pick;    /* which node or controller, modulo how many there are */
    uint32_t variant; /* the action's own choice */
};

enum story {
    STORY_STORM,
    STORY_CHURN,
    STORY_ELECTION,
    STORY_WIRE,
    STORY_QUIET,
    STORY_SERVICE,    /* nodes are served by a configuration, whatever happens */
    STORY_RELAY,      /* likewise, under tight limits, from leader to leader */
    STORY_DRAIN,      /* likewise, with pods behind budgets */
    STORY_REQUESTS,   /* actors ask for nodes under limits */
    STORY_BRIDGE,     /* Machines and the Nodes of workload clusters */
    STORY_ESX,        /* nodes that are machines on ESX hosts */
    STORY_OPERATIONS, /* NodeMaintenances run Jobs on nodes and reboot them */
    STORY_COUNT,
};

struct scenario {
    uint64_t seed;
    enum story story;
    uint32_t nodes;
    uint32_t processes;
    bool elect;        /* false only with one process, or where all are to believe that they lead */
    usec_t fault_time; /* actions happen until then, faults end */
    usec_t calm;       /* then everything must come right within that */
    usec_t quiet_time; /* and nothing may be written for that long */
    uint32_t latency;  /* base latency of the wire, milliseconds */
    int32_t drift[SCENARIO_PROCESSES_MAX]; /* parts per million */
    usec_t skew[SCENARIO_PROCESSES_MAX];
    struct action actions[SCENARIO_ACTIONS_MAX];
    uint32_t n;
    /* Stories with a configuration. */
    struct random_config_options config_options;
    /* The bridge's. */
    uint32_t clusters;
    bool hosts; /* with Metal3 */
    /* Stories with a configuration: no message gets through from then on; USEC_NEVER: some do. */
    usec_t messages_end;
};

/* Whether the story has a configuration. */
bool story_has_config(enum story story);
/* Whether it is about requests and limits. */
bool story_has_requests(enum story story);
/* Whether it is about NodeMaintenances. */
bool story_has_operations(enum story story);
/* Whether it is about Machines: then bridge_run.h runs it, not run.c itself. */
bool story_has_bridge(enum story story);

/* `story` may be STORIES: the seed chooses. */
void scenario_make(struct scenario *p, uint64_t seed, enum story story);

/* Keeps only the actions named: "0,4,7"; "" keeps none. */
NODISCARD
int scenario_keep(struct scenario *p, struct str indices, struct err *err);

const char *story_name(enum story story);
bool story_find(struct str name, enum story *ret);
const char *action_name(enum action_kind kind);
