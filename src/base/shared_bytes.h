/*
 * shared_bytes: bytes that several readers hold at once; the last one that lets go frees them.
 *
 * A document that goes out to many connections is in memory once, however slowly they take it.
 */
#pragma once

#include "base/buf.h"

struct shared_bytes {
    uint32_t refs;
    struct str bytes;
    void *memory; /* where they are, if not behind this */
    /* The same, compressed, once somebody has sent it so; NULL = not yet. */
    struct shared_bytes *packed;
};

/* With one reference, the caller's. Takes the buffer's memory over and leaves it empty; a buffer
 * that is full must not come here. */
struct shared_bytes *shared_bytes_take(struct buf *b);
struct shared_bytes *shared_bytes_copy(struct str bytes);

struct shared_bytes *shared_bytes_ref(struct shared_bytes *s);
void shared_bytes_unref(struct shared_bytes *s); /* accepts NULL */
/* For CLEANUP. */
void shared_bytes_unrefp(struct shared_bytes **s);
