#include "base/prioqueue.h"

#include "base/rng.h"
#include "tests/check.h"

struct thing {
    struct prioqueue_item item;
    uint32_t key;
};

static bool before(struct prioqueue_item *a, struct prioqueue_item *b)
{
    return CONTAINER_OF(a, struct thing, item)->key < CONTAINER_OF(b, struct thing, item)->key;
}

TEST(prioqueue_gives_the_least_first_whoever_leaves_in_between)
{
    struct thing things[200] = { 0 };
    struct prioqueue p;
    struct rng rng;
    rng_init(&rng, 7);
    prioqueue_init(&p, before);
    CHECK(prioqueue_first(&p) == NULL);
    for (uint32_t i = 0; i < ARRAY_LEN(things); i++) {
        things[i].key = rng_below(&rng, 50);
        prioqueue_put(&p, &things[i].item);
        prioqueue_check(&p);
    }
    for (uint32_t i = 0; i < ARRAY_LEN(things); i += 3) {
        prioqueue_take(&p, &things[i].item);
        CHECK(!prioqueue_inside(&things[i].item));
        prioqueue_check(&p);
    }
    uint32_t last = 0;
    uint32_t n = 0;
    for (struct prioqueue_item *first; (first = prioqueue_first(&p)) != NULL; n++) {
        const struct thing *t = CONTAINER_OF(first, struct thing, item);
        CHECK(t->key >= last);
        last = t->key;
        prioqueue_take(&p, first);
    }
    CHECK_EQ(n, ARRAY_LEN(things) - (ARRAY_LEN(things) + 2) / 3);
    prioqueue_put(&p, &things[1].item);
    prioqueue_done(&p);
    CHECK(!prioqueue_inside(&things[1].item));
}
