/*
 * strategic: strategic merge patches, which merge lists by a key that the type declares.
 *
 * What kubectl and client-go send for built-in kinds. Which lists merge, and by which key, stands
 * in the schema (builtin_types.h). As on the real server, elements that are new come before those
 * that the patch does not name.
 */
#pragma once

#include "sandbox/apiserver/builtin_types.h"

/* Changes `object` by `patch`; strings and values are copied into `a`. -ERR_INVALID: a bad request
 * (400); -ERR_PROTO: what the real server answers with 500 and no reason. `object` is then half
 * changed and must be dropped. */
NODISCARD
int strategic_merge(struct types *types, const struct tree *schema, struct arena *a,
                    struct tree *object, const struct tree *patch, struct err *err);
