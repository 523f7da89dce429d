/*
 * duration: Go's duration text, "1h30m", "200ms", in nanoseconds as Go has it and in microseconds
 * as drydock counts.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define DURATION_TEXT_MAX 32 /* "-2562047h47m16.854775808s" and its NUL */

/* What time.ParseDuration accepts, with its values. The message follows Go's. */
NODISCARD
int duration_parse(struct str text, int64_t *ret_ns, struct err *err);

/* time.Duration.String(): the shortest form with leading zero units left out. */
struct str duration_print(int64_t ns, char out[DURATION_TEXT_MAX]);
