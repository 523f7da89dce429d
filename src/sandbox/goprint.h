/*
 * goprint: a value as Go's %v prints it, "map[a:1 b:[x y]]", because the real server's messages
 * quote values that way.
 */
#pragma once

#include "format/tree.h"

struct str goprint(struct arena *out, const struct tree *value);
