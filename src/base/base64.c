#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_digit(char c)
{
    const char *hit = c == '\0' ? NULL : strchr(alphabet, c);
    return hit == NULL ? -1 : (int)(hit - alphabet);
}

/* Four digits, of which the last one or two may be padding; the number of bytes, or 0. */
static size_t base64_quad(const char quad[4], char *bytes)
{
    size_t padding = quad[3] != '=' ? 0 : quad[2] != '=' ? 1 : 2;
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = i < 4 - padding ? base64_digit(quad[i]) : 0;
        if (digit < 0) {
            return 0;
        }
        bits = bits << 6 | (uint32_t)digit;
    }
    for (size_t i = 0; i < 3 - padding; i++) {
        bytes[i] = (char)(bits >> (16 - 8 * i) & 0xff);
    }
    return 3 - padding;
}

bool base64_decode(struct str text, struct arena *out, struct str *ret)
{
    char *bytes = arena_alloc(out, text.n / 4 * 3 + 4);
    size_t n = 0;
    char quad[4] = { 0 };
    size_t in_quad = 0;
    bool ended = false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\n' || text.p[i] == '\r') {
            continue;
        }
        if (ended) {
            return false; /* something stands behind the padding */
        }
        quad[in_quad++] = text.p[i];
        if (in_quad == sizeof(quad)) {
            size_t made = base64_quad(quad, bytes + n);
            if (made == 0) {
                return false;
            }
            n += made;
            in_quad = 0;
            ended = made < 3;
        }
    }
    if (in_quad > 0) {
        return false;
    }
    *ret = (struct str){ .p = bytes, .n = n };
    return true;
}

struct str base64_encode(struct arena *out, struct str bytes)
{
    char *text = arena_alloc(out, (bytes.n + 2) / 3 * 4 + 1);
    size_t n = 0;
    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t left = MIN(bytes.n - i, (size_t)3);
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++) {
            bits = bits << 8 | (k < left ? (unsigned char)bytes.p[i + k] : 0u);
        }
        for (size_t k = 0; k < 4; k++) {
            text[n++] = k <= left ? alphabet[bits >> (18 - 6 * k) & 0x3f] : '=';
        }
    }
    return (struct str){ .p = text, .n = n };
}
