/*
 * semver: versions as semver.org 2.0.0 has them, read as strictly as blang/semver v4 does: exactly
 * MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD], no 'v', no leading zeros, numbers of 64 bits.
 */
#pragma once

#include "base/err.h"

struct semver {
    uint64_t major;
    uint64_t minor;
    uint64_t patch;
    struct str prerelease; /* borrowed: from the text, as is `build`; empty = a release */
    struct str build;
};

NODISCARD
int semver_parse(struct str text, struct semver *ret, struct err *err);

/* -1, 0 or 1. A release comes after its prereleases; the build says nothing about the order. */
int semver_cmp(const struct semver *a, const struct semver *b);
