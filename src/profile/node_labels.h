/*
 * node_labels: the two labels a node's maintenance shows in: which profiles it has, and the state they
 * are in together.
 */
#pragma once

#include "base/str.h"

#define LABEL_PROFILE STR("cloud.sap/maintenance-profile")
#define LABEL_STATE STR("cloud.sap/maintenance-state")
#define LABEL_LOG_DETAILS STR("cloud.sap/maintenance-log-details")
#define LABEL_DEFAULT_PROFILE STR("default")

enum label_state {
    LABEL_STATE_OPERATIONAL,
    LABEL_STATE_REQUIRED,
    LABEL_STATE_MAINTENANCE,
    LABEL_STATE_COUNT,
};

struct str label_state_name(enum label_state state);
bool label_state_parse(struct str name, enum label_state *ret);

/* The profile names in a label value, one a call: they stand between "--", untrimmed. An empty or
 * missing label names the default profile. Start with at = 0. */
bool label_profile_next(struct str value, size_t *at, struct str *ret);
bool label_profile_has(struct str value, struct str name);

/* Of two states that profiles of one node are in, the one that the node shows. */
enum label_state label_state_worse(enum label_state a, enum label_state b);
