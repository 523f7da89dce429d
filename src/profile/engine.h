/*
 * engine: what a node is to carry, decided from what it carries, the configuration and the time.
 *
 * Pure: no I/O, no clock, nothing kept. The same function decides in production, in the simulator
 * and in `explain`.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "profile/data.h"
#include "profile/label.h"

struct engine_profile {
    struct str name;
};

struct engine_config {
    const struct engine_profile *profiles;
    uint32_t profile_count;
};

/* One profile, "default", with three empty states: what an operator has who configured nothing. */
extern const struct engine_config engine_default;

/* What decisions use of a node; `.p` NULL means that the key is absent. */
struct engine_node {
    struct str profile_label;
    struct str state_label;
    struct str data;
};

struct engine_effect {
    bool set_state;
    bool set_data;
    struct str state; /* borrowed: a constant */
    struct str data;  /* in `out` */
    /* Monotonic time is the caller's; this is wall time. USEC_NEVER: not before it changes. */
    usec_t again;
};

/* An error means that the node is not touched: its annotation cannot be read, or holds a state that
 * does not exist. */
NODISCARD
int engine_decide(const struct engine_config *config, const struct engine_node *node, usec_t wall,
                  struct arena *out, struct engine_effect *ret, struct err *err);
