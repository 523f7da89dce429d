/*
 * builtin_types_table: the fields of the built-in kinds, one line of text a type; builtin_types.h
 * makes schemas of them.
 *
 * `fields` are separated by blanks: name, "!" when required, "#" and its number in protobuf (two
 * with a dot: the first is an embedded message, whose fields stand in JSON as if they were ours)
 * with "*" when its zero value differs from its absence, ":", then the type: s string, t and u
 * times, q quantity, x int-or-string, y base64, w int32, i int64, n number, b bool, a anything, A,
 * B and S the three unions in a CRD's schema (a schema or: schemas, a bool, strings), @name another
 * type, [T] a list with "=set", "=atomic" or "=map(keys)", {T} a map; then "+strategy" and "/key"
 * of a strategic merge, "~value" for a default.
 */
#pragma once

#include "base/defs.h"

struct builtin_type {
    const char *name;
    bool atomic; /* owned as a whole by server-side apply */
    const char *fields;
};

struct builtin_kind_type {
    const char *group;
    const char *kind;
    const char *type;
};

extern const struct builtin_type builtin_types[]; /* sorted by name */
extern const uint32_t builtin_types_n;
extern const struct builtin_kind_type builtin_kind_types[];
extern const uint32_t builtin_kind_types_n;
