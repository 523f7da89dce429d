/* An expression has the same answer each time, and within parentheses. */
#include "format/gval.h"
#include "tests/fuzz/target.h"

static const double values[] = { 0, 1, -1, 0.5, 1e300, 9007199254740993.0 };

static void check_same(const struct gval *a, const struct gval *b)
{
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        struct err err_a = { 0 };
        struct err err_b = { 0 };
        bool left = false;
        bool right = false;
        int r_a = gval_eval(a, values[i], &tmp, &left, &err_a);
        int r_b = gval_eval(b, values[i], &tmp, &right, &err_b);
        ASSERT(r_a == r_b);
        ASSERT(left == right);
        ASSERT(strcmp(err_a.msg, err_b.msg) == 0);
        ASSERT(r_a == 0 || err_a.msg[0] != '\0');
    }
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct gval plain;
    struct gval within;
    if (gval_parse(text, &a, &plain, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    check_same(&plain, &plain);
    /* The line break ends a comment. A choice without its other branch is only taken at the end. */
    struct str open = arena_concat(&a, STR("("), text);
    if (gval_parse(arena_concat(&a, open, STR("\n)")), &a, &within, &err) == 0) {
        check_same(&plain, &within);
    }
}
