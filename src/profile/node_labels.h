/*
 * node_labels: the two labels a node's maintenance shows in: which profiles it has, and the state
 * they are in together.
 */
#pragma once

#include "base/str.h"

#define NODE_LABEL_DEFAULT_PROFILE STR("default")

enum profile_state {
    PROFILE_STATE_OPERATIONAL,
    PROFILE_STATE_REQUIRED,
    PROFILE_STATE_MAINTENANCE,
    PROFILE_STATE_COUNT,
};

struct str profile_state_name(enum profile_state state);
bool profile_state_parse(struct str name, enum profile_state *ret);

/* The profile names in a label value, one a call: "--" separates them, nothing is trimmed. An empty
 * or missing label names the default profile. Start with at = 0. */
bool profile_label_next(struct str value, size_t *at, struct str *ret);
bool profile_label_has(struct str value, struct str name);

/* Of two states that profiles of one node are in, the one that the node shows. */
enum profile_state profile_state_worse(enum profile_state a, enum profile_state b);
