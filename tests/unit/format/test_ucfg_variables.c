#include "format/ucfg_variables.h"
#include "tests/check.h"

TEST(ucfg_vars_tells_text_names_and_the_rest_apart)
{
    static const struct {
        const char *text;
        const char *plain; /* NULL: has a variable */
        const char *name;  /* NULL: is more than one variable */
    } cases[] = {
        { "", "", NULL },           { "a$b", "a$b", NULL },        { "$$ $} $", "$ } $", NULL },
        { "${A}", NULL, "A" },      { "${A:b}", NULL, NULL },      { "x${A}", NULL, NULL },
        { "${A${B}}", NULL, NULL }, { "${a.b-c}", NULL, "a.b-c" }, { "$${A}", "${A}", NULL },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        struct ucfg_vars s;
        struct str text;
        check_case((int64_t)i);
        CHECK_EQ(ucfg_vars_parse(str_from(cases[i].text), &a, &s, &err), 0);
        CHECK_EQ(ucfg_vars_is_text(&s, &a, &text), cases[i].plain != NULL);
        if (cases[i].plain != NULL) {
            CHECK_STR(text, cases[i].plain);
        }
        CHECK_EQ(ucfg_vars_is_name(&s, &text), cases[i].name != NULL);
        if (cases[i].name != NULL) {
            CHECK_STR(text, cases[i].name);
        }
    }
    check_case(-1);
}

TEST(ucfg_vars_places_what_has_no_end)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct ucfg_vars s;
    CHECK_EQ(ucfg_vars_parse(STR("ab ${C:${D}"), &a, &s, &err), -ERR_INVALID);
    CHECK_EQ(err.pos.column, 4);
    CHECK_EQ(ucfg_vars_parse(STR("ab ${C:${}}"), &a, &s, &err), -ERR_INVALID);
    CHECK_EQ(err.pos.column, 8);
}

TEST(ucfg_vars_bounds_its_depth)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct ucfg_vars s;
    struct str text = STR("x");
    for (uint32_t depth = 1; depth <= UCFG_VARS_DEPTH_MAX + 1; depth++) {
        text = arena_printf(&a, "${A:" STR_FMT "}", STR_ARG(text));
        CHECK_EQ(ucfg_vars_parse(text, &a, &s, &err),
                 depth > UCFG_VARS_DEPTH_MAX ? -ERR_INVALID : 0);
    }
}
