/*
 * wait: has a node been in its state for long enough? The checks wait and waitExclude.
 *
 * The second does not count some weekdays, and it does so as the original does, oddities included:
 * on a weekday that is not counted, the time since midnight is taken off besides the whole day once
 * the clock has passed that of the last transition, so a wait that had ended the day before can be
 * unfinished again until midnight. The last transition's weekday is the one at its own offset,
 * today's that of UTC. Differences beyond 292 years, where the original's numbers end, are exact.
 */
#pragma once

#include "base/timestamp.h"

struct wait {
    int64_t duration_ns; /* passed after more than this */
    uint8_t exclude;     /* weekdays not counted, bit 0 = Sunday; 0 for a plain wait */
};

struct wait_answer {
    bool passed;
    int64_t remaining_ns; /* while not passed */
    usec_t next;          /* when `passed` could change; USEC_NEVER when it stays */
};

struct wait_answer wait_at(const struct wait *w, struct timestamp last_transition,
                           struct timestamp now);
