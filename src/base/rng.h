/*
 * rng: a seeded generator (xoshiro256**). A simulated run is a function of its seed.
 */
#pragma once

#include "base/defs.h"

struct rng {
    uint64_t s[4];
};

void rng_init(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);
uint32_t rng_below(struct rng *rng, uint32_t limit);       /* 0 … limit-1; limit > 0 */
usec_t rng_usec(struct rng *rng, usec_t low, usec_t high); /* low … high, both included */
bool rng_chance(struct rng *rng, uint32_t per_mille);
