/*
 * publish: a whole file, there at once or not at all.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* Written beside its place and renamed, so a reader never sees half of it. Only the owner may read
 * it: what is published carries keys. */
NODISCARD
int file_replace(struct str path, struct str content, struct err *err);
