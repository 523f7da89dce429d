/*
 * random_config: a configuration made from a seed, as data that the promises can judge by, and as the
 * text of a maintenance.yaml that controllers read.
 *
 * Its profiles p0 … take a node from operational over maintenance-required into maintenance and
 * back; what each step asks for, does and tells is drawn. A node needs maintenance by a profile's
 * label, is approved by an annotation, and is done when the label is gone.
 */
#pragma once

#include "base/buf.h"
#include "base/rng.h"

#define BLUEPRINT_PROFILES_MAX 3u
#define BLUEPRINT_NOTICES 3u
#define BLUEPRINT_LIMITS 2u
#define BLUEPRINT_DAY_START (8 * 3600) /* trials begin at 08:00 UTC, see trial.c */

#define BLUEPRINT_APPROVED STR("example.com/approved")
#define BLUEPRINT_STARTED STR("example.com/started") /* label: set going in, removed coming out */
#define BLUEPRINT_PHASE STR("example.com/phase")     /* annotation: likewise */
#define BLUEPRINT_HOLD STR("example.com/hold")       /* finalizer: likewise */
#define BLUEPRINT_GO STR("example.com/go")           /* label that anyLabel looks for */
#define BLUEPRINT_VERSION STR("example.com/version") /* label that clusterSemver looks at */
#define BLUEPRINT_ZONE STR("topology.kubernetes.io/zone")

/* What a step asks for; all of them must hold. */
enum blueprint_check {
    ASKS_NEED,
    ASKS_DONE, /* the need is gone */
    ASKS_APPROVED,
    ASKS_LIMIT_0,
    ASKS_LIMIT_1,
    ASKS_WINDOW,
    ASKS_WAIT,
    ASKS_WAIT_EXCLUDE,
    ASKS_STAGGER,
    ASKS_COUNT,
    ASKS_READY,
    ASKS_ANY,
    ASKS_PROMETHEUS,
    ASKS_NEWER,
    ASKS_PODS, /* affinity */
    ASKS,
};

/* What a step does to the node, in this order. */
enum blueprint_trigger {
    DOES_CORDON,
    DOES_DRAIN,
    DOES_UNCORDON,
    DOES_MARK,   /* label, annotation and finalizer are set */
    DOES_UNMARK, /* and removed */
};

#define BIT(n) (1u << (n))

enum blueprint_state { STATE_OPERATIONAL, STATE_REQUIRED, STATE_MAINTENANCE, STATE_COUNT };

struct blueprint_step {
    enum blueprint_state from;
    enum blueprint_state to;
    uint32_t asks; /* bits of enum blueprint_check */
    uint32_t does; /* bits of enum blueprint_trigger */
};

struct blueprint_profile {
    struct blueprint_step steps[4];
    uint32_t step_n;
    uint32_t enter[STATE_COUNT];  /* bits of enum blueprint_trigger */
    uint32_t notify[STATE_COUNT]; /* bits of notices */
};

struct blueprint_limit {
    uint32_t max;
    bool by_zone;
    int32_t profile;   /* -1: any */
    usec_t skip_after; /* 0: never */
};

enum blueprint_schedule { NOTICE_AT_ENTRY, NOTICE_ONCE, NOTICE_DAILY };

struct blueprint_notice {
    uint32_t kind; /* webhook, slack, mail */
    enum blueprint_schedule schedule;
};

struct blueprint {
    struct blueprint_profile profiles[BLUEPRINT_PROFILES_MAX];
    uint32_t profile_n;
    struct blueprint_limit limits[BLUEPRINT_LIMITS];
    struct blueprint_notice notices[BLUEPRINT_NOTICES];
    uint32_t window_open; /* minutes of the day */
    uint32_t window_close;
    usec_t wait;
    usec_t stagger;
    uint32_t stagger_parallel;
    bool force;
};

/* What the drawing is to contain. */
struct blueprint_wish {
    bool limited; /* each way into maintenance has a limit; otherwise none has */
    bool tight;   /* limits are 1 */
    bool drains;  /* each way into maintenance drains */
    uint32_t profiles;
};

void blueprint_make(struct blueprint *b, uint64_t seed, const struct blueprint_wish *wish);
void blueprint_print(const struct blueprint *b, struct buf *out);

const char *blueprint_state_name(enum blueprint_state state);
bool blueprint_state_find(struct str name, enum blueprint_state *ret);
/* The step of a profile between two states; NULL when there is none. */
const struct blueprint_step *blueprint_step_find(const struct blueprint *b, uint32_t profile,
                                                 enum blueprint_state from,
                                                 enum blueprint_state to);
/* "p1" → 1; false for the names of others. */
bool blueprint_profile_find(const struct blueprint *b, struct str name, uint32_t *ret);
