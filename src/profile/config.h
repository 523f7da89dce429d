/*
 * config: a whole maintenance.yaml, read and checked: instances of plugins with their typed values,
 * profiles with their states, transitions, expressions and chains.
 *
 * Reading goes on after a problem, so that all of them are listed at once. A configuration is
 * never changed after it was read; a newer one takes its place as a whole, arena and all.
 */
#pragma once

#include "format/chain.h"
#include "format/check_expr.h"
#include "profile/node_labels.h"
#include "profile/plugin_table.h"

#define CONFIG_INSTANCES_MAX 1000u /* of one kind; the largest files have some dozens */
#define CONFIG_PROFILES_MAX 1000u
#define CONFIG_REQUEUE_NS INT64_C(30000000000) /* without an interval in the file */
#define CONFIG_ALERT_AFTER_NS                                                                      \
    INT64_C(600000000000)             /* a drain; without another time in the file                 \
                                       */
#define CONFIG_REFRESH_MIN SECONDS(1) /* however short an interval is written */

struct config_instance {
    const struct plugin *plugin;
    struct str name;
    struct plugin_value *values;
    const struct plugin *schedule; /* of a notification; NULL otherwise */
    struct plugin_value *schedule_values;
    bool required;                    /* a notification: its profile waits until it is sent */
    const struct check_plugin *check; /* of a check; NULL otherwise */
    const void *prepared;             /* by the check: its values as it reads them */
    struct pos pos;
};

struct config_instances {
    struct config_instance *items; /* of a name that came twice the last one */
    uint32_t n;
    uint32_t cap;
};

struct config_transition {
    struct check_expr check;
    enum profile_state next;
    struct chain trigger;
};

struct config_state {
    struct chain enter;
    struct chain notify;
    struct config_transition *transitions;
    uint32_t transition_n;
};

struct config_profile {
    struct str name;
    struct config_state states[PROFILE_STATE_COUNT];
};

/* What is told besides the states of profiles. */
enum config_alert_kind {
    CONFIG_ALERT_DRAIN_BLOCKED,
    CONFIG_ALERT_REQUEST_REJECTED,
    CONFIG_ALERT_REQUEST_EXPIRED,
    CONFIG_ALERT_KINDS,
};

struct config_alert {
    struct chain instances; /* that tell of it; none: nobody is told */
    usec_t after;           /* CONFIG_ALERT_DRAIN_BLOCKED: how long it has to be blocked */
};

struct config {
    int64_t requeue_ns;
    struct ucfg_strs label_filter;
    struct config_instances instances[PLUGIN_KINDS];
    struct config_alert alerts[CONFIG_ALERT_KINDS];
    struct config_profile *profiles; /* "default" is among them, written or not */
    uint32_t profile_n;
    uint32_t profile_cap;
};

/* Everything lives in `out`, the configuration's own arena. -ERR_INVALID when there are errors;
 * warnings alone keep nothing from running. The problems are sorted by place. */
NODISCARD
int config_load(struct str text, struct ucfg_env env, struct arena *out, struct config *ret,
                struct problems *problems);

/* How long an answer of another system counts. Without an interval it is asked at each look, as the
 * original does, but not more often than CONFIG_REFRESH_MIN. */
usec_t config_refresh(const struct config *c);
struct str config_alert_name(enum config_alert_kind kind); /* its key in the file */
const struct config_profile *config_find_profile(const struct config *c, struct str name);
const struct config_instance *config_find_instance(const struct config *c, enum plugin_kind kind,
                                                   struct str name);
