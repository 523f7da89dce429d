#include "base/hex.h"
#include "tests/check.h"

TEST(hex_digits_of_both_cases_are_read_and_nothing_else)
{
    for (int c = -128; c < 128; c++) {
        const char *digits = "0123456789abcdef";
        const char *hit = c > 0 ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
        CHECK_EQ(hex_digit((char)c), hit != NULL ? hit - digits : -1);
    }
}

TEST(hex_prints_two_digits_a_byte)
{
    static const unsigned char bytes[] = { 0x00, 0x0f, 0xa5, 0xff };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    hex_add(&out, bytes, sizeof(bytes), /* upper= */ false);
    hex_add(&out, bytes, sizeof(bytes), /* upper= */ true);
    CHECK_STR(buf_str(&out), "000fa5ff000FA5FF");
}
