/*
 * table_cells: the values in the columns of built-in kinds, as the real server prints them.
 */
#pragma once

#include "sandbox/apiserver/kind.h"

struct cells {
    struct arena *a;
    usec_t wall;
    struct tree *row; /* the array that receives them */
    const struct tree *object;
};

/* False when the kind has no printer of its own: then it has a name and an age. */
bool cells_add_kind(struct cells *c, const struct kind *kind);

void cells_text(struct cells *c, struct str text);
void cells_age_since(struct cells *c, const struct tree *time);
void cells_number(struct cells *c, const struct tree *number);        /* absent = 0 */
int64_t cells_number_at(const struct tree *object, const char *path); /* absent = 0 */
void cells_count(struct cells *c, int64_t n);
void cells_name(struct cells *c);
void cells_age(struct cells *c);
/* The text, or `otherwise` when it is empty. */
void cells_or(struct cells *c, struct str text, const char *fallback);

void cells_pod(struct cells *c);
