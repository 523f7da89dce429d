/*
 * problem: what is wrong with a file, all of it at once, each with its place.
 *
 * A list instead of the first error: who corrects a file wants to do so once.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#define PROBLEMS_MAX 100u /* nobody reads more of them before the first correction */

struct problem {
    struct pos pos; /* line 0: of the file as a whole */
    struct str text;
};

struct problems {
    struct arena *out;
    struct problem *items; /* in the order in which they were found */
    uint32_t n;
    uint32_t cap;
    uint32_t more; /* found beyond PROBLEMS_MAX */
};

void problems_add(struct problems *p, struct pos pos, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* By place; those of one place stay in order. */
void problems_sort(struct problems *p);
