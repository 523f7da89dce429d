/*
 * builtin_validate: what the server refuses to store, in the real server's words: the rules for
 * metadata of every kind, and those of built-in kinds as far as clients run into them.
 */
#pragma once

#include "sandbox/apiserver/object.h"
#include "sandbox/apiserver/status.h"

/* Adds what is wrong with a new object to `*list`. */
void builtin_validate_create(struct status **list, const struct kind *kind, const struct tree *obj,
                             struct arena *a);
void builtin_validate_update(struct status **list, const struct kind *kind, const struct tree *old,
                             const struct tree *obj, struct arena *a);
