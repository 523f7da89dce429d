/*
 * random_config: a configuration made from a seed, as data that the promises can judge by, and as
 * the text of a maintenance.yaml that controllers read.
 *
 * Its profiles p0 … take a node from operational over maintenance-required into maintenance and
 * back; what each step asks for, does and tells is drawn. A node needs maintenance by a profile's
 * label, is approved by an annotation, and is done when the label is gone.
 */
#pragma once

#include "base/buf.h"
#include "base/rng.h"

#define RANDOM_CONFIG_PROFILES_MAX 3u
#define RANDOM_CONFIG_NOTIFICATIONS 3u
#define RANDOM_CONFIG_LIMITS 2u
#define RANDOM_CONFIG_DAY_START (8 * 3600) /* runs begin at 08:00 UTC, see run.c */

#define RANDOM_CONFIG_APPROVED STR("example.com/approved")
#define RANDOM_CONFIG_STARTED                                                                      \
    STR("example.com/started")                       /* label: set going in, removed coming out */
#define RANDOM_CONFIG_PHASE STR("example.com/phase") /* annotation: likewise */
#define RANDOM_CONFIG_HOLD STR("example.com/hold")   /* finalizer: likewise */
#define RANDOM_CONFIG_GO STR("example.com/go")       /* label that anyLabel looks for */
#define RANDOM_CONFIG_VERSION STR("example.com/version") /* label that clusterSemver looks at */
#define RANDOM_CONFIG_ZONE STR("topology.kubernetes.io/zone")

/* What a step asks for; all of them must hold. */
enum random_config_check {
    CONFIG_CHECK_NEED,
    CONFIG_CHECK_DONE, /* the need is gone */
    CONFIG_CHECK_APPROVED,
    CONFIG_CHECK_LIMIT_0,
    CONFIG_CHECK_LIMIT_1,
    CONFIG_CHECK_WINDOW,
    CONFIG_CHECK_WAIT,
    CONFIG_CHECK_WAIT_EXCLUDE,
    CONFIG_CHECK_STAGGER,
    CONFIG_CHECK_NODE_COUNT,
    CONFIG_CHECK_READY,
    CONFIG_CHECK_ANY_LABEL,
    CONFIG_CHECK_PROMETHEUS,
    CONFIG_CHECK_SEMVER,
    CONFIG_CHECK_AFFINITY, /* affinity */
    CONFIG_CHECK_COUNT,
};

/* What a step does to the node, in this order. */
enum random_config_trigger {
    CONFIG_TRIGGER_CORDON,
    CONFIG_TRIGGER_DRAIN,
    CONFIG_TRIGGER_UNCORDON,
    CONFIG_TRIGGER_MARK,   /* label, annotation and finalizer are set */
    CONFIG_TRIGGER_UNMARK, /* and removed */
};

#define CONFIG_BIT(n) (1u << (n))

enum random_config_state {
    CONFIG_STATE_OPERATIONAL,
    CONFIG_STATE_REQUIRED,
    CONFIG_STATE_MAINTENANCE,
    CONFIG_STATE_COUNT
};

struct random_config_step {
    enum random_config_state from;
    enum random_config_state to;
    uint32_t checks;   /* bits of enum random_config_check */
    uint32_t triggers; /* bits of enum random_config_trigger */
};

struct random_config_profile {
    struct random_config_step steps[4];
    uint32_t step_n;
    uint32_t enter[CONFIG_STATE_COUNT];  /* bits of enum random_config_trigger */
    uint32_t notify[CONFIG_STATE_COUNT]; /* bits of notices */
};

struct random_config_limit {
    uint32_t max;
    bool by_zone;
    int32_t profile;   /* -1: any */
    usec_t skip_after; /* 0: never */
};

enum random_config_schedule { NOTIFICATION_AT_ENTRY, NOTIFICATION_ONCE, NOTIFICATION_DAILY };

struct random_config_notification {
    uint32_t kind; /* webhook, slack, mail */
    enum random_config_schedule schedule;
};

struct random_config {
    struct random_config_profile profiles[RANDOM_CONFIG_PROFILES_MAX];
    uint32_t profile_n;
    struct random_config_limit limits[RANDOM_CONFIG_LIMITS];
    struct random_config_notification notifications[RANDOM_CONFIG_NOTIFICATIONS];
    uint32_t window_open; /* minutes of the day */
    uint32_t window_close;
    usec_t wait;
    usec_t stagger;
    uint32_t stagger_parallel;
    bool force;
};

/* What the drawing is to contain. */
struct random_config_options {
    bool limited; /* each way into maintenance has a limit; otherwise none has */
    bool tight;   /* limits are 1 */
    bool drains;  /* each way into maintenance drains */
    uint32_t profiles;
};

void random_config_make(struct random_config *b, uint64_t seed,
                        const struct random_config_options *config_options);
void random_config_print(const struct random_config *b, struct buf *out);

const char *random_config_state_name(enum random_config_state state);
bool random_config_state_find(struct str name, enum random_config_state *ret);
/* The step of a profile between two states; NULL when there is none. */
const struct random_config_step *random_config_step_find(const struct random_config *b,
                                                         uint32_t profile,
                                                         enum random_config_state from,
                                                         enum random_config_state to);
/* "p1" → 1; false for the names of others. */
bool random_config_profile_find(const struct random_config *b, struct str name, uint32_t *ret);
