/*
 * humantime: times in words, for people.
 */
#pragma once

#include "base/arena.h"

/* "in 6h28m (Mon 08:00:00 UTC)"; "now" for what is less than a second away; empty for 0 and
 * USEC_NEVER. */
struct str humantime_at(usec_t now, usec_t when, struct arena *out);
/* The two largest units of a length of time: "45s", "1h4m", "3d2h". */
struct str humantime_span(usec_t length, struct arena *out);
/* How long ago `since` was, counted from its whole second: with a `now` of whole seconds this is
 * what a reader gets who subtracts the times of a JSON document. */
struct str humantime_since(usec_t now, usec_t since, struct arena *out);
