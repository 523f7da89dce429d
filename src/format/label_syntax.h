/*
 * label_syntax: which label names and values Kubernetes accepts, with its words for what is wrong.
 *
 * The same rules hold for labels of objects, annotation names, selectors and taint keys.
 */
#pragma once

#include "base/buf.h"

/* [prefix/]name. Adds what is wrong to `why` (several complaints with "; " between them); true when
 * nothing is. */
bool label_key_check(struct str key, struct buf *why);
bool label_value_check(struct str value, struct buf *why);
/* A lowercase RFC 1123 subdomain, as object names are. */
bool label_subdomain_check(struct str name, struct buf *why);
