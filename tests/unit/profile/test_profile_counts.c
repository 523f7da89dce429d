#include "profile/profile_counts.h"

#include "tests/check.h"

struct fixture {
    struct arena memory;
    struct facts *facts;
    struct profile_counts s;
    struct store_item items[40];
};

static void fixture_begin(struct fixture *f)
{
    *f = (struct fixture){ .facts = facts_new() };
    for (size_t i = 0; i < ARRAY_LEN(f->items); i++) {
        f->items[i].name = arena_printf(&f->memory, "n%zu", i);
    }
}

static void fixture_end(struct fixture *f)
{
    facts_free(f->facts);
    arena_done(&f->memory);
}

static void put(struct fixture *f, uint32_t i, bool has, const char *error)
{
    const struct facts_affinity fact = {
        .known = true, .has = has, .live = true, .error = str_from(error)
    };
    (void)facts_put_affinity(f->facts, f->items[i].name, &fact);
}

/* Its place went to another. */
static void park(struct fixture *f, uint32_t i)
{
    struct facts_affinity fact = facts_affinity(f->facts, f->items[i].name);
    if (fact.known && fact.error.n == 0) {
        fact.live = false;
        (void)facts_put_affinity(f->facts, f->items[i].name, &fact);
    }
}

static void wait_for(struct fixture *f, uint32_t i)
{
    profile_counts_add(&f->s, PROFILE_STATE_REQUIRED, &f->items[i], &f->memory);
}

TEST(profile_counts_counts_by_state)
{
    struct fixture f;
    fixture_begin(&f);
    profile_counts_add(&f.s, PROFILE_STATE_OPERATIONAL, &f.items[0], NULL);
    profile_counts_add(&f.s, PROFILE_STATE_REQUIRED, &f.items[1], NULL); /* nobody asks who */
    profile_counts_remove(&f.s, PROFILE_STATE_OPERATIONAL, &f.items[0]);
    CHECK_EQ(f.s.counts[PROFILE_STATE_OPERATIONAL], 0);
    CHECK_EQ(f.s.counts[PROFILE_STATE_REQUIRED], 1);
    CHECK(f.s.waiting == NULL);
    profile_counts_remove(&f.s, PROFILE_STATE_REQUIRED, &f.items[1]);
    fixture_end(&f);
}

TEST(profile_counts_names_those_whose_pods_matter)
{
    struct fixture f;
    struct profile_counts_pods pods;
    fixture_begin(&f);
    for (uint32_t i = 0; i < 40; i++) {
        wait_for(&f, i);
    }
    profile_counts_pods(&f.s, f.facts, &pods);
    CHECK_EQ(pods.unknown_n, PROFILE_COUNTS_UNKNOWN_MAX);
    CHECK(pods.without == NULL && pods.broken == NULL);
    for (uint32_t i = 0; i < 39; i++) {
        put(&f, i, /* has= */ true, i == 9 ? "503" : NULL);
    }
    profile_counts_pods(&f.s, f.facts, &pods);
    CHECK_EQ(pods.unknown_n, 1);
    CHECK(pods.without == NULL);
    CHECK(pods.broken == &f.items[9]);
    put(&f, 20, /* has= */ false, NULL);
    profile_counts_pods(&f.s, f.facts, &pods);
    CHECK(pods.without == &f.items[20] && pods.without_live);
    CHECK(pods.broken == NULL && pods.unknown_n == 0); /* it goes first, whatever they are */
    fixture_end(&f);
}

/* Whoever waits for it must hear when the pods of the one that goes first are not watched any more:
 * otherwise it would wait for what may have been over for long. */
TEST(profile_counts_tells_when_the_one_that_goes_first_is_not_watched)
{
    struct fixture f;
    struct profile_counts_pods pods;
    fixture_begin(&f);
    for (uint32_t i = 0; i < 3; i++) {
        wait_for(&f, i);
        put(&f, i, /* has= */ i == 2, NULL);
    }
    CHECK(profile_counts_refresh(&f.s, f.facts));
    park(&f, 2);
    CHECK(!profile_counts_refresh(&f.s, f.facts));
    park(&f, 0);
    CHECK(!profile_counts_refresh(&f.s, f.facts)); /* the other one is as good */
    profile_counts_pods(&f.s, f.facts, &pods);
    CHECK(pods.without == &f.items[1] && pods.without_live);
    CHECK_EQ(profile_counts_unwatched(&f.s, f.facts), 2);
    park(&f, 1);
    CHECK(profile_counts_refresh(&f.s, f.facts));
    fixture_end(&f);
}

/* The sum is never older than what it is of. */
PROPERTY(profile_counts_sum_is_what_a_walk_finds)
{
    struct fixture f;
    bool waits[8] = { 0 };
    fixture_begin(&f);
    for (int step = 0; step < 60; step++) {
        uint32_t i = rng_below(rng, 8);
        switch (rng_below(rng, 5)) {
        case 4:
            park(&f, i);
            break;
        case 0:
            put(&f, i, rng_chance(rng, 800), rng_chance(rng, 100) ? "503" : NULL);
            break;
        case 1:
            facts_forget_node(f.facts, f.items[i].name);
            break;
        case 2:
            (void)profile_counts_refresh(&f.s, f.facts);
            break;
        default:
            if (waits[i]) {
                profile_counts_remove(&f.s, PROFILE_STATE_REQUIRED, &f.items[i]);
            } else {
                wait_for(&f, i);
            }
            waits[i] = !waits[i];
        }
        struct profile_counts_pods got;
        struct profile_counts_pods want;
        struct profile_counts fresh = f.s;
        fresh.sum_of = NULL;
        profile_counts_pods(&f.s, f.facts, &got);
        profile_counts_pods(&fresh, f.facts, &want);
        CHECK(got.without == want.without);
        CHECK(got.broken == want.broken);
        CHECK_EQ(got.without_live, want.without_live);
        CHECK_EQ(got.unknown_n, want.unknown_n);
    }
    fixture_end(&f);
}
