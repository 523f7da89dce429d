/*
 * version_range: ranges of versions of operating systems, kernels and kubelets: ">=5.10,<7".
 *
 * A version is numbers with dots at the beginning of a text, a 'v' before it or not: "6.1.0-28" is
 * 6.1.0, "v1.34.2+k3s1" is 1.34.2. Numbers that are missing are 0. Conditions are separated by
 * commas and must all hold; one without sign means "=".
 */
#pragma once

#include "base/err.h"

#define VERSION_PARTS_MAX 8u
#define VERSION_CONDITIONS_MAX 8u

enum version_op { VERSION_EQ, VERSION_GE, VERSION_GT, VERSION_LE, VERSION_LT };

struct version {
    uint32_t n;
    uint32_t parts[VERSION_PARTS_MAX];
};

struct version_range {
    uint32_t n; /* 0: everything is in it, also what has no version */
    struct version_condition {
        enum version_op op;
        struct version version;
    } conditions[VERSION_CONDITIONS_MAX];
};

/* False when the text begins with no version. */
bool version_parse(struct str text, struct version *ret);
int version_cmp(const struct version *a, const struct version *b);

NODISCARD
int version_range_parse(struct str text, struct version_range *ret, struct err *err);
/* A text without version is in no range that has a condition. */
bool version_range_has(const struct version_range *r, struct str text);
