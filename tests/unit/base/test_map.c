#include "base/map.h"
#include "tests/check.h"

TEST(map_takes_the_empty_name)
{
    CLEANUP(map_done)
    struct map m = { 0 };
    int one;
    int two;
    CHECK(map_put(&m, STR_NONE, &one) == NULL);
    CHECK(map_put(&m, STR("a"), &two) == NULL);
    CHECK(map_find(&m, STR("")) == &one);
    CHECK(map_del(&m, STR_NONE) == &one);
    CHECK(map_find(&m, STR_NONE) == NULL);
    CHECK_EQ(map_count(&m), 1);
}

/* The vector of the SipHash paper. */
TEST(map_hash_is_siphash)
{
    static const uint64_t key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
    static const char bytes[] = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e";
    CHECK(map_hash(key, (struct str){ .p = bytes, .n = 15 }) == 0xa129ca6149be45e5);
}

TEST(map_walks_in_order_of_insertion_and_lets_items_go)
{
    CLEANUP(map_done)
    struct map m;
    map_init(&m, 1, 2);
    static const char *const names[] = { "z", "a", "m", "b" };
    int values[4] = { 0, 1, 2, 3 };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK(map_put(&m, str_from(names[i]), &values[i]) == NULL);
    }
    CHECK(map_put(&m, STR("a"), &values[3]) == &values[1]); /* replacing keeps the place */
    size_t at = 0;
    MAP_EACH (&m, item) {
        CHECK_STR(map_item_name(item), names[at++]);
        CHECK(map_item_value(item) != NULL);
        CHECK(map_del(&m, map_item_name(item)) != NULL);
    }
    CHECK_EQ(at, 4);
    CHECK_EQ(map_count(&m), 0);
    CHECK(map_next(&m, NULL) == NULL);
    CHECK(map_del(&m, STR("a")) == NULL);
}

/* Agrees with a plain table of the same names, whatever is put and deleted. */
PROPERTY(map_agrees_with_a_table)
{
    CLEANUP(map_done)
    struct map m;
    map_init(&m, rng_next(rng), rng_next(rng));
    int values[20];
    void *table[20] = { 0 };
    uint32_t count = 0;
    for (int step = 0; step < 200; step++) {
        uint32_t i = rng_below(rng, ARRAY_LEN(table));
        char name[8];
        int n = snprintf(name, sizeof(name), "n%u", i);
        struct str key = { .p = name, .n = (size_t)n };
        void *value = &values[rng_below(rng, ARRAY_LEN(values))];
        if (rng_chance(rng, 500)) {
            CHECK(map_put(&m, key, value) == table[i]);
            count += table[i] == NULL ? 1 : 0;
            table[i] = value;
        } else {
            CHECK(map_del(&m, key) == table[i]);
            count -= table[i] != NULL ? 1 : 0;
            table[i] = NULL;
        }
        CHECK(map_find(&m, key) == table[i]);
        CHECK_EQ(map_count(&m), count);
    }
}
