#include "operation/series.h"

#include "tests/check.h"

/* 2026-01-02T03:04:05Z */
#define NOW SECONDS(1767323045)

static bool label(void *ctx, struct str key, struct str *ret_value)
{
    const struct jval *v = jval_get(ctx, key);
    *ret_value = jval_str(v);
    return v != NULL;
}

static struct machine machine(struct arena *a, const char *name, const char *labels)
{
    const struct jval *v = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(str_from(labels), 0, a, &v, &err), 0);
    return (struct machine){ .name = str_from(name),
                             .uid = str_from(name),
                             .created = NOW - HOURS(2),
                             .label = label,
                             .label_ctx = (void *)(uintptr_t)v };
}

static struct node_series series(struct arena *a, const char *spec)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    struct node_series s;
    CHECK_EQ(json_parse(arena_printf(a, "{\"metadata\":{\"name\":\"s\"},\"spec\":%s}", spec), 0, a,
                        &object, &err),
             0);
    node_series_read(object, a, &s);
    CHECK_STR(spec_problem_text(&s.problem, a), "");
    return s;
}

TEST(series_has_machines_by_every_part_of_a_term)
{
    static const struct {
        const char *spec;
        bool gpu1;  /* pool=gpu, debian 12, kernel 6.1 */
        bool work2; /* nothing is known */
        bool outside;
    } cases[] = {
        { "{\"scope\":\"Nodes\"}", true, true, false },
        { "{\"scope\":\"External\"}", false, false, true },
        { "{\"scope\":\"All\"}", true, true, true },
        { "{\"selector\":{\"matchLabels\":{\"pool\":\"gpu\"}}}", true, false, false },
        { "{\"names\":[\"work-2\",\"x\"]}", false, true, false },
        { "{\"globs\":[\"g*\"]}", true, false, false },
        { "{\"globs\":[\"*-[12]\"]}", true, true, false },
        { "{\"facts\":{\"osId\":[\"debian\"],\"kernel\":\">=5.10,<7\"}}", true, false, false },
        { "{\"facts\":{\"osId\":[\"ubuntu\"]}}", false, false, false },
        { "{\"facts\":{\"kernel\":\"<6\"}}", false, false, false },
        { "{\"names\":[\"gpu-1\"],\"globs\":[\"w*\"]}", false, false, false },
        { "{\"include\":[{\"names\":[\"gpu-1\"]},{\"globs\":[\"w*\"]}]}", true, true, false },
        { "{\"exclude\":[{\"selector\":{\"matchLabels\":{\"pool\":\"gpu\"}}}]}", false, true,
          false },
        { "{\"scope\":\"Nodes\",\"minAge\":\"2h\"}", true, true, false },
        { "{\"scope\":\"Nodes\",\"minAge\":\"3h\"}", false, false, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        const struct machine_facts facts = { .os_id = STR("debian"),
                                             .os_version = STR("12"),
                                             .kernel = STR("6.1.0-28") };
        check_case((int64_t)i);
        struct node_series s = series(&a, cases[i].spec);
        struct machine gpu = machine(&a, "gpu-1", "{\"pool\":\"gpu\"}");
        struct machine work = machine(&a, "work-2", "{}");
        struct machine outside = machine(&a, "nfs", "{}");
        gpu.facts = &facts;
        outside.external = true;
        CHECK_EQ(series_has(&s.spec, &gpu, NOW), cases[i].gpu1);
        CHECK_EQ(series_has(&s.spec, &work, NOW), cases[i].work2);
        CHECK_EQ(series_has(&s.spec, &outside, NOW), cases[i].outside);
        arena_done(&a);
    }
    check_case(-1);
}

TEST(series_sample_keeps_the_same_machines_when_others_leave)
{
    struct arena a = { 0 };
    struct node_series s = series(&a, "{\"sample\":3}");
    struct series_rank all[10];
    struct series_rank less[9];
    for (uint32_t i = 0; i < 10; i++) {
        all[i] = series_rank(s.spec.seed, arena_printf(&a, "uid-%u", i), i);
    }
    CHECK_EQ(series_sample(&s.spec, all, 10), 3);
    uint32_t n = 0;
    for (uint32_t i = 0; i < 10; i++) {
        if (i != 5) { /* one that is not in the sample leaves */
            less[n++] =
                series_rank(s.spec.seed, arena_printf(&a, "uid-%u", all[i].index), all[i].index);
        }
    }
    CHECK_EQ(series_sample(&s.spec, less, n), 3);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(less[i].index, all[i].index);
    }
    s.spec.sample = (struct spec_share){ 0 };
    CHECK_EQ(series_sample(&s.spec, all, 10), 10);
    s.spec.sample = (struct spec_share){ .given = true, .n = 50 };
    CHECK_EQ(series_sample(&s.spec, all, 10), 10);
    arena_done(&a);
}

TEST(machine_is_held_by_a_label)
{
    static const struct {
        const char *labels;
        bool held;
    } cases[] = {
        { "{}", false },
        { "{\"drydock.dev/hold\":\"true\"}", true },
        { "{\"drydock.dev/hold\":\"false\"}", false },
        { "{\"drydock.dev/hold.m\":\"true\"}", true },
        { "{\"drydock.dev/hold.n\":\"true\"}", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        struct machine m = machine(&a, "n", cases[i].labels);
        CHECK_EQ(machine_is_held(&m, STR("m")), cases[i].held);
        arena_done(&a);
    }
    check_case(-1);
}
