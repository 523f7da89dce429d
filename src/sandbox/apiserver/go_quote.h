/*
 * go_quote: values as Go prints them, because the real server's messages quote values that way.
 */
#pragma once

#include "format/json_tree.h"

/* %v: "map[a:1 b:[x y]]". */
struct str goprint(struct arena *out, const struct tree *value);
/* strconv.Quote. */
struct str goprint_quote(struct arena *out, struct str text);
/* A value in a field error: strings quoted, the rest as JSON with sorted members. */
struct str goprint_value(struct arena *out, const struct tree *value);
