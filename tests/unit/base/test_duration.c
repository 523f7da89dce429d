#include "base/duration.h"
#include "tests/vectors.h"

TEST(duration_agrees_with_go_on_every_vector)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *cases = jval_get(vectors_load("vectors/duration.json", &a), STR("cases"));
    char text[DURATION_TEXT_MAX];
    uint32_t seen = 0;
    JVAL_EACH (cases, one) {
        vectors_enter(one);
        struct err err = { 0 };
        int64_t ns = 0;
        if (vectors_kind(one, "parse")) {
            int r = duration_parse(vectors_text(one, "in", &a), &ns, &err);
            CHECK_EQ(r == 0, vectors_ok(one));
            if (r < 0) {
                CHECK_STR(err.msg, jval_str(jval_get(one, STR("error"))));
                continue;
            }
            CHECK_EQ(ns, vectors_i64(one, "ns"));
        } else {
            CHECK(vectors_kind(one, "string"));
        }
        CHECK_STR(duration_print(vectors_i64(one, "ns"), text),
                  jval_str(jval_get(one, STR("string"))));
        seen++;
    }
    CHECK(seen > 100);
}

TEST(duration_parse_leaves_the_result_alone_when_it_fails)
{
    struct err err = { 0 };
    int64_t ns = 42;
    CHECK_EQ(duration_parse(STR("3 days"), &ns, &err), -ERR_INVALID);
    CHECK_EQ(ns, 42);
}

TEST(duration_parse_cuts_a_long_text_in_its_message)
{
    struct err err = { 0 };
    int64_t ns;
    char text[2000];
    memset(text, '\x01', sizeof(text));
    CHECK_EQ(duration_parse((struct str){ text, sizeof(text) }, &ns, &err), -ERR_INVALID);
    CHECK(strlen(err.msg) < 300);
}

/* Whatever is printed is read back as the same number. */
PROPERTY(duration_print_and_parse_are_inverse)
{
    struct err err = { 0 };
    char text[DURATION_TEXT_MAX];
    int64_t ns = (int64_t)(rng_next(rng) >> rng_below(rng, 64));
    if (rng_chance(rng, 500)) {
        ns = (int64_t)(0 - (uint64_t)ns);
    }
    int64_t back = 0;
    CHECK_EQ(duration_parse(duration_print(ns, text), &back, &err), 0);
    CHECK_EQ(back, ns);
}
