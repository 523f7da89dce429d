/*
 * quantity: amounts of resources as Kubernetes writes them: "100m", "1.5", "2Gi", "1e3".
 *
 * A magnitude of at most 38 digits times a power of ten, rounded up to whole nanos when it is read.
 * Numbers beyond that, which Go would take, are -ERR_LIMIT.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

enum quantity_format { QUANTITY_DECIMAL, QUANTITY_BINARY, QUANTITY_EXPONENT };

struct quantity {
    bool negative;
    unsigned __int128 magnitude;
    int32_t scale; /* of ten; at least -9 */
    enum quantity_format format;
    struct str text; /* borrowed: what was parsed, where Kubernetes gives it back as it was */
};

NODISCARD
int quantity_parse(struct str text, struct quantity *ret, struct err *err);

int quantity_sign(const struct quantity *q);
int quantity_cmp(const struct quantity *a, const struct quantity *b);

/* To the next whole number (thousandth) away from zero; false when it does not fit. */
bool quantity_value(const struct quantity *q, int64_t *ret);
bool quantity_milli(const struct quantity *q, int64_t *ret);

/* `*q` takes the format of `y` when it is zero. Untouched on failure. */
NODISCARD
int quantity_add(struct quantity *q, const struct quantity *y, struct err *err);
NODISCARD
int quantity_sub(struct quantity *q, const struct quantity *y, struct err *err);

/* The canonical text. */
void quantity_print(const struct quantity *q, struct buf *out);
