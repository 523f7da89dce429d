/*
 * hex: bytes as hexadecimal digits.
 */
#pragma once

#include "base/buf.h"

/* The digit's value, of either case; -1 for any other character. */
static inline int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Two digits a byte. */
static inline void hex_add(struct buf *out, const unsigned char *bytes, size_t n, bool upper)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        buf_add_char(out, digits[bytes[i] >> 4]);
        buf_add_char(out, digits[bytes[i] & 15]);
    }
}
