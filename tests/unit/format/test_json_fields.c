#include "tests/check.h"

#include "format/json_fields.h"

struct page {
    struct arena a;
    struct err err;
    struct json_fields in;
    const struct jval *v;
};

static void page_open(struct page *p, const char *text)
{
    struct err err = { 0 };
    *p = (struct page){ 0 };
    p->in = (struct json_fields){ .out = &p->a, .err = &p->err };
    CHECK_EQ(json_parse(str_from(text), 0, &p->a, &p->v, &err), 0);
}

static void page_done(struct page *p)
{
    arena_done(&p->a);
}

TEST(json_fields_takes_what_is_there)
{
    CLEANUP(page_done)
    struct page p;
    usec_t at;
    uint32_t n;
    page_open(&p, "{\"t\":\"x\\ny\",\"yes\":true,\"n\":4294967295,\"list\":[1,2,3],"
                  "\"at\":\"2023-11-14T22:13:20Z\"}");
    CHECK_STR(jr_text(&p.in, p.v, "t"), "x\ny");
    CHECK(jr_bool(p.v, "yes"));
    CHECK_EQ(jr_u32(p.v, "n", 1), UINT32_MAX);
    CHECK_EQ(jr_time(&p.in, p.v, "at", 0, &at), 0);
    CHECK_EQ(at, SECONDS(1700000000));
    CHECK_EQ(jr_count(&p.in, jval_get(p.v, STR("list")), 3, &n), 0);
    CHECK_EQ(n, 3);
    CHECK_EQ(jr_count(&p.in, p.v, 5, &n), 0);
    CHECK_EQ(n, 5);
}

TEST(json_fields_goes_on_behind_what_is_missing)
{
    CLEANUP(page_done)
    struct page p;
    usec_t at;
    uint32_t n;
    page_open(&p, "{\"big\":4294967296,\"low\":-1,\"half\":0.5,\"word\":\"7\"}");
    const struct jval *absent = jval_get(p.v, STR("absent"));
    CHECK_EQ(jr_text(&p.in, p.v, "t").n, 0);
    CHECK_EQ(jr_text(&p.in, absent, "t").n, 0);
    CHECK_EQ(jr_text(&p.in, p.v, "big").n, 0);
    CHECK(!jr_bool(p.v, "yes") && !jr_bool(p.v, "word"));
    CHECK_EQ(jr_u32(p.v, "none", 9), 9);
    CHECK_EQ(jr_u32(p.v, "big", 9), 9);
    CHECK_EQ(jr_u32(p.v, "low", 9), 9);
    CHECK_EQ(jr_u32(p.v, "half", 9), 9);
    CHECK_EQ(jr_u32(p.v, "word", 9), 9);
    CHECK_EQ(jr_time(&p.in, p.v, "at", USEC_NEVER, &at), 0);
    CHECK_EQ(at, USEC_NEVER);
    CHECK_EQ(jr_count(&p.in, absent, 0, &n), 0);
    CHECK_EQ(n, 0);
}

TEST(json_fields_refuses_what_means_something_else)
{
    static const char *const times[] = { "{\"at\":\"noon\"}", "{\"at\":7}", "{\"at\":null}" };
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        CLEANUP(page_done)
        struct page p;
        usec_t at;
        page_open(&p, times[i]);
        CHECK(jr_time(&p.in, p.v, "at", 0, &at) < 0);
        CHECK(str_contains(str_from(p.err.msg), STR("'at'")));
    }
}

TEST(json_fields_refuses_a_list_that_is_too_long)
{
    CLEANUP(page_done)
    struct page p;
    uint32_t n;
    page_open(&p, "[1,2,3,4]");
    CHECK_EQ(jr_count(&p.in, p.v, 3, &n), -ERR_LIMIT);
    CHECK_STR(str_from(p.err.msg), "a list has 4 parts, at most 3 are read");
}
