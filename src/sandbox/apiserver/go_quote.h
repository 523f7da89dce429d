/*
 * go_quote: values as Go prints them, because the real server's messages quote values that way.
 */
#pragma once

#include "format/json_tree.h"

/* %v: "map[a:1 b:[x y]]". */
struct str go_print(struct arena *out, const struct tree *value);
/* strconv.Quote. */
struct str go_quote(struct arena *out, struct str text);
/* A value in a field error: strings quoted, the rest as JSON with sorted members. */
struct str go_quote_value(struct arena *out, const struct tree *value);
