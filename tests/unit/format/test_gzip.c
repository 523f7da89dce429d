#include "format/gzip.h"

#include <zlib.h>

#include "tests/check.h"

TEST(gzip_is_packed_only_for_who_accepts_it)
{
    static const struct {
        const char *header;
        bool accepted;
    } cases[] = {
        { "", false },
        { "gzip", true },
        { "GZIP", true },
        { "x-gzip", true },
        { "deflate, gzip;q=1.0, *;q=0.5", true },
        { "gzip;q=0", false },
        { "gzip; q = 0.000", false },
        { "gzip;q=0.001", true },
        { "gzip;level=0", true },
        { "*", true },
        { "*;q=0", false },
        { "*, gzip;q=0", false },
        { "gzip;q=0, *", false },
        { "*;q=0, gzip", true },
        { "identity", false },
        { "gzipped", false },
        { "br;q=1.0,,", false },
        { ";q=1,gzip", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_EQ(gzip_is_accepted(str_from(cases[i].header)), cases[i].accepted);
    }
    check_case(-1);
}

static void check_unpacks(struct str packed, struct str text)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    unsigned char piece[1000];
    z_stream z = { .next_in = (z_const Bytef *)(uintptr_t)packed.p, .avail_in = (uInt)packed.n };
    CHECK_EQ(inflateInit2(&z, 31), Z_OK);
    int r = Z_OK;
    while (r == Z_OK) {
        z.next_out = piece;
        z.avail_out = sizeof(piece);
        r = inflate(&z, Z_NO_FLUSH);
        buf_add(&out, (struct str){ .p = (const char *)piece, .n = sizeof(piece) - z.avail_out });
    }
    CHECK_EQ(inflateEnd(&z), Z_OK);
    CHECK_EQ(r, Z_STREAM_END);
    CHECK_EQ(z.avail_in, 0);
    CHECK(str_eq(buf_str(&out), text));
}

PROPERTY(gzip_what_is_packed_unpacks_to_the_same)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    CLEANUP(buf_done)
    struct buf packed = { 0 };
    CLEANUP(buf_done)
    struct buf again = { 0 };
    uint32_t n = rng_below(rng, rng_chance(rng, 100) ? 200000 : 2000);
    bool noise = rng_chance(rng, 500);
    for (uint32_t i = 0; i < n; i++) {
        buf_add_char(&text, (char)(noise ? rng_below(rng, 256) : 'a' + rng_below(rng, 2)));
    }
    gzip_pack(buf_str(&text), &packed);
    check_unpacks(buf_str(&packed), buf_str(&text));
    gzip_pack(buf_str(&text), &again);
    CHECK(str_eq(buf_str(&packed), buf_str(&again)));
    CHECK(noise || n < 1000 || packed.n < n / 2);
}
