/*
 * buf: growing bytes with a maximum.
 *
 * A buffer that would pass its maximum stops taking bytes and stays `full`; whoever used it asks
 * once at the end instead of after every byte. Never truncate silently: a full buffer's content
 * must not be used.
 */
#pragma once

#include <stdarg.h>

#include "base/str.h"

struct buf {
    char *p;
    size_t n;
    size_t cap;
    size_t max; /* 0 = BUF_MAX */
    bool full;
};

#define BUF_MAX ((size_t)64 * 1024 * 1024) /* no document we handle is larger */

void buf_done(struct buf *b);
void buf_reset(struct buf *b); /* empties, keeps memory, clears `full` */

void buf_add(struct buf *b, struct str s);
void buf_add_char_slow(struct buf *b, char c); /* may have to grow */
/* Inline: writers put most of their punctuation so. */
static inline void buf_add_char(struct buf *b, char c)
{
    if (!b->full && b->n + 1 < b->cap) {
        b->p[b->n++] = c;
    } else {
        buf_add_char_slow(b, c);
    }
}
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(struct buf *b, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

/* Drops the first `n` bytes. */
void buf_drop(struct buf *b, size_t n);

/* The content; valid until the next change. */
struct str buf_str(const struct buf *b);
