#include "base/arena.h"
#include "base/str.h"
#include "tests/check.h"

TEST(str_views_compare_by_bytes)
{
    CHECK(str_eq(STR_NONE, STR("")));
    CHECK(str_eq(STR("a\0b"), STR("a\0b")));
    CHECK(!str_eq(STR("a"), STR("b")));
    CHECK(!str_eq(STR("a"), STR("ab")));
    CHECK(str_eq_fold(STR("ReTry-After"), STR("retry-AFTER")));
    CHECK(!str_eq_fold(STR("a"), STR("ab")));
    CHECK(!str_eq_fold(STR("@"), STR("`")));
    CHECK(str_cmp(STR("a"), STR("b")) < 0);
    CHECK(str_cmp(STR("a"), STR("ab")) < 0);
    CHECK(str_cmp(STR("b"), STR("ab")) > 0);
    CHECK(str_cmp(STR("\xc3"), STR("z")) > 0);
    CHECK_EQ(str_cmp(STR_NONE, STR("")), 0);
    CHECK(str_from(NULL).p == NULL);
}

TEST(str_finds_cuts_and_splits)
{
    struct str left;
    struct str right;
    CHECK_EQ(str_find(STR("hello"), STR("lo")), 3);
    CHECK_EQ(str_find(STR("hello"), STR("")), 0);
    CHECK_EQ(str_find(STR("lo"), STR("hello")), SIZE_MAX);
    CHECK(str_contains(STR("hello"), STR("ell")));
    CHECK(!str_contains(STR_NONE, STR("x")));
    CHECK_EQ(str_find_char(STR("a.b.c"), '.'), 1);
    CHECK_EQ(str_rfind_char(STR("a.b.c"), '.'), 3);
    CHECK_EQ(str_find_char(STR_NONE, '.'), SIZE_MAX);
    CHECK_EQ(str_rfind_char(STR_NONE, '.'), SIZE_MAX);
    CHECK(str_starts(STR("abc"), STR("ab")));
    CHECK(!str_starts(STR("a"), STR("ab")));
    CHECK(str_ends(STR("abc"), STR("bc")));
    CHECK(!str_ends(STR("c"), STR("bc")));
    CHECK(str_cut_suffix(STR("25%"), STR("%"), &left));
    CHECK_STR(left, "25");
    CHECK(!str_cut_prefix(STR("25"), STR("x"), &left));
    CHECK_STR(left, "25");
    CHECK(str_cut(STR("k=v=w"), STR("="), &left, &right));
    CHECK_STR(left, "k");
    CHECK_STR(right, "v=w");
    CHECK(!str_cut(STR("k"), STR("="), &left, &right));
    CHECK_STR(left, "k");
    CHECK_EQ(right.n, 0);
    CHECK_STR(str_trim(STR(" \t\r\n a b \v\f")), "a b");
    CHECK_STR(str_trim(STR("  ")), "");
    CHECK_STR(str_sub(STR("abc"), 1, 99), "bc");
}

TEST(str_split_walks_over_every_piece)
{
    static const struct {
        const char *text;
        int pieces;
    } cases[] = { { "", 1 }, { "a", 1 }, { "a,", 2 }, { ",", 2 }, { "a,b,,c", 4 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str rest = str_from(cases[i].text);
        struct str piece;
        int n = 0;
        while (str_split_next(&rest, ',', &piece)) {
            n++;
        }
        CHECK_EQ(n, cases[i].pieces);
    }
}

TEST(str_numbers_consume_all_and_stay_in_range)
{
    uint32_t u32 = 7;
    uint64_t u64 = 7;
    int64_t i64 = 7;
    double f64 = 7;
    CHECK(str_to_u32(STR("4294967295"), &u32));
    CHECK_EQ(u32, UINT32_MAX);
    CHECK(!str_to_u32(STR("4294967296"), &u32));
    CHECK(str_to_u64(STR("18446744073709551615"), &u64));
    CHECK(!str_to_u64(STR("18446744073709551616"), &u64));
    CHECK(!str_to_u64(STR(""), &u64));
    CHECK(!str_to_u64(STR("-1"), &u64));
    CHECK(!str_to_u64(STR("1 "), &u64));
    CHECK(str_to_i64(STR("-9223372036854775808"), &i64));
    CHECK_EQ(i64, INT64_MIN);
    CHECK(!str_to_i64(STR("9223372036854775808"), &i64));
    CHECK(!str_to_i64(STR("--1"), &i64));
    CHECK(!str_to_i64(STR("-"), &i64));
    CHECK_EQ(i64, INT64_MIN);
    CHECK(str_to_f64(STR("-2.5e3"), &f64));
    CHECK(f64 == -2500);
    CHECK(!str_to_f64(STR(" 1"), &f64));
    CHECK(!str_to_f64(STR("1x"), &f64));
    CHECK(!str_to_f64(STR("inf"), &f64));
    CHECK(!str_to_f64(STR("nan"), &f64));
    CHECK(!str_to_f64(STR("1e999"), &f64));
    CHECK(!str_to_f64(STR_NONE, &f64));
    CHECK(f64 == -2500);
}

PROPERTY(str_pieces_joined_again_are_the_text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    char bytes[40];
    size_t n = rng_below(rng, sizeof(bytes));
    for (size_t i = 0; i < n; i++) {
        bytes[i] = "ab,"[rng_below(rng, 3)];
    }
    struct str text = { .p = bytes, .n = n };
    struct str rest = text;
    struct str piece;
    struct str joined = STR_NONE;
    bool first = true;
    while (str_split_next(&rest, ',', &piece)) {
        joined = first ? arena_str(&a, piece)
                       : arena_concat(&a, arena_concat(&a, joined, STR(",")), piece);
        first = false;
    }
    CHECK_STR(joined, text);
}
