#include "tests/swarm/scenario.h"

#include "base/rng.h"

static const char *const story_names[STORIES] = {
    [STORY_STORM] = "storm",   [STORY_CHURN] = "churn", [STORY_ELECTION] = "election",
    [STORY_WIRE] = "wire",     [STORY_QUIET] = "quiet", [STORY_SERVICE] = "service",
    [STORY_RELAY] = "relay",   [STORY_DRAIN] = "drain", [STORY_REQUESTS] = "requests",
    [STORY_BRIDGE] = "bridge",
};

static const char *const deed_names[DEED_KINDS] = {
    [DEED_NODE_ADD] = "node-add",
    [DEED_NODE_REMOVE] = "node-remove",
    [DEED_NODE_REPLACE] = "node-replace",
    [DEED_NODE_REBOOT] = "node-reboot",
    [DEED_NODE_TOUCH] = "node-touch",
    [DEED_STATE_ERASE] = "state-erase",
    [DEED_STATE_FORGE] = "state-forge",
    [DEED_DATA_ERASE] = "data-erase",
    [DEED_DATA_BREAK] = "data-break",
    [DEED_PROFILE_SET] = "profile-set",
    [DEED_CRASH] = "crash",
    [DEED_CRASH_BEFORE] = "crash-before-effect",
    [DEED_CRASH_AFTER] = "crash-after-effect",
    [DEED_START] = "start",
    [DEED_STOP] = "stop",
    [DEED_FREEZE] = "freeze",
    [DEED_CLOCK_STEP] = "clock-step",
    [DEED_CUT] = "cut",
    [DEED_STALL] = "stall",
    [DEED_WEATHER] = "weather",
    [DEED_SERVER_DOWN] = "server-down",
    [DEED_SERVER_RESTART] = "server-restart",
    [DEED_COMPACT] = "compact",
    [DEED_NEED] = "need",
    [DEED_DONE] = "done",
    [DEED_APPROVE] = "approve",
    [DEED_REVOKE] = "revoke",
    [DEED_CORDON] = "cordon",
    [DEED_UNCORDON] = "uncordon",
    [DEED_GO] = "go",
    [DEED_VERSION] = "version",
    [DEED_CONFIG_OTHER] = "config-other",
    [DEED_CONFIG_BROKEN] = "config-broken",
    [DEED_LATE] = "late",
    [DEED_DEAF] = "deaf",
    [DEED_HOLD] = "hold",
    [DEED_ASK] = "ask",
    [DEED_REQUEST_DELETE] = "request-delete",
    [DEED_LIMIT_PAUSE] = "limit-pause",
    [DEED_LIMIT_LOWER] = "limit-lower",
    [DEED_LIMIT_ADD] = "limit-add",
    [DEED_LIMIT_DELETE] = "limit-delete",
    [DEED_RELABEL] = "relabel",
    [DEED_CRASH_STEP] = "crash-step",
    [DEED_MACHINE_NEW] = "machine-new",
    [DEED_MACHINE_DELETE] = "machine-delete",
    [DEED_MACHINE_ENABLE] = "machine-enable",
    [DEED_MACHINE_MAINTAIN] = "machine-maintain",
    [DEED_MACHINE_WITHDRAW] = "machine-withdraw",
    [DEED_MACHINE_FORGE] = "machine-forge",
    [DEED_MACHINE_PAUSE] = "machine-pause",
    [DEED_CLUSTER_PAUSE] = "cluster-pause",
    [DEED_CLUSTER_DELETE] = "cluster-delete",
    [DEED_CLUSTER_NEW] = "cluster-new",
    [DEED_TOKEN] = "token",
    [DEED_SECRET_BAD] = "secret-bad",
    [DEED_SECRET_GONE] = "secret-gone",
    [DEED_RULE] = "rule",
    [DEED_RULE_LABEL] = "rule-label",
    [DEED_PEER_DELETE] = "peer-delete",
    [DEED_PEER_REPLACE] = "peer-replace",
    [DEED_PEER_STATE] = "peer-state",
    [DEED_PEER_EAGER] = "peer-eager",
    [DEED_PEER_RULES] = "peer-rules",
    [DEED_PEER_HOSTILE] = "peer-hostile",
    [DEED_FAR_CUT] = "far-cut",
    [DEED_FAR_STALL] = "far-stall",
    [DEED_FAR_WEATHER] = "far-weather",
    [DEED_FAR_SLOW] = "far-slow",
    [DEED_FAR_RESTART] = "far-restart",
    [DEED_FAR_COMPACT] = "far-compact",
    [DEED_HOST_GIVE] = "host-give",
    [DEED_HOST_DELETE] = "host-delete",
    [DEED_HOST_STATE] = "host-state",
    [DEED_HOST_NOTE] = "host-note",
    [DEED_HOST_STRIP] = "host-strip",
    [DEED_HOST_FORGE] = "host-forge",
    [DEED_HOST_PAUSE] = "host-pause",
    [DEED_HOST_DETACH] = "host-detach",
    [DEED_HOST_MODE] = "host-mode",
    [DEED_HOST_POD] = "host-pod",
};

/* Which deeds a story draws from; `n` of them, more or less. */
struct story_shape {
    uint32_t deeds;
    enum deed_kind kinds[DEED_KINDS];
    uint32_t n;
};

#define NODE_DEEDS                                                                                 \
    DEED_NODE_ADD, DEED_NODE_REMOVE, DEED_NODE_REPLACE, DEED_NODE_REBOOT, DEED_NODE_TOUCH,         \
        DEED_STATE_ERASE, DEED_STATE_FORGE, DEED_DATA_ERASE, DEED_DATA_BREAK, DEED_PROFILE_SET
#define PROCESS_DEEDS                                                                              \
    DEED_CRASH, DEED_CRASH_BEFORE, DEED_CRASH_AFTER, DEED_START, DEED_STOP, DEED_FREEZE,           \
        DEED_CLOCK_STEP
#define OUTBOUND_DEEDS                                                                             \
    DEED_CUT, DEED_STALL, DEED_WEATHER, DEED_SERVER_DOWN, DEED_SERVER_RESTART, DEED_COMPACT

/* Needs and approvals come often enough for something to be under way all the time. */
#define SERVICE_DEEDS                                                                              \
    DEED_NEED, DEED_NEED, DEED_NEED, DEED_NEED, DEED_APPROVE, DEED_APPROVE, DEED_DONE, DEED_REVOKE
#define HAND_DEEDS                                                                                 \
    DEED_CORDON, DEED_UNCORDON, DEED_GO, DEED_VERSION, DEED_NODE_ADD, DEED_NODE_REMOVE,            \
        DEED_NODE_REPLACE, DEED_NODE_REBOOT, DEED_NODE_TOUCH

#define MACHINE_DEEDS                                                                              \
    DEED_MACHINE_NEW, DEED_MACHINE_NEW, DEED_MACHINE_DELETE, DEED_MACHINE_DELETE,                  \
        DEED_MACHINE_DELETE, DEED_MACHINE_DELETE, DEED_MACHINE_ENABLE, DEED_MACHINE_MAINTAIN,      \
        DEED_MACHINE_MAINTAIN, DEED_MACHINE_MAINTAIN, DEED_MACHINE_WITHDRAW, DEED_MACHINE_WITHDRAW
#define FAR_DEEDS                                                                                  \
    DEED_FAR_CUT, DEED_FAR_STALL, DEED_FAR_WEATHER, DEED_FAR_SLOW, DEED_FAR_RESTART,               \
        DEED_FAR_COMPACT

/* Rules that nobody asks by are no matter: what happens to them happens often. */
#define RULE_DEEDS                                                                                 \
    DEED_RULE, DEED_RULE, DEED_RULE, DEED_RULE_LABEL, DEED_RULE_LABEL, DEED_PEER_RULES,            \
        DEED_PEER_RULES, DEED_PEER_RULES

#define ASK_DEEDS DEED_ASK, DEED_ASK, DEED_ASK, DEED_ASK, DEED_ASK, DEED_ASK, DEED_ASK, DEED_ASK

static const struct story_shape shapes[STORIES] = {
    [STORY_STORM] = { 40, { NODE_DEEDS, PROCESS_DEEDS, OUTBOUND_DEEDS }, 23 },
    [STORY_CHURN] = { 50, { NODE_DEEDS, DEED_WEATHER, DEED_COMPACT }, 12 },
    [STORY_ELECTION] = { 30, { PROCESS_DEEDS, DEED_CUT, DEED_STATE_ERASE, DEED_DATA_ERASE }, 10 },
    [STORY_WIRE] = { 30, { OUTBOUND_DEEDS, DEED_NODE_ADD, DEED_NODE_REMOVE, DEED_STATE_ERASE }, 9 },
    [STORY_QUIET] = { 4, { DEED_NODE_ADD, DEED_STATE_ERASE, DEED_CRASH }, 3 },
    [STORY_SERVICE] = { 56,
                        { SERVICE_DEEDS, HAND_DEEDS, DEED_CONFIG_OTHER, DEED_CONFIG_BROKEN,
                          DEED_DEAF, DEED_CRASH, DEED_CRASH_BEFORE, DEED_CRASH_AFTER, DEED_STOP,
                          DEED_FREEZE, OUTBOUND_DEEDS },
                        31 },
    [STORY_RELAY] = { 50,
                      { SERVICE_DEEDS, DEED_CRASH, DEED_CRASH_BEFORE, DEED_CRASH_AFTER,
                        DEED_CRASH_BEFORE, DEED_CRASH_AFTER, DEED_FREEZE, DEED_FREEZE, DEED_STOP,
                        DEED_CUT, DEED_STALL, DEED_WEATHER, DEED_NODE_TOUCH, DEED_LATE, DEED_LATE,
                        DEED_LATE },
                      23 },
    [STORY_DRAIN] = { 50,
                      { SERVICE_DEEDS, DEED_CORDON, DEED_UNCORDON, DEED_CRASH, DEED_CRASH_BEFORE,
                        DEED_CRASH_AFTER, DEED_FREEZE, DEED_STALL, DEED_WEATHER, DEED_NODE_ADD,
                        DEED_NODE_REBOOT, DEED_NODE_REMOVE, DEED_HOLD },
                      20 },
    [STORY_REQUESTS] = { 40,
                         { ASK_DEEDS,         DEED_REQUEST_DELETE, DEED_LIMIT_PAUSE,
                           DEED_LIMIT_LOWER,  DEED_LIMIT_ADD,      DEED_LIMIT_DELETE,
                           DEED_RELABEL,      DEED_CRASH_STEP,     DEED_CRASH_STEP,
                           DEED_CRASH_STEP,   DEED_LATE,           DEED_LATE,
                           DEED_NEED,         DEED_NODE_ADD,       DEED_NODE_REMOVE,
                           DEED_NODE_REPLACE, DEED_NODE_REBOOT,    DEED_CORDON,
                           DEED_UNCORDON,     DEED_HOLD,           DEED_CRASH,
                           DEED_STOP,         DEED_FREEZE,         DEED_CLOCK_STEP,
                           DEED_CUT,          DEED_STALL,          DEED_WEATHER,
                           DEED_WEATHER,      DEED_SERVER_DOWN,    DEED_SERVER_RESTART,
                           DEED_COMPACT },
                         38 },
    [STORY_BRIDGE] = { 64,
                       { MACHINE_DEEDS,      MACHINE_DEEDS,       DEED_MACHINE_FORGE,
                         DEED_MACHINE_PAUSE, DEED_CLUSTER_PAUSE,  DEED_CLUSTER_DELETE,
                         DEED_CLUSTER_NEW,   DEED_TOKEN,          DEED_SECRET_BAD,
                         DEED_SECRET_BAD,    DEED_SECRET_GONE,    DEED_PEER_DELETE,
                         DEED_PEER_REPLACE,  DEED_PEER_STATE,     DEED_PEER_EAGER,
                         DEED_PEER_HOSTILE,  FAR_DEEDS,           DEED_CRASH,
                         DEED_CRASH_STEP,    DEED_CRASH_STEP,     DEED_LATE,
                         DEED_STOP,          DEED_FREEZE,         DEED_CLOCK_STEP,
                         DEED_CUT,           DEED_STALL,          DEED_WEATHER,
                         DEED_SERVER_DOWN,   DEED_SERVER_RESTART, DEED_COMPACT,
                         RULE_DEEDS },
                       65 },
};

static usec_t deed_span(enum deed_kind kind, struct rng *rng)
{
    switch (kind) {
    case DEED_CLOCK_STEP:
        return rng_usec(rng, -HOURS(2), HOURS(2));
    case DEED_LATE:
        return rng_usec(rng, SECONDS(18), SECONDS(50)); /* a lease lasts 15 */
    case DEED_LIMIT_PAUSE:
    case DEED_LIMIT_LOWER:
        return rng_usec(rng, SECONDS(5), MINUTES(3));
    case DEED_HOLD:
        return rng_usec(rng, SECONDS(30), MINUTES(5)); /* evictionTimeout is 2 minutes */
    case DEED_FREEZE:
    case DEED_CUT:
    case DEED_STALL:
    case DEED_FAR_CUT:
    case DEED_FAR_STALL:
        /* Short ones test patience, long ones outlive the lease and the silence that is allowed. */
        return rng_chance(rng, 500) ? rng_usec(rng, MSECONDS(100), SECONDS(12))
                                    : rng_usec(rng, SECONDS(12), MINUTES(4));
    default:
        return rng_usec(rng, SECONDS(1), MINUTES(2));
    }
}

static void plan_add_deed(struct plan *p, const struct story_shape *shape, struct rng *rng)
{
    struct deed *deed = &p->deeds[p->n++];
    deed->kind = shape->kinds[rng_below(rng, shape->n)];
    deed->at = rng_usec(rng, 0, p->wild);
    deed->span = deed_span(deed->kind, rng);
    deed->who = rng_below(rng, 1u << 16);
    deed->what = rng_below(rng, 1u << 16);
}

bool story_serves(enum story story)
{
    return story >= STORY_SERVICE && story <= STORY_DRAIN;
}

bool story_asks(enum story story)
{
    return story == STORY_REQUESTS;
}

bool story_bridges(enum story story)
{
    return story == STORY_BRIDGE;
}

static void plan_configure(struct plan *p, struct rng *rng)
{
    p->wish = (struct blueprint_wish){
        .limited = p->story == STORY_RELAY || rng_chance(rng, 700),
        .tight = p->story == STORY_RELAY || rng_chance(rng, 300),
        .drains = p->story == STORY_DRAIN || (p->story == STORY_RELAY && rng_chance(rng, 600)),
        .profiles = 1 + rng_below(rng, BLUEPRINT_PROFILES_MAX),
    };
    p->nodes = 2 + rng_below(rng, 9);
    p->calm = MINUTES(45);
    if (p->story == STORY_RELAY) {
        p->processes = 2 + rng_below(rng, PLAN_PROCESSES_MAX - 1);
        p->elect = true;
        /* Replies that take their time leave room for two leaders' writes to meet. */
        p->latency = 1 + rng_below(rng, 400);
    }
}

static void plan_ask(struct plan *p, struct rng *rng)
{
    p->nodes = 3 + rng_below(rng, 6);
    p->processes = rng_chance(rng, 850) ? 2 : 1 + rng_below(rng, PLAN_PROCESSES_MAX);
    p->elect = rng_chance(rng, 450); /* otherwise all of them believe that they lead */
    p->wild = MINUTES(3) + SECONDS(rng_below(rng, 240));
    p->calm = MINUTES(45);
    p->still = MINUTES(6);
    p->latency = rng_chance(rng, 500) ? 1 + rng_below(rng, 40) : 1 + rng_below(rng, 400);
    p->wish.profiles = 1;
}

static void plan_bridge(struct plan *p, struct rng *rng)
{
    p->clusters = 2 + rng_below(rng, 3);
    p->nodes = p->clusters * 3; /* more or less */
    p->processes = 1 + rng_below(rng, PLAN_PROCESSES_MAX);
    p->elect = p->processes > 1 || rng_chance(rng, 700);
    p->wild = MINUTES(4) + SECONDS(rng_below(rng, 300));
    p->calm = MINUTES(25);
    p->still = MINUTES(10);
    p->latency = rng_chance(rng, 700) ? 1 + rng_below(rng, 40) : 1 + rng_below(rng, 400);
}

/* Half of the bridge's runs have Metal3. By draws of their own: the others are what they were
 * before it was told of. Nothing happens to a host whose Machine asks for nothing, so some ask. */
static void plan_host(struct plan *p)
{
    static const struct story_shape shape = {
        24,
        { DEED_MACHINE_MAINTAIN, DEED_MACHINE_MAINTAIN, DEED_MACHINE_MAINTAIN, DEED_MACHINE_DELETE,
          DEED_HOST_GIVE, DEED_HOST_GIVE, DEED_HOST_DELETE, DEED_HOST_STATE, DEED_HOST_NOTE,
          DEED_HOST_NOTE, DEED_HOST_STRIP, DEED_HOST_STRIP, DEED_HOST_FORGE, DEED_HOST_PAUSE,
          DEED_HOST_DETACH, DEED_HOST_MODE, DEED_HOST_POD, DEED_CRASH_STEP },
        18,
    };
    struct rng rng;
    rng_init(&rng, p->seed ^ 0x58f1c2e3ULL);
    p->hosts = rng_chance(&rng, 500);
    for (uint32_t n = shape.deeds / 2 + rng_below(&rng, shape.deeds / 2 + 1); p->hosts && n > 0;
         n--) {
        plan_add_deed(p, &shape, &rng);
    }
}

static int deed_order(const void *left, const void *right)
{
    const struct deed *a = left;
    const struct deed *b = right;
    if (a->at != b->at) {
        return a->at < b->at ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return a->who < b->who ? -1 : a->who > b->who;
}

/* One seed in six tells of requests, one in eight of the others of the bridge. By draws of their
 * own: all others are what they were before those stories were told. */
static enum story story_instead(uint64_t seed, enum story drawn)
{
    struct rng rng;
    rng_init(&rng, seed ^ 0x3d0c4a7bULL);
    if (rng_below(&rng, 6) == 0) {
        return STORY_REQUESTS;
    }
    rng_init(&rng, seed ^ 0xb41d6e09ULL);
    return rng_below(&rng, 8) == 0 ? STORY_BRIDGE : drawn;
}

void plan_make(struct plan *p, uint64_t seed, enum story story)
{
    struct rng rng;
    rng_init(&rng, seed);
    /* Quiet runs are long, and prove little besides that nothing happens: one in sixteen. */
    static const enum story often[] = { STORY_STORM,   STORY_CHURN, STORY_ELECTION, STORY_WIRE,
                                        STORY_SERVICE, STORY_RELAY, STORY_DRAIN };
    enum story drawn =
        rng_chance(&rng, 62) ? STORY_QUIET : often[rng_below(&rng, ARRAY_LEN(often))];
    drawn = story_instead(seed, drawn);
    *p = (struct plan){
        .seed = seed,
        .story = story == STORIES ? drawn : story,
        .nodes = 1 + rng_below(&rng, 12),
        .processes = 1 + rng_below(&rng, PLAN_PROCESSES_MAX),
        .wild = MINUTES(3 + rng_below(&rng, 12)),
        .calm = MINUTES(8),
        .still = MINUTES(10),
        .latency = 1 + rng_below(&rng, 40),
    };
    p->elect = p->processes > 1 || rng_chance(&rng, 700);
    if (p->story == STORY_QUIET) {
        p->nodes = 1000 + rng_below(&rng, 2000); /* the fleets drydock is for */
        p->still = HOURS(12);
    }
    if (p->story == STORY_ELECTION) {
        p->processes = 2 + rng_below(&rng, PLAN_PROCESSES_MAX - 1);
        p->elect = true;
    }
    if (story_serves(p->story)) {
        plan_configure(p, &rng);
    }
    if (story_asks(p->story)) {
        plan_ask(p, &rng);
    }
    if (story_bridges(p->story)) {
        plan_bridge(p, &rng);
    }
    for (uint32_t i = 0; i < p->processes; i++) {
        /* Quartz is good to 100 ppm; a virtual machine's clock is worse. */
        p->drift[i] = (int32_t)rng_below(&rng, 4001) - 2000;
        p->skew[i] = rng_usec(&rng, -MINUTES(10), MINUTES(10));
    }
    uint32_t wanted = shapes[p->story].deeds / 2 + rng_below(&rng, shapes[p->story].deeds / 2 + 1);
    while (p->n < wanted) {
        plan_add_deed(p, &shapes[p->story], &rng);
    }
    if (story_bridges(p->story)) {
        plan_host(p);
    }
    qsort(p->deeds, p->n, sizeof(p->deeds[0]), deed_order);
}

int plan_keep(struct plan *p, struct str indices, struct err *err)
{
    struct deed kept[PLAN_DEEDS_MAX];
    uint32_t n = 0;
    struct str piece;
    while (indices.n > 0 && str_split_next(&indices, ',', &piece)) {
        uint32_t i;
        if (!str_to_u32(piece, &i) || i >= p->n || n == PLAN_DEEDS_MAX) {
            return err_set(err, ERR_INVALID, "deed '" STR_FMT "': want a number below %u",
                           STR_ARG(piece), p->n);
        }
        kept[n++] = p->deeds[i];
    }
    if (n > 0) {
        memcpy(p->deeds, kept, n * sizeof(kept[0]));
    }
    p->n = n;
    return 0;
}

const char *story_name(enum story story)
{
    return story < STORIES ? story_names[story] : "any";
}

bool story_find(struct str name, enum story *ret)
{
    for (unsigned i = 0; i < STORIES; i++) {
        if (str_eq(str_from(story_names[i]), name)) {
            *ret = (enum story)i;
            return true;
        }
    }
    return false;
}

const char *deed_name(enum deed_kind kind)
{
    return deed_names[kind];
}
