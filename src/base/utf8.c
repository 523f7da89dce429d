#include "base/utf8.h"

size_t utf8_decode(struct str s, uint32_t *ret_point)
{
    if (s.n == 0) {
        return 0;
    }
    const unsigned char *p = (const unsigned char *)s.p;
    if (p[0] < 0x80) {
        *ret_point = p[0];
        return 1;
    }
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || s.n < n) {
        return 0;
    }
    uint32_t point = p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
        point = point << 6 | (p[i] & 0x3f);
    }
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (point < least[n] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
        return 0;
    }
    *ret_point = point;
    return n;
}

void utf8_add(struct buf *b, uint32_t point)
{
    ASSERT(point <= 0x10ffff);
    if (point < 0x80) {
        buf_add_char(b, (char)point);
    } else if (point < 0x800) {
        buf_add_char(b, (char)(0xc0 | point >> 6));
        buf_add_char(b, (char)(0x80 | (point & 0x3f)));
    } else if (point < 0x10000) {
        buf_add_char(b, (char)(0xe0 | point >> 12));
        buf_add_char(b, (char)(0x80 | (point >> 6 & 0x3f)));
        buf_add_char(b, (char)(0x80 | (point & 0x3f)));
    } else {
        buf_add_char(b, (char)(0xf0 | point >> 18));
        buf_add_char(b, (char)(0x80 | (point >> 12 & 0x3f)));
        buf_add_char(b, (char)(0x80 | (point >> 6 & 0x3f)));
        buf_add_char(b, (char)(0x80 | (point & 0x3f)));
    }
}

size_t utf8_find_invalid(struct str s)
{
    size_t at = 0;
    while (at < s.n) {
        if ((unsigned char)s.p[at] < 0x80) {
            at++;
            continue;
        }
        uint32_t point;
        size_t n = utf8_decode(str_sub(s, at, s.n - at), &point);
        if (n == 0) {
            return at;
        }
        at += n;
    }
    return SIZE_MAX;
}
