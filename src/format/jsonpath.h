/*
 * jsonpath: the simple paths that lead to one value, as printer columns, scale subresources and
 * gates have them: ".spec.name", ".metadata.labels.a\.b/c", ".x['y']", ".list[0]",
 * ".conditions[?(@.type=="Ready")].status".
 */
#pragma once

#include "format/json_tree.h"

/* "{.a.b}", as kubectl has it, is ".a.b". */
struct str jsonpath_inner(struct str text);
/* Whether the path is of this form. */
bool jsonpath_valid(struct str path);
/* The first value the path leads to, or NULL. A path that is not of this form leads nowhere. */
const struct tree *jsonpath_find(const struct tree *object, struct str path);
