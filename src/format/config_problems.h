/*
 * config_problems: what is wrong with a file, all of it at once, each with its place.
 *
 * A list instead of the first error: a file can be corrected in one go. What keeps a file from
 * being used is an error; what fails later, and only where it is used, is a warning.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#define PROBLEMS_MAX 100u /* nobody reads more of them before the first correction */

struct problem {
    struct pos pos; /* line 0: of the file as a whole */
    bool warning;   /* the file can be used as it is */
    struct str text;
};

struct problems {
    struct arena *out;
    struct problem *items; /* in the order in which they were found */
    uint32_t n;
    uint32_t cap;
    uint32_t more;   /* found beyond PROBLEMS_MAX */
    uint32_t errors; /* all that are not warnings, those beyond included */
};

void problems_add(struct problems *p, struct pos pos, const char *fmt, ...) PRINTF_LIKE(3, 4);
void problems_warn(struct problems *p, struct pos pos, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* By place; those of one place stay in order. */
void problems_sort(struct problems *p);
