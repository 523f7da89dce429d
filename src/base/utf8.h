/*
 * utf8: decoding and checking, as RFC 3629 has it (no surrogates, no overlong forms, at most
 * U+10FFFF).
 */
#pragma once

#include "base/buf.h"

/* Bytes taken by the first character and its code point; 0 when the bytes are no valid character.
 */
size_t utf8_decode(struct str s, uint32_t *ret_point);
void utf8_add(struct buf *b, uint32_t point);
/* Offset of the first byte that is not valid, or SIZE_MAX. */
size_t utf8_find_invalid(struct str s);
