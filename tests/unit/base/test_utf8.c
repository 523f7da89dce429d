#include "base/utf8.h"
#include "tests/check.h"

TEST(utf8_refuses_what_the_rfc_refuses)
{
    static const char *const wrong[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc3",
        "\xc3(",
        "\xe0\x80\x80",
        "\xe2\x82",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        uint32_t point;
        check_case((int64_t)i);
        CHECK_EQ(utf8_decode(str_from(wrong[i]), &point), 0);
        CHECK_EQ(utf8_find_invalid(str_from(wrong[i])), 0);
    }
    check_case(-1);
    uint32_t point;
    CHECK_EQ(utf8_decode(STR_NONE, &point), 0);
    CHECK_EQ(utf8_find_invalid(STR("a\xc3\xa9\xe2\x82\xac\xf0\x90\x8d\x88")), SIZE_MAX);
    CHECK_EQ(utf8_find_invalid(STR("ab\xff")), 2);
}

/* Every character survives being written and read. */
TEST(utf8_writes_and_reads_every_character)
{
    CLEANUP(buf_done)
    struct buf b = { 0 };
    for (uint32_t point = 0; point <= 0x10ffff; point++) {
        if (point >= 0xd800 && point <= 0xdfff) {
            continue;
        }
        uint32_t back = 0;
        buf_reset(&b);
        utf8_add(&b, point);
        CHECK_EQ(utf8_decode(buf_str(&b), &back), b.n);
        CHECK_EQ(back, point);
    }
}
