#include "kinds/node_series.h"

#include "tests/check.h"

static const struct node_series *read(struct arena *a, const char *spec)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    struct node_series *s = ARENA_NEW(a, struct node_series);
    CHECK_EQ(json_parse(arena_printf(a, "{\"metadata\":{\"name\":\"s\"}%s%s}",
                                     spec[0] == '\0' ? "" : ",\"spec\":", spec),
                        0, a, &object, &err),
             0);
    node_series_read(object, a, s);
    return s;
}

TEST(node_series_reads_both_forms_alike)
{
    static const char *const forms[] = {
        "{\"selector\":{\"matchLabels\":{\"pool\":\"gpu\"}},\"names\":[\"a\",\"b\"]}",
        "{\"include\":[{\"selector\":{\"matchLabels\":{\"pool\":\"gpu\"}},\"names\":[\"a\",\"b\"]}]"
        "}",
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        const struct node_series *s = read(&a, forms[i]);
        CHECK_STR(s->problem.reason, "");
        CHECK_EQ(s->spec.include_n, 1);
        CHECK(s->spec.include[0].has_selector && !s->spec.include[0].has_facts);
        CHECK_EQ(s->spec.include[0].names.n, 2);
        CHECK_STR(s->spec.include[0].names.items[1], "b");
        CHECK_EQ(s->spec.scope, SERIES_NODES);
        CHECK_STR(s->spec.seed, "s");
        CHECK(!s->spec.sample.given);
        arena_done(&a);
    }
    check_case(-1);
}

TEST(node_series_reads_everything)
{
    struct arena a = { 0 };
    const struct node_series *s = read(
        &a, "{\"scope\":\"All\",\"facts\":{\"osId\":[\"debian\"],\"osVersion\":\">=12\","
            "\"kernel\":\">=5.10,<7\",\"kubelet\":\"1.29\",\"arch\":[\"amd64\"],"
            "\"packageManager\":[\"apt\"]},\"globs\":[\"w-*\"],\"exclude\":[{\"names\":[\"x\"]}],"
            "\"sample\":\"10%\",\"seed\":\"z\",\"minAge\":\"1h\"}");
    CHECK_STR(s->problem.reason, "");
    CHECK_EQ(s->spec.scope, SERIES_ALL);
    CHECK_EQ(s->spec.include[0].facts.kernel.n, 2);
    CHECK_EQ(s->spec.exclude_n, 1);
    CHECK(s->spec.sample.percent && s->spec.sample.n == 10);
    CHECK_STR(s->spec.seed, "z");
    CHECK_EQ(s->spec.min_age, HOURS(1));
    arena_done(&a);
}

TEST(node_series_says_what_is_wrong_where)
{
    static const struct {
        const char *spec;
        const char *text;
    } cases[] = {
        { "", "spec: found nothing, want a series; write scope: Nodes for all nodes" },
        { "{}", "spec: found {}, want a series; write scope: Nodes for all nodes" },
        { "{\"include\":[]}", "spec.include: found [], want at least one term" },
        { "{\"include\":[{}]}", "spec.include[0]: found {}, want selector, names, globs or facts" },
        { "{\"selector\":{}}", "spec.selector: found {}, want matchLabels or matchExpressions" },
        { "{\"names\":[]}", "spec.names: found [], want at least one" },
        { "{\"names\":[7]}", "spec.names[0]: found 7, want a text" },
        { "{\"facts\":{}}", "spec.facts: found {}, want facts such as osId: [debian]" },
        { "{\"facts\":{\"arch\":[]}}", "spec.facts.arch: found [], want at least one" },
        { "{\"facts\":{\"kernel\":\"new\"}}",
          "spec.facts.kernel: found \"new\", want a range of versions such as >=5.10,<7" },
        { "{\"globs\":[\"a\",\"b[\"]}",
          "spec.globs[1]: found \"b[\", want a pattern whose brackets are closed" },
        { "{\"names\":[\"a\"],\"include\":[{\"names\":[\"b\"]}]}",
          "spec: found {\"names\":[\"a\"],\"include\":[{\"names\":[\"b\"]}]}, want either "
          "selector, "
          "names, globs and facts, or include" },
        { "{\"scope\":\"All\",\"sample\":0}", "spec.sample: found 0, want a number from 1 without "
                                              "quotes, or a percentage such as 10%" },
        { "{\"scope\":\"All\",\"sample\":\"3\"}",
          "spec.sample: found \"3\", want a number from 1 without quotes, or a percentage such as "
          "10%" },
        { "{\"scope\":\"All\",\"sample\":\"101%\"}",
          "spec.sample: found \"101%\", want a number from 1 without quotes, or a percentage such "
          "as 10%" },
        { "{\"scope\":\"None\"}", "spec.scope: found \"None\", want one of Nodes, External, All" },
        { "{\"minAge\":\"-1h\"}",
          "spec.minAge: found \"-1h\", want a duration such as 90s, 30m, 1h30m; 24h for a day" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        const struct node_series *s = read(&a, cases[i].spec);
        CHECK_STR(s->problem.reason, "Invalid");
        CHECK_STR(spec_problem_text(&s->problem, &a), cases[i].text);
        arena_done(&a);
    }
    check_case(-1);
}

TEST(spec_share_rounds_up_and_never_to_nothing)
{
    static const struct {
        struct spec_share share;
        uint32_t whole;
        uint32_t is;
    } cases[] = {
        { { .given = true, .n = 3 }, 2, 3 },
        { { .given = true, .percent = true, .n = 10 }, 1, 1 },
        { { .given = true, .percent = true, .n = 10 }, 10, 1 },
        { { .given = true, .percent = true, .n = 10 }, 11, 2 },
        { { .given = true, .percent = true, .n = 100 }, 4294967295u, 4294967295u },
        { { .given = true, .percent = true, .n = 50 }, 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_EQ(spec_share_of(cases[i].share, cases[i].whole), cases[i].is);
    }
    check_case(-1);
}

TEST(spec_problem_cuts_long_values_between_characters)
{
    struct arena a = { 0 };
    struct buf text = { 0 };
    buf_add(&text, STR("{\"scope\":\"x"));
    for (int i = 0; i < 100; i++) {
        buf_add(&text, STR("ä"));
    }
    buf_add(&text, STR("\"}"));
    buf_add_char(&text, '\0');
    const struct node_series *s = read(&a, text.p);
    CHECK(s->problem.found.n <= SPEC_FOUND_MAX + 3);
    CHECK(str_ends(s->problem.found, STR("ä…")));
    buf_done(&text);
    arena_done(&a);
}
