#include "base/base64.h"
#include "tests/check.h"

TEST(base64_agrees_with_the_vectors_of_the_rfc)
{
    static const char *const cases[][2] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str back;
        CHECK_STR(base64_encode(&a, str_from(cases[i][0])), cases[i][1]);
        CHECK(base64_decode(str_from(cases[i][1]), &a, &back));
        CHECK_STR(back, cases[i][0]);
    }
}

TEST(base64_decode_passes_over_line_breaks_and_nothing_else)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str back = STR("kept");
    static const char *const wrong[] = { "Zg",   "Zg=",  "Z",     "Zg==Zg==", "Zm 8=",
                                         "====", "Z===", "Zm9v!", "Zm-_",     "Zg==x" };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK(!base64_decode(str_from(wrong[i]), &a, &back));
        CHECK_STR(back, "kept");
    }
    CHECK(base64_decode(STR("Zm9v\r\nYg\n==\n"), &a, &back));
    CHECK_STR(back, "foob");
}

PROPERTY(base64_gives_back_every_byte)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    size_t n = rng_below(rng, 100);
    char *bytes = arena_alloc(&a, n);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)rng_below(rng, 256);
    }
    struct str before = { .p = bytes, .n = n };
    struct str after;
    CHECK(base64_decode(base64_encode(&a, before), &a, &after));
    CHECK(str_eq(before, after));
}
