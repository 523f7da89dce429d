/*
 * arena: memory with one named lifetime, freed as a whole.
 *
 * A zeroed arena is ready for use. Memory comes back zeroed. Running out of memory ends the
 * process.
 */
#pragma once

#include "base/str.h"

#define ARENA_BLOCK 4096u /* first block; later ones double up to ARENA_BLOCK_MAX */
#define ARENA_BLOCK_MAX (256u * 1024u)

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used;                /* in the newest block */
    size_t total;               /* bytes held from the system */
    size_t first;               /* size of the first block; 0 = ARENA_BLOCK */
};

void arena_done(struct arena *a);

/* As arena_done, but overwrites the content first: for keys and passwords. */
void arena_wipe(struct arena *a);

/* Forgets all content; keeps one block so that a loop does not return to the allocator. */
void arena_reset(struct arena *a);

void *arena_alloc(struct arena *a, size_t size);
void *arena_alloc_array(struct arena *a, size_t count, size_t size);

#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, count) ((type *)arena_alloc_array((a), (count), sizeof(type)))

/* Makes room for one more element behind `*items`, doubling as needed; the old array stays valid.
 */
#define ARENA_GROW(a, items, n, cap)                                                               \
    ((items) = arena_grow((a), (items), (n), &(cap), sizeof(*(items))))
void *arena_grow(struct arena *a, const void *items, uint32_t n, uint32_t *cap, size_t size);

/* Copies are NUL-terminated behind their end, so `.p` may go to libc. */
struct str arena_str(struct arena *a, struct str s);
struct str arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct str arena_concat(struct arena *a, struct str left, struct str right);
/* "left.right", or `right` alone behind an empty left: the path of a member. */
struct str arena_path(struct arena *a, struct str left, struct str right);
