/*
 * gopattern: Go's regular expressions and the string formats of schemas, as far as the sandbox
 * needs them.
 *
 * Patterns are rewritten for the C library's extended expressions: classes like \d, groups that do
 * not capture, lazy repetition. What cannot be rewritten (Unicode classes, flags within, huge
 * repetitions) is answered as unknown, and whoever asks lets the value pass.
 */
#pragma once

#include "base/str.h"

enum gopattern_answer { GOPATTERN_DIFFERS, GOPATTERN_MATCHES, GOPATTERN_UNKNOWN };

enum gopattern_answer gopattern_match(struct str pattern, struct str text);

/* True also for formats that are not known: "date-time", "date", "byte", "uuid", "ipv4" and
 * "duration" are. */
bool goformat_match(struct str format, struct str text);
