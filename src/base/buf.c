#include "base/buf.h"

void buf_done(struct buf *b)
{
    free(b->p);
    *b = (struct buf){ .max = b->max };
}

void buf_reset(struct buf *b)
{
    b->n = 0;
    b->full = false;
}

/* True when `more` bytes and a final NUL fit now. */
static bool buf_reserve(struct buf *b, size_t more)
{
    size_t max = b->max > 0 ? b->max : BUF_MAX;
    if (b->full || more > max - b->n) {
        b->full = true;
        return false;
    }
    size_t wanted = b->n + more + 1;
    if (wanted <= b->cap) {
        return true;
    }
    size_t cap = MAX(b->cap * 2, (size_t)256);
    cap = MAX(MIN(cap, max + 1), wanted);
    char *grown = realloc(b->p, cap);
    if (grown == NULL) {
        out_of_memory(cap);
    }
    b->p = grown;
    b->cap = cap;
    return true;
}

void buf_add(struct buf *b, struct str s)
{
    if (buf_reserve(b, s.n) && s.n > 0) {
        memcpy(b->p + b->n, s.p, s.n);
        b->n += s.n;
    }
}

void buf_add_char_slow(struct buf *b, char c)
{
    if (buf_reserve(b, 1)) {
        b->p[b->n++] = c;
    }
}

void buf_vprintf(struct buf *b, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    /* Into what room there is: mostly it is enough, and the text is formatted only once. */
    size_t room = b->full || b->p == NULL ? 0 : b->cap - b->n;
    int n = vsnprintf(room == 0 ? NULL : b->p + b->n, room, fmt, args);
    ASSERT(n >= 0);
    if (buf_reserve(b, (size_t)n)) {
        if ((size_t)n >= room) {
            (void)vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
        }
        b->n += (size_t)n;
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    buf_vprintf(b, fmt, args);
    va_end(args);
}

void buf_drop(struct buf *b, size_t n)
{
    ASSERT(n <= b->n);
    if (n > 0) {
        memmove(b->p, b->p + n, b->n - n);
        b->n -= n;
    }
}

struct str buf_str(const struct buf *b)
{
    return (struct str){ .p = b->p, .n = b->n };
}
