/*
 * regex: regular expressions in Go's (RE2's) language, matched by PCRE2 within limits.
 *
 * What PCRE2 has beyond RE2 (looking around, back references, recursion, verbs) is refused, so that
 * a pattern means the same as in the original. A match that would take too long is -ERR_LIMIT.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#define REGEX_BYTES_MAX 1024u    /* of a pattern */
#define REGEX_STEPS_MAX 200000u  /* some milliseconds */
#define REGEX_DEPTH_MAX 10000u   /* of backtracking */
#define REGEX_HEAP_KIB_MAX 1024u /* for what backtracking remembers */

struct regex;

NODISCARD
int regex_compile(struct str pattern, struct arena *out, struct regex **ret, struct err *err);

/* Whether the pattern matches anywhere in `text`. */
NODISCARD
int regex_match(const struct regex *regex, struct str text, struct arena *tmp, bool *ret,
                struct err *err);
