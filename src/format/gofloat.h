/*
 * gofloat: float64 as Go's strconv reads and its fmt prints.
 */
#pragma once

#include "base/str.h"

#define GOFLOAT_TEXT_MAX 32u

/* strconv.ParseFloat: also "inf", "nan" (any case, with a sign), hexadecimal with an exponent,
 * '_' between digits. False when the text is no number or the number is too large. */
bool gofloat_parse(struct str text, double *ret);

/* fmt's %v: the shortest digits that read back as the same number, "1e+06" from a million on. */
struct str gofloat_print(double value, char out[GOFLOAT_TEXT_MAX]);
