/*
 * jsonpath: the simple paths of printer columns and scale subresources: ".spec.name",
 * ".metadata.labels.a\.b/c", ".x['y']", ".list[0]", ".conditions[?(@.type=="Ready")].status".
 */
#pragma once

#include "format/json_tree.h"

/* The first value the path leads to, or NULL. A path that is not of this form leads nowhere. */
const struct tree *jsonpath_find(const struct tree *object, struct str path);
