/*
 * apply: server-side apply: which manager owns which field, and conflicts between managers.
 *
 * Ownership is kept in metadata.managedFields, but only on objects on which apply has been used:
 * the first apply records the existing fields as an update by whoever made the object.
 */
#pragma once

#include "sandbox/apiserver/schema.h"

struct apply_request {
    struct types *types;
    const struct tree *schema;
    struct str api_version;
    struct str manager;
    struct str subresource; /* "" or "status" */
    bool has_status;        /* the kind has a status subresource: apply elsewhere leaves it alone */
    bool force;
    struct str time;    /* now, RFC 3339 */
    struct str creator; /* manager of what is there already; "" = "before-first-apply" */
};

/* What the configuration makes of `live` (NULL: a new object), managedFields included; made in
 * `a`. -ERR_CONFLICT: `*ret_causes` and the message are those of the 409. -ERR_INVALID: a bad
 * request (400). -ERR_PROTO: what the real server answers with 500 and no reason. */
NODISCARD
int apply_merge(const struct apply_request *request, struct arena *a, const struct tree *live,
                const struct tree *configuration, struct tree **ret,
                struct schema_causes *ret_causes, struct str *ret_message, struct err *err);

/* After a write that is no apply: `now` takes over the ownership that `old` records, with what the
 * manager changed as its own. Does nothing on objects without managedFields. */
void apply_track(const struct apply_request *request, struct arena *a, const struct tree *old,
                 struct tree *now);
