/*
 * closest: finds the word that somebody meant who mistyped it, for "did you mean".
 */
#pragma once

#include "base/str.h"

/* The candidate with the fewest letters changed, added, dropped or swapped with their neighbour: at
 * most two, and at most a third of the word. The first of several; STR_NONE: none is near. */
struct str closest_find(struct str word, const struct str *candidates, size_t n);
