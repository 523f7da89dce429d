/*
 * gzip: compressing an HTTP answer for clients that accept it.
 */
#pragma once

#include "base/buf.h"

/* Whether an Accept-Encoding header lets an answer be packed (RFC 9110, 12.5.3): it names gzip, or
 * "*" and not gzip, with a weight that is not zero. Without the header nothing is packed. */
bool gzip_is_accepted(struct str header);

/* Appends the whole of `text` as one gzip member (RFC 1952), the same bytes for the same text. */
void gzip_pack(struct str text, struct buf *out);
