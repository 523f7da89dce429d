/*
 * humantime: times in words, for people.
 */
#pragma once

#include "base/arena.h"

/* "in 6h28m (Mon 08:00:00 UTC)", or empty for USEC_NEVER. */
struct str humantime_at(usec_t now, usec_t when, struct arena *out);
/* The two largest units of a length of time: "45s", "1h4m", "3d2h". */
struct str humantime_span(usec_t length, struct arena *out);
