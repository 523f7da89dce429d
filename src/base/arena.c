#include "base/arena.h"

#include <stdarg.h>

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(max_align_t) char data[];
};

static void arena_add_block(struct arena *a, size_t wanted)
{
    size_t size = a->first > 0 ? a->first : ARENA_BLOCK;
    if (a->blocks != NULL) {
        size = MIN(a->blocks->size * 2, (size_t)ARENA_BLOCK_MAX);
    }
    size = MAX(size, wanted);
    struct arena_block *block = malloc(sizeof(*block) + size);
    if (block == NULL) {
        out_of_memory(size);
    }
    block->next = a->blocks;
    block->size = size;
    a->blocks = block;
    a->used = 0;
    a->total += sizeof(*block) + size;
}

void arena_done(struct arena *a)
{
    struct arena_block *block = a->blocks;
    while (block != NULL) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
    *a = (struct arena){ .first = a->first };
}

void arena_reset(struct arena *a)
{
    if (a->blocks == NULL) {
        return;
    }
    struct arena_block *keep = a->blocks;
    struct arena rest = { .blocks = keep->next };
    arena_done(&rest);
    keep->next = NULL;
    a->used = 0;
    a->total = sizeof(*keep) + keep->size;
}

void *arena_alloc(struct arena *a, size_t size)
{
    size_t rounded;
    if (__builtin_add_overflow(size, _Alignof(max_align_t) - 1, &rounded)) {
        out_of_memory(size);
    }
    rounded &= ~(_Alignof(max_align_t) - 1);
    if (a->blocks == NULL || a->blocks->size - a->used < rounded) {
        arena_add_block(a, rounded);
    }
    void *memory = a->blocks->data + a->used;
    a->used += rounded;
    return memset(memory, 0, rounded);
}

void *arena_alloc_array(struct arena *a, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        out_of_memory(SIZE_MAX);
    }
    return arena_alloc(a, total);
}

void *arena_grow(struct arena *a, const void *items, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) {
        return (void *)(uintptr_t)items;
    }
    uint32_t wanted = *cap == 0 ? 8 : *cap * 2;
    ASSERT(wanted > n);
    void *grown = arena_alloc_array(a, wanted, size);
    if (n > 0) {
        memcpy(grown, items, (size_t)n * size);
    }
    *cap = wanted;
    return grown;
}

struct str arena_str(struct arena *a, struct str s)
{
    char *copy = arena_alloc(a, s.n + 1);
    if (s.n > 0) {
        memcpy(copy, s.p, s.n);
    }
    return (struct str){ .p = copy, .n = s.n };
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
    ASSERT(fmt != NULL);
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    ASSERT(n >= 0);
    char *text = arena_alloc(a, (size_t)n + 1);
    (void)vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return (struct str){ .p = text, .n = (size_t)n };
}

static struct str arena_join(struct arena *a, struct str left, struct str between, struct str right)
{
    const struct str parts[] = { left, between, right };
    char *text = arena_alloc(a, left.n + between.n + right.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i].n > 0) {
            memcpy(text + n, parts[i].p, parts[i].n);
            n += parts[i].n;
        }
    }
    return (struct str){ .p = text, .n = n };
}

struct str arena_concat(struct arena *a, struct str left, struct str right)
{
    return arena_join(a, left, STR_NONE, right);
}

struct str arena_path(struct arena *a, struct str left, struct str right)
{
    return arena_join(a, left, left.n > 0 ? STR(".") : STR_NONE, right);
}
