/*
 * gounquote: the escapes of Go's string literals, as strconv.Unquote reads them.
 */
#pragma once

#include "base/buf.h"

/* Reads the escape that `rest`, the text behind a backslash, begins with, and adds what it stands
 * for to `out`. Answers how many bytes of `rest` the escape has; 0 when it is none. `quote` is the
 * literal's own quote, the only one that may be escaped. */
size_t gounquote_escape(struct str rest, char quote, struct buf *out);
