/*
 * limits: the table of how large an input the product hands to each reader, by the name of its fuzz
 * target.
 *
 * libFuzzer and the replay both go up to it: a reader that is slow or greedy with large inputs is
 * found by those alone.
 */
#pragma once

#include "base/str.h"

struct fuzz_limit {
    struct str target;
    size_t bytes;
    bool any_time; /* its work may grow faster than its input; the table says why */
};

/* NULL = there is no such target in the table. */
const struct fuzz_limit *fuzz_limit_find(struct str target);
