/*
 * protobuf_body: an object that a client sent in protobuf, as the tree that its JSON would give.
 *
 * Typed clients, kubectl's `create` among them, send built-in kinds so: four bytes of magic, an
 * envelope with apiVersion and kind, and the message. Field numbers come from builtin_types_table;
 * fields that it does not have are passed over, as every reader of protobuf does.
 */
#pragma once

#include "format/json_tree.h"

#define PROTOBUF_BODY_DEPTH_MAX                                                                    \
    100u /* messages in each other; schemas of CRDs nest some 60 deep                              \
          */

/* What the object is; of the envelope, or what the URL says where the envelope says nothing. */
struct protobuf_kind {
    struct str api_version;
    struct str kind;
};

/* `*kind` comes with what the URL says and becomes what the object says, on failure too, unless the
 * envelope could not be read: then it is empty. A kind that has no table comes without fields.
 * -ERR_INVALID or -ERR_LIMIT, worded as Go's decoder words it. Texts live in `a` or are borrowed
 * from `body`. */
NODISCARD
int protobuf_body_read(struct str body, struct arena *a, struct protobuf_kind *kind,
                       struct tree **ret, struct err *err);
