#include "base/prioqueue.h"

#include "base/rng.h"
#include "tests/check.h"

struct thing {
    struct prio_item item;
    uint32_t key;
};

static bool before(struct prio_item *a, struct prio_item *b)
{
    return CONTAINER_OF(a, struct thing, item)->key < CONTAINER_OF(b, struct thing, item)->key;
}

TEST(prio_gives_the_least_first_whoever_leaves_in_between)
{
    struct thing things[200] = { 0 };
    struct prio p;
    struct rng rng;
    rng_init(&rng, 7);
    prio_init(&p, before);
    CHECK(prio_first(&p) == NULL);
    for (uint32_t i = 0; i < ARRAY_LEN(things); i++) {
        things[i].key = rng_below(&rng, 50);
        prio_put(&p, &things[i].item);
        prio_check(&p);
    }
    for (uint32_t i = 0; i < ARRAY_LEN(things); i += 3) {
        prio_take(&p, &things[i].item);
        CHECK(!prio_inside(&things[i].item));
        prio_check(&p);
    }
    uint32_t last = 0;
    uint32_t n = 0;
    for (struct prio_item *first; (first = prio_first(&p)) != NULL; n++) {
        const struct thing *t = CONTAINER_OF(first, struct thing, item);
        CHECK(t->key >= last);
        last = t->key;
        prio_take(&p, first);
    }
    CHECK_EQ(n, ARRAY_LEN(things) - (ARRAY_LEN(things) + 2) / 3);
    prio_put(&p, &things[1].item);
    prio_done(&p);
    CHECK(!prio_inside(&things[1].item));
}
