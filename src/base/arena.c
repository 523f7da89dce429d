#include "base/arena.h"

#include <stdarg.h>

#define ARENA_PRINTF_BRIEF 128u /* what most texts fit into: they are formatted only once */

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

void arena_wipe(struct arena *a)
{
    for (struct arena_block *block = a->blocks; block != NULL; block = block->next) {
        explicit_bzero(block->data, block->size);
    }
    arena_done(a);
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

/* Not zeroed: for those who fill all of it at once. */
static void *arena_take(struct arena *a, size_t size)
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
    return memory;
}

void *arena_alloc(struct arena *a, size_t size)
{
    return memset(arena_take(a, size), 0, size);
}

void *arena_alloc_array(struct arena *a, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        out_of_memory(SIZE_MAX);
    }
    return arena_alloc(a, total);
}

/* What was allocated last grows where it is, if its block has room. */
static bool arena_extend(struct arena *a, const void *memory, size_t size, size_t more)
{
    const size_t mask = _Alignof(max_align_t) - 1;
    size_t rounded = (size + mask) & ~mask;
    if (a->blocks == NULL || size == 0 || a->used < rounded ||
        (const char *)memory != a->blocks->data + a->used - rounded) {
        return false;
    }
    size_t start = a->used - rounded;
    size_t room = (a->blocks->size - start) & ~mask;
    if (more > room - rounded) {
        return false;
    }
    memset(a->blocks->data + start + size, 0, more);
    a->used = start + ((size + more + mask) & ~mask);
    return true;
}

void *arena_grow(struct arena *a, const void *items, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) {
        return (void *)(uintptr_t)items;
    }
    uint32_t wanted = *cap == 0 ? 8 : *cap * 2;
    ASSERT(wanted > n);
    size_t more;
    if (__builtin_mul_overflow((size_t)(wanted - *cap), size, &more)) {
        out_of_memory(SIZE_MAX);
    }
    if (arena_extend(a, items, (size_t)*cap * size, more)) {
        *cap = wanted;
        return (void *)(uintptr_t)items;
    }
    void *grown = arena_alloc_array(a, wanted, size);
    if (n > 0) {
        memcpy(grown, items, (size_t)n * size);
    }
    *cap = wanted;
    return grown;
}

struct str arena_str(struct arena *a, struct str s)
{
    char *copy = arena_take(a, s.n + 1);
    if (s.n > 0) {
        memcpy(copy, s.p, s.n);
    }
    copy[s.n] = 0;
    return (struct str){ .p = copy, .n = s.n };
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
    ASSERT(fmt != NULL);
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    char brief[ARENA_PRINTF_BRIEF] = "";
    int n = vsnprintf(brief, sizeof(brief), fmt, args);
    va_end(args);
    ASSERT(n >= 0);
    struct str s = { .p = brief, .n = (size_t)n };
    if (s.n < sizeof(brief)) {
        s = arena_str(a, s);
    } else {
        char *text = arena_take(a, s.n + 1);
        (void)vsnprintf(text, s.n + 1, fmt, again);
        s.p = text;
    }
    va_end(again);
    return s;
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
