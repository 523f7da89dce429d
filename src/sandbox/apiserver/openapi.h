/*
 * openapi: the schemas of one group and version as an OpenAPI v3 document.
 *
 * Enough for kubectl explain, apply and field validation: every kind with its schema and the
 * reference to its group, version and kind, and the paths with the parameters clients look for.
 */
#pragma once

#include "sandbox/apiserver/kind.h"
#include "sandbox/apiserver/builtin_types.h"

/* False: nothing of that group and version is served. */
bool openapi_document(const struct kinds *kinds, struct types *types, struct str api_version,
                      struct buf *out);
