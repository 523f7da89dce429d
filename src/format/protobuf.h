/*
 * protobuf: the fields of a message in protobuf's wire format, one at a time.
 *
 * What the numbers mean is the caller's: nothing here knows a message. Bytes are slices of the
 * input. Groups, which nothing writes any more, are passed over as a whole.
 */
#pragma once

#include "base/err.h"

enum protobuf_wire {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2,
    PROTOBUF_GROUP = 3,
    PROTOBUF_FIXED32 = 5,
};

struct protobuf_field {
    uint32_t number;
    enum protobuf_wire wire;
    uint64_t value;   /* VARINT, FIXED64, FIXED32 */
    struct str bytes; /* BYTES: the content; borrowed: from the input */
};

/* Takes one field from `*rest`: 1, or 0 at its end. -ERR_INVALID for what is no message, worded as
 * Go's decoders word it. */
NODISCARD
int protobuf_next(struct str *rest, struct protobuf_field *ret, struct err *err);

/* Takes one number from `*rest`, as packed lists hold them. */
NODISCARD
int protobuf_varint(struct str *rest, uint64_t *ret, struct err *err);
