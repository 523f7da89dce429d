#include "base/metric.h"
#include "tests/check.h"

static const double bounds[] = { 0.1, 1, 10 };

TEST(metric_series_are_interned_by_their_values)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    metrics_init(&m);
    struct metric *f = metrics_family(
        &m, &(struct metric_spec){ .name = "a", .help = "h", .labels = { "x", "y" } });
    struct metric_series *one = metric_series(f, (struct str[]){ STR("1"), STR("23") });
    struct metric_series *other = metric_series(f, (struct str[]){ STR("12"), STR("3") });
    CHECK(one != other);
    metric_add(one, 1);
    metric_add(metric_series(f, (struct str[]){ STR("1"), STR("23") }), 2);
    CHECK_EQ(one->value, 3);
    CHECK_EQ(other->value, 0);
    CHECK_EQ(f->series_count, 2);
}

TEST(metric_update_of_a_known_series_allocates_nothing)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    metrics_init(&m);
    struct metric *f =
        metrics_family(&m, &(struct metric_spec){ .name = "a", .help = "h", .labels = { "x" } });
    struct str value[] = { STR("a value of some length") };
    metric_add(metric_series(f, value), 1);
    size_t held = m.memory.total;
    size_t used = m.memory.used;
    size_t key = m.key.cap;
    for (int i = 0; i < 1000; i++) {
        metric_add(metric_series(f, value), 1);
    }
    CHECK_EQ(m.memory.total, held);
    CHECK_EQ(m.memory.used, used);
    CHECK_EQ(m.key.cap, key);
    CHECK_EQ(metric_series(f, value)->value, 1001);
}

TEST(metrics_families_keep_the_order_of_registration)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    metrics_init(&m);
    struct metric *z = metrics_family(&m, &(struct metric_spec){ .name = "z", .help = "" });
    struct metric *a =
        metrics_family(&m, &(struct metric_spec){ .name = "a", .help = "", .kind = METRIC_GAUGE });
    CHECK(m.first == z);
    CHECK(z->next == a);
    CHECK(metrics_family(&m, &(struct metric_spec){ .name = "z", .help = "" }) == z);
    CHECK(metrics_find(&m, STR("a")) == a);
    CHECK(metrics_find(&m, STR("b")) == NULL);
    CHECK_EQ(z->series_count, 1); /* no labels: there from the start */
}

TEST(metric_observe_counts_a_bound_to_its_own_bucket)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    metrics_init(&m);
    struct metric_series *s =
        metric_series(metrics_family(&m, &(struct metric_spec){ .name = "h",
                                                                .help = "",
                                                                .kind = METRIC_HISTOGRAM,
                                                                .buckets = bounds,
                                                                .bucket_count = 3 }),
                      NULL);
    metric_observe(s, 0.1);
    metric_observe(s, 0.5);
    metric_observe(s, 11);
    CHECK_EQ(s->buckets[0], 1);
    CHECK_EQ(s->buckets[1], 1);
    CHECK_EQ(s->buckets[2], 0);
    CHECK_EQ(s->buckets[3], 1);
    CHECK_EQ(s->count, 3);
    CHECK(s->sum > 11.59 && s->sum < 11.61);
}

TEST(metric_series_over_the_limit_share_one)
{
    CLEANUP(metrics_done)
    struct metrics m = { 0 };
    CLEANUP(arena_done)
    struct arena names = { 0 };
    metrics_init(&m);
    struct metric *f =
        metrics_family(&m, &(struct metric_spec){ .name = "a", .help = "h", .labels = { "x" } });
    for (uint32_t i = 0; i < METRIC_SERIES_MAX + 50; i++) {
        struct str value = arena_printf(&names, "%u", i);
        metric_add(metric_series(f, &value), 1);
    }
    CHECK_EQ(f->series_count, METRIC_SERIES_MAX + 1);
    CHECK_STR(f->last->values[0], METRIC_OVERFLOW);
    CHECK_EQ(f->last->value, 50);
}
