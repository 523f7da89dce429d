#include "base/sha256.h"

#define BLOCK 64u

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, unsigned n)
{
    return (x >> n) | (x << (32 - n));
}

static void block_add(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64];
    for (unsigned i = 0; i < 16; i++) {
        const unsigned char *p = block + (size_t)4 * i;
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    }
    for (unsigned i = 16; i < 64; i++) {
        uint32_t s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >> 3);
        uint32_t s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t v[8];
    memcpy(v, state, sizeof(v));
    for (unsigned i = 0; i < 64; i++) {
        uint32_t s1 = turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + s1 + choice + round_constants[i] + w[i];
        uint32_t s0 = turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (unsigned i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

struct hash {
    uint32_t state[8];
    unsigned char tail[BLOCK]; /* what does not fill a block yet */
    size_t tail_n;
    uint64_t bytes;
};

static struct hash hash_begin(void)
{
    return (struct hash){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                     0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

static void hash_add(struct hash *h, struct str bytes)
{
    h->bytes += bytes.n;
    while (bytes.n > 0) {
        if (h->tail_n == 0 && bytes.n >= BLOCK) {
            block_add(h->state, (const unsigned char *)bytes.p);
            bytes = str_sub(bytes, BLOCK, SIZE_MAX);
            continue;
        }
        size_t n = MIN(bytes.n, BLOCK - h->tail_n);
        memcpy(h->tail + h->tail_n, bytes.p, n);
        h->tail_n += n;
        bytes = str_sub(bytes, n, SIZE_MAX);
        if (h->tail_n == BLOCK) {
            block_add(h->state, h->tail);
            h->tail_n = 0;
        }
    }
}

static void hash_end(struct hash *h, unsigned char out[SHA256_BYTES])
{
    unsigned char end[2 * BLOCK] = { 0 };
    memcpy(end, h->tail, h->tail_n);
    end[h->tail_n] = 0x80;
    size_t end_n = h->tail_n + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    for (unsigned i = 0; i < 8; i++) {
        end[end_n - 1 - i] = (unsigned char)(h->bytes * 8 >> (8 * i));
    }
    for (size_t at = 0; at < end_n; at += BLOCK) {
        block_add(h->state, end + at);
    }
    for (unsigned i = 0; i < SHA256_BYTES; i++) {
        out[i] = (unsigned char)(h->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void sha256(struct str bytes, unsigned char out[SHA256_BYTES])
{
    struct hash h = hash_begin();
    hash_add(&h, bytes);
    hash_end(&h, out);
}

void sha256_hmac(struct str key, struct str bytes, unsigned char out[SHA256_BYTES])
{
    unsigned char pad[BLOCK] = { 0 };
    if (key.n > BLOCK) {
        sha256(key, pad);
    } else if (key.n > 0) {
        memcpy(pad, key.p, key.n);
    }
    const struct str block = { .p = (const char *)pad, .n = sizeof(pad) };
    for (size_t i = 0; i < sizeof(pad); i++) {
        pad[i] ^= 0x36;
    }
    unsigned char inner[SHA256_BYTES];
    struct hash h = hash_begin();
    hash_add(&h, block);
    hash_add(&h, bytes);
    hash_end(&h, inner);
    for (size_t i = 0; i < sizeof(pad); i++) {
        pad[i] ^= 0x36 ^ 0x5c;
    }
    h = hash_begin();
    hash_add(&h, block);
    hash_add(&h, (struct str){ .p = (const char *)inner, .n = sizeof(inner) });
    hash_end(&h, out);
}
