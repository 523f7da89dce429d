/*
 * grow: large inputs of a given size, made from a small one or from a pattern, always the same.
 *
 * An input is a head, a unit that is repeated, and a tail. In a unit GROW_NUMBER stands for the
 * number of the repetition: many keys, anchors and names, all different.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#define GROW_NUMBER '\x01'

struct growth {
    const char *name;
    struct str head;
    struct str unit;
    struct str middle; /* between the units and what closes them */
    struct str close;  /* as often as the unit; empty = nothing is nested */
    struct str tail;
};

/* Fills `ret`, which is empty, with as many units as fit into `size` bytes, at least one. */
void grow_write(const struct growth *g, size_t size, struct buf *ret);

/* Patterns that do not depend on a seed. */
extern const struct growth grow_patterns[];
extern const size_t grow_patterns_n;

#define GROW_SEEDED 6u
/* Those that repeat a seed, or the line in its middle. */
void grow_seeded(struct str seed, struct arena *out, struct growth ret[GROW_SEEDED]);
