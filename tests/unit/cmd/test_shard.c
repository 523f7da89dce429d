#include "cmd/shard.h"

#include "tests/check.h"

TEST(shard_is_a_number_below_another)
{
    static const struct {
        const char *text;
        bool good;
        uint32_t index;
        uint32_t count;
    } cases[] = {
        { "", true, 0, 0 },       { "0/1", true, 0, 1 },     { "0/4", true, 0, 4 },
        { "3/4", true, 3, 4 },    { "63/64", true, 63, 64 }, { "4/4", false, 0, 0 },
        { "0/0", false, 0, 0 },   { "0/65", false, 0, 0 },   { "1", false, 0, 0 },
        { "/4", false, 0, 0 },    { "1/", false, 0, 0 },     { "-1/4", false, 0, 0 },
        { "1/4/2", false, 0, 0 }, { " 1/4", false, 0, 0 },   { "1/four", false, 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct shard shard = { .index = 77 };
        struct err err = { 0 };
        int r = shard_parse(str_from(cases[i].text), &shard, &err);
        CHECK_EQ(r == 0, cases[i].good);
        if (r == 0) {
            CHECK_EQ(shard.index, cases[i].index);
            CHECK_EQ(shard.count, cases[i].count);
        } else {
            CHECK_EQ(shard.index, 77);
            CHECK(str_contains(str_from(err.msg), STR(": want i/n with 0 <= i < n <= 64")));
        }
    }
}
