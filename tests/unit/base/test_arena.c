#include "base/arena.h"
#include "tests/check.h"

TEST(arena_gives_zeroed_and_aligned_memory)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t n = 0; n < 200; n++) {
        char *p = arena_alloc(&a, n);
        CHECK_EQ((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < n; i++) {
            CHECK_EQ(p[i], 0);
            p[i] = 'x';
        }
    }
}

TEST(arena_reset_keeps_one_block_and_gives_zeroes_again)
{
    CLEANUP(arena_done)
    struct arena a = { .first = 64 };
    arena_reset(&a); /* an arena that was never used */
    for (int i = 0; i < 100; i++) {
        memset(arena_alloc(&a, 100), 'x', 100);
    }
    size_t before = a.total;
    arena_reset(&a);
    CHECK(a.total < before);
    CHECK(a.blocks != NULL);
    const char *p = arena_alloc(&a, 100);
    CHECK_EQ(p[0], 0);
    CHECK_EQ(p[99], 0);
}

TEST(arena_takes_what_is_larger_than_its_blocks)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    char *p = arena_alloc(&a, (size_t)4 * 1024 * 1024);
    p[(size_t)4 * 1024 * 1024 - 1] = 'x';
    CHECK(a.total >= (size_t)4 * 1024 * 1024);
}

TEST(arena_grow_doubles_and_keeps_the_content)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    uint32_t *items = NULL;
    uint32_t n = 0;
    uint32_t cap = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        ARENA_GROW(&a, items, n, cap);
        items[n++] = i;
    }
    CHECK(cap >= 1000 && cap < 2048);
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK_EQ(items[i], i);
    }
}

TEST(arena_grow_stays_in_place_only_when_nothing_came_behind)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    uint32_t *items = NULL;
    uint32_t n = 8;
    uint32_t cap = 0;
    ARENA_GROW(&a, items, 0, cap);
    CHECK_EQ(cap, 8);
    uint32_t *first = items;
    ARENA_GROW(&a, items, n, cap);
    CHECK(items == first);
    CHECK_EQ(cap, 16);
    CHECK_EQ(items[15], 0);
    char *other = arena_alloc(&a, 16);
    memset(other, 'x', 16);
    n = 16;
    items[15] = 15;
    ARENA_GROW(&a, items, n, cap);
    CHECK(items != first);
    CHECK_EQ(items[15], 15);
    CHECK_EQ(items[16], 0);
    CHECK_EQ(other[15], 'x');
}

TEST(arena_texts_end_in_nul)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CHECK_EQ(strlen(arena_str(&a, STR("abc")).p), 3);
    CHECK_EQ(strlen(arena_str(&a, STR_NONE).p), 0);
    CHECK_STR(arena_printf(&a, "%s-%d", "x", 5), "x-5");
    CHECK_STR(arena_concat(&a, STR("ab"), STR("cd")), "abcd");
    CHECK_STR(arena_concat(&a, STR_NONE, STR("cd")), "cd");
    CHECK_STR(arena_concat(&a, STR("ab"), STR_NONE), "ab");
    CHECK_EQ(strlen(arena_concat(&a, STR("ab"), STR("cd")).p), 4);
    memset(arena_alloc(&a, 1000), 'x', 1000);
    arena_reset(&a);
    for (int n = 100; n < 300; n++) { /* short and long ones are formatted in different ways */
        struct str text = arena_printf(&a, "%0*d", n, 7);
        CHECK_EQ(text.n, n);
        CHECK_EQ(strlen(text.p), n);
        CHECK_EQ(text.p[n - 1], '7');
    }
}

/* Pieces never overlap, whatever their sizes and the block they fall into. */
PROPERTY(arena_pieces_do_not_overlap)
{
    CLEANUP(arena_done)
    struct arena a = { .first = 1 + rng_below(rng, 100) };
    unsigned char *pieces[50];
    size_t sizes[50];
    for (unsigned i = 0; i < ARRAY_LEN(pieces); i++) {
        sizes[i] = rng_below(rng, 300);
        pieces[i] = arena_alloc(&a, sizes[i]);
        memset(pieces[i], (int)i, sizes[i]);
        if (sizes[i] > 0 && rng_chance(rng, 300)) {
            uint32_t cap = (uint32_t)sizes[i];
            pieces[i] = arena_grow(&a, pieces[i], cap, &cap, 1);
            memset(pieces[i] + sizes[i], (int)i, cap - sizes[i]);
            sizes[i] = cap;
        }
    }
    for (unsigned i = 0; i < ARRAY_LEN(pieces); i++) {
        for (size_t k = 0; k < sizes[i]; k++) {
            CHECK_EQ(pieces[i][k], i);
        }
    }
}

TEST(arena_wipe_leaves_an_empty_arena)
{
    struct arena a = { .first = 64 };
    arena_wipe(&a); /* an arena that was never used */
    for (int i = 0; i < 10; i++) {
        (void)arena_str(&a, STR("a password that is longer than half of the first block"));
    }
    arena_wipe(&a);
    CHECK_EQ(a.total, 0);
    CHECK(a.blocks == NULL);
    CHECK_EQ(a.first, 64);
    CHECK_STR(arena_str(&a, STR("again")), "again");
    arena_wipe(&a);
}
