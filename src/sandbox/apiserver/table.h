/*
 * table: the two reduced forms of objects: rows with columns, which `kubectl get` asks for, and
 * metadata alone.
 */
#pragma once

#include "sandbox/apiserver/kind.h"

enum table_include { TABLE_INCLUDE_METADATA, TABLE_INCLUDE_OBJECT, TABLE_INCLUDE_NONE };

struct table_spec {
    const struct kind *kind;
    enum table_include include; /* includeObject= of the request */
    usec_t wall;                /* now, for ages */
    bool no_columns;            /* no columns: all but the first event of a watch */
};

/* includeObject= as text; empty is "Metadata". False when it is none of the three. */
bool table_include_parse(struct str text, enum table_include *ret);

/* An empty Table; `metadata` is copied: resourceVersion of the list or of the one object. */
struct tree *table_new(struct arena *a, const struct table_spec *spec, const struct tree *metadata);
void table_add(struct arena *a, const struct table_spec *spec, struct tree *table,
               const struct tree *object);

/* PartialObjectMetadata of an object. */
struct tree *table_metadata(struct arena *a, const struct tree *object);

/* A span of time as kubectl prints ages: "5s", "3m20s", "6y320d". */
struct str table_age(struct arena *out, usec_t span);
/* The age of an RFC 3339 time; "<unknown>" when there is none. */
struct str table_age_since(struct arena *out, const struct tree *time, usec_t wall);
