#include "base/buf.h"
#include "tests/check.h"

TEST(buf_grows_and_gives_its_content)
{
    CLEANUP(buf_done)
    struct buf b = { 0 };
    CHECK_EQ(buf_str(&b).n, 0);
    buf_add(&b, STR_NONE);
    buf_add(&b, STR("abc"));
    buf_add_char(&b, 'd');
    buf_printf(&b, "%03d", 5);
    CHECK_STR(buf_str(&b), "abcd005");
    buf_drop(&b, 4);
    CHECK_STR(buf_str(&b), "005");
    buf_drop(&b, 0);
    buf_reset(&b);
    CHECK_EQ(b.n, 0);
}

TEST(buf_that_is_full_takes_nothing_more_until_it_is_reset)
{
    CLEANUP(buf_done)
    struct buf b = { .max = 4 };
    buf_add(&b, STR("abc"));
    CHECK(!b.full);
    buf_add(&b, STR("de"));
    CHECK(b.full);
    buf_add_char(&b, 'x');
    buf_printf(&b, "%d", 1);
    CHECK_STR(buf_str(&b), "abc");
    buf_reset(&b);
    CHECK(!b.full);
    buf_printf(&b, "%d", 1234);
    CHECK_STR(buf_str(&b), "1234");
    CHECK(!b.full);
}

TEST(buf_printf_writes_the_same_with_and_without_room)
{
    for (int before = 240; before < 260; before++) {
        CLEANUP(buf_done)
        struct buf b = { .max = 262 };
        for (int i = 0; i < before; i++) {
            buf_add_char(&b, 'x');
        }
        buf_printf(&b, "%s", "12345678");
        CHECK_EQ(b.full, before + 8 > 262);
        CHECK_EQ(b.n, b.full ? before : before + 8);
        CHECK_EQ(b.p[b.n - 1], b.full ? 'x' : '8');
    }
}

/* The maximum holds whatever comes, and what went in is what comes out. */
PROPERTY(buf_never_passes_its_maximum)
{
    CLEANUP(buf_done)
    struct buf b = { .max = 1 + rng_below(rng, 2000) };
    char all[4000];
    size_t n = 0;
    for (int i = 0; i < 60; i++) {
        char piece[64];
        size_t size = rng_below(rng, sizeof(piece));
        memset(piece, 'a' + i % 26, size);
        bool fits = !b.full && n + size <= b.max;
        buf_add(&b, (struct str){ .p = piece, .n = size });
        if (fits) {
            memcpy(all + n, piece, size);
            n += size;
        }
        CHECK(b.n <= b.max);
        CHECK_EQ(b.full, !fits || b.full);
    }
    CHECK_STR(buf_str(&b), ((struct str){ .p = all, .n = n }));
}
