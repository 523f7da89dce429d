/*
 * discovery: the documents in which the server describes itself: versions, groups, resources,
 * schemas, health.
 *
 * They are made from the table of kinds at each request; clients keep them for minutes, so nothing
 * is cached here. Group and resource lists, aggregated discovery (v2), OpenAPI v3 by group and
 * version, OpenAPI v2 as an empty document, which makes old clients skip their own validation.
 */
#pragma once

#include "sandbox/apiserver/kind.h"
#include "sandbox/apiserver/builtin_types.h"

struct discovery_reply {
    struct str content_type;
    struct str body;
};

/* `path` is without its query. False: the path is no such document, or names a group or version
 * that is not served. Texts live in `out`. */
bool discovery_answer(const struct kinds *kinds, struct types *types, struct str path,
                      struct str accept, struct arena *out, struct discovery_reply *ret);
