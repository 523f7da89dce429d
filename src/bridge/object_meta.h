/*
 * object_meta: reading labels, annotations, references and times of an object, whatever it holds.
 *
 * What is of another type than it should be is not there. What is longer than Kubernetes allows is
 * refused by meta_check_lengths alone.
 */
#pragma once

#include "base/err.h"
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

/* -ERR_LIMIT when a UID, a label or an annotation is longer than any API server lets it be: then
 * who sent it is none. For objects of servers that are not trusted. */
NODISCARD
int meta_check_lengths(const struct jval *metadata, struct err *err);

/* Copies a projection of `size` bytes into its arena, with the texts that it holds views of. A
 * fresh arena gets one block of just the right size: many thousands of objects leave no slack. */
void *meta_keep(struct arena *out, void *object, size_t size, struct str *const *texts, size_t n);
