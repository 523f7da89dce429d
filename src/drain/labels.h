/*
 * labels: those of a Pod or a Namespace, for the selectors of budgets and rules.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "format/json.h"

struct drain_labels {
    const struct drain_label {
        struct str key;
        struct str value;
    } * all;
    uint32_t n;
};

/* metadata.labels of the object; texts are copied. */
NODISCARD
int drain_labels_read(const struct jval *object, struct arena *out, struct drain_labels *ret,
                      struct err *err);
bool drain_labels_same(const struct drain_labels *a, const struct drain_labels *b);

/* A selector_lookup; ctx is a const struct drain_labels. */
bool drain_labels_lookup(void *ctx, struct str key, struct str *ret_value);
