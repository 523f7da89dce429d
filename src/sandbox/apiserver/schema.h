/*
 * schema: custom objects held against the structural schema of their CustomResourceDefinition:
 * unknown fields, defaults, validation, in the words of the real server.
 *
 * Schemas are those of types_custom_schema (builtin_types.h). Rules in CEL
 * (x-kubernetes-validations) are evaluated as far as format/cel.h knows the language; a rule that
 * it does not know counts as fulfilled. Patterns are Go's regular expressions (format/regex.h).
 */
#pragma once

#include "sandbox/apiserver/builtin_types.h"

struct schema_cause {
    struct str reason;  /* "FieldValueInvalid", … */
    struct str field;   /* "spec.name", "<nil>" */
    struct str message; /* without the field */
};

struct schema_causes {
    struct schema_cause *items;
    uint32_t n;
    uint32_t cap;
};

struct schema_paths {
    struct str *items;
    uint32_t n;
    uint32_t cap;
};

enum schema_flags {
    SCHEMA_CUSTOM = 1 << 0, /* numbers are normalised, paths are sorted; built-ins keep the order */
};

/* Removes what the schema does not describe and says where it was: "spec.a.b", "spec.l[1].x". A
 * NULL schema describes everything. */
void schema_prune(struct types *types, const struct tree *schema, unsigned flags, struct arena *a,
                  struct tree *object, struct schema_paths *ret_unknown);

/* Fills in defaults, after dropping nulls where null is no value. */
void schema_default(struct types *types, const struct tree *schema, struct arena *a,
                    struct tree *object);

/* Adds what is wrong. What is equal in `old` (NULL on create) is not looked at again: objects
 * stay usable when their schema gets tighter. */
void schema_validate(struct types *types, const struct tree *schema, struct arena *a,
                     const struct tree *object, const struct tree *old, struct schema_causes *ret);

/* The rules alone; schema_validate asks for them when the object has the form that they expect. */
void schema_check_rules(struct types *types, const struct tree *schema, struct arena *a,
                        const struct tree *object, const struct tree *old,
                        struct schema_causes *ret);
/* The element of a list before that has the keys of `item`; NULL: none, or the list has no keys. */
const struct tree *schema_old_element(struct arena *a, const struct tree *schema,
                                      const struct tree *item, const struct tree *old);

/* False when `text` surely does not match. A pattern that format/regex refuses, and a match that
 * takes too long, count as a match: the sandbox then accepts the value. */
bool schema_pattern_matches(struct str pattern, struct str text);
/* Knows "date-time", "date", "byte", "uuid", "ipv4" and "duration"; any other format accepts every
 * text, as the real server does. */
bool schema_format_matches(struct str format, struct str text);

void schema_cause_add(struct schema_causes *causes, struct arena *a, const char *reason,
                      struct str field, struct str message);

/* "unknown field \"a\", unknown field \"b\"", for strict decoding errors. */
struct str schema_unknown_text(struct arena *out, const struct schema_paths *unknown);
