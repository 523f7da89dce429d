/*
 * builtin_types: what an object of a kind may hold, as an OpenAPI schema in a tree.
 *
 * Built-in kinds come from builtin_types_table, custom ones bring their schema. Both have one form,
 * so strategic merge, apply, field validation and the OpenAPI documents read one form. Built-in
 * types are made on first use and kept: a simulated server that never sees a CronJob never pays for
 * it. Schemas refer to each other by "$ref" (under "allOf", as the real documents do);
 * types_resolve follows that.
 */
#pragma once

#include "base/map.h"
#include "format/json_tree.h"

#define TYPES_RECENT 64u /* more than one kind refers to; a power of two */

struct types {
    struct arena *arena; /* borrowed: the server's */
    struct map made;     /* full name -> struct tree */
    struct map rules;    /* text of a rule in CEL -> as schema_rules.c keeps it */
    /* In front of the map: every field of every object that is written asks. A type's own name is
     * its tree's key. */
    const struct tree *cache[TYPES_RECENT];
};

void types_init(struct types *t, struct arena *a);
void types_done(struct types *t);

/* The schema of a built-in kind, or NULL: the kind has no table, anything goes. */
const struct tree *types_builtin_kind(struct types *t, struct str group, struct str kind);
/* By the name in OpenAPI documents: "io.k8s.api.core.v1.NodeSpec". */
const struct tree *types_named(struct types *t, struct str name);
/* A custom kind's own openAPIV3Schema (NULL: none) with apiVersion, kind and metadata added, also
 * to embedded resources; made in `a`, once, when its definition is accepted. */
struct tree *types_custom_schema(struct arena *a, const struct tree *schema);

/* What a reference refers to; other schemas are answered as they are. Accepts NULL. */
const struct tree *types_resolve(struct types *t, const struct tree *schema);
/* The schema of a member, not resolved, so that its strategy can be read; NULL: not described. */
const struct tree *types_member(struct types *t, const struct tree *schema, struct str key);
const struct tree *types_item(struct types *t, const struct tree *schema);
/* Whether members that are not described are kept (and not reported). */
bool types_keeps_unknown(struct types *t, const struct tree *schema);

/* The first value whose JSON type does not fit a built-in's field, worded as Go's decoder does
 * ("json: cannot unmarshal string into Go struct field …"); -ERR_INVALID, or 0. */
NODISCARD
int types_check(struct types *t, const struct tree *schema, const struct tree *object,
                struct err *err);

/* Walks the types a built-in refers to: the full names of itself and all below, each once. */
void types_referenced(struct types *t, struct str name, struct map *ret);
/* The full name of a built-in kind's type; empty when there is none. */
struct str types_kind_name(struct arena *out, struct str group, struct str kind);
