#include "format/gzip.h"

#include <zlib.h>

#define GZIP_LEVEL 1     /* the loop waits meanwhile: half of the gain for a tenth of the time */
#define GZIP_WINDOW 31   /* the largest window, and a gzip header instead of zlib's */
#define GZIP_MEMORY 8    /* zlib's default */
#define GZIP_PIECE 16384 /* bytes of output at a time */

/* "0", "0.", "0.000": what is not wanted at all. */
static bool gzip_is_zero(struct str weight)
{
    for (size_t i = 0; i < weight.n; i++) {
        if (weight.p[i] != '0' && weight.p[i] != '.') {
            return false;
        }
    }
    return weight.n > 0 && weight.p[0] == '0';
}

static bool gzip_refuses(struct str parameters)
{
    struct str one;
    while (str_split_next(&parameters, ';', &one)) {
        struct str name;
        struct str value;
        if (str_cut(one, STR("="), &name, &value) && str_eq_fold(str_trim(name), STR("q"))) {
            return gzip_is_zero(str_trim(value));
        }
    }
    return false;
}

bool gzip_is_accepted(struct str header)
{
    bool any = false;
    struct str one;
    while (str_split_next(&header, ',', &one)) {
        struct str coding;
        struct str parameters;
        (void)str_cut(one, STR(";"), &coding, &parameters);
        coding = str_trim(coding);
        if (str_eq_fold(coding, STR("gzip")) || str_eq_fold(coding, STR("x-gzip"))) {
            return !gzip_refuses(parameters); /* naming gzip counts more than "*" */
        }
        any |= str_eq(coding, STR("*")) && !gzip_refuses(parameters);
    }
    return any;
}

void gzip_pack(struct str text, struct buf *out)
{
    z_stream z = { 0 };
    unsigned char piece[GZIP_PIECE];
    int r = deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY);
    if (r != Z_OK) {
        out_of_memory(text.n);
    }
    ASSERT(text.n <= UINT32_MAX); /* no buffer is that large */
    z.next_in = (z_const Bytef *)(uintptr_t)text.p;
    z.avail_in = (uInt)text.n;
    do {
        z.next_out = piece;
        z.avail_out = sizeof(piece);
        r = deflate(&z, Z_FINISH);
        ASSERT(r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR);
        buf_add(out, (struct str){ .p = (const char *)piece, .n = sizeof(piece) - z.avail_out });
    } while (r != Z_STREAM_END);
    (void)deflateEnd(&z); /* complains only about a stream that is not at its end */
}
