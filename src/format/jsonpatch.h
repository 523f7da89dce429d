/*
 * jsonpatch: JSON patches (RFC 6902).
 *
 * As kube-apiserver's library does it, which is laxer than the RFC: an index may have leading zeros
 * or count from the end (-1), `test` for null passes where nothing is, and it compares numbers by
 * their text. An empty document (NULL) stays empty, whatever the patch does; null can be replaced
 * as a whole and is no result. A patch applies as a whole or not at all.
 */
#pragma once

#include "format/json_tree.h"

#define JSONPATCH_OPS_MAX 10000u /* kube-apiserver's own limit */

/* `*ret` is new; `doc` and `patch` stay as they are. The codes tell what the API server answers:
 * -ERR_INVALID for what is no JSON patch (400), -ERR_NOTFOUND for a path that leads nowhere and
 * -ERR_CONFLICT for a failed `test` (422), -ERR_LIMIT for too many operations or a result that is
 * too large (413). The message names the operation by its number, from 1. */
NODISCARD
int jsonpatch_apply(const struct tree *doc, const struct tree *patch, struct arena *out,
                    struct tree **ret, struct err *err);
