#include "base/shared_bytes.h"

#include "base/alloc.h"

struct shared_bytes *shared_bytes_take(struct buf *b)
{
    ASSERT(!b->full);
    struct shared_bytes *s = ALLOC_NEW(struct shared_bytes);
    struct str all = buf_str(b);
    /* A buffer that grew is up to twice as long as its content. */
    void *memory = all.n == 0 ? NULL : realloc(b->p, all.n);
    *s = (struct shared_bytes){ .refs = 1, .memory = memory };
    if (memory != NULL) {
        s->bytes = (struct str){ .p = memory, .n = all.n };
        b->p = NULL;
    } else if (all.n > 0) {
        out_of_memory(all.n);
    }
    buf_done(b);
    return s;
}

struct shared_bytes *shared_bytes_copy(struct str bytes)
{
    /* In one piece: a watch sends thousands of small ones. */
    struct shared_bytes *s = alloc_bytes(sizeof(*s) + bytes.n);
    char *to = (char *)(s + 1);
    if (bytes.n > 0) {
        memcpy(to, bytes.p, bytes.n);
    }
    *s = (struct shared_bytes){ .refs = 1, .bytes = { .p = to, .n = bytes.n } };
    return s;
}

struct shared_bytes *shared_bytes_ref(struct shared_bytes *s)
{
    ASSERT(s->refs > 0 && s->refs < UINT32_MAX);
    s->refs++;
    return s;
}

void shared_bytes_unref(struct shared_bytes *s)
{
    if (s == NULL) {
        return;
    }
    ASSERT(s->refs > 0);
    if (--s->refs == 0) {
        shared_bytes_unref(s->packed);
        alloc_free(s->memory);
        alloc_free(s);
    }
}

void shared_bytes_unrefp(struct shared_bytes **s)
{
    shared_bytes_unref(*s);
}
