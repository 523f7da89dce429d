/*
 * query: the parameters of an address, "?node=worker-1&board=0".
 */
#pragma once

#include "base/arena.h"

/* The value of a key, decoded; empty when it is not there. What is no escape is itself. */
struct str query_param(struct str query, struct str key, struct arena *out);
