/*
 * closest: the word that somebody meant who wrote another one: the nearest of some candidates by
 * edit distance (Damerau-Levenshtein: a letter too many, too few, another one, or two swapped),
 * letters of either case being the same.
 *
 *     struct closest c = closest_to(word);
 *     closest_offer(&c, STR("hasLabel"));   // for each candidate
 *     if (c.best.n > 0) …                   // "did you mean …?"
 */
#pragma once

#include "base/str.h"

#define CLOSEST_WORD_MAX 64u /* longer words are nobody's slip; they are near to nothing */

struct closest {
    struct str word;
    struct str best;   /* empty: no candidate is near enough */
    uint32_t distance; /* of `best`; without one, the first distance that is too far */
};

/* At most a third of the letters may be wrong, and one in any case. */
struct closest closest_to(struct str word);
/* The first of several that are equally near stays. */
void closest_offer(struct closest *c, struct str candidate);
/* All at once; empty when none is near enough. */
struct str closest_find(struct str word, const struct str *candidates, size_t n);

/* How many edits make one word of the other; `max` when it is that many or more. */
uint32_t closest_distance(struct str a, struct str b, uint32_t max);
