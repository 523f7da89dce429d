/*
 * label_pack: an object's labels as one text, to save memory where thousands of objects are kept.
 *
 * A line each: "key=value\n". What is no label of Kubernetes' (of another type, too long, with a
 * sign that would end a key or a line) is left out: no selector can ask for it.
 */
#pragma once

#include "base/buf.h"
#include "format/json.h"

void label_pack(const struct jval *labels, struct buf *out);
struct str label_pack_keep(const struct jval *labels,
                           struct arena *out); /* the same, in an arena */
/* A selector_lookup; ctx is a const struct str, the packed text. */
bool label_pack_find(void *ctx, struct str key, struct str *ret_value);
