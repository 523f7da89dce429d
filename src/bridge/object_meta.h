/*
 * object_meta: reading labels, annotations, references and times of an object, whatever it holds.
 *
 * Nothing here fails: what is of another type than it should be is not there.
 */
#pragma once

#include "format/json.h"

/* There, with any value. */
bool meta_has(const struct jval *map, struct str key);
bool meta_is(const struct jval *map, struct str key, struct str value);
/* A view into the object; STR_NONE for what is no string, or is longer than `most`. */
struct str meta_text(const struct jval *v, size_t most);
/* One that is empty is not one that is not there. */
bool meta_same(struct str a, struct str b);
/* RFC 3339 → wall; 0 for what is no time, and for times before 1970. */
usec_t meta_time(const struct jval *v);

/* Copies a projection of `size` bytes into its arena, with the texts that it holds views of. A
 * fresh arena gets one block of just the right size: many thousands of objects leave no slack. */
void *meta_keep(struct arena *out, void *object, size_t size, struct str *const *texts, size_t n);
