#include "base/rng.h"

static uint64_t rng_split(uint64_t *x)
{
    *x += 0x9e3779b97f4a7c15ULL;
    uint64_t z = *x;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

void rng_init(struct rng *rng, uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_LEN(rng->s); i++) {
        rng->s[i] = rng_split(&seed);
    }
}

static uint64_t rng_rotate(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rng_next(struct rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rng_rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rng_rotate(s[3], 45);
    return result;
}

uint32_t rng_below(struct rng *rng, uint32_t limit)
{
    ASSERT(limit > 0);
    return (uint32_t)(((rng_next(rng) >> 32) * limit) >> 32);
}

usec_t rng_usec(struct rng *rng, usec_t low, usec_t high)
{
    ASSERT(low <= high);
    return low + (usec_t)(rng_next(rng) % ((uint64_t)(high - low) + 1));
}

bool rng_chance(struct rng *rng, uint32_t per_mille)
{
    return rng_below(rng, 1000) < per_mille;
}
