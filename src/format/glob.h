/*
 * glob: names by pattern: '*' is any text, '?' any byte, "[a-c_]" one of these bytes, "[!a]" any
 * other. A slash is a byte like any other, and nothing is quoted.
 *
 * A match takes at most (length of the text) x (length of the pattern) steps, whoever wrote the
 * pattern: after a star only the last one is ever tried again.
 */
#pragma once

#include "base/err.h"

#define GLOB_STARS_MAX 8u
#define GLOB_BYTES_MAX 253u /* of a pattern: names have no more */

/* Names what is wrong with a pattern. */
NODISCARD
int glob_check(struct str pattern, struct err *err);
/* A pattern that glob_check refuses matches nothing. */
bool glob_match(struct str pattern, struct str text);
