#include "kube/intern.h"

#include "base/arena.h"
#include "tests/check.h"

TEST(intern_keeps_a_text_once)
{
    struct intern table;
    intern_init(&table, 1, 2);
    const struct intern_text *a = intern_take(&table, STR("zone"));
    const struct intern_text *b = intern_take(&table, STR("zone"));
    const struct intern_text *c = intern_take(&table, STR(""));
    CHECK(a == b && a != c);
    CHECK_EQ(a->refs, 2);
    CHECK_EQ(table.count, 2);
    intern_give(&table, a);
    CHECK(intern_find(&table, STR("zone")) == b);
    intern_give(&table, b);
    CHECK(intern_find(&table, STR("zone")) == NULL);
    intern_check(&table);
    intern_done(&table);
}

/* Whatever is taken and given, the counts are those of a plain array. */
PROPERTY(intern_counts_as_a_plain_array_does)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct intern table;
    const struct intern_text *held[300] = { 0 };
    uint32_t refs[300] = { 0 };
    intern_init(&table, rng_next(rng), rng_next(rng));
    for (int step = 0; step < 1500; step++) {
        uint32_t i = rng_below(rng, 300);
        if (refs[i] > 0 && rng_chance(rng, 520)) {
            intern_give(&table, held[i]);
            refs[i]--;
        } else {
            held[i] = intern_take(&table, arena_printf(&a, "label/%u", i));
            refs[i]++;
            CHECK_EQ(held[i]->refs, refs[i]);
        }
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < 300; i++) {
        const struct intern_text *found = intern_find(&table, arena_printf(&a, "label/%u", i));
        CHECK_EQ(found != NULL, refs[i] > 0);
        count += refs[i] > 0 ? 1 : 0;
    }
    CHECK_EQ(table.count, count);
    intern_check(&table);
    intern_done(&table);
}
