#include "tests/swarm/scenario.h"

#include "base/rng.h"

static const char *const story_names[STORY_COUNT] = {
    [STORY_STORM] = "storm",   [STORY_CHURN] = "churn", [STORY_ELECTION] = "election",
    [STORY_WIRE] = "wire",     [STORY_QUIET] = "quiet", [STORY_SERVICE] = "service",
    [STORY_RELAY] = "relay",   [STORY_DRAIN] = "drain", [STORY_REQUESTS] = "requests",
    [STORY_BRIDGE] = "bridge", [STORY_ESX] = "esx",     [STORY_OPERATIONS] = "operations",
};

static const char *const action_names[ACTION_COUNT] = {
    [ACTION_NODE_ADD] = "node-add",
    [ACTION_NODE_REMOVE] = "node-remove",
    [ACTION_NODE_REPLACE] = "node-replace",
    [ACTION_NODE_REBOOT] = "node-reboot",
    [ACTION_NODE_TOUCH] = "node-touch",
    [ACTION_STATE_ERASE] = "state-erase",
    [ACTION_STATE_FORGE] = "state-forge",
    [ACTION_DATA_ERASE] = "data-erase",
    [ACTION_DATA_BREAK] = "data-break",
    [ACTION_PROFILE_SET] = "profile-set",
    [ACTION_CRASH] = "crash",
    [ACTION_CRASH_BEFORE] = "crash-before",
    [ACTION_CRASH_AFTER] = "crash-after",
    [ACTION_START] = "start",
    [ACTION_STOP] = "stop",
    [ACTION_FREEZE] = "freeze",
    [ACTION_CLOCK_STEP] = "clock-step",
    [ACTION_DISCONNECT] = "disconnect",
    [ACTION_STALL] = "stall",
    [ACTION_FAULTS] = "faults",
    [ACTION_SERVER_DOWN] = "server-down",
    [ACTION_SERVER_RESTART] = "server-restart",
    [ACTION_COMPACT] = "compact",
    [ACTION_NEED] = "need",
    [ACTION_NEED_DONE] = "need-done",
    [ACTION_APPROVE] = "approve",
    [ACTION_UNAPPROVE] = "unapprove",
    [ACTION_CORDON] = "cordon",
    [ACTION_UNCORDON] = "uncordon",
    [ACTION_GO_LABEL] = "go-label",
    [ACTION_VERSION] = "version",
    [ACTION_CONFIG_CHANGE] = "config-change",
    [ACTION_CONFIG_BREAK] = "config-break",
    [ACTION_LATE_WRITE] = "late-write",
    [ACTION_NOTIFY_FAIL] = "notify-fail",
    [ACTION_PDB_BLOCK] = "pdb-block",
    [ACTION_PROFILE_DROP] = "profile-drop",
    [ACTION_ABORT] = "abort",
    [ACTION_PROMETHEUS_NO] = "prometheus-no",
    [ACTION_PAUSE_ALL] = "pause-all",
    [ACTION_REQUEST_CREATE] = "request-create",
    [ACTION_REQUEST_DELETE] = "request-delete",
    [ACTION_LIMIT_PAUSE] = "limit-pause",
    [ACTION_LIMIT_LOWER] = "limit-lower",
    [ACTION_LIMIT_ADD] = "limit-add",
    [ACTION_LIMIT_DELETE] = "limit-delete",
    [ACTION_NODE_RELABEL] = "node-relabel",
    [ACTION_CRASH_AT_WRITE] = "crash-at-write",
    [ACTION_MACHINE_NEW] = "machine-new",
    [ACTION_MACHINE_DELETE] = "machine-delete",
    [ACTION_MACHINE_ENABLE] = "machine-enable",
    [ACTION_MACHINE_MAINTAIN] = "machine-maintain",
    [ACTION_MACHINE_WITHDRAW] = "machine-withdraw",
    [ACTION_MACHINE_FORGE] = "machine-forge",
    [ACTION_MACHINE_PAUSE] = "machine-pause",
    [ACTION_CLUSTER_PAUSE] = "cluster-pause",
    [ACTION_CLUSTER_DELETE] = "cluster-delete",
    [ACTION_CLUSTER_NEW] = "cluster-new",
    [ACTION_TOKEN_ROTATE] = "token-rotate",
    [ACTION_SECRET_BAD] = "secret-bad",
    [ACTION_SECRET_DELETE] = "secret-delete",
    [ACTION_DRAIN_RULE] = "drain-rule",
    [ACTION_DRAIN_RULE_LABEL] = "drain-rule-label",
    [ACTION_WORKLOAD_NODE_DELETE] = "workload-node-delete",
    [ACTION_WORKLOAD_NODE_REPLACE] = "workload-node-replace",
    [ACTION_WORKLOAD_NODE_STATE] = "workload-node-state",
    [ACTION_WORKLOAD_NODE_APPROVE] = "workload-node-approve",
    [ACTION_WORKLOAD_NODE_RULES] = "workload-node-rules",
    [ACTION_WORKLOAD_NODE_FORGE] = "workload-node-forge",
    [ACTION_WORKLOAD_DISCONNECT] = "workload-disconnect",
    [ACTION_WORKLOAD_STALL] = "workload-stall",
    [ACTION_WORKLOAD_FAULTS] = "workload-faults",
    [ACTION_WORKLOAD_SLOW] = "workload-slow",
    [ACTION_WORKLOAD_RESTART] = "workload-restart",
    [ACTION_WORKLOAD_COMPACT] = "workload-compact",
    [ACTION_HOST_REASSIGN] = "host-reassign",
    [ACTION_HOST_DELETE] = "host-delete",
    [ACTION_HOST_STATE] = "host-state",
    [ACTION_HOST_ANNOTATE] = "host-annotate",
    [ACTION_HOST_STRIP] = "host-strip",
    [ACTION_HOST_FORGE] = "host-forge",
    [ACTION_HOST_PAUSE] = "host-pause",
    [ACTION_HOST_DETACH] = "host-detach",
    [ACTION_HOST_POWER_MODE] = "host-power-mode",
    [ACTION_HOST_POD] = "host-pod",
    [ACTION_ESX_HOST] = "esx-host",
    [ACTION_ESX_APPROVE] = "esx-approve",
    [ACTION_ESX_UNAPPROVE] = "esx-unapprove",
    [ACTION_ESX_MOVE] = "esx-move",
    [ACTION_ESX_SESSION] = "esx-session",
    [ACTION_ESX_VCENTER_DOWN] = "esx-vcenter-down",
    [ACTION_MAINTENANCE_CHANGE] = "maintenance-change",
    [ACTION_MAINTENANCE_SUSPEND] = "maintenance-suspend",
    [ACTION_MAINTENANCE_DELETE] = "maintenance-delete",
};

/* Which actions a story draws from; `n` of them, more or less. */
struct story_actions {
    uint32_t actions;
    enum action_kind kinds[ACTION_COUNT];
    uint32_t n;
};

#define NODE_ACTIONS                                                                               \
    ACTION_NODE_ADD, ACTION_NODE_REMOVE, ACTION_NODE_REPLACE, ACTION_NODE_REBOOT,                  \
        ACTION_NODE_TOUCH, ACTION_STATE_ERASE, ACTION_STATE_FORGE, ACTION_DATA_ERASE,              \
        ACTION_DATA_BREAK, ACTION_PROFILE_SET
#define PROCESS_ACTIONS                                                                            \
    ACTION_CRASH, ACTION_CRASH_BEFORE, ACTION_CRASH_AFTER, ACTION_START, ACTION_STOP,              \
        ACTION_FREEZE, ACTION_CLOCK_STEP
#define NETWORK_ACTIONS                                                                            \
    ACTION_DISCONNECT, ACTION_STALL, ACTION_FAULTS, ACTION_SERVER_DOWN, ACTION_SERVER_RESTART,     \
        ACTION_COMPACT

/* Needs and approvals come often enough for something to be under way all the time. */
#define SERVICE_ACTIONS                                                                            \
    ACTION_NEED, ACTION_NEED, ACTION_NEED, ACTION_NEED, ACTION_APPROVE, ACTION_APPROVE,            \
        ACTION_NEED_DONE, ACTION_UNAPPROVE
#define MANUAL_ACTIONS                                                                             \
    ACTION_CORDON, ACTION_UNCORDON, ACTION_GO_LABEL, ACTION_VERSION, ACTION_NODE_ADD,              \
        ACTION_NODE_REMOVE, ACTION_NODE_REPLACE, ACTION_NODE_REBOOT, ACTION_NODE_TOUCH

#define MACHINE_ACTIONS                                                                            \
    ACTION_MACHINE_NEW, ACTION_MACHINE_NEW, ACTION_MACHINE_DELETE, ACTION_MACHINE_DELETE,          \
        ACTION_MACHINE_DELETE, ACTION_MACHINE_DELETE, ACTION_MACHINE_ENABLE,                       \
        ACTION_MACHINE_MAINTAIN, ACTION_MACHINE_MAINTAIN, ACTION_MACHINE_MAINTAIN,                 \
        ACTION_MACHINE_WITHDRAW, ACTION_MACHINE_WITHDRAW
#define WORKLOAD_ACTIONS                                                                           \
    ACTION_WORKLOAD_DISCONNECT, ACTION_WORKLOAD_STALL, ACTION_WORKLOAD_FAULTS,                     \
        ACTION_WORKLOAD_SLOW, ACTION_WORKLOAD_RESTART, ACTION_WORKLOAD_COMPACT

/* Rules that nobody asks by are no matter: what happens to them happens often. */
#define DRAIN_RULE_ACTIONS                                                                         \
    ACTION_DRAIN_RULE, ACTION_DRAIN_RULE, ACTION_DRAIN_RULE, ACTION_DRAIN_RULE_LABEL,              \
        ACTION_DRAIN_RULE_LABEL, ACTION_WORKLOAD_NODE_RULES, ACTION_WORKLOAD_NODE_RULES,           \
        ACTION_WORKLOAD_NODE_RULES

#define REQUEST_ACTIONS                                                                            \
    ACTION_REQUEST_CREATE, ACTION_REQUEST_CREATE, ACTION_REQUEST_CREATE, ACTION_REQUEST_CREATE,    \
        ACTION_REQUEST_CREATE, ACTION_REQUEST_CREATE, ACTION_REQUEST_CREATE, ACTION_REQUEST_CREATE

#define OPERATION_ACTIONS                                                                          \
    ACTION_MAINTENANCE_CHANGE, ACTION_MAINTENANCE_CHANGE, ACTION_MAINTENANCE_SUSPEND,              \
        ACTION_MAINTENANCE_DELETE

static const struct story_actions story_choices[STORY_COUNT] = {
    [STORY_STORM] = { 40, { NODE_ACTIONS, PROCESS_ACTIONS, NETWORK_ACTIONS }, 23 },
    [STORY_CHURN] = { 50, { NODE_ACTIONS, ACTION_FAULTS, ACTION_COMPACT }, 12 },
    [STORY_ELECTION] = { 30,
                         { PROCESS_ACTIONS, ACTION_DISCONNECT, ACTION_STATE_ERASE,
                           ACTION_DATA_ERASE },
                         10 },
    [STORY_WIRE] = { 30,
                     { NETWORK_ACTIONS, ACTION_NODE_ADD, ACTION_NODE_REMOVE, ACTION_STATE_ERASE },
                     9 },
    [STORY_QUIET] = { 4, { ACTION_NODE_ADD, ACTION_STATE_ERASE, ACTION_CRASH }, 3 },
    [STORY_SERVICE] = { 56,
                        { SERVICE_ACTIONS, MANUAL_ACTIONS, ACTION_CONFIG_CHANGE,
                          ACTION_CONFIG_BREAK, ACTION_NOTIFY_FAIL, ACTION_CRASH,
                          ACTION_CRASH_BEFORE, ACTION_CRASH_AFTER, ACTION_STOP, ACTION_FREEZE,
                          NETWORK_ACTIONS },
                        31 },
    [STORY_RELAY] = { 50,
                      { SERVICE_ACTIONS, ACTION_CRASH, ACTION_CRASH_BEFORE, ACTION_CRASH_AFTER,
                        ACTION_CRASH_BEFORE, ACTION_CRASH_AFTER, ACTION_FREEZE, ACTION_FREEZE,
                        ACTION_STOP, ACTION_DISCONNECT, ACTION_STALL, ACTION_FAULTS,
                        ACTION_NODE_TOUCH, ACTION_LATE_WRITE, ACTION_LATE_WRITE,
                        ACTION_LATE_WRITE },
                      23 },
    [STORY_DRAIN] = { 50,
                      { SERVICE_ACTIONS, ACTION_CORDON, ACTION_UNCORDON, ACTION_CRASH,
                        ACTION_CRASH_BEFORE, ACTION_CRASH_AFTER, ACTION_FREEZE, ACTION_STALL,
                        ACTION_FAULTS, ACTION_NODE_ADD, ACTION_NODE_REBOOT, ACTION_NODE_REMOVE,
                        ACTION_PDB_BLOCK },
                      20 },
    [STORY_REQUESTS] = { 40,
                         { REQUEST_ACTIONS,       ACTION_REQUEST_DELETE, ACTION_LIMIT_PAUSE,
                           ACTION_LIMIT_LOWER,    ACTION_LIMIT_ADD,      ACTION_LIMIT_DELETE,
                           ACTION_NODE_RELABEL,   ACTION_CRASH_AT_WRITE, ACTION_CRASH_AT_WRITE,
                           ACTION_CRASH_AT_WRITE, ACTION_LATE_WRITE,     ACTION_LATE_WRITE,
                           ACTION_NEED,           ACTION_NODE_ADD,       ACTION_NODE_REMOVE,
                           ACTION_NODE_REPLACE,   ACTION_NODE_REBOOT,    ACTION_CORDON,
                           ACTION_UNCORDON,       ACTION_PDB_BLOCK,      ACTION_CRASH,
                           ACTION_STOP,           ACTION_FREEZE,         ACTION_CLOCK_STEP,
                           ACTION_DISCONNECT,     ACTION_STALL,          ACTION_FAULTS,
                           ACTION_FAULTS,         ACTION_SERVER_DOWN,    ACTION_SERVER_RESTART,
                           ACTION_COMPACT },
                         38 },
    [STORY_BRIDGE] = { 64,
                       { MACHINE_ACTIONS,
                         MACHINE_ACTIONS,
                         ACTION_MACHINE_FORGE,
                         ACTION_MACHINE_PAUSE,
                         ACTION_CLUSTER_PAUSE,
                         ACTION_CLUSTER_DELETE,
                         ACTION_CLUSTER_NEW,
                         ACTION_TOKEN_ROTATE,
                         ACTION_SECRET_BAD,
                         ACTION_SECRET_BAD,
                         ACTION_SECRET_DELETE,
                         ACTION_WORKLOAD_NODE_DELETE,
                         ACTION_WORKLOAD_NODE_REPLACE,
                         ACTION_WORKLOAD_NODE_STATE,
                         ACTION_WORKLOAD_NODE_APPROVE,
                         ACTION_WORKLOAD_NODE_FORGE,
                         WORKLOAD_ACTIONS,
                         ACTION_CRASH,
                         ACTION_CRASH_AT_WRITE,
                         ACTION_CRASH_AT_WRITE,
                         ACTION_LATE_WRITE,
                         ACTION_STOP,
                         ACTION_FREEZE,
                         ACTION_CLOCK_STEP,
                         ACTION_DISCONNECT,
                         ACTION_STALL,
                         ACTION_FAULTS,
                         ACTION_SERVER_DOWN,
                         ACTION_SERVER_RESTART,
                         ACTION_COMPACT,
                         DRAIN_RULE_ACTIONS },
                       65 },
    [STORY_ESX] = { 60,
                    { ACTION_ESX_HOST,       ACTION_ESX_HOST,    ACTION_ESX_HOST,
                      ACTION_ESX_HOST,       ACTION_ESX_APPROVE, ACTION_ESX_APPROVE,
                      ACTION_ESX_APPROVE,    ACTION_ESX_APPROVE, ACTION_ESX_UNAPPROVE,
                      ACTION_ESX_MOVE,       ACTION_ESX_SESSION, ACTION_ESX_VCENTER_DOWN,
                      ACTION_CORDON,         ACTION_UNCORDON,    ACTION_CRASH,
                      ACTION_CRASH_BEFORE,   ACTION_CRASH_AFTER, ACTION_CRASH_AT_WRITE,
                      ACTION_STOP,           ACTION_FREEZE,      ACTION_FREEZE,
                      ACTION_CLOCK_STEP,     ACTION_DISCONNECT,  ACTION_STALL,
                      ACTION_FAULTS,         ACTION_FAULTS,      ACTION_SERVER_DOWN,
                      ACTION_SERVER_RESTART, ACTION_COMPACT },
                    29 },
    [STORY_OPERATIONS] = { 40,
                           { OPERATION_ACTIONS,     OPERATION_ACTIONS,     ACTION_NODE_ADD,
                             ACTION_NODE_REMOVE,    ACTION_NODE_REPLACE,   ACTION_NODE_REBOOT,
                             ACTION_NODE_TOUCH,     ACTION_CORDON,         ACTION_CORDON,
                             ACTION_UNCORDON,       ACTION_UNCORDON,       ACTION_PDB_BLOCK,
                             ACTION_LIMIT_PAUSE,    ACTION_LIMIT_LOWER,    ACTION_PAUSE_ALL,
                             ACTION_CRASH_AT_WRITE, ACTION_CRASH_AT_WRITE, ACTION_CRASH_AT_WRITE,
                             ACTION_CRASH_AT_WRITE, ACTION_LATE_WRITE,     ACTION_LATE_WRITE,
                             ACTION_CRASH,          ACTION_CRASH_BEFORE,   ACTION_CRASH_AFTER,
                             ACTION_STOP,           ACTION_FREEZE,         ACTION_CLOCK_STEP,
                             ACTION_DISCONNECT,     ACTION_STALL,          ACTION_FAULTS,
                             ACTION_FAULTS,         ACTION_SERVER_DOWN,    ACTION_SERVER_RESTART,
                             ACTION_COMPACT },
                           40 },
};

static usec_t action_duration(enum action_kind kind, struct rng *rng)
{
    switch (kind) {
    case ACTION_CLOCK_STEP:
        return rng_usec(rng, -HOURS(2), HOURS(2));
    case ACTION_LATE_WRITE:
        return rng_usec(rng, SECONDS(18), SECONDS(50)); /* a lease lasts 15 */
    case ACTION_LIMIT_PAUSE:
    case ACTION_LIMIT_LOWER:
        return rng_usec(rng, SECONDS(5), MINUTES(3));
    case ACTION_PAUSE_ALL:
    case ACTION_PROMETHEUS_NO:
        return rng_usec(rng, MINUTES(1), MINUTES(6)); /* longer than an answer counts */
    case ACTION_PDB_BLOCK:
        return rng_usec(rng, SECONDS(30), MINUTES(5)); /* evictionTimeout is 2 minutes */
    case ACTION_FREEZE:
    case ACTION_DISCONNECT:
    case ACTION_STALL:
    case ACTION_WORKLOAD_DISCONNECT:
    case ACTION_WORKLOAD_STALL:
        /* Short ones test patience, long ones outlive the lease and the silence that is allowed. */
        return rng_chance(rng, 500) ? rng_usec(rng, MSECONDS(100), SECONDS(12))
                                    : rng_usec(rng, SECONDS(12), MINUTES(4));
    default:
        return rng_usec(rng, SECONDS(1), MINUTES(2));
    }
}

static void scenario_add_action(struct scenario *p, const struct story_actions *choices,
                                struct rng *rng)
{
    struct action *action = &p->actions[p->n++];
    action->kind = choices->kinds[rng_below(rng, choices->n)];
    action->at = rng_usec(rng, 0, p->fault_time);
    action->duration = action_duration(action->kind, rng);
    action->pick = rng_below(rng, 1u << 16);
    action->variant = rng_below(rng, 1u << 16);
}

bool story_has_config(enum story story)
{
    return story >= STORY_SERVICE && story <= STORY_DRAIN;
}

bool story_has_requests(enum story story)
{
    return story == STORY_REQUESTS;
}

bool story_has_operations(enum story story)
{
    return story == STORY_OPERATIONS;
}

bool story_has_bridge(enum story story)
{
    return story == STORY_BRIDGE;
}

static void scenario_draw_config(struct scenario *p, struct rng *rng)
{
    p->config_options = (struct random_config_options){
        .limited = p->story == STORY_RELAY || rng_chance(rng, 700),
        .tight = p->story == STORY_RELAY || rng_chance(rng, 300),
        .drains = p->story == STORY_DRAIN || (p->story == STORY_RELAY && rng_chance(rng, 600)),
        .profiles = 1 + rng_below(rng, RANDOM_CONFIG_PROFILES_MAX),
    };
    p->nodes = 2 + rng_below(rng, 9);
    p->calm = MINUTES(45);
    if (p->story == STORY_RELAY) {
        p->processes = 2 + rng_below(rng, SCENARIO_PROCESSES_MAX - 1);
        p->elect = true;
        /* Replies that take their time leave room for two leaders' writes to meet. */
        p->latency = 1 + rng_below(rng, 400);
    }
}

static void scenario_draw_requests(struct scenario *p, struct rng *rng)
{
    p->nodes = 3 + rng_below(rng, 6);
    p->processes = rng_chance(rng, 850) ? 2 : 1 + rng_below(rng, SCENARIO_PROCESSES_MAX);
    p->elect = rng_chance(rng, 450); /* otherwise all of them believe that they lead */
    p->fault_time = MINUTES(3) + SECONDS(rng_below(rng, 240));
    p->calm = MINUTES(45);
    p->quiet_time = MINUTES(6);
    p->latency = rng_chance(rng, 500) ? 1 + rng_below(rng, 40) : 1 + rng_below(rng, 400);
    p->config_options.profiles = 1;
}

static void scenario_draw_operations(struct scenario *p, struct rng *rng)
{
    p->nodes = 4 + rng_below(rng, 9);
    p->processes = 2;
    p->elect = true;
    p->fault_time = MINUTES(12) + SECONDS(rng_below(rng, 900));
    p->config_options.profiles = 1;
    p->calm = HOURS(4); /* windows open some minutes an hour, and machines go one by one */
    p->quiet_time = MINUTES(10);
    p->latency = rng_chance(rng, 600) ? 1 + rng_below(rng, 40) : 1 + rng_below(rng, 400);
}

static void scenario_draw_bridge(struct scenario *p, struct rng *rng)
{
    p->clusters = 2 + rng_below(rng, 3);
    p->nodes = p->clusters * 3; /* more or less */
    p->processes = 1 + rng_below(rng, SCENARIO_PROCESSES_MAX);
    p->elect = p->processes > 1 || rng_chance(rng, 700);
    p->fault_time = MINUTES(4) + SECONDS(rng_below(rng, 300));
    p->calm = MINUTES(25);
    p->quiet_time = MINUTES(10);
    p->latency = rng_chance(rng, 700) ? 1 + rng_below(rng, 40) : 1 + rng_below(rng, 400);
}

/* Hosts come and go slowly: such a run has time for several of their maintenances. */
static void scenario_draw_esx(struct scenario *p, struct rng *rng)
{
    p->nodes = 2 + rng_below(rng, 7);
    p->processes = 2 + rng_below(rng, SCENARIO_PROCESSES_MAX - 1);
    p->elect = true;
    p->fault_time = MINUTES(12) + SECONDS(rng_below(rng, 480));
    p->calm = MINUTES(30);
    p->quiet_time = MINUTES(5);
    p->config_options.profiles = 1;
}

/* Half of the bridge's runs have Metal3. By draws of their own: the others are what they were
 * before it was told of. Nothing happens to a host whose Machine asks for nothing, so some ask. */
static void scenario_draw_metal3(struct scenario *p)
{
    static const struct story_actions choices = {
        24,
        { ACTION_MACHINE_MAINTAIN, ACTION_MACHINE_MAINTAIN, ACTION_MACHINE_MAINTAIN,
          ACTION_MACHINE_DELETE, ACTION_HOST_REASSIGN, ACTION_HOST_REASSIGN, ACTION_HOST_DELETE,
          ACTION_HOST_STATE, ACTION_HOST_ANNOTATE, ACTION_HOST_ANNOTATE, ACTION_HOST_STRIP,
          ACTION_HOST_STRIP, ACTION_HOST_FORGE, ACTION_HOST_PAUSE, ACTION_HOST_DETACH,
          ACTION_HOST_POWER_MODE, ACTION_HOST_POD, ACTION_CRASH_AT_WRITE },
        18,
    };
    struct rng rng;
    rng_init(&rng, p->seed ^ 0x58f1c2e3ULL);
    p->hosts = rng_chance(&rng, 500);
    for (uint32_t n = choices.actions / 2 + rng_below(&rng, choices.actions / 2 + 1);
         p->hosts && n > 0; n--) {
        scenario_add_action(p, &choices, &rng);
    }
}

/* What else happens where a configuration serves nodes. By draws of their own: the rest of the run
 * is what it was before. */
static void scenario_draw_service(struct scenario *p)
{
    static const struct story_actions choices = { 6,
                                                  { ACTION_PROMETHEUS_NO, ACTION_PROFILE_DROP },
                                                  2 };
    struct rng rng;
    rng_init(&rng, p->seed ^ 0x7c1f09a5ULL);
    p->messages_end = rng_chance(&rng, 150) ? rng_usec(&rng, 0, p->fault_time) : USEC_NEVER;
    for (uint32_t n = rng_below(&rng, choices.actions + 1); n > 0 && p->n < SCENARIO_ACTIONS_MAX;
         n--) {
        scenario_add_action(p, &choices, &rng);
    }
}

/* Sometimes somebody stops everything. Only where the Lease is read: without election a watch that
 * is cut does not know of it. */
static void scenario_draw_pause(struct scenario *p)
{
    static const struct story_actions choices = { 2, { ACTION_PAUSE_ALL }, 1 };
    struct rng rng;
    rng_init(&rng, p->seed ^ 0x2b9e6d13ULL);
    for (uint32_t n = p->elect && rng_chance(&rng, 350) ? 1 + rng_below(&rng, choices.actions) : 0;
         n > 0 && p->n < SCENARIO_ACTIONS_MAX; n--) {
        scenario_add_action(p, &choices, &rng);
    }
}

/* Sometimes somebody gives up what is under way, by draws of their own likewise. */
static void scenario_draw_abort(struct scenario *p)
{
    static const struct story_actions choices = { 3, { ACTION_ABORT }, 1 };
    struct rng rng;
    rng_init(&rng, p->seed ^ 0x61c88647ULL);
    for (uint32_t n = rng_chance(&rng, 400) ? 1 + rng_below(&rng, choices.actions) : 0;
         n > 0 && p->n < SCENARIO_ACTIONS_MAX; n--) {
        scenario_add_action(p, &choices, &rng);
    }
}

static int action_compare(const void *left, const void *right)
{
    const struct action *a = left;
    const struct action *b = right;
    if (a->at != b->at) {
        return a->at < b->at ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return a->pick < b->pick ? -1 : a->pick > b->pick;
}

/* One seed in six tells of requests, one in eight of the others of the bridge, one in twenty of the
 * rest of ESX hosts. By draws of their own: all others are what they were before those stories were
 * told. */
static enum story story_redraw(uint64_t seed, enum story drawn)
{
    struct rng rng;
    rng_init(&rng, seed ^ 0x3d0c4a7bULL);
    if (rng_below(&rng, 6) == 0) {
        return STORY_REQUESTS;
    }
    rng_init(&rng, seed ^ 0xb41d6e09ULL);
    if (rng_below(&rng, 8) == 0) {
        return STORY_BRIDGE;
    }
    rng_init(&rng, seed ^ 0x3c6ef372ULL);
    return rng_below(&rng, 20) == 0 ? STORY_ESX : drawn;
}

void scenario_make(struct scenario *p, uint64_t seed, enum story story)
{
    struct rng rng;
    rng_init(&rng, seed);
    /* Quiet runs are long, and prove little besides that nothing happens: one in sixteen. */
    static const enum story frequent[] = { STORY_STORM,   STORY_CHURN, STORY_ELECTION, STORY_WIRE,
                                           STORY_SERVICE, STORY_RELAY, STORY_DRAIN };
    enum story drawn =
        rng_chance(&rng, 62) ? STORY_QUIET : frequent[rng_below(&rng, ARRAY_LEN(frequent))];
    drawn = story_redraw(seed, drawn);
    *p = (struct scenario){
        .seed = seed,
        .story = story == STORY_COUNT ? drawn : story,
        .nodes = 1 + rng_below(&rng, 12),
        .processes = 1 + rng_below(&rng, SCENARIO_PROCESSES_MAX),
        .fault_time = MINUTES(3 + rng_below(&rng, 12)),
        .calm = MINUTES(8),
        .quiet_time = MINUTES(10),
        .latency = 1 + rng_below(&rng, 40),
        .messages_end = USEC_NEVER,
    };
    p->elect = p->processes > 1 || rng_chance(&rng, 700);
    if (p->story == STORY_QUIET) {
        p->nodes = 1000 + rng_below(&rng, 2000); /* the fleets drydock is for */
        p->quiet_time = HOURS(12);
    }
    if (p->story == STORY_ELECTION) {
        p->processes = 2 + rng_below(&rng, SCENARIO_PROCESSES_MAX - 1);
        p->elect = true;
    }
    if (story_has_config(p->story)) {
        scenario_draw_config(p, &rng);
    }
    if (story_has_requests(p->story)) {
        scenario_draw_requests(p, &rng);
    }
    if (story_has_bridge(p->story)) {
        scenario_draw_bridge(p, &rng);
    }
    if (p->story == STORY_ESX) {
        scenario_draw_esx(p, &rng);
    }
    if (story_has_operations(p->story)) {
        scenario_draw_operations(p, &rng);
    }
    for (uint32_t i = 0; i < p->processes; i++) {
        /* Quartz is good to 100 ppm; a virtual machine's clock is worse. */
        p->drift[i] = (int32_t)rng_below(&rng, 4001) - 2000;
        p->skew[i] = rng_usec(&rng, -MINUTES(10), MINUTES(10));
    }
    uint32_t count = story_choices[p->story].actions / 2 +
                     rng_below(&rng, story_choices[p->story].actions / 2 + 1);
    while (p->n < count) {
        scenario_add_action(p, &story_choices[p->story], &rng);
    }
    if (story_has_bridge(p->story)) {
        scenario_draw_metal3(p);
    }
    if (story_has_config(p->story)) {
        scenario_draw_service(p);
        scenario_draw_pause(p);
        scenario_draw_abort(p);
    }
    qsort(p->actions, p->n, sizeof(p->actions[0]), action_compare);
}

int scenario_keep(struct scenario *p, struct str indices, struct err *err)
{
    struct action kept[SCENARIO_ACTIONS_MAX];
    uint32_t n = 0;
    struct str piece;
    while (indices.n > 0 && str_split_next(&indices, ',', &piece)) {
        uint32_t i;
        if (!str_to_u32(piece, &i) || i >= p->n || n == SCENARIO_ACTIONS_MAX) {
            return err_set(err, ERR_INVALID, "deed '" STR_FMT "': want a number below %u",
                           STR_ARG(piece), p->n);
        }
        kept[n++] = p->actions[i];
    }
    if (n > 0) {
        memcpy(p->actions, kept, n * sizeof(kept[0]));
    }
    p->n = n;
    return 0;
}

const char *story_name(enum story story)
{
    return story < STORY_COUNT ? story_names[story] : "any";
}

bool story_find(struct str name, enum story *ret)
{
    for (unsigned i = 0; i < STORY_COUNT; i++) {
        if (str_eq(str_from(story_names[i]), name)) {
            *ret = (enum story)i;
            return true;
        }
    }
    return false;
}

const char *action_name(enum action_kind kind)
{
    return action_names[kind];
}
