/*
 * unit_ask: what service and unit share: asking the service manager for one thing after the other.
 *
 * Before each order it is asked how things are, so that a second run after a crash goes on where
 * the first one was. No order is given twice in a row of steps.
 */
#pragma once

#include "agent/resource.h"

/* What is to be ordered now, as the unit is; UNIT_LOOK = nothing is left. */
typedef enum unit_verb (*unit_next_fn)(struct resource_call *call, const struct unit_reply *found,
                                       const void *ctx);

/* For `check` and `save`: asks once. Answers RESOURCE_ASK, then 0 with `*ret` set. */
int unit_look(struct resource_call *call, struct str unit, const struct unit_reply **ret,
              struct err *err);
/* For `apply`, `refresh` and `restore`: until `next` asks for nothing, or again for what was done.
 * `time_max` is for each order. */
int unit_run_all(struct resource_call *call, struct str unit, usec_t time_max, unit_next_fn next,
                 const void *ctx, struct err *err);
/* Whether unit_run_all has given this order. */
bool unit_was_ordered(const struct resource_call *call, enum unit_verb verb);

/* "chrony" is chrony.service; false for what is no name of a unit. */
bool unit_full_name(struct str name, struct arena *out, struct str *ret);
