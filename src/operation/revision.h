/*
 * revision: when an operation is another one: the SHA-256 of what it does.
 *
 * JSON is hashed in one form whatever its order and white space: that of RFC 8785, members sorted
 * by UTF-16 and strings with the fewest escapes. Whole numbers of 64 bits stay exact, which the RFC
 * would round. Windows, rollout and failure policy are no part of a revision.
 */
#pragma once

#include "kinds/node_operation.h"

#define REVISION_HEX 64u
#define REVISION_SHORT 16u /* for names */

/* The canonical form. */
NODISCARD
int revision_canonical(const struct jval *v, struct buf *out, struct err *err);

/* What an operation does once everything is known. */
struct revision_input {
    const struct node_operation *operation;
    struct str payload_json; /* after expansion; empty: it only reboots */
    struct str version;      /* resolved */
    const struct str
        *references; /* hashes of Secrets and ConfigMaps, in the order of the payload */
    uint32_t reference_n;
};

/* 64 hexadecimal digits, in `out`. */
NODISCARD
int revision_of(const struct revision_input *in, struct arena *out, struct str *ret,
                struct err *err);
